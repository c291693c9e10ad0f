"""Show the causes of a run's stalls, found by the run's trace. The module ``counters`` shows runs without a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from jitter_workshop.flow.chapters.diagnosis import NOT_MOUNTED
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.evidence import (
    CounterReport,
    CpuSecond,
    EvidenceReport,
    ExplainedStall,
    InterferingTask,
    Residence,
)
from jitter_workshop.model.palette import CAUSES
from jitter_workshop.model.picture import Event
from jitter_workshop.model.program import HoldUp
from jitter_workshop.model.run import AT, made_late
from jitter_workshop.model.text import (
    ID,
    LABEL,
    MOST_SENTENCES,
    MOST_WORDS,
    REASON,
    SENTENCE,
    WORD,
    called,
    capital,
    clean,
    many,
)
from jitter_workshop.presenter.runs import counters
from jitter_workshop.presenter.runs.callers import INDENTED, below_their_callers, name_of_row
from jitter_workshop.presenter.text.lines import Lines, small_title, table_lines, thin_bar, wrap
from jitter_workshop.presenter.text.pictures import Lane, lanes
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.cause_rows import cause_rows, sum_of_causes
from jitter_workshop.report.cause_words import (
    BRIEF,
    ITEM,
    WITHOUT_IT,
    any_without,
    cause_words,
    contradiction_sentence,
    explanations,
    in_time,
    is_patchy,
    lack_is_told,
    limits_of_trace,
    misfit_sentence,
    no_cause,
    stalls_told,
    trace_of,
    without,
    words_of_column,
)
from jitter_workshop.report.diagnosis_words import IN_A_GUEST, INTERRUPTS
from jitter_workshop.stats.scale import nice_ns

WORST_STALLS = "THE WORST STALLS, FROM LEFT TO RIGHT IN TIME"
RAN_WHERE = "WHERE THE MEASURED THREADS RAN"
MEASURE_FIRST = "Measure first: without a run there is nothing to explain."
NO_TRACE = "This run has no trace."
READING = "Reading the trace: it shows what took the time, and which other tasks ran."
WIDEST = 100
MOST_CAUSES, MOST_ROWS, IN_FULL = 24, 12, 3
"""The largest numbers that are shown: of rows of causes, of rows of threads, and of stalls in full. The JSON has all of
them."""

_MOST_DEEDS = 3
"""The most interrupts that tasks sent, and the most moves of threads, that have a sentence each."""

SHADES = "█▓▒░"
REST = "·"
"""The characters of a stall's timeline: the four largest causes, darkest first, and everything else."""

NOBODY = ("no_event", "around")
"""Kinds of cause that name no task, interrupt or other source."""
WORK = ("workqueue", "softirq", "timer", "irq", "vector")
_PART = "  "
"""The text before the name of a part of the local timer."""
_BAR, _LEAST_BAR, _STALL_BAR = 24, 6, 24
_INDENT = len("▸  1 ")
"""The number of blanks before a bar that is below its stall."""

_FOCUS = {
    "frequency": "each request for another frequency",
    "residence": "where and how long each thread ran, which other tasks ran on its CPU, and when the thread was moved",
    "work": "which functions ran as work items, softirqs and interrupts, how often and how long",
    "left": "if anything other than your thread ran on the thread's CPU",
}
"""The words of a lesson's ``evidence`` that need the kernel's trace."""


def stall_report_lines(report: EvidenceReport | CounterReport, width: int, label: str = "") -> Lines:
    """Return all that is known of a run's stalls, in at most 100 columns. ``label``: the run's label."""
    width = min(width, WIDEST)
    title = Text(clean(f"{clean(label, ID) or 'Run'} · {clean(report.run, ID)}", width), "bold")
    if isinstance(report, CounterReport):
        return [title, *counters.counter_report_lines(report, width)]
    lines = [title, *causes_head(report, width), Text(), *cause_table(report, width)]
    lines += [Text(), *trace_foot(report, width)]
    if report.worst:
        lines += [Text(), small_title(WORST_STALLS), *wrap(AT, width, style="dim")]
    for number, stall in enumerate(report.worst, 1):
        lines += [Text(), *stall_page(stall, width, f"{number:>2}  ")] if number <= IN_FULL else []
        lines += [Text()] if number == IN_FULL + 1 else []
        lines += [stall_line(number, stall, False, width)] if number > IN_FULL else []
    lines += [Text(), *ran_there(report, (), width)] if report.residence is not None else []
    hand = recording_commands(report.residence.proof.cpus) if report.residence is not None else ()
    return lines + ([Text(), small_title("THE SAME BY HAND"), *(Text(f"  {line}") for line in hand)] if hand else [])


# -- the causes --------------------------------------------------------------------------------------------------------


def causes_head(report: EvidenceReport, width: int) -> Iterator[Text]:
    """Yield the lines above the causes. They have the number of stalls, the other tasks on the measured CPUs, and the
    limits of the trace. The rest is below the causes (:func:`trace_foot`)."""
    yield from wrap(stalls_told(report), width, style="dim")
    if report.residence is not None:
        yield from wrap(clean(report.residence.proof.sentence, SENTENCE), width)
    misfit, told = misfit_sentence(report), lack_is_told(report)
    small = "" if is_patchy(report) else misfit
    for limit in limits_of_trace(report):
        if told and limit == misfit:
            continue
        minor = limit == small
        yield from wrap(limit, width, "" if minor else "▲ ", style="dim" if minor else "bad")


def trace_foot(report: EvidenceReport, width: int) -> Iterator[Text]:
    """Yield the lines below the causes: a few words on the trace, and the events that it lacks, if the lines above the
    causes have told only how much time has no known cause."""
    yield from wrap(f"{capital(trace_of(report))}.", width, style="dim")
    if lack_is_told(report):
        yield from wrap(contradiction_sentence(report), width, style="dim")


def cause_table(report: EvidenceReport, width: int, *, guest: bool = False) -> Iterator[Text]:
    """Yield a table of the causes, the largest first. For each cause, the table shows its share of the time of all
    causes. If there is room, the table also shows a bar. Explanations follow below the table. ``guest``: True if the
    run was made on a guest (``Run.in_guest``).
    """
    yield small_title("WHO TOOK THE TIME")
    if not report.causes:
        yield Text(no_cause(report))
        return
    shares = any_without(report)
    laid = cause_rows(report, LABEL)
    shown, hidden = laid[:MOST_CAUSES], [row.cause for row in laid[MOST_CAUSES:] if not row.part]
    whole = sum(cause.total_ns for cause in report.causes)
    most = max(row.cause.total_ns for row in shown)
    rows = [["cause", "stalls", "worst", *([WITHOUT_IT] if shares else []), "in all", "share"]]
    for row in shown:
        cause = row.cause
        late = [without(cause, report)] if shares else []
        taken = [nice_ns(cause.total_ns), whole_percent(cause.total_ns, whole)]
        name = f"{_PART if row.part else ''}{row.words}"
        rows.append([name, f"{cause.count:,}", nice_ns(cause.worst_ns), *late, *taken])
    first, *lines = table_lines(rows, width, right=range(1, 6))
    room = min(width - first.cell_len - 1, _BAR)
    for told in (sum_of_causes(report), *([in_time(report)] if shares else [])):
        yield from wrap(told, width, style="dim")
    yield first
    for row, line in zip(shown, lines, strict=True):
        cause = row.cause
        line.style = "dim" if row.part or cause.kind in NOBODY else "text"
        if room >= _LEAST_BAR and 100 * cause.total_ns >= whole and not row.part:
            # A line instead of a block: rows of blocks would touch and look like one slab. The shortest line would make
            # of less than 1 % as much as of 1 %.
            line.append(f" {thin_bar(cause.total_ns, most, room)}", CAUSES.get(cause.kind, "faint"))
        yield line
    if hidden:
        total = nice_ns(sum(cause.total_ns for cause in hidden))
        yield Text(f"{many(len(hidden), 'other cause')}, together {total}", "dim")
    yield Text()
    of_guest = IN_A_GUEST if guest and any(cause.kind in INTERRUPTS for cause in report.causes) else ""
    for told in (in_time(report) if not shares else "", words_of_column(report), of_guest):
        yield from wrap(told, width, style="dim") if told else ()
    for text in explanations(report):
        yield from wrap(text.removeprefix(ITEM), width, "  - " if text.startswith(ITEM) else "", style="dim")
    if report.residence is not None and report.residence.second is not None:
        yield Text()
        yield from busiest_second(report.residence.second, report, width)


def busiest_second(second: CpuSecond, report: EvidenceReport, width: int) -> Lines:
    """Return timelines of the second in which other work took most time. Other work is anything on the CPU but the
    measured program. Each kind of event has a timeline and a percentile. If every second were like this one, messages
    above this percentile would be late.
    """
    cut = f" The trace covers only {nice_ns(second.traced_ns)} of this second." if second.traced_ns < 0.95e9 else ""
    told = (
        f"In this second, other work took {nice_ns(second.taken_ns)} of CPU {second.cpu}. This is more than in any "
        f"other second of the run.{cut}"
    )
    found = [
        Lane(
            cause_words(one.who.kind, one.who.name, BRIEF),
            partial(_cells, one.cells),
            Event("", one.who.count, max(one.who.total_ns // one.who.count, 1)),
            CAUSES.get(one.who.kind, "faint"),
        )
        for one in second.lanes
        if one.who.count
    ]
    found.append(Lane("us", partial(_cells, second.ours, line=True), None, "dim"))
    title = small_title(f"THE BUSIEST SECOND: NUMBER {second.at_ns // 1_000_000_000 + 1} OF THE RUN")
    return [title, *wrap(told, width, style="dim"), *lanes(found, width, knees=bool(report.messages))]


def _cells(cells: Sequence[int], width: int, *, line: bool = False) -> str:
    """Return a timeline of one second as ``width`` characters. A wide bar (█) means that the CPU was busy for at least
    half of the character's time. A thin bar (│) means that the CPU was busy for less. ``cells``: the busy time in ns
    in each part of the second; all parts are equally long. ``line``: draw the same line (─) for any busy time.
    """
    drawn = ""
    for column in range(width):
        low = column * len(cells) // width
        high = max((column + 1) * len(cells) // width, low + 1)
        share = sum(cells[low:high]) * len(cells) / (high - low) / 1e9
        drawn += " " if not share else "─" if line else "█" if share >= 0.5 else "│"
    return drawn


# -- the stalls --------------------------------------------------------------------------------------------------------


def stall_line(number: int, stall: ExplainedStall, under: bool, width: int) -> Text:
    """Return a stall in one line: its length, its time in the run, its largest cause, and a bar of its parts where
    there is room. ``under``: the stall is under the cursor."""

    def picture(room: int) -> Text:
        if room < _STALL_BAR + 24:
            return Text()
        return coloured(stall_bar(stall, _STALL_BAR)[0], stall).append(" ")

    return long_one_line(number, stall, under, width, picture, cause_words)


def stall_in_rows(number: int, stall: ExplainedStall, under: bool, width: int, rows: int) -> Lines:
    """Return a stall as ``rows`` lines of a list: the line of :func:`stall_line`, and lines below it. If the first line
    has no room for the bar, the second one has it; the other lines are empty."""
    first = stall_line(number, stall, under, width)
    below = [Text() for _ in range(rows - 1)]
    if below and not set(first.plain) & set(SHADES):
        below[0] = Text(" " * _INDENT).append(
            coloured(stall_bar(stall, min(_STALL_BAR, max(width - _INDENT, 1)))[0], stall)
        )
    return [first, *below]


def long_one_line(
    number: int,
    one: ExplainedStall | HoldUp,
    under: bool,
    width: int,
    middle: Callable[[int], Text],
    words: Callable[[str, str, int], str],
) -> Text:
    """Return a stall or hold-up as one line of a list. ``middle``: a function that gets the number of free cells, and
    returns the text before the largest cause. ``words``: a function that returns a cause in words. It gets the cause's
    kind, its name and the maximum length of the text. ``under``: True if the line is under the cursor."""
    line = Text("▸ " if under else "  ", "accent")
    line.append(f"{number:>2} {nice_ns(one.duration_ns):>8} ", "bold text" if under else "text")
    line.append(f"at {nice_ns(one.at_ns):<8} ", "dim")
    line.append(middle(width - line.cell_len))
    if one.parts:
        most = one.parts[0]
        line.append(f"{whole_percent(most.ns, one.duration_ns):>5} ", "dim")
        line.append(words(most.kind, most.name, max(width - line.cell_len, 8)), "text")
    if under:
        line.append(" " * max(width - line.cell_len, 0))
        line.stylize("under")
    return line


def stall_page(stall: ExplainedStall, width: int, number: str = "") -> Iterator[Text]:
    """Yield one stall in full: its CPU, its parts, the senders and wakers, and the kernel functions. ``number``: the
    text to show before the stall. If ``number`` is "", a note tells that the stall's time counts from the run's
    start."""
    where = f" on CPU {stall.cpu}" if stall.cpu is not None else ""
    late = f" · {said}" if (said := made_late(stall.thread, stall.messages)) else ""
    said = f"{nice_ns(stall.duration_ns)} at {nice_ns(stall.at_ns)} · {clean(stall.thread, WORD)}{where}{late}"
    yield from wrap(said, width, number, style="bold text")
    if not number:
        yield from wrap(AT, width, style="faint")
    lead = " " * len(number)
    drawn, legend = stall_bar(stall, width - len(lead))
    if stall.timeline:
        yield Text(lead).append(coloured(drawn, stall))
    rows = [[cause, nice_ns(ns), whole_percent(ns, stall.duration_ns)] for _, cause, ns in legend]
    for (character, _, _), row in zip(
        legend, table_lines(rows, width - len(lead) - 2, right=(1, 2), head=False), strict=True
    ):
        row.stylize("dim" if character == REST else "text", 0, len(row))
        yield Text.assemble(lead, coloured(character, stall), " ", row)
    for note in stall.notes[:MOST_SENTENCES]:
        yield from wrap(clean(note, REASON), width, f"{lead}· ", style="dim")
    for stack in stall.stacks[:1]:
        chain = " ← ".join(clean(function, ID) for function in stack.functions[:MOST_WORDS])
        yield from wrap(f"in the kernel at {nice_ns(stack.offset_ns)}: {chain}", width, f"{lead}· ", style="dim")


def stall_bar(stall: ExplainedStall, width: int) -> tuple[str, tuple[tuple[str, str, int], ...]]:
    """Return a bar that shows a stall's causes over time, and the bar's legend. Each of the ``width`` characters stands
    for the largest cause in its stretch of the stall. The legend has (character, cause, ns), the largest cause
    first."""
    ranked = {(part.kind, part.name): place for place, part in enumerate(stall.parts)}
    columns: list[dict[str, float]] = [{} for _ in range(max(width, 1))]
    each = stall.duration_ns / len(columns) if stall.duration_ns > 0 else 1.0
    for piece in stall.timeline:
        place = ranked.get((piece.kind, piece.name), len(SHADES))
        character = SHADES[place] if place < len(SHADES) else REST
        for column, share in _spread(piece.offset_ns, piece.ns, each, len(columns)):
            columns[column][character] = columns[column].get(character, 0.0) + share
    drawn = "".join(max(column, key=lambda c: (column[c], c), default=REST) for column in columns)
    legend = [(SHADES[i], cause_words(p.kind, p.name), p.ns) for i, p in enumerate(stall.parts[: len(SHADES)])]
    rest = stall.parts[len(SHADES) :]
    if rest:
        legend.append((REST, many(len(rest), "other cause"), sum(part.ns for part in rest)))
    return drawn, tuple(legend)


def _spread(offset: int, ns: int, each: float, columns: int) -> Iterator[tuple[int, float]]:
    """Spread a part of a stall over the columns of a bar. Yield (column, ns) for each column that the part touches; ns
    is the time of the part in this column. ``offset``: the beginning of the part in ns. ``ns``: its length. ``each``:
    the time of one column in ns."""
    end = offset + ns
    for column in range(int(offset / each), columns):
        low, high = column * each, (column + 1) * each
        if low >= end:
            return
        yield column, min(high, end) - max(low, offset)


def coloured(drawn: str, stall: ExplainedStall) -> Text:
    """Return a stall's bar in colours. The colour of a character tells the kind of its cause, so one kind has the same
    colour in all stalls. Causes without a character of their own are pale."""
    colours = {c: CAUSES.get(part.kind, "faint") for c, part in zip(SHADES, stall.parts, strict=False)}
    return Text.assemble(*((character, colours.get(character, "dim")) for character in drawn))


def whole_percent(part: int, whole: int) -> str:
    """Return a share in whole percent."""
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share >= 1 else "<1 %"


# -- what ran there ----------------------------------------------------------------------------------------------------


def focused(evidence: Sequence[str]) -> bool:
    """Return True if the chapter shows a special page about a traced run. This page comes before the page with the
    causes.
    """
    return any(word in _FOCUS for word in evidence)


def mounting(command: str, then: str) -> str:
    """Return a sentence with the command by which root mounts the kernel's trace. ``then``: what to do after the
    mount."""
    return f"{NOT_MOUNTED} As root: {command} ({then})"


def causes_offer(evidence: Sequence[str], traced: bool) -> str:
    """Return a sentence on what the key v shows in this chapter. ``traced``: True if a traced run exists; otherwise the
    text says that one more run is needed."""
    told = "; ".join(_FOCUS[word] for word in evidence if word in _FOCUS) or "what took the time, by the kernel's trace"
    more = "" if traced else " This needs one more run, with the kernel's trace."
    return f"v shows {told}.{more}"


def ran_there(report: EvidenceReport, focus: Sequence[str], width: int) -> Iterator[Text]:
    """Yield sections on the tasks and the kernel's work on the measured CPUs. Then yield sentences on requested
    frequencies, and on ticks that could not stop. Then yield sentences on interrupts that tasks sent, and on threads
    that were moved. ``focus``: words of the chapter's ``evidence``; the sections for these words come first.
    """
    present = report.residence
    if present is None:
        return
    if "frequency" in focus:
        told = list(_frequencies(present)) or ["Linux's trace shows no request for another frequency in the blocks."]
        yield from (small_title("FREQUENCY"), *_paragraphs(told, width), Text())
    if "residence" in focus:
        yield from (*_threads(present, width), Text())
    if "work" in focus:
        yield from (*_work(present, width), Text())
    yield small_title("WHO ELSE RAN ON THESE CPUS")
    ordered = below_their_callers(present.visitors)
    shown, hidden = ordered[:MOST_CAUSES], ordered[MOST_CAUSES:]
    if any(depth for depth, _ in shown):
        yield from wrap(INDENTED, width, style="dim")
    rows = [
        [name_of_row(depth, v), str(v.cpu), f"{v.count:,}", nice_ns(v.worst_ns), nice_ns(v.total_ns)]
        for depth, v in shown
    ]
    yield from table_lines([["", "CPU", "times", "longest", "in all"], *rows], width, right=range(1, 5))
    if hidden:
        yield Text(f"{many(len(hidden), 'other')}, together {nice_ns(sum(v.total_ns for _, v in hidden))}", "dim")
    told = [*_frequencies(present), *_actions(present)]
    if told:
        yield from (Text(), *_paragraphs(told, width, "dim"))
    if "residence" not in focus:
        yield from (Text(), *_threads(present, width))


def _paragraphs(told: Iterable[str], width: int, style: str = "") -> Lines:
    return [line for text in told for line in wrap(text, width, style=style)]


def _threads(present: Residence, width: int) -> Iterator[Text]:
    yield small_title(RAN_WHERE)
    rows = [
        [clean(t.thread, ID), str(t.cpu), nice_ns(t.ran_ns), nice_ns(t.kept_waiting_ns), f"{t.times_preempted:,}"]
        for t in present.threads[:MOST_ROWS]
    ]
    yield from table_lines([["", "CPU", "ran", "kept off", "preempted"], *rows], width, right=range(1, 5))
    if len(present.threads) > MOST_ROWS:
        yield Text(f"and {len(present.threads) - MOST_ROWS} more", "dim")


def _work(present: Residence, width: int) -> Iterator[Text]:
    """Yield the kernel's work by function or vector. "each": the mean time of one call, without interruptions."""
    yield small_title("WORK, SOFTIRQS AND INTERRUPTS")
    rows = [["", "CPU", "times", "each", "longest", "in all"]]
    found = below_their_callers(v for v in present.visitors if v.kind in WORK)
    groups: list[list[tuple[int, InterferingTask]]] = []
    for depth, v in found:
        if not depth:
            groups.append([])
        groups[-1].append((depth, v))
    ordered = sorted(groups, key=lambda group: WORK.index(group[0][1].kind))
    for depth, v in [row for group in ordered for row in group][:MOST_ROWS]:
        each = nice_ns(v.total_ns / v.count) if v.count else "–"
        rows.append([name_of_row(depth, v), str(v.cpu), f"{v.count:,}", each, nice_ns(v.worst_ns), nice_ns(v.total_ns)])
    yield from table_lines(rows, width, right=range(1, 6))
    if len(rows) == 1:
        yield Text("No work, softirq or interrupt ran on these CPUs.")


def _frequencies(present: Residence) -> Iterator[str]:
    """Yield a sentence for each CPU on which the kernel changed the requested frequency."""
    for seen in present.frequencies[:MOST_SENTENCES]:
        low, high = seen.lowest_khz / 1e6, seen.highest_khz / 1e6
        yield f"CPU {seen.cpu} was asked for another frequency {_times(seen.changes)}: {low:.2f} to {high:.2f} GHz."


def _actions(present: Residence) -> Iterator[str]:
    """Yield sentences on three kinds of frequent events. They are ticks that could not stop, interrupts that tasks
    sent, and moves of threads."""
    for kept in present.ticks_kept[:MOST_SENTENCES]:
        reason = clean(kept.reason, ID) or "no reason given"
        yield f"The tick of CPU {kept.cpu} could not stop {_times(kept.count)}: {reason}."
    for sent in [deed for deed in present.deeds if deed.what == "ipi"][:_MOST_DEEDS]:
        target = f"CPU {sent.cpu}" if sent.cpu >= 0 else "several CPUs"
        what = f"{clean(sent.of, LABEL)} called on {target}" if sent.of else f"{target} reschedule"
        yield f"{called(sent.who, WORD)} had {what}, {_times(sent.count)}."
    for move in [deed for deed in present.deeds if deed.what == "move"][:_MOST_DEEDS]:
        moved = f"{clean(move.of, WORD)} was moved to CPU {move.cpu} {_times(move.count)}"
        yield f"{capital(moved)} while {called(move.who, WORD)} ran."


def recording_commands(cpus: Sequence[int], seconds: int = 10) -> tuple[str, ...]:
    """Return shell commands of perf (tools/perf/Documentation) and trace-cmd that show what ran on ``cpus``. They need
    root's rights."""
    if not cpus:
        return ()
    which = CpuSet.of(cpus)
    mask = which.to_mask().replace(",", "").lstrip("0")
    return (
        f"perf sched record -C {which} -o tasks.data -- sleep {seconds}",
        "perf sched timehist -s -i tasks.data",
        f"perf kwork -k irq,softirq,workqueue record -C {which} -o work.data -- sleep {seconds}",
        "perf kwork report -i work.data",
        f"trace-cmd record -B by-hand -M {mask} -e sched_switch -e irq -e workqueue sleep {seconds}",
    )


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")
