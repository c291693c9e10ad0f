"""Choose the characters in which charts draw dots: octants, braille or ASCII.

With each of the three kinds, the chart computes 2 × 4 dots for each cell. Octants (Unicode 16, U+1CD00…) fill the cell,
so that a curve is a line. Braille leaves gaps between dots, but nearly every font has it. Octants are used if a
terminal is known to draw them (``chart.probe``). Otherwise braille is used. The variable :data:`VARIABLE` can force one
of :data:`KINDS`.
"""

from __future__ import annotations

import os
import re
from typing import Literal, get_args

from rich.text import Text

DotKind = Literal["octants", "braille", "ascii"]
KINDS: tuple[DotKind, ...] = get_args(DotKind)
VARIABLE = "JITTER_WORKSHOP_MARKS"
"""The environment variable that forces one kind of characters."""

# Patterns that Unicode had before its version 16, or keeps outside the block of octants. Bit n is octant n + 1: the
# octants are numbered from left to right and from top to bottom (names list of Unicode 16, U+1CC00 to U+1CEBF).
_OLDER = {
    0x00: 0x20, 0x01: 0x1CEA8, 0x02: 0x1CEAB, 0x03: 0x1FB82, 0x05: 0x2598, 0x0A: 0x259D, 0x0F: 0x2580, 0x14: 0x1FBE6,
    0x28: 0x1FBE7, 0x3F: 0x1FB85, 0x40: 0x1CEA3, 0x50: 0x2596, 0x55: 0x258C, 0x5A: 0x259E, 0x5F: 0x259B, 0x80: 0x1CEA0,
    0xA0: 0x2597, 0xA5: 0x259A, 0xAA: 0x2590, 0xAF: 0x259C, 0xC0: 0x2582, 0xF0: 0x2584, 0xF5: 0x2599, 0xFA: 0x259F,
    0xFC: 0x2586, 0xFF: 0x2588,
}  # fmt: skip
_FIRST_OCTANT = 0x1CD00
_BRAILLE = 0x2800
_OCTANT_OF_DOT = (0, 2, 4, 1, 3, 5, 6, 7)
"""The number of the octant for each bit of a braille character. The bits of braille go down the left column of dots
first."""
_UPPER, _LOWER = 0x01 | 0x02 | 0x08 | 0x10, 0x04 | 0x20 | 0x40 | 0x80
_SPELLED = str.maketrans("├┤│─└┬┴┈┊┼·╎×●■◆▲▼★○□◇△◉⊗░▒▓█╱–…µ≈→≥", "|+|-+++  +.|xo#@AV*0n<^&%.:+#/-.u~>>")
"""In ASCII the grid has only its crossings: its lines would look like the space between two curves."""
_POWER = re.compile("10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")

_chosen: DotKind = "braille"


def _octants() -> str:
    """Return a string of 256 characters, one for each combination of filled octants.

    The index of a character shows its octants: bit n of the index stands for octant n + 1.
    """
    free = iter(range(_FIRST_OCTANT, _FIRST_OCTANT + 256 - len(_OLDER)))
    return "".join(chr(_OLDER[n] if n in _OLDER else next(free)) for n in range(256))


OCTANTS = _octants()


def current() -> DotKind:
    """Return the kind of characters for charts. The environment variable :data:`VARIABLE` can force the kind.

    If no kind is forced, return the kind given to :func:`choose_dots`. Before the first call of :func:`choose_dots`,
    return braille.
    """
    forced = os.environ.get(VARIABLE, "")
    return next((kind for kind in KINDS if kind == forced), _chosen)


def choose_dots(kind: DotKind) -> None:
    """Draw in this kind of characters from now on, unless the user forces another kind."""
    global _chosen
    _chosen = kind


def character(dots: int, kind: DotKind) -> str:
    """Return the character that draws the dots of a cell. ``dots``: the dots as bits, as in the low byte of a braille
    character. ``kind``: the kind of characters."""
    if kind == "octants":
        return OCTANTS[sum(1 << octant for bit, octant in enumerate(_OCTANT_OF_DOT) if dots >> bit & 1)]
    if kind == "ascii":
        return "*" if dots & _UPPER and dots & _LOWER else "'" if dots & _UPPER else "," if dots else " "
    return chr(_BRAILLE + dots)


def in_lists(glyph: str) -> str:
    """Return a curve's mark for a list beside a chart, as the chart and its legend draw it."""
    return spelled(Text(glyph), current()).plain


def spelled(text: Text, kind: DotKind) -> Text:
    """Return a chart's text in characters of ``kind``.

    For ``ascii``, each character outside ASCII is replaced by one ASCII character, so that nothing moves. A power of
    ten is written like ``1e-3``.
    """
    if kind == "ascii":
        plain = _POWER.sub(lambda found: f"1e{found[1].translate(_RAISED)}", text.plain).translate(_SPELLED)
        text.plain = "".join(one if one.isascii() else "?" for one in plain)
    return text
