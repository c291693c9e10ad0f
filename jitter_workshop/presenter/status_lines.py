"""Return the lines of the status screen. All are pure functions of the findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from jitter_workshop.flow.host_ops.host_status import Finding, Findings
from jitter_workshop.model.assessment import State
from jitter_workshop.model.text import clean
from jitter_workshop.presenter.lines import two_ends, wrap
from jitter_workshop.presenter.prose import clean_code
from jitter_workshop.report.text.status import MARKS, sorts_of_cpus, value_in_words

WORDS: dict[State, str] = {"ok": "ok", "improve": "can be better", "unavailable": "not here", "info": "to know"}

_ID = 17
_FACT = 13
_TITLES_FROM = 60
"""In a narrower list a check that can be better shows only its values; its title stands on its page."""


def head(found: Findings, filtered: str, width: int) -> Iterator[Text]:
    """Yield the host, its hot CPUs, and the number of checks in each state. ``filtered``: the name of the list's
    filter."""
    if found.recorded:
        yield Text("A recorded host, not this machine.", "bold accent")
    cpus = sorts_of_cpus(found.hot, found.siblings, found.housekeeping)
    hot = f"{cpus}: {clean(found.why_hot, 400)}"
    yield from wrap(Text(hot, "dim"), width)
    if found.note:
        yield from wrap(Text(clean(found.note, 300), "accent"), width, "▲ ")
    counts = Text()
    for state, word in WORDS.items():
        number = found.summary[state]
        counts.append("   " if counts else "")
        counts.append(f"{MARKS[state][0]} {number} {word}", _colour(state) if number else "dim")
    yield two_ends(counts, Text(filtered, "dim"), width)


def line(finding: Finding, under: bool, width: int) -> Text:
    """Return a check in one line: sign, id, title and its value → a better value."""
    check = finding.check
    quiet = check.state == "unavailable"
    made = Text()
    made.append("▸ " if under else "  ", "accent")
    made.append(f"{MARKS[check.state][0]} ", _colour(check.state))
    made.append(f"{clean(check.id, _ID):<{_ID}} ", "dim" if quiet else "bold text")
    if check.drifted is not None:
        made.append("drifted ", "bold bad")
    told = value_in_words(check)
    if width >= _TITLES_FROM or check.state != "improve" or not told:
        made.append(clean(check.title, 60), "dim" if quiet else "text")
        made.append(" " if told.startswith("→") else ": " if told else "", "dim")
    made.append(clean(told, 200), "text" if check.state == "improve" else "dim")
    made.truncate(max(width, 1), overflow="ellipsis")
    if under:
        made.append(" " * max(width - made.cell_len, 0))
        made.stylize("under")
    return made


def about(finding: Finding, width: int) -> Iterator[Text]:
    """Yield a check in two or three lines, below a list that has no page beside it."""
    yield from wrap(Text(clean(finding.check.reason, 300), "dim"), width)[:2]
    yield _treated(finding, "g")


def page(finding: Finding, recorded: bool, width: int) -> Iterator[Text]:
    """Yield the page of a check."""
    check = finding.check
    yield from wrap(Text(f"{clean(check.title, 80)} ({clean(check.id, 40)})", "bold text"), width)
    state = Text(f"{MARKS[check.state][0]} {WORDS[check.state]}", _colour(check.state))
    state.append(" · drifted" if check.drifted is not None else "", "bold bad")
    state.append(" · a recorded host" if recorded else "", "accent")
    yield state
    yield from wrap(_treated(finding, "Enter"), width)
    yield Text()
    if check.drifted is not None:
        drift = check.drifted
        told = f"{clean(drift.path, 200)}: set to {clean(drift.set, 80)}, found {clean(drift.found or '', 80)}"
        yield from _fact("drifted", told, width)
    for name, text in finding.explained.facts:
        yield from _fact(name, text, width)
    if finding.explained.files:
        yield from (Text(), Text("files", "cool"))
        for path, now in finding.explained.files:
            yield from _file(path, now, width)
        if finding.explained.more_files:
            yield Text(f"  … {finding.explained.more_files} more", "dim")
    if finding.explained.by_hand:
        yield from (Text(), Text.assemble(("by hand", "cool"), ("   y copies", "dim")))
        for command in finding.explained.by_hand:
            yield from wrap(Text(clean_code(command), "code"), width, "  ", "    ")


def _colour(state: State) -> str:
    return {"ok": "good", "improve": "accent", "unavailable": "dim", "info": "cool"}[state]


def _treated(finding: Finding, key: str) -> Text:
    """Return the chapter about a check, and the key that goes there."""
    if not finding.chapter_id:
        return Text("No chapter of this course treats it.", "dim")
    return Text.assemble(("Chapter: ", "dim"), (clean(finding.chapter, 60), "text"), (f" · {key} goes there", "dim"))


def _fact(name: str, text: str, width: int) -> Iterator[Text]:
    for number, part in enumerate(wrap(Text(clean(text, 1_000), "text"), max(width - _FACT, 10))):
        yield Text.assemble((f"{name if number == 0 else '':<{_FACT}}", "cool"), part)


def _file(path: str, now: str, width: int) -> Iterable[Text]:
    """Return a path with its value; the value stands below the path if both do not fit in one line."""
    if not now:
        return wrap(Text(path, "dim"), width, "  ", "    ")
    first = Text(f"  {path}", "text")
    if first.cell_len + 2 + len(now) <= width:
        return [Text.assemble(first, "  ", (now, "accent"))]
    below = wrap(Text(now, "accent"), width, "      ")
    return [*wrap(Text(path, "text"), width, "  ", "    "), *below]
