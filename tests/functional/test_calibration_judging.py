"""Test the calibration on made data with a known answer, and that docs/verdicts.md quotes the recorded data."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.verdict import SIGNIFICANCE, Side
from jitter_workshop.stats.verdicts import judge_change
from tests.bench import calibration as command
from tests.calibration import judging
from tests.calibration.plan import FAR, NEAR, OFF, NullPlan, PowerPlan, Slot
from tests.calibration.records import Recorded, Taken, Writer, plain_side, plain_sitting, read, side_from
from tests.maderounds import LAPTOP, NOISY, make_rounds, make_side

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs" / "verdicts.md"
NOT_YET = "not been recorded yet"


def record(plan: NullPlan | PowerPlan, side_of: Callable[[Slot], Side], each_s: float = 1.5) -> Recorded:
    periods = dict.fromkeys(plan.effects, 10000000) if isinstance(plan, PowerPlan) else {}
    runs = {}
    for slot in plan.slots():
        side = side_from(plain_side(side_of(slot)), f"{slot.number:05d}")
        sides = {1_000: side} if isinstance(plan, NullPlan) else {1_000: side, 5_000: side}
        runs[slot.number] = Taken(slot.number, round(slot.number * each_s * 1000), 0, 0, 0, sides)
    return Recorded(plan, periods, (plain_sitting(plan, {}, periods),), runs)


def even(slot: Slot) -> Side:
    return make_side(random.Random(slot.number), LAPTOP, 0.2)


@given(st.integers(0, 10_000), st.sampled_from([1.0, 1.3, 2.0, 0.3, 0.0]), st.sampled_from([9, 10, 17]))
def test_the_short_way_makes_the_same_claims_as_a_judgement(seed: int, ratio: float, rounds: int) -> None:
    made = make_rounds(seed, rounds, ratio)
    rows = judge_change(made, "ring").rows
    assert judging.claims(made, "ring") == {r.measure: r.verdict for r in rows if r.verdict in ("lower", "higher")}


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    # Clopper and Pearson's own kind of table: 5 of 100, none of 200 (1 - 0.025^(1/200)), all of 12.
    [(5, 100, 0.0164, 0.1128), (0, 200, 0.0, 0.0183), (12, 12, 0.7354, 1.0), (0, 0, 0.0, 1.0)],
)
def test_the_interval_of_a_share_is_exact(count: int, total: int, low: float, high: float) -> None:
    assert judging.exact(count, total) == pytest.approx((low, high), abs=5e-5)


def test_the_same_host_on_both_sides_claims_next_to_nothing() -> None:
    recorded = record(NullPlan(20), even, each_s=5.0)
    found, left = judging.answers(recorded)
    assert not left
    assert {(a.half, a.workload) for a in found} == {(h, w) for h in (NEAR, FAR) for w in ("ring", "spin")}
    assert len(found) == 40
    assert sum(bool(a.claims) for a in found) <= 4
    assert judging.null_table(found)[-1].startswith("| **all** |  | 40 |")


def test_sides_that_do_differ_are_claimed_in_every_comparison() -> None:
    plan = NullPlan(4)
    worse = {pair.with_it for same in plan.comparisons_planned() for pair in same.pairs}

    def side(slot: Slot) -> Side:
        return make_side(random.Random(slot.number), NOISY if slot.number in worse else LAPTOP, 0.1)

    found, _ = judging.answers(record(plan, side, each_s=25.0))
    assert len(found) == 8
    assert all(a.claims[judging.PRIMARY] == "higher" for a in found)
    assert judging.null_table(found)[-1] == "| **all** |  | 8 | 8 (100.0 %) | 63.1 to 100.0 % |"
    assert f"| {judging.PRIMARY} | 8 | 8 (100.0 %) | 8 |" in judging.lines_table(found)


def test_rounds_that_differ_from_the_plan_are_left_out_with_their_reason() -> None:
    quick = record(NullPlan(4), even, each_s=1.0)
    found, left = judging.answers(quick)
    assert {a.half for a in found} == {NEAR}
    assert left == {f"{FAR}: a round's runs less than 30 minutes apart": 4}
    some = record(NullPlan(4), even, each_s=25.0)
    del some.runs[3]
    slow = {n: replace(one, at_ms=one.at_ms + 100_000 * (n > 50)) for n, one in some.runs.items()}
    slow[51] = replace(slow[51], at_ms=slow[50].at_ms + 90_000)
    _, left = judging.answers(replace(some, runs=slow))
    assert left[f"{NEAR}: not whole"] == 1
    assert left[f"{NEAR}: a round's runs more than 60 s apart"] == 1


def pool(ratio: float, groups: int = 40) -> Recorded:
    def side(slot: Slot) -> Side:
        level = 1.0 if slot.effect == OFF else ratio
        return make_side(random.Random(slot.number), LAPTOP, 0.2, level)

    return record(PowerPlan(groups, ("2",)), side)


def test_a_large_effect_is_seen_by_every_design_and_no_effect_by_none() -> None:
    seen = judging.designs(pool(4.0), subsets=20)
    assert [(d.seconds, d.rounds, d.of) for d in seen] == [(s, n, 40 // n) for s in (1, 5) for n in (10, 20, 40)]
    assert all((d.seen, d.random_seen, d.wrong) == (d.of, 20, 0) for d in seen)
    assert sum(d.random_seen for d in judging.designs(pool(1.0), subsets=20)) <= 6


def test_the_effect_that_is_told_is_that_of_the_pool() -> None:
    recorded = pool(2.0)
    rates = judging.rates(recorded)
    assert rates[OFF] == pytest.approx(4.7, rel=0.15)
    assert rates["2"] / rates[OFF] == pytest.approx(2.0, rel=0.15)
    table = judging.power_table(recorded, judging.designs(recorded, subsets=5))
    assert len(table) == 2 + 6
    assert f"(×{rates['2'] / rates[OFF]:.2f})" in table[2]


def test_runs_of_a_pool_against_their_like_claim_next_to_nothing() -> None:
    found = judging.second_null(pool(4.0))
    assert len(found) == 2 * 2 * 2
    # Both lengths of these have the same sides: a comparison that claims by luck does so twice.
    assert sum(bool(a.claims) for a in found) <= 2


def test_the_command_judges_a_file_and_describes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = record(NullPlan(2), even)
    sitting = {**recorded.sittings[0], "host": {"cpu_model": "a CPU"}}
    path = write(replace(recorded, sittings=(sitting,)), tmp_path / "null.jsonl")
    assert command.main(["--judge", str(path)]) == 0
    said = capsys.readouterr().out
    assert "80 of 80 runs" in said
    assert "a CPU" in said
    assert "left out: 2 × half the series" in said
    assert command.main(["--judge", str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl" in capsys.readouterr().err


def write(recorded: Recorded, path: Path) -> Path:
    writer = Writer(path)
    for sitting in recorded.sittings:
        writer.sitting(sitting)
    for one in recorded.runs.values():
        writer.run(one)
    writer.close()
    return path


def test_the_command_packs_a_series_where_the_bench_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(judging, "DATA", tmp_path / "data")
    monkeypatch.setattr(judging, "NULL", tmp_path / "data" / "null.jsonl.xz")
    assert command.run(tmp_path) == []
    assert "no series has been recorded" in capsys.readouterr().out
    assert command.main(["--judge"]) == 2
    for name, recorded in (("null", record(NullPlan(2), even)), ("power", pool(1.8, 10)), ("power-4", pool(4.0, 10))):
        assert command.main(["--pack", str(write(recorded, tmp_path / f"{name}.jsonl"))]) == 0
    assert command.main(["--pack", str(write(pool(1.8, 10), tmp_path / "pool.jsonl"))]) == 2
    null, power = command.run(tmp_path)
    # The far half of so short a series is left out: of two comparisons none claims anything.
    assert (null.value, null.how, null.met) == (0.0, "0 of 2", True)
    assert (power.value, power.met) == (0.0, True)
    assert power.how.startswith("ten quick rounds;")
    assert power.how.endswith("disjoint sets: 1 of 1 seen")
    assert "any line lower" in (tmp_path / "calibration-power.txt").read_text()


def null_goal(recorded: Recorded) -> list[str]:
    """Check the goal of a null series, and return its report: both need its answers, which take seconds."""
    found, left = answered = judging.answers(recorded)
    assert not left
    assert len(found) == 200
    assert sum(bool(a.claims) for a in found) <= 10
    # The short way by which the report is made is the product's own: asked of one comparison in ten.
    assert isinstance(recorded.plan, NullPlan)
    for same, answer in list(zip(recorded.plan.comparisons_planned(), found, strict=True))[::10]:
        (ms,) = recorded.runs[same.pairs[0].without].sides
        rows = judge_change(judging.rounds_from(recorded, same.pairs, ms), same.workload).rows
        assert answer.shown == tuple(row.measure for row in rows)
        assert answer.own == {row.measure for row in rows if row.p < SIGNIFICANCE}
        assert answer.claims == {row.measure: row.verdict for row in rows if row.verdict in ("lower", "higher")}
    return judging.null_report(recorded, answered)


def power_goal(recorded: Recorded) -> list[str]:
    """Check the goal of a pool with a known effect, and return its report."""
    found = judging.designs(recorded)
    for usual in found:
        if (usual.seconds, usual.rounds) == (5.0, 10):
            assert judging.doubled(recorded, usual.effect), "what was recorded is no doubling"
            assert usual.seen >= 0.9 * usual.of
            assert usual.random_seen >= 0.9 * usual.random_of
            assert usual.wrong == 0
    return judging.power_report(recorded, found)


@pytest.mark.parametrize(
    ("path", "goal"),
    [
        (judging.NULL, null_goal),
        *((p, power_goal) for p in judging.pools() or [judging.DATA / "power.jsonl.xz"]),
    ],
)
def test_the_document_quotes_the_recorded_data_and_its_goal_is_met(
    path: Path, goal: Callable[[Recorded], list[str]]
) -> None:
    documented = DOCS.read_text(encoding="utf-8")
    pending = f"The {path.name.partition('.')[0]} series has {NOT_YET}."
    if not path.exists():
        # Then nothing may be claimed of it, and the document says so itself.
        assert pending in documented
        return
    assert pending not in documented
    recorded = read(path)
    assert len(recorded.runs) == len(recorded.plan.slots())
    documented_lines = documented.splitlines()
    assert [line for line in goal(recorded) if line and line not in documented_lines] == []
