"""Return the lines of each step of a chapter. All are pure functions of the chapter session's plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.host.summary import steal_words
from jitter_workshop.model.course import Answer, PredictionTask
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import HostSummary
from jitter_workshop.model.observe import Progress
from jitter_workshop.model.run import Block
from jitter_workshop.model.spec import KINDS, PRESETS
from jitter_workshop.model.text import clean
from jitter_workshop.model.walk import CompareView, CureView, Explanation, Fact, PlanView, ThreadEvidence
from jitter_workshop.presenter.lines import bar, table, wrap
from jitter_workshop.presenter.prose import clean_code, styled
from jitter_workshop.presenter.trace import now_told, trace_lines
from jitter_workshop.stats.comparison import amount, measure_name
from jitter_workshop.stats.scale import nice_ns, nice_number, times

Lines = list[Text]


def heading(text: str) -> Text:
    """Return a small title."""
    return Text(text, "bold dim")


def facts(found: Sequence[Fact], width: int, title: str = "ON THIS HOST") -> Lines:
    """Return what was seen on a host: title, value, and the meaning below."""
    lines: Lines = [heading(title)]
    if not found:
        return [*lines, Text("This host shows none of the facts of this step.", "dim")]
    name_width = min(max((len(clean(f.title)) for f in found), default=8), max(width // 3, 10))
    for fact in found:
        value = wrap(Text(clean(fact.value, 200), "bold text"), max(width - name_width - 2, 10))
        for number, part in enumerate(value):
            name = clean(fact.title, name_width) if number == 0 else ""
            lines.append(Text.assemble((f"{name:<{name_width}}  ", "cool"), part))
        if fact.meaning:
            indent = " " * (name_width + 2) if width >= 60 else "  "
            meaning = Text(clean(fact.meaning, 400), "dim")
            lines += wrap(meaning, width, indent)
        if fact.source and width >= 70:
            lines.append(Text(" " * (name_width + 2) + clean(fact.source, 100), "faint"))
    return lines


def host_column(host: HostSummary, width: int) -> Lines:
    """Return the host in a narrow column, for wide terminals."""
    lines: Lines = [heading("THIS HOST")]
    pairs = [
        ("host", clean(host.name, 40)),
        ("kernel", clean(host.kernel, 60)),
        ("CPU", clean(host.cpu_model, 60) if host.cpu_model else "not shown here"),
        ("guest of", clean(host.hypervisor, 30) if host.hypervisor else "no hypervisor seen"),
        ("CPUs", f"{len(host.cpus_allowed)} of {len(host.cpus_online)} ours"),
        ("isolated", str(CpuSet(host.isolated)) or "none"),
        ("nohz_full", str(CpuSet(host.nohz_full)) or "none"),
        ("governor", ", ".join(clean(g, 20) for g in host.governors) or "no cpufreq"),
        ("idle driver", clean(host.cpuidle_driver, 30) if host.cpuidle_driver else "none"),
        ("clock", clean(host.clocksource, 30) if host.clocksource else "not shown"),
        ("steal", steal_words(host.steal_percent) if host.steal_percent is not None else "no steal clock"),
        ("root", "yes" if host.is_root else "no"),
    ]
    for name, value in pairs:
        for number, part in enumerate(wrap(Text(value, "text"), max(width - 13, 8))):
            lines.append(Text.assemble((f"{name if number == 0 else '':<12} ", "dim"), part))
    return lines


def choices(task: PredictionTask, chosen: int, locked: str, width: int) -> Lines:
    """Return the question and its answers, one under the cursor. ``locked``: why it cannot be answered again, or ""."""
    lines = [*wrap(styled(task.question, "bold text"), width), Text()]
    for number, answer in enumerate(task.answers):
        lines += _answer(answer, number, number == chosen, width)
    if locked:
        lines += [Text(), *wrap(Text(locked, "dim"), width)]
    return lines


def _answer(answer: Answer, number: int, under: bool, width: int) -> Lines:
    style = "bold accent" if under else "text"
    first = f"{'▸' if under else ' '} {number + 1}  "
    return wrap(styled(answer.text, style), width, first)


def mark_question(task: PredictionTask, value_ns: int, locked: bool, width: int) -> Lines:
    """Return the question, and the present value of the mark."""
    lines = wrap(styled(task.question, "bold text"), width)
    line = Text("× your mark: ", "dim")
    line.append(f"p{clean(task.percentile or '99.9', 8)} = {nice_ns(value_ns)}", "bold accent")
    line.append("   measured already" if locked else "   ↑ ↓ move, ← → tenfold", "dim")
    return [*lines, line]


def about_to_measure(request: MeasureRequest, on_battery: bool, width: int, reach: str = "") -> Lines:
    """Describe a run before it is started. ``reach``: the percentiles it will know (``flow.measuring.run_length``)."""
    preset = PRESETS.get(request.preset)
    length = f"{preset.blocks} blocks of {preset.block_ns / 1e9:g} s" if preset else clean(request.preset)
    cpus = (
        ("producer", request.producer_cpu),
        ("accumulator", request.accumulator_cpu),
        ("journaller", request.journaller_cpu),
        ("sampler", request.cpu),
    )
    where = ", ".join(f"{name} on CPU {cpu}" for name, cpu in cpus if cpu is not None)
    if not where:
        where = (
            "wherever the scheduler puts the threads" if request.placement == "none" else "CPUs that the workshop picks"
        )
    thief = "a hidden one" if request.hunted else f"{clean(request.noise, 20)} awake" if request.noise else "none woken"
    rows = [
        ("run", f"{clean(request.label, 40)} ({request.workload})"),
        ("length", f"{length} ({clean(request.preset, 20)})"),
        ("threads", where),
        ("thief", thief),
        *((("reach", reach),) if reach else ()),
    ]
    lines: Lines = [heading("THIS RUN")]
    for name, value in rows:
        lines += [
            Text.assemble((f"{name if n == 0 else '':<9}", "dim"), part)
            for n, part in enumerate(wrap(Text(value, "text"), max(width - 9, 8)))
        ]
    if on_battery:
        lines.append(Text())
        warning = "On battery: the clock rate may be held down, and the curve with it. Plug in for a fair one."
        lines += wrap(Text(warning, "bold accent"), width, "! ")
    return lines


def progress(now: Progress | None, waiting: str, stopping: bool, width: int) -> Lines:
    """Return a bar, the time left, and the block just measured. While the run waits for its turn, return the reason."""
    if stopping:
        return [Text("Stopping…", "accent")]
    if waiting:
        return wrap(Text(f"{clean(waiting, 300)} Esc stops waiting.", "text"), width)
    if now is None:
        return [Text("Calibrating the clock on the chosen CPUs…", "dim")]
    count = f"  block {now.done} of {now.total}"
    left = f" · {max(now.seconds_left, 0):.0f} s left" if now.done < now.total else " · done"
    room = max(width - max(len(count) + len(left), 32), 10)
    drawn = bar(now.done, max(now.total, 1), room)
    line = Text(drawn, "accent")
    line.append("─" * max(room - len(drawn), 0), "faint")
    line.append(count, "text")
    line.append(left, "dim")
    told = [line, Text(_block_told(now.block, width), "dim")]
    if now.block.temperature_celsius is not None:
        told.append(Text(now_told(now.block)[:width], "dim"))
    return told


def _block_told(block: Block, width: int) -> str:
    """Return the block just measured in one line. Where not all fits, p99, p50 and p99.9 are left out, in this
    order."""
    times = {"p50": block.p50, "p99": block.p99, "p99.9": block.p999, "worst": block.max}
    parts = {name: f"{name} {nice_ns(value)}" for name, value in times.items()}
    # Each part is as wide as the longest time, so that the same figures are shown for every block.
    widths = {name: max(len(part), len(name) + len(" 99.9 µs")) for name, part in parts.items()}
    stalls = f"{block.stalls:,} stalls"
    lead = "this block  " if width >= 100 else ""
    for name in ("p99", "p50", "p99.9"):
        if len(lead) + sum(widths[n] + 3 for n in parts) + max(len(stalls), len("9,999 stalls")) > width:
            del parts[name]
    return lead + " · ".join([*parts.values(), stalls])


def plan(view: PlanView, width: int) -> Lines:
    """Return exactly the changes that would be written: path, before → after, and why."""
    lines: Lines = [heading("WHAT WOULD CHANGE")]
    if not view.changes:
        lines.append(Text("Nothing.", "text"))
    rows = [["#", "what", "before", "", "after", "for"]]
    rows += [
        [str(c.n), clean(c.path, 60), clean(c.before, 24), "→", f"CPU {clean(c.after, 24)}", clean(c.when, 12)]
        for c in view.changes
    ]
    if view.changes:
        lines += table(rows, width=width)
        for reason in dict.fromkeys(clean(c.why, 300) for c in view.changes if c.why):
            lines += wrap(Text(reason, "dim"), width, "   ")
    lines.append(Text())
    files = "none" if not view.host_files else str(view.host_files)
    lines += wrap(styled(view.text), width)
    lines.append(Text(f"Files of this host that would be written: {files}.", "text"))
    return lines


def comparison(view: CompareView, width: int) -> Lines:
    """Return the rows of a comparison: first, second, and their ratio."""
    compared = view.comparison
    lines: Lines = []
    if not compared.comparable:
        reason = "Not comparable: " + "; ".join(clean(d, 120) for d in compared.differences)
        lines += wrap(Text(reason, "bold bad"), width, "! ")
    rows = [["", "first", "second", "second ÷ first"]]
    for row in compared.rows:
        rows.append([_measure(row.measure), amount(row.measure, row.a), amount(row.measure, row.b), times(row.ratio)])
    lines += table(rows, right=(1, 2, 3), width=width) if compared.rows else []
    if compared.text and compared.text != view.headline:
        lines += [Text(), *wrap(styled(compared.text), width)]
    return lines


def cured(view: CureView, width: int) -> Lines:
    """Return a hunt's three runs side by side. Their result is shown above the keys, not here."""
    rows = [["", "quiet", "beside the noise", "with the cure"]]
    rows += [[_measure(measure), *(amount(measure, value) for value in values)] for measure, *values in view.rows]
    return table(rows, right=(1, 2, 3), width=width)


def explanation(
    view: Explanation,
    runs: Sequence[Explanation],
    learnt: Sequence[str],
    width: int,
    copied: str = "",
) -> Lines:
    """Return a run's evidence: threads and their CPUs, interrupts, the knee, and the same by hand. ``runs``: the runs
    whose threads are shown, in the chapter's order. All else is of ``view``."""
    several = len(runs) > 1
    titles = [f"{when}: {clean(v.run.label, 40)}" for v, when in zip(runs, ("first", "second", "third"), strict=False)]
    lines: Lines = [heading("SWITCHES OF THE THREADS")]
    rows = [["", "voluntary", "involuntary", "migrations"]]
    for shown, title in zip(runs, titles, strict=True):
        rows += [[title, "", "", ""]] if several else []
        rows += [
            [clean(t.name, 20), *(_count(n) for n in (t.voluntary_switches, t.involuntary_switches, t.migrations))]
            for t in shown.threads
        ]
    lines += table(rows, right=(1, 2, 3), width=width)
    lines += [Text(), heading(KINDS.get(view.run.workload, KINDS["ring"]).done.upper())]
    # All bars share one scale.
    digits = max((len(f"{n:,}") for v in runs for t in v.threads for _, n, _ in t.residence), default=1)
    for shown, title in zip(runs, titles, strict=True):
        lines += [Text(title, "text")] if several else []
        for thread in shown.threads:
            lines += residence(thread, digits, width)
    if several:
        which = titles[list(runs).index(view)]
        lines += [Text(), *wrap(Text(f"All below is about the newest run ({which}).", "dim"), width)]
    for title, rates in (("INTERRUPTS ON THEIR CPUs", view.interrupts), ("SOFTIRQS ON THEIR CPUs", view.softirqs)):
        if rates:
            lines += [Text(), heading(title)]
            lines += table(
                [
                    ["", "CPU", "count", "per second"],
                    *([clean(n, 34), str(cpu), f"{count:,}", nice_number(rate)] for n, cpu, count, rate in rates[:8]),
                ],
                right=(1, 2, 3),
                width=width,
            )
    traced = trace_lines(view.run.blocks, width)
    if traced:
        lines += [Text(), heading("THE CORE, BLOCK BY BLOCK"), *(Text(t, "text") for t in traced)]
    if view.knee:
        lines += [Text(), heading("READ THE KNEE")]
        for sentence in view.knee:
            lines += wrap(styled(sentence), width, " • ")
    if view.foreign:
        lines += [Text(), heading("OTHERS ON THESE CPUs")]
        for sentence in view.foreign:
            lines += wrap(Text(clean(sentence, 200), "text"), width, " • ")
    return [*lines, *closing(view.by_hand, learnt, width, copied)]


def closing(by_hand: Sequence[tuple[str, str]], learnt: Sequence[str], width: int, copied: str = "") -> Lines:
    """Return the end of every chapter: the same by hand, and what to take along. ``copied``: the key that copies it."""
    lines: Lines = []
    if by_hand:
        lines += [Text(), heading(f"THE SAME BY HAND   {copied}".rstrip())]
        for command, why in by_hand:
            lines += _command(command, width)
            lines += wrap(Text(clean(why, 300), "dim"), width, "    ")
    if learnt:
        lines += [Text(), heading("WHAT YOU LEARNT")]
        for sentence in learnt:
            lines += wrap(styled(sentence), width, " ✓ ")
    return lines


def _command(command: str, width: int) -> Iterable[Text]:
    """Yield a command as it can be typed: broken lines end with a backslash. A word that is longer than a line goes on
    at the margin of the next line, so that no blank comes into it."""
    room = max(width - 6, 10)
    line, lead = "", "$ "
    for word in clean_code(command).split(" "):
        if line and len(line) + 1 + len(word) > room:
            yield Text.assemble((lead, "dim"), (f"{line} \\", "code"))
            line, lead = word, "    "
        else:
            line = f"{line} {word}" if line else word
        while len(line) > room:
            yield Text.assemble((lead, "dim"), (f"{line[:room]}\\", "code"))
            line, lead = line[room:], ""
    yield Text.assemble((lead, "dim"), (line, "code"))


def residence(thread: ThreadEvidence, digits: int, width: int) -> Lines:
    """Return a bar for each CPU on which a thread did its work. ``digits``: the width of its counts."""
    name = clean(thread.name, 12)
    if not thread.residence:
        return [Text.assemble((f"{name:<12} ", "cool"), ("not known here", "dim"))]
    lines: Lines = []
    most = thread.residence[:8]
    room = max(min(width - 31 - digits, 40), 4)
    for number, (cpu, count, share) in enumerate(most):
        line = Text(f"{name if number == 0 else '':<12} ", "cool")
        line.append(f"CPU {cpu:<4}", "text")
        drawn = bar(share, 1.0, room)
        line.append(drawn, "accent")
        line.append("·" * (room - len(drawn)), "faint")
        line.append(f" {_share(share)}  {count:>{digits},}", "dim")
        lines.append(line)
    if len(thread.residence) > len(most):
        lines.append(Text(f"{'':<12} and {len(thread.residence) - len(most)} more CPUs", "dim"))
    return lines


def _measure(measure: str) -> str:
    """Name a measure; a percentile with its p."""
    return f"p{measure}" if measure[:1].isdigit() else clean(measure_name(measure), 30)


def _share(share: float) -> str:
    """Return a share in percent that rounds neither a few to none nor nearly all to all."""
    percent = 100 * share
    if 0 < percent < 0.1:
        return " <0.1 %"
    if 99.9 < percent < 100:
        return ">99.9 %"
    return f"{percent:5.1f} %"


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"
