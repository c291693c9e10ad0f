"""Return a chapter's views as lines of plain text: no colours, no escapes, as wide as the terminal up to 100
columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from jitter_workshop.flow.chapters.path import in_groups
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.measuring.run_length import reach
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.fences import split_code
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import clean
from jitter_workshop.model.walk import (
    STEP_SIGNS,
    PathEntry,
    RunCurve,
    StepView,
)
from jitter_workshop.presenter.curves import UNKNOWN, curve_rows

if TYPE_CHECKING:
    from rich.text import Text

WIDEST = 100
_BAR = 20
_MOST_CPUS = 8
_LINK = re.compile(r"(`[^`]+`)|\[([^\]]+)\]\([^)]*\)")
"""Match code, which stays as it is, or a link."""
_ITEM = re.compile(r"\s*(?:[-*+]|(?P<number>\d{1,2}[.)]))\s")
"""Match the beginning of a list item."""


def wrap(text: str, width: int, indent: str = "", hanging: str | None = None) -> list[str]:
    """Wrap one paragraph. Words that are longer than a line are broken."""
    return textwrap.wrap(
        clean(text, 4_000),
        max(width, 20),
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_on_hyphens=False,
    )


def unstyled(lines: Iterable[Text], width: int) -> list[str]:
    """Return the presenter's lines as plain text, cut at ``width`` cells."""
    return [line.plain.rstrip()[:width] for line in lines]


def prose(markdown: str, width: int) -> list[str]:
    """Return a lesson's page as lines. Emphasis marks are removed, links keep only their words, lists keep their
    hanging indent, and code blocks stay as they are."""
    lines: list[str] = []
    paragraph: list[str] = []

    def flush() -> None:
        if paragraph:
            item = _ITEM.match(paragraph[0])
            mark = "" if item is None else f"  {item['number'] or '-'} "
            words = paragraph[0] if item is None else paragraph[0][item.end() :]
            text = _unmarked(" ".join(part.strip() for part in (words, *paragraph[1:])))
            lines.extend(wrap(text, width, mark, " " * len(mark)))
            paragraph.clear()

    for raw, kind in split_code(markdown.split("\n")):
        if kind == "fence":
            flush()
        elif kind == "code":
            lines.append("    " + clean(raw, width) if raw.strip() else "")
        elif not raw.strip():
            flush()
            lines.append("")
        else:
            if _ITEM.match(raw) or raw.lstrip().startswith("#"):
                flush()
            paragraph.append(raw)
    flush()
    return lines


def _unmarked(text: str) -> str:
    plain = _LINK.sub(lambda m: m[0] if m[1] else m[2], text.lstrip("#").strip())
    return plain.replace("**", "").replace("`", "").replace("*", "")


def table(rows: Sequence[Sequence[str]], right: Iterable[int] = (), gap: int = 2) -> list[str]:
    """Return rows as aligned columns. ``right``: the columns that are aligned at the right."""
    if not rows:
        return []
    rights = set(right)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def cell(text: str, column: int) -> str:
        return text.rjust(widths[column]) if column in rights else text.ljust(widths[column])

    return [(" " * gap).join(cell(text, i) for i, text in enumerate(row)).rstrip() for row in rows]


def mark(value: bool | None) -> str:
    """Return ✓ for True, ✗ for False and · for None, which is still open."""
    return {True: "✓", False: "✗", None: "·"}[value]


_HEADINGS = {
    "here": "PATH FOR THIS HOST",
    "recording": "NOT ON THIS HOST, BUT ON A RECORDING",
    "neither": "NOT ON THIS HOST AS IT IS",
    "left_out": "NOT IN THIS CLASS",
}


def path_lines(path: Sequence[PathEntry], next_id: str | None, width: int) -> list[str]:
    """Return the chapters with their numbers, as on the home screen."""
    wide = max([24, *(len(e.title) for e in path)])
    lines = []
    for group in in_groups(path):
        here = group.state == "here"
        columns = "  setting  curve  guess" if here else ""
        lines.append(f"{_HEADINGS[group.state]:<{wide + 6}}{columns}"[:width].rstrip())
        if group.reason:
            lines += wrap(f"{clean(group.reason, 200)}:", width, "     ")
        for _, e in group.entries:
            sign = "▸" if e.chapter_id == next_id else "●" if e.done else "○"
            title = clean(e.title, wide)
            if here:
                setting = "–" if e.setting is None else "✓" if e.setting else "·"
                curve = "✓" if e.curve else "·"
                state = f"  {setting:^7}  {curve:^5}  {mark(e.guess):^5}"
            else:
                state = "" if group.reason else f"  {clean(e.reason, max(width - wide - 8, 1))}"
            lines.append(f"{e.number:>2} {sign} {title:<{wide + 1}}{state}"[:width].rstrip())
    return lines


def loop_line(chapter: Chapter, steps: Sequence[StepView], width: int) -> list[str]:
    """Return ``Pinning  look✓ predict✓ ▸MEASURE plan …``. ◌ replaces ✓ for a step that was only seen on a recording.
    Steps that the chapter leaves out are not listed."""
    parts = []
    for step in steps:
        if step.state == "now":
            parts.append(f"▸{step.name.upper()}")
        elif step.state != "left_out":
            parts.append(f"{step.name}{STEP_SIGNS.get(step.state, '')}")
    return wrap(f"{chapter.title}:  {'  '.join(parts)}", width, "", "  ")


def to_be_measured(request: MeasureRequest, runs: Sequence[Run]) -> str:
    """Describe the run that will be measured, and the percentiles that it will know."""
    noise = f", with {request.noise}" if request.noise else ""
    what = f"To be measured: '{request.label}', {request.workload}, {request.preset}{noise}."
    return f"{what} {reach(request, runs)}".rstrip()


def curve_table(curves: Sequence[RunCurve]) -> list[str]:
    """Return the numbers of the chart: a row per percentile, a column per curve; – where there are too few messages."""
    found = curve_rows(curves)
    rows = [["", *(clean(c.label, 22) + found.beside for c in curves)]]
    if any(c.curve.origin for c in curves):
        rows.append(["", *(clean(c.curve.origin, 22) + found.beside for c in curves)])
    rows += [row for row in found.rows if any(cell.strip() != UNKNOWN for cell in row[1:])]
    return ["  " + line for line in (*table(rows, right=range(1, len(curves) + 1)), *found.legend)]
