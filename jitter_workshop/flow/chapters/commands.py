"""Look at the host for the by-hand commands of a chapter: which of them the learner has run. This only reads."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator

from jitter_workshop.errors import UsageError
from jitter_workshop.flow.attribution import checks_with_cpus
from jitter_workshop.flow.chapters.walk import ChapterSession
from jitter_workshop.flow.host_ops.settings import look_at_settings
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.listing import Task, each_process, read_allowed_cpus
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.hands import CommandState, HandCommand

_LINE_BYTES = 4_096


class HandCommands:
    """Check the commands of one visit of the step *explain*. What was done once stays done, because a program ends.

    A process counts only if it did not fit a check already when the visit began."""

    def __init__(self, walk: ChapterSession) -> None:
        self._walk = walk
        self._done: set[int] = set()
        self._before: dict[str, set[tuple[int, int]]] = {}

    @property
    def checks_any(self) -> bool:
        """Return True if a command of this chapter can be checked on this host."""
        return not self._walk.host.rehearsed and any(one.check for one in self._walk.chapter.by_hand)

    def listed(self) -> tuple[HandCommand, ...]:
        """Return the commands as they were seen last; nothing is read."""
        walk, shown = self._walk, []
        for n, ((command, why), one) in enumerate(zip(walk.by_hand(), walk.chapter.by_hand, strict=True)):
            state: CommandState = "reads" if one.reads else ""
            if one.check and not walk.host.rehearsed:
                state = "done" if n in self._done else "open"
            shown.append(HandCommand(command, why, state))
        return tuple(shown)

    def look(self) -> tuple[HandCommand, ...]:
        """Look at the host, and return the commands with their states."""
        if self.checks_any:
            run = explanation.run if (explanation := self._walk.explain()) is not None else None
            checks = checks_with_cpus(self._walk.chapter, self._walk.hot(), run)
            self._done |= {n for n, check in enumerate(checks) if check and n not in self._done and self._met(check)}
        return self.listed()

    def _met(self, check: str) -> bool:
        root = self._walk.host.machine()[0]
        form, colon, what = check.partition(":")
        if not colon:
            return self._settled(check)
        found = set(_fitting(root, form, what))
        return bool(found - self._before.setdefault(check, found))

    def _settled(self, word: str) -> bool:
        """Return True if a tunable, as ``ID`` or ``ID=VALUE``, has nothing to improve, or that value."""
        host = self._walk.host
        asked = _only(host.chapter, word)
        try:
            return look_at_settings(host.context.root, asked).settled().get(word.partition("=")[0], False)
        except UsageError:
            return False


def _only(chapter: Chapter, word: str) -> Chapter:
    """Return the chapter with one tunable alone."""
    return dataclasses.replace(chapter, tunables=(word,), reboot=False)


def _fitting(root: HostRoot, form: str, what: str) -> Iterator[tuple[int, int]]:
    """Yield pid and start of each process of a user that fits a check: its affinity is exactly a list of CPUs
    (``affinity``), or its command line has some words (``running``)."""
    for task in each_process(root):
        if not task.kernel and task.pid != os.getpid() and _fits(root, task, form, what):
            yield task.pid, task.start_ticks


def _fits(root: HostRoot, task: Task, form: str, what: str) -> bool:
    line = (root.raw(f"{task.folder}/cmdline", _LINE_BYTES) or b"").replace(b"\0", b" ")
    if form == "running":
        return what.encode() in line
    try:
        wanted = CpuSet.parse_list(what)
    except ValueError:
        return False  # a host that shows no hot CPU
    ours = b"jitter_workshop" in line  # a measurement binds its own threads
    return bool(wanted) and not ours and read_allowed_cpus(root, task) == wanted
