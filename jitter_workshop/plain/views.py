"""Format the list of chapters, the line with a chapter's steps, and the tour. The tour is printed if there is no
terminal."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.flow.chapters.path import in_groups
from jitter_workshop.flow.chapters.tour import Tour
from jitter_workshop.flow.measuring.request import MeasureRequest, arrival_words
from jitter_workshop.flow.measuring.run_length import chapter_length_sentences
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import ID, LABEL, REASON, clean, cleaned_sentence
from jitter_workshop.model.walk import PathEntry, StepView
from jitter_workshop.presenter.course.path import PATH_HEADINGS, kind_heading, kind_or_result, progress_signs
from jitter_workshop.presenter.runs.run import TRACED_MEANWHILE, describe_noise
from jitter_workshop.presenter.text.lines import Lines, wrap
from jitter_workshop.presenter.text.styled import Text

MAX_LINES = 120
"""Most lines of the tour."""
_TOUR_WIDTH = 80
_MOST_NOTICES = 10
"""The most notices above the tour."""
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


def path_lines(path: Sequence[PathEntry], next_id: str | None, width: int, judged: bool = True) -> Lines:
    """Return the chapters with their numbers and marks, grouped as on the home screen. ``next_id``: the id of the next
    chapter. ``judged``: True if the learner's guesses were judged. The marks for guesses are then shown, too."""
    wide = max([24, *(len(e.title) for e in path)])
    lines: Lines = []
    for group in in_groups(path):
        here = group.state == "here"
        columns = f"  setting  curve{'  guess' if judged else ''}  {kind_heading(path)}" if here else ""
        narrow = wide + 6 + len(columns) > width
        lines.append(_cut(f"{PATH_HEADINGS[group.state]:<{wide + 6}}{'' if narrow else columns}", width))
        if group.reason:
            lines += wrap(f"{clean(group.reason, REASON)}:", width, "     ")
        for _, e in group.entries:
            sign = "▸" if e.chapter_id == next_id else "◐" if e.only_read else "●" if e.done else "○"
            title = clean(e.title, wide)
            below = ""
            if here:
                setting, curve, guess = progress_signs(e)
                told = kind_or_result(e)[0]
                below = f"setting {setting} curve {curve}{f' guess {guess}' if judged else ''} {told}" if narrow else ""
                state = "" if narrow else f"  {setting:^7}  {curve:^5}{f'  {guess:^5}' if judged else ''}  {told}"
            else:
                state = "" if group.reason else f"  {clean(e.reason, max(width - wide - 8, 1))}"
            lines.append(_cut(f"{e.number:>2} {sign} {title:<{wide + 1}}{state}", width))
            lines += wrap(Text(below), width, "   ", "   ") if below else []
    return lines


def _cut(line: str, width: int) -> Text:
    return Text(line[:width].rstrip())


def loop_line(chapter: Chapter, steps: Sequence[StepView], width: int) -> Lines:
    """Return ``Pinning  look✓ predict✓ ▸MEASURE plan …``, without the steps that the chapter leaves out."""
    parts = [step.shown for step in steps if step.state != "left_out"]
    return wrap(f"{chapter.title}:  {'  '.join(parts)}", width, "", "  ")


def to_be_measured(request: MeasureRequest, runs: Sequence[Run], company: str = "") -> str:
    """Return a description of the run that would be measured. The description also names the highest percentile for
    which the run has enough messages. ``company``: the lesson's words for the noise during the run, "" for none."""
    noise = f", with {request.noise}" if request.noise else ""
    what = f"To be measured: '{request.label}', {request.workload}, {request.preset}{noise}."
    what += f" Beside it: {describe_noise(request, company)}" if company else ""
    what += f" First, {arrival_words(request)}" if request.arrival is not None else ""
    what += f" {cleaned_sentence(TRACED_MEANWHILE)}" if request.evidence else ""
    return f"{what} {chapter_length_sentences(request, runs)}".rstrip()


def tour_lines(tour: Tour) -> Lines:
    """Return this host, the chapters, and the commands to type: at most 120 lines of at most 80 columns."""
    lines = [Text(f"Jitter Workshop · {clean(tour.host_name, ID)}"), *wrap(tour.host_line, _TOUR_WIDTH)]
    for notice in tour.notices[:_MOST_NOTICES]:
        lines += wrap(f"! {notice}", _TOUR_WIDTH, "", "  ")
    following, session = tour.next_entry, tour.session
    next_id = following.chapter_id if following else None
    lines += [Text(), *path_lines(tour.path, next_id, _TOUR_WIDTH, judged=False), Text()]
    known = f"Session {clean(session.name, LABEL)}, {len(session.runs)} runs." if session is not None else ""
    lines += wrap(f"{known or 'No session yet: the first start makes one.'} Nothing was measured.", _TOUR_WIDTH)
    if following is not None:
        lines += [Text(), *wrap(f"NEXT: {clean(following.title, ID)} · {following.next_step}", _TOUR_WIDTH)]
        lines += wrap(following.summary, _TOUR_WIDTH, "      ")
    if len(lines) > MAX_LINES - len(_COMMANDS):
        hidden = len(lines) + len(_COMMANDS) - MAX_LINES + 1
        lines = [*lines[: MAX_LINES - len(_COMMANDS) - 1], Text(f"  … {hidden} lines are left out")]
    return [*lines, *map(Text, _COMMANDS)]
