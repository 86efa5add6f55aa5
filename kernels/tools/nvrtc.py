"""CUDA C++ to PTX, with a pinned NVRTC."""

import ctypes
import os
import re
import sys

import wheels

REQUIREMENTS = ["nvidia-cuda-nvrtc-cu12==12.4.127"]
OPTIONS = ["-default-device", "--std=c++17", "-fmad=false"]
# Any driver since 450 (CUDA 11.0) loads this version; nothing newer is used. A folder of sources that wants other
# instructions has a file `target` with two words like these.
TARGET = "compute_70 7.0"


def load():
    return ctypes.CDLL(wheels.find("nvrtc-12.4", REQUIREMENTS, "nvidia/*/lib/libnvrtc.so.*"))


def compile_ptx(nvrtc, name, code, include):
    """PTX of one source, with the version in its header lowered to that of the target of the folder `include`."""
    architecture, version = target(include)
    program = ctypes.c_void_p()
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), code.encode(), name.encode(), 0, None, None):
        sys.exit(f"{name}: nvrtcCreateProgram failed")
    options = [f"--gpu-architecture={architecture}", *OPTIONS, f"--include-path={include}"]
    options = [option.encode() for option in options]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    log = text(nvrtc, "ProgramLog", program)
    if failed or log.strip():
        sys.exit(f"{name}:\n{log}")
    ptx = text(nvrtc, "PTX", program)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    lowered, count = re.subn(r"^\.version \d+\.\d+$", f".version {version}", ptx, flags=re.M)
    if count != 1:
        sys.exit(f"{name}: expected one .version line, found {count}")
    return lowered


def target(folder):
    """The virtual architecture and the version of PTX for the sources in a folder."""
    path = os.path.join(folder, "target")
    if not os.path.exists(path):
        return TARGET.split()
    with open(path, encoding="ascii") as file:
        return file.read().split()


def text(nvrtc, what, program):
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
    return buffer.value.decode()
