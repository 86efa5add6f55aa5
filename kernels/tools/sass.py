"""The machine code of modules with matrix products: it must have as many of them as the PTX.

ptxas leaves out products whose sums it takes for unwanted; some versions are wrong about that (docs/rns.md).
"""

import os
import re
import subprocess
import sys
import tempfile

import wheels

DISASSEMBLER = ("nvdisasm", ["nvidia-cuda-nvdisasm==13.5.37"])
IN_PTX = re.compile(r"wgmma\.mma_async\S*\.s32\.u8\.u8 ")
IN_SASS = re.compile(r"\bIGMMA\.")


def check(binary, chip, path):
    """Ends the program if the assembler left out a product of the module at `path`."""
    with open(path, encoding="ascii") as file:
        wanted = len(IN_PTX.findall(file.read()))
    if not wanted:
        return
    found = count(binary)
    if found != wanted:
        sys.exit(f"{chip} {os.path.basename(path)}: {wanted} matrix products in the PTX, {found} in the machine code")


def count(binary):
    """The products in machine code."""
    nvdisasm = wheels.find(*DISASSEMBLER, "nvidia/*/bin/nvdisasm")
    code = subprocess.run([nvdisasm, "-c", binary], check=True, capture_output=True, text=True).stdout
    return len(IN_SASS.findall(code))


def prove_that_missing_products_are_noticed(ptxas, chip, path):
    """Takes the first product away, and counts one less."""
    with open(path, encoding="ascii") as file:
        text = file.read()
    first = next(IN_PTX.finditer(text))
    line = text[text.rindex("\n", 0, first.start()) + 1 : text.index("\n", first.end())]
    without = text.replace(line, "// " + line, 1)
    with tempfile.TemporaryDirectory() as scratch:
        source, binary = os.path.join(scratch, "module.ptx"), os.path.join(scratch, "module.cubin")
        with open(source, "w", encoding="ascii") as file:
            file.write(without)
        subprocess.run([ptxas, f"-arch={chip}", "-o", binary, source], check=True)
        found = count(binary)
    if found != len(IN_PTX.findall(text)) - 1:
        sys.exit(f"{path}: a product that is missing is not noticed, the count cannot be trusted")
