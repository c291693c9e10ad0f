"""Judge the verdicts by the recorded runs: the share of false claims, and the power. Prints what
docs/verdicts.md quotes."""

from __future__ import annotations

import datetime
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jitter_workshop.model.verdict import CONFIDENCE, ENOUGH_ROUNDS, SIGNIFICANCE, Round, VerdictWord
from jitter_workshop.stats.comparison import stall_measure
from jitter_workshop.stats.exact import binomial_at_least
from jitter_workshop.stats.multiple_comparisons import adjust
from jitter_workshop.stats.paired import p_value
from jitter_workshop.stats.rounds import MeasureLine, measure_lines
from tests.calibration.plan import APART_S, FAR, NEAR, OFF, SEED, TOGETHER_S, NullPlan, Pair, PowerPlan, Same
from tests.calibration.records import Recorded

DATA = Path(__file__).parent / "data"
NULL = DATA / "null.jsonl.xz"
DOUBLING = (1.7, 2.3)
"""The ratios of the pool's own rates that count as a doubling: the noise is set by a pilot, and a host's own rate
moves."""
PRIMARY = stall_measure(100_000)
DESIGNS = (10, 20, 40)
SUBSETS = 200
Claims = dict[str, VerdictWord]


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold what one same-against-same comparison claimed. ``own``: lines whose own p is below 5 %, whatever the
    others."""

    half: str
    workload: str
    claims: Claims
    own: frozenset[str]
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Design:
    """Hold how often a design saw an effect in stalls over 100 µs: in ``of`` disjoint sets of rounds of the pool, and
    in random ones. ``wrong``: random ones in which any line claimed that there is less."""

    effect: str
    seconds: float
    rounds: int
    seen: int
    of: int
    random_seen: int
    random_of: int
    wrong: int


def claims(rounds: Sequence[Round], workload: str) -> Claims:
    """The lines that ``judge`` calls lower or higher, without their estimates and intervals: all that matters is
    whether the near end lies beyond 1, which is whether the ratio that the clock's step allows for is rejected. The
    contributions to a ratio sum up to more than 0 where the estimate is above that ratio."""
    shown = measure_lines(rounds, workload)
    return _claimed_of(shown, [p_value(line.pairs) for line in shown], len(rounds))


def _claimed_of(shown: Sequence[MeasureLine], ps: Sequence[float], rounds: int) -> Claims:
    found: Claims = {}
    if rounds < ENOUGH_ROUNDS:
        return found
    for line, p in zip(shown, adjust(shown, ps), strict=True):
        if p >= SIGNIFICANCE or line.gate:
            continue
        up = 1 if math.fsum(line.pairs.contributions(0.0)) > 0 else -1
        near = up * line.pairs.coarseness
        if up * math.fsum(line.pairs.contributions(near)) > 0 and p_value(line.pairs, near) <= 1 - CONFIDENCE:
            found[line.measure] = "higher" if up > 0 else "lower"
    return found


def pools() -> list[Path]:
    """The recorded pools with a known effect."""
    return sorted(DATA.glob("power*.jsonl.xz"))


def exact(count: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of a share (Clopper and Pearson, 1934); all of 0 to 1 for none of none."""
    tail = (1 - confidence) / 2
    low = _crossing(lambda share: binomial_at_least(count, total, share) >= tail) if count else 0.0
    high = 1 - _crossing(lambda share: binomial_at_least(total - count, total, share) >= tail) if count < total else 1.0
    return low, high


# ---- nothing changed -------------------------------------------------------------------------------------------------


def answers(recorded: Recorded) -> tuple[list[Answer], Counter[str]]:
    """Each comparison of a null series, and how many are left out, by why."""
    assert isinstance(recorded.plan, NullPlan)
    found: list[Answer] = []
    left: Counter[str] = Counter()
    for same in recorded.plan.comparisons_planned():
        if why := _left_out(recorded, same):
            left[f"{same.half}: {why}"] += 1
            continue
        (ms,) = recorded.runs[same.pairs[0].without].sides
        found.append(_answer(same.half, same.workload, rounds_from(recorded, same.pairs, ms)))
    return found, left


def _answer(half: str, workload: str, rounds: Sequence[Round]) -> Answer:
    shown = measure_lines(rounds, workload)
    ps = [p_value(line.pairs) for line in shown]
    return Answer(
        half,
        workload,
        _claimed_of(shown, ps, len(rounds)),
        frozenset(line.measure for line, p in zip(shown, ps, strict=True) if p < SIGNIFICANCE),
        tuple(line.measure for line in shown),
    )


def _left_out(recorded: Recorded, same: Same) -> str:
    numbers = [n for pair in same.pairs for n in (pair.without, pair.with_it)]
    if any(n not in recorded.runs for n in numbers):
        return "not whole"
    apart = [apart_s(recorded, pair) for pair in same.pairs]
    if same.half == NEAR and max(apart) > TOGETHER_S:
        return f"a round's runs more than {TOGETHER_S:g} s apart"
    if same.half == FAR and min(apart) < APART_S:
        return f"a round's runs less than {APART_S / 60:g} minutes apart"
    return ""


def apart_s(recorded: Recorded, pair: Pair) -> float:
    """From the begin of a round's one run to that of the other."""
    return abs(recorded.runs[pair.with_it].at_ms - recorded.runs[pair.without].at_ms) / 1000


def rounds_from(recorded: Recorded, pairs: Iterable[Pair], ms: int) -> list[Round]:
    """The rounds of pairs whose runs are there."""
    runs = recorded.runs
    return [
        Round(pair.order, runs[pair.without].sides[ms], runs[pair.with_it].sides[ms])
        for pair in pairs
        if pair.without in runs and pair.with_it in runs
    ]


def null_table(found: Sequence[Answer]) -> list[str]:
    """Markdown."""
    table = ["| a round's runs | workload | comparisons | with any claim | 95 % interval |", "|---|---|---:|---:|---|"]
    rows: list[tuple[str, str, list[Answer]]] = [
        (half, workload, [a for a in found if (a.half, a.workload) == (half, workload)])
        for half in (NEAR, FAR)
        for workload in ("ring", "spin")
    ]
    for half, workload, some in (*rows, ("**all**", "", list(found))):
        if some:
            count = sum(bool(a.claims) for a in some)
            low, high = exact(count, len(some))
            share = f"{count} ({100 * count / len(some):.1f} %)"
            table.append(f"| {half} | {workload} | {len(some)} | {share} | {100 * low:.1f} to {100 * high:.1f} % |")
    return table


def lines_table(found: Sequence[Answer]) -> list[str]:
    """Return which lines claimed, and how often each line's own p was below 5 %. Markdown."""
    table = ["| line | shown | own p < 0.05 | claimed |", "|---|---:|---:|---:|"]
    shown = Counter(measure for a in found for measure in a.shown)
    for measure, times in shown.items():
        own, claimed = (sum(measure in some(a) for a in found) for some in (_own, _claimed))
        table.append(f"| {measure} | {times} | {own} ({100 * own / times:.1f} %) | {claimed} |")
    return table


def _own(answer: Answer) -> frozenset[str]:
    return answer.own


def _claimed(answer: Answer) -> frozenset[str]:
    return frozenset(answer.claims)


# ---- a known effect --------------------------------------------------------------------------------------------------


def designs(recorded: Recorded, subsets: int = SUBSETS) -> list[Design]:
    """Every design that the pool has rounds for."""
    assert isinstance(recorded.plan, PowerPlan)
    plan, found = recorded.plan, []
    for effect in plan.effects:
        for ms in _lengths(recorded):
            pool = rounds_from(recorded, plan.rounds_planned(effect), ms)
            found += [_design(effect, ms, n, pool, plan.workload, subsets) for n in DESIGNS if n <= len(pool)]
    return found


def _design(effect: str, ms: int, rounds: int, pool: list[Round], workload: str, subsets: int) -> Design:
    chance = random.Random(SEED)
    disjoint = [claims(some, workload) for some in chunks(pool, rounds)]
    drawn = [claims(chance.sample(pool, rounds), workload) for _ in range(subsets)]
    return Design(
        effect,
        ms / 1000,
        rounds,
        sum(map(_seen, disjoint)),
        len(disjoint),
        sum(map(_seen, drawn)),
        len(drawn),
        sum("lower" in some.values() for some in drawn),
    )


def _seen(found: Claims) -> bool:
    return found.get(PRIMARY) == "higher"


def chunks(pool: Sequence[Round], rounds: int) -> list[Sequence[Round]]:
    """Disjoint sets of rounds that follow each other; what is left over is in none."""
    return [pool[i : i + rounds] for i in range(0, len(pool) - rounds + 1, rounds)]


def rates(recorded: Recorded, ms: int | None = None) -> dict[str, float]:
    """Stalls over 100 µs a second in the first ``ms`` of the pool's runs (None: in whole runs), by effect."""
    count: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for slot in recorded.plan.slots():
        if slot.number in recorded.runs:
            sides = recorded.runs[slot.number].sides
            side = sides[max(sides) if ms is None else ms]
            stalls = sum(r.count for r in side.stalls if r.threshold_ns == 100_000)
            count[slot.effect] = count.get(slot.effect, 0) + stalls
            seconds[slot.effect] = seconds.get(slot.effect, 0.0) + side.duration_s
    return {effect: count[effect] / seconds[effect] for effect in seconds}


def doubled(recorded: Recorded, effect: str) -> bool:
    """Return True if what an effect made of the pool's own rate is a doubling."""
    found = rates(recorded)
    low, high = DOUBLING
    return low <= found[effect] / found[OFF] <= high


def power_table(recorded: Recorded, found: Sequence[Design]) -> list[str]:
    """Markdown."""
    table = [
        "| stalls over 100 µs a second, without → with | seconds | rounds | seen, disjoint | 95 % interval |"
        " seen, drawn | any line lower |",
        "|---|---:|---:|---:|---|---:|---:|",
    ]
    for d in found:
        low, high = exact(d.seen, d.of)
        per_second = rates(recorded, round(d.seconds * 1000))
        off, on = per_second[OFF], per_second[d.effect]
        effect = f"{off:.1f} → {on:.1f} (×{on / off:.2f})" if off else f"0 → {on:.1f}"
        drawn = f"{100 * d.random_seen / d.random_of:.0f} %" if d.random_of else "–"
        table.append(
            f"| {effect} | {d.seconds:g} | {d.rounds} | {d.seen} of {d.of} | {100 * low:.0f} to {100 * high:.0f} % |"
            f" {drawn} | {d.wrong} |"
        )
    return table


def second_null(recorded: Recorded) -> list[Answer]:
    """The pool's runs of one kind against each other, ten rounds a comparison: quiet ones, and noisy ones."""
    assert isinstance(recorded.plan, PowerPlan)
    plan, found = recorded.plan, []
    for effect in (OFF, *plan.effects):
        for ms in _lengths(recorded):
            pool = rounds_from(recorded, plan.rounds_of_same(effect), ms)
            half = f"{effect if effect == OFF else f'×{effect}'}, {ms / 1000:g} s"
            found += [_answer(half, plan.workload, some) for some in chunks(pool, ENOUGH_ROUNDS)]
    return found


def _lengths(recorded: Recorded) -> list[int]:
    return sorted({ms for one in recorded.runs.values() for ms in one.sides})


# ---- all of it -------------------------------------------------------------------------------------------------------


def null_report(recorded: Recorded, answered: tuple[list[Answer], Counter[str]]) -> list[str]:
    """Return the report of a null series as printed. ``answered``: what ``answers`` returned for it."""
    found, left = answered
    told = [f"left out: {count} × {why}" for why, count in left.items()]
    return [*provenance(recorded), *told, "", *null_table(found), "", *lines_table(found)]


def power_report(recorded: Recorded, found: Sequence[Design]) -> list[str]:
    """Return the report of a pool as printed. ``found``: what ``designs`` returned for it."""
    again = second_null(recorded)
    count = sum(bool(a.claims) for a in again)
    told = f"the pool's runs against runs of the same kind: {count} of {len(again)} comparisons claim a change"
    return [*provenance(recorded), "", *power_table(recorded, found), "", told]


def provenance(recorded: Recorded) -> list[str]:
    """Return how it was made, in a few lines."""
    first, runs = recorded.sittings[0], recorded.runs.values()
    begun = [_ms(sitting) for sitting in recorded.sittings]
    counts = Counter(max((i for i, at in enumerate(begun) if at <= one.at_ms + 60_000), default=0) for one in runs)
    planned = len(recorded.plan.slots())
    host = first.get("host", {})
    noted = sum(one.foreign_permille > 0 for one in runs)
    hours = (max(one.at_ms for one in runs) - min(one.at_ms for one in runs)) / 3_600_000 if runs else 0.0
    sat = len(recorded.sittings)
    made = f"{len(runs):,} of {planned:,} runs in {hours:.1f} h, {sat} sitting{'s' if sat > 1 else ''}"
    return [
        f"{made}, {recorded.again} made again; runs with another task on a hot CPU: {noted:,}",
        *(_sitting(i + 1, counts[i], one) for i, one in enumerate(recorded.sittings)),
        f"{host.get('cpu_model', '?')}, {host.get('hypervisor') or 'no hypervisor'}, Linux {first.get('kernel', '?')}",
    ]


def _sitting(number: int, runs: int, one: dict[str, Any]) -> str:
    began, version, commit = (one.get(name, "?") for name in ("began", "version", "commit"))
    return f"sitting {number}: {runs:,} runs, began {began}, version {version}, commit {commit}"


def _ms(sitting: dict[str, Any]) -> float:
    """When a sitting began, in ms since 1970; 0 where that is not told."""
    try:
        return datetime.datetime.fromisoformat(str(sitting.get("began"))).timestamp() * 1000
    except ValueError:
        return 0.0


def _crossing(over: Callable[[float], bool]) -> float:
    """Return where it begins to hold, between 0 and 1."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if over(middle):
            high = middle
        else:
            low = middle
    return high
