"""A terminal in the lab machine: a program on a pty of the guest, with its bytes relayed to the test."""

from __future__ import annotations

from tests.lab.machine import RUN_TIMEOUT_S, Machine

_RELAY = """
import fcntl, os, pty, select, struct, sys, termios
columns, rows = int(sys.argv[1]), int(sys.argv[2])
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[3], sys.argv[3:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
while True:
    ready, _, _ = select.select([terminal, 0], [], [])
    if 0 in ready:
        os.write(terminal, os.read(0, 65536))
    if terminal in ready:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the program has ended
            break
        os.write(1, data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


class Console:
    """A line-by-line program that asks with ``prompt``, as a learner at a terminal has it."""

    def __init__(
        self,
        machine: Machine,
        argv: list[str],
        env: dict[str, str],
        prompt: str = " > ",
        columns: int = 80,
        rows: int = 24,
    ) -> None:
        relay = [machine.python, "-I", "-S", "-c", _RELAY, str(columns), str(rows), *argv]
        self._guest = machine.start(relay, env={"TERM": "xterm-256color", **env})
        self._machine = machine
        self._prompt = prompt.encode()
        self._read = 0

    @property
    def code(self) -> int | None:
        """The exit code, None while it runs."""
        return self._guest.code

    def answer(self, line: str, timeout_s: float = RUN_TIMEOUT_S) -> str:
        """Type a line and return what comes until the next prompt, or the end, without the echo's line."""
        self._guest.send(line.encode() + b"\n")
        return self.heard(timeout_s, after=b"\n").partition("\n")[2]

    def heard(self, timeout_s: float = RUN_TIMEOUT_S, after: bytes = b"") -> str:
        """Return what has come since the last look, once it ends with a prompt or with the program."""

        def asked() -> bool:
            new = self._guest.stdout[self._read :]
            return self.code is not None or (after in new and new.endswith(self._prompt))

        self._machine.pump(asked, timeout_s, f"a prompt; so far: {self._guest.stdout[-500:]!r}")
        new, self._read = self._guest.stdout[self._read :], len(self._guest.stdout)
        return new.decode("utf-8", "replace").replace("\r", "")
