"""The shapes of the kernels: one `shapes.csv` in the folder of each family, and `operations.csv` for all of them."""

import csv
import glob
import os
import sys
from dataclasses import dataclass

SHAPE_COLUMNS = [
    "bits", "lanes", "limbs", "threads", "blocks", "scratch_doubles", "shared_bytes", "min_r2_bits",
    "operations", "alone_ms", "shared_ms",
]  # fmt: skip
OPERATION_COLUMNS = ["operation", "width_factor", "entry", "module", "source", "window_table", "feature"]


@dataclass(frozen=True)
class Operation:
    name: str
    width_factor: int
    entry: str
    module: str
    source: str
    window_table: bool


@dataclass(frozen=True)
class Shape:
    family: str
    bits: int
    lanes: int
    limbs: int
    threads: int
    blocks: int
    scratch_doubles: int
    shared_bytes: int
    min_r2_bits: int

    @property
    def namespace(self):
        """Of the family's headers: its name, unless that is a word of C++."""
        return {"int": "integer"}.get(self.family, self.family)


@dataclass(frozen=True)
class Entry:
    """A shape that does an operation: an entry point."""

    shape: Shape
    operation: Operation

    @property
    def width(self):
        return self.shape.bits * self.operation.width_factor

    @property
    def name(self):
        return self.operation.entry.format(width=self.width, lanes=self.shape.lanes)

    @property
    def module(self):
        """The file of its module, without `.ptx`."""
        return f"{self.shape.family}_{self.operation.module.format(width=self.width)}"


def entries(kernels):
    """All entry points by family, operation and width, in the order of the tables."""
    operations = [operation(row) for row in rows(os.path.join(kernels, "operations.csv"), OPERATION_COLUMNS)]
    found = []
    for path in sorted(glob.glob(os.path.join(kernels, "*", "shapes.csv"))):
        family = os.path.basename(os.path.dirname(path))
        shapes = [(shape(path, family, row), row["operations"].split("+")) for row in rows(path, SHAPE_COLUMNS)]
        for _, names in shapes:
            for name in set(names) - {operation.name for operation in operations}:
                sys.exit(f"{path}: there is no operation '{name}' in operations.csv")
        found += [Entry(s, o) for o in operations for s, names in shapes if o.name in names]
    for name in duplicates((entry.module, entry.name) for entry in found):
        sys.exit(f"{kernels}: two shapes give the entry point {name[1]} of {name[0]}")
    return found


def modules(kernels):
    """The entry points of each module, in the order in which they stand in it."""
    found = {}
    for entry in entries(kernels):
        found.setdefault(entry.module, []).append(entry)
    return found


def source(entries):
    """The CUDA C++ of a module. The headers of the family check the columns that follow from the others; this comes
    last, for the compiler writes constants in the order in which it meets them."""
    lines = [f'#include "{name}"' for name in unique(entry.operation.source for entry in entries)]
    for entry in entries:
        s = entry.shape
        macro = entry.operation.name.upper() + "_ENTRY"
        lines.append(f"{macro}({entry.width}, {s.lanes}, {s.limbs}, {s.threads}, {s.blocks})")
    for s in unique(entry.shape for entry in entries):
        numbers = [s.lanes, s.limbs, s.threads, s.shared_bytes, s.min_r2_bits]
        lines.append(f"static_assert({s.namespace}::is_shape<{', '.join(map(str, numbers))}>());")
    for s in unique(entry.shape for entry in entries if entry.operation.window_table):
        lines.append(f"static_assert({s.namespace}::has_table<{s.lanes}, {s.limbs}, {s.scratch_doubles}>());")
    return "\n".join(lines) + "\n"


def rows(path, columns):
    with open(path, encoding="ascii", newline="") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != columns:
            sys.exit(f"{path}: the columns are {reader.fieldnames}, not {columns}")
        found = list(reader)
    for number, row in enumerate(found, 2):
        if None in row or None in row.values():
            sys.exit(f"{path}:{number}: there are not {len(columns)} cells")
    return found


def operation(row):
    return Operation(
        row["operation"],
        int(row["width_factor"]),
        row["entry"],
        row["module"],
        row["source"],
        row["window_table"] == "yes",
    )


def shape(path, family, row):
    """The numbers of a row; the times are for the host alone."""
    numbers = {}
    for column in SHAPE_COLUMNS[:8]:
        if not row[column].isdecimal():
            sys.exit(f"{path}: '{row[column]}' in column {column} is no number")
        numbers[column] = int(row[column])
    return Shape(family, **numbers)


def unique(items):
    return list(dict.fromkeys(items))


def duplicates(items):
    seen = set()
    return [item for item in items if item in seen or seen.add(item)]
