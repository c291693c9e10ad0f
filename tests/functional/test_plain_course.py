"""Whole courses line by line on a recording, by Enter alone: each page says so, and nothing is measured or written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jitter_workshop.course.loader import builtin_course
from jitter_workshop.host.recording.packed import unpacked
from jitter_workshop.model.course import Chapter, StepName
from jitter_workshop.model.session import Guess
from jitter_workshop.plain.settings import NOTHING_AGAIN
from jitter_workshop.presenter.course.summary import NOTHING_SET
from tests import hosttrees, livehost, recorded
from tests.fake_agent_connection import FakeAgentConnection
from tests.fakes import open_workshop
from tests.recorded import contents, in_a_line
from tests.talking import talk

THP = "sys/kernel/mm/transparent_hugepage/enabled"
ENTERS = "|" * 400


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded lab machine as it was installed."""
    return unpacked(recorded.RECORDINGS / "lab-stock.tar.xz", tmp_path_factory.mktemp("recordings"))


def pages(said: str, width: int) -> list[str]:
    """Return what each step showed: from the line below the loop to the next prompt."""
    return [part.split(" > \n")[0] for part in said.split("─" * min(width - 1, 100) + "\n")[1:]]


def look_at_curves(chapter: Chapter, shown: dict[StepName, str], width: int) -> None:
    """The curves of another machine stand at compare and nowhere else. Each says what it is, and the page which machine
    that was and that nothing was measured here."""
    assert [step for step, page in shown.items() if step != "compare" and recorded.curves_in(page)] == []
    page = shown.get("compare", "")
    curves, tables = recorded.curves_in(page), recorded.tables_of(page)
    counts, source = recorded.recorded_runs(chapter)
    assert len(tables) == bool(curves)
    if counts:
        assert len(curves) == len(counts)
        assert tables[0][1] == counts if width >= 80 else tables[0][1][0] == counts[0]
    assert recorded.passes_for_measured(page, cut=width < 80) == []
    if curves:
        which = "This curve was" if len(curves) == 1 else "These curves were"
        assert f"Nothing was measured here. {which} {source or 'published in 2015'}" in in_a_line(page)


# -- on a recording ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 80])
def test_the_whole_built_in_course_by_enter_alone(stock: Path, width: int) -> None:
    before = contents(stock)
    workshop = open_workshop(stock, course=builtin_course())
    said = talk(workshop, ENTERS, width=width)
    chapters = workshop.course.chapters
    assert len(chapters) == len(list(builtin_course().glob("*/lesson.toml")))
    for chapter, entry in zip(chapters, workshop.path(), strict=True):
        assert (entry.chapter_id, entry.done, entry.here) == (chapter.id, True, False)
        assert (entry.setting or False, entry.curve or False) == (False, False)
        assert f"'{chapter.title}' is done, on a recording." in in_a_line(said)
        for sentence in chapter.learnt:
            assert in_a_line(sentence) in in_a_line(said)
    shown = pages(said, width)
    assert len(shown) == sum(len(chapter.steps) for chapter in chapters)
    assert [page for page in shown if not page.startswith("ON A RECORDING")] == []
    assert said.count("Nothing is measured here.") == sum(len(chapter.measurements) for chapter in chapters)
    told = iter(shown)
    for chapter in chapters:
        on_its_pages = dict(zip(chapter.steps, told, strict=False))
        look_at_curves(chapter, on_its_pages, width)
    # Nothing was refused on the way, measured, applied or written.
    assert [line for line in said.split("\n") if line.startswith("!")] == []
    assert "Measuring." not in said
    assert workshop.measured == 0
    assert workshop.context.runs.every() == ()
    agent_connection = workshop.context.agent_connection
    assert isinstance(agent_connection, FakeAgentConnection)
    assert agent_connection.calls == [("close",)]
    assert contents(stock) == before
    # Only commands, which are there to be copied, are as wide as they are.
    commands = {
        f"    {command}" for chapter in chapters for command, _ in workshop.walk(chapter.id).runs.commands_by_hand()
    }
    assert [line for line in said.split("\n") if len(line) > width and line not in commands] == []
    assert all(line.isprintable() for line in said.split("\n"))


def test_a_course_of_ones_own_from_start_to_end(stock: Path, course: Path) -> None:
    before = contents(stock)
    workshop = open_workshop(stock, course=course)
    said = talk(workshop, "||1" + ENTERS)
    shown = pages(said, 80)
    assert [title.split(":")[0] for title in re.findall(r"^.*: .*▸LOOK.*$", said, re.M)] == [
        "Pages",
        "Reading only",
        "The clock",
    ]
    assert len(shown) == 7 + 3 + 7
    assert all(page.startswith("ON A RECORDING, because --root names") for page in shown)
    assert all("Nothing is measured" in page for page in shown)
    look, predict, measure, apply, again, compare, explain = shown[:7]
    assert "Here something can be better." in look
    assert "can be better: 1 → 60" in in_a_line(look) or "can be better" in look
    assert "  1  The counters of the memory management" in predict
    assert "✓ You said: The counters of" in in_a_line(said)
    assert "memory management. That is right." in in_a_line(said)
    assert "vmstat_update folds them, on each CPU." in said
    for step, label in ((measure, "before pages"), (again, "after pages")):
        assert "Nothing is measured here." in in_a_line(step)
        assert f"the run is: '{label}', ring, quick." in in_a_line(step)
    assert f"/{THP}" in apply
    assert "a recorded host, so nothing is written" in in_a_line(apply)
    assert "(recording 'lab-stock') and after it ('lab-tuned'):" in in_a_line(compare)
    assert re.search(r"→.*✓", compare)
    assert "grep -H . /proc/sys/vm/stat_interval # 2-3" in explain
    # The chapter whose guess only a run could judge says what its answers stand for.
    assert "• up to 1 ms That is the height" in in_a_line(shown[-2])
    assert all(entry.done for entry in workshop.path())
    assert "Every chapter is done." in said
    assert workshop.context.runs.every() == ()
    assert contents(stock) == before


def test_words_that_would_measure_apply_or_restore_say_that_it_is_a_recording(stock: Path, course: Path) -> None:
    workshop = open_workshop(stock, course=course)
    said = in_a_line(talk(workshop, "restore|again|1|m|restore|3|m|5|restore|cpus 1,2|w|q"))
    assert said.count("! nothing was applied to a recorded host") == 3
    assert said.count("nothing to restore; leave out --root.") == 3
    assert said.count("this chapter: nothing can be measured") == 2
    assert NOTHING_AGAIN in said
    assert "! this chapter does not change the placement." in said
    agent_connection = workshop.context.agent_connection
    assert isinstance(agent_connection, FakeAgentConnection)
    assert agent_connection.calls == [("close",)]


def test_a_guess_in_time_is_set_beside_its_answer(stock: Path, course: Path) -> None:
    said = in_a_line(talk(open_workshop(stock, course=course), "3||20 ms|6|q"))
    assert "On a recording, no run decides" in said
    assert "longer (your guess) That is" in said
    assert "That is the height of slices." in said
    assert "up to 1 ms That is" in said


def test_a_setting_that_this_host_lacks_is_taught_on_the_chapters_recording(
    tmp_path: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = hosttrees.small(tmp_path / "bare", 4)
    before = contents(bare)
    workshop = livehost.open_live(bare, course, monkeypatch)
    said = talk(workshop, ENTERS)
    reading, rest = pages(said, 80)[:3], pages(said, 80)[3:]
    assert [page for page in reading if "RECORDING" in page] == []
    assert len(rest) == 14
    assert [page for page in rest if not page.startswith("ON A RECORDING (lab-stock): ")] == []
    assert "ON A RECORDING" in said
    assert "Here is nothing to set." in said
    assert re.search(r"CPU governor +schedutil +→ +performance +✓", said)
    assert all(entry.done for entry in workshop.path())
    assert workshop.measured == 0
    assert contents(bare) == before


def test_a_tree_that_shows_nothing_is_taught_on_the_chapters_recordings(tmp_path: Path, course: Path) -> None:
    (tmp_path / "empty" / "proc").mkdir(parents=True)
    workshop = open_workshop(tmp_path / "empty", course=course)
    said = talk(workshop, "status|" + ENTERS)
    assert "! this host shows nothing about its CPUs" in said
    assert all(entry.done for entry in workshop.path())
    lacks = "ON A RECORDING (lab-stock): the given recording lacks"
    assert len([page for page in pages(said, 80) if in_a_line(page).startswith(lacks)]) == 14


@pytest.mark.parametrize("width", [40, 80])
def test_the_status_names_the_chapter_that_treats_each_finding(stock: Path, course: Path, width: int) -> None:
    said = talk(open_workshop(stock, course=course), "status|1|p|q", width=width)
    flat = in_a_line(said)
    assert "Hot CPUs 2-3" in flat
    assert re.search(r"\d+ can be better", flat)
    thp = flat[flat.index("thp · Transparent huge pages") :]
    assert thp.index("always, madvise → madvise") < thp.index("chapter 1: Pages") < thp.index("Pages: ▸LOOK")
    assert "chapter 3: The clock" in flat
    assert [line for line in said.split("\n") if len(line) > width] == []


def test_the_summary_comes_on_request_and_once_by_itself_at_the_end(stock: Path, course: Path) -> None:
    first, last = (f"FIRST TO LAST: {done} of 3" for done in (0, 3))
    enters = "|".join([""] * 20)
    said = talk(open_workshop(stock, course=course), f"summary|{enters}|c|q")
    assert (said.count(first), said.count(last)) == (1, 1)
    assert said.count("Every chapter is done.") == 2
    assert NOTHING_SET in said


def test_the_rest_of_the_course_is_a_recording_and_the_summary_is_offered(
    tmp_path: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop = livehost.open_live(hosttrees.small(tmp_path / "bare", 4), course, monkeypatch)
    said = in_a_line(talk(workshop, "||||summary|q"))
    assert said.count("can do is done. Type summary") == 2
    assert "LAST: 1 of 3 chapters done" in said
    assert "NEXT: Pages · look" in said
    assert "about 2 min · on a recording" in said


def test_on_a_recording_a_guess_is_judged_at_the_step_that_decides_it_and_explained_once(stock: Path) -> None:
    workshop = open_workshop(stock, course=builtin_course())
    walk = workshop.walk("isolation")
    task = walk.chapter.prediction
    assert task is not None
    assert task.slot == "again"
    walk.go("predict")
    walk.guess.predict(Guess(choice=task.answers[2].id))
    walk.go("again")
    asked = {e.chapter_id: e.number for e in workshop.path()}["isolation"]
    again, compare = (in_a_line(page) for page in pages(talk(workshop, f"{asked}|||q", width=80), 80)[:2])
    assert "✓ You said: 5 to 50. That is right." in again
    assert task.answers[2].explanation in again
    assert "✓ You said: 5 to 50. That is right." in compare
    assert task.answers[2].explanation not in compare
    assert "WHAT THE ANSWERS MEAN" not in compare


def test_a_run_that_was_not_recorded_decides_no_mark(
    stock: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolation = open_workshop(stock, course=builtin_course()).walk("isolation")
    walk, both = open_workshop(stock, course=course).walk("clock"), isolation.runs.recorded_curves("compare")[0]
    assert not walk.guess.decided_by_recording, "this course has no recorded runs"
    for shown, decided in ((both[:1], False), (both, True)):
        monkeypatch.setattr(walk.runs, "recorded_curves", lambda step, shown=shown: (shown, ""))
        assert walk.guess.decided_by_recording is decided
