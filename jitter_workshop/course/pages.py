"""Cuts a lesson's Markdown into pages, one a step, and refuses what could act instead of being read."""

from __future__ import annotations

import re
from pathlib import Path

from jitter_workshop.course.files import SourceText
from jitter_workshop.course.problems import Problems, nearest
from jitter_workshop.model.course import STEPS

MAX_PAGE_LINES = 60

_WEB = re.compile(r"https?://[^/?#:@]")
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\#?]")
_FENCE = re.compile(r"^\s{0,3}(```+|~~~+)")
_HEADING = re.compile(r"^##\s+(.*?)\s*#*\s*$")
_LINK = re.compile(r"\]\(\s*<?([^)>\s]*)")
_REFERENCE = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?([^>\s]+)")
_HTML = re.compile(r"<(?:[A-Za-z/!?][^>]*)>")
_AUTOLINK = re.compile(r"<https?://[^\s<>]+>")
_CODE_SPAN = re.compile(r"(`+)(?:(?!\1).)+?\1")


def read_pages(
    source: SourceText, problems: Problems, folder: Path | None = None
) -> tuple[dict[str, str], dict[str, int]]:
    """Step → Markdown, and step → the line of its heading.

    ``## step`` begins a page; before the first one only blank lines and one ``# Title`` may stand. Headings in fenced
    code are code. ``folder``: the chapter's own, in which links that are no web addresses have to lead to a file.
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
            _check_markup(source.file, number, line, problems, folder)
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


def check_text(file: str, line: int, text: str, problems: Problems, folder: Path | None = None) -> None:
    """The same rules for Markdown that is added to a page; ``line`` is where it begins in ``file``."""
    fence = ""
    fence_line = line
    for number, part in enumerate(text.split("\n"), start=line):
        if (mark := _FENCE.match(part)) and (not fence or mark.group(1).startswith(fence)):
            fence, fence_line = ("", line) if fence else (mark.group(1), number)
        elif not fence:
            _check_markup(file, number, part, problems, folder)
    if fence:
        problems.add(file, fence_line, "a code block that is never closed")


def _check_markup(file: str, number: int, line: str, problems: Problems, folder: Path | None) -> None:
    """Links lead to the web, into the chapter's folder or nowhere; pictures and HTML have no place in a terminal."""
    plain = _CODE_SPAN.sub("", line)
    if "![" in plain:
        problems.add(file, number, "a picture; a page is text")
    for target in (*_LINK.findall(plain), *_REFERENCE.findall(plain)):
        wrong = "" if _WEB.match(target) else _wrong_link(target, folder)
        if wrong:
            problems.add(file, number, f"a link must begin with https:// or http://, or name a file beside it: {wrong}")
    if _HTML.search(_AUTOLINK.sub("", plain)):
        problems.add(file, number, "an HTML tag; write it in `backticks` if it is meant to be seen")


def _wrong_link(target: str, folder: Path | None) -> str:
    """What is wrong with a link that is no web address, "" for nothing."""
    shown = repr(target[:40])
    if folder is None or not target or _ELSEWHERE.match(target):
        return f"not {shown}"
    try:
        place, own = (folder / target).resolve(), folder.resolve()
        if not place.is_relative_to(own):
            return f"{shown} lies outside the chapter's folder"
        return "" if place.is_file() else f"there is no {shown} in the chapter's folder"
    except (OSError, RuntimeError, ValueError):
        return f"{shown} cannot be found"
