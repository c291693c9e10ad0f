"""Read the kernel's release, boot id and configuration (proc(5), /proc/sys/kernel)."""

from __future__ import annotations

import os
import re
import zlib

from jitter_workshop.host.cpu.cpuinfo import CpuIdentity, read_cpu_identity
from jitter_workshop.host.root import HostRoot, parse_integer, printable
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import NAME, REASON, WORD

_PREEMPT_RT = r"PREEMPT[_ ]RT\b"
UNKNOWN_ARCHITECTURE = "unknown"
_HOST_NAME = 64
"""The largest length of a host's name in the kernel."""
_CONFIG_BYTES = 2 << 20
_BOOT_ID = [8, 4, 4, 4, 12]
"""The numbers of hex digits between the hyphens of a boot id."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """Hold the running kernel's identity. ``version``: its build line, as ``uname -v`` prints it. ``realtime``: True if
    the kernel was built with PREEMPT_RT, None if unknown."""

    hostname: str
    release: str
    version: str
    architecture: str
    realtime: bool | None
    boot_id: str | None


@dataclass(frozen=True, slots=True)
class KernelConfig:
    """Hold the configuration that the running kernel was built with.

    ``path``: the file that was read. ``text``: the contents of the file. If no file was found, ``text`` is None, and
    ``path`` names two of the files for which this tool has looked.
    """

    path: str
    text: bytes | None

    def value(self, option: str) -> str | None:
        """Return the value of a configuration option: ``y``, ``m``, a number, or a string in quotes. ``option``: the
        name without ``CONFIG_``. Return None if the option is not set, or no configuration can be read."""
        if self.text is None:
            return None
        _, found, after = (b"\n" + self.text).partition(f"\nCONFIG_{option}=".encode())
        return printable(after.partition(b"\n")[0].decode("utf-8", "replace"), REASON) if found else None

    def lacks(self, option: str) -> bool:
        """Return True if the configuration can be read, and the option is not set in it."""
        return self.text is not None and self.value(option) is None


def read_kernel(root: HostRoot, identity: CpuIdentity | None = None) -> Kernel:
    """Return the identity of the running kernel, or of the recorded one. ``identity``: the CPU's identity, if the
    caller knows it; otherwise it is read."""
    version = root.word("/proc/sys/kernel/version", REASON) or ""
    boot_id = root.text("/proc/sys/kernel/random/boot_id") or ""
    return Kernel(
        hostname=root.word("/proc/sys/kernel/hostname", _HOST_NAME) or "unnamed host",
        release=root.word("/proc/sys/kernel/osrelease", NAME) or "unknown kernel",
        version=version,
        architecture=_architecture(root, identity),
        realtime=_realtime(root, version),
        boot_id=boot_id if _is_boot_id(boot_id) else None,
    )


def _is_boot_id(text: str) -> bool:
    parts = text.split("-")
    return [*map(len, parts)] == _BOOT_ID and not "".join(parts).strip("0123456789abcdef")


def version_of(release: str) -> tuple[int, int]:
    """Return the first two numbers of a kernel's release: (6, 12) for ``6.12.9-amd64``. Return (0, 0) if the release
    does not begin with two numbers."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})", release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _has_rt(version: str) -> bool:
    # Most kernels are compared without a regular expression, which would first be compiled.
    return "RT" in version and re.search(_PREEMPT_RT, version) is not None


def read_kernel_config(root: HostRoot, release: str) -> KernelConfig:
    """Return the configuration that the running kernel was built with. The first choice is /proc/config.gz, which
    kernels with CONFIG_IKCONFIG_PROC have. The second choice is the distribution's copy in /boot or in the modules'
    folder."""
    own = "/proc/config.gz"
    copies = (f"/boot/config-{release}", f"/lib/modules/{release}/config", f"/usr/lib/modules/{release}/config")
    text = inflated(root.raw(own))
    if text is not None and b"CONFIG_" in text:
        return KernelConfig(own, text)
    for path in copies if "/" not in release else ():
        text = root.raw(path, _CONFIG_BYTES)
        if text is not None and b"CONFIG_" in text:
            return KernelConfig(path, text)
    return KernelConfig(f"{own}, {copies[0]}", None)


def read_tick_hz(root: HostRoot, release: str) -> tuple[int | None, str]:
    """Return CONFIG_HZ, and the path of the file that holds it. If no file can be read, return None and the names of
    files that were tried."""
    config = read_kernel_config(root, release)
    rate = parse_integer(config.value("HZ"))
    return (rate if rate is not None and 0 < rate < 100_000 else None), config.path


def preemption(version: str) -> str | None:
    """Return the kind of preemption that the kernel's build line names; None if there is no build line.

    The result is ``PREEMPT_RT``, ``PREEMPT_DYNAMIC``, ``PREEMPT_LAZY``, ``PREEMPT`` (full) or ``none``. A
    PREEMPT_DYNAMIC kernel shows its present kind of preemption in /sys/kernel/debug/sched/preempt. This function does
    not read that file.
    """
    if not version:
        return None
    if _has_rt(version):
        return "PREEMPT_RT"
    words = version.replace("_", " ").split()
    if "PREEMPT" not in words:
        return "none"
    after = words[words.index("PREEMPT") + 1 :][:1]
    return f"PREEMPT_{after[0]}" if after and after[0] in ("DYNAMIC", "LAZY") else "PREEMPT"


def inflated(data: bytes | None) -> bytes | None:
    """Return the decompressed contents of gzip data, but at most the first 2 MiB. No kernel configuration is larger.
    Return None if the data is not gzip."""
    if data is None:
        return None
    try:
        return zlib.decompressobj(wbits=31).decompress(data, _CONFIG_BYTES)
    except zlib.error:
        return None


def _realtime(root: HostRoot, version: str) -> bool | None:
    """Return True if /sys/kernel/realtime or the build line shows a real-time kernel. ``version``: the build line.

    Not every real-time kernel has the file, so a missing file proves nothing. Return None if the file does not show a
    real-time kernel and the build line is "".
    """
    if root.integer("/sys/kernel/realtime") == 1 or _has_rt(version):
        return True
    return False if version else None


def _architecture(root: HostRoot, identity: CpuIdentity | None) -> str:
    """Return the machine type, such as ``x86_64``. Kernels before 6.1 show no file with this type. On such a kernel,
    return the type that this process sees. For a recorded host with such a kernel, guess the type from
    /proc/cpuinfo."""
    told = root.word("/proc/sys/kernel/arch", WORD)
    if told:
        return told
    if not root.recorded:
        return os.uname().machine
    cpu = identity if identity is not None else read_cpu_identity(root)
    return cpu.architecture or UNKNOWN_ARCHITECTURE
