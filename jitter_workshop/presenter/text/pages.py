"""Divide lines into pages of the screen: a drawing is not cut, and the last page is not there for one or two lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jitter_workshop.presenter.text.lines import Lines, is_title
from jitter_workshop.presenter.text.styled import Text

_FEW = 2
"""The largest number of lines that get no page of their own if blank lines can be left out for them."""
_SPARE = 3
"""The largest number of further blank lines that may be left out."""
SOURCE = "Source:"
"""The beginning of the last paragraph of a lesson's page. The blank line above it is left out first."""


def kept_together(lines: Lines) -> Lines:
    """Return ``lines`` with a mark on each line but the first: no page ends between two of them. Use this for a drawing
    of several lines."""
    for line in lines[1:]:
        line.joined = True
    return lines


def sources_apart(page: Sequence[Text]) -> tuple[Lines, Lines]:
    """Return a lesson's page without its last paragraph, and this paragraph, if it names sources; else the page and
    []."""
    begins = max((at for at, line in enumerate(page) if line.plain.startswith(SOURCE)), default=len(page))
    if any(not line.plain for line in page[begins:]):
        return list(page), []
    lesson = list(page[:begins])
    while lesson and not lesson[-1].plain:
        lesson.pop()
    return lesson, list(page[begins:])


def in_pages(lines: Sequence[Text], rows: int) -> tuple[Lines, int]:
    """Divide lines into pages of ``rows`` rows. Return the lines of all pages, and how many of them are blank lines
    that were added at the end.

    Every page but the last has exactly ``rows`` lines. Lines that are marked by :func:`kept_together` are on one page
    if they fit there, and so are a title and the line below it: blank lines fill the page before them. If only a few
    lines would be left for the last page, blank lines of the text are left out to save this page. A pane cannot scroll
    further than to its last line. If a drawing would then be cut at the top of the last page, so many blank lines are
    added at the end that the page begins below the drawing. No blank lines are added for a drawing higher than a page.
    """
    if rows < 1 or len(lines) <= rows:
        return list(lines), 0
    made = _filled(lines, rows)
    over = len(made) % rows
    if 0 < over <= _FEW:
        for count in range(over, over + _SPARE + 1):
            tighter = _filled(_without_blanks(lines, count), rows)
            if len(tighter) <= len(made) - over:
                made, over = tighter, len(tighter) % rows
                break
    top = following = len(made) - rows
    begun = top
    while begun > 0 and made[begun].joined:
        begun -= 1
    while 0 < following < len(made) and made[following].joined:
        following += 1
    end = following - top if following - begun <= rows else 0
    return [*made, *(Text() for _ in range(end))], end


def _blocks(lines: Sequence[Text]) -> Iterator[Lines]:
    """Yield the lines in groups that should stay on one page."""
    block: Lines = []
    for line in lines:
        if block and not (line.joined or is_title(block[-1])):
            yield block
            block = []
        block.append(line)
    if block:
        yield block


def _filled(lines: Sequence[Text], rows: int) -> Lines:
    """Return ``lines`` with blank lines before each group that would be cut by the end of a page, but fits on one. If
    the group fits without a few blank lines of the text above it on the page, these are left out instead."""
    made: Lines = []
    for block in _blocks(lines):
        left = rows - len(made) % rows
        if left < len(block) <= rows:
            above = made[len(made) - len(made) % rows :]
            tighter = _without_blanks(above, len(block) - left)
            if len(block) - left <= _SPARE and len(tighter) + len(block) <= rows:
                made[len(made) - len(above) :] = tighter
            else:
                made += [Text() for _ in range(left)]
        made += block
    return made


def _without_blanks(lines: Sequence[Text], count: int) -> Lines:
    """Return ``lines`` without ``count`` of their blank lines, or without all if there are fewer. A blank line above a
    source is left out first, then the last ones of the text. Blank lines of a drawing stay."""
    blank = [
        at
        for at, line in enumerate(lines)
        if not line.plain and not line.joined and not (at + 1 < len(lines) and lines[at + 1].joined)
    ]
    order = sorted(blank, key=lambda at: (at + 1 == len(lines) or not lines[at + 1].plain.startswith(SOURCE), -at))
    left_out = set(order[:count])
    return [line for at, line in enumerate(lines) if at not in left_out]
