"""Words in letters of many lines, for a projector: the pictures' own font, drawn into half blocks."""

from __future__ import annotations

from PIL import Image, ImageDraw

from jitter_workshop.report.png import font

_BLOCKS = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}
_LEAST_ROWS = 4


def big(text: str, width: int, rows: int) -> list[str]:
    """``text`` on one line of letters, at most ``width`` cells wide and ``rows`` lines high; a single plain line where
    there is no room for letters that can be read. ``text``: clean already."""
    if not text.strip() or width < 8:
        return []
    for height in range(rows, _LEAST_ROWS - 1, -1):
        # A cell holds two points, one above the other.
        face = font(2 * height)
        if face.getlength(text) <= width:
            return _drawn(text, 2 * height)
    return [text if len(text) <= width else text[: width - 1] + "…"]


def _drawn(text: str, pixels: int) -> list[str]:
    face = font(pixels)
    left, top, right, bottom = (round(edge) for edge in face.getbbox(text))
    sheet = Image.new("1", (max(right - left, 1), max(bottom - top, 1) + (bottom - top) % 2))
    ImageDraw.Draw(sheet).text((-left, -top), text, 1, face)
    points = sheet.load()
    assert points is not None
    found = []
    for y in range(0, sheet.height, 2):
        below = y + 1 < sheet.height
        cells = [(bool(points[x, y]), below and bool(points[x, y + 1])) for x in range(sheet.width)]
        found.append("".join(_BLOCKS[cell] for cell in cells).rstrip())
    return found
