"""Test the apply step line by line while the learner types the writes into another terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jitter_workshop.model.change import Change
from jitter_workshop.plain import talk as talk_module
from jitter_workshop.plain.by_hand import PlainCommands
from jitter_workshop.plain.walkthrough import PlainWalk
from tests import madecourse, tuned_tree
from tests.agent_on_tree import FakeKernel, Steps
from tests.fakes import FakeWorkshop
from tests.livehost import give_agent, open_live
from tests.settings_screen import THP

INTERVAL = "/proc/sys/vm/stat_interval"
TO_APPLY = ("1", "", "", "", "")
"""Answers up to the plan at apply: look, no guess, measure, apply."""


@pytest.fixture
def live(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWorkshop]:
    workshop = open_live(tree, madecourse.write(tmp_path / "course"), monkeypatch)
    give_agent(workshop, tree, monkeypatch)
    yield workshop
    workshop.close()


@pytest.fixture
def made(tree: Path) -> dict[str, Change]:
    return {one.path: one for one in tuned_tree.planned(tree, ("thp=madvise", "stat-interval=10")).changes}


def typed(tree: Path, change: Change, value: str | None = None) -> Callable[[], None]:
    """Return what writes a value as the learner does in a shell."""
    return lambda: FakeKernel(tree, Steps({}), {}).write(change.path, change.after if value is None else value)


def told(workshop: FakeWorkshop, *answers: str | Callable[[], None]) -> str:
    """Return all that is said while these answers are given; what is no text is done before the next answer."""
    said: list[str] = []
    left = iter(answers)

    def read(prompt: str) -> str:
        said.append(f"{prompt}\n")
        for answer in left:
            if isinstance(answer, str):
                return answer
            answer()
        raise EOFError

    assert PlainWalk(workshop, read, said.append, 100).run(None) == 0
    return " ".join("".join(said).split())


def test_typed_writes_are_told_after_enter_and_adopted(live: FakeWorkshop, tree: Path, made: dict[str, Change]) -> None:
    before = tuned_tree.contents(tree)
    wrong, right, other = typed(tree, made[INTERVAL], "77"), typed(tree, made[INTERVAL]), typed(tree, made[THP])
    text = told(live, *TO_APPLY, "hand", "", wrong, "", right, "", other, "", "take", "", "q", "")
    assert "Enter apply 2 writes · hand = type the writes" in text
    watched = text.split("YOUR WRITES, WATCHED")[1]
    assert f"echo 10 > {INTERVAL}" in watched
    assert f"echo madvise > {THP}" in watched
    assert "Enter look again · take = take over" in watched
    assert "your writes · stop · restore" in watched
    looks = watched.split("> ✗")
    assert f"another value than planned: {INTERVAL}: the value is 77, but the plan has 10 (before: 1)" in looks[1]
    assert f"done: {INTERVAL}" in looks[1]
    assert "1 of 2 writes is made." in looks[1]
    assert f"done: {THP}" in looks[1]
    assert "All 2 writes are made." in looks[1]
    assert "read back: 2 settings, 2 writes." in text
    assert "Enter go on · restore" in text
    assert "Applying." not in text
    assert "To be measured: 'after pages'" in text
    assert "Restored: 2 settings, 2 writes" in text
    assert tuned_tree.contents(tree) == before


def test_a_value_that_is_not_in_the_plan_is_taken_over_when_asked_twice(
    live: FakeWorkshop, tree: Path, made: dict[str, Change]
) -> None:
    before = tuned_tree.contents(tree)
    text = told(live, *TO_APPLY, "hand", typed(tree, made[INTERVAL], "77"), "take", "take", "q", "")
    assert f"Not as planned: {INTERVAL}." in text
    assert "1 write, 2 not as planned." in text
    assert "Restored: 1 setting, 1 write (stat-interval)." in text
    assert tuned_tree.contents(tree) == before


def test_restore_and_stop_end_the_watch(live: FakeWorkshop, tree: Path, made: dict[str, Change]) -> None:
    before = tuned_tree.contents(tree)
    text = told(live, *TO_APPLY, "hand", typed(tree, made[THP]), "restore", "hand", "stop", "q")
    assert "Restored: 1 setting, 1 write (thp)." in text
    assert text.count("YOUR WRITES, WATCHED") == 2
    assert "No write of the plan was made" in text
    assert tuned_tree.contents(tree) == before
    assert tuned_tree.journals(tree) == []


def test_leaving_restores_typed_writes_that_were_not_adopted(
    live: FakeWorkshop, tree: Path, made: dict[str, Change]
) -> None:
    before = tuned_tree.contents(tree)
    text = told(live, *TO_APPLY, "hand", typed(tree, made[THP]), "q", "")
    assert "Restored: 1 setting, 1 write (thp)." in text
    assert tuned_tree.contents(tree) == before


def test_a_change_is_told_while_the_learner_types_nothing() -> None:
    """On a terminal the prompt waits a second at a time, and says what has changed."""
    said: list[str] = []
    talk = talk_module.Talk(write=said.append, width=60)
    assert not talk._looked()
    talk.idle = lambda: ["done: a file"]  # type: ignore[list-item, return-value]
    assert talk._looked()
    assert "done: a file" in "".join(said)


def test_three_commands_are_told_and_more_tells_the_others(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = madecourse.write(tmp_path / "course")
    lesson = course / "01-pages" / "lesson.toml"
    more = [f'\n[[by_hand]]\ncommand = "echo number{n}"\nwhy = "A line."\n' for n in range(4)]
    more[3] += 'check = "stat-interval=10"\n'
    lesson.write_text(lesson.read_text() + "".join(more))
    workshop = open_live(tree, course, monkeypatch)
    interval = tree / INTERVAL[1:]
    text = told(
        workshop, *TO_APPLY, "", "", "", "", "more", lambda: interval.write_text("10\n"), "more", "more", "q", ""
    )
    first, *rest = text.split("THE SAME BY HAND")[1:]
    assert "1–3 OF 5" in first
    assert "echo number1" in first
    assert "echo number2" not in first
    assert "4–5 OF 5" in rest[0]
    assert "$ echo number2" in rest[0]
    assert "echo number3" in rest[2]
    workshop.close()


def test_another_value_than_the_command_s_is_told(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = course / "01-pages" / "lesson.toml"
    reads = '[[by_hand]]\ncommand = "echo one"\nwhy = "A line."\ncheck = "stat-interval=10"\n'
    lesson.write_text(f"{lesson.read_text()}\n{reads}")
    workshop = open_live(tree, course, monkeypatch)
    monkeypatch.setattr("jitter_workshop.flow.chapters.commands._RATIO", 0)
    walk = workshop.walk("pages")
    commands = PlainCommands(walk, talk_module.Talk(read=lambda prompt: "", write=lambda line: None, width=80))
    assert commands.changed() == []
    (tree / INTERVAL[1:]).write_text("5\n")
    told = [line.plain for line in commands.changed()]
    assert told[0] == "✗ echo one"
    assert " ".join("".join(told[1:]).split()) == (
        f"Found: {INTERVAL} has the value '5', but the wanted value is '10'."
    )
    assert commands.changed() == [], "it is told once"
    (tree / INTERVAL[1:]).write_text("10\n")
    assert [line.plain for line in commands.changed()] == ["✓ echo one"]
    workshop.close()
