"""Read an answer to a question. The learner types the number of the answer. Letters and words are commands at every
prompt, and not answers."""

from __future__ import annotations

BESIDES = "b back · h hint · ? help · q quit"
"""The commands that the prompt of a question names."""


def answer_prompt(count: int, otherwise: str) -> str:
    """Return the prompt below a question with ``count`` answers. ``otherwise``: what Enter does, such as
    ``no guess``."""
    return f"1-{count} your answer · Enter {otherwise} · {BESIDES}"


def index_of_answer(answer: str, count: int) -> int | None:
    """Return the index of the typed answer, from 0 to ``count`` - 1; None for any other input."""
    number = int(answer[:4]) - 1 if is_number(answer) else -1
    return number if 0 <= number < count else None


def is_number(answer: str) -> bool:
    """Return True for a text of digits alone. While a question is asked, such a text chooses an answer, and never a
    step of the chapter."""
    return answer.isascii() and answer.isdigit()


def no_such(count: int) -> str:
    """Return the sentence to show if a learner types a number that belongs to no answer."""
    return f"The answers are 1 to {count}. Enter goes on without an answer."
