"""Test the text of a judged guess beside a page that shows figures of its own."""

from __future__ import annotations

import pytest

from jitter_workshop.model.walk import GuessOutcome

FIGURES = "Device interrupts: 152 → 2.36 a second, a factor of 64."


@pytest.mark.parametrize(
    ("text", "told", "beside"),
    [
        (f"You said: A. That is right. {FIGURES}", {"device interrupts"}, "You said: A. That is right."),
        (f"You said: A. That is right. {FIGURES}", {"device", "p99.9", ""}, f"You said: A. That is right. {FIGURES}"),
        (f"You said: C. {FIGURES} So these answers are right: A and B.", {"device interrupts"}, "You said: C. These"),
        (f"You said: C. {FIGURES} So these answers are right: A and B.", set(), f"You said: C. {FIGURES} So these"),
    ],
)
def test_a_figure_that_the_page_shows_is_left_out_of_the_guess(text: str, told: set[str], beside: str) -> None:
    outcome = GuessOutcome(text, True, "", None, None, FIGURES)
    assert outcome.text_beside(told).startswith(beside)
    assert (FIGURES in outcome.text_beside(told)) == (FIGURES in beside)


def test_a_guess_without_figures_stays_as_it_is() -> None:
    assert GuessOutcome("You said: A.", None, "", None, None).text_beside({"", "p50"}) == "You said: A."
