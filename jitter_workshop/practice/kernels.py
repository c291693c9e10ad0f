"""Get the kernels of the machines: Debian's own packages, unpacked once into a cache.

``find_kernel`` looks in the cache, and never downloads. ``fetch`` downloads the packages with ``apt-get download``,
which needs no root's rights. From these packages, ``fetch`` keeps the kernel, the kernel's configuration and the few
modules that the guest loads. The kernel is kept uncompressed, because it then boots twice as fast. For a kernel of
another suite or processor, apt gets a configuration of its own (``apt``).
"""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jitter_workshop import paths
from jitter_workshop.errors import HostError
from jitter_workshop.errors import reason as why
from jitter_workshop.model.text import MOST_LONG_NAMES
from jitter_workshop.practice import apt, room
from jitter_workshop.practice.shape import DEFAULT, SHAPES


@dataclass(frozen=True)
class KernelSource:
    """Hold the source of one type of kernel, called a flavour.

    ``package``: the Debian package that depends on the newest kernel of this flavour. ``suites``: the suites that have
    this package; if empty, the suites of this system.
    """

    package: str
    suites: tuple[str, ...] = ()
    architecture: str = ""


SOURCES = {
    "stock": KernelSource("linux-image-amd64"),
    "rt": KernelSource("linux-image-rt-amd64"),
    "arm64": KernelSource("linux-image-arm64", ("bookworm",), "arm64"),
    "newest": KernelSource("linux-image-amd64", ("trixie", "trixie-backports", "sid")),
}
# Wanted modules; what they depend on comes along, and a name that is built in or unknown is left out.
MODULES = [
    *("virtio_pci", "virtio_console", "9pnet_virtio", "9p"),
    *("acpi-cpufreq", "cpufreq_ondemand", "cpufreq_powersave", "cpufreq_conservative", "cpufreq_userspace"),
    *("virtio_blk", "ext4", "crc32c_generic", "virtio_net", "nvme", "msr"),
]

# Goes up when what is kept of a package changes, so that an older cache is fetched anew.
LAYOUT = "1"
SUMS = "sums"
"""The file with the checksums of the kept files."""
_SCRATCH = "fetch-"
_OLD_S = 3600.0

EMULATORS = {"aarch64": ("qemu-system-aarch64", "qemu-system-arm")}
"""Processor → its emulator, and the emulator's package."""

COMPILERS = {"aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"}

TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "iasl": "acpica-tools",
    "busybox": "busybox-static",
    "mkfs.ext4": "e2fsprogs",
}


class NotHere(HostError):
    """Report in one sentence why this host cannot run a machine, with advice."""


@dataclass(frozen=True)
class UnpackedKernel:
    """Hold one unpacked kernel. ``vmlinux``: the file for QEMU's ``-kernel``. ``modules``: the modules in the order in
    which they load."""

    flavour: str
    release: str
    vmlinux: Path
    config: Path
    modules: tuple[Path, ...]

    @property
    def folder(self) -> Path:
        return self.vmlinux.parent


def kernel_cache_dir() -> Path:
    """Return the folder in which kernels are kept."""
    return paths.cache_dir() / "practice"


def tool(name: str) -> str:
    """Return a program's path. Search the sbin folders, too, because an ordinary user's PATH may lack them. Raise
    NotHere if the program is not installed."""
    found = shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin:/sbin")
    if found is None:
        package = (TOOLS | dict(EMULATORS.values()) | COMPILERS).get(name, name)
        raise NotHere(f"{name} is not installed (Debian: apt install {package})")
    return found


def other_processor() -> str | None:
    """Return the reason why this host's processor cannot run a machine; None if it can. Machines run this host's
    programs, so the host must be x86-64."""
    has = platform.machine()
    return None if has == "x86_64" else f"the x86-64 guest runs this host's programs, but this host is {has}"


def missing_tools() -> list[str]:
    """Return the names of the programs that a machine needs and that are not installed (keys of TOOLS)."""
    folders = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return [name for name in TOOLS if shutil.which(name, path=folders) is None]


def check_tools() -> None:
    """Raise NotHere if a program that a machine needs is not installed, or if this host's processor is not x86-64."""
    if (refusal := other_processor()) is not None:
        raise NotHere(refusal)
    if missing := missing_tools():
        packages = " ".join(TOOLS[name] for name in missing)
        raise NotHere(f"{', '.join(missing)} not installed (Debian: apt install {packages})")


def how_to_fetch(flavour: str) -> str:
    """Return the advice that names the command for getting this flavour of kernel."""
    names = [shape.name for shape in SHAPES.values() if shape.kernel == flavour]
    option = f" --shape {names[0]}" if names and DEFAULT not in names else ""
    return f"connect this host to a network and download a kernel, once: jitter-workshop practice fetch{option}"


def find_kernel(flavour: str, cache: Path) -> UnpackedKernel:
    """Return the kernel of this flavour from the cache. Raise NotHere if the cache has no such kernel."""
    folder = cache / f"{flavour}-{LAYOUT}"
    try:
        release = (folder / "release").read_text().strip()
        names = (folder / "order").read_text().split()
    except OSError:
        raise NotHere(f"there is no {flavour} kernel in {cache}", how_to_fetch(flavour)) from None
    modules = tuple(folder / "modules" / f"{name}.ko" for name in names)
    return UnpackedKernel(flavour, release, folder / "vmlinux", folder / "config", modules)


def fetch(flavour: str, cache: Path) -> UnpackedKernel:
    """Download and unpack the newest kernel of a flavour, and return it. Raise NotHere, with apt's reason, if apt
    cannot download the kernel. Raise HostError if the disk has too little space."""
    for name in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(name) is None:
            raise NotHere(f"the download of a Debian kernel needs {name}, which is not installed")
    source = SOURCES[flavour]
    with _scratch(cache) as work:
        room.check_space(cache, room.FETCH_MIB, "the download of a kernel")
        try:
            repository = apt.Apt(work / "apt", source.suites, source.architecture)
            for package in _newest(repository, source.package):
                repository.download(package, work)
        except apt.AptFailed as reason:
            raise NotHere(str(reason)) from None
        unpacked = work / "unpacked"
        _unpack(sorted(work.glob("*.deb")), unpacked)
        _replace(unpacked, cache / f"{flavour}-{LAYOUT}")
    return find_kernel(flavour, cache)


@contextlib.contextmanager
def _scratch(cache: Path) -> Iterator[Path]:
    """Yield a temporary folder in the cache, and remove the folder at the end. Also remove temporary folders that are
    more than an hour old: killed processes left them behind. Raise HostError if the cache cannot be
    written."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        for left in cache.glob(f"{_SCRATCH}*"):
            if time.time() - left.stat().st_mtime > _OLD_S:
                shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=cache) as scratch:
            yield Path(scratch)
    except OSError as error:
        raise HostError(f"{cache} cannot be written: {why(error)}", room.MAKE_ROOM) from error


def _newest(repository: apt.Apt, metapackage: str) -> list[str]:
    """Return NAME=VERSION of each Debian package that makes up the newest kernel. The first is the image package on
    which ``metapackage`` depends. From Linux 7.0 on, the modules and the configuration are in separate packages, which
    follow in the list. Raise NotHere if ``metapackage`` depends on no kernel."""
    version = repository.newest(metapackage)
    image = next((n for n in repository.depends(metapackage, version) if n.startswith("linux-image-")), None)
    if image is None:
        raise NotHere(f"{metapackage} {version} depends on no kernel (only Debian is known to work)")
    parts = ("linux-base-", "linux-binary-", "linux-modules-")
    version = repository.newest(image)
    rest = [name for name in repository.depends(image, version) if name.startswith(parts)]
    return [f"{name}={version}" for name in (image, *rest)]


def _unpack(packages: list[Path], target: Path) -> None:
    """Unpack the packages, and keep only the kernel, its configuration and the wanted modules."""
    (target / "modules").mkdir(parents=True)
    modules: dict[str, bytes] = {}
    for package in packages:
        modules |= _unpack_one(package, target)
    if not (target / "vmlinux").exists():
        raise NotHere(f"{', '.join(one.name for one in packages)} hold no kernel that can be unpacked")
    _keep_modules(modules, target)
    write_sums(target, packages)


def _keep_modules(modules: dict[str, bytes], target: Path) -> None:
    order = load_order(MODULES, modules)
    for name in order:
        (target / "modules" / f"{name}.ko").write_bytes(unpacked_module(modules[name]))
    (target / "order").write_text("\n".join(order) + "\n")


def add_kernel(image: Path, folder: Path, flavour: str, cache: Path) -> UnpackedKernel:
    """Add a kernel of the user's own to the cache, and return it. ``image``: a vmlinuz or vmlinux. ``folder``: the
    folder of the kernel's modules. Its name is the kernel's release, as in /lib/modules. Raise NotHere if a file cannot
    be read, or if the folder has no module."""
    with _scratch(cache) as scratch:
        work = scratch / "unpacked"
        (work / "modules").mkdir(parents=True)
        try:
            (work / "vmlinux").write_bytes(vmlinux(image.read_bytes()))
            found = [file for end in ("ko", "ko.xz", "ko.zst") for file in folder.rglob(f"*.{end}")]
            modules = {file.name.split(".ko")[0]: file.read_bytes() for file in found}
            configs = [
                place for place in (folder / "config", image.with_name(f"config-{folder.name}")) if place.is_file()
            ]
            (work / "config").write_bytes(configs[0].read_bytes() if configs else b"")
        except (OSError, IndexError, lzma.LZMAError, zlib.error, subprocess.CalledProcessError) as error:
            raise NotHere(f"this kernel cannot be used: {error}") from None
        if not modules:
            raise NotHere(f"there is no module below {folder}", "name the kernel's own folder below /lib/modules")
        (work / "release").write_text(folder.resolve().name + "\n")
        _keep_modules(modules, work)
        write_sums(work, [image])
        _replace(work, cache / f"{flavour}-{LAYOUT}")
    return find_kernel(flavour, cache)


def _replace(made: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    made.rename(target)


def write_sums(folder: Path, sources: list[Path]) -> None:
    """Write the SHA-256 of each file in ``folder`` to the file ``sums`` in this folder. The format is that of
    sha256sum(1). The file also has the checksums of ``sources``, as comments."""
    lines = [f"# {_sum(source)}  {source.name}" for source in sources]
    kept = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
    lines += [f"{_sum(path)}  {path.relative_to(folder)}" for path in kept]
    (folder / SUMS).write_text("\n".join(lines) + "\n")


def verify_kernel(kernel: UnpackedKernel) -> None:
    """Compare a kernel's files with their checksums. Raise NotHere if a file is damaged or missing."""
    try:
        lines = (kernel.folder / SUMS).read_text("utf-8", "replace").splitlines()
        pairs = [line.partition("  ") for line in lines if line and not line.startswith("#")]
        wrong = [name for digest, _, name in pairs if _sum(kernel.folder / name) != digest]
    except OSError as error:
        advice = how_to_fetch(kernel.flavour)
        raise NotHere(f"the {kernel.flavour} kernel in {kernel.folder} is incomplete: {error}", advice) from None
    if wrong or "vmlinux" not in [name for _, _, name in pairs]:
        named = ", ".join(wrong[:MOST_LONG_NAMES]) or SUMS
        advice = how_to_fetch(kernel.flavour)
        raise NotHere(f"the {kernel.flavour} kernel in {kernel.folder} is damaged ({named})", advice)


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unpack_one(package: Path, target: Path) -> dict[str, bytes]:
    """Unpack one package, and return its modules as name → content. If the package has a kernel or a configuration,
    write them to ``target``. Raise NotHere if the package cannot be unpacked."""
    modules: dict[str, bytes] = {}
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as unpacker:  # noqa: SIM117 (the archive reads its output)
        with tarfile.open(fileobj=unpacker.stdout, mode="r|") as archive:
            for member in archive:
                folder, _, name = member.name.rpartition("/")
                source = archive.extractfile(member) if member.isfile() else None
                if source is None:
                    continue
                # Until Linux 6 /boot has them, later the folder of the modules.
                inside = folder.rpartition("/modules/")[2]
                if name.startswith("vmlinuz") and folder.endswith(("boot", f"modules/{inside}")):
                    (target / "release").write_text((name.partition("-")[2] or inside) + "\n")
                    (target / "vmlinux").write_bytes(vmlinux(source.read()))
                elif name == "config" or (folder.endswith("boot") and name.startswith("config-")):
                    (target / "config").write_bytes(source.read())
                elif "/modules/" in folder and name.endswith((".ko", ".ko.xz", ".ko.zst")):
                    modules[name.split(".ko")[0]] = source.read()
    if unpacker.returncode:
        raise NotHere(f"{package.name} cannot be unpacked")
    return modules


def unpacked_module(data: bytes) -> bytes:
    """Return a kernel module without its compression (xz or zstd). A module without compression is returned
    unchanged."""
    if data.startswith(b"\xfd7zXZ\0"):
        return lzma.decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        return subprocess.run([tool("zstd"), "-dcq"], input=data, capture_output=True, check=True).stdout
    return data


def load_order(wanted: list[str], modules: dict[str, bytes]) -> list[str]:
    """Return the wanted modules and their dependencies, in an order in which they can be loaded. Unknown names are left
    out."""
    # A file is named with - or _, its dependants always say _.
    files = {name.replace("-", "_"): name for name in modules}
    order: list[str] = []

    def add(name: str) -> None:
        file = files.get(name.replace("-", "_"))
        if file is None or file in order:
            return
        for dependency in dependencies(unpacked_module(modules[file])):
            add(dependency)
        order.append(file)

    for name in wanted:
        add(name)
    return order


def dependencies(module: bytes) -> Iterator[str]:
    """Yield the names of the modules that have to be loaded before ``module``, from the fields ``depends=`` and
    ``softdep=pre:`` of its .modinfo section."""
    for field in module.split(b"\0"):
        if field.startswith(b"depends="):
            yield from (name for name in field.decode("ascii").removeprefix("depends=").split(",") if name)
        elif field.startswith(b"softdep=pre:"):
            yield from field.decode("ascii").removeprefix("softdep=pre:").split()


def vmlinux(bzimage: bytes) -> bytes:
    """Return the uncompressed kernel inside a bzImage (Documentation/arch/x86/boot.rst: setup_sects, payload_offset).
    An ELF file and an Image of arm64 (Documentation/arch/arm64/booting.rst) are returned as they are. Raise NotHere for
    an unknown compression."""
    if bzimage[0x38:0x3C] == b"ARM\x64" or bzimage.startswith(b"\x7fELF"):
        return bzimage
    start = (bzimage[0x1F1] + 1) * 512 + int.from_bytes(bzimage[0x248:0x24C], "little")
    payload = bzimage[start : start + int.from_bytes(bzimage[0x24C:0x250], "little")]
    # The build appends the uncompressed size, which a decompressor object leaves in unused_data.
    if payload.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(wbits=31).decompress(payload)
    if payload.startswith(b"\x28\xb5\x2f\xfd"):
        return subprocess.run([tool("zstd"), "-dcq"], input=payload[:-4], capture_output=True, check=True).stdout
    raise NotHere("the kernel's payload is packed in an unknown way")
