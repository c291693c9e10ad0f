"""Divide lines into pages of the screen: a drawing is not cut, and the last page is not there for one or two lines."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from jitter_workshop.presenter.text.lines import Lines, is_title
from jitter_workshop.presenter.text.styled import Text

SOURCE = "Source:"
"""The beginning of the last paragraph of a lesson's page. It is faint, so it is told apart without a blank line above
it, too."""
_SHORT = 4
"""The most lines of a paragraph that stays on one page."""


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
    if they fit there, and so are a title and the line below it: blank lines fill the page before them. So is a short
    paragraph, unless that needs one page more: a page should not end with half of a sentence. A blank line
    between two paragraphs always stays. The one above a source is left out if that saves a page. A pane cannot scroll
    further than to its last line. If a drawing would then be cut at the top of the last page, so many blank lines are
    added at the end that the page begins below the drawing. No blank lines are added for a drawing higher than a page.
    """
    if rows < 1 or len(lines) <= rows:
        return list(lines), 0
    tighter = _tighter(lines)
    short = min(_SHORT, rows)
    ways = (_filled(one, rows, kept) for one in (lines, tighter) for kept in (_in_short_paragraphs(one, short), ()))
    made = min(ways, key=lambda one: -(-len(one) // rows))
    top = following = len(made) - rows
    begun = top
    while begun > 0 and made[begun].joined:
        begun -= 1
    while 0 < following < len(made) and made[following].joined:
        following += 1
    end = following - top if following - begun <= rows else 0
    return [*made, *(Text() for _ in range(end))], end


def _in_short_paragraphs(lines: Sequence[Text], most: int) -> frozenset[int]:
    """Return the indices of the lines of paragraphs of at most ``most`` lines, without the first line of each."""
    found: set[int] = set()
    begun = 0
    for at in range(len(lines) + 1):
        if at == len(lines) or not lines[at].plain.strip():
            if at - begun <= most:
                found.update(range(begun + 1, at))
            begun = at + 1
    return frozenset(found)


def _blocks(lines: Sequence[Text], kept: Container[int]) -> Iterator[Lines]:
    """Yield the lines in groups that should stay on one page. ``kept``: the indices of lines that follow the line above
    them."""
    block: Lines = []
    for at, line in enumerate(lines):
        if block and not (line.joined or at in kept or is_title(block[-1])):
            yield block
            block = []
        block.append(line)
    if block:
        yield block


def _filled(lines: Sequence[Text], rows: int, kept: Container[int]) -> Lines:
    """Return ``lines`` with blank lines before each group that would be cut by the end of a page, but fits on one. If
    a drawing fits without the blank line just above it, this is left out instead, but not above a title."""
    made: Lines = []
    for block in _blocks(lines, kept):
        left = rows - len(made) % rows
        if left < len(block) <= rows:
            one_more = len(block) - left == 1 and block[-1].joined and not is_title(block[0])
            if one_more and len(made) % rows and not made[-1].plain:
                made.pop()
            else:
                made += [Text() for _ in range(left)]
        made += block
    return made


def _tighter(lines: Sequence[Text]) -> Lines:
    """Return ``lines`` without the blank lines above a source."""
    below = [*(line.plain.startswith(SOURCE) for line in lines[1:]), False]
    return [line for line, source in zip(lines, below, strict=True) if line.plain or not source]
