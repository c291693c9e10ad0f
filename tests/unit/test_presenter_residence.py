"""The third page of a run's causes: what a chapter is about comes first, and names stay on their line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.course import EVIDENCE
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.evidence import (
    EvidenceReport,
    ExplainedStall,
    FrequencySeen,
    InterferingTask,
    Part,
    QuietCpus,
    Residence,
    ThreadOnCpu,
)
from jitter_workshop.model.palette import CAUSES, PALETTES, Palette
from jitter_workshop.presenter.runs.causes import SHADES, causes_offer, coloured, focused, ran_there

HOSTILE = "[red]x\x1b[2J\nforged line"
PROOF = QuietCpus(CpuSet((1,)).cpus, 1_000_000, False, 2, 3, 4, "Something ran.")
THREADS = (ThreadOnCpu(HOSTILE, 1, 900_000, 50_000, 7), ThreadOnCpu("sampler", 0, 100, 0, 0))
VISITORS = (
    InterferingTask(1, "task", HOSTILE, 3, 30_000, 20_000),
    InterferingTask(1, "vector", "local_timer", 10, 20_000, 9_000),
    InterferingTask(1, "softirq", "NET_RX", 4, 8_000, 5_000),
    InterferingTask(1, "workqueue", HOSTILE, 2, 6_000, 4_000),
)


def shown(focus: tuple[str, ...], width: int = 76, *, visitors: tuple[InterferingTask, ...] = VISITORS) -> list[str]:
    present = Residence(THREADS, visitors, (FrequencySeen(1, 2, 800_000, 3_000_000),), (), (), PROOF)
    report = EvidenceReport(1, "r", "trace", 1_000, "mono", 1, 0, (), (), 1, residence=present)
    return [line.plain for line in ran_there(report, focus, width)]


@pytest.mark.parametrize(
    ("focus", "first"),
    [
        ((), "WHO ELSE RAN ON THESE CPUS"),
        (("left", "switches"), "WHO ELSE RAN ON THESE CPUS"),
        (("residence",), "WHERE THE MEASURED THREADS RAN"),
        (("frequency", "temperature"), "FREQUENCY"),
        (("work", "interrupts"), "WORK, SOFTIRQS AND INTERRUPTS"),
    ],
)
def test_the_subject_of_a_chapter_comes_first(focus: tuple[str, ...], first: str) -> None:
    lines = shown(focus)
    headings = [line for line in lines if line.isupper()]
    assert headings[0] == first
    assert headings.count("WHERE THE MEASURED THREADS RAN") == 1
    assert headings.count("WHO ELSE RAN ON THESE CPUS") == 1


def test_work_comes_before_softirqs_and_interrupts_with_its_times() -> None:
    lines = shown(("work",))
    rows = lines[2:5]
    assert [row.split()[:2] for row in rows] == [["work", "[red]x"], ["softirq", "NET_RX"], ["local", "timer"]]
    assert rows[1].split()[2:] == ["1", "4", "2", "µs", "5", "µs", "8", "µs"]
    assert "No work, softirq or interrupt ran on these CPUs." in shown(("work",), visitors=())


def test_both_tables_have_their_columns_in_one_order() -> None:
    heads = [line.split() for line in shown(("work",)) if "CPU  times" in line]
    assert [[name for name in head if name != "each"] for head in heads] == [
        ["CPU", "times", "longest", "in", "all"]
    ] * 2
    tasks = shown(("work",))[shown(("work",)).index("WHO ELSE RAN ON THESE CPUS") :]
    (softirq,) = [line for line in tasks if "NET_RX" in line]
    assert softirq.split()[2:] == ["1", "4", "5", "µs", "8", "µs"]


def test_a_frequency_that_was_asked_for_is_told() -> None:
    said = " ".join(shown(("frequency",)))
    assert "CPU 1 was asked for another" in said
    assert "frequency twice: 0.80 to 3.00 GHz." in said


@pytest.mark.parametrize("width", [50, 76, 156])
@pytest.mark.parametrize("focus", [(), ("residence", "work", "frequency", "left")])
def test_hostile_names_stay_on_their_line(width: int, focus: tuple[str, ...]) -> None:
    for line in shown(focus, width):
        assert "\x1b" not in line
        assert "\n" not in line
        assert len(line) <= width


def test_the_key_v_is_described_in_words_of_the_chapter() -> None:
    assert causes_offer(("stalls",), traced=True) == "v shows what took the time, by the kernel's trace."
    assert "other than your thread" in causes_offer(("left", "switches"), traced=True)
    assert "needs one more run" in causes_offer(("residence",), traced=False)
    assert [word for word in EVIDENCE if focused([word])] == ["frequency", "residence", "work", "left"]


@given(st.permutations(sorted(CAUSES)))
def test_a_cause_has_one_colour_at_every_place(kinds: list[str]) -> None:
    parts = tuple(Part(kind, "x", 10 - place) for place, kind in enumerate(kinds[:4]))
    drawn = coloured(SHADES, ExplainedStall(1, 100, 1, "sampler", 1, 0, parts))
    assert [str(span.style) for span in drawn.spans] == [CAUSES[part.kind] for part in parts]


@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
def test_no_cause_looks_like_better_or_worse_and_no_reference_outshines_a_curve(palette: Palette) -> None:
    colours = [getattr(palette, role) for role in CAUSES.values()]
    assert len(set(colours)) == len(set(CAUSES.values()))
    assert not {palette.good, palette.bad, palette.faint, ""} & set(colours)

    def apart(colour: str) -> float:
        return abs(luminance(colour) - luminance(palette.background))

    assert max(map(apart, palette.references)) < min(map(apart, palette.curves))


def luminance(colour: str) -> float:
    red, green, blue = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    return 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2


def test_time_without_an_event_is_pale_in_the_bar_of_a_stall() -> None:
    parts = (Part("no_event", "", 60), Part("task", HOSTILE, 30), Part("around", "local_timer", 10))
    stall = ExplainedStall(1, 100, 1, "sampler", 1, 0, parts)
    drawn = coloured(SHADES, stall)
    styles = {drawn.plain[span.start]: str(span.style) for span in drawn.spans}
    assert styles == {"█": "faint", "▓": "cause_task", "▒": "faint", "░": "dim"}
