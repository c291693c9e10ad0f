"""Detect which by-hand commands of a chapter the learner has run. No file of the host is written."""

from __future__ import annotations

import time
from collections.abc import Callable

from jitter_workshop.bench import lock
from jitter_workshop.flow.attribution import checks_with_cpus, used_cpus
from jitter_workshop.flow.chapters.command_checks import CommandChecks, CommandFound
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.model.by_hand import HandCommand

_RATIO = 10
"""After each look at the host, the pause lasts at least this many times as long as the look."""


class HandCommands:
    """Detect which by-hand commands the learner has run during one visit of the step *explain*.

    A detected command stays done until the learner leaves the chapter, even if its program ends. A state that the host
    already had at the start of the visit does not count as done. During a run, the host is read only once, so that the
    reading does not disturb the run.

    - ``now``: returns the time of a clock in seconds.
    - ``measuring``: returns True during a run.
    """

    def __init__(
        self,
        walk: ChapterWalk,
        now: Callable[[], float] = time.monotonic,
        measuring: Callable[[], bool] = lock.run_in_progress,
    ) -> None:
        self._walk = walk
        self._now = now
        self._measuring = measuring
        self._checks: tuple[str, ...] | None = None
        self._host_checks = CommandChecks(walk.host.context.root, walk.chapter)
        self._found: dict[int, CommandFound] = {}
        self._resting = False
        self._not_before = 0.0

    @property
    def checks_any(self) -> bool:
        """Return True if a command of this chapter can be checked on this host."""
        return not self._walk.host.rehearsed and any(one.check for one in self._walk.chapter.by_hand)

    def listed(self) -> tuple[HandCommand, ...]:
        """Return the commands with the states that were found last. The host is not read."""
        walk, shown = self._walk, []
        for n, ((command, why), one) in enumerate(zip(walk.runs.commands_by_hand(), walk.chapter.by_hand, strict=True)):
            found = CommandFound("reads" if one.reads else "")
            if one.check and not walk.host.rehearsed:
                done = n in walk.commands_done
                found = CommandFound("done") if done else self._found.get(n, CommandFound("open"))
            shown.append(HandCommand(command, why, found.state, one.unchecked, found.what))
        return tuple(shown)

    def look(self) -> tuple[HandCommand, ...]:
        """Read the host, and return the commands with their states."""
        if self.checks_any and self._now() >= self._not_before and not self._in_a_run():
            began = self._now()
            if self._checks is None:
                run = explanation.run if (explanation := self._walk.runs.explain()) is not None else None
                host = self._walk.host
                known = host.values_by_hand(used_cpus(run) if run is not None else None)
                self._checks = checks_with_cpus(self._walk.chapter, host.hot(), run, known)
            done = self._walk.commands_done
            wanted = {n: check for n, check in enumerate(self._checks) if check and n not in done}
            seen = self._host_checks.look(list(wanted.values()))
            self._found = {n: seen[check] for n, check in wanted.items()}
            done |= {n for n, found in self._found.items() if found.state == "done"}
            # A host with very many processes is looked at less often.
            self._not_before = self._now() + _RATIO * (self._now() - began)
        return self.listed()

    def _in_a_run(self) -> bool:
        """Return True if the host was already read during the run in progress."""
        running, was = self._measuring(), self._resting
        self._resting = running
        return running and was
