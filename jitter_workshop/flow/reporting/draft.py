"""Prepare a report before it is written: built once, rendered in any format, with its names or without, for a folder
that can be written and a free name. The screen and the plain walk show it and write it."""

from __future__ import annotations

import contextlib
import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jitter_workshop import paths
from jitter_workshop.flow.reporting import files as reporting_files
from jitter_workshop.flow.reporting.anonymizer import for_others, runs_for_others
from jitter_workshop.flow.reporting.build import build
from jitter_workshop.flow.reporting.formats import FORMATS, Files, Format
from jitter_workshop.flow.reporting.subject import Progress, unheard
from jitter_workshop.model.report import ReportDocument

if TYPE_CHECKING:
    from jitter_workshop.flow.chapters.workshop import Workshop

RAW = "html"
"""The format that holds the raw data."""


@dataclass(slots=True)
class Draft:
    """Hold a report that is not written yet. ``document``: with its names."""

    workshop: Workshop
    document: ReportDocument
    _hidden: ReportDocument | None = None
    _made: dict[tuple[str, bool, str], Files] = field(default_factory=dict)

    @classmethod
    def of(cls, workshop: Workshop, progress: Progress = unheard) -> Draft:
        """Build the draft of a workshop's report. Takes a second for 500 runs, more where traces have to be explained
        first. Raises NothingToReport, SessionError, LessonError, and what ``progress`` raises."""
        return cls(workshop, build(workshop, progress=progress))

    def shown(self, private: bool) -> ReportDocument:
        """Return the document, or with ``private`` the one for others."""
        if not private:
            return self.document
        if self._hidden is None:
            self._hidden = for_others(self.document, self.workshop.host.name)
        return self._hidden

    def files(self, chosen: Format, private: bool, path: Path) -> Files:
        """Return what would be written for the file ``path``: name → content, that file first. The last answer is kept.
        Raises WorkshopError."""
        wish = (chosen.name, private, path.name)
        if wish not in self._made:
            document = self.shown(private)
            handle = self.workshop._context.handle
            told = {run.id for run in document.runs}
            runs = tuple(run for run in handle.runs() if run.id in told)
            shown = runs_for_others(self.document, runs) if private else runs
            # One at a time: a page with the raw data of a long session is megabytes.
            self._made = {wish: chosen.make(document, handle, shown, path.name)}
        return self._made[wish]

    def path(self, chosen: Format, private: bool, folder: Path) -> Path:
        """Return a path in the folder where no file is yet."""
        return reporting_files.free(folder / reporting_files.default_name(self.shown(private), chosen.ending))


def write(files: Files, folder: Path) -> tuple[Path, ...]:
    """Write a draft's files, all or none, never over one that is there; return their paths. Raises NotWritten."""
    return reporting_files.write(files, folder)


def formats() -> tuple[Format, ...]:
    """Return the formats in the order in which the screen offers them."""
    return tuple(FORMATS.values())


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
