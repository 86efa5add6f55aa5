"""NVIDIA's tools from PyPI, each in a virtual environment of its own under target/."""

import glob
import os
import shutil
import subprocess
import sys
import venv

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = os.path.join(ROOT, "target", "kernel-tools")


def find(name, requirements, pattern):
    """The file that `pattern` names below the site-packages of the environment `name`, which holds `requirements`."""
    folder = environment(name, requirements)
    found = [path for path in glob.glob(os.path.join(folder, pattern)) if ".alt." not in path]
    if not found:
        sys.exit(f"no {pattern} in {folder}")
    return found[0]


def environment(name, requirements):
    folder = os.path.join(TOOLS, name)
    if not os.path.exists(os.path.join(folder, "complete")):
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        pip = [os.path.join(folder, "bin", "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run(pip + ["--disable-pip-version-check", *requirements], check=True)
        open(os.path.join(folder, "complete"), "w", encoding="ascii").close()
    return glob.glob(os.path.join(folder, "lib", "python3*", "site-packages"))[0]
