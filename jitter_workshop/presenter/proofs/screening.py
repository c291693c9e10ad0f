"""Show a screening: its cost before it begins, and its ranked settings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from jitter_workshop.flow.proving.screening_plan import cheaper
from jitter_workshop.model.proof import COMMAND
from jitter_workshop.model.screening import Ranked, Screening, ScreeningPlan, ScreeningResult
from jitter_workshop.model.text import (
    ID,
    LABEL,
    PATH,
    REASON,
    SENTENCE,
    WORD,
    clean,
    cleaned_sentence,
    many,
    minute,
    quoted_command,
)
from jitter_workshop.presenter.host import plan as plan_view
from jitter_workshop.presenter.text.lines import Lines, items, labelled, small_title, wrap
from jitter_workshop.presenter.text.prose import styled
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.proof_words import at_the_end, not_restored
from jitter_workshop.report.screening_words import MEAN_OVER_RUNS, NOT_ENDED, axis_for, result_word, screening_sentence
from jitter_workshop.stats.comparison import measure_name
from jitter_workshop.stats.interval_plot import Axis, interval_picture, scale, strip
from jitter_workshop.stats.scale import nice_duration, ratio_text
from jitter_workshop.stats.screening import screening_result

STOPPED_EARLY = "Stopped before a pair was finished: nothing new is kept, and every change is restored."
KEY = "● ratio, with the setting ÷ without it · ├──┤ its 95 % interval · │ no difference"
MAIN_EFFECT = f"Each ratio is a setting's main effect: a mean over runs. {MEAN_OVER_RUNS}"

_NAME, _LEAST_STRIP, _MOST_STRIP = 24, 15, 61


def screening_cost_lines(plan: ScreeningPlan, width: int) -> Lines:
    """Return the cost of a screening: its settings, its runs, its time and its writes."""
    count = len(plan.settings)
    lines = wrap(f"Screen {many(count, 'setting')}: which of them move the figure?", width, style="bold")
    lines += items([clean(setting, REASON) for setting in plan.settings], width)
    if plan.command:
        lines += labelled("command", quoted_command(plan.command), width, 10)
        lines += labelled("compared", measure_name(plan.metric), width, 10)
    lines += [Text(), small_title("WHAT IT COSTS"), *wrap(_work(plan), width), *wrap(cheaper(plan), width)]
    if plan.done:
        rest = plan.budget_runs - plan.done
        lines += wrap(f"Done already: {many(plan.done, 'run')}. Left: {many(rest, 'run')}.", width)
    lines += [Text(), small_title("WHAT IS WRITTEN"), *wrap(_written(), width)]
    lines += plan_view.in_short(plan.changes, width)
    if plan.left_out:
        out = [f"{clean(one.tunable, LABEL)}: {clean(one.reason, SENTENCE)}" for one in plan.left_out]
        lines += [Text(), small_title("LEFT OUT"), *items(out, width)]
    if plan.notices:
        lines += [Text(), small_title("TO KNOW"), *items(map(styled, plan.notices), width)]
    return lines + plan_view.every_if_long(plan.changes, width)


def _work(plan: ScreeningPlan) -> str:
    length = f"{nice_duration(plan.run_s) if plan.command and plan.run_s >= 10 else f'{plan.run_s:.3g} s'} each"
    what = "the command" if plan.workload == COMMAND else clean(plan.workload, WORD)
    first = (
        f"First {many(2 * plan.pairs, 'run')} choose {plan.most} settings: each run has half of the settings on. Then "
        f"{many(2 * plan.proofs, 'run')} prove the chosen settings. "
        if plan.pairs
        else f"There are few settings, so {many(2 * plan.proofs, 'run')} prove all of them. "
    )
    total = 10 * round(plan.total_s / 10) if plan.total_s >= 60 else plan.total_s
    return f"{first}Together {many(plan.budget_runs, 'run')} of {what}, {length}: about {nice_duration(total)}."


def _written() -> str:
    return (
        "First each setting is applied and restored once, as a test. Then some of the changes below are made before "
        "each run, and restored after the run. At the end every change is restored, even if you stop the screening, "
        "close the terminal or kill this program. Finished pairs are kept. To measure the missing pairs later, use "
        "--resume."
    )


def screening_lines(screening: Screening, width: int) -> Lines:
    """Return a screening: first the result in words, then the settings by rank with their intervals, then the rest."""
    found = screening_result(screening)
    lines = wrap(Text(screening_sentence(screening, found), "bold text"), width)
    if found is not None:
        lines += [Text(), *_ranked(found, width)]
        lines += [*wrap(KEY, width, style="dim"), *wrap(MAIN_EFFECT, width, style="dim")]
    lines.append(Text())
    lines += wrap(screening_restored(screening), width, style="" if screening.restored else "bold bad")
    for left in screening.left_alone:
        lines += wrap(f"{clean(left.path, PATH)}: {clean(left.reason, SENTENCE)}", width, "    ")
    for one in screening_notes(screening):
        lines += wrap(styled(one), width, "", "  ")
    lines += [Text(), small_title("THIS SCREENING"), *wrap(screening_made(screening), width)]
    lines += labelled("command", quoted_command(screening.command), width, 10) if screening.command else []
    lines += labelled("id", clean(screening.id, LABEL), width, 10)
    return lines


def _ranked(found: ScreeningResult, width: int) -> Lines:
    """Return a row for each setting: name, ratio, the picture of its interval, and its result in a word."""
    axis = axis_for(found.ranked)
    name_width = min(max(len(found.name), *(len(row.setting) for row in found.ranked)), _NAME, width // 3)
    word_width = max(len(result_word(row)) for row in found.ranked)
    room = width - name_width - 8 - word_width - 6
    picture = min(room - (1 - room % 2), _MOST_STRIP) if room >= _LEAST_STRIP else _LEAST_STRIP
    head = Text(f"{clean(found.name, name_width):<{name_width}}  {'ratio':>7}  ", "dim")
    lines: Lines = [head.append(scale(axis, picture))]
    before = ""
    for row in found.ranked:
        group = _group(row)
        if before and group != before:
            lines.append(Text("┄" * min(name_width + picture + word_width + 13, width), "rule"))
        before = group
        lines.append(_row(row, axis, name_width, picture))
    return lines


def _row(row: Ranked, axis: Axis, name_width: int, picture: int) -> Text:
    colour = _colour(row)
    line = Text(f"{clean(row.setting, name_width):<{name_width}}  {ratio_text(row.ratio):>7}  ")
    for faint, signs in groupby(interval_picture(strip(row, axis), axis, picture), key=lambda sign: sign in " │┊"):
        line.append("".join(signs), "rule" if faint else colour)
    return line.append("  ").append(
        result_word(row), f"bold {colour}" if row.verdict in ("lower", "higher") else colour
    )


def _group(row: Ranked) -> str:
    return "matters" if row.verdict in ("lower", "higher") else "rest"


def _colour(row: Ranked) -> str:
    return {"lower": "good", "higher": "bad", "no_change": "cool"}.get(row.verdict, "dim")


def screening_restored(screening: Screening) -> str:
    """Return a sentence that tells whether all settings of the host are restored."""
    if screening.restored:
        return f"{at_the_end(bool(screening.left_alone))}{':' if screening.left_alone else '.'}"
    if not screening.ended_at:
        return cleaned_sentence(NOT_ENDED)
    return not_restored(screening.left_alone)


def screening_notes(screening: Screening) -> Sequence[str]:
    """Return more facts, one sentence each: an early end, settings left out, notes."""
    told = []
    if screening.stopped:
        told.append(cleaned_sentence(f"the screening ended early: {clean(screening.stopped, SENTENCE)}"))
    if not screening.complete:
        told.append(
            f"{many(screening.runs, 'run')} of {screening.budget_runs} are kept. --resume makes the missing runs."
        )
    if len(screening.sittings) > 1:
        told.append(f"The screening was made in {len(screening.sittings)} sittings.")
    told += [
        cleaned_sentence(f"left out: {clean(one.tunable, LABEL)}: {clean(one.reason, SENTENCE)}")
        for one in screening.left_out
    ]
    return [*told, *(cleaned_sentence(clean(note, SENTENCE)) for note in screening.notes)]


def screening_made(screening: Screening) -> str:
    """Return a sentence that tells what was measured, and when."""
    what = "the command" if screening.command else clean(screening.workload, WORD)
    compared = f", {clean(measure_name(screening.metric), ID)} compared" if screening.command else ""
    return (
        f"{many(len(screening.settings), 'setting')}, {many(screening.runs, 'run')} of {what}{compared}. To "
        f"choose settings: {many(len(screening.pairs), 'pair')}. To prove them: {many(len(screening.proofs), 'pair')}. "
        f"Begun {minute(screening.started_at)} UTC, with random seed {screening.seed}."
    )


def screening_list_lines(screenings: Sequence[Screening], width: int) -> Lines:
    """Return the screenings of a session, each in a few lines, oldest first."""
    lines: Lines = []
    for one in screenings:
        lines += [Text(), Text(clean(one.id, LABEL), "bold")]
        lines += [
            *wrap(screening_sentence(one, screening_result(one)), width, "  "),
            *wrap(screening_made(one), width, "  "),
        ]
    return lines[1:] or [Text("No screening is kept in this session.")]
