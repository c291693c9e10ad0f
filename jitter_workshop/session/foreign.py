"""Import files of other tools, to show their curves beside our own.

Each family of formats has a module: ``foreign_hlog``, ``foreign_hgrm`` and ``foreign_rt_tests``. Each of these modules
has two pure functions, ``detect(data)`` and ``parse(data, name, unit)``. ``parse`` returns runs, or raises SessionError
with the file's name and, if known, the line. The time and the memory for an import are limited. The size of a file is
checked before the file is read. The unpacked size is checked while the file is unpacked.
"""

from __future__ import annotations

import dataclasses
import errno
from collections.abc import Sequence
from pathlib import Path

from jitter_workshop.errors import SessionError
from jitter_workshop.model.curve import ImportedRun
from jitter_workshop.model.text import LABEL, PATH, WORD, clean
from jitter_workshop.session import files, foreign_hgrm, foreign_hlog, foreign_rt_tests
from jitter_workshop.session.foreign_text import UNITS

MAX_BYTES = 64 * 1024 * 1024
"""The size in bytes of the largest file that is read. A log of a day with one histogram a second is smaller."""

FORMATS = (foreign_hlog, foreign_rt_tests, foreign_hgrm)
"""The readers. Those whose formats can be detected with more certainty come first."""

_ENDINGS = (".hlog", ".hgrm", ".hist", ".json", ".txt", ".log", ".out", ".csv", ".enc", ".report")

KNOWN = (
    "this tool's own reports (HTML), HdrHistogram's .hlog and .hgrm, and the histograms of cyclictest and oslat, as "
    "text or JSON"
)


def parse_foreign_file(data: bytes, name: str, *, unit: str | None = None, label: str = "") -> tuple[ImportedRun, ...]:
    """Return the runs in the bytes of a file: one run, or one for each tag of a log. ``name``: the file's name.
    ``unit``: the user's unit of the values (ns | us | ms | s); None for the file's own unit. ``label``: the user's
    label for the runs. Raise SessionError if the unit or the format is unknown, or if the file is damaged."""
    if unit is not None and unit not in UNITS:
        raise SessionError(f"unknown unit {clean(unit, WORD)}", f"choose one of {', '.join(UNITS)}")
    shown = clean(name, PATH) or "the file"
    data = data.removeprefix(b"\xef\xbb\xbf")
    reader = next((form for form in FORMATS if form.detect(data)), None)
    if reader is None:
        what = "is empty" if not data.strip() else "has an unknown format"
        raise SessionError(f"{shown} {what}", f"import one of these: {KNOWN}")
    return _labelled(reader.parse(data, shown, unit), clean(label, LABEL), shown)


def _labelled(runs: Sequence[ImportedRun], label: str, name: str) -> tuple[ImportedRun, ...]:
    """Return the runs with labels. A single run gets the user's label, else the label in the file, else the file's
    name. If there are several runs, each label has two parts. The first part is the user's label, else the file's
    name. The second part is the run's tag.
    """
    stem = name
    while stem.lower().endswith(_ENDINGS):
        stem = stem.rpartition(".")[0]
    stem = clean(stem.strip() or name, LABEL)
    named = []
    for run in runs:
        first = label or (stem if len(runs) > 1 else run.label or stem)
        tag = f" {run.label}" if len(runs) > 1 and run.label else ""
        named.append(dataclasses.replace(run, label=clean(first + tag, LABEL), source=name))
    return tuple(named)


def content(path: Path) -> bytes:
    """Return the bytes of a file to import. Raise SessionError if the file cannot be read or is too large."""
    shown = clean(path, PATH)
    try:
        with files.open_regular(path) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        advice = "give the file that the other tool wrote" if error.errno == errno.EINVAL else "check the path"
        raise SessionError(f"cannot read {shown}: {(error.strerror or str(error)).lower()}", advice) from error
    except ValueError as error:
        raise SessionError(f"cannot read {shown}: that is not a path", "give the path of a file") from error
    if len(data) > MAX_BYTES:
        raise SessionError(f"{shown} is larger than {MAX_BYTES >> 20} MiB", "import a part of it")
    return data
