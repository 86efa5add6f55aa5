"""Machine code as nvdisasm shows it, with the registers that each instruction reads and writes.

Which these are is not taken from the operands, whose widths hang on the opcode, but from nvdisasm's table of live ranges. That
every register in the text is marked there is checked.
"""

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

# Where the registers of each file begin in one numbering, and how many there are.
FILES = {"GPR": ("R", 0, 256), "PRED": ("P", 256, 8), "UGPR": ("UR", 264, 256), "UPRED": ("UP", 520, 8)}
REGISTERS = 528
_FIRST = {letters: first for letters, first, _ in FILES.values()}
_NAMED = re.compile(r"(?<![\w.])(U?[RP])(\d+)\b")
_CODE = re.compile(r"^\s+/\*([0-9a-f]+)\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;?\s*$")
_LABEL = re.compile(r"`\((\.L_\w+)\)")
_TARGETS = re.compile(r'\(\*"BRANCH_TARGETS ([^"]*)"\*\)')


@dataclass
class Instruction:
    address: int
    guard: str  # the predicate before it, such as `!P0`, or nothing
    opcode: str
    operands: str
    reads: list
    writes: list
    targets: list = field(default_factory=list)  # indices of the instructions that it may jump to

    def __str__(self):
        guard = f"@{self.guard} " if self.guard else ""
        return f"{self.address:#07x} {guard}{self.opcode} {self.operands}".rstrip()

    @property
    def name(self):
        return self.opcode.partition(".")[0]


def entry_points(ptxas, nvdisasm, chip, text):
    """The instructions of each entry point of a module, given as PTX, on a chip."""
    with tempfile.TemporaryDirectory() as scratch:
        source, binary = os.path.join(scratch, "module.ptx"), os.path.join(scratch, "module.cubin")
        with open(source, "w", encoding="ascii") as file:
            file.write(text)
        done = subprocess.run([ptxas, f"-arch={chip}", "-o", binary, source], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{chip}: {done.stdout}{done.stderr}")
        shown = subprocess.run([nvdisasm, "-c", "-lrm", "narrow", binary], capture_output=True, text=True)
        # Without the dataflow there are no live ranges, and it only warns of that.
        if shown.returncode or shown.stderr:
            sys.exit(f"{chip}: {shown.stderr}")
    sections = re.split(r"^//-+ \.text\.(\w+) +-+$", shown.stdout, flags=re.M)
    return {name: _instructions(name, code) for name, code in zip(sections[1::2], sections[2::2])}


def constants_base(chip):
    """Where the parameters begin in bank 0 of the constants, in bytes."""
    number = int(re.match(r"sm_(\d+)", chip)[1])
    return 0x160 if number < 90 else 0x210 if number < 100 else 0x380


def number(letters, digits):
    """The number of a register in the numbering of all files."""
    return _FIRST[letters] + int(digits)


def registers(text):
    """The registers that a piece of text names, with the second half of those marked `.64`."""
    found = []
    for match in _NAMED.finditer(text):
        register = number(*match.groups())
        found.append(register)
        if text.startswith(".64", match.end()):
            found.append(register + 1)
    return found


def _instructions(name, code):
    columns, instructions, labels = None, [], {}
    waiting, targets = [], []
    for line in code.splitlines():
        text, bar, ranges = line.partition("// |") if "// |" in line else line.partition("// +")
        if bar and "#" in ranges:
            columns = _columns(name, ranges)
        elif text.startswith(".L_"):
            waiting.append(text.strip().rstrip(":"))
        elif match := _CODE.match(_TARGETS.sub("", text)):
            address, guard, opcode, operands = match.groups()
            labels.update((label, len(instructions)) for label in waiting)
            waiting = []
            reads, writes = _marked(columns, ranges)
            listed = _TARGETS.search(text)
            targets.append(listed[1].split(",") if listed else _LABEL.findall(operands))
            operands = re.sub(r'\(\*".*?"\*\)', "", operands).replace(".reuse", "").strip()
            instructions.append(Instruction(int(address, 16), guard or "", opcode, operands, reads, writes))
            _complete(name, instructions[-1])
    for instruction, wanted in zip(instructions, targets):
        if missing := [label for label in wanted if label not in labels]:
            sys.exit(f"{name}: a jump to {', '.join(missing)}, which is not in the code: {instruction}")
        if not wanted and instruction.name in ("BRA", "BRX", "CALL", "JMP"):
            sys.exit(f"{name}: a jump to nobody knows where: {instruction}")
        instruction.targets = [labels[label] for label in wanted]
    return instructions


def _columns(name, ranges):
    """Which register each column of the table is about, from the line with the lowest digits of their numbers."""
    columns = {}
    places = [match.start() for match in re.finditer("#", ranges)]
    # nvdisasm leaves out files that are not used, from the end.
    for place, (_, first, _) in zip(places, FILES.values()):
        digits = re.match(r"# (\d+)", ranges[place:])
        if not digits or any(int(digit) != i % 10 for i, digit in enumerate(digits[1])):
            sys.exit(f"{name}: a table of live ranges that is not understood: {ranges}")
        columns.update((place + 2 + i, first + i) for i in range(len(digits[1])))
    return columns


def _marked(columns, ranges):
    reads, writes = [], []
    for match in re.finditer("[v^x]", ranges):
        register = columns[match.start()]
        if match[0] != "^":
            reads.append(register)
        if match[0] != "v":
            writes.append(register)
    return reads, writes


def _complete(name, instruction):
    """Adds what the table leaves out, and makes sure that it leaves out nothing else."""
    if instruction.name == "CALL":
        # A far jump: the table has what a subroutine might do.
        instruction.reads, instruction.writes = registers(instruction.guard), []
        return
    if instruction.name in ("P2R", "R2P", "UP2UR", "UR2UP"):
        # Predicates to the bits of a register, or back: those of a mask.
        file = "UP" if instruction.name.startswith("U") else "P"
        mask = int(instruction.operands.rpartition(",")[2], 16)
        predicates = [_FIRST[file] + i for i in range(7) if mask >> i & 1]
        if f"{file}R" not in instruction.operands.split(", ") or ".B" in instruction.operands:
            sys.exit(f"{name}: an instruction that is not understood: {instruction}")
        (instruction.reads if "2R" in instruction.name or "2UR" in instruction.name else instruction.writes).extend(predicates)
    marked = set(instruction.reads) | set(instruction.writes)
    if missing := set(registers(f"{instruction.guard} {instruction.operands}")) - marked:
        sys.exit(f"{name}: {len(missing)} registers of an instruction have no mark: {instruction}")
