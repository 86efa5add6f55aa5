"""What the branches of a kernel depend on in its PTX: what those of its machine code are held against."""

import re

from .sources import BLOCK, LAUNCH, SECRET, TABLE, THREAD, loaded, parameter

_ENTRY = re.compile(r"\.entry (\w+)\s*\((.*?)\)(.*?)\n\{\n(.*?)\n\}", re.S)
_PARAMETER = re.compile(r"\.param \.[a-z](\d+) ")
_STATEMENT = re.compile(r"(?:@!?(%p\d+)\s+)?([a-z][\w.:]*)\s*(.*)", re.S)
_OPERAND = re.compile(r"%\w+(?:\.\w+)?|\b[A-Za-z_$][\w$]*")
_NO_RESULT = ("st.", "bra", "bar.", "barrier.", "ret", "exit", "membar", "fence", "wgmma.fence", "wgmma.commit", "wgmma.wait")
_SPECIAL = {"%tid": THREAD, "%laneid": THREAD, "%ctaid": BLOCK, "%nctaid": LAUNCH, "%ntid": LAUNCH}


def entry_points(text):
    """The bodies of the entry points of a module, with the sizes of their parameters in bytes."""
    found = {}
    for name, parameters, _, body in _ENTRY.findall(text):
        sizes = [int(bits) // 8 for bits in _PARAMETER.findall(parameters)]
        found[name] = (sizes, body)
    return found


def offsets(sizes):
    """Where parameters of these sizes lie, each aligned to its size: pairs of an offset and a size."""
    places, end = [], 0
    for size in sizes:
        end = -(-end // size) * size
        places.append((end, size))
        end += size
    return places


class Branches:
    """The conditional branches of an entry point: how many, and what all of them together depend on."""

    def __init__(self, name, text, public_pointers):
        sizes, body = entry_points(text)[name]
        self.tables = set(re.findall(r"\.(?:global|const) [^;=]*?(\w+)(?:\[\d+\])?(?: =|;)", text))
        self.pointers = sum(parameter(i) for i, size in enumerate(sizes) if size == 8)
        self.public_pointers = sum(parameter(i) for i in public_pointers)
        statements = [match for statement in _statements(body) if (match := _STATEMENT.match(statement))]
        sources = self._sources(statements)
        guards = [guard for guard, opcode, _ in (match.groups() for match in statements) if guard and opcode.startswith("bra")]
        self.count = len(guards)
        self.sources = 0
        for guard in guards:
            self.sources |= sources.get(guard, 0)

    def _sources(self, statements):
        """What each register comes from, whatever the order of the statements."""
        steps = [step for match in statements if (step := self._step(*match.groups()))]
        sources, changed = {}, True
        while changed:
            changed = False
            for results, reads, constant, is_global_load in steps:
                found = constant
                for read in reads:
                    found |= sources.get(read, 0)
                if is_global_load:
                    found = loaded(found, self.pointers, self.public_pointers)
                for result in results:
                    if found & ~sources.get(result, 0):
                        sources[result] = sources.get(result, 0) | found
                        changed = True
        return sources

    def _step(self, guard, opcode, operands):
        """Results, what is read, what else they come from, and whether that is an address in global memory."""
        if opcode.startswith(_NO_RESULT):
            return None
        groups = _operands(operands)
        results = [name for name in _OPERAND.findall(groups[0]) if name.startswith("%")]
        rest = " ".join(groups if opcode.startswith("wgmma.mma_async") else groups[1:])
        reads = [name for name in _OPERAND.findall(rest) if name.startswith("%")]
        constant = 0
        for name in _OPERAND.findall(rest):
            special = _SPECIAL.get(name.partition(".")[0], 0)
            constant |= special | (TABLE if name in self.tables else 0)
            if number := re.fullmatch(r"\w+_param_(\d+)", name):
                constant |= parameter(int(number[1]))
        if opcode.startswith("ld.shared"):
            return results, [], SECRET, False
        if guard:
            reads.append(guard)
        return results, reads, constant, opcode.startswith("ld.global")


def _statements(body):
    for line in re.sub(r"//[^\n]*", "", body).replace("{\n", "\n").split(";"):
        # Labels and braces of inline assembly stand before a statement.
        yield re.sub(r"^(?:\s|\{(?=\s)|\}|\$\w+:|\.loc[^\n]*)*", "", line).strip()


def _operands(text):
    """Operands between commas, braces kept together."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
