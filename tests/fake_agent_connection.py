"""An agent session that never touches this host: it writes into a made tree, or it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jitter_workshop.agent.client import Rights, no_sudo
from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops.agent_connection import NOTHING, AgentConnection
from jitter_workshop.host.root import HostRoot, TextReading
from jitter_workshop.model.change import Applied, ApplyResult, Change, Refused, Restored, RestoreResult
from jitter_workshop.model.cpuset import CpuSet
from tests.agent_on_tree import FakeKernel, Steps

NO_RIGHTS = no_sudo()


class LiveTree(HostRoot):
    """A made tree that passes for the host that the workshop runs on."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._inside = HostRoot(root)
        self.recorded = False

    def list_dir(self, path: str) -> tuple[str, ...]:
        return self._inside.list_dir(path)

    def folders(self, path: str) -> tuple[str, ...]:
        return self._inside.folders(path)

    def is_dir(self, path: str) -> bool:
        return self._inside.is_dir(path)

    def writable(self, path: str) -> bool | None:
        return self._inside.writable(path)

    def _read(self, path: str, limit: int, *, whole: bool) -> TextReading:
        return self._inside._read(path, limit, whole=whole)

    def _bytes(self, path: str, limit: int, *, whole: bool) -> tuple[bytes | None, str]:
        return self._inside._bytes(path, limit, whole=whole)


class FakeAgentConnection(AgentConnection):
    """``tree``: where changes are written; None: there are no rights. ``refuse``: paths that the host refuses.
    ``calls``: what was asked, in order."""

    def __init__(self, tree: Path | None = None, refuse: Sequence[str] = (), needs_reboot: bool = False) -> None:
        super().__init__()
        self.tree = tree
        self.refuse = tuple(refuse)
        self.needs_reboot = needs_reboot
        self.calls: list[tuple[str, ...]] = []
        self.made: list[Change] = []
        self.fail: HostError | None = None
        self.ended = 0

    @property
    def rights(self) -> Rights:
        return "root" if self.tree is not None else "sudo"

    def apply(self, words: Sequence[str], cpus: CpuSet, shown: Sequence[Change]) -> ApplyResult:
        self.calls.append(("apply", *words))
        if self.tree is None:
            raise NO_RIGHTS
        if self.fail is not None:
            raise self.fail
        made = [change for change in shown if change.path not in self.refuse]
        for change in made:
            self._write(change.path, change.after)
        self.made += made
        if made:
            self._leased |= {word.partition("=")[0] for word in words}
        applied = tuple(Applied(c.n, c.tunable, c.path, c.before, c.after, c.after) for c in made)
        refused = tuple(Refused(c.tunable, c.path, "the kernel says EIO") for c in shown if c.path in self.refuse)
        result = ApplyResult("made-up" if made else None, applied, refused, self.needs_reboot, self.ended)
        self.change_log.applied(result)
        return result

    def restore(self, tunables: Sequence[str] = ()) -> RestoreResult:
        self.calls.append(("restore", *tunables))
        if self.fail is not None:
            raise self.fail
        self._leased -= set(tunables) or self._leased.copy()
        return self._restore(tunables)

    def keep(self) -> None:
        self.calls.append(("keep",))
        if self.fail is not None:
            raise self.fail
        self._leased.clear()
        self.change_log.kept()

    def keep_for_the_boot(self, words: Sequence[str], journal_id: str) -> None:
        assert journal_id == "made-up"
        self.calls.append(("keep", *words))
        self._leased -= {word.partition("=")[0] for word in words}
        self.change_log.kept({word.partition("=")[0] for word in words})

    def close(self) -> RestoreResult:
        self.calls.append(("close",))
        leased, self._leased = self._leased, set()
        if leased and self.fail is not None:
            self.trouble = self.fail.sentence()
        if not leased or self.fail is not None:
            return NOTHING
        return self._restore(())

    def _restore(self, tunables: Sequence[str]) -> RestoreResult:
        mine = [c for c in self.made if not tunables or c.tunable in tunables]
        self.made = [c for c in self.made if c not in mine]
        for change in reversed(mine):
            self._write(change.path, change.before)
        result = RestoreResult(tuple(Restored(c.tunable, c.path, c.after, c.before) for c in mine), (), False)
        self.change_log.restored(result)
        return result

    def _write(self, path: str, value: str) -> None:
        assert self.tree is not None
        FakeKernel(self.tree, Steps({}), {}).write(path, value)
