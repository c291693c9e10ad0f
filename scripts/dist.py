"""Build the files of a release: a source distribution, a wheel for this processor, and a wheel for arm64.

    sh scripts/workshop.sh dist [--out FOLDER]

The wheels are built from the source distribution, so it holds all that a build needs. One wheel serves every Python
from 3.11 on (cffi's limited API, abi3). A wheel's tag names the oldest C library on which the native core loads: the
highest version among the symbols that the core takes from glibc (PEP 600). The wheel for arm64 needs a cross compiler
(Debian: apt install gcc-aarch64-linux-gnu libc6-dev-arm64-cross); without one it is left out, and a line says so.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SUMS = "SHA256SUMS"
CROSS = {"aarch64": "aarch64-linux-gnu"}
"""Processor → the prefix of its cross compiler, which is also Debian's name of the processor for folders."""
LEFT_OUT = (".*", "tests", "docs", "build", "dist", "*.egg-info", "__pycache__", "*.so", "*.o", "bench-results")
LIBRARIES = re.compile(r"(libc|libm|libpthread|librt|libdl|ld-linux-.*)\.so\.\d")
"""The libraries of glibc. PEP 600 permits a wheel to need them."""
SAME = ("LONG", "LONG_LONG", "VOID_P", "SIZE_T", "WCHAR_T", "OFF_T", "TIME_T", "PID_T", "UINTPTR_T")
"""The sizes in Python's pyconfig.h. A header of another processor may be used only if all of them are the same."""
_SIZED = {"LONG_LONG": "long long", "LONG": "long", "VOID_P": "void *"}


class Failed(Exception):
    """Report in one sentence why a file cannot be built."""


@dataclass(frozen=True)
class Needs:
    """Hold what a shared library needs. ``machine``: the processor in the words of uname(1). ``libraries``: the names
    of other libraries. ``glibc``: the highest version among the symbols of glibc."""

    machine: str
    libraries: tuple[str, ...]
    glibc: tuple[int, int]


MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}
"""Processor in the words of readelf(1) → in the words of uname(1)."""


def needs(library: Path) -> Needs:
    """Return what a shared library needs, by readelf(1). Raise Failed for an unknown processor, and if the library
    takes no symbol from glibc."""
    said = run(["readelf", "-W", "-h", "-d", "-V", str(library)], REPOSITORY, {"LC_ALL": "C"})
    machine = re.search(r"^\s*Machine:\s*(.*?)\s*$", said, re.MULTILINE)
    versions = [tuple(map(int, one)) for one in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", said)]
    if machine is None or machine[1] not in MACHINES or not versions:
        raise Failed(
            f"{library.name} is of an unknown processor or C library: only glibc on x86-64 and arm64 has a tag"
        )
    major, minor = max(versions)
    libraries = tuple(re.findall(r"\(NEEDED\)\s+Shared library: \[(.*?)\]", said))
    return Needs(MACHINES[machine[1]], libraries, (major, minor))


def tag(needed: Needs) -> str:
    """Return the platform tag of a wheel with such a library, such as ``manylinux_2_34_x86_64`` (PEP 600). Raise Failed
    if the library needs other libraries than those of glibc."""
    others = [name for name in needed.libraries if not LIBRARIES.fullmatch(name)]
    if others:
        raise Failed(f"the native core needs {', '.join(others)}, which is not on every host")
    return f"manylinux_{needed.glibc[0]}_{needed.glibc[1]}_{needed.machine}"


def run(command: list[str], folder: Path, more: dict[str, str] | None = None) -> str:
    """Return the standard output of a command. Raise Failed with its last lines if it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | (more or {}),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise Failed(f"{command[0]} failed:\n{(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def built(kind: str, source: Path, out: Path, more: dict[str, str] | None = None) -> Path:
    """Have setuptools build a distribution. ``kind``: sdist or wheel. Return its file."""
    code = f"from setuptools import build_meta; import sys; print('made', build_meta.build_{kind}(sys.argv[1]))"
    said = run([sys.executable, "-c", code, str(out)], source, more)
    return out / said.rpartition("made ")[2].strip()


def sdist(work: Path, out: Path) -> Path:
    """Build the source distribution from a copy, so that nothing is left in the checkout."""
    copy = work / "copy"
    shutil.copytree(REPOSITORY, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
    return built("sdist", copy, out)


def unpacked(archive: Path, folder: Path) -> Path:
    """Unpack a source distribution into a new folder, and return the only folder in it."""
    shutil.unpack_archive(archive, folder)
    (only,) = folder.iterdir()
    return only


def wheel(source: Path, work: Path, out: Path, machine: str = "") -> Path:
    """Build a wheel and give it its tag. ``machine``: another processor than this one's, built by a cross compiler."""
    made = built("wheel", source, work, cross(machine, work) if machine else {})
    with zipfile.ZipFile(made) as archive:
        (core,) = (name for name in archive.namelist() if name.endswith(".abi3.so"))
        needed = needs(Path(archive.extract(core, work / "core")))
    if needed.machine != (machine or platform.machine()):
        raise Failed(f"the native core is built for {needed.machine}")
    tagged = run([sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", tag(needed), str(made)], work)
    name = tagged.split()[-1]
    return Path(shutil.move(work / name, out / name))


def compiler(machine: str) -> str | None:
    """Return the path of the cross compiler for a processor; None if it is not installed."""
    return shutil.which(f"{CROSS[machine]}-gcc")


def headers(machine: str, work: Path) -> list[str]:
    """Return the options with which the cross compiler finds Python's headers. ``work``: a folder for one of them.

    Debian keeps the part of these headers that depends on the processor in a folder of its own, and has only this
    processor's. That header is used if all its sizes are those of the other processor. The compiler compares them.
    Raise Failed if they differ.
    """
    triple, include = CROSS[machine], Path(sysconfig.get_path("include"))
    own = include.parent / str(sysconfig.get_config_var("MULTIARCH")) / include.name / "pyconfig.h"
    place = work / "headers" / triple / include.name
    place.mkdir(parents=True, exist_ok=True)
    if own.is_file():
        shutil.copy(own, place / "pyconfig.h")
    check = ["#include <Python.h>", "#include <sys/types.h>", "#include <stdint.h>", "#include <wchar.h>"]
    for name in SAME:
        check.append(f'_Static_assert(SIZEOF_{name} == sizeof({_SIZED.get(name, name.lower())}), "{name}");')
    (work / "sizes.c").write_text("\n".join(check) + "\n")
    options = [f"-I{work / 'headers'}", f"-I{include}"]
    run([f"{triple}-gcc", *options, "-fsyntax-only", str(work / "sizes.c")], work)
    return options


def cross(machine: str, work: Path) -> dict[str, str]:
    """Return the variables with which setuptools builds for another processor."""
    gcc = f"{CROSS[machine]}-gcc"
    return {
        "CC": gcc,
        "LDSHARED": f"{gcc} -shared",
        "AR": f"{CROSS[machine]}-ar",
        "CFLAGS": " ".join(["-O2", "-fPIC", *headers(machine, work)]),
        "LDFLAGS": "",
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=REPOSITORY / "dist", help="the folder of the files (default: dist)")
    out: Path = parser.parse_args().out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    try:
        with tempfile.TemporaryDirectory(prefix="jitter-workshop-dist-") as scratch:
            work = Path(scratch)
            made.append(sdist(work, out))
            for machine in ("", *(name for name in CROSS if name != platform.machine())):
                if machine and compiler(machine) is None:
                    print(f"No wheel for {machine}: there is no {CROSS[machine]}-gcc here.", file=sys.stderr)
                    continue
                place = work / (machine or "own")
                source = unpacked(made[0], place / "source")
                made.append(wheel(source, place, out, machine))
    except Failed as error:
        print(f"dist: {error}", file=sys.stderr)
        return 2
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in made)
    (out / SUMS).write_text(sums)
    for file in made:
        print(f"{file}  {file.stat().st_size / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
