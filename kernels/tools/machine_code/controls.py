"""Kernels that leak in their machine code, and must be found: those that the PTX machine is tried out on."""

import sys

from . import listing, observed

# What is found in each of them, on every chip; nothing in those with None.
CONTROLS = {
    "scanned_table": None,
    "scanned_shared_table": None,
    "gathered_table": "an address",
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
