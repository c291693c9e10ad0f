"""Return the lines about a host's settings in a chapter: the plan, its result, before and after. All are pure
functions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.text import Text

from jitter_workshop.course.predictions import answer_for_value
from jitter_workshop.errors import WorkshopError
from jitter_workshop.model.change import Change
from jitter_workshop.model.course import Answer, PredictionTask
from jitter_workshop.model.session import Prediction
from jitter_workshop.model.text import clean, many
from jitter_workshop.model.walk import ApplyView, Fact, PlanView, PredictionOutcome, RunCurve, SettingChange
from jitter_workshop.presenter.chapter_lines import Lines, facts, heading
from jitter_workshop.presenter.lines import table, wrap
from jitter_workshop.presenter.plan_overview import in_short
from jitter_workshop.presenter.prose import styled
from jitter_workshop.presenter.settings_words import apply_command, for_one_boot, script_command
from jitter_workshop.report.text.plan import reason_of

_LEFT_OUT = " Left out: "
_VALUE = 400


def recording_lines(reason: str, recording: str, width: int) -> Lines:
    """Return the banner of a chapter that is taught on a recording, at most two lines."""
    line = Text(style="text")
    line.append("ON A RECORDING", "bold accent")
    line.append(f" {clean(recording, 30)}:" if recording else ":", "dim")
    line.append(f" {_sentence(reason)}")
    return wrap(line, width, "", "  ")[:2]


def plan(view: PlanView, words: Sequence[str], recorded: bool, width: int) -> Lines:
    """Return the plan: the writes under their tunable with path, before → after, and the reason once; the tunables that
    are left out; the way without rights. Of many writes the first few are shown here, and all of them at the end."""
    count = len(view.changes)
    files = f" in {view.host_files} {'file' if view.host_files == 1 else 'files'}" if view.host_files != count else ""
    groups = _by_tunable(view.changes)
    shortened = any(in_short(group)[1] for group in groups)
    order = ". All of them are listed below." if shortened else ", in this order."
    what = f"{many(count, 'write')}{files}{order}" if count else "Nothing."
    lines: Lines = [heading("WHAT WOULD BE WRITTEN"), *wrap(Text(what, "text"), width)]
    lines += writes(view.changes, width)
    said, *left_out = view.text.split(_LEFT_OUT)
    lines += [Text(), *wrap(styled(said), width)]
    if left_out:
        lines += [Text(), heading("LEFT OUT")]
        for one in left_out:
            lines += wrap(styled(one, "dim"), width, "  ", "    ")
    then = list(dict.fromkeys(change.then for change in view.changes if change.then))
    lines += [Text(f"Then, once: {clean(command, 200)}", "text") for command in then]
    if count and not recorded:
        lines += [Text(), *no_rights(words, width)]
    return lines + every_write(view.changes, width) if shortened else lines


def writes(changes: Sequence[Change], width: int) -> Lines:
    """Return writes under their tunable, with an empty line before each tunable. Of many writes only the first few are
    shown."""
    return [line for group in _by_tunable(changes) for line in (Text(), *_in_short(group, width))]


def every_write(changes: Sequence[Change], width: int) -> Lines:
    """Return every write in its order."""
    lines: Lines = [Text(), heading("EVERY WRITE, IN ITS ORDER")]
    for group in _by_tunable(changes):
        lines += [Text(), _head(group), *_one_by_one(group, width)]
    return lines


def _by_tunable(changes: Sequence[Change]) -> list[list[Change]]:
    return [list(group) for _, group in groupby(changes, key=lambda change: change.tunable)]


def _in_short(changes: Sequence[Change], width: int) -> Lines:
    """Return a tunable's name and risk, its first writes, the number of tasks it moves, and the reason."""
    shown, said = in_short(changes)
    if not said:
        return [_head(changes), *_every(changes, width)]
    head = _head(changes)
    head.append(f"   {many(len(changes), 'write')}", "dim")
    lines: Lines = [head]
    for change in shown:
        lines += _change(change, width)
    for sentence in said:
        lines += wrap(Text(sentence, "text"), width, "    + ", "      ")
    return [*lines, *wrap(Text(clean(reason_of(changes[0]), 600), "dim"), width, "  ")]


def _head(changes: Sequence[Change]) -> Text:
    worst = max((c.risk for c in changes), key=("low", "medium", "high").index)
    colour = {"low": "dim", "medium": "accent", "high": "bad"}[worst]
    head = Text(clean(changes[0].tunable, 40), "bold cool")
    head.append(f"   risk {worst}", colour)
    if changes[0].when == "boot":
        alone = " alone" if any(c.kind == "grub-once" for c in changes) else ""
        head.append(f"   takes effect with the next boot{alone}", "accent")
    return head


def _every(changes: Sequence[Change], width: int) -> Lines:
    """Return each reason of a tunable's writes once, and every write."""
    lines: Lines = []
    for reason in dict.fromkeys(clean(c.why, 400) for c in changes if c.why):
        lines += wrap(Text(reason, "dim"), width, "  ")
    for change in changes:
        lines += _change(change, width)
    return lines


def _one_by_one(changes: Sequence[Change], width: int) -> Lines:
    """Return every write. Below it stands its reason, unless the write before has the same reason."""
    lines: Lines = []
    told = ""
    for change in changes:
        lines += _change(change, width)
        if change.why != told:
            told = change.why
            lines += wrap(Text(clean(told, 400), "dim"), width, " " * 8)
    return lines


def _change(change: Change, width: int) -> Lines:
    """Return ``3  PATH  before → after`` in one line where that fits, else the values below the path."""
    number = f"{change.n:>4}  "
    path = Text(clean(change.path, 400), "text")
    values = Text(f"{clean(change.before, _VALUE) or '(empty)'} → ", "dim")
    values.append(clean(change.after, _VALUE) or "(empty)", "bold text")
    if change.lease:
        values.append("  (only as long as it is held)", "dim")
    if len(number) + path.cell_len + 2 + values.cell_len <= width:
        return [Text.assemble((number, "dim"), path, "  ", values)]
    indent = " " * (len(number) + 2)
    return [*wrap(path, width, number, indent), *wrap(values, width, indent)]


def no_rights(words: Sequence[str], width: int) -> Lines:
    """Return the way to the same changes for a user who is not root."""
    if for_one_boot(words):
        once = f"No root access here? A user who has them can do the same with `{apply_command(words)}`."
        return wrap(styled(once, "dim"), width)
    text = f"No root access here? `{script_command(words)}` makes a script of exactly this, with its undo, "
    return wrap(styled(text + "for a user who has them.", "dim"), width)


def applied(view: ApplyView, checks: Sequence[Fact], width: int) -> Lines:
    """Return what was written, and the host's values now. ``checks``: the chapter's tunables, read again."""
    sign, colour = ("✓", "good") if view.settled and not view.refused else ("▸", "accent")
    lines: Lines = [heading("RESULT")]
    lines += wrap(Text(clean(view.text, 600), style=f"bold {colour}"), width, f"{sign} ", "  ")
    if view.refused:
        lines += [Text(), heading("REFUSED")]
        for where, reason in view.refused:
            line = Text(f"{clean(where, 200)}: ", "text")
            line.append(clean(reason, 400), "dim")
            lines += wrap(line, width, " ✗ ", "   ")
    if checks:
        lines += [Text(), *facts(checks, width, "READ AGAIN ON THIS HOST")]
    return lines


def not_applied(error: WorkshopError, words: Sequence[str], width: int) -> Lines:
    """Return the lines for an apply that failed, with the ways out."""
    lines: Lines = [heading("NOT APPLIED")]
    lines += wrap(Text(_sentence(error.message), "text"), width)
    if error.advice and "plan --sh" not in error.advice:
        lines += wrap(Text(_sentence(error.advice), "text"), width, "→ ")
    lines += [Text(), *wrap(styled("A user with root's rights can do it for you:"), width)]
    by_apply = (
        (apply_command(words), "shows the plan, asks, and makes the changes"),
        ("sudo jitter-workshop restore", "gives them back"),
    )
    by_script = (
        (script_command(words), "writes the plan down as a script; look at it"),
        ("sudo sh plan.sh apply", "makes the changes, and says so where the host is no longer as planned"),
        ("sudo sh plan.sh undo", "gives them back"),
    )
    for command, why in by_apply if for_one_boot(words) else by_script:
        lines += wrap(Text(command, "code"), width, "  $ ", "    ")
        lines += wrap(Text(why, "dim"), width, "    ")
    tail = "Enter goes on without it: the second run then shows this host as it is. b and Enter come back here."
    return [*lines, Text(), *wrap(Text(tail, "text"), width)]


def settings_compared(changes: Sequence[SettingChange], width: int) -> Lines:
    """Return a rehearsed chapter's tunables before and after, from its two recordings."""
    if not changes:
        none = "This chapter sets nothing, so the recordings are alike, and nothing is measured on them."
        return [heading("NO SETTINGS TO COMPARE"), *wrap(Text(none, "text"), width)]
    lines: Lines = [heading("BEFORE AND AFTER, ON THE RECORDINGS")]
    rows = [["", "before", "", "after", ""]]
    rows += [
        [clean(c.title, 40), clean(c.before, 40), "→", clean(c.after, 40), "✓" if c.settled else "·"] for c in changes
    ]
    lines += table(rows, width=width)
    if any(c.settled for c in changes):
        lines += [Text(), Text("✓  as this chapter wants it", "dim")]
    return lines


def answers_explained(task: PredictionTask, kept: Prediction | None, width: int) -> Lines:
    """Return the meaning of each answer to a question that no run on a recording decides. The learner's own answer is
    marked."""
    lines: Lines = [Text(), heading("WHAT THE ANSWERS STAND FOR")]
    lines += wrap(styled(task.question, "bold text"), width)
    guess: Answer | None = None
    if kept is not None and kept.value_ns is not None:
        guess = answer_for_value(task, kept.value_ns)
    elif kept is not None:
        guess = next((answer for answer in task.answers if answer.id == kept.choice), None)
    for answer in task.answers:
        line = styled(answer.text, "bold text")
        line.append(" (your guess)" if answer is guess else "", "accent")
        lines += [Text(), *wrap(line, width, "✓ " if answer.right else "• ", "  ")]
        lines += wrap(styled(answer.explanation, "text"), width, "  ")
    return lines


def nothing_measured(shown: Sequence[RunCurve], width: int) -> Lines:
    """Return the lines that stand in the place of a run in a rehearsed chapter."""
    lines: Lines = [heading("NO RUN HERE")]
    none = ", and no run of this chapter on another machine comes with the course."
    text = f"Nothing is measured on a recording{'. t turns to the curve of another machine.' if shown else none}"
    return [*lines, *wrap(Text(text, "text"), width)]


def answered(task: PredictionTask, outcome: PredictionOutcome, width: int) -> Lines:
    """Return the result of an answer that no run decides: whether it is right, why, and why the right one is right."""
    colour = {True: "good", False: "bad", None: "text"}[outcome.near]
    sign = {True: "✓ ", False: "✗ ", None: ""}[outcome.near]
    lines: Lines = [Text(), *wrap(styled(outcome.text, f"bold {colour}"), width, sign)]
    explained = [outcome.explanation]
    explained += [a.explanation for a in task.answers if a.right and not outcome.near]
    for text in dict.fromkeys(filter(None, explained)):
        lines += [Text(), *wrap(styled(text), width, "  ")]
    return lines


def _sentence(text: str) -> str:
    said = clean(text, 600).rstrip(".")
    return f"{said[:1].upper()}{said[1:]}."
