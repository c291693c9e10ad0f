"""Apply and restore the change of a proof.

The agent applies a change of settings before each run with the change, and restores it right after. The agent makes
only writes that the user has seen in the plan. A change of placement needs no work in this module, because ``meters``
places the threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import ApplyResult, Change, LeftAlone
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import LABEL, LINE, SENTENCE, clean, fell_away, many
from jitter_workshop.tuning.planning import digest
from jitter_workshop.tuning.setting_types.kinds import kind_of

SideName = Literal["without", "with"]

PLAN_AGAIN = "ask for the plan again"
NOT_SHOWN = ("this plan is not the one that was shown", PLAN_AGAIN)
"""The error, with its advice, if a series is started with a plan that the user has not seen."""
SET_BY_OTHERS = "the setting was restored, and another program or user has changed it since"


class Sides:
    """Apply and restore the change of a proof. In this class the change is a placement of threads, so all methods do
    nothing. The subclass :class:`TunableSides` changes settings.

    - ``standing``: True if a setting may still be applied and must be restored.
    - ``ids``: the tunables of the change.
    """

    standing = False
    ids: frozenset[str] = frozenset()

    def begin(self) -> None:
        """Restore the change if it is already applied. Then apply and restore the change once, as a test. Raise
        HostError if this test fails."""

    def apply(self) -> None:
        """Apply the change. Raise HostError if the change was applied only in part; that part then stays in effect."""

    def drifted(self) -> str:
        """Return a sentence about a setting that no longer has the value that was applied. Return "" if there is no
        such setting."""
        return ""

    def restore(self) -> tuple[LeftAlone, ...]:
        """Restore the change. Return the settings that could not be restored. Raise HostError if the agent cannot be
        reached.
        """
        return ()

    def strange(self) -> tuple[LeftAlone, ...]:
        """Return the settings whose values differ from the values before the proof. Call this method while the change
        is not applied.
        """
        return ()

    def notes(self) -> tuple[str, ...]:
        """Return notes on how the change was applied, for the report of the proof."""
        return ()


@dataclass
class TunableSides(Sides):
    """Apply and restore a change of settings.

    - ``words``: the settings, as ``ID`` or ``ID=VALUE``.
    - ``hot``: the hot CPUs that the plan was made for.
    - ``changes``: the planned writes that the user has seen.
    """

    agent_connection: AgentConnection
    words: tuple[str, ...]
    hot: CpuSet
    changes: tuple[Change, ...]
    root: HostRoot

    def __post_init__(self) -> None:
        self.ids = frozenset(word.partition("=")[0] for word in self.words)
        self._made: dict[str, tuple[str, str]] = {}
        self._notes: dict[str, None] = {}
        self._ended = self._left_out = 0

    def begin(self) -> None:
        self.standing = bool(self.ids & self.agent_connection.leased)
        self._must_be_back(self.restore())
        fresh = self.agent_connection.plan(self.words, self.hot)
        other = _other_plan(self.changes, fresh.changes)
        if other:
            raise HostError(f"the writes are no longer those that were shown: {other}", PLAN_AGAIN)
        # Apply and restore the change once before the first run. So an error shows before anything is measured, and the
        # agent and its heartbeat run during all runs, without and with the change.
        self.apply()
        drifted = self.drifted()
        self._must_be_back(self.restore())
        if drifted:
            raise HostError(drifted, "another program changes this setting, too: stop that program first")

    def apply(self) -> None:
        self.standing = True
        result = self.agent_connection.apply(self.words, self.hot, self.changes)
        if result.refused:
            first = result.refused[0]
            where = f" ({clean(first.path, LINE)})" if first.path else ""
            raise HostError(f"{first.tunable} was applied only in part: {clean(first.reason, SENTENCE)}{where}")
        made = {one.path for one in result.applied}
        missing = [c for c in self.changes if c.path not in made and not kind_of(c.kind).of_task]
        if missing:
            where = clean(missing[0].path, LINE)
            raise HostError(f"another program or user has already set {where} to the value to prove", PLAN_AGAIN)
        self._remember(result)
        if any(kind_of(change.kind).of_task for change in self.changes):
            # The other writes are for tasks that began after the plan was shown: the user has not agreed to them.
            rest = self.agent_connection.plan(self.words, self.hot).changes
            self._left_out = max(self._left_out, sum(kind_of(change.kind).of_task for change in rest))

    def drifted(self) -> str:
        for path, (name, said) in self._made.items():
            kind = kind_of(name)
            if kind.fleeting or kind.of_task:
                continue
            found = kind.read(self.root, path).text
            if found is not None and not kind.same(found, said):
                return f"{clean(path, LINE)} did not keep its value: it is '{clean(found, LABEL)}' now"
        return ""

    def restore(self) -> tuple[LeftAlone, ...]:
        if not self.standing:
            return ()
        result = self.agent_connection.restore(sorted(self.ids))
        self._made = {}
        self.standing = False
        return tuple(left for left in result.left_alone if left.tunable in self.ids)

    def strange(self) -> tuple[LeftAlone, ...]:
        first: dict[str, Change] = {}
        for change in self.changes:
            first.setdefault(change.path, change)
        found = []
        for change in first.values():
            kind = kind_of(change.kind)
            if kind.fleeting or kind.of_task:
                continue
            says = kind.read(self.root, change.path).text
            if says is not None and not kind.same(says, change.before):
                found.append(LeftAlone(change.tunable, change.path, change.before, says, SET_BY_OTHERS))
        return tuple(found)

    def notes(self) -> tuple[str, ...]:
        tasks = []
        if self._ended:
            tasks.append(f"in each round, at most {fell_away(self._ended)[:-1]}")
        if self._left_out:
            them = "this task" if self._left_out == 1 else "these tasks"
            tasks.append(
                f"up to {many(self._left_out, 'task')} began after the plan was shown, so no write moved {them}"
            )
        return (*self._notes, *tasks)

    def _must_be_back(self, left: Sequence[LeftAlone]) -> None:
        if left:
            where = f" ({clean(left[0].path, LINE)})"
            raise HostError(
                f"{left[0].tunable} cannot be restored: {clean(left[0].reason, SENTENCE)}{where}",
                "'jitter-workshop restore --list' shows the changes that are still in place",
            )

    def _remember(self, result: ApplyResult) -> None:
        kinds = {change.path: change.kind for change in self.changes}
        self._made = {
            one.path: (kinds[one.path], one.read_back)
            for one in result.applied
            if one.path in kinds and one.read_back is not None
        }
        last = {change.path: change.after for change in self.changes}
        odd = [path for path, (kind, said) in self._made.items() if not kind_of(kind).same(said, last[path])]
        if odd:
            self._notes[f"the host has a value other than the written one: {clean(odd[0], LINE)}"] = None
        self._ended = max(self._ended, result.ended)


def _other_plan(shown: Sequence[Change], fresh: Sequence[Change]) -> str:
    """Return the path of the first write that differs between two plans. Return "" if all writes of the two plans are
    equal. Writes to tasks are ignored, because tasks start and end all the time."""
    both = [{digest(c): c.path for c in plan if not kind_of(c.kind).of_task} for plan in (shown, fresh)]
    odd = both[0].keys() ^ both[1].keys()
    return next((clean(path, LINE) for plan in both for key, path in plan.items() if key in odd), "")
