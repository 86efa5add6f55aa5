"""What the assembler makes of the PTX on every supported chip: registers and spills, compared with `ptxas.csv`."""

import concurrent.futures
import csv
import glob
import os
import re
import subprocess
import sys
import tempfile

import sass
import wheels

# The oldest assembler that knows sm_90, the oldest one for modules that copy matrices, and the newest one for the newest chips.
ASSEMBLERS = [
    ("ptxas-12.0", ["nvidia-cuda-nvcc-cu12==12.0.140"], ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90"]),
    ("ptxas-12.8", ["nvidia-cuda-nvcc-cu12==12.8.93"], []),
    (
        "ptxas-13.0",
        [
            "nvidia-cuda-nvcc==13.0.88",
            "nvidia-nvvm==13.0.88",
            "nvidia-cuda-crt==13.0.88",
            "nvidia-cuda-runtime==13.0.96",
        ],
        ["sm_80", "sm_90", "sm_100", "sm_120"],
    ),
]
# What is made for one chip and no other runs there alone, everything else on that chip and later ones.
TARGET = re.compile(r"^\.target sm_(\d+)(a?)$", re.M)
KEY = ["assembler", "chip", "module", "entry"]
FIGURES = ["registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes"]
# The part of ptxas's report that is about one entry point.
REPORT = re.compile(
    r"Compiling entry function '(\w+)'(?:(?!Compiling entry function).)*?(\d+) bytes stack frame, "
    r"(\d+) bytes spill stores, (\d+) bytes spill loads(?:(?!Compiling entry function).)*?Used (\d+) registers",
    re.S,
)


def measure(ptx):
    """Assembles every module in the folder `ptx` for every chip. By assembler, chip, module and entry."""
    modules = sorted(glob.glob(os.path.join(ptx, "*.ptx")))
    jobs = []
    for name, requirements, chips in ASSEMBLERS:
        ptxas = wheels.find(name, requirements, "nvidia/*/bin/ptxas")
        taken = [module for module in modules if name in assemblers(module)]
        jobs += [(name, ptxas, chip, module) for module in taken for chip in own_chip(module) or later(module, chips)]
        with_products = [module for module in taken if own_chip(module)]
        for module in with_products[:1]:
            sass.prove_that_missing_products_are_noticed(ptxas, own_chip(module)[0], module)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = {}
        for (name, _, chip, module), figures in zip(jobs, pool.map(lambda job: assemble(*job), jobs)):
            found.update(figures)
            print(f"{name} {chip} {os.path.basename(module)}", file=sys.stderr, flush=True)
    return found


def target(path):
    """The number of the chip that a module is made for, and whether it is for no other."""
    with open(path, encoding="ascii") as file:
        number, only = TARGET.search(file.read()).groups()
    return int(number), bool(only)


def own_chip(path):
    """The only chip that a module is for, in a list, if there is one."""
    number, only = target(path)
    return [f"sm_{number}a"] if only else []


def assemblers(path):
    """The assemblers for a module. That of CUDA 12.4 takes minutes if it copies matrices, so the host uses it from CUDA 12.8 on."""
    with open(path, encoding="ascii") as file:
        return ["ptxas-12.8", "ptxas-13.0"] if "cp.async.bulk" in file.read() else ["ptxas-12.0", "ptxas-13.0"]


def later(path, chips):
    """Those of the chips that a module is for."""
    number, _ = target(path)
    return [chip for chip in chips if int(chip.removeprefix("sm_")) >= number]


def assemble(name, ptxas, chip, path):
    """The figures of the entry points of one module on one chip. Its machine code must have all matrix products."""
    module = os.path.basename(path)
    with tempfile.TemporaryDirectory() as scratch:
        binary = os.path.join(scratch, "module.cubin")
        done = subprocess.run([ptxas, f"-arch={chip}", "-v", "-o", binary, path], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name} {chip} {module}: {done.stdout}{done.stderr}")
        # Here and not by itself, since some of these take most of a minute to assemble.
        if own_chip(path):
            sass.check(binary, f"{name} {chip}", path)
    found = {}
    for entry, stack, stores, loads, registers in REPORT.findall(done.stdout + done.stderr):
        found[name, chip, module, entry] = (int(registers), int(stack), int(stores), int(loads))
    with open(path, encoding="ascii") as file:
        entries = re.findall(r"\.entry (\w+)", file.read())
    if sorted(entries) != sorted(key[-1] for key in found):
        sys.exit(f"{name} {chip} {module}: the report is not about {', '.join(entries)}:\n{done.stdout}{done.stderr}")
    return found


def differences(expected, found):
    """A line for each entry point whose figures are not the expected ones."""
    lines = []
    for key in sorted(expected.keys() | found.keys()):
        old, new = expected.get(key), found.get(key)
        if new is None:
            lines.append(" ".join(key) + ": is no more")
        elif old is None:
            lines.append(" ".join(key) + ": is new")
        elif old != new:
            pairs = zip(FIGURES, old, new)
            lines.append(" ".join(key) + ": " + ", ".join(f"{f} {o} -> {n}" for f, o, n in pairs if o != n))
    return lines


def prove_that_spills_are_noticed(ptx):
    """Leaves so few registers to one entry point that it has to spill."""
    module = "dpf_modexp_512.ptx"
    with open(os.path.join(ptx, module), encoding="ascii") as file:
        text = file.read()
    crowded = text.replace(".minnctapersm 4", ".minnctapersm 8")
    name, requirements, chips = ASSEMBLERS[0]
    ptxas = wheels.find(name, requirements, "nvidia/*/bin/ptxas")
    reports = []
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, module)
        for code in (text, crowded):
            with open(path, "w", encoding="ascii") as file:
                file.write(code)
            reports.append(assemble(name, ptxas, chips[0], path))
    lines = differences(*reports)
    if len(lines) != 1 or "modexp_512_t2: " not in lines[0] or "spill_store_bytes 0 -> " not in lines[0]:
        sys.exit(f"an entry point that spills is not noticed, the comparison cannot be trusted: {lines}")


def summary(found):
    """How many spill, and which the most."""
    spilling = {key: figures for key, figures in found.items() if any(figures[1:])}
    text = f"{len(found)} entry points assembled, {len(spilling)} have local memory"
    if spilling:
        most = max(spilling, key=lambda key: spilling[key][1])
        text += f", at most {spilling[most][1]} bytes a thread ({' '.join(most)})"
    return text


def load(path):
    with open(path, encoding="ascii", newline="") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != KEY + FIGURES:
            sys.exit(f"{path}: the columns are {reader.fieldnames}, not {KEY + FIGURES}")
        return {tuple(row[k] for k in KEY): tuple(int(row[f]) for f in FIGURES) for row in reader}


def save(path, found):
    with open(path, "w", encoding="ascii", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(KEY + FIGURES)
        writer.writerows(key + figures for key, figures in sorted(found.items()))
