"""Test the words of the step ``diagnose``."""

from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.flow.chapters.suspects import judge_diagnosis, suspect
from jitter_workshop.model.diagnosis import Diagnosed, LongestStalls, SeenCauses, Suspect
from jitter_workshop.model.evidence import ExplainedStall, Slice
from jitter_workshop.presenter.course.diagnosis import (
    BY_NAME,
    EACH,
    diagnosis_page,
    diagnosis_question,
    in_guest,
    judged_diagnosis,
    one_stall,
    rows_of_answer,
    suspect_lines,
    uneven,
)
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.report.diagnosis_words import (
    IN_A_GUEST,
    LACKS_EVENT,
    NO_EVENT,
    OF_THEMSELVES,
    WITHOUT_EVENT,
    acts_on,
    around_told,
    longest_come_from,
)
from jitter_workshop.stats.scale import nice_ns


@pytest.mark.parametrize(
    ("thread", "named"),
    [("sampler", "the measured thread"), ("sleeper", "the measured thread"), ("accumulator", "accumulator")],
)
def test_the_only_measured_thread_has_the_word_of_the_lesson(thread: str, named: str) -> None:
    stall = ExplainedStall(0, 12_500_000, 1, thread, 1, 0, ())
    assert f"at 12.5 ms  {named} goes on" in written(one_stall(stall, 80))


def test_the_times_of_a_stall_stand_in_a_column_from_its_start_to_its_end() -> None:
    pieces = tuple(Slice("task", name, at, 10_000) for name, at in (("bash", 42_900), ("python", 164_000)))
    stall = ExplainedStall(0, 1_250_000, 1, "sampler", 1, 0, (), pieces)
    shown = [line.plain for line in one_stall(stall, 80)[1:5]]
    assert [line[:12].strip() for line in shown] == ["at    0 ns", "at 42.9 µs", "at  164 µs", "at 1.25 ms"]
    assert {line.index("at ") for line in shown} == {0}
    assert shown[0].endswith("the stall begins")
    whole = dataclasses.replace(stall, timeline=(dataclasses.replace(pieces[0], offset_ns=0), pieces[1]))
    assert "the stall begins" not in written(one_stall(whole, 80)[:-1])


def test_after_the_answer_the_largest_cause_comes_first() -> None:
    causes = tuple(suspect("task", name, 9, ns) for name, ns in (("bash", 20), ("python", 900), ("sh", 400)))
    seen = SeenCauses("r", "trace", causes, 9, 1_320, 0)

    def names(answered: Diagnosed | None) -> list[str]:
        rows = [line.plain for line in suspect_lines(seen, -1, answered, 80) if "task " in line.plain]
        return [row.split("task ")[1].split()[0] for row in rows]

    assert names(None) == ["bash", "python", "sh"], "the order must not show the answer"
    assert names(judge_diagnosis(seen, "task:sh")) == ["python", "sh", "bash"]


def test_causes_without_a_row_are_added_up_after_the_answer() -> None:
    causes = (suspect("task", "bash", 9, 900_000),)
    seen = SeenCauses("r", "trace", causes, 9, 1_320_000, 0, others=46, others_ns=420_000)
    assert written(suspect_lines(seen, -1, None, 80)).rstrip().endswith("and 46 smaller causes")
    answered = judge_diagnosis(seen, causes[0].id)
    assert re.search(r"  46 smaller causes +420 µs ━", written(suspect_lines(seen, -1, answered, 80)))


def test_the_rows_and_the_times_without_a_row_add_up_and_each_has_its_reason() -> None:
    causes = (suspect("task", "bash", 9, 900_000),)
    listed = SeenCauses("r", "trace", causes, 9, 1_320_000, 0, others=46, others_ns=420_000)
    seen = dataclasses.replace(listed, stalled_ns=1_820_000, unnamed_ns=300_000, unknown_ns=120_000)

    def after(of: SeenCauses) -> str:
        return written(suspect_lines(of, -1, judge_diagnosis(of, causes[0].id), 80))

    rows = after(seen)
    for reason, time in ((WITHOUT_EVENT, "300 µs"), (LACKS_EVENT, "120 µs"), (OF_THEMSELVES, "80 µs")):
        assert re.search(rf"\n {{6}}{reason} +{time} +━", rows), "its bar stands beside those of the causes"
    assert "300 µs" not in written(suspect_lines(seen, -1, None, 80))
    # Less than a hundredth of all.
    small = after(dataclasses.replace(listed, stalled_ns=1_325_000))
    for reason in (WITHOUT_EVENT, LACKS_EVENT, OF_THEMSELVES):
        assert reason not in small


COURSE = load_course(builtin_course())


def of_workqueues(**changed: object) -> SeenCauses:
    """Return the causes of five seconds in which the change acts on the work item alone."""
    item = dataclasses.replace(suspect("workqueue", "flush_to_ldisc", 3_500, 54_000_000), acts=True)
    causes = (suspect("task", "terminal", 570, 180_000_000), item)
    seen = SeenCauses("r", "trace", causes, 4_000, 243_000_000, 0, seconds=5.0, wanted="ends")
    return dataclasses.replace(seen, **changed)  # type: ignore[arg-type]


def judged(seen: SeenCauses, ident: str) -> tuple[str, str]:
    """Return the judgement of an answer in Workqueues, and the rows after it."""
    found, chapter = judge_diagnosis(seen, ident), COURSE.chapter("workqueues")
    assert found is not None
    assert chapter is not None
    rows = " ".join(written(suspect_lines(seen, -1, found, 100)).split())
    return judged_diagnosis(found, seen, chapter, COURSE), rows


def test_the_causes_that_the_change_ends_are_asked_judged_and_summed() -> None:
    seen = of_workqueues()
    assert diagnosis_question(seen).endswith("Which of them can this chapter's change end?")
    assert "WHAT CAN THE CHANGE END?" in written(diagnosis_page(seen, -1, None, 100))
    assert "↓" not in written(suspect_lines(seen, -1, None, 100)), "the sign would show the answer"
    said, rows = judged(seen, "workqueue:flush_to_ldisc")
    assert said.startswith("✓ Right. Work flush_to_ldisc took 54 ms, 22 % of the time of all stalls.")
    assert said.endswith(acts_on("", True))
    assert "✓ work flush_to_ldisc ↓" in rows
    assert "can end 10.8 ms of the 48.6 ms of stalls a second." in rows
    said, rows = judged(seen, "task:terminal")
    assert said.startswith("✗ Not this one. Task terminal took 180 ms, 74 %")
    assert said.endswith(f"{acts_on('', False)} The chapter 'Isolation' treats it.")
    assert "✗ task terminal" in rows
    assert "✓ work flush_to_ldisc ↓" in rows


def test_a_list_whose_largest_is_asked_for_marks_the_causes_that_the_change_ends() -> None:
    said, rows = judged(of_workqueues(wanted="most"), "task:terminal")
    assert said.startswith("✓ Right. Task terminal took the most time")
    assert "work flush_to_ldisc ↓" in rows
    assert "✓ work" not in rows
    assert "can end" in rows


def test_after_the_answer_the_signs_are_told_and_the_question_is_not() -> None:
    seen = of_workqueues(unnamed_ns=9_000_000, stalled_ns=252_000_000)
    seen = dataclasses.replace(seen, suspects=(dataclasses.replace(seen.suspects[0], own_load=True), seen.suspects[1]))
    before = " ".join(written(diagnosis_page(seen, -1, None, 78)).split())
    assert "Which of them can this chapter's change end?" in before
    answered = judge_diagnosis(seen, "task:terminal")
    after = [line.plain for line in diagnosis_page(seen, -1, answered, 78)]
    assert [line.strip() for line in after[:4]] == [
        "WHAT CAN THE CHANGE END?",
        "* the chapter's noise · ↓ the change acts on it",
        "a stall with two causes counts in both rows",
        "This change can end 10.8 ms of the 50.4 ms of stalls a second.",
    ]
    assert "Which of them" not in " ".join(after)
    # The time that the list leaves out stands below it.
    rows = rows_of_answer(after)
    assert rows is not None
    assert [after[at].split()[0] for at in rows] == ["✗", "✓"]
    assert next(n for n, line in enumerate(after) if WITHOUT_EVENT in line) > rows[1]
    assert NO_EVENT in before
    assert NO_EVENT not in " ".join(" ".join(after).split())


def of_chapter_1(*causes: Suspect, **changed: object) -> SeenCauses:
    return dataclasses.replace(SeenCauses("r", "trace", causes, 99, 9_000, 0), **changed)  # type: ignore[arg-type]


TICKS, BASH = suspect("timer", "", 5_842, 5_000), suspect("task", "bash", 20, 900)


def judged_there(seen: SeenCauses) -> str:
    found, chapter = judge_diagnosis(seen, TICKS.id), COURSE.chapter("baseline")
    assert found is not None
    assert chapter is not None
    return judged_diagnosis(found, seen, chapter, COURSE)


def test_the_question_and_the_answer_tell_the_cause_of_the_longest_stalls() -> None:
    longest = LongestStalls(10, 700, dataclasses.replace(BASH, total_ns=650))
    seen = of_chapter_1(TICKS, BASH, longest=longest)
    assert "The longest stalls can have another cause." in diagnosis_question(seen)
    told = longest_come_from(10, BASH.label, 650, 700)
    assert told in judged_there(seen)
    assert "650 ns of 700 ns" in told
    same = of_chapter_1(TICKS, BASH, longest=dataclasses.replace(longest, cause=dataclasses.replace(TICKS, total_ns=9)))
    assert (
        "It is also the largest cause in the 10 longest stalls, which make the tail: 9 ns of 700 ns."
        in judged_there(same)
    )
    below = dataclasses.replace(longest, cause=dataclasses.replace(suspect("no_event", "", 10, 0), total_ns=690))
    said = judged_there(of_chapter_1(TICKS, BASH, longest=below))
    assert "In the 10 longest stalls, which make the tail, the largest part has no event: 690 ns of 700 ns." in said
    # The longest stalls are all stalls; then a run with counters only.
    assert "which make the tail" not in judged_there(of_chapter_1(TICKS, BASH, longest=longest, stalls=10))
    assert "which make the tail" not in judged_there(of_chapter_1(TICKS, BASH))
    assert "longest" not in diagnosis_question(of_chapter_1(TICKS, BASH))


def test_the_chapter_that_treats_a_cause_names_the_cause() -> None:
    longest = LongestStalls(10, 700, dataclasses.replace(BASH, total_ns=650))
    said = judged_there(of_chapter_1(TICKS, BASH, longest=longest))
    assert said.endswith("The chapter 'The tick and RCU' treats local timer."), "its whole label stands in the list"


def test_time_without_an_event_alone_leaves_nothing_to_choose_and_says_so() -> None:
    page = " ".join(written(diagnosis_page(of_chapter_1(unnamed_ns=9_000), -1, None, 78)).split())
    assert "so there is no cause" not in page
    assert "nothing on this host shows their causes" in page
    assert NO_EVENT in page


def test_the_order_of_a_list_without_a_trace_is_told_before_the_answer() -> None:
    seen = of_chapter_1(TICKS, BASH)
    answered = judge_diagnosis(seen, BASH.id)
    assert answered is not None
    for source, told in (("counters", True), ("trace", False)):
        of = dataclasses.replace(seen, source=source)
        before, after = (written(suspect_lines(of, -1, one, 78)) for one in (None, answered))
        assert (BY_NAME in before, BY_NAME in after) == (told, False)


@given(st.integers(1, 10**6), st.integers(0, 10**12))
def test_a_trace_shows_the_mean_time_of_a_cause_beside_its_number(count: int, total: int) -> None:
    seen = of_chapter_1(suspect("task", "bash", count, total))
    row = " ".join(suspect_lines(seen, 0, None, 78)[-1].plain.split())
    assert row.endswith(f" {count:,} {nice_ns(round(total / count))}")
    for other in (dataclasses.replace(seen, source="counters"), dataclasses.replace(seen, source="emulated")):
        assert EACH not in written(suspect_lines(other, 0, None, 78))


TIMER = suspect("timer", "", 40, 3_000)


@pytest.mark.parametrize("answered", [False, True])
def test_the_time_of_interrupts_on_a_guest_is_told_once_below_the_list(answered: bool) -> None:
    seen = of_chapter_1(TIMER, BASH, guest=True)
    found = judge_diagnosis(seen, BASH.id) if answered else None
    assert " ".join(written(diagnosis_page(seen, -1, found, 78)).split()).count(IN_A_GUEST) == 1


def test_a_long_label_is_cut_before_the_column_of_mean_times_is_left_out() -> None:
    call = suspect("vector", "call_function_single", 20, 900)
    long = dataclasses.replace(call, label=f"{call.label} (wakes a task here)")
    seen = of_chapter_1(TICKS, long)
    for width, kept in ((78, True), (66, False)):
        shown = written(suspect_lines(seen, -1, judge_diagnosis(seen, TICKS.id), width))
        assert (EACH in shown) == kept
        assert "━" in shown


@pytest.mark.parametrize("guest", [False, True])
def test_the_time_next_to_an_interrupt_is_told_after_the_answer_if_it_is_a_large_part(guest: bool) -> None:
    long = dataclasses.replace(TIMER, around_ns=1_200)
    seen = of_chapter_1(long, BASH, guest=guest)
    found = judge_diagnosis(seen, BASH.id)
    assert around_told(TIMER.label, 1_200, 3_000, guest) == in_guest(seen, found)
    assert "Local timer: 1.2 µs of 3 µs lie just before" in in_guest(seen, found)
    assert ("hypervisor" in in_guest(seen, found)) == guest
    short = of_chapter_1(dataclasses.replace(TIMER, around_ns=299), BASH, guest=guest)
    before = IN_A_GUEST if guest else ""
    assert [in_guest(seen), in_guest(short, found)] == [before, before]


@pytest.mark.parametrize(
    "seen",
    [
        of_chapter_1(TIMER, BASH),
        of_chapter_1(BASH, guest=True),
        of_chapter_1(TIMER, guest=True, source="counters"),
    ],
)
def test_without_a_guest_or_times_of_interrupts_nothing_is_told_of_the_hypervisor(seen: SeenCauses) -> None:
    assert in_guest(seen) == ""


def test_stalls_with_two_causes_are_told_once_after_the_answer_and_bars_have_the_colour_of_their_row() -> None:
    seen = of_chapter_1(TICKS, BASH)
    found = judge_diagnosis(seen, BASH.id)
    both = "a stall with two causes counts in both rows"
    lines = suspect_lines(seen, -1, found, 78)
    assert [line.plain.strip() for line in lines].count(both) == 1
    assert both not in written(suspect_lines(seen, -1, None, 78))
    alone = of_chapter_1(dataclasses.replace(BASH, count=9))
    assert both not in written(suspect_lines(alone, -1, judge_diagnosis(alone, BASH.id), 78))
    bars = {line.plain[4]: str(line.spans[-1].style) for line in lines if {"━", "╸"} & {*line.plain}}
    assert bars["✓"] == "good"
    assert "good" not in {style for sign, style in bars.items() if sign != "✓"}


def test_without_a_trace_the_rows_are_marked_without_a_time() -> None:
    _, rows = judged(of_workqueues(source="counters"), "workqueue:flush_to_ldisc")
    assert "work flush_to_ldisc ↓" in rows
    assert "can end" not in rows


@pytest.mark.parametrize(("seconds", "threads", "told"), [(0.0, 1, "54 ms of the 243 ms"), (5.0, 2, "over 2 threads")])
def test_the_time_that_the_change_can_end_names_its_basis(seconds: float, threads: int, told: str) -> None:
    assert told in judged(of_workqueues(seconds=seconds, threads=threads), "task:terminal")[1]


@given(st.integers(1, 10**4), st.integers(1, 10**8), st.integers(0, 10**8))
def test_a_mean_far_above_the_median_is_told_of_the_treated_cause_after_the_answer(
    count: int, mean: int, median: int
) -> None:
    fault = suspect("page_fault", "", count, count * mean)
    fault = dataclasses.replace(fault, acts=True, typical_ns=median)
    seen = SeenCauses("r", "trace", (TICKS, fault), 9_999, 10**13, 0, wanted="ends")
    answered = judge_diagnosis(seen, fault.id)
    told = uneven(seen, answered)
    assert bool(told) == (0 < 2 * median <= mean)
    assert not told or (nice_ns(median) in told and nice_ns(mean) in told)
    assert not uneven(seen, None)
    others = dataclasses.replace(seen, suspects=(TICKS, dataclasses.replace(fault, acts=False)))
    assert not uneven(others, answered)
    assert told in " ".join(written(diagnosis_page(seen, -1, answered, 100)).split())


@pytest.mark.parametrize("width", [50, 62, 80, 120])
def test_a_long_label_leaves_room_for_the_bars(width: int) -> None:
    long = suspect("task", "a-program-with-a-name-as-long-as-it-can-be", 9, 9_000)
    seen = SeenCauses("r", "trace", (TICKS, long), 9_999, 20_000, 0, unnamed_ns=6_000)
    lines = [line.plain for line in suspect_lines(seen, -1, judge_diagnosis(seen, TICKS.id), width)]
    assert sum("━" in line for line in lines) == 3
    assert all(len(line) <= width for line in lines)
