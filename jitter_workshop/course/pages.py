"""Cuts a lesson's Markdown into pages, one a step, and refuses what could act instead of being read."""

from __future__ import annotations

import re

from jitter_workshop.course.files import SourceText
from jitter_workshop.course.problems import Problems, nearest
from jitter_workshop.model.course import STEPS

MAX_PAGE_LINES = 60

_FENCE = re.compile(r"^\s{0,3}(```+|~~~+)")
_HEADING = re.compile(r"^##\s+(.*?)\s*#*\s*$")
_LINK = re.compile(r"\]\(\s*<?([^)>\s]*)")
_REFERENCE = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?([^>\s]+)")
_HTML = re.compile(r"<(?:[A-Za-z/!?][^>]*)>")
_AUTOLINK = re.compile(r"<https?://[^\s<>]+>")
_CODE_SPAN = re.compile(r"(`+)(?:(?!\1).)+?\1")


def read_pages(source: SourceText, problems: Problems) -> tuple[dict[str, str], dict[str, int]]:
    """Step → Markdown, and step → the line of its heading.

    ``## step`` begins a page; before the first one only blank lines and one ``# Title`` may stand. Headings in fenced
    code are code.
    """
    pages: dict[str, list[str]] = {}
    starts: dict[str, int] = {}
    current: list[str] | None = None
    fence = ""
    fence_line = 0
    for number, line in enumerate(source.text.split("\n"), start=1):
        if (mark := _FENCE.match(line)) and (not fence or mark.group(1).startswith(fence)):
            fence, fence_line = ("", 0) if fence else (mark.group(1), number)
        elif not fence and (heading := _HEADING.match(line)):
            current = _begin(source, number, heading.group(1), pages, starts, problems)
            continue
        elif not fence:
            _check_markup(source, number, line, problems)
        if current is not None:
            current.append(line)
        elif line.strip() and not line.startswith("# "):
            problems.add(source.file, number, "text before the first page; a page begins with `## step`")
            current = []
    if fence:
        problems.add(source.file, fence_line, "a code block that is never closed")
    for step, lines in pages.items():
        if len(lines) > MAX_PAGE_LINES:
            problems.add(source.file, starts[step], f"the page {step!r} is longer than {MAX_PAGE_LINES} lines")
    return {step: "\n".join(lines).strip() for step, lines in pages.items()}, starts


def _begin(
    source: SourceText,
    number: int,
    title: str,
    pages: dict[str, list[str]],
    starts: dict[str, int],
    problems: Problems,
) -> list[str]:
    step = title.strip().lower()
    if step not in STEPS:
        problems.add(source.file, number, f"unknown step {step[:40]!r}{nearest(step[:40], STEPS)}")
        return []
    if step in pages:
        problems.add(source.file, number, f"a second page for {step!r}; the first is on line {starts[step]}")
        return []
    pages[step] = []
    starts[step] = number
    return pages[step]


def _check_markup(source: SourceText, number: int, line: str, problems: Problems) -> None:
    """Links lead to the web or nowhere; pictures and HTML have no place in a terminal."""
    plain = _CODE_SPAN.sub("", line)
    if "![" in plain:
        problems.add(source.file, number, "a picture; a page is text")
    for target in (*_LINK.findall(plain), *_REFERENCE.findall(plain)):
        if not target.startswith(("https://", "http://")):
            problems.add(source.file, number, f"a link must begin with https:// or http://, not {target[:40]!r}")
    if _HTML.search(_AUTOLINK.sub("", plain)):
        problems.add(source.file, number, "an HTML tag; write it in `backticks` if it is meant to be seen")
