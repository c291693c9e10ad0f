"""The hunt in words, for the screen and line by line."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.flow.hunt import LONGEST_S, Finding, Hunt, Suspect
from jitter_workshop.model.noise import NOISES
from jitter_workshop.model.session import HuntOutcome
from jitter_workshop.model.text import clean, many

FIRST = "First a noise has to be hidden: this run is made beside it."

BOUNDS = (
    "It takes time on the measured CPU or beside it, a quarter of one CPU and 64 MiB at the most. It changes no "
    f"setting. It ends when it is named, when you give up or leave this chapter, and by itself after {LONGEST_S // 60} "
    "minutes. Its threads are called 'thief', whichever it is."
)
YOURS = "You may look at everything, measure as often as you like, change settings, and end it with kill: it is yours."


def asked(suspects: Sequence[Suspect]) -> str:
    """What is said before a noise is hidden, above the suspects."""
    return f"One of these {len(suspects)} begins, and nobody says which:"


def begun(hunt: Hunt) -> str:
    return f"One of {many(len(hunt.suspects), 'noise')} runs now, and is yours to name."


def unanswered(hunt: Hunt | None) -> bool:
    """Is there something to name?"""
    return hunt is not None and hunt.state != "answered"


def standing(hunt: Hunt | None) -> str:
    """What of a hunt its learner should know now; "" for nothing."""
    if hunt is None or hunt.state == "answered":
        return ""
    if hunt.state == "stopped":
        return "The hidden noise was ended, so the time is yours again. Which one was it?"
    if hunt.state == "over":
        return "The hidden noise is over, its time is up. It can still be named."
    wrong = f" {many(hunt.wrong_answers, 'wrong answer')} so far." if hunt.wrong_answers else ""
    return f"A hidden noise runs.{wrong}"


def remembered(hunts: Sequence[HuntOutcome], most: int = 6) -> str:
    """The hunts that ended, in a sentence, newest first; "" for none."""
    if not hunts:
        return ""
    caught = sum(outcome.named for outcome in hunts)
    told = [_outcome(outcome) for outcome in reversed(hunts)][:most]
    more = f"; and {len(hunts) - most} before" if len(hunts) > most else ""
    return f"{caught} of {many(len(hunts), 'hidden noise')} caught: {'; '.join(told)}{more}."


def _outcome(outcome: HuntOutcome) -> str:
    title = next((noise.title for noise in NOISES if noise.id == outcome.kind), clean(outcome.kind, 30))
    stopped = "stopped, and " if outcome.stopped else ""
    if outcome.named:
        return f"{title} ({stopped}named at {_tries(outcome.wrong_answers)})"
    return f"{title} ({stopped}not named)"


def _tries(wrong_answers: int) -> str:
    return f"try {wrong_answers + 1}" if wrong_answers else "the first try"


def verdict(finding: Finding, hunt: Hunt) -> str:
    """An answer's worth in a line."""
    if finding.right:
        stopped = hunt.outcome is not None and hunt.outcome.stopped
        return f"✓ Caught{' and stopped' if stopped else ''}: {finding.title}, at {_tries(hunt.wrong_answers)}."
    if hunt.state == "answered":
        return f"It was: {finding.title}."
    return f"✗ Not: {finding.title}."


def reasons(finding: Finding, hunt: Hunt) -> tuple[tuple[str, str], ...]:
    """What is said below the verdict, each with its heading."""
    if hunt.state != "answered":
        return (("", finding.sentences[0]),)
    return tuple(zip(("What it does", "How it is found", "What helps"), finding.sentences, strict=True))
