"""A class's board in text: a line a member, those who are stuck first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jitter_workshop.model.board import Board, BoardRow, PostedRun
from jitter_workshop.model.text import called, clean
from jitter_workshop.stats.scale import nice_ns

if TYPE_CHECKING:
    from jitter_workshop.model.board import PostedChapter

AT = 99.9


def board_lines(board: Board, host: str) -> list[str]:
    """The lines of one machine; without a member one that says so."""
    if not board.rows:
        return [f"{called(host, 40)}: nobody has posted anything yet"]
    lines = [f"{called(host, 40)}, {board.at[:16].replace('T', ' ')} UTC"]
    wide = max(len(_who(row)) for row in board.rows)
    for row in board.rows:
        posted = row.posted
        done = sum(chapter.done for chapter in posted.chapters)
        where = f"{called(posted.chapter, 24)} · {called(posted.step, 12)}" if posted.chapter else "–"
        stuck = f"  stuck for {row.idle_s / 60:.0f} min" if row.stuck else ""
        lines.append(
            f"  {_who(row):<{wide}}  {done:>2} done  {''.join(map(mark, posted.chapters)):<20} {where:<40}"
            f" {curve(row):<28}{stuck}".rstrip()
        )
    return lines


def mark(chapter: PostedChapter) -> str:
    """One character a chapter: both marks, one of them, begun."""
    return {2: "●", 1: "◐", 0: "·"}[chapter.setting + chapter.curve]


def curve(row: BoardRow) -> str:
    """The last curve and the best one, by p99.9."""
    last = max(row.posted.runs, key=lambda run: run.at, default=None)
    if last is None:
        return ""
    best = min((v for run in (*row.best, *row.posted.runs) if (v := value(run)) is not None), default=None)
    shown = value(last)
    said = f"p99.9 {nice_ns(shown) if shown is not None else '–'}"
    return f"{said}, best {nice_ns(best)}" if best is not None and best != shown else said


def value(run: PostedRun) -> int | None:
    """A posted curve's p99.9, None where it does not reach so far."""
    return next((ns for percentile, ns in run.points if percentile >= AT - 1e-9), None)


def notes(board: Board) -> list[str]:
    """What of a board could not be read."""
    return [f"  {called(user, 40)}: {clean(why, 160)}" for user, why in board.notes.items()]


def _who(row: BoardRow) -> str:
    return called(" + ".join(dict.fromkeys((row.user, *row.posted.people))), 30)


def board_text(boards: Sequence[tuple[str, Board | None, str]]) -> str:
    """All machines; one that is silent is shown as such. Of each: its name, its board or None, and why there is none."""
    lines: list[str] = []
    for host, board, error in boards:
        if board is None:
            lines.append(f"{called(host, 40)}: silent ({clean(error, 160)})")
            continue
        lines += board_lines(board, host) + notes(board)
    return "".join(f"{line}\n" for line in lines)
