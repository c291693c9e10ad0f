"""Copy the running tool with all that it needs into a folder that belongs to root, without the network.

Students run the tool from there, and root runs its agent from there. So the interpreter and every file of the folder
must belong to root and be writable by root alone. A list of checksums for ``sha256sum -c`` is written, so that a
damaged file is found and named."""

from __future__ import annotations

import compileall
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distributions
from pathlib import Path

import jitter_workshop
from jitter_workshop.agent import ownership
from jitter_workshop.agent.transport import own_interpreter
from jitter_workshop.errors import HostError
from jitter_workshop.model.text import ID, PATH, REASON, clean
from jitter_workshop.paths import INSTALL_DIR

NAME = "jitter-workshop"
LAUNCHER = "/usr/local/bin/jitter-workshop"
PARTS = ("jitter_workshop", "jitter_workshop.assets", "jitter_workshop.lessons")
MANIFEST = "SHA256SUMS"
EXTRA = "serve"
"""The name of the tool's optional part. It is copied only if it is installed."""
HOMES = ("/home/", "/root/", "/run/user/")
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_NOT_INSTALLED = ("INSTALLER", "REQUESTED", "direct_url.json")
"""Files in which pip notes how it installed a distribution. For a checkout they contain the folder's path."""


# The interpreter ------------------------------------------------------------------------------------------------------


def interpreter() -> str:
    """Return the path of the Python interpreter that a class host uses.

    If the running interpreter is fit (see :func:`why_python_unfit`), return its path outside the virtual environment.
    Otherwise return the system's interpreter of the same version. Raise HostError if no interpreter is fit.
    """
    mine = own_interpreter()
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    first = ""
    for path in (mine, f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        why = why_python_unfit(path)
        if not why:
            return os.path.realpath(path)
        first = first or why
    raise HostError(
        f"no Python {version} belongs to root and can be run by all users, as a class host needs: {first}",
        f"install python{version} from the distribution",
    )


def why_python_unfit(path: str) -> str:
    """Return the reason why a class host cannot use an interpreter; "" if it can.

    Only root may write a fit interpreter, all users may run it, and it is outside home folders. If it is not the
    running interpreter, it must be able to replace the running one.
    """
    real = os.path.realpath(path)
    if real.startswith(HOMES):
        return f"{clean(real, PATH)} lies in a home folder"
    foreign = ownership.first_foreign([real])
    if foreign:
        return foreign
    for one in (real, *map(str, Path(real).parents)):
        if not os.stat(one).st_mode & stat.S_IXOTH:  # noqa: PTH116
            return f"{clean(one, PATH)} is not open to all users"
    if real == own_interpreter():
        return ""
    return _of_another_kind(real)


def _of_another_kind(path: str) -> str:
    """Return the reason why the interpreter ``path`` cannot replace the running one, "" if it can. Both interpreters
    must have the same version, because the tool has compiled modules. The interpreter ``path`` must also have
    ``sqlite3`` and ``zlib``, which a distribution may leave out.
    """
    asked = "import sqlite3, sys, zlib; print(sys.implementation.cache_tag)"
    try:
        done = subprocess.run(
            (path, "-I", "-S", "-c", asked),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            env={},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{clean(path, PATH)} cannot be run: {clean(error, REASON)}"
    if done.stdout.strip() != sys.implementation.cache_tag:
        last = (done.stderr.strip().splitlines() or ["this Python and the running Python have different versions"])[-1]
        return f"{clean(path, PATH)}: {clean(last, REASON)}"
    return ""


def launcher_text(lib: str, python: str) -> str:
    """Return the text of a short program that starts the tool from ``lib`` and ignores the caller's environment."""
    return (
        f"#!{python} -IB\n"
        "import sys\n"
        f"sys.path.insert(0, {lib!r})\n"
        "from jitter_workshop.cli import main\n"
        "sys.exit(main())\n"
    )


# The things to copy ---------------------------------------------------------------------------------------------------


def needed(name: str = NAME, extra: str = EXTRA) -> tuple[Distribution, ...]:
    """Return the installed distribution of this tool, followed by all distributions that it needs. Raise HostError if
    the tool is not installed."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    todo = [(_normal(name), ""), (_normal(name), extra)]
    while todo:
        asked = todo.pop(0)
        if asked in seen:
            continue
        seen.add(asked)
        key, part = asked
        try:
            one = found.setdefault(key, _distribution(key))
        except PackageNotFoundError:
            if key == _normal(name):
                raise HostError(
                    f"{name} is not installed here; only its source was found", "install it, then try again"
                ) from None
            continue  # needed only on another system or Python: else this process would not run without it
        for wanted in one.requires or ():
            condition = _EXTRA.search(wanted)
            match = _REQUIREMENT.match(wanted)
            if match is not None and (condition.group(1) if condition is not None else "") == part:
                parts = (word.strip() for word in (match.group(2) or "").split(","))
                todo += [(_normal(match.group(1)), word) for word in ("", *filter(None, parts))]
    return tuple(found.values())


def _distribution(name: str) -> Distribution:
    """Return the installed distribution ``name``. Ignore an egg-info folder beside the source, because it has no list
    of installed files. Raise PackageNotFoundError if ``name`` is not installed."""
    for one in distributions(name=name):
        if one.read_text("RECORD") is not None:
            return one
    raise PackageNotFoundError(name)


def files_of(one: Distribution) -> dict[str, Path]:
    """Return the files of a distribution: path relative to ``site-packages`` → path of the file on this machine.

    Leave out scripts, byte code (``.pyc``) and all files outside ``site-packages``. For this tool, return the files of
    the running package, because an editable install does not list its files.
    """
    ours = _normal(one.metadata["Name"]) == NAME
    found: dict[str, Path] = {}
    for file in one.files or ():
        relative = Path(str(file))
        if ".." in relative.parts or relative.is_absolute() or relative.suffix in (".pth", ".pyc"):
            continue
        if ours and not relative.parts[0].endswith(".dist-info"):
            continue
        source = Path(str(one.locate_file(file)))
        if source.is_file() and not (".dist-info" in relative.parts[0] and relative.name in _NOT_INSTALLED):
            found[relative.as_posix()] = source
    for part in PARTS if ours else ():
        folder = Path(next(iter(import_module(part).__path__)))
        for source in sorted(folder.rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts and source.suffix != ".pyc":
                found[f"{part.replace('.', '/')}/{source.relative_to(folder).as_posix()}"] = source
    return found


def _files() -> dict[str, Path]:
    return {name: source for one in needed() for name, source in files_of(one).items()}


def _manifest(files: dict[str, Path]) -> str:
    return "".join(f"{_digest(source)}  lib/{name}\n" for name, source in sorted(files.items()))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


# Copying, and checking the copy ---------------------------------------------------------------------------------------


def install(into: str = INSTALL_DIR) -> None:
    """Copy the tool to the folder ``into``, in place of an earlier copy. The copy is made in another folder. This
    folder gets the name ``into`` when the copy is complete. Raise HostError for a damaged source, OSError if a file
    cannot be copied.
    """
    if runs_from(into) and (why := _damage(Path(into))):
        raise HostError(
            f"this program runs from a damaged copy: {why}",
            "run 'class init' from the class's archive (install.py) or from the tool's source",
        )
    files = _files()
    new, old = Path(f"{into}.new"), Path(f"{into}.old")
    for leftover in (new, old):
        shutil.rmtree(leftover, ignore_errors=True)
    lib = new / "lib"
    lib.mkdir(parents=True)
    for name, source in files.items():
        (lib / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, lib / name)
    parts = sorted({name.partition("/")[0] for name in files})
    well = [part for part in parts if _compile(lib, part, f"{into}/lib")]
    if "jitter_workshop" not in well:
        raise HostError("the tool's own source does not compile: a file is damaged, or it changed during the copy")
    (new / MANIFEST).write_text(_manifest({name: lib / name for name in files}))
    _all_to_root(new)
    os.sync()  # a power cut after the rename must not find empty files
    if Path(into).exists():
        Path(into).rename(old)
    new.rename(into)
    shutil.rmtree(old, ignore_errors=True)


def uninstall(into: str = INSTALL_DIR) -> None:
    """Remove the installed tool, and the folders that an interrupted ``install`` left."""
    for folder in (into, f"{into}.new", f"{into}.old"):
        if os.path.lexists(folder):
            shutil.rmtree(folder)


def problem(into: str = INSTALL_DIR) -> str:
    """Return the first problem of the installed tool in words, "" if there is none. Raise HostError if the running tool
    is not an installed distribution."""
    if not (Path(into) / "lib" / "jitter_workshop" / "agent" / "__main__.py").is_file():
        return f"{into} does not hold the tool"
    foreign = ownership.first_foreign(_tree(Path(into)))
    if foreign:
        return foreign
    if damage := _damage(Path(into)):
        return damage
    if runs_from(into):
        return ""
    mine, theirs = _distribution(NAME).version, _version(Path(into))
    if mine != theirs:
        return f"{into} holds version {theirs}, but this is version {mine}"
    same = (Path(into) / MANIFEST).read_text() == _manifest(_files())
    return "" if same else f"{into} holds another build of version {mine}"


def runs_from(into: str = INSTALL_DIR) -> bool:
    """Return True if this process runs the tool that is installed in ``into``."""
    return Path(next(iter(jitter_workshop.__path__))).resolve().is_relative_to(Path(into).resolve())


def _damage(folder: Path) -> str:
    """Return the first damage of the installed tool in words, or "" if there is none. A file is damaged if it is
    missing, differs from its checksum, or cannot be read by all users."""
    try:
        lines = (folder / MANIFEST).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return f"{folder}/{MANIFEST} is missing"
    for line in lines:
        digest, _, name = line.partition("  ")
        path = folder / name
        if not path.is_file():
            return f"{clean(path, PATH)} is missing"
        if _digest(path) != digest:
            return f"{clean(path, PATH)} has changed since it was installed"
    for place in _tree(folder):
        mode = os.lstat(place).st_mode
        wanted = 0o005 if stat.S_ISDIR(mode) else 0o004
        if mode & wanted != wanted:
            return f"{clean(place, PATH)} cannot be read by all users"
    return ""


def _version(folder: Path) -> str:
    found = next(iter((folder / "lib").glob("jitter_workshop-*.dist-info")), None)
    name = found.name if found is not None else ""
    return clean(name.removeprefix("jitter_workshop-").removesuffix(".dist-info"), ID) or "none"


def _compile(lib: Path, part: str, called: str) -> bool:
    """Compile a folder or a module of ``lib`` to byte code. Return True if this succeeds.

    ``part``: the name of the folder or module in ``lib``. ``called``: the path that ``lib`` will have after the
    installation, as tracebacks show it.
    """
    place = str(lib / part)
    if (lib / part).is_dir():
        return bool(compileall.compile_dir(place, quiet=2, stripdir=str(lib), prependdir=called))
    return bool(compileall.compile_file(place, quiet=2, stripdir=str(lib), prependdir=called))


def _tree(folder: Path) -> Iterator[str]:
    yield str(folder)
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield f"{path}/{name}"


def _all_to_root(folder: Path) -> None:
    """Make root the owner of all files in ``folder``, and set their modes."""
    for path in _tree(folder):
        if os.geteuid() == 0:
            os.chown(path, 0, 0, follow_symlinks=False)
        program = os.path.isdir(path) or ".so" in Path(path).suffixes  # noqa: PTH112
        os.chmod(path, 0o755 if program else 0o644)  # noqa: PTH101
