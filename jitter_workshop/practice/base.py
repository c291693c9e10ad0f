"""Make the disk image from which a saved machine starts. The image is an ext4 file system with the files that the
workshop opens at its start.

QEMU cannot save a machine in which a folder of the host is mounted. So a machine is saved before it mounts these
folders. It mounts them after each later start. Until they are mounted, the workshop in the machine reads its files from
this image. This is also faster, because each file of a mounted folder takes dozens of messages to the host.

To see which files are opened, this module runs the workshop once on this host. This run has a terminal of its own. The
image is used until one of the files that it contains changes on this host.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pty
import py_compile
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterable
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path

from jitter_workshop import __version__
from jitter_workshop.practice import images, kernels
from jitter_workshop.practice.kernels import NotHere

FOLDER = "base"
IMAGE, MANIFEST = "image", "manifest.json"
SAVED, ABOUT = "saved", "about.json"
"""The folder of saved machines, and the file that describes a saved machine. Each start touches this file."""
_UNUSED_S = 30 * 86400.0
_PATIENCE_S = 60.0
_STILL_S = 1.5
_PICTURE_BYTES = 4000
"""The workshop's first picture is complete once its terminal has received this many bytes, and then nothing for
_STILL_S seconds."""
_LEAST_FREE = 48 << 20
"""Free bytes in the image beyond its files, for the tables of the file system."""
LOADER = "/lib64/ld-linux-x86-64.so.2"

# A program that runs the workshop and tells which modules it has and which files it opened. An open of a module or a
# library by the interpreter itself is seen by where modules are from and by what is mapped. The two modules by which a
# host changes its own Python are none of the workshop's: Debian's sitecustomize is a link into /etc, which no machine
# sees.
_WATCHED = """
import atexit, json, os, sys
out = sys.argv.pop(1)
opened = set()
def seen(event, args):
    if event == "open" and isinstance(args[0], str) and args[0].startswith("/"):
        opened.add(args[0])
sys.addaudithook(seen)
def tell():
    files = set(opened)
    modules = []
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if spec is not None and name not in ("__main__", "sitecustomize", "usercustomize"):
            modules.append(name)
        for path in (getattr(module, "__file__", None), getattr(module, "__cached__", None)):
            if isinstance(path, str):
                files.add(path)
    with open("/proc/self/maps") as maps:
        files |= {line.split(None, 5)[5].rstrip() for line in maps if line.rstrip().count("/")}
    with open(out, "w") as file:
        json.dump({"modules": modules, "files": sorted(files)}, file)
atexit.register(tell)
try:  # Rich loads this table once a text needs it
    from rich._unicode_data import load
    load("auto")
except ImportError:
    pass
from jitter_workshop.cli import main
sys.exit(main([]))
"""

_VERSION = [__version__, hashlib.sha256(_WATCHED.encode()).hexdigest()[:16]]


@dataclass(frozen=True)
class Base:
    """Hold a finished base image.

    ``modules``: the Python modules that the machine's server imports, in the order of import. ``digest``: the digest of
    the list of files in the image.
    """

    image: Path
    modules: tuple[str, ...]
    digest: str


def find_base(cache: Path) -> Base | None:
    """Return the base image for this interpreter and this version of the program. Return None if there is no such
    image, or if one of its files has changed on this host."""
    folder = _folder(cache)
    try:
        text = (folder / MANIFEST).read_bytes()
        said = json.loads(text)
        if (
            said["of"] != _VERSION
            or not (folder / IMAGE).is_file()
            or any(file_stamp(path) != was for path, was in said["files"].items())
        ):
            return None
        os.utime(folder / MANIFEST)
        return Base(folder / IMAGE, tuple(said["modules"]), hashlib.sha256(text).hexdigest()[:16])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def make_base(cache: Path, work: Path) -> Base:
    """Make the base anew; scratch files go below ``work``. Raise NotHere if that fails."""
    try:
        with tempfile.TemporaryDirectory(dir=work) as scratch:
            return _make(cache, Path(scratch))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise NotHere(f"the workshop's files cannot be packed: {error}") from None


def _make(cache: Path, scratch: Path) -> Base:
    modules, paths = modules_of_first_screen(scratch)
    shares = images.shared_folders()
    tree = scratch / "tree"
    for inside in shares.values():
        (tree / inside.relative_to("/")).mkdir(parents=True, exist_ok=True)
    stamps: dict[str, list[int]] = {}
    for path in sorted(_with_links(paths)):
        real = os.path.realpath(path)
        if any(Path(real).is_relative_to(folder) for folder in shares) and not real.startswith(str(scratch)):
            stamps |= _copy(path, tree)
    _compile(stamps, tree)
    made = scratch / "made"
    made.mkdir()
    size = sum(file.lstat().st_size for file in tree.rglob("*")) + _LEAST_FREE
    with (made / IMAGE).open("wb") as file:
        file.truncate(size + size // 8)
    features = ["-b", "4096", "-O", "^has_journal,^resize_inode,^metadata_csum", "-m", "0", "-E", "root_owner=0:0"]
    command = [kernels.tool("mkfs.ext4"), "-q", "-F", *features, "-d", str(tree), str(made / IMAGE)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (made / MANIFEST).write_text(json.dumps({"of": _VERSION, "modules": modules, "files": stamps}))
    target = _folder(cache)
    target.parent.mkdir(parents=True, exist_ok=True)
    forget(cache)
    shutil.rmtree(target, ignore_errors=True)
    made.rename(target)
    found = find_base(cache)
    if found is None:
        raise NotHere("the workshop's files changed while they were packed", "try again")
    return found


def forget(cache: Path) -> None:
    """Remove base images and saved machines that were not used for a month."""
    for folder, used in ((FOLDER, MANIFEST), (SAVED, ABOUT)):
        for old in (cache / folder).glob("*/"):
            with contextlib.suppress(OSError):
                if time.time() - (old / used).stat().st_mtime > _UNUSED_S:
                    shutil.rmtree(old, ignore_errors=True)


def _folder(cache: Path) -> Path:
    name = "\0".join((sys.executable, str(images.PROJECT)))
    return cache / FOLDER / hashlib.sha256(name.encode()).hexdigest()[:16]


def file_stamp(path: str) -> list[int] | None:
    """Return a file's size in bytes and its modification time in ns. Return None if the file does not exist. Symbolic
    links are not followed. If the file is changed later, at least one of these two numbers changes."""
    try:
        has = os.lstat(path)
    except OSError:
        return None
    return [has.st_size, has.st_mtime_ns]


def modules_of_first_screen(scratch: Path) -> tuple[list[str], set[str]]:
    """Run the workshop in a new terminal until its first screen is complete. Return the names of the modules that it
    loaded, and the paths of the files that it opened."""
    out = scratch / "seen.json"
    places = {f"XDG_{name}_HOME": str(scratch / name.lower()) for name in ("CACHE", "STATE", "CONFIG")}
    master, slave = pty.openpty()
    try:
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
        child = subprocess.Popen(
            [sys.executable, "-c", _WATCHED, str(out)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            cwd=scratch,
            env={**os.environ, **places, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
        )
        try:
            _until_still(master, child)
            child.send_signal(signal.SIGTERM)
            _until_still(master, child, ended=True)
            child.wait(_PATIENCE_S)
        finally:
            child.kill()
            child.wait()
    finally:
        os.close(master)
        os.close(slave)
    said = json.loads(out.read_text())
    own = {os.__file__, sys.executable, f"{sys.prefix}/pyvenv.cfg", LOADER}
    own |= {str(file) for folder in map(Path, sys.path) if folder.is_dir() for file in folder.glob("*.pth")}
    return said["modules"], own | set(said["files"])


def _until_still(master: int, child: subprocess.Popen[bytes], ended: bool = False) -> None:
    """Read a terminal until the program has drawn its first screen. If ``ended`` is True, read until the program has
    ended. In both cases, stop after _PATIENCE_S seconds at the latest."""
    ends, seen = time.monotonic() + _PATIENCE_S, 0
    while time.monotonic() < ends and child.poll() is None:
        if select.select([master], [], [], 0.1 if ended else _STILL_S)[0]:
            seen += len(os.read(master, 65536))
        elif seen >= _PICTURE_BYTES and not ended:
            return


def _with_links(paths: Iterable[str]) -> set[str]:
    """Return those of ``paths`` that exist. If a path is a library, also return the symbolic links to this library in
    the library's folder. The loader finds a library by the name of such a link."""
    found = {path for path in paths if os.path.lexists(path)}
    reals = {os.path.realpath(path) for path in found}
    for folder in {Path(real).parent for real in reals if ".so" in real}:
        with os.scandir(folder) as entries:
            links = [entry.path for entry in entries if ".so" in entry.name and entry.is_symlink()]
        found |= {link for link in links if os.path.realpath(link) in reals}
    return found


def _copy(path: str, tree: Path) -> dict[str, list[int]]:
    """Copy a file into the tree, together with the symbolic links in its path. Return path → stamp (:func:`file_stamp`)
    of each copied file and link."""
    stamps: dict[str, list[int]] = {}
    at, parts = Path("/"), list(Path(path).parts[1:])
    while parts:
        at /= parts.pop(0)
        target = tree / at.relative_to("/")
        was = file_stamp(str(at))
        if was is None:
            return stamps
        if at.is_symlink():
            link = at.readlink()
            if not target.is_symlink():
                target.symlink_to(link)
            stamps[str(at)] = was
            parts = [*Path(os.path.normpath(at.parent / link)).parts[1:], *parts]
            at = Path("/")
        elif at.is_dir():
            target.mkdir(exist_ok=True)
        elif at.is_file() and os.access(at, os.R_OK):
            if not target.exists():
                shutil.copy2(at, target)
            stamps[str(at)] = was
    return stamps


def _compile(paths: Iterable[str], tree: Path) -> None:
    """Compile the Python files of ``paths`` that have no byte code in the tree yet. The guest cannot compile these
    files, because it mounts the tree read-only."""
    for path in paths:
        if path.endswith(".py"):
            source = tree / path.lstrip("/")
            code = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
            if not code.exists():
                with contextlib.suppress(OSError, py_compile.PyCompileError):
                    py_compile.compile(str(source), cfile=str(code), dfile=path, doraise=True)
