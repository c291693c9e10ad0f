"""Test which effect of a change is shown first, and how one line says it."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.flow.measuring.unchanged import unchanged
from jitter_workshop.model.course import Shows
from jitter_workshop.model.effect import CauseTime, Direction, Effect, Effects, Relation
from jitter_workshop.model.evidence import (
    ANOTHER_WORKSHOP,
    NOT_OURS,
    EvidenceReport,
    InterferingTask,
    QuietCpus,
    Residence,
)
from jitter_workshop.model.run import (
    HUNTED,
    INTENDED,
    MEANWHILE,
    UNSTEADY,
    ForeignLoad,
    Run,
    Stall,
    StallRate,
    ThreadRecord,
    of_transit,
)
from jitter_workshop.presenter.runs import disturbances, effect, effect_table, effect_words, large_figure, one_run
from jitter_workshop.presenter.runs.omission import few_sent
from jitter_workshop.presenter.text.lines import Lines, written
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.effect import (
    ALIKE,
    MOST_BY_LUCK,
    MOVED,
    count_effects,
    differences_by_figure,
    effect_on,
    effects_of_change,
    judge_of,
    judged_by,
    readings_apart,
    tail_of,
    unlike,
)
from jitter_workshop.stats.figures import FIGURES, KnownRun
from jitter_workshop.stats.omission import on_one_clock
from jitter_workshop.stats.sample_size import FEW_BESIDE
from jitter_workshop.stats.scale import difference_told, times_told
from tests import madeup


def run(p50: int = 100, p90: int = 200, tail: int = 5_000, worst: int = 9_000, preempted: int = 0) -> Run:
    """A ring run of one second with these values, and with so many preemptions of its main thread."""
    values = [p50] * 8_000 + [p90] * 1_900 + [tail] * 99 + [worst]
    threads = (ThreadRecord("accumulator", {"0": 1}, involuntary_switches=preempted),)
    return madeup.make_run([values], block_s=1.0, threads=threads)[0]


def between(before: Run, after: Run, shows: Shows | None = None, asked: str | None = None) -> Effects:
    return effects_of_change(KnownRun(before), KnownRun(after), shows, asked)


def said(found: Effects, *runs: Run, relation: Relation = "changed", width: int = 100) -> str:
    first, second = runs or (run(), dataclasses.replace(run(), id="another"))
    both = KnownRun(first), KnownRun(second)
    return written(effect.result_of_two_runs(judge_pair(found, both, relation), both, width).lines)


def test_the_largest_effect_leads_and_a_gain_never_hides_a_larger_loss() -> None:
    better = between(run(tail=170_000), run(tail=10_000))
    assert better.lead is not None
    assert (better.direction, better.lead.name, better.lead.how) == ("better", "stalls of 100 µs and more", "fewer")
    assert better.lead.at_least
    assert "Looks better: stalls of 100 µs and more are gone, 99 → 0 a second." in said(better)
    assert large_figure.large_factor(judge_pair(better)) == ("", ""), "how rare they are now is not known"
    worse = between(run(p50=50, p90=900), run(p50=300, p90=100))
    assert worse.lead is not None
    assert worse.but is not None
    assert (worse.lead.name, worse.lead.direction, worse.but.name) == ("p50", "worse", "p90")
    shown = between(run(preempted=40), run(p90=4_200, preempted=10), Shows("preempted", 3.0))
    assert shown.lead is not None
    assert (shown.lead.name, shown.direction) == ("p90", "worse")
    assert large_figure.large_factor(judge_pair(shown)) == ("21×", "bad")


def test_few_events_of_a_chapters_count_are_told_by_their_number_and_without_a_factor() -> None:
    before, after = run(preempted=7), dataclasses.replace(run(preempted=1), id="another")
    few = between(before, after, Shows("preempted", 3.0))
    assert few.shown is not None
    assert few.shown.events == (7, 1)
    told = said(few, before, after)
    assert "7 → 1 events" in told
    assert "fewer" not in told
    assert large_figure.large_factor(judge_pair(few)) == ("", "")
    many = between(run(preempted=70), after, Shows("preempted", 3.0))
    assert many.shown is not None
    assert many.shown.events is None
    assert "70× fewer" in said(many, run(preempted=70), after)


def styles_of(lines: Lines) -> str:
    return " ".join(str(style) for line in lines for style in (line.style, *(span.style for span in line.spans)))


def test_a_sure_loss_leads_the_verdict_and_nothing_of_it_is_cut() -> None:
    after = dataclasses.replace(run(p90=4_200, preempted=10), id="another")
    pair = KnownRun(run(preempted=40)), KnownRun(after)
    found = between(*(seen.run for seen in pair), Shows("preempted", 3.0))
    for width, short in ((60, False), (100, False), (60, True), (100, True)):
        result = effect.result_of_two_runs(judge_pair(found, pair), pair, width, short=short)
        assert result.uncut == len(result.told)
        kept = " ".join(" ".join(line.plain.split()) for line in result.told)
        assert kept.startswith("Looks worse: p90 is 21× longer")
        assert "4× fewer, as expected." in kept
        assert "the thread preempted 40/s 10/s 4× fewer" in kept
        styles = styles_of(result.told)
        assert "bold bad" in styles
        verdict = effect.result_of_two_runs(
            judge_pair(found, pair), pair, width, Text("Proven: no change."), short=short
        )
        kept = " ".join(line.plain for line in verdict.told[: verdict.uncut])
        assert kept.startswith("Proven: no change.")
        assert "p90" in kept


def test_a_figure_that_moved_less_than_its_chapter_says_has_its_row_all_the_same() -> None:
    before, after = run(preempted=40), dataclasses.replace(run(p90=4_200, preempted=30), id="another")
    found = between(before, after, Shows("preempted", 3.0))
    assert found.shown is None
    assert found.missed is not None
    told = [" ".join(line.split()) for line in said(found, before, after).splitlines()]
    verdict = "Looks worse: p90 is 21× longer, 200 ns → 4.2 µs. The thread preempted: 25 % fewer, not as expected."
    assert told[0] == verdict
    assert told[2] == "the thread preempted 40/s 30/s 25 % fewer"
    none = said(between(before, run(preempted=30), Shows("preempted", 3.0)), before, after)
    assert none.startswith("The thread preempted: 25 % fewer, 40 → 30 a second, not as expected. No clear ")


def test_the_percentile_that_judges_the_runs_is_told_beside_a_larger_effect() -> None:
    before, after = run(p90=900), dataclasses.replace(run(p90=100), id="another")
    stalls = Effect("stalls of 1 ms and more", ("30", "1 a second"), 30.0, "better", "fewer", sort="stalls")
    tail = Effect("p99.9", ("9 µs", "8 µs"), 1.125, "better", "shorter")
    found = dataclasses.replace(between(before, after), lead=stalls, tail=tail)
    pair = KnownRun(before), KnownRun(after)
    line, *rows = effect.result_of_two_runs(judge_pair(found, pair), pair, 200).told
    assert line.plain == "Looks better: 30× fewer stalls of 1 ms and more, 30 → 1 a second."
    assert {str(span.style) for span in line.spans} == {"bold good"}
    assert not any("bold" in styles_of([row]) for row in rows), "only the verdict is loud"
    assert "p99.9 9 µs 8 µs 11 % shorter (2× needed)" in [" ".join(row.plain.split()) for row in rows]


def test_a_gain_against_the_median_says_so_and_is_not_coloured_as_a_gain() -> None:
    before, after = run(p50=80, p90=900), dataclasses.replace(run(p50=110, p90=300), id="another")
    found = between(before, after)
    pair = KnownRun(before), KnownRun(after)
    told = " ".join(said(found, before, after).split())
    assert told.startswith("Looks better: p90 is 3× shorter, 900 ns → 300 ns. But p50 is 38 % longer.")
    assert "p50 80 ns 110 ns 38 % longer" in told
    assert "good" not in styles_of(effect.result_of_two_runs(judge_pair(found, pair), pair, 100).lines)
    assert large_figure.large_factor(judge_pair(found, pair)) == ("3×", "accent")
    # A median that hardly moved, or the same way, says nothing more.
    for p50 in (90, 70):
        after = dataclasses.replace(run(p50=p50, p90=300), id="another")
        found = between(before, after)
        assert "But p50" not in said(found, before, after)
        pair = pair[0], KnownRun(after)
        assert "good" in styles_of(effect.result_of_two_runs(judge_pair(found, pair), pair, 100).lines)
    # A median that moved by the factor 2 is told as the loss, once.
    twice = dataclasses.replace(run(p50=170, p90=300), id="another")
    assert said(between(before, twice), before, twice).count("p50 ") == 2, "in the verdict and in its row"


def test_fewer_stalls_whose_longest_did_not_shrink_say_so() -> None:
    before, after = run(), dataclasses.replace(run(), id="another")
    stalls = Effect("stalls of 100 µs and more", ("23.7", "0.9 a second"), 26.0, "better", "fewer", sort="stalls")

    def told(values: tuple[str, str], factor: float, direction: Direction) -> str:
        longest = Effect("max", values, factor, direction, "", one_event=True)
        found = dataclasses.replace(between(before, after), lead=stalls, tail=stalls, but=None, differences=(longest,))
        return " ".join(said(found, before, after).split())

    assert "26× fewer The longest stall stays: 4.02 ms → 4.04 ms." in told(("4.02 ms", "4.04 ms"), 1.005, "worse")
    assert "The longest stall stays: 4.04 ms → 4.02 ms." in told(("4.04 ms", "4.02 ms"), 1.005, "better")
    assert "The longest stall grew: 4 ms → 6 ms." in told(("4 ms", "6 ms"), 1.5, "worse")
    assert "longest stall" not in told(("4 ms", "1 ms"), 4.0, "better")


def test_a_loss_beside_more_foreign_load_is_only_perhaps_one() -> None:
    def beside(percent: float, seen: Run) -> Run:
        return dataclasses.replace(seen, disturbed=(ForeignLoad(7, "qemu", 1, percent),))

    before, after = run(), dataclasses.replace(run(p90=4_200), id="another")
    assert said(between(before, after), before, after).startswith("Looks worse: p90 is 21× longer, 200 ns → 4.2 µs.")
    for first, second, doubtful in ((0.0, 1.0, True), (0.0, 0.9, False), (2.0, 4.1, True), (20.0, 39.0, False)):
        pair = beside(first, before), beside(second, after)
        found = between(*pair)
        known = tuple(map(KnownRun, pair))
        assert (judge_pair(found, known).doubt == "other work") is doubtful
        assert said(found, *pair).startswith(
            "Latency: perhaps worse (more other work in the second run)." if doubtful else "Looks worse: "
        )
        assert large_figure.large_factor(judge_pair(found, known)) == (("", "") if doubtful else ("21×", "bad"))
        # The other way round it is a gain, and the load may be what the change keeps away.
        back = between(pair[1], pair[0])
        assert judge_pair(back, known[::-1]).doubt != "other work"
        assert said(back, pair[1], pair[0]).startswith("Looks better: ")
    # A task that took much more makes the latencies not comparable, whatever they are.
    for much in (beside(9.0, after), beside(9.0, dataclasses.replace(before, id="another"))):
        told = said(between(before, much), before, much)
        assert told.startswith(
            "Latency is not comparable: in the second run, qemu used 9 % of a CPU (none in the first"
        )
        assert "Measure the second run again. If you go on" in " ".join(told.split())
        assert large_figure.large_factor(judge_pair(between(before, much), (KnownRun(before), KnownRun(much)))) == (
            "",
            "",
        )


def test_a_difference_that_another_cause_made_is_only_perhaps_one_of_the_change() -> None:
    before, after = run(), dataclasses.replace(run(p90=4_200), id="another")
    treated = CauseTime("work vmstat_update", (9e6, 1e6), treated=True)
    disk = CauseTime("interrupt virtio1-req.0", (0.0, 22.5e6))

    def with_causes(first: Run, second: Run, *causes: CauseTime) -> Effects:
        return dataclasses.replace(between(first, second), causes=causes)

    found = with_causes(before, after, treated, disk)
    assert judge_pair(found).cause == disk
    told = " ".join(said(found, before, after).split())
    assert told.startswith("Latency: perhaps worse (most of it from interrupt virtio1-req.0).")
    assert told.endswith("+22.5 ms, most: interrupt virtio1-req.0")
    assert large_figure.large_factor(judge_pair(found)) == ("", "")
    back = with_causes(after, before, treated, dataclasses.replace(disk, ns=(22.5e6, 0.0)))
    assert judge_pair(back).cause is not None
    assert said(back, after, before).startswith("Latency: perhaps better ")
    # A small change of a large cause is no change of their sum.
    large = with_causes(before, after, treated, CauseTime("task python", (807e6, 845e6)))
    told = " ".join(said(large, before, after).split())
    assert told.startswith("Latency: perhaps worse (most of it from task python).")
    assert told.endswith("time of other causes 807 ms/s 845 ms/s about the same")
    # Less than half, a cause that the figure counts, a bound instead of a time, and no treated cause at all.
    loud = CauseTime("work vmstat_update", (1e6, 40e6), treated=True)
    for causes in (
        (loud, disk),
        (treated, dataclasses.replace(disk, counted=True)),
        (treated, dataclasses.replace(disk, at_most=(True, False))),
        (disk,),
    ):
        assert judge_pair(with_causes(before, after, *causes)).cause is None


def with_blocks(made: Run, *medians: int) -> Run:
    """The run with blocks of these medians, each of them twice."""
    (one,) = made.blocks
    blocks = tuple(dataclasses.replace(one, index=n, p50=p50) for n, p50 in enumerate(sorted((*medians, *medians))))
    return dataclasses.replace(made, blocks=blocks)


def test_a_percentile_that_differs_as_much_within_each_run_may_be_chance() -> None:
    tail = {"p90": 40_000, "tail": 50_000, "worst": 90_000}
    before, after = run(p50=30_000, **tail), dataclasses.replace(run(p50=100, **tail), id="another")
    wide = (90, 150, 5_000, 90_000, 400_000)
    both = with_blocks(before, *wide), with_blocks(after, *wide)
    p50 = effect_on("50", *map(KnownRun, both))
    assert p50 is not None
    assert p50.within_runs
    assert p50.doubtful
    lead = between(*both).lead
    assert lead is not None
    assert lead.sort == "stalls", "a figure that is not in doubt comes first"
    alone = Effects(p50, None, p50)
    told = " ".join(said(alone, *both).split())
    assert told.startswith("Latency: perhaps better (may be chance).")
    assert "p50 30 µs 100 ns 300× shorter, may be chance" in told
    assert large_figure.large_factor(judge_pair(alone, tuple(map(KnownRun, both)))) == ("", "")
    # The blocks of one run alike, too few blocks, and a span that is smaller than the effect.
    for pair in (
        (both[0], with_blocks(after, *[100] * 5)),
        (with_blocks(before, *wide[:4]), with_blocks(after, *wide[:4])),
        (with_blocks(before, 20_000, 30_000, 30_000, 30_000, 90_000), with_blocks(after, 90, 100, 100, 100, 300)),
    ):
        lead = between(*pair).lead
        assert lead is not None
        assert (lead.name, lead.doubtful) == ("p50", False)


def test_percentiles_of_loops_that_read_the_clock_at_different_rates_are_not_compared() -> None:
    def loop(each: int, times: int) -> Run:
        values = [each] * 9_900 * times + [4_000] * 100 * times
        return madeup.make_run([values], block_s=1.0, workload="spin", name="spin_gap")[0]

    slow, fast, alike = loop(600, 1), loop(30, 2), loop(30, 1)
    assert readings_apart(KnownRun(slow), KnownRun(fast))
    names = {e.name for e in (between(slow, fast).lead, between(slow, fast).nearest) if e is not None}
    assert not [name for name in names if name.startswith("p")]
    assert not readings_apart(KnownRun(slow), KnownRun(alike))
    lead = between(slow, alike).lead
    assert lead is not None
    assert lead.name == "p50"
    # A chapter that is about a percentile shows it all the same.
    of_chapter = effect_on("50", KnownRun(slow), KnownRun(fast))
    assert of_chapter is not None
    # Messages of the ring are sent on a schedule, so their number says nothing of their latency.
    rings = [dataclasses.replace(run, workload="ring") for run in (slow, fast)]
    assert not readings_apart(*map(KnownRun, rings))


def reader(readings: float, stalled_ns: float, tail: int = 178_000, worst: int = 9_000_000) -> Run:
    """A run of ``spin`` of one second with so many readings, and with stalls of this time."""
    made = madeup.make_run([[30] * 9_999 + [worst]], block_s=1.0, workload="spin", name="spin_gap")[0]
    main = made.main_summary
    assert main is not None
    values = {**dict.fromkeys(main.percentiles, 30), "99.9999": tail}
    summary = dataclasses.replace(main, count=round(readings), percentiles=values)
    stalls = dataclasses.replace(made.stalls, stolen_ns_per_second=stalled_ns, rates=())
    return dataclasses.replace(made, stalls=stalls, histograms={made.main_histogram: summary})


QUIET, NOISY = (85.7e6, 239e6, 178_000), (40.3e6, 640e6, 6_640_000, 17_000_000)
"""Two runs that were measured: the readings a second, the time in stalls, p99.9999; one has a hidden noise."""


@given(
    speed=st.floats(1e6, 2e8),
    faster=st.floats(1.0, 4.0).filter(lambda factor: abs(factor - MOVED) > 0.01),
    first=st.floats(0.0, 0.95),
    second=st.floats(0.0, 0.95),
)
def test_readings_that_stalls_took_do_not_make_two_loops_unlike(
    speed: float, faster: float, first: float, second: float
) -> None:
    slow, fast = reader(speed * (1 - first), first * 1e9), reader(faster * speed * (1 - second), second * 1e9)
    for both in ((slow, fast), (fast, slow)):
        assert readings_apart(*map(KnownRun, both)) is (faster > MOVED)


def test_a_loop_that_was_stalled_all_the_time_is_compared_by_all_its_readings() -> None:
    gone = reader(1e6, 1e9)
    assert not readings_apart(KnownRun(gone), KnownRun(reader(1e6, 1.2e9)))
    assert readings_apart(KnownRun(gone), KnownRun(reader(3e6, 1e9)))


def test_a_hidden_noise_that_stalls_a_loop_for_half_of_the_time_is_told_by_its_percentile() -> None:
    quiet, noisy = reader(*QUIET), dataclasses.replace(reader(*NOISY), id="b", notes={HUNTED: "a noise"})
    found = between(quiet, noisy)
    assert not found.left_out
    told = " ".join(said(found, quiet, noisy, relation="hunted").split())
    assert told.startswith("Beside the noise: p99.9999: ")
    assert "178 µs → " in told
    assert "6.64 ms, 37 times longer" in told


def test_a_hunt_never_says_only_where_stalls_took_more_time_or_a_figure_is_left_out() -> None:
    quiet, noisy = reader(85.7e6, 239e6), reader(20e6, 239e6, worst=40_000_000)
    found = between(quiet, noisy)
    assert found.left_out == "readings"
    assert found.lead is not None
    assert found.lead.one_event
    told = " ".join(said(found, quiet, dataclasses.replace(noisy, id="b"), relation="hunted").split())
    assert told == (
        "Beside the noise the maximum moved by a factor of 2, and it is one event. No percentile is compared: the two "
        "runs read the clock at different rates. Look which causes (v) are new."
    )
    # As a change, too, the result says what it leaves out.
    changed = " ".join(said(found, quiet, dataclasses.replace(noisy, id="b")).split())
    assert "No percentile is compared" in changed
    alike = between(reader(85.7e6, 239e6), reader(20e6, 239e6))
    for relation, start in (
        ("hunted", "Beside the noise no figure that can be compared moved by a factor of 2"),
        ("changed", "No clear change in the figures that can be compared."),
    ):
        told = " ".join(said(alike, quiet, dataclasses.replace(noisy, id="b"), relation=relation).split())
        assert told.startswith(start)
    # The time in stalls is known for each run.
    longer = between(quiet, reader(20e6, 640e6, worst=40_000_000))
    told = " ".join(said(longer, quiet, dataclasses.replace(noisy, id="b"), relation="hunted").split())
    assert told.startswith("Beside the noise: time in stalls: 239 ms → 640 ms a second, 2.7 times more")


def test_the_chapters_figure_is_told_first_where_it_moved_as_the_chapter_says() -> None:
    before, after = run(tail=190_000, preempted=40), run(tail=20_000, preempted=8)
    found = between(before, after, Shows("preempted", 3.0))
    assert found.shown is not None
    assert found.shown.name == "the thread preempted"
    told = said(found).splitlines()
    assert told[0].startswith("Looks better: stalls of 100 µs and more are gone. The thread preempted: 5× fewer, ")
    assert " ".join(told[2].split()) == "the thread preempted 40/s 8/s 5× fewer"
    # Two runs of one wanted length differ by up to 1 %, so 5.0 reaches 5.05.
    assert between(before, after, Shows("preempted", 5.05)).shown == found.shown
    assert between(before, after, Shows("preempted", 6.0)).shown is None
    risen = between(after, before, Shows("preempted", 3.0, rises=True))
    assert "the thread preempted 8/s 40/s 5× more" in " ".join(said(risen).split())
    fast, slow = (dataclasses.replace(run(), core_hz=hz) for hz in (3_000_000_000, 1_500_000_000))
    told = " ".join(said(between(slow, fast, Shows("core-hz", 1.2, rises=True))).split())
    assert told.startswith("Frequency of the hot CPU: 2× higher, 1.5 GHz → 3 GHz, as expected. No clear ")
    assert "frequency of the hot CPU 1.5 GHz 3 GHz 2× higher" in told
    # A latency of the chapter's is better from the same factor on as any other.
    longest = between(run(worst=9_000), run(worst=6_000), Shows("max", 1.3))
    assert (longest.lead, longest.direction) == (None, "same")
    told = " ".join(said(longest).split())
    assert told.startswith("Max: 33 % shorter, 9 µs → 6 µs, as expected.")
    assert "max 9 µs 6 µs 33 % shorter" in told


def test_a_count_that_fell_to_nothing_is_no_gain_where_the_latency_did_not_move() -> None:
    found = between(run(preempted=474), run(tail=4_900), Shows("preempted", 3.0))
    assert found.direction == "same"
    assert large_figure.large_factor(judge_pair(found)) == ("", "")
    assert [" ".join(line.split()) for line in said(found).splitlines()] == [
        "The thread preempted: none in the second run, as expected. No clear change in latency.",
        "two runs, no proof before after",
        "the thread preempted 474/s 0/s none after",
        "p99.9 ~5 µs ~4.9 µs about the same",
    ]
    assert between(run(preempted=40), run(preempted=10)).lead is None


def test_a_factor_below_two_is_never_told_as_two() -> None:
    assert [times_told(factor) for factor in (1.97, 1.9999, 1.94, 2.04, 9.94, 9.96, 15.4)] == [
        "1.97", "1.99", "1.94", "2", "9.9", "10", "15",
    ]  # fmt: skip


def test_fewer_stalls_are_no_gain_where_they_took_as_much_time() -> None:
    before, after = run(tail=20_000), run(p50=9_000, tail=9_000)
    longer = between(before, after)
    assert longer.lead is not None
    assert longer.but is not None
    assert (longer.lead.name, longer.lead.direction, longer.but.name) == ("p50", "worse", "p99.9")
    fewer = {e.name: e for e in count_effects(KnownRun(before), KnownRun(after))}["stalls of 10 µs and more"]
    assert (fewer.how, fewer.direction) == ("fewer", "same")


def test_the_preemptions_of_each_thread_have_a_row_that_names_it() -> None:
    """Explain lists both threads of the ring; the numbers of its table and of this one must be the same."""

    def of_ring(producer: int, accumulator: int) -> Run:
        counted = {"accumulator": accumulator, "producer": producer}
        threads = tuple(ThreadRecord(name, {"0": 1}, involuntary_switches=n) for name, n in counted.items())
        return dataclasses.replace(run(), threads=threads)

    first, second = of_ring(208, 83), of_ring(253, 278)
    found = {e.name: e.values for e in count_effects(KnownRun(first), KnownRun(second))}
    assert found["the accumulator preempted"] == ("83", "278 a second")
    assert found["the producer preempted"] == ("208", "253 a second")
    assert "the thread preempted" not in found
    alone = unlike(KnownRun(first), KnownRun(second))
    assert alone is not None
    assert alone.name == "the accumulator preempted"
    of_chapter = between(first, of_ring(253, 8), Shows("preempted", 3.0)).shown
    assert of_chapter is not None
    assert of_chapter.name == "the accumulator preempted"
    together = effect_on("threads-preempted", KnownRun(first), KnownRun(second))
    assert together is not None
    assert (together.name, together.values) == ("measured threads preempted", ("291", "531 a second"))


def test_counts_that_chance_may_explain_are_no_effect() -> None:
    few = run(tail=170_000, preempted=13), run(tail=10_000, preempted=2)
    found = {e.name: e for e in count_effects(*map(KnownRun, few))}
    assert found["the thread preempted"].direction == "same"
    assert found["stalls of 100 µs and more"].direction == "better"


def test_one_event_leads_only_where_nothing_else_moved_and_few_events_never_do() -> None:
    alone = between(run(worst=9_000), run(worst=9_000_000))
    assert alone.lead is not None
    assert alone.lead.one_event
    assert said(alone).startswith("No clear change in latency."), "one event is no change, not even perhaps"
    assert "longer, one event" in said(alone)
    assert between(run(tail=90_000, worst=95_000), run(tail=20_000, worst=9_000_000)).direction == "better"
    assert between(run(preempted=9), run(preempted=0)).lead is None


def test_a_percentile_of_few_stalls_leads_only_where_nothing_else_moved() -> None:
    def few(made: Run) -> Run:
        worst = tuple(Stall(0, "accumulator", None, n, n + 90_000, 50) for n in (0, 500_000))
        return dataclasses.replace(made, stalls=dataclasses.replace(made.stalls, worst=worst, rates=()))

    found = between(few(run(tail=90_000, worst=95_000)), few(run(tail=20_000, worst=95_000)))
    assert found.lead is not None
    assert (found.lead.name, found.lead.few) == ("p99.9", True)
    assert said(found).startswith("Latency: perhaps better (few stalls).")
    assert "4.5× shorter, few stalls" in said(found)
    assert large_figure.large_factor(judge_pair(found)) == ("", "")
    alone = KnownRun(few(run(tail=90_000, worst=95_000)))
    assert large_figure.large_value(alone) == ("~90 µs", "accent")
    assert written(one_run.result_of_one_run(alone, 80)) == f"p99.9 is ~90 µs · {FEW_BESIDE}\n"
    solid = between(few(run(p50=300, tail=90_000)), few(run(tail=9_000)))
    assert solid.lead is not None
    assert (solid.lead.name, solid.lead.few) == ("p50", False)
    assert said(solid).startswith("Looks better: p50 is ")


def test_the_verdict_of_a_proof_leads_and_the_two_runs_follow_without_emphasis() -> None:
    a, b = run(p50=30_000, tail=90_000), run(p50=100, tail=20_000)
    found, both = between(a, b), (KnownRun(a), KnownRun(dataclasses.replace(b, id="another")))
    verdict = Text("Not proven: p50 cannot be told.", "bold accent")
    for short in (False, True):
        first, second, *others = effect.result_of_two_runs(
            judge_pair(found, both), both, 200, verdict, short=short
        ).lines
        assert (first.plain, str(first.spans[0].style if first.spans else first.style)) == (
            verdict.plain,
            "bold accent",
        )
        assert second.plain.split() == ["these", "two", "runs", "run", "1", "run", "2"]
        assert [line.plain.split()[0] for line in others[:2]] == ["p50", "p99.9"]
        assert "better" not in written([second, *others])
        assert not {"bold", "good", "bad"} & set(styles_of([second, *others]).split())
    few = effect.result_of_two_runs(
        judge_pair(found, both), both, 200, "Not proven: only 5 of the 10 rounds (5 rounds, 12:00)"
    ).lines
    assert few[0].plain.startswith("Looks better: p50")
    assert few[1].plain.startswith("these two runs ")
    assert "only 5 of the 10 rounds" in written(few[2:])
    unproven = effect.result_of_two_runs(judge_pair(found, both), both, 200, f"{effect.NOT_PROVEN}.").lines
    assert unproven[1].plain.startswith(f"{effect.NOT_PROVEN} ")
    assert effect.NOT_PROVEN not in written(unproven[2:]), "the table's head tells it"


def test_no_change_is_said_as_such_and_company_is_named() -> None:
    a, b = run(), dataclasses.replace(run(p90=250), id="another")
    load = ForeignLoad(7, "qemu\x1b[31m", 1, 87.0)
    none = between(a, b)
    assert none.lead is None
    others = ForeignLoad(8, "cron", 1, 2.0), ForeignLoad(9, "sshd", 1, 3.0)
    disturbed = dataclasses.replace(b, disturbed=(others[0], load, load, others[1]))
    assert said(none, a, b).startswith("No clear change in latency.\n")
    text = said(none, dataclasses.replace(a, disturbed=(load,)), disturbed)
    assert "\x1b[31m" not in text
    # A task that makes the runs not comparable is told once, and the small ones beside it are not.
    assert text.startswith("Latency is not comparable: in the second run, qemu [31m used 174 % of a CPU (87 % in the")
    assert text.endswith("Measure the second run again. If you go on, latency stays undecided.\n")
    quiet = KnownRun(a), KnownRun(dataclasses.replace(b, disturbed=others))
    small = effect.result_of_two_runs(judge_pair(none, quiet), quiet, 400)
    assert "sshd" not in written(small.told)
    assert small.caveats[-1].plain.startswith("The second run was disturbed (sshd, 3 % of a CPU): its tail ")
    assert "Both runs were disturbed (qemu" in said(none, dataclasses.replace(disturbed, id="first"), disturbed)
    assert said(none, a, a, relation="alike") == "Both runs are the same run, so nothing can differ.\n"
    one = written(one_run.result_of_one_run(KnownRun(disturbed), 100, Shows("preempted", 3.0), "99.9"))
    assert " ".join(one.split()).startswith("p99.9 is ~5 µs · the thread preempted: 0 a second · qemu")
    assert [tail_of("spin"), tail_of("ring"), tail_of("spin", "99.99")] == ["99.9999", "99.9", "99.99"]


@given(*(st.tuples(st.integers(50, 10**7), st.integers(50, 10**7), st.integers(0, 500)) for _ in range(2)))
def test_the_lead_is_no_smaller_than_the_effect_against_a_gain(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    a, b = (run(p50=p, tail=max(p, t), worst=10**7, preempted=n) for p, t, n in (one, other))
    found = between(a, b)
    assert found.lead is None or found.lead.factor >= MOVED
    assert found.but is None or found.but.factor >= MOVED
    if found.direction == "better" and found.but is not None:
        assert found.lead is not None
        small = found.but.factor <= found.lead.factor
        assert small or found.but.one_event or found.but.few or found.but.against_time
    back = between(b, a)
    assert (found.lead is None) == (back.lead is None)


def with_stalls(made: Run, of_100us: int, stolen_ns: float) -> Run:
    rate = StallRate(100_000, of_100us, float(of_100us), stolen_ns)
    stalls = dataclasses.replace(made.stalls, rates=(rate,), stolen_ns_per_second=stolen_ns)
    return dataclasses.replace(made, stalls=stalls)


def test_a_gain_is_told_with_the_stalls_that_rose() -> None:
    few, many = with_stalls(run(p50=900), 140, 9e6), with_stalls(run(), 300, 9e7)
    found = between(few, many)
    assert found.but is not None
    assert (found.direction, found.but.name) == ("better", "stalls of 100 µs and more")
    assert not found.but.against_time
    both = KnownRun(few), KnownRun(dataclasses.replace(many, id="b"))
    first, *rows = effect.result_of_two_runs(judge_pair(found, both), both, 100).told
    assert first.plain.endswith(" But 2.1× more stalls of 100 µs and more.")
    assert str(first.spans[0].style) == "bold accent", "a gain with a loss is not green"
    loss = next(row for row in rows if row.plain.startswith("stalls of 100 µs and more"))
    assert (loss.plain.split()[-2:], str(loss.style)) == (["2.1×", "more"], "bad")
    # As many in as much time are told, too, and are no loss; what did not move, or may be chance, is not told.
    again = between(few, with_stalls(run(), 300, 9e6))
    result = effect.result_of_two_runs(judge_pair(again, both), both, 100)
    assert "But" not in result.told[0].plain
    assert result.notes[0].plain == (
        "But stalls of 100 µs and more: 140 → 300 a second, 2.1 times more, though stalls took no more time."
    )
    assert "bad" not in styles_of(result.lines)
    assert between(few, with_stalls(run(), 260, 9e7)).but is None
    assert between(with_stalls(run(p50=900), 4, 9e6), with_stalls(run(), 9, 9e7)).but is None


@pytest.mark.parametrize(
    ("told", "beside"),
    [
        ("p99.9: ~210 µs → 12 µs, 17 times shorter", "p99.9: 17× shorter"),
        ("p99.9: 5.48 ms → 6.59 ms, 20 % apart", "p99.9: 20 % apart"),
        ("p99.9: 1 µs → 1 s, more than 1,000× apart", "p99.9: more than 1,000× apart"),
        ("stalls: 2,100 → 20 a second, 105 times fewer, though it is", "stalls: 105× fewer, though it is"),
        ("p99.9: 210 µs → 200 µs", "p99.9: 210 µs → 200 µs"),
    ],
)
def test_the_words_beside_a_line_of_the_chart_leave_out_the_values(told: str, beside: str) -> None:
    assert effect_words.beside_its_line(told) == beside


def test_the_strange_cause_is_the_one_with_the_most_events_apart() -> None:
    """Of 0 → 1.4 and 189 → 1,806 events a second, the second pair says more, though its ratio is smaller."""

    def counted(moved: int, faults: int) -> KnownRun:
        threads = (ThreadRecord("accumulator", {"0": 1}, migrations=moved, minor_faults=faults),)
        return KnownRun(dataclasses.replace(run(), threads=threads))

    found = unlike(counted(0, 189), counted(14, 1_806))
    assert found is not None
    assert found.name == FIGURES["faults"].title
    alone = unlike(counted(0, 189), counted(14, 190))
    assert alone is not None
    assert alone.name == FIGURES["migrations"].title


def test_equal_runs_differ_by_the_largest_difference_that_could_be_an_effect() -> None:
    """Stalls of 10 µs and more differ by more than the percentile by which the runs are judged."""

    def made(short: int, p99: int) -> Run:
        seen = run(tail=20_000, worst=30_000)
        main = seen.main_summary
        assert main is not None
        summary = dataclasses.replace(main, percentiles={**main.percentiles, "99": p99})
        rates = (StallRate(10_000, short, float(short), 5e6),)
        stalls = dataclasses.replace(seen.stalls, rates=rates, stolen_ns_per_second=5e6)
        return dataclasses.replace(seen, stalls=stalls, histograms={seen.main_histogram: summary})

    first, second = made(293, 9_000), dataclasses.replace(made(1_630, 18_000), id="b")
    found = between(first, second)
    assert [(e.name, round(e.factor, 1)) for e in found.differences[:2]] == [
        ("stalls of 10 µs and more", 5.6), ("p99", 2.0),
    ]  # fmt: skip
    told = unchanged(KnownRun(first), KnownRun(second))
    assert "yet p99.9 differs by less than 5 %, stalls over 10 µs by 5.6× and p99 by 2×." in told
    # No stall in one of the runs: the true factor is not known, and it is not that of no time at all.
    none = dataclasses.replace(first.stalls, rates=(StallRate(10_000, 0, 0.0, 0.0),), stolen_ns_per_second=0.0)
    gone = dataclasses.replace(first, stalls=none)
    assert "stalled" not in differences_by_figure(KnownRun(first), KnownRun(gone))
    assert "and stalls over 10 µs by at least 293×." in unchanged(KnownRun(first), KnownRun(gone))


VALUES = st.tuples(*[st.integers(50, 50_000_000)] * 4).map(sorted)


@given(VALUES, VALUES, st.integers(0, 2_000), st.integers(0, 2_000))
def test_no_effect_is_larger_than_the_difference_of_the_same_two_runs(
    first: list[int], second: list[int], few: int, more: int
) -> None:
    made = []
    for values, stalled in ((first, few), (second, more)):
        p50, p90, tail, worst = values
        made.append(with_stalls(run(p50, p90, tail, worst), stalled, 1e6))
    before, after = KnownRun(made[0]), KnownRun(dataclasses.replace(made[1], id="b"))
    for asked in (None, "99.99"):
        found = effects_of_change(before, after, asked=asked)
        largest = found.differences[0]
        assert [e.factor for e in found.differences] == sorted((e.factor for e in found.differences), reverse=True)
        for e in (found.lead, found.but, found.nearest, found.tail, found.stalls, effect_on("99", before, after)):
            assert e is None or e.factor <= largest.factor
        told = unchanged(before, after, asked=asked)
        if largest.factor >= ALIKE:
            by = "more than 1,000×" if largest.factor > MOST_BY_LUCK else difference_told(largest.factor, "").strip()
            assert by in told


def test_a_hidden_noise_is_neither_better_nor_worse_and_an_unsteady_run_is_not_compared() -> None:
    quiet, noisy = with_stalls(run(p50=900), 140, 9e6), with_stalls(run(), 300, 9e6)
    found = between(quiet, noisy)
    assert found.direction == "better"
    told = said(found, quiet, dataclasses.replace(noisy, id="b"), relation="hunted")
    assert told == "Beside the noise: stalls of 100 µs and more: 140 → 300 a second, 2.1 times more.\n"
    alike = said(between(run(), run()), relation="hunted")
    assert alike.startswith("Beside the noise no figure moved by a factor of 2: ")
    # A maximum of one event is never the headline of a hunt.
    largest = Effect("max", ("297 ms", "77.8 ms"), 3.8, "better", "shorter", one_event=True)
    tail = Effect("p99.9999", ("100 ms", "77 ms"), 1.3, "better", "shorter")
    for known, ends in ((None, "are new."), (tail, "are new. p99.9999: 100 ms → 77 ms, 23 % shorter.")):
        by_one = " ".join(said(Effects(largest, None, largest, tail=known), relation="hunted").split())
        assert by_one.startswith("Beside the noise only the maximum moved by a factor of 2, and it is one event. ")
        assert by_one.endswith(ends)
    moved = Effect("p99.9", ("10 ms", "70 ms"), 7.0, "worse", "longer")
    assert said(Effects(largest, None, largest, tail=moved), relation="hunted").startswith("Beside the noise: p99.9")
    changed = dataclasses.replace(quiet, notes={UNSTEADY: f"isolation changed {MEANWHILE}: not one state"})
    told = said(found, changed, dataclasses.replace(noisy, id="b"), relation="unsteady")
    assert told == "Not comparable: isolation changed during the first run: not one state. Go back and measure again.\n"
    pair = KnownRun(noisy), KnownRun(dataclasses.replace(changed, id="b"))
    asked = effect.result_of_two_runs(judge_pair(found, pair, "unsteady"), pair, 200, key="m").lines
    assert written(asked).endswith("not one state. Measure the second run again (m).\n")


def test_beside_a_noise_a_figure_that_rose_comes_before_one_that_fell_further() -> None:
    quiet, noisy = with_stalls(run(p50=9_000), 9, 9e6), dataclasses.replace(with_stalls(run(), 50, 9e7), id="b")
    told = said(between(quiet, noisy), quiet, noisy, relation="hunted")
    assert told.startswith("Beside the noise: time in stalls: 9 ms → 90 ms a second, 10 times more")


def test_a_task_that_is_not_the_hidden_noise_is_told_before_the_figure_that_it_moved() -> None:
    quiet, noisy = with_stalls(run(p50=900), 140, 9e6), dataclasses.replace(with_stalls(run(), 300, 9e6), id="b")
    tick = CauseTime("local timer", (1e6, 2e6))
    other = CauseTime("task sampler", (0.0, 89e6), task="sampler")

    def told(*causes: CauseTime, relation: Relation = "hunted") -> str:
        found = dataclasses.replace(between(quiet, noisy), causes=causes)
        return " ".join(said(found, quiet, noisy, relation=relation).split())

    assert told(tick, other) == (
        "Task sampler took no time before and 89 ms of each second after. This task is not the noise. So measure again "
        "before you name the noise. Beside the noise: stalls of 100 µs and more: 140 → 300 a second, 2.1 times more."
    )
    # The noise's own threads, a worker of the kernel that may do its work, a smaller change, and no change at all.
    for one in (
        dataclasses.replace(other, task="thief"),
        dataclasses.replace(other, task="kworker/1:"),
        dataclasses.replace(other, task="ksoftirqd/1"),
        dataclasses.replace(other, ns=(0.0, 5e5)),
        dataclasses.replace(other, ns=(89e6, 89e6)),
        dataclasses.replace(other, ns=(60e6, 89e6)),  # it did not double
        dataclasses.replace(other, task=""),
    ):
        assert told(one, tick).startswith("Beside the noise: ")
    # A task that took little beside steady causes: the noise may be one that no trace shows.
    assert told(dataclasses.replace(other, ns=(2e4, 5e4)), dataclasses.replace(tick, ns=(1e6, 1e6))).startswith(
        "Beside the noise: "
    )
    # Other causes together changed more than this task.
    assert told(other, *(CauseTime(f"work {n}", (0.0, 50e6)) for n in range(2))).startswith("Beside the noise: ")


def test_a_disturbers_name_is_never_cut_within_the_words_that_say_whose_it_is() -> None:
    loads = tuple(ForeignLoad(n, f"jitter-workshop{end}", 1, 3.7) for n, end in enumerate((ANOTHER_WORKSHOP, NOT_OURS)))
    for load in loads:
        said = disturbances.disturbance_clause(KnownRun(dataclasses.replace(run(), disturbed=(load,))))
        assert said == f"{load.name} used 3.7 % of one CPU's time during the run"
    # The processes of this workshop are never listed, so the name alone tells whose it is.
    for name, end in (("jitter-workshop", ANOTHER_WORKSHOP), ("accumulator", NOT_OURS), ("jitter", "")):
        said = disturbances.disturbance_clause(
            KnownRun(dataclasses.replace(run(), disturbed=(ForeignLoad(1, name, 1, 3.7),)))
        )
        assert said.startswith(f"{name}{end} used")
    long = ForeignLoad(1, "x" * 60, 1, 3.7)
    said = disturbances.disturbance_clause(KnownRun(dataclasses.replace(run(), disturbed=(long,))))
    assert "x… used 3.7 %" in said


def test_disturbing_tasks_are_told_from_the_trace_once_it_was_read() -> None:
    seen = KnownRun(dataclasses.replace(run(), disturbed=(ForeignLoad(7, "cc1", 1, 1.4),), noise="unbound"))
    assert disturbances.disturbance_clause(seen) == "cc1 used 1.4 % of one CPU's time during the run"
    of_two = KnownRun(dataclasses.replace(seen.run, host={"cpus_online": [0, 1]}))
    assert disturbances.disturbance_clause(of_two) == "cc1 used 1.4 % of one CPU's time during the run"
    assert disturbances.disturbed_in_full(of_two).endswith(f"CPU's time. {disturbances.UNCOUNTED}")
    came = (("h", 220), ("unbound", 300), ("thief", 50), ("cc1", 9), ("cc1", 8), ("rare", 1))
    visitors = tuple(InterferingTask(1, "task", name, 1, ms * 1_000_000, 1) for name, ms in came)
    proof = QuietCpus((1,), 10**9, None, 0, 0, 0, "")
    kept = EvidenceReport(
        1, "r", "trace", 1_000, "mono", 0, 0, (), (), 10**9, residence=Residence((), visitors, (), (), (), proof)
    )
    assert (
        disturbances.disturbance_clause(dataclasses.replace(seen, report=kept))
        == "disturbed by h (22 % of our CPU), cc1 (1.7 %)"
    )
    whole = disturbances.disturbed_in_full(dataclasses.replace(seen, report=kept))
    assert whole == "The run was disturbed by h (22 % of our CPU), cc1 (1.7 %)."
    page = written(one_run.result_of_one_run(dataclasses.replace(seen, report=kept), 200))
    assert "· disturbed by h (22 % of our CPU), cc1 (1.7 %) ·" in page, "the run's page tells it by the trace, too"
    # A task that has one of two CPUs for itself has half of their time, and never more than all of it.
    assert kept.residence is not None
    whole = InterferingTask(1, "task", "h", 1, 10**9, 1)
    for visits, told in (((whole,), "50 %"), ((whole, dataclasses.replace(whole, cpu=2)), "100 %")):
        both = dataclasses.replace(kept.residence, visitors=visits, proof=dataclasses.replace(proof, cpus=(1, 2)))
        two = dataclasses.replace(seen, report=dataclasses.replace(kept, residence=both))
        assert disturbances.disturbance_clause(two) == f"disturbed by h ({told} of our 2 CPUs)"


def test_a_chapter_about_the_due_time_is_judged_by_it_and_never_by_transit() -> None:
    def with_due(made: Run, due_ns: int) -> KnownRun:
        due = madeup.make_run([[due_ns] * 10_000], block_s=1.0, name=INTENDED)[0].histograms[INTENDED]
        return KnownRun(dataclasses.replace(made, histograms={**made.histograms, INTENDED: due}))

    shows, slow = Shows("intended-99", 3.0), run(p50=900, tail=200_000)
    for due_ns, direction in ((80_000_000, "better"), (600_000_000, "worse")):
        lead = effects_of_change(with_due(slow, 200_000_000), with_due(run(), due_ns), shows, "99").lead
        assert lead is not None
        assert (lead.name, lead.direction) == ("p99 from the due time", direction)
    # Beside different noises, the news is how the two clocks of the first run differ.
    sides = with_due(slow, 200_000_000), with_due(dataclasses.replace(run(), noise="stall", id="b"), 4_000_000)
    apart = effects_of_change(*sides, shows, "99")
    told, head, transit, due = effect.result_of_two_runs(judge_pair(apart, sides), sides, 300).told
    assert told.plain.startswith("One run, two clocks: p99 is ")
    assert told.plain.endswith(" by transit, 200 ms from the due time.")
    assert head.plain.split() == ["run", "1", "run", "2"]
    assert transit.plain.startswith("p99 by transit ")
    assert " ".join(due.plain.split()) == "p99 from the due time 200 ms 4 ms 50× shorter"
    value, role = large_figure.large_factor(judge_pair(apart, sides))
    assert value.endswith("×")
    assert float(value[:-1].replace(",", "")) > 900, "not the factor between the two runs"
    assert role == "accent"
    assert effect_table.two_run_table([apart.lead], 80, runs=sides)[0].plain.split()[-4:] == ["run", "1", "run", "2"]
    # If this figure hardly moved, no percentile of transit takes its place.
    alike = effects_of_change(with_due(slow, 200_000_000), with_due(run(), 180_000_000), shows, "99")
    assert alike.lead is None
    assert alike.nearest is not None
    assert alike.nearest.name == "p99 from the due time"
    told = said(alike, slow, dataclasses.replace(run(), id="b"))
    assert told.startswith("No clear change in latency.\n")
    assert "p99 from the due time 200 ms 180 ms 10 % shorter (2× needed)" in " ".join(told.split())


@pytest.mark.parametrize(("percent", "told"), [(7.84, "7.8 %"), (99.4, "99 %"), (99.6, "100 %"), (180.2, "180 %")])
def test_a_share_of_a_cpu_is_never_a_power_of_ten(percent: float, told: str) -> None:
    made = dataclasses.replace(run(), disturbed=(ForeignLoad(7, "stress", 1, percent),), host={"cpus_online": [0]})
    assert disturbances.disturbance_clause(KnownRun(made)) == f"stress used {told} of one CPU's time during the run"


def test_runs_between_which_other_settings_changed_are_not_judged() -> None:
    slow, fast = run(p50=900, tail=200_000), dataclasses.replace(run(), id="b")
    found = dataclasses.replace(between(slow, fast), strayed="Between the runs isolation changed.")
    told = said(found, slow, fast, relation="strayed")
    assert told.startswith(
        "Between the runs isolation changed. So neither run is better or worse. The largest difference"
    )
    assert "Looks" not in told
    # The chapter's figure comes before the largest of all, moved or not.
    count = Effect("moves", ("0.6", "4.56 a second"), 7.6, "same", "more", sort="cause")
    for known in (dataclasses.replace(found, shown=count), dataclasses.replace(found, missed=count)):
        told = " ".join(said(known, slow, fast, relation="strayed").split())
        assert told.endswith("or worse. The chapter's figure: moves: 0.6 → 4.56 a second, 7.6× apart.")
    both = KnownRun(slow), KnownRun(fast)
    line = effect.result_of_two_runs(judge_pair(found, both, "strayed"), both, 200).lines[0]
    assert str(line.spans[0].style) == "bold accent"
    # A proof's verdict stays, and so does the sentence if no figure is left to be told.
    proven = effect.result_of_two_runs(
        judge_pair(found, both, "strayed"), both, 200, proof=Text("p90 is lower.", "good")
    )
    assert written(proven.caveats) == "p90 is lower.\n"
    # Runs that show nothing of the change are not said to be unproven; what an unfinished proof found stays.
    for known, kept in ((f"{effect.NOT_PROVEN}.", ""), ("Not proven: only 5 rounds.", "Not proven: only 5 rounds.\n")):
        assert (
            written(effect.result_of_two_runs(judge_pair(found, both, "strayed"), both, 200, proof=known).caveats)
            == kept
        )
    without = dataclasses.replace(found, lead=None, nearest=None, shown=None, causes=(), differences=())
    assert (
        written(effect.result_of_two_runs(judge_pair(without, both, "strayed"), both, 200).lines)
        == "Between the runs isolation changed.\n"
    )


def test_after_another_setting_changed_no_figure_is_said_of_a_hidden_noise() -> None:
    quiet, noisy = run(tail=20_000), dataclasses.replace(run(p50=900, tail=200_000), id="b", notes={HUNTED: "a noise"})
    found = dataclasses.replace(between(quiet, noisy), strayed="Between the runs isolation changed.")
    told = " ".join(said(found, quiet, noisy, relation="strayed").split())
    assert told.startswith(
        "Between the runs isolation changed. So the runs do not show what the hidden noise did. Go back and measure "
        "again."
    )
    assert "10 times" not in told


def stalled(made: Run, count: int, each_ns: float, tail: int) -> Run:
    """A run of one second with so many stalls of 1 ms and more, of this mean length."""
    rates = (StallRate(1_000_000, count, float(count), count * each_ns),)
    told = dataclasses.replace(made.stalls, rates=rates, stolen_ns_per_second=count * each_ns)
    main = made.main_summary
    assert main is not None
    longest = max(tail, round(each_ns))
    summary = dataclasses.replace(main, percentiles={**main.percentiles, "99.9": tail}, max=longest)
    return dataclasses.replace(made, stalls=told, histograms={made.main_histogram: summary})


@pytest.mark.parametrize(("part", "moved"), [(0.99, False), (0.94, True)])
def test_fewer_stalls_are_no_gain_if_the_time_in_stalls_fell_by_less_than_5_percent(part: float, moved: bool) -> None:
    many, few = stalled(run(), 100, 4e6, 9_000_000), stalled(run(), 40, part * 10e6, 9_000_000)
    for before, after, direction in ((many, few, "better"), (few, many, "worse")):
        effects = {e.name: e for e in count_effects(KnownRun(before), KnownRun(after))}
        rate = effects["stalls of 1 ms and more"]
        assert (rate.factor, rate.direction) == (2.5, direction if moved else "same")


def test_fewer_stalls_with_a_longer_tail_are_told_with_their_length() -> None:
    many, few = stalled(run(), 40, 4e6, 9_000_000), stalled(run(), 20, 11e6, 40_000_000)
    both = KnownRun(many), KnownRun(dataclasses.replace(few, id="b"))
    why = effect.against_each_other(both)
    assert why.startswith(
        "There were fewer stalls of 1 ms or more, but p99.9 is longer. The mean length of such a stall was 4 ms → 11 ms"
    )
    assert why in " ".join(
        written(effect.result_of_two_runs(judge_pair(effects_of_change(*both), both), both, 300).lines).split("\n")
    )
    assert why in written(
        effect.result_of_two_runs(judge_pair(effects_of_change(*both), both, "alike"), both, 300).notes
    )
    back = effect.against_each_other((both[1], both[0]))
    assert back.startswith("There were more stalls of 1 ms or more, but p99.9 is shorter. ")
    assert why.endswith("So each stall made more messages late. p99.9 counts messages, not stalls.")
    by_another = effect.result_of_two_runs(judge_pair(effects_of_change(*both, asked="99"), both), both, 300)
    assert why not in written(by_another.lines), "the chapter judges by another percentile"
    # A message that is never later than a stall is long was not delayed by it.
    main = few.main_summary
    assert main is not None
    short = dataclasses.replace(few, histograms={few.main_histogram: dataclasses.replace(main, max=485_000)})
    assert effect.against_each_other((both[0], KnownRun(short))) == ""
    # Nothing is told where the stalls are no longer, where both moved alike, or where there are too few of them.
    for other in (
        stalled(run(), 20, 4e6, 40_000_000),
        stalled(run(), 60, 11e6, 40_000_000),
        stalled(run(), 9, 11e6, 4**13),
    ):
        assert effect.against_each_other((both[0], KnownRun(other))) == ""


def test_no_percentile_of_a_loop_is_explained_because_the_number_of_stalls_judges_it() -> None:
    def of(workload: str, made: Run, tail: int) -> KnownRun:
        main, other = made.main_summary, dataclasses.replace(made, workload=workload)
        assert main is not None
        values = {**main.percentiles, "99.9999": tail}
        summary = dataclasses.replace(main, percentiles=values)
        return KnownRun(dataclasses.replace(other, histograms={other.main_histogram: summary}))

    many, few = stalled(run(), 40, 4e6, 9_000_000), stalled(run(), 20, 11e6, 40_000_000)
    loops = of("spin", many, 9_000_000), of("spin", few, 40_000_000)
    assert effect.against_each_other(loops) == ""
    why = effect.against_each_other((of("wakeup", many, 9_000_000), of("wakeup", few, 40_000_000)))
    assert why.endswith("4 ms → 11 ms. Each stall made only one of the wake-ups long.")


def loop(stalls: int, stalled_ns: float = 1e7, tail: int = 18_600, worst: int = 5_510_000) -> Run:
    """A run of ``spin`` of one second with so many stalls of 100 µs and more. Its tick makes p99.9999."""
    return with_stalls(reader(4e7, stalled_ns, tail, worst), stalls, stalled_ns)


def test_more_stalls_in_no_more_time_are_no_change_on_the_chart_either() -> None:
    """The sentence on the figure that judges then says why four times as many stalls count for nothing."""
    few, many = loop(50, 9e7), dataclasses.replace(loop(210, 8e7), id="b")
    for runs, how, time in (((few, many), "more", "no more time"), ((many, few), "fewer", "no less time")):
        found, both = between(*runs, Shows("preempted", 3.0)), (KnownRun(runs[0]), KnownRun(runs[1]))
        told = " ".join(said(found, *runs).split())
        assert "No clear change in latency." in told
        assert f"4.2× {how}, in {time}" in told
        assert not judge_pair(found, both).sure
    worse = dataclasses.replace(loop(210, 9e8), id="b")
    found, both = between(few, worse), (KnownRun(few), KnownRun(worse))
    assert [judge_pair(found, both, one).sure for one in ("changed", "alike", "strayed")] == [
        True,
        False,
        False,
    ]
    longest = between(few, dataclasses.replace(loop(50, 9e7, worst=50_000_000), id="b"))
    assert (longest.direction, longest.lead is not None and longest.lead.one_event) == ("worse", True)
    assert not judge_pair(longest, both).sure


def test_runs_of_a_loop_are_judged_by_their_stalls_which_the_tick_does_not_hide() -> None:
    assert [judged_by("spin"), judged_by("ring"), judged_by("spin", "50")] == ["stalls-100us", "99.9", "50"]
    many, few = loop(163, 9e7), dataclasses.replace(loop(1, 5e6, 20_300, 180_000), id="b")
    found, both = between(many, few, Shows("preempted", 3.0)), (KnownRun(many), KnownRun(few))
    assert [judge_of(None, *both), judge_of("99", *both)] == ["stalls-100us", "99"]
    told = said(found, *(many, few))
    assert told.startswith("Looks better: 163× fewer stalls of 100 µs and more.")
    assert "99.9999" not in told
    assert large_figure.large_factor(judge_pair(found, both)) == ("163×", "good")
    one = written(one_run.result_of_one_run(both[0], 100))
    assert one == "Stalls of 100 µs and more: 163 a second, the longest 5.51 ms\n"
    assert large_figure.large_value(both[0]) == ("163/s", "accent")
    one = written(one_run.result_of_one_run(both[1], 100))
    assert one == f"Stalls of 100 µs and more: 1 a second ({one_run.FEWER_THAN_TEN}), the longest 180 µs\n"
    assert written(one_run.result_of_one_run(KnownRun(loop(0)), 100)) == (
        f"Stalls of 100 µs and more: 0 a second ({one_run.FEWER_THAN_TEN})\n"
    )
    # A larger effect on longer stalls has a row of its own.
    rates = StallRate(1_000_000, 100, 100.0, 8e7), StallRate(1_000_000, 0, 0.0, 0.0)
    longer = [
        dataclasses.replace(one, stalls=dataclasses.replace(one.stalls, rates=(*one.stalls.rates, rate)))
        for one, rate in zip((many, dataclasses.replace(loop(20, 5e6, 20_300, 180_000), id="b")), rates, strict=True)
    ]
    told = " ".join(said(between(*longer), *longer, width=200).split())
    assert told.startswith("Looks better: 8.2× fewer stalls of 100 µs and more, 163 → 20 a second.")
    assert "stalls of 1 ms and more 100/s 0/s none after" in told
    # A chapter that names a percentile is judged by it.
    assert written(one_run.result_of_one_run(both[0], 100, asked="50")).startswith("p50 is ")
    # A run that does not have its stalls is judged by its percentile.
    unknown = KnownRun(reader(4e7, 1e7, 18_600))
    assert judge_of(None, both[0], unknown) == "99.9999"
    assert written(one_run.result_of_one_run(unknown, 100)).startswith("p99.9999 is ")


@pytest.mark.parametrize(
    ("before", "after", "ends"),
    [
        (3, 1, "3/s 1/s 3× fewer, few stalls"),
        (20, 30, "20/s 30/s 50 % more (2× needed)"),
        (200, 300, "200/s 300/s 50 % more (2× needed)"),
        (0, 0, "0/s 0/s about the same"),
    ],
)
def test_few_stalls_and_chance_are_said_beside_the_stalls_that_judge(before: int, after: int, ends: str) -> None:
    first, second = loop(before), dataclasses.replace(loop(after, tail=90_000), id="b")
    told = " ".join(said(between(first, second), first, second, width=200).split())
    assert f"stalls of 100 µs and more {ends}" in told
    assert "stalls of 100 µs and more" not in told.partition(".")[0], "the verdict is on another figure"


def test_beside_a_hidden_noise_the_stalls_that_judge_come_before_a_larger_rise() -> None:
    quiet, noisy = loop(9, 1e6), dataclasses.replace(loop(300, 9e7, 900_000), id="b", notes={HUNTED: "a noise"})
    told = said(between(quiet, noisy), quiet, noisy, relation="hunted")
    assert told == "Beside the noise: stalls of 100 µs and more: 9 → 300 a second, 33 times more.\n"


def test_a_figure_that_fell_beside_a_hidden_noise_is_not_told_as_its_work() -> None:
    busy, noisy = loop(142, 5e8, 4_050_000), dataclasses.replace(loop(107, 1.6e8, 168_000), id="b", notes={HUNTED: "a"})
    told = said(between(busy, noisy), busy, noisy, relation="hunted", width=200)
    assert told == (
        "Beside the noise no figure rose by a factor of 2: "
        "stalls of 100 µs and more: 142 → 107 a second, 25 % fewer (may be chance).\n"
    )


def few_were_sent(made: Run, each_ns: float = 30e6) -> Run:
    """This run of one second with 30 stalls that took 900 ms, and with p99.9 from the due time."""
    stopped = stalled(made, 30, each_ns, 5_000)
    main = stopped.main_summary
    assert main is not None
    due = dataclasses.replace(main, percentiles={**main.percentiles, "99.9": 120_000_000})
    return dataclasses.replace(stopped, histograms={**stopped.histograms, INTENDED: due})


def test_a_run_that_sent_few_of_its_messages_has_a_warning_only_if_it_has_transit_alone() -> None:
    seen = KnownRun(few_were_sent(run()))
    told = one_run.result_of_one_run(seen, 400)
    assert told[0].plain == f"p99.9 is ~120 ms · {FEW_BESIDE}"
    assert large_figure.large_value(seen) == ("~120 ms", "accent")
    counted = one_run.result_of_one_run(seen, 400, Shows("write-calls", 3.0))[0].plain
    assert "Only 10 % of the planned messages were sent: " in counted
    unknown = KnownRun(dataclasses.replace(seen.run, histograms=stalled(run(), 30, 30e6, 5_000).histograms))
    assert one_run.result_of_one_run(unknown, 400)[0].plain.startswith(f"{few_sent((unknown,)).plain} p99.9 is ")
    value, role = large_figure.large_value(unknown)
    assert value.endswith(" ?")
    assert role == "dim"
    # A run that was never stopped for long is only slow.
    assert "planned" not in written(one_run.result_of_one_run(KnownRun(few_were_sent(run(), each_ns=10e6)), 400))


def test_two_runs_of_which_one_sent_few_messages_have_a_warning_if_one_has_transit_alone() -> None:
    before, after = few_were_sent(run(tail=90_000)), dataclasses.replace(run(p90=4_200), id="another")
    known = KnownRun(before), KnownRun(after)
    found = between(before, after)
    result = effect.result_of_two_runs(judge_pair(found, known), known, 400)
    assert not any("planned messages" in line.plain for line in result.lines)
    assert found.left_out == "waits"
    transit = KnownRun(of_transit(before)), known[1]
    judged = judge_pair(between(*(one.run for one in transit)), transit)
    warned = effect.result_of_two_runs(judged, transit, 400)
    assert warned.caveats[0].plain.startswith("Only 10 % of the planned messages were sent in the first run: ")
    proven = effect.result_of_two_runs(judge_pair(found, transit), transit, 400, Text("Proven: better."))
    assert proven.told[0].plain == "Proven: better."
    assert proven.caveats[0].plain.startswith("Only 10 % ")


def waited(made: Run, transit: int, waits: int, share: float = 0.1) -> Run:
    """This run of one second, with so long a p99.9 by transit and by latency, that sent this share of its messages."""
    stopped = stalled(made, 30, (1 - share) * 1e9 / 30, transit)
    main = stopped.main_summary
    assert main is not None
    plain = dataclasses.replace(main, count=round(100_000 * share), max=4 * transit)
    due = dataclasses.replace(plain, count=100_000, percentiles={**main.percentiles, "99.9": waits}, max=4 * waits)
    return dataclasses.replace(stopped, histograms={made.main_histogram: plain, INTENDED: due})


def test_two_runs_are_compared_from_when_a_message_was_due() -> None:
    """By transit p99.9 was 2.4 times shorter in the second of these runs, by latency 2.5 times longer."""
    before = waited(run(), 111_000_000, 134_000_000, 0.11)
    after = dataclasses.replace(waited(run(), 47_000_000, 337_000_000, 0.14), id="another")
    known = KnownRun(before), KnownRun(after)
    found = between(before, after)
    assert found.tail is not None
    assert (found.tail.name, found.tail.direction) == ("p99.9", "worse")
    told = " ".join(said(found, before, after).split())
    assert told.startswith("Latency: perhaps worse (few stalls).")
    assert "p99.9 ~134 ms ~337 ms 2.5× longer" in told
    assert "better" not in told
    assert "shorter" not in told
    marked = effect_on("99.9", *known)
    assert marked is not None
    assert (marked.name, marked.how) == ("p99.9", "longer")
    # A chapter's own latency counts from then, too, and is not its wanted gain.
    of_chapter = between(before, after, Shows("99.9", 2.0))
    assert of_chapter.shown is None
    assert of_chapter.direction == "worse"
    assert between(before, after, Shows("max", 2.0)).direction == "worse"


@given(
    values=st.tuples(*[st.integers(1_000_000, 1_000_000_000)] * 4),
    share=st.tuples(*[st.floats(0.02, 0.99)] * 2),
)
def test_the_direction_of_a_latency_is_always_that_from_when_a_message_was_due(
    values: tuple[int, int, int, int], share: tuple[float, float]
) -> None:
    first, second, first_waits, second_waits = values
    pair = waited(run(), first, first_waits, share[0]), waited(run(), second, second_waits, share[1])
    known = KnownRun(pair[0]), KnownRun(pair[1])
    found = effect_on("99.9", *known)
    assert found is not None
    low, high = first_waits, second_waits
    assert found.direction == ("same" if abs(high - low) < 10 else "worse" if high > low else "better")
    assert on_one_clock(*known) == known


def test_a_latency_whose_waits_are_not_known_has_no_direction() -> None:
    before, after = waited(run(), 111_000_000, 134_000_000), waited(run(), 47_000_000, 337_000_000)
    unknown = dataclasses.replace(after, id="another", histograms={**after.histograms})
    del unknown.histograms[INTENDED]
    for pair in ((before, unknown), (unknown, before)):
        known = KnownRun(pair[0]), KnownRun(pair[1])
        found = between(*pair)
        assert found.left_out == "waits"
        assert effect_on("99.9", *known) is None
        assert effect_on("max", *known) is None
        told = " ".join(said(found, *pair).split())
        assert "No clear change in the figures that can be compared." in told
        assert "No latency is compared: transit leaves out the waits for the stopped thread." in told
        for word in ("shorter", "longer", "better", "worse"):
            assert word not in told
        for relation in ("alike", "hunted"):
            told = " ".join(said(found, *pair, relation=relation).split())
            assert "No latency is compared" in told
    # Counts are compared as they are.
    gone = dataclasses.replace(unknown, stalls=dataclasses.replace(unknown.stalls, rates=(), stolen_ns_per_second=9e8))
    nothing = between(gone, dataclasses.replace(gone, id="b"))
    assert nothing.nearest is None
    caused = dataclasses.replace(nothing, causes=(CauseTime("task python3", (1e6, 1.1e6)),))
    for effects in (nothing, caused):
        told = " ".join(said(effects, gone, dataclasses.replace(gone, id="b")).split())
        assert "Only 10 % of the planned messages were sent in both runs" in told
        assert "No clear change in the figures that can be compared." in told


def test_the_result_of_one_run_names_no_transit_in_a_chapter_about_the_due_time() -> None:
    shows, made = Shows("intended-99", 3.0), run(tail=3_000)
    due = madeup.make_run([[50_000_000] * 10_000], block_s=1.0, name=INTENDED)[0].histograms
    seen = KnownRun(dataclasses.replace(made, histograms={**made.histograms, **due}))
    assert written(one_run.result_of_one_run(seen, 100, shows, "99")).strip() == "p99 from the due time is 50 ms"
    assert large_figure.large_value(seen, "99", from_due_time=True) == ("50 ms", "accent")
    # A run without this figure has no other one in its place.
    assert one_run.result_of_one_run(KnownRun(made), 100, shows, "99") == []
    assert large_figure.large_value(KnownRun(made), "99", from_due_time=True) == ("", "")
    # This percentile counts the waits that a curve of transit leaves out.
    few = KnownRun(dataclasses.replace(few_were_sent(run()), notes={}))
    assert few.run.histograms[INTENDED].percentiles["99"] is not None
    assert "without these waits" not in written(one_run.result_of_one_run(few, 400, shows, "99"))


def test_runs_beside_different_noises_are_neither_better_nor_worse() -> None:
    before, after = run(), dataclasses.replace(run(p90=4_200), id="another", noise="stall")
    found = between(before, after)
    assert said(found, before, after).startswith("What differs most: p90 is 21× longer, 200 ns → 4.2 µs.")
    most = "p90 differs most: 21× longer"
    for tail, factor in ((1.09, ""), (1.97, "97 % longer"), (2.5, "2.5× longer (few stalls)")):
        announced = Effect("p99.9", ("8.2 ms", "16 ms"), tail, "worse", "longer", few=True)
        beside = dataclasses.replace(found, tail=announced)
        told = " ".join(said(beside, before, after).split())
        assert told.startswith(f"p99.9 is {factor}; {most}") is bool(factor)
        large = large_figure.large_factor(judge_pair(beside, (KnownRun(before), KnownRun(after))))
        assert large == (("", "") if factor else ("21×", "accent")), "no other factor is loud"
    assert large_figure.large_factor(judge_pair(found, (KnownRun(before), KnownRun(after)))) == ("21×", "accent")
    stalls = Effect("stalls of 1 ms and more", ("24.9", "2 a second"), 12.0, "better", "fewer", sort="stalls")
    (row,) = effect_table.two_run_table([stalls], 80, runs=(KnownRun(before), KnownRun(after)))[1:]
    assert row.plain.endswith("12× fewer")
    assert [str(span.style) for span in row.spans] == ["bold"]


def test_loads_from_other_memory_are_neither_better_nor_worse() -> None:
    """Far and near memory are two programs. The lesson compares their p50 all the same."""
    far, near = reader(20e6, 239e6), reader(231e6, 239e6)
    far = dataclasses.replace(far, memory="far", label="far memory")
    near = dataclasses.replace(near, id="b", memory="near", label="near memory")
    for one, ns in ((far, 520), (near, 20)):
        one.histograms[one.main_histogram].percentiles["50"] = ns
    found, both = between(far, near, Shows("50", 2.0)), (KnownRun(far), KnownRun(near))
    assert found.direction == "same"
    told = " ".join(said(found, far, near).split())
    assert told.startswith("What differs most: p50 is 26× shorter, 520 ns → 20 ns.")
    assert "No other percentile is compared: the two runs read the clock at different rates." in told
    assert "But " not in told
    assert large_figure.large_factor(judge_pair(found, both)) == ("26×", "accent")
    head, row, *_ = effect_table.two_run_table([lead] if (lead := found.lead) is not None else [], 80, runs=both)
    assert head.plain.split("  ")[-2:] == ["far memory", "near memory"]
    assert row.plain.endswith("26× shorter")


def test_a_latency_that_a_chapter_is_about_is_no_count() -> None:
    latency = Effect("p99 from the due time", ("53.1 ms", "4.41 ms"), 12.0, "better", "shorter")
    stalls = Effect("stalls of 1 ms and more", ("24.9", "2 a second"), 12.0, "better", "fewer", sort="stalls")
    told = [line.plain.split("  ")[0].strip() for line in effect_table.two_run_table([latency, stalls], 80)]
    assert told == ["THE CHAPTER'S FIGURE", latency.name, "COUNTS, PER SECOND", stalls.name]
    assert "before" in effect_table.two_run_table([latency], 80)[0].plain
    assert effect_table.two_run_table([stalls], 80)[0].plain.startswith("COUNTS, PER SECOND")


def test_counts_of_two_equal_runs_are_the_first_and_the_second() -> None:
    found = [Effect("the thread preempted", ("4", "9 a second"), 2.25, "same", "more", sort="cause")]
    assert effect_table.two_run_table(found, 80, relation="alike")[0].plain.split() == (
        ["COUNTS,", "PER", "SECOND", "run", "1", "run", "2"]
    )
    assert effect_table.two_run_table(found, 80)[0].plain.split() == ["COUNTS,", "PER", "SECOND", "before", "after"]


def test_the_percentile_that_was_named_before_the_runs_is_told_before_the_largest() -> None:
    before, after = run(p50=30_000, tail=90_000), run(p50=100, tail=20_000)
    found = between(before, after)
    assert found.lead is not None
    assert (found.lead.name, found.tail.name if found.tail else "") == ("p50", "p99.9")
    # The tail of this run has few stalls, so it may have moved by chance.
    assert judge_pair(found).first is found.lead
    tail = Effect("p99.9", ("90 µs", "20 µs"), 4.5, "better", "shorter", sort="latency")
    sure = dataclasses.replace(found, tail=tail)
    assert judge_pair(sure).first is tail
    assert large_figure.large_factor(judge_pair(sure)) == ("4.5×", "good")
    told = " ".join(said(sure).split())
    assert told.startswith("Looks better: p99.9 is 4.5× shorter, 90 µs → 20 µs.")
    assert "p50 30 µs 100 ns 300× shorter" in told
    for other in (
        dataclasses.replace(tail, factor=1.9),
        dataclasses.replace(tail, direction="worse"),
        dataclasses.replace(tail, few=True),
        dataclasses.replace(tail, one_event=True),
    ):
        assert judge_pair(dataclasses.replace(sure, tail=other)).first is sure.lead
    stalls = Effect("stalls of 1 ms and more", ("30", "1 a second"), 30.0, "better", "fewer", sort="stalls")
    assert judge_pair(dataclasses.replace(sure, lead=stalls)).first is stalls


def test_a_count_whose_events_took_hardly_any_time_is_named_with_the_time_of_all_causes() -> None:
    count = Effect("moves of the threads", ("90", "9 a second"), 10.0, "same", "fewer", sort="cause")
    moves, other = CauseTime("moves", (3_640.0, 300.0), counted=True), CauseTime("task bash", (901e6, 870e6))
    found = Effects(None, None, None, shown=count, causes=(other, moves))
    lead = "In the trace, 'moves of the threads' took only 3.64 µs a second; all causes took 901 ms"
    assert f"{lead}." in said(found, width=300)
    both = dataclasses.replace(run(), threads=run().threads * 2), dataclasses.replace(run(), id="another")
    assert f"{lead}, both threads added up." in said(found, *both, width=300)
    assert "In the trace, " not in said(dataclasses.replace(found, shown=None), width=300)
    much = dataclasses.replace(moves, ns=(500e6, 300.0))
    assert "In the trace, " not in said(dataclasses.replace(found, causes=(other, much)), width=300)


def test_only_stalls_before_and_after_a_change_are_tinted_as_better_or_worse() -> None:
    fewer = Effect("stalls of 1 ms and more", ("24.9", "2 a second"), 12.0, "better", "fewer", sort="stalls")
    cause = Effect("the thread preempted", ("24.9", "0 a second"), 12.0, "same", "fewer", at_least=True, sort="cause")
    unjudged: list[Relation] = ["alike", "hunted", "unsteady"]
    for relation in unjudged:
        assert not effect_table.two_run_table([fewer], 80, relation=relation)[1].spans
    stalls, preempted = effect_table.two_run_table([fewer, cause], 80)[1:]
    assert stalls.plain.endswith("12× fewer, better")
    assert preempted.plain.endswith("none after")
    assert [str(span.style) for line in (stalls, preempted) for span in line.spans] == ["good", "bold"]
    # A count on which the chapter's change does not act cannot come from it.
    for caused, styles in (({cause.name}, ["bold"]), (set[str](), []), ({"other"}, [])):
        (row,) = effect_table.two_run_table([cause], 80, caused=caused)[1:]
        assert [str(span.style) for span in row.spans] == styles
    foreign = CauseTime("task backup", (1e6, 9e6), task="backup")
    for one, styles in ((foreign, []), (dataclasses.replace(foreign, treated=True), ["bold"])):
        row = effect_table.two_run_table([], 80, causes=[one])[1]
        assert [str(span.style) for span in row.spans] == styles
    assert effect_table.none_in("run 1") == "none in run 1"
    assert effect_table.none_in("far memory") == "none in 'far memory'"
    narrow, _ = effect_table.two_run_table([fewer, cause], 54)[1:]
    assert narrow.plain.endswith("12× fewer"), "the words never cut a row"
    chance = dataclasses.replace(fewer, within_runs=True)
    assert effect_table.two_run_table([chance], 80)[1].plain.endswith("12× fewer"), (
        "a doubtful row is not judged in words"
    )


def test_a_curve_that_became_worse_is_told_quietly_where_the_chapters_count_moved_more() -> None:
    before, after = run(preempted=93), dataclasses.replace(run(p90=500, preempted=10), id="another")
    known = KnownRun(before), KnownRun(after)
    found = between(before, after, Shows("preempted", 3.0))
    assert judge_pair(found, known).latency == "undecided"
    assert large_figure.large_factor(judge_pair(found, known)) == ("9.3×", "accent")
    result = effect.result_of_two_runs(judge_pair(found, known), known, 90, proof=f"{effect.NOT_PROVEN}.")
    told = [" ".join(line.plain.split()) for line in result.told]
    assert told[0] == "The thread preempted: 9.3× fewer, as expected. Latency: two runs do not decide it."
    assert "the thread preempted 93/s 10/s 9.3× fewer" in told
    assert "p90 200 ns 500 ns 2.5× longer" in told
    assert "bad" not in styles_of(result.lines)
    # The rest of its cause has a row, and so have all other causes.
    cause = CauseTime("work vmstat_update", (9e6, 1.6e6), treated=True, counted=True)
    other = CauseTime("interrupt disk", (1e6, 50e6))
    beside = " ".join(said(dataclasses.replace(found, causes=(other, cause)), before, after, width=300).split())
    assert "time the change can end 9 ms/s 1.6 ms/s 5.6× less" in beside
    assert "time of other causes 1 ms/s 50 ms/s +49 ms, most: interrupt disk" in beside
    # If another task explains the worse curve, the curves are not comparable.
    task = CauseTime("task python3", (1e6, 50e6), task="python3")
    told = said(dataclasses.replace(found, causes=(task, cause)), before, after, width=300)
    assert told.startswith("The thread preempted: 9.3× fewer, 93 → 10 a second, as expected. ")
    assert "Latency is not comparable: in the second run, task python3 took 50 ms of each second" in told
    assert "time the change can end" in told
    assert "p90" not in told
    load = dataclasses.replace(task, own_load=True)
    beside = said(dataclasses.replace(found, causes=(load, cause)), before, after, width=300)
    assert "+49 ms, most: the noise" in beside
    # With no event in one run the factor is not known.
    gone = between(before, run(p90=500), Shows("preempted", 3.0))
    assert judge_pair(gone).latency == "undecided"
    assert large_figure.large_factor(judge_pair(gone)) == ("", "")


def test_a_curve_stays_loud_if_it_moved_more_or_became_better_or_a_proof_leads() -> None:
    shows = Shows("preempted", 3.0)
    before, after = run(preempted=40), dataclasses.replace(run(p90=500, preempted=10), id="another")
    assert judge_pair(between(before, after, shows)).latency == "undecided"
    for first, second in (
        (before, run(p90=4_200, preempted=10)),  # 21 times longer, 4 times fewer
        (run(p90=500, preempted=40), run(preempted=10)),  # both are better
        (before, run(p90=500, preempted=30)),  # the count did not move as the lesson says
    ):
        assert judge_pair(between(first, second, shows)).latency != "undecided"
    other = KnownRun(before), KnownRun(dataclasses.replace(after, noise="timers"))
    assert judge_pair(between(before, after, shows), other).latency != "undecided"
    # A run that sent few of its messages counts less of everything.
    few = KnownRun(before), KnownRun(few_were_sent(after))
    assert judge_pair(between(before, after, shows), few).latency != "undecided"
    known = KnownRun(before), KnownRun(after)
    proven = effect.result_of_two_runs(
        judge_pair(between(before, after, shows), known), known, 100, proof=Text("p90 is higher.")
    )
    assert "may be chance" not in written(proven.lines)
