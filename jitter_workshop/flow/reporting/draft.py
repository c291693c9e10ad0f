"""Prepare a report before it is written. The report is built once, and can then be shown in any format, with or without
private names. ``flow.reporting.files`` writes the files.
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
from jitter_workshop.flow.reporting.anonymizer import anonymize_report, runs_for_others
from jitter_workshop.flow.reporting.build import build_report
from jitter_workshop.flow.reporting.files import default_name, free
from jitter_workshop.flow.reporting.prepare import prepare_report
from jitter_workshop.flow.reporting.subject import BuildProgress, subject_of
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.report.formats.common import Files
from jitter_workshop.session.store import OpenSession

RAW = "html"
"""The format that holds the raw data."""


@dataclass(frozen=True, slots=True)
class Format:
    """Hold one format of a report. ``about``: the purpose of the format. ``module``: the name of the module that makes
    the files. The module is imported only when it is used. ``report.formats.common`` describes the function ``files``
    of such a module.
    """

    name: str
    ending: str
    about: str
    module: str


FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format("html", ".html", "one page to give to others, with all raw data in it", "report.html"),
        Format("md", ".md", "text and files with charts, for a wiki or a pull request", "report.markdown"),
        Format("json", ".json", "every figure, for scripts", "report.formats.json_document"),
        Format("pyperf", ".pyperf.json", "for 'pyperf show' and 'pyperf compare_to'", "report.formats.pyperf"),
        Format("hlog", ".hlog", "every block's histograms, for HdrHistogram's tools", "report.formats.hlog"),
        Format("hgrm", ".hgrm", "percentile distributions, for HdrHistogram's plotters", "report.formats.hgrm"),
        Format("perfetto", ".pftrace", "each traced run as tracks, for ui.perfetto.dev", "flow.reporting.perfetto"),
    )
}


@dataclass(slots=True)
class Draft:
    """Hold a report that is not written yet. ``document``: the report with all names. ``host``: the name of the host
    that makes the report. The name of this host counts as a private name."""

    session: OpenSession
    host: str
    document: ReportDocument
    _hidden: ReportDocument | None = None

    @classmethod
    def of(cls, workshop: Workshop, progress: BuildProgress = unheard) -> Draft:
        """Return the draft of a workshop's report. This takes a second for 500 runs, and longer if traces have to be
        explained. Raise the errors of ``subject_of``, ``prepare_report`` and ``build_report``.
        """
        document = build_report(prepare_report(subject_of(workshop, progress=progress)))
        return cls(workshop.context.handle, workshop.context.host.name, document)

    def shown(self, private: bool) -> ReportDocument:
        """Return the report. ``private``: True returns the report without private names."""
        if not private:
            return self.document
        if self._hidden is None:
            self._hidden = anonymize_report(self.document, self.host)
        return self._hidden

    def files(self, chosen: Format, private: bool, name: str) -> Files:
        """Return file name → content for all files of the report in one format. ``name``: the name of the first file.
        Raise WorkshopError if the report cannot be written in this format."""
        told = {run.id for run in self.document.runs}
        runs = tuple(run for run in self.session.runs() if run.id in told)
        runs = runs_for_others(self.document, runs) if private else runs
        writer = import_module(f"jitter_workshop.{chosen.module}")
        made: Files = writer.files(self.shown(private), self.session, runs, name)
        return made

    def path(self, chosen: Format, private: bool, folder: Path) -> Path:
        """Return the path of a new file for the report in the folder."""
        return free(folder / default_name(self.shown(private), chosen.ending))


def report_folders() -> tuple[Path, ...]:
    """Return existing folders for a report, the best first: working directory, the user's documents, home. Folders that
    this process cannot write come last."""
    found: dict[Path, None] = {}
    for one in (Path.cwd, paths.documents_dir, Path.home):
        # The working directory may be deleted, and a user may have no home.
        with contextlib.suppress(OSError, RuntimeError):
            folder = one()
            if folder is not None and folder.is_dir():
                found[folder] = None
    return tuple(sorted(found, key=lambda folder: not os.access(folder, os.W_OK | os.X_OK)))


def opened_with(path: Path, host: str) -> tuple[str, str]:
    """Return two shell commands. The first command shows a file on this machine. The second command copies the file to
    another machine."""
    return f"xdg-open {shlex.quote(str(path))}", f"scp {shlex.quote(f'{host}:{path}')} ."
