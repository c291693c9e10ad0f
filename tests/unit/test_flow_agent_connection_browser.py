"""Test root's rights in a browser: only the agent of a class host gives them, and no password is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop import paths
from jitter_workshop.agent.client import NeedsPassword, asks_password
from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.model.cpuset import CpuSet

CLASS = 'name = "Latency"\nhot_cpus = "1"\n'
ASKING: list[Callable[[AgentConnection], object]] = [
    lambda used: used.plan(("thp",), CpuSet.of([1])),
    lambda used: used.apply(("thp",), CpuSet.of([1]), ()),
    lambda used: used.tracer(),
    lambda used: used.place(1),
]


class Asked:
    """In the place of what starts an agent."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, ask: bool = True, purpose: object = None) -> None:
        self.times += 1
        assert not ask
        raise asks_password()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    made = Asked()
    monkeypatch.setattr(connection_module, "connect_to_agent", made)
    monkeypatch.setattr(connection_module, "rights", lambda: "root")
    return made


def in_browser() -> AgentConnection:
    def never(_: object) -> None:
        pytest.fail("somebody was asked for a password")

    used = AgentConnection(ask=never)  # type: ignore[arg-type]
    used.class_only = True
    return used


@pytest.mark.parametrize("do", ASKING)
def test_outside_a_class_no_agent_is_started_not_even_as_root(
    do: Callable[[AgentConnection], object], asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "CLASS_FILE", str(tmp_path / "class.toml"))
    used = in_browser()
    assert used.rights == "none"
    with pytest.raises(HostError, match="browser") as refused:
        do(used)
    assert "in a terminal" in refused.value.advice
    assert asked.times == 0


@pytest.mark.parametrize("do", ASKING)
def test_on_a_class_host_its_agent_is_asked_and_no_password(
    do: Callable[[AgentConnection], object], asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "class.toml").write_text(CLASS)
    monkeypatch.setattr(paths, "CLASS_FILE", str(tmp_path / "class.toml"))
    used = in_browser()
    assert used.rights == "root"
    with pytest.raises(NeedsPassword):
        do(used)
    assert asked.times == 1


def test_a_class_file_that_makes_no_sense_is_no_class(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "class.toml").write_text("hot_cpus = ")
    monkeypatch.setattr(paths, "CLASS_FILE", str(tmp_path / "class.toml"))
    assert in_browser().rights == "none"


@pytest.mark.parametrize("served", ["0", "1"])
async def test_a_workshop_in_a_browser_has_such_a_connection(served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("textual_serve", reason="the extra 'serve' is not installed")
    from jitter_workshop.flow.chapters.workshop import Workshop
    from jitter_workshop.tui.app import WorkshopApp
    from jitter_workshop.tui.terminal.terminal_restore import SERVED

    monkeypatch.setenv(SERVED, served)
    workshop = Workshop.open(None)
    try:
        async with WorkshopApp(workshop).run_test():
            assert workshop.context.agent_connection.class_only == (served == "1")
    finally:
        workshop.close()
