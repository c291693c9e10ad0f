"""Let a made workshop say that isolation is applied, with an agent that restores it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from jitter_workshop.model.change import Restored, RestoreResult
from tests.fake_agent_connection import FakeAgentConnection
from tests.fakes import FakeWorkshop

_RESTORED = Restored("isolation", "/sys/fs/cgroup/hot/cpuset.cpus.partition", "isolated", "member")


class RestoringAgent(FakeAgentConnection):
    """Restore isolation once. ``standing``: the tunables that are applied now."""

    def __init__(self, *standing: str) -> None:
        super().__init__()
        self.standing = list(standing)

    def restore(self, tunables: Sequence[str] = ()) -> RestoreResult:
        self.calls.append(("restore", *tunables))
        self.standing = [one for one in self.standing if one not in tunables]
        return RestoreResult((_RESTORED,), (), False)


def isolate(workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch) -> RestoringAgent:
    """Let the governor and isolation be applied on the made host, and return the agent that restores them."""
    agent = workshop.context.agent_connection = RestoringAgent("governor", "isolation")
    monkeypatch.setattr(workshop.context, "standing", lambda: tuple({"id": one} for one in agent.standing))
    return agent
