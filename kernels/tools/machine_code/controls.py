"""Kernels that leak in their machine code, and must be found: those that the PTX machine is tried out on."""

import sys
from types import SimpleNamespace

from . import listing, observed
from .disassembly import Instruction, number, registers
from .flow import Kernel
from .sources import SECRET, THREAD

# What is found in each of them, on every chip; nothing in those with None.
CONTROLS = {
    "scanned_table": None,
    "scanned_shared_table": None,
    "gathered_table": "an address",
    "prefetched_entry": "an address",
    "moving_bank": "an address",
    "lane_private_banks": "an address",
    "shared_bank": "an address",
    "scattered_store": "an address",
    "skipped_zero_digits": "a branch",
    "secret_loop_bound": "a branch",
    "secret_shuffle_lane": "a shuffle lane",
}


def prove_that_new_branches_are_noticed(path):
    """Holds a kernel whose branches depend on its parameters against PTX that has no branches."""
    with open(path, encoding="ascii") as file:
        text = file.read()
    for name, kernel, branches in listing.kernels_of(listing.find_tools(), listing.CHIPS[0], text, {}):
        branches.sources = branches.count = 0
        found = observed.look(kernel, branches)[1]
        if not all(any(words in line for line in found) for words in ("none in the PTX does", ", and 0 in the PTX")):
            sys.exit(f"{name}: branches that the PTX does not explain are not noticed: {found}")


def prove_that_leaks_are_noticed(path):
    """Looks at the controls in the module at `path`, whose pointers all point to secrets."""
    with open(path, encoding="ascii") as file:
        text = file.read()
    for chip in listing.CHIPS:
        seen = {}
        for name, kernel, branches in listing.kernels_of(listing.find_tools(), chip, text, {}):
            seen[name] = observed.look(kernel, branches)[1]
        for name, expected in CONTROLS.items():
            wrong = [line for line in seen[name] if not (expected and line.startswith(f"{expected} depends on a secret"))]
            if wrong or bool(expected) != bool(seen[name]):
                sys.exit(f"{chip} {name}: {expected or 'nothing'} should be found, not: {seen[name]}")


# Predicates that are kept in bits of a register: one of the thread in bit 8, a secret one in bit 0.
_KEPT = """
    S2R R0, SR_TID.X
    LDS R2, [R4]
    ISETP.NE.AND P0, PT, R0, RZ, PT
    ISETP.NE.AND P1, PT, R2, RZ, PT
    LOP3.LUT R9, R9, 0xfffffeff, RZ, 0xc0, !PT
    LOP3.LUT R9, R9, 0xfffffffe, RZ, 0xc0, !PT
    @P0 LOP3.LUT R9, R9, 0x100, RZ, 0xfc, !PT
    @P1 LOP3.LUT R9, R9, 0x1, RZ, 0xfc, !PT
    LOP3.LUT P2, RZ, R9, 0x100, RZ, 0xc0, !PT
    LOP3.LUT P3, RZ, R9, 0x1, RZ, 0xc0, !PT
    LOP3.LUT P4, RZ, R9, 0x101, RZ, 0xc0, !PT
    MOV R10, R9
    @P1 LOP3.LUT R9, R9, 0x100, RZ, 0xfc, !PT
    LOP3.LUT P5, RZ, R9, 0x100, RZ, 0xc0, !PT
    LOP3.LUT R9, R9, 0xfffffeff, RZ, 0xc0, !PT
    MOV R9, R2
    LOP3.LUT P6, RZ, R9, 0x100, RZ, 0xc0, !PT
    EXIT
"""


def prove_that_bits_are_kept_apart():
    """A secret in one bit is not taken for one in another, and is found in its own, with others, and in the whole register."""
    last = Kernel("bits", _instructions(_KEPT), 0, [], []).states[-1]
    public, secret = ["P2"], ["P3", "P4", "P5", "P6", "R10"]
    for name in public + secret:
        sources = last[number(name[0], name[1:])]
        if sources & SECRET != (SECRET if name in secret else 0) or name in public and sources != THREAD:
            sys.exit(f"bits of a register: {name} should come from {'a secret' if name in secret else 'the thread alone'}")


# A variable of the module gets the number of the thread, and a secret.
_STORED = """
    S2R R0, SR_TID.X
    LDS R2, [R4]
    MOV R6, c[0x4][0x0]
    MOV R7, c[0x4][0x4]
    STG.E [R6.64], R0
    STG.E [R6.64], R2
    EXIT
"""


def prove_that_secrets_in_variables_are_noticed():
    """What a module's variable holds is taken for public, so no secret may get there."""
    kernel = Kernel("stores", _instructions(_STORED), 0, [], [])
    found = observed.look(kernel, SimpleNamespace(count=0, sources=0))[1]
    if len(found) != 1 or not found[0].startswith("a variable of the module receives a secret"):
        sys.exit(f"a secret in a variable of the module is not noticed: {found}")


def _instructions(text):
    """The instructions of a text. All but stores write their first operand."""
    instructions = []
    for line in text.strip().split("\n"):
        guard, _, code = line.strip().rpartition("@")[2].partition(" ") if "@" in line else ("", "", line.strip())
        opcode, _, operands = code.partition(" ")
        written, _, read = ("", "", operands) if opcode.startswith("STG") else operands.partition(", ")
        instructions.append(Instruction(len(instructions), guard, opcode, operands, registers(f"{guard} {read}"), registers(written)))
    return instructions
