"""Judge a learner's guess, and describe the result in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from jitter_workshop.model.course import Answer, GuessTask, Shows
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.session import Guess
from jitter_workshop.model.spec import KINDS
from jitter_workshop.model.text import ID, clean
from jitter_workshop.model.walk import GuessOutcome
from jitter_workshop.stats.curve import curve_value_at
from jitter_workshop.stats.effect import MOVED, few_events
from jitter_workshop.stats.figures import (
    LATENCIES,
    Figure,
    KnownRun,
    counts_alone,
    figure_with_id,
    managed_told,
    moved,
    ratio,
    titled,
)
from jitter_workshop.stats.omission import BY_MESSAGE, leaves_out_waits, on_one_clock, sent_share, sent_told
from jitter_workshop.stats.sample_size import FEW_STALLS, marks_of_run
from jitter_workshop.stats.scale import difference_told, nice_ns, nice_number, times_told

GONE = 20.0
"""A figure that fell by this factor or more is nearly 0."""
ALIKE = 2.0
"""Two figures that are nearly 0 fell alike if their factors differ by at most this factor. Chance alone can make such a
difference."""
NEAR_FACTOR = 3.0
"""A guess is near if it differs from the value by at most this factor. It is about half a decade, the precision of the
eye on a logarithmic chart."""


def outcome(
    task: GuessTask,
    guess: Guess,
    seen: KnownRun | None,
    before: KnownRun | None = None,
    shows: Shows | None = None,
) -> GuessOutcome | None:
    """Return the judgement of a learner's guess.

    Return None if a run that decides the guess does not exist yet. In the result, ``near`` is None if the guess cannot
    be judged.

    - ``seen``: the run that decides.
    - ``before``: the run of the step ``measure``. ``seen`` is compared with it if ``task.by`` is ``falls``, ``factor``
      or ``ratio``.
    - ``shows``: the effect that the chapter names, with its figure.
    """
    if seen is not None and before is not None and task.by not in (None, "value"):
        before, seen = on_one_clock(before, seen) or (before, seen)
    if seen is not None and seen.timeless and not judged_by_counts(task, guess, shows):
        return GuessOutcome(_UNJUDGED, None, "", guess.value_ns, None)
    if task.by is not None:
        if seen is None or (before is None and task.by != "value"):
            return None
        return _by_runs(task, guess, before or seen, seen, shows)
    if task.kind == "choice" and (seen is not None or task.slot is None):
        return _choice(task, guess)
    if seen is None:
        return None
    return _mark(task, guess, seen)


_LEAST_ORDERED = 4
"""The least number of ordered answers of which a neighbour of the right one is near."""
_NOT_JUDGED = "Your guess is not judged: "
_UNJUDGED = f"{_NOT_JUDGED}the answer depends on times, and on an emulated machine times mean nothing."


@dataclass(frozen=True, slots=True)
class _Decision:
    """Hold what the figures say of a question.

    - ``right``: the right answers, usually one.
    - ``decided``: a text on the figures that decide.
    - ``others``: a text on the other figures, "" for none.
    - ``by_answer``: id of an answer → its text with its figure in both runs. Only a question on what fell most has it.
    """

    right: tuple[Answer, ...]
    decided: str
    others: str = ""
    by_answer: Mapping[str, str] = field(default_factory=dict)


def _few_sent(task: GuessTask, right: tuple[Answer, ...], before: KnownRun, seen: KnownRun, shows: Shows | None) -> str:
    """Return why the deciding figure decides nothing: a run that decides the guess sent few of its planned messages,
    and the figure is a count by message, or a latency that leaves out the waits of the others. Return "" if another
    figure decides, or if the runs sent enough messages.

    ``right``: the answers that the figures give. For ``falls`` all figures decide if the first run sent few messages:
    each may have fallen further than the runs show. If only the second run did, the figure that fell most decides.
    """
    runs = [seen] if task.by == "value" else [before, seen]
    shares = [sent_share(one) for one in runs]
    few = [share for share in shares if share is not None]
    if not few:
        return ""
    deciding = {shows.figure if task.by == "factor" and shows is not None else task.figure}
    if task.by == "falls":
        all_decide = right[0].figure is None or shares[0] is not None
        deciding = {answer.figure for answer in (task.answers if all_decide else right)}
    if deciding & BY_MESSAGE:
        return f"{_few_told(few)}, and a figure that decides the answer counts something that each message may cause."
    apart = leaves_out_waits(seen) if task.by == "value" else on_one_clock(before, seen) is None
    if apart and deciding & set(LATENCIES):
        return f"{_few_told(few)}, and {_LEFT_OUT}"
    return ""


def _few_told(shares: Sequence[float]) -> str:
    return f"{sent_told(*shares)} of the planned messages were sent"


_LEFT_OUT = "the latency that decides the answer leaves out the waits of the other messages."


def judged_by_counts(task: GuessTask, guess: Guess, shows: Shows | None) -> bool:
    """Return True if a guess can be judged without times.

    Such a guess is decided by a count, or by no figure of a run. On an emulated machine only such guesses are judged,
    because times mean nothing there.
    """
    if task.by is None:
        return task.kind == "choice"
    if task.by == "falls":
        given = next((a.figure for a in task.answers if a.id == guess.choice), None)
        return given is None or counts_alone(figure_with_id(given))
    name = shows.figure if task.by == "factor" and shows is not None else task.figure
    return name is None or counts_alone(figure_with_id(name))


def answer_for_value(task: GuessTask, value_ns: int) -> Answer:
    """Return the answer whose range holds a value. The last answer has no upper bound."""
    for answer in task.answers:
        if answer.up_to_ns is None or value_ns <= answer.up_to_ns:
            return answer
    return task.answers[-1]


def _choice(task: GuessTask, guess: Guess) -> GuessOutcome:
    given = next((a for a in task.answers if a.id == guess.choice), None)
    if given is None:
        return GuessOutcome("Your answer is no longer in the lesson.", None, "", None, None)
    right = next((a for a in task.answers if a.right), None)
    text = f"You said: {_sentence(given.text)}"
    if given.right:
        text += " That is right."
    elif right is not None:
        text += f" The answer is: {_sentence(right.text)}"
    near = False if given.right is None and right is not None else given.right
    return GuessOutcome(text, near, given.explanation, None, None)


def _by_runs(task: GuessTask, guess: Guess, before: KnownRun, seen: KnownRun, shows: Shows | None) -> GuessOutcome:
    """Judge a learner's choice by the figures of one or two runs. The text of the result names the figure that decides.
    The explanation names other figures. If the runs lack the deciding figure, the text says so."""
    given = next((a for a in task.answers if a.id == guess.choice), None)
    if given is None:
        return GuessOutcome("Your answer is no longer in the lesson.", None, "", None, None)
    found = _decide(task, before, seen, shows)
    if found is None:
        these = "this run does" if task.by == "value" else "these two runs do"
        unread = any(a.figure is not None and figure_with_id(a.figure).traced for a in task.answers)
        why = ". Only the kernel's trace shows this figure" if unread else ""
        text = f"Your guess is not judged: {these} not have the figure that decides the answer{why}."
        if (parts := _parts(task, seen)) is not None:
            text = f"Your guess is not judged. {parts}"
        return GuessOutcome(text, None, "", None, None)
    if why := _few_sent(task, found.right, before, seen, shows):
        return GuessOutcome(f"{_NOT_JUDGED}{why}", None, "", None, None)
    judged = _judged(given, found)
    return dataclasses.replace(judged, beside=not judged.near and _is_beside(task, given, found.right))


def _is_beside(task: GuessTask, given: Answer, right: Sequence[Answer]) -> bool:
    """Return True if an answer is the neighbour of a right one, and the answers are an ordered list of amounts. Of
    three answers, each would be a neighbour of the one in the middle, so a list has at least _LEAST_ORDERED."""
    if task.by == "falls" or len(task.answers) < _LEAST_ORDERED:
        return False
    at = task.answers.index(given)
    return any(abs(task.answers.index(one) - at) == 1 for one in right)


def _parts(task: GuessTask, seen: KnownRun) -> str | None:
    """Return a sentence on the two parts of the deciding figure, if their difference is not known. Return None for
    other figures, and if a part is not known."""
    one = figure_with_id(task.figure) if task.by == "value" and task.figure is not None else None
    if one is None or not one.minus or any(figure_with_id(part).of(seen) is None for part in one.minus[:2]):
        return None
    return f"{one.headline}: {one.told(seen)}."


def by_program(task: GuessTask, guess: Guess, parts: Mapping[str, int | None]) -> GuessOutcome:
    """Judge a learner's choice by the causes that kept a program's threads from running. The answer whose cause took
    the most time is right; so is one whose time is told by the same number. ``parts``: id of an answer → its time in
    ns, None if unknown. If a time is unknown or all are 0, the text says so.
    """
    given = next((a for a in task.answers if a.id == guess.choice), None)
    if given is None:
        return GuessOutcome("Your answer is no longer in the lesson.", None, "", None, None)
    known = {a.id: value for a in task.answers if (value := parts.get(a.id)) is not None}
    whole = sum(known.values())
    if len(known) < len(task.answers) or not whole:
        why = "only a trace shows which answer is right"
        if len(known) == len(task.answers):
            why = "the program's threads ran all the time"
        return GuessOutcome(f"Your guess is not judged: {why}.", None, "", None, None)
    longest = nice_ns(max(known.values()))
    right = tuple(a for a in task.answers if nice_ns(known[a.id]) == longest)
    shares = ", ".join(f"{a.id} {nice_ns(known[a.id])} ({100 * known[a.id] / whole:.0f} %)" for a in task.answers)
    return _judged(given, _Decision(right, f"The program's threads did not run for this long: {shares}."))


def _judged(given: Answer, found: _Decision) -> GuessOutcome:
    """Return the judgement of a learner's choice, in words. If several answers are right, the text says so first.
    ``given``: the learner's answer."""
    near, said = given in found.right, f"You said: {_sentence(given.text)}"
    several = len(found.right) > 1
    answers = _sentence(" and ".join(answer.text for answer in found.right))
    if near and several:
        how_many = "Both" if len(found.right) == 2 else "All these"
        text = f"{how_many} answers are right here: {answers} {said} {found.decided}"
    elif near:
        text = f"{said} That is right. {found.decided}"
    elif several:
        text = f"{said} {found.decided} So these answers are right: {answers}"
    else:
        # A small screen shows one line of this text, so the right answer comes first.
        right, wrong = (found.by_answer.get(one.id) for one in (found.right[0], given))
        answer = _sentence(right) if right is not None else f"{answers} {found.decided}"
        text = f"Right is: {answer} You said: {_sentence(wrong or given.text)}"
    explanation = " ".join(filter(None, [found.others, (given if near else found.right[0]).explanation]))
    if not near:
        explanation += f"\n\nYour answer ({given.text}): {given.explanation}"
    return GuessOutcome(text, near, explanation, None, None, found.decided)


@dataclass(frozen=True, slots=True)
class MeasuredAnswers:
    """Hold what runs say of the answers of a question. ``right``: the ids of the right answers. ``figures``: the id of
    an answer → its figure in the runs, in words; an answer whose figure is not known is missing. ``beside``: the ids of
    the answers beside a right one (:func:`outcome`)."""

    right: tuple[str, ...]
    figures: Mapping[str, str]
    beside: tuple[str, ...] = ()


def measured_answers(
    task: GuessTask, seen: KnownRun, before: KnownRun | None, shows: Shows | None
) -> MeasuredAnswers | None:
    """Return the right answers of a question, and the figures of its answers. Return None if these runs decide nothing.
    The parameters are those of :func:`outcome`."""
    if task.kind != "choice" or seen.timeless or (task.by is not None and before is None and task.by != "value"):
        return None
    if task.by is None:
        return MeasuredAnswers(tuple(a.id for a in task.answers if a.right), {})
    if before is not None and task.by != "value":
        before, seen = on_one_clock(before, seen) or (before, seen)
    first = before or seen
    found = _decide(task, first, seen, shows)
    if found is None or _few_sent(task, found.right, first, seen, shows):
        return None
    names = {answer.id: answer.figure for answer in task.answers}
    if task.by != "falls":
        # One figure decides, and only the right answer has its value in its range.
        name = shows.figure if task.by == "factor" and shows is not None else task.figure
        names = {answer.id: name for answer in found.right}
    figures = {answer: _told(task, name, first, seen) for answer, name in names.items() if name is not None}
    beside = tuple(a.id for a in task.answers if a not in found.right and _is_beside(task, a, found.right))
    return MeasuredAnswers(tuple(a.id for a in found.right), figures, beside)


def _told(task: GuessTask, name: str, before: KnownRun, seen: KnownRun) -> str:
    """Return the value of a figure in the run that decides, or its values in both runs if both decide."""
    if task.by == "value":
        return figure_with_id(name).told(seen)
    one = figure_with_id(name)
    return one.change(one.of(before), one.of(seen))


def guess_can_be_judged(task: GuessTask, seen: KnownRun | None, before: KnownRun | None, shows: Shows | None) -> bool:
    """Return True if these runs have the figure that decides the question. Otherwise no guess can be judged."""
    if seen is None or (before is None and task.by != "value"):
        return False
    return _decide(task, before or seen, seen, shows) is not None


def _decide(task: GuessTask, before: KnownRun, seen: KnownRun, shows: Shows | None) -> _Decision | None:
    """Return what the figures of the runs say of a question. Return None if the runs do not have the deciding figure.
    ``before``, ``seen``: the first and the second run.
    """
    return _fell_most(task, before, seen) if task.by == "falls" else _in_range(task, before, seen, shows)


def _fell_most(task: GuessTask, before: KnownRun, seen: KnownRun) -> _Decision | None:
    """Find the figure that fell by the largest factor from the first to the second run, and the answer that names it.

    A count of 0 is taken as one event. Another answer is right, too, if both figures are nearly 0 (``GONE``) and fell
    alike (``ALIKE``). If no figure fell to half of its value or less, the answer that names no figure is right. Return
    None if no figure is known, or if an unknown figure may have fallen most.
    """
    none = next(a for a in task.answers if a.figure is None)
    figures = {a.figure: figure_with_id(a.figure) for a in task.answers if a.figure is not None}
    factors = {name: ratio(one, before, seen) for name, one in figures.items()}
    known = {name: factor for name, factor in factors.items() if factor is not None}
    unread = any(factor is None and figures[name].traced for name, factor in factors.items())
    if not known or unread:
        # A figure that only a trace knows may be the one that fell most.
        return None
    most = max(known, key=lambda name: known[name])
    alike = [name for name in known if name == most or known[name] >= max(GONE, known[most] / ALIKE)]
    # A factor from a count of 0 is computed, not seen. It is told where it shows why another figure is right.
    told = {
        name: _fall(figures[name], factor, before, seen)
        if figures[name].of(seen) or name not in alike
        else moved(figures[name], before, seen)
        for name, factor in known.items()
    }
    decided, others = (" ".join(told[name] for name in known if (name in alike) is wanted) for wanted in (True, False))
    if "device-interrupts" in known:
        others = " ".join(filter(None, (others, managed_told(before, seen))))
    if known[most] < MOVED:
        return _Decision((none,), f"None of these figures fell to half. This figure fell most: {decided}", others)
    by_answer = {a.id: _with_figure(a.text, told[a.figure]) for a in task.answers if a.figure in told}
    return _Decision(tuple(a for a in task.answers if a.figure in alike), decided, others, by_answer)


def _with_figure(text: str, told: str) -> str:
    """Return an answer with the values of its figure: ``how often our threads are moved, 3.47 → 0 a second``. ``told``:
    the sentence on the figure. Its name is left out, unless it begins with the answer."""
    told = told.removesuffix(".")
    return told if told.startswith(text) else f"{text}, {told.rpartition(': ')[2]}"


def _fall(one: Figure, factor: float, before: KnownRun, seen: KnownRun) -> str:
    """Return a sentence on a figure in two runs, with the factor if the figure fell: ``The thread preempted: 951 → 47.4
    a second, a factor of 20.`` If the second run counted 0, the factor is the least one."""
    told = _moved(one, before, seen)
    if factor <= 1:
        return f"{told}."
    least = "" if one.of(seen) else "at least "
    return f"{told}, a factor of {least}{times_told(factor)}."


def _events(one: Figure, before: KnownRun, seen: KnownRun) -> str:
    """Return the words before a factor: ``, a factor of ``. For a count of fewer than ten events they tell these
    events: `` (7 → 0 events), a factor of at least ``. A factor of a run without an event counts one."""
    events = few_events(one, before, seen)
    if events is None:
        return ", a factor of "
    return f" ({events[0]} → {events[1]} events), a factor of {'at least ' if 0 in events else ''}"


def _moved(one: Figure, before: KnownRun, seen: KnownRun) -> str:
    """Return the sentence on a figure in two runs without its full stop, so that a clause can follow."""
    return moved(one, before, seen).removesuffix(".")


def _in_range(task: GuessTask, before: KnownRun, seen: KnownRun, shows: Shows | None) -> _Decision | None:
    """Find the answer whose range contains the deciding factor, ratio or value. Return None if the runs do not have the
    deciding figure."""
    name = shows.figure if task.by == "factor" and shows is not None else task.figure
    if name is None:
        return None
    one = figure_with_id(name)
    value, told = None, f"{titled(one, seen.run).headline}: {one.told(seen)}."
    if task.by == "value":
        value = one.of(seen)
    elif task.by == "ratio":
        value = _second_to_first(one, before, seen)
        much = "many" if one.unit == "a second" else "much"
        told = "" if value is None else f"{_moved(one, before, seen)}, {_factor(value)} times as {much}."
    elif shows is not None and (value := ratio(one, before, seen, rises=shows.rises)) is not None:
        told = f"{_moved(one, before, seen)}{_events(one, before, seen)}{_factor(value)}."
    if value is None:
        return None
    # The learner compares the answers with the value as it is told.
    as_told = float((nice_number if task.by == "value" else _factor)(value).replace(",", ""))
    return _Decision((next(a for a in task.answers if a.up_to is None or as_told <= a.up_to),), told)


def _factor(value: float) -> str:
    """Return a factor or a ratio as the number with which the answers' ends are compared. A ratio below 1 is a decimal
    number, as in the answers."""
    return times_told(value) if value >= 1 else nice_number(value)


def _second_to_first(one: Figure, before: KnownRun, seen: KnownRun) -> float | None:
    """Return the ratio of a figure's values: the second run's divided by the first run's.

    Return 1 if both values are equal, and None if a run does not have the figure. A run can measure a figure only down
    to a limit. For a lower value, the limit is used.
    """
    first, second = one.of(before), one.of(seen)
    if first is None or second is None:
        return None
    if first == second:
        return 1.0
    return max(second, one.least(seen)) / max(first, one.least(before))


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _mark(task: GuessTask, guess: Guess, seen: KnownRun) -> GuessOutcome:
    guessed, run = guess.value_ns, seen.run
    percentile = task.percentile or "99.9"
    measured = run.percentile(percentile)
    if guessed is None or guessed <= 0:
        return GuessOutcome("You marked no value.", None, "", None, measured)
    if measured is None:
        what = KINDS[run.workload].counted if run.workload in KINDS else "messages"
        text = f"This run has too few {what} to know its p{percentile}."
        return GuessOutcome(text, None, "", guessed, None)
    if leaves_out_waits(seen) and (share := sent_share(seen)) is not None:
        return GuessOutcome(f"{_NOT_JUDGED}{_few_told([share])}, and {_LEFT_OUT}", None, "", guessed, None)
    near, words = judge_value(guessed, measured)
    few = FEW_STALLS if marks_of_run(run).get(percentile) == FEW_STALLS else ""
    text = f"You marked {nice_ns(guessed)} at p{percentile}; it was {few}{nice_ns(measured)}, {words}."
    guess_answer = answer_for_value(task, guessed)
    real_answer = answer_for_value(task, measured)
    explanation = f"{nice_ns(measured)} ({real_answer.text}): {real_answer.explanation}"
    if guess_answer is not real_answer:
        explanation += f"\n\nYour {nice_ns(guessed)} ({guess_answer.text}): {guess_answer.explanation}"
    return GuessOutcome(text, near, explanation, guessed, measured)


def by_curve(task: GuessTask, guess: Guess, curve: PercentileCurve) -> GuessOutcome:
    """Judge the value that a learner marked at a percentile, by a curve of another machine. ``curve``: this curve."""
    percentile = task.percentile or "99.9"
    measured = curve_value_at(curve, float(percentile))
    if guess.value_ns is None or measured is None:
        return GuessOutcome(
            "Your guess is not judged: you marked no value, or the other machine's curve has no value there.",
            None,
            "",
            None,
            measured,
        )
    near, words = judge_value(guess.value_ns, measured)
    marked = f"You marked {nice_ns(guess.value_ns)} at p{percentile}"
    text = f"{marked}; '{clean(curve.label, ID)}' had {nice_ns(measured)}, {words}."
    answer = answer_for_value(task, measured)
    explanation = f"{nice_ns(measured)} ({answer.text}): {answer.explanation}"
    return GuessOutcome(text, near, explanation, guess.value_ns, measured)


def judge_value(guessed_ns: int, measured_ns: int) -> tuple[bool, str]:
    """Return two values: True if the guess is near the measured value, and words that compare both, such as ``3.2×
    longer``: the measured value is longer than the guess."""
    measured_ns = max(measured_ns, 1)
    ratio = max(guessed_ns / measured_ns, measured_ns / guessed_ns)
    if ratio <= 1.25:
        return True, "practically as you said"
    side = "longer" if measured_ns > guessed_ns else "shorter"
    return ratio <= NEAR_FACTOR, difference_told(ratio, side)
