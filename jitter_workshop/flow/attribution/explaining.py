"""Explain a run once: millions of events take tens of seconds, so the report on them is kept beside the run.

The kept file can be computed again at any time: one that is damaged, or was made by other code, counts as missing.
"""

from __future__ import annotations

import dataclasses
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jitter_workshop import __version__, evidence
from jitter_workshop.errors import SessionError
from jitter_workshop.evidence.summary import TOP
from jitter_workshop.flow.attribution import causes, counter_report
from jitter_workshop.flow.attribution.causes import Progress, unheard
from jitter_workshop.model import evidence as types
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.evidence import CounterReport, EvidenceReport
from jitter_workshop.model.run import Run
from jitter_workshop.session import files
from jitter_workshop.session.opened import OpenSession

KEPT_FILE = "explained.json"
KEPT_STALLS = 40
"""Number of a run's worst stalls that are kept; for more, the run is explained again."""


def explained(
    session: OpenSession, run: Run, top: int = TOP, progress: Progress = unheard
) -> EvidenceReport | CounterReport:
    """Return the report of :func:`causes.explain`, computed at most once where it can be kept. Raises what that
    raises."""
    if top > KEPT_STALLS or not session.has_trace(run.id):
        return causes.explain(session, run, top, progress)
    path = session.blocks_file(run.id).with_name(KEPT_FILE)
    report = _read(path, run.id)
    if report is None:
        found = causes.explain(session, run, KEPT_STALLS, progress)
        if isinstance(found, CounterReport):
            return found
        report = found
        _keep(session, path, report)
    return dataclasses.replace(report, worst=report.worst[:top])


@cache
def made_by() -> str:
    """Return the version and a digest of the modules that decide, because they change between versions too."""
    digest = hashlib.sha256()
    modules = [Path(str(one.__file__)) for one in (causes, counter_report, types)]
    for path in sorted([*Path(str(evidence.__file__)).parent.glob("*.py"), *modules]):
        digest.update(path.read_bytes())
    return f"{__version__}-{digest.hexdigest()[:16]}"


def _read(path: Path, run_id: str) -> EvidenceReport | None:
    try:
        value: dict[str, Any] = files.read_json(path)
        if value.get("made_by") != made_by():
            return None
        report = from_plain(EvidenceReport, value.get("report"))
    except (OSError, ValueError):
        return None
    return report if report.run == run_id else None


def _keep(session: OpenSession, path: Path, report: EvidenceReport) -> None:
    if session.read_only:
        return
    try:
        files.write_whole(path, files.json_line({"made_by": made_by(), "report": to_plain(report)}))
    except SessionError:
        return  # it is computed again the next time
