"""``explain`` as text: calm at 80 columns, true in its sums, and no name gets through unclean to the terminal."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.evidence.explain import explain_block
from jitter_workshop.evidence.summary import summarise_run
from jitter_workshop.model.evidence import (
    NOT_OURS,
    THIS_WORKSHOP,
    BlockSpan,
    Cause,
    EvidenceReport,
    ExplainedStall,
    Part,
    Slice,
    Window,
)
from jitter_workshop.model.run import AT, made_late
from jitter_workshop.model.trace import TraceEvent
from jitter_workshop.presenter.runs.causes import (
    REST,
    SHADES,
    cause_table,
    causes_head,
    recording_commands,
    stall_bar,
    stall_in_rows,
    stall_page,
    stall_report_lines,
)
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.report.cause_words import (
    SAME,
    SENDER_ONLY,
    cause_name,
    cause_words,
    misfit_sentence,
    without,
    words_of_column,
)
from jitter_workshop.report.diagnosis_words import IN_A_GUEST
from jitter_workshop.report.pictures import small
from tests.madetrace import MEASURED, OTHER, TIDS, block, event, pair, switch, tick

HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\nirq 5: [bold]nothing[/] \u202e\u2028 0x1"


def render(report: EvidenceReport, label: str = "", width: int = 80, colour: bool = False) -> str:
    return written(stall_report_lines(report, width, label), colour)


def made(events: list[TraceEvent], windows: list[tuple[int, int]], **rest: object) -> EvidenceReport:
    span = BlockSpan(0, 0, 1_000_000, 0, 1_000_000)
    lost = rest.pop("lost", None)
    found = [Window(start, end, 1, "sampler") for start, end in windows]
    blocks = explain_block(span, found, events, (1,), TIDS, lost)  # type: ignore[arg-type]
    said = {"run": "r1", "threshold_ns": 1_000, "clock": "x86-tsc", "main_thread": "sampler", "messages": 1_000, **rest}
    return summarise_run([blocks], **said)  # type: ignore[arg-type]


def stall(*pieces: tuple[str, int]) -> ExplainedStall:
    """A stall of tasks, one after the other."""
    at, timeline, sums = 0, [], {}
    for name, ns in pieces:
        timeline.append(Slice("task", name, at, ns))
        sums[name] = sums.get(name, 0) + ns
        at += ns
    parts = [Part("task", name, ns) for name, ns in sorted(sums.items(), key=lambda item: -item[1])]
    return ExplainedStall(0, at, 1, "sampler", 1, 0, tuple(parts), tuple(timeline))


def test_a_sampler_has_no_messages_to_be_late() -> None:
    assert made_late("sampler", 40) == "" == made_late("accumulator", 1)
    assert made_late("accumulator", 1_200) == "1,200 messages late"


def test_the_report_of_a_noisy_block() -> None:
    events = [
        *pair(1_000, 4_000, "irq", "nic0"),
        *pair(4_200, 4_900, "softirq", "NET_RX", number=3),
        switch(10_000, MEASURED, OTHER, stays=True),
        event(10_000, "stack", "__schedule+0x2a0;schedule"),
        switch(60_000, OTHER, MEASURED),
        event(70_000, "frequency", a=2_400_000, b=1),
        event(70_100, "tick_stop", "SCHED", a=0),
        event(80_000, "ipi_send", "flush_tlb_func", cpu=0, pid=OTHER, a=1),
        event(90_000, "migrate", cpu=0, pid=OTHER, a=MEASURED, b=1, c=1),
        switch(91_000, MEASURED, OTHER),
    ]
    text = render(made(events, [(900, 5_000), (9_900, 60_100), (70_500, 79_500)]), "before")
    assert max(len(line) for line in text.split("\n")) <= 80
    assert "\x1b" not in text
    first, second = text.split("\n")[:2]
    assert first == "before · r1"
    assert second.startswith("3 stalls over 1 µs in")
    assert second.endswith(" in 1 ms")
    # The words on the trace stand below the causes.
    assert text.index("\ncause ") < text.index("\nKernel trace, clock ")
    assert ", clock x86-tsc" in text
    for wanted in (
        "task other ",
        "interrupt nic0",
        "softirq NET_RX",
        "gap at nic0",
        "no event ",
        "99.70 % of 1,000 readings (sampler) were below 1 µs.",
        "50.2 µs at 9.9 µs · sampler on CPU 1",
        "in the kernel at 100 ns: __schedule+0x2a0 ← schedule",
        "other tasks ran twice on CPU 1",
        "asked for another frequency once: 2.40 to 2.40 GHz",
        "could not stop once: SCHED",
        "other had flush_tlb_func called on CPU 1, once",
        "Sampler was moved to CPU 1 once while other ran.",
        "perf sched record -C 1",
        "trace-cmd record -B by-hand -M 2 ",
    ):
        assert wanted in text, wanted


def test_limits_of_the_answer_are_told_first() -> None:
    report = made(tick(100, 50), [(500, 2_000)], lost={1: 1_234}, missing={"csd:csd_function_entry": "no"}, unlisted=3)
    text = render(report)
    assert "The buffer was full: 1,234 events" in text
    assert "(CPU 1: 1,234)." in text
    assert "does not offer the events csd:csd_function_entry" in text
    assert "3 shorter stalls were counted" in text
    assert "not known: events lost" in text
    assert text.index("1,234 events") < text.index("\ncause ")


def test_a_trace_that_contradicts_itself_is_no_loss() -> None:
    report = made([switch(1_000, MEASURED, OTHER, stays=True), *tick(9_000, 50)], [(900, 9_500)])
    text = render(report)
    assert "not known: an event is missing" in text
    assert "0 lost" in text
    assert "events lost" not in text
    flat = " ".join(text.split())
    # The time without a known cause is told once, above the causes; the task below them.
    assert flat.index("The trace lacks 8 µs, so") < flat.index("WHO TOOK") < flat.index("left the CPU: other.")
    assert "are not known." not in flat
    assert "events in the trace contradict each other" in flat


@pytest.mark.parametrize(
    ("unknown_ns", "mark", "style"), [(10_000, "", "dim"), (10_001, "▲ ", "bad"), (None, "▲ ", "bad")]
)
def test_events_that_did_not_fit_are_a_warning_where_they_touch_much_time(
    unknown_ns: int | None, mark: str, style: str
) -> None:
    report = made([switch(1_000, MEASURED, OTHER, stays=True), *tick(9_000, 50)], [(900, 9_500)])
    lines = list(causes_head(replace(report, unknown_ns=unknown_ns, measured_ns=1_000_000), 100))
    line = next(line for line in lines if "that left the CPU" in line.plain)
    assert line.plain.startswith(f"{mark}The trace lacks 1 event of a task that left the CPU: other.")
    assert str(line.style) == style
    assert ("are not known." in line.plain) == (unknown_ns is not None)


def test_tasks_whose_switch_was_not_reported_are_named() -> None:
    report = made([switch(1_000, MEASURED, OTHER, stays=True), *tick(9_000, 50)], [(900, 9_500)])
    assert report.unreported == {"other": 1}
    many = replace(report, unbalanced=39, unknown_ns=None, unreported={"a": 20, "b\x1b": 10, "c": 8, "d": 1})
    assert misfit_sentence(many) == ("The trace lacks 39 events of tasks that left the CPU: a, b and 2 other tasks.")
    # An event of another sort is missing, too: then no task is named.
    assert misfit_sentence(replace(many, unbalanced=40)).startswith("40 events did not fit the earlier events.")
    assert misfit_sentence(replace(many, unbalanced=0)) == ""


def test_several_threads_of_a_name_are_told_within_the_column() -> None:
    one = Cause("task", HOSTILE, 1, 1, 1, 1.0, 0, threads=1_234)
    said = cause_name(one, 30)
    assert len(said) <= 30
    assert said.endswith(" (1,234 threads)")
    assert "\x1b" not in said
    assert "thread" not in cause_name(Cause("task", "python", 1, 1, 1, 1.0, 0), 30)


def test_candidates_are_told_where_there_is_a_gap_without_an_event() -> None:
    said = ("the hypervisor (KVM) ran something else: it does not say", f"memory {HOSTILE}")
    text = render(made([], [(1_000, 9_000)], candidates=said))
    assert "  - the hypervisor (KVM) ran something else" in text
    assert "\x1b" not in text
    assert "hypervisor (KVM)" not in render(made(pair(1_000, 9_000, "irq", "nic0"), [(1_000, 9_000)], candidates=said))


def test_the_first_stalls_are_in_full_and_the_others_in_a_line() -> None:
    events = [
        e for start in range(10_000, 60_000, 10_000) for e in pair(start, start + 5_000 - start // 100, "irq", "nic0")
    ]
    report = made(events, [(start, start + 5_000) for start in range(10_000, 60_000, 10_000)])
    lines = render(report).split("\n")
    # 52 s after its beginning in 30 s of measuring: the pauses count here.
    assert AT in lines
    assert AT in [line.plain for line in stall_page(report.worst[0], 80)]
    assert sum(line.startswith("    █") and line.count("█") > 1 for line in lines) == 3
    assert [line.split("at ")[1].split()[:2] + line.split()[-4:] for line in lines if re.match(r" +[45]  ", line)] == [
        ["40", "µs", "92", "%", "interrupt", "nic0"],
        ["50", "µs", "90", "%", "interrupt", "nic0"],
    ]


def test_nothing_to_explain_is_said_so() -> None:
    text = render(made([], []))
    assert "no stall to explain." in text
    # Not even the tick of that CPU is in it.
    assert "trace of CPU 1 is empty" in text
    assert "is empty in 1 block, so" in text


def test_a_share_is_told_only_where_it_is_another_one() -> None:
    events = [*pair(1_000, 4_000, "irq", "nic0"), *pair(4_000, 9_000, "softirq", "NET_RX", number=3)]
    lines = render(made(events, [(1_000, 9_000), (20_000, 25_000)])).split("\n")
    assert next(line for line in lines if line.startswith("interrupt nic0")).split()[4:7] == ["µs", "3", "µs"]
    assert next(line for line in lines if line.startswith("no event")).split()[5:7] == ["99.90", "%"]


def test_the_share_stands_above_the_column_that_shows_another_share() -> None:
    events = [*pair(1_000, 4_000, "irq", "nic0"), *pair(4_000, 9_000, "softirq", "NET_RX", number=3)]
    text = render(made(events, [(1_000, 9_000), (20_000, 25_000)]))
    assert "were below 1 µs." in text
    where = [text.index(said) for said in ("WHO TOOK THE TIME", "99.", "'without it'", "worst", "99.90 %")]
    assert where == sorted(where)


def test_no_usual_name_of_a_cause_is_cut_at_80_columns() -> None:
    events = [*pair(1_000, 4_000, "irq", "nic0"), *pair(4_000, 9_000, "softirq", "NET_RX", number=3)]
    (cause, *_) = (report := made(events, [(1_000, 9_000), (20_000, 25_000)])).causes
    names = {
        "task tokio-rt-worker (12 threads)": ("task", "tokio-rt-worker", 12),
        "local timer (interrupt)": ("vector", "local_timer", 1),
        "timer tick_nohz_handler": ("timer", "tick_nohz_handler", 1),
        "another CPU asks to reschedule": ("vector", "reschedule", 1),
        "gap at local timer": ("around", "local_timer", 1),
    }
    causes = tuple(
        replace(cause, kind=kind, name=name, threads=threads, count=12_345, worst_ns=40_400_000, total_ns=370_000_000)
        for kind, name, threads in names.values()
    )
    # The text of a screen of 80 columns has 77: a blank, the text, a blank and the scroll bar.
    lines = [line.plain for line in cause_table(replace(report, causes=causes), 77)]
    assert [name for name in names if not any(line.startswith(f"{name}  ") for line in lines)] == []
    assert max(map(len, lines)) <= 77


def test_a_cause_that_made_no_message_late_is_told_apart_from_one_of_two_causes() -> None:
    events = [*pair(1_000, 4_000, "irq", "nic0"), *pair(4_000, 9_000, "softirq", "NET_RX", number=3)]
    report = made(events, [(1_000, 9_000)])
    # Without one of two causes the stall would be shorter, and its messages would be as late.
    assert {without(cause, report) for cause in report.causes} == {SAME} == {""}
    assert words_of_column(report) == ""
    of_others = replace(report, causes=tuple(replace(cause, late_messages=0) for cause in report.causes))
    assert {without(cause, of_others) for cause in of_others.causes} == {SENDER_ONLY}
    assert words_of_column(of_others) == f"{SENDER_ONLY}: the cause stopped only other threads than the sampler."
    assert of_others.messages
    of_ring = replace(of_others, main_thread="accumulator")
    told = words_of_column(replace(of_ring, measured_ns=of_others.messages * 10**9))
    assert told.startswith(f"{SENDER_ONLY}: the cause stopped only other threads than the accumulator.")
    assert told.endswith("it counts each message from its sending."), "latency from the due time counts them"
    told = words_of_column(replace(of_ring, measured_ns=of_others.messages * 10_000))
    assert told.endswith(" a sender that stops for 1 ms sends about 100 messages late.")


def test_a_report_draws_a_stall_in_the_colours_of_its_kinds_of_cause() -> None:
    made_up = stall(("a", 60), ("b", 40))
    assert small.cause_styles(made_up) == ["cause-task", "cause-task pale-1"]
    assert 'class="cause-task pale-1"' in small.timeline(made_up)
    gap = Slice("no_event", "", 0, 5)
    unknown = replace(made_up, parts=(Part("timer", "tick", 9), Part("no_event", "", 5)), timeline=(gap,))
    assert small.cause_styles(unknown) == ["cause-timer", small.REST]


def test_a_bar_shows_the_order_and_the_legend_the_sums() -> None:
    drawn, legend = stall_bar(stall(("a", 50), ("b", 25), ("a", 25)), 8)
    assert drawn == "████▓▓██"
    assert legend == (("█", "task a", 75), ("▓", "task b", 25))
    many = stall_bar(stall(("a", 50), ("b", 20), ("c", 12), ("d", 9), ("e", 5), ("f", 4)), 25)
    assert many[0].endswith("·" * 2)
    assert many[1][-1] == (REST, "2 other causes", 9)


@pytest.mark.parametrize(("width", "place"), [(67, 1), (100, 0)])
def test_a_bar_without_room_beside_its_stall_is_below_it(width: int, place: int) -> None:
    lines = stall_in_rows(1, stall(("a", 50), ("b", 25), ("a", 25)), False, width, 2)
    assert [n for n, line in enumerate(lines) if "█" in line.plain] == [place]
    assert len(lines) == 2
    assert all(line.cell_len <= width for line in lines)
    assert len(stall_in_rows(1, stall(("a", 50)), False, width, 1)) == 1


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 500)), min_size=1, max_size=40), st.integers(1, 90)
)
def test_a_bar_is_as_wide_as_asked_and_its_legend_adds_up(pieces: list[tuple[str, int]], width: int) -> None:
    made_up = stall(*pieces)
    drawn, legend = stall_bar(made_up, width)
    assert len(drawn) == width
    assert set(drawn) <= set(SHADES + REST)
    assert sum(ns for _, _, ns in legend) == made_up.duration_ns


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("task", "idle", "waking from idle"),
        ("task", "throttled", "throttled while the CPU was idle"),
        ("task", "kworker/1:1", "task kworker/1:1"),
        ("task", "   ", "task (no visible name)"),
        ("task", "\u200b\x1b", "task (no visible name)"),
        ("task", "", "task (no visible name)"),
        ("no_event", "", "no event"),
        ("no_event", "asleep", "asleep or stopped"),
        ("page_fault", "user", "page fault (user)"),
        ("migration", "migration/1", "move to another CPU (migration/1)"),
        ("vector", "local_timer", "local timer (interrupt)"),
        ("around", "local_timer", "gap at local timer"),
        ("vector", "reschedule", "another CPU asks to reschedule"),
        ("vector", "flush_tlb_func", "vector flush_tlb_func"),
        ("vector", "rps_trigger_softirq", "another CPU passes packets on (RPS)"),
        ("around", "rps_trigger_softirq", "gap at another CPU passes packets on"),
        ("brand_new", "x", "brand_new x"),
        ("task", "producer", "task producer (our own thread)"),
        ("task", "sleeper", "task sleeper (our own thread)"),
        ("task", f"sampler{NOT_OURS}", "task sampler (another workshop?)"),
        ("around", "producer", "gap at producer"),
    ],
)
def test_causes_in_words(kind: str, name: str, said: str) -> None:
    assert cause_words(kind, name) == said


def test_a_task_is_our_own_only_in_a_run_and_where_there_is_room() -> None:
    assert cause_words("task", "accumulator", measured=False) == "task accumulator"
    assert cause_words("task", "accumulator", 24) == "task accumulator"


def test_whose_task_it_is_is_said_even_where_its_name_has_no_room() -> None:
    assert cause_words("task", f"accumulator{NOT_OURS}", 24) == "another workshop?"
    assert cause_words("task", f"jitter-workshop{THIS_WORKSHOP}", 24) == "this workshop"


def test_no_name_reaches_the_terminal_as_it_is() -> None:
    events = [
        switch(1_000, MEASURED, OTHER, stays=True, names=("measured", HOSTILE)),
        event(1_000, "stack", f"{HOSTILE};{HOSTILE}"),
        event(1_500, "ipi_send", HOSTILE, cpu=0, pid=OTHER, a=1),
        *pair(2_000, 3_000, "irq", HOSTILE, pid=OTHER),
        *pair(3_100, 3_900, "csd", HOSTILE, pid=OTHER),
        event(4_000, "migrate", HOSTILE, pid=OTHER, a=MEASURED, b=1, c=1),
        switch(5_000, OTHER, MEASURED),
        event(6_000, "tick_stop", HOSTILE, a=0),
    ]
    report = made(events, [(900, 5_100)], run=HOSTILE, clock=HOSTILE, missing={HOSTILE: HOSTILE})
    text = render(report, HOSTILE)
    assert not set(text) & set("\x1b\x07\r\u202e\u2028")
    assert max(len(line) for line in text.split("\n")) <= 80
    forged = [line for line in text.split("\n") if line.startswith("irq 5")]
    assert not forged


@given(st.integers(0, 3), st.lists(st.tuples(st.integers(0, 900_000), st.integers(1, 80_000)), max_size=8))
def test_any_report_fits_its_columns(seed: int, windows: list[tuple[int, int]]) -> None:
    report = made(block(250, cpus=(1,), seed=seed), [(start, start + length) for start, length in windows])
    for width in (60, 80, 160):
        lines = render(report, "label", width).split("\n")
        commands = recording_commands((1,))
        assert all(len(line) <= max(width, 60) for line in lines if line.strip() not in commands)


def test_colour_is_only_where_it_was_asked_for() -> None:
    report = made(tick(1_000, 3_000), [(900, 4_500)])
    assert "\x1b[" in render(report, colour=True)
    assert "\x1b[" not in render(report)


def test_the_commands_for_many_cpus() -> None:
    assert recording_commands(()) == ()
    assert any("-M 100000002 " in line for line in recording_commands((1, 32)))


def test_a_vector_keeps_its_words_where_only_the_brackets_do_not_fit() -> None:
    assert cause_words("vector", "local_timer", 20) == "local timer"
    assert cause_words("vector", "local_timer", 8) == "vector…"


@pytest.mark.parametrize(("kind", "guest", "told"), [("irq", True, 1), ("irq", False, 0), ("task", True, 0)])
def test_the_time_of_interrupts_on_a_guest_is_told_below_the_table(kind: str, guest: bool, told: int) -> None:
    report = made([*tick(100_000, 5_000)], [(99_000, 110_000)])
    report = replace(report, causes=(replace(report.causes[0], kind=kind, name="one"),))
    lines = " ".join(line.plain for line in cause_table(report, 200, guest=guest))
    assert lines.count(IN_A_GUEST) == told
