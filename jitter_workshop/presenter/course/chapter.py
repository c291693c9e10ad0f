"""Show each step of a chapter that is done on this host or taught on a recording."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from jitter_workshop.course.guesses import MeasuredAnswers, answer_for_value
from jitter_workshop.flow.chapters.recorded import RecordedChapter
from jitter_workshop.model.by_hand import CommandState, HandCommand
from jitter_workshop.model.course import OPEN, SLOTS, TREATED, Answer, GuessTask, StepName
from jitter_workshop.model.curve import ComparisonRow
from jitter_workshop.model.effect import RUN_HEADS
from jitter_workshop.model.session import Guess
from jitter_workshop.model.spec import KINDS
from jitter_workshop.model.text import CELL, ID, LINE, PARAGRAPH, REASON, SENTENCE, SHORT, WORD, clean, cleaned_sentence
from jitter_workshop.model.walk import (
    CompareView,
    CureView,
    Explanation,
    GuessOutcome,
    RunCurve,
    SettingChange,
    ThreadEvidence,
)
from jitter_workshop.presenter.course.hunt import last_noise
from jitter_workshop.presenter.course.path import guess_sign
from jitter_workshop.presenter.runs import disturbances, effect, fanout, gaps
from jitter_workshop.presenter.runs.comparison import near
from jitter_workshop.presenter.runs.control_run import disturbed_control
from jitter_workshop.presenter.runs.effect_table import none_in
from jitter_workshop.presenter.runs.omission import titles_of, to_repeat
from jitter_workshop.presenter.runs.run import CORE, core_compared, trace_lines
from jitter_workshop.presenter.text.lines import (
    Lines,
    first_lines,
    grouped_number,
    items,
    keyed,
    progress_bar,
    small_title,
    table_lines,
    wrap,
)
from jitter_workshop.presenter.text.prose import command_lines, in_one_style, styled
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.comparison import (
    NEAR,
    STALLS_PREFIX,
    amount,
    clock_told,
    duties_alone,
    measure_name,
    ratio_told,
)
from jitter_workshop.stats.effect import MOVED
from jitter_workshop.stats.figures import KnownRun
from jitter_workshop.stats.scale import difference_told, nice_ns, nice_number

if TYPE_CHECKING:
    from jitter_workshop.flow.chapters.walk import ChapterWalk

AFTER_A_STEP = "after a step"
DONE = "the step is done; a step without a sign is still to come, or you have skipped it"
"""The meaning of ✓ after a step."""
SEEN = "the step was only seen on a recording, where nothing is measured or written"
"""The meaning of ◌ after a step."""
NOTHING_MEASURED = "Nothing is measured on a recording"


@dataclasses.dataclass(frozen=True, slots=True)
class Fold:
    """Hold which of a chapter's commands are shown. ``first``: the index of the first shown command. ``more``: the key
    or word that shows the next commands; "" if all are shown. ``copied``: a text that tells the learner which key
    copies a command. ``rows``: the number of lines that have room; 0 if it is not known."""

    first: int = 0
    more: str = ""
    copied: str = ""
    rows: int = 0


ALL_OPEN = Fold()
_GAP = "  "
"""The fewest blanks between an answer and its figure."""
HINTS_OVER = (
    "A run has already shown if your guess is right, so there are no more hints. The step 'explain' gives the reason."
)
Rates = Sequence[tuple[str, int, int, float]]
"""Interrupts or softirqs of a run: (name, CPU, count, per second)."""
_MOST_RATES = 8
_BOTH = 2
_CHANCE = 4.0
"""The standard deviations of chance that a difference of two counts must exceed to be told."""
_MOST_RESIDENCES = 8
"""The most CPUs of one thread that have a row each."""
_LEADS: dict[CommandState, tuple[str, str]] = {
    "reads": ("$ ", "dim"),
    "": ("$ ", "dim"),
    "open": ("▸ ", "bold accent"),
    "done": ("✓ ", "bold good"),
    "wrong": ("✗ ", "bold bad"),
    "already": ("= ", "dim"),
}
_SEEN = "Marks: ▸ you have not run this; ✓ you have run it; {more}$ the workshop cannot see if you ran it."
_MORE: dict[CommandState, str] = {"wrong": "✗ another value was found; ", "already": "= already so; "}
"""The meaning of marks that are explained only where a command has them."""


def guess_choice_lines(
    task: GuessTask, chosen: int, locked: str, width: int, measured: MeasuredAnswers | None = None
) -> Lines:
    """Return the question and its answers. ``chosen``: the index of the answer under the cursor. ``locked``: why the
    guess cannot be changed any more, or "". ``measured``: what the runs say of the answers; None while that is not
    known. If it is known, the right answers and the learner's are marked."""
    lines = [*wrap(styled(task.question, "bold text"), width), Text()]
    if measured is not None:
        kept = task.answers[chosen].id if 0 <= chosen < len(task.answers) else None
        lines += measured_answer_lines(task, kept, measured, width)
    for number, answer in enumerate(task.answers if measured is None else ()):
        under = number == chosen
        said = in_one_style(answer.text, "bold accent" if under else "text")
        lines += wrap(said, width, f"{'▸' if under else ' '} {number + 1}  ")
    if locked:
        lines += [Text(), *wrap(Text(locked, "dim"), width)]
    return lines


def measured_answer_lines(task: GuessTask, kept: str | None, measured: MeasuredAnswers, width: int) -> Lines:
    """Return the answers of a question that is measured: the right ones have a tick, a wrong guess has a cross, and one
    beside a right answer has ≈. The figure of an answer stands at the right edge, or below the answer if it has no room
    there. ``kept``: the id of the learner's answer, None if there is no guess."""
    lines: Lines = []
    for number, answer in enumerate(task.answers, 1):
        right, yours = answer.id in measured.right, answer.id == kept
        wrong = ("≈", "accent") if answer.id in measured.beside else ("✗", "bad")
        sign, style = ("✓", "bold good") if right else wrong if yours else (" ", "text")
        said = in_one_style(f"{answer.text} (your guess)" if yours else answer.text, style)
        lead, figure = f"{sign} {number}  ", measured.figures.get(answer.id, "")
        shown = wrap(said, width, lead)
        room = width - shown[-1].cell_len - len(figure)
        if figure and room >= len(_GAP):
            shown[-1] = Text.assemble(shown[-1], " " * room, (figure, style))
        elif figure:
            shown += wrap(Text(figure, style), width, " " * len(lead))
        lines += shown
    return lines


LAPTOP_SENDING = "The laptop counts from sending, your run from when a message was due."


def mark_question(
    task: GuessTask, value_ns: int | None, locked: bool, width: int, *, beside_laptop: bool = False
) -> Lines:
    """Return a question about a value, with the learner's present guess. ``value_ns``: this guess, None if no guess was
    made. ``locked``: True if the guess cannot be changed any more. ``beside_laptop``: True if the chart shows the
    published curve, and the run that decides the guess has another clock."""
    lines = wrap(styled(task.question, "bold text"), width)
    if value_ns is None:
        return [*lines, *wrap(Text("You made no guess, and the answer is measured already.", "dim"), width)]
    value = f"p{clean(task.percentile or '99.9', CELL)} = {nice_ns(value_ns)}"
    keys = Text("measured already") if locked else keyed("↑ ↓ move · ← → tenfold")
    lines += [Text.assemble("× your mark: ", (value, "bold accent"), "   ", keys, style="dim")]
    return [*lines, *wrap(Text(LAPTOP_SENDING, "dim"), width)] if beside_laptop and not locked else lines


def step_to_repeat(walk: ChapterWalk, view: CompareView | None, both: Sequence[KnownRun]) -> StepName | None:
    """Return the step whose run has to be made again. It is the reason why the two runs cannot be compared, settings
    changed during it, it sent few of the messages that are counted, it was disturbed although it has no noise or
    without a trace that shows by what, or a cause that is not known makes the verdict doubtful.
    Return None if there is no such run, or if it cannot be made now. ``view``: the comparison of ``both``, the
    chapter's two runs."""
    number = view.reason.run if view is not None and view.reason is not None else None
    if number is None:
        number = effect.run_unsteady(both)
    if number is None:
        number = to_repeat(both, titles_of(walk.runs.shows))
    if number is None:
        number = disturbed_control(both)
    if number is None and view is not None and view.relation == "changed":
        disturbed = disturbances.disturbed_without_trace(both)
        number = disturbed[0] if len(disturbed) == 1 else None
    if number is None and view is not None and view.judgement is not None:
        number = view.judgement.unknown_run
    if number is None or walk.hunts:
        return None
    return SLOTS[number] if walk.measuring.can_repeat(SLOTS[number]) else None


def comparison(view: CompareView, width: int) -> Lines:
    """Return the rows of a comparison: the first run's values, the second run's values, and their ratios."""
    compared = view.comparison
    lines: Lines = []
    if not compared.comparable:
        reason = "; ".join(clean(d, LINE) for d in compared.differences)
        if duties_alone(compared.differences):
            lines += wrap(Text(f"Curves not comparable: {reason}", "dim"), width)
        else:
            lines += wrap(Text(f"Not comparable: {reason}", "bold bad"), width, "! ")
    rows = [[clock_told(compared), *RUN_HEADS[:2], ""]]
    unequal = [row for row in compared.rows if row.a != row.b] or compared.rows
    for row in unequal:
        rows.append([_measure(row.measure), amount(row.measure, row.a), amount(row.measure, row.b), _differs(row)])
    lines += table_lines(rows, width, right=(1, 2)) if compared.rows else []
    lines += near(rows, width)
    if compared.text and compared.text != view.headline:
        lines += [Text(), *wrap(styled(compared.text), width)]
    return lines


def core(walk: ChapterWalk, width: int) -> Lines:
    """Return lines that compare the measured core in a chapter's two runs, block by block. The lines show the core's
    frequency, temperature and throttling. The last line shows the steal. Return [] if a run is missing, or if none of
    these values was read. Also return [] if the chapter is not about the frequency of CPUs."""
    first, second = walk.runs.run_in("measure"), walk.runs.run_in("again")
    if first is None or second is None or "frequency" not in walk.chapter.evidence:
        return []
    return core_compared(first, second, width)


def gap_rates(walk: ChapterWalk, step: StepName, width: int) -> Lines:
    """Return the table of the gaps of the runs that the chapter has at this step. At ``measure`` this is the first run,
    at ``again`` and ``compare`` both runs. Return [] if the lesson does not ask for the table, or if a run is missing.
    At ``compare``, also return [] for runs of one duty, whose counts the comparison shows."""
    if gaps.TOPIC not in walk.chapter.evidence or walk.runs.known(step if step != "compare" else "again") is None:
        return []
    slots = ("measure",) if step == "measure" else SLOTS
    known = [seen for slot in slots if (seen := walk.runs.known(slot)) is not None and seen.recorded is None]
    if step == "compare" and len({seen.run.duty for seen in known}) < len(slots):
        return []
    return gaps.gaps(known, width)


def cured(view: CureView, width: int) -> Lines:
    """Return a table of a hunt's three runs. It has a column for each run: without the noise, with the noise, and with
    the cure."""
    rows = [["", "quiet", "beside the noise", "with the cure"]]
    rows += [[_measure(measure), *(amount(measure, value) for value in values)] for measure, *values in view.rows]
    return table_lines(rows, width, right=(1, 2, 3))


def explanation(
    view: Explanation, runs: Sequence[Explanation], width: int, others: str = "", evidence: Sequence[str] = ()
) -> Lines:
    """Return a run's evidence: switches of threads, CPUs, interrupts, and the knee of the curve. ``runs``: the
    chapter's runs in order. The sections on threads and interrupts show all these runs. The other sections show only
    the run of ``view``. ``others``: sentences on the other tasks on the run's CPUs, "" for none. ``evidence``: the
    subjects of the lesson, the most important one first; interrupts and softirqs come before the switches of threads
    if the lesson has them first."""
    several = len(runs) > 1
    titles = [f"{when}: {clean(v.run.label, ID)}" for v, when in zip(runs, RUN_HEADS, strict=False)]
    rates = {
        "interrupts": rates_of("INTERRUPTS ON THEIR CPUs, PER SECOND", [v.interrupts for v in runs], width),
        "softirqs": rates_of("SOFTIRQS ON THEIR CPUs, PER SECOND", [v.softirqs for v in runs], width),
    }
    before = tuple(evidence[: evidence.index("switches")] if "switches" in evidence else evidence)
    above: Lines = [line for subject, told in rates.items() if subject in before for line in told]
    lines: Lines = [*above[1:], Text()] if above else []
    lines += [small_title("SWITCHES OF THE THREADS"), *switches_told(runs, width)]
    rows = [["", "slept", "preempted", "moved"]]
    for shown, title in zip(runs, titles, strict=True):
        rows += [[title, "", "", ""]] if several else []
        rows += [
            [
                clean(t.name, WORD),
                *(grouped_number(n) for n in (t.voluntary_switches, t.involuntary_switches, t.migrations)),
            ]
            for t in shown.threads
        ]
    lines += table_lines(rows, width, right=(1, 2, 3))
    if any(_on_several_cpus(thread) for one in runs for thread in one.threads):
        # Else "moved 0" and two CPUs below it read as a contradiction.
        lines += wrap(Text(_BETWEEN_BLOCKS, "dim"), width)
    lines += [Text(), small_title(KINDS.get(view.run.workload, KINDS["ring"]).done.upper())]
    # All bars share one scale.
    digits = max((len(f"{n:,}") for v in runs for t in v.threads for _, n, _ in t.residence), default=1)
    if several and (stayed := stayed_lines(runs, width)):
        lines += stayed
    else:
        for shown, title in zip(runs, titles, strict=True):
            lines += [Text(title, "text")] if several else []
            for thread in shown.threads:
                lines += cpu_share_lines(thread, digits, width)
    lines += [line for subject, told in rates.items() if subject not in before for line in told]
    if several:
        which = titles[list(runs).index(view)]
        lines += [Text(), *wrap(Text(f"Everything below is about the newest run ({which}).", "dim"), width)]
    traced = trace_lines(view.run.blocks, width)
    if traced:
        lines += [Text(), small_title(CORE), *(Text(t, "text") for t in traced)]
    if view.knee:
        lines += [Text(), small_title("READ THE KNEE")]
        lines += items(map(styled, view.knee), width)
    if others:
        lines += [Text(), small_title("OTHERS ON THESE CPUs"), *wrap(others, width)]
    return lines


def switches_told(runs: Sequence[Explanation], width: int) -> Lines:
    """Return a sentence on how often all threads together were preempted and moved in each of several runs. If they
    were no longer moved, but still preempted, a second sentence says why. Return [] for one run, if neither happened,
    or if a count is not known."""
    counts = {
        "preempted": [[t.involuntary_switches for t in one.threads] for one in runs],
        "moved": [[t.migrations for t in one.threads] for one in runs],
    }
    sums = {
        what: [sum(n for n in one if n is not None) for one in often]
        for what, often in counts.items()
        if not any(n is None for one in often for n in one)
    }
    told = [f"{what} {' → '.join(map(grouped_number, often))} times" for what, often in sums.items() if any(often)]
    if len(runs) < 2 or not told:
        return []
    who = "The thread was" if all(len(one.threads) == 1 for one in runs) else "In all, the threads were"
    moved, preempted = sums.get("moved", [0]), sums.get("preempted", [0])
    stays = moved[0] > moved[-1] == 0 and MOVED * preempted[-1] > preempted[0]
    return wrap(f"{who} {', and '.join(told)}.{f' {_STILL_PREEMPTED}' if stays else ''}", width)


def stayed_lines(runs: Sequence[Explanation], width: int) -> Lines:
    """Return a sentence for each thread that did all its work on one and the same CPU in all runs. Return [] if any
    thread did not: then bars show where."""
    where = {t.name: cpu for one in runs for t in one.threads for cpu, _, _ in t.residence}
    for one in runs:
        seen = {t.name: [cpu for cpu, _, _ in t.residence] for t in one.threads}
        if any(seen.get(name) != [cpu] for name, cpu in where.items()) or len(seen) != len(where):
            return []
    which = "both" if len(runs) == 2 else f"all {len(runs)}"
    told = (f"{clean(name, CELL)}: CPU {cpu} in {which} runs" for name, cpu in where.items())
    return [line for said in told for line in wrap(said, width)]


def _on_several_cpus(thread: ThreadEvidence) -> bool:
    """Return True if a thread did a twentieth of its work or more on each of several CPUs."""
    return sum(share >= 0.05 for _, _, share in thread.residence) > 1


def rates_of(title: str, runs: Sequence[Rates], width: int) -> Lines:
    """Return a table of the most frequent interrupts or softirqs, in events per second. Each row is one interrupt or
    softirq on one CPU. Each run has a column, with ``–`` if the run did not use this CPU. Of two runs, a row that
    clearly moved is emphasised and has its factor. Return [] if no run has an interrupt or softirq."""
    counts = [{(name, cpu): count for name, cpu, count, _ in run} for run in runs]
    seen = [{(name, cpu): rate for name, cpu, _, rate in run} for run in runs]
    used = [{cpu for _, cpu in one} for one in seen]
    most = {key: max(one.get(key, 0.0) for one in seen) for one in seen for key in one}
    if not most:
        return []
    heads = RUN_HEADS if len(runs) > 1 else ("per second",)
    rows, moved = [["", "CPU", *heads[: len(runs)]]], list[int]()
    for name, cpu in sorted(most, key=lambda key: (-most[key], key))[:_MOST_RATES]:
        cells = [
            nice_number(one.get((name, cpu), 0.0)) if cpu in on else "–" for one, on in zip(seen, used, strict=True)
        ]
        told = ""
        if len(runs) == _BOTH and all(cpu in on for on in used):
            key = (name, cpu)
            told = _rate_moved([one.get(key, 0) for one in counts], [one.get(key, 0.0) for one in seen])
        moved += [len(rows)] if told else []
        rows.append([clean(name, SHORT), str(cpu), *cells, *([told] if told else [])])
    lines = table_lines(rows, width, right=range(1, len(rows[0])))
    for at in moved:
        lines[at].stylize("bold")
    return [Text(), small_title(title), *lines]


def _rate_moved(counts: Sequence[int], rates: Sequence[float]) -> str:
    """Return by how much a rate moved between two runs, ``32× fewer``; "" if it moved by less than MOVED, or by no
    more than chance can explain.

    ``counts``: the events of the two runs. ``rates``: those of a second. The difference of two Poisson counts has the
    standard deviation sqrt(sum of both).
    """
    smaller, larger = sorted(rates)
    if abs(counts[0] - counts[1]) <= _CHANCE * math.sqrt(sum(counts)) or larger < MOVED * smaller:
        return ""
    if not smaller:
        return none_in(RUN_HEADS[rates.index(0)])
    return difference_told(larger / smaller, "fewer" if rates[1] < rates[0] else "more")


def explain_page(
    walk: ChapterWalk, commands: Sequence[HandCommand], learnt: Sequence[str], width: int, fold: Fold = ALL_OPEN
) -> Lines:
    """Return the page of the explain step, in one order on every host: what was learnt, the evidence of the chapter's
    runs, and the commands to run by hand. Without a run of this host, the page has no evidence. ``fold``: its ``rows``
    are those of the whole page."""
    above = learnt_and_evidence(walk, learnt, width)
    return with_commands(above, commands, width, below(above, fold))


def with_commands(above: Lines, commands: Sequence[HandCommand], width: int, fold: Fold) -> Lines:
    """Return the lines ``above``, a blank line and the commands; without commands only ``above``."""
    by_hand = command_list_lines(commands, width, fold) if commands else []
    return [*above, *([Text()] if above and by_hand else []), *by_hand]


def below(above: Lines, fold: Fold) -> Fold:
    """Return ``fold`` with the rows that are left for commands below the lines ``above`` and a blank line."""
    return dataclasses.replace(fold, rows=max(fold.rows - len(above) - bool(above), 0))


def learnt_and_evidence(walk: ChapterWalk, learnt: Sequence[str], width: int) -> Lines:
    """Return the part of the page of the explain step that stands above the commands."""
    view = walk.runs.explain()
    rehearsed = walk.host.rehearsed and walk.chapter.measures
    shown = not rehearsed or walk.host.recorded is not None or walk.runs.recorded_curves("measure")[0]
    # The lesson's conclusion comes first: the evidence below it is long.
    learned = what_was_learnt(learnt, width, " ✓ " if view is not None or shown else " • ")
    evidence: Lines = []
    if view is not None:
        runs = [one for slot in (*SLOTS, TREATED) if (one := walk.runs.explain(slot)) is not None]
        if fanout.TOPIC in walk.chapter.evidence and (run := walk.runs.run_in("measure")) is not None:
            evidence += [*fanout.fan_out(run, width), Text()]
        disturbed = disturbances.disturbed_in_full(walk.runs.seen(view.run))
        evidence += explanation(view, runs, width, disturbed, walk.chapter.evidence)
    hunted = last_noise(walk.progress.hunts, width) if walk.hunts else []
    parts = [part for part in (hunted, learned, evidence) if part]
    return [line for part in parts for line in (*part, Text())][:-1]


def what_was_learnt(learnt: Sequence[str], width: int, sign: str = " ✓ ") -> Lines:
    """Return the sentences on what a chapter taught, below their heading; [] if there are none. ``sign``: the three
    characters before each sentence. A chapter that was only read has no tick."""
    return [small_title("WHAT YOU LEARNT"), *items(map(styled, learnt), width, sign)] if learnt else []


BY_HAND = "THE SAME BY HAND"
"""The beginning of the heading of the commands."""


def command_list_lines(commands: Sequence[HandCommand], width: int, fold: Fold = ALL_OPEN) -> Lines:
    """Return the commands, each with its purpose and a mark that tells if it was run. Several commands are numbered,
    because a lesson may speak of the third one. If ``fold.more`` is not "", return only the commands of
    :func:`open_commands`, and a line with the number of hidden commands."""
    shown = open_commands(commands, width, fold)
    part = f" {shown.start + 1}–{shown.stop} OF {len(commands)}" if len(shown) < len(commands) else ""
    lines: Lines = [small_title(f"{BY_HAND}{part}   {fold.copied}".rstrip())]
    lines += _marks_told(commands[shown.start : shown.stop], width)
    for number in shown:
        lines += [Text()] if fold.more and number > shown.start else []
        lines += _command(commands[number], number + 1 if len(commands) > 1 else None, width)
    if not part:
        return lines
    folded, last = len(commands) - len(shown), shown.stop == len(commands)
    some = "1 more is" if folded == 1 else f"{folded} more are"
    if last:
        some = "The first one is" if folded == 1 else f"The first {folded} are"
    said = f"{some} folded: {fold.more} shows {'the first again' if last else 'the next'}."
    return [*lines, Text(), *wrap(Text(said, "dim"), width)]


def open_commands(commands: Sequence[HandCommand], width: int, fold: Fold) -> range:
    """Return the indices of the commands that are shown, from ``fold.first`` on: OPEN commands, or more if
    ``fold.rows`` has room for more. If there is room behind the last command, commands before ``fold.first`` are shown,
    too. Return all if ``fold.more`` is ""."""
    count = len(commands)
    if not fold.more:
        return range(count)
    first = fold.first % max(count, 1)
    last = min(first + OPEN, count)
    heights = [len(_command(one, count, width)) for one in commands]
    # Above the commands stand their heading and the meaning of their marks; below, the number of hidden ones.
    around = 1 + len(_marks_told(commands, width))

    def fit(first: int, last: int) -> bool:
        hidden = 2 if last - first < count else 0
        return around + sum(heights[first:last]) + last - first - 1 + hidden <= fold.rows

    while last < count and fit(first, last + 1):
        last += 1
    while last == count and first > 0 and fit(first - 1, last):
        first -= 1
    return range(first, last)


def _marks_told(commands: Sequence[HandCommand], width: int) -> Lines:
    """Return the meaning of the marks that these commands have; [] if they have no mark to explain."""
    states = {one.state for one in commands}
    if not states & {"open", "done", *_MORE}:
        return []
    more = "".join(words for state, words in _MORE.items() if state in states)
    return wrap(Text(_SEEN.format(more=more), "dim"), width)


def _command(one: HandCommand, number: int | None, width: int) -> Lines:
    """Return a command with its number, its mark, the wrong value that was found, and its purpose."""
    sign, style = _LEADS[one.state]
    lead = f"{number:<2}" if number is not None else ""
    lines = list(command_lines(one.command, width, lead + sign))
    lines[0].stylize(style, len(lead), len(lead + sign))
    lines += command_found(one, width)
    only = "Read-only. " if one.state == "reads" else ""
    never = f" Not checked: {clean(one.unchecked, REASON)}" if one.unchecked else ""
    return [*lines, *wrap(Text(f"{only}{clean(one.why, PARAGRAPH)}{never}", "dim"), width, "    ")]


def commands_open(shown: range, count: int, more: str) -> str:
    """Return a sentence on which of a chapter's commands are shown now. ``count``: the number of all commands.
    ``more``: the key that shows the next ones."""
    which = "the next ones" if shown.stop < count else "the first ones again"
    numbers = f"commands {shown.start + 1} to {shown.stop}" if len(shown) > 1 else f"command {shown.stop}"
    return f"These are {numbers} of {count}; {more} shows {which}."


def command_found(command: HandCommand, width: int) -> Lines:
    """Return the lines on the wrong value that was found for a by-hand command; [] if none was found."""
    return wrap(Text(f"Found: {clean(command.found, SENTENCE)}.", "bad"), width, "    ") if command.found else []


def _measure(measure: str) -> str:
    """Return a measure's name as it is shown, in the words of the result above the table. For a percentile, it begins
    with p."""
    if measure[:1].isdigit():
        return f"p{measure}"
    whole, over, length = clean(measure_name(measure), SHORT).partition(" over ")
    return f"{whole} of {length} and more" if over else whole


def _differs(row: ComparisonRow) -> str:
    """Return by how much the second value differs from the first one, in words: ``24× fewer``. Return NEAR (≈) as
    :func:`ratio_told` does, and "" for equal values."""
    if row.a == row.b or row.a is None or row.b is None:
        return ""
    told = ratio_told(row)
    if told == NEAR:
        return told
    if not row.a or not row.b:
        return f"none in the {'second' if row.a else 'first'}"
    how = "more" if row.b > row.a else "fewer" if row.measure.startswith(STALLS_PREFIX) else "less"
    return difference_told(max(row.a, row.b) / min(row.a, row.b), how)


def cpu_share_lines(thread: ThreadEvidence, digits: int, width: int) -> Lines:
    """Return a bar for each CPU on which a thread did its work. ``digits``: the width of the column with the number of
    messages, in characters."""
    name = clean(thread.name, CELL)
    if not thread.residence:
        return [Text.assemble((f"{name:<12} ", "cool"), ("not known here", "dim"))]
    lines: Lines = []
    most = thread.residence[:_MOST_RESIDENCES]
    room = max(min(width - 31 - digits, 40), 4)
    for number, (cpu, messages, share) in enumerate(most):
        line = Text(f"{'' if number else name:<12} ", "cool")
        line.append(f"CPU {cpu:<4}", "text")
        line.append(progress_bar(share, 1.0, room, "·", "dim"))
        line.append(f" {_share(share)}  {messages:>{digits},}", "dim")
        lines.append(line)
    if len(thread.residence) > len(most):
        lines.append(Text(f"{'':<12} and {len(thread.residence) - len(most)} more CPUs", "dim"))
    return lines


def _share(share: float) -> str:
    """Return a share in percent. A share above 0 is never shown as 0 %, and a share below 1 is never shown as 100 %."""
    percent = 100 * share
    if 0 < percent < 0.1:
        return " <0.1 %"
    if 99.9 < percent < 100:
        return ">99.9 %"
    return f"{percent:5.1f} %"


_STILL_PREEMPTED = (
    "A thread that stays on its CPU is still preempted: other tasks may use this CPU, and the thread waits there."
)
_BETWEEN_BLOCKS = (
    "'moved' counts how often a thread moved to another CPU during a block. A thread can also move between two "
    "blocks. Then its blocks were measured on different CPUs."
)


# -- on a recording ----------------------------------------------------------------------------------------------------


NOT_HERE = "not on this host, because"
"""The words before the reason why a live host cannot do a chapter. The reason is about this host, not about the
recorded one."""


def recording_lines(reason: str, recording: str, live: bool, width: int, practice: str = "") -> Lines:
    """Return the banner of a chapter that is taught on a recording, at most two lines. ``live``: True if this is a live
    host. In this case, ``reason`` tells why this host cannot do the chapter. ``practice``: a sentence that offers a
    practice machine, "" for none. This sentence is left out if it does not fit into the two lines."""
    name = f" {clean(recording, SHORT)}:" if recording else ":"

    def banner(why: str, offer: str = "") -> Lines:
        said = f" {NOT_HERE} {why}." if live else f" {cleaned_sentence(why)}"
        told = Text.assemble(("ON A RECORDING", "bold accent"), (name, "dim"), said, offer, style="text")
        return wrap(told, width, "", "  ")

    # A reason may tell after a colon where the host is changed. Home has the whole reason.
    reasons = (reason, reason.partition(": ")[0])
    offers = (f" {practice}", "") if live and practice else ("",)
    forms = [banner(why, offer) for offer in offers for why in reasons]
    return first_lines(next((form for form in forms if len(form) <= 2), forms[-1]), 2, width)


def nothing_measured(shown: Sequence[RunCurve], width: int, *, counted: bool = False) -> Lines:
    """Return the lines that say that a chapter has no run on this host. ``shown``: the curves of another machine that
    can be shown. ``counted``: True if the shown recording comes from an emulated machine. Such a recording has counts
    but no curves."""
    lines: Lines = [small_title("NO RUN HERE")]
    none = ", and no run of this chapter on another machine comes with the course."
    if counted:
        none = ", and an emulated machine has no curve: only its counts are shown."
    text = f"{NOTHING_MEASURED}{'. t shows the curve of another machine.' if shown else none}"
    return [*lines, *wrap(text, width)]


def settings_compared(changes: Sequence[SettingChange], width: int) -> Lines:
    """Return the values of a chapter's tunables in the chapter's two recordings: before and after the change."""
    if not changes:
        none = "This chapter changes no setting, and nothing can be measured on a recording."
        return [small_title("NO SETTINGS TO COMPARE"), *wrap(none, width)]
    lines: Lines = [small_title("BEFORE AND AFTER, ON THE RECORDINGS")]
    rows = [["", "before", "", "after", ""]]
    rows += [
        [clean(c.title, ID), clean(c.before, ID), "→", clean(c.after, ID), "✓" if c.settled else "·"] for c in changes
    ]
    lines += table_lines(rows, width)
    if any(c.settled for c in changes):
        lines += [Text(), Text("✓  the value that this chapter wants", "dim")]
    return lines


def decided_on_recording(task: GuessTask, decided: bool, runs: RecordedChapter | None = None) -> str:
    """Return sentences on what decides a guess in a chapter on a recording. ``decided``: True if figures of another
    machine decide it. ``runs``: the recorded runs, if there are any."""
    if decided:
        what = "curve" if task.kind == "mark" else "recorded runs"
        first = f" {told}" if runs is not None and (told := clean(runs.first_told(), SENTENCE)) else ""
        return f"On a recording the {what} of another machine decide{'s' if task.kind == 'mark' else ''} this.{first}"
    return "On a recording, no run decides this question. The step 'compare' explains the answers."


def answers_explained(task: GuessTask, kept: Guess | None, width: int) -> Lines:
    """Return a question with the meaning of each answer. The right answer and the guessed answer are marked. This
    function is for a chapter on a recorded host, where no run can decide the question."""
    lines: Lines = [Text(), small_title("WHAT THE ANSWERS MEAN")]
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


def judged_guess(outcome: GuessOutcome, width: int, *, explained: bool, told: Collection[str] = ()) -> Lines:
    """Return lines that say if a guess was right, with the guess beside the figure. ``explained``: add the explanation,
    if the guess could be judged. ``told``: the names of the figures that the page shows already."""
    sign = guess_sign(outcome.near, beside=outcome.beside)
    role = {True: "good", False: "accent" if outcome.beside else "bad", None: "text"}[outcome.near]
    text = Text.assemble((sign, f"bold {role}"), styled(outcome.text_beside(told), "text"), style="text")
    lines = wrap(text, width, "", "  " if sign else "")
    if explained and outcome.explanation and outcome.near is not None:
        lines += wrap(styled(outcome.explanation.partition("\n\n")[0], "text"), width, "  ")
    return lines


def guess_outcome_lines(task: GuessTask, outcome: GuessOutcome, width: int) -> Lines:
    """Return whether a guess was right, and the explanation of the chosen answer. If the guess was not right, also
    return the explanation of the right answer."""
    colour = {True: "good", False: "accent" if outcome.beside else "bad", None: "text"}[outcome.near]
    sign = guess_sign(outcome.near, beside=outcome.beside)
    lines: Lines = [Text(), *wrap(styled(outcome.text, f"bold {colour}"), width, sign, " " * min(len(sign), 2))]
    explained = [outcome.explanation]
    explained += [a.explanation for a in task.answers if a.right and not outcome.near]
    for text in dict.fromkeys(filter(None, explained)):
        lines += [Text(), *wrap(styled(text), width, "  ")]
    return lines
