"""A modelled machine on which plans are applied and given back as the agent does it, kills included.

The journals are lines of bytes in memory, written by the product's own ``encode_record`` and read by its own
``parse_journal``; a kill is an exception that nothing catches, after which nothing more is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import ApplyResult, Change, RestoreResult
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.applying import apply_changes
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.journal import Journal, encode_record, parse_journal
from jitter_workshop.tuning.planning import plan_changes
from jitter_workshop.tuning.restoring import restore_journals
from jitter_workshop.tuning.switched import isolated_by_others
from jitter_workshop.tuning.tunables.registry import parse_wanted
from tests.modelkernel import ModelKernel, Shape

BOOT = "0f5c1a52-3d77-4f0e-9a9e-6d2f2f7f1c11"


class Killed(BaseException):
    """The process is gone."""


class Lines:
    """One journal in memory: the Keeper of applying and the Recorder of restoring."""

    def __init__(self, world: World, ident: str) -> None:
        self.world, self.id, self.data = world, ident, b""

    def read(self) -> Journal:
        return parse_journal(self.id, self.data)

    def add(self, **record: Any) -> None:
        name = f"journal {record['record']}"
        self.world.step(name)
        self.data += encode_record(record)
        self.world.step(name)

    def intents(self, changes: Sequence[Change]) -> None:
        names = ("n", "tunable", "path", "kind", "before", "after", "when", "lease", "then")
        records = [{"record": "intent", "boot_id": BOOT} | {n: getattr(c, n) for n in names} for c in changes]
        self.world.step("journal intents")
        self.data += b"".join(map(encode_record, records))
        self.world.step("journal intents")

    def written(self, n: int, read_back: str | None) -> None:
        self.add(record="written", n=n, read_back=read_back)

    def refused(self, n: int, reason: str) -> None:
        self.add(record="refused", n=n, reason=reason)

    def undone(self, n: int, how: str) -> None:
        self.add(record="undone", n=n, how=how)

    def then(self, name: str) -> None:
        self.add(record="then", name=name)

    def owed(self, n: int, why: str) -> None:
        self.add(record="owed", n=n, why=why)

    def handed(self, n: int, before: str) -> None:
        self.add(record="before", n=n, before=before)


class World:
    """``kernel``: the machine. ``kill_at``: which step (two for each write and each line of a journal) ends the
    process, None for none; ``steps``: how many there were since the last start."""

    def __init__(self, top: Path, shape: Shape) -> None:
        self.kernel = ModelKernel(top, shape)
        self.root = HostRoot(top)
        self.journals: list[Lines] = []
        self.kill_at: int | None = None
        self.steps = 0
        self.kernel.step = self.step
        self.log: list[str] = []

    def step(self, name: str) -> None:
        self.log.append(name)
        if self.kill_at is not None and self.steps == self.kill_at:
            self.kill_at = None
            raise Killed(name)
        self.steps += 1

    def host(self, hot: str) -> Host:
        return Host(self.root, CpuSet.parse_list(hot) & CpuSet.of(self.kernel.online))

    def apply(self, words: Sequence[str], hot: str, kill_at: int | None = None) -> ApplyResult | None:
        """Plan and apply; None where it was killed."""
        host = self.host(hot)
        changes = plan_changes(host, parse_wanted(words)).changes
        lines = Lines(self, f"{len(self.journals) + 1:06d}-x")
        self.journals.append(lines)

        def run() -> ApplyResult:
            lines.add(record="header", format=1, id=lines.id, boot_id=BOOT, uid=0, time="t",
                      hot_cpus=list(host.hot.cpus), wanted=list(words),
                      isolated=list(isolated_by_others(self.root)))  # fmt: skip
            return apply_changes(self.root, self.kernel, changes, lines)

        return self._living(run, kill_at)

    def restore(
        self,
        only: Collection[str] = (),
        *,
        forget: bool = False,
        kill_at: int | None = None,
        among: Collection[str] | None = None,
    ) -> RestoreResult | None:
        """Give back, all or what the journals ``among`` stand for; None where it was killed."""
        opened = [(lines.read(), lines) for lines in self.journals]
        for journal, _ in opened:
            assert journal.problems == [], journal.problems
        return self._living(
            lambda: restore_journals(self.root, self.kernel, opened, BOOT, only, forget=forget, among=among), kill_at
        )

    def active(self) -> list[str]:
        """Paths that are still in a journal."""
        return [entry.path for lines in self.journals for entry in lines.read().active]

    def _living(self, run: Callable[[], Any], kill_at: int | None) -> Any:
        self.kill_at, self.steps = kill_at, 0
        try:
            return run()
        except Killed:
            return None
        finally:
            self.kill_at = None
