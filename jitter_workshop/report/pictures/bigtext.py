"""Draw words in letters that are several lines high, for a projector. The letters have the shapes of the pictures'
font, and are drawn with block characters. Such a character fills some of the four quarters of a cell.
"""

from __future__ import annotations

from functools import lru_cache

from PIL import Image, ImageDraw

from jitter_workshop.report.pictures.png import font

LEAST_ROWS = 4
"""The least height of a letter, in lines of the terminal: smaller letters cannot be read."""
_QUARTERS = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"
"""The 16 characters for all combinations of filled quarters of a cell. The index is a sum: upper left 1, upper right 2,
lower left 4, lower right 8."""
_FINE = 8
"""Each quarter of a cell has this number of points along each side. The points decide if the quarter is filled."""
_FILLED = 128
"""The least average of a quarter's points, from 0 to 255, with which the quarter is filled."""
_STEM = 0.09
"""The width of a stroke of this font, as a share of a letter's height. A stroke thinner than a quarter would
disappear."""


@lru_cache(maxsize=32)
def big(text: str, width: int, rows: int) -> tuple[str, ...]:
    """Return ``text`` in letters that are several lines high, as one or two lines of words.

    The result is at most ``width`` cells wide and ``rows`` lines high in all. If there is no room for readable letters,
    return ``text`` as one plain line. ``text`` must be cleaned.
    """
    if not text.strip() or width < 8:
        return ()
    for height in range(rows, LEAST_ROWS - 1, -1):
        if _cells(text, height) <= width:
            return _drawn(text, height)
    for height in range(rows // 2, LEAST_ROWS - 1, -1):
        for first, second in _halves(text):
            if max(_cells(first, height), _cells(second, height)) <= width:
                return (*_drawn(first, height), *_drawn(second, height))
    return (text if len(text) <= width else text[: width - 1] + "…",)


def _halves(text: str) -> list[tuple[str, str]]:
    """Return all ways to break a text between two words, as (first line, second line). The pair whose lines are most
    similar in length comes first.
    """
    words = text.split()
    broken = [(" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words))]
    return sorted(broken, key=lambda two: abs(len(two[0]) - len(two[1])))


def _cells(text: str, rows: int) -> int:
    # A cell is twice as high as wide.
    return int(-(-font(2 * rows * _FINE).getlength(text) // _FINE)) + 1


def _drawn(text: str, rows: int) -> tuple[str, ...]:
    """Return the text drawn in ``rows`` lines of the terminal. The height is enough for tall letters (such as H) and
    for descenders (as in g).
    """
    face = font(2 * rows * _FINE)
    ascent, descent = face.getmetrics()
    fine = Image.new("L", (_cells(text, rows) * _FINE, ascent + descent))
    bolder = max(round((1.25 * _FINE - _STEM * 2 * rows * _FINE) / 2), 0)
    ImageDraw.Draw(fine).text((bolder, 0), text, 255, face, stroke_width=bolder)
    # The height is that of the whole alphabet, so that two lines of the same size have the same height.
    top, bottom = face.getbbox("Hgjl|")[1], face.getbbox("Hgjl|")[3]
    fine = fine.crop((0, round(top), fine.width, round(bottom)))
    sheet = fine.resize((2 * (fine.width // _FINE), 2 * rows), Image.Resampling.BOX)
    filled = [point >= _FILLED for point in sheet.tobytes()]
    found = []
    for y in range(0, sheet.height, 2):
        upper, lower = y * sheet.width, (y + 1) * sheet.width
        line = ""
        for x in range(0, sheet.width, 2):
            quarters = (filled[upper + x], filled[upper + x + 1], filled[lower + x], filled[lower + x + 1])
            line += _QUARTERS[sum(1 << place for place, full in enumerate(quarters) if full)]
        found.append(line.rstrip())
    return tuple(found)
