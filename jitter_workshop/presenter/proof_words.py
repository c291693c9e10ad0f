"""Describe a proof in words, on the screen and line by line: its cost, its progress, its result."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

from jitter_workshop.flow.proving.proof_run import ProofStep
from jitter_workshop.model.proof import MOST_ROUNDS, PLACEMENT, ROUNDS, Proof, ProofPlan
from jitter_workshop.model.text import clean, many, tally
from jitter_workshop.model.verdict import ENOUGH_ROUNDS, Order
from jitter_workshop.report.text.proof import headline
from jitter_workshop.stats.comparison import measure_name
from jitter_workshop.stats.scale import nice_duration

OFFER = "Press p to prove it."
NOT_JUDGED = "not judged yet"
DRAWN = (
    "A round is a fresh run without the change and a fresh run with it, right after each other; chance draws which of "
    "them comes first."
)
STOPPED_AND_KEPT = "Stopped at any time, it keeps and judges the rounds that are finished."
WITHOUT, WITH, NOW, TO_COME = "–", "+", "▸", "·"
"""The signs of a round's runs: without the change, with it, running now, to come."""
SIGNS = f"{WITHOUT} without the change, {WITH} with it, {NOW} now, {TO_COME} to come"


def subject(proven: str) -> str:
    """Name the subject of a proof: the threads' places, or settings by their names."""
    return (
        "threads placed on CPUs, against threads left to the scheduler" if proven == PLACEMENT else clean(proven, 200)
    )


def choices(before: Proof | None) -> tuple[int, ...]:
    """Return the numbers of rounds to choose from: the usual ones, and the number that the proof before asked for."""
    return tuple(sorted({ROUNDS, 2 * ROUNDS, 4 * ROUNDS, *((n,) if (n := asked_for(before)) else ())}))


def asked_for(before: Proof | None) -> int | None:
    """Return the number of rounds that the headline of the proof before asked for. Return None if that proof has a
    verdict, or if no sensible number would do."""
    if before is None or before.judgement is None:
        return None
    said = before.judgement
    row = next((r for r in said.rows if r.measure == said.headline.measure), None)
    needed = row.rounds_needed if row is not None and row.verdict == "cannot_tell" else None
    return min(max(needed, ROUNDS), MOST_ROUNDS) if needed is not None else None


def work(plan: ProofPlan, rounds: int) -> str:
    """Return ``10 rounds are 20 runs of ring, 5 s each: about 3 min.``"""
    length = f"{plan.run_s:.3g} s each"
    takes = nice_duration(_coarse(seconds(plan, rounds)))
    runs = many(2 * rounds, "run")
    return (
        f"{many(rounds, 'round')} {'is' if rounds == 1 else 'are'} {runs} of {plan.workload}, {length}: about {takes}."
    )


def seconds(plan: ProofPlan, rounds: int) -> float:
    """Return the seconds that this number of rounds takes, from the plan's estimate."""
    return plan.total_s / plan.rounds * rounds


def given_back(plan: ProofPlan) -> str:
    """Tell what is written on the host during a proof, and that it is given back."""
    if plan.subject == PLACEMENT:
        return "No file of this host is written: a thread asks for its own CPU, and that ends with the run."
    made = tally(change.tunable for change in plan.changes)
    return (
        f"Each round makes the changes below ({made}) before its run with the change and gives them back after. At the "
        "end all is given back, also if you stop it, the terminal is closed or this program is killed."
    )


def step_of(step: ProofStep, rounds: int) -> str:
    """Return ``round 3 of 10 · with the change``."""
    return f"round {step.round + 1} of {rounds} · {step.side} the change"


def left(left_s: float) -> str:
    """Return the time left in words, rounded because it is an estimate."""
    return f"about {nice_duration(_coarse(left_s))} left" if left_s >= 1 else "nearly done"


def signs(order: Order) -> tuple[str, str]:
    """Return the signs of a round's first and second run."""
    return (WITHOUT, WITH) if order == "AB" else (WITH, WITHOUT)


def remembered(proof: Proof) -> str:
    """Return a former proof's headline with its rounds and its date, for a step that is shown again."""
    return f"{headline(proof)}. ({many(len(proof.rounds), 'round')}, {when(proof)})"


def when(proof: Proof) -> str:
    """Return the day and minute when the proof ended, in local time. Return when it began if it has no end."""
    try:
        moment = datetime.datetime.fromisoformat(proof.ended_at or proof.started_at).astimezone()
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"
    today = moment.date() == datetime.date.today()
    return f"{moment:%H:%M}" if today else f"{moment:%Y-%m-%d %H:%M}"


def ended(proof: Proof) -> str:
    """Tell why the proof ended early; "" if it did not."""
    if proof.complete:
        return ""
    why = f": {clean(proof.stopped, 300)}" if proof.stopped else ""
    return f"it ended after {len(proof.rounds)} of {many(proof.planned, 'round')}{why}"


def restored(proof: Proof) -> str:
    """Tell in a sentence if the host's settings are given back."""
    if proof.subject == PLACEMENT:
        return "Nothing of this host was written."
    if proof.restored:
        other = " These settings have other values now:" if proof.left_alone else ""
        return f"All that was set is given back.{other}"
    named = ", ".join(dict.fromkeys(clean(one.tunable, 40) for one in proof.left_alone))
    return (
        f"NOT ALL IS GIVEN BACK{f' ({named})' if named else ''}: 'jitter-workshop restore' tries again, and says why."
    )


def rest(proof: Proof) -> Iterator[str]:
    """Yield all else that a reader should know, one sentence each: the end, the rounds needed, drift, worst, notes."""
    if early := ended(proof):
        yield f"{early[:1].upper()}{early[1:]}."
    said = proof.judgement
    if said is None:
        return
    if said.rounds < ENOUGH_ROUNDS:
        yield f"A verdict needs {ENOUGH_ROUNDS} rounds: these {said.rounds} give figures alone."
    needed = [
        f"{measure_name(row.measure)} about {row.rounds_needed:,}"
        for row in said.rows
        if row.verdict == "cannot_tell" and row.rounds_needed is not None
    ]
    if needed and said.rounds >= ENOUGH_ROUNDS:
        yield f"Rounds that would tell, at the spread seen: {', '.join(needed)}."
    yield _sentence(said.drift.words)
    yield _sentence(said.worst)
    for note in proof.notes:
        yield _sentence(clean(note, 400))


def orders(proof: Proof) -> tuple[str, str]:
    """Return two lines of signs: each round's first run, and its second."""
    drawn = [signs(one.order) for one in proof.rounds]
    return "".join(first for first, _ in drawn), "".join(second for _, second in drawn)


def stop_question(finished: int) -> str:
    """Return the question that Esc asks while a proof runs."""
    if not finished:
        return "Stop now? No round is finished: only the runs would be kept."
    verdict = "" if finished >= ENOUGH_ROUNDS else f" A verdict needs {ENOUGH_ROUNDS}; fewer give figures alone."
    return f"Stop now and keep what is there: {many(finished, 'finished round')}?{verdict}"


def seen_so_far(ratios: Sequence[float | None]) -> str:
    """Tell how many of the rounds so far had less with the change. This is a count, not a verdict."""
    known = [ratio for ratio in ratios if ratio is not None]
    fewer = sum(ratio < 1 for ratio in known)
    return f"less with the change in {fewer} of {many(len(known), 'round')}" if known else "nothing seen on either side"


def _coarse(seconds: float) -> float:
    """Round to tens of seconds from a minute on: an estimate is no more exact."""
    return 10 * round(seconds / 10) if seconds >= 60 else seconds


def _sentence(text: str) -> str:
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) or not text else '.'}"
