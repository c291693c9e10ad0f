"""Return a chapter's views as lines of plain text: no colours, no escapes, as wide as the terminal up to 100
columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from jitter_workshop.flow.chapters.path import in_groups
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.measuring.run_length import reach
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.curve import ComparisonRow
from jitter_workshop.model.fences import split_code
from jitter_workshop.model.run import PERCENTILES, WORK_DONE, Run
from jitter_workshop.model.text import clean
from jitter_workshop.model.walk import (
    STEP_SIGNS,
    CompareView,
    CureView,
    Explanation,
    Fact,
    PathEntry,
    PlanView,
    RunCurve,
    StepView,
)
from jitter_workshop.presenter.curve_rows import UNKNOWN, curve_rows
from jitter_workshop.presenter.trace import trace_lines
from jitter_workshop.stats.scale import nice_ns, nice_number

WIDEST = 100
_BAR = 20
_MOST_CPUS = 8
_LINK = re.compile(r"(`[^`]+`)|\[([^\]]+)\]\([^)]*\)")
"""Match code, which stays as it is, or a link."""
_ITEM = re.compile(r"\s*(?:[-*+]|(?P<number>\d{1,2}[.)]))\s")
"""Match the beginning of a list item."""


def wrap(text: str, width: int, indent: str = "", hanging: str | None = None) -> list[str]:
    """Wrap one paragraph. Words that are longer than a line are broken."""
    return textwrap.wrap(
        clean(text, 4_000),
        max(width, 20),
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_on_hyphens=False,
    )


def prose(markdown: str, width: int) -> list[str]:
    """Return a lesson's page as lines. Emphasis marks are removed, links keep only their words, lists keep their
    hanging indent, and code blocks stay as they are."""
    lines: list[str] = []
    paragraph: list[str] = []

    def flush() -> None:
        if paragraph:
            item = _ITEM.match(paragraph[0])
            mark = "" if item is None else f"  {item['number'] or '-'} "
            words = paragraph[0] if item is None else paragraph[0][item.end() :]
            text = _unmarked(" ".join(part.strip() for part in (words, *paragraph[1:])))
            lines.extend(wrap(text, width, mark, " " * len(mark)))
            paragraph.clear()

    for raw, kind in split_code(markdown.split("\n")):
        if kind == "fence":
            flush()
        elif kind == "code":
            lines.append("    " + clean(raw, width) if raw.strip() else "")
        elif not raw.strip():
            flush()
            lines.append("")
        else:
            if _ITEM.match(raw) or raw.lstrip().startswith("#"):
                flush()
            paragraph.append(raw)
    flush()
    return lines


def _unmarked(text: str) -> str:
    plain = _LINK.sub(lambda m: m[0] if m[1] else m[2], text.lstrip("#").strip())
    return plain.replace("**", "").replace("`", "").replace("*", "")


def table(rows: Sequence[Sequence[str]], right: Iterable[int] = (), gap: int = 2) -> list[str]:
    """Return rows as aligned columns. ``right``: the columns that are aligned at the right."""
    if not rows:
        return []
    rights = set(right)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def cell(text: str, column: int) -> str:
        return text.rjust(widths[column]) if column in rights else text.ljust(widths[column])

    return [(" " * gap).join(cell(text, i) for i, text in enumerate(row)).rstrip() for row in rows]


def mark(value: bool | None) -> str:
    """Return ✓ for True, ✗ for False and · for None, which is still open."""
    return {True: "✓", False: "✗", None: "·"}[value]


_HEADINGS = {
    "here": "PATH FOR THIS HOST",
    "recording": "NOT ON THIS HOST, BUT ON A RECORDING",
    "neither": "NOT ON THIS HOST AS IT IS",
    "left_out": "NOT IN THIS CLASS",
}


def path_lines(path: Sequence[PathEntry], next_id: str | None, width: int) -> list[str]:
    """Return the chapters with their numbers, as on the home screen."""
    wide = max([24, *(len(e.title) for e in path)])
    lines = []
    for group in in_groups(path):
        here = group.state == "here"
        columns = "  setting  curve  guess" if here else ""
        lines.append(f"{_HEADINGS[group.state]:<{wide + 6}}{columns}"[:width].rstrip())
        if group.reason:
            lines += wrap(f"{clean(group.reason, 200)}:", width, "     ")
        for _, e in group.entries:
            sign = "▸" if e.chapter_id == next_id else "●" if e.done else "○"
            title = clean(e.title, wide)
            if here:
                setting = "–" if e.setting is None else "✓" if e.setting else "·"
                curve = "✓" if e.curve else "·"
                state = f"  {setting:^7}  {curve:^5}  {mark(e.guess):^5}"
            else:
                state = "" if group.reason else f"  {clean(e.reason, max(width - wide - 8, 1))}"
            lines.append(f"{e.number:>2} {sign} {title:<{wide + 1}}{state}"[:width].rstrip())
    return lines


def loop_line(chapter: Chapter, steps: Sequence[StepView], width: int) -> list[str]:
    """Return ``Pinning  look✓ predict✓ ▸MEASURE plan …``. ◌ replaces ✓ for a step that was only seen on a recording.
    Steps that the chapter leaves out are not listed."""
    parts = []
    for step in steps:
        if step.state == "now":
            parts.append(f"▸{step.name.upper()}")
        elif step.state != "left_out":
            parts.append(f"{step.name}{STEP_SIGNS.get(step.state, '')}")
    return wrap(f"{chapter.title}:  {'  '.join(parts)}", width, "", "  ")


def fact_lines(facts: Sequence[Fact], width: int) -> list[str]:
    lines = []
    wide = max((len(f.title) for f in facts), default=0)
    for fact in facts:
        lines.extend(wrap(f"{fact.title:<{wide}}".rstrip() + f": {fact.value}", width, "  ", "      "))
        if fact.meaning:
            lines.extend(wrap(fact.meaning, width, "      "))
    return lines


def to_be_measured(request: MeasureRequest, runs: Sequence[Run]) -> str:
    """Describe the run that will be measured, and the percentiles that it will know."""
    noise = f", with {request.noise}" if request.noise else ""
    what = f"To be measured: '{request.label}', {request.workload}, {request.preset}{noise}."
    return f"{what} {reach(request, runs)}".rstrip()


def curve_table(curves: Sequence[RunCurve]) -> list[str]:
    """Return the numbers of the chart: a row per percentile, a column per curve; – where there are too few messages."""
    found = curve_rows(curves)
    rows = [["", *(clean(c.label, 22) + found.beside for c in curves)]]
    if any(c.curve.origin for c in curves):
        rows.append(["", *(clean(c.curve.origin, 22) + found.beside for c in curves)])
    rows += [row for row in found.rows if any(cell.strip() != UNKNOWN for cell in row[1:])]
    return ["  " + line for line in (*table(rows, right=range(1, len(curves) + 1)), *found.legend)]


def plan_lines(plan: PlanView, width: int) -> list[str]:
    lines = []
    if plan.changes:
        rows = [["", "what", "before", "", "after"]]
        rows += [[str(c.n), c.path, c.before, "→", f"CPU {c.after}"] for c in plan.changes]
        lines += [*(f"  {line}"[:width] for line in table(rows)), ""]
        for change in plan.changes:
            lines.extend(wrap(f"{change.n}: {change.why}", width, "  ", "     "))
        lines += ["", *wrap(f"Files of this host that would be written: {plan.host_files or 'none'}", width, "  "), ""]
    return lines + wrap(plan.text, width)


def compare_lines(view: CompareView, label_a: str, width: int) -> list[str]:
    comparison = view.comparison
    lines = wrap(view.headline, width)
    if not comparison.comparable:
        return lines
    rows = [["", clean(label_a, 22), clean(comparison.label, 22), "ratio"]]
    for row in comparison.rows:
        rows.append([_measure(row), _figure(row, row.a), _figure(row, row.b), _ratio(row.ratio)])
    return [*lines, "", *(f"  {line}"[:width] for line in table(rows, right=(1, 2, 3)))]


def cure_lines(view: CureView, width: int) -> list[str]:
    """Return a hunt's three runs side by side, and their result."""
    rows = [["", "quiet", "beside it", "with the cure"]]
    for measure, *values in view.rows:
        shown = [ComparisonRow(measure, value, None, None) for value in values]
        rows.append([_measure(shown[0]), *(_figure(row, row.a) for row in shown)])
    return [*wrap(view.text, width), "", *(f"  {line}"[:width] for line in table(rows, right=(1, 2, 3)))]


def _measure(row: ComparisonRow) -> str:
    name = row.measure
    if name.startswith("stalls_per_second_over_"):
        return f"stalls ≥ {nice_ns(float(name.removeprefix('stalls_per_second_over_').removesuffix('_ns')))}"
    if name == "stolen_ns_per_second":
        return "time stolen"
    return f"p{name}" if name in PERCENTILES else "worst seen" if name == "max" else name


def _figure(row: ComparisonRow, value: float | None) -> str:
    if value is None:
        return "–"
    if row.measure.startswith("stalls_per_second"):
        return f"{nice_number(value)}/s"
    if row.measure == "stolen_ns_per_second":
        return f"{nice_ns(value)}/s"
    return nice_ns(value)


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return "–"
    if ratio >= 100:
        return f"{ratio:,.0f}×"
    return f"{ratio:.3g}×" if ratio >= 0.01 else f"1/{1 / ratio:,.0f}" if ratio > 0 else "0"


def explain_lines(view: Explanation, width: int, before: Explanation | None = None) -> list[str]:
    """Return the evidence of a run. ``before``: the chapter's first run, whose threads are shown above for
    comparison."""
    lines: list[str] = []
    if before is not None:
        lines = [f"The run '{clean(before.run.label, 40)}', before:", "", *_thread_lines(before, width), ""]
    lines += [f"The run '{clean(view.run.label, 40)}':", "", *_thread_lines(view, width)]
    for heading, counters in (("Interrupts", view.interrupts), ("Softirqs", view.softirqs)):
        if counters:
            shown = [[f"  {name}", f"CPU {cpu}", f"{nice_number(rate)}/s"] for name, cpu, _, rate in counters[:6]]
            lines += ["", f"  {heading} on these CPUs while it was measured:"]
            lines += ["  " + line[: width - 2] for line in table(shown, right=(2,))]
    if traced := trace_lines(view.run.blocks, width - 2):
        lines += ["", "  The core, block by block:", *(f"  {line}" for line in traced)]
    if view.foreign:
        lines += ["", *wrap("This run was disturbed: others used these CPUs meanwhile.", width, "  ")]
        for sentence in view.foreign:
            lines += wrap(sentence, width, "  - ", "    ")
    if view.knee:
        lines += ["", "  The knee, in figures of this run:"]
        for sentence in view.knee:
            lines.extend(wrap(sentence, width, "  - ", "    "))
    # A command is never cut, so that it can be copied.
    return [*(line[:width] for line in lines), *([""] if view.by_hand else []), *by_hand_lines(view.by_hand, width)]


def by_hand_lines(by_hand: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Return commands with their reasons. A command is never cut, however wide, so that it can be copied."""
    lines = ["  The same by hand:"] if by_hand else []
    for command, why in by_hand:
        lines += ["", f"    {clean(command, 400)}", *wrap(why, width, "      ")]
    return lines


def _thread_lines(view: Explanation, width: int) -> list[str]:
    rows = [["thread", "voluntary", "involuntary", "migrations"]]
    for t in view.threads:
        counts = (t.voluntary_switches, t.involuntary_switches, t.migrations)
        rows.append([clean(t.name, 20), *("not known" if c is None else f"{c:,}" for c in counts)])
    lines = [f"  {line}"[:width] for line in table(rows, right=(1, 2, 3))]
    lines += ["", f"  {WORK_DONE.get(view.run.workload, WORK_DONE['ring']).capitalize()}:"]
    for t in view.threads:
        for i, (cpu, count, share) in enumerate(t.residence[:_MOST_CPUS]):
            bar = "█" * max(round(share * _BAR), 1)
            name = clean(t.name, 12) if i == 0 else ""
            lines.append(f"  {name:<12} CPU {cpu:<4} {bar:<{_BAR}} {_share(share)}  {count:,}"[:width])
        if len(t.residence) > _MOST_CPUS:
            lines.append(f"  {'':<12} and {len(t.residence) - _MOST_CPUS} CPUs more")
    return lines


def _share(share: float) -> str:
    """Return a share in percent; a small share is never rounded to 0, and a large one never to 100."""
    percent = 100 * share
    if 0 < percent < 0.1:
        return " <0.1 %"
    if 99.9 < percent < 100:
        return ">99.9 %"
    return f"{percent:5.1f} %"
