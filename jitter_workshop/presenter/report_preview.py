"""Show a report before it is written, as styled lines: its blocks in order, each shortened, and the names that the
report contains. The screen and the plain walk show these lines. The file has the full text of each block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jitter_workshop.chart.heat import plain_heat_map_lines
from jitter_workshop.chart.matrix import plain_matrix_lines
from jitter_workshop.flow.reporting.anonymizer import names_in
from jitter_workshop.flow.reporting.draft import Format
from jitter_workshop.model.report import Overlay, ReportDocument
from jitter_workshop.model.text import LABEL, LINE, MOST_NAMES, PATH, SENTENCE, SHORT, called, clean, many
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.presenter.text.lines import table_lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report import blocks, sections
from jitter_workshop.report.blocks import Inline, ReportBlock
from jitter_workshop.report.formats.common import Files
from jitter_workshop.stats import interval_plot

FOR_OTHERS = "WHAT OTHERS WILL SEE IN THE REPORT"
WHEN_LONG = "WHEN THE LONG VALUES CAME"
MOST = 12
"""The most rows of a table, items of a list and lines of shell that the preview shows. The report's file has all of
them."""
_MOST_DRAWN = 6
STRIP = 25
"""The width in cells of a verdict's picture."""
_WIDEST = 100
"""The widest line of prose, in columns: longer lines are tiring to read."""
_MATRIX_ROWS = 28
_HEAT_ROWS = 14
_ITEM = " • "


def preview_opening(document: ReportDocument, width: int) -> Iterator[Text]:
    """Yield the title, the report's first lines, and a blank line."""
    yield from _heading(clean(document.title, LINE), width, "text")
    yield from _blocks(sections.opening_blocks(document), width)
    yield Text()


def preview_sections(document: ReportDocument, width: int) -> Iterator[Text]:
    """Yield all sections of the report, but without the charts of curves: the caller draws those."""
    for section in (*sections.sections(document), sections.section_on_report(document, ())):
        heading, found = section.heading.upper(), section.blocks
        if section.id == "charts":
            heading, found = WHEN_LONG, tuple(one for one in found if isinstance(one, blocks.HeatChart) or _why(one))
        if found:
            yield from _heading(heading, width, "dim")
            yield from _blocks(found, width)
            yield Text()


def private_data_lines(document: ReportDocument, raw: bool, width: int) -> Iterator[Text]:
    """Yield a section on the private data in a report, such as names of hosts and tasks. ``raw``: True if the chosen
    format contains the raw data."""
    yield from _heading(FOR_OTHERS, width, "dim")
    yield from _items(_for_others(document, raw), width)
    yield Text()


def preview_head(facts: Sequence[str], where: str, others: str, width: int) -> Iterator[Text]:
    """Yield the lines that are always visible. ``facts``: facts about the file that would be written. ``where``: the
    folder of this file. ``others``: a sentence on the names that the file contains.
    """
    line = Text(" · ".join(facts), "bold text")
    line.append(f" {where}", "not bold dim")
    yield from wrap(line, width)
    yield from wrap(Text(others, "accent"), width)


def chart_title(overlays: Sequence[Overlay], at: int, width: int) -> Iterator[Text]:
    """Yield the title of the shown chart, and what to look for in it."""
    if not overlays:
        return
    count = f" · chart {at + 1} of {len(overlays)}" if len(overlays) > 1 else ""
    title = Text(clean(overlays[at].title), "bold text")
    yield from wrap(title.append(count, "not bold dim"), width)
    yield from wrap(Text(clean(overlays[at].text, SENTENCE), "dim"), min(width, _WIDEST))


def first_curves(overlay: Overlay) -> list[RunCurve]:
    """Return the first six curves of a chart, or fewer. More than six curves cannot be told apart."""
    return [
        RunCurve(str(number), curve.label, curve, None) for number, curve in enumerate(overlay.curves[:_MOST_DRAWN])
    ]


def format_choices(formats: Sequence[Format], chosen: Format, width: int) -> Iterator[Text]:
    """Yield a line for each format, with the chosen format marked."""
    yield Text("WRITTEN AS", "bold dim")
    longest = max(len(one.name) for one in formats)
    for one in formats:
        lead = "▸" if one is chosen else " "
        yield from wrap(Text(one.about, "text"), width, f"{lead} {one.name:<{longest}}  ")
    yield Text()


# -- blocks ------------------------------------------------------------------------------------------------------------


def _blocks(found: Iterable[ReportBlock], width: int) -> Iterator[Text]:
    prose, found = min(width, _WIDEST), list(found)
    drawn_elsewhere = [one for one in found if isinstance(one, blocks.HeatChart) and not one.worst]
    for number, one in enumerate(found):
        if isinstance(one, blocks.Subsection):
            yield from [Text()] if number else []
            yield from wrap(Text(_plain(one.heading), "bold text"), prose)
            yield from _blocks(one.blocks, width)
        elif isinstance(one, blocks.Paragraph) and one.style != "how":
            style = "dim" if one.style in ("dim", "unknown") else "text"
            yield from wrap(Text(_plain(one.text), style), prose)
        elif isinstance(one, blocks.Bullets):
            yield from _items(map(_plain, one.items), width)
        elif isinstance(one, blocks.Shell):
            yield from _items((clean(command.command, PATH) for command in one.commands), width)
        elif isinstance(one, blocks.Facts):
            for term, told in one.rows:
                yield from wrap(Text(f"{term}: {_plain(told)}", "dim"), prose)
        elif isinstance(one, blocks.HeatChart) and not one.worst:
            several = len(drawn_elsewhere) > 1
            told = f"{len(drawn_elsewhere)} more such charts" if several else one.title
            if one is drawn_elsewhere[-1]:
                yield from wrap(Text(f"In the file: {told}", "dim"), prose)
        elif isinstance(one, blocks.HeatChart):
            # The heading above has the other words of the title.
            yield from wrap(Text(clean(one.heat.label, LABEL), "bold text"), prose)
            yield from wrap(Text(one.text, "dim"), prose)
            yield from (Text(line, "text") for line in plain_heat_map_lines(one.heat, prose, _HEAT_ROWS))
        elif isinstance(one, blocks.MatrixChart):
            yield from wrap(Text(one.text, "dim"), prose)
            yield from (Text(line, "text") for line in plain_matrix_lines(one.matrix, prose, _MATRIX_ROWS))
        elif isinstance(one, blocks.Table):
            yield from _table(one, width)


def _why(one: ReportBlock) -> bool:
    """Return True for a paragraph that says why the report lacks something."""
    return isinstance(one, blocks.Paragraph) and one.style == "unknown"


def _table(one: blocks.Table, width: int) -> Iterator[Text]:
    """Yield a table with only the columns that a preview shows. For a reference table, yield only its title."""
    kept = [n for n, column in enumerate(one.columns) if column.brief]
    reference = one.most == 0 or not kept
    caption = f"In the file: {one.caption}" if reference else one.caption
    yield from wrap(Text(caption, "dim"), min(width, _WIDEST))
    if not reference:
        shown = one.rows[-MOST:] if one.latest else one.rows[:MOST]
        rows = [[_plain(one.columns[n].head) for n in kept], *([_plain(row[n]) for n in kept] for row in shown)]
        right = [at for at, n in enumerate(kept) if one.columns[n].number]
        yield from table_lines(rows, right=right, width=width)
        yield from _more(len(one.rows))


def _items(lines: Iterable[str], width: int) -> Iterator[Text]:
    found = list(lines)
    for line in found[:MOST]:
        yield from wrap(Text(line, "text"), min(width, _WIDEST), _ITEM)
    yield from _more(len(found))


def _more(count: int) -> Iterator[Text]:
    if count > MOST:
        yield Text(f"and {count - MOST:,} more in the file", "dim")


def _heading(text: str, width: int, colour: str) -> list[Text]:
    return wrap(Text(text, f"bold {colour}"), min(width, _WIDEST))


def _plain(text: Inline) -> str:
    """Return the first line of a report's text, for the preview. Parts that a report shows in a second line are left
    out."""
    if isinstance(text, str):
        return "".join(character if character.isprintable() else " " for character in text)
    if isinstance(text, tuple):
        upper, _ = blocks.lower_lines(text)
        return "".join(map(_plain, upper))
    if isinstance(text, blocks.Bar):
        return ""
    if isinstance(text, blocks.IntervalAxis):
        return interval_plot.scale(text.axis, STRIP)
    if isinstance(text, blocks.Interval):
        return interval_plot.interval_picture(interval_plot.strip(text.verdict, text.axis), text.axis, STRIP)
    return {"origin": " (", "aside": ", "}.get(text.style, "") + _plain(text.text) + ")" * (text.style == "origin")


# -- what others will see ----------------------------------------------------------------------------------------------


def _for_others(document: ReportDocument, raw: bool) -> Iterator[str]:
    found = names_in(document)
    if document.private:
        yield "Names of hosts, users and tasks, labels and paths are replaced by 'host 1', 'task 1', 'run 1', …"
        yield "The kernel's own tasks and well-known services keep their names."
    else:
        for kind, names in (("host", found.hosts), ("user", found.users), ("task", found.tasks)):
            if names:
                yield f"Names of {kind}s: {_listed([called(name, SHORT) for name in names])}."
    typed = list(dict.fromkeys(called(run.label, SHORT) for run in document.runs if run.label))
    if typed:
        yield (
            f"Exactly as you typed them: the session's name, and {many(len(typed), 'label')} of runs "
            f"({_listed(typed)})."
        )
    yield "The host: its kernel, CPU model and CPUs, and the settings and boot parameters that this tool reads."
    if raw and not document.private:
        yield f"The raw data of {many(len(document.runs), 'run')}. They also contain everything above."
    elif raw:
        yield (
            "No raw data, because raw data contain the names of hosts, users and tasks. So 'sessions import' cannot "
            "restore the session from this report."
        )


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {rest:,} more" if rest > 0 else "")


def others_in_short(document: ReportDocument, raw: bool) -> str:
    """Return :func:`private_data_lines` in one sentence, for the part of the page that is always visible."""
    if document.private:
        return "For others: names of hosts, users and tasks are replaced, and the raw data are left out."
    found = names_in(document)
    parts = [f"host {called(found.hosts[0], SHORT)}"] if len(found.hosts) == 1 else []
    parts += [many(len(found.hosts), "host name")] if len(found.hosts) > 1 else []
    parts += [many(len(found.tasks), "task name")] if found.tasks else []
    parts += [many(len(found.users), "user name")] if found.users else []
    parts += ["labels", *(["the raw data"] if raw else [])]
    return f"Others will see: {', '.join(parts[:-1])}{' and ' if parts[:-1] else ''}{parts[-1]}."


def size_of_files(files: Files) -> str:
    """Return the files' total size, and how many follow the first one: ``612 kB, and 2 files beside it``."""
    count = sum(map(len, files.values()))
    told = f"{count} bytes" if count < 1_000 else f"{count / 1_000:.0f} kB"
    told = told if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"
    return told + (f", and {many(len(files) - 1, 'file')} beside it" if len(files) > 1 else "")
