"""Run one QEMU process: its command line, its control stream into the guest, its monitor, and its certain end."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from jitter_workshop.errors import WorkshopError
from jitter_workshop.host.kernel.hypervisor import PRACTICE_WORD
from jitter_workshop.practice import images, kernels
from jitter_workshop.practice.shape import PLAIN, Hardware, Shape

_PR_SET_PDEATHSIG = 1
_STALLS = ("self-detected stall on CPU", "detected stalls on CPUs", "soft lockup - CPU#")
"""What a kernel says of a CPU that stands still (kernel/rcu/tree_stall.h, kernel/watchdog.c)."""
_libc = ctypes.CDLL(None, use_errno=True)


class MachineError(WorkshopError):
    """Report that the machine did not do what was asked; the message ends with what its console said last."""

    title = "Practice"


class MachineTimeout(MachineError):
    """Report that something in the guest took longer than it may."""


class MachineStalled(MachineTimeout):
    """Report that the guest stands still: its kernel says so itself, or a call outlives the guest's own alarm. The
    emulator has lost it; nothing in the guest is to blame."""


class PowerLost(MachineError):
    """Report that QEMU ended before an answer came: its power was cut, or the guest panicked (see its console)."""


KEPT = "/root/kept"
"""The folder in the guest that outlives it."""


@dataclass(frozen=True)
class Options:
    """Hold what one machine is made of.

    ``append`` is added to the kernel's command line. ``init``: busybox, or systemd, this host's own. ``programs``: what
    a guest with another processor runs. ``extra``: files that the guest has in /lab besides. ``devices``: QEMU's
    arguments for devices besides. ``kept``: a folder of this host that the guest may write, at ``KEPT``."""

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

    @property
    def foreign(self) -> bool:
        """Return True if the guest has another processor than this host, and so its own programs and no ACPI table."""
        return self.hardware.arch != "x86_64"

    @property
    def python(self) -> str:
        """Return the path of the guest's Python."""
        return sys.executable if self.programs is None else self.programs.python

    @classmethod
    def of(cls, shape: Shape, disk: Path | None = None) -> Options:
        """Return what a machine of this shape is made of."""
        return cls(kernel=shape.kernel, append=shape.append, disk=disk, cgroup=shape.cgroup, hardware=shape.hardware)


def check(options: Options, cache: Path) -> None:
    """Raise NotHere if this machine cannot be started, for want of a program or a kernel."""
    kernels.check_tools()
    kernels.find(options.kernel, cache)
    if options.foreign:
        kernels.tool(kernels.EMULATORS[options.hardware.arch][0])


def command_line(
    options: Options, kernel: kernels.Kernel, work: Path, table: Path | None, shares: list[Path]
) -> list[str]:
    """Return the arguments of QEMU, without the two file descriptors that ``Qemu`` adds. ``table``: the ACPI table's
    file, if the machine has one."""
    has = replace(options.hardware, nodes=2) if options.numa else options.hardware
    program = kernels.EMULATORS[has.arch][0] if options.foreign else "qemu-system-x86_64"
    arguments = [kernels.tool(program), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    # Never KVM: it has no such registers, and nested it crawls.
    arguments += ["-accel", "tcg,thread=multi", "-machine", "virt" if options.foreign else "q35", "-cpu", has.cpu]
    arguments += ["-smp", f"{has.cpus},sockets={has.sockets},cores={has.cores},threads={has.threads}"]
    arguments += ["-m", str(has.memory_mib), "-serial", f"file:{_value(work / 'console')}"]
    if has.nodes > 1:
        for node, cpus in enumerate(has.nodes_cpus()):
            arguments += ["-object", f"memory-backend-ram,id=m{node},size={has.memory_mib // has.nodes}M"]
            arguments += ["-numa", f"node,nodeid={node},cpus={cpus},memdev=m{node}"]
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
    arguments += ["-drive", "driver=null-co,size=64M,if=none,id=fast", "-device", "nvme,drive=fast,serial=lab"]
    arguments += ["-netdev", "hubport,hubid=0,id=net", "-device", "virtio-net-pci,netdev=net,mac=52:54:00:12:34:56"]
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
    said = f"{PRACTICE_WORD}=tcg"
    append = f"console={console} quiet panic=-1 mitigations=off {said} {options.append}".strip()
    return [*arguments, "-kernel", str(kernel.vmlinux), "-initrd", str(work / "initrd"), "-append", append]


def _value(path: Path) -> str:
    """Return a path as a value among QEMU's options, where a comma is written twice."""
    return str(path).replace(",", ",,")


def _die_with(parent: int) -> None:
    # A parent that is killed must not leave an emulator behind. It may be gone already, before the kernel knew.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Qemu:
    """Hold a running QEMU. ``control`` is the stream to the guest's server."""

    def __init__(self, arguments: list[str], work: Path) -> None:
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
                pass_fds=descriptors,
                start_new_session=True,
                preexec_fn=functools.partial(_die_with, os.getpid()),
            )
        guest_end.close()
        monitor_end.close()
        self._answers = b""
        self._greeted = False

    def monitor(self, command: str, timeout_s: float = 30) -> str:
        """Run a command of QEMU's human monitor and return what it prints."""
        if not self._greeted:
            self._answer(timeout_s)
            self._ask({"execute": "qmp_capabilities"}, timeout_s)
            self._greeted = True
        return str(self._ask({"execute": "human-monitor-command", "arguments": {"command-line": command}}, timeout_s))

    def _ask(self, request: dict[str, object], timeout_s: float) -> object:
        self._monitor.sendall(json.dumps(request).encode() + b"\n")
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
        """End it as a power cut does; safe to call twice."""
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
            text += (work / name).read_bytes()[-20_000:].decode("utf-8", "replace")
    told = [line for line in text.replace("\r", "").splitlines() if "TCG doesn't support" not in line]
    return "\n".join(told[-lines:])


def late(message: str, work: Path) -> MachineTimeout:
    """Make the exception for what took too long: ``MachineStalled`` if the guest's kernel tells of a stall."""
    with contextlib.suppress(OSError):
        console_text = (work / "console").read_bytes().decode("utf-8", "replace")
        if any(words in console_text for words in _STALLS):
            return MachineStalled(message)
    return MachineTimeout(message)


def launch(options: Options, work: Path, cache: Path) -> Qemu:
    """Start a machine; it has booted once the server's first line arrives."""
    kernel = kernels.find(options.kernel, cache)
    shares = images.shared_folders(options.programs)
    variables = {
        "shares": "; ".join(f"share s{n} '{inside}'" for n, inside in enumerate(shares.values())),
        "disk": "yes" if options.disk else "no",
        "cgroup": options.cgroup,
        "init": options.init,
        "kept": KEPT if options.kept is not None else "",
        "project": str(images.PROJECT),
        "python": str(Path(options.python).resolve()) if options.programs is None else options.python,
    }
    initrd = images.initrd(kernel, variables, options.hostname, options.programs, options.extra)
    (work / "initrd").write_bytes(initrd)
    table = (
        None if options.foreign or options.hardware.pstates == "none" else images.acpi_table(cache, options.hardware)
    )
    return Qemu(command_line(options, kernel, work, table, list(shares)), work)
