"""Return the lines of the screen of a run's causes when there is no trace: counters, and commands to try by hand."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from jitter_workshop.model.evidence import CounterReport
from jitter_workshop.model.run import AT
from jitter_workshop.presenter.lines import wrap
from jitter_workshop.report.text import counters as words
from jitter_workshop.report.text.terminal import Style


def head(report: CounterReport, width: int) -> Iterator[Text]:
    """Yield the number of stalls, and why only counters are known."""
    yield from wrap(Text(words.headline(report), "dim"), width)


def counters(report: CounterReport, width: int) -> Iterator[Text]:
    """Yield the meaning of the counters in sentences, then each counter."""
    yield Text("WHAT WAS COUNTED", "bold dim")
    for said in words.verdict(report):
        yield from wrap(Text(said, "text"), width)
    style = Style(width)
    for rows in (words.threads, words.cpus, words.interruptions):
        for number, line in enumerate(rows(report, style)):
            if not number:
                yield Text()
            yield Text(line, style="text" if number else "dim")
    for number, said in enumerate(words.others(report)):
        if not number:
            yield Text()
        yield from wrap(Text(said, "text"), width)


def stalls(report: CounterReport, cursor: int, width: int) -> Iterator[Text]:
    """Yield the longest stalls: when and where, without a cause."""
    yield Text("THE LONGEST STALLS, WITHOUT A CAUSE", "bold dim")
    for index, stall in enumerate(report.worst):
        under = index == cursor
        said = words.stall_line(index + 1, stall)[: width - 2]
        line = Text("▸ " if under else "  ", "accent")
        line.append(f"{said:<{width - 2}}", "bold text" if under else "text")
        if under:
            line.stylize("under")
        yield line
    if report.worst:
        yield from wrap(Text(AT, "faint"), width)


def by_hand(report: CounterReport, width: int) -> Iterator[Text]:
    """Yield the commands that this user may run without a trace, and what an administrator can allow."""
    yield Text("BY HAND", "bold dim")
    for kind, line in words.hand_lines(report, width):
        yield Text(line, style="dim" if kind == "dim" else "text")


def commands(report: CounterReport) -> tuple[str, ...]:
    """Return the commands to copy: those that need no more rights."""
    return tuple(one.command for one in words.by_hand(report))
