"""The listing of what others can observe of the shipped kernels' machine code, compared with `sass.csv`."""

import concurrent.futures
import csv
import glob
import hashlib
import os
import sys

import ptxas
import sass
import shapes
import wheels

from . import disassembly, flow, observed, ptx

# The newest assembler. nvdisasm of today has no live ranges for what older ones write.
ASSEMBLER, REQUIREMENTS, _ = ptxas.ASSEMBLERS[-1]
CHIPS = ["sm_80", "sm_89", "sm_90", "sm_120"]
KEY = ["chip", "module", "entry"]
COLUMNS = [*KEY, "ptx_sha256", *observed.FIGURES]
# The parameters that point to indices, which are public; every other pointer points to secrets. An operation that is not here has
# no such parameter.
PUBLIC_POINTERS = {"mod_exp": [4], "fixed_entries": [4], "crt_halves": [3], "crt_recombine": [3], "crt_join": [5], "crt_blind": [5]}


def measure(kernels):
    """The rows of all modules in the folder `ptx` of `kernels`, by chip, module and entry; and what is wrong, a line each."""
    tools = find_tools()
    public = public_pointers(kernels)
    jobs = [(tools, chip, path, public) for path in modules(kernels) for chip in chips(path)]
    rows, findings = {}, []
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        for (_, chip, path, _), (found, wrong) in zip(jobs, pool.map(_look, jobs)):
            print(f"{chip} {os.path.basename(path)}", file=sys.stderr, flush=True)
            rows.update(found)
            findings += wrong
    return rows, findings


def modules(kernels):
    return sorted(glob.glob(os.path.join(kernels, "ptx", "*.ptx")))


def chips(path):
    """The chips that a module is looked at for."""
    return ptxas.own_chip(path) or ptxas.later(path, CHIPS)


def find_tools():
    found = wheels.find(ASSEMBLER, REQUIREMENTS, "nvidia/*/bin/ptxas")
    return found, wheels.find(*sass.DISASSEMBLER, "nvidia/*/bin/nvdisasm")


def public_pointers(kernels):
    """The parameters that point to public indices, by module and entry."""
    entries = [entry for module in shapes.modules(kernels).values() for entry in module]
    return {(entry.module + ".ptx", entry.name): PUBLIC_POINTERS.get(entry.operation.name, []) for entry in entries}


def kernels_of(tools, chip, text, public):
    """For each entry point of a module its name, its machine code, and its branches in the PTX."""
    parameters = {name: ptx.offsets(sizes) for name, (sizes, _) in ptx.entry_points(text).items()}
    base = disassembly.constants_base(chip)
    code = disassembly.entry_points(*tools, chip, text)
    if sorted(code) != sorted(parameters):
        sys.exit(f"{chip}: machine code of {', '.join(code)}, PTX of {', '.join(parameters)}")
    for name, instructions in code.items():
        kernel = flow.Kernel(name, instructions, base, parameters[name], public.get(name, []))
        yield name, kernel, ptx.Branches(name, text, public.get(name, []))


def _look(job):
    """The rows of one module on one chip, and what is wrong there."""
    tools, chip, path, public = job
    module = os.path.basename(path)
    with open(path, encoding="ascii") as file:
        text = file.read()
    of_entry = {entry: numbers for (of_module, entry), numbers in public.items() if of_module == module}
    rows, findings = {}, []
    for name, kernel, branches in kernels_of(tools, chip, text, of_entry):
        figures, wrong = observed.look(kernel, branches)
        rows[chip, module, name] = (digest(text), *(str(figures[figure]) for figure in observed.FIGURES))
        findings += [f"{chip} {module} {name}: {line}" for line in wrong]
    return rows, findings


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def show(kernels, module, chip):
    """Prints each branch, guarded access and local access of a module on a chip, and what it depends on."""
    path = os.path.join(kernels, "ptx", module.removesuffix(".ptx") + ".ptx")
    with open(path, encoding="ascii") as file:
        text = file.read()
    public = public_pointers(kernels)
    of_entry = {entry: numbers for (of_module, entry), numbers in public.items() if of_module == os.path.basename(path)}
    for name, kernel, _ in kernels_of(find_tools(), chip, text, of_entry):
        print(f"{name} on {chip}")
        for place in observed.places(kernel):
            print("   ", place)


def stale(kernels, expected):
    """What in the listing is not about the PTX as it is, without a look at machine code."""
    hashes = {}
    for path in modules(kernels):
        with open(path, encoding="ascii") as file:
            text = file.read()
        for chip in chips(path):
            hashes.update({(chip, os.path.basename(path), name): digest(text) for name in ptx.entry_points(text)})
    wrong = {key[1] for key in hashes.keys() ^ expected.keys()}
    wrong |= {key[1] for key in hashes.keys() & expected.keys() if hashes[key] != expected[key][0]}
    return sorted(wrong)


def differences(expected, found):
    """A line for each entry point whose figures are not the expected ones."""
    lines = []
    for key in sorted(expected.keys() | found.keys()):
        old, new = expected.get(key), found.get(key)
        if new is None or old is None:
            lines.append(" ".join(key) + (": is no more" if new is None else ": is new"))
        elif old != new:
            pairs = zip(COLUMNS[len(KEY) :], old, new)
            lines.append(" ".join(key) + ": " + ", ".join(f"{f} {o} -> {n}" for f, o, n in pairs if o != n))
    return lines


def summary(rows):
    def total(figure):
        return sum(int(row[COLUMNS.index(figure) - len(KEY)]) for row in rows.values())

    return (
        f"{len(rows)} entry points, {total('branches')} conditional branches and {total('indexed_jumps')} indexed jumps, "
        f"{total('guarded_accesses')} guarded accesses"
    )


def load(path):
    with open(path, encoding="ascii", newline="") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != COLUMNS:
            sys.exit(f"{path}: the columns are {reader.fieldnames}, not {COLUMNS}")
        return {tuple(row[k] for k in KEY): tuple(row[c] for c in COLUMNS[len(KEY) :]) for row in reader}


def save(path, rows):
    with open(path, "w", encoding="ascii", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(key + figures for key, figures in sorted(rows.items()))
