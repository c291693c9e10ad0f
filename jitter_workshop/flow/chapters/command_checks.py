"""Compare the host with the checks of a chapter's by-hand commands. No file of the host is written."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Mapping

from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.flow.host_ops.settings import look_at_settings, planned
from jitter_workshop.host.root import HostRoot, is_count
from jitter_workshop.host.tasks.listing import Task, each_process, read_allowed_cpus, read_user_ids
from jitter_workshop.model.by_hand import CommandState
from jitter_workshop.model.change import Change
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import LABEL, LINE, clean
from jitter_workshop.tuning import by_hand

_LINE_BYTES = 4_096
_FILE_BYTES = 65_536
_SHELLS = ("bash", "sh", "zsh", "fish", "dash", "ksh", "mksh", "ash", "tcsh", "csh", "nu")
"""Names of shells. A learner types a command that binds the shell itself."""

_Known = tuple[int, int]
"""A process: its id and its start time in clock ticks since boot."""
_Lines = tuple[str, ...]
"""The lines of a file, without white space around them."""


@dataclass(frozen=True, slots=True)
class CommandFound:
    """Hold the state of one by-hand command. ``what``: a text on a wrong value that was found; "" in every other
    state."""

    state: CommandState
    what: str = ""


class CommandChecks:
    """Compare one host with the checks of by-hand commands, from the first look on.

    A state is decided as for the writes at the step *apply* (``tuning.by_hand.state_by_hand``): by the present value,
    the value at the first look and the wanted value. ``chapter``: the chapter of the commands.
    """

    def __init__(self, root: HostRoot, chapter: Chapter) -> None:
        self._root, self._chapter = root, chapter
        self._already: dict[str, bool] = {}
        self._there: set[str] = set()
        self._lines: dict[str, _Lines] = {}
        self._plans: dict[str, tuple[Change, ...]] = {}
        self._looked = False
        self._running: dict[str, set[_Known]] = {}
        self._cpus: dict[_Known, CpuSet] = {}

    def look(self, checks: Collection[str]) -> dict[str, CommandFound]:
        """Read the host and return check → its state. The first look at a check sets the value to compare with.

        - ``ID`` or ``ID=VALUE``: the tunable has its wanted value. Without VALUE, each value that needs no improvement
          is wanted.
        - ``file:PATH``: the file or folder exists.
        - ``holds:PATH=LINE``: the file has this line. If the check has several lines, the file has each of them.
        - ``gone:PATH``: the file or folder existed at an earlier look, and does not exist now.
        - ``affinity:CPUS``: since the first look, a process was bound to exactly these CPUs.
        - ``running:WORDS``: since the first look, a process with these words in its command line was started.
        """
        found = self._of_processes([one for one in checks if one.startswith(("affinity:", "running:"))])
        return found | {one: self._of_host(one) for one in checks if one not in found}

    def _of_host(self, check: str) -> CommandFound:
        """Return the state of a check of a tunable or a file."""
        form, colon, what = check.partition(":")
        if form == "gone":
            exists = self._exists(what)
            self._there |= {what} if exists else set()
            return CommandFound("done" if not exists and what in self._there else "open")
        if not colon:
            found = self._of_tunable(check)
        elif form == "holds":
            found = self._of_lines(check, *what.split("=", 1))
        else:
            found = CommandFound("done" if form == "file" and self._exists(what) else "open")
        # A check was done already only if each look since the first has found it done.
        already = self._already[check] = self._already.get(check, True) and found.state == "done"
        return CommandFound("already") if already else found

    def _exists(self, path: str) -> bool:
        return self._root.is_dir(path) or self._root.head(path, 1) is not None

    def _of_lines(self, check: str, path: str, wanted: str) -> CommandFound:
        """Return the state of a file that must have the lines ``wanted``. An empty or missing file counts as
        unchanged."""
        after = _lines(wanted)
        present = _lines(self._root.text(path, _FILE_BYTES) or "")
        before = self._lines.setdefault(check, present)
        missing = [line for line in after if line not in present]
        if not missing:
            return CommandFound("done")
        if not present or by_hand.state_by_hand(present, before, after) != "wrong":
            return CommandFound("open")
        has = f"has the line '{clean(present[0], LABEL)}'" if len(present) == 1 else f"has {len(present)} lines"
        return CommandFound("wrong", f"{path} {has}, but not the line '{clean(missing[0], LINE)}'")

    def _of_tunable(self, word: str) -> CommandFound:
        """Return the state of a tunable. ``word``: ``ID`` or ``ID=VALUE``."""
        asked = dataclasses.replace(self._chapter, tunables=(word,), reboot=False)
        try:
            seen = look_at_settings(self._root, asked)
            if seen.settled().get(word.partition("=")[0], False):
                return CommandFound("done")
            if word not in self._plans:
                changes = planned(seen, asked.tunables).changes
                self._plans[word] = tuple(one for one in changes if not by_hand.why_not_by_hand(one))
        except (HostError, UsageError):
            return CommandFound("open")
        wrong = [one for one in by_hand.states_of_writes(self._root, self._plans[word]) if one.state == "wrong"]
        if not wrong:
            return CommandFound("open")
        first = wrong[0]
        value, after = (clean(text or "", LABEL) for text in (first.found, first.change.after))
        return CommandFound("wrong", f"{first.change.path} has the value '{value}', but the wanted value is '{after}'")

    def _of_processes(self, checks: Collection[str]) -> dict[str, CommandFound]:
        """Return the state of each check of processes. A process that met a check at the first look does not count."""
        found = dict.fromkeys(checks, CommandFound("open"))
        bound = {check: cpus for check in checks if (cpus := _bound(check))}
        running = {check: check.partition(":")[2].encode() for check in checks if check.startswith("running:")}
        met: dict[str, set[_Known]] = {check: set() for check in running}
        first, narrowed = bool(checks) and not self._looked, set[Task]()
        self._looked = self._looked or bool(checks)
        for task in each_process(self._root) if checks else ():
            if task.kernel or task.pid == os.getpid():
                continue
            line = (self._root.raw(f"{task.folder}/cmdline", _LINE_BYTES) or b"").replace(b"\0", b" ")
            for check, words in running.items():
                met[check] |= {(task.pid, task.start_ticks)} if words in line else set()
            if bound and b"jitter_workshop" not in line:  # a measurement binds its own threads
                self._compare_cpus(task, bound, found, narrowed, first=first)
        if len(narrowed) > 1:
            # Not a command of the learner's, but something that binds every shell, such as an isolation.
            found = {check: CommandFound("open") if one.state == "wrong" else one for check, one in found.items()}
        new = {check for check, known in met.items() if known - self._running.setdefault(check, known)}
        return found | dict.fromkeys(new, CommandFound("done"))

    def _compare_cpus(
        self,
        task: Task,
        checks: Mapping[str, CpuSet],
        found: dict[str, CommandFound],
        narrowed: set[Task],
        *,
        first: bool,
    ) -> None:
        """Store in ``found`` the state of each check of an affinity, if this process decides it. ``first``: True at the
        first look. A process that begins later may be bound from its start. Only a shell of the learner's can have a
        wrong affinity: it has fewer CPUs than when it was first seen. Such a shell is added to ``narrowed``."""
        present = read_allowed_cpus(self._root, task)
        if present is None:
            return
        known = task.pid, task.start_ticks
        before = self._cpus.get(known)
        if before is None:
            self._cpus[known] = present
            before = present if first else CpuSet()
        for check, wanted in checks.items():
            if before == wanted:
                continue
            state = by_hand.state_by_hand(present, before, wanted)
            fewer = bool(present) and present & before == present
            if state == "done":
                found[check] = CommandFound("done")
            elif state == "wrong" and fewer and task.name in _SHELLS and self._is_learners(task):
                narrowed.add(task)
                if found[check].state != "open":
                    continue
                what = f"the shell {task.pid} is bound to {present.named}, and not to {wanted.named}"
                found[check] = CommandFound("wrong", what)

    def _is_learners(self, task: Task) -> bool:
        """Return True if the real user id of a task can be that of the learner's shells."""
        real = read_user_ids(self._root, task.folder)[:1]
        return bool(real) and real[0] in _learner()


def _lines(text: str) -> _Lines:
    return tuple(line for one in text.splitlines() if (line := one.strip()))


def _learner() -> set[int]:
    """Return the user ids that the learner's shells can have: this process's, and with sudo that of its caller."""
    caller = os.environ.get("SUDO_UID", "") if os.getuid() == 0 else ""
    return {os.getuid(), *([int(caller)] if is_count(caller) else [])}


def _bound(check: str) -> CpuSet:
    """Return the CPUs of a check ``affinity:CPUS``, and no CPUs for any other check. If the host has no hot CPU, the
    check has a word in capitals and no CPUs."""
    form, _, text = check.partition(":")
    return (CpuSet.if_list(text) if form == "affinity" else None) or CpuSet()
