"""Untrusted names made fit for a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.text import called, clean, day, fell_away, minute, shortened, tally


def test_escapes_and_line_breaks_become_blanks() -> None:
    assert clean("kwork\x1b[31mer\n/0:\u202eabc") == "kwork [31mer /0: abc"


def test_a_long_name_ends_with_an_ellipsis() -> None:
    assert clean("a" * 100, limit=10) == "a" * 9 + "…"


def test_an_invisible_name_is_replaced_by_a_remark() -> None:
    assert [called(name) for name in ("", "   ", "\u200b\t", " sshd ")] == [*["(no visible name)"] * 3, "sshd"]
    assert len(called("  ", 8)) == 8


@given(st.text(), st.integers(min_value=1, max_value=200))
def test_nothing_that_steers_a_terminal_is_left(text: str, limit: int) -> None:
    shown = clean(text, limit)
    assert len(shown) <= limit
    assert not any(unicodedata.category(c).startswith("C") for c in shown)
    assert clean(shown, limit) == shown


def test_writes_whose_tasks_had_ended_are_counted() -> None:
    assert [fell_away(n) for n in (0, 1, 6)] == [
        "",
        "1 write was not needed: the task had ended.",
        "6 writes were not needed: the tasks had ended.",
    ]
    assert fell_away(0, 1) == "1 write was left out: its setting had changed since the plan."
    assert fell_away(8, 2).endswith(
        "had ended. 2 writes were also left out: their settings had changed since the plan."
    )


def test_tally_counts_tunables_and_writes() -> None:
    assert tally(["governor", "thp", "governor"]) == "2 settings, 3 writes"
    assert tally(iter(["thp"])) == "1 setting, 1 write"
    assert tally(()) == "no settings, no writes"
    assert tally(["thp"] * 54, 60) == "1 setting, 54 of 60 writes"
    assert tally(["thp"], 1) == "1 setting, 1 write"


@pytest.mark.parametrize(
    ("stamp", "said"),
    [
        ("2026-01-01T09:30:15.123456Z", "2026-01-01 09:30"),
        ("2026-01-01", "2026-01-01"),
        ("", ""),
        ("\x1b[31m2026-01-01T09:30", "[31m2026-0 -01T0"),
    ],
)
def test_a_time_is_told_to_the_minute(stamp: str, said: str) -> None:
    assert minute(stamp) == said


@pytest.mark.parametrize("stamp", ["2026-01-01T09:30:15.123456Z", "2026-01-01", ""])
def test_a_day_is_the_beginning_of_a_stored_time(stamp: str) -> None:
    assert day(stamp) == stamp[: len("2026-01-01")]


def test_a_long_name_keeps_its_end_which_tells_it_from_others() -> None:
    assert shortened("isolation: free, beside spinners", 20) == "isolation:… spinners"
    assert shortened("laptop, baseline", 16) == "laptop, baseline"
    assert shortened("\x1b[31mfree", 20) == "[31mfree"
    for limit in range(40):
        assert len(shortened("migration: free, then one that is pinned", limit)) <= limit
