"""Test the words about writes that a learner makes by hand: done, missing, wrong, and who restores them."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.by_hand import ByHandView, HandLine, HandState, HandWrite
from jitter_workshop.model.change import Change
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.session import ChapterProgress, HandWork
from jitter_workshop.model.walk import ApplyView
from jitter_workshop.presenter.host import changes
from jitter_workshop.presenter.host.by_hand import (
    by_hand_sentence,
    by_hand_step_lines,
    changed,
    guarded,
    still_made,
    was_it_you,
)

STATES: tuple[HandState, ...] = ("done", "missing", "wrong", "gone", "hidden")


def one(n: int, state: HandState, found: str | None = "1") -> HandWrite:
    change = Change(n, "some", f"/proc/sys/vm/setting_{n}", "1", "10", "runtime", "low", "")
    return HandWrite(change, state, found, "not permitted" if state == "hidden" else "", f"echo 10 > {change.path}")


def of(*writes: HandWrite) -> ByHandView:
    return ByHandView(writes, lines=tuple(HandLine(one.command, (one,)) for one in writes))


def view(*states: HandState) -> ByHandView:
    return of(*(one(n, state) for n, state in enumerate(states, 1)))


def tasks(*states: HandState) -> ByHandView:
    """A view of one line that moves a task for each state."""
    writes = tuple(one(n, state) for n, state in enumerate(states, 1))
    return ByHandView(writes, lines=(HandLine("for task in 1 2 3; do echo $task > /sets/rest/tasks; done", writes),))


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (view("missing", "missing"), "0 of 2 writes are made."),
        (view("done", "missing"), "1 of 2 writes is made."),
        (view("done", "wrong", "gone"), "1 of 2 writes is made, 1 has another value than planned."),
        (view("missing", "hidden"), "0 of 2 writes are made, 1 cannot be read."),
        (view("done", "gone"), "The write is made."),
        (view("gone", "gone"), "All tasks have ended: nothing is left to do."),
        (view("done"), "The write is made."),
        (view("missing"), "The write is not made yet: missing."),
        (view("wrong"), "The write is not made yet: another value than planned."),
        (dataclasses.replace(view("done", "done"), back=True), "All 2 writes are restored."),
    ],
)
def test_how_far_the_learner_is(seen: ByHandView, told: str) -> None:
    assert by_hand_sentence(seen) == told


def test_the_page_tells_how_each_write_by_hand_is_restored() -> None:
    assert "root's journal" in guarded(view("done"))
    assert "can restore this setting only after you accept the value" in guarded(view("done", "wrong"))
    asked = was_it_you(view("done", "wrong", "wrong"), "Enter")
    assert "setting_2, " in asked
    assert "Enter once more" in asked
    alone = dataclasses.replace(view("done"), journalled=False, why_not="sudo is not installed")
    assert "cannot restore your writes (sudo is not installed)" in guarded(alone)
    assert guarded(dataclasses.replace(alone, back=True)) == ""


def test_only_changed_lines_are_told_again() -> None:
    before = of(one(1, "missing"), one(2, "missing"), one(3, "wrong", "7"))
    now = of(one(1, "done", "10"), one(2, "missing"), one(3, "wrong", "8"))
    first, *rest = [line.plain for line in changed(before, now, 120)]
    assert first.startswith("✓")
    assert "setting_1" in first
    assert "the value is 8, but the plan has 10" in " ".join(rest)
    assert "setting_2" not in " ".join(rest)
    assert changed(now, now, 120) == []


@pytest.mark.parametrize(
    ("states", "sign", "told"),
    [
        (("missing", "done", "gone"), "▸", "1 of 3 tasks moved, 1 ended"),
        (("done", "wrong", "missing"), "✗", "1 of 3 tasks moved, 1 in another set"),
        (("done", "done", "gone"), "✓", "2 of 3 tasks moved, 1 ended"),
        (("gone", "gone", "gone"), "–", "0 of 3 tasks moved, 3 ended"),
    ],
)
def test_the_moves_of_many_tasks_are_one_line(states: tuple[HandState, ...], sign: str, told: str) -> None:
    seen = tasks(*states)
    text = [line.plain for line in by_hand_step_lines(seen, 100)]
    assert sum("for task in" in line for line in text) == 1
    assert any(line.startswith(f" {sign}") for line in text)
    assert told in "\n".join(text)
    assert told in "\n".join(line.plain for line in changed(of(), seen, 100))
    # A task that has ended is not one that was moved.
    assert by_hand_sentence(tasks("gone", "missing")) == "The write is not made yet: missing."


@given(st.lists(st.sampled_from(STATES), min_size=1, max_size=8), st.integers(40, 160))
def test_every_write_has_its_line_and_the_next_one_an_arrow(states: list[HandState], width: int) -> None:
    seen = view(*states)
    lines = [line.plain for line in by_hand_step_lines(seen, width)]
    assert max(map(len, lines)) <= width
    for write in seen.writes:
        assert write.command.split("> ")[1][-12:] in "".join(line.strip().rstrip("\\").rstrip() for line in lines)
    first = next((state for state in states if state in ("missing", "wrong")), None)
    assert sum(line.startswith(" ▸") for line in lines) == (first == "missing")


def test_a_value_of_the_host_cannot_reach_the_terminal() -> None:
    seen = of(dataclasses.replace(one(1, "wrong", "7\x1b[31m"), command="echo \x1b[2J > /tmp/x"))
    assert "\x1b" not in "\n".join(line.plain for line in by_hand_step_lines(seen, 80))
    assert "\x1b" not in "\n".join(line.plain for line in changed(of(), seen, 80))


def test_writes_by_hand_come_back_from_the_sessions_file() -> None:
    kept = ChapterProgress(by_hand=HandWork((one(1, "done").change,), "a-boot"))
    assert from_plain(ChapterProgress, to_plain(kept)) == kept
    plain = to_plain(ChapterProgress())
    del plain["by_hand"]
    assert from_plain(ChapterProgress, plain).by_hand is None


def test_writes_that_only_the_learner_can_restore_are_named_on_leaving() -> None:
    assert still_made(()) == ""
    assert still_made(("Memory",)).endswith("In 'Memory', restore shows the commands.")


def test_a_write_that_was_never_typed_is_not_called_refused() -> None:
    rest = (("/proc/sys/vm/stat_interval", "not made yet"),)
    for by_hand, title in ((True, "NOT MADE AS PLANNED"), (False, "REFUSED")):
        made = ApplyView(1, rest, False, False, "Made.", by_hand=by_hand)
        lines = [line.plain for line in changes.applied_step_lines(made, (), 80)]
        assert title in lines
        assert ("REFUSED" in lines) != by_hand
