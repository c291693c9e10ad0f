"""Embed a session's archive in an HTML report, and read the archive from a report.

The archive is in a comment of the page, which browsers ignore. The comment also has the archive's length and digest,
and the digest of the page around the comment. The digests are not signed. So a changed archive is found only if its
digest was not changed as well.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass

from jitter_workshop.errors import SessionError

GENERATOR = "jitter-workshop"

_LINE = 152
_START_BYTES = 1_000
"""The number of bytes at the beginning of a file that must contain the beginning of a web page."""
_HEAD_BYTES = 20_000
"""The number of bytes at the beginning of a page that are searched for the name of the program that wrote it."""
_TAIL_BYTES = 2_000
"""The number of bytes at the end of a page that must contain its closing tag."""
_OPENING = b"<!-- jitter-workshop session archive "
_COMMENT = re.compile(
    _OPENING + rb"(?P<version>[0-9]{1,6})\r?\nbytes=(?P<bytes>[0-9]{1,10}) sha256=(?P<archive>[0-9a-f]{64})\r?\n"
    rb"page-sha256=(?P<page>[0-9a-f]{64})\r?\n(?P<data>[A-Za-z0-9+/=\s]*)-->\r?\n?"
)
_GENERATED = re.compile(rb'<meta name="?generator"? content="jitter-workshop[ "]')
_UNSEEN = re.compile(rb"\A(?:\xef\xbb\xbf|[ \t\r\n]|<!--[^<>]{0,2000}-->){1,20}")
_VERSION = 2
"""The version of the form in which a report contains an archive. Reports from before the first release have version 1,
another form."""
_AGAIN = "copy the report again from its source"


@dataclass(frozen=True, slots=True)
class Embedded:
    """Hold an archive that was found in a page. ``page_as_written``: True if the rest of the page has not changed since
    it was written."""

    archive: bytes
    page_as_written: bool


def embed(page: str, archive: bytes) -> str:
    """Return the page with an archive inserted, right before the end of the page's body. Raise ValueError for a page
    without a body.
    """
    head, end, tail = page.rpartition("</body>")
    if not end:
        raise ValueError("the page has no body")
    text = base64.b64encode(archive).decode("ascii")
    lines = "\n".join(text[i : i + _LINE] for i in range(0, len(text), _LINE))
    comment = (
        f"{_OPENING.decode()}{_VERSION}\nbytes={len(archive)} sha256={hashlib.sha256(archive).hexdigest()}\n"
        f"page-sha256={_page_digest(page.encode())}\n{lines}\n-->\n"
    )
    return f"{head}{comment}{end}{tail}"


def is_page(data: bytes) -> bool:
    """Return True if a file is a web page of any origin."""
    start = data[:_START_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype html", b"<html", b"<!-- saved from url"))


def archive_in(data: bytes) -> Embedded:
    """Return the archive in a page. Raise SessionError if there is no archive, or a damaged one."""
    if data.count(_OPENING) > 1:
        raise SessionError("the report contains more than one session, so it was edited", _AGAIN)
    match = _COMMENT.search(data)
    if match is None:
        raise _why_none(data)
    if int(match["version"]) > _VERSION:
        raise SessionError("a newer version of the workshop wrote the report", "update jitter-workshop")
    if int(match["version"]) < _VERSION:
        raise SessionError(
            "a version before the first release wrote the report", "run 'jitter-workshop report' in its session again"
        )
    try:
        archive = binascii.a2b_base64(b"".join(match["data"].split()), strict_mode=True)
    except binascii.Error as error:
        raise SessionError("the session in the report is damaged (its base64 is broken)", _AGAIN) from error
    if len(archive) != int(match["bytes"]) or hashlib.sha256(archive).hexdigest().encode() != match["archive"]:
        raise SessionError("the session in the report was edited or cut: its digest does not match", _AGAIN)
    around = data[: match.start()] + data[match.end() :]
    return Embedded(archive, _page_digest(around).encode() == match["page"])


def _why_none(data: bytes) -> SessionError:
    if _OPENING in data:
        cut = b"-->" not in data[data.index(_OPENING) :]
        return SessionError(f"the session in the report {'is cut off' if cut else 'was edited'}", _AGAIN)
    if _GENERATED.search(data[:_HEAD_BYTES]) is None:
        return SessionError("the file is a web page that this tool did not write", "give a report of jitter-workshop")
    if b"</html>" not in data[-_TAIL_BYTES:]:
        return SessionError("the file is cut off", _AGAIN)
    return SessionError(
        "the report was written without raw data", "'jitter-workshop report' writes a report with raw data"
    )


def _page_digest(page: bytes) -> str:
    # A mailer or a checkout may change line ends, an editor may add a UTF-8 mark in front, and a browser that saves the
    # page adds a comment with its address. All of these are invisible on the page, so the digest ignores them.
    page = _UNSEEN.sub(b"", page, count=1)
    return hashlib.sha256(b"\n".join(page.splitlines()).strip()).hexdigest()
