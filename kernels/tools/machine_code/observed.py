"""What others can observe of an entry point, counted, and where a secret meets it."""

import re
import sys

from .disassembly import registers
from .flow import (
    ARITHMETIC, BARRIERS, CONSTANTS, CONVERGENCE, COPIES, JUMPS, LOADS, MATRICES, PREFETCHES, STORES, address_registers,
)  # fmt: skip
from .sources import SECRET, TABLE, names

FIGURES = [
    "instructions", "ptx_branches", "branches", "indexed_jumps", "bssy", "depends_on",
    "global_loads", "global_stores", "shared_loads", "shared_stores", "local_loads", "local_stores", "secret_local_stores",
    "indexed_constants", "guarded_accesses", "guards_depend_on", "shuffles",
]  # fmt: skip
_MEMORY = {**LOADS, **STORES}


def look(kernel, branches):
    """The figures of a kernel, as `FIGURES` has them, and what is wrong with it, a line each."""
    figures = dict.fromkeys(FIGURES, 0)
    figures["ptx_branches"] = branches.count
    findings, depends_on, guards = [], 0, 0
    reachable = kernel.reachable()
    copies = any(kernel.instructions[index].name == "UBLKCP" for index in reachable)
    for index in reachable:
        instruction = kernel.instructions[index]
        name = instruction.name
        figures["instructions"] += name != "NOP"
        for what, some in _observable(kernel, instruction):
            if kernel.sources(index, some) & SECRET:
                findings.append(f"{what} depends on a secret: {instruction}")
        if name in JUMPS:
            sources = kernel.sources(index)
            figures["indexed_jumps"] += name == "BRX"
            if copies and instruction.opcode == "BRA.U.ANY":
                # A loop of the assembler over the lanes that copy, which takes their operands one after the other. The PTX has none.
                continue
            figures["branches"] += name != "BRX" and bool(instruction.reads)
            depends_on |= sources
            if unexplained := sources & ~branches.sources & ~SECRET:
                findings.append(f"a branch depends on {names(unexplained)}, and none in the PTX does: {instruction}")
        elif name in _MEMORY:
            kind = f"{_MEMORY[name]}_{'loads' if name in LOADS else 'stores'}"
            figures[kind] += 1
            figures["guarded_accesses"] += bool(instruction.guard)
            guards |= kernel.sources(index, registers(instruction.guard))
            if name == "STG" and kernel.sources(index, address_registers(instruction)) & TABLE:
                value = [register for register in instruction.reads if register not in address_registers(instruction)]
                if kernel.sources(index, value) & SECRET:
                    findings.append(f"a variable of the module receives a secret: {instruction}")
            if name == "STL":
                value = [register for register in instruction.reads if register not in address_registers(instruction)]
                figures["secret_local_stores"] += bool(kernel.sources(index, value) & SECRET)
        elif name in CONSTANTS:
            figures["indexed_constants"] += bool(address_registers(instruction))
        figures["bssy"] += name == "BSSY"
        figures["shuffles"] += name == "SHFL"
    if (found := figures["branches"] + figures["indexed_jumps"]) > branches.count:
        findings.append(f"{found} branches, and {branches.count} in the PTX")
    figures["depends_on"], figures["guards_depend_on"] = names(depends_on), names(guards)
    return figures, findings


def _observable(kernel, instruction):
    """What of an instruction others can observe: a name, and the registers that it is made of."""
    name, guard = instruction.name, registers(instruction.guard)
    if name in JUMPS or name in CONVERGENCE:
        yield "a branch", instruction.reads
    elif name in BARRIERS:
        yield "a barrier", instruction.reads
    elif name in _MEMORY or name in CONSTANTS or name in PREFETCHES:
        yield "an address", address_registers(instruction)
        yield "whether memory is accessed", guard
    elif name in COPIES:
        yield "a copy", instruction.reads
    elif name == "SHFL":
        # Whether the lane was there, the result, the value, the lane, and how far it may be.
        lane = instruction.operands.split(",")[3:]
        yield "a shuffle lane", guard + registers(",".join(lane))
    elif name in MATRICES:
        yield "a descriptor of a matrix", guard + registers(" ".join(re.findall(r"!?U[RP]\w+", instruction.operands)))
    elif name not in ARITHMETIC and not name.startswith("IADD"):
        sys.exit(f"{kernel.name}: kernels/tools/machine_code/flow.py does not know {instruction}")


def places(kernel):
    """A line for each branch, guarded access and access to local memory, with what it depends on."""
    for index in kernel.reachable():
        instruction = kernel.instructions[index]
        is_jump = instruction.name in JUMPS and instruction.reads
        is_guarded = instruction.name in _MEMORY and instruction.guard
        if is_jump or is_guarded:
            some = instruction.reads if is_jump else registers(instruction.guard)
            yield f"{instruction}    ; {names(kernel.sources(index, some)) or 'nothing'}"
        elif instruction.name in ("LDL", "STL"):
            yield f"{instruction}    ; {names(kernel.sources(index)) if instruction.name == 'STL' else ''}"
