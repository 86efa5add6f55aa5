"""Compares the header with the Rust source and with the symbols of the shared library: header.py LIBRARY

Functions (names, parameters, types), structs (fields, types), status codes and schemes must be the same on both sides, and
the library must export these functions alone, each with a version.
"""

import re
import subprocess
import sys
from pathlib import Path

RUST_TYPES = {
    "u8": "uint8_t", "i32": "int32_t", "u32": "uint32_t", "u64": "uint64_t", "usize": "size_t", "c_char": "char",
    "c_void": "void", "Octets": "bme_octets", "Engine": "bme_engine", "KeyHandle": "bme_key", "PublicKey": "bme_public_key",
    "Queue": "bme_queue", "EncryptionParameters": "bme_encryption",
}


def c_type(rust):
    """The C type of a Rust type, without blanks before stars."""
    if rust in ("Callback", "Option<Callback>"):
        return "bme_sign_callback"
    if found := re.fullmatch(r"\*(const|mut) (.*)", rust):
        const = "const " if found[1] == "const" else ""
        return f"{const}{c_type(found[2])}*"
    return RUST_TYPES.get(rust) or "bme_" + re.sub(r"(?<!^)([A-Z])", r"_\1", rust).lower()


def of_rust(source):
    """The items of the interface in Rust."""
    found = {}
    for name, parameters, result in re.findall(r'extern "C" fn (\w+)\(([^)]*)\)(?: -> ([^{]+?))? \{', source):
        pairs = [part.strip().split(": ") for part in parameters.split(",") if part.strip()]
        pairs = [f"{c_type(kind)} {name}" for name, kind in pairs]
        found[name] = f"{c_type(result) if result else 'void'}({', '.join(pairs) or 'void'})"
    for name, fields in re.findall(r"#\[repr\(C\)\]\n(?:pub\(crate\) )?struct (\w+) \{([^}]*)\}", source):
        pairs = [part.strip().split(": ") for part in fields.split(",") if part.strip()]
        found[c_type(name)] = "; ".join(f"{c_type(kind)} {name}" for name, kind in pairs)
    kinds = re.search(r'type Callback = unsafe extern "C" fn\(([^)]*)\);', source)[1]
    found["bme_sign_callback"] = ", ".join(c_type(kind) for kind in kinds.split(", "))
    for name, value in re.findall(r"pub\(crate\) const ([A-Z0-9_]+): i32 = (\d+);", source):
        found["number " + name] = value
    return found


def squeeze(text):
    """One blank between words, none around stars but one after the last."""
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r" ?\*(\w)", r"* \1", re.sub(r" ?\* ?(?=\*)", "*", text))


def of_header(text):
    """The items of the interface in C."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = {}
    for result, name, parameters in re.findall(r"^([\w *]+?)\b(bme_\w+)\(([^)]*)\);", text, flags=re.M):
        pairs = ", ".join(squeeze(part) for part in parameters.split(","))
        found[name] = f"{squeeze(result + 'x')[:-1].rstrip()}({pairs})"
    for name, fields in re.findall(r"typedef struct (\w+) \{([^}]*)\}", text):
        found[name] = "; ".join(squeeze(part) for part in fields.split(";") if part.strip())
    parameters = re.search(r"typedef void \(\*bme_sign_callback\)\(([^)]*)\);", text)[1]
    parts = [squeeze(part).rpartition(" ")[0] for part in parameters.split(",")]
    found["bme_sign_callback"] = ", ".join(parts)
    for name, value in re.findall(r"#define BME_(?:ERROR_)?(\w+) (\d+)\b", text):
        found["number " + name] = value
    return found


def differences(rust, header):
    names = sorted(rust.keys() | header.keys())
    return [f"{name}: {rust.get(name)} in Rust, {header.get(name)} in C" for name in names if rust.get(name) != header.get(name)]


def main():
    source = "\n".join(path.read_text() for path in sorted(Path("src").glob("*.rs")))
    text = Path("include/batch_modexp.h").read_text()
    rust = of_rust(source)
    problems = differences(rust, of_header(text))
    # Changes that must be noticed.
    for old, new in [
        ("size_t count, size_t width,", "size_t width, size_t count,"), ("uint32_t bits", "uint64_t bits"),
        ("size_t message_capacity;", ""), ("BME_ERROR_LATE 10", "BME_ERROR_LATE 12"), ("void bme_queue_free", "void bme_queue_drop"),
        ("(void *user, int32_t status, const uint8_t", "(void *user, int32_t status, uint8_t"),
    ]:
        assert old in text, old
        if not differences(rust, of_header(text.replace(old, new, 1))):
            problems.append(f"a change of {old!r} is not noticed")
    symbols = subprocess.check_output(["nm", "-D", "--defined-only", sys.argv[1]], text=True)
    symbols = {line.split()[-1] for line in symbols.splitlines()} - {"BME_0.1"}
    functions = {f"{name}@@BME_0.1" for name, item in rust.items() if item.endswith(")")}
    problems += [f"{symbol} is in one of library and source" for symbol in sorted(symbols ^ functions)]
    print("\n".join(problems) or f"the header declares the {len(functions)} functions of the library")
    sys.exit(bool(problems))


main()
