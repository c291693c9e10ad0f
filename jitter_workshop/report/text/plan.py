"""Show a plan as text: every write with its path, the value before and after, under the reason for it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from jitter_workshop.model.change import Change, Plan
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import clean
from jitter_workshop.report.text.terminal import Style, wrap

_NUMBER = 6
_VALUE = 2_000
"""Characters of a value that are shown; a real value fits in whole."""

_RISK_COLOUR = {"low": "dim", "medium": "attention", "high": "alarm"}
_WHEN = {"boot": "takes effect with the next boot", "run": "lasts as long as the run"}


def render(plan: Plan, style: Style, why_hot: str = "", recorded: bool = False) -> str:
    """Return the whole plan, ending with a line break. ``why_hot``: how the hot CPUs were chosen."""
    lines = _head(plan, style, why_hot, recorded)
    if plan.changes:
        lines += ["", *changes(plan.changes, style)]
    lines += _after(plan, style)
    if plan.skipped:
        lines += ["", style.paint("LEFT OUT", "strong")]
        for skipped in plan.skipped:
            body = wrap(f"{clean(skipped.tunable, 40)}: {clean(skipped.reason, 400)}", style.width - 4)
            lines += ["  " + body[0], *("    " + line for line in body[1:])]
    return "\n".join(lines) + "\n"


def changes(planned: Sequence[Change], style: Style) -> list[str]:
    """Return every write below its tunable, with an empty line between two tunables."""
    lines: list[str] = []
    for _, group in groupby(planned, key=lambda change: change.tunable):
        lines += [*([""] if lines else []), *_tunable(list(group), style)]
    return lines


def reason_of(change: Change) -> str:
    """Return the reason of the tunable that asks for this change."""
    return _words(change)[1]


def _head(plan: Plan, style: Style, why_hot: str, recorded: bool) -> list[str]:
    count = len(plan.changes)
    what = (
        "Nothing would be written." if not count else f"{count} {'write' if count == 1 else 'writes'}, in this order."
    )
    lines = [style.paint(what, "strong")]
    why = f": {clean(why_hot, 300)}" if why_hot else ""
    lines += wrap(f"Hot {'CPU' if len(plan.hot_cpus) == 1 else 'CPUs'} {CpuSet(plan.hot_cpus)}{why}", style.width)
    if recorded:
        lines.append(style.paint("A recorded host, not this machine.", "attention"))
    return lines


def _tunable(changes: Sequence[Change], style: Style) -> list[str]:
    """Return one tunable's writes: its name and risk, the reason, and each write; a write's own reason stands below
    it."""
    first = changes[0]
    title, why, danger = _words(first)
    worst = max((c.risk for c in changes), key=("low", "medium", "high").index)
    risk = f"risk {worst}" + (f": {danger}" if danger else "")
    lines = [f"{style.paint(clean(first.tunable, 40), 'strong')} · {title}"]
    lines += ["  " + style.paint(line, _RISK_COLOUR[worst]) for line in wrap(risk, style.width - 2)]
    lines += ["  " + style.paint(line, "dim") for line in wrap(clean(why, 600), style.width - 2)]
    if first.when in _WHEN:
        alone = " alone" if any(change.kind == "grub-once" for change in changes) else ""
        lines.append(f"  {_WHEN[first.when]}{alone}")
    told = why
    for change in changes:
        lines += _change(change, style)
        if change.why != told:
            told = change.why
            indent = " " * (_NUMBER + 2)
            lines += [indent + style.paint(line, "dim") for line in wrap(clean(told, 400), style.width - len(indent))]
    return lines


def _change(change: Change, style: Style) -> list[str]:
    """Return ``  3  PATH  before → after`` where it fits in one line, else the values below the path."""
    number = f"{change.n:>{_NUMBER - 2}}  "
    path = clean(change.path, 400)
    values = f"{_shown(change.before)} → {_shown(change.after)}"
    if change.lease:
        values += "  (only as long as it is held)"
    room = style.width - _NUMBER
    if len(path) + 2 + len(values) <= room:
        return [f"{number}{path}  {values}"]
    paths = wrap(path, room) or [""]
    lines = [number + paths[0], *(" " * (_NUMBER + 2) + line for line in paths[1:])]
    return lines + [" " * (_NUMBER + 2) + line for line in wrap(values, room - 2)]


def _after(plan: Plan, style: Style) -> list[str]:
    then = list(dict.fromkeys(change.then for change in plan.changes if change.then))
    lines = [f"Then, once: {clean(command, 200)}" for command in then]
    later = [change.when == "boot" for change in plan.changes]
    if any(later):
        lines.append(f"{'All' if all(later) else 'A part'} of it takes effect with the next boot only.")
    return ["", *lines] if lines else []


def _shown(value: str) -> str:
    return clean(value, _VALUE) or "(empty)"


def _words(change: Change) -> tuple[str, str, str]:
    """Return title, reason and danger of the tunable that asks for this change."""
    from jitter_workshop.tuning.tunables.registry import find

    tunable = find(change.tunable)
    return tunable.title, tunable.why, tunable.danger
