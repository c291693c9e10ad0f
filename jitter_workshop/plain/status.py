"""Show a host's status line by line: what can be better, and the number of the chapter that treats it."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.flow.host_ops.host_status import Finding, Findings
from jitter_workshop.model.text import clean
from jitter_workshop.model.walk import PathEntry
from jitter_workshop.plain.views import wrap
from jitter_workshop.report.text.status import value_in_words

_WORDS = {"improve": "can be better", "ok": "ok", "info": "to know", "unavailable": "not here"}


def status_lines(found: Findings, path: Sequence[PathEntry], width: int) -> list[str]:
    """Return the hot CPUs, the number of checks in each state, and each check that can be better or has drifted. No
    line is wider than ``width`` columns (20 at least)."""
    numbers = {entry.chapter_id: entry.number for entry in path}
    lines = wrap("A recorded host, not this machine.", width) if found.recorded else []
    one = "CPU" if found.hot.isdigit() else "CPUs"
    lines += wrap(f"Hot {one} {found.hot}: {clean(found.why_hot, 400)}.", width)
    if found.note:
        lines += wrap(f"! {clean(found.note, 300)}.", width, "", "  ")
    counts = ", ".join(f"{found.summary[state]} {word}" for state, word in _WORDS.items())
    lines += wrap(f"Checks: {counts}.", width)
    for finding in found.checks:
        if finding.check.state == "improve" or finding.check.drifted is not None:
            lines += _finding(finding, numbers.get(finding.chapter_id), width)
    return [*lines, "", *wrap("'jitter-workshop status' shows every check, status --explain ID all about one.", width)]


def _finding(finding: Finding, number: int | None, width: int) -> list[str]:
    check = finding.check
    drifted = " (drifted)" if check.drifted is not None else ""
    told = clean(value_in_words(check), 200)
    lines = ["", *wrap(f"{clean(check.id, 40)}{drifted} · {clean(check.title, 80)}: {told}", width, "  ", "    ")]
    lines += wrap(clean(check.reason, 300), width, "    ")
    if number is not None:
        lines += wrap(f"chapter {number}: {clean(finding.chapter, 60)}", width, "    ")
    return lines
