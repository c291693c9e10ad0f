"""The hunt in words, for the screen and line by line."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.flow.hunt import LONGEST_S, Finding, Hunt, Suspect
from jitter_workshop.model.text import many

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


def verdict(finding: Finding, hunt: Hunt) -> str:
    """An answer's worth in a line."""
    if finding.right:
        tries = hunt.wrong_answers + 1
        return f"✓ Caught: {finding.title}, at {'the first try' if tries == 1 else f'try {tries}'}."
    if hunt.state == "answered":
        return f"It was: {finding.title}."
    return f"✗ Not: {finding.title}."


def reasons(finding: Finding, hunt: Hunt) -> tuple[tuple[str, str], ...]:
    """What is said below the verdict, each with its heading."""
    if hunt.state != "answered":
        return (("", finding.sentences[0]),)
    return tuple(zip(("What it does", "How it is found", "What helps"), finding.sentences, strict=True))
