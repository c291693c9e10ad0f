"""Verdicts on made-up rounds: what is claimed, what is not, and in which words."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.run import StallRate
from jitter_workshop.model.verdict import CommandFigure, Judgement, Round, Side, Verdict, VerdictWord
from jitter_workshop.stats.comparison import measure_name
from jitter_workshop.stats.rounds import side_of_figure
from jitter_workshop.stats.sample_size import MANY_ROUNDS, rounds_needed
from jitter_workshop.stats.verdicts import headline_in_words, judge_change, span_told
from tests.maderounds import LAPTOP, NOISY, QUIET, make_rounds

OVER_100_US = "stalls_per_second_over_100000_ns"
OVER_1_MS = "stalls_per_second_over_1000000_ns"
SEEDS = st.integers(0, 2**20)
FEW = settings(max_examples=15, deadline=None)


def row(judgement: Judgement, measure: str) -> Verdict:
    return next(r for r in judgement.rows if r.measure == measure)


def each_side(rounds: list[Round], **changed: object) -> list[Round]:
    def change(side: Side) -> Side:
        return replace(side, **changed)  # type: ignore[arg-type]

    return [replace(r, without=change(r.without), with_it=change(r.with_it)) for r in rounds]


def swapped(rounds: list[Round]) -> list[Round]:
    return [Round("BA" if r.order == "AB" else "AB", r.with_it, r.without) for r in rounds]


def test_the_lines_come_with_the_stalls_first() -> None:
    judgement = judge_change(make_rounds(1))
    assert [r.measure for r in judgement.rows] == [
        OVER_1_MS,
        OVER_100_US,
        "stalls_per_second_over_10000_ns",
        "stalls_per_second_over_1000_ns",
        "stolen_ns_per_second",
        "p50",
        "p99",
        "p99.9",
        "p99.99",
    ]


def test_ten_times_as_many_stalls_are_claimed_and_turned_round_ten_times_fewer() -> None:
    rounds = make_rounds(2, ratio=10)
    more, fewer = judge_change(rounds), judge_change(swapped(rounds))
    assert (more.headline.measure, more.headline.verdict) == (OVER_100_US, "higher")
    assert "more often" in more.headline.text
    assert (fewer.headline.measure, fewer.headline.verdict) == (OVER_100_US, "lower")
    assert "rarer" in fewer.headline.text


@FEW
@given(SEEDS, st.sampled_from([0.3, 1.0, 3.0]))
def test_swapping_the_sides_turns_every_line_round(seed: int, ratio: float) -> None:
    rounds = make_rounds(seed, ratio=ratio)
    turned = {"lower": "higher", "higher": "lower"}
    for there, back in zip(judge_change(rounds).rows, judge_change(swapped(rounds)).rows, strict=True):
        assert back.verdict == turned.get(there.verdict, there.verdict)
        assert (back.p, back.p_adjusted) == pytest.approx((there.p, there.p_adjusted))
        if there.ratio and back.ratio:
            assert back.ratio == pytest.approx(1 / there.ratio, rel=1e-4)
        assert back.low == pytest.approx(1 / there.high if there.high else 0.0, rel=1e-3)


@FEW
@given(SEEDS)
def test_the_order_of_the_rounds_does_not_matter(seed: int) -> None:
    rounds = make_rounds(seed, ratio=2)
    once, again = judge_change(rounds), judge_change(rounds[::-1])
    for a, b in zip(once.rows, again.rows, strict=True):
        assert (a.verdict, a.p) == (b.verdict, pytest.approx(b.p))


@FEW
@given(SEEDS, st.floats(0.1, 20), st.sampled_from([LAPTOP, QUIET]))
def test_each_sentence_agrees_with_its_figures(seed: int, ratio: float, rates: dict[int, float]) -> None:
    judgement = judge_change(make_rounds(seed, ratio=ratio, per_second=rates))
    for one in judgement.rows:
        high = math.inf if one.high is None else one.high
        assert one.low <= (one.ratio if one.ratio is not None else math.inf) <= high
        assert one.p <= one.p_adjusted
        if one.verdict in ("lower", "higher"):
            assert one.p_adjusted < 0.05
            assert high < 1 if one.verdict == "lower" else one.low > 1
        if one.verdict == "no_change":
            assert one.low >= 1 / 1.1
            assert high <= 1.1
        assert one.rounds_needed is None or (one.verdict == "cannot_tell" and one.rounds_needed > 10)
    assert any(judgement.headline.text.startswith(r.words) for r in judgement.rows)


def test_a_headline_names_the_lines_proven_in_the_other_direction() -> None:
    many = dict.fromkeys((1_000, 10_000, 100_000, 1_000_000), 200.0)

    def worse(side: Side) -> Side:
        more = tuple(replace(r, count=r.count * 20) if r.threshold_ns == 1_000 else r for r in side.stalls)
        return replace(side, stalls=more, percentiles={**side.percentiles, "50": 2 * (side.percentiles["50"] or 0)})

    rounds = [replace(r, with_it=worse(r.with_it)) for r in make_rounds(20, ratio=0.5, per_second=many, spread=0.1)]
    said = judge_change(rounds)
    assert (said.headline.measure, said.headline.verdict) == (OVER_100_US, "lower")
    first, _, but = said.headline.text.partition("; but ")
    assert first == row(said, OVER_100_US).words
    assert but.endswith(" (proven)")
    # The larger change stands first, each in short.
    assert but.startswith("stalls over 1 µs ")
    assert "× more often and the median 2." in but or "× more often and the median 1.9" in but
    turned = judge_change(swapped(rounds)).headline
    assert turned.verdict == "higher"
    assert "; but stalls over 1 µs " in turned.text
    assert "rarer and the median" in turned.text


def test_a_headline_names_a_contradiction_also_where_the_primary_line_is_silent() -> None:
    rounds = [
        replace(
            r,
            with_it=replace(
                r.without,
                stolen_ns_per_second=r.without.stolen_ns_per_second / 40,
                percentiles={**r.without.percentiles, "50": 300, "99": 2_000},
            ),
        )
        for r in make_rounds(21, per_second=NOISY, spread=0.1)
    ]
    said = judge_change(rounds)
    assert row(said, OVER_100_US).verdict not in ("lower", "higher")
    assert (said.headline.measure, said.headline.verdict) == ("stolen_ns_per_second", "lower")
    assert "; but p99 " in said.headline.text
    assert "and the median " in said.headline.text


def test_stalls_on_one_side_alone_contradict_most() -> None:
    def row_of(measure: str, verdict: VerdictWord, ratio: float | None) -> Verdict:
        return Verdict(measure, ratio, 0.0, None, 0.001, 0.01, verdict, None, f"{measure}: {verdict} (words)")

    first = row_of(OVER_100_US, "lower", 0.5)
    against = [row_of("p50", "higher", 1.2), row_of(OVER_1_MS, "higher", None), row_of("p99", "higher", 3.0)]
    said = headline_in_words(first, [first, *against, row_of("p99.9", "no_change", 1.0)])
    assert said == (f"{first.words}; but stalls over 1 ms only with it, p99 3× higher and 1 more line higher (proven)")
    assert headline_in_words(first, [first, row_of("p50", "lower", 0.9)]) == first.words


def test_nine_rounds_give_figures_and_no_verdict() -> None:
    judgement = judge_change(make_rounds(3, rounds=9, ratio=20))
    assert {r.verdict for r in judgement.rows} == {"cannot_tell"}
    assert row(judgement, OVER_100_US).ratio == pytest.approx(20, rel=0.6)
    assert "only 9 of the 10 rounds" in judgement.headline.text


def test_of_few_rounds_the_usual_line_speaks() -> None:
    assert judge_change(make_rounds(3, rounds=3)).headline.measure == OVER_100_US


def test_a_line_that_only_the_adjustment_for_many_lines_makes_undecided_says_so() -> None:
    words = {r.words for i in range(20) for r in judge_change(make_rounds(i, ratio=1.5)).rows if "too weak" in r.words}
    assert words
    silenced = [r for i in range(20) for r in judge_change(make_rounds(i, ratio=1.5)).rows if r.words in words]
    assert all(r.p < 0.05 <= r.p_adjusted and r.verdict == "cannot_tell" for r in silenced)


def test_no_round_is_no_judgement() -> None:
    with pytest.raises(ValueError, match="no round"):
        judge_change([])


def test_the_same_on_both_sides_is_no_change() -> None:
    rounds = [replace(r, with_it=r.without) for r in make_rounds(4)]
    judgement = judge_change(rounds)
    many = row(judgement, "stalls_per_second_over_10000_ns")
    assert (many.verdict, many.ratio) == ("no_change", pytest.approx(1))
    assert "no change beyond ±10 %" in many.words
    # Of few stalls even equal counts leave the ratio open.
    assert row(judgement, OVER_1_MS).verdict == "cannot_tell"


def test_an_interval_that_leaves_the_band_below_is_no_proof_of_no_change() -> None:
    def side(value: float) -> Side:
        return side_of_figure(CommandFigure("wall_time", "ns", value))

    # Both one-sided tests give p < 5 %, and the interval still ends below 1 / 1.1.
    rounds = [Round("AB", side(100), side(value)) for value in (88, 89, 90, 94, 94, 98, 98, 98, 103, 112)]
    (only,) = judge_change(rounds).rows
    assert only.verdict == "cannot_tell"
    assert only.low < 1 / 1.1


def test_none_on_either_side_is_no_proof_of_no_change() -> None:
    none = row(judge_change(make_rounds(5, per_second=QUIET)), OVER_100_US)
    assert (none.verdict, none.ratio, none.low, none.high) == ("cannot_tell", None, 0.0, None)
    assert none.rounds_needed is None
    # Three in 50 s is what none in 50 s excludes.
    assert none.words.startswith("stalls over 100 µs: cannot tell: no event without the change and no event with it, ")
    assert none.words.endswith("cases rarer than one in 16.7 s")


def test_stalls_that_went_away_altogether_are_told_with_both_counts() -> None:
    gone = [
        replace(
            r,
            with_it=replace(r.with_it, stalls=tuple(StallRate(t.threshold_ns, 0, 0.0, 0.0) for t in r.with_it.stalls)),
        )
        for r in make_rounds(6)
    ]
    one = row(judge_change(gone), OVER_100_US)
    assert (one.verdict, one.ratio, one.low) == ("lower", 0.0, 0.0)
    assert one.high is not None
    assert one.high < 0.05
    assert "none in 50 s, rarer than" in one.words
    assert "with it none in 50 s" in one.words


def test_on_a_quiet_host_shorter_stalls_are_the_primary_measure() -> None:
    judgement = judge_change(make_rounds(7, per_second=QUIET, ratio=3))
    assert (judgement.headline.measure, judgement.headline.verdict) == ("stalls_per_second_over_10000_ns", "higher")


def test_a_percentile_beyond_p99_needs_ten_distinct_stalls_beyond_it_on_each_side() -> None:
    tail = [
        replace(r, with_it=replace(r.with_it, percentiles={p: (v or 0) * 9 for p, v in r.with_it.percentiles.items()}))
        for r in make_rounds(8)
    ]
    few = each_side(tail, beyond={"99.9": 0, "99.99": 0})
    few[0] = replace(few[0], without=replace(few[0].without, beyond={"99.9": 500}))
    for percentile, verdict in (("p99", "higher"), ("p99.9", "cannot_tell"), ("p99.99", "cannot_tell")):
        assert row(judge_change(few), percentile).verdict == verdict
    assert "only 0 distinct stalls beyond this value" in row(judge_change(few), "p99.9").words
    assert "without or with the change; 10 are needed" in row(judge_change(few), "p99.9").words
    one_each = each_side(tail, beyond={"99.9": 1, "99.99": 1})
    assert row(judge_change(one_each), "p99.9").verdict == "higher"


def test_a_percentile_that_one_run_does_not_know_has_no_verdict() -> None:
    rounds = make_rounds(9)
    lacking = {**rounds[0].without.percentiles, "99.99": None}
    rounds[0] = replace(rounds[0], without=replace(rounds[0].without, percentiles=lacking))
    assert "not every run has enough samples" in row(judge_change(rounds), "p99.99").words
    unknown = each_side(rounds, percentiles={"50": 100, "99.99": None})
    assert "p99.99" not in {r.measure for r in judge_change(unknown).rows}


def test_the_maximum_is_named_and_never_judged() -> None:
    judgement = judge_change(make_rounds(10))
    assert judgement.worst == (
        "Worst seen: 3 ms in 50 s without the change, 3 ms in 50 s with the change. "
        "Each is a single event, so no verdict is based on it."
    )
    assert "max" not in {r.measure for r in judgement.rows}


def test_stolen_time_over_different_thresholds_is_not_compared() -> None:
    rounds = make_rounds(11)
    rounds[0] = replace(rounds[0], without=replace(rounds[0].without, threshold_ns=2_000))
    assert "stolen_ns_per_second" not in {r.measure for r in judge_change(rounds).rows}


def test_the_median_of_spin_is_the_clock_alone_and_not_shown() -> None:
    spin = each_side(make_rounds(12), percentiles={"50": 20, "99.9999": 4_000}, beyond={"99.9999": 40})
    assert [r.measure for r in judge_change(spin, "spin").rows if r.measure.startswith("p")] == ["p99.9999"]


def test_one_long_stall_does_not_carry_the_stolen_time() -> None:
    rounds = each_side(make_rounds(13, per_second=dict.fromkeys(LAPTOP, 0.0)), stolen_ns_per_second=0.0)
    long = tuple(StallRate(t, 1, 0.2, 1e8) for t in LAPTOP)
    rounds[3] = replace(rounds[3], with_it=replace(rounds[3].with_it, stalls=long, stolen_ns_per_second=1e8))
    stolen = row(judge_change(rounds), "stolen_ns_per_second")
    assert (stolen.verdict, stolen.p, stolen.low, stolen.high) == ("cannot_tell", 1.0, 0.0, None)
    # One name: "stolen" would be the hypervisor's in a guest.
    assert stolen.words.startswith("time in stalls: ")
    assert measure_name(stolen.measure) == "time in stalls"


def test_a_shorter_run_is_set_against_as_much_of_the_longer_one() -> None:
    def cut(side: Side) -> Side:
        fifth = tuple(replace(r, count=r.count // 5) for r in side.stalls)
        return replace(side, duration_s=1.0, stalls=fifth)

    rounds = [replace(r, without=r.without, with_it=cut(r.without)) for r in make_rounds(14)]
    many = row(judge_change(rounds), "stalls_per_second_over_10000_ns")
    assert many.ratio == pytest.approx(1, abs=0.02)
    assert many.verdict == "no_change"


def test_more_rounds_are_counted_like_ten() -> None:
    judgement = judge_change(make_rounds(15, rounds=40, ratio=1.6))
    assert judgement.rounds == 40
    assert row(judgement, OVER_100_US).verdict == "higher"


def test_a_judgement_survives_json() -> None:
    judgement = judge_change(make_rounds(16, ratio=3))
    assert from_plain(Judgement, to_plain(judgement)) == judgement


@given(st.floats(0.01, 3), st.floats(0.01, 2), st.integers(10, 60))
def test_rounds_needed_grow_with_the_spread(effect: float, spread: float, rounds: int) -> None:
    few, more = rounds_needed(effect, spread, rounds, 0.025), rounds_needed(effect, spread * 1.5, rounds, 0.025)
    if few is None:
        assert more is None
        return
    assert few > rounds
    assert more is None or more >= few
    assert few <= max(MANY_ROUNDS, rounds + 1)


def test_rounds_needed_for_a_doubling_as_a_t_test_would_have_them() -> None:
    # (1.96 + 1.28)² · 1.2² / ln(2)² + 1.96²/2
    assert rounds_needed(math.log(2), 1.2, 10, 0.05) == 34


@pytest.mark.parametrize(("ratio", "spread"), [(2.0, 0.4), (1.5, 0.3), (1.0, 0.05)])
def test_as_many_rounds_as_are_named_do_tell(ratio: float, spread: float) -> None:
    # Per second, and what counting adds to the spread of two runs of five seconds.
    rate = 200.0
    whole = math.sqrt(2 * spread**2 + (1 + 1 / ratio) / (5 * rate))
    # Half of the doubt is the primary line's; of no change each of the nine lines has a ninth.
    needed = rounds_needed(math.log(ratio), whole, 0, 0.025, p_for_no_change=0.05 / 9)
    assert needed is not None
    busy = {100_000: rate}
    told = sum(
        row(
            judge_change(make_rounds(700 + i, rounds=needed, ratio=ratio, per_second=busy, spread=spread)), OVER_100_US
        ).verdict
        != "cannot_tell"
        for i in range(40)
    )
    assert told >= 32


def test_no_number_of_rounds_is_enough_for_an_effect_below_the_clocks_step() -> None:
    assert rounds_needed(0.05, 0.1, 10, 0.05, coarseness=0.2) is None


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.5, 2.0, "1/2 to 2×"), (0.5, None, "1/2 or more"), (0.0, None, "every ratio is possible")],
)
def test_a_range_without_an_upper_limit_is_told_in_words(low: float, high: float | None, said: str) -> None:
    assert span_told(low, high) == said
