"""The tool in a folder of root's own: what is running now, copied with all that it needs. No network is asked.

Students run it, and root runs its agent from it: so all of it, and the interpreter, has to be root's alone.
"""

from __future__ import annotations

import compileall
import os
import re
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from jitter_workshop.agent import ownership
from jitter_workshop.errors import HostError
from jitter_workshop.model.text import clean
from jitter_workshop.paths import INSTALL_DIR

NAME = "jitter-workshop"
LAUNCHER = "/usr/local/bin/jitter-workshop"
PARTS = ("jitter_workshop", "jitter_workshop.assets", "jitter_workshop.lessons")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def interpreter() -> str:
    """The interpreter that a class host runs: no virtual environment's, whose folder may be its maker's."""
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


def launcher_text(lib: str, python: str) -> str:
    """A program of a few lines that starts the tool from ``lib``, whatever the caller's surroundings say."""
    return (
        f"#!{python} -IB\n"
        "import sys\n"
        f"sys.path.insert(0, {lib!r})\n"
        "from jitter_workshop.cli import main\n"
        "sys.exit(main())\n"
    )


def needed(name: str = NAME) -> tuple[Distribution, ...]:
    """The distributions that the tool is made of, itself first. Raises HostError where one is missing."""
    found: dict[str, Distribution] = {}
    todo = [name]
    while todo:
        asked = todo.pop(0)
        key = re.sub(r"[-_.]+", "-", asked).lower()
        if key in found:
            continue
        try:
            found[key] = distribution(asked)
        except PackageNotFoundError:
            if key == NAME:
                raise HostError(
                    f"{NAME} is not installed here, only its source is", "install it, then try again"
                ) from None
            continue  # for another system or another Python: what is needed here is here, or nothing would run
        for wanted in found[key].requires or ():
            if "extra ==" in wanted:
                continue
            match = _REQUIREMENT.match(wanted)
            if match is not None:
                todo.append(match.group())
    return tuple(found.values())


def install(into: str = INSTALL_DIR) -> None:
    """Copy everything to ``into``, in the place of what is there: a new folder first, then one rename. Raises HostError,
    OSError."""
    new, old = Path(f"{into}.new"), Path(f"{into}.old")
    for leftover in (new, old):
        shutil.rmtree(leftover, ignore_errors=True)
    lib = new / "lib"
    lib.mkdir(parents=True, mode=0o755)
    for one in needed():
        for source, relative in distribution_files(one):
            _copy(source, lib / relative)
    for part in PARTS:
        folder = Path(next(iter(import_module(part).__path__)))
        for source in sorted(folder.rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                _copy(source, lib / part.replace(".", "/") / source.relative_to(folder))
    _all_to_root(new)
    compileall.compile_dir(lib, quiet=2, stripdir=str(lib), prependdir=f"{into}/lib")
    _all_to_root(new)
    if Path(into).exists():
        Path(into).rename(old)
    new.rename(into)
    shutil.rmtree(old, ignore_errors=True)


def problem(into: str = INSTALL_DIR) -> str:
    """What is wrong with the installed tool, "" for nothing."""
    entry = Path(into) / "lib" / "jitter_workshop" / "agent" / "__main__.py"
    if not entry.is_file():
        return f"{into} does not hold the tool"
    foreign = ownership.first_foreign([interpreter(), *_tree(Path(into))])
    if foreign:
        return foreign
    try:
        mine = distribution(NAME).version
    except PackageNotFoundError:
        mine = ""
    theirs = next(iter((Path(into) / "lib").glob("jitter_workshop-*.dist-info")), None)
    version = theirs.name.removeprefix("jitter_workshop-").removesuffix(".dist-info") if theirs is not None else ""
    return f"{into} holds version {clean(version, 30)}, this is {mine}" if mine and version != mine else ""


def distribution_files(one: Distribution) -> Iterator[tuple[Path, Path]]:
    """A distribution's files and where they belong below the library; scripts, and what lies elsewhere, left out."""
    for file in one.files or ():
        relative = Path(str(file))
        if ".." in relative.parts or relative.is_absolute() or relative.suffix in (".pth", ".pyc"):
            continue
        source = Path(str(one.locate_file(file)))
        if source.is_file():
            yield source, relative


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if os.access(source, os.X_OK) and target.suffix == ".so" else 0o644)


def _tree(folder: Path) -> Iterator[str]:
    yield str(folder)
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield f"{path}/{name}"


def _all_to_root(folder: Path) -> None:
    for path in _tree(folder):
        if os.geteuid() == 0:
            os.chown(path, 0, 0, follow_symlinks=False)
        if os.path.isdir(path):  # noqa: PTH112
            os.chmod(path, 0o755)  # noqa: PTH101
