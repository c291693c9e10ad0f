"""Return the lines of a proof's pages: its cost, its rounds while they are made, the verdict. All are pure
functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from rich.text import Text

from jitter_workshop.flow.proving.proof_run import ProofStep
from jitter_workshop.model.observe import Progress
from jitter_workshop.model.proof import PLACEMENT, Proof, ProofPlan
from jitter_workshop.model.text import clean
from jitter_workshop.model.verdict import ENOUGH_ROUNDS, Order, Verdict, VerdictWord
from jitter_workshop.presenter import proof_words as words
from jitter_workshop.presenter.chapter_lines import Lines, heading
from jitter_workshop.presenter.lines import bar, wrap
from jitter_workshop.presenter.plan_overview import in_short
from jitter_workshop.presenter.prose import styled
from jitter_workshop.presenter.settings_lines import every_write, writes
from jitter_workshop.report.text.proof import OF_PAIRS, WORDS, headline
from jitter_workshop.stats.comparison import amount, measure_name
from jitter_workshop.stats.interval_plot import Axis, axis_of, drawn, scale, strip
from jitter_workshop.stats.scale import times
from jitter_workshop.stats.verdicts import SoFar

_HEADS = ("", "without", "with", "ratio")
_VERDICT = len("cannot tell")
_ROOMY = 70
"""From this width on a table's columns stand further apart."""
_LEAST_STRIP, _MOST_STRIP = 9, 61
_LABEL = 7
"""Cells left of the picture of the rounds."""
_WIDEST_ROUND = 10
_REACHES = (3, 10, 30, 100, 300, 1_000)


# -- the cost ----------------------------------------------------------------------------------------------------------


def cost(plan: ProofPlan, choices: Sequence[int], chosen: int, before: Proof | None, width: int) -> Lines:
    """Return the work of a proof, its writes, and the numbers of rounds to choose from."""
    lines = wrap(Text(f"To prove: {words.subject(plan.subject)}", "bold text"), width, "", "  ")
    lines += wrap(Text(words.DRAWN, "dim"), width)
    lines += [Text(), heading("ROUNDS")]
    asked = words.asked_for(before)
    for number, rounds in enumerate(choices):
        under = number == chosen
        former = " The proof before asked for this number." if rounds == asked else ""
        line = Text(f"{words.work(plan, rounds)}{former}", style="bold text" if under else "text")
        lines += wrap(line, width, f"{'▸' if under else ' '} {number + 1}  ", "     ")
    lines += [Text(), heading("WHAT A ROUND WRITES")]
    lines += wrap(Text(words.given_back(plan), "text"), width)
    lines += wrap(Text(words.STOPPED_AND_KEPT, "text"), width)
    lines += writes(plan.changes, width)
    if plan.notices:
        lines += [Text(), heading("TO KNOW")]
        for notice in plan.notices:
            lines += wrap(styled(notice), width, " • ")
    shortened = any(in_short(list(group))[1] for _, group in groupby(plan.changes, key=lambda change: change.tunable))
    return lines + every_write(plan.changes, width) if shortened else lines


# -- the rounds while they are made ------------------------------------------------------------------------------------


def rounds_so_far(
    seen: SoFar | None,
    orders: Sequence[Order],
    step: ProofStep | None,
    planned: int,
    height: int,
    width: int,
) -> Lines:
    """Return the ratio of each round for the measure that is judged first, in order of time, with the order of its two
    runs below. ``orders``: of the finished rounds. ``height``: rows of the picture."""
    name = seen.name if seen is not None else "first figures after the first round"
    title = Text(f"{name}, with ÷ without" if seen is not None else name, "bold text")
    title.append(f"   {words.NOT_JUDGED}", "accent")
    if seen is not None:
        told = f"   {words.seen_so_far(seen.ratios)}"
        if title.cell_len + len(told) <= width:
            title.append(told, "dim")
    room = max(width - _LABEL - 2, 1)
    each = min(max(room // max(planned, 1), 1), _WIDEST_ROUND)
    shown = min(room // each, planned)
    begun = len(orders) + (step is not None and step.round >= len(orders))
    skipped = max(begun - shown, 0)
    ratios = (seen.ratios if seen is not None else ())[skipped:]
    lines = [title, Text(), *_picture(ratios, shown, each, height)]
    lines += _signs(orders[skipped:], step if step is not None and step.round >= len(orders) else None, shown, each)
    if skipped:
        lines.append(Text(f"{'':<{_LABEL}}  the newest {shown} rounds; {skipped} came before", "dim"))
    return [*lines, Text(), *wrap(Text(words.SIGNS, "dim"), width)]


def _picture(ratios: Sequence[float | None], shown: int, each: int, height: int) -> Lines:
    """Return the rows of the picture: many times more at the top, many times less at the bottom, 1 in the middle."""
    rows = max(height | 1, 5)
    middle = rows // 2
    reach = _reach(ratios)
    labels = {0: f"{reach:,}×", middle: "1", rows - 1: f"1/{reach:,}"}
    grid = [[" "] * (shown * each) for _ in range(rows)]
    grid[middle] = ["┄"] * (shown * each)
    for number, ratio in enumerate(ratios):
        row, sign = _place(ratio, reach, middle)
        grid[row][number * each + (each - 1) // 2] = sign
    lines: Lines = []
    for number, cells in enumerate(grid):
        line = Text(f"{labels.get(number, ''):>{_LABEL}} ", "dim")
        line.append("┤" if number in labels else "│", "faint")
        for faint, signs in groupby(cells, key=lambda sign: sign in " ┄"):
            line.append("".join(signs), "faint" if faint else "bold accent")
        lines.append(line)
    return lines


def _reach(ratios: Sequence[float | None]) -> int:
    """Return the limit of the picture's scale, as a factor up and down: the smallest that holds all rounds."""
    far = max((max(r, 1 / r) for r in ratios if r and not math.isinf(r)), default=1.0)
    return next((reach for reach in _REACHES if reach >= far), _REACHES[-1])


def _place(ratio: float | None, reach: int, middle: int) -> tuple[int, str]:
    """Return the row and the sign of a round. An arrow at the edge means none on one side, or a ratio beyond the
    scale."""
    if ratio is None:
        return middle, "○"
    if ratio == 0:
        return 2 * middle, "▼"
    up = math.log(ratio) / math.log(reach)
    return round(middle * (1 - min(max(up, -1.0), 1.0))), "●" if abs(up) <= 1 + 1e-9 else "▲" if up > 0 else "▼"


def _signs(orders: Sequence[Order], step: ProofStep | None, shown: int, each: int) -> Lines:
    """Return two rows of signs: each round's first run and its second."""
    lines: Lines = []
    for which, label in enumerate(("first", "then")):
        line = Text(f"{label:>{_LABEL}}  ", "dim")
        signs = [(words.signs(order)[which], "text") for order in orders]
        if step is not None:
            known = words.signs(step.order)[which]
            place = step.number % 2
            now = [(words.NOW, "bold accent"), (known, "text"), (words.TO_COME, "faint")]
            signs.append(now[0] if which == place else now[1] if which < place else now[2])
        signs += [(words.TO_COME, "faint")] * max(shown - len(signs), 0)
        for sign, style in signs[:shown]:
            line.append(f"{'':<{(each - 1) // 2}}{sign}".ljust(each), style)
        lines.append(line)
    return lines


def progress(step: ProofStep | None, block: Progress | None, planned: int, left_s: float, width: int) -> Lines:
    """Return two lines: a bar of the finished runs with the time left, and the present run."""
    done = (step.number if step is not None else 0) + (block.done / block.total if block is not None else 0.0)
    left = f"  {words.left(left_s)}"
    room = max(width - max(len(left), 24), 10)
    line = Text(bar(done, max(2 * planned, 1), room), "accent")
    line.append("─" * max(room - line.cell_len, 0), "faint")
    line.append(left, "text")
    if step is None:
        return [line, Text("Preparing: the changes are applied and given back once…", "dim")]
    now = Text(words.step_of(step, planned), "text")
    state = f"block {block.done} of {block.total}" if block is not None else "calibrating and settling"
    now.append(f" · {state}", "dim")
    return [line, now]


# -- the verdict -------------------------------------------------------------------------------------------------------


def verdict(proof: Proof, width: int) -> Lines:
    """Return the verdict: first the words, then the table with its strips, then all else."""
    said = proof.judgement
    lines = wrap(_headline(proof), width)
    if said is not None and said.rows:
        lines += [Text(), *_table(said.rows, width)]
    lines.append(Text())
    back = words.restored(proof)
    fine = proof.restored or proof.subject == PLACEMENT
    lines += wrap(Text(back, style="text" if fine else "bold bad"), width, "" if fine else "! ", "  ")
    for left in proof.left_alone:
        why = f"{clean(left.path, 200)}: {clean(left.reason, 300)}"
        lines += wrap(Text(why, "text"), width, "    ")
    if said is not None and said.rows:
        lines += wrap(Text(OF_PAIRS, "dim"), width, "", "  ")
    for sentence in words.rest(proof):
        lines += wrap(styled(sentence), width, "", "  ")
    if said is not None and said.rounds >= ENOUGH_ROUNDS:
        lines += [Text(), heading("EACH LINE IN WORDS")]
        for row in said.rows:
            lines += wrap(Text(f"{clean(row.words, 400)}.", "text"), width, " • ")
    lines += [Text(), heading("THIS PROOF"), *_about(proof, width)]
    return lines


def _headline(proof: Proof) -> Text:
    told = f"{headline(proof)}."
    head, _, tail = told.partition(": ")
    word = proof.judgement.headline.verdict if proof.judgement is not None else "cannot_tell"
    colour = "accent" if word == "cannot_tell" else _colour(word)
    return Text.assemble((f"{head.upper()}: ", f"bold {colour}"), (tail, "bold text"))


def _table(rows: Sequence[Verdict], width: int) -> Lines:
    cells = [_figures(row) for row in rows]
    sizes = [max(len(head), *(len(one[at]) for one in cells)) for at, head in enumerate(_HEADS)]
    gap = " " * (2 if width >= _ROOMY else 1)
    room = width - sum(sizes) - 3 * len(gap) - 4 - _VERDICT
    shared = axis_of(rows)
    drawable = room >= _LEAST_STRIP and any(strip(row, shared) is not None for row in rows)
    picture = min(room - (1 - room % 2), _MOST_STRIP) if drawable else 0
    head = Text(_columns(_HEADS, sizes, gap), "dim")
    head.append(f"  {scale(shared, picture)}  verdict" if picture else "  verdict")
    lines: Lines = [head]
    for row, figures in zip(rows, cells, strict=True):
        strong = row.verdict != "cannot_tell"
        line = Text(_columns(figures, sizes, gap), "text")
        line.stylize("bold text" if strong else "text", 0, sizes[0])
        line.append("  ")
        if picture:
            line.append_text(_strip(row, shared, picture))
            line.append("  ")
        colour = _colour(row.verdict)
        line.append(WORDS[row.verdict], f"bold {colour}" if strong else colour)
        lines.append(line)
    if picture:
        key = "├──●──┤ ratio and its 95 % interval · │ no difference"
        key += " · ┊ ±10 %" if "┊" in drawn(None, shared, picture) else ""
        lines.append(Text(f"{key}", "dim"))
    return lines


def _figures(row: Verdict) -> tuple[str, ...]:
    values = (amount(row.measure, value) for value in (row.without, row.with_it))
    return clean(measure_name(row.measure), 24), *values, times(row.ratio)


def _columns(cells: Sequence[str], sizes: Sequence[int], gap: str) -> str:
    """Return cells in a line, the first aligned at its left edge, the figures at their right."""
    figures = (cell.rjust(size) for cell, size in zip(cells[1:], sizes[1:], strict=True))
    return gap.join((cells[0].ljust(sizes[0]), *figures))


def _strip(row: Verdict, shared: Axis, width: int) -> Text:
    line = Text()
    for faint, signs in groupby(drawn(strip(row, shared), shared, width), key=lambda sign: sign in " │┊"):
        line.append("".join(signs), "faint" if faint else _colour(row.verdict))
    return line


def _colour(word: VerdictWord) -> str:
    """Return a verdict's colour; its word always stands beside it."""
    return {"lower": "good", "higher": "bad", "no_change": "cool"}.get(word, "dim")


def _about(proof: Proof, width: int) -> Lines:
    """Return how the proof was made, for later readers."""
    first, then = words.orders(proof)
    length = f", {clean(proof.preset, 20)}" if proof.preset else ""
    facts = [
        ("of", words.subject(proof.subject)),
        ("measured", f"{clean(proof.workload, 20)}{length}, {len(proof.rounds)} rounds of {proof.planned}"),
        ("ended", words.when(proof)),
        ("id", clean(proof.id, 60)),
        ("seed", f"{proof.seed} drew the orders"),
    ]
    lines: Lines = []
    for name, value in facts:
        for number, part in enumerate(wrap(Text(value, "text"), max(width - 10, 10))):
            lines.append(Text.assemble((f"{name if number == 0 else '':<10}", "dim"), part))
    room = max(width - 10, 10)
    for label, signs in (("first", first), ("then", then)):
        for at in range(0, max(len(signs), 1), room):
            name = label if at == 0 else ""
            lines.append(Text.assemble((f"{name:<10}", "dim"), (signs[at : at + room], "text")))
    return [*lines, Text(f"{words.WITHOUT} without the change   {words.WITH} with it", "dim")]
