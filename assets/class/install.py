"""Make this machine a class host, without the internet: ``sudo python3 install.py``.

It unpacks the wheels beside it into a folder of its own and goes on with ``jitter-workshop class init``, which shows
every step and asks before it does it. All options behind ``install.py`` go to ``class init``: --show only shows, --yes
does not ask.
"""

import os
import platform
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def fits(name: str) -> bool:
    """Return True if a wheel is for this interpreter, machine and C library, as far as its name says."""
    python, abi, system = name.removesuffix(".whl").split("-")[-3:]
    if system != "any" and not any(_runs_here(one) for one in system.split(".")):
        return False
    minor = sys.version_info[1]
    pythons = python.split(".")
    if "abi3" in abi.split("."):
        return any(int(one[3:]) <= minor for one in pythons if one.startswith("cp3"))
    if "none" in abi.split("."):
        return "py3" in pythons or f"py3{minor}" in pythons
    return f"cp3{minor}" in abi.split(".")


def _runs_here(system: str) -> bool:
    """Return True if the platform in a wheel's name, such as ``manylinux_2_17_x86_64``, is this machine with a C
    library that is new enough (PEP 600). The older names say the same."""
    if not system.endswith("_" + platform.machine()):
        return False
    if system.startswith("musllinux"):
        return not _glibc()
    words = system.split("_")
    if words[0] == "manylinux" and words[1].isdigit() and words[2].isdigit():
        return _glibc() >= (int(words[1]), int(words[2]))
    return words[0] == "linux" or bool(_glibc())


def _glibc() -> tuple[int, ...]:
    """Return the version of the GNU C library, () for another one."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        return tuple(int(word) for word in version.split(".")[:2]) if name == "glibc" else ()
    except (ValueError, OSError):
        return ()


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 (whatever python3 is, runs this)
        print("Python 3.11 or newer is needed", file=sys.stderr)
        return 2
    wheels = sorted((HERE / "wheels").glob("*.whl"))
    other = [one.name for one in wheels if not fits(one.name)]
    if other or not wheels:
        here = f"Python {sys.version_info[0]}.{sys.version_info[1]} on {platform.machine()}"
        more = f" (and {len(other) - 1} more)" if len(other) > 1 else ""
        print(f"not for {here}: {(other or ['no wheels are here'])[0]}{more}", file=sys.stderr)
        what = "run this with the Python that the archive was made with, or make an archive on a machine like this"
        print(what, file=sys.stderr)
        return 2
    os.umask(0o022)
    lib = tempfile.mkdtemp(prefix="jitter-workshop-")
    try:
        for one in wheels:
            with zipfile.ZipFile(one) as archive:
                archive.extractall(lib)
        sys.dont_write_bytecode = True
        sys.path.insert(0, lib)
        from jitter_workshop.cli import main as workshop

        return workshop(["class", "init", "--file", str(HERE / "class.toml"), *sys.argv[1:]])
    finally:
        shutil.rmtree(lib, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
