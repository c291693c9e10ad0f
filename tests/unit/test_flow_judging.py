"""Test the one judgement of two runs: which task of others counts, and what a result says of one that does not."""

from __future__ import annotations

import dataclasses
import random

import pytest

from jitter_workshop.flow.chapters.judging import judge_pair
from jitter_workshop.model.effect import CauseTime, Direction, Effect, Effects, Sort
from jitter_workshop.presenter.runs import effect
from jitter_workshop.presenter.runs.verdict import said_of_other, verdict_of_change
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.stats.figures import FIGURES, KnownRun
from tests.unit.test_stats_effect import run

BETTER = Effect("p99.9", ("210 µs", "12 µs"), 17.5, "better", "shorter")
WORSE = Effect("p99.9", ("12 µs", "210 µs"), 17.5, "worse", "longer")
VERDICTS = ("better", "worse")
PAIR = KnownRun(run()), KnownRun(dataclasses.replace(run(), id="another"))
OURS = CauseTime("our own threads", (234e6, 0.0), treated=True)


def bash(before: float, after: float) -> CauseTime:
    return CauseTime("task bash", (before * 1e6, after * 1e6), task="bash")


@pytest.mark.parametrize(
    ("task", "enough"),
    [
        (bash(0, 23), False),
        (bash(23, 0), False),
        # At least half of the difference, whichever run has it.
        (bash(0, 500), True),
        (bash(500, 0), True),
        (bash(240, 0), True),
    ],
)
def test_one_rule_says_if_a_task_of_others_is_enough_to_explain_the_difference(task: CauseTime, enough: bool) -> None:
    judged = judge_pair(Effects(BETTER, None, BETTER, causes=(OURS, task)), PAIR)
    assert judged.other is not None
    assert judged.other.enough is enough
    assert (judged.latency == "not comparable") is enough
    assert (judged.reason is not None) is enough
    assert judged.sure is not enough


def test_a_task_that_is_not_enough_is_told_beside_the_result() -> None:
    found = Effects(BETTER, None, BETTER, causes=(OURS, bash(23.4, 0)))
    judged = judge_pair(found, PAIR)
    said = "Task bash took 23.4 ms/s more in the first run: 9 % of the difference in stalls."
    assert said_of_other(judged.other) == said
    result = effect.result_of_two_runs(judged, PAIR, 200)
    assert result.caveats[0].plain == said
    assert written(result.lines).startswith("Looks better: ")
    # A time that moved against the sum of all causes is no part of their difference.
    against = judge_pair(Effects(BETTER, None, BETTER, causes=(OURS, bash(0, 23.4))), PAIR)
    assert said_of_other(against.other).endswith("in the second run, though all stalls together did not take more.")
    # It makes the whole difference, but this is small beside all stalls.
    steady = CauseTime("task unbound", (700e6, 700e6), own_load=True)
    small = judge_pair(Effects(WORSE, None, WORSE, causes=(steady, bash(0, 23.4))), PAIR)
    assert said_of_other(small.other).endswith("in the second run: only 3 % of that run's stalls.")
    enough = judge_pair(Effects(WORSE, None, WORSE, causes=(bash(0, 300),)), PAIR)
    assert said_of_other(enough.other) == "", "the verdict tells it"


@pytest.mark.parametrize(
    ("judge", "latency", "told"),
    [
        ((1.4, "fewer", "better"), "perhaps better", "29 % fewer"),
        ((1.02, "fewer", "same"), "perhaps better", "about the same"),
        ((8.0, "fewer", "better"), "better", ""),
    ],
)
def test_a_gain_in_another_figure_than_the_announced_number_of_stalls_is_only_perhaps_one(
    judge: tuple[float, str, Direction], latency: str, told: str
) -> None:
    factor, how, direction = judge
    longest = Effect("stalls of 1 ms and more", ("8.3", "1 a second"), 8.3, "better", "fewer", sort="stalls")
    announced = Effect(FIGURES["stalls-100us"].title, ("12.4", "8.9 a second"), factor, direction, how, sort="stalls")
    judged = judge_pair(Effects(longest, None, longest, tail=announced))
    assert judged.latency == latency
    assert judged.doubt == ("other figure" if told else "")
    said = verdict_of_change(judged, 100).plain
    assert (said == f"Latency: perhaps better (judged by {announced.name}: {told}).") is bool(told)
    # The chapter's own figure was announced, too, and few stalls judge nothing.
    assert judge_pair(Effects(longest, None, longest, shown=longest, tail=announced)).latency == "better"
    few = dataclasses.replace(announced, few=True)
    assert judge_pair(Effects(longest, None, longest, tail=few)).latency == "better"


def test_a_figure_that_moved_against_the_announced_one_gives_no_clear_change_and_both_are_told() -> None:
    longest = Effect("stalls of 1 ms and more", ("18.9", "6.69 a second"), 2.8, "better", "fewer", sort="stalls")
    title = FIGURES["stalls-100us"].title
    announced = Effect(title, ("34.7", "47.8 a second"), 1.38, "worse", "more", sort="stalls")
    judged = judge_pair(Effects(longest, None, longest, tail=announced))
    assert (judged.latency, judged.doubt, judged.opposed) == ("unclear", "", announced)
    said = verdict_of_change(judged, 200).plain
    assert said == (f"No clear change in latency: 2.8× fewer stalls of 1 ms and more, but 38 % more {title}.")
    # More stalls that took less time in all are no gain either.
    in_less_time = dataclasses.replace(announced, direction="same")
    assert judge_pair(Effects(longest, None, longest, tail=in_less_time)).opposed == in_less_time
    for nothing in ({"factor": 1.01}, {"by_chance": True}):
        same = dataclasses.replace(announced, **nothing)  # type: ignore[arg-type]
        assert judge_pair(Effects(longest, None, longest, tail=same)).latency == "perhaps better"


@pytest.mark.parametrize(
    ("ns", "stalls", "latency", "told"),
    [
        ((2e6, 2.4e6), (153.0, 153.0), "perhaps better", "28.8 µs"),
        # One of the causes took long enough, and the other one is not known to be shorter.
        ((2e6, 40e6), (153.0, 153.0), "better", ""),
        ((2e6, 2.4e6), (153.0, 0.0), "better", ""),
    ],
)
def test_fewer_long_stalls_are_only_perhaps_a_gain_if_the_change_ends_nothing_as_long(
    ns: tuple[float, float], stalls: tuple[float, float], latency: str, told: str
) -> None:
    fewer = Effect(FIGURES["stalls-100us"].title, ("37.4", "15 a second"), 2.5, "better", "fewer", sort="stalls")
    causes = tuple(
        CauseTime(f"interrupt {at}", (took, 0.0), treated=True, stalls=(number, 0.0))
        for at, (took, number) in enumerate(zip(ns, stalls, strict=True))
    )
    judged = judge_pair(Effects(fewer, None, fewer, tail=fewer, causes=causes))
    assert (judged.latency, judged.doubt) == (latency, "short cause" if told else "")
    said = f"Latency: perhaps better (what the change can end took only {told} a stall on average)."
    assert (verdict_of_change(judged, 200).plain == said) is bool(told)
    # Stalls of 10 µs can come from it, and a loss is not what the change was made for.
    shorter = dataclasses.replace(fewer, name=FIGURES["stalls-10us"].title)
    assert judge_pair(Effects(shorter, None, shorter, tail=shorter, causes=causes)).latency == "better"


@pytest.mark.parametrize("seed", range(20))
def test_a_verdict_never_has_the_direction_against_that_of_the_announced_figure(seed: int) -> None:
    draw, said = random.Random(seed), set[str]()
    titles = [FIGURES[name].title for name in ("stalls-100us", "stalls-1ms", "50", "99.9", "max")]

    def drawn() -> Effect:
        rises, name = draw.random() < 0.5, draw.choice(titles)
        sort: Sort = "stalls" if name.startswith("stalls") else "latency"
        direction: Direction = draw.choice(["same", "worse" if rises else "better"])
        return Effect(
            name,
            ("1", "2"),
            draw.choice([1.0, 1.3, 2.5, 30.0]),
            direction,
            "more" if rises else "fewer",
            one_event=name == FIGURES["max"].title,
            few=draw.random() < 0.2,
            by_chance=draw.random() < 0.2,
            sort=sort,
        )

    for _ in range(200):
        lead, judge = drawn(), drawn()
        but, of_chapter = draw.choice([None, drawn()]), draw.choice([None, drawn()])
        judged = judge_pair(Effects(lead, but, lead, shown=of_chapter, tail=judge, causes=(OURS,)))
        said.add(judged.latency)
        moved = judge.direction
        if judge.sort == "stalls" and not judge.by_chance:
            moved = "worse" if judge.larger else "better"
        if judge.factor > 1.05 and not judge.by_chance and moved != "same" and judged.latency.endswith(VERDICTS):
            assert judged.latency.endswith(moved)
    assert {"better", "worse", "perhaps better", "perhaps worse", "unclear"} <= said


@pytest.mark.parametrize(
    "task",
    [
        bash(0, 0.9),
        bash(20, 39),
        bash(0, 2.1),
        dataclasses.replace(bash(0, 23), own_load=True),
        dataclasses.replace(bash(0, 23), treated=True),
        dataclasses.replace(bash(0, 23), task="kworker/1:1"),
    ],
)
def test_a_task_that_took_little_more_or_is_not_of_others_is_not_told(task: CauseTime) -> None:
    """Less than a thousandth of the time, less than twice as much, less than a hundredth of all stalls."""
    steady = CauseTime("task unbound", (300e6, 300e6), own_load=True)
    assert judge_pair(Effects(BETTER, None, BETTER, causes=(steady, OURS, task)), PAIR).other is None


def test_small_tasks_of_others_that_together_explain_a_loss_make_it_only_perhaps_one() -> None:
    tasks = tuple(dataclasses.replace(bash(0, 30), label=f"task {n}") for n in range(4))
    grown = CauseTime("task unbound", (100e6, 100e6 + 70e6), own_load=True)
    judged = judge_pair(Effects(WORSE, None, WORSE, causes=(grown, *tasks)), PAIR)
    assert (judged.latency, judged.doubt) == ("perhaps worse", "other work")
    grown = dataclasses.replace(grown, ns=(100e6, 250e6))
    assert judge_pair(Effects(WORSE, None, WORSE, causes=(grown, *tasks)), PAIR).sure


@pytest.mark.parametrize("relation", ["alike", "hunted", "unsteady", "strayed"])
def test_without_a_change_between_the_runs_there_is_no_verdict_and_no_large_factor(relation: str) -> None:
    judged = judge_pair(Effects(BETTER, None, BETTER), PAIR, relation)  # type: ignore[arg-type]
    assert (judged.latency, judged.sure, judged.large) == ("", False, None)
