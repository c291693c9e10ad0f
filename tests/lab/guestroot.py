"""The programs of a guest with another processor than this host's: Python, what it needs, and busybox for the rest.

``fetch`` unpacks Debian's packages of that architecture into the cache; nothing of them is installed. The other files
that measuring needs are built here by a cross compiler: the one compiled module that Debian does not have, when the
tree is fetched, and the project's native core, whenever its sources have changed (``native``). ``find`` looks, and
never downloads.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from jitter_workshop.practice import apt, kernels
from jitter_workshop.practice.images import Programs

SUITE = "bookworm"
WANTED = ("python3.11", "busybox-static", "python3-psutil", "python3-cffi-backend")
PYTHON = "/usr/bin/python3.11"
# These packages are needed only for an installation, which does not happen here.
LEFT_OUT = ("perl", "libperl", "mime-support", "mailcap", "media-types", "dpkg", "install-info", "tar")
LAYOUT = "2"
COMPILER = "aarch64-linux-gnu-gcc"
NATIVE = Path(__file__).resolve().parents[2] / "native"
DIST = NATIVE.parent / "scripts" / "dist.py"
MODULES = Path("usr/lib/python3/dist-packages")
VERSION = (3, 11)
"""Of the guest's Python: what is compiled here is for the headers of this one."""


@dataclass(frozen=True)
class GuestRoot:
    """An unpacked tree."""

    folder: Path

    def programs(self, cache: Path) -> Programs:
        """Return what the guest runs, with the native core where it can be built."""
        usr = self.folder / "usr"
        return Programs(usr, usr / "bin" / "busybox", PYTHON, b"" if cannot_measure(cache) else native(cache))


def cannot_measure(cache: Path) -> str:
    """Return why nothing can be measured in such a guest, "" where it can."""
    if not list((find("arm64", cache).folder / MODULES).glob("pyhdrh.*")):
        return f"no {COMPILER}, or no Python {'.'.join(map(str, VERSION))}, when its programs were fetched"
    try:
        kernels.tool(COMPILER)
    except kernels.NotHere as reason:
        return str(reason)
    return ""


def native(cache: Path) -> bytes:
    """The project's native core for the guest, built where its sources have changed. Raise NotHere if that fails."""
    sources = sorted(path for path in NATIVE.iterdir() if path.suffix in (".c", ".h", ".py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    built = cache / f"arm64-native-{digest}.so"
    if not built.exists():
        with tempfile.TemporaryDirectory(prefix="native-", dir=cache) as scratch:
            glue = Path(scratch) / "glue.c"
            loaded(NATIVE / "build_native.py").ffibuilder.emit_c_code(str(glue))
            files = [glue, *(path for path in sources if path.suffix == ".c" and not path.name.startswith("_"))]
            options = ["-std=c11", "-D_GNU_SOURCE", "-DPy_LIMITED_API=0x030B0000", f"-I{NATIVE}", "-pthread"]
            _compile(files, Path(scratch) / "native.so", options)
            (Path(scratch) / "native.so").replace(built)
    return built.read_bytes()


def loaded(file: Path) -> Any:
    """A module of the project that is no part of a package, by its file."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module  # dataclasses look for the module of a class
    spec.loader.exec_module(module)
    return module


def _compile(sources: list[Path], target: Path, options: list[str]) -> None:
    compiler = kernels.tool(COMPILER)
    include = loaded(DIST).headers("aarch64", target.parent)
    command = [compiler, "-O2", "-shared", "-fPIC", *include, *options, *map(str, sources)]
    done = subprocess.run([*command, "-o", str(target)], capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise kernels.NotHere(f"{target.name} cannot be built for the guest: {done.stderr[-500:]}")


def _histograms(work: Path, modules: Path) -> None:
    """The histogram library: its Python files are this environment's, its compiled part is built from its sources."""
    import hdrh

    assert hdrh.__file__ is not None
    wanted = f"hdrhistogram=={metadata.version('hdrhistogram')}"
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", wanted]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False, timeout=300)
    archives = list(work.glob("hdrhistogram-*.tar.gz"))
    if done.returncode or not archives:
        raise kernels.NotHere(f"the sources of {wanted} cannot be had: {done.stderr[-300:]}")
    shutil.unpack_archive(archives[0], work / "hdrhistogram")
    name = "pyhdrh.cpython-311-aarch64-linux-gnu.so"
    _compile(sorted((work / "hdrhistogram").glob("*/src/*.c")), work / name, [])
    shutil.move(work / name, modules / name)
    ignored = shutil.ignore_patterns("__pycache__", "test*")
    shutil.copytree(Path(hdrh.__file__).parent, modules / "hdrh", ignore=ignored)


def find(architecture: str, cache: Path) -> GuestRoot:
    """The tree from the cache; raises ``NotHere`` when it was never fetched."""
    folder = cache / f"{architecture}-root-{LAYOUT}"
    if not (folder / "complete").exists():
        raise kernels.NotHere(f"no programs for {architecture} in {cache} (python -m tests.lab.fetch --all gets them)")
    return GuestRoot(folder)


def fetch(architecture: str, cache: Path) -> GuestRoot:
    """Download and unpack; raises ``NotHere`` with the reason when it cannot."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=cache) as scratch:
        work, tree = Path(scratch), Path(scratch) / "tree"
        tree.mkdir()
        try:
            repository = apt.Apt(work / "apt", (SUITE,), architecture)
            for name in repository.needed(*WANTED):
                if not name.startswith(LEFT_OUT):
                    repository.download(name, work)
        except apt.AptFailed as reason:
            raise kernels.NotHere(str(reason)) from None
        for package in sorted(work.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", str(package), str(tree)], check=True, timeout=120)
        _merge(tree)
        if shutil.which(COMPILER) and sys.version_info[:2] == VERSION:
            _histograms(work, tree / MODULES)
        _applets(tree / "usr" / "bin")
        (tree / "complete").touch()
        target = cache / f"{architecture}-root-{LAYOUT}"
        shutil.rmtree(target, ignore_errors=True)
        tree.rename(target)
    return find(architecture, cache)


def _merge(tree: Path) -> None:
    """Move what lies beside /usr into it: the guest has only links there."""
    for name in ("bin", "sbin", "lib"):
        if (tree / name).is_dir() and not (tree / name).is_symlink():
            shutil.copytree(tree / name, tree / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(tree / name)


def _applets(folder: Path) -> None:
    """Busybox stands in for all that is not unpacked. Its list is that of this host's own busybox."""
    listed = subprocess.run([kernels.tool("busybox"), "--list"], capture_output=True, text=True, check=True, timeout=30)
    for name in listed.stdout.split():
        if not (folder / name).exists():
            (folder / name).symlink_to("busybox")
