"""Show a run before it is made, its progress while it is made, and its result."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest

from jitter_workshop.flow.measuring.request import MeasureRequest, arrival_words, blocks, interval_ns
from jitter_workshop.host.irq.irq_affinity import irq_number
from jitter_workshop.model.host import MARK_NOTE
from jitter_workshop.model.noise import noise as noise_called
from jitter_workshop.model.run import (
    HANDOFF,
    HUNTED,
    INTENDED,
    PERCENTILES,
    UNSTEADY,
    Block,
    HistogramSummary,
    Progress,
    Run,
    ThreadRecord,
    of_transit,
)
from jitter_workshop.model.spec import KINDS, PRESETS, helper_threads
from jitter_workshop.model.text import (
    CELL,
    ID,
    LABEL,
    LINE,
    PATH,
    REASON,
    SENTENCE,
    WORD,
    clean,
    cleaned_sentence,
    many,
)
from jitter_workshop.presenter.runs.omission import blind_transit
from jitter_workshop.presenter.text.lines import (
    Lines,
    grouped_number,
    labelled,
    progress_bar,
    small_title,
    table_lines,
    wrap,
)
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats import sample_size
from jitter_workshop.stats.comparison import STOLEN, amount, measure_name, rate_in_words
from jitter_workshop.stats.effect import judged_by, tail_of
from jitter_workshop.stats.figures import FIGURES, P99_FROM_DUE_TIME
from jitter_workshop.stats.scale import nice_ns, nice_number

ON_BATTERY = (
    "On battery the system may keep the clock rate low, and a low clock rate changes the curve. For a fair curve, "
    "plug the machine in."
)
STOPPED_WAITING = "Stopped waiting. Nothing was measured."
WIDEST = 80
_PER_TABLE = 4
_RESIDENCE = 28
_NONE_BEYOND = "0  "
_PACE = {"wakeup": "a wake-up", "ack": "a segment"}
MEMORY_WORDS = {
    "ready": "keeps messages in ready memory",
    "fresh": "keeps messages in fresh memory",
    "huge": "keeps messages in new huge pages",
    "file": "writes messages to a file in memory",
    "far": "loads from far memory",
    "near": "loads from near memory",
}
LOCK_WORDS = {"plain": "takes a plain lock", "inherit": "takes a lock with priority inheritance"}
_WHY_STALLS = "ticks alone decide percentiles"
_A_STALL_NS = 1e6
"""The length of the stall that explains what one stall can do."""
_HALF = 50.0
"""The percentile that half of all values exceed."""
_A_WORD = re.compile(r"[\w.@%+:,/][\w.@%+:,/-]*")
_LEVELS = "▁▂▃▄▅▆▇█"
_ABSENT = "·"
_CLOCKS = "intended: latency, from when a message was due. transit: from when it was ready."
_WIDEST = 60
_WITH_LEAD = 60
"""The least width at which the word "block" is shown before the newest block's figures."""

TRACED_MEANWHILE = "the kernel is traced; this costs each run a little time"
_AS_FIRST = "as in the first run"
"""The words for what the page of the chapter's first run told already."""


def describe_noise(request: MeasureRequest, company: str) -> str:
    """Describe the noise that is made during a run; "" without a noise. ``company``: the lesson's words for this
    noise, "" for none.
    """
    if not request.noise:
        return ""
    return f"{f'{clean(company, LINE)}. ' if company else ''}{noise_called(request.noise).what}"


def _length(request: MeasureRequest) -> str:
    """Return the length of a run in blocks, with the name of the preset that sets the length, if any."""
    preset = PRESETS.get(request.preset)
    if preset is None:
        return clean(request.preset)
    if request.duration_s is None:
        return f"{preset.blocks} blocks of {preset.block_ns / 1e9:g} s ({clean(request.preset, WORD)})"
    found = blocks(request)
    return f"{many(found.count, 'block')} of {found.block_ns / 1e9:.3g} s"


def judging_figure(
    workload: str, tail: str, each_ns: int, per_second: float | None = None, *, from_due_time: bool = False
) -> str:
    """Say by which figure a run is judged, and why. ``tail``: the percentile by which the chapter judges, else the
    workload's usual one (``stats.effect.tail_of``). ``each_ns``: the time from one message to the next, 0 for the
    usual time. ``per_second``: the number of samples that the run really makes in a second; None if it is not known.
    This number is smaller than the pace while a thread waits for its CPU. Latencies of the ring also count the messages
    that were not sent, so there the pace decides. ``from_due_time``: True if the chapter names this clock."""
    kind = KINDS[workload]
    if float(tail) <= _HALF:
        return f"p{tail}: half of all {kind.counted} take longer"
    if not kind.paced and tail != tail_of(workload):
        return f"p{tail}: {nice_number(100 - float(tail))} % of all {kind.counted} take longer"
    if not kind.paced:
        one = FIGURES[judged_by(workload)]
        return f"{one.title} {one.unit}: {_WHY_STALLS}"
    each_ns = each_ns or kind.interval_ns
    # The pace of an earlier run says no more than two digits.
    pace = 1e9 / each_ns if workload == "ring" else per_second or 1e9 / each_ns
    beyond = float(f"{(100 - float(tail)) / 100 * pace:.2g}")
    # One stall delays all messages that are due in it. So few stalls decide a percentile.
    delayed = max(round(beyond), round(_A_STALL_NS / each_ns), 1)
    late = (
        f". One stall of {nice_ns(delayed * each_ns)} delays {nice_number(delayed)}, so one such stall a second can "
        f"decide it"
        if workload == "ring"
        else ""
    )
    what = FIGURES[P99_FROM_DUE_TIME].title if from_due_time else f"p{tail}"
    if beyond == 1:
        return f"{what}: one of the {kind.makes} each second takes longer{late}"
    return f"{what}: only {nice_number(beyond)} {kind.makes} a second are slower{late}"


def about_to_measure(
    request: MeasureRequest,
    on_battery: bool,
    width: int,
    reach: str = "",
    company: str = "",
    hides: bool = False,
    asked: str | None = None,
    per_second: float | None = None,
    from_due_time: bool = False,
    placed: Sequence[tuple[str, int]] = (),
    repeats: bool = False,
    settings: str = "",
    why_outside: str = "",
    control: MeasureRequest | None = None,
) -> Lines:
    """Return lines on a run before it starts: its length, CPUs, noise and percentiles. ``reach``: the percentiles that
    the run will have (``flow.measuring.run_length``). ``company``: the lesson's words for the noise. ``hides``: True
    if a hidden noise is made, which the learner has to find. ``asked``: the percentile by which the chapter judges,
    None for the workload's usual figure. ``per_second``: the expected number of messages a second; None if it is not
    known. ``from_due_time``: as in :func:`judging_figure`. ``placed``:
    (thread, CPU) for each thread that the run binds; () if it is not known, or if the scheduler places the threads.
    ``repeats``: True if the page of the chapter's first run told already how such runs are traced and judged.
    ``settings``: the settings of earlier chapters that are still applied; "" for none.
    ``why_outside``: the reason why the run will not use the CPUs that this tool has isolated; "" if it will, and if
    there are none. ``control``: the run that follows this one without another key; None for none.
    """
    cpus = placed or (
        ("producer", request.producer_cpu),
        ("accumulator", request.accumulator_cpu),
        ("journaller", request.journaller_cpu),
        ("sampler", request.cpu),
    )
    where = _where([(name, cpu) for name, cpu in cpus if cpu is not None], helper_threads(request.lock))
    if why_outside:
        where = f"{where}. The isolated CPUs are not used: {clean(why_outside, REASON)}." if where else where
    free = request.placement == "none"
    tail, each_ns = tail_of(request.workload, asked), interval_ns(request)
    judged = judging_figure(request.workload, tail, each_ns, per_second, from_due_time=from_due_time)
    noise = f"{clean(request.noise, WORD)}: {describe_noise(request, company)}" if request.noise else "none"
    noise = f"{noise} beside the run's own threads" if request.lock != "none" and not request.noise else noise
    lines = [small_title("THIS RUN")]
    for name, value in (
        ("run", f"{clean(request.label, ID)} ({request.workload})"),
        ("length", _length(request)),
        ("threads", where or ("wherever the scheduler puts them" if free else "CPUs that the workshop chooses")),
        ("settings", settings),
        ("noise", "a noise that the workshop hides" if hides else "a hidden noise" if request.hunted else noise),
        ("first", arrival_words(request)),
        ("trace", (_AS_FIRST if repeats else TRACED_MEANWHILE) if request.evidence else ""),
        ("gives", reach),
        ("judged", _AS_FIRST if repeats else f"by {judged}"),
        ("then", "" if control is None else control_run_sentence(control)),
    ):
        lines += labelled(name, value, width, 9) if value else []
    if on_battery:
        lines += [Text(), *wrap(ON_BATTERY, width, "! ", style="bold accent")]
    return lines


def control_run_sentence(control: MeasureRequest) -> str:
    """Say which control run follows a run by itself."""
    return f"the first run once more, without the noise ({_length(control)}): '{clean(control.label, ID)}'"


def _where(placed: Sequence[tuple[str, int]], helpers: Sequence[str]) -> str:
    """Say on which CPU each thread runs; "" if no thread is bound. ``helpers``: the other threads of a run with a lock.
    They share the CPU of the measured thread."""
    if helpers and len(placed) == 1:
        (name, cpu), (*others, last) = placed[0], helpers
        return f"{', '.join([name, *others])} and {last} on CPU {cpu}"
    return ", ".join(f"{name} on CPU {cpu}" for name, cpu in placed)


def write_of_run(request: MeasureRequest) -> str:
    """Return the write that stands while a run is made, in short: ``interrupt 34 → CPU 1 during this run``. Return ""
    for a run without such a write."""
    change = request.arrival
    if change is None:
        return ""
    return f"interrupt {irq_number(change.path)} → CPU {clean(change.after, WORD)} during this run"


def write_to_be_shown(request: MeasureRequest) -> str:
    """Return the sentences for a run that begins with a write which was not shown yet."""
    return f"This run begins with a write: {arrival_words(request)}"


def run_progress_lines(now: Progress | None, waiting: str, stopping: bool, width: int, *, workload: str = "") -> Lines:
    """Return a bar, the time left, and the newest block's figures. If the run has to wait before it begins, return the
    reason ``waiting``. ``workload``: the run's workload; a block of ``spin`` shows its longest value and its stalls
    alone, because its percentiles are those of usual readings."""
    if stopping:
        return [Text("Stopping…", "accent")]
    if waiting:
        return wrap(f"{clean(waiting, SENTENCE)} Esc stops waiting.", width)
    if now is None:
        return [Text("Calibrating the clock on the chosen CPUs…", "dim")]
    count = f"  block {now.done} of {now.total}"
    left = f" · {max(now.seconds_left, 0):.0f} s left" if now.done < now.total else " · done"
    room = max(width - max(len(count) + len(left), 32), 10)
    told = [progress_bar(now.done, now.total, room).append(count, "text").append(left, "dim")]
    told.append(Text(_block_told(now, width, with_percentiles=workload != "spin"), "dim"))
    if now.block.temperature_celsius is not None:
        told.append(Text(now_told(now.block)[:width], "dim"))
    return told


def _block_told(now: Progress, width: int, *, with_percentiles: bool = True) -> str:
    """Return the newest block in one line. If the line is too short for all figures, leave out p99 first, then p50,
    then p99.9. ``with_percentiles``: False to leave out all three. Blocks of the ring have only transit, so beside a
    latency that counts from when a message was due, the stalls stand alone.
    """
    block, over = now.block, f"over {nice_ns(now.threshold_ns)}"
    with_percentiles = with_percentiles and now.due is None
    times = {"p50": block.p50, "p99": block.p99, "p99.9": block.p999} if with_percentiles else {}
    times |= {"worst": block.max} if now.due is None else {}
    parts = {name: f"{name} {nice_ns(value)}" for name, value in times.items()}
    # Each part is as wide as the longest time, so that the same figures are shown for every block.
    widths = {name: max(len(part), len(name) + len(" 99.9 µs")) for name, part in parts.items()}
    stalls = f"{many(block.stalls, 'stall')} {over}"
    mark = f"{clean(now.curve.origin, WORD)} " if now.curve.origin else ""
    lead = f"{mark}block: " if width >= _WITH_LEAD else mark
    for name in ("p99", "p50", "p99.9") if with_percentiles else ():
        if len(lead) + sum(widths[n] + 3 for n in parts) + max(len(stalls), len(f"9,999 stalls {over}")) > width:
            del parts[name]
    return lead + " · ".join([*parts.values(), stalls])


# -- the core, block by block ------------------------------------------------------------------------------------------

CORE = "THE CORE, BLOCK BY BLOCK (heights from 0)"
_TRACES: tuple[tuple[str, Callable[[Sequence[Block]], list[float | None]], str], ...] = (
    ("core GHz", lambda blocks: [None if b.core_hz is None else b.core_hz / 1e9 for b in blocks], "{:.2f}"),
    ("hottest °C", lambda blocks: [b.temperature_celsius for b in blocks], "{:.0f}"),
    ("throttled", lambda blocks: _steps([b.throttle_events for b in blocks]), "{:.0f}"),
)


def trace_lines(blocks: Sequence[Block], width: int, after: Sequence[Block] | None = None) -> list[str]:
    """Return lines on the core's clock rate, temperature and throttling. A figure that was not read has no line. Each
    line has a name, a row of characters, and the lowest and highest value. A character stands for one block, or for a
    few blocks if there are many. Its height begins at 0, so a steady value is a level line. ``after``: the blocks of a
    second run. They get a line below each line of the first run, in the same scale."""
    runs = [("", blocks)] if after is None else [("first  ", blocks), ("second ", after)]
    lines = []
    for name, read, form in _TRACES:
        rows = [(which, read(found)) for which, found in runs]
        every = [value for _, values in rows for value in values if value is not None]
        scale = min([0.0, *every]), max(every, default=0.0) or 1.0
        for number, (which, values) in enumerate(rows if every else ()):
            known = [value for value in values if value is not None]
            ends = dict.fromkeys(form.format(end(known)) for end in (min, max)) if known else ("not read",)
            span = " to ".join(ends)
            lead = f"{'' if number else name:<11} {which}"
            room = max(min(width - len(lead) - 2 - len(span), _WIDEST), 8)
            lines.append(f"{lead}{sparkline(values, room, scale)}  {span}"[:width])
    return lines


def core_compared(before: Run, after: Run, width: int) -> Lines:
    """Return lines that compare the core in two runs, block by block. The lines show clock rate, temperature,
    throttling, and the time that the hypervisor took. Return [] if none of these values was read.
    """
    lines = trace_lines(before.blocks, width, after.blocks)
    taken = [nice_ns(run.steal_ns) if run.steal_ns is not None else "not known" for run in (before, after)]
    if (before.steal_ns, after.steal_ns) != (None, None):
        lines.append(f"{'steal':<11} first  {taken[0]}, second {taken[1]}"[:width])
    return [small_title(CORE), *(Text(line, "dim") for line in lines)] if lines else []


def now_told(block: Block) -> str:
    """Return the clock rate, the temperature and the throttling at one block, in a few words; "" if none was read."""
    parts = [
        f"core {block.core_hz / 1e9:.2f} GHz" if block.core_hz is not None else "",
        f"{block.temperature_celsius:.0f} °C" if block.temperature_celsius is not None else "",
        f"{block.throttle_events:,} throttle events since boot" if block.throttle_events is not None else "",
    ]
    return " · ".join(filter(None, parts))


def sparkline(values: Sequence[float | None], room: int, scale: tuple[float, float] | None = None) -> str:
    """Return a line of characters whose heights show the values. If there are more than ``room`` values, each
    character shows the average of a group of values. ``scale``: the limits of the heights; None for the lowest and
    highest of ``values``. If the limits are equal, all heights are in the middle.
    """
    if len(values) > room:
        groups = [values[i * len(values) // room : (i + 1) * len(values) // room] for i in range(room)]
        values = [_mean(group) for group in groups]
    known = [value for value in values if value is not None]
    if not known:
        return _ABSENT * len(values)
    low, high = scale or (min(known), max(known))
    span = high - low
    top = len(_LEVELS) - 1
    return "".join(
        _ABSENT if value is None else _LEVELS[round((value - low) / span * top) if span else top // 2]
        for value in values
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _steps(counts: Sequence[int | None]) -> list[float | None]:
    """Return the growth of a counter from each block to the next; None for the first block, and where a count is not
    known."""
    grown: list[float | None] = []
    before: int | None = None
    for count in counts:
        grown.append(float(count - before) if count is not None and before is not None else None)
        before = count
    return grown


# -- the result --------------------------------------------------------------------------------------------------------


_SHOWN_NOTES = (
    MARK_NOTE,
    "complete",
    UNSTEADY,
    HUNTED,
    "isolation",
    "evidence",
    "noise",
    "duty",
    "timer_slack",
    "pm_qos",
    "disturbed",
    "cpu_max",
    "blocks",
    "suspended",
    "mlocked",
)
"""Notes that a reader of a run's figures must know. The other notes say why a value is missing, and are only in the
JSON."""


def stopped(run: Run) -> str:
    """Tell a learner what becomes of a run that was stopped after some blocks."""
    return f"Stopped after {len(run.blocks)} blocks. Their curve is kept, but does not count for this chapter."


def remark(run: Run) -> str:
    """Return the notes that the user should see at once, as sentences; "" if there are none."""
    said = [run.notes.get(note, "") for note in (HUNTED, "evidence", "suspended", UNSTEADY)]
    if run.placement.mode != "none":
        said.append(run.notes.get("isolation", ""))
    return " ".join(cleaned_sentence(one, SENTENCE) for one in said if one)


def run_result_lines(run: Run, width: int) -> Lines:
    """Return a run's whole result in at most 80 columns. A warning comes first if few messages were sent. Then come
    latencies, stalls and gaps, threads, and other facts such as the clock."""
    width = min(width, WIDEST)
    head = [Text(f"{clean(run.label, LABEL) or 'Run'} · {run.id}", "bold"), *wrap(" · ".join(_how(run)), width)]
    head += blind_transit(run, width)
    parts = [head, *_latencies(run, width), _stalls(run, width), _buckets(run, width), _threads(run, width)]
    return [line for part in (*parts, _facts(run, width)) if part for line in (*part, Text())][:-1]


def where_kept(run: Run, session: str, traced: bool, width: int, named: bool = False) -> Lines:
    """Return lines that say where a run is stored, and which command shows its trace or counters. ``named``: True if
    the user named the session on the command line; then the shown command names it, too."""
    name, width = clean(session), min(width, WIDEST)
    lines = _fact("kept", f"as {run.id} in session {name}", width)
    if traced or run.counters is not None:
        # A name that a shell would split is not put into a command.
        of_it = f" --session {name}" if named and _A_WORD.fullmatch(name) else ""
        command = f"'explain @1{of_it}'"
        text = f"this run has no trace; {command} shows its counters"
        if traced:
            text = f"this run has the kernel's trace; {command} shows what took the time of its stalls"
        lines += _fact("evidence", text, width)
    return lines


def _how(run: Run) -> list[str]:
    what = [*([run.mark] if run.mark else []), run.workload, f"placement {run.placement.mode}"]
    if run.workload == "ring":
        paced = f"a message every {nice_ns(run.interval_ns)}"
        what.append(paced if run.pacing == "spin" else f"{paced}, on schedule")
    elif run.workload in _PACE:
        what.append(f"{_PACE[run.workload]} every {nice_ns(run.interval_ns)}")
    if run.sched != "other":
        what.append(clean(run.sched, WORD))
    if run.duty != 100:
        what.append(f"busy {run.duty} % of the time" if run.pause != "busy" else f"samples {run.duty} % of the time")
    if run.memory:
        what.append(_memory(run))
    if run.lock:
        what.append(LOCK_WORDS.get(run.lock, f"lock {clean(run.lock, WORD)}"))
    if run.noise:
        what.append(f"with {clean(run.noise, WORD)}")
    return [*what, f"{nice_ns(run.duration_s * 1e9)} in {many(len(run.blocks), 'block')}"]


def _memory(run: Run) -> str:
    """Return words for a run's use of memory. The words call the pages huge only if the kernel gave huge pages."""
    if run.memory == "huge" and run.huge_pages is not None:
        given = many(run.huge_pages, "huge page") if run.huge_pages else "no huge page"
        return f"keeps messages in fresh memory ({given})"
    return MEMORY_WORDS.get(run.memory or "", f"memory {clean(run.memory or '', WORD)}")


def _latencies(run: Run, width: int) -> list[Lines]:
    """Return the tables of a run's histograms, and a legend. A table has at most four histograms. Times from send to
    receive come first, then times between messages."""
    marks = {name: sample_size.of_count(summary.count) for name, summary in run.histograms.items()}
    marks |= {
        one.latency_histogram: sample_size.marks_of_run(one)
        for one in (run, of_transit(run))
        if one.latency_histogram in marks
    }
    for name, summary in run.histograms.items():
        marks[name] = {p: mark for p, mark in marks[name].items() if summary.percentiles.get(p) is not None}
    legend = sample_size.explain_marks(mark for some in marks.values() for mark in some.values())
    tables: list[Lines] = []
    for interval in (False, True):
        names = [name for name in run.histograms if name.endswith("_interval") == interval]
        for at in range(0, len(names), _PER_TABLE):
            group = names[at : at + _PER_TABLE]
            columns = [_column(_called(run, n), run.histograms[n], marks[n] if legend else {}) for n in group]
            labels = ["", "", "mean", "min", *(f"{p} %" for p in PERCENTILES), "max", "count", "beyond range"]
            rows = [[label, *cells] for label, *cells in zip(labels, *columns, strict=True) if label or any(cells)]
            rows = rows if rows[-1][1:] != [_NONE_BEYOND] * len(group) else rows[:-1]
            tables.append(table_lines(rows, width, right=range(1, 5), gap=4))
    clocks = wrap(_CLOCKS, width) if {INTENDED, run.main_histogram} <= run.histograms.keys() else []
    return [*tables, [*(Text(line) for line in legend), *clocks]]


def _called(run: Run, name: str) -> str:
    """Return the name under which a histogram is shown. In older runs, the histogram ``transit`` contains hand-offs,
    so its name is shown as a hand-off.
    """
    return name.replace("_transit", f"_{HANDOFF}") if run.by_handoff else name


def _column(name: str, found: HistogramSummary, marks: Mapping[str, str]) -> list[str]:
    """Return a histogram's name in two parts, and its values, each followed by its mark."""
    first, _, last = clean(name, ID).rpartition("_")
    values = [nice_ns(found.percentiles.get(p)) for p in PERCENTILES]
    cells = [nice_ns(found.mean), nice_ns(found.min), *values, nice_ns(found.max), f"{found.count:,}"]
    behind = ["", "", *(marks.get(p, "") for p in PERCENTILES), "", ""]
    return [first, last, *sample_size.marked(cells, behind), f"{found.overflow:,}  "]


def _stalls(run: Run, width: int) -> Lines:
    if not run.stalls.rates:
        return []
    # An interval between ACKs also contains the time in which nothing was due.
    taken, over = ("time in them", "intervals over") if run.workload == "ack" else (measure_name(STOLEN), "stalls over")
    rows = [[over, "count", "per second", taken]]
    for r in run.stalls.rates:
        in_stalls = amount(STOLEN, r.stolen_ns_per_second)
        rows.append([nice_ns(r.threshold_ns), grouped_number(r.count), nice_number(r.per_second), in_stalls])
    lines = table_lines(rows, width, right=(1, 2, 3), gap=4)
    if run.workload == "ack":
        lines += _fact("rate", rate_in_words(run), width)
    elif run.rated_s < run.duration_s:
        looked = f"for the {nice_ns(run.rated_s * 1e9)} in which spin sampled, out of {nice_ns(run.duration_s * 1e9)}"
        lines += _fact("rates", f"are {looked}", width)
    return lines


def _buckets(run: Run, width: int) -> Lines:
    """Return ``spin``'s gaps per hour in two columns, one line for each of the 26 classic buckets that is not empty."""
    if run.buckets is None or run.sampled_s is None:
        return []
    head = f"gaps per hour of sampled time ({nice_ns(run.sampled_s * 1e9)} sampled)"
    used = [b for b in run.buckets if b.count]
    if not used:
        return wrap(f"{head}: none of {nice_ns(run.buckets[0].from_ns)} or more", width)
    cells = []
    for bucket in used:
        span = f"{nice_ns(bucket.from_ns)} " + ("and more" if bucket.to_ns is None else f"to {nice_ns(bucket.to_ns)}")
        cells.append([span, "–" if bucket.per_hour is None else nice_number(bucket.per_hour)])
    half = (len(used) + 1) // 2
    rows = [left + right for left, right in zip_longest(cells[:half], cells[half:], fillvalue=["", ""])]
    return [*wrap(head, width), *table_lines(rows, width, right=(1, 3), gap=4, head=False)]


def _threads(run: Run, width: int) -> Lines:
    rows = [["thread", "slept", "preempted", "moved", "faults", "where its work was done"]]
    for t in run.threads:
        faults = None if t.minor_faults is None or t.major_faults is None else t.minor_faults + t.major_faults
        counts = map(grouped_number, (t.voluntary_switches, t.involuntary_switches, t.migrations, faults))
        rows.append([clean(t.name, CELL), *counts, _residence(t)])
    return table_lines(rows, width, right=range(1, 5)) if run.threads else []


def _residence(thread: ThreadRecord) -> str:
    """Return the CPUs where a thread did its work, each with its percentage: ``CPU 1 75 %, 0 20 % +2 more``. The CPU
    with the largest percentage comes first. CPUs that do not fit are only counted.
    """
    total = sum(thread.messages_by_cpu.values())
    shares = sorted(thread.messages_by_cpu.items(), key=lambda item: (-item[1], int(item[0])))
    shown: list[str] = []
    text = ""
    for cpu, count in shares:
        shown.append(f"{cpu} {_percent(count, total)}")
        hidden = len(shares) - len(shown)
        longer = f"CPU {', '.join(shown)}" + (f" +{hidden} more" if hidden else "")
        if text and len(longer) > _RESIDENCE:
            break
        text = longer
    return text or "–"


def _facts(run: Run, width: int) -> Lines:
    clock = (
        f"{clean(run.clock.source, WORD)}, {run.clock.cost_ns:.1f} ns a reading, steps of {run.clock.resolution_ns} ns"
    )
    if run.clock.offset_ns is not None and run.clock.offset_bound_ns is not None:
        clock += f", offset between CPUs {run.clock.offset_ns} ± {run.clock.offset_bound_ns} ns"
    facts = [("clock", clock), ("placement", clean(run.placement.why, PATH))]
    own = [b.parent_switches for b in run.blocks if b.parent_switches is not None]
    seen = []
    if run.core_hz is not None:
        seen.append(f"core at {run.core_hz / 1e9:.2f} GHz")
    if run.steal_ns is not None:
        step = f" (steps of {nice_ns(run.steal_resolution_ns)})" if run.steal_resolution_ns else ""
        seen.append(f"steal (by the hypervisor) {nice_ns(run.steal_ns)}{step}")
    if run.blocked_publishes:
        what = "no room for a segment" if run.workload == "ack" else "ring full"
        seen.append(f"{what} {run.blocked_publishes:,} times")
    if run.missed_wakeups:
        seen.append(f"{run.missed_wakeups:,} periods ended before the thread could sleep")
    if run.negative_deltas:
        seen.append(f"{run.negative_deltas:,} negative differences of clocks, not counted")
    if run.throttled_periods:
        seen.append(f"throttled by its cgroup in {run.throttled_periods:,} periods")
    if own:
        seen.append(f"the workshop itself woke {sum(own):,} times during blocks")
    if seen:
        facts.append(("seen", "; ".join(seen)))
    facts.append(("noise", _noise(run)))
    nothing = () if run.noise else ("noise",)
    facts += [("note", clean(run.notes[n], SENTENCE)) for n in _SHOWN_NOTES if n in run.notes and n not in nothing]
    return [line for name, text in facts if text for line in _fact(name, text, width)]


def _noise(run: Run) -> str:
    """Describe what a noise did, from the log that the noise wrote; "" for a run without a noise."""
    if run.noise is None:
        return ""
    kind, bursts = clean(run.noise, WORD), run.noise_bursts
    if bursts is None:
        return f"{kind}: {clean(run.notes.get('noise_bursts', 'what it did is not known'), REASON)}"
    took = "how much time it took is not known" if bursts.taken_ns is None else f"{nice_ns(bursts.taken_ns)} in all"
    return f"{kind} logged {many(bursts.count, 'burst')}, {took}, from before the first block until after the last"


def _fact(name: str, text: str, width: int) -> Lines:
    return labelled(name, text, width, 14) if text else []


def _percent(part: int, whole: int) -> str:
    """Return a share in percent. Only a full share is shown as 100 %, and only a share of zero as 0 %."""
    share = 100 * part / whole if whole else 0.0
    if share >= 99.95 and part != whole:
        return ">99.9 %"
    if 0 < share < 0.05:
        return "<0.1 %"
    return f"{share:.3g} %"
