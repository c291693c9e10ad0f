"""Prepare a report before it is written: built once, made in any format, with its names or without.

The verb, the screen and the plain walk make their files here; ``flow.reporting.files`` writes them.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from jitter_workshop import paths
from jitter_workshop.flow.attribution import unheard
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.reporting.anonymizer import for_others, runs_for_others
from jitter_workshop.flow.reporting.build import build, explain_ahead, keep_found
from jitter_workshop.flow.reporting.files import default_name, free
from jitter_workshop.flow.reporting.subject import Progress
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.report.formats.common import Files
from jitter_workshop.session.store import OpenSession

RAW = "html"
"""The format that holds the raw data."""


@dataclass(frozen=True, slots=True)
class Format:
    """Hold one format. ``about``: its use, in a few words. ``module``: in ``report``, imported when it is needed; its
    ``files`` writes (``report.formats.common`` says what each module takes and returns)."""

    name: str
    ending: str
    about: str
    module: str


FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format("html", ".html", "one page to hand on, with all raw data inside", "html"),
        Format("md", ".md", "text with charts beside it, for a wiki or a pull request", "markdown"),
        Format("json", ".json", "every figure, for scripts", "formats.json_document"),
        Format("pyperf", ".pyperf.json", "for 'pyperf show' and 'pyperf compare_to'", "formats.pyperf"),
        Format("hlog", ".hlog", "every block's histograms, for HdrHistogram's tools", "formats.hlog"),
        Format("hgrm", ".hgrm", "percentile distributions, for HdrHistogram's plotters", "formats.hgrm"),
    )
}


@dataclass(slots=True)
class Draft:
    """Hold a report that is not written yet. ``document``: with its names. ``host``: the host that it is made on, which
    its sentences may name, too."""

    session: OpenSession
    host: str
    document: ReportDocument
    _hidden: ReportDocument | None = None

    @classmethod
    def of(cls, workshop: Workshop, progress: Progress = unheard) -> Draft:
        """Build the draft of a workshop's report. Takes a second for 500 runs, more where traces have to be explained
        first. Raises NothingToReport, SessionError, LessonError, and the errors of ``progress``.
        """
        explain_ahead(workshop, progress=progress)
        document = build(workshop, progress=progress)
        keep_found(workshop.handle, workshop.root, document)
        return cls(workshop.handle, workshop.host.name, document)

    def shown(self, private: bool) -> ReportDocument:
        """Return the document, or with ``private`` the one for others."""
        if not private:
            return self.document
        if self._hidden is None:
            self._hidden = for_others(self.document, self.host)
        return self._hidden

    def files(self, chosen: Format, private: bool, name: str) -> Files:
        """Return what would be written for the file of this name: name → content, that file first. Raises
        WorkshopError."""
        told = {run.id for run in self.document.runs}
        runs = tuple(run for run in self.session.runs() if run.id in told)
        runs = runs_for_others(self.document, runs) if private else runs
        writer = import_module(f"jitter_workshop.report.{chosen.module}")
        made: Files = writer.files(self.shown(private), self.session, runs, name)
        return made

    def path(self, chosen: Format, private: bool, folder: Path) -> Path:
        """Return a path in the folder where no file is yet."""
        return free(folder / default_name(self.shown(private), chosen.ending))


def places() -> tuple[Path, ...]:
    """Return folders for a report, the best first: the working directory, the user's documents, their home. Those that
    can be written come before the others; a folder that is not there is left out."""
    found: dict[Path, None] = {}
    for one in (Path.cwd, paths.documents_dir, Path.home):
        # A working directory may be gone, a user may have no home.
        with contextlib.suppress(OSError, RuntimeError):
            folder = one()
            if folder is not None and folder.is_dir():
                found[folder] = None
    return tuple(sorted(found, key=lambda folder: not os.access(folder, os.W_OK | os.X_OK)))


def opened_with(path: Path, host: str) -> tuple[str, str]:
    """Return lines of shell that show a file: on this machine, and from another one that can reach this host."""
    return f"xdg-open {shlex.quote(str(path))}", f"scp {shlex.quote(f'{host}:{path}')} ."
