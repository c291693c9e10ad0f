"""Show a class's board as text: students × chapters, stuck students first, and a line for each silent machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jitter_workshop.model.board import BEST_BY, Board, BoardRow, Group, PostedChapter, PostedRun, compared_at
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import called, clean, many, minute
from jitter_workshop.report.text.terminal import Style, columns_of, in_columns, wrap
from jitter_workshop.stats.scale import nice_ns

_GROUPS: dict[Group, tuple[str, str]] = {
    "stuck": ("there, and nothing new for ten minutes", "attention"),
    "at work": ("", "strong"),
    "waiting": ("for the turn, or for the class to go on", "strong"),
    "done": ("all that they began, and nothing new for ten minutes", "strong"),
    "away": ("their program is closed, or their machine was left", "dim"),
}
_LONGEST_NAME = 24
_LEAST_NAME = 9
_CELL = 3
_VALUE = 8
_IDLE = 8
_TITLES_FROM = 120
_TITLE = 22
_MOST_NAMED = 12

Near = Callable[[BoardRow, PostedChapter], bool | None]
"""A function that says if a guess was near; None where this is not known."""


@dataclass(frozen=True, slots=True)
class Column:
    """Hold a chapter of the course. ``sets``: it sets something, so it has a mark for its setting."""

    number: int
    id: str
    title: str
    sets: bool


@dataclass(frozen=True, slots=True)
class Machine:
    """Hold a machine's board. ``board`` is None for a silent machine, with the reason in ``error``."""

    host: str
    board: Board | None
    error: str = ""


def board_text(machines: Sequence[Machine], columns: Sequence[Column], near: Near, style: Style) -> str:
    """Return the boards of all machines. Silent machines come first, because a missing row is easily overlooked in a
    long table. The stuck students are named again at the end: on a low terminal only the end is visible."""
    lines = [style.paint(_silent(one), "attention") for one in machines if one.board is None]
    boards = [(one.host, one.board) for one in machines if one.board is not None]
    used = {chapter.id for _, board in boards for row in board.rows for chapter in row.posted.chapters}
    layout = _layout([c for c in columns if c.id in used], boards, style)
    for host, board in boards:
        lines += ["", *_machine(host, board, layout, near)] if lines else _machine(host, board, layout, near)
    if any(board.rows for _, board in boards):
        lines += ["", *_legend(layout, len(used - {c.id for c in columns}))]
    stuck = [
        (row, host if len(boards) > 1 else "") for host, board in boards for row in board.rows if row.group == "stuck"
    ]
    if stuck:
        lines += ["", *(style.paint(line, "attention") for line in wrap(_stuck(stuck), style.width))]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def who(row: BoardRow) -> str:
    """Return a member and the people that they say they are with. The row belongs to the member alone; the others did
    not confirm it."""
    others = [name for name in dict.fromkeys(row.posted.people) if name != row.user]
    return called(f"{row.user} with {', '.join(others)}" if others else row.user, 40)


def last_and_best(row: BoardRow, chapter: str | None = None) -> tuple[PostedRun | None, PostedRun | None]:
    """Return the newest run (of a chapter, if one is named), and the best run like it."""
    mine = [run for run in row.posted.runs if chapter in (None, run.chapter)]
    last = max(mine, key=lambda run: run.at, default=None)
    return last, best_like(row, last) if last is not None else None


def best_like(row: BoardRow, run: PostedRun) -> PostedRun | None:
    """Return the run with the lowest value (``compared_at``) among the runs of the same chapter and workload; other
    runs do not compare. None if no run has that value."""
    by = compared_at(row.posted, run)
    alike = [r for r in (*row.posted.runs, *row.best) if (r.chapter, r.workload) == (run.chapter, run.workload)]
    known = [(ns, one) for one in alike if (ns := one.value_at(by)) is not None]
    return min(known, key=lambda one: one[0])[1] if known else None


@dataclass(frozen=True, slots=True)
class _Layout:
    columns: tuple[Column, ...]
    left_out: int
    name: int
    now: int
    style: Style


def _layout(columns: Sequence[Column], boards: Sequence[tuple[str, Board]], style: Style) -> _Layout:
    """Return the layout of the table. Where not all chapters have room, the newest ones stay: the class is working
    there."""
    longest = max((len(who(row)) for _, board in boards for row in board.rows), default=0)
    now = 3 + _TITLE + 11 if style.width >= _TITLES_FROM else 12
    fixed = 2 + now + 2 * _VALUE + _IDLE + 1
    name = max(min(longest, _LONGEST_NAME, style.width - fixed - _CELL * len(columns)), _LEAST_NAME)
    room = max((style.width - fixed - name) // _CELL, 1)
    return _Layout(tuple(columns[-room:]), max(len(columns) - room, 0), name, now, style)


def _machine(host: str, board: Board, layout: _Layout, near: Near) -> Iterable[str]:
    style = layout.style
    title = style.paint(called(host, 40), "strong")
    when = f"{minute(board.at)} UTC"
    if not board.rows:
        yield f"{title}  {when}  nothing has been posted yet"
    else:
        groups = {group: found for group in _GROUPS if (found := [row for row in board.rows if row.group == group])}
        counts = " · ".join(f"{len(found)} {group}" for group, found in groups.items())
        said = f"{many(len(board.rows), 'member')}: {counts}"
        if columns_of(f"{called(host, 40)}  {when}  {said}") <= style.width:
            yield f"{title}  {when}  {said}"
        else:
            yield f"{title}  {when}"
            yield from wrap(said, style.width)
        yield style.paint(_heads(layout), "dim")
        for group, found in groups.items():
            name, (why, how) = group.upper(), _GROUPS[group]
            room = style.width - len(name) - 2
            yield style.paint(name, how) + (f"  {style.paint(clean(why, room), 'dim')}" if why else "")
            for row in found:
                line = _row(row, layout, near)
                yield style.paint(line, "dim") if group == "away" else line
    for user, why in board.notes.items():
        for line in wrap(f"{called(user, 40)}: {clean(why, 300)}", style.width - 2):
            yield f"  {style.paint(line, 'attention')}"


def _heads(layout: _Layout) -> str:
    numbers = "".join(f"{column.number:>2} " for column in layout.columns)
    start = f"  {'':<{layout.name}} {numbers}{'now':<{layout.now}}"
    return f"{start}{'last':<{_VALUE}}{'best':<{_VALUE}}{'quiet':>{_IDLE - 1}}"


def _row(row: BoardRow, layout: _Layout, near: Near) -> str:
    known = {chapter.id: chapter for chapter in row.posted.chapters}
    cells = "".join(_cell(column, known.get(column.id), row, near) for column in layout.columns)
    last, best = last_and_best(row)
    by = compared_at(row.posted, last) if last is not None else BEST_BY
    shown = nice_ns(last.value_at(by)) if last is not None else ""
    idle = _minutes(row.idle_s) if row.idle_s >= 60 else ""
    lowest = nice_ns(best.value_at(by)) if best is not None else ""
    values = f"{shown:<{_VALUE}}{lowest:<{_VALUE}}{idle:>{_IDLE - 1}}"
    return f"  {in_columns(who(row), layout.name)} {cells}{in_columns(_now(row, layout), layout.now)}{values}"


def _now(row: BoardRow, layout: _Layout) -> str:
    if row.posted.chapter is None:
        return "–"
    step = clean(row.posted.step, 10)
    column = next((one for one in layout.columns if one.id == row.posted.chapter), None)
    if column is None:
        return f"{called(row.posted.chapter, layout.now - 2 - len(step))} {step}"
    if layout.style.width >= _TITLES_FROM:
        return f"{column.number:>2} {clean(column.title, _TITLE)}, {step}"
    return f"{column.number:>2} {step}"


def _cell(column: Column, chapter: PostedChapter | None, row: BoardRow, near: Near) -> str:
    if chapter is None:
        return " " * _CELL
    marks = chapter.curve + (chapter.setting if column.sets else chapter.curve)
    guess = {True: "✓", False: "✗", None: " "}[near(row, chapter)]
    return f"{'○◐●'[marks]}{guess} "


def _legend(layout: _Layout, unknown: int) -> list[str]:
    style = layout.style
    lines = []
    if layout.columns:
        lines += _packed([f"{column.number} {clean(column.title, 40)}" for column in layout.columns], style.width)
    if layout.left_out:
        left = (
            f"{many(layout.left_out, 'earlier chapter')} left out: a wider terminal, or 'class results --csv', has all."
        )
        lines += wrap(left, style.width)
    if unknown:
        said = f"{many(unknown, 'chapter')} of other courses not shown: 'class results --csv' has all."
        lines += wrap(said, style.width)
    marks = ("● all marks", "◐ one of two", "○ begun", "✓ guess near", "✗ guess far")
    what = (
        "last, best: the newest curve and the lowest comparable one, at the percentile that its chapter asks about,"
        f" else p{BEST_BY:g} (spin: p99.9999); as their own programs report."
    )
    return [style.paint(line, "dim") for line in (*lines, *_packed(marks, style.width), *wrap(what, style.width))]


def _stuck(found: Sequence[tuple[BoardRow, str]]) -> str:
    """Return the stuck students, the longest first, with the machine where there are several."""
    longest = sorted(found, key=lambda one: -one[0].idle_s)
    named = (f"{who(row)}{f' on {called(host, 20)}' if host else ''} ({_minutes(row.idle_s)})" for row, host in longest)
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return f"Stuck: {', '.join(list(named)[:_MOST_NAMED])}{more}"


def _packed(items: Sequence[str], width: int) -> list[str]:
    """Return items in as few lines as possible, none of them broken."""
    lines: list[str] = []
    for item in items:
        if lines and columns_of(lines[-1]) + 3 + columns_of(item) <= width:
            lines[-1] += f" · {item}"
        else:
            lines.append(item)
    return lines


def _minutes(seconds: float) -> str:
    return f"{seconds // 60:.0f} min" if seconds < 6000 else f"{seconds // 3600:.0f} h"


def _silent(one: Machine) -> str:
    return f"{called(one.host, 40)}: silent ({clean(one.error, 160) or 'no reason is known'})"
