"""Send news of a watch: run a command for each freeze, and keep a file for node_exporter's textfile collector."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from jitter_workshop.errors import UsageError, reason
from jitter_workshop.flow.watching.tally import MOST_PARTS, without_times
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.text import NAME, clean, many
from jitter_workshop.model.watch import KeptStall, WatchReport
from jitter_workshop.report.formats.prometheus import render_watch
from jitter_workshop.session import files

LONGEST_S = 30.0
"""Seconds after which a command that was run for a stall is killed."""

Note = Callable[[str, str], None]
"""The type of a function that takes a note on a watch. Its arguments are the subject in one word, and a sentence."""


class FreezeCommand:
    """Run the user's command at each freeze, without a shell. It does not run on the watched CPU. The command gets a
    JSON object on standard input. Names of tasks are only in this object, never on the command line or in the
    environment. If the command of an earlier freeze is still running, a new freeze is only counted."""

    def __init__(self, line: str, note: Note = lambda about, sentence: None) -> None:
        """Split the command line ``line`` as a shell would. Raise UsageError if ``line`` is empty or cannot be split,
        or if the program that it names does not exist."""
        try:
            self._words = shlex.split(line)
        except ValueError as error:
            raise UsageError(f"--exec: {error}") from error
        if not self._words or shutil.which(self._words[0]) is None:
            raise UsageError(f"--exec: there is no program '{clean(self._words[0] if self._words else '', NAME)}'")
        self.note = note
        self._running: subprocess.Popen[bytes] | None = None
        self._ends = 0.0
        self._left_out = 0

    def stall(self, report: WatchReport, worst: KeptStall, count: int) -> None:
        if not self._over():
            self._left_out += 1
            freezes = many(self._left_out, "later freeze")
            self.note("exec", f"{freezes} did not start the command again, because it was still running")
            return
        plain = to_plain(without_times([worst])[0])
        parts = [{**part, "name": clean(part["name"], NAME)} for part in (plain["parts"] or [])[:MOST_PARTS]]
        told = {
            "format_version": report.format_version,
            "watch": report.id,
            "folder": report.folder,
            "stalls": count,
            "stalls_so_far": report.stalls,
            "watched_s": report.watched_s,
            "worst": {**plain, "parts": parts if plain["parts"] is not None else None},
        }
        try:
            self._running = subprocess.Popen(
                self._words,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            self.note("exec", f"the command could not be run: {reason(error)}")
            return
        self._ends = time.monotonic() + LONGEST_S
        other = {cpu for cpu in os.sched_getaffinity(0) if cpu != report.cpu}
        if other:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(self._running.pid, other)
        assert self._running.stdin is not None
        with contextlib.suppress(OSError), self._running.stdin as given:
            given.write(json.dumps(told).encode() + b"\n")

    def state(self, report: WatchReport) -> None:
        self._over()

    def close(self) -> None:
        """Wait for the last command, and kill it if it takes too long."""
        while not self._over():
            time.sleep(0.05)

    def _over(self) -> bool:
        """Return True if no command is running. Kill a command that has run for too long."""
        if self._running is None:
            return True
        code = self._running.poll()
        if code is None and time.monotonic() < self._ends:
            return False
        if code is None:
            with contextlib.suppress(OSError):
                os.killpg(self._running.pid, signal.SIGKILL)
            self._running.wait()
            self.note("exec", f"the command was killed after {LONGEST_S:.0f} s")
        elif code:
            self.note("exec", f"the command ended with {'signal' if code < 0 else 'code'} {abs(code)}")
        self._running = None
        return True


class Textfile:
    """Write a watch's figures to a file for node_exporter. A reader never sees an incomplete file."""

    def __init__(self, path: Path, note: Note = lambda about, sentence: None) -> None:
        """Check the file's path. Raise UsageError if no file can be made there."""
        if path.suffix != ".prom" or not path.parent.is_dir():
            raise UsageError("--textfile needs the name of a file that ends in .prom, in a folder that exists")
        self._path, self.note = path, note

    def stall(self, report: WatchReport, worst: KeptStall, count: int) -> None:
        self.state(report)

    def state(self, report: WatchReport) -> None:
        try:
            files.replace(self._path, render_watch(report).encode(), 0o644)
        except OSError as error:
            self.note("textfile", f"the textfile could not be written: {reason(error)}")

    def close(self) -> None:
        return None
