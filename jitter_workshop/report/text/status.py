"""Show ``status`` as text: one line per check, the advice below each check that can be better, and a summary at the
end."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.assessment import Assessment, State
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import clean
from jitter_workshop.report.text.terminal import Style, wrap

MARKS: dict[State, tuple[str, str, str]] = {
    "ok": ("✓", "ok", "good"),
    "improve": ("▲", "improve", "attention"),
    "unavailable": ("–", "not here", "dim"),
    "info": ("·", "info", "known"),
}
"""State → mark, word, colour. The word stands beside the mark, so that either is enough alone."""

_STATE = 14
_ID = 19
_INDENT = _STATE + _ID
_WIDE = 130
"""From this width on, the reason stands beside the value and not below it."""

_TITLE = 40
_SENTENCES = 1_000
"""Characters of a reason or an advice that are shown."""


@dataclass(frozen=True, slots=True)
class Page:
    """Hold the lines above the checks. ``host``: name, kernel and the host in a line. ``hot``, ``housekeeping``,
    ``siblings`` (of hot CPUs, with work kept off them): CPU lists. ``note``: a problem with the choice of hot CPUs, ""
    for none."""

    host: str
    recorded: bool
    guest: bool
    hot: str
    housekeeping: str
    why_hot: str
    note: str = ""
    siblings: str = ""


def render(page: Page, groups: Sequence[tuple[str, Sequence[Assessment]]], style: Style, *, brief: bool = True) -> str:
    """Return the whole table, ending with a line break. ``groups``: (heading, its checks). ``brief``: a check that asks
    for no action has at most two lines; the others are complete."""
    lines = _head(page, style)
    for heading, checks in groups:
        lines += ["", style.paint(heading.upper(), "strong")]
        before = ""
        for check in checks:
            lines += _check(check, style, brief, before)
            before = check.reason
    everything = [check for _, checks in groups for check in checks]
    lines += ["", *_foot(page, everything, style)]
    return "\n".join(lines) + "\n"


def _head(page: Page, style: Style) -> list[str]:
    first = wrap(clean(page.host, 400), style.width)
    lines = [style.paint(first[0], "strong"), *first[1:]] if first else []
    if page.recorded:
        lines.append(style.paint("A recorded host, not this machine.", "attention"))
    lines += wrap(
        f"{sorts_of_cpus(page.hot, page.siblings, page.housekeeping)}: {clean(page.why_hot, 400)}", style.width
    )
    if page.note:
        lines += [style.paint(line, "attention") for line in wrap(f"▲ {clean(page.note, 300)}", style.width)]
    return lines


def sorts_of_cpus(hot: str, siblings: str, housekeeping: str) -> str:
    """Return ``Hot CPUs 2-3, their siblings 6-7, housekeeping 0-1,4-5``; siblings are named where work is kept off
    them."""
    parts = [f"Hot {'CPU' if hot.isdigit() else 'CPUs'} {hot}"]
    if siblings:
        parts.append(f"{'its sibling' if hot.isdigit() and siblings.isdigit() else 'their siblings'} {siblings}")
    parts.append(f"housekeeping {housekeeping}" if housekeeping else "no housekeeping CPU")
    return ", ".join(parts)


def _check(check: Assessment, style: Style, brief: bool, before: str) -> list[str]:
    """Return one check. ``before``: the reason of the line above, which is not repeated."""
    mark, word, colour = MARKS[check.state]
    wide = style.width >= _WIDE
    hanging = _TITLE + 2 if wide else 2
    room = style.width - _INDENT
    start = f"  {mark} {word}".ljust(_STATE)
    name = clean(check.id, 40).ljust(_ID - 1) + " "
    title, said = clean(check.title, 60), value_in_words(check, before if brief else "")
    text = f"{title.ljust(_TITLE)}  {said}" if wide else f"{title}: {said}" if said else title
    body = _hang(text, room, hanging)
    if brief and check.state in ("unavailable", "info"):
        body = _cut(body, 2, room)
    if check.state == "unavailable":
        start, name, body = style.paint(start, "dim"), style.paint(name, "dim"), [style.paint(x, "dim") for x in body]
    else:
        start = style.paint(start, colour)
    indent = " " * _INDENT
    lines = [start + name + body[0], *(indent + line for line in body[1:])]
    return lines + [indent + " " * hanging + line for line in _below(check, style, room - hanging)]


def value_in_words(check: Assessment, before: str = "") -> str:
    """Return the value and a better value. Return the reason where no value is known; a check that only informs has it
    behind its value. ``before``: the reason that was just told and is not repeated."""
    reason = clean(check.reason, _SENTENCES) if not before or check.reason != before else "as above"
    if check.value is None:
        return reason if check.state != "improve" else f"→ {clean(check.wanted, 160)}" if check.wanted else ""
    value = clean(check.value, 160)
    if check.state == "improve" and check.wanted is not None and check.wanted != check.value:
        return f"{value or 'not known'} → {clean(check.wanted, 160)}"
    if check.state == "info" and reason:
        return f"{value}; {reason}" if value else reason
    return value or reason


def _below(check: Assessment, style: Style, room: int) -> list[str]:
    """Return why a check can be better, and what to do about it."""
    lines: list[str] = []
    if check.state == "improve":
        lines += [style.paint(line, "dim") for line in wrap(clean(check.reason, _SENTENCES), room)]
        what = check.fix or ("only the hypervisor's owner can" if check.only_host else "")
        if what:
            lines += [style.paint(line, "attention") for line in wrap(f"do: {clean(what, 400)}", room)]
    elif check.fix and check.state != "ok":
        lines += wrap(f"do: {clean(check.fix, _SENTENCES)}", room)
    return lines


def _hang(text: str, width: int, indent: int) -> list[str]:
    """Wrap ``text`` with every line but the first indented; runs of blanks in the first line stay."""
    if len(text) <= width:
        return [text]
    cut = text.rfind(" ", 0, width + 1)
    if cut <= indent:
        cut = width
    return [text[:cut].rstrip(), *(" " * indent + line for line in wrap(text[cut:], width - indent))]


def _cut(lines: list[str], most: int, width: int) -> list[str]:
    """Return at most ``most`` lines; the last one ends with … where something was left out."""
    if len(lines) <= most:
        return lines
    last = lines[most - 1]
    if len(last) > width - 2:
        last = last[: width - 1].rpartition(" ")[0]
    return [*lines[: most - 1], last.rstrip(" ;,:") + " …"]


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
