"""Show a class (people who take a course together) in tables. One table has a row for each member and a column for each
chapter. Members who are stuck come first. Another table has a row for each check and a column for each machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from jitter_workshop.flow.classes.classboard import BoardColumn, ClassTable, last_and_best
from jitter_workshop.model.board import BEST_BY, Board, BoardRow, MemberGroup, PostedChapter, PostedRun, compared_at
from jitter_workshop.model.status import State
from jitter_workshop.model.text import CELL, ID, REASON, SENTENCE, SHORT, WORD, called, clean, many, minute
from jitter_workshop.presenter.host.status import COLOURS
from jitter_workshop.presenter.text.lines import Lines, in_cells, table_lines, wrap
from jitter_workshop.presenter.text.styled import Text, cell_len
from jitter_workshop.report.check_words import MARKS
from jitter_workshop.stats.scale import nice_ns

_GROUPS: dict[MemberGroup, tuple[str, str]] = {
    "stuck": ("at a chapter, but nothing new for ten minutes", "accent"),
    "at work": ("", "bold"),
    "waiting": ("for the turn, or for the class to go on", "bold"),
    "done": ("finished all they began; nothing new for ten minutes", "bold"),
    "away": ("their program is closed, or they left their machine", "dim"),
}
_LONGEST_NAME, _LEAST_NAME = 24, 9
_CELL = 3
_FIGURES = 30
"""The width in cells of all columns to the right of the chapters, without the column of the step. Where a run has a
mark, the mark needs _MARK cells more."""
_MARK = 9
_SOLVED = "solved"
"""The head of the column with the number of solved scenarios. The board has this column if a member has solved one."""
_TITLES_FROM = 120
_TITLE = 22
_MOST_NAMED = 12

Near = Callable[[BoardRow, PostedChapter], bool | None]
"""A function that says if a guess was near; None where this is not known."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """Hold the layout of a class's table: its columns and their widths. ``columns``: the chapters that fit.
    ``left_out``: the number of chapters that do not fit. ``name``: the width of the column of names, in cells of the
    terminal. ``solved``: True if there is a column of solved scenarios."""

    columns: tuple[BoardColumn, ...]
    left_out: int
    name: int
    width: int
    solved: bool = False


def boards(machines: Sequence[ClassTable], columns: Sequence[BoardColumn], near: Near, width: int) -> Lines:
    """Return the tables of all machines. Machines that did not answer come first, because users easily overlook that a
    table is missing. The last lines name the stuck members again, because a terminal with few rows shows only the
    end."""
    lines: Lines = []
    for one in machines:
        if one.board is None:
            why = clean(one.error, REASON) or "no reason is known"
            lines += wrap(f"{called(one.host, ID)}: silent ({why})", width, style="accent")
    found = [(one.host, one.board) for one in machines if one.board is not None]
    used = {chapter.id for _, board in found for row in board.rows for chapter in row.posted.chapters}
    layout = _layout([c for c in columns if c.id in used], [board for _, board in found], width)
    for host, board in found:
        lines += [Text()] if lines else []
        lines += _machine(host, board, layout, near)
    if any(board.rows for _, board in found):
        lines += [Text(), *_legend(layout, len(used - {c.id for c in columns}))]
    several = len(found) > 1
    stuck = [(row, host if several else "") for host, board in found for row in board.rows if row.group == "stuck"]
    return lines + ([Text(), *wrap(_stuck(stuck), width, style="accent")] if stuck else [])


def who(row: BoardRow) -> str:
    """Return the name of a member, followed by the names of the member's team. The people with these names have not
    confirmed that they are in this team. So the results in the row belong only to the member."""
    others = [name for name in dict.fromkeys(row.posted.people) if name != row.user]
    return called(f"{row.user} with {', '.join(others)}" if others else row.user, ID)


def _layout(columns: Sequence[BoardColumn], found: Sequence[Board], width: int) -> _Layout:
    """Return the layout of the class's table for a terminal of this width. If not all chapters fit, the first chapters
    are left out. The last columns are the newest chapters."""
    longest = max((cell_len(who(row)) for board in found for row in board.rows), default=0)
    marked = any(run.mark for board in found for row in board.rows for run in row.posted.runs)
    solved = any(row.posted.scenarios for board in found for row in board.rows)
    fixed = _FIGURES + (_MARK if marked else 0) + (len(_SOLVED) + 1 if solved else 0)
    fixed += _TITLE + 14 if width >= _TITLES_FROM else 12
    name = max(min(longest, _LONGEST_NAME, width - fixed - _CELL * len(columns)), _LEAST_NAME)
    room = max((width - fixed - name) // _CELL, 1)
    return _Layout(tuple(columns[-room:]), max(len(columns) - room, 0), name, width, solved)


def _machine(host: str, board: Board, layout: _Layout, near: Near) -> Iterator[Text]:
    title = Text.assemble((called(host, ID), "bold"), f"  {minute(board.at)} UTC")
    if not board.rows:
        yield title.append("  no results have been sent yet")
    else:
        groups = {group: found for group in _GROUPS if (found := [row for row in board.rows if row.group == group])}
        counts = " · ".join(f"{len(found)} {group}" for group, found in groups.items())
        said = f"{many(len(board.rows), 'member')}: {counts}"
        if title.cell_len + 2 + cell_len(said) <= layout.width:
            yield title.append(f"  {said}")
        else:
            yield from (title, *wrap(said, layout.width))
        more = [_SOLVED] if layout.solved else []
        rows = [["", "".join(f"{c.number:>2} " for c in layout.columns), "now", "last", "best", "quiet", *more]]
        rows += [_row(row, layout, near) for found in groups.values() for row in found]
        head, *lines = (Text("  ").append(line) for line in table_lines(rows, layout.width - 2, right=(5, 6), gap=1))
        head.stylize("dim")
        yield head
        for group, found in groups.items():
            why, style = _GROUPS[group]
            yield Text.assemble((group.upper(), style), (f"  {why}" if why else "", "dim"))
            for line in lines[: len(found)]:
                line.stylize("dim" if group == "away" else "")
                yield line
            del lines[: len(found)]
    for user, why in board.notes.items():
        yield from wrap(f"{called(user, ID)}: {clean(why, SENTENCE)}", layout.width, "  ", style="accent")


def _row(row: BoardRow, layout: _Layout, near: Near) -> list[str]:
    known = {chapter.id: chapter for chapter in row.posted.chapters}
    cells = "".join(_cell(column, known.get(column.id), row, near) for column in layout.columns)
    last, best = last_and_best(row)
    by = compared_at(row.posted, last) if last is not None else BEST_BY
    values = [_value(one, by) if one is not None else "" for one in (last, best)]
    name = in_cells(who(row), layout.name)
    solved = [str(len(row.posted.scenarios) or "")] if layout.solved else []
    return [name, cells, _now(row, layout), *values, _minutes(row.idle_s) if row.idle_s >= 60 else "", *solved]


def _value(run: PostedRun, by: float) -> str:
    """Return a run's value at the percentile ``by``, followed by the run's mark, if any."""
    value = nice_ns(run.value_at(by))
    return f"{value} {clean(run.mark, _MARK - 1)}" if run.mark else value


def _now(row: BoardRow, layout: _Layout) -> str:
    if row.posted.chapter is None:
        return "–"
    step = clean(row.posted.step, CELL)
    column = next((one for one in layout.columns if one.id == row.posted.chapter), None)
    if column is None:
        return f"{called(row.posted.chapter, _TITLE if layout.width >= _TITLES_FROM else 9 - len(step))} {step}"
    if layout.width >= _TITLES_FROM:
        return f"{column.number:>2} {clean(column.title, _TITLE)}, {step}"
    return f"{column.number:>2} {step}"


def _cell(column: BoardColumn, chapter: PostedChapter | None, row: BoardRow, near: Near) -> str:
    if chapter is None:
        return " " * _CELL
    marks = 2 * chapter.done if column.reads else chapter.curve + (chapter.setting if column.sets else chapter.curve)
    guess = {True: "✓", False: "✗", None: " "}[near(row, chapter)]
    return f"{'○◐●'[marks]}{guess} "


def _legend(layout: _Layout, unknown: int) -> Lines:
    lines = _packed([f"{column.number} {clean(column.title, ID)}" for column in layout.columns], layout.width)
    if layout.left_out:
        earlier = many(layout.left_out, "earlier chapter")
        left = f"{earlier} left out: use a wider terminal, or 'class results --csv', to see all."
        lines += wrap(left, layout.width, style="dim")
    if unknown:
        said = f"Not shown: {many(unknown, 'chapter')} of other courses. 'class results --csv' shows all."
        lines += wrap(said, layout.width, style="dim")
    marks = ("● all marks, or read to the end", "◐ one mark of two", "○ begun", "✓ guess right", "✗ guess wrong")
    what = (
        "last: the newest curve. best: the lowest curve comparable with last. Both are shown at the percentile "
        f"of the chapter's question, else at p{BEST_BY:g} (spin: p99.9999). The members' programs reported these "
        "values."
    )
    what += " solved: the scenarios that were solved in practice machines." if layout.solved else ""
    return [*lines, *_packed(marks, layout.width), *wrap(what, layout.width, style="dim")]


def _stuck(found: Sequence[tuple[BoardRow, str]]) -> str:
    """Return the stuck students; the one who is stuck longest comes first. ``found``: pairs (row, machine); the machine
    is "" if the class has only one."""
    longest = sorted(found, key=lambda one: -one[0].idle_s)
    named = (
        f"{who(row)}{f' on {called(host, WORD)}' if host else ''} ({_minutes(row.idle_s)})" for row, host in longest
    )
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return f"Stuck: {', '.join(list(named)[:_MOST_NAMED])}{more}"


def _packed(items: Iterable[str], width: int) -> Lines:
    """Return the items in lines of ``width`` cells, as few lines as possible. An item is never broken."""
    lines: Lines = []
    for item in items:
        if lines and lines[-1].cell_len + 3 + cell_len(item) <= width:
            lines[-1].append(f" · {item}")
        else:
            lines.append(Text(item, "dim"))
    return lines


def _minutes(seconds: float) -> str:
    return f"{seconds // 60:.0f} min" if seconds < 6000 else f"{seconds // 3600:.0f} h"


# -- machines × checks -------------------------------------------------------------------------------------------------

_SILENT = "?"
_LONGEST = 16
_KEYS = "✓ good, ▲ can be better, – not on this machine, · for information, ? no answer"


@dataclass(frozen=True, slots=True)
class Row:
    """Hold one machine of a class. ``states``: check → state. ``error``: the reason why no checks of this machine are
    known; "" if they are known."""

    host: str
    states: dict[str, State] = field(default_factory=dict)
    error: str = ""

    @property
    def well(self) -> bool:
        """Return True if the machine answered and has nothing to improve."""
        return not self.error and bool(self.states) and "improve" not in self.states.values()

    def plain(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "checks": self.states or None,
            "error": self.error or None,
            "well": self.well,
            "notes": {} if self.states else {"checks": self.error},
        }


def fleet(machines: Iterable[tuple[str, dict[str, Any] | None, str]]) -> tuple[Row, ...]:
    """Return a row per machine. ``machines``: the name of each machine, the JSON of its ``status`` (None if it is
    missing), and an error or ""."""
    found = []
    for host, status, error in machines:
        checks = status.get("checks") if status is not None else None
        states = dict(filter(None, map(_state, checks if isinstance(checks, list) else ())))
        found.append(Row(called(host, ID), states, error or ("" if states else "status.json holds no checks")))
    return tuple(found)


def _state(check: object) -> tuple[str, State] | None:
    """Return a check's name and state; None if the check is not valid. ``check``: one check in the JSON of
    ``status``."""
    if not isinstance(check, dict) or not isinstance(check.get("id"), str):
        return None
    return next(((called(check["id"], SHORT), state) for state in MARKS if check.get("state") == state), None)


def checks(rows: Sequence[Row], width: int) -> Lines:
    """Return the machines' errors, then tables with a row per check and a column per machine. A narrow terminal gets
    several tables. A check that needs no action, and has the same state on all machines, gets no row. Only the number
    of such checks is shown."""
    well = sum(row.well for row in rows)
    lines = [Text(f"Nothing to improve on {well} of {many(len(rows), 'machine')}", "bold")]
    for row in rows:
        if row.error:
            why = clean(row.error, REASON)
            lines += wrap(f"{row.host}: {why if row.states else f'silent ({why})'}", width, style="accent")
    answered = [row for row in rows if row.states]
    known = list(dict.fromkeys(ident for row in answered for ident in row.states))
    said = {ident: {row.states.get(ident) for row in answered} for ident in known}
    shown = [ident for ident, states in said.items() if len(states) > 1 or "improve" in states]
    if shown:
        names = _short([row.host for row in rows])
        first, each = max(map(cell_len, shown)), min(max(map(cell_len, names)), _LONGEST)
        fit = max((width - first) // (each + 1), 1)
        for start in range(0, len(rows), fit):
            part = rows[start : start + fit]
            heads = "".join(f" {in_cells(name, each)}" for name in names[start : start + fit])
            lines += [Text(), Text(" " * first + heads, "dim")]
            for ident in shown:
                cells = (piece for row in part for piece in (" ", *_mark(row, ident, each)))
                lines.append(Text.assemble(in_cells(ident, first), *cells))
        lines += [Text(), *wrap(_KEYS, width, style="dim")]
    same = len(known) - len(shown)
    says = "1 check says" if same == 1 else f"{same} checks say"
    told = f"{says} the same on every machine that answered, and need no action."
    return lines + (wrap(told, width) if same else [])


def _short(hosts: Sequence[str]) -> list[str]:
    """Return the host names without their domains, or the full names if two short names would be equal."""
    first = [host.partition(".")[0] for host in hosts]
    return first if all(first) and len(set(first)) == len(set(hosts)) else list(hosts)


def _mark(row: Row, ident: str, width: int) -> tuple[str | tuple[str, str], ...]:
    """Return the mark of a check on a machine, centred in a column of ``width`` cells, as parts of a ``Text``."""
    state = row.states.get(ident)
    mark = (MARKS[state][0], COLOURS[state]) if state is not None else (" ", "") if row.states else (_SILENT, "accent")
    left = (width - 1) // 2
    return " " * left, mark, " " * (width - 1 - left)
