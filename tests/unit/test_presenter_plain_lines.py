"""Lines of the workshop line by line: widths, hostile names, and what people type."""

from __future__ import annotations

import contextlib
import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.chart.canvas import plain_curve_lines
from jitter_workshop.course.loader import load_course
from jitter_workshop.errors import UsageError
from jitter_workshop.flow.chapters.path import order_chapters
from jitter_workshop.flow.chapters.recorded import recorded_runs
from jitter_workshop.model.walk import Fact, OwnResult, PathEntry
from jitter_workshop.plain import views
from jitter_workshop.presenter.course.path import (
    PATH_HEADINGS,
    kind_heading,
    kind_or_result,
    result_told,
    row_told,
    subject_told,
)
from jitter_workshop.presenter.course.typed import LONGEST_NS, ROLES, parse_cpus, parse_time_ns
from jitter_workshop.presenter.host.status import fact_lines as facts_view
from jitter_workshop.presenter.runs.curves import percentile_table
from jitter_workshop.presenter.text.lines import Lines, wrap
from jitter_workshop.presenter.text.prose import prose


def plain(lines: Lines) -> list[str]:
    return [line.plain.rstrip() for line in lines]


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("300 ns", 300),
        ("20us", 20_000),
        ("20 µs", 20_000),
        ("4ms", 4_000_000),
        (" 1.5 MS ", 1_500_000),
        ("1,5 s", 1_500_000_000),
    ],
)
def test_times(text: str, ns: int) -> None:
    assert parse_time_ns(text) == ns


@pytest.mark.parametrize("text", ["", "300", "ms", "-3 ms", "1e9 ns", "61 s", "0 ns", "0.1 ns", "३ ms", "\x1b"])
def test_a_text_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_time_ns(text)


@given(st.text(max_size=30))
def test_any_time_is_in_range_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert 1 <= parse_time_ns(text) <= LONGEST_NS


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", (None, None, None)),
        ("auto", (None, None, None)),
        ("2,4", (2, 4, None)),
        ("2 4 6", (2, 4, 6)),
        ("acc=1", (None, 1, None)),
        ("producer=2 journaller=3", (2, None, 3)),
    ],
)
def test_cpus(text: str, cpus: tuple[int | None, int | None, int | None]) -> None:
    assert tuple(map(parse_cpus(text).get, ROLES)) == cpus


@pytest.mark.parametrize("text", ["x", "1 2 3 4", "2 producer=3", "=3", "foo=1", "-1", "1-3", "9999999", "²"])
def test_a_text_that_lists_no_cpus_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_cpus(text)


@given(st.text(max_size=300), st.integers(20, 120))
def test_prose_keeps_within_its_width_and_holds_no_controls(text: str, width: int) -> None:
    for line in plain(prose(text, width)):
        assert len(line) <= width + 4
        assert line.isprintable()


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("See [the site](https://kernel.org/x) and [a file](notes.txt).", "See the site and a file."),
        ("Type `[a](b)`, then see **[the site](https://kernel.org)**.", "Type [a](b), then see the site."),
        ("- [one\n  word](https://kernel.org)", " • one word"),
        ("1. one\n2. two\n   goes on\n3) three", [" 1. one", " 2. two goes on", " 3) three"]),
        ("First:\n- one\n* two\n- `3`", ["First:", " • one", " • two", " • 3"]),
        ("It was made in\n2013. No list.", ["It was made in 2013. No list."]),
        ("10. " + "word " * 20, [" 10. " + "word " * 13 + "word", "     word word word word word word"]),
        ("An array[0](x) is no link? It is one. This [is] none.", "An array0 is no link? It is one. This [is] none."),
    ],
)
def test_a_page_as_plain_text(markdown: str, shown: str | list[str]) -> None:
    assert plain(prose(markdown, 76)) == ([shown] if isinstance(shown, str) else shown)


def test_where_a_curve_is_from_stands_below_its_label() -> None:
    curves, _ = recorded_runs(next(c for c in load_course().chapters if c.id == "baseline"))
    lines = plain(percentile_table(curves, 79))
    label, origin = lines[lines.index("") + 1 :][:2]
    assert label.split() == ["baseline", "baseline", "again"]
    assert origin.split() == ["recorded", "recorded"]
    drawn = [curve.curve for curve in curves]
    chart = plain_curve_lines(drawn, 79, 14)
    assert any("□ baseline again  recorded  " in line for line in chart), chart
    assert [line for line in plain_curve_lines(drawn, 30, 14) if "recorded" in line] == ["  (recorded)"] * 2


def test_the_lessons_lose_their_marks_and_no_words() -> None:
    for chapter in load_course().chapters:
        for whole in chapter.pages.values():
            # A picture that the program draws stands in the place of its block.
            page = re.sub(r"(?ms)^```draw-[a-z]+\n.*?^```$", "", whole)
            assert max(map(len, plain(prose(whole, 60)))) <= 60
            lines = plain(prose(page, 60))
            assert max(map(len, lines)) <= 60
            assert "**" not in "\n".join(lines)
            words = re.sub(r"(?m)^- ", "• ", page).replace("**", "").replace("`", "").replace("*", "").split()
            assert " ".join(lines).replace("*", "").split() == words


def entry(**changed: object) -> PathEntry:
    fields: dict[str, object] = {
        "chapter_id": "a",
        "title": "A chapter",
        "summary": "",
        "minutes": 3,
        "here": True,
        "reason": "",
        "next_step": "look",
        "started": False,
        "done": False,
        "setting": None,
        "curve": False,
        "guess": None,
    }
    return PathEntry(**{**fields, **changed})  # type: ignore[arg-type]


def test_a_row_tells_its_settings_curves_and_guess_in_words() -> None:
    new = entry(setting=False, chance="moves")
    assert row_told(new) == "", "nothing is made yet"
    done = entry(setting=True, curve=True, guess=True, chance="reads")
    assert row_told(done) == "setting changed, curve made, guess right"
    back = entry(setting=True, restored=True, measures=False, guess=False)
    assert row_told(back) == "setting restored, guess wrong"
    assert row_told(entry(setting=True, restored=True, places=True)) == "set for its run only"
    assert row_told(entry(curve=True, here=False)) == ""
    # A hunt asks for a name.
    assert row_told(entry(guessed=True)) == "guess not judged yet"
    assert row_told(entry(guess=True, hunts=True)) == "noise named"
    assert row_told(entry(guess=False, hunts=True)) == "noise not named"
    placed = entry(setting=True, restored=True, places=True, curve=True, guessed=True)
    assert len(row_told(placed)) <= 62, "one line beside the chart of 120 columns"


def test_a_right_guess_stands_behind_the_result_and_each_judged_guess_in_the_place_of_a_forecast() -> None:
    assert result_told(entry(chance="moves")) == [("has effect", "text")]
    assert result_told(entry(chance="moves", guessed=True)) == [("has effect", "text")]
    assert result_told(entry(chance="measures", guess=True)) == [("guess right", "good")]
    assert result_told(entry(chance="measures", guess=False)) == [("guess wrong", "dim")]
    better = entry(chance="moves", guess=True, result=OwnResult("better"))
    assert result_told(better) == [("better", "good"), ("guess right", "good")]
    # A column of wrong guesses is loud; the words below the path have the one under the cursor.
    worse = entry(chance="moves", guess=False, result=OwnResult("worse"))
    assert result_told(worse) == [("worse", "bad")]
    assert row_told(worse) == "guess wrong"
    assert row_told(dataclasses.replace(worse, beside=True)) == "guess near"
    waits = entry(chance="later", held="CPU 1 is isolated, so restore the isolation first")
    assert result_told(waits) == [("must wait", "dim"), ("a CPU is isolated", "dim")]
    assert result_told(dataclasses.replace(waits, result=OwnResult("worse"))) == [("worse", "bad")]


def test_the_word_of_a_row_is_explained_before_its_minutes_and_its_subject() -> None:
    forecast = "has effect: a forecast, from the lesson's trials and this host's facts"
    assert subject_told(entry(summary="Look.", chance="moves")) == f"{forecast} · 3 min · Look."
    counted = "is counted: the forecast is a lower count, but no lower latency · 3 min · Look."
    assert subject_told(entry(summary="Look.", chance="counts")) == counted
    assert subject_told(entry(summary="Look.", chance="reads")) == "explains · 3 min · Look."
    held = entry(summary="Look.", chance="held", held="99 % came from one")
    assert subject_told(held) == "cannot act: 99 % came from one · 3 min · Look."
    assert subject_told(entry(summary="Look.", here=False)) == "3 min · Look."
    assert subject_told(entry(summary="Look.", chance="moves"), minutes=False) == f"{forecast} · Look."


@pytest.mark.parametrize(
    ("own", "word", "means"),
    [
        (OwnResult("better"), "better", "by your two runs"),
        (OwnResult("perhaps worse", True), "perhaps worse", "by your two runs; the count moved as expected"),
        (OwnResult("no clear change", True), "did its work", "by your two runs; latency has no clear change"),
        (
            OwnResult("not decided", True),
            "did its work",
            "by your two runs; their latency is not decided, another cause changed",
        ),
        (OwnResult("not decided"), "not decided", "by your two runs"),
        (OwnResult("not comparable", True), "did its work", "by your two runs; their latency is not comparable"),
        (OwnResult("no clear change"), "no clear change", "by your two runs"),
        (OwnResult("not compared", True), "did its work", "by your two runs; their latency was not compared"),
        (OwnResult("not compared"), "not compared", "by your two runs"),
        (OwnResult("alike", apart=1.41), "runs differ 41 %", "by your two runs; nothing was changed between them"),
        (OwnResult("alike", apart=2.6), "runs differ 2.6×", "by your two runs; nothing was changed between them"),
        (
            OwnResult("alike"),
            "two equal runs",
            "by your two runs; nothing was changed between them; too few stalls to say how far they differ",
        ),
        (
            OwnResult("alike", apart=1.2, judge="p99.9"),
            "runs differ 20 %",
            "by p99.9 of your two runs; nothing was changed between them",
        ),
        (
            OwnResult("alike", apart=1.24, judge="p99.9", few=True),
            "runs differ ~24 %",
            "by p99.9 of your two runs; nothing was changed between them; ~ fewer than ten stalls beyond it",
        ),
        (OwnResult("alike", apart=1.01), "runs agree", "by your two runs; nothing was changed between them"),
        (
            OwnResult("no clear change", False),
            "no clear change",
            "by your two runs; the count did not move as expected",
        ),
        (OwnResult("worse", True, "lower"), "proof: lower", "by your proof, better evidence than two runs"),
    ],
)
def test_after_two_runs_a_row_tells_the_learners_own_result(own: OwnResult, word: str, means: str) -> None:
    one = entry(summary="Look.", chance="moves", result=own)
    assert kind_or_result(one)[0] == word
    assert subject_told(one, minutes=False) == f"{word}: {means} · Look."
    assert (kind_heading([entry()]), kind_heading([entry(), one])) == ("on this host", "your result")


def test_the_path_marks_the_next_the_done_and_the_impossible_chapters() -> None:
    path = order_chapters(
        (
            entry(done=True, setting=True, curve=True, guess=False),
            entry(chapter_id="b", title="B", chance="moves"),
            entry(chapter_id="c", title="C", here=False, reason="needs 2 CPUs"),
        )
    )
    lines = plain(views.path_lines(path, "b", 80))
    assert "setting  curve  guess" in lines[0]
    assert lines[1].split() == ["1", "●", "A", "chapter", "✓", "✓", "✗", "measures"]
    assert lines[2].split() == ["2", "▸", "B", "–", "·", "·", "has", "effect"]
    assert lines[3] == "NOT ON THIS HOST AS IT IS"
    assert lines[4].split(maxsplit=3) == ["3", "○", "C", "needs 2 CPUs"]


def test_on_a_narrow_terminal_the_marks_of_a_chapter_stand_below_its_title() -> None:
    path = order_chapters(
        (entry(done=True, curve=True, guess=False, setting=True), entry(chapter_id="b", title="B", chance="moves"))
    )
    lines = plain(views.path_lines(path, "b", 40))
    assert [line.split() for line in lines[1:3]] == [
        ["1", "●", "A", "chapter"],
        ["setting", "✓", "curve", "✓", "guess", "✗", "measures"],
    ]


def test_a_chapter_taught_on_a_recording_is_told_apart_from_an_impossible_one() -> None:
    path = order_chapters(
        (
            entry(here=False, reason="needs 2 CPUs"),
            entry(chapter_id="b", title="B", here=False, reason="needs 2 CPUs"),
            entry(chapter_id="c", title="C", here=False, reason="no cpufreq", rehearsed=True),
            entry(chapter_id="d", title="D"),
        )
    )
    assert [e.chapter_id for e in path] == ["d", "c", "a", "b"]
    said = [" ".join(line.split()) for line in plain(views.path_lines(path, None, 80))]
    assert said[2:4] == [PATH_HEADINGS["recording"], "3 ○ C no cpufreq"]
    assert said[4:] == ["NOT ON THIS HOST AS IT IS", "needs 2 CPUs:", "1 ○ A chapter", "2 ○ B"]


def test_hostile_names_do_not_reach_the_terminal() -> None:
    facts = [Fact("CPU\x1b[2J", "a\x07b", "c\u202ed")]
    assert all(line.isprintable() for line in plain(facts_view(facts, 40)))
    assert all(line.isprintable() for line in plain(views.path_lines((entry(title="x\x1b]0;y\x07"),), None, 40)))


@pytest.mark.parametrize(
    ("path", "width", "lines"),
    [
        ("/sys/kernel/mm/transparent_hugepage/enabled", 30, ["/sys/kernel/mm/", "transparent_hugepage/enabled"]),
        ("/sys/kernel/mm/transparent_hugepage/enabled", 36, ["/sys/kernel/mm/transparent_hugepage/", "enabled"]),
        ("vm.compact_unevictable_allowed", 26, ["vm.compact_unevictable_", "allowed"]),
        ("abcdefghijkl", 8, ["abcdefgh", "ijkl"]),
    ],
)
def test_a_path_is_broken_between_its_parts(path: str, width: int, lines: list[str]) -> None:
    assert [line.plain for line in wrap(path, width)] == lines
