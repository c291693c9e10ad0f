"""Describe the end of a proof in words. Reports, the screen, the plain walk and the command line show the same
words."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jitter_workshop.model.change import LeftAlone
from jitter_workshop.model.proof import PLACEMENT, Proof
from jitter_workshop.model.screening import Ranked
from jitter_workshop.model.text import ID, clean, many
from jitter_workshop.model.verdict import CONFIDENCE, ENOUGH_ROUNDS, Verdict, VerdictWord
from jitter_workshop.stats import interval_plot
from jitter_workshop.stats.comparison import measure_name
from jitter_workshop.stats.scale import ratio_text

NO_ROUND = "Not proven: no round was finished"
RESTORED, NOT_RESTORED = "Everything was restored", "Not everything was restored"
_NAME = 19
_WIDE_PICTURE = 45
_TEXT = 500

WORDS: dict[VerdictWord, str] = {
    "lower": "lower",
    "higher": "higher",
    "no_change": "no change",
    "cannot_tell": "cannot tell",
}


def proof_headline(proof: Proof) -> str:
    """Return the first sentence about a proof: its result, without a full stop."""
    said = proof.judgement
    if said is None:
        return NO_ROUND
    text = clean(said.headline.text, _TEXT).removesuffix(".")
    return f"{'Not proven' if said.headline.verdict == 'cannot_tell' else 'Proven'}: {text}{disturbances(proof)}"


def disturbances(proof: Proof) -> str:
    """Return a remark for the headline if other tasks disturbed more than half of the runs. The remark is in brackets,
    with a blank before it. Return "" if half of the runs or fewer were disturbed."""
    runs = 2 * len(proof.rounds)
    return f" ({proof.disturbed} of {many(runs, 'run')} disturbed by other tasks)" if 2 * proof.disturbed > runs else ""


def too_few(rounds: int) -> str:
    """Return a sentence that explains why a proof has no verdict. ``rounds``: how many rounds it has, fewer than a
    verdict needs."""
    return f"A verdict needs {ENOUGH_ROUNDS} rounds. This proof has {rounds}, so it gives only figures."


def pictures(rows: Sequence[Verdict | Ranked], columns: int) -> list[str]:
    """Return text lines that draw the intervals of ``rows`` on a common axis. The first line has the labels of the
    axis. Each further line has the name of one row, and its interval. ``columns``: the terminal's width."""
    axis = interval_plot.axis_of(rows)
    width = min(_WIDE_PICTURE, (columns - _NAME - 2 - 11) // 2 * 2 - 1)
    lines = [" " * (_NAME + 2) + interval_plot.scale(axis, width)]
    for row in rows:
        picture = interval_plot.interval_picture(interval_plot.strip(row, axis), axis, width)
        name = row.setting if isinstance(row, Ranked) else measure_name(row.measure)
        lines.append(f"{clean(name, _NAME):<{_NAME}}  {picture}".rstrip())
    return lines


def span_of(row: Verdict) -> str:
    """Return the interval of a verdict's ratio as text: ``1/77 – 1/16``, or ``any`` if the interval contains every
    ratio."""
    if row.low <= 0 and row.high is None:
        return "any"
    return f"{ratio_text(row.low)} – {ratio_text(row.high) if row.high is not None else 'any'}"


def interval_named(rows: Sequence[Verdict]) -> str:
    """Return the name of the intervals with their confidence, such as ``95 % interval``. All rows must belong to one
    proof, because they then have the same confidence."""
    return f"{100 * min((row.confidence for row in rows), default=CONFIDENCE):.3g} % interval"


def restored_told(proof: Proof) -> str:
    """Return a sentence that tells if a proof's changes were restored, without a full stop."""
    if not proof.restored:
        return NOT_RESTORED
    if proof.subject == PLACEMENT or not proof.changes:
        return "No setting of the host was changed"
    return at_the_end(bool(proof.left_alone))


def not_restored(left_alone: Collection[LeftAlone]) -> str:
    """Return a warning that settings are still changed, with the way to restore them. ``left_alone``: the settings that
    could not be restored; the warning names them."""
    tunables = ", ".join(dict.fromkeys(clean(one.tunable, ID) for one in left_alone))
    named = f" ({tunables})" if tunables else ""
    return f"NOT EVERYTHING IS RESTORED{named}: 'jitter-workshop restore' tries again, and gives the reason."


def at_the_end(changed_since: bool) -> str:
    """Return a sentence without its full stop: it says that all settings were restored. ``changed_since``: True if
    someone else has changed some of these settings after that.
    """
    return f"{RESTORED}, but some values have changed since" if changed_since else f"{RESTORED} at the end"
