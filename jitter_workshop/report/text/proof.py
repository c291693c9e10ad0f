"""Show a proof as text: its cost before it begins, and its result. It fits 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.change import Change
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.proof import PLACEMENT, SETTLE_S, Proof, ProofPlan
from jitter_workshop.model.text import clean, many, minute
from jitter_workshop.model.verdict import ENOUGH_ROUNDS, Judgement, Verdict, VerdictWord
from jitter_workshop.report.text import plan as plan_text
from jitter_workshop.report.text.terminal import Style, wrap
from jitter_workshop.stats import interval_plot
from jitter_workshop.stats.comparison import amount, measure_name
from jitter_workshop.stats.scale import nice_duration, times

_NAME, _VALUE, _RATIO, _SPAN = 19, 11, 8, 18
_ONE_LINE = 99
"""From this width on, figures and picture stand in one line."""
_NO_SPAN = 80
"""Below this width only the picture shows the interval."""
_PICTURE = 17
_WIDE_PICTURE = 45
_TEXT = 500
GIVEN_BACK = "Given back: nothing of it stands any more."
OF_PAIRS = "Ratio and interval are of the pairs, not of the two columns, in which one bad run weighs more."

WORDS: dict[VerdictWord, str] = {
    "lower": "lower",
    "higher": "higher",
    "no_change": "no change",
    "cannot_tell": "cannot tell",
}
_COLOURS: dict[VerdictWord, str] = {
    "lower": "good",
    "higher": "attention",
    "no_change": "known",
    "cannot_tell": "dim",
}


# -- before ------------------------------------------------------------------------------------------------------------


def cost(plan: ProofPlan, style: Style, settle_s: float = SETTLE_S) -> str:
    """Return the work and the cost of a proof, ending with a line break."""
    subject = clean(plan.subject, 200)
    lines = [
        style.paint(f"Prove {subject}: {many(plan.rounds, 'round')}, about {nice_duration(plan.total_s)}.", "strong")
    ]
    preset = f"{plan.preset} preset, " if plan.preset else ""
    runs = f"{2 * plan.rounds:,} runs of {plan.workload} ({preset}{plan.run_s:g} s each)"
    settle = f"{settle_s:g} s" if settle_s != 1 else "second"
    said = f"{runs}: in each round one without it and one with it, in an order drawn by chance; "
    said += f"the first {settle} of each run is not recorded." if settle_s else "all of each run is recorded."
    lines += ["", *wrap(said, style.width)]
    if plan.changes:
        lines += ["", *_writes(plan, style)]
    if plan.notices:
        lines.append("")
        for notice in plan.notices:
            lines += _item(notice, style)
    lines += ["", *wrap("It can be stopped at any time (Ctrl-C): the rounds that are finished count.", style.width)]
    return "\n".join(lines) + "\n"


def _writes(plan: ProofPlan, style: Style) -> list[str]:
    if plan.subject == PLACEMENT:
        head = "WITH IT EACH THREAD IS PLACED, WITHOUT IT THE SCHEDULER IS FREE"
        return [style.paint(head, "strong"), *(line for one in plan.changes for line in _placed(one, style))]
    count = many(len(plan.changes), "write")
    head = f"{count} on hot {'CPU' if len(plan.hot_cpus) == 1 else 'CPUs'} {CpuSet(plan.hot_cpus)}, "
    head += "made and given back once for a trial and then in every round:"
    return [*wrap(head, style.width), "", *plan_text.changes(plan.changes, style)]


def _placed(one: Change, style: Style) -> list[str]:
    return _item(f"{clean(one.path, 80)}  {clean(one.before, 80)} → {clean(one.after, 80)}", style)


# -- after -------------------------------------------------------------------------------------------------------------


def render(proof: Proof, style: Style) -> str:
    """Return the result of a proof, ending with a line break: the words first, then figures, pictures and their
    limits."""
    lines = [*_headline(proof, style), "", *wrap(_made(proof), style.width)]
    said = proof.judgement
    if said is not None and said.rows:
        lines += ["", *table(said.rows, style), ""]
        lines += [style.paint(line, "dim") for line in wrap(OF_PAIRS, style.width)]
        lines += _untold(said, style)
    if said is not None:
        lines += ["", *wrap(clean(said.worst, _TEXT), style.width)]
        lines += wrap(clean(said.drift.words, _TEXT), style.width)
    lines += ["", *_ended(proof, style)]
    return "\n".join(lines) + "\n"


def headline(proof: Proof) -> str:
    """Return the sentence to say first, without its full stop."""
    said = proof.judgement
    if said is None:
        return "Not proven: no round was finished"
    text = clean(said.headline.text, _TEXT).removesuffix(".")
    return f"{'Not proven' if said.headline.verdict == 'cannot_tell' else 'Proven'}: {text}{company(proof)}"


def company(proof: Proof) -> str:
    """Return the part after a headline that tells that others disturbed most of the runs, with a space before it; else
    ""."""
    runs = 2 * len(proof.rounds)
    return f" ({proof.disturbed} of {many(runs, 'run')} disturbed by others)" if 2 * proof.disturbed > runs else ""


def table(rows: Sequence[Verdict], style: Style) -> list[str]:
    """Return a line per measure with its picture; below 99 columns the pictures follow the figures."""
    axis = interval_plot.axis_of(rows)
    wide, narrow = style.width >= _ONE_LINE, style.width < _NO_SPAN
    value = _VALUE - narrow
    span = "" if narrow else f"{'95 % interval':>{_SPAN}}"
    head = f"{'':<{_NAME}}{'without':>{value}}{'with':>{value}}{'ratio':>{_RATIO}}{span}  "
    lines = [style.paint((head + (interval_plot.scale(axis, _PICTURE) if wide else "")).rstrip(), "dim")]
    for row in rows:
        figures = f"{clean(measure_name(row.measure), _NAME):<{_NAME}}"
        figures += f"{amount(row.measure, row.without):>{value}}{amount(row.measure, row.with_it):>{value}}"
        figures += f"{times(row.ratio):>{_RATIO}}{'' if narrow else f'{span_of(row):>{_SPAN}}'}  "
        if wide:
            figures += f"{interval_plot.drawn(interval_plot.strip(row, axis), axis, _PICTURE)}  "
        lines.append(figures + _word(row, style))
    if not wide and any(interval_plot.strip(row, axis) is not None for row in rows):
        scale, *drawn = pictures(rows, style.width)
        lines += ["", style.paint(scale, "dim"), *drawn]
    return lines


def pictures(rows: Sequence[Verdict], columns: int) -> list[str]:
    """Return the labels of the axis that all intervals share, then a line per measure with its picture."""
    axis = interval_plot.axis_of(rows)
    width = min(_WIDE_PICTURE, (columns - _NAME - 2 - 11) // 2 * 2 - 1)
    lines = [" " * (_NAME + 2) + interval_plot.scale(axis, width)]
    for row in rows:
        picture = interval_plot.drawn(interval_plot.strip(row, axis), axis, width)
        lines.append(f"{clean(measure_name(row.measure), _NAME):<{_NAME}}  {picture}".rstrip())
    return lines


def listed(proofs: Sequence[Proof], style: Style) -> str:
    """Return the proofs of a session in short, oldest first, ending with a line break."""
    if not proofs:
        return "No proof is kept in this session.\n"
    lines = []
    for proof in proofs:
        lines += ["", style.paint(f"{proof.id}  {clean(proof.subject, 50)}", "strong")]
        lines += ["  " + line for line in wrap(f"{headline(proof)}.", style.width - 2)]
        lines += ["  " + line for line in wrap(_made(proof), style.width - 2)]
    return "\n".join(lines[1:]) + "\n"


def _headline(proof: Proof, style: Style) -> list[str]:
    said = proof.judgement
    how = "strong" if said is None or said.headline.verdict == "cannot_tell" else _COLOURS[said.headline.verdict]
    return [style.paint(line, how) for line in wrap(f"{headline(proof)}.", style.width)]


def _made(proof: Proof) -> str:
    done = len(proof.rounds)
    rounds = many(done, "round") if done == proof.planned else f"{done} of {many(proof.planned, 'round')}"
    what = f"{clean(proof.subject, 200)}: {rounds} of {clean(proof.workload, 20)}"
    what += f", {clean(proof.preset, 20)} preset" if proof.preset else ""
    return f"{what}, begun {minute(proof.started_at)} UTC, order drawn with seed {proof.seed}."


def _untold(said: Judgement, style: Style) -> list[str]:
    """Return why some lines cannot tell, and the number of rounds that would."""
    rows = [row for row in said.rows if row.verdict == "cannot_tell"]
    if not rows:
        return []
    lines = ["", style.paint("LINES WITHOUT A VERDICT", "strong")]
    if said.rounds < ENOUGH_ROUNDS:
        gives = "gives" if said.rounds == 1 else "give"
        why = f"{many(said.rounds, 'round')} {gives} figures; a verdict needs {ENOUGH_ROUNDS}. Nothing above is one."
        return [*lines, *_item(why, style)]
    needed = [f"{measure_name(row.measure)} {row.rounds_needed:,}" for row in rows if row.rounds_needed is not None]
    if needed:
        lines += _item(f"About this many rounds would tell, at the spread seen: {', '.join(needed)}.", style)
    for row in rows:
        if row.rounds_needed is None:
            lines += _item(clean(row.words, _TEXT).replace(": cannot tell", "", 1) + ".", style)
    return lines


def _ended(proof: Proof, style: Style) -> list[str]:
    """Return how the proof ended: complete or not, given back or not, and its notes."""
    lines: list[str] = []
    if proof.stopped:
        lines += [style.paint(line, "attention") for line in wrap(f"Ended early: {_text(proof.stopped)}", style.width)]
    if not proof.ended_at and not proof.stopped:
        lines.append("It is under way.")
    elif proof.restored:
        placed = proof.subject == PLACEMENT
        given = "Given back, but not all is as it was before:" if proof.left_alone else GIVEN_BACK
        lines.append("Nothing of this host was written." if placed else given)
    else:
        told = "NOT GIVEN BACK: 'jitter-workshop restore --list' shows what stands, 'restore' tries again."
        lines += [style.paint(line, "alarm") for line in wrap(told, style.width)]
    for left in proof.left_alone:
        lines += _item(f"{left.tunable} {left.path}: {left.reason}", style)
    for note in proof.notes:
        lines += _item(f"{note}.", style)
    return lines


def _word(row: Verdict, style: Style) -> str:
    return style.paint(WORDS[row.verdict], _COLOURS[row.verdict])


def span_of(row: Verdict) -> str:
    """Return a line's interval: ``1/77 – 1/16``, ``any`` where it says nothing."""
    if row.low <= 0 and row.high is None:
        return "any"
    return f"{times(row.low)} – {times(row.high) if row.high is not None else 'any'}"


def _text(text: str) -> str:
    return clean(text, _TEXT).removesuffix(".") + "."


def _item(text: str, style: Style) -> list[str]:
    body = wrap(clean(text, _TEXT), style.width - 4)
    return ["  " + body[0], *("    " + line for line in body[1:])] if body else []
