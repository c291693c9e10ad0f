"""Cut a lesson's Markdown into pages, one per step, and refuse markup that could act instead of being read."""

from __future__ import annotations

import re
from pathlib import Path

from jitter_workshop.course.files import Problems, SourceText, nearest
from jitter_workshop.model.course import STEPS
from jitter_workshop.model.fences import Kind, split_code

MAX_PAGE_LINES = 60

_WEB = re.compile(r"https?://[^/?#:@]")
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\#?]")
_FENCE_LIKE = re.compile(r"\s*(?:(?:[>*+-]|\d{1,9}[.)])\s*)*(?:```|~~~)")
_HEADING = re.compile(r"^##\s+(.*?)\s*#*\s*$")
_LEAD = re.compile(r"^\s*(?:(?:>|(?:[*+-]|\d{1,9}[.)])(?=\s))\s*)*")
"""The marks of quotes and lists; after them a line begins anew."""
_LINK = re.compile(r"\]\(\s*<?([^)>\s]*)")
_REFERENCE = re.compile(r"^\[[^\]]+\]:\s*<?([^>\s]+)", re.MULTILINE)
_HTML = re.compile(r"<[A-Za-z/!?][^>]*>|^<[A-Za-z/!?]", re.MULTILINE)
_AUTOLINK = re.compile(r"<https?://[^\s<>]+>")
_ESCAPED_OR_CODE = re.compile(r"\\[^\n]|(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)


def read_pages(
    source: SourceText, problems: Problems, folder: Path | None = None
) -> tuple[dict[str, str], dict[str, int]]:
    """Return step → Markdown, and step → the line of its heading.

    ``## step`` begins a page. Before the first one only blank lines and one ``# Title`` may stand. Headings in fenced
    code are code. ``folder``: the chapter's own; links that are no web addresses must lead to a file in it.
    """
    pages: dict[str, list[str]] = {}
    starts: dict[str, int] = {}
    current: list[str] | None = None
    markup = _Markup(source.file, 1, problems, folder)
    for number, (line, kind) in enumerate(split_code(source.text.split("\n")), start=1):
        heading = _HEADING.match(line) if kind == "text" else None
        markup.take(number, "" if heading else line, kind)
        if heading:
            step, current = heading.group(1).lower(), []
            if step not in STEPS:
                problems.add(source.file, number, f"unknown step {step[:40]!r}{nearest(step[:40], STEPS)}")
            elif step in pages:
                message = f"a second page for {step!r}; the first is on line {starts[step]}"
                problems.add(source.file, number, message)
            else:
                pages[step], starts[step] = current, number
        elif current is not None:
            current.append(line)
        elif line.strip() and not line.startswith("# "):
            problems.add(source.file, number, "text before the first page; a page begins with `## step`")
            current = []
    markup.end()
    for step, lines in pages.items():
        if len(lines) > MAX_PAGE_LINES:
            problems.add(source.file, starts[step], f"the page {step!r} is longer than {MAX_PAGE_LINES} lines")
    return {step: "\n".join(lines).strip() for step, lines in pages.items()}, starts


def check_text(file: str, line: int, text: str, problems: Problems, folder: Path | None = None) -> None:
    """Check Markdown that is added to a page by the same rules; ``line`` is where it begins in ``file``."""
    markup = _Markup(file, line, problems, folder)
    for number, (part, kind) in enumerate(split_code(text.split("\n")), start=line):
        markup.take(number, part, kind)
    markup.end()


class _Markup:
    """Check links and markup. Links lead to the web, into the chapter's folder or nowhere; pictures and HTML have no
    place in a terminal. The text between two blank lines is checked as a whole: a tag or a link may go on in the next
    line."""

    def __init__(self, file: str, line: int, problems: Problems, folder: Path | None) -> None:
        self._file = file
        self._problems = problems
        self._folder = folder
        self._block: list[str] = []
        self._first = line
        self._open = 0

    def take(self, number: int, line: str, kind: Kind) -> None:
        if kind == "fence":
            self._open = 0 if self._open else number
        if kind == "text" and line.strip():
            if _FENCE_LIKE.match(line):
                message = "a code block begins with ``` at the start of its line, with at most a word behind it"
                self._problems.add(self._file, number, message)
            self._first = self._first if self._block else number
            self._block.append(line[_LEAD.match(line).end() :])  # type: ignore[union-attr]  # it also matches an empty text
        else:
            self._check()

    def end(self) -> None:
        self._check()
        if self._open:
            self._problems.add(self._file, self._open, "a code block that is never closed")

    def _check(self) -> None:
        # Removed text keeps its line ends, so that a later mistake keeps its line number.
        plain = _ESCAPED_OR_CODE.sub(_line_ends, "\n".join(self._block))
        self._block = []
        if (at := plain.find("![")) >= 0:
            self._wrong(plain, at, "a picture; a page is text")
        for found in (*_LINK.finditer(plain), *_REFERENCE.finditer(plain)):
            target = found[1]
            if wrong := "" if _WEB.match(target) else _wrong_link(target, self._folder):
                beside = "a link must begin with https:// or http://, or name a file beside it"
                self._wrong(plain, found.start(1), f"{beside}: {wrong}")
        if tag := _HTML.search(_AUTOLINK.sub("", plain)):
            self._wrong(plain, tag.start(), "an HTML tag; write it in `backticks` if it is meant to be seen")

    def _wrong(self, plain: str, at: int, message: str) -> None:
        self._problems.add(self._file, self._first + plain.count("\n", 0, at), message)


def _line_ends(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _wrong_link(target: str, folder: Path | None) -> str:
    """Return the fault of a link that is no web address, "" for none."""
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
