"""Return the plain tour as text: this host, the chapters, and the commands to run. At most 120 lines."""

from __future__ import annotations

from jitter_workshop.flow.chapters.tour import Tour
from jitter_workshop.model.text import clean
from jitter_workshop.plain.views import path_lines, wrap

MAX_LINES = 120
_WIDTH = 80


def tour_text(tour: Tour) -> str:
    """Return plain lines of at most 80 columns, without escapes."""
    lines = [f"Jitter Workshop · {clean(tour.host_name, 40)}", *wrap(tour.host_line, _WIDTH)]
    for notice in tour.notices[:10]:
        lines += wrap(f"! {notice}", _WIDTH, "", "  ")
    lines += ["", *path_lines(tour.path, tour.next_entry.chapter_id if tour.next_entry else None, _WIDTH)]
    if tour.session is None:
        lines += ["", "No session yet: the first start makes one. Nothing was measured."]
    else:
        lines += ["", f"Session {clean(tour.session.name, 50)}, {len(tour.session.runs)} runs. Nothing was measured."]
    if tour.next_entry is not None:
        lines += ["", f"NEXT: {clean(tour.next_entry.title, 40)} · {tour.next_entry.next_step}"]
        lines += wrap(tour.next_entry.summary, _WIDTH, "      ")
    lines += [
        "",
        "There is no terminal here. On a terminal:",
        "  jitter-workshop                   the workshop, full screen",
        "  jitter-workshop --plain           the same, line by line",
        "Anywhere:",
        "  jitter-workshop measure           one measurement, about 7 s (or --json)",
        "  jitter-workshop compare @2 @1     how the last two runs differ",
        "  jitter-workshop chart             their curves (-o curves.svg for a picture)",
        "  jitter-workshop --help            everything else",
    ]
    if len(lines) > MAX_LINES:
        hidden = len(lines) - MAX_LINES + 1
        lines = [*lines[: MAX_LINES - 12], f"  … {hidden} lines are left out", *lines[-11:]]
    return "\n".join(lines) + "\n"
