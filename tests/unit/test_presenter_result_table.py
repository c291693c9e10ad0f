"""Test the rows of the table that judges a change between two runs."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.model.effect import CauseTime, Effect, Effects
from jitter_workshop.model.run import StallRate
from jitter_workshop.presenter.runs.effect import result_of_two_runs
from jitter_workshop.presenter.runs.effect_table import few_causes, two_run_table
from jitter_workshop.presenter.runs.result_table import (
    CAN_END,
    MOST_ROWS,
    all_that_ends,
    causes_above,
    most_of_others,
    names_told,
    result_table,
)
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.figures import FIGURES, KnownRun
from tests.unit.test_stats_effect import run

MOVES = FIGURES["migrations"].title
COUNT = Effect(MOVES, ("4.27", "0 a second"), 34.0, "same", "fewer", at_least=True, sort="cause")
TAIL = Effect("p99.9", ("~17.1 ms", "~10.9 ms"), 1.57, "better", "shorter", few=True)
OURS = CauseTime("our threads", (123e6, 0.0), treated=True)
NOISE = CauseTime("task unbound", (747e6, 858e6), task="unbound", own_load=True)
OTHER = CauseTime("task bash", (6e6, 7e6), task="bash")
FOUND = Effects(None, None, TAIL, shown=COUNT, tail=TAIL, causes=(NOISE, OURS, OTHER))
RUNS = KnownRun(run()), KnownRun(dataclasses.replace(run(), id="another"))


def rows(found: Effects, width: int = 78, most: int | None = None) -> list[str]:
    lines = result_table(judge_pair(found, RUNS), RUNS, width, "two runs, no proof (p)", most=most)
    assert all(len(line.plain) <= width for line in lines)
    return [" ".join(line.plain.split()) for line in lines]


def test_the_rows_have_one_order_and_a_few_words_on_each_difference() -> None:
    assert rows(FOUND) == [
        "two runs, no proof (p) before after",
        f"{MOVES} 4.27/s 0/s none after",
        "p99.9 ~17.1 ms ~10.9 ms 36 % shorter (2× needed)",
        f"{CAN_END} 123 ms/s 0 ms/s none after",
        "time of other causes 753 ms/s 865 ms/s +112 ms, most: the noise",
    ]


def test_a_row_without_data_is_left_out_and_a_figure_that_is_not_known_says_so() -> None:
    assert rows(dataclasses.replace(FOUND, causes=())) == rows(FOUND)[:3]
    assert rows(dataclasses.replace(FOUND, causes=(NOISE,)))[-1].startswith("time of all causes 747 ms/s")
    unknown = dataclasses.replace(FOUND, shown=None, uncounted="work items vmstat_update")
    assert rows(unknown)[1] == "work items vmstat_update – – not known"


def test_the_time_of_all_causes_names_its_threads_where_two_are_added_up_and_there_is_room() -> None:
    lone, pair = RUNS[0].run.threads[:1], RUNS[0].run.threads[:1] * 2
    for threads, width, name in (
        (lone, 78, "time of other causes"),
        (pair, 78, "time of other causes, 2 threads"),
        (pair, 74, "time of other causes"),
    ):
        both = tuple(KnownRun(dataclasses.replace(seen.run, threads=threads)) for seen in RUNS)
        lines = result_table(judge_pair(FOUND, both), both, width, "two runs, no proof")
        assert lines[-1].plain.partition("  ")[0] == name
        assert lines[-1].plain.endswith("most: the noise")


def test_a_time_that_is_nearly_nothing_has_words_and_no_factor() -> None:
    ended = dataclasses.replace(OURS, ns=(123e6, 1_400.0))
    assert f"{CAN_END} 123 ms/s 1.4 µs/s almost none after" in rows(dataclasses.replace(FOUND, causes=(ended, NOISE)))
    table = [
        line.plain
        for line in two_run_table([], 80, relation="alike", causes=[dataclasses.replace(OURS, ns=(1_420.0, 170e6))])
    ]
    assert table[-1].endswith("almost none in run 1")
    less = [line.plain for line in two_run_table([], 80, causes=[dataclasses.replace(OURS, ns=(1e6, 2e3))])]
    assert less[-1].endswith("500× less")


def test_the_cause_that_moved_with_the_sum_is_named() -> None:
    assert most_of_others(FOUND.causes) == NOISE
    fallen = dataclasses.replace(OTHER, ns=(900e6, 600e6))
    assert most_of_others((NOISE, OURS, fallen)) == fallen
    assert rows(dataclasses.replace(FOUND, causes=(NOISE, OURS, fallen)))[-1].endswith("−189 ms, most: task bash")
    thirds = [dataclasses.replace(OTHER, label=f"task {n}", ns=(1e6, 5e6 + n)) for n in range(3)]
    assert rows(dataclasses.replace(FOUND, causes=tuple(thirds)))[-1].endswith("+12 ms, largest: task 2")
    # A sum that hardly moved, or is not known, has no such cause.
    assert most_of_others((dataclasses.replace(NOISE, ns=(747e6, 748e6)), OURS)) is None
    assert most_of_others((dataclasses.replace(NOISE, at_most=(True, False)), OURS)) is None
    assert most_of_others((OURS,)) is None


def test_a_small_screen_leaves_out_extra_rows_and_no_others() -> None:
    worst = Effect("max", ("4.24 ms", "477 µs"), 8.9, "better", "shorter", one_event=True)
    found = dataclasses.replace(FOUND, lead=worst)
    assert "max 4.24 ms 477 µs 8.9× shorter, one event" in rows(found)
    assert rows(found, most=5) == rows(found)
    assert rows(found, most=4) == rows(FOUND)
    assert rows(found, most=1) == rows(FOUND)


def test_a_narrow_terminal_has_the_words_below_their_row() -> None:
    narrow = rows(FOUND, width=40)
    assert "none after" in narrow
    assert "+112 ms, most: the noise" in narrow
    assert "…" not in " ".join(narrow)


def test_a_gain_has_a_colour_only_if_it_is_sure() -> None:
    sure = dataclasses.replace(TAIL, few=False, factor=17.0)
    for effect, style in ((sure, "good"), (dataclasses.replace(sure, within_runs=True), "text")):
        judged = judge_pair(dataclasses.replace(FOUND, lead=effect, tail=effect, causes=()), RUNS)
        lines = result_table(judged, RUNS, 78, "")
        assert [str(line.style) for line in lines] == ["dim", "accent", style]
    judged = judge_pair(dataclasses.replace(FOUND, lead=sure, tail=sure, causes=()), RUNS)
    proven = result_table(judged, RUNS, 78, "", proven=True)
    assert [str(line.style) for line in proven] == ["dim", "text", "text"]


def test_a_factor_of_few_stalls_has_their_number() -> None:
    made = run()
    rates = [(StallRate(100_000, count, float(count), 1e6),) for count in (147, 4)]
    pair = tuple(
        KnownRun(dataclasses.replace(made, id=f"{n}", stalls=dataclasses.replace(made.stalls, rates=one)))
        for n, one in enumerate(rates)
    )
    fewer = Effect(FIGURES["stalls-100us"].title, ("147", "4 a second"), 37.0, "better", "fewer", sort="stalls")
    found = Effects(fewer, None, fewer, tail=fewer)
    (_, row) = [line.plain for line in result_table(judge_pair(found, pair), pair, 78, "")]
    assert row.endswith("37× fewer, only 4 after")
    few = dataclasses.replace(fewer, few=True)
    (_, row) = [
        line.plain
        for line in result_table(judge_pair(dataclasses.replace(found, tail=few, lead=few), pair), pair, 78, "")
    ]
    assert row.endswith("37× fewer, few stalls")


def few(found: Effects) -> tuple[str, list[str]]:
    """Return the verdict, and the rows of a table of few rows."""
    judged = judge_pair(found, RUNS)
    told = [" ".join(line.plain.split()) for line in result_of_two_runs(judged, RUNS, 160, few=True).told]
    return told[0], told[2:]


def test_a_table_of_few_rows_has_the_figures_of_the_verdict_and_one_time_and_repeats_no_number() -> None:
    verdict, rows_ = few(FOUND)
    assert "34× fewer" not in verdict
    full = "━" * 12
    assert rows_ == [
        f"{MOVES} 4.27/s {full} 0/s none after",
        f"p99.9 ~17.1 ms {full} ~10.9 ms ━━━━━━━╸ 36 % shorter (2× needed)",
        f"{CAN_END} 123 ms/s {full} 0 ms/s our threads: none after",
    ]
    assert causes_above(judge_pair(FOUND, RUNS), RUNS) == {"our threads"}
    gain = dataclasses.replace(TAIL, few=False, factor=17.0)
    verdict, rows_ = few(dataclasses.replace(FOUND, lead=gain, tail=gain, causes=()))
    assert verdict.startswith("Looks better: p99.9 is 17× shorter. ")
    assert rows_[1:] == [f"p99.9 ~17.1 ms {full} ~10.9 ms ╸"]


def drawn(found: Effects, width: int) -> list[Text]:
    """Return the rows of a table of few rows, without its head."""
    return result_table(judge_pair(found, RUNS), RUNS, width, "two runs, no proof (p)", few=True)[1:]


def test_a_bar_stands_beside_each_value_and_the_words_keep_their_line() -> None:
    plain = drawn(FOUND, 80)
    wide = drawn(FOUND, 120)
    # At 80 columns the words need the room.
    assert not any("━" in line.plain for line in plain)
    lengths = [[one.end - one.start for one in line.spans] for line in wide]
    assert {style for line in wide for style in (one.style for one in line.spans)} == {"curve_before", "curve_after"}
    assert len({tuple(one) for one in lengths[:2]}) == 1
    assert [line.plain.split("  ")[-1].strip() for line in wide] == [
        "none after",
        "36 % shorter (2× needed)",
        "our threads: none after",
    ]


@pytest.mark.parametrize("how", ["more", "fewer"])
def test_the_longer_bar_is_that_of_the_larger_value(how: str) -> None:
    counted = dataclasses.replace(COUNT, values=("8 a second", "2 a second"), factor=4.0, how=how, at_least=False)
    (row,) = drawn(Effects(None, None, None, shown=counted), 120)
    before, after = (row.plain[one.start : one.end].count("━") for one in row.spans)
    assert (before, after) == ((12, 3) if how == "fewer" else (3, 12))


def test_a_time_that_is_only_an_upper_limit_has_no_bar() -> None:
    unsure = dataclasses.replace(OURS, at_most=(False, True), ns=(123e6, 10e6))
    last = drawn(dataclasses.replace(FOUND, causes=(unsure,)), 120)[-1]
    assert "<10 ms/s" in last.plain
    assert "━" not in last.plain


def test_the_row_that_explains_is_the_time_of_other_causes_if_it_grew_and_latency_became_worse() -> None:
    worse = dataclasses.replace(TAIL, values=("11 ms", "40 ms"), factor=3.6, direction="worse", how="longer", few=False)
    grown = dataclasses.replace(NOISE, ns=(100e6, 858e6))
    _, rows_ = few(dataclasses.replace(FOUND, lead=worse, tail=worse, causes=(grown, OURS, OTHER)))
    assert len(rows_) == MOST_ROWS
    assert rows_[-1].startswith("time of other causes")


def test_a_figure_of_the_verdict_without_a_row_is_told_with_its_values() -> None:
    gain = dataclasses.replace(TAIL, few=False, factor=17.0)
    lead = Effect("p99.99", ("30 ms", "1 ms"), 30.0, "better", "shorter")
    against = Effect("p50", ("10 ns", "15 ns"), 1.5, "worse", "longer")
    found = dataclasses.replace(FOUND, lead=gain, tail=lead, but=None, differences=(gain, lead, against), causes=())
    judged = judge_pair(found, RUNS)
    names = names_told(judged, RUNS, few=True)
    assert len(names) <= MOST_ROWS
    told = few(found)[0]
    for one in {e.name: e for e in (judged.first, judged.of_chapter, judged.against) if e is not None}.values():
        assert (one.name in names) or all(value in told for value in one.values)


def test_few_causes_are_the_large_ones_without_those_in_a_row_above() -> None:
    causes = [CauseTime(f"task {n}", (n * 10e6, 0.0)) for n in (40, 30, 20, 12, 1)]
    assert [one.label for one in few_causes(causes)] == ["task 40", "task 30", "task 20"]
    assert [one.label for one in few_causes(causes, {"task 40"})] == ["task 30", "task 20", "task 12"]
    assert [one.label for one in few_causes(causes, named={"task 1"})] == ["task 40", "task 30", "task 1"]
    # The chapter's own cause comes first, however small it is.
    own = CauseTime("page faults", (1e6, 0.0), treated=True)
    assert [one.label for one in few_causes([*causes, own])] == ["page faults", "task 40", "task 30"]
    assert [one.label for one in few_causes([*causes, own], {own.label})] == ["task 40", "task 30", "task 20"]


def test_all_that_the_change_can_end_is_one_row_of_at_least_two_causes() -> None:
    one, other = (CauseTime(f"task {n}", (n * 1e6, n * 1e3), treated=True) for n in (2, 3))
    rest = CauseTime("local timer", (9e6, 9e6))
    assert all_that_ends([one, rest]) is None
    found = all_that_ends([one, rest, other])
    assert found is not None
    assert (found.ns, found.treated, found.known) == ((5e6, 5e3), True, True)
    limit = dataclasses.replace(other, at_most=(True, False))
    assert all_that_ends([one, limit]) is None, "a sum with a limit is no time that diagnose told"


def test_a_sure_loss_that_the_verdict_leaves_out_has_a_row_of_its_own() -> None:
    judge = Effect(FIGURES["stalls-100us"].title, ("150", "100 a second"), 1.5, "better", "fewer", sort="stalls")
    lead = Effect(FIGURES["stalls-1ms"].title, ("80", "8 a second"), 10.0, "better", "fewer", sort="stalls")
    loss = Effect(FIGURES["stalls-10us"].title, ("1000", "2500 a second"), 2.5, "worse", "more", sort="stalls")
    found = dataclasses.replace(
        FOUND, lead=lead, tail=judge, but=loss, nearest=judge, differences=(judge, lead, loss), causes=()
    )
    judged = judge_pair(found, RUNS)
    assert judged.latency == "perhaps better"
    assert judged.against == loss
    verdict, rows_ = few(found)
    assert "2.5×" not in verdict
    assert any(row.startswith(loss.name) and row.endswith("2.5× more") for row in rows_)


def test_a_limit_that_stands_alone_in_its_row_is_told_in_words() -> None:
    least = Effect(
        FIGURES["stalls-100us"].title, ("34.7 a second", "47.8 a second"), 1.38, "worse", "more", sort="stalls"
    )
    most = Effect(
        FIGURES["stalls-1ms"].title, ("18.9 a second", "6.69 a second"), 2.8, "better", "fewer", sort="stalls"
    )
    _, rows_ = few(Effects(most, None, most, tail=least))
    # This figure decides against a gain, so it counts, however little it moved.
    assert not any("not counted" in row for row in rows_)
    announced = Effect("p99.9", ("8.2 ms", "16 ms"), 1.97, "worse", "longer")
    longer = Effect("p90", ("200 ns", "4.2 µs"), 21.0, "worse", "longer")
    pair = RUNS[0], KnownRun(dataclasses.replace(RUNS[1].run, noise="stall"))
    judged = judge_pair(Effects(longer, None, longer, tail=announced), pair)
    assert any(line.plain.endswith("below 2×: not counted") for line in result_table(judged, pair, 120, "", few=True))


def test_the_name_of_a_cause_that_leaves_the_bars_no_room_is_not_in_the_cell() -> None:
    for label, told in (("our threads", "our threads: none after"), ("page faults of our own threads", "none after")):
        cause = CauseTime(label, (123e6, 0.0), treated=True)
        _, rows_ = few(dataclasses.replace(FOUND, causes=(cause,)))
        assert rows_[-1].endswith(f"0 ms/s {told}")
