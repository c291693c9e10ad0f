"""Read an answer to a question whose answers have letters: the letter, or its number."""

from __future__ import annotations

LETTERS = "abcdefghi"
"""The letters of the answers, in their order. A question has at most nine answers."""


def menu(otherwise: str) -> str:
    """Return the prompt below a question. ``otherwise``: what Enter does, such as ``no guess``."""
    return f"your answer (a letter, or its number: 1 = a; Enter = {otherwise})"


def place(answer: str, count: int) -> int | None:
    """Return the index of the typed answer, one of ``count``; None for any other input."""
    number = LETTERS.find(answer.lower()) if len(answer) == 1 else -1
    if is_number(answer):
        number = int(answer[:4]) - 1
    return number if 0 <= number < count else None


def is_number(answer: str) -> bool:
    """Return True for a text of digits alone. At a question such a text chooses an answer, and never a step."""
    return answer.isascii() and answer.isdigit()


def no_such(count: int) -> str:
    """Return the sentence to show if a learner types a number that belongs to no answer."""
    return f"The answers are 1 to {count}, or a to {LETTERS[count - 1]}. Enter goes on without an answer."
