"""A booted lab machine as tests use it: programs, files, functions in the guest; reboot, power cut, temperature."""

from __future__ import annotations

import base64
import contextlib
import inspect
import io
import json
import select
import shutil
import sys
import tarfile
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from tests.lab import images, qemu, watched
from tests.lab.qemu import LabError, LabStalled, LabTimeout, Options, PowerLost

PROJECT = "/srv/jitter-workshop"
BOOT_PATIENCE_S = 60.0
BOOT_TIMEOUT_S = 180.0
MOST_CPUS = 32
"""The most CPUs of a guest that boots within the patience on two CPUs of this host."""
RUN_TIMEOUT_S = 120.0

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Done:
    """A program that ended in the guest; ``code`` is -N for signal N."""

    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """Its stdout as JSON."""
        return json.loads(self.stdout)


class Guest:
    """A program that runs in the guest (see ``Machine.start``)."""

    def __init__(self, machine: Machine, ident: int, argv: Sequence[str]) -> None:
        self._machine, self._ident, self.argv = machine, ident, tuple(argv)
        self.pid = 0
        self.stdout, self.stderr = b"", b""
        self.code: int | None = None

    def event(self, event: dict[str, Any]) -> None:
        self.pid = event.get("pid", self.pid)
        self.stdout += base64.b64decode(event.get("out", ""))
        self.stderr += base64.b64decode(event.get("err", ""))
        self.code = event.get("code", self.code)

    def send(self, data: bytes) -> None:
        """Write to its stdin."""
        self._machine.tell({"id": self._ident, "stdin": base64.b64encode(data).decode("ascii")})

    def close_stdin(self) -> None:
        self._machine.tell({"id": self._ident, "stdin": None})

    def signal(self, number: int, group: bool = False) -> None:
        """Send it a signal (its whole process group with ``group``)."""
        self._machine.tell({"id": self._ident, "signal": number, "group": group})

    def wait_for(self, text: bytes, timeout_s: float = RUN_TIMEOUT_S) -> bytes:
        """Wait until its stdout holds this text and return all of it so far; fails when it ends without."""
        self._machine.pump(
            lambda: text in self.stdout or self.code is not None, timeout_s, f"{text!r} from {self.argv}"
        )
        if text not in self.stdout:
            raise LabError(f"{self.argv} ended with {self.code} and never wrote {text!r}: {self._said()}")
        return self.stdout

    def wait(self, timeout_s: float = RUN_TIMEOUT_S) -> Done:
        """Wait for its end; one that takes longer is killed and ``LabTimeout`` tells what it had written."""
        try:
            self._machine.pump(lambda: self.code is not None, timeout_s, f"the end of {self.argv}")
        except LabTimeout as late:
            self.signal(9, group=True)
            raise type(late)(f"{late}\nit had written: {self._said()}") from None
        assert self.code is not None
        return Done(
            self.argv, self.code, self.stdout.decode("utf-8", "replace"), self.stderr.decode("utf-8", "replace")
        )

    def _said(self) -> str:
        return (self.stdout + self.stderr).decode("utf-8", "replace")[-2000:]


class Machine:
    """One lab machine. Everything has a timeout; whatever happens, ``close`` (or the end of the test run) ends QEMU."""

    def __init__(self, options: Options, cache: Path) -> None:
        self.options = options
        self._cache = cache
        self.work = Path(tempfile.mkdtemp(prefix="jitter-lab-"))
        self._qemu: qemu.Qemu | None = None
        self._buffer = b""
        self._count = 0
        self._guests: dict[int, Guest] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self.release = ""

    @property
    def python(self) -> str:
        """The interpreter in the guest."""
        return self.options.python

    # --- power

    def boot(self, append: str | None = None) -> None:
        """Power on; with ``append`` with other kernel arguments from now on."""
        if append is not None:
            self.options = replace(self.options, append=append)
        try:
            small = self.options.init == "busybox" and self.options.hardware.cpus <= MOST_CPUS
            self._power_on(BOOT_PATIENCE_S if small else BOOT_TIMEOUT_S)
        except (LabTimeout, PowerLost) as late:
            # About one boot in a hundred hangs in the emulator before the kernel's first line, or runs into code that
            # another CPU is just changing; no test is about that.
            warnings.warn(f"the lab machine is started again: {late}", stacklevel=2)
            self._power_on(BOOT_TIMEOUT_S)

    def _power_on(self, timeout_s: float) -> None:
        self._off()
        self._guests.clear()
        self.release = ""
        self._buffer = b""
        self._qemu = qemu.launch(self.options, self.work, self._cache)
        self.pump(lambda: bool(self.release), timeout_s, "the guest to boot")

    def reboot(self, append: str | None = None) -> None:
        """Shut down in order (all synced, processes gone) and boot."""
        self.shut_down()
        self.boot(append)

    def shut_down(self, timeout_s: float = 60) -> None:
        """Sync, make the disk read-only, power off."""
        self.tell({"power": "off"})
        with contextlib.suppress(PowerLost):
            self.pump(lambda: False, timeout_s, "the guest to power off")

    def power_cut(self) -> None:
        """Take the power away now. What the guest had not synced to its disk is gone, what it had synced is there."""
        self._off()

    def close(self) -> None:
        self._off()
        shutil.rmtree(self.work, ignore_errors=True)

    def _off(self) -> None:
        if self._qemu is not None:
            self._qemu.kill()
            self._qemu = None

    def heat(self, celsius: int) -> None:
        """Set the thermal zone's temperature (1 to 255 °C); 0 lets it follow the P-states again. Polled each second."""
        self.monitor(f"o /b 0x2ff {celsius}")

    def monitor(self, command: str) -> str:
        """A command of QEMU's monitor, for example ``info registers``."""
        return self._running().monitor(command)

    @property
    def running(self) -> bool:
        return self._qemu is not None and self._qemu.process.poll() is None

    def console(self) -> str:
        """Return what the guest's kernel and QEMU said last."""
        return qemu.console(self.work)

    # --- programs and files

    def start(
        self, argv: Sequence[str], *, user: str = "root", cwd: str = PROJECT, env: dict[str, str] | None = None
    ) -> Guest:
        """Start a program in the guest, its stdin open. Use ``run`` where only its end matters."""
        ident = self._next()
        guest = self._guests[ident] = Guest(self, ident, argv)
        request = {"id": ident, "start": list(argv), "user": user, "cwd": cwd, "env": environment(user) | (env or {})}
        self.tell(request)
        self.pump(lambda: guest.pid > 0 or ident in self._answers, RUN_TIMEOUT_S, f"the start of {argv}")
        self._raise(ident)
        return guest

    def run(
        self,
        argv: Sequence[str],
        *,
        user: str = "root",
        stdin: bytes = b"",
        cwd: str = PROJECT,
        env: dict[str, str] | None = None,
        timeout_s: float = RUN_TIMEOUT_S,
        check: bool = False,
    ) -> Done:
        """Run a program in the guest to its end."""
        guest = self.start(argv, user=user, cwd=cwd, env=env)
        if stdin:
            guest.send(stdin)
        guest.close_stdin()
        done = guest.wait(timeout_s)
        if check and done.code != 0:
            raise LabError(f"{done.argv} ended with {done.code}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done

    def workshop(self, *arguments: str, user: str = "root", check: bool = False, **options: Any) -> Done:
        """``jitter-workshop ARGUMENTS`` in the guest."""
        return self.run([self.python, "-m", "jitter_workshop", *arguments], user=user, check=check, **options)

    def call(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a function in a fork inside the guest: self-contained (imports inside), arguments and result as JSON."""
        if named:
            raise TypeError("a function in the guest takes positional arguments only")
        source = textwrap.dedent(inspect.getsource(function))
        result: T = self.call_source(source, function.__name__, *arguments)
        return result

    def call_source(self, source: str, name: str, *arguments: Any, timeout_s: float = RUN_TIMEOUT_S) -> Any:
        """Do the same for a whole module's source, of which ``name`` is called; an OSError there is an OSError here.

        The guest ends a call after ``timeout_s`` by an alarm of its own: one that stays silent longer stands still.
        """
        ident = self._next()
        self.tell({"id": ident, "call": source, "name": name, "arguments": arguments, "seconds": timeout_s})
        try:
            self.pump(lambda: ident in self._answers, timeout_s + 10, f"{name}() in the guest")
        except LabTimeout as silent:
            raise LabStalled(str(silent)) from None
        return self._raise(ident)

    def read(self, path: str) -> str:
        """A file's text, stripped."""
        return self.call(_read, path)

    def write(self, path: str, text: str) -> None:
        """Write to a kernel file or another file, in one write(2)."""
        self.call(_write, path, text)

    def list_dir(self, path: str) -> list[str]:
        return self.call(_list_dir, path)

    def copy_out(self, source: str, target: Path) -> None:
        """Copy a tree of the guest to a folder of this host."""
        guest = self.start(["tar", "-C", source, "-cf", "-", "."])
        done = guest.wait()
        if done.code:
            raise LabError(f"{source} cannot be copied: {done.stderr}")
        with tarfile.open(fileobj=io.BytesIO(guest.stdout)) as archive:
            # The first releases of Python 3.11 have no filters yet; the archive is our own guest's.
            archive.extractall(target, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))

    # --- what must be as before

    def watched_tree(self) -> dict[str, str]:
        """All that the tool may write, by path (see ``watched``)."""
        tree: dict[str, str] = self.call_source(Path(watched.__file__).read_text(), "watched_tree")
        return tree

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[dict[str, str]]:
        """Fail when the watched tree at the end differs from that at the start."""
        before = self.watched_tree()
        yield before
        differences = watched.differences(before, self.watched_tree())
        assert not differences, "not as before:\n" + "\n".join(differences)

    # --- the line to the guest

    def tell(self, request: dict[str, Any]) -> None:
        try:
            self._running().control.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            self._off()
            raise PowerLost(f"the lab machine is off\n{self._console()}") from None

    def pump(self, until: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Take events from the guest until something is true."""
        ends = time.monotonic() + timeout_s
        control = self._running().control
        while not until():
            ready, _, _ = select.select([control], [], [], max(0.0, ends - time.monotonic()))
            if not ready:
                raise qemu.late(f"waited {timeout_s:.0f} s for {what}\n{self._console()}", self.work)
            try:
                data = control.recv(1 << 20)
            except ConnectionResetError:
                data = b""
            if not data:
                self._off()
                raise PowerLost(f"the lab machine went off while waiting for {what}\n{self._console()}")
            self._buffer += data
            *lines, self._buffer = self._buffer.split(b"\n")
            for line in lines:
                self._event(json.loads(line))

    def _event(self, event: dict[str, Any]) -> None:
        if "ready" in event:
            self.release = event["ready"]
        elif event.keys() & {"pid", "out", "err", "code"}:
            self._guests[event["id"]].event(event)
        else:
            self._answers[event["id"]] = event

    def _raise(self, ident: int) -> Any:
        """The answer to a request, or the guest's exception as ours."""
        answer = self._answers.pop(ident, {})
        if "os_error" in answer:
            number, message, file = answer["os_error"]
            raise OSError(number, message, file)
        if "traceback" in answer:
            raise LabError(f"in the guest:\n{answer['traceback']}")
        return answer.get("result")

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _running(self) -> qemu.Qemu:
        if self._qemu is None:
            raise PowerLost("the lab machine is off")
        return self._qemu

    def _console(self) -> str:
        return f"--- console of the {self.options.kernel} kernel ({self.options.append}):\n{self.console()}"


def environment(user: str) -> dict[str, str]:
    """Return what a program in the guest finds in its environment."""
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root" if user == "root" else f"/home/{user}",
        "USER": user,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }


def boot(options: Options, cache: Path) -> Machine:
    """A booted machine; one that fails to boot leaves nothing behind."""
    machine = Machine(options, cache)
    try:
        if options.disk is not None and not options.disk.exists():
            images.make_disk(options.disk)
        machine.boot()
    except BaseException:
        machine.close()
        raise
    return machine


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def _write(path: str, text: str) -> None:
    import os

    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(descriptor)


def _list_dir(path: str) -> list[str]:
    import os

    return sorted(os.listdir(path))
