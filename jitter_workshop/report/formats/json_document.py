"""A report as JSON: the document field by field (docs/report.md, assets/report.schema.json), for scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence

from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.run import Run
from jitter_workshop.report.formats.common import Files
from jitter_workshop.session.opened import OpenSession


def files(document: ReportDocument, session: OpenSession, runs: Sequence[Run], name: str) -> Files:
    """One file; nothing but the document goes into it."""
    return {name: render(document).encode("ascii")}


def render(document: ReportDocument) -> str:
    """One object, ending with a line break. Names that others chose are as they are: JSON escapes what would harm."""
    return json.dumps(to_plain(document), indent=1, allow_nan=False) + "\n"
