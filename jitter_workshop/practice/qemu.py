"""Run one QEMU process: build its command line, connect the guest's control stream and the monitor, and end the
process."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from jitter_workshop.errors import WorkshopError
from jitter_workshop.host.kernel.hypervisor import PRACTICE_WORD
from jitter_workshop.model.text import REASON, clean
from jitter_workshop.practice import images, kernels
from jitter_workshop.practice.shape import PLAIN, Hardware, Shape

_PR_SET_PDEATHSIG = 1
_SHOWN_BYTES = 20_000
"""The number of bytes at the end of each log from which the last lines are shown."""
_SEARCHED_BYTES = 200_000
"""The number of bytes at the end of the console in which :func:`panic` searches."""
_STALLS = ("self-detected stall on CPU", "detected stalls on CPUs", "soft lockup - CPU#")
"""The kernel's messages about a CPU that hangs (kernel/rcu/tree_stall.h, kernel/watchdog.c)."""
_PANIC = re.compile(r"Kernel panic - not syncing: ([^\r\n]*)")
"""The kernel's message about a panic (kernel/panic.c)."""
_libc = ctypes.CDLL(None, use_errno=True)


class MachineError(WorkshopError):
    """Report that the machine did not do what was asked. The message ends with the last lines of its console."""

    title = "Practice"


class MachineTimeout(MachineError):
    """Report that the guest did not do something within a time limit."""


class MachineStalled(MachineTimeout):
    """Report that the guest hangs: its kernel has reported a stall of a CPU. The emulator causes such a stall. A
    program in the guest cannot cause it."""


class PowerLost(MachineError):
    """Report that QEMU ended before the guest answered. Either QEMU was killed, or the guest's kernel panicked. The
    guest's console shows such a panic."""


NETWORK, ADDRESS = "10.0.2.0/24", "10.0.2.15/24"
"""The network that QEMU makes for a guest with a network: its addresses, and the guest's."""
KEPT = "/root/kept"
"""The folder in the guest whose files outlast the guest."""


@dataclass(frozen=True)
class MachineOptions:
    """Hold the options of one machine.

    - ``append``: words that are added to the kernel's command line.
    - ``init``: ``busybox``, or this host's ``systemd``.
    - ``programs``: the guest's programs, if its type of processor differs from this host's.
    - ``extra``: further files for the guest.
    - ``devices``: QEMU's arguments for further devices.
    - ``kept``: a folder of this host that the guest can write, mounted at ``KEPT``.
    - ``base``: an image from which the guest starts before it mounts the host's folders. Only a machine with a base can
      be saved.
    - ``accelerator``: QEMU's name for emulation or for KVM (see ``kvm``).
    - ``network``: True if the guest gets a network address and a gateway inside of QEMU. No packet leaves QEMU.
    """

    kernel: str = "stock"
    append: str = ""
    disk: Path | None = None
    numa: bool = False
    cgroup: str = "v2"
    init: str = "busybox"
    hardware: Hardware = PLAIN
    hostname: str = "practice"
    programs: images.Programs | None = None
    extra: tuple[Path, ...] = ()
    devices: tuple[str, ...] = ()
    kept: Path | None = None
    base: Path | None = None
    accelerator: Literal["tcg", "kvm"] = "tcg"
    network: bool = False

    @property
    def foreign(self) -> bool:
        """Return True if the guest's type of processor differs from this host's. Such a guest has its own programs and
        no ACPI table."""
        return self.hardware.arch != "x86_64"

    @property
    def python(self) -> str:
        """Return the path of the guest's Python."""
        return sys.executable if self.programs is None else self.programs.python

    @classmethod
    def of(cls, shape: Shape, disk: Path | None = None) -> MachineOptions:
        """Return the options of a machine of this shape."""
        return cls(kernel=shape.kernel, append=shape.append, disk=disk, cgroup=shape.cgroup, hardware=shape.hardware)


def refuse_if_no_qemu(options: MachineOptions, cache: Path) -> None:
    """Raise NotHere if this machine cannot be started because a program or a kernel is missing."""
    kernels.check_tools()
    kernels.find_kernel(options.kernel, cache)
    if options.foreign:
        kernels.tool(kernels.EMULATORS[options.hardware.arch][0])


@dataclass(frozen=True)
class MemoryFiles:
    """Hold the files that contain a machine's memory, one file per NUMA node. ``shared``: True if writes by the machine
    change these files."""

    files: tuple[Path, ...]
    shared: bool


def qemu_command(
    options: MachineOptions,
    kernel: kernels.UnpackedKernel,
    work: Path,
    table: Path | None,
    shares: list[Path],
    memory: MemoryFiles | None = None,
) -> list[str]:
    """Return QEMU's command line for a machine. The class ``Qemu`` adds arguments for two file descriptors. ``table``:
    the file of the ACPI table; None if the machine has none. ``memory``: the files that contain the machine's memory;
    None for ordinary memory."""
    has = replace(options.hardware, nodes=2) if options.numa else options.hardware
    program = kernels.EMULATORS[has.arch][0] if options.foreign else "qemu-system-x86_64"
    arguments = [kernels.tool(program), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    accelerator, processor = ("kvm", "host") if options.accelerator == "kvm" else ("tcg,thread=multi", has.cpu)
    arguments += ["-accel", accelerator, "-machine", "virt" if options.foreign else "q35", "-cpu", processor]
    arguments += ["-smp", f"{has.cpus},sockets={has.sockets},cores={has.cores},threads={has.threads}"]
    arguments += ["-m", str(has.memory_mib), "-serial", f"file:{_value(work / 'console')}"]
    if has.nodes > 1 or memory is not None:
        for node in range(has.nodes):
            kind = "memory-backend-ram"
            if memory is not None:
                place = f"mem-path={_value(memory.files[node])},share={'on' if memory.shared else 'off'}"
                kind = f"memory-backend-file,{place}"
            arguments += ["-object", f"{kind},id=m{node},size={has.memory_mib // has.nodes}M"]
    if has.nodes > 1:
        for node, cpus in enumerate(has.nodes_cpus()):
            arguments += ["-numa", f"node,nodeid={node},cpus={cpus},memdev=m{node}"]
    elif memory is not None:
        arguments += ["-machine", "memory-backend=m0"]
    if table is not None:
        arguments += ["-acpitable", f"file={_value(table)}", "-device", "pc-testdev"]
        # The second UART's scratch register (0x2ff) is where the ACPI table reads the temperature.
        arguments += ["-chardev", "null,id=scratch", "-device", "isa-serial,index=1,chardev=scratch"]
    arguments += options.devices
    if options.disk:
        # A power cut loses the guest's page cache; the host's outlives QEMU, so QEMU's own flushes would only cost.
        arguments += ["-drive", f"file={_value(options.disk)},format=raw,if=none,id=disk,cache=unsafe"]
    else:
        arguments += ["-drive", "driver=null-co,size=64M,if=none,id=disk"]
    arguments += ["-device", "virtio-blk-pci,drive=disk,num-queues=4"]
    if options.base is not None:
        arguments += ["-drive", f"file={_value(options.base)},format=raw,if=none,id=base,readonly=on"]
        arguments += ["-device", "virtio-blk-pci,drive=base,num-queues=1"]
    # A restricted network answers by itself and passes nothing on (qemu(1), -netdev user).
    backend = f"user,id=net,restrict=on,ipv6=off,net={NETWORK}" if options.network else "hubport,hubid=0,id=net"
    arguments += ["-netdev", backend, "-device", "virtio-net-pci,netdev=net,mac=52:54:00:12:34:56"]
    for number, folder in enumerate(shares):
        arguments += [
            "-fsdev",
            f"local,id=s{number},path={_value(folder)},security_model=none,readonly=on,multidevs=remap",
        ]
        arguments += ["-device", f"virtio-9p-pci,fsdev=s{number},mount_tag=s{number}"]
    if options.kept is not None:
        arguments += ["-fsdev", f"local,id=kept,path={_value(options.kept)},security_model=none,multidevs=remap"]
        arguments += ["-device", "virtio-9p-pci,fsdev=kept,mount_tag=kept"]
    console = "ttyAMA0" if options.foreign else "ttyS0"
    said = f"{PRACTICE_WORD}={options.accelerator}"
    append = f"console={console} quiet panic=-1 mitigations=off {said} {options.append}".strip()
    return [*arguments, "-kernel", str(kernel.vmlinux), "-initrd", str(work / "initrd"), "-append", append]


def _value(path: Path) -> str:
    """Return a path for use in an option of QEMU. Each comma is doubled, because QEMU separates values by commas."""
    return str(path).replace(",", ",,")


def _die_with(parent: int) -> None:
    # A parent that is killed must not leave an emulator behind. It may be gone already, before the kernel knew.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Qemu:
    """Hold a running QEMU. ``control`` is the stream to the guest's server."""

    def __init__(self, arguments: list[str], work: Path, keep: Sequence[int] = ()) -> None:
        """Start QEMU with ``arguments``. ``keep``: further file descriptors that the QEMU process inherits."""
        self.work = work
        self.control, guest_end = socket.socketpair()
        self._monitor, monitor_end = socket.socketpair()
        descriptors = (guest_end.fileno(), monitor_end.fileno())
        arguments = [
            *arguments,
            *("-chardev", f"socket,id=control,fd={descriptors[0]}", "-device", "virtio-serial-pci"),
            *("-device", "virtserialport,chardev=control,name=lab.control"),
            *("-chardev", f"socket,id=monitor,fd={descriptors[1]}", "-mon", "chardev=monitor,mode=control"),
        ]
        with (work / "qemu.log").open("ab") as log:
            self.process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(*descriptors, *keep),
                start_new_session=True,
                preexec_fn=functools.partial(_die_with, os.getpid()),
            )
        guest_end.close()
        monitor_end.close()
        self._answers = b""
        self._greeted = False

    def monitor(self, command: str, timeout_s: float = 30) -> str:
        """Run a command of QEMU's human monitor and return what it prints."""
        return str(self.ask("human-monitor-command", {"command-line": command}, timeout_s))

    def ask(
        self, command: str, arguments: dict[str, object] | None = None, timeout_s: float = 30, file: int | None = None
    ) -> object:
        """Run a command of QEMU's machine protocol and return its answer. ``file``: a descriptor that is sent with the
        command."""
        if not self._greeted:
            self._answer(timeout_s)
            self._ask({"execute": "qmp_capabilities"}, timeout_s)
            self._greeted = True
        return self._ask({"execute": command, "arguments": arguments or {}}, timeout_s, file)

    def _ask(self, request: dict[str, object], timeout_s: float, file: int | None = None) -> object:
        line = json.dumps(request).encode() + b"\n"
        try:
            socket.send_fds(self._monitor, [line], [] if file is None else [file])
        except OSError as error:
            raise PowerLost(f"QEMU has ended: {error}\n{console(self.work)}") from None
        while True:
            answer = self._answer(timeout_s)
            if "error" in answer:
                raise MachineError(f"QEMU's monitor refused {request}: {answer['error']}")
            if "return" in answer:
                return answer["return"]

    def _answer(self, timeout_s: float) -> dict[str, object]:
        ends = time.monotonic() + timeout_s
        while b"\n" not in self._answers:
            ready, _, _ = select.select([self._monitor], [], [], max(0.0, ends - time.monotonic()))
            data = self._monitor.recv(65536) if ready else b""
            if not data:
                raise MachineTimeout("QEMU's monitor does not answer")
            self._answers += data
        line, _, self._answers = self._answers.partition(b"\n")
        answer: dict[str, object] = json.loads(line)
        return answer

    def kill(self) -> None:
        """End QEMU as in a power cut; a second call does nothing."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(30)
        self.control.close()
        self._monitor.close()


def console(work: Path, lines: int = 25) -> str:
    """Return the last lines of QEMU's own messages and of the guest's console."""
    text = ""
    for name in ("qemu.log", "console"):
        with contextlib.suppress(OSError):
            text += (work / name).read_bytes()[-_SHOWN_BYTES:].decode("utf-8", "replace")
    told = [line for line in text.replace("\r", "").splitlines() if "TCG doesn't support" not in line]
    return "\n".join(told[-lines:])


def panic(work: Path) -> str:
    """Return the reason of the panic that the guest's kernel wrote to the console; "" if the console shows no panic."""
    with contextlib.suppress(OSError):
        text = (work / "console").read_bytes()[-_SEARCHED_BYTES:].decode("utf-8", "replace")
        found = _PANIC.search(text)
        return clean(found[1], REASON) if found is not None else ""
    return ""


def late(message: str, work: Path) -> MachineTimeout:
    """Return the error for a request that the guest did not answer in time: ``MachineStalled`` if the guest's kernel
    reports a stall, else ``MachineTimeout``."""
    with contextlib.suppress(OSError):
        console_text = (work / "console").read_bytes().decode("utf-8", "replace")
        if any(words in console_text for words in _STALLS):
            return MachineStalled(message)
    return MachineTimeout(message)


@dataclass(frozen=True)
class Parts:
    """Hold QEMU's input: the kernel, the initrd, the ACPI table's file if there is one, and the folders to share."""

    kernel: kernels.UnpackedKernel
    initrd: bytes
    table: Path | None
    shares: tuple[Path, ...]


def parts(options: MachineOptions, cache: Path) -> Parts:
    """Make the files that a machine boots from, and return them."""
    kernel = kernels.find_kernel(options.kernel, cache)
    shares = images.shared_folders(options.programs)
    variables = {
        "shares": "; ".join(f"share s{n} '{inside}'" for n, inside in enumerate(shares.values())),
        "disk": "yes" if options.disk else "no",
        "cgroup": options.cgroup,
        "init": options.init,
        "kept": KEPT if options.kept is not None else "",
        "base": "yes" if options.base is not None else "no",
        "address": ADDRESS if options.network else "",
        "project": str(images.PROJECT),
        "python": options.python if options.programs or options.base else str(Path(options.python).resolve()),
    }
    initrd = images.initrd(kernel, variables, options.hostname, options.programs, options.extra)
    table = (
        None if options.foreign or options.hardware.pstates == "none" else images.acpi_table(cache, options.hardware)
    )
    return Parts(kernel, initrd, table, tuple(shares))


def launch(
    options: MachineOptions,
    work: Path,
    cache: Path,
    memory: MemoryFiles | None = None,
    keep: Sequence[int] = (),
    words: Sequence[str] = (),
) -> Qemu:
    """Start QEMU, and return the ``Qemu`` object before the guest has booted. When the guest has booted, its server
    sends a first line.

    ``keep``: file descriptors that QEMU inherits. ``words``: further arguments for QEMU.
    """
    made = parts(options, cache)
    (work / "initrd").write_bytes(made.initrd)
    arguments = qemu_command(options, made.kernel, work, made.table, list(made.shares), memory)
    return Qemu([*arguments, *words], work, keep)
