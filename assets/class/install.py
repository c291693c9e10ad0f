"""Make this machine a class host, without the internet: ``sudo python3 install.py`` (add --yes to be asked nothing).

It unpacks the wheels beside it into a folder of its own and goes on with ``jitter-workshop class init``, which shows
every step before it does it.
"""

import platform
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def fits(name: str) -> bool:
    """Whether a wheel's tags are of this interpreter and machine, as far as its name says."""
    python, abi, system = name.removesuffix(".whl").split("-")[-3:]
    if system != "any" and not any(one.endswith("_" + platform.machine()) for one in system.split(".")):
        return False
    version = sys.version_info
    if "abi3" in abi.split("."):
        return any(int(one[3:]) <= version[1] for one in python.split(".") if one.startswith("cp3"))
    return abi == "none" or f"cp3{version[1]}" in abi.split(".")


def main() -> int:
    if sys.version_info < (3, 11):
        print("Python 3.11 or newer is needed", file=sys.stderr)
        return 2
    wheels = sorted((HERE / "wheels").glob("*.whl"))
    other = [one.name for one in wheels if not fits(one.name)]
    if other or not wheels:
        print(f"not for this machine: {', '.join(other) or 'no wheels are here'}", file=sys.stderr)
        return 2
    lib = tempfile.mkdtemp(prefix="jitter-workshop-")
    try:
        for one in wheels:
            with zipfile.ZipFile(one) as archive:
                archive.extractall(lib)
        sys.path.insert(0, lib)
        from jitter_workshop.cli import main as workshop

        return workshop(["class", "init", "--file", str(HERE / "class.toml"), *sys.argv[1:]])
    finally:
        shutil.rmtree(lib, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
