"""Test guesses that runs of the learner decide: the figure that falls most, a factor, a ratio and a value."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.guesses import measured_answers, outcome
from jitter_workshop.course.loader import load_course
from jitter_workshop.model.course import Answer, GuessTask, Shows
from jitter_workshop.model.run import INTENDED, Counter, Run, StallRate, ThreadRecord
from jitter_workshop.model.session import Guess
from jitter_workshop.model.spec import Placement
from jitter_workshop.presenter.course.chapter import judged_guess
from jitter_workshop.stats.figures import P99_FROM_DUE_TIME, KnownRun
from tests import madeup

FALLS = GuessTask(
    "choice",
    "Which falls most?",
    "again",
    (
        Answer("preempted", "preemptions", "Tasks came.", figure="preempted"),
        Answer("faults", "page faults", "Pages were touched.", figure="faults"),
        Answer("clock", "the frequency", "It does not fall.", figure="core-hz"),
        Answer("none", "none of them", "Nothing was there."),
    ),
    by="falls",
)
FACTOR = GuessTask(
    "choice",
    "How far?",
    "again",
    (
        Answer("same", "the same", "As before.", up_to=1.5),
        Answer("some", "some", "A part is left.", up_to=10.0),
        Answer("all", "nearly all", "None came."),
    ),
    by="factor",
)
RATIO = GuessTask(
    "choice",
    "Compared?",
    "again",
    (Answer("fewer", "fewer", "", up_to=0.5), Answer("same", "as many", "", up_to=2.0), Answer("more", "more", "")),
    by="ratio",
    figure="faults",
)
VALUE = GuessTask(
    "choice",
    "How many?",
    "measure",
    (
        Answer("few", "few", "Few came.", up_to=1.0),
        Answer("some", "some", "", up_to=10.0),
        Answer("many", "many", "", up_to=1_000.0),
        Answer("most", "most", ""),
    ),
    by="value",
    figure="preempted",
)
SHOWS = Shows("preempted", 3.0)
SIGNS = {"right": "✓ You said", "beside": "≈ near: Right is", "wrong": "✗ Right is"}


def run(switches: int, faults: int = 0) -> KnownRun:
    threads = (ThreadRecord("accumulator", {}, involuntary_switches=switches, minor_faults=faults),)
    made: Run = madeup.make_run([[100]])[0]
    stalls = replace(made.stalls, rated_s=10.0)
    return KnownRun(replace(made, workload="ring", duration_s=10.0, stalls=stalls, threads=threads, core_hz=None))


@pytest.mark.parametrize(
    ("before", "after", "right"),
    [
        ((400, 40), (4, 40), "preempted"),
        ((400, 400), (200, 10), "faults"),
        ((400, 40), (201, 40), "none"),  # less than half is needed
        ((400, 40), (200, 40), "preempted"),
        ((40, 0), (400, 0), "none"),
    ],
)
def test_the_figure_that_fell_most_is_the_answer(before: tuple[int, int], after: tuple[int, int], right: str) -> None:
    sides = run(*before), run(*after)
    for answer in FALLS.answers:
        judged = outcome(FALLS, Guess(choice=answer.id), sides[1], sides[0])
        assert judged is not None
        assert judged.near is (answer.id == right)
        expected = next(a for a in FALLS.answers if a.id == right)
        assert expected.explanation in judged.explanation
        assert judged.text.startswith("Right is: ") == (answer.id != right)


@pytest.mark.parametrize(
    ("before", "after", "right"),
    [
        ((400, 4_000), (20, 100), ["preempted", "faults"]),  # factors of 20 and 40
        ((400, 4_000), (20, 99), ["faults"]),  # one fell clearly more
        ((400, 4_000), (21, 200), ["faults"]),  # one did not fall to a twentieth
        ((400, 600), (0, 0), ["preempted", "faults"]),  # 0 is taken as one event
        ((9_670, 9_510), (14, 474), ["preempted"]),  # factors of 690 and 20: the counts decide
    ],
)
def test_two_answers_are_right_only_if_both_figures_are_nearly_0_and_fell_alike(
    before: tuple[int, int], after: tuple[int, int], right: list[str]
) -> None:
    judged = {a.id: outcome(FALLS, Guess(choice=a.id), run(*after), run(*before)) for a in FALLS.answers}
    assert [name for name, one in judged.items() if one is not None and one.near] == right
    for name, one in judged.items():
        assert one is not None
        assert one.text.startswith("Both answers are right here: preemptions and page faults. You said: ") is (
            name in right and len(right) > 1
        )
        assert ("So these answers are right: preemptions and page faults." in one.text) is (
            name not in right and len(right) > 1
        )


def test_each_figure_that_fell_is_told_with_its_factor() -> None:
    judged = outcome(FALLS, Guess(choice="faults"), run(0, 474), run(9_670, 9_510))
    assert judged is not None
    assert judged.near is False
    assert judged.text == (
        "Right is: preemptions, 967 → 0 a second. You said: page faults, 951 → 47.4 a second, a factor of 20."
    ), "the right answer comes first, without a factor that a count of 0 does not have"
    assert "Page faults of the threads: 951 → 47.4 a second, a factor of 20." in judged.explanation


def test_the_measured_figures_are_told_and_one_that_a_run_lacks_is_not() -> None:
    judged = outcome(FALLS, Guess(choice="none"), run(4, 40), run(400, 40))
    assert judged is not None
    assert judged.text == "Right is: preemptions, 40 → 0.4 a second, a factor of 100. You said: none of them."
    assert "Page faults of the threads: 4 → 4 a second." in judged.explanation
    assert "requency" not in judged.text + judged.explanation


def test_the_largest_fall_is_not_judged_while_a_figure_of_the_trace_is_unknown() -> None:
    work = Answer("work", "the kernel's work", "It moved.", figure="work-items")
    task = replace(FALLS, answers=(*FALLS.answers, work))
    judged = outcome(task, Guess(choice="work"), run(4, 40), run(400, 40))
    assert judged is not None
    assert judged.near is None
    assert "Only the kernel's trace shows" in judged.text


def test_the_answer_is_chosen_by_the_value_as_it_is_told() -> None:
    # 40 → 26.61 is a factor of 1.5034, which is told as 1.5.
    judged = outcome(FACTOR, Guess(choice="same"), run(2_661), run(4_000 + 1), SHOWS)
    assert judged is not None
    assert "a factor of 1.5." in judged.text
    assert judged.near is True


@pytest.mark.parametrize(
    ("before", "after", "right"),
    [(400, 400, "same"), (400, 267, "same"), (400, 100, "some"), (400, 40, "some"), (400, 36, "all"), (400, 0, "all")],
)
def test_a_factor_is_that_of_the_chapters_figure(before: int, after: int, right: str) -> None:
    judged = outcome(FACTOR, Guess(choice=right), run(after), run(before), SHOWS)
    assert judged is not None
    assert judged.near is True
    assert "a factor of" in judged.text


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [(7, 0, " (7 → 0 events), a factor of at least 7."), (8, 2, " (8 → 2 events), a factor of 4.")],
)
def test_a_factor_of_few_events_is_told_with_the_events(before: int, after: int, told: str) -> None:
    judged = outcome(FACTOR, Guess(choice="some"), run(after), run(before), SHOWS)
    assert judged is not None
    assert told in judged.text


def test_a_figure_that_rises_is_judged_by_its_rise() -> None:
    shows = Shows("preempted", 3.0, rises=True)
    judged = outcome(FACTOR, Guess(choice="all"), run(400), run(4), shows)
    assert judged is not None
    assert judged.near is True


@pytest.mark.parametrize(
    ("before", "after", "right"),
    [(100, 50, "fewer"), (100, 51, "same"), (100, 200, "same"), (100, 206, "more"), (0, 0, "same")],
)
def test_a_ratio_is_the_second_run_divided_by_the_first(before: int, after: int, right: str) -> None:
    judged = outcome(RATIO, Guess(choice=right), run(0, after), run(0, before), SHOWS)
    assert judged is not None
    assert judged.near is True
    assert "Page faults" in judged.text


@pytest.mark.parametrize(("count", "right"), [(0, "few"), (10, "few"), (11, "some"), (100, "some"), (101, "many")])
def test_a_value_is_judged_by_one_run_alone(count: int, right: str) -> None:
    for answer in VALUE.answers:
        judged = outcome(VALUE, Guess(choice=answer.id), run(count))
        assert judged is not None
        assert judged.near is (answer.id == right)
        assert "a second." in judged.text


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from([FACTOR, RATIO, VALUE]))
def test_exactly_one_answer_is_right_for_all_runs(before: int, after: int, task: GuessTask) -> None:
    sides = run(after, after), run(before, before)
    judged = [outcome(task, Guess(choice=answer.id), *sides, SHOWS) for answer in task.answers]
    assert [one.near for one in judged if one is not None].count(True) == 1


def test_the_neighbour_of_the_right_amount_is_near() -> None:
    """Only an ordered list of amounts has neighbours."""
    expected = {"few": "wrong", "some": "beside", "many": "right"}
    for choice, grade in expected.items():
        judged = outcome(VALUE, Guess(choice=choice), run(400))
        assert judged is not None
        assert (judged.grade, judged.beside) == (grade, grade == "beside")
        assert judged_guess(judged, 200, explained=False)[0].plain.startswith(SIGNS[grade])
    fell = outcome(FALLS, Guess(choice="faults"), run(4, 40), run(400, 40))
    # Of three answers, each would be near if the one in the middle is right.
    of_three = outcome(replace(VALUE, answers=VALUE.answers[:3]), Guess(choice="some"), run(400))
    for other in (fell, of_three):
        assert other is not None
        assert other.grade == "wrong"


@pytest.mark.parametrize("task", [FALLS, FACTOR, RATIO])
def test_nothing_is_judged_before_both_runs_exist(task: GuessTask) -> None:
    guess = Guess(choice=task.answers[0].id)
    assert outcome(task, guess, None, run(1), SHOWS) is None
    assert outcome(task, guess, run(1), None, SHOWS) is None


def test_without_the_figure_there_is_no_judgement() -> None:
    bare = KnownRun(replace(run(1).run, threads=()))
    for task, shows in ((FALLS, None), (FACTOR, SHOWS), (FACTOR, None), (RATIO, None), (VALUE, None)):
        judged = outcome(task, Guess(choice=task.answers[0].id), bare, bare, shows)
        assert judged is not None
        assert judged.near is None
        assert "not judged" in judged.text
        assert judged.explanation == ""


@pytest.mark.parametrize("task", [FALLS, FACTOR, RATIO, VALUE])
def test_an_answer_that_the_lesson_no_longer_has_is_told(task: GuessTask) -> None:
    judged = outcome(task, Guess(choice="gone"), run(1), run(1), SHOWS)
    assert judged is not None
    assert judged.near is None


@pytest.mark.parametrize(("name", "begins"), [("50", "p50: "), ("max", "Max: "), ("faults", "Page faults")])
def test_a_percentile_keeps_its_small_letter_in_the_sentence(name: str, begins: str) -> None:
    made = run(1).run
    summary = replace(made.histograms[made.main_histogram], percentiles={"50": 100})
    seen = KnownRun(replace(made, histograms={made.main_histogram: summary}))
    judged = outcome(replace(VALUE, figure=name), Guess(choice="many"), seen)
    assert judged is not None
    assert f" {begins}" in judged.text


@pytest.mark.parametrize(
    ("task", "stopped", "judged"), [(RATIO, True, False), (RATIO, False, True), (VALUE, True, True)]
)
def test_a_count_that_grows_with_the_messages_is_not_judged_if_few_were_sent(
    task: GuessTask, stopped: bool, judged: bool
) -> None:
    seen = run(40, 40)
    stalls = replace(seen.run.stalls, stolen_ns_per_second=0.9e9 if stopped else 0.0)
    few = KnownRun(replace(seen.run, stalls=stalls))
    found = outcome(task, Guess(choice=task.answers[1].id), few, run(40, 40), SHOWS)
    assert found is not None
    assert (found.near is not None) is judged
    told = "of the planned messages were sent, and a figure that decides the answer counts something"
    assert (told in found.text) is not judged
    if not judged:
        assert outcome(replace(task, by="value", slot="measure"), Guess(choice="same"), run(40, 40)) is not None


def stopped(seen: KnownRun) -> KnownRun:
    """Return the run as one in which a thread was stopped for most of the time."""
    return KnownRun(replace(seen.run, stalls=replace(seen.run.stalls, stolen_ns_per_second=0.9e9)))


@pytest.mark.parametrize("known", [True, False])
def test_a_mark_is_judged_by_the_latency_from_when_a_message_was_due(known: bool) -> None:
    made = stopped(run(1)).run
    main = made.histograms[made.main_histogram]
    short, long = (replace(main, percentiles={**main.percentiles, "99.9": ns}) for ns in (100, 50_000_000))
    found = {made.main_histogram: short, **({INTENDED: long} if known else {})}
    task = replace(VALUE, kind="mark", by=None, percentile="99.9")
    judged = outcome(task, Guess(value_ns=60_000_000), KnownRun(replace(made, histograms=found)))
    assert judged is not None
    if known:
        assert (judged.near, judged.measured_ns) == (True, 50_000_000)
        assert "at p99.9; it was 50 ms" in judged.text
    else:
        assert judged.near is None
        assert "leaves out the waits" in judged.text


@pytest.mark.parametrize(
    ("first_stopped", "before", "after", "judged"),
    [
        (False, (400, 40), (4, 40), True),  # the preemptions fell most, and they do not depend on the messages
        (False, (400, 400), (200, 10), False),  # the page faults fell most
        (False, (40, 40), (40, 40), False),  # "none of them" is about the page faults, too
        (True, (400, 40), (4, 40), False),  # the page faults may have fallen further
    ],
)
def test_the_largest_fall_is_judged_if_the_messages_decide_nothing(
    first_stopped: bool, before: tuple[int, int], after: tuple[int, int], judged: bool
) -> None:
    first, second = run(*before), stopped(run(*after))
    found = outcome(FALLS, Guess(choice="clock"), second, stopped(first) if first_stopped else first)
    assert found is not None
    assert (found.near is not None) is judged
    assert ("each message may cause" in found.text) is not judged


def test_without_the_first_run_few_messages_give_no_outcome() -> None:
    assert outcome(RATIO, Guess(choice="same"), stopped(run(40, 40))) is None


@pytest.mark.parametrize("asked", [None, "99"])
def test_a_latency_that_leaves_out_the_waits_judges_no_guess(asked: str | None) -> None:
    task, given = replace(VALUE, figure=asked), Guess(choice="few")
    if asked is None:
        answers = (Answer("any", "any time", "It was so."),)
        task, given = GuessTask("mark", "Where?", "measure", answers, percentile="50"), Guess(value_ns=100)
    made = run(40).run
    summary = replace(made.histograms[made.main_histogram], percentiles={"50": 100, "99": 500})
    seen = KnownRun(replace(made, histograms={made.main_histogram: summary}))
    judged, unjudged = outcome(task, given, seen), outcome(task, given, stopped(seen))
    assert judged is not None
    assert judged.near is not None
    assert unjudged is not None
    assert unjudged.near is None
    assert unjudged.text.endswith("leaves out the waits of the other messages.")


def test_the_largest_fall_is_judged_by_latencies_of_one_clock() -> None:
    tail = Answer("tail", "p99.9", "It was shorter.", figure="99.9")
    task = replace(FALLS, answers=(tail, *(a for a in FALLS.answers if a.figure != "faults")))

    def cut(switches: int, plain: int, waits: int | None) -> KnownRun:
        made = stopped(run(switches)).run
        main = replace(made.histograms[made.main_histogram], percentiles={"99.9": plain})
        due = {} if waits is None else {INTENDED: replace(main, percentiles={"99.9": waits})}
        return KnownRun(replace(made, histograms={**made.histograms, made.main_histogram: main, **due}))

    # By transit p99.9 fell 50 times, and by latency the preemptions fell most.
    found = outcome(task, Guess(choice="preempted"), cut(40, 20, 900), cut(400, 1_000, 1_000))
    assert found is not None
    assert found.near is True
    assert "p99.9: 1 µs → 900 ns" in found.explanation
    wrong = outcome(task, Guess(choice="tail"), cut(40, 20, 900), cut(400, 1_000, 1_000))
    assert wrong is not None
    assert "You said: p99.9: 1 µs → 900 ns" in wrong.text
    unjudged = outcome(task, Guess(choice="preempted"), cut(40, 20, None), cut(400, 1_000, 1_000))
    assert unjudged is not None
    assert unjudged.near is None
    assert unjudged.text.endswith("leaves out the waits of the other messages.")


def test_p99_from_the_due_time_has_the_waits_and_is_judged() -> None:
    made = stopped(run(40)).run
    due = replace(made.histograms[made.main_histogram], percentiles={"99": 500})
    seen = KnownRun(replace(made, histograms={**made.histograms, INTENDED: due}))
    found = outcome(replace(VALUE, figure=P99_FROM_DUE_TIME), Guess(choice="many"), seen)
    assert found is not None
    assert found.near is True


def test_a_difference_that_decides_is_told_with_both_parts_and_is_not_judged_below_zero() -> None:
    asked = replace(VALUE, figure="stalls-unswitched")

    def told(stalls: float, switches: int) -> tuple[bool | None, str]:
        seen = run(switches)
        rate = StallRate(100_000, int(stalls * 10), stalls, 0.0)
        stalled = replace(seen.run, stalls=replace(seen.run.stalls, rates=(rate,)))
        found = outcome(asked, Guess(choice="few"), KnownRun(stalled))
        assert found is not None
        return found.near, found.text

    near, text = told(120.0, 1_070)
    assert near is False
    assert "120 − 107 = 13 a second" in text
    near, text = told(86.1, 1_070)
    assert near is None
    assert text.startswith("Your guess is not judged. Stalls of 100")
    assert "86.1 − 107" in text


def test_a_measured_question_tells_its_right_answers_and_the_figures_of_the_others() -> None:
    known = measured_answers(FALLS, run(4, 40), run(400, 40), None)
    assert known is not None
    assert known.right == ("preempted",)
    assert known.figures["preempted"] == "40 → 0.4 a second"
    assert known.figures["faults"] == "4 → 4 a second"
    assert "none" not in known.figures
    value = measured_answers(VALUE, run(50), None, None)
    assert value is not None
    assert (value.right, value.figures) == (("some",), {"some": "5 a second"})
    assert measured_answers(FALLS, run(4, 40), None, None) is None


def of_devices(movable: int, managed: int) -> KnownRun:
    counters = {"34": Counter("virtio4-input", {"1": movable}), "36": Counter("virtio1-req.0", {"1": managed})}
    made = replace(run(40).run, interrupts=counters, placement=Placement("auto", sampler=1, hot=(1,)))
    return KnownRun(made)


DEVICES = replace(
    FALLS,
    answers=(Answer("devices", "devices", "They go.", figure="device-interrupts"), FALLS.answers[0], FALLS.answers[-1]),
)


def test_an_interrupt_that_cannot_be_moved_does_not_decide_the_guess_and_is_told_apart() -> None:
    judged = outcome(DEVICES, Guess("devices"), of_devices(0, 750), of_devices(800, 290))
    assert judged is not None
    assert judged.near
    assert "virtio1-req.0, which cannot be moved" in judged.explanation
    judged = outcome(DEVICES, Guess("devices"), of_devices(800, 0), of_devices(800, 290))
    assert judged is not None
    assert judged.near is False


def test_each_question_on_the_figure_that_falls_most_asks_for_half() -> None:
    tasks = [chapter.prediction for chapter in load_course().chapters if chapter.prediction is not None]
    asked = [task.question for task in tasks if task.by == "falls"]
    assert len(asked) >= 4
    assert all("falls most, and at least to half?" in question for question in asked)
