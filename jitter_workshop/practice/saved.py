"""Start a machine from the state that was saved after an earlier boot.

The saved machine has a running kernel, and has loaded the workshop's modules. Its memory and the state of its devices
are files in the cache. A later machine maps the memory files privately: nothing is copied at the start, and the files
do not change. The host's folders are mounted after each start, because QEMU cannot save a machine with a mounted share.

A saved state needs the same kernel, shape, version of QEMU, base image and host. The function :func:`key` makes the
state's key from all of these.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from jitter_workshop.errors import reason
from jitter_workshop.model.text import MOST_LONG_NAMES
from jitter_workshop.practice import images, kernels, qemu, room
from jitter_workshop.practice.base import ABOUT, FOLDER, SAVED, Base, file_stamp
from jitter_workshop.practice.machine import Machine, woken
from jitter_workshop.practice.qemu import KEPT, MachineError, MachineOptions, MemoryFiles
from jitter_workshop.practice.shape import Hardware

FORMAT = "1"
STATE = "state"
LOAD_TIMEOUT_S = 180.0
RESUME_TIMEOUT_S = 30.0
SPARE_MIB = 256
"""Disk space in MiB that must stay free in the cache's file system after a machine is saved."""
_STEP_S = 0.005
_REGISTERS = range(0xE0, 0xE4)
"""The ports of pc-testdev that hold the requested P-states. QEMU's saved state does not include them."""


class Resumable(Machine):
    """Run a machine that starts from its saved state, if there is one. Otherwise the machine boots, and its state is
    saved.

    ``resumed``: True if the last start used the saved state. ``unsaved``: the reason why the state could not be saved;
    "" if there is none.
    """

    def __init__(
        self,
        options: MachineOptions,
        cache: Path,
        work: Path,
        base: Base,
        name: str,
        cwd: str = "/root",
        saves: bool = True,
    ) -> None:
        """Prepare a machine without starting it. ``name``: the name of the machine's shape, a part of the saved state's
        name.

        ``saves``: False if the machine's state must not be saved, because the user gave the machine boot parameters.
        """
        super().__init__(replace(options, base=base.image), cache, work, cwd)
        self._base, self._name = base, f"{name}-{base.image.parent.name}"
        self.saves, self._append = saves, options.append
        self.resumed = False
        self.unsaved = ""

    @property
    def place(self) -> Path:
        """Return the folder of the saved machine."""
        return self._cache / SAVED / f"{self._name}-{key(self.options, self._cache, self._base)}"

    @property
    def is_saved(self) -> bool:
        """Return True if there is a saved machine for the next start."""
        return (self.place / ABOUT).is_file()

    def reset(self) -> None:
        """Start the machine again from its saved state, with the boot parameters of its first boot. Programs in the
        machine end at once, as in a power cut."""
        self.boot(self._append)

    def _power_on(self, timeout_s: float) -> None:
        self._off()
        self._forget()
        self.resumed = self._resume()
        if not self.resumed:
            self._boot(timeout_s)
        self._wake()

    def _resume(self) -> bool:
        """Start from the saved machine, and return True. Return False if there is no saved machine, or if it does not
        start."""
        hardware, place = self.options.hardware, self.place
        try:
            about = json.loads((place / ABOUT).read_bytes())
            registers, self.release = [int(value) for value in about["registers"]], str(about["release"])
            with (place / STATE).open("rb") as state:
                memory = MemoryFiles(memory_files(place, hardware), shared=False)
                process = self._qemu = self._launched(memory, ("-S", "-incoming", "defer"))
                process.ask("migrate-set-capabilities", {"capabilities": [_IGNORE_SHARED]})
                process.ask("getfd", {"fdname": STATE}, file=state.fileno())
                process.ask("migrate-incoming", {"uri": f"fd:{STATE}"})
                _until(process, "query-status", "paused", ("inmigrate",))
            for port, value in zip(_REGISTERS, registers, strict=True):
                process.monitor(f"o /b {port:#x} {value}")
            process.ask("cont")
            with contextlib.suppress(OSError):
                os.utime(place / ABOUT)
            return True
        except FileNotFoundError:
            return False
        except (OSError, ValueError, KeyError, TypeError, MachineError):
            self._off()
            self._forget()
            shutil.rmtree(place, ignore_errors=True)
            return False

    def _boot(self, timeout_s: float) -> None:
        hardware = self.options.hardware
        needed = hardware.memory_mib + SPARE_MIB
        saves = self.saves and self.options.append == self._append
        with contextlib.ExitStack() as stack:
            files: list[int] = []
            if saves and room.free_mib(self._cache) < needed:
                self.unsaved = f"{self._cache} has less than {needed} MiB of free space"
                saves = False
            if not saves:
                self._qemu = self._launched(None, ())
            else:
                files = [stack.enter_context(_memory(hardware)) for _ in range(hardware.nodes)]
                memory = MemoryFiles(tuple(Path(f"/proc/self/fd/{file}") for file in files), shared=True)
                self._qemu = self._launched(memory, (), files)
            self.pump(lambda: bool(self.release), timeout_s, "the guest to boot")
            failed = self.request({"load": list(self._base.modules)}, LOAD_TIMEOUT_S, "the modules")
            if failed:
                self.unsaved = f"modules cannot be loaded: {', '.join(list(failed)[:MOST_LONG_NAMES])}"
            elif files:
                self._save(files)

    def _save(self, files: list[int]) -> None:
        process = self._running()
        process.ask("stop")
        try:
            with tempfile.TemporaryDirectory(dir=self.work) as scratch:
                made = Path(scratch) / "made"
                made.mkdir(mode=0o700)
                with (made / STATE).open("wb") as state:
                    process.ask("migrate-set-capabilities", {"capabilities": [_IGNORE_SHARED]})
                    process.ask("getfd", {"fdname": STATE}, file=state.fileno())
                    process.ask("migrate", {"uri": f"fd:{STATE}"})
                    _until(process, "query-migrate", "completed", ("setup", "active", "device", None))
                registers = [_register(process, port) for port in _REGISTERS]
                for file, target in zip(files, memory_files(made, self.options.hardware), strict=True):
                    copy_sparse(file, target)
                (made / ABOUT).write_text(json.dumps({"release": self.release, "registers": registers}))
                keep_machine(made, self.place)
        except (OSError, MachineError, ValueError) as error:
            self.unsaved = reason(error) if isinstance(error, OSError) else str(error).partition("\n")[0]
        process.ask("cont")

    def _launched(
        self, memory: MemoryFiles | None, words: tuple[str, ...], files: list[int] | None = None
    ) -> qemu.Qemu:
        return qemu.launch(self.options, self.work, self._cache, memory, files or (), words)

    def _wake(self) -> None:
        """Set the guest's clock to this host's time, give the guest a new random seed, and mount the host's folders."""
        mounts = [["ro", f"s{n}", str(inside)] for n, inside in enumerate(images.shared_folders().values())]
        if self.options.kept is not None:
            mounts.append(["rw", "kept", KEPT])
        self.request({**woken(), "mounts": mounts}, RESUME_TIMEOUT_S, "the guest to wake")


_IGNORE_SHARED = {"capability": "x-ignore-shared", "state": True}


def key(options: MachineOptions, cache: Path, base: Base) -> str:
    """Return a key made from everything on which a saved machine depends. A saved machine with another key is never
    used."""
    made = qemu.parts(replace(options, kept=None), cache)
    words = qemu.qemu_command(replace(options, kept=None), made.kernel, Path("/work"), None, list(made.shares))
    sums = (made.kernel.folder / kernels.SUMS).read_bytes()
    table = made.table.read_bytes() if made.table is not None else b""
    host = [_text("/etc/machine-id"), _processor()]
    facts = [
        FORMAT,
        base.digest,
        *words,
        *host,
        str(file_stamp(os.path.realpath(words[0]))),
        str(file_stamp(str(base.image))),
    ]
    digest = hashlib.sha256("\0".join(facts).encode("utf-8", "surrogateescape"))
    for part in (made.initrd, sums, table):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


def _text(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text("utf-8", "replace")
    return ""


def _processor() -> str:
    """Return the line of /proc/cpuinfo with the processor's name; "" if there is none. The key of a saved machine
    contains this line, because the guest's clock continues at the frequency of this processor."""
    found = re.search(r"^model name.*$", _text("/proc/cpuinfo"), re.MULTILINE)
    return found[0] if found else ""


def memory_files(folder: Path, hardware: Hardware) -> tuple[Path, ...]:
    """Return the files of a saved machine's memory, one for each node."""
    return tuple(folder / f"memory{node}" for node in range(hardware.nodes))


def keep_machine(made: Path, place: Path) -> None:
    """Move a saved machine from ``made`` to ``place``. Then remove older saved machines of the same name. No later
    start uses these older machines."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = place.name.rpartition("-")[0]
    for old in place.parent.iterdir():
        if old.name.rpartition("-")[0] == name:
            shutil.rmtree(old, ignore_errors=True)
    made.rename(place)


def used_mib(cache: Path) -> int:
    """Return the disk space that the saved machines and the base take, in MiB."""
    found = [file for name in (SAVED, FOLDER) for file in (cache / name).rglob("*") if file.is_file()]
    return sum(file.stat().st_blocks * 512 for file in found) >> 20


@contextlib.contextmanager
def _memory(hardware: Hardware) -> Iterator[int]:
    """Make a file for the memory of one node, and yield its descriptor. The kernel deletes the file when all processes
    have closed it."""
    file = os.memfd_create("practice")
    try:
        os.ftruncate(file, (hardware.memory_mib // hardware.nodes) << 20)
        yield file
    finally:
        os.close(file)


def copy_sparse(source: int, target: Path) -> None:
    """Copy a file's data. Holes in the file stay holes."""
    size = os.fstat(source).st_size
    with target.open("wb") as file:
        file.truncate(size)
        at = 0
        while at < size:
            try:
                at = os.lseek(source, at, os.SEEK_DATA)
            except OSError:  # only a hole is left
                break
            ends = os.lseek(source, at, os.SEEK_HOLE)
            file.seek(at)
            while at < ends:
                count = os.sendfile(file.fileno(), source, at, min(ends - at, 1 << 26))
                if not count:
                    return
                at += count


def _register(process: qemu.Qemu, port: int) -> int:
    """Return the byte at an I/O port of the guest."""
    said = process.monitor(f"i /b {port:#x}")
    found = re.search(r"=\s*(0x[0-9a-fA-F]+)", said)
    if found is None:
        raise MachineError(f"QEMU's monitor gives no value of port {port:#x}: {said.strip()}")
    return int(found[1], 16)


def _until(process: qemu.Qemu, question: str, wanted: str, going: tuple[str | None, ...]) -> None:
    """Send QEMU the query ``question`` until QEMU answers with the status ``wanted``. Raise MachineError after
    RESUME_TIMEOUT_S seconds. Raise MachineError at once if the status is neither ``wanted`` nor in ``going``."""
    ends = time.monotonic() + RESUME_TIMEOUT_S
    while True:
        answer = process.ask(question)
        status = answer.get("status") if isinstance(answer, dict) else None
        if status == wanted:
            return
        if status not in going or time.monotonic() > ends:
            raise MachineError(f"QEMU's {question} says {answer}")
        time.sleep(_STEP_S)
