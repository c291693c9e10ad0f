"""Show a proof: its cost before it begins, its rounds while they are made, and its verdict."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from jitter_workshop.flow.proving.proof_run import ProofStep
from jitter_workshop.model.proof import COMMAND, MOST_ROUNDS, PLACEMENT, ROUNDS, SETTLE_S, Proof, ProofPlan
from jitter_workshop.model.run import Progress
from jitter_workshop.model.text import (
    ID,
    LABEL,
    PATH,
    REASON,
    SENTENCE,
    SHORT,
    WORD,
    clean,
    cleaned_sentence,
    many,
    minute,
    quoted_command,
    tally,
)
from jitter_workshop.model.verdict import ENOUGH_ROUNDS, Judgement, Order, Verdict, VerdictWord
from jitter_workshop.presenter.host import plan as plan_view
from jitter_workshop.presenter.text.lines import (
    Lines,
    items,
    labelled,
    local_time,
    progress_bar,
    small_title,
    table_lines,
    wrap,
)
from jitter_workshop.presenter.text.prose import styled
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.proof_words import (
    WORDS,
    interval_named,
    not_restored,
    pictures,
    proof_headline,
    restored_told,
    span_of,
    too_few,
)
from jitter_workshop.stats.comparison import amount, measure_name
from jitter_workshop.stats.interval_plot import Axis, axis_of, interval_picture, scale, strip
from jitter_workshop.stats.scale import nice_duration, ratio_text
from jitter_workshop.stats.verdicts import SoFar, short_verdict

OFFER = "Press p to prove the change."
NOT_JUDGED = "not judged yet"
DRAWN = (
    "A round is two new runs, one right after the other: one without the change and one with it. Chance decides "
    f"which run comes first. The first {SETTLE_S:g} s of each run is not recorded."
)
DRAWN_OF_COMMAND = (
    "In a round the command runs once without the change and once with it, one run right after the other. Chance "
    "decides which run comes first. Each run has an empty input and no terminal. When a run ends, the workshop ends "
    "all processes that the run started."
)
REACH = (
    f"Fewer than {ENOUGH_ROUNDS} rounds give no verdict. {ENOUGH_ROUNDS} rounds usually find a factor of 2. They find "
    "a factor of 1.2 only if runs without a change differ by about 10 % or less. Smaller effects need more rounds."
)
"""A sentence on the effects that a number of rounds finds. It follows from the tables of docs/verdicts.md."""
STOPPED_EARLY = "Stopped before a round was finished: nothing is proven, and every change is restored."
STOPPED_AND_KEPT = "If you stop the proof, the finished rounds are kept and judged."
_BEGINS = {COMMAND: "the command runs"}
"""Workload → the words for a run before its first block is finished."""
WITHOUT, WITH, NOW, TO_COME = "–", "+", "▸", "·"
"""The signs of a round's runs: without the change, with it, running now, to come."""
SIGNS = f"{WITHOUT} without the change, {WITH} with it, {NOW} now, {TO_COME} to come"

OF_PAIRS = "The ratio is the typical one of a round. The columns put all runs together: one bad run counts more there."

_ROOMY = 99
"""From this width on a table of verdicts has the intervals in figures, too."""
_LEAST_STRIP, _MOST_STRIP = 9, 61
_LABEL = 7
"""The number of cells to the left of the rounds' picture."""
_WIDEST_ROUND = 10
_REACHES = (3, 10, 30, 100, 300, 1_000)


# -- the cost ----------------------------------------------------------------------------------------------------------
_OF_TRANSIT = "Its percentiles are of transit: they leave out the time that a message waits for a stopped sender."
"""A proof keeps transit, while a chapter's own runs tell latency. The sentence keeps the two apart."""


def proof_cost_lines(
    plan: ProofPlan,
    width: int,
    choices: Sequence[int] = (),
    chosen: int = 0,
    before: Proof | None = None,
) -> Lines:
    """Return what a proof costs: its runs, time and writes. ``choices``: the numbers of rounds to choose from; () if
    the number is fixed. ``chosen``: the index of the chosen number. ``before``: the earlier proof, if there is one."""
    rounds = "" if choices else f": {many(plan.rounds, 'round')}, about {nice_duration(plan.total_s)}."
    lines = wrap(
        f"Prove {subject(plan.subject) if choices else clean(plan.subject, REASON)}{rounds}", width, style="bold"
    )
    lines += wrap(f"{DRAWN_OF_COMMAND if plan.command else DRAWN} {REACH}", width, style="dim")
    if plan.command:
        lines += labelled("command", quoted_command(plan.command), width, 10)
        lines += labelled("compared", measure_name(plan.metric), width, 10)
    if choices:
        lines += [Text(), small_title("ROUNDS")]
        asked = asked_for(before)
        for number, rounds_ in enumerate(choices):
            under = number == chosen
            former = " By its result, the earlier proof needs this number of rounds." if rounds_ == asked else ""
            line = Text(f"{work(plan, rounds_)}{former}", "bold" if under else "")
            lines += wrap(line, width, f"{'▸' if under else ' '} {number + 1}  ")
    else:
        lines += wrap(work(plan, plan.rounds), width)
    lines += [Text(), small_title("WHAT A ROUND WRITES"), *wrap(_written(plan), width), *wrap(STOPPED_AND_KEPT, width)]
    lines += plan_view.in_short(plan.changes, width)
    if plan.notices:
        lines += [Text(), small_title("TO KNOW"), *items(map(styled, plan.notices), width)]
    return lines + plan_view.every_if_long(plan.changes, width)


def _written(plan: ProofPlan) -> str:
    """Return sentences on what a proof writes to the host, and when the old values are restored."""
    if plan.subject == PLACEMENT and plan.command:
        return "The command is started on these CPUs. No file of this host is written."
    if plan.subject == PLACEMENT:
        return (
            "No file of this host is written. Each thread asks the kernel to run this thread on one CPU, until the "
            "run ends."
        )
    made = tally(change.tunable for change in plan.changes)
    return (
        f"Each round makes the changes below ({made}) before the run with the change, and restores the old values "
        "after this run. At the end everything is restored, even if you stop the proof, close the terminal or kill "
        "this program."
    )


def subject(proven: str) -> str:
    """Return the name of what a proof tests: the placement of threads, or the settings."""
    return (
        "threads on chosen CPUs, compared with the scheduler's choice" if proven == PLACEMENT else clean(proven, REASON)
    )


def round_choices(before: Proof | None) -> tuple[int, ...]:
    """Return the numbers of rounds to choose from: the usual ones, and the number that the earlier proof asked for."""
    return tuple(sorted({ROUNDS, 2 * ROUNDS, 4 * ROUNDS, *((n,) if (n := asked_for(before)) else ())}))


def asked_for(before: Proof | None) -> int | None:
    """Return the number of rounds that the earlier proof needs for a verdict. Return None if there is no earlier proof
    with rounds. Also return None if the earlier proof has already decided its main result (``proof_headline``). The
    same holds if no reasonable number of rounds would be enough.
    """
    if before is None or before.judgement is None:
        return None
    said = before.judgement
    row = next((r for r in said.rows if r.measure == said.headline.measure), None)
    needed = row.rounds_needed if row is not None and row.verdict == "cannot_tell" else None
    return min(max(needed, ROUNDS), MOST_ROUNDS) if needed is not None else None


def work(plan: ProofPlan, rounds: int) -> str:
    """Return ``10 rounds are 20 runs of ring, 5 s each: about 3 min.``"""
    length = f"{nice_duration(plan.run_s) if plan.command and plan.run_s >= 10 else f'{plan.run_s:.3g} s'} each"
    takes = nice_duration(_coarse(seconds(plan, rounds)))
    runs = many(2 * rounds, "run")
    return (
        f"{many(rounds, 'round')} {'is' if rounds == 1 else 'are'} {runs} of {_ran(plan.workload)}, {length}: "
        f"about {takes}."
    )


def _ran(workload: str) -> str:
    """Return what was run, in words: our own workload or the user's command."""
    return "the command" if workload == COMMAND else clean(workload, WORD)


def seconds(plan: ProofPlan, rounds: int) -> float:
    """Return the estimated time of a proof with this number of rounds, in seconds."""
    return plan.total_s / plan.rounds * rounds


def _coarse(seconds: float) -> float:
    """Round a time of a minute or more to tens of seconds. An estimate of the time is not exact to single seconds."""
    return 10 * round(seconds / 10) if seconds >= 60 else seconds


# -- the rounds while they are made ------------------------------------------------------------------------------------


def rounds_so_far(
    seen: SoFar | None,
    orders: Sequence[Order],
    step: ProofStep | None,
    planned: int,
    height: int,
    width: int,
) -> Lines:
    """Return a picture of a proof's rounds so far, the oldest at the left. Each round shows one ratio of the proof's
    first measure: the value with the change, divided by the value without. The signs below a round give the order of
    its two runs. ``orders``: the orders of the finished rounds. ``height``: the picture's number of rows."""
    name = seen.name if seen is not None else "figures come after the first round"
    title = Text(f"{name}, with ÷ without" if seen is not None else name, "bold text")
    title.append(f"   {NOT_JUDGED}", "accent")
    if seen is not None:
        told = f"   {seen_so_far(seen.ratios)}"
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
        lines.append(
            Text(f"{'':<{_LABEL}}  the newest {shown} rounds; {many(skipped, 'older round')} not shown", "dim")
        )
    return [*lines, Text(), *wrap(Text(SIGNS, "dim"), width)]


def seen_so_far(ratios: Sequence[float | None]) -> str:
    """Return in words how many rounds have a lower value with the change than without it."""
    known = [ratio for ratio in ratios if ratio is not None]
    fewer = sum(ratio < 1 for ratio in known)
    return f"lower with the change in {fewer} of {many(len(known), 'round')}" if known else "none seen so far"


def _picture(ratios: Sequence[float | None], shown: int, each: int, height: int) -> Lines:
    """Return the rows of the picture. Its scale is logarithmic: ratios above 1 are above the middle, others below."""
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
        line.append("┤" if number in labels else "│", "rule")
        for faint, signs in groupby(cells, key=lambda sign: sign in " ┄"):
            line.append("".join(signs), "rule" if faint else "bold accent")
        lines.append(line)
    return lines


def _reach(ratios: Sequence[float | None]) -> int:
    """Return the factor f of a picture whose scale goes from 1/f to f. There are a few fixed factors. The result is
    the smallest of them whose scale contains all ratios. If no factor is large enough, the result is the largest of
    them.
    """
    far = max((max(r, 1 / r) for r in ratios if r and not math.isinf(r)), default=1.0)
    return next((reach for reach in _REACHES if reach >= far), _REACHES[-1])


def _place(ratio: float | None, reach: int, middle: int) -> tuple[int, str]:
    """Return a round's row and sign in the picture. An arrow at the edge stands for a ratio that is zero or outside the
    scale. ``○`` stands for a round without a ratio."""
    if ratio is None:
        return middle, "○"
    if ratio == 0:
        return 2 * middle, "▼"
    up = math.log(ratio) / math.log(reach)
    return round(middle * (1 - min(max(up, -1.0), 1.0))), "●" if abs(up) <= 1 + 1e-9 else "▲" if up > 0 else "▼"


def _signs(orders: Sequence[Order], step: ProofStep | None, shown: int, each: int) -> Lines:
    """Return two rows of signs: one for the first run of each round, and one for its second run."""
    lines: Lines = []
    for which, label in enumerate(("first", "then")):
        line = Text(f"{label:>{_LABEL}}  ", "dim")
        shown_signs = [(round_signs(order)[which], "text") for order in orders]
        if step is not None:
            known = round_signs(step.order)[which]
            place = step.number % 2
            now = [(NOW, "bold accent"), (known, "text"), (TO_COME, "faint")]
            shown_signs.append(now[0] if which == place else now[1] if which < place else now[2])
        shown_signs += [(TO_COME, "faint")] * max(shown - len(shown_signs), 0)
        for sign, style in shown_signs[:shown]:
            line.append(f"{'':<{(each - 1) // 2}}{sign}".ljust(each), style)
        lines.append(line)
    return lines


def round_signs(order: Order) -> tuple[str, str]:
    """Return the signs of a round's first and second run."""
    return (WITHOUT, WITH) if order == "AB" else (WITH, WITHOUT)


def proof_progress_lines(
    step: ProofStep | None, block: Progress | None, planned: int, left_s: float, width: int, *, workload: str = ""
) -> Lines:
    """Return two lines: a bar of the finished runs with the time left, and the run of ``workload`` that is being
    made."""
    done = (step.number if step is not None else 0) + (block.done / block.total if block is not None else 0.0)
    remaining = f"  {left(left_s)}"
    room = max(width - max(len(remaining), 24), 10)
    line = progress_bar(done, 2 * planned, room).append(remaining, "text")
    if step is None:
        return [line, Text("Preparing: the changes are applied and restored once…", "dim")]
    now = Text(f"round {step.round + 1} of {planned} · {step.side} the change", "text")
    state = (
        f"block {block.done} of {block.total}"
        if block is not None
        else _BEGINS.get(workload, "calibrating and settling")
    )
    now.append(f" · {state}", "dim")
    return [line, now]


def left(left_s: float) -> str:
    """Return the time left in words, rounded because it is an estimate."""
    return f"about {nice_duration(_coarse(left_s))} left" if left_s >= 1 else "nearly done"


def stop_question(finished: int) -> str:
    """Return the question that Esc asks while a proof runs. ``finished``: the number of finished rounds."""
    if not finished:
        return "Stop now? No round is finished, so the measured runs would be kept, but no proof."
    verdict = (
        "" if finished >= ENOUGH_ROUNDS else f" A verdict needs {ENOUGH_ROUNDS} rounds. Fewer rounds give only figures."
    )
    return f"Stop now and keep {many(finished, 'finished round')}?{verdict}"


# -- the verdict -------------------------------------------------------------------------------------------------------


def proof_verdict_lines(proof: Proof, width: int) -> Lines:
    """Return the verdict as lines. A sentence comes first, then the table with pictures of the intervals, then all
    other facts.
    """
    said = proof.judgement
    lines = wrap(_emphasised(proof), width)
    if said is not None and said.rows:
        lines += wrap(also_proven(said, width), width, style="text")
        lines += [Text(), *_table(said.rows, width)]
    lines.append(Text())
    fine = proof.restored or proof.subject == PLACEMENT or _under_way(proof)
    lines += wrap(proof_restored(proof), width, "" if fine else "! ", "  ", style="" if fine else "bold bad")
    for left in proof.left_alone:
        lines += wrap(f"{clean(left.path, PATH)}: {clean(left.reason, SENTENCE)}", width, "    ")
    if said is not None and said.rows:
        lines += wrap(OF_PAIRS, width, "", "  ", style="dim")
    for one in proof_notes(proof):
        lines += wrap(styled(one), width, "", "  ")
    if said is not None and said.rounds >= ENOUGH_ROUNDS:
        lines += [
            Text(),
            small_title("EACH LINE IN WORDS"),
            *items([f"{clean(row.words, SENTENCE)}." for row in said.rows], width),
        ]
    lines += [Text(), small_title("THIS PROOF"), *wrap(proof_made(proof), width)]
    lines += labelled("command", quoted_command(proof.command), width, 10) if proof.command else []
    lines += labelled("id", clean(proof.id, LABEL), width, 10)
    lines += labelled("ended", when(proof), width, 10)
    for which, label in enumerate(("first", "then")):
        lines += labelled(label, "".join(round_signs(one.order)[which] for one in proof.rounds), width, 10)
    return [*lines, Text(f"{WITHOUT} without the change   {WITH} with it", "dim")]


def also_proven(said: Judgement, width: int) -> str:
    """Return a sentence of at most ``width`` characters on the lines whose verdict is proven in the headline's
    direction, beside the headline's own line; "" for none. It has their number if their names have no room."""
    rows = [r for r in said.rows if r.verdict == said.headline.verdict and r.measure != said.headline.measure]
    proven = rows if said.headline.verdict in ("lower", "higher") else []
    told = f"Also proven: {', '.join(map(short_verdict, proven))}." if proven else ""
    return told if len(told) <= width else f"Also proven: {many(len(proven), 'more line')} below."


def _emphasised(proof: Proof) -> Text:
    head, _, tail = f"{proof_headline(proof)}.".partition(": ")
    word = proof.judgement.headline.verdict if proof.judgement is not None else "cannot_tell"
    colour = "accent" if word == "cannot_tell" else _colour(word)
    return Text.assemble((f"{head}: ", f"bold {colour}"), (tail, "bold text"))


def leads(proof: Proof | None) -> bool:
    """Return True if a proof has enough rounds for a verdict. Such a proof is better evidence than two single runs, so
    the screen shows the proof first.
    """
    return proof is not None and proof.judgement is not None and proof.judgement.rounds >= ENOUGH_ROUNDS


def proof_is_undecided(proof: Proof | None) -> bool:
    """Return True if there is a proof, and its headline says that it cannot tell."""
    return proof is not None and proof.judgement is not None and proof.judgement.headline.verdict == "cannot_tell"


def earlier_proof_line(proof: Proof) -> Text:
    """Return an earlier proof's headline with its number of rounds and its date, for the first line of a result."""
    return _emphasised(proof).append(f" {_made_when(proof)}", "dim")


def proof_list_lines(proofs: Sequence[Proof], width: int) -> Lines:
    """Return the proofs of a session, each in a few lines, oldest first."""
    lines: Lines = []
    for proof in proofs:
        lines += [Text(), Text(f"{clean(proof.id, LABEL)}  {clean(proof.subject, LABEL)}", "bold")]
        lines += [*wrap(f"{proof_headline(proof)}.", width, "  "), *wrap(proof_made(proof), width, "  ")]
    return lines[1:] or [Text("No proof is kept in this session.")]


def _table(rows: Sequence[Verdict], width: int) -> Lines:
    """Return a table with each measure's figures and verdict, and the pictures of the intervals. The pictures are
    beside the table, or below it if the terminal is too narrow."""
    roomy = width >= _ROOMY
    cells = [["", "without", "with", "ratio", *([interval_named(rows)] if roomy else []), "verdict"]]
    for row in rows:
        values = (amount(row.measure, value, row.unit) for value in (row.without, row.with_it))
        figures = [*values, ratio_text(row.ratio), *([span_of(row)] if roomy else [])]
        cells.append([clean(measure_name(row.measure), SHORT), *figures, WORDS[row.verdict]])
    head, *lines = table_lines(cells, width, right=range(1, len(cells[0]) - 1))
    shared = axis_of(rows)
    room = width - max(line.cell_len for line in (head, *lines)) - 2
    drawable = any(strip(row, shared) is not None for row in rows)
    picture = min(room - (1 - room % 2), _MOST_STRIP) if drawable and room >= _LEAST_STRIP else 0
    full = max(line.cell_len for line in (head, *lines))
    if picture:
        head.append(" " * (full - head.cell_len + 2) + scale(shared, picture))
    for row, line in zip(rows, lines, strict=True):
        colour = _colour(row.verdict)
        strong = "" if row.verdict == "cannot_tell" else "bold "
        line.stylize(f"{strong}{colour}", line.cell_len - len(WORDS[row.verdict]))
        if picture:
            line.append(" " * (full - line.cell_len + 2)).append(_strip(row, shared, picture))
    shown = [head, *lines]
    if drawable and not picture:
        shown += [Text(), *(Text(line, "" if n else "dim") for n, line in enumerate(pictures(rows, width)))]
    if drawable:
        key = f"├──●──┤ ratio and its {interval_named(rows)} · │ no difference"
        key += " · ┊ ±10 %" if "┊" in interval_picture(None, shared, picture or 45) else ""
        shown += wrap(key, width, style="dim")
    return shown


def _strip(row: Verdict, shared: Axis, width: int) -> Text:
    line = Text()
    for faint, signs in groupby(interval_picture(strip(row, shared), shared, width), key=lambda sign: sign in " │┊"):
        line.append("".join(signs), "rule" if faint else _colour(row.verdict))
    return line


def _colour(word: VerdictWord) -> str:
    """Return the colour of a verdict's word."""
    return {"lower": "good", "higher": "bad", "no_change": "cool"}.get(word, "dim")


def proof_made(proof: Proof) -> str:
    """Return a sentence that tells what was compared, in how many rounds, and when."""
    done = len(proof.rounds)
    rounds = many(done, "round") if done == proof.planned else f"{done} of {many(proof.planned, 'round')}"
    what = f"{clean(proof.subject, REASON)}: {rounds} of {_ran(proof.workload)}"
    what += f", {clean(proof.preset, WORD)} preset" if proof.preset else ""
    what += f", {clean(measure_name(proof.metric), ID)} compared" if proof.command else ""
    of_transit = f" {_OF_TRANSIT}" if proof.workload == "ring" else ""
    return f"{what}. Begun {minute(proof.started_at)} UTC. The seed of the random order is {proof.seed}.{of_transit}"


def proof_notes(proof: Proof) -> Iterator[str]:
    """Yield more facts, one sentence each. They are on an early end, the rounds needed for a verdict, drift, and the
    worst latency. Notes come last.
    """
    if proof.stopped or (proof.ended_at and not proof.complete):
        why = f": {clean(proof.stopped, SENTENCE)}" if proof.stopped else ""
        yield cleaned_sentence(f"the proof ended after {len(proof.rounds)} of {many(proof.planned, 'round')}{why}")
    said = proof.judgement
    if said is None:
        return
    if said.rounds < ENOUGH_ROUNDS:
        yield too_few(said.rounds)
    needed = [
        f"{measure_name(row.measure)} about {row.rounds_needed:,}"
        for row in said.rows
        if row.verdict == "cannot_tell" and row.rounds_needed is not None
    ]
    if needed and said.rounds >= ENOUGH_ROUNDS:
        yield f"Rounds needed for a verdict, if the spread stays the same: {', '.join(needed)}."
    yield cleaned_sentence(said.drift.words)
    if said.worst:
        yield cleaned_sentence(said.worst)
    for note in proof.notes:
        yield cleaned_sentence(note)


def _under_way(proof: Proof) -> bool:
    return not proof.ended_at and not proof.stopped


def proof_restored(proof: Proof) -> str:
    """Return a sentence that tells whether all settings of the host are restored."""
    if _under_way(proof):
        return "This proof is running."
    if proof.restored or proof.subject == PLACEMENT:
        return f"{restored_told(proof)}{':' if proof.left_alone else '.'}"
    return not_restored(proof.left_alone)


def earlier_proof_text(proof: Proof) -> str:
    """Return an earlier proof's headline with its number of rounds and its date."""
    return f"{proof_headline(proof)}. {_made_when(proof)}"


def _made_when(proof: Proof) -> str:
    return f"({many(len(proof.rounds), 'round')}, {when(proof)})"


def when(proof: Proof) -> str:
    """Return the day and minute when the proof ended, in local time. If it has not ended, return when it began."""
    moment = local_time(proof.ended_at or proof.started_at)
    if moment is None:
        return "at an unknown time"
    today = moment.date() == datetime.date.today()
    return f"{moment:%H:%M}" if today else f"{moment:%Y-%m-%d %H:%M}"
