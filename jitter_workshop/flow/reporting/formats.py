"""List the formats of a report, one line each; the verb, the screen and the plain walk read this list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from jitter_workshop.errors import UsageError
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.run import Run
from jitter_workshop.session.store import OpenSession

Files = dict[str, bytes]
Make = Callable[[ReportDocument, OpenSession, Sequence[Run], str], Files]
"""Document, session, the runs that are reported, the name of the file ("" = standard output, which holds one file) →
file name → content. The first file is the named one; the others lie beside it."""


@dataclass(frozen=True, slots=True)
class Format:
    """Hold one format. ``about``: its use, in a few words. ``make`` loads its modules when it is called."""

    name: str
    ending: str
    about: str
    make: Make


def _of(module: str) -> Make:
    def make(document: ReportDocument, session: OpenSession, runs: Sequence[Run], name: str) -> Files:
        found: Files = import_module(f"jitter_workshop.report.{module}").files(document, session, runs, name)
        return found

    return make


FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format("html", ".html", "a page to hand on: all of it, with the raw data inside", _of("html")),
        Format("md", ".md", "text with charts beside it, for a wiki or a pull request", _of("markdown")),
        Format("json", ".json", "every figure, for scripts", _of("formats.json_document")),
        Format("pyperf", ".pyperf.json", "for 'pyperf show' and 'pyperf compare_to'", _of("formats.pyperf")),
        Format("hlog", ".hlog", "every block's histograms, for HdrHistogram's tools", _of("formats.hlog")),
        Format("hgrm", ".hgrm", "percentile distributions, for HdrHistogram's plotters", _of("formats.hgrm")),
    )
}


def find(name: str) -> Format:
    """Return the format of this name. Raises UsageError for an unknown one."""
    found = FORMATS.get(name)
    if found is None:
        raise UsageError(f"there is no format '{name[:20]}'", f"use {', '.join(FORMATS)}")
    return found
