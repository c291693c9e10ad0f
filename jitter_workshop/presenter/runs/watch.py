"""Show what a watch saw: the watched time, the rates of stalls, the causes, and the worst stalls. Each rate has the
limits of its confidence interval (95 %).
"""

from __future__ import annotations

from collections.abc import Iterator

from jitter_workshop.flow.watching.tally import evidence_of, time_not_watched
from jitter_workshop.flow.watching.verdicts import GOOD, NONE, Verified
from jitter_workshop.model.text import ID, LINE, REASON, SENTENCE, SHORT, called, clean, cleaned_sentence, many
from jitter_workshop.model.watch import STEAL, KeptStall, WatchReport
from jitter_workshop.presenter.runs.causes import IN_FULL, WIDEST, WORST_STALLS, cause_table, stall_line, stall_page
from jitter_workshop.presenter.text.lines import Lines, small_title, table_lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.cause_words import BRIEF, cause_words
from jitter_workshop.stats.acceptance import ACCEPTED
from jitter_workshop.stats.scale import nice_duration, nice_ns, nice_number

SHOWN = 10
"""The most stalls that are shown; the JSON has all that are kept."""
_REASONS = {STEAL: "taken by the hypervisor"}
"""Reason why a time was not watched → its text on the page; other reasons are shown as they are."""


def watch_page(report: WatchReport, width: int) -> Lines:
    """Return the page at the end of a watch."""
    width = min(width, WIDEST)
    what = called(report.watching, ID) + (f" (pid {report.pid})" if report.pid is not None else "")
    where = f" on CPU {report.cpu}" if report.cpu is not None else ""
    lines = [Text(clean(f"Watch · {what}{where}", width), "bold")]
    lines += wrap(_time(report), width, style="dim")
    if report.verdict is not None or report.reason:
        style = "good" if report.verdict == ACCEPTED else "bad"
        said = (report.verdict or "no verdict").capitalize()
        lines += wrap(f"{said}: {clean(report.reason, SENTENCE)}.", width, style=style)
    for note in report.notes.values():
        lines += wrap(cleaned_sentence(clean(note, SENTENCE)), width, "▲ ", style="bad")
    lines += [Text(), *_rates(report, width)]
    if report.causes is not None:
        lines += [Text(), *cause_table(evidence_of(report), width)]
    if report.kept:
        lines += [Text(), small_title(WORST_STALLS)]
    for number, stall in enumerate(report.kept[:SHOWN], 1):
        lines += [Text()] if number <= IN_FULL + 1 else []
        lines += list(_stall(number, stall, width))
    return lines


def watch_progress_line(report: WatchReport) -> str:
    """Return the line that is shown while a watch goes on."""
    seen = many(report.stalls, "stall")
    worst = ""
    if report.kept:
        stall = report.kept[0]
        cause = cause_words(stall.parts[0].kind, stall.parts[0].name, BRIEF) if stall.parts else "cause not known"
        worst = f" · worst {nice_ns(stall.duration_ns)}: {cause}"
    return f"  watched {nice_duration(report.watched_s)} · {seen}{worst}"


def verified(found: Verified, width: int) -> Lines:
    """Return the lines on a verdict file that was verified."""
    width = min(width, WIDEST)
    style = "good" if found.accepted else "bad"
    lines = wrap(f"{(found.verdict or 'no verdict').capitalize()}: {found.accept}", width, style=f"bold {style}")
    lines += wrap(f"{found.reason}.", width, style="dim")
    if found.signature == GOOD:
        lines += wrap(f"Signed by {found.signed_by}.", width)
    elif found.signature == NONE:
        lines += wrap("Not signed: anyone may have written this file.", width)
    for problem in found.problems:
        lines += wrap(cleaned_sentence(problem), width, "▲ ", style="bad")
    return lines


def _time(report: WatchReport) -> str:
    """Return the watched time, the unwatched time, and the reasons for this gap. Also say why the watch ended."""
    lost = report.not_watched_ns
    parts = ", ".join(f"{nice_ns(ns)} {_REASONS.get(reason, reason)}" for reason, ns in lost.items() if ns)
    not_watched = f"; not watched: {nice_ns(time_not_watched(lost))} ({parts})" if parts else ""
    ended = f" It ended by {clean(report.ended_by, REASON)}." if report.ended_by else ""
    times = f"{report.freezes:,} time{'' if report.freezes == 1 else 's'}"
    reads = f" The trace was frozen and read {times}, in {nice_ns(report.frozen_ns)}." if report.freezes else ""
    return f"Watched {_long(report.watched_s)}{not_watched}.{reads}{ended}"


def _long(seconds: float) -> str:
    return nice_ns(seconds * 1e9) if seconds < 60 else nice_duration(seconds)


def _rates(report: WatchReport, width: int) -> Iterator[Text]:
    yield small_title("HOW OFTEN")
    rows = [["stalls of", "seen", "an hour", "at least", "at most (95 %)"]]
    for rate in report.rates:
        figures = (rate.per_hour, rate.per_hour_low, rate.per_hour_high)
        rows.append(
            [f"{nice_ns(rate.threshold_ns)} or longer", f"{rate.count:,}"]
            + [nice_number(one) if one is not None else "–" for one in figures]
        )
    yield from table_lines(rows, width, right=range(1, 5))
    said = "The limits are valid only if stalls are independent of each other. But stalls often come in groups."
    yield from wrap(said, width, style="dim")


def _stall(number: int, stall: KeptStall, width: int) -> Iterator[Text]:
    """Yield one stall: in full if ``number`` is at most IN_FULL, else in one line. ``number``: the stall's place in
    the list, from 1. If the stall's cause is not known, yield the stall's length and time, and the reason.
    """
    if stall.parts is None:
        said = f"{nice_ns(stall.duration_ns)} at {nice_ns(stall.at_ns)} · {clean(stall.at, SHORT)}"
        yield from wrap(
            f"{said} · cause not known: {clean(stall.why_no_parts, LINE)}", width, f"{number:>2}  ", style="dim"
        )
        return
    shown = stall.explained()
    if number <= IN_FULL:
        yield from stall_page(shown, width, f"{number:>2}  ")
        yield Text(f"    · {clean(stall.at, SHORT)}", "dim")
    else:
        yield stall_line(number, shown, False, width)
