"""Return the course from first to last as lines of plain text."""

from __future__ import annotations

from dataclasses import replace

from jitter_workshop.flow.chapters.course_summary import CourseSummary
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.plain.views import table, wrap
from jitter_workshop.presenter import summary_words as words

_CHART_ROWS = 14


def summary_lines(summary: CourseSummary, width: int) -> list[str]:
    """Return the stack of curves, the gain of each step, the changes applied now, the open chapters and checks, and the
    results of the guesses. No line is wider than ``width`` columns (20 at least)."""
    done = f"{summary.done} of {summary.chapters} chapters done{', on a recording' if summary.recorded else ''}"
    lines = [*wrap(f"THE COURSE FROM FIRST TO LAST: {done}", width), ""]
    lines += _steps(summary, width) if summary.steps else wrap(words.NO_STEPS, width)
    for title, told in (
        ("What stands on this host now:", words.standing(summary)),
        ("Chapters still open:", words.open_chapters(summary)),
        ("What could still be better on this host:", words.open_checks(summary)),
        ("Your predictions:", words.predictions(summary)),
    ):
        lines += ["", *wrap(title, width)]
        for line in told:
            lines += wrap(line, width, "  - ", "    ")
    return lines


def _steps(summary: CourseSummary, width: int) -> list[str]:
    # The chart's library takes a tenth of a second to import: without a chart that wait is avoided.
    from jitter_workshop.plain.chart import chart_lines

    steps = summary.steps
    shown = words.drawn(steps, len(steps) - 1)
    lines = chart_lines([_numbered(steps[n].shown, n + 1) for n in shown], width, _CHART_ROWS)
    if len(shown) < len(steps):
        lines += wrap(f"Drawn: {', '.join(str(n + 1) for n in shown)} of {len(steps)}.", width)
    rows: list[tuple[str, ...]] = [words.HEAD]
    for number, step in enumerate(steps, 1):
        rows += words.rows_of(step, number)
    room = max(width - sum(max(len(row[i]) for row in rows) + 2 for i in range(1, len(words.HEAD))), 8)
    cut = [(row[0] if len(row[0]) <= room else row[0][: room - 1] + "…", *row[1:]) for row in rows]
    lines += ["", *(line[:width] for line in table(cut, right=range(1, len(words.HEAD)))), ""]
    for number, step in enumerate(steps, 1):
        lines += wrap(f"{number}: {words.about(step)}", width, "", "   ")
    for line in words.not_finished(summary):
        lines += ["", *wrap(line, width)]
    return [*lines, "", *wrap(words.NOTE, width)]


def _numbered(shown: RunCurve, number: int) -> RunCurve:
    """Return the curve with its number in the table before its label."""
    label = f"{number} {shown.label}"
    return replace(shown, label=label, curve=replace(shown.curve, label=label))
