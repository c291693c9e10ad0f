"""Test that the palette can be read: contrast as WCAG 2.2 defines it, and colours that differ for the colour-blind."""

from __future__ import annotations

import itertools
import math

import pytest

from jitter_workshop.model.palette import CAUSES, PALETTES, Palette, heat_shade

Colour = tuple[float, float, float]
_SEEN: dict[str, tuple[Colour, Colour, Colour]] = {
    "all colours": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
}
"""Linear RGB as it is seen, after Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of
color vision deficiency", 2009, severity 1."""
_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
_WHITE = (0.95047, 1.0, 1.08883)
THEMES = pytest.mark.parametrize("theme", PALETTES.values(), ids=list(PALETTES))


def _linear(colour: str) -> Colour:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return red, green, blue


def _times(matrix: tuple[Colour, Colour, Colour], colour: Colour) -> list[float]:
    return [sum(a * b for a, b in zip(row, colour, strict=True)) for row in matrix]


def _lab(colour: str, seen: str) -> tuple[float, float, float]:
    red, green, blue = (min(max(c, 0.0), 1.0) for c in _times(_SEEN[seen], _linear(colour)))
    parts = [c / white for c, white in zip(_times(_XYZ, (red, green, blue)), _WHITE, strict=True)]
    x, y, z = (c ** (1 / 3) if c > 0.008856 else 7.787 * c + 16 / 116 for c in parts)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(one: str, other: str, seen: str) -> float:
    """Return ΔE (CIE 1976) of two colours."""
    return math.dist(_lab(one, seen), _lab(other, seen))


def ciede2000(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    """Return the difference of two colours in CIELAB by the formula CIEDE2000. From about 2 on, people see it at once.

    Source: Sharma, Wu and Dalal, "The CIEDE2000 color-difference formula: implementation notes, supplementary test
    data, and mathematical observations", Color Research & Application 30 (2005), equations 2 to 22.
    """
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    grey = 1.5 - 0.5 * math.sqrt(mean**7 / (mean**7 + 25**7))
    c1, c2 = math.hypot(a1 * grey, b1), math.hypot(a2 * grey, b2)
    h1, h2 = math.degrees(math.atan2(b1, a1 * grey)) % 360, math.degrees(math.atan2(b2, a2 * grey)) % 360
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    hue = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2))
    # The mean of two angles lies on the shorter way between them.
    h, c, light = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2, (c1 + c2) / 2, (l1 + l2) / 2
    weights = ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.20, 4, -63))
    t = 1 + sum(k * math.cos(math.radians(times * h + plus)) for k, times, plus in weights)
    rotation = 2 * math.sqrt(c**7 / (c**7 + 25**7)) * math.sin(math.radians(60 * math.exp(-(((h - 275) / 25) ** 2))))
    of_light = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2))
    of_chroma, of_hue = (c2 - c1) / (1 + 0.045 * c), hue / (1 + 0.015 * c * t)
    return math.sqrt(of_light**2 + of_chroma**2 + of_hue**2 - rotation * of_chroma * of_hue)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (50, 0, -2.5), 4.3065),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((50, 2.49, -0.001), (50, -2.49, 0.0011), 7.2195),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((6.7747, -0.2908, -2.4247), (5.8714, -0.0985, -2.2286), 0.6377),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_colour_difference_agrees_with_the_published_pairs(
    one: tuple[float, float, float], other: tuple[float, float, float], expected: float
) -> None:
    """The expected values are from table 1 of the source of the formula."""
    assert ciede2000(one, other) == pytest.approx(expected, abs=1e-4)


def contrast(one: str, other: str) -> float:
    low, high = sorted(_times(_XYZ, _linear(colour))[1] for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def causes(theme: Palette) -> list[str]:
    return [getattr(theme, role) for role in dict.fromkeys(CAUSES.values())]


@THEMES
def test_every_text_can_be_read_on_every_ground(theme: Palette) -> None:
    roles = ("text", "dim", "faint", "accent", "good", "bad", "cool", "code", "mark")
    texts = [*(getattr(theme, role) for role in roles), *causes(theme)]
    for text, ground in itertools.product(texts, (theme.background, theme.surface, theme.panel)):
        assert contrast(text, ground) >= 4.5, (text, ground)
    assert contrast(theme.dim, theme.background) >= 7
    assert contrast(theme.rule, theme.background) >= 3
    for quiet in theme.references:
        assert contrast(quiet, theme.background) >= 3.5, quiet
    for curve in theme.curves:
        assert contrast(curve, theme.background) >= 4.5, curve


@THEMES
@pytest.mark.parametrize("seen", _SEEN)
def test_colours_with_a_meaning_differ_for_all_kinds_of_sight(theme: Palette, seen: str) -> None:
    for group in (causes(theme), list(theme.curves), [theme.good, theme.bad]):
        for one, other in itertools.combinations(group, 2):
            assert difference(one, other, seen) >= 18, (one, other)


@THEMES
def test_curves_of_one_chart_are_far_apart_and_none_looks_like_a_guess_or_a_failure(theme: Palette) -> None:
    """The chapter on coordinated omission draws four curves, and a mark of the guess lies among them."""
    for seen, least in (("all colours", 22), ("deuteranopia", 13.5), ("protanopia", 13.5)):
        for one, other in itertools.combinations(theme.curves, 2):
            assert ciede2000(_lab(one, seen), _lab(other, seen)) >= least, (seen, one, other)
    for curve in theme.curves:
        for role, least in (("mark", 17), ("bad", 12)):
            apart = ciede2000(_lab(curve, "all colours"), _lab(getattr(theme, role), "all colours"))
            assert apart >= least, (role, curve)


@THEMES
def test_a_recorded_curve_never_outshines_ones_own(theme: Palette) -> None:
    loudest = max(contrast(colour, theme.background) for colour in theme.references)
    assert loudest < min(contrast(colour, theme.background) for colour in theme.curves)


@THEMES
def test_more_values_are_a_stronger_shade(theme: Palette) -> None:
    strengths = [contrast(heat_shade(theme, level, 6), theme.background) for level in range(1, 7)]
    assert strengths == sorted(strengths)
    assert strengths[0] > 1.3
