"""``status`` as text: one line for each check, what to do below what is not as it should be, and a sum at the end."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.assessment import Assessment, State
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import clean
from jitter_workshop.report.terminal import Style, wrap

MARKS: dict[State, tuple[str, str, str]] = {
    "ok": ("✓", "ok", "good"),
    "improve": ("▲", "improve", "attention"),
    "unavailable": ("–", "not here", "dim"),
    "info": ("·", "info", "known"),
}
"""State → mark, word, colour: the word stands beside the mark, so that neither is needed alone."""

_STATE = 14
_ID = 19
_INDENT = _STATE + _ID
_WIDE = 120
"""From this width on, the reason stands beside the value and not below it."""

_TITLE = 30


@dataclass(frozen=True, slots=True)
class Page:
    """What stands above the checks. ``host``: name, kernel and the host in a line. ``hot``, ``housekeeping``: CPU
    lists. ``note``: what is wrong with the choice of hot CPUs, "" for nothing."""

    host: str
    recorded: bool
    guest: bool
    hot: str
    housekeeping: str
    why_hot: str
    note: str = ""


def render(page: Page, groups: Sequence[tuple[str, Sequence[Assessment]]], style: Style) -> str:
    """The whole table, ending with a line break. ``groups``: (heading, its checks)."""
    lines = _head(page, style)
    for heading, checks in groups:
        lines += ["", style.paint(heading.upper(), "strong")]
        for check in checks:
            lines += _check(check, style)
    everything = [check for _, checks in groups for check in checks]
    lines += ["", *_foot(page, everything, style)]
    return "\n".join(lines) + "\n"


def _head(page: Page, style: Style) -> list[str]:
    first = wrap(clean(page.host, 400), style.width)
    lines = [style.paint(first[0], "strong"), *first[1:]] if first else []
    if page.recorded:
        lines.append(style.paint("A recorded host, not this machine.", "attention"))
    housekeeping = f"housekeeping {page.housekeeping}" if page.housekeeping else "no housekeeping CPU"
    lines += wrap(f"Hot CPUs {page.hot}, {housekeeping}: {clean(page.why_hot, 400)}", style.width)
    if page.note:
        lines += [style.paint(line, "attention") for line in wrap(f"▲ {clean(page.note, 300)}", style.width)]
    return lines


def _check(check: Assessment, style: Style) -> list[str]:
    mark, word, colour = MARKS[check.state]
    wide = style.width >= _WIDE
    start = f"  {mark} {word}".ljust(_STATE)
    name = clean(check.id, 40).ljust(_ID - 1) + " "
    room = style.width - _INDENT
    title = clean(check.title, 60)
    said = _value(check)
    if check.state == "ok" and not said:
        said = clean(check.reason, 200)
    if check.value is None and check.state != "ok":
        said = clean(check.reason, 300)
    first = f"{title.ljust(_TITLE)}  {said}" if wide else f"{title}: {said}" if said else title
    body = wrap_keeping(first, room, _TITLE + 2 if wide else 2)
    painted = style.paint(start, colour) + name + body[0]
    lines = [painted, *(" " * _INDENT + line for line in body[1:])]
    if check.state == "unavailable":
        lines = [style.paint(line, "dim") for line in _bare(start + name, body)]
    return lines + [" " * _INDENT + line for line in _below(check, style, room)]


def _bare(start: str, body: list[str]) -> list[str]:
    return [start + body[0], *(" " * _INDENT + line for line in body[1:])]


def wrap_keeping(text: str, width: int, indent: int) -> list[str]:
    """``text`` wrapped with every line but the first indented; runs of blanks in the first line stay as they are."""
    if len(text) <= width:
        return [text]
    cut = text.rfind(" ", 0, width + 1)
    if cut <= indent:
        cut = width
    return [text[:cut].rstrip(), *(" " * indent + line for line in wrap(text[cut:], width - indent))]


def _value(check: Assessment) -> str:
    """``powersave → performance``; the value alone where nothing else is wanted."""
    value = clean(check.value, 160) if check.value is not None else ""
    if check.state == "improve" and check.wanted is not None and check.wanted != check.value:
        return f"{value or 'not known'} → {clean(check.wanted, 160)}"
    return value


def _below(check: Assessment, style: Style, room: int) -> list[str]:
    """Why, and what to do: below what can be better; below information only where there is more to say."""
    lines: list[str] = []
    indent = " " * (_TITLE + 2) if style.width >= _WIDE else "  "
    inside = room - len(indent)
    reason = clean(check.reason, 400)
    if reason and check.value is not None and check.state in ("improve", "info"):
        lines += [indent + style.paint(line, "dim") for line in wrap(reason, inside)]
    if check.state == "improve":
        what = check.fix or ("only the hypervisor's owner can" if check.only_host else "")
        if what:
            lines += [indent + style.paint(line, "attention") for line in wrap(f"do: {clean(what, 400)}", inside)]
    elif check.fix and check.state != "ok":
        lines += [indent + line for line in wrap(f"do: {clean(check.fix, 400)}", inside)]
    return lines


def _foot(page: Page, checks: Sequence[Assessment], style: Style) -> list[str]:
    count = {state: sum(1 for c in checks if c.state == state) for state in MARKS}
    parts = [
        style.paint(f"{count['ok']} ok", "good"),
        style.paint(f"{count['improve']} to improve", "attention" if count["improve"] else "dim"),
        f"{count['unavailable']} not here",
        f"{count['info']} to know",
    ]
    lines = [" · ".join(parts)]
    drifted = [clean(c.id, 40) for c in checks if c.drifted is not None]
    if drifted:
        lines += wrap(f"Drifted (set by this tool, changed by somebody since): {', '.join(drifted)}.", style.width)
    runtime = [c for c in checks if c.state == "improve" and c.when == "runtime" and " apply " in f" {c.fix} "]
    boot = [c for c in checks if c.state == "improve" and c.when == "boot"]
    if runtime and not page.recorded:
        lines += wrap(
            f"'jitter-workshop plan' shows every write that would improve the {_things(len(runtime))} that can be "
            "changed now; 'restore' gives everything back.",
            style.width,
        )
    if boot:
        lines += wrap(f"Boot parameters, which need a reboot: {', '.join(clean(c.id, 40) for c in boot)}.", style.width)
    owner = [clean(c.id, 40) for c in checks if c.only_host]
    if page.guest and owner:
        lines += ["", *wrap(f"Only the hypervisor's owner can answer or change: {', '.join(owner)}.", style.width)]
    if count["improve"]:
        first = next(clean(c.id, 40) for c in checks if c.state == "improve")
        lines += wrap(f"More about one of them: jitter-workshop status --explain {first}", style.width)
    return lines


def _things(number: int) -> str:
    return "one thing" if number == 1 else f"{number} things"
