"""Control a booted machine: start programs in the guest, follow their output, send signals, reboot, set the
temperature."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from jitter_workshop.model.text import MESSAGE
from jitter_workshop.practice import images, qemu
from jitter_workshop.practice.qemu import MachineError, MachineOptions, MachineTimeout, PowerLost

BOOT_PATIENCE_S = 60.0
BOOT_TIMEOUT_S = 180.0
MOST_CPUS = 32
"""The largest number of CPUs with which a guest boots within BOOT_PATIENCE_S on two CPUs of this host."""
RUN_TIMEOUT_S = 120.0
_SEED_BYTES = 64


Sink = Callable[[bytes, bytes], None]
"""The type of a function that takes what a program wrote to stdout and to stderr."""


@dataclass(frozen=True)
class Done:
    """Hold a program that ended in the guest. ``code``: -N for signal N."""

    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """Return the program's stdout, parsed as JSON."""
        return json.loads(self.stdout)


class Guest:
    """Follow a program that runs in the guest (see ``Machine.start``)."""

    def __init__(self, machine: Machine, ident: int, argv: Sequence[str], sink: Sink | None = None) -> None:
        self._machine, self._ident, self._sink, self.argv = machine, ident, sink, tuple(argv)
        self.pid = 0
        self.stdout, self.stderr = b"", b""
        self.code: int | None = None
        self.untaken = 0

    def event(self, event: dict[str, Any]) -> None:
        """Handle a message from the guest's server. The message has the program's new output, the number of read input
        bytes, or the program's exit code."""
        self.pid = event.get("pid", self.pid)
        out, err = base64.b64decode(event.get("out", "")), base64.b64decode(event.get("err", ""))
        if self._sink is None:
            self.stdout += out
            self.stderr += err
        elif out or err:
            self._sink(out, err)
        self.untaken -= event.get("taken", 0)
        self.code = event.get("code", self.code)

    def send(self, data: bytes) -> None:
        """Send bytes to the program's stdin, which may be a terminal. Add their number to ``untaken``, the count of
        bytes that the program has not read yet."""
        self.untaken += len(data)
        self._machine.tell({"id": self._ident, "stdin": base64.b64encode(data).decode("ascii")})

    def close_stdin(self) -> None:
        self._machine.tell({"id": self._ident, "stdin": None})

    def resize(self, rows: int, columns: int) -> None:
        """Give the program's terminal another size."""
        self._machine.tell({"id": self._ident, "size": [rows, columns]})

    def signal(self, number: int, group: bool = False) -> None:
        """Send a signal to the program; with ``group``, to its whole process group."""
        self._machine.tell({"id": self._ident, "signal": number, "group": group})

    def wait_for(self, text: bytes, timeout_s: float = RUN_TIMEOUT_S) -> bytes:
        """Wait until the program's stdout holds this text, and return all of the stdout so far. Raise MachineError if
        the program ends without the text."""
        self._machine.pump(
            lambda: text in self.stdout or self.code is not None, timeout_s, f"{text!r} from {self.argv}"
        )
        if text not in self.stdout:
            raise MachineError(f"{self.argv} ended with {self.code} and never wrote {text!r}: {self._said()}")
        return self.stdout

    def wait(self, timeout_s: float = RUN_TIMEOUT_S) -> Done:
        """Wait for the end of the program. After ``timeout_s`` seconds, kill the program, and raise MachineTimeout with
        the program's output so far."""
        try:
            self._machine.pump(lambda: self.code is not None, timeout_s, f"the end of {self.argv}")
        except MachineTimeout as late:
            self.signal(9, group=True)
            raise type(late)(f"{late}\nthe output of the program until then: {self._said()}") from None
        assert self.code is not None
        return Done(
            self.argv, self.code, self.stdout.decode("utf-8", "replace"), self.stderr.decode("utf-8", "replace")
        )

    def _said(self) -> str:
        return (self.stdout + self.stderr).decode("utf-8", "replace")[-MESSAGE:]


class Machine:
    """Run one machine. Everything has a timeout; ``close``, or the end of this process, ends QEMU.

    ``work``: a folder for this machine alone. ``cwd``: the folder in which programs start."""

    def __init__(self, options: MachineOptions, cache: Path, work: Path, cwd: str = "/root") -> None:
        self.options = options
        self._cache = cache
        self.work, self.cwd = work, cwd
        self._qemu: qemu.Qemu | None = None
        self._buffer = b""
        self._count = 0
        self._guests: dict[int, Guest] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self.release = ""

    @property
    def python(self) -> str:
        """Return the path of the interpreter in the guest."""
        return self.options.python

    # --- power

    def boot(self, append: str | None = None) -> None:
        """Power on the machine, and wait until the guest has booted. ``append``: new kernel arguments, for this boot
        and later ones; None keeps the present ones."""
        if append is not None:
            self.options = replace(self.options, append=append)
        try:
            small = self.options.init == "busybox" and self.options.hardware.cpus <= MOST_CPUS
            self._power_on(BOOT_PATIENCE_S if small else BOOT_TIMEOUT_S)
        except (MachineTimeout, PowerLost) as late:
            # About one boot in a hundred hangs in the emulator before the kernel's first line, or runs into code that
            # another CPU is just changing.
            self.started_again(late)
            # KVM that answers a probe may still not run this machine.
            self.options = replace(self.options, accelerator="tcg")
            self._power_on(BOOT_TIMEOUT_S)

    def started_again(self, late: Exception) -> None:
        """Do nothing; a subclass can override this method to handle a failed first boot. The method is called after the
        first boot has failed, just before the second boot. ``late``: the error of the first boot."""

    def _power_on(self, timeout_s: float) -> None:
        self._off()
        self._forget()
        self._qemu = qemu.launch(self.options, self.work, self._cache)
        self.pump(lambda: bool(self.release), timeout_s, "the guest to boot")

    def _forget(self) -> None:
        """Discard all state that belongs to the guest's last boot, such as its programs."""
        self._guests.clear()
        self._answers.clear()
        self.release = ""
        self._buffer = b""

    def reboot(self, append: str | None = None) -> None:
        """Shut the guest down cleanly (all files synced, all processes ended), and boot it again."""
        self.shut_down()
        self.boot(append)

    def reset(self) -> None:
        """Reset the machine. Programs that run in the machine end as in a power cut."""
        self.boot()

    def shut_down(self, timeout_s: float = 60) -> None:
        """Sync, make the disk read-only, power off."""
        self.tell({"power": "off"})
        with contextlib.suppress(PowerLost):
            self.pump(lambda: False, timeout_s, "the guest to power off")

    def close(self) -> None:
        """End QEMU, if it runs."""
        self._off()

    def _off(self) -> None:
        if self._qemu is not None:
            self._qemu.kill()
            self._qemu = None

    def heat(self, celsius: int) -> None:
        """Set the temperature of the guest's thermal zone to ``celsius``, 1 to 255 °C. After the value 0, the
        temperature is not fixed any more, and depends on the P-states again. The guest reads the temperature once a
        second."""
        self.monitor(f"o /b 0x2ff {celsius}")

    def monitor(self, command: str) -> str:
        """Run a command of QEMU's monitor, for example ``info registers``."""
        return self._running().monitor(command)

    @property
    def running(self) -> bool:
        return self._qemu is not None and self._qemu.process.poll() is None

    def console(self) -> str:
        """Return the last lines of the guest's kernel and of QEMU."""
        return qemu.console(self.work)

    # --- programs and files

    def start(
        self,
        argv: Sequence[str],
        *,
        user: str = "root",
        cwd: str = "",
        env: dict[str, str] | None = None,
        terminal: tuple[int, int] | None = None,
        sink: Sink | None = None,
    ) -> Guest:
        """Start a program in the guest, its stdin open. Use ``run`` if only the end of the program matters.

        ``terminal``: the (rows, columns) of the program's terminal; None if it gets no terminal. ``sink``: a function
        that gets the output as soon as it comes. With a ``sink``, the output is not collected in ``stdout`` and
        ``stderr``.
        """
        ident = self._next()
        guest = self._guests[ident] = Guest(self, ident, argv, sink)
        own = guest_environment(user) | (env or {})
        request = {"id": ident, "start": list(argv), "user": user, "cwd": cwd or self.cwd, "env": own}
        if terminal is not None:
            request["terminal"] = list(terminal)
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
        cwd: str = "",
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
            raise MachineError(f"{done.argv} ended with {done.code}\n{done.stdout[-MESSAGE:]}{done.stderr[-MESSAGE:]}")
        return done

    def set_clock(self) -> None:
        """Set the guest's clock to this host's time. While the host is suspended, a guest's clock does not run."""
        self.tell({"id": self._next(), **woken(), "mounts": []})

    def ping(self) -> int:
        """Send a ping to the guest's server. Return the number of this ping, which :meth:`answered` needs."""
        ident = self._next()
        self.tell({"id": ident, "ping": True})
        return ident

    def answered(self, ident: int) -> bool:
        """Return True if the guest's server has answered the ping ``ident``. A second call for the same ping returns
        False."""
        return self._answers.pop(ident, None) is not None

    # --- the line to the guest

    def tell(self, request: dict[str, Any]) -> None:
        try:
            self._running().control.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            self._off()
            raise PowerLost(f"the machine is off\n{self._console()}") from None

    def request(self, words: dict[str, Any], timeout_s: float, what: str) -> Any:
        """Send a request to the guest's server, and return its answer. ``words``: the fields of the request. ``what``:
        words for the thing that this method waits for; the message of an error has these words. Raise MachineTimeout
        after ``timeout_s``. Raise OSError or MachineError if the request failed in the guest."""
        ident = self._next()
        self.tell({"id": ident, **words})
        self.pump(lambda: ident in self._answers, timeout_s, what)
        return self._raise(ident)

    def pump(self, until: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Handle messages from the guest until ``until()`` returns True. Raise MachineTimeout after ``timeout_s``.
        ``what``: the awaited thing, for the message of the error."""
        ends = time.monotonic() + timeout_s
        while not until():
            if not self.turn(max(0.0, ends - time.monotonic()), what=what):
                raise qemu.late(f"waited {timeout_s:.0f} s for {what}\n{self._console()}", self.work)

    def turn(self, timeout_s: float | None, others: Sequence[int] = (), what: str = "its next word") -> list[int]:
        """Wait until a message from the guest comes, or a descriptor of ``others`` can be read. Handle all messages
        that have come. Return those of ``others`` that can be read; [] after ``timeout_s`` seconds. Raise PowerLost if
        the machine has stopped. ``what``: the awaited thing, for the message of this error."""
        control = self._running().control
        ready, _, _ = select.select([control.fileno(), *others], [], [], timeout_s)
        if control.fileno() in ready:
            try:
                data = control.recv(1 << 20)
            except ConnectionResetError:
                data = b""
            if not data:
                self._off()
                why = qemu.panic(self.work)
                said = f"'s kernel panicked: {why}" if why else f" switched off while this tool waited for {what}"
                raise PowerLost(f"the machine{said}\n{self._console()}")
            self._buffer += data
            *lines, self._buffer = self._buffer.split(b"\n")
            for line in lines:
                self._event(json.loads(line))
        return ready

    def _event(self, event: dict[str, Any]) -> None:
        if "ready" in event:
            self.release = event["ready"]
        elif event.keys() & {"pid", "out", "err", "code", "taken"}:
            self._guests[event["id"]].event(event)
        else:
            self._answers[event["id"]] = event

    def _raise(self, ident: int) -> Any:
        """Return the answer to a request. If the request failed in the guest, raise the guest's OSError, or
        MachineError with the guest's traceback."""
        answer = self._answers.pop(ident, {})
        if "os_error" in answer:
            number, message, file = answer["os_error"]
            raise OSError(number, message, file)
        if "traceback" in answer:
            raise MachineError(f"in the guest:\n{answer['traceback']}")
        return answer.get("result")

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _running(self) -> qemu.Qemu:
        if self._qemu is None:
            raise PowerLost("the machine is off")
        return self._qemu

    def _console(self) -> str:
        return f"--- console of the {self.options.kernel} kernel ({self.options.append}):\n{self.console()}"


M = TypeVar("M", bound=Machine)


def woken() -> dict[str, Any]:
    """Return the fields of the request that sets a resumed guest's clock and random seed."""
    return {"wake": time.time_ns(), "seed": base64.b64encode(os.urandom(_SEED_BYTES)).decode("ascii")}


def guest_environment(user: str) -> dict[str, str]:
    """Return the environment variables of a program in the guest."""
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root" if user == "root" else f"/home/{user}",
        "USER": user,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }


def booted(machine: M) -> M:
    """Boot a machine, and return it. Before the boot, make the machine's disk if the file of the disk does not exist.
    Close the machine if the boot fails."""
    try:
        disk = machine.options.disk
        if disk is not None and not disk.exists():
            images.make_disk(disk)
        machine.boot()
    except BaseException:
        machine.close()
        raise
    return machine
