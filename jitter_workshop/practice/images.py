"""Make the files that a machine boots from: the initrd with its users and files, the ACPI table, and the data disk."""

from __future__ import annotations

import hashlib
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jitter_workshop.paths import assets
from jitter_workshop.practice import acpi, kernels
from jitter_workshop.practice.shape import Hardware

PROJECT = Path(__file__).resolve().parents[2]
"""The folder that contains this package: a checkout, or the environment's folder of packages."""


@dataclass(frozen=True)
class Programs:
    """Hold the programs of a guest that has another type of processor than this host. ``usr``: the folder that becomes
    the guest's /usr. ``busybox``: a static busybox. ``python``: the interpreter's path. ``native``: the project's
    native core; b"" if there is none."""

    usr: Path
    busybox: Path
    python: str
    native: bytes = b""


ETC = {
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "machine-id": "0123456789abcdef0123456789abcdef\n",
    "fstab": "",
    "pam.d/sudo": "auth required pam_deny.so\naccount required pam_permit.so\nsession required pam_permit.so\n",
    "shells": "/bin/sh\n",
}


# With systemd as init the server is a unit of its own; when it ends, the machine goes off.
SYSTEMD = {
    "lab.target": "[Unit]\nRequires=basic.target lab.service\nAllowIsolate=yes\n",
    "lab.service": """[Unit]
After=basic.target
[Service]
ExecStart={python} -I -S -u /lab/server.py
ExecStopPost=/lab/busybox poweroff -f
""",
}
# Debian would also start these services: they take half a minute in the emulator.
MASKED = (
    *("systemd-udevd.service", "systemd-udev-trigger.service", "systemd-hwdb-update.service", "ldconfig.service"),
    *("systemd-tmpfiles-setup.service", "systemd-tmpfiles-setup-dev.service", "systemd-sysusers.service"),
    *("systemd-journal-catalog-update.service", "systemd-random-seed.service", "systemd-binfmt.service"),
)


def cpio(entries: Iterable[tuple[str, int, bytes]]) -> bytes:
    """Return a newc archive. Each entry is a path, a mode that includes the file's type, and the content. Missing
    parent folders are added. All files belong to root.

    Format: Documentation/driver-api/early-userspace/buffer-format.rst.
    """
    archive = bytearray()
    seen: set[str] = set()
    count = 0

    def put(path: str, mode: int, content: bytes) -> None:
        nonlocal count
        count += 1
        name = path.encode() + b"\0"
        # Fields: inode, mode, uid, gid, links, mtime, size, major, minor, rmajor, rminor, name size, checksum.
        fields = (count, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        archive.extend(b"070701" + b"".join(b"%08X" % field for field in fields) + name)
        archive.extend(b"\0" * (-len(archive) % 4))
        archive.extend(content)
        archive.extend(b"\0" * (-len(archive) % 4))

    for path, mode, content in entries:
        parts = path.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if folder not in seen:
                seen.add(folder)
                put(folder, stat.S_IFDIR | 0o755, b"")
        seen.add(path)
        put(path, mode, content)
    put("TRAILER!!!", 0, b"")
    return bytes(archive)


def shared_folders(programs: Programs | None = None) -> dict[Path, Path]:
    """Return the host's folders that the guest mounts read-only, as host path → guest path.

    If ``programs`` is None, they are /usr, the interpreter, the Python environment and the project. Each has the same
    path in the guest. Otherwise there are two folders: ``programs.usr``, which becomes the guest's /usr, and the
    project.
    """
    if programs is not None:
        return {programs.usr: Path("/usr"), PROJECT: PROJECT}
    wanted = [Path("/usr")]
    wanted += [Path(f"/{name}") for name in ("bin", "sbin", "lib", "lib64") if not Path(f"/{name}").is_symlink()]
    wanted += [Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), PROJECT]
    # An environment's interpreter is often a link to a link.
    wanted.append(Path(sys.executable).resolve().parent.parent)
    shared: list[Path] = []
    for folder in sorted({path for path in wanted if path.is_dir()}):
        if not any(folder.is_relative_to(other) for other in shared):
            shared.append(folder)
    return {folder: folder for folder in shared}


def initrd(
    kernel: kernels.UnpackedKernel,
    options: dict[str, str],
    hostname: str,
    programs: Programs | None = None,
    extra: Sequence[Path] = (),
) -> bytes:
    """Return the content of the initrd for a kernel. ``options``: shell variables for the guest's boot scripts.
    ``programs``: the guest's own programs; None if it uses this host's. ``extra``: further files for the guest's folder
    /lab."""
    program, plain = stat.S_IFREG | 0o755, stat.S_IFREG | 0o644
    guest = assets() / "practice"
    etc = ETC | {name: (guest / name).read_text() for name in ("passwd", "group")}
    etc |= {"hostname": f"{hostname}\n", "hosts": f"127.0.0.1 localhost {hostname}\n"}
    busybox = Path(kernels.tool("busybox")) if programs is None else programs.busybox
    entries = [
        ("init", program, (guest / "init.sh").read_bytes()),
        ("bin/busybox", program, busybox.read_bytes()),
        ("bin/sh", stat.S_IFLNK | 0o777, b"busybox"),
        ("lab/kept/second.sh", program, (guest / "second.sh").read_bytes()),
        ("lab/kept/server.py", plain, (guest / "server.py").read_bytes()),
        ("lab/kept/options", plain, "".join(f"{k}={shlex.quote(v)}\n" for k, v in options.items()).encode()),
        ("lab/order", plain, "\n".join(module.stem for module in kernel.modules).encode() + b"\n"),
    ]
    if programs is not None and programs.native:
        entries.append(("lab/kept/native.so", program, programs.native))
    entries += [(f"lab/kept/{file.name}", program, file.read_bytes()) for file in extra]
    entries += [(f"lab/modules/{module.name}", plain, module.read_bytes()) for module in kernel.modules]
    entries += [(f"lab/skeleton/etc/{name}", plain, text.encode()) for name, text in etc.items()]
    # Only root may sudo until somebody writes a rule; a password is never right.
    entries.append(
        ("lab/skeleton/etc/sudoers", stat.S_IFREG | 0o440, b"root ALL=(ALL) ALL\n@includedir /etc/sudoers.d\n")
    )
    entries.append(("lab/skeleton/etc/sudoers.d", stat.S_IFDIR | 0o755, b""))
    entries.append(("lab/skeleton/etc/mtab", stat.S_IFLNK | 0o777, b"/proc/self/mounts"))
    entries.append((f"lab/skeleton/boot/config-{kernel.release}", plain, kernel.config.read_bytes()))
    units = "lab/systemd/etc/systemd/system"
    entries += [(f"{units}/{name}", plain, text.format(**options).encode()) for name, text in SYSTEMD.items()]
    entries += [(f"{units}/{name}", stat.S_IFLNK | 0o777, b"/dev/null") for name in MASKED]
    for name in ("bin", "sbin", "lib", "lib64"):
        link = Path(f"/{name}")
        if programs is not None:
            entries.append((f"lab/skeleton/{name}", stat.S_IFLNK | 0o777, f"usr/{name}".encode()))
        elif link.is_symlink():
            entries.append((f"lab/skeleton/{name}", stat.S_IFLNK | 0o777, str(link.readlink()).encode()))
    for source in ("/etc/ld.so.cache", "/etc/os-release") if programs is None else ("/etc/os-release",):
        if Path(source).is_file():
            entries.append((f"lab/skeleton{source}", plain, Path(source).read_bytes()))
    return cpio(entries)


def acpi_table(cache: Path, hardware: Hardware) -> Path:
    """Return the path of the compiled ACPI table for this hardware; compile it if the cache lacks it. The table
    describes the P-states and C-states of the CPUs, and a thermal zone."""
    text = acpi.source(hardware).encode()
    name = hashlib.sha256(text).hexdigest()[:16]
    target = cache / f"acpi-{name}.aml"
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            made = Path(scratch) / target.name
            source = made.with_suffix(".asl")
            source.write_bytes(text)
            command = [kernels.tool("iasl"), "-p", str(made.with_suffix("")), str(source)]
            subprocess.run(command, capture_output=True, check=True, timeout=60)
            made.replace(target)
    return target


def make_disk(path: Path, size_mib: int = 64) -> None:
    """Make an empty ext4 file system in a sparse file."""
    with path.open("wb") as file:
        file.truncate(size_mib * 1024 * 1024)
    subprocess.run([kernels.tool("mkfs.ext4"), "-q", "-F", str(path)], check=True, capture_output=True, timeout=60)
