"""Describe the result of an apply or a restore as text."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.change import Applied, ApplyResult, LeftAlone, Refused, RestoreResult
from jitter_workshop.model.text import clean, fell_away, tally
from jitter_workshop.report.text.terminal import Style, wrap
from jitter_workshop.tuning.journal import Entry

_VALUE = 120
_REBOOT = "A part of it takes effect with the next boot."


def applied(result: ApplyResult, differently: Sequence[Applied], style: Style, held: bool = False) -> str:
    """Return the result of an apply, ending with a line break."""
    count = len(result.applied)
    made = tally(one.tunable for one in result.applied)
    lines = [style.paint(f"Applied: {made}.", "good" if count else "strong")]
    lines += [fell_away(result.ended)] if result.ended else []
    if differently:
        lines += ["", style.paint("SAYS SOMETHING ELSE THAN WAS WRITTEN", "attention")]
        for one in differently:
            said = f"{one.path}: {_shown(one.after)} was written, read back is {_shown(one.read_back)}"
            lines += _item(said, style)
    lines += _refused(result.refused, style)
    if result.needs_reboot:
        lines += ["", _REBOOT]
    if count:
        back = "It is given back at the end." if held else "'jitter-workshop restore' gives it back."
        lines += ["", back]
    return "\n".join(lines) + "\n"


def restored(result: RestoreResult, style: Style) -> str:
    """Return the result of a restore, ending with a line break."""
    removed = result.trace_instances_removed
    if not result.restored and not result.left_alone and not removed and not result.needs_reboot:
        return "Nothing to give back: no setting of this host is changed by this tool.\n"
    lines = []
    if result.needs_reboot and not result.restored and not result.left_alone:
        lines += ["Everything had been given back already."]
    elif result.restored or not removed:
        lines += [style.paint(f"Given back: {tally(one.tunable for one in result.restored)}.", "good")]
    for one in result.restored:
        lines += _item(f"{one.path}: {_shown(one.from_)} → {_shown(one.to)}", style)
    if removed:
        lines += [style.paint(f"Removed: {_left_over(removed)}.", "good"), *_names(removed, style)]
    if result.left_alone:
        lines += ["", style.paint("LEFT ALONE", "attention")]
        for left in result.left_alone:
            lines += _item(_left(left), style)
    if result.needs_reboot:
        lines += ["", _REBOOT]
    return "\n".join(lines) + "\n"


def standing(entries: Sequence[Entry], problems: Sequence[str], traces: Sequence[str], style: Style) -> str:
    """Return what ``restore`` would give back, ending with a line break. ``traces``: names of left-over instances."""
    if not entries and not problems and not traces:
        return "No setting of this host is changed by this tool.\n"
    lines = []
    if entries or problems:
        lines += [style.paint(f"Applied now: {tally(entry.tunable for entry in entries)}.", "strong")]
    tunable = ""
    for entry in entries:
        if entry.tunable != tunable:
            tunable = entry.tunable
            lines += ["", style.paint(clean(tunable, 40), "strong")]
        sure = "" if entry.state == "written" else "  (begun; it may not have happened)"
        sure = f"  (to be given back: {entry.owed})" if entry.owed else sure
        lines += _item(f"{entry.path}: {_shown(entry.before)} → {_shown(entry.after)}{sure}", style)
    if problems:
        lines += ["", style.paint("DAMAGED", "attention")]
        for problem in problems:
            lines += _item(problem, style)
    if traces:
        lines += [""] if lines else []
        lines += [style.paint(f"'restore' removes {_left_over(traces)}.", "strong"), *_names(traces, style)]
    return "\n".join(lines) + "\n"


def _refused(refused: Sequence[Refused], style: Style) -> list[str]:
    if not refused:
        return []
    lines = ["", style.paint("NOT APPLIED", "attention")]
    for one in refused:
        where = f" {one.path}" if one.path else ""
        lines += _item(f"{one.tunable}{where}: {one.reason}", style)
    return lines


def _left_over(names: Sequence[str]) -> str:
    count = len(names)
    return f"{count:,} instance{'' if count == 1 else 's'} of the kernel's trace that a killed measurement left over"


def _names(names: Sequence[str], style: Style) -> list[str]:
    return [line for name in names for line in _item(name, style)]


def _left(left: LeftAlone) -> str:
    found = f" (it says {_shown(left.found)})" if left.found is not None else ""
    return f"{left.tunable} {left.path}: {left.reason}{found}"


def _item(text: str, style: Style) -> list[str]:
    body = wrap(clean(text, 1200), style.width - 4)
    return ["  " + body[0], *("    " + line for line in body[1:])] if body else []


def _shown(value: str | None) -> str:
    return clean(value or "", _VALUE) or "(empty)"
