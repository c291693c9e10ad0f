"""Put a recall question and its answer into words, for the screen and for the line-by-line workshop."""

from __future__ import annotations

from jitter_workshop.flow.chapters.recalling import Asked, RecallResult
from jitter_workshop.model.text import ID, clean, many
from jitter_workshop.presenter.text.lines import Lines, small_title, wrap
from jitter_workshop.presenter.text.prose import in_one_style, styled
from jitter_workshop.presenter.text.styled import Text

_GAP = "   "
"""The blanks between the heading of a question and the chapter that the question is about."""
UNKNOWN = "I do not know"
"""The answer 0, which shows the right one and is no wrong answer."""
_UNKNOWN = -1
"""The index of the answer UNKNOWN."""
SKIPPED = "Skipped. The question comes back later."
"""The line after a question that was not answered."""


def title(number: int, count: int) -> str:
    """Return the heading of a recall question: its ``number``, from 1, among the ``count`` questions that are asked one
    after the other."""
    return f"DO YOU REMEMBER?   {number} of {count}"


def before_chapter(begins: str) -> str:
    """Return the title of the page with the questions. ``begins``: the title of the chapter that begins after them."""
    return f"Before '{clean(begins, ID)}'"


def question(one: Asked, number: int, count: int, width: int, chosen: int | None = None) -> Lines:
    """Return a question with its numbered answers, and 0 for UNKNOWN. ``chosen``: the index of the given answer, -1
    for UNKNOWN, None before an answer. After an answer, the given and the right answer are marked; after UNKNOWN, the
    right one has a sign that is no praise."""
    head, about = small_title(title(number, count)), Text(f"from the chapter '{clean(one.chapter, ID)}'", "dim")
    beside = head.cell_len + len(_GAP) + about.cell_len <= width
    lines = [Text.assemble(head, _GAP, about)] if beside else [head, about]
    lines.append(Text())
    lines += [*wrap(styled(one.question.question, "bold text"), width), Text()]
    praised = ("✓", "bold good") if chosen != _UNKNOWN else ("→", "bold accent")
    for index, text in enumerate(one.question.answers):
        sign, style = (" ", "text" if chosen is None else "dim")
        if chosen is not None and index in (chosen, one.question.right):
            sign, style = praised if index == one.question.right else ("✗", "bad")
        lines += wrap(in_one_style(text, style), width, f"{sign} {index + 1}  ")
    return lines if chosen is not None else [*lines, Text(f"  0  {UNKNOWN}", "dim")]


def recall_outcome_lines(one: Asked, judged: RecallResult, width: int) -> Lines:
    """Return whether an answer is right, the reason, and when the question comes back."""
    sign, words, colour = ("✓ ", "That is right.", "good") if judged.right else ("✗ ", _right_one(one), "bad")
    if not judged.known:
        sign, colour = "", "accent"
    lines = wrap(Text(words, f"bold {colour}"), width, sign)
    lines += wrap(styled(one.question.explanation), width, " " * len(sign))
    return [*lines, *wrap(Text(comes_back(judged), "dim"), width, " " * len(sign))]


def _right_one(one: Asked) -> str:
    return f"The answer is {one.question.right + 1}."


def comes_back(judged: RecallResult) -> str:
    """Return when the question is asked again."""
    if judged.visits <= 1:
        return "This question comes back at the start of the next chapter."
    return f"This question comes back after {many(judged.visits, 'chapter')}."


def recall_keys_line(one: Asked, answered: bool, last: bool) -> str:
    """Return the line that names the keys of the screen. ``last``: no further question follows."""
    onward = "begins the chapter" if last else "asks the next one"
    if answered:
        return f"Enter {onward}"
    return f"0–{len(one.question.answers)} answers · Esc skips all: they come again later"


def other_key(one: Asked) -> str:
    """Return the sentence after a key that does nothing while a question is asked, such as Enter. The line with the
    keys tells what Esc does."""
    return f"An answer comes first: a number from 1 to {len(one.question.answers)}, or 0 to see it."


def recall_prompt(one: Asked) -> str:
    """Return the prompt of the line-by-line workshop."""
    return f"your answer (1-{len(one.question.answers)}; 0 = {UNKNOWN}; Enter = skip)"


def not_a_number(one: Asked) -> str:
    """Return the line after an input that is no answer."""
    number = f"Type a number from 1 to {len(one.question.answers)}, or 0 to see the answer."
    return f"{number} Enter skips the question, q leaves the workshop."
