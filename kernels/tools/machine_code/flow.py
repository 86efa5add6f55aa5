"""Follows what values are computed from through machine code, and finds where secrets meet what others can observe.

The state before an instruction says for each register, and for each word of local memory, which sources its value may come from;
states are joined where ways meet, until nothing changes. A result comes from all that its instruction reads. Whatever is loaded
from shared memory is secret, and what is loaded from global memory too, unless its address comes from a pointer to public indices
and from no other. Memory need not be followed for that; local memory, where the assembler keeps public numbers too, is.
"""

import re
import sys

from .disassembly import REGISTERS, registers
from .sources import BLOCK, LAUNCH, SECRET, TABLE, THREAD, loaded, parameter

# Words of local memory that are kept apart.
_LOCAL_WORDS = 128
_STACK_POINTER = 1

JUMPS = {"BRA", "BRX", "CALL", "EXIT"}
# They tell the warp where lanes meet again, or wait for it.
CONVERGENCE = {"BSSY", "BSYNC", "WARPSYNC", "BREAK", "YIELD"}
BARRIERS = {"BAR", "MEMBAR", "FENCE", "ERRBAR", "DEPBAR", "LDGDEPBAR", "WARPGROUP"}
# They bring what is at an address nearer.
PREFETCHES = {"CCTL"}
# Bulk copies to shared memory, and the barriers at which warps wait for them. The time of a copy does not depend on its data.
COPIES = {"SYNCS", "UBLKCP"}
LOADS = {"LDG": "global", "LDS": "shared", "LDSM": "shared", "LDL": "local"}
CONSTANTS = {"LDC", "LDCU", "ULDC"}
STORES = {"STG": "global", "STS": "shared", "STSM": "shared", "STL": "local"}
MATRICES = {"IMMA", "IGMMA", "HMMA", "HGMMA"}
# What only computes. Whatever is not in one of these lists is refused, until somebody has looked at it.
ARITHMETIC = set(
    """
    BMSK BREV CREDUX CS2R DADD DFMA DMUL DSETP ELECT F2F F2I FADD FCHK FFMA FLO FMNMX FMUL FRND FSEL FSET FSETP FSWZADD HADD2
    HFMA2 HMNMX2 HMUL2 HSET2 HSETP2 I2F I2FP I2I IABS IADD IADD3 IADD32I IADD4 IDP IDP4A IMAD IMNMX IMUL ISETP LEA LOP
    LOP3 MOV MOV32I MUFU NOP P2R PLOP3 POPC PRMT PSET PSETP R2P R2UR REDUX S2R S2UR SEL SGXT SHF SHL SHR UBMSK UBREV
    UF2F UF2FP UF2I UFADD UFFMA UFLO UFMNMX UFMUL UFRND UFSEL UFSETP UI2F UI2FP UI2I UIABS UIADD UIADD3 UIMAD UIMNMX
    UISETP ULEA ULOP ULOP3 UMOV UP2UR UPLOP3 UR2UP UPOPC UPRMT UREDUX USEL USGXT USHF USHL USHR UVIADD UVIADDMNMX UVIMNMX
    VABSDIFF VABSDIFF4 VIADD VIADDMNMX VIMNMX VIMNMX3 VOTE VOTEU
    """.split()
)
_SPECIAL = {"SR_TID": THREAD, "SR_LANEID": THREAD, "SR_CTAID": BLOCK}
_CONSTANT = re.compile(r"c\[(0x[0-9a-f]+)\]\[([^\]]*)\]")
# A uniform predicate, and twice true, all of which must hold.
_COPY = re.compile(r"PLOP3\.LUT (P\d), PT, PT, PT, (UP\d), 0x80, 0x[08]$")
# The assembler keeps predicates that find no place in single bits of a register: it clears a bit, sets it under the predicate's
# guard, and asks for it later.
_CLEAR = re.compile(r"LOP3\.LUT R(\d+), R\1(?:\.reuse)?, (0x[0-9a-f]+), RZ, 0xc0, !PT$")
_SET = re.compile(r"LOP3\.LUT R(\d+), R\1(?:\.reuse)?, (0x[0-9a-f]+), RZ, 0xfc, !PT$")
_TEST = re.compile(r"LOP3\.LUT P\d, RZ, R(\d+)(?:\.reuse)?, (0x[0-9a-f]+), RZ, 0xc0, !PT$")
_BRACKETS = re.compile(r"\[([^\]]*)\]")


class Kernel:
    """An entry point's instructions, with what is known of its parameters."""

    def __init__(self, name, instructions, constants_base, parameters, public_pointers):
        """`parameters` are pairs of an offset and a size, in bytes; `public_pointers` their numbers."""
        self.name, self.instructions, self.constants_base = name, instructions, constants_base
        self.parameters = parameters
        self.pointers = sum(parameter(i) for i, (_, size) in enumerate(parameters) if size == 8)
        self.public_pointers = sum(parameter(i) for i in public_pointers)
        self._stack_stands_still()
        self.states = self._states()

    def sources(self, index, some=None):
        """What the registers that an instruction reads come from; or some of them."""
        state = self.states[index]
        found = 0
        for register in self.instructions[index].reads if some is None else some:
            found |= state[register]
        return found

    def reachable(self):
        """The instructions that are ever executed. Only padding may follow on the end."""
        unreached = [i for i, state in enumerate(self.states) if not state and self.instructions[i].name not in ("NOP", "BRA")]
        if unreached:
            sys.exit(f"{self.name}: nothing leads to {self.instructions[unreached[0]]}")
        return [index for index, state in enumerate(self.states) if state]

    def _stack_stands_still(self):
        """Words of local memory are known by their distance from the stack pointer, which must not move among them."""
        local = [i for i, instruction in enumerate(self.instructions) if instruction.name in ("LDL", "STL")]
        moves = [i for i, instruction in enumerate(self.instructions) if _STACK_POINTER in instruction.writes]
        if local and moves and max(moves) > min(local):
            sys.exit(f"{self.name}: the stack moves: {self.instructions[max(moves)]}")

    def _states(self):
        """The state before each instruction; none where nothing leads."""
        seen = [None] * len(self.instructions)
        joined = {0: _State([0] * (REGISTERS + _LOCAL_WORDS), {}, {}, {})}
        starts = {target for instruction in self.instructions for target in instruction.targets}
        waiting = [0]
        while waiting:
            index = waiting.pop()
            state = joined[index].copy()
            while True:
                instruction = self.instructions[index]
                seen[index] = state.as_read_by(instruction)
                state.write(instruction, self._results(instruction, seen[index]))
                jumps = instruction.name in JUMPS
                ways = list(instruction.targets) if jumps else []
                goes_on = not jumps or _may_not_happen(instruction)
                if goes_on and index + 1 in starts:
                    ways.append(index + 1)
                    goes_on = False
                for way in ways:
                    if way not in joined:
                        joined[way] = state.copy()
                        waiting.append(way)
                    elif joined[way].join(state):
                        waiting.append(way)
                if not goes_on:
                    break
                index += 1
                if index == len(self.instructions):
                    sys.exit(f"{self.name}: the code ends without an end")
        return seen

    def _results(self, instruction, before):
        """What an instruction writes, if its guard holds: the sources of each register, and of each word of local memory."""
        guard, name = self._guard(instruction, before), instruction.name
        sources = guard
        for register in instruction.reads:
            sources |= before[register]
        if name == "LDL":
            return self._load_local(instruction, before, guard)
        if name == "STL":
            return self._store_local(instruction, before, guard)
        if name in CONSTANTS and "c[0x0]" in instruction.operands:
            return self._load_parameters(instruction, guard)
        if name in LOADS:
            sources = guard | self._loaded(instruction, before)
        else:
            sources |= self._constants(instruction)
        if name in ("S2R", "S2UR", "CS2R"):
            special = instruction.operands.rpartition(",")[2].strip().partition(".")[0]
            sources |= _SPECIAL.get(special, 0 if special == "SRZ" else LAUNCH)
        return dict.fromkeys(instruction.writes, sources)

    def _load_local(self, instruction, before, guard):
        """A wide load fills registers one after the other; one from an unknown place may find any word."""
        words, exact = self._local(instruction)
        if exact:
            first = registers(instruction.operands.partition(",")[0])[0]
            return {first + i: guard | before[word] for i, word in enumerate(words)}
        found = guard
        for word in words:
            found |= before[word]
        return dict.fromkeys(instruction.writes, found)

    def _store_local(self, instruction, before, guard):
        """A wide store takes registers one after the other; one to an unknown place may change any word."""
        words, exact = self._local(instruction)
        value = registers(instruction.operands.rpartition(",")[2])
        if exact:
            return {word: guard | (before[value[0] + i] if value else 0) for i, word in enumerate(words)}
        stored = guard
        for register in instruction.reads:
            stored |= before[register] if register != _STACK_POINTER else 0
        return {word: before[word] | stored for word in words}

    def _guard(self, instruction, before):
        sources = 0
        for register in registers(instruction.guard):
            sources |= before[register]
        return sources

    def _loaded(self, instruction, before):
        """What is loaded from global or shared memory may come from."""
        if LOADS[instruction.name] == "shared":
            return SECRET
        address = 0
        for register in address_registers(instruction):
            address |= before[register]
        return loaded(address, self.pointers, self.public_pointers)

    def _local(self, instruction):
        """The words of local memory that an instruction touches, and whether it touches all of them for sure."""
        inside = _BRACKETS.search(instruction.operands)[1]
        offset = re.fullmatch(r"R1(?:\+(-?0x[0-9a-f]+))?", inside)
        if not offset or offset[1] and offset[1].startswith("-"):
            return range(REGISTERS, REGISTERS + _LOCAL_WORDS), False
        first = int(offset[1] or "0", 16) // 4
        size = instruction.opcode.rpartition(".")[2]
        count = {"64": 2, "128": 4}.get(size, 1)
        if first + count > _LOCAL_WORDS:
            sys.exit(f"{self.name}: too much local memory: {instruction}")
        return range(REGISTERS + first, REGISTERS + first + count), size not in ("U8", "S8", "U16", "S16")

    def _load_parameters(self, instruction, guard):
        """A wide load fills registers one after the other, with parts of several parameters."""
        first = registers(instruction.operands.partition(",")[0])[0]
        count = {"64": 2, "128": 4}.get(instruction.opcode.rpartition(".")[2], 1)
        return {first + i: guard | self._parameters(instruction, 4 * i, 4) for i in range(count)}

    def _constants(self, instruction):
        """Parameters and tables among the operands."""
        banks = [bank for bank, _ in _CONSTANT.findall(instruction.operands)]
        size = 8 if re.search(r"\.(64|WIDE)|^D", instruction.opcode) else 4
        found = self._parameters(instruction, 0, size) if "0x0" in banks else 0
        return found | (TABLE if "0x4" in banks else 0)

    def _parameters(self, instruction, offset, size):
        """What `size` bytes come from that lie `offset` bytes behind what an instruction names in bank 0."""
        sources = 0
        for inside in (inside for bank, inside in _CONSTANT.findall(instruction.operands) if bank == "0x0"):
            if not re.fullmatch(r"0x[0-9a-f]+|U?RZ", inside):
                sys.exit(f"{self.name}: a parameter at an address that is computed: {instruction}")
            start = (int(inside, 16) if inside.startswith("0x") else 0) + offset - self.constants_base
            if start < 0:
                sources |= LAUNCH
            for number, (place, length) in enumerate(self.parameters):
                if place < start + size and start < place + length:
                    sources |= parameter(number)
        return sources


class _State:
    """What registers and local memory may come from; and what a register comes from if a guard holds.

    The latter is known of registers that were written under a guard, for the guard and for its opposite, as long as the predicate
    stays what it is. Predicates that are copies of a uniform one go by its name.

    Bits of a register that were cleared or set by themselves, as predicates are kept, have sources of their own. All others have
    those of the register.
    """

    def __init__(self, sources, guarded, copies, bits):
        self.sources, self.guarded, self.copies, self.bits = sources, guarded, copies, bits

    def copy(self):
        return _State(list(self.sources), dict(self.guarded), dict(self.copies), dict(self.bits))

    def guards(self, instruction):
        """The guard of an instruction, by its own name and by that of what its predicate is a copy of; none if it has none."""
        negation, name = re.match(r"(!?)(\w*)", instruction.guard).groups()
        return {negation + name, negation + self.copies.get(name, name)} if name else set()

    def under(self, register, guards):
        """What a register comes from if a guard holds, that goes by several names."""
        sources = self.sources[register]
        for guard in guards:
            sources &= self.guarded.get((register, guard), sources)
        return sources

    def as_read_by(self, instruction):
        """The sources as an instruction sees them: one with a guard reads what is there if the guard holds."""
        sources, guards = list(self.sources), self.guards(instruction)
        for register in instruction.reads if guards else ():
            sources[register] = self.under(register, guards)
        if test := _TEST.match(f"{instruction.opcode} {instruction.operands}"):
            register, mask = int(test[1]), int(test[2], 16)
            asked = 0
            for bit in _bits(mask):
                asked |= self.bits.get((register, bit), self.sources[register])
            sources[register] &= asked
        return sources

    def _write_bits(self, instruction, written):
        """What bits come from: of a register that is written, those alone are known on which nothing else has a say."""
        text = f"{instruction.opcode} {instruction.operands}"
        cleared, changed = _CLEAR.match(text), _SET.match(text)
        known = {place: sources for place, sources in self.bits.items() if place[0] not in written}
        if one := cleared or changed:
            register, mask = int(one[1]), int(one[2], 16)
            # A constant; or, under a guard, that or what was there before.
            touched = set(_bits(mask if changed else ~mask & 0xFFFF_FFFF))
            guard = 0
            for name in registers(instruction.guard):
                guard |= self.sources[name]
            for bit in range(32):
                before = self.bits.get((register, bit), self.sources[register])
                if bit not in touched:
                    known[register, bit] = before
                else:
                    known[register, bit] = guard | before if instruction.guard else 0
        self.bits = known

    def write(self, instruction, results):
        """Takes the results of an instruction, if its guard holds, over what was there, if it does not."""
        guards, written = self.guards(instruction), set(results)
        self._write_bits(instruction, written)
        opposites = {_opposite(guard) for guard in guards}
        kept = {register: self.under(register, opposites) for register in written if guards}
        for register, known in list(self.guarded):
            if register in written or written & set(registers(known)):
                del self.guarded[register, known]
        for copy, original in list(self.copies.items()):
            if written & set(registers(f"{copy} {original}")):
                del self.copies[copy]
        for register, sources in results.items():
            self.sources[register] = sources | kept.get(register, 0)
            for guard in guards:
                if not written & set(registers(guard)):
                    self.guarded[register, guard], self.guarded[register, _opposite(guard)] = sources, kept[register]
        if not guards and (copied := _COPY.match(f"{instruction.opcode} {instruction.operands}")):
            self.copies[copied[1]] = copied[2]

    def join(self, other):
        """Adds another way to get here. Whether that changed anything."""
        sources = [a | b for a, b in zip(self.sources, other.sources)]
        guarded = {}
        for (register, guard), known in self.guarded.items():
            guarded[register, guard] = known | other.guarded.get((register, guard), other.sources[register])
        copies = {copy: original for copy, original in self.copies.items() if other.copies.get(copy) == original}
        bits = {}
        for (register, bit), known in self.bits.items():
            bits[register, bit] = known | other.bits.get((register, bit), other.sources[register])
        before = self.sources, self.guarded, self.copies, self.bits
        self.sources, self.guarded, self.copies, self.bits = sources, guarded, copies, bits
        return before != (sources, guarded, copies, bits)


def _bits(mask):
    return [bit for bit in range(32) if mask >> bit & 1]


def _opposite(guard):
    return guard[1:] if guard.startswith("!") else "!" + guard


def _may_not_happen(instruction):
    """Whether what comes after a jump is reached: the jump has a guard, a predicate among its operands, or asks where lanes are."""
    asks = instruction.name != "BRX" and re.match(r"!?U?P\d|U?R\d", instruction.operands)
    return bool(instruction.guard or asks)


def address_registers(instruction):
    """The registers from which an instruction makes its address: those in brackets. Those of a prefetch do not say that they are pairs."""
    found = [register for inside in _BRACKETS.findall(instruction.operands) for register in registers(inside)]
    return found + [register + 1 for register in found] if instruction.name in PREFETCHES else found
