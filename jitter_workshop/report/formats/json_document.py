"""Write a report as JSON, for scripts: all fields of the document (docs/report.md, assets/report.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.run import Run
from jitter_workshop.report.formats.common import Files
from jitter_workshop.session.opened import OpenSession


def files(document: ReportDocument, session: OpenSession, runs: Sequence[Run], name: str) -> Files:
    """Return one JSON file with the report. Its content comes from ``document`` alone; the other parameters are needed
    only because all formats have them.
    """
    return {name: document_as_json(document).encode("ascii")}


def document_as_json(document: ReportDocument) -> str:
    """Return the document as one JSON object, followed by a line break. Names that others chose are not cleaned,
    because JSON escapes harmful characters."""
    return json.dumps(to_plain(document), indent=1, allow_nan=False) + "\n"
