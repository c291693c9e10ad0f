"""Run one chapter line by line. ``plain.steps`` shows each step; ``flow.chapters.walk`` defines what the steps do."""

from __future__ import annotations

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring.curves import scale_curve, told_apart_by_clock
from jitter_workshop.flow.measuring.placement_plan import same_writes
from jitter_workshop.model.text import ID, SENTENCE, WORD, clean
from jitter_workshop.plain import class_host as of_class
from jitter_workshop.plain import hunt as hunting
from jitter_workshop.plain import own_program as of_program
from jitter_workshop.plain import proving, recalling, settings, views
from jitter_workshop.plain.help import chapter_help, tell_help
from jitter_workshop.plain.page import PlainPage
from jitter_workshop.plain.settings import NEXT_BOOT
from jitter_workshop.plain.steps import PlainStep, plain_steps
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.course import chapter as chapter_view
from jitter_workshop.presenter.course import diagnosis
from jitter_workshop.presenter.course.typed import ROLES, parse_cpus

_WORDS = {"back": "b", "hint": "h", "chart": "c", "table": "t", "once": NEXT_BOOT, "undo": "restore"}
"""Word → the command that does the same. ``once`` and ``undo`` are earlier words, which help does not show."""


class PlainChapter:
    """Run one chapter. It ends early if the learner goes back to the list of chapters."""

    def __init__(self, workshop: Workshop, walk: ChapterWalk, talk: Talk) -> None:
        self._workshop = workshop
        self._walk = walk
        self._talk = talk
        self._page = PlainPage(workshop, walk, talk)
        self._steps = plain_steps(self._page)

    def run(self) -> None:
        """Show steps and carry out commands until the chapter ends. If a hidden noise still runs then, end it. Raise
        Leave or EOFError if the learner leaves the workshop."""
        try:
            self._run()
        finally:
            self._talk.idle = None
            self._walk.by_hand.leave()
            hunting.end_hunt(self._workshop, self._talk)

    def _run(self) -> None:
        walk, talk, by_hand = self._walk, self._talk, self._page.by_hand
        try:
            talk.notices([walk.rebooted()])
        except WorkshopError as error:
            talk.refused(error)
        shown: PlainStep | None = None
        told = False
        while True:
            step = self._steps[walk.current]
            if anew := step is not shown:
                recalling.ask_recall_questions(self._workshop, walk, talk)
                shown = step
                try:
                    self._show(step)
                except WorkshopError as error:
                    talk.refused(error)
            talk.notices(self._workshop.context.notices)
            told = hunting.tell_ended(self._workshop, walk, talk, told or anew)
            of_class.tell_class_changes(self._workshop, talk)
            if not walk.by_hand.opened:
                by_hand.view = None
            talk.idle = step.idle
            answer = talk.ask(step.menu())
            try:
                if self._out(step, answer) or (answer == "" and not self._enter(step)):
                    return
                if answer and self._command(step, answer):
                    shown = None
            except WorkshopError as error:
                talk.refused(error)

    def _show(self, step: PlainStep) -> None:
        walk, talk = self._walk, self._talk
        talk.say("", *views.loop_line(walk.chapter, walk.steps(), talk.width), "─" * talk.width)
        self._tell_where()
        if skipped := diagnosis.skipped_sentence(walk, step.name):
            talk.tell(skipped)
        hunting.tell_hidden_noise(self._workshop, walk, talk, step.remembers_hunts)
        talk.page(walk.page(step.name), walk.drawn_cpus(step.name))
        step.show()

    def _tell_where(self) -> None:
        """Print why the page is about a recording, or why the chapter cannot be done here. Print nothing if this host
        can do the chapter."""
        host, reason = self._walk.host, clean(self._walk.host.reason, SENTENCE)
        if not reason:
            return
        if not host.rehearsed:
            self._talk.tell(f"NOT ON THIS HOST: {reason}.")
        else:
            where = ", because --root names a recorded host"
            if host.recording:
                unfit = "the given recording lacks something that this chapter needs"
                why = f"{chapter_view.NOT_HERE} {reason}"
                where = f" ({clean(host.recording, ID)}): {unfit if self._workshop.context.recorded else why}"
            self._talk.tell(f"ON A RECORDING{where}. Nothing is measured or written.")
        self._talk.say("")

    # -- commands -----------------------------------------------------------------------------------------------------

    def _out(self, step: PlainStep, answer: str) -> bool:
        """Return True if the learner goes back to the path, the list of chapters. ``home`` and ``path`` have this
        meaning at each step. At a step that can start a proof, ``p`` starts the proof. At all other steps, ``p`` means
        the path."""
        return answer in ("home", "path") or (answer == "p" and not step.offers_proof)

    def _enter(self, step: PlainStep) -> bool:
        """Do the step's own work for Enter, or go on. Return False if the chapter is over."""
        walk, talk = self._walk, self._talk
        if step.pressed_enter() or walk.next() is not None:
            return True
        talk.say("")
        talk.tell(f"'{clean(walk.chapter.title, ID)}' is done{settings.earned(walk)}. What you have learnt:")
        for sentence in walk.chapter.learnt:
            talk.tell(sentence, "  - ", "    ")
        return False

    def _command(self, step: PlainStep, answer: str) -> bool:
        """Carry out the command that the learner typed. Return True if the caller should show the step again."""
        walk, talk = self._walk, self._talk
        answer = _WORDS.get(answer, answer)
        word, _, rest = answer.partition(" ")
        if step.heard_number(answer) or of_program.obey_program_command(self._workshop, walk, talk, answer):
            pass
        elif (reply := step.heard(answer)) != "not known":
            return reply == "show again"
        elif answer in ("?", "help"):
            help_here = chapter_help(walk, not proving.why_no_proof(self._workshop, walk))
            tell_help(talk, (*help_here, *of_class.class_commands(self._workshop)))
        elif of_class.obey_class_command(self._workshop, talk, answer):
            pass
        elif answer == "b":
            walk.back()
        elif answer == "h":
            hint = chapter_view.HINTS_OVER if walk.hints_are_over else walk.hint()
            talk.tell(hint or "There are no more hints.", "  ")
        elif answer in ("c", "o"):
            own = walk.runs.curves()
            published = scale_curve() if answer == "o" else ()
            talk.chart(told_apart_by_clock((*published, *own)) if published else own)
        elif answer == "t":
            talk.table(walk.runs.curves())
        elif answer == "m":
            step.measure()
        elif hunting.obey_hunt_command(self._workshop, walk, talk, answer):
            pass
        elif answer == "w":
            return self._wake()
        elif answer in ("r", "anew"):
            walk.restart()
            return True
        elif self._heard_by_hand(answer):
            pass
        elif answer == "restore":
            if not settings.restore_chapter(self._workshop, walk, talk):
                return False
            self._page.shown = None
            return step.shows_plan
        elif word == "cpus":
            chosen = parse_cpus(rest)
            walk.cpus.choose(*map(chosen.get, ROLES))
            talk.say("", *self._page.plan(), "")
        elif step.heard_guess(answer):
            pass
        elif answer.isascii() and answer.isdigit():
            self._jump(step, int(answer[:4]))
        else:
            talk.tell(f"Unknown command '{clean(answer, WORD)}'; ? for help.")
        return False

    def _heard_by_hand(self, answer: str) -> bool:
        """Carry out a command about the learner's writes by hand. Return False for other commands, and for a
        ``restore`` that the agent (root's process) has to carry out."""
        page = self._page
        if page.by_hand.heard(answer):
            if page.by_hand.view is None:
                plan = self._walk.plan()
                page.shown = plan if not plan.changes or same_writes(plan, page.shown) else None
            return True
        return answer == "restore" and page.by_hand.restore()

    def _jump(self, step: PlainStep, number: int) -> None:
        steps = [s.name for s in self._walk.steps() if s.state != "left_out"]
        if 1 <= number <= len(steps):
            wanted = steps[number - 1]
            if not step.holds_before(wanted):
                self._walk.go(wanted)
        else:
            self._talk.tell(f"The steps are 1 to {len(steps)}.")

    def _wake(self) -> bool:
        walk = self._walk
        if not walk.noise.can_switch:
            self._talk.tell("A noise is offered only after a quiet first run of the ring.")
            return False
        walk.noise.switch()
        return True
