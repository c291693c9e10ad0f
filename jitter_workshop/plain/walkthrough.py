"""Run the whole workshop line by line. The course is the same as on the screen. Any terminal, screen reader or slow
connection can show it.

If the learner presses Enter, the workshop does the next useful thing. This module shows the list of chapters;
``plain.chapter`` runs a chapter.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import replace

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters.by_hand import owed_by_hand
from jitter_workshop.flow.chapters.course_summary import CourseSummary, sum_up
from jitter_workshop.flow.chapters.path import all_done_here, step_named
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring.curves import scale_curve, told_apart_by_clock
from jitter_workshop.model.host_load import HostLoad
from jitter_workshop.model.run import apart_from_proofs, like_the_newest, of_one_kind
from jitter_workshop.model.text import ID, SENTENCE, WORD, clean
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.plain import class_host as of_class
from jitter_workshop.plain import settings, views
from jitter_workshop.plain.chapter import PlainChapter
from jitter_workshop.plain.help import path_help, tell_help
from jitter_workshop.plain.hunt import tell_status
from jitter_workshop.plain.report import tell_report
from jitter_workshop.plain.talk import Leave, Talk
from jitter_workshop.presenter.course import summary as words
from jitter_workshop.presenter.course.action_meanings import SUMMARY_TITLE
from jitter_workshop.presenter.course.own_results import OwnResults
from jitter_workshop.presenter.course.path import WHAT_THIS_IS, is_new, minutes_told, session_told
from jitter_workshop.presenter.host import host_load as load_words
from jitter_workshop.presenter.host.by_hand import still_made
from jitter_workshop.presenter.text.lines import Lines

_MOST_CURVES = 6


class LoadLook:
    """Measure the host's load in a background thread. The workshop prints its first lines meanwhile."""

    def __init__(self, workshop: Workshop) -> None:
        self._found: HostLoad | None = None

        def look() -> None:
            self._found = workshop.look_at_load()

        self.thread = threading.Thread(target=look, name="load", daemon=True)
        self.thread.start()

    def taken(self) -> HostLoad | None:
        """Return the host's load at the first call after the load was measured. Return None at every other call."""
        found, self._found = self._found, None
        return found


class PlainWalk:
    """Run a workshop line by line. ``read``: a function that shows a prompt and returns the typed line. At the end of
    the input it raises EOFError. ``write``: a function that gets the output."""

    def __init__(
        self,
        workshop: Workshop,
        read: Callable[[str], str] | None = None,
        write: Callable[[str], object] | None = None,
        width: int | None = None,
    ) -> None:
        self._workshop = workshop
        self._results = OwnResults(workshop)
        self._talk = Talk(read, write, width)
        self._summed_up = False
        # Only who reads along can act on it; what is piped in is not held up by a look.
        self._look: LoadLook | None = LoadLook(workshop) if read is not None or sys.stdin.isatty() else None

    def run(self, chapter_id: str | None = None) -> int:
        """Run the workshop until the learner leaves it, and return 0. At the end, restore the changes that were applied
        only for the time of the workshop. If the learner types a command to leave, first ask whether to keep these
        changes. ``chapter_id``: the chapter to open first."""
        talk = self._talk
        ask, step = True, ""
        try:
            self._title()
            # Tell notices before the first chapter, too: --chapter opens it without the path.
            talk.notices(self._workshop.context.notices)
            while True:
                try:
                    if chapter_id is None:
                        chapter_id = self._home()
                    self._in_chapter(chapter_id, step)
                    chapter_id, step = None, ""
                except of_class.Jump as jump:
                    chapter_id, step = jump.chapter, jump.step
        except Leave:
            pass
        except EOFError:
            ask = False
        talk.say("")
        settings.let_go(self._workshop, talk, ask)
        if made := still_made(owed_by_hand(self._workshop.context, self._workshop.course)):
            talk.tell(made)
        talk.tell("Your runs and guesses are kept. The next start goes on here.")
        return 0

    def _in_chapter(self, chapter_id: str, step: str) -> None:
        """Run one chapter. ``step``: the step to open, if the learner has reached this step. If ``step`` is "", open
        the step at which the learner stopped."""
        walk = self._workshop.walk(chapter_id)
        wanted = step_named(walk.chapter, step)
        if wanted is not None:
            try:
                walk.go(wanted)
            except WorkshopError as error:
                self._talk.refused(error)
        else:
            walk.resume()
        PlainChapter(self._workshop, walk, self._talk).run()

    def _title(self) -> None:
        host, session = clean(self._workshop.context.host.name, ID), clean(self._workshop.context.session.name, ID)
        recorded = " (a recorded host, read-only)" if self._workshop.context.recorded else ""
        self._talk.tell(f"Jitter Workshop · {host}{recorded} · session {session}")
        if said := session_told(self._workshop.context.session, self._workshop.other_sessions)[0]:
            self._talk.tell(f"{said}.")
        if is_new(self._workshop.path()):
            self._talk.tell(WHAT_THIS_IS)
        self._talk.tell(self._workshop.host_line())

    def _home(self) -> str:
        """Show the list of chapters, and return the id of the chosen chapter. Run the learner's other commands until a
        chapter is chosen. Raise Leave if the learner leaves the workshop."""
        workshop, talk = self._workshop, self._talk
        while True:
            talk.notices(workshop.context.notices)
            talk.say(*self._load())
            path = self._results.path()
            last = self._results.last_told(path)
            following = workshop.next_chapter()
            talk.say("", *views.path_lines(path, following.chapter_id if following else None, talk.width), "")
            commands = settings.tell_changes(workshop, talk)
            if last is not None:
                talk.tell(f"LAST: {clean(last[0], ID)} · {clean(last[1], SENTENCE)}")
            if following is not None:
                if not following.here and all_done_here(path):
                    talk.tell("All that this host can do is done. Type summary for the course from first to last.")
                where = " · on a recording" if following.rehearsed else ""
                title = clean(following.title, ID)
                about = minutes_told(following)
                talk.tell(f"NEXT: {title} · {following.next_step}{f' · {about}' if about else ''}{where}")
            else:
                if not self._summed_up:
                    self._summed_up = True
                    self._sum_up()
                done = all(entry.done for entry in path)
                talk.tell("Every chapter is done." if done else "Every chapter that this host can do is done.")
            of_class.tell_class_changes(workshop, talk)
            enter = "Enter go on" if following else "Enter leave"
            menu = (enter, f"1-{len(path)} chapter", "c chart of all runs", "r report", "status", "summary", "explain")
            talk.idle = self._load
            answer = talk.ask(" · ".join((*menu, *commands, *of_class.class_menu(workshop), "? help", "q quit")))
            talk.idle = None
            if answer == "" and following is None:
                raise Leave
            if answer == "" and following is not None:
                return following.chapter_id
            chosen = next((entry for entry in path if answer == str(entry.number)), None)
            if chosen is not None:
                return chosen.chapter_id
            try:
                self._command(answer, len(path))
            except WorkshopError as error:
                talk.refused(error)

    def _load(self) -> Lines:
        """Return lines about the host's load, if it is high enough to hide effects. Return them once, at the first call
        after :class:`LoadLook` has finished. Return [] in all other cases."""
        load = self._look.taken() if self._look is not None else None
        return load_words.told(load, self._talk.width) if load is not None and load.drowns else []

    def _sum_up(self) -> None:
        """Show the summary of the course."""
        tell_summary(sum_up(self._workshop), self._talk)

    def _command(self, answer: str, chapters: int) -> None:
        if of_class.obey_class_command(self._workshop, self._talk, answer):
            return
        if answer in ("?", "help"):
            tell_help(self._talk, (*path_help(chapters), *of_class.class_commands(self._workshop)))
        elif answer in ("home", "path"):
            pass  # The list of chapters is shown again.
        elif answer == "c":
            runs = like_the_newest(apart_from_proofs(self._workshop.context.runs.every()))[-_MOST_CURVES:]
            own = self._workshop.context.runs.curves(runs)
            published = scale_curve() if of_one_kind(runs, "ring") else ()
            self._talk.chart(told_apart_by_clock((*published, *own)))
        elif answer == "heat":
            runs = apart_from_proofs(self._workshop.context.runs.every())
            if runs:
                self._talk.heat(self._workshop.context.runs.heat(runs[-1]))
            else:
                self._talk.tell("There is no run yet.")
        elif answer == "status":
            tell_status(self._workshop, self._talk)
        elif answer in ("r", "report"):
            tell_report(self._workshop, self._talk)
        elif answer == "load":
            self._talk.tell(load_words.LOOKING)
            self._talk.tell(load_words.load_told(self._workshop.look_at_load()))
        elif answer == "summary":
            self._sum_up()
        elif answer == "explain" or answer.startswith("explain "):
            from jitter_workshop.plain.programs import tell_program

            tell_program(self._workshop, self._talk, answer.removeprefix("explain").strip())
        elif answer == "practice":
            tell_practice(self._workshop, self._talk)
        elif answer in ("restore", "undo"):  # ``undo`` is an earlier word, which help does not show.
            settings.restore_everything(self._workshop, self._talk)
        elif answer == "again":
            if not self._workshop.resumable() or of_class.have_turn(self._workshop, self._talk):
                settings.apply_again(self._workshop, self._talk)
        else:
            self._talk.tell(f"Unknown command '{clean(answer, WORD)}'; ? for help.")


def tell_practice(workshop: Workshop, talk: Talk) -> None:
    """Explain a practice machine and, if the learner agrees, open it in this terminal. Raise HostError if this host
    cannot run one."""
    from jitter_workshop.flow.host_ops import practising
    from jitter_workshop.presenter.host import practice

    practising.refuse_if_no_practice(workshop.context.host)
    talk.say("", *practice.describe_machine("", talk.width), "")
    if talk.ask("Enter opens it · b back") == "":
        talk.tell(practice.machine_ended_sentence(practising.practise(practising.practice_command(plain=True))))


def tell_summary(summary: CourseSummary, talk: Talk) -> None:
    """Print the summary of the course. It begins with the curves that the learner measured. A table compares each curve
    with the nearest comparable one above it and with the first curve. Below the table are the applied changes, the open
    points, and the results of the guesses."""
    where = ", on a recording" if summary.recorded else ""
    talk.tell(f"{SUMMARY_TITLE.upper()}: {summary.done} of {summary.chapters} chapters done{where}")
    talk.say("")
    steps = summary.steps
    if steps:
        shown = words.comparable_curves(steps, len(steps) - 1)
        talk.chart([_numbered(steps[n].shown, n + 1) for n in shown])
        if len(shown) < len(steps):
            talk.tell(f"Drawn: {', '.join(str(n + 1) for n in shown)} of {len(steps)}.")
        talk.say("", *(line for _, line in words.step_table(summary, talk.width)), "")
        for number, step in enumerate(steps, 1):
            talk.tell(words.describe_step_run(step), f"{number}: ", "   ")
    else:
        talk.tell(words.NO_STEPS)
    talk.say("", *words.summary_notes(summary, talk.width))


def _numbered(shown: RunCurve, number: int) -> RunCurve:
    """Put a number before a curve's label, and return the new curve."""
    label = f"{number} {shown.label}"
    return replace(shown, label=label, curve=replace(shown.curve, label=label))
