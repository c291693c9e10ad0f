"""Which kernel runs here, since when, and with which parameters (proc(5), /proc/sys/kernel)."""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import dataclass

from jitter_workshop.host.cpuinfo import CpuIdentity, read_cpu_identity
from jitter_workshop.host.root import HostRoot, printable

_PREEMPT_RT = re.compile(r"PREEMPT[_ ]RT\b")
_HZ = re.compile(rb"^CONFIG_HZ=(\d{1,5})$", re.MULTILINE)
_CONFIG_BYTES = 2 << 20
_BOOT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Kernel:
    """``version``: the build line of ``uname -v``. ``realtime``: built with PREEMPT_RT, None where it cannot be told.
    ``command_line``: None where it is hidden."""

    hostname: str
    release: str
    version: str
    architecture: str
    realtime: bool | None
    boot_id: str | None
    command_line: str | None


def read_kernel(root: HostRoot, identity: CpuIdentity | None = None) -> Kernel:
    """Read the running kernel's (or the recorded one's) identity; ``identity`` saves reading /proc/cpuinfo again."""
    version = printable(root.text("/proc/sys/kernel/version") or "", 200)
    boot_id = root.text("/proc/sys/kernel/random/boot_id") or ""
    command_line = root.text("/proc/cmdline")
    return Kernel(
        hostname=printable(root.text("/proc/sys/kernel/hostname") or "", 64) or "unnamed host",
        release=printable(root.text("/proc/sys/kernel/osrelease") or "", 80) or "unknown kernel",
        version=version,
        architecture=_architecture(root, identity),
        realtime=_realtime(root, version),
        boot_id=boot_id if _BOOT_ID.fullmatch(boot_id) else None,
        command_line=None if command_line is None else printable(command_line, 4_096),
    )


def read_tick_hz(root: HostRoot, release: str) -> tuple[int | None, str]:
    """CONFIG_HZ and the file that says so: the running kernel's own configuration (/proc/config.gz, where it was built
    with CONFIG_IKCONFIG_PROC) or the distribution's copy in /boot; (None, the files) where neither can be read."""
    own, copy = "/proc/config.gz", f"/boot/config-{release}"
    for path, text in ((own, _inflate(root.raw(own))), (copy, root.raw(copy, _CONFIG_BYTES))):
        found = _HZ.search(text or b"")
        if found is not None:
            return int(found.group(1)), path
    return None, f"{own}, {copy}"


def _inflate(data: bytes | None) -> bytes | None:
    """A gzip file's contents up to a size that no kernel configuration reaches; None for what is no gzip file."""
    if data is None:
        return None
    try:
        return zlib.decompressobj(wbits=31).decompress(data, _CONFIG_BYTES)
    except zlib.error:
        return None


def _realtime(root: HostRoot, version: str) -> bool | None:
    """/sys/kernel/realtime exists on real-time kernels only, and not on all of them; the build line names the rest."""
    if root.integer("/sys/kernel/realtime") == 1 or _PREEMPT_RT.search(version):
        return True
    return False if version else None


def _architecture(root: HostRoot, identity: CpuIdentity | None) -> str:
    """/proc/sys/kernel/arch (from 6.1), else this process's own machine, else what /proc/cpuinfo lets one tell."""
    told = printable(root.text("/proc/sys/kernel/arch") or "", 20)
    if told:
        return told
    if not root.recorded:
        return os.uname().machine
    cpu = identity if identity is not None else read_cpu_identity(root)
    return cpu.architecture or "unknown"
