"""Make the blocks of a report, such as paragraphs and tables, from the report's document.

All output formats show the same blocks. The blocks follow a reader's questions: first the results in words, then the
data behind the results. If a value is unknown, a block gives the reason, which comes from the document's notes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Literal

from jitter_workshop.model.change import LeftAlone
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.curve import Comparison, PercentileCurve
from jitter_workshop.model.evidence import EvidenceReport, ExplainedStall, load_called
from jitter_workshop.model.host import HostSummary
from jitter_workshop.model.proof import PLACEMENT, Proof
from jitter_workshop.model.report import (
    Fate,
    ReportDocument,
    ReportedChange,
    ReportedChapter,
    ReportedDiagnosis,
    ReportedRun,
    ReportedScreening,
    RunCauses,
)
from jitter_workshop.model.run import AT, PERCENTILES, HistogramSummary, made_late
from jitter_workshop.model.status import CheckState, HostEvent, Snapshot
from jitter_workshop.model.text import (
    ID,
    LABEL,
    LINE,
    MESSAGE,
    MOST_ENTRIES,
    NAME,
    PARAGRAPH,
    PATH,
    SENTENCE,
    SHORT,
    WORD,
    capital,
    clean,
    cleaned_sentence,
    day,
    many,
    quoted_command,
)
from jitter_workshop.model.verdict import (
    COMMAND_SHARE,
    CONFIDENCE,
    ENOUGH_ROUNDS,
    SIGNIFICANCE,
    Judgement,
    Standing,
    Verdict,
    VerdictWord,
)
from jitter_workshop.report import cause_words
from jitter_workshop.report.blocks import (
    UNKNOWN,
    Bar,
    Bullets,
    Cells,
    Chart,
    Column,
    Facts,
    HeatChart,
    Inline,
    Interval,
    IntervalAxis,
    MatrixChart,
    Paragraph,
    ReportBlock,
    Section,
    Shell,
    Span,
    StallLine,
    StallList,
    Subsection,
    Table,
    code_span,
    join_inline,
    name_span,
    second_line,
    time,
)
from jitter_workshop.report.cause_rows import CauseRow, cause_rows, sum_of_causes
from jitter_workshop.report.check_words import MARKS
from jitter_workshop.report.diagnosis_words import (
    UNDECIDED_TASKS,
    acts_on,
    came_most,
    can_end,
    label,
    took,
    took_most,
    undecided_sentence,
)
from jitter_workshop.report.proof_words import (
    NO_ROUND,
    NOT_RESTORED,
    WORDS,
    at_the_end,
    disturbances,
    restored_told,
    too_few,
)
from jitter_workshop.report.screening_words import MEAN_OVER_RUNS, axis_for, result_word
from jitter_workshop.stats.comparison import amount, clock_told, measure_name
from jitter_workshop.stats.curve import curve_value_at
from jitter_workshop.stats.figures import LATENCY_EXPLAINED, TRANSIT
from jitter_workshop.stats.heat import Heat
from jitter_workshop.stats.interval_plot import Axis, axis_of
from jitter_workshop.stats.sample_size import FEW_SAMPLES, FEW_STALLS, LEGEND, of_count, of_standings
from jitter_workshop.stats.scale import nice_ns, nice_number, ratio_text
from jitter_workshop.stats.verdicts import span_told

SIGNS: dict[VerdictWord, str] = {"lower": "▼", "higher": "▲", "no_change": "=", "cannot_tell": "?"}
"""The sign that is shown beside the word of each verdict. The word is enough without the sign."""

FATES: dict[Fate, str] = {
    "standing": "in place",
    "kept": "kept",
    "restored": "restored",
    "left_alone": "left alone",
    "refused": "refused",
    "gone": "gone",
    "rebooted": "ended by a reboot",
    "unknown": "not known",
}

KINDS: dict[Literal["check", "chapter", "standing", "reboot"], str] = {
    "standing": "still set",
    "reboot": "waiting for a reboot",
    "check": "could be better",
    "chapter": "chapters not done",
}
"""The kinds of open points, with their words. The kinds about the host come first."""

EVIDENCE: dict[Literal["trace", "counters", "none"], str] = {
    "trace": "by the kernel's trace",
    "counters": "by counters: there is no trace of this run, so no stall has a named cause",
    "none": "not known",
}

OWN_PLACE = frozenset(
    {"before", "after", "proofs", "culprits", "hosts", "changes", "events", "chapters", "imports", "heats"}
)
"""Keys of the document's notes that are shown in the part of the report to which they belong. All other notes are shown
at the report's end."""

FEW = (
    f"{FEW_SAMPLES} marks a percentile with fewer than ten samples beyond it, {FEW_STALLS} a percentile with fewer "
    "than ten distinct stalls beyond it. – means that there are too few samples. The maximum is a single event."
)
"""The sentence below a table of runs that explains its marks."""
FEW_IN_CURVES = f"{FEW_SAMPLES} marks a percentile with fewer than ten samples beyond it; the chart draws it dotted."
"""The sentence below a table of a chart's curves that explains its marks. It says nothing of stalls, because a curve
may come without its run, and only a run counts stalls."""

HOW_CURVES = (
    "Both axes are logarithmic: each tick to the right is ten times rarer, each tick up is ten times longer. A line "
    "is solid where at least ten samples lie beyond it, and dotted elsewhere."
)
HOW_VERDICTS = (
    "Each line was measured in pairs of fresh runs, one with the change and one without, in random order. A line is "
    "called lower or higher only if chance alone is an unlikely reason. The risk of a wrong call is 5 % for all "
    f"lines together. No verdict is based on fewer than {ENOUGH_ROUNDS} rounds. The strip shows the ratio "
    f"with/without and its {CONFIDENCE * 100:.0f} % interval. The band around 1 is ±10 %."
)
HOW_COMMANDS = (
    "The proof of a command has one line. By chance alone, this line is called lower or higher in at most "
    f"{SIGNIFICANCE * COMMAND_SHARE * 100:.3g} % of proofs. So the line has a "
    f"{100 * (1 - SIGNIFICANCE * COMMAND_SHARE):.3g} % interval."
)
"""The sentence that follows HOW_VERDICTS in a report with a proof of a command."""
HOW_SCREENED = (
    "In a screening each run has some of the settings on. So each pair of runs gives information about every setting. "
    "The first pairs choose the settings with the largest effects. New pairs then test only these settings (risk of a "
    "wrong call: 5 % for all of them together). A ratio is a mean over runs. "
    f"{MEAN_OVER_RUNS}"
)
NOTHING_PROVEN = (
    "Nothing was proven in this session. Single runs differ by chance alone, so this report only describes them. For a "
    "verdict, run 'jitter-workshop prove', or press 'p' at a chapter's compare step. A proof compares rounds of fresh "
    "runs with a change and without it."
)
HOW_IT_COUNTS = (
    "A stall is a time in which a measured thread did not do its work. A percentile counts messages, but a stall is "
    "one event: one long stall makes many messages late. Durations are shown with three digits; the raw data have all "
    "digits. All dates and times are in UTC."
)

HEADLINE_STALL_NS = 100_000
"""The threshold, in ns, of the stalls whose rate a table of runs shows."""

_CPU_LISTS = frozenset({"cpus_online", "cpus_allowed", "isolated", "nohz_full"})
_FACTS = {
    "kernel": "kernel",
    "architecture": "architecture",
    "cpu_model": "CPU",
    "hypervisor": "hypervisor",
    "packages": "sockets",
    "smt": "SMT",
    "cpus_online": "CPUs online",
    "cpus_allowed": "CPUs allowed",
    "isolated": "isolated",
    "nohz_full": "tickless",
    "governors": "governors",
    "cpuidle_driver": "idle driver",
    "clocksource": "clock source",
    "realtime_kernel": "real-time kernel",
    "steal_percent": "steal since boot, %",
    "cpu_max_quota_us": "CPU limit, µs",
    "cpu_max_period_us": "CPU limit's period, µs",
    "on_battery": "on battery",
    "hottest_celsius": "hottest, °C",
    "memlock_limit_bytes": "lockable memory, bytes",
    "boot_id": "boot",
}

HOW_HEAT = (
    "A heat map shows at which times the values of a run were measured. Time runs to the right, latency runs up. Each "
    "column is a block. The shade says how many values of this latency the block has. The runs whose longest values "
    "come in bursts have a heat map here, and so has the run with the longest value. Runs of proofs and screenings "
    "have none."
)

MOST_CAUSES = 14
"""The number of causes' rows that are visible at first in a table of causes."""
_PART = "↳ "
"""The text before the name of a part of the local timer."""
_MOST_SLOTS = 20
"""The most runs that a chapter lists, one for each slot."""
_MOST_APPLIED = 12
"""The most settings that the remarks on a run name."""
STALL_CAUSES = 4
"""The number of causes that are named for one stall. The times of its other causes are added up."""
LONG = 12
"""The number of rows of other tables, and of items of lists, that are visible at first."""

HOST_THEN = "Host, when the newest run was made"
"""The term for the facts on the host. It says when the facts were read, because the changes of the newest run may have
been restored since then."""
_CURVE_PERCENTILES = ("50", "90", "99", "99.9", "99.99")
_SETTINGS = {None: "sets nothing", True: "its setting is as it should be", False: "its setting is not as it should be"}

# -- the whole ---------------------------------------------------------------------------------------------------------


def opening_blocks(document: ReportDocument) -> tuple[ReportBlock, ...]:
    """Return the blocks under the title: the summary, and facts about the report itself."""
    d = document
    stamps = sorted(run.started_at for run in d.runs if run.started_at)
    facts: list[tuple[str, Inline]] = [
        (HOST_THEN if d.runs and d.host_line else "Host", clean(d.host_line, SENTENCE) or "not known"),
        ("Session", (name_span(d.session_name), " ", code_span(d.session_id, LABEL))),
    ]
    if stamps:
        ends = dict.fromkeys((stamps[0], stamps[-1]))
        facts.append(("Measured", join_inline([time(stamp) for stamp in ends], " to ")))
    facts.append(("Written", (time(d.made_at), f" by jitter-workshop {clean(d.tool_version, SHORT)}")))
    found: list[ReportBlock] = [Bullets(tuple(_summary(d)), summary=True), Facts(tuple(facts))]
    if d.recorded:
        told = f"This report is about a recorded host ({clean(d.recorded)})."
        told += "" if d.runs else " It shows the host's settings; nothing was measured."
        found.insert(0, Paragraph(told, "origin"))
    return tuple(found)


def sections(document: ReportDocument) -> Iterator[Section]:
    """Yield all sections of a report except the last one, in the order of a reader's questions."""
    d = document
    links = {run.id: Span("link", name_span(run.label or run.id, LABEL), f"run-{n}") for n, run in enumerate(d.runs, 1)}
    if d.overlays:
        heats = heat_charts(d)
        how = (Paragraph(HOW_HEAT, "how"),) if heats else ()
        charts = (Paragraph(HOW_CURVES, "how"), *_charts(d), *how, *heats, *_notes(d, "heats"))
        yield Section("charts", "Curves", charts)
    yield Section("verdicts", "Verdicts", tuple(_verdicts(d)))
    known = tuple(_causes_of_run(one, links) for one in d.culprits)
    yield Section("culprits", "Who took the time", known or (_not_known(d, "culprits"),))
    yield Section("changes", "Changes", (*_changes(d), *_notes(d, "changes", "events")))
    if d.chapters or "chapters" in d.notes:
        told = tuple(_chapter(one, links) for one in d.chapters)
        yield Section("chapters", "Chapters and guesses", (*told, *_notes(d, "chapters")))
    yield Section("status", "Status before and after", tuple(_status(d)))
    yield Section("open", "Still open", tuple(_still_open(d)))
    none = Paragraph("This session has no commands to repeat.")
    yield Section("again", "How to repeat this", (Shell(d.commands),) if d.commands else (none,))
    yield Section("runs", "Runs", tuple(_runs(d)))
    if (lines := matrix_chart(d)) is not None:
        yield Section("lines", "Lines between CPUs", (lines,))
    yield Section("host", "Host", tuple(map(_host, d.hosts)) or (_not_known(d, "hosts"),))


def section_on_report(document: ReportDocument, raw: Sequence[ReportBlock]) -> Section:
    """Return the last section of a report, which describes the report itself. ``raw``: blocks about the raw data, which
    differ between output formats."""
    others = {key: text for key, text in document.notes.items() if key not in OWN_PLACE and text}
    items = tuple((Span("strong", clean(key, ID)), f": {clean(text, SENTENCE)}") for key, text in others.items())
    parts: list[ReportBlock] = [Paragraph(HOW_IT_COUNTS, "how")]
    parts += [Subsection("Raw data", tuple(raw))] if raw else []
    parts += [Subsection("Notes", (Bullets(items),))] if items else []
    return Section("about", "About this report", tuple(parts))


def _not_known(document: ReportDocument, key: str) -> Paragraph:
    return Paragraph(f"Not known: {clean(document.notes.get(key, 'nothing was kept'), SENTENCE)}.")


def _notes(document: ReportDocument, *keys: str) -> Iterator[Paragraph]:
    for key in keys:
        if told := clean(document.notes.get(key, ""), SENTENCE):
            yield Paragraph(told, "unknown")


def _summary(document: ReportDocument) -> Iterator[Inline]:
    """Yield the first lines of a report. A line on a proof has a badge with the verdict and a link to the proof."""
    # Two proofs of one subject have a line each, in the order of the proofs.
    waiting = {number: clean(proof.subject, LABEL) for number, proof in enumerate(document.proofs)}
    for text in document.summary:
        parts = {number: text.partition(f"{subject}: ") for number, subject in waiting.items()}
        number = next((n for n, (before, _, _) in parts.items() if before in ("Proven of ", "Not proven of ")), None)
        if number is None:
            yield clean(text, PARAGRAPH)
            continue
        subject, (before, _, after) = waiting.pop(number), parts[number]
        judged = document.proofs[number].judgement
        badge: tuple[Inline, ...] = (_verdict_badge(judged.headline.verdict), " ") if judged is not None else ()
        link = Span("link", name_span(subject, LABEL), _proof_id(number))
        yield (*badge, before, link, f": {clean(after, PARAGRAPH)}")


def _verdict_badge(word: VerdictWord) -> Span:
    return Span("badge", f"{SIGNS[word]} {WORDS[word]}", word.replace("_", "-"))


# -- curves ------------------------------------------------------------------------------------------------------------


def _charts(document: ReportDocument) -> Iterator[Chart]:
    columns = (Column("curve"), *(Column(f"p{p}", number=True) for p in _CURVE_PERCENTILES))
    columns = (*columns, Column("max", number=True), Column("samples", number=True))
    for number, overlay in enumerate(document.overlays, 1):
        caption = f"Curves of the chart: {clean(overlay.title)}. {FEW_IN_CURVES}"
        table = Table("curves", caption, columns, tuple(map(_curve, overlay.curves)))
        yield Chart(number, overlay.title, clean(overlay.text, PARAGRAPH), overlay.curves, table, overlay.between)


def heat_charts(document: ReportDocument) -> tuple[HeatChart, ...]:
    """Return the heat maps of a report. The heat maps are numbered after the charts of curves."""
    labels = {run.id: run.label or run.id for run in document.runs}
    return tuple(
        HeatChart(
            number,
            f"When the long values came: {clean(labels.get(one.run, one.run), LABEL)}",
            clean(one.text, PARAGRAPH),
            Heat(labels.get(one.run, one.run), one.starts_s, one.end_s, one.block_s, one.counts),
            one.bursts,
            one.worst,
        )
        for number, one in enumerate(document.heats, len(document.overlays) + 1)
    )


def matrix_chart(document: ReportDocument) -> MatrixChart | None:
    """Return the chart of the host's matrix; None if the report has no matrix. Its number comes after those of all
    other charts."""
    matrix = document.matrix
    if matrix is None:
        return None
    label = f": {clean(matrix.label, LABEL)}" if matrix.label else ""
    stands = f" that stand for {sum(len(group.cpus) for group in matrix.groups)}" if matrix.sampled else ""
    text = (
        f"The one-way time of a cache line for each pair of {len(matrix.cpus)} CPUs{stands}, measured on "
        f"{day(matrix.started_at)}. Both directions of a pair are measured together."
    )
    notes = [clean(note, SENTENCE) for note in matrix.notes.values() if note]
    columns = (Column("two CPUs of"), *(Column(head, number=True) for head in ("median", "least", "most", "pairs")))
    rows = tuple(
        (clean(one.name, ID), nice_ns(one.median_ns), nice_ns(one.min_ns), nice_ns(one.max_ns), f"{one.pairs:,}")
        for one in matrix.clusters
    )
    return MatrixChart(
        len(document.overlays) + len(document.heats) + 1,
        f"How near the CPUs are to each other{label}",
        " ".join([text, *map(cleaned_sentence, notes)]),
        matrix,
        Table("narrow", "Pairs by what their CPUs share, the shortest times first", columns, rows),
    )


def _curve(curve: PercentileCurve) -> Cells:
    origin: tuple[Inline, ...] = (Span("origin", clean(curve.origin, ID)),) if curve.origin else ()
    marks = of_count(curve.count)
    values = (_few(curve_value_at(curve, float(p)), marks[p], LEGEND.get(marks[p], "")) for p in _CURVE_PERCENTILES)
    last = curve.points[-1].value_ns if curve.points else None
    samples = f"{curve.count:,}" if curve.sent is None else f"{curve.count:,} ({curve.sent:,} sent)"
    return ((name_span(curve.label, LABEL), *origin), *values, nice_ns(last), samples)


def _few(value: int | None, mark: str, why: str) -> Inline:
    """Return a time in readable form, with a mark if few samples or stalls support the time. ``value``: the time in ns;
    None if it is unknown. ``mark``: the sign to add; "" for none. ``why``: the reason for the mark."""
    return Span("few", f"{nice_ns(value)} {mark}", why) if value is not None and mark else nice_ns(value)


# -- verdicts ----------------------------------------------------------------------------------------------------------


def _verdicts(document: ReportDocument) -> Iterator[ReportBlock]:
    if not document.proofs and not document.screenings:
        yield Paragraph(NOTHING_PROVEN)
        yield from _notes(document, "proofs")
        return
    if document.proofs:
        rows = [row for proof in document.proofs if proof.judgement is not None for row in proof.judgement.rows]
        commands = any(row.confidence != CONFIDENCE for row in rows)
        yield Paragraph(f"{HOW_VERDICTS} {HOW_COMMANDS}" if commands else HOW_VERDICTS, "how")
    for number, proof in enumerate(document.proofs):
        yield Subsection(name_span(proof.subject), tuple(_proof(proof)), "proof", _proof_id(number))
    if document.screenings:
        yield Paragraph(HOW_SCREENED, "how")
    for screening in document.screenings:
        title = f"Which of {many(len(screening.settings), 'setting')} matter"
        yield Subsection(title, tuple(_screening(screening)), "proof")


def _proof_id(number: int) -> str:
    return f"proof-{number + 1}"


def _proof(proof: Proof) -> Iterator[ReportBlock]:
    judged = proof.judgement
    if judged is None:
        yield Paragraph(Span("strong", f"{NO_ROUND}."), "verdict")
    else:
        head = clean(judged.headline.text + disturbances(proof), PARAGRAPH)
        yield Paragraph((_verdict_badge(judged.headline.verdict), " ", head), "verdict")
    yield Paragraph(join_inline(list(_made(proof)), " · "), "dim")
    if proof.stopped:
        yield Paragraph(f"Ended early: {clean(proof.stopped, SENTENCE)}.", "attention")
    if judged is not None:
        yield from _judged(judged, proof.subject)
    yield from _restored(restored_told(proof), proof.restored, proof.left_alone)
    if proof.notes:
        yield Bullets(tuple(clean(note, PARAGRAPH) for note in proof.notes))
    if proof.changes:
        rows = tuple(
            (code_span(c.path), code_span(c.before), code_span(c.after), clean(c.why, SENTENCE)) for c in proof.changes
        )
        columns = tuple(map(Column, ("path", "without", "with", "why")))
        caption = f"Written in each round of {clean(proof.subject, LABEL)}: {many(len(rows), 'write')}"
        if proof.subject == PLACEMENT:
            caption = "CPUs of the threads, without the change and with it"
        yield Table("", caption, columns, rows, most=0)


def _made(proof: Proof) -> Iterator[Inline]:
    done = len(proof.rounds)
    yield many(done, "round") + ("" if done == proof.planned else f" of {proof.planned:,}")
    yield from _how(proof)
    if proof.rounds:
        yield f"orders {clean(' '.join(one.order for one in proof.rounds), SENTENCE)} (seed {proof.seed})"


def _how(one: Proof | ReportedScreening) -> Iterator[Inline]:
    """Yield what was measured in a proof or screening, and when, as parts of a sentence."""
    if one.command:
        yield ("command ", code_span(quoted_command(one.command)), f", {clean(measure_name(one.metric), ID)} compared")
    yield clean(one.workload, WORD) + (f", preset {clean(one.preset, WORD)}" if one.preset else "")
    yield ("from ", time(one.started_at), " to ", time(one.ended_at))


def _judged(judged: Judgement, subject: str) -> Iterator[ReportBlock]:
    axis = axis_of(judged.rows)
    columns = (
        Column("measure", brief=True),
        Column("verdict", brief=True),
        Column("ratio", number=True, brief=True),
        Column(IntervalAxis(axis, "interval"), brief=True),
        Column("without", number=True),
        Column("with", number=True),
        Column("in words", prose=True),
    )
    rows = tuple(_verdict(one, axis) for one in judged.rows)
    yield Table("verdicts", f"The effect of {clean(subject, LABEL)} on each line", columns, rows)
    if judged.rounds < ENOUGH_ROUNDS:
        yield Paragraph(too_few(judged.rounds))
    for told in (judged.worst, judged.drift.words):
        if told:
            yield Paragraph(clean(told, PARAGRAPH))


def _verdict(one: Verdict, axis: Axis) -> Cells:
    span = span_told(one.low, one.high)
    # The words contain the interval and the verdict, but here both have their own columns.
    said = one.words.partition(": ")[2].replace(f" ({span})", "").removeprefix("cannot tell").lstrip(":; ")
    return (
        measure_name(one.measure),
        _verdict_badge(one.verdict),
        ratio_text(one.ratio),
        Interval(one, axis, span),
        amount(one.measure, one.without, one.unit),
        amount(one.measure, one.with_it, one.unit),
        clean(said, PARAGRAPH),
    )


def _restored(told: str, restored: bool, left_alone: Sequence[LeftAlone]) -> Iterator[ReportBlock]:
    """Yield the sentence ``told``, which says if all settings were restored. A list names each setting that was not
    restored, with the reason."""
    if left_alone:
        yield Paragraph(f"{told}:", "attention")
        yield Bullets(
            tuple(
                (
                    code_span(c.path),
                    f": {clean(c.reason, SENTENCE)}; expected ",
                    code_span(c.expected),
                    ", found ",
                    code_span(c.found),
                )
                for c in left_alone
            )
        )
    else:
        yield Paragraph(f"{told}.", "" if restored else "attention")


def _screening(one: ReportedScreening) -> Iterator[ReportBlock]:
    yield Paragraph(Span("strong", clean(one.text, MESSAGE)), "verdict")
    done = many(one.runs, "run") + ("" if one.complete else f" of {one.budget_runs:,}")
    yield Paragraph(join_inline([done, *_how(one), f"seed {one.seed}"], " · "), "dim")
    if one.stopped:
        yield Paragraph(f"Ended early: {clean(one.stopped, SENTENCE)}.", "attention")
    if one.ranked:
        axis = axis_for(one.ranked)
        columns = (
            Column("setting", brief=True),
            Column("verdict", brief=True),
            Column("ratio", number=True, brief=True),
            Column(IntervalAxis(axis, "interval"), brief=True),
        )
        rows = tuple(
            (
                name_span(row.setting, LABEL),
                _verdict_badge(row.verdict) if row.verdict != "cannot_tell" else result_word(row),
                ratio_text(row.ratio),
                Interval(row, axis, span_told(row.low, row.high)),
            )
            for row in one.ranked
        )
        what = clean(measure_name(one.measure), LABEL)
        yield Table("screened", f"The effect of each setting on {what}, the largest first", columns, rows)
    told = at_the_end(bool(one.left_alone)) if one.restored else NOT_RESTORED
    yield from _restored(told, one.restored, one.left_alone)
    out = [f"Left out: {clean(skipped.tunable, LABEL)}: {clean(skipped.reason, SENTENCE)}" for skipped in one.left_out]
    if out or one.notes:
        yield Bullets((*out, *(clean(note, PARAGRAPH) for note in one.notes)))
    if one.changes:
        writes = tuple(
            (code_span(c.path), code_span(c.before), code_span(c.after), clean(c.why, SENTENCE)) for c in one.changes
        )
        heads = tuple(map(Column, ("path", "without", "with", "why")))
        yield Table("", f"The writes of all settings: {many(len(writes), 'write')}", heads, writes, most=0)


# -- causes ------------------------------------------------------------------------------------------------------------


def _causes_of_run(one: RunCauses, links: Mapping[str, Inline]) -> Subsection:
    # The first sentence describes the table; texts that begin with a candidate's mark form a list.
    lead = [clean(text, PARAGRAPH) for text in one.text if not text.startswith(cause_words.ITEM)]
    items = [text.removeprefix(cause_words.ITEM) for text in one.text if text.startswith(cause_words.ITEM)]
    blocks: list[ReportBlock] = [Paragraph(text) for text in lead[:1]]
    blocks += [_causes(one.report)] if one.report is not None else []
    blocks += [Paragraph(text) for text in lead[1:]]
    blocks += [Bullets(tuple(clean(text, SENTENCE) for text in items))] if items else []
    if one.report is not None and one.report.worst:
        blocks += [Paragraph(f"The worst stalls ({AT})."), StallList(tuple(map(_stall, one.report.worst)))]
    run = links.get(one.run, code_span(one.run, LABEL))
    return Subsection((run, Span("aside", EVIDENCE[one.evidence])), tuple(blocks), "culprits")


def _causes(report: EvidenceReport) -> ReportBlock:
    if not report.causes:
        return Paragraph(cause_words.no_cause(report))
    shares = cause_words.any_without(report)
    columns = [
        Column("cause", brief=True),
        Column("in all", number=True, brief=True),
        Column(""),
        Column("stalls", number=True, brief=True),
        Column("worst", number=True, brief=True),
        Column("a second", number=True),
    ]
    columns += [Column(cause_words.WITHOUT_IT, number=True)] if shares else []
    laid = cause_rows(report, NAME)
    most = max(row.cause.total_ns for row in laid) or 1
    rows = tuple(_cause(row, report, most, shares) for row in laid)
    caption = f"The causes of the stalls, largest first. {sum_of_causes(report)}"
    if any(row.part for row in laid):
        caption += f" {_PART.strip()}: a part of the local timer."
    if told := cause_words.in_time(report):
        caption += f" {told} {cause_words.words_of_column(report)}".rstrip()
    return Table("causes", caption, tuple(columns), rows, most=MOST_CAUSES)


def _cause(row: CauseRow, report: EvidenceReport, most: int, shares: bool) -> Cells:
    cause = row.cause
    cells: list[Inline] = [
        name_span(f"{_PART if row.part else ''}{row.words}"),
        nice_ns(cause.total_ns),
        Bar(cause.total_ns / most),
        f"{cause.count:,}",
        nice_ns(cause.worst_ns),
        nice_ns(cause.ns_per_second),
    ]
    return (*cells, cause_words.without(cause, report)) if shares else tuple(cells)


def _stall(stall: ExplainedStall) -> StallLine:
    where = f" on CPU {stall.cpu}" if stall.cpu is not None else ""
    late = made_late(stall.thread, stall.messages)
    head = f"{nice_ns(stall.duration_ns)} of {clean(stall.thread, WORD)}{where}, at {nice_ns(stall.at_ns)}"
    causes = stall.parts[:STALL_CAUSES]
    rest = sum(part.ns for part in stall.parts[STALL_CAUSES:])
    return StallLine(
        head=f"{head}, {late}" if late else head,
        causes=tuple(f"{cause_words.cause_words(one.kind, one.name, LABEL)} {nice_ns(one.ns)}" for one in causes),
        rest=f"others {nice_ns(rest)}" if rest else "",
        notes=tuple(clean(note, SENTENCE) for note in stall.notes),
        drawn=stall,
    )


# -- chapters ----------------------------------------------------------------------------------------------------------


_WHO = "Who took most of the time that the first run lost?"
_MOST_OFTEN = "Which cause came most often during the first run?"
"""The question about an emulated run, whose times mean nothing."""
_ENDS = "Which causes of the stalls can the chapter's change end?"
_READ = "a chapter to read: nothing is measured"


def _chapter(one: ReportedChapter, links: Mapping[str, Inline]) -> Subsection:
    blocks: list[ReportBlock] = []
    if one.rehearsed:
        blocks.append(Paragraph("Done on a recording: nothing was measured on this host.", "origin"))
    marks = (
        "done" if one.done else "under way",
        *((_SETTINGS[one.setting], f"curve{'' if one.curve else ' not'} measured") if one.measures else (_READ,)),
    )
    blocks.append(Paragraph(" · ".join(marks), "dim"))
    if one.question:
        blocks.append(_guess(one))
    if one.diagnosis is not None:
        blocks.append(_diagnosis(one.diagnosis))
    elif one.skipped:
        asked = _asked(one.asks, one.emulated)
        blocks.append(Facts((("Asked", asked), ("Named", "nothing: the question was skipped"))))
    if one.runs:
        runs = list(one.runs.items())[:_MOST_SLOTS]
        said = join_inline(
            [(f"{clean(slot, SHORT)}: ", links.get(ident, code_span(ident, LABEL))) for slot, ident in runs]
        )
        blocks.append(Paragraph(("Runs: ", said)))
    if one.comparison_text:
        blocks.append(Paragraph(clean(one.comparison_text, MESSAGE)))
    if one.comparison is not None:
        blocks.append(_comparison(one.comparison, one.title))
    if one.learnt:
        blocks += [Paragraph("What was learnt:"), Bullets(tuple(clean(text, PARAGRAPH) for text in one.learnt))]
    return Subsection(clean(one.title), tuple(blocks), "chapter")


def _guess(one: ReportedChapter) -> Facts:
    guess = clean(one.guess, SENTENCE) or "nothing was predicted"
    rows: list[tuple[str, Inline]] = [("Asked", clean(one.question, PARAGRAPH)), ("Predicted", guess)]
    if one.outcome is not None:
        told: list[Inline] = [clean(one.outcome.text, PARAGRAPH)]
        if one.outcome.near is not None:
            word = "right" if one.outcome.near else "near" if one.outcome.beside else "wrong"
            told += [" ", Span("badge", word, "plain")]
        if one.outcome.explanation:
            told.append(second_line(clean(one.outcome.explanation, MESSAGE)))
        rows.append(("Recorded" if one.rehearsed else "Measured", tuple(told)))
    return Facts(tuple(rows))


def _asked(asks: str, emulated: bool) -> str:
    """Return the question of the diagnosis. ``asks``: as in ReportedDiagnosis. On an emulated machine the most frequent
    cause takes the place of the one that took most time."""
    return _ENDS if asks == "ends" else _MOST_OFTEN if emulated else _WHO


def _what_ends(one: ReportedDiagnosis, chosen: str) -> str:
    """Return sentences on an answer to the question which causes the chapter's change can end."""
    share = one.chosen.ns / one.stalled_ns if one.stalled_ns else 0.0
    time = took(chosen, one.chosen.ns, min(share, 1.0))
    acts = UNDECIDED_TASKS if one.right is None else acts_on("" if time else chosen, one.right)
    ends = can_end(one.ended_ns, one.stalled_ns, threads=one.threads) if one.source == "trace" else ""
    return " ".join(filter(None, (time, acts, ends)))


def _diagnosis(one: ReportedDiagnosis) -> Facts:
    """Return the question about the first run, the learner's answer, and what the evidence shows."""
    chosen = label(one.chosen.kind, one.chosen.name)
    chosen_ns, emulated = one.chosen.ns or None, one.source == "emulated"
    if not one.source:
        said = "The evidence is no longer available."
    elif one.asks == "ends":
        said = _what_ends(one, chosen)
    elif one.most is None:
        said = undecided_sentence(one.source, chosen, chosen_ns, one.right, one.unknown_ns, one.stalled_ns)
    else:
        most, other = label(one.most.kind, one.most.name), "" if one.most == one.chosen else chosen
        said = (
            came_most(most, other)
            if emulated
            else took_most(most, one.most.ns, one.share, other, chosen_ns, one.threads, right=one.right)
        )
    named: Inline = chosen
    if one.right is not None:
        named = (chosen, " ", Span("badge", "right" if one.right else "wrong", "plain"))
    asked = _asked(one.asks, emulated)
    heads = {"trace": "The trace", "counters": "The counters", "emulated": "What was counted"}
    if one.recorded:
        heads = {"trace": "The recorded trace", "emulated": "The recorded counters"}
        said = f"{said} The first run was not made here: it was {clean(one.recorded, LINE)}."
    rows: list[tuple[str, Inline]] = [("Asked", asked), ("Named", named), (heads.get(one.source, "Evidence"), said)]
    return Facts(tuple(rows))


def _comparison(found: Comparison, title: str) -> ReportBlock:
    if not found.comparable:
        return Bullets(tuple(clean(text, SENTENCE) for text in found.differences))
    columns = (Column("measure"), *(Column(head, number=True) for head in ("first run", "second run", "ratio")))
    rows = tuple(
        (measure_name(m.measure), amount(m.measure, m.a), amount(m.measure, m.b), ratio_text(m.ratio))
        for m in found.rows
    )
    clock = f", {told}" if (told := clock_told(found)) else ""
    return Table("narrow", f"{clean(title, LABEL)}: two single runs{clock}, described and not judged", columns, rows)


# -- the host ----------------------------------------------------------------------------------------------------------


def _changes(document: ReportDocument) -> Iterator[ReportBlock]:
    """Yield a table of the session's writes with their outcomes. Then yield a table of the events that the session
    recorded. A table without rows is left out. If both tables are left out, a sentence says that nothing was changed.
    """
    if document.changes:
        fates = Counter(FATES[change.fate] for change in document.changes)
        told = ", ".join(f"{count:,} {fate}" for fate, count in fates.items())
        caption = f"{many(len(document.changes), 'write')} of this session, oldest first: {told}"
        heads = ("setting", "path", "before", "after", "read back", "result")
        columns = tuple(Column(head, brief=head not in ("setting", "read back")) for head in heads)
        yield Table("changes", caption, columns, tuple(map(_change, document.changes)), most=LONG)
    elif not document.events:
        yield Paragraph("This session changed no setting of a host.")
    if document.events:
        caption = f"The session's own record: {many(len(document.events), 'line')}"
        heads = ("when", "what", "setting", "path", "before → after", "why")
        yield Table("events", caption, tuple(map(Column, heads)), tuple(map(_event, document.events)), most=0)


def _change(one: ReportedChange) -> Cells:
    fate: list[Inline] = [Span("strong", FATES[one.fate])]
    fate += [" ", time(one.fate_at)] if one.fate_at else []
    told = clean(one.text, SENTENCE).removeprefix(f"{FATES[one.fate]}: ")
    fate += [second_line(told)] if told else []
    back: list[Inline] = [code_span(one.read_back)]
    if one.read_back is not None and one.after is not None and one.read_back != one.after:
        back.append(Span("remark", "differs from the written value"))
    source = f", in chapter {clean(one.chapter, ID)}" if one.chapter else ""
    setting = (clean(one.tunable, LABEL), second_line(time(one.at), source))
    return (setting, code_span(one.path, PATH), code_span(one.before), code_span(one.after), tuple(back), tuple(fate))


def _event(one: HostEvent) -> Cells:
    what = "applied" if one.did == "applied" else FATES[one.did]
    what += ", kept until restore" if one.kept else ""
    change = (code_span(one.before), " → ", code_span(one.after))
    cells = (time(one.at, seconds=True), what, clean(one.tunable, LABEL), code_span(one.path, PATH), change)
    return (*cells, clean(one.reason, SENTENCE))


def _status(document: ReportDocument) -> Iterator[ReportBlock]:
    """Yield blocks that compare two states of the host's checks. One is the state at the session's beginning, the
    other is the newest known state. Checks that differ come first. If only one of the two states is known, checks that
    could be better come first.
    """
    before, after = document.before, document.after
    for key, snapshot in (("before", before), ("after", after)):
        if why := clean(document.notes.get(key, ""), SENTENCE):
            yield Paragraph(f"Status {key}: {why}.", "unknown")
        if snapshot is not None:
            counts = Counter(check.state for check in snapshot.checks)
            told = ", ".join(f"{counts[state]:,} {word}" for state, (_, word, _) in MARKS.items() if counts[state])
            yield Paragraph((f"{key.capitalize()}, ", time(snapshot.at), f": {told}."), "dim")
    if before is None or after is None:
        only = before or after
        if only is not None:
            head = _moment("after" if before is None else "before", only)
            better = [one for one in only.checks if one.state == "improve"]
            others = [one for one in only.checks if one.state != "improve"]
            if better:
                yield _checks("Checks that could be better", head, better)
            if others:
                yield _checks(many(len(others), "other check"), head, others, most=0)
        return
    if before.boot_id != after.boot_id:
        yield Paragraph("The host was rebooted between 'before' and 'after'.", "dim")
    was, now = ({check.id: check for check in one.checks} for one in (before, after))
    differ = [ident for ident in dict.fromkeys((*now, *was)) if _standing(was.get(ident)) != _standing(now.get(ident))]
    same = [check for check in now.values() if check.id not in differ]
    yield Paragraph("One check differs." if len(differ) == 1 else f"{many(len(differ), 'check').capitalize()} differ.")
    if differ:
        rows = tuple((_check(now.get(one) or was[one]), _state(was.get(one)), _state(now.get(one))) for one in differ)
        columns = (Column("check", brief=True), _moment("before", before), _moment("after", after))
        yield Table("status", "Checks that differ between 'before' and 'after'", columns, rows)
    if same:
        caption = f"{many(len(same), 'check')} with the same state before and after"
        yield _checks(caption, _moment("status", after), same, most=0)


def _checks(caption: str, head: Column, checks: Iterable[CheckState], most: int | None = None) -> Table:
    rows = tuple((_check(one), _state(one)) for one in checks)
    return Table("status", caption, (Column("check", brief=True), head), rows, most)


def _standing(check: CheckState | None) -> tuple[str, str | None] | None:
    return None if check is None else (check.state, check.value)


def _moment(head: str, snapshot: Snapshot) -> Column:
    hot = f", hot {CpuSet(snapshot.hot_cpus)}" if snapshot.hot_cpus else ""
    return Column((head, second_line(time(snapshot.at), hot)), brief=True)


def _check(one: CheckState) -> Inline:
    return (clean(one.title), second_line(code_span(one.id, ID)))


def _state(check: CheckState | None) -> Inline:
    if check is None:
        return "not looked at"
    mark, word, _ = MARKS[check.state]
    found: list[Inline] = [Span("badge", f"{mark} {word}", f"state-{check.state}")]
    found += [" ", code_span(check.value)] if check.value is not None else []
    found += [" → ", code_span(check.wanted)] if check.state == "improve" and check.wanted is not None else []
    found += [second_line(clean(check.reason, SENTENCE))] if check.reason else []
    return tuple(found)


def _still_open(document: ReportDocument) -> Iterator[ReportBlock]:
    """Yield the blocks that say what the reader can still do. Points about the host come first."""
    if not document.still_open:
        yield Paragraph("This report shows nothing that is still to be done.")
    for kind, word in KINDS.items():
        points = [point for point in document.still_open if point.kind == kind]
        if points:
            items = tuple((Span("strong", name_span(p.title)), f": {clean(p.text, PARAGRAPH)}") for p in points)
            yield Subsection(f"{capital(word)}: {len(points):,}", (Bullets(items, most=LONG),))


def _host(host: HostSummary) -> Subsection:
    rows = []
    for field in fields(host):
        if field.name in _FACTS:
            value, why = _fact(field.name, getattr(host, field.name)), clean(host.notes.get(field.name, ""), SENTENCE)
            rows.append((_FACTS[field.name], (code_span(value, PATH), *((second_line(why),) if why else ()))))
    columns = (Column("", brief=True), Column("value", brief=True))
    table = Table("host", f"Host {clean(host.name)}", columns, tuple(rows))
    recorded = (Span("origin", "recorded: nothing was measured on this host"),) if host.recorded else ()
    return Subsection((name_span(host.name), *recorded), (table,))


def _fact(field: str, value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, tuple):
        return (str(CpuSet(value)) if field in _CPU_LISTS else ", ".join(map(str, value))) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


# -- runs --------------------------------------------------------------------------------------------------------------


def _runs(document: ReportDocument) -> Iterator[ReportBlock]:
    runs = document.runs
    if runs:
        known = [p for p in PERCENTILES if any(_percentiles(run).get(p) is not None for run in runs)]
        columns = (
            Column("run", brief=True),
            Column("measured", prose=True),
            *(Column(f"p{p}", number=True, brief=p in ("50", "99.9")) for p in known),
            Column("max", number=True, brief=True),
            Column(f"stalls over {nice_ns(HEADLINE_STALL_NS)}", number=True, brief=True),
            Column("time in stalls", number=True),
        )
        due = any(one.with_waits is not None for one in runs)
        rows = tuple(_run(run, known, beside_due=due) for run in runs)
        about = f"{many(len(runs), 'run')}, oldest first. {FEW}{f' {LATENCY_EXPLAINED}' if due else ''}"
        yield Table("runs", about, columns, rows, anchor="run", latest=True)
    else:
        yield Paragraph("Nothing was measured.")
    if document.imports:
        items = tuple(clean(line, PATH) for line in document.imports)
        yield Subsection("From other tools, never part of a verdict", (Bullets(items),))
    yield from _notes(document, "imports")


def _latencies(run: ReportedRun) -> HistogramSummary | None:
    """Return the latencies of a run's result."""
    return run.with_waits.histogram if run.with_waits is not None else run.histogram


def _percentiles(run: ReportedRun) -> Mapping[str, int | None]:
    found = _latencies(run)
    return found.percentiles if found is not None else {}


def _run(run: ReportedRun, known: Sequence[str], *, beside_due: bool) -> Cells:
    """Return the row of a run. ``beside_due``: True if latencies of the table count from when a message was due; a run
    of the ring with transit alone is then named so."""
    found = run.with_waits.standings if run.with_waits is not None else run.standings
    marks = of_standings(found, run.stalls.threshold_ns)
    behind, longest = {one.percentile: one for one in found}, _latencies(run)
    rate = next((r for r in run.stalls.rates if r.threshold_ns == HEADLINE_STALL_NS), None)
    role = f" · {clean(run.role, LINE)}" if run.role else ""
    remarks = clean("; ".join(_remarks(run)), MESSAGE)
    transit = beside_due and run.workload == "ring" and run.with_waits is None
    clock = (Span("origin", TRANSIT),) if transit else ()
    head = (name_span(run.label or run.id, LABEL), *clock, second_line(code_span(run.id, ID), role))
    preset = f", {clean(run.preset, WORD)}" if run.preset else ""
    how = f"{clean(run.workload, WORD)}{preset}, placement {clean(run.placement, WORD)}"
    moment = second_line(time(run.started_at, seconds=True), f", {nice_ns(run.duration_s * 1e9)}")
    values = (
        _few(_percentiles(run).get(p), marks.get(p, ""), _support(behind.get(p), marks.get(p, ""))) for p in known
    )
    return (
        (*head, Span("remark", remarks)) if remarks else head,
        (how, moment),
        *values,
        nice_ns(longest.max if longest is not None else None),
        UNKNOWN if rate is None else f"{nice_number(rate.per_second)}/s",
        f"{nice_ns(run.stalls.stolen_ns_per_second)}/s",
    )


def _support(standing: Standing | None, mark: str) -> str:
    if standing is None:
        return ""
    if mark == FEW_STALLS:
        return f"{many(standing.stalls_beyond, 'distinct stall')} beyond it"
    return f"{standing.samples_beyond:.3g} samples beyond it"


def _remarks(run: ReportedRun) -> Iterator[str]:
    """Yield remarks that prevent a wrong reading of a run's figures. For example, the run was stopped early, or other
    tasks disturbed the run."""
    if not run.complete:
        yield "stopped early"
    if run.applied:
        yield f"applied: {', '.join(clean(one, LABEL) for one in run.applied[:_MOST_APPLIED])}"
    if run.disturbed:
        who = (f"{load_called(d, ID)} on CPU {d.cpu}" for d in run.disturbed[:MOST_ENTRIES])
        yield f"disturbed by {', '.join(who)}"
    yield from (clean(note, SENTENCE) for note in run.notes if note)
