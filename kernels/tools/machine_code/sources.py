"""What a value is computed from: sets of sources, as bits of a number.

A source is a parameter of the kernel, the place of a thread, the launch, what lies where a pointer to public indices points, or a
secret: whatever else was loaded from global, shared or unknown memory.
"""

SECRET, INDEX, TABLE, THREAD, BLOCK, LAUNCH = (1 << bit for bit in range(6))
NAMES = {SECRET: "secret", INDEX: "indices", TABLE: "tables", THREAD: "thread", BLOCK: "block", LAUNCH: "launch"}
_FIRST_PARAMETER = 6


def parameter(number):
    return 1 << (_FIRST_PARAMETER + number)


def loaded(address, pointers, public_pointers):
    """The source of what lies at an address that comes from these sources.

    `pointers` are the kernel's pointers, `public_pointers` those that point to public indices.
    """
    if address & pointers:
        return SECRET if address & pointers & ~public_pointers else INDEX
    # Constants of the module have addresses of their own.
    return 0 if address & TABLE else SECRET


def names(sources):
    """The sources in words, parameters by their numbers: `3 7 thread`."""
    parameters, rest = sources >> _FIRST_PARAMETER, sources
    found = [str(number) for number in range(parameters.bit_length()) if parameters >> number & 1]
    return " ".join(found + [name for bit, name in NAMES.items() if rest & bit])
