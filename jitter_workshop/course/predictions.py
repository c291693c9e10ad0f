"""Judge a learner's guess, and describe the result in words."""

from __future__ import annotations

from jitter_workshop.model.course import Answer, PredictionTask
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import Prediction
from jitter_workshop.model.spec import KINDS
from jitter_workshop.model.walk import PredictionOutcome
from jitter_workshop.stats.scale import nice_ns

NEAR_FACTOR = 3.0
"""A guess within this factor is near: about half a decade, the precision of the eye on a logarithmic chart."""


def outcome(task: PredictionTask, prediction: Prediction, run: Run | None) -> PredictionOutcome | None:
    """Return the judged prediction; None if the deciding run is missing. Its ``near`` is None if nothing can be
    judged."""
    if task.kind == "choice" and (run is not None or task.slot is None):
        return _choice(task, prediction)
    return _mark(task, prediction, run) if run is not None else None


def answer_for_value(task: PredictionTask, value_ns: int) -> Answer:
    """Return the answer whose range holds a value (the last answer has no upper bound)."""
    for answer in task.answers:
        if answer.up_to_ns is None or value_ns <= answer.up_to_ns:
            return answer
    return task.answers[-1]


def _choice(task: PredictionTask, prediction: Prediction) -> PredictionOutcome:
    given = next((a for a in task.answers if a.id == prediction.choice), None)
    if given is None:
        return PredictionOutcome("Your answer is no longer in the lesson.", None, "", None, None)
    right = next((a for a in task.answers if a.right), None)
    text = f"You said: {_sentence(given.text)}"
    if given.right:
        text += " That is right."
    elif right is not None:
        text += f" The answer is: {_sentence(right.text)}"
    near = False if given.right is None and right is not None else given.right
    return PredictionOutcome(text, near, given.explanation, None, None)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _mark(task: PredictionTask, prediction: Prediction, run: Run) -> PredictionOutcome:
    guessed = prediction.value_ns
    summary = run.histograms.get(run.main_histogram)
    percentile = task.percentile or "99.9"
    measured = summary.percentiles.get(percentile) if summary else None
    if guessed is None or guessed <= 0:
        return PredictionOutcome("You marked no value.", None, "", None, measured)
    if measured is None:
        what = KINDS[run.workload].counted if run.workload in KINDS else "messages"
        text = f"This run has too few {what} to know its p{percentile}."
        return PredictionOutcome(text, None, "", guessed, None)
    near, words = judge(guessed, measured)
    text = f"You marked {nice_ns(guessed)} at p{percentile}; the run had {nice_ns(measured)}. {words}"
    guess_answer = answer_for_value(task, guessed)
    real_answer = answer_for_value(task, measured)
    explanation = f"{nice_ns(measured)} ({real_answer.text}): {real_answer.explanation}"
    if guess_answer is not real_answer:
        explanation += f"\n\nYour {nice_ns(guessed)} ({guess_answer.text}): {guess_answer.explanation}"
    return PredictionOutcome(text, near, explanation, guessed, measured)


def judge(guessed_ns: int, measured_ns: int) -> tuple[bool, str]:
    """Return (True if the guess is near the measured value, a sentence that compares both)."""
    measured_ns = max(measured_ns, 1)
    ratio = max(guessed_ns / measured_ns, measured_ns / guessed_ns)
    if ratio <= 1.25:
        return True, "That is practically exact."
    side = "slower" if measured_ns > guessed_ns else "faster"
    if ratio <= NEAR_FACTOR:
        return True, f"Near: the host was {_times(ratio)} {side} than you thought."
    return False, f"The host was {_times(ratio)} {side} than you thought."


def _times(ratio: float) -> str:
    return f"{ratio:.1f}×" if ratio < 10 else f"{ratio:,.0f}×"
