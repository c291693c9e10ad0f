"""Collect the page for a whole class. It has the instructor's chapter and step, the turn, and each member's curve of
the chapter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from jitter_workshop.classroom.client import connect_to_board
from jitter_workshop.flow.turns.classhost import class_host, describe_turn, now_s, read_turns
from jitter_workshop.model.board import BEST_BY, Board, PostedRun, compared_at
from jitter_workshop.model.course import TREATED
from jitter_workshop.model.curve import CurvePoint, PercentileCurve
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import ID, LABEL, LINE, WORD, clean
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.stats.curve import curve_value_at

NONE_MEASURED = "No member has measured here yet."
_FEW = 4
_AGAIN = ("again", TREATED)


@dataclass(frozen=True, slots=True)
class Presented:
    """Hold one page for a class.

    - ``title``, ``step``: the present chapter and step of the class.
    - ``text``: the instructor's own words.
    - ``turn``: the state of the turn, in words.
    - ``curves``: the members' curves of the chapter.
    - ``told``: a sentence on whose curves are shown, or the reason why none are shown.
    - ``by``: the percentile at which the curves are compared.
    """

    name: str
    title: str
    step: str
    text: str
    turn: str
    curves: tuple[RunCurve, ...]
    told: str
    by: float = BEST_BY


def presented(titles: dict[str, str]) -> Presented:
    """Read the board and the turn, and return the page for the class. ``titles``: chapter id → title. Raise HostError
    if this is no class host, or if the caller is not an instructor."""
    host = class_host()
    with connect_to_board() as client:
        board = client.board()
    said = board.banner
    chapter = said.chapter if said is not None else ""
    curves, told = class_curves(board, chapter, said.step if said is not None else "")
    return Presented(
        name=clean(host.described.name, LABEL) if host is not None else "",
        title=clean(titles.get(chapter, chapter), ID),
        step=clean(said.step, WORD) if said is not None else "",
        text=clean(said.text, LINE) if said is not None else "",
        turn=describe_turn(read_turns(), -1, now_s()),
        curves=curves,
        told=told,
        by=curves_by(board, chapter),
    )


def class_curves(board: Board, chapter: str, step: str) -> tuple[tuple[RunCurve, ...], str]:
    """Return one curve of each member for a chapter, newest first, and a sentence on these curves. If ``step`` is
    ``diagnose`` or an earlier step, the curves are of runs before the change. For a later step, a member's curve is of
    the run after the change, if there is one.
    """
    early = step in ("look", "predict", "measure", "diagnose")
    found: list[tuple[str, PostedRun]] = []
    for row in board.rows:
        runs = sorted((run for run in row.posted.runs if run.chapter == chapter and run.points), key=lambda run: run.at)
        before = [run for run in runs if run.slot not in _AGAIN]
        after = [] if early else [run for run in runs if run.slot in _AGAIN]
        found += [(row.user, run) for run in (after or before)[-1:]]
    found.sort(key=lambda one: one[1].at, reverse=True)
    shown = tuple(_curve(user, run) for user, run in found)
    if not found:
        return (), NONE_MEASURED if chapter else "Choose a chapter: class present --chapter ID"
    which = "newest run before the change" if early else "newest run"
    return shown, f"each member's {which}, as the member's own program reports it"


def curves_by(board: Board, chapter: str) -> float:
    """Return the percentile at which most of a chapter's runs are compared."""
    asked = Counter(
        compared_at(row.posted, run) for row in board.rows for run in row.posted.runs if run.chapter == chapter
    )
    return asked.most_common(1)[0][0] if asked else BEST_BY


def outermost(
    curves: Sequence[PercentileCurve], by: float = BEST_BY
) -> tuple[list[PercentileCurve], list[PercentileCurve]]:
    """Return two lists: the curves to draw without a name, and the curves to draw with a name. If there are at most
    four curves, all are named. Otherwise, only the lowest, the middle and the highest at the percentile ``by`` are
    named. The label of a named curve says which of the three it is.
    """
    known = sorted((ns, at) for at, curve in enumerate(curves) if (ns := curve_value_at(curve, by)) is not None)
    if len(curves) <= _FEW or len(known) < 3:
        return [], list(curves)
    chosen = {known[0][1]: "lowest", known[(len(known) - 1) // 2][1]: "middle", known[-1][1]: "highest"}
    named = [replace(curves[at], label=f"{word} p{by:.10g}: {curves[at].label}") for at, word in chosen.items()]
    return [curve for at, curve in enumerate(curves) if at not in chosen], named


def _curve(user: str, run: PostedRun) -> RunCurve:
    points = tuple(CurvePoint(percentile, value, True) for percentile, value in run.points)
    label = clean(user, ID)
    return RunCurve(run.id, label, PercentileCurve(label, points, 0, origin=clean(run.mark, WORD)), None)
