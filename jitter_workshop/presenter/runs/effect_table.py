"""Show the figures and causes of two runs as a table, and choose the causes that have a row."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jitter_workshop.flow.chapters.judging import neither_is_better
from jitter_workshop.flow.measuring.known_reason import LEAST_SHARE, LEAST_TOLD
from jitter_workshop.model.effect import RUN_HEADS, CauseTime, Effect, Relation
from jitter_workshop.model.text import ID, clean, many
from jitter_workshop.presenter.text.lines import Lines, column_sizes, table_lines, wrap
from jitter_workshop.stats.effect import ALIKE, MOVED
from jitter_workshop.stats.figures import FIGURES, KnownRun
from jitter_workshop.stats.scale import difference_told, nice_ns

_ROW_STYLES = {"better": "good", "worse": "bad", "same": "bold"}
"""The style of a table's row with a clear change. A cause is neither better nor worse, so it has no colour."""
_BETWEEN_COLUMNS = 2
_WIDEST_HEAD = 11
"""The most characters of a run's name above a column."""
_ONLY_TWO = "THESE TWO RUNS: "
_SUMMED = "Each cause is summed over the threads, so it can take more time than all stalls together."
_BY_CAUSE = "TIME BY CAUSE, PER SECOND"
MOST_CAUSES = 3
"""The most causes below a lesson. The key t shows all."""
_NEARLY_NONE = 1_000
"""The factor between two times from which the smaller one is called almost none."""
OWN_NOISE = "the chapter's noise"
"""The words for the load that a chapter makes beside its runs."""
NOISE_IN_CELL = "the noise"
"""The same in a cell with little room."""
OF_A_CHANGE = ("before", "after")
"""The words for the two runs in a table and in a sentence on a cause, if the second run was made after a change."""


def both_times(cause: CauseTime) -> list[str]:
    """Return a cause's times of each second in two runs, as ``4.2 ms``, or ``<4.2 ms`` for a time that is at most
    known."""
    return [f"{'<' if most else ''}{of_a_second(ns)}" for ns, most in zip(cause.ns, cause.at_most, strict=True)]


def of_a_second(ns: float) -> str:
    """Return a time of each second, in ns, in words: ``4.2 ms``, or ``0`` below 1 ns."""
    return nice_ns(round(ns)) if ns >= 1 else "0"


def two_run_table(
    found: Sequence[Effect],
    width: int,
    origin: str = "",
    relation: Relation = "changed",
    causes: Sequence[CauseTime] = (),
    *,
    undecided: bool = False,
    runs: Sequence[KnownRun] = (),
    judged: bool = True,
    caused: Collection[str] | None = None,
) -> Lines:
    """Return a table of two runs. Its rows are the chapter's figure, the times of the causes, and the counts. Times and
    counts are per second. ``origin``: a word for runs of another machine. ``relation``: with ``changed``, the columns
    are called before and after, or by the names of the runs if neither can be better (``neither_is_better``). Rows with
    a clear change are then bold, or coloured if they are better or worse. Such a row also says so in words, if all
    these words have room. ``causes``: the causes whose times are shown; () for no times. The load that the chapter made
    is called its own. ``undecided``: True if a proof of the change cannot tell. The table then says that it is about
    these two runs. ``judged``: False if the verdict calls the second run neither better nor worse, or only perhaps:
    no row then does. ``caused``: the names of the counts on which the chapter's change acts. Another count of a cause,
    and a cause on which it does not act, is never bold, because the change cannot be the reason. None if they are not
    known. ``runs``: the two runs; () if they are not known. A line below the table says why a cause took
    more time than all stalls, if one did.
    """
    if not found and not causes:
        return []
    apart = neither_is_better(runs)
    which = columns_of(relation, runs, undecided=undecided)
    lead = f"{origin.upper()} " if origin else ""
    rows, styles, words = list[list[str]](), list[str](), list[str]()

    def head(title: str) -> None:
        words.append("")
        title = f"{lead}{_ONLY_TWO if undecided and not rows else ''}{title}"
        rows.append([title, *(which if not rows else ("", "")), ""])
        styles.append("dim")

    def rows_of(effects: Sequence[Effect]) -> None:
        for e in effects:
            absent = which[1 if e.values[1].split()[0] == "0" else 0]
            told = none_in(absent) if e.at_least else difference_told(e.factor, e.how)
            rows.append([e.name, *(v.removesuffix(" a second") for v in e.values), told if e.factor >= ALIKE else ""])
            direction = e.direction if judged and not apart else "same"
            # Beside different noises, only the chapter's figure and the stalls are of interest.
            clear = e.factor >= MOVED and relation == "changed" and not (apart and e.sort == "cause")
            if e.sort == "cause" and caused is not None and e.name not in caused:
                clear = False
            styles.append(_ROW_STYLES[direction] if clear else "")
            words.append(f", {e.direction}" if styles[-1] in ("good", "bad") and not e.doubtful else "")

    # A chapter may be about a latency or a frequency, which is no count.
    rates = [e for e in found if e.values[1].endswith(" a second")]
    if others := [e for e in found if e not in rates]:
        head(f"THE CHAPTER'S FIGURE{'S' if len(others) > 1 else ''}")
        rows_of(others)
    if causes:
        head(_BY_CAUSE)
    for cause in causes:
        factor = max(cause.ns) / max(min(cause.ns), 1.0)
        own = f" ({OWN_NOISE})" if cause.own_load else ""
        rows.append([f"{cause.label}{own}", *both_times(cause), _times_in_time(cause, factor, which)])
        clear = factor >= MOVED and cause.known and cause.treated and relation == "changed"
        styles.append("bold" if clear else "")
        words.append("")
    if rates:
        head("COUNTS, PER SECOND")
        rows_of(rates)
    worded = [[*row[:-1], f"{row[-1]}{word}"] for row, word in zip(rows, words, strict=True)]
    sizes = column_sizes(worded)
    fits = sum(sizes) + _BETWEEN_COLUMNS * (len(sizes) - 1) <= width
    lines = table_lines(worded if fits else rows, width, right=(1, 2), gap=_BETWEEN_COLUMNS)
    for line, style in zip(lines, styles, strict=True):
        if style:
            line.stylize(style)
    return [*lines, *(wrap(_SUMMED, width, style="dim") if _overlapping(causes, runs) else [])]


def columns_of(relation: Relation, runs: Sequence[KnownRun], *, undecided: bool) -> tuple[str, str]:
    """Return the words above the columns of the two runs. Two kinds of run have no before and after, so their names
    stand there, if these are different and have room."""
    if relation != "changed" or undecided:
        return RUN_HEADS[:2]
    if not neither_is_better(runs):
        return OF_A_CHANGE
    first, second = (clean(seen.run.label, ID) for seen in runs)
    named = first != second and all(0 < len(name) <= _WIDEST_HEAD for name in (first, second))
    return (first, second) if named else RUN_HEADS[:2]


def none_in(which: str) -> str:
    """Return the words for a run without an event. ``which``: the head of the run's column."""
    return f"none {in_run(which)}"


def in_run(which: str) -> str:
    """Return the words that place an event in a run: ``after``, ``in run 2`` or ``in 'far'``. ``which``: the head of
    the run's column."""
    if which in OF_A_CHANGE:
        return which
    return f"in {which}" if which in RUN_HEADS else f"in '{which}'"


def less_or_more(before: float, after: float, which: tuple[str, str]) -> str:
    """Return the difference between two times, in words for a cell. One of them is below 1 ns, or so much smaller that
    a factor would say nothing: then the words name the run that had none, or almost none. ``which``: the column heads
    of the two runs."""
    smaller = in_run(which[1 if after < before else 0])
    if min(before, after) < 1:
        return f"none {smaller}"
    factor = max(before, after) / min(before, after)
    if factor >= _NEARLY_NONE:
        return f"almost none {smaller}"
    return difference_told(factor, "less" if after < before else "more")


def _overlapping(causes: Sequence[CauseTime], runs: Sequence[KnownRun]) -> bool:
    """Return True if a cause took more time in a run than all its stalls. Stalls of two threads can overlap. The time
    of a cause adds both up, and the time in stalls has the overlap once."""
    stalled = [FIGURES["stalled"].of(seen) for seen in runs]
    return any(
        whole is not None and one.ns[run] > whole and not one.at_most[run]
        for one in causes
        for run, whole in enumerate(stalled)
    )


def _times_in_time(cause: CauseTime, factor: float, which: tuple[str, str]) -> str:
    """Return the factor between a cause's times in two runs, in words for a cell. Return "" if the times are nearly
    equal or not known. ``which``: the column heads of the two runs."""
    before, after = cause.ns
    if factor < ALIKE or not cause.known:
        return ""
    told = less_or_more(before, after, which)
    return f">{told}" if any(cause.at_most) and told[0].isdigit() else told


def causes_with_row(
    causes: Sequence[CauseTime], most: int | None = None, named: Collection[str] = ()
) -> list[CauseTime]:
    """Return the causes that get a row in the table, at most ``most``. If there are more causes, those that the
    chapter's change acts on are taken first, then the largest of the other causes. ``named``: the labels of causes
    that a sentence beside the table names (``presenter.runs.effect.named_causes``). These and the largest cause always
    get a row. The last row has the sum of all causes without one,
    if it is not small.
    """
    largest = max(causes, key=lambda one: max(one.ns), default=None)
    whole = [sum(one.ns[run] for one in causes) for run in (0, 1)]
    alone = sum(one.counted for one in causes) == 1

    def shown(one: CauseTime) -> bool:
        if one.label in named or one is largest:
            return True
        if not one.known and not alone:
            return False
        share = max(ns / total for ns, total in zip(one.ns, whole, strict=True) if total) if any(whole) else 0.0
        return share >= LEAST_TOLD or ((one.treated or one.counted) and max(one.ns) >= 1)

    found = [one for one in causes if shown(one)]
    if most is not None and len(found) > most:
        must = sum(one.label in named or one is largest for one in found)
        ranked = sorted(found, key=lambda one: (one.label not in named and one is not largest, not one.treated))
        chosen = ranked[: max(most, must)]
        found = [one for one in found if one in chosen]
    return [*found, *_rest([one for one in causes if one not in found], whole)]


def few_causes(
    causes: Sequence[CauseTime], above: Collection[str] = (), named: Collection[str] = ()
) -> list[CauseTime]:
    """Return the causes for a page that shows the others at a key: those with at least LEAST_SHARE of the time of
    either run, at most MOST_CAUSES of them. The largest cause on which the chapter's change acts is one of them, and
    comes first. ``above``: the labels of causes that have a row elsewhere on the page. ``named``: those of causes on
    which a verdict rests, which are never left out."""
    whole = [sum(one.ns[run] for one in causes) for run in (0, 1)]

    def large(one: CauseTime) -> bool:
        return one.known and any(total and ns >= LEAST_SHARE * total for ns, total in zip(one.ns, whole, strict=True))

    rest = [one for one in causes if one.label not in above]
    treated = [one for one in rest if one.treated and one.known and max(one.ns) >= 1]
    own = max(treated, key=lambda one: max(one.ns), default=None)
    found = [one for one in rest if one.label in named or one is own or large(one)]
    ranked = sorted(found, key=lambda one: (one.label not in named, one is not own, -max(one.ns)))[:MOST_CAUSES]
    return sorted((one for one in found if one in ranked), key=lambda one: one is not own)


def _rest(causes: Sequence[CauseTime], whole: Sequence[float]) -> list[CauseTime]:
    """Return the causes without a row as one cause; [] if they took less than LEAST_TOLD of the time in each run.
    ``whole``: the time of all causes in both runs."""
    ns = sum(one.ns[0] for one in causes), sum(one.ns[1] for one in causes)
    if all(part < max(LEAST_TOLD * total, 1) for part, total in zip(ns, whole, strict=True)):
        return []
    most = any(one.at_most[0] for one in causes), any(one.at_most[1] for one in causes)
    return [CauseTime(many(len(causes), "other cause"), ns, most, named=False)]
