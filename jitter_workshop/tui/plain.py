"""The whole workshop line by line: the same walk as on the screen, for any terminal, a screen reader, a slow line.

Enter always takes the next useful step. Nothing here knows what a step means: that is ``flow.walk``.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence

from jitter_workshop.errors import WaitStopped, WorkshopError
from jitter_workshop.flow.walk import Walk
from jitter_workshop.flow.workshop import Workshop
from jitter_workshop.model.course import StepName
from jitter_workshop.model.session import Prediction
from jitter_workshop.model.text import clean
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.stats.scale import nice_ns
from jitter_workshop.tui import plain_views as views
from jitter_workshop.tui.plain_input import parse_cpus, parse_time_ns
from jitter_workshop.tui.plain_run import run_plainly

_MOST_CURVES = 6
_CHART_ROWS = 14
_SLOTS: tuple[StepName, ...] = ("measure", "again")

_HELP_CHAPTER = """\
  Enter  the next useful step        b  one step back
  h  a hint                          c  the chart of this chapter
  t  the numbers as a table          o  the chart with the laptop of 2015
  m  measure anew (in a measuring step)
  w  wake a thief, or let it sleep   1-8  go to a step by its number
  p  the path, out of this chapter   r  begin this chapter anew
  q  leave the workshop (all is kept; the next start goes on here)"""


class Leave(Exception):
    """The learner leaves the workshop."""


def _read_line(prompt: str) -> str:
    """``input`` with its prompt on stdout: on a terminal Python itself would write it to stderr."""
    sys.stdout.write(prompt)
    sys.stdout.flush()
    return input()


class PlainWalk:
    """Drives a workshop with ``read`` (prompt → line; raises EOFError at the end) and ``write``."""

    def __init__(
        self,
        workshop: Workshop,
        read: Callable[[str], str] | None = None,
        write: Callable[[str], object] | None = None,
        width: int | None = None,
    ) -> None:
        self._workshop = workshop
        self._read = read or _read_line
        self._write = write or sys.stdout.write
        self._fixed_width = width
        self._told: set[str] = set()

    @property
    def _width(self) -> int:
        columns = self._fixed_width or shutil.get_terminal_size().columns
        return max(20, min(columns - 1, views.WIDEST))

    def run(self, chapter_id: str | None = None) -> int:
        """Until the learner leaves, by ``q`` or the end of input; always 0."""
        try:
            self._title()
            while True:
                if chapter_id is None:
                    chapter_id = self._home()
                self._chapter(self._workshop.walk(chapter_id))
                chapter_id = None
        except (Leave, EOFError):
            self._say("")
            self._tell("Everything is kept. The next start goes on here.")
            return 0

    # -- home ---------------------------------------------------------------------------------------------------------

    def _title(self) -> None:
        host, session = clean(self._workshop.host.name, 40), clean(self._workshop.session.name, 40)
        recorded = " (a recorded host: to look at)" if self._workshop.recorded else ""
        self._say(f"Jitter Workshop · {host}{recorded} · session {session}"[: self._width])
        self._tell(self._workshop.host_line())

    def _home(self) -> str:
        """Show the path until a chapter is chosen."""
        while True:
            self._notices()
            path = self._workshop.path()
            following = self._workshop.next_chapter()
            self._say("", *views.path_lines(path, following.chapter_id if following else None, self._width), "")
            if following is not None:
                title = clean(following.title, 40)
                self._tell(f"NEXT: {title} · {following.next_step} · about {following.minutes} min")
                menu = "Enter go on"
            else:
                self._tell("Every chapter that this host can do is done.")
                menu = "Enter leave"
            answer = self._ask(f"{menu} · 1-{len(path)} chapter · c chart of all runs · q quit > ")
            if answer == "" and following is None:
                raise Leave
            if answer == "" and following is not None:
                return following.chapter_id
            if answer.isascii() and answer.isdigit() and 1 <= int(answer[:4]) <= len(path):
                return path[int(answer[:4]) - 1].chapter_id
            if answer == "c":
                curves = self._workshop.curves()[-_MOST_CURVES:]
                self._chart((*self._workshop.published()[:1], *curves))
            else:
                self._tell(f"'{clean(answer, 20)}' is none of these.")

    def _notices(self) -> None:
        for notice in self._workshop.notices:
            if notice not in self._told:
                self._told.add(notice)
                self._tell(f"! {notice}", "", "  ")

    # -- a chapter ----------------------------------------------------------------------------------------------------

    def _chapter(self, walk: Walk) -> None:
        """One chapter until its end or until the learner goes back to the path."""
        shown: StepName | None = None
        while True:
            step = walk.current
            if step != shown:
                shown = step
                try:
                    self._show(walk, step)
                except WorkshopError as error:
                    self._refused(error)
            self._notices()
            answer = self._ask(f"{self._menu(walk, step)} > ")
            try:
                if answer == "p" or (answer == "" and not self._enter(walk, step)):
                    return
                if answer and self._command(walk, step, answer):
                    shown = None
            except WorkshopError as error:
                self._refused(error)

    def _refused(self, error: WorkshopError) -> None:
        self._tell(f"! {error.sentence()}.", "", "  ")

    def _menu(self, walk: Walk, step: StepName) -> str:
        if self._is_open(walk, step):
            return "Enter measure · ? help · q quit"
        if step == "predict" and self._can_predict(walk):
            task = walk.chapter.prediction
            if task is not None and task.kind == "mark":
                return f"p{task.percentile} = (a time such as 300 us; Enter = no guess)"
            return "your answer (a letter; Enter = no guess)"
        if step == "apply":
            return "Enter agree · cpus 2,4 = pick your own · cpus auto · ? help · q quit"
        following = [s for s in walk.steps() if s.state != "left_out"]
        position = [s.name for s in following].index(step)
        if position + 1 == len(following):
            return "Enter finish · ? help · q quit"
        return f"Enter {following[position + 1].name} · ? help · q quit"

    def _is_open(self, walk: Walk, step: StepName) -> bool:
        return step in _SLOTS and walk.run_in(step) is None

    def _can_predict(self, walk: Walk) -> bool:
        task = walk.chapter.prediction
        return task is not None and walk.run_in(task.slot) is None

    def _enter(self, walk: Walk, step: StepName) -> bool:
        """The next useful step; False when the chapter is over."""
        if self._is_open(walk, step):
            self._measure(walk, step)
            return True
        if walk.next() is not None:
            return True
        self._say("")
        self._tell(f"'{clean(walk.chapter.title, 40)}' is done. What you take along:")
        for sentence in walk.chapter.learnt:
            self._tell(sentence, "  - ", "    ")
        return False

    def _command(self, walk: Walk, step: StepName, answer: str) -> bool:
        """One typed command; True when the step should be shown again."""
        word, _, rest = answer.partition(" ")
        if answer in ("?", "help"):
            self._say(*(line[: self._width] for line in _HELP_CHAPTER.split("\n")))
        elif answer == "b":
            walk.back()
        elif answer == "h":
            hint = walk.hint()
            self._tell(hint or "There are no more hints.", "  ")
        elif answer in ("c", "o"):
            self._chart(walk.curves(published=False) if answer == "c" else self._with_laptop(walk))
        elif answer == "t":
            self._table(walk.curves())
        elif answer == "m":
            self._measure(walk, step)
        elif answer == "w":
            return self._wake(walk)
        elif answer == "r":
            walk.restart()
            return True
        elif word == "cpus":
            walk.choose_cpus(*parse_cpus(rest))
            self._say("", *views.plan_lines(walk.plan(), self._width), "")
        elif step == "predict" and self._can_predict(walk):
            # Before the numbers of steps: who types "300" here means a time and is told that it lacks a unit.
            self._predict(walk, answer)
        elif answer.isascii() and answer.isdigit():
            self._jump(walk, int(answer[:4]))
        else:
            self._tell(f"'{clean(answer, 20)}' is nothing here; ? lists what is.")
        return False

    def _jump(self, walk: Walk, number: int) -> None:
        steps = [s.name for s in walk.steps() if s.state != "left_out"]
        if 1 <= number <= len(steps):
            walk.go(steps[number - 1])
        else:
            self._tell(f"The steps are 1 to {len(steps)}.")

    def _wake(self, walk: Walk) -> bool:
        waking = walk.progress.noise is None
        if waking and not walk.offer_noise():
            self._tell("A thief is offered where the first run is quiet; this one is not.")
            return False
        walk.accept_noise(waking)
        return True

    # -- steps --------------------------------------------------------------------------------------------------------

    def _show(self, walk: Walk, step: StepName) -> None:
        width = self._width
        self._say("", *views.loop_line(walk.chapter, walk.steps(), width), "─" * width)
        self._say(*views.prose(walk.page(step), min(width, 78)), "")
        if step == "look":
            self._say(*views.fact_lines(walk.look(), width), "")
        elif step == "predict":
            self._show_prediction(walk)
        elif step in _SLOTS:
            self._show_slot(walk, step)
        elif step in ("plan", "apply"):
            self._say(*views.plan_lines(walk.plan(), width), "")
        elif step == "compare":
            self._show_comparison(walk)
        elif step == "explain" and (explanation := walk.explain()) is not None:
            first = walk.explain("measure")
            before = first if first is not None and first.run.id != explanation.run.id else None
            self._say(*views.explain_lines(explanation, width, before), "")

    def _show_prediction(self, walk: Walk) -> None:
        task = walk.chapter.prediction
        if task is None:
            return
        self._say(*views.wrap(task.question, self._width), "")
        if task.kind == "choice":
            for letter, answer in zip("abcdefghi", task.answers, strict=False):
                self._say(*views.wrap(answer.text, self._width, f"  {letter}  ", "     "))
        kept = walk.progress.prediction
        if kept is not None:
            said = nice_ns(kept.value_ns) if kept.value_ns is not None else clean(kept.choice, 40)
            self._tell(f"Your guess so far: {said}.")
        if not self._can_predict(walk):
            self._tell("It is measured already, so that a guess no longer counts.")

    def _show_slot(self, walk: Walk, step: StepName) -> None:
        if walk.run_in(step) is None:
            request = walk.request(step)
            noise = f", with {request.noise}" if request.noise else ""
            self._tell(f"To be measured: '{request.label}', {request.workload}, {request.preset}{noise}.")
            self._say("")
        else:
            self._after_run(walk, step)

    def _show_comparison(self, walk: Walk) -> None:
        view, first = walk.compare(), walk.run_in("measure")
        if view is None or first is None:
            return
        self._chart(walk.curves())
        self._say(*views.compare_lines(view, first.label, self._width), "")
        if (outcome := walk.outcome()) is not None:
            self._say(*views.wrap(f"{views.mark(outcome.near)} {outcome.text}", self._width, "", "  "), "")

    def _predict(self, walk: Walk, answer: str) -> None:
        task = walk.chapter.prediction
        if task is None:
            return
        if task.kind == "mark":
            walk.predict(Prediction(value_ns=parse_time_ns(answer)))
        else:
            index = "abcdefghi".find(answer.lower()) if len(answer) == 1 else -1
            chosen = task.answers[index].id if 0 <= index < len(task.answers) else answer
            walk.predict(Prediction(choice=chosen))
        walk.next()

    def _measure(self, walk: Walk, step: StepName) -> None:
        if step not in _SLOTS:
            self._tell("There is something to measure in the steps 'measure' and 'again'.")
            return
        if self._workshop.host.on_battery:
            self._tell("On battery: these curves will differ from those on mains.")
        self._tell("Measuring. Ctrl-C stops the run, not the workshop.")
        try:
            run = run_plainly(self._workshop, walk.request(step), self._write, self._width)
        except WaitStopped:
            self._tell("Stopped waiting. Nothing was measured.")
            return
        walk.record(step, run)
        if not run.complete:
            self._tell(f"Stopped after {len(run.blocks)} blocks. They are kept, but do not count for this chapter.")
            return
        self._after_run(walk, step)

    def _after_run(self, walk: Walk, step: StepName) -> None:
        curves = walk.curves()
        self._chart(curves)
        self._table(curves)
        task = walk.chapter.prediction
        outcome = walk.outcome()
        if outcome is not None and task is not None and task.slot == step:
            self._say("", *views.wrap(f"{views.mark(outcome.near)} {outcome.text}", self._width, "", "  "))
            for paragraph in outcome.explanation.split("\n\n"):
                self._tell(paragraph, "  ")
        if step == "measure" and (offer := walk.offer_noise()):
            self._say("", *views.wrap(f"{offer} Type w for that.", self._width))
        self._say("")

    # -- output -------------------------------------------------------------------------------------------------------

    def _with_laptop(self, walk: Walk) -> tuple[RunCurve, ...]:
        return (*self._workshop.published()[:1], *walk.curves())

    def _chart(self, curves: Sequence[RunCurve]) -> None:
        if not curves:
            self._tell("There is no curve yet.")
            return
        from jitter_workshop.tui.plain_chart import chart_lines

        self._say(*chart_lines(curves, self._width, _CHART_ROWS))

    def _table(self, curves: Sequence[RunCurve]) -> None:
        self._say(*(line[: self._width] for line in views.curve_table(curves)) if curves else ("No numbers yet.",))

    def _ask(self, prompt: str) -> str:
        answer = self._read(prompt).strip()
        if answer == "q":
            raise Leave
        return answer

    def _tell(self, text: str, indent: str = "", hanging: str | None = None) -> None:
        self._say(*views.wrap(text, self._width, indent, hanging))

    def _say(self, *lines: str) -> None:
        for line in lines:
            self._write(line + "\n")
