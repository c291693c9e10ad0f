"""Return the lines of the status screen. All are pure functions of the findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from jitter_workshop.flow.host_ops.findings import Finding, Findings
from jitter_workshop.model.assessment import State
from jitter_workshop.model.palette import Palette
from jitter_workshop.model.text import clean
from jitter_workshop.presenter.figures import two_ends
from jitter_workshop.presenter.prose import clean_code, wrap
from jitter_workshop.report.text.status import MARKS, sorts_of_cpus, value_in_words

WORDS: dict[State, str] = {"ok": "ok", "improve": "can be better", "unavailable": "not here", "info": "to know"}

_ID = 17
_FACT = 13
_TITLES_FROM = 60
"""In a narrower list a check that can be better shows only its values; its title stands on its page."""


def head(found: Findings, filtered: str, width: int, palette: Palette) -> Iterator[Text]:
    """Yield the host, its hot CPUs, and the number of checks in each state. ``filtered``: the name of the list's
    filter."""
    if found.recorded:
        yield Text("A recorded host, not this machine.", style=f"bold {palette.accent}")
    cpus = sorts_of_cpus(found.hot, found.siblings, found.housekeeping)
    hot = f"{cpus}: {clean(found.why_hot, 400)}"
    yield from wrap(Text(hot, style=palette.dim), width)
    if found.note:
        yield from wrap(Text(clean(found.note, 300), style=palette.accent), width, "▲ ")
    counts = Text()
    for state, word in WORDS.items():
        number = found.summary[state]
        counts.append("   " if counts else "")
        counts.append(f"{MARKS[state][0]} {number} {word}", _colour(state, palette) if number else palette.dim)
    yield two_ends(counts, Text(filtered, style=palette.dim), width)


def line(finding: Finding, under: bool, width: int, palette: Palette) -> Text:
    """Return a check in one line: sign, id, title and its value → a better value."""
    check = finding.check
    quiet = check.state == "unavailable"
    made = Text()
    made.append("▸ " if under else "  ", palette.accent)
    made.append(f"{MARKS[check.state][0]} ", _colour(check.state, palette))
    made.append(f"{clean(check.id, _ID):<{_ID}} ", palette.dim if quiet else f"bold {palette.text}")
    if check.drifted is not None:
        made.append("drifted ", f"bold {palette.bad}")
    told = value_in_words(check)
    if width >= _TITLES_FROM or check.state != "improve" or not told:
        made.append(clean(check.title, 60), palette.dim if quiet else palette.text)
        made.append(" " if told.startswith("→") else ": " if told else "", palette.dim)
    made.append(clean(told, 200), palette.text if check.state == "improve" else palette.dim)
    made.truncate(max(width, 1), overflow="ellipsis")
    if under:
        made.append(" " * max(width - made.cell_len, 0))
        made.stylize(f"on {palette.panel}")
    return made


def about(finding: Finding, width: int, palette: Palette) -> Iterator[Text]:
    """Yield a check in two or three lines, below a list that has no page beside it."""
    yield from wrap(Text(clean(finding.check.reason, 300), style=palette.dim), width)[:2]
    yield _treated(finding, palette, "g")


def page(finding: Finding, recorded: bool, width: int, palette: Palette) -> Iterator[Text]:
    """Yield the page of a check."""
    check = finding.check
    yield from wrap(Text(f"{clean(check.title, 80)} ({clean(check.id, 40)})", f"bold {palette.text}"), width)
    state = Text(f"{MARKS[check.state][0]} {WORDS[check.state]}", _colour(check.state, palette))
    state.append(" · drifted" if check.drifted is not None else "", f"bold {palette.bad}")
    state.append(" · a recorded host" if recorded else "", palette.accent)
    yield state
    yield from wrap(_treated(finding, palette, "Enter"), width)
    yield Text()
    if check.drifted is not None:
        drift = check.drifted
        told = f"{clean(drift.path, 200)}: set to {clean(drift.set, 80)}, found {clean(drift.found or '', 80)}"
        yield from _fact("drifted", told, width, palette)
    for name, text in finding.explained.facts:
        yield from _fact(name, text, width, palette)
    if finding.explained.files:
        yield from (Text(), Text("files", style=palette.cool))
        for path, now in finding.explained.files:
            yield from _file(path, now, width, palette)
        if finding.explained.more_files:
            yield Text(f"  … {finding.explained.more_files} more", style=palette.dim)
    if finding.explained.by_hand:
        yield from (Text(), Text.assemble(("by hand", palette.cool), ("   y copies", palette.dim)))
        for command in finding.explained.by_hand:
            yield from wrap(Text(clean_code(command), style=palette.code), width, "  ", "    ")


def _colour(state: State, palette: Palette) -> str:
    return {"ok": palette.good, "improve": palette.accent, "unavailable": palette.dim, "info": palette.cool}[state]


def _treated(finding: Finding, palette: Palette, key: str) -> Text:
    """Return the chapter about a check, and the key that goes there."""
    if not finding.chapter_id:
        return Text("No chapter of this course treats it.", style=palette.dim)
    return Text.assemble(
        ("Chapter: ", palette.dim), (clean(finding.chapter, 60), palette.text), (f" · {key} goes there", palette.dim)
    )


def _fact(name: str, text: str, width: int, palette: Palette) -> Iterator[Text]:
    for number, part in enumerate(wrap(Text(clean(text, 1_000), style=palette.text), max(width - _FACT, 10))):
        yield Text.assemble((f"{name if number == 0 else '':<{_FACT}}", palette.cool), part)


def _file(path: str, now: str, width: int, palette: Palette) -> Iterable[Text]:
    """Return a path with its value; the value stands below the path if both do not fit in one line."""
    if not now:
        return wrap(Text(path, style=palette.dim), width, "  ", "    ")
    first = Text(f"  {path}", style=palette.text)
    if first.cell_len + 2 + len(now) <= width:
        return [Text.assemble(first, "  ", (now, palette.accent))]
    below = wrap(Text(now, style=palette.accent), width, "      ")
    return [*wrap(Text(path, style=palette.text), width, "  ", "    "), *below]
