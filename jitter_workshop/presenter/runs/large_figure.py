"""Say the one figure of a screen that is shown large: the value of one run, or the factor between two runs."""

from __future__ import annotations

from jitter_workshop.model.judgement import PairJudgement
from jitter_workshop.presenter.runs.one_run import A_SECOND, SHORT_A_SECOND, judged_value
from jitter_workshop.stats.figures import KnownRun
from jitter_workshop.stats.scale import times_told

_ROLES = {"better": "good", "worse": "bad", "same": "accent"}
"""The colour role of a large factor, by its direction."""


def large_factor(judged: PairJudgement | None) -> tuple[str, str]:
    """Return the large factor of two runs, and its colour role; ("", "") if there is none. ``judged``: their judgement;
    None if they cannot be compared."""
    if judged is None or judged.large is None:
        return "", ""
    return f"{times_told(judged.large)}×", _ROLES[judged.large_is]


def large_value(seen: KnownRun | None, asked: str | None = None, *, from_due_time: bool = False) -> tuple[str, str]:
    """Return the value of the figure that judges one run, and its colour role; ("", "") if there is none. A question
    mark follows if it leaves out the waits for a stopped thread. ``asked``: the percentile by which the chapter judges.
    ``from_due_time``: True if the chapter judges one run by latency from the due time."""
    if seen is None:
        return "", ""
    judged = judged_value(seen, asked, from_due_time=from_due_time)
    if judged is None:
        return "", ""
    told = judged.told.replace(A_SECOND, SHORT_A_SECOND)
    return (told, "accent") if judged.known else (f"{told} ?", "dim")
