"""Writes by hand in a chapter: only what the journal knows may be typed, and older values are never forgotten."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from jitter_workshop.agent.client import AgentClient, no_sudo
from jitter_workshop.errors import HostError
from jitter_workshop.flow.chapters.by_hand import owed_by_hand
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.model.change import Change
from tests import livehost, madecourse, tuned_tree
from tests.agent_on_tree import FakeKernel, Steps
from tests.fakes import FakeWorkshop
from tests.settings_screen import THP

INTERVAL = "/proc/sys/vm/stat_interval"


@pytest.fixture
def live(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWorkshop]:
    workshop = livehost.open_live(tree, madecourse.write(tmp_path / "course"), monkeypatch)
    livehost.give_agent(workshop, tree, monkeypatch)
    yield workshop
    workshop.close()


@pytest.fixture
def walk(live: FakeWorkshop) -> ChapterWalk:
    return live.walk("pages")


@pytest.fixture
def alone(live: FakeWorkshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """No agent can be started."""

    def refuse(ask: bool = True, purpose: object = None) -> AgentClient:
        raise no_sudo()

    monkeypatch.setattr(connection_module, "connect_to_agent", refuse)


def typed(tree: Path, change: Change, value: str | None = None) -> None:
    FakeKernel(tree, Steps({}), {}).write(change.path, change.after if value is None else value)


def states(walk: ChapterWalk) -> dict[str, str]:
    return {one.change.path: one.state for one in walk.by_hand.look().writes}


def test_a_setting_that_changed_since_the_plan_was_shown_is_not_watched(walk: ChapterWalk, tree: Path) -> None:
    shown = walk.plan()
    (tree / INTERVAL[1:]).write_text("5\n")
    seen = walk.by_hand.begin(shown)
    assert [one.change.path for one in seen.writes] == [THP]
    assert [one for one in seen.left_out if INTERVAL in one]


def test_only_writes_in_the_journal_may_be_typed(
    walk: ChapterWalk, monkeypatch: pytest.MonkeyPatch, live: FakeWorkshop
) -> None:
    """The agent leaves out a task whose mask has changed, and says nothing of it."""
    shown = walk.plan()
    announce = live.context.agent_connection.announce
    kept = [one for one in shown.changes if one.path == THP]
    monkeypatch.setattr(
        live.context.agent_connection,
        "announce",
        lambda words, cpus, changes: dataclasses.replace(announce(words, cpus, kept), refused=()),
    )
    assert [one.change.path for one in walk.by_hand.begin(shown).writes] == [THP]


def test_an_agent_that_died_ends_the_watch_and_nothing_is_stuck(
    walk: ChapterWalk, live: FakeWorkshop, tree: Path
) -> None:
    shown = walk.plan()
    walk.by_hand.begin(shown)
    typed(tree, shown.changes[0])
    agent = live.context.agent_connection._agent
    assert agent is not None
    agent._link._process.kill()
    agent._link._process.wait()
    with pytest.raises(HostError):
        walk.adopt()
    assert not walk.by_hand.opened
    # The journal alone gives back what was typed.
    back = walk.restore()
    assert [one.path for one in back.restored] == [shown.changes[0].path]


@pytest.mark.usefixtures("alone")
def test_the_oldest_values_are_kept_over_a_second_watch(walk: ChapterWalk, tree: Path) -> None:
    before, shown = tuned_tree.contents(tree), walk.plan()
    view = walk.by_hand.begin(shown)
    assert not view.journalled
    first = next(one for one in shown.changes if one.path == INTERVAL)
    typed(tree, first)
    assert walk.adopt().applied == 1
    again = walk.plan()
    assert [one.path for one in again.changes] == [THP]
    walk.by_hand.begin(again)
    typed(tree, again.changes[0])
    walk.adopt()
    assert walk.by_hand.owed
    lines = {one.command for one in walk.by_hand.begin_restore().writes}
    assert lines == {f"echo 1 > {INTERVAL}", f"echo always > {THP}"}
    for one in walk.by_hand.look().writes:
        typed(tree, one.change)
    assert walk.by_hand.look().complete
    walk.by_hand.close()
    assert not walk.by_hand.owed
    assert tuned_tree.contents(tree) == before


@pytest.mark.usefixtures("alone")
def test_a_reboot_has_restored_the_writes_that_the_session_kept(
    walk: ChapterWalk, tree: Path, live: FakeWorkshop
) -> None:
    shown = walk.plan()
    walk.by_hand.begin(shown)
    walk.by_hand.close()
    assert not walk.by_hand.owed  # nothing was typed
    walk.by_hand.begin(shown)
    typed(tree, shown.changes[0])
    walk.by_hand.close()
    assert walk.by_hand.owed
    assert owed_by_hand(live.context, live.course) == (walk.chapter.title,)
    (tree / "proc/sys/kernel/random/boot_id").write_text("another\n")
    assert not walk.by_hand.owed
    assert owed_by_hand(live.context, live.course) == ()
    with pytest.raises(HostError):
        walk.by_hand.begin_restore()


def test_an_empty_plan_is_not_for_the_hand(walk: ChapterWalk) -> None:
    assert walk.by_hand.why_not(walk.plan()) == ""
    assert "nothing to write" in walk.by_hand.why_not(dataclasses.replace(walk.plan(), changes=()))
