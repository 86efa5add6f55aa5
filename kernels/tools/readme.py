"""The tables of `kernels/README.md`, which stand between `<!-- entry points: OPERATIONS -->` and `<!-- end -->`."""

import re
import sys

import shapes

TABLE = re.compile(r"(?<=<!-- entry points: )([\w ]+)( -->\n).*?(?=<!-- end -->)", re.S)
HEAD = [
    "entry point", "file", "threads", "instances per block", "limbs per thread",
    "scratch doubles per thread and entry", "shared bytes", "`r2_bits`",
]  # fmt: skip


def with_tables(text, kernels):
    """The text with its tables as the shapes give them."""
    entries = [entry for module in shapes.modules(kernels).values() for entry in module]
    shown = " ".join(operations for operations, _ in TABLE.findall(text)).split()
    missing = {entry.operation.name for entry in entries} - set(shown)
    if missing:
        sys.exit(f"kernels/README.md has no place for the entry points of {', '.join(sorted(missing))}")

    def table(match):
        rows = [row(entry) for entry in entries if entry.operation.name in match[1].split()]
        return match[1] + match[2] + "\n".join([line(HEAD), "|---" * len(HEAD) + "|", *rows]) + "\n"

    return TABLE.sub(table, text)


def row(entry):
    s = entry.shape
    return line(
        [
            f"`{entry.name}`",
            f"`{entry.module}.ptx`",
            s.threads,
            s.threads // s.lanes,
            s.limbs,
            s.scratch_doubles if entry.operation.window_table else "-",
            s.shared_bytes,
            f"{s.min_r2_bits} ..= {s.bits}",
        ]
    )


def line(cells):
    return "| " + " | ".join(map(str, cells)) + " |"
