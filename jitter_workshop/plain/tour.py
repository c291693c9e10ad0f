"""Return the plain tour as text: this host, the chapters, and the commands to run. At most 120 lines."""

from __future__ import annotations

from rich.text import Text

from jitter_workshop.flow.chapters.tour import Tour
from jitter_workshop.model.text import clean
from jitter_workshop.plain.views import path_lines
from jitter_workshop.presenter.lines import Lines, wrap

MAX_LINES = 120
_WIDTH = 80
_COMMANDS = (
    "",
    "There is no terminal here. On a terminal:",
    "  jitter-workshop                   the workshop, full screen",
    "  jitter-workshop --plain           the same, line by line",
    "Anywhere:",
    "  jitter-workshop measure           one measurement, about 7 s (or --json)",
    "  jitter-workshop compare @2 @1     how the last two runs differ",
    "  jitter-workshop chart             their curves (-o curves.svg for a picture)",
    "  jitter-workshop --help            everything else",
)


def tour_lines(tour: Tour) -> Lines:
    """Return the tour in at most 80 columns."""
    lines = [Text(f"Jitter Workshop · {clean(tour.host_name, 40)}"), *wrap(tour.host_line, _WIDTH)]
    for notice in tour.notices[:10]:
        lines += wrap(f"! {notice}", _WIDTH, "", "  ")
    following, session = tour.next_entry, tour.session
    lines += [Text(), *path_lines(tour.path, following.chapter_id if following else None, _WIDTH), Text()]
    known = f"Session {clean(session.name, 50)}, {len(session.runs)} runs." if session is not None else ""
    lines += wrap(f"{known or 'No session yet: the first start makes one.'} Nothing was measured.", _WIDTH)
    if following is not None:
        lines += [Text(), *wrap(f"NEXT: {clean(following.title, 40)} · {following.next_step}", _WIDTH)]
        lines += wrap(following.summary, _WIDTH, "      ")
    if len(lines) > MAX_LINES - len(_COMMANDS):
        hidden = len(lines) + len(_COMMANDS) - MAX_LINES + 1
        lines = [*lines[: MAX_LINES - len(_COMMANDS) - 1], Text(f"  … {hidden} lines are left out")]
    return [*lines, *map(Text, _COMMANDS)]
