"""Show the figures that judge a change between two runs, as a table of few rows.

The rows are the same in each chapter: its figure, the figure that judges the runs, the time that the change can end,
and the time of all other causes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jitter_workshop.flow.chapters.judging import by_the_due_time, few_before_or_after
from jitter_workshop.flow.measuring.known_reason import LEAST_TOLD
from jitter_workshop.model.effect import RUN_HEADS, CauseTime, Effect
from jitter_workshop.model.judgement import PairJudgement
from jitter_workshop.presenter.runs.effect_table import (
    NOISE_IN_CELL,
    columns_of,
    in_run,
    less_or_more,
    none_in,
    of_a_second,
)
from jitter_workshop.presenter.runs.effect_words import FEW, SAME, events_told, of_equal_runs, short_doubt
from jitter_workshop.presenter.runs.one_run import A_SECOND, SHORT_A_SECOND
from jitter_workshop.presenter.runs.verdict import effects_told
from jitter_workshop.presenter.text.lines import Lines, column_sizes, in_cells, thin_bar, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.effect import ALIKE, MOVED
from jitter_workshop.stats.figures import DUE_TAIL, KnownRun, transit_of
from jitter_workshop.stats.scale import difference_told, nice_ns, times_told

_UNKNOWN = "–"
CAN_END = "time the change can end"
_ALL_THAT_ENDS = "all that the change can end"
_OTHERS, _ALL = "time of other causes", "time of all causes"
_TIMES = (CAN_END, _OTHERS, _ALL)
_GAP = 2
_LEAST_WORDS = 14
"""The least width of the last column in cells. If a narrow screen leaves it less, its words stand below the row."""
_LEAST_BAR, _WIDEST_BAR = 4, 12
"""The cells of the bar of a row's larger value, at least and at most."""
_BAR_STYLES = ("curve_before", "curve_after")
"""The styles of the bars of the two runs: the colours of their curves."""
MOST_ROWS = 3
"""The most rows beside a chart. The key t shows all."""
_LONGEST_LABEL = 24
"""The most characters of a cause's name in a cell. A longer one would leave the bars no room; the key t shows it."""
_NEEDED = "× needed"
_MOST_OF_IT = 0.5
"""The least share of a difference with which a cause is said to be most of it."""


@dataclasses.dataclass(frozen=True)
class ResultRow:
    """Hold a row of the table: its name, its values in the two runs, words on their difference, and the row's style.
    ``extra``: True for a row that a small screen leaves out first. ``shares``: both values as shares of the larger one;
    None if a value is not known, or only as an upper limit."""

    name: str
    first: str
    second: str
    told: str = ""
    style: str = ""
    extra: bool = False
    shares: tuple[float, float] | None = None


def result_rows(judged: PairJudgement, runs: Sequence[KnownRun], which: tuple[str, str]) -> list[ResultRow]:
    """Return the rows that tell what a change between two runs did, those without data left out. If the latency of the
    two runs cannot be compared, no latency is among them. ``which``: the words for the two runs."""
    found, rows = judged.found, list[ResultRow]()
    if (of_chapter := judged.of_chapter) is not None:
        clear = judged.work == "done"
        rows.append(_row(of_chapter, which, "accent" if clear else "", limit=not clear and of_chapter.sort != "cause"))
    elif judged.work == "not known":
        rows.append(ResultRow(found.uncounted, _UNKNOWN, _UNKNOWN, "not known"))
    if judged.reason is None:
        rows += _of_latency(judged, runs, which, told={row.name for row in rows})
    if not judged.by_plan:
        rows += _of_the_change(found.causes, which)
    return [*rows, *_of_others(found.causes)]


def few_rows(judged: PairJudgement, runs: Sequence[KnownRun], which: tuple[str, str]) -> list[ResultRow]:
    """Return at most MOST_ROWS rows of :func:`result_rows`, for a page that shows the others at a key: the chapter's
    figure, the figures of the verdict, and the time that explains it (:func:`_explaining`). If the verdict has too many
    figures, those without a row are told in it with their values (``presenter.runs.verdict``). A sure effect in the
    other direction that the verdict does not tell has a row beyond MOST_ROWS. The arguments are those of
    :func:`result_rows`."""
    rows = [row for row in result_rows(judged, runs, which) if not row.extra]
    figures = [row for row in rows if row.name not in _TIMES]
    told = {one.name for one in effects_told(judged)}
    for one in (judged.against, judged.first):
        if len(figures) > MOST_ROWS and one is not None and one.name in told:
            figures = [row for row in figures if row.name != one.name]
    explains = _explaining(judged, [row for row in rows if row.name in _TIMES])
    return [*figures, *([explains] if explains is not None else [])][: max(MOST_ROWS, len(figures))]


def _explaining(judged: PairJudgement, times: Sequence[ResultRow]) -> ResultRow | None:
    """Return the one row of ``times`` that explains the verdict, with the name of its cause if it is of one alone: the
    time that the change can end, or that of other causes if these explain the verdict, or grew while latency became
    worse. Return None without a time."""
    if not times:
        return None
    causes, row = judged.found.causes, times[0]
    grew = (most := most_of_others(causes)) is not None and most.ns[1] > most.ns[0]
    if judged.cause is not None or (grew and judged.latency in ("worse", "perhaps worse")):
        row = times[-1]
    one = _alone(causes, row)
    if one is None or _label(one) in row.told or len(_label(one)) > _LONGEST_LABEL:
        return row
    return dataclasses.replace(row, told=f"{_label(one)}: {row.told}" if row.told else _label(one))


def _alone(causes: Sequence[CauseTime], row: ResultRow) -> CauseTime | None:
    """Return the cause whose time a row is, if it is the time of one cause alone; else None."""
    of_row = [one for one in causes if row.name == _ALL or one.treated == (row.name == CAN_END)]
    took = [one for one in of_row if max(one.ns) >= 1]
    return took[0] if len(took) == 1 else None


def causes_above(judged: PairJudgement | None, runs: Sequence[KnownRun]) -> set[str]:
    """Return the labels of the causes whose times are a row of :func:`few_rows`. A table of causes need not repeat
    them. ``judged``: the judgement of the two runs; None for a pair without one."""
    if judged is None or judged.relation != "changed":
        return set()
    rows = (row for row in few_rows(judged, runs, RUN_HEADS[:2]) if row.name in _TIMES)
    found = (_alone(judged.found.causes, row) for row in rows)
    return {one.label for one in found if one is not None and len(_label(one)) <= _LONGEST_LABEL}


def names_told(judged: PairJudgement | None, runs: Sequence[KnownRun], *, few: bool = False) -> set[str]:
    """Return the names of the figures that the table of a result always shows. A second table below it need not repeat
    them. ``judged``: the judgement of the two runs; None for a pair without one. Only a change has such a table.
    ``few``: True for the table of :func:`few_rows`."""
    if judged is None or judged.relation != "changed":
        return set()
    rows = few_rows(judged, runs, RUN_HEADS[:2]) if few else result_rows(judged, runs, RUN_HEADS[:2])
    return {row.name for row in rows if not row.extra}


def _without_repeats(rows: Sequence[ResultRow], judged: PairJudgement) -> list[ResultRow]:
    """Return rows without the factors that the verdict above them tells. The doubt behind a factor stays, and so does
    the limit that a factor does not reach."""
    said = {one.name: events_told(one) or difference_told(one.factor, one.how) for one in effects_told(judged)}
    found = list[ResultRow]()
    for row in rows:
        rest = row.told.removeprefix(said.get(row.name, "")).lstrip(", ")
        if rest.startswith("(") and rest.endswith(")"):
            rest = rest[1:-1]
        if rest.endswith(_NEEDED) and judged.opposed is not None and row.name == judged.opposed.name:
            # This figure counts against the other one, however little it moved.
            rest = ""
        if rest.endswith(_NEEDED):
            # Alone in its row, the limit needs a sentence.
            rest = f"below {rest.removesuffix(_NEEDED)}×: not counted"
        found.append(dataclasses.replace(row, told=rest))
    return found


def _of_latency(
    judged: PairJudgement, runs: Sequence[KnownRun], which: tuple[str, str], told: set[str]
) -> list[ResultRow]:
    """Return the row of the figure that judges the runs, and those of the other effects that the verdict tells or that
    are sure. ``told``: the names of the rows above."""
    found, first, against = judged.found, judged.first, judged.against
    lead, tail = found.lead, found.tail
    due = first or found.nearest
    if due is not None and by_the_due_time(due):
        before, after = (transit_of(seen, DUE_TAIL) for seen in runs)
        values = [_UNKNOWN if value is None else nice_ns(value) for value in (before, after)]
        shares = None if before is None or after is None else _shares(before, after)
        name = f"p{DUE_TAIL} by transit"
        transit = [ResultRow(name, values[0], values[1], shares=shares)] if judged.clocks is not None else []
        return [*transit, _row(due, which, _style(due, judged), limit=True)]
    nearest = found.nearest if found.nearest is not None and found.nearest.sort != "cause" else None
    judge = tail or first or nearest
    # The chapter's figure is the first row, also if it is one of latency.
    unclear = judged.latency == "unclear" and judged.opposed is None
    of_latency = not (found.shown or found.missed or found.uncounted) and not unclear and judged.latency != "undecided"
    shown = [one for one in ((first, judge) if of_latency else (judge, first)) if one is not None]
    if lead is not None and first is not lead and not lead.doubtful and lead.direction == found.direction:
        shown.append(lead)
    if against is not None:
        shown.append(against)
    by_name = {one.name: one for one in reversed(shown) if one.name not in told}
    order = dict.fromkeys(one.name for one in shown if one.name in by_name)
    # The verdict names the effect that is told first, unless it is unclear.
    named = (judge, against, None if unclear else first)
    kept = {one.name for one in named if one is not None}
    rows = list[ResultRow]()
    for name in order:
        row = _row(by_name[name], which, _style(by_name[name], judged), limit=True, extra=name not in kept)
        rows.append(_with_few(row, few_before_or_after(by_name[name], runs), which))
    return rows


def _style(effect: Effect, judged: PairJudgement) -> str:
    """Return the style of a row: a colour only for a sure effect of runs that are called better or worse. A gain beside
    a figure that moved against it is no plain one."""
    if judged.against is not None and effect.direction == "better":
        return ""
    if not judged.sure or effect.doubtful or effect.factor < MOVED or effect.against_time:
        return ""
    return {"better": "good", "worse": "bad"}.get(effect.direction, "")


def _with_few(row: ResultRow, few: tuple[int, int] | None, which: tuple[str, str]) -> ResultRow:
    """Return a row with the number of stalls of the run that had few: a factor of so few says too much. ``few``: the
    number and the index of the run; None if each run had enough, or none."""
    if few is None or not row.told or row.told.endswith(FEW):
        return row
    number, run = few
    return dataclasses.replace(row, told=f"{row.told}, only {number} {in_run(which[run])}")


def _row(effect: Effect, which: tuple[str, str], style: str, *, limit: bool = False, extra: bool = False) -> ResultRow:
    """Return the row of an effect. ``limit``: True to tell the least factor that counts, if the effect is smaller.
    ``extra``: as in :class:`ResultRow`."""
    rate = effect.values[1].endswith(A_SECOND)
    first, second = (f"{v.removesuffix(A_SECOND)}{SHORT_A_SECOND if rate else ''}" for v in effect.values)
    told = _difference(effect, which, limit=limit)
    smaller = 0.0 if effect.at_least else 1 / effect.factor
    shares = (smaller, 1.0) if effect.larger else (1.0, smaller)
    return ResultRow(effect.name, first, second, told, style, extra, shares)


def _difference(effect: Effect, which: tuple[str, str], *, limit: bool) -> str:
    """Return the difference of a figure in a few words, with its doubt: ``36 % shorter (2× needed)``."""
    if effect.factor < ALIKE:
        return SAME
    if events := events_told(effect):
        return events
    if effect.at_least:
        told = none_in(which[int(effect.values[1].split()[0] == "0")])
    else:
        told = difference_told(effect.factor, effect.how)
    if effect.against_time:
        return f"{told}, in no {effect.how.replace('fewer', 'less')} time"
    if not effect.at_least and (least := _least_that_counts(effect, limit=limit)) is not None:
        return f"{told} ({f'{times_told(least)}{_NEEDED}' if least <= MOVED else of_equal_runs(effect)})"
    doubt = short_doubt(effect)
    return f"{told}, {doubt}" if doubt else told


def _least_that_counts(effect: Effect, *, limit: bool) -> float | None:
    """Return the least factor that counts, if an effect is smaller and has no other doubt; else None. It is MOVED, or
    the factor between equal runs if that is larger."""
    least = max(effect.of_equal_runs, MOVED)
    if effect.factor < MOVED:
        return least if limit else None
    return least if effect.within_equal_runs and not (effect.one_event or effect.within_runs) else None


def all_that_ends(causes: Sequence[CauseTime]) -> CauseTime | None:
    """Return the causes on which the chapter's change acts as one, for a table of causes without the row CAN_END: the
    step ``diagnose`` told their time in the first run. Return None if there are fewer than two."""
    treated = [one for one in causes if one.treated and max(one.ns) >= 1]
    if len(treated) < 2 or any(one.at_most[0] for one in treated):
        return None
    ns = sum(one.ns[0] for one in treated), sum(one.ns[1] for one in treated)
    return CauseTime(_ALL_THAT_ENDS, ns, (False, any(one.at_most[1] for one in treated)), treated=True)


def _of_the_change(causes: Sequence[CauseTime], which: tuple[str, str]) -> list[ResultRow]:
    """Return the row of the time that the chapter's change can end; the step ``diagnose`` told this time of the first
    run. Return [] if the change acts on no cause of either run."""
    treated = [one for one in causes if one.treated]
    before = sum(one.ns[0] for one in treated if not one.at_most[0])
    after = sum(one.ns[1] for one in treated)
    if max(before, after) < 1:
        return []
    alike = max(before, after) < ALIKE * min(before, after)
    told = SAME if alike else less_or_more(before, after, which)
    larger = int(after > before)
    small = max(before, after) < LEAST_TOLD * sum(one.ns[larger] for one in causes)
    least = "<" if any(one.at_most[1] for one in treated) and after >= 1 else ""
    told = f"{'>' if least and after < before and told[0].isdigit() else ''}{told}{'; <1 % of all' if small else ''}"
    first, second = _time(before, after), f"{least}{_time(after, before)}"
    return [ResultRow(CAN_END, first, second, told, shares=_shares(before, after, least))]


def _of_others(causes: Sequence[CauseTime]) -> list[ResultRow]:
    """Return the row of the time of all causes on which the change does not act, with the cause of
    :func:`most_of_others`. Return [] without such causes."""
    others = [one for one in causes if not one.treated]
    if not others:
        return []
    whole = [sum(one.ns[run] for one in others) for run in (0, 1)]
    least = ["<" if any(one.at_most[run] for one in others) else "" for run in (0, 1)]
    first, second = (f"{sign}{_time(ns, max(whole))}" for sign, ns in zip(least, whole, strict=True))
    name = _OTHERS if len(others) < len(causes) else _ALL
    most, step = most_of_others(causes), whole[1] - whole[0]
    if most is None:
        return [ResultRow(name, first, second, "" if any(least) else SAME, shares=_shares(whole[0], whole[1], *least))]
    share = "most" if (most.ns[1] - most.ns[0]) / step >= _MOST_OF_IT else "largest"
    moved = f"{'+' if step > 0 else '−'}{of_a_second(abs(step))}"
    return [
        ResultRow(name, first, second, f"{moved}, {share}: {_label(most)}", shares=_shares(whole[0], whole[1], *least))
    ]


def _shares(before: float, after: float, *limits: str) -> tuple[float, float] | None:
    """Return two times as shares of the longer one. Return None if one of them is only an upper limit, or if both are
    0. ``limits``: the signs before them, "" for a time that is known."""
    most = max(before, after)
    return None if any(limits) or most <= 0 else (before / most, after / most)


def _label(cause: CauseTime) -> str:
    """Return a cause in the few words of a cell."""
    return NOISE_IN_CELL if cause.own_load else cause.label.partition(" (")[0]


def most_of_others(causes: Sequence[CauseTime]) -> CauseTime | None:
    """Return the cause that made most of the difference in the time of all causes on which the change does not act.
    Return None if this time is about the same in both runs, or not known."""
    others = [one for one in causes if not one.treated]
    whole = [sum(one.ns[run] for one in others) for run in (0, 1)]
    if max(whole) < ALIKE * min(whole) or max(whole) < 1 or any(any(one.at_most) for one in others):
        return None
    return max(others, key=lambda one: (one.ns[1] - one.ns[0]) * (1 if whole[1] > whole[0] else -1))


def added_up(runs: Sequence[KnownRun]) -> int:
    """Return the number of measured threads whose times a cause adds up, the larger one of two runs; at least 1."""
    return max((len(seen.run.threads) for seen in runs), default=1) or 1


def _with_threads(rows: list[ResultRow], threads: int, width: int) -> list[ResultRow]:
    """Return the rows of a table with the number of threads in the name of the time of all causes, because the time in
    stalls has overlapping stalls once. Return them as they are for one thread, and if a row would then need a second
    line."""
    if threads < 2:
        return rows
    longer = [
        dataclasses.replace(row, name=f"{row.name}, {threads} threads") if row.name in (_OTHERS, _ALL) else row
        for row in rows
    ]
    sizes = column_sizes([(row.name, row.first, row.second, row.told) for row in longer])
    return longer if sum(sizes) + 3 * _GAP <= width else rows


def _time(ns: float, beside: float) -> str:
    """Return a time of each second, in ns: ``4.2 ms/s``. No time has the unit of the time ``beside``: a bare ``0/s``
    reads as a count."""
    if ns < 1 <= beside:
        return f"0 {of_a_second(beside).split()[-1]}{SHORT_A_SECOND}"
    return f"{of_a_second(ns)}{SHORT_A_SECOND}"


def result_table(
    judged: PairJudgement,
    runs: Sequence[KnownRun],
    width: int,
    head: str,
    *,
    proven: bool = False,
    most: int | None = None,
    few: bool = False,
) -> Lines:
    """Return the rows of :func:`result_rows` as a table; [] if there are none. No cell is cut: words that are too long
    go on in the next line. ``head``: the first cell of the head, such as the state of the proof. ``proven``: True if a
    proof judges the change, so that these two runs do not. ``most``: the most rows, if some of them are extra; None for
    all. ``few``: True for :func:`few_rows` alone, without the factors that a verdict above tells, and with a bar beside
    each value where there is room."""
    which = columns_of("changed", runs, undecided=proven)
    rows = few_rows(judged, runs, which) if few else result_rows(judged, runs, which)
    if few and not proven:
        rows = _without_repeats(rows, judged)
    while most is not None and len(rows) > most and any(row.extra for row in rows):
        rows.remove(next(row for row in reversed(rows) if row.extra))
    if not rows:
        return []
    rows.insert(0, ResultRow(head, *which, style="dim"))
    rows = _with_threads(rows, added_up(runs), width)
    sizes = column_sizes([(row.name, row.first, row.second) for row in rows])
    last = width - sum(sizes) - 3 * _GAP
    apart = last < _LEAST_WORDS
    if apart:
        # Too narrow for four columns: the words stand below their row.
        last = width - _GAP
        sizes[0] = min(sizes[0], width - sizes[1] - sizes[2] - 2 * _GAP)
    bar = 0 if apart or not few else _bar(rows, last)
    last -= 2 * (bar + 1) if bar else 0
    lines: Lines = []
    gap = " " * _GAP
    for row in rows:
        names, words = [one.plain for one in wrap(row.name, sizes[0])], [one.plain for one in wrap(row.told, last)]
        beside = [] if apart else words
        style = "text" if proven and row.style != "dim" else row.style or "text"
        for at in range(max(len(names), len(beside), 1)):
            line = Text(in_cells(names[at] if at < len(names) else "", sizes[0]), style)
            for run, value in enumerate((row.first, row.second)):
                line.append(gap + in_cells(value if at == 0 else "", sizes[1 + run], right=True))
                if bar:
                    drawn = thin_bar(row.shares[run], 1.0, bar) if row.shares is not None and at == 0 else ""
                    line.append(f" {drawn:<{bar}}", _BAR_STYLES[run])
            line.append(f"{gap}{beside[at] if at < len(beside) else ''}")
            line.rstrip()
            lines.append(line)
        lines += [Text(f"{gap}{one}", style) for one in words if apart and one]
    return lines


def _bar(rows: Sequence[ResultRow], room: int) -> int:
    """Return the width of a bar beside each value, in cells; 0 for no bars. ``room``: the cells right of the values,
    where the longest words of a row stand, too."""
    if all(row.shares is None for row in rows):
        return 0
    bar = (room - max(len(row.told) for row in rows)) // 2 - 1
    return min(bar, _WIDEST_BAR) if bar >= _LEAST_BAR else 0
