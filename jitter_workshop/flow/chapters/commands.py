"""Detect which by-hand commands of a chapter the learner has run. No file of the host is written."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Collection, Mapping

from jitter_workshop.bench import lock
from jitter_workshop.errors import UsageError
from jitter_workshop.flow.attribution import checks_with_cpus
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.host_ops.settings import look_at_settings
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.listing import Task, each_process, read_allowed_cpus
from jitter_workshop.model.by_hand import CommandState, HandCommand
from jitter_workshop.model.cpuset import CpuSet

_LINE_BYTES = 4_096
_RATIO = 10
"""After each look at the host, the pause lasts at least this many times as long as the look."""


class HandCommands:
    """Detect which by-hand commands the learner has run during one visit of the step *explain*.

    A detected command stays done, even if its program ends. A program that already ran at the start of the visit does
    not count. During a run, the host is read only once, so that the reading does not disturb the run.

    - ``now``: returns the time of a clock in seconds.
    - ``measuring``: returns True during a run.
    """

    def __init__(
        self,
        walk: ChapterWalk,
        now: Callable[[], float] = time.monotonic,
        measuring: Callable[[], bool] = lock.measuring,
    ) -> None:
        self._walk = walk
        self._now = now
        self._measuring = measuring
        self._checks: tuple[str, ...] | None = None
        self._before: dict[str, set[tuple[int, int]]] = {}
        self._there: set[str] = set()
        self._resting = False
        self._not_before = 0.0
        self.done: frozenset[int] = frozenset()
        """The indices of the commands that were seen as done."""

    @property
    def checks_any(self) -> bool:
        """Return True if a command of this chapter can be checked on this host."""
        return not self._walk.host.rehearsed and any(one.check for one in self._walk.chapter.by_hand)

    def listed(self) -> tuple[HandCommand, ...]:
        """Return the commands with the states that were found last. The host is not read."""
        walk, shown = self._walk, []
        for n, ((command, why), one) in enumerate(zip(walk.runs.commands_by_hand(), walk.chapter.by_hand, strict=True)):
            state: CommandState = "reads" if one.reads else ""
            if one.check and not walk.host.rehearsed:
                state = "done" if n in self.done else "open"
            shown.append(HandCommand(command, why, state, one.unchecked))
        return tuple(shown)

    def look(self) -> tuple[HandCommand, ...]:
        """Read the host, and return the commands with their states."""
        if self.checks_any and self._now() >= self._not_before and not self._in_a_run():
            began = self._now()
            if self._checks is None:
                run = explanation.run if (explanation := self._walk.runs.explain()) is not None else None
                walk = self._walk
                self._checks = checks_with_cpus(walk.chapter, walk.host.hot(), run, walk.host.housekeeping())
            self.done |= self._met({n: c for n, c in enumerate(self._checks) if c and n not in self.done})
            # A host with very many processes is looked at less often.
            self._not_before = self._now() + _RATIO * (self._now() - began)
        return self.listed()

    def _in_a_run(self) -> bool:
        """Return True if the host was already read during the run in progress."""
        running, was = self._measuring(), self._resting
        self._resting = running
        return running and was

    def _met(self, checks: Mapping[int, str]) -> set[int]:
        """Return the indices of the checks that the host meets now."""
        wanted = {check for check in checks.values() if check.startswith(("affinity:", "running:"))}
        found: dict[str, set[tuple[int, int]]] = {check: set() for check in wanted}
        root = self._walk.host.context.root
        for task in each_process(root) if wanted else ():
            if not task.kernel and task.pid != os.getpid():
                for check in _fitting(root, task, wanted):
                    found[check].add((task.pid, task.start_ticks))
        new = {check for check, tasks in found.items() if tasks - self._before.setdefault(check, tasks)}
        return {n for n, check in checks.items() if check in new or (check not in wanted and self._stands(check))}

    def _stands(self, check: str) -> bool:
        """Return True if the host meets the check of a by-hand command.

        - ``ID`` or ``ID=VALUE``: the tunable has its wanted value (:meth:`_settled`).
        - ``file:PATH``: the file or folder exists.
        - ``holds:PATH=LINE``: the file has this line. If the check has several lines, the file has each of them.
        - ``gone:PATH``: the file or folder existed earlier in this visit, and does not exist now.
        """
        form, colon, what = check.partition(":")
        if not colon:
            return self._settled(check)
        root = self._walk.host.context.root
        path, _, wanted = what.partition("=") if form == "holds" else (what, "", "")
        if form == "holds":
            return {one.strip() for one in wanted.splitlines()} <= {
                one.strip() for one in (root.text(path) or "").splitlines()
            }
        exists = root.is_dir(path) or root.head(path, 1) is not None
        if form == "gone":
            self._there |= {path} if exists else set()
            return not exists and path in self._there
        return form == "file" and exists

    def _settled(self, word: str) -> bool:
        """Return True if a tunable has its wanted value. ``word``: ``ID=VALUE``, or ``ID`` alone to accept each value
        that needs no improvement."""
        host = self._walk.host
        asked = dataclasses.replace(host.chapter, tunables=(word,), reboot=False)
        try:
            return look_at_settings(host.context.root, asked).settled().get(word.partition("=")[0], False)
        except UsageError:
            return False


def _fitting(root: HostRoot, task: Task, checks: Collection[str]) -> set[str]:
    """Return the checks that a process meets. An ``affinity`` check is met if the process may use exactly the CPUs of
    the check. A ``running`` check is met if the command line of the process has the words of the check.
    """
    line = (root.raw(f"{task.folder}/cmdline", _LINE_BYTES) or b"").replace(b"\0", b" ")
    running = {one for one in checks if one.startswith("running:") and one.partition(":")[2].encode() in line}
    bound = {one: cpus for one in checks if one.startswith("affinity:") and (cpus := _listed(one.partition(":")[2]))}
    if not bound or b"jitter_workshop" in line:  # a measurement binds its own threads
        return running
    allowed = read_allowed_cpus(root, task)
    return running | {one for one, cpus in bound.items() if cpus == allowed}


def _listed(text: str) -> CpuSet:
    """Return the CPUs in a list such as ``2-3,8``.

    If the host has no hot CPU, a command has a word in capitals and no list. Return no CPUs for such a word.
    """
    return CpuSet.if_list(text) or CpuSet()
