"""Show what a host's settings do to latency: all checks as a table, a list of them, or one check in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from jitter_workshop.model.host import RECORDED_HOST
from jitter_workshop.model.status import Assessment, State
from jitter_workshop.model.text import ID, LABEL, LINE, PATH, REASON, SENTENCE, clean
from jitter_workshop.presenter.text.lines import MANY_CPUS, Lines, cpus_in_short, labelled, small_title, two_ends, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.check_words import MARKS, SENTENCES, Explained, value_in_words

if TYPE_CHECKING:
    from jitter_workshop.flow.host_ops.host_status import Finding, Findings, StatusHead
    from jitter_workshop.model.walk import Fact

WORDS: dict[State, str] = {state: MARKS[state][1] for state in ("improve", "ok", "info", "unavailable")}
"""State → the words for it, in the order in which they are counted."""
COLOURS: dict[State, str] = {"ok": "good", "improve": "accent", "unavailable": "dim", "info": "cool"}

_STATE, _ID = 18, 19
_WIDE = 130
"""The least width in columns at which a check's reason is shown beside its value, and not below it."""
_TITLE = 40
_FACT = 13


def _above(page: StatusHead, width: int) -> Iterator[Text]:
    """Yield the lines above the checks: the host's CPUs, and the page's note. On a recorded host, a notice comes
    first."""
    if page.recorded:
        yield Text(RECORDED_HOST, "bold accent")
    one, single = "CPU" if page.hot.isdigit() else "CPUs", page.hot.isdigit() and page.siblings.isdigit()
    idle = f" (siblings {page.hot_siblings} stay idle)" if page.hot_siblings else ""
    parts = [f"Hot {one} {page.hot}{idle}"]
    parts += [f"{'its sibling' if single else 'their siblings'} {page.siblings}"] if page.siblings else []
    parts.append(f"housekeeping {page.housekeeping}" if page.housekeeping else "no housekeeping CPU")
    yield from wrap(cpus_in_short(f"{', '.join(parts)}: {clean(page.why_hot, SENTENCE)}"), width, style="dim")
    if page.note:
        yield from wrap(cpus_in_short(clean(page.note, MANY_CPUS)), width, "▲ ", style="accent")


# -- all checks --------------------------------------------------------------------------------------------------------


def check_table(
    host: str, page: StatusHead, groups: Sequence[tuple[str, Sequence[Assessment]]], width: int, *, brief: bool = True
) -> Lines:
    """Return all checks below their headings. A line at the top names the checks that can be better. ``host``: the
    host's name, kernel and kind. ``groups``: pairs (heading, checks). ``brief``: limit a check that needs no action to
    two lines."""
    lines = [*wrap(cpus_in_short(clean(host, MANY_CPUS)), width, style="bold"), *_above(page, width)]
    better = [clean(check.id, ID) for _, checks in groups for check in checks if check.state == "improve"]
    if len(better) > 1:
        lines += wrap(f"{len(better)} can be better: {', '.join(better)}", width, "▲ ", style="accent")
    for title, checks in groups:
        lines += [Text(), small_title(title.upper())]
        before = ""
        for check in checks:
            lines += _check(check, width, brief, before)
            before = check.reason
    return [*lines, Text(), *_sum(page, [check for _, checks in groups for check in checks], width)]


def _check(check: Assessment, width: int, brief: bool, before: str) -> Iterator[Text]:
    """Yield the lines of one check. ``before``: the reason of the check above this one. With ``brief``, a check with
    the same reason has the words "as above" instead.
    """
    mark, word, _ = MARKS[check.state]
    wide = width >= _WIDE
    hanging = " " * (_STATE + _ID + (_TITLE + 2 if wide else 2))
    title, said = clean(check.title, LABEL), value_in_words(check, before if brief else "")
    said = cpus_in_short(said) if brief else said
    text = f"{title.ljust(_TITLE)}  {said}" if wide else f"{title}: {said}" if said else title
    start = Text.assemble((f"  {mark} {word}".ljust(_STATE), COLOURS[check.state]), clean(check.id, ID).ljust(_ID - 1))
    start.append(" ")
    body = wrap(text.replace("  ", "\u00a0\u00a0"), width - start.cell_len, "", hanging[start.cell_len :])
    body = _cut(body, 2, width - start.cell_len) if brief and check.state in ("unavailable", "info") else body
    for number, line in enumerate(body):
        whole = Text.assemble(" " * start.cell_len if number else start, line.plain.replace("\u00a0", " "))
        whole.stylize("dim" if check.state == "unavailable" else "")
        yield whole
    what = check.fix or ("ask the hypervisor's owner" if check.only_host else "")
    if check.state == "improve":
        reason = clean(check.reason, SENTENCES)
        yield from wrap(cpus_in_short(reason) if brief else reason, width, hanging, style="dim")
    if what and (check.state == "improve" or (check.fix and check.state != "ok")):
        yield from wrap(f"do: {clean(what, SENTENCES)}", width, hanging, style=COLOURS[check.state])


def _cut(lines: Lines, most: int, width: int) -> Lines:
    """Return the first ``most`` lines. If more lines exist, the last returned line ends with …."""
    if len(lines) <= most:
        return lines
    last = lines[most - 1].plain
    last = last[: width - 1].rpartition(" ")[0] if len(last) > width - 2 else last
    return [*lines[: most - 1], Text(last.rstrip(" ;,:") + " …")]


def _sum(page: StatusHead, checks: Sequence[Assessment], width: int) -> Iterator[Text]:
    count = {state: sum(1 for c in checks if c.state == state) for state in MARKS}
    yield Text.assemble(
        (f"{count['ok']} ok", "good"),
        " · ",
        (f"{count['improve']} can be better", "accent" if count["improve"] else "dim"),
        f" · {count['unavailable']} not here · {count['info']} to know",
    )

    def named(found: Sequence[Assessment]) -> str:
        return ", ".join(clean(c.id, ID) for c in found)

    improvable = [c for c in checks if c.state == "improve"]
    now = [c for c in improvable if c.when == "runtime" and " apply " in f" {c.fix} "]
    things = "one thing" if len(now) == 1 else f"{len(now)} things"
    for found, said in (
        (
            [c for c in checks if c.drifted is not None],
            "Drifted (set by this tool, then changed by another program or user): {}.",
        ),
        (
            () if page.recorded else now,
            f"'jitter-workshop plan' shows every write for the {things} that can be changed now; 'restore' restores "
            "everything.",
        ),
        ([c for c in improvable if c.when == "boot"], "Boot parameters, which need a reboot: {}."),
        (
            [c for c in checks if c.only_host and page.guest],
            "Only the owner of the machine below can tell or change these: {}.",
        ),
        (improvable[:1], "More about one of them: jitter-workshop status --explain {}"),
    ):
        if found:
            yield from wrap(said.format(named(found)), width)


# -- a list of checks --------------------------------------------------------------------------------------------------


def status_head(found: Findings, filtered: str, width: int) -> Iterator[Text]:
    """Yield the host's CPUs, and the number of checks in each state. ``filtered``: the name of the list's filter."""
    yield from _above(found.head, width)
    counts = Text()
    for state, word in WORDS.items():
        number = found.summary[state]
        counts.append("   " if counts else "")
        counts.append(f"{MARKS[state][0]} {number} {word}", COLOURS[state] if number else "dim")
    yield two_ends(counts, Text(filtered, "dim"), width)


def check_line(finding: Finding, under: bool, width: int) -> Text:
    """Return a check in one line: sign, id, title, value and, if there is one, the better value. If the line is too
    long, whole parts are left out. If there is a better value, the title is left out first. If there is none, the value
    is left out first."""
    check = finding.check
    quiet = check.state == "unavailable"
    made = Text("▸ " if under else "  ", "accent")
    made.append(f"{MARKS[check.state][0]} ", COLOURS[check.state])
    made.append(f"{clean(check.id, _ID - 2):<{_ID - 2}} ", "dim" if quiet else "bold text")
    made.append("drifted " if check.drifted is not None else "", "bold bad")
    title, improves = clean(check.title, LABEL), check.state == "improve"
    told, value = (clean(cpus_in_short(text), REASON) for text in (value_in_words(check), check.value or ""))
    forms = ((title, told), ("", told) if improves and told else (title, value), (title, ""))
    fits = (form for form in forms if made.cell_len + Text(": ".join(filter(None, form))).cell_len <= width)
    title, told = next(fits, forms[-1])
    made.append(title, "dim" if quiet else "text")
    made.append((" " if told.startswith("→") else ": ") if title and told else "", "dim")
    made.append(told, "text" if improves else "dim")
    made.truncate(max(width, 1), ellipsis=True, pad=under)
    if under:
        made.stylize("under")
    return made


def plain_status_lines(found: Findings, numbers: Mapping[str, int], width: int) -> Lines:
    """Return the checks that can be better, and those that have drifted. A check has drifted if its value is no longer
    the one that this tool set. ``numbers``: chapter id → its number on the path."""
    lines = [*status_head(found, "", width)]
    for finding in found.checks:
        check = finding.check
        if check.state != "improve" and check.drifted is None:
            continue
        drifted = " (drifted)" if check.drifted is not None else ""
        said = f"{clean(check.id, ID)}{drifted} · {clean(check.title)}: {value_in_words(check)}"
        lines += [Text(), *wrap(cpus_in_short(clean(said, MANY_CPUS)), width, "  ", "    ")]
        lines += wrap(cpus_in_short(clean(check.reason, MANY_CPUS)), width, "    ")
        if finding.chapter_id in numbers:
            lines += wrap(f"chapter {numbers[finding.chapter_id]}: {clean(finding.chapter, LABEL)}", width, "    ")
        elif finding.why_no_chapter:
            lines += wrap(no_chapter("this", finding), width, "    ")
    more = (
        "'jitter-workshop status' shows every check. 'jitter-workshop status --explain ID' shows everything about one "
        "check."
    )
    return [*lines, Text(), *wrap(more, width)]


# -- one check ---------------------------------------------------------------------------------------------------------


def reason_and_chapter(finding: Finding, width: int) -> Iterator[Text]:
    """Yield a check's reason and its chapter in two or three lines, for a list without room for the check's page."""
    yield from wrap(cpus_in_short(clean(finding.check.reason, MANY_CPUS)), width, style="dim")[:2]
    yield from wrap(treating_chapter(finding), width)[:2]


def check_page(
    check: Assessment, explained: Explained, recorded: bool, width: int, chapter: Text | None = None
) -> Lines:
    """Return the whole page of a check. ``chapter``: the line from :func:`treating_chapter` about the check's chapter,
    for the screen. It is None if a command prints the page.
    """
    state = Text.assemble((f"{MARKS[check.state][0]} {WORDS[check.state]}", COLOURS[check.state]))
    state.append(" · drifted" if check.drifted is not None else "", "bold bad")
    state.append(" · a recorded host" if recorded else "", "accent")
    lines = [*wrap(f"{clean(check.title)} ({clean(check.id, ID)})", width, style="bold text"), state]
    lines += [*(wrap(chapter, width) if chapter is not None else []), Text()]
    drift = check.drifted
    if drift is not None:
        told = f"{clean(drift.path, PATH)}: set to {clean(drift.set)}, found {clean(drift.found or '')}"
        lines += labelled("drifted", told, width, _FACT, "cool")
    for name, text in explained.facts:
        lines += labelled(name, clean(text, SENTENCES), width, _FACT, "cool")
    if explained.files:
        lines += [Text(), Text("files", "cool")]
        for path, now in explained.files:
            lines += _file(path, now, width)
        lines += [Text(f"  … {explained.more_files} more", "dim")] if explained.more_files else []
    if explained.by_hand:
        from jitter_workshop.presenter.text.prose import (
            clean_code,  # lessons and their pictures, which the table has not
        )

        where, copies = "on the host itself" if recorded else "", "y copies" if chapter is not None else ""
        beside = " · ".join(filter(None, (where, copies)))
        lines += [Text(), Text.assemble(("by hand", "cool"), (f"   {beside}" if beside else "", "dim"))]
        for command in explained.by_hand:
            # A printed command is copied from the terminal, so it stays in one line there.
            room = width if chapter is not None else max(width, len(command) + 2)
            lines += wrap(clean_code(command), room, "  ", "    ", style="code")
    return lines


def treating_chapter(finding: Finding) -> Text:
    """Return a line that names a check's chapter, and the screen's key that opens it. If no chapter is about the check,
    the line says so and gives the reason.
    """
    if not finding.chapter_id:
        return Text(no_chapter("this", finding), "dim")
    return Text.assemble(("Chapter: ", "dim"), clean(finding.chapter, LABEL), (" · n goes there", "dim"))


def no_chapter(what: str, finding: Finding) -> str:
    """Return a sentence which says that no chapter is about ``what``, and gives the reason if it is known."""
    reason = clean(finding.why_no_chapter, SENTENCE)
    if reason:
        return f"No chapter treats {what}: {reason[0].lower()}{reason[1:]}"
    return f"No chapter of this course is about {what}."


def _file(path: str, now: str, width: int) -> Lines:
    """Return a path with its value; the value is shown below the path if both do not fit in one line."""
    first = Text(f"  {path}", "text" if now else "dim")
    if first.cell_len + 2 + len(now) <= width:
        return [Text.assemble(first, "  ", (now, "accent"))]
    below = wrap(now, width, " " * 6, style="accent") if now else []
    return [*wrap(Text(path, "text" if now else "dim"), width, "  ", "    "), *below]


def fact_lines(found: Sequence[Fact], width: int, title: str = "ON THIS HOST", *, airy: bool = False) -> Lines:
    """Return facts about a host: the title of each, its value, and its meaning in the next line. A title that is wider
    than its column has a line of its own. ``airy``: with an empty line between two facts."""
    lines: Lines = [small_title(title)]
    if not found:
        return [*lines, Text("This host shows none of the facts of this step.", "dim")]
    column = min(max(len(clean(f.title)) for f in found), max(width // 3, 10)) + 2
    for fact in found:
        lines += [Text()] if airy and len(lines) > 1 else []
        value = Text(clean(fact.value, REASON), "bold text")
        title = clean(fact.title, LINE)
        if len(title) > column - 2:
            lines += wrap(title, width, style="cool")
            title = ""
        lines += labelled(title, value, width, column, "cool")
        if fact.meaning:
            lines += wrap(clean(fact.meaning, SENTENCE), width, " " * (column if width >= 60 else 2), style="dim")
        if fact.source and width >= 70:
            lines += wrap(clean(fact.source, LINE), width, _before_source(fact, column, width), style="faint")
    return lines


def _before_source(fact: Fact, column: int, width: int) -> str:
    """Return the blanks before a fact's source. No path is broken in two: one that does not fit below the value begins
    well to the left of it, so that it does not look misplaced by a column or two."""
    longest = max((len(word) for word in clean(fact.source, LINE).split()), default=0)
    return " " * (column if column + longest <= width else max(min(column // 2, width - longest), 0))
