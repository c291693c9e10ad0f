"""Return the report's preview as styled lines: pure functions of the words of ``presenter.report_words``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from jitter_workshop.flow.reporting.formats import Format
from jitter_workshop.model.report import Overlay, ReportDocument
from jitter_workshop.model.text import clean
from jitter_workshop.presenter import report_words as words
from jitter_workshop.presenter.lines import bar, table, wrap
from jitter_workshop.presenter.report_words import Section

_WAITING_BAR = 60
_WIDEST = 100
"""The widest line of prose, in columns: longer ones are tiring to read."""


def opening(document: ReportDocument, width: int) -> Iterator[Text]:
    """Yield the report's first lines."""
    section = words.opening(document)
    prose = min(width, _WIDEST)
    yield from wrap(Text(section.title, "bold text"), prose)
    for line in section.more:
        yield from wrap(Text(line, "dim"), prose)
    yield Text()
    for line in section.told:
        yield from wrap(Text(line, "text"), prose, " • ")
    yield Text()


def rest(document: ReportDocument, width: int) -> Iterator[Text]:
    """Yield all that comes below the charts."""
    for section in words.sections(document):
        yield from _section(section, width)


def for_others(document: ReportDocument, raw: bool, width: int) -> Iterator[Text]:
    """Yield the parts that the user may not want others to see."""
    told = words.for_others(document, raw)
    yield from _section(Section("WHAT OTHERS WILL SEE IN IT", told), width)


def _section(section: Section, width: int) -> Iterator[Text]:
    prose = min(width, _WIDEST)
    yield from wrap(Text(section.title, "bold dim"), prose)
    for line in section.told:
        yield from wrap(Text(line, "text"), prose, " • ")
    yield from table(section.rows, right=section.right, width=width)
    for line in section.more:
        yield from wrap(Text(line, "dim"), prose)
    yield Text()


def waiting(what: str, done: int, total: int, width: int) -> Iterator[Text]:
    """Yield the progress of building the report."""
    far = f": {done:,} of {total:,}" if total else ""
    yield from wrap(Text(f"{what[:1].upper()}{what[1:]}{far}. Esc stops it.", "dim"), width)
    if total:
        length = max(1, min(width, _WAITING_BAR))
        full = bar(done, total, length)
        yield Text(full, "accent").append("░" * (length - len(full)), style="faint")


def head(facts: Sequence[str], where: str, others: str, width: int) -> Iterator[Text]:
    """Yield the lines that are always in sight: the file that would be written, its folder, and the names in it."""
    line = Text(" · ".join(facts), "bold text")
    line.append(f" {where}", "not bold dim")
    yield from wrap(line, width)
    yield from wrap(Text(others, "accent"), width)


def chart_title(overlays: Sequence[Overlay], at: int, width: int) -> Iterator[Text]:
    """Yield the title of the shown chart, and what to look for in it."""
    if not overlays:
        return
    count = f" · chart {at + 1} of {len(overlays)}" if len(overlays) > 1 else ""
    title = Text(clean(overlays[at].title, 80), "bold text")
    yield from wrap(title.append(count, "not bold dim"), width)
    yield from wrap(Text(clean(overlays[at].text, 300), "dim"), min(width, _WIDEST))


def about(formats: Sequence[Format], at: int, width: int) -> Iterator[Text]:
    """Yield the formats, with the chosen one marked."""
    yield Text("WRITTEN AS", "bold dim")
    for number, one in enumerate(formats):
        lead = "▸" if number == at else " "
        yield from wrap(Text(one.about, "text"), width, f"{lead} {one.name:<7} ", " " * 10)
    yield Text()
