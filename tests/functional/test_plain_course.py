"""Whole courses line by line: on a recording by Enter alone, and on a made host with a real agent that writes there."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.commands import workshop as command
from jitter_workshop.errors import HostError
from jitter_workshop.flow.workshop import Workshop
from jitter_workshop.host.packed import unpacked
from jitter_workshop.model.change import ApplyResult
from jitter_workshop.tui.plain import PlainWalk
from tests import hosttrees, livehost, madecourse, tuned_tree
from tests.fakehands import FakeHands
from tests.fakes import FakeWorkshop, open_workshop
from tests.talking import talk

RECORDINGS = Path(__file__).parents[2] / "assets" / "recordings"
THP = "sys/kernel/mm/transparent_hugepage/enabled"
INTERVAL = "proc/sys/vm/stat_interval"
BOOT_ID = "proc/sys/kernel/random/boot_id"
ENTERS = "|" * 400
APPLIED = "1||||||"
"""Chapter 1 of the path and Enter until its plan is applied: look, no guess, measure, on, plan, apply."""


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded lab machine as it was installed."""
    return unpacked(RECORDINGS / "lab-stock.tar.xz", tmp_path_factory.mktemp("recordings"))


@pytest.fixture
def course(tmp_path: Path) -> Path:
    return madecourse.write(tmp_path / "course")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tuned_tree.make(tmp_path / "tree")


@pytest.fixture
def live(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWorkshop]:
    """The workshop on a made host, whose hands are the real ones with a real agent behind them."""
    workshop = livehost.open_live(tree, course, monkeypatch)
    livehost.give_agent(workshop, tree, monkeypatch)
    yield workshop
    workshop.close()


def pages(said: str, width: int) -> list[str]:
    """What each step showed: from the line below the loop to the next prompt."""
    return [part.split(" > \n")[0] for part in said.split("─" * min(width - 1, 100) + "\n")[1:]]


def contents(root: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file() and not p.is_symlink()}


def in_a_line(said: str) -> str:
    return " ".join(said.split())


# -- on a recording ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 80])
def test_the_whole_built_in_course_by_enter_alone(stock: Path, width: int) -> None:
    before = contents(stock)
    workshop = open_workshop(stock)
    said = talk(workshop, ENTERS, width=width)
    chapters = workshop.course.chapters
    assert len(chapters) >= 3
    for chapter, entry in zip(chapters, workshop.path(), strict=True):
        assert (entry.chapter_id, entry.done, entry.here) == (chapter.id, True, False)
        assert (entry.setting or False, entry.curve) == (False, False)
        assert f"'{chapter.title}' is done, on a recording." in in_a_line(said)
        for sentence in chapter.learnt:
            assert in_a_line(sentence) in in_a_line(said)
    shown = pages(said, width)
    assert len(shown) == sum(len(chapter.steps) for chapter in chapters)
    assert [page for page in shown if not page.startswith("ON A RECORDING")] == []
    assert said.count("Nothing is measured here.") == sum(len(chapter.measurements) for chapter in chapters)
    # Nothing was refused on the way, measured, applied or written.
    assert [line for line in said.split("\n") if line.startswith("!")] == []
    assert "Measuring." not in said
    assert workshop.measured == 0
    assert workshop.runs() == ()
    hands = workshop.hands
    assert isinstance(hands, FakeHands)
    assert hands.calls == [("close",)]
    assert contents(stock) == before
    # Only commands, which are there to be copied, are as wide as they are.
    commands = {f"    {command}" for chapter in chapters for command, _ in workshop.walk(chapter.id).by_hand()}
    assert [line for line in said.split("\n") if len(line) > width and line not in commands] == []
    assert all(line.isprintable() for line in said.split("\n"))


def test_a_course_of_ones_own_from_start_to_end(stock: Path, course: Path) -> None:
    before = contents(stock)
    workshop = open_workshop(stock, course=course)
    said = talk(workshop, "||a" + ENTERS)
    shown = pages(said, 80)
    assert [title.split(":")[0] for title in re.findall(r"^.*: .*▸LOOK.*$", said, re.M)] == [
        "Pages",
        "Reading only",
        "The clock",
    ]
    assert len(shown) == 8 + 3 + 8
    assert all(page.startswith("ON A RECORDING, because --root names one. Nothing is measured") for page in shown)
    look, predict, measure, plan, apply, again, compare, explain = shown[:8]
    assert "Here something can be better." in look
    assert "can be better: 1 → 60" in in_a_line(look) or "can be better" in look
    assert "  a  The counters of the memory management" in predict
    assert "✓ You said: The counters of the memory management. That is right." in in_a_line(said)
    assert "vmstat_update folds them, on each CPU." in said
    for step, label in ((measure, "before pages"), (again, "after pages")):
        assert f"Nothing is measured here. On a host that can do this chapter it is: '{label}', ring, quick." in (
            in_a_line(step)
        )
    assert f"/{THP}" in plan
    assert "A recorded host: nothing is written." in in_a_line(plan)
    assert "The plan is the one above" in apply
    assert "The settings on the recordings lab-stock and, afterwards, lab-tuned:" in in_a_line(compare)
    assert re.search(r"✓ .*→", compare)
    assert "grep -H . /proc/sys/vm/stat_interval # CPUS" in explain
    # The chapter whose guess only a run could judge says what its answers stand for.
    assert "What the answers stand for: - up to 1 ms: That is the height of interrupts." in in_a_line(shown[-2])
    assert all(entry.done for entry in workshop.path())
    assert "Every chapter that this host can do is done." in said
    assert workshop.runs() == ()
    assert contents(stock) == before


def test_what_would_measure_apply_or_undo_says_that_it_is_a_recording(stock: Path, course: Path) -> None:
    workshop = open_workshop(stock, course=course)
    said = in_a_line(talk(workshop, "undo|again|1|m|undo|3|m|5|undo|cpus 1,2|w|q"))
    assert said.count("! a recorded host: nothing was applied, so nothing is given back; leave out --root.") == 3
    assert said.count("Nothing is measured in this chapter: a recorded host can be looked at, not measured.") == 2
    assert "Nothing of this session's is missing on this host." in said
    assert "! this chapter leaves the placement alone." in said
    hands = workshop.hands
    assert isinstance(hands, FakeHands)
    assert hands.calls == [("close",)]


def test_a_guess_in_time_is_set_beside_its_answer(stock: Path, course: Path) -> None:
    said = in_a_line(talk(open_workshop(stock, course=course), "3||20 ms|7|q"))
    assert "On a recording no run decides this" in said
    assert "- longer (your guess): That is the height of slices." in said
    assert "- up to 1 ms: That is" in said


def test_what_this_host_lacks_is_taught_on_the_chapters_recording(
    tmp_path: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = hosttrees.small(tmp_path / "bare", 4)
    before = contents(bare)
    workshop = livehost.open_live(bare, course, monkeypatch)
    said = talk(workshop, ENTERS)
    reading, rest = pages(said, 80)[:3], pages(said, 80)[3:]
    assert [page for page in reading if "RECORDING" in page] == []
    assert len(rest) == 16
    assert [page for page in rest if not page.startswith("ON A RECORDING (lab-stock): ")] == []
    assert "NOT ON THIS HOST, BUT ON A RECORDING" in said
    assert "Here is nothing to set." in said
    assert "✓ CPU governor: schedutil → performance" in said
    assert all(entry.done for entry in workshop.path())
    assert workshop.measured == 0
    assert contents(bare) == before


# -- here, with an agent ----------------------------------------------------------------------------------------------


def test_a_chapter_is_applied_measured_and_given_back_on_leaving(live: FakeWorkshop, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    said = talk(live, "1||b|||||||||q|")
    flat = in_a_line(said)
    assert "✗" not in said.split("measure")[0]
    assert "Enter apply · ? help · q quit >" in said
    assert "Applying." in said
    assert re.search(r"\d+ settings made and read back: the host now says what was wanted\.", flat)
    assert "Type undo to give them back earlier." in said
    assert "To be measured: 'after pages', ring, quick." in flat
    assert live.measured == 2
    assert "'Pages' is done (setting verified, curve measured)." in flat
    assert "APPLIED NOW: thp=madvise, stat-interval=10. It is given back when you leave, unless you keep it." in flat
    assert "What this workshop applied still stands. Enter gives it back · keep leaves it as it is >" in flat
    assert re.search(r"Given back: \d+ settings \((thp, stat-interval|stat-interval, thp)\)\.", flat)
    assert tuned_tree.contents(tree) == before
    assert (tree / tuned_tree.STATE).is_dir()


def test_the_end_of_the_input_gives_back(live: FakeWorkshop, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    said = talk(live, APPLIED)
    assert "made and read back" in said
    assert "Given back: " in said
    assert "still stands" not in said
    assert tuned_tree.contents(tree) == before


def test_keeping_leaves_it_and_says_how_it_is_given_back(live: FakeWorkshop, tree: Path) -> None:
    said = talk(live, APPLIED + "|q|perhaps|keep")
    assert "'perhaps' is neither." in said
    assert "Given back" not in said
    assert "Still applied: thp=madvise, stat-interval=10. 'jitter-workshop restore' gives it back." in in_a_line(said)
    assert "[madvise]" in (tree / THP).read_text()
    live.close()
    assert "[madvise]" in (tree / THP).read_text()
    assert [one["id"] for one in live.standing()] == ["thp", "stat-interval"]


@pytest.mark.parametrize("leaves", [KeyboardInterrupt, SystemExit])
def test_what_is_given_back_after_a_signal_is_told(
    live: FakeWorkshop,
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    leaves: type[BaseException],
) -> None:
    before = tuned_tree.contents(tree)
    answers = iter(APPLIED.split("|"))

    def typed() -> str:
        try:
            return next(answers)
        except StopIteration:
            assert tuned_tree.contents(tree) != before
            raise leaves from None

    monkeypatch.setattr("builtins.input", typed)
    monkeypatch.setattr(command, "_is_terminal", lambda stream: True)
    monkeypatch.setattr(Workshop, "open", lambda *given: live)
    given = argparse.Namespace(session=None, course=None, root=Path("/"), plain=True, chapter=None)
    with pytest.raises(leaves):
        command.run(given)
    assert re.search(r" > \nGiven back: 2 settings \(.*\)\.\n$", capsys.readouterr().out)
    assert tuned_tree.contents(tree) == before


def test_undo_in_the_chapter_and_on_the_path(live: FakeWorkshop, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    said = talk(live, APPLIED + "|b|undo|undo||p|undo|undo|q")
    flat = in_a_line(said)
    assert "Enter apply · undo · ? help" in flat
    assert flat.count("Given back: ") == 2
    assert "Nothing of this chapter's is applied." in flat
    assert flat.count("settings made and read back") == 2
    assert "Nothing of this host is changed by this tool." in flat
    assert "still stands" not in flat
    assert tuned_tree.contents(tree) == before
    assert live.session.stack == ()


def test_what_the_host_refuses_is_told(live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    livehost.give_agent(live, tree, monkeypatch, f"refuse=/{THP}")
    said = in_a_line(talk(live, APPLIED + "|q|"))
    assert re.search(rf"! Refused: /{THP}: .*(EIO|Input/output error)", said)
    assert "1 refused: something is still to improve: see 'look'." in said
    assert "Given back: 1 setting (stat-interval)." in said


def test_what_somebody_else_changed_meanwhile_is_left_alone_and_told(live: FakeWorkshop, tree: Path) -> None:
    talked: list[str] = []

    def read(prompt: str) -> str:
        talked.append(prompt)
        if "keep leaves" in prompt:
            (tree / INTERVAL).write_text("7\n")
            return ""
        return (APPLIED + "|q").split("|")[len(talked) - 1]

    said: list[str] = []
    assert PlainWalk(live, read, said.append, 80).run() == 0
    flat = in_a_line("".join(said))
    assert re.search(rf"! Left alone: /{INTERVAL}: .* \(it says 7\)", flat)
    assert "Given back: " in flat
    assert "Still applied: stat-interval=10." in flat
    assert (tree / INTERVAL).read_text() == "7\n"


def test_a_session_applies_again_what_it_had_applied(
    live: FakeWorkshop, tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tuned_tree.contents(tree)
    talk(live, APPLIED + "|q|")
    live.close()
    later = livehost.open_live(tree, course, monkeypatch)
    livehost.give_agent(later, tree, monkeypatch)
    said = in_a_line(talk(later, "again|n|again||again|q|"))
    assert "APPLIED BEFORE, and not any more: thp=madvise, stat-interval=10. Type again to see it as one plan." in said
    assert said.count(f"/{THP}") == 2
    assert "Nothing was written." in said
    assert said.count("made and read back. They are given back when you leave.") == 1
    assert "APPLIED NOW: thp=madvise, stat-interval=10. It is given back when you leave" in said
    assert "Nothing of this session's is missing on this host." in said
    assert "Given back: " in said
    later.close()
    assert tuned_tree.contents(tree) == before


def test_a_death_of_the_agent_is_a_sentence(live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    livehost.give_agent(live, tree, monkeypatch, "kill=0")
    said = in_a_line(talk(live, APPLIED + "|q"))
    assert "! the agent ended with signal 9" in said
    assert "Enter measure" in said.rpartition("The plan as a script")[2]


# -- here, without rights, and after a reboot -------------------------------------------------------------------------


def test_without_rights_there_is_a_script_and_the_chapter_goes_on(
    tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tuned_tree.contents(tree)
    workshop = livehost.open_live(tree, course, monkeypatch)
    workshop._desk.hands = FakeHands()
    said = talk(workshop, APPLIED + "||||||q")
    flat = in_a_line(said)
    assert flat.count("! changing this host needs root's rights, and sudo is not here; run it as root.") == 1
    assert "\n    jitter-workshop plan --sh thp stat-interval\n" in said
    assert "'Pages' is done (setting not verified, curve measured)." in flat
    assert "still stands" not in said
    assert tuned_tree.contents(tree) == before


def test_applying_again_without_rights_has_the_same_way_out(
    live: FakeWorkshop, tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(live, APPLIED + "|q|")
    live.close()
    later = livehost.open_live(tree, course, monkeypatch)
    later._desk.hands = FakeHands()
    assert "    jitter-workshop plan --sh thp=madvise stat-interval=10\n" in talk(later, "again||q")


def test_a_reboot_is_waited_for_and_its_effect_told(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = livehost.open_live(tree, course, monkeypatch)
    workshop._desk.hands = FakeHands(tree, needs_reboot=True)
    said = in_a_line(talk(workshop, APPLIED + "|q"))
    assert "They take effect with the next boot: reboot, then start the workshop again." in said
    assert "Leave with q, reboot, and start the workshop again: it goes on here." in said
    assert "Enter go on without a reboot · undo · ? help" in said
    assert "Type undo to give them back earlier" not in said
    workshop.close()
    (tree / BOOT_ID).write_text("11111111-2222-3333-4444-555555555555\n")
    later = livehost.open_live(tree, course, monkeypatch)
    said = in_a_line(talk(later, "||q"))
    assert "NEXT: Pages · apply" in said
    assert "This host was rebooted since its boot parameters were written: they are in effect." in said
    assert "Nothing was to be written. It is as it should be." in said
    assert "To be measured: 'after pages'" in said


def test_going_on_without_the_reboot(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = livehost.open_live(tree, course, monkeypatch)
    hands = workshop._desk.hands = FakeHands(tree, needs_reboot=True)
    assert "To be measured: 'after pages'" in talk(workshop, APPLIED + "||q")
    assert [call[0] for call in hands.calls] == ["apply", "keep", "close"]


def test_a_connection_that_broke_is_not_called_given_back(
    tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop = livehost.open_live(tree, course, monkeypatch)
    applies = FakeHands.apply

    def breaks(self: FakeHands, *arguments: Any) -> ApplyResult:
        result = applies(self, *arguments)
        self.fail = HostError("the agent does not answer")
        return result

    monkeypatch.setattr(FakeHands, "apply", breaks)
    said = in_a_line(talk(workshop, APPLIED + "|q|keep"))
    assert "! the agent does not answer." in said
    assert "Given back" not in said
    assert "! Not all is given back: the agent does not answer. Run 'jitter-workshop restore'." in said


def test_what_is_typed_at_a_choice(live: FakeWorkshop) -> None:
    said = in_a_line(talk(live, "2||x|b|2|q"))
    assert "! that is none of the answers; they are vmstat, nobody." in said
    assert "✗ You said: Nobody. The answer is: The counters of the memory management." in said
    assert "Look at stat_interval." in said
    assert "Your guess so far: Nobody." in said
    assert "The same by hand: vmstat 1 5 Who can run" in said
