"""Octants, braille and ASCII: the same dots in each, and octants only where a terminal is known to draw them."""

from __future__ import annotations

import os
import pty
import threading
import tty
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.chart import canvas, heat, marks, probe
from jitter_workshop.stats import view
from jitter_workshop.stats.heat import heat as heat_of
from jitter_workshop.stats.histogram import Bin
from tests.madecurves import curve

CURVES = [curve("before", [150] * 15 + [2_000_000] * 35), curve("after", [900] * 50, 20)]


@pytest.fixture(autouse=True)
def chosen_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "_chosen", "braille")
    monkeypatch.delenv(marks.VARIABLE, raising=False)


def test_octants_are_256_characters_in_the_order_of_unicode() -> None:
    assert len(set(marks.OCTANTS)) == 256
    assert sum("\U0001cd00" <= one <= "\U0001cde5" for one in marks.OCTANTS) == 230
    # Known places: octants 3, 1 and 4, all but 1; and shapes that are older.
    for filled, character in (("3", "\U0001cd00"), ("14", "\U0001cd04"), ("2345678", "\U0001cde5"), ("1234", "▀")):
        assert marks.OCTANTS[sum(1 << int(one) - 1 for one in filled)] == character
    # A Python that knows Unicode 16 has the names.
    for number, one in enumerate(marks.OCTANTS):
        name = unicodedata.name(one, "")
        if name.startswith("BLOCK OCTANT-"):
            assert name.removeprefix("BLOCK OCTANT-") == "".join(str(n + 1) for n in range(8) if number >> n & 1)


@given(st.integers(0, 255))
def test_each_kind_shows_the_dots_of_a_cell(dots: int) -> None:
    assert marks.character(dots, "braille") == chr(0x2800 + dots)
    filled = marks.OCTANTS.index(marks.character(dots, "octants"))
    assert filled.bit_count() == dots.bit_count()
    # The dots of the left side are octants 1, 3, 5 and 7.
    assert bool(filled & 0x55) == bool(dots & 0x47)
    assert bool(filled & 0xF0) == bool(dots & 0xE4)
    assert (marks.character(dots, "ascii") != " ") == bool(dots)


def test_the_variable_forces_a_kind_and_all_stays_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    shares = view.ccdf(CURVES)
    blocks = heat_of("x", [(n * 0.25, 0.25, [Bin(100, 100, 500), Bin(9_000, 9_000, n % 3)]) for n in range(12)])
    for kind in marks.KINDS:
        monkeypatch.setenv(marks.VARIABLE, kind)
        drawn = canvas.draw_curves(CURVES, 100, 24, "dark", 1, [(99.0, 10_000)], between=(0, 1))
        found[kind] = drawn.plain
        assert len(drawn.plain) == len(found["octants"])
        others = [
            canvas.draw_curves(CURVES, 80, 20, "light", view=shares).plain,
            heat.draw_heat_map(blocks, 80, 20).plain,
        ]
        others += [line.plain for line in canvas.legend_lines(CURVES, marks=[(99.0, 10_000)])]
        if kind == "ascii":
            assert "".join([drawn.plain, *others]).isascii()
            assert "?" not in "".join([drawn.plain, *others])
    dotted = {
        kind: {n for n, one in enumerate(text) if 0x2800 <= ord(one) <= 0x28FF or one in marks.OCTANTS[1:]}
        for kind, text in found.items()
    }
    assert dotted["octants"] == dotted["braille"] != set()
    assert "10 us" in found["ascii"]
    plain = "\n".join(canvas.plain_curve_lines(CURVES, 80, 20, between=(0, 1)))
    assert "*" in plain
    # The grid has no character of the space between two curves.
    assert "." in plain
    assert ":" in plain
    alone = "\n".join(canvas.plain_curve_lines(CURVES, 80, 20)).split("\n")[:18]
    assert not set(".:") & set("".join(line[8:] for line in alone))
    monkeypatch.setenv(marks.VARIABLE, "nonsense")
    assert marks.current() == "braille"


KITTY = {"TERM": "xterm-kitty", "KITTY_WINDOW_ID": "1"}


@pytest.mark.parametrize(
    ("environment", "asks"),
    [
        (KITTY, True),
        ({"TERM": "foot"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "ghostty"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7800"}, False),
        ({"TERM": "linux", "TERM_PROGRAM": "kitty"}, False),
        ({"TERM": "dumb", "TERM_PROGRAM": "kitty"}, False),
        ({"TERM_PROGRAM": "kitty"}, False),
        ({**KITTY, "CI": "true"}, False),
        ({**KITTY, marks.VARIABLE: "braille"}, False),
    ],
)
def test_only_a_terminal_that_may_draw_octants_is_asked(environment: dict[str, str], asks: bool) -> None:
    assert probe.may_ask(environment) is asks


@pytest.mark.parametrize(
    ("answer", "draws"),
    [
        (b"\x1bP>|kitty(0.42.1)\x1b\\\x1b[7;2R", True),
        (b"\x1bP>|kitty(0.39.0)\x1b\\\x1b[7;2R", False),
        (b"\x1bP>|kitty(0.42.1)\x1b\\\x1b[7;3R", False),
        (b"\x1bP>|foot(1.20.2)\x1b\\\x1b[1;2R", True),
        (b"\x1bP>|ghostty 1.2.0\x1b\\\x1b[1;2R", True),
        (b"\x1bP>|WezTerm 20240203-110809-5046fc22\x1b\\\x1b[1;2R", False),
        (b"\x1bP>|tmux 3.5a\x1b\\\x1b[1;2R", False),
        (b"\x1b[1;2R", False),
        (b"\x1bP>|kitty(0.42.1)\x1b\\", False),
        (b"", False),
    ],
)
def test_width_and_name_both_decide(answer: bytes, draws: bool) -> None:
    assert probe.draws_octants(answer) is draws


@given(st.binary(max_size=60))
def test_no_answer_is_an_error(answer: bytes) -> None:
    assert probe.draws_octants(answer) is False
    assert probe.draws_octants(b"\x1bP>|" + answer + b"\x1b[1;2R") in (True, False)


@pytest.mark.parametrize("answer", [b"\x1bP>|kitty(0.42.1)\x1b\\\x1b[7;2R", b""])
def test_a_terminal_is_asked_and_left_as_it_was(answer: bytes) -> None:
    screen, terminal = pty.openpty()
    tty.setcbreak(terminal)
    asked = bytearray()

    def answering() -> None:
        while not asked.endswith(b"\x1b[K"):
            asked.extend(os.read(screen, 100))
        os.write(screen, answer)

    before = probe.termios.tcgetattr(terminal)
    thread = threading.Thread(target=answering)
    thread.start()
    try:
        # The limit is long where an answer comes, so that a slow machine does not decide.
        assert probe.probe_octants(terminal, terminal, KITTY, 30.0 if answer else 0.01) is bool(answer)
        assert marks.current() == ("octants" if answer else "braille")
        assert probe.termios.tcgetattr(terminal) == before
        thread.join(30)
        assert b"\x1b[>0q" in asked
        assert b"\x1b[6n" in asked
    finally:
        os.close(terminal)
        os.close(screen)
    inward, outward = os.pipe()
    assert probe.probe_octants(inward, outward, KITTY) is False
    os.close(inward)
    os.close(outward)
