"""The pages of a proof as lines: nothing wider than the terminal, nothing claimed that was not judged, no markup."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.flow.proving.proof_run import ProofStep
from jitter_workshop.model.change import Change, LeftAlone
from jitter_workshop.model.proof import Proof, ProofPlan
from jitter_workshop.presenter.proofs import proof as views
from jitter_workshop.stats.verdicts import SoFar, ratios_so_far
from tests.fakeprover import PLACED, proof_of
from tests.maderounds import QUIET, make_rounds

PLAN = ProofPlan("placement", 10, "ring", "quick", (1, 2), PLACED, 5.0, 170.0, ("Hot CPUs 1-2.",))
WIDTHS = pytest.mark.parametrize("width", [57, 78, 158])


def plain(lines: views.Lines, width: int) -> str:
    assert max(line.cell_len for line in lines) <= width
    return "\n".join(line.plain for line in lines)


@WIDTHS
def test_the_cost(width: int) -> None:
    text = " ".join(plain(views.proof_cost_lines(PLAN, width, (10, 20, 40), 1), width).split())
    assert "10 rounds are 20 runs of ring, 5 s each: about 2 min 50 s." in text
    assert "▸ 2 20 rounds" in text
    assert "sched_setaffinity(producer)" in text
    assert "Hot CPUs 1-2." in text


def test_the_writes_of_settings_are_counted_and_shown() -> None:
    change = Change(1, "thp", "/sys/kernel/mm/transparent_hugepage/enabled", "always", "never", "runtime", "low", "why")
    plan = dataclasses.replace(PLAN, subject="thp=never", changes=(change,))
    text = " ".join(plain(views.proof_cost_lines(plan, 78, (10,)), 78).split())
    assert "1 setting, 1 write" in text
    assert "kill this program" in text
    assert "always → never" in text


@WIDTHS
@pytest.mark.parametrize("planned", [1, 10, 40, 1_000])
def test_the_rounds_so_far(width: int, planned: int) -> None:
    rounds = make_rounds(5, rounds=min(planned, 90), ratio=0.1)
    done = len(rounds) - 1
    step = ProofStep(2 * done + 1, 2 * planned, done, rounds[-1].order, "with", 30.0)
    orders = [one.order for one in rounds[:done]]
    lines = views.rounds_so_far(ratios_so_far(rounds[:done]), orders, step, planned, 9, width)
    text = plain(lines, width)
    assert views.NOT_JUDGED in text
    assert views.NOW in text
    assert text.count("●") + text.count("▼") + text.count("▲") == done or "not shown" in text


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e9), st.just(math.inf)), max_size=60), st.integers(1, 30))
@settings(deadline=None, max_examples=60)
def test_any_ratios_are_drawn(ratios: list[float | None], height: int) -> None:
    seen = SoFar("stalls", "stalls", tuple(ratios))
    lines = views.rounds_so_far(seen, ["AB"] * len(ratios), None, max(len(ratios), 1), height, 78)
    text = plain(lines, 78)
    picture = "\n".join(line.plain for line in lines[2:-4])
    assert sum(picture.count(sign) for sign in "●▼▲○") == len(ratios)
    assert "1" in text


@WIDTHS
@pytest.mark.parametrize(("ratio", "verdict"), [(0.05, "lower"), (20.0, "higher"), (1.0, "cannot tell")])
def test_the_verdict(width: int, ratio: float, verdict: str) -> None:
    proof = proof_of(make_rounds(5, ratio=ratio))
    text = plain(views.proof_verdict_lines(proof, width), width)
    assert text.startswith("Not proven: " if verdict == "cannot tell" else "Proven: ")
    assert verdict in text
    assert "Worst seen" in text
    assert "Drift" in text
    assert "●" in text
    for row in proof.judgement.rows if proof.judgement else ():
        assert row.words[:20] in text


def test_the_page_of_a_proof_without_stalls_or_with_few_rounds() -> None:
    quiet = plain(views.proof_verdict_lines(proof_of(make_rounds(5, per_second=dict.fromkeys(QUIET, 0.0))), 78), 78)
    assert "no event without the change and no event" in quiet
    few = plain(views.proof_verdict_lines(proof_of(make_rounds(5, rounds=4), planned=10, complete=False), 78), 78)
    assert "The proof ended after 4 of 10 rounds." in few
    assert "This proof has 4, so it gives only figures" in few
    assert "EACH LINE" not in few
    none = proof_of([], planned=10, complete=False, stopped="stopped [red]by hand[/]")
    assert "Not proven: no round was finished" in plain(views.proof_verdict_lines(none, 78), 78)
    assert "[red]by hand[/]" in plain(views.proof_verdict_lines(none, 78), 78)


def test_a_change_that_was_not_restored_is_loud() -> None:
    left = LeftAlone("thp", "/sys/\x1b[31mx", "never", "always", "somebody changed it")
    proof = proof_of(make_rounds(5), subject="thp=never", restored=False, left_alone=(left,))
    text = plain(views.proof_verdict_lines(proof, 78), 78)
    assert "! NOT EVERYTHING IS RESTORED (thp): 'jitter-workshop restore' tries" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("proof", "asked"),
    [(None, None), (proof_of([]), None), (proof_of(make_rounds(5, ratio=0.05)), None), (proof_of(make_rounds(5)), 32)],
)
def test_the_rounds_that_can_be_chosen(proof: Proof | None, asked: int | None) -> None:
    assert views.asked_for(proof) == asked
    assert views.round_choices(proof) == ((10, 20, 40) if asked is None else (10, 20, asked, 40))


def test_a_proof_tells_the_time_when_it_was_made() -> None:
    assert views.when(proof_of([], ended_at="not a time")) == "at an unknown time"
    assert views.when(proof_of([])).startswith(("2026-01-01 ", "2025-12-31 "))
