"""Run one chapter line by line. ``flow.chapters.walk`` defines what the steps do."""

from __future__ import annotations

from jitter_workshop.course.masks import judge
from jitter_workshop.errors import WaitStopped, WorkshopError
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring.curves import published_curves
from jitter_workshop.flow.measuring.placement_plan import same_writes
from jitter_workshop.model.course import SLOTS, GuessTask, StepName
from jitter_workshop.model.effect import Relation
from jitter_workshop.model.session import Guess
from jitter_workshop.model.text import ID, LABEL, LINE, SENTENCE, WORD, clean
from jitter_workshop.model.walk import PlanView
from jitter_workshop.plain import answering, diagnosing, proving, recalling, settings, views
from jitter_workshop.plain import class_host as of_class
from jitter_workshop.plain import hunt as hunting
from jitter_workshop.plain import own_program as of_program
from jitter_workshop.plain.by_hand import PlainByHand, PlainCommands
from jitter_workshop.plain.help import chapter_help, tell_help
from jitter_workshop.plain.run import run_plainly
from jitter_workshop.plain.settings import NEXT_BOOT
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.course import chapter as chapter_view
from jitter_workshop.presenter.course import diagnosis, masks
from jitter_workshop.presenter.course.path import mark
from jitter_workshop.presenter.course.typed import ROLES, parse_cpus, parse_mask, parse_time_ns
from jitter_workshop.presenter.host import plan as plan_view
from jitter_workshop.presenter.host.plan import PLAN_IS_ANOTHER
from jitter_workshop.presenter.host.status import facts
from jitter_workshop.presenter.runs import curves, effect
from jitter_workshop.presenter.runs.causes import READING, offered
from jitter_workshop.presenter.runs.run import ON_BATTERY, STOPPED_WAITING, stopped
from jitter_workshop.presenter.text.cpu_boxes import boxes, of_settings
from jitter_workshop.presenter.text.lines import Lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.curve import value_at
from jitter_workshop.stats.effect import counted
from jitter_workshop.stats.scale import nice_ns

_WORDS = {"back": "b", "hint": "h", "chart": "c", "table": "t", "once": NEXT_BOOT}
"""Word → the command that does the same. ``once`` is an earlier word, which help does not show."""


class PlainChapter:
    """Run one chapter. It ends early if the learner goes back to the list of chapters."""

    def __init__(self, workshop: Workshop, walk: ChapterWalk, talk: Talk) -> None:
        self._workshop = workshop
        self._walk = walk
        self._talk = talk
        self._shown: PlanView | None = None
        self._by_hand = PlainByHand(workshop, walk, talk)
        self._commands: PlainCommands | None = None

    def run(self) -> None:
        """Show steps and carry out commands until the chapter ends. If a hidden noise still runs then, end it. Raise
        Leave or EOFError if the learner leaves the workshop."""
        try:
            self._run()
        finally:
            self._talk.idle = None
            self._walk.by_hand.leave()
            hunting.end(self._workshop, self._talk)

    def _run(self) -> None:
        walk, talk = self._walk, self._talk
        try:
            talk.notices([walk.rebooted()])
        except WorkshopError as error:
            talk.refused(error)
        shown: StepName | None = None
        told = False
        while True:
            step = walk.current
            if anew := step != shown:
                recalling.ask(self._workshop, walk, talk)
                shown = step
                try:
                    self._show(step)
                except WorkshopError as error:
                    talk.refused(error)
            talk.notices(self._workshop.context.notices)
            told = hunting.tell_ended(self._workshop, walk, talk, told or anew)
            of_class.tell(self._workshop, talk)
            if not walk.by_hand.opened:
                self._by_hand.view = None
            if step == "explain" and self._commands is not None:
                talk.idle = self._commands.changed
            else:
                talk.idle = self._by_hand.changed if self._by_hand.view is not None else None
            answer = talk.ask(self._menu(step))
            try:
                if self._out(step, answer) or (answer == "" and not self._enter(step)):
                    return
                if answer and self._command(step, answer):
                    shown = None
            except WorkshopError as error:
                talk.refused(error)

    def _out(self, step: StepName, answer: str) -> bool:
        """Return True if the learner goes back to the path, the list of chapters. ``home`` and ``path`` have this
        meaning at each step. At a step that can start a proof, ``p`` starts the proof. At all other steps, ``p`` means
        the path."""
        return answer in ("home", "path") or (answer == "p" and not proving.offered(self._workshop, self._walk, step))

    # -- commands -----------------------------------------------------------------------------------------------------

    def _question(self, step: StepName) -> GuessTask | None:
        """Return the question of the step ``predict``. Return None at other steps, and after the run that decides the
        question."""
        task = self._walk.chapter.prediction
        return task if step == "predict" and task is not None and self._walk.runs.run_in(task.slot) is None else None

    def _menu(self, step: StepName) -> str:
        walk = self._walk
        proof = proving.menu(self._workshop, walk, step)
        leave = "b back · home · ? help · q quit"
        rest = f"{of_program.menu(walk, step)}{proof}{hunting.menu(self._workshop, walk)}{leave}"
        if of_program.observes(walk, step):
            return f"Enter observe · {rest}"
        if walk.measuring.unmeasured(step):
            return f"Enter {'hide a noise' if hunting.to_hide(self._workshop, walk, step) else 'measure'} · {rest}"
        if (task := self._question(step)) is not None:
            if task.kind == "mark":
                return f"p{task.percentile} = a time such as 300 us · Enter no guess · {answering.BESIDES}"
            return answering.menu(len(task.answers), "no guess")
        if diagnosing.asks(walk, step):
            return diagnosing.menu(walk)
        if step == "apply" and self._by_hand.view is not None:
            return self._by_hand.menu()
        if step == "apply" and walk.sets:
            if walk.host.awaits_reboot:
                return f"Enter go on without a reboot · undo · {rest}"
            enter = "Enter skip change" if settings.barred(self._workshop, walk) else "Enter apply"
            enter = "Enter go on" if self._by_hand.taken else enter
            undo = "undo · " if walk.host.applied or walk.by_hand.owed else ""
            return f"{enter} · {self._by_hand.offer()}{self._boots()}{undo}{rest}"
        if step == "apply" and walk.places:
            return f"Enter agree · cpus 2,4 = choose CPUs · cpus auto · {rest}"
        following = [s.name for s in walk.steps() if s.state != "left_out"]
        position = following.index(step)
        if position + 1 == len(following):
            return f"Enter finish · {rest}"
        return f"Enter {following[position + 1]} · {rest}"

    def _boots(self) -> str:
        """Return the menu's entry that changes how boot parameters are set: for every boot, or for the next boot alone.
        Return "" if this host has only one of these ways."""
        way = self._walk.host.boots.way()
        if way is None or (way.why_not and not way.root_first):
            return ""
        return "every = for every boot · " if way.once else f"{NEXT_BOOT} = for the next boot only · "

    def _enter(self, step: StepName) -> bool:
        """Do what Enter does at this step: measure, apply, or go on. Return False if the chapter is over."""
        walk, talk = self._walk, self._talk
        if of_program.observes(walk, step):
            of_program.observe(self._workshop, walk, talk)
            return True
        if walk.measuring.unmeasured(step):
            self._measure(step)
            return True
        if step == "apply" and self._by_hand.view is not None:
            self._by_hand.look()
            return True
        if self._to_agree_anew(step):
            return True
        applies = step == "apply" and walk.sets and not self._by_hand.taken
        if applies and not settings.apply_chapter(self._workshop, walk, talk, self._shown):
            return True
        if walk.next() is not None:
            return True
        talk.say("")
        talk.tell(f"'{clean(walk.chapter.title, ID)}' is done{settings.earned(walk)}. What you have learnt:")
        for sentence in walk.chapter.learnt:
            talk.tell(sentence, "  - ", "    ")
        return False

    def _command(self, step: StepName, answer: str) -> bool:
        """Carry out the command that the learner typed. Return True if the caller should show the step again."""
        walk, talk = self._walk, self._talk
        answer = _WORDS.get(answer, answer)
        word, _, rest = answer.partition(" ")
        task = self._question(step)
        if task is not None and task.kind == "choice" and answering.place(answer, len(task.answers)) is not None:
            self._predict(task, answer)
        elif diagnosing.heard(self._workshop, walk, talk, step, answer) or of_program.heard(
            self._workshop, walk, talk, step, answer
        ):
            pass
        elif answer in ("?", "help"):
            help_here = chapter_help(walk, not proving.why_not(self._workshop, walk))
            tell_help(talk, (*help_here, *of_class.words(self._workshop)))
        elif of_class.heard(self._workshop, talk, answer):
            pass
        elif answer == "b":
            walk.back()
        elif answer == "h":
            hint = chapter_view.HINTS_OVER if walk.hints_are_over else walk.hint()
            talk.tell(hint or "There are no more hints.", "  ")
        elif answer in ("c", "o"):
            talk.chart((*(published_curves()[:1] if answer == "o" else ()), *walk.runs.curves()))
        elif answer == "t":
            talk.table(walk.runs.curves())
        elif answer == "i" and step == "compare" and not walk.hunts:
            self._with_imported()
        elif answer == "m":
            self._measure(step)
        elif hunting.heard(self._workshop, walk, talk, answer):
            pass
        elif answer == "p":
            if of_class.have_turn(self._workshop, talk):
                proving.prove(self._workshop, walk, talk)
        elif answer == "w":
            return self._wake()
        elif answer in ("r", "anew"):
            walk.restart()
            return True
        elif self._by_hand.heard(answer):
            if self._by_hand.view is None:
                plan = walk.plan()
                self._shown = plan if not plan.changes or same_writes(plan, self._shown) else None
        elif answer == "more" and step == "explain" and self._commands is not None:
            self._commands.more()
        elif answer == "hand" and step == "apply" and walk.sets:
            self._by_hand.begin(self._shown)
        elif answer == "undo" and self._by_hand.restore():
            pass
        elif answer == "undo":
            settings.restore_chapter(walk, talk)
            self._shown = None
            return step == "apply"
        elif answer in ("every", NEXT_BOOT) and step == "apply":
            return settings.choose_boots(walk, talk, answer)
        elif word == "mask" and step == "apply" and self._heard_mask(rest):
            pass
        elif word == "cpus":
            chosen = parse_cpus(rest)
            walk.cpus.choose(*map(chosen.get, ROLES))
            talk.say("", *self._plan(), "")
        elif task is not None and task.kind == "choice" and answer not in {one.id for one in task.answers}:
            talk.tell(answering.no_such(len(task.answers)))
        elif task is not None:
            # At a mark "300" is a guess, and the learner is asked for the unit.
            self._predict(task, answer)
        elif answer.isascii() and answer.isdigit():
            self._jump(int(answer[:4]))
        else:
            talk.tell(f"Unknown command '{clean(answer, WORD)}'; ? for help.")
        return False

    def _jump(self, number: int) -> None:
        steps = [s.name for s in self._walk.steps() if s.state != "left_out"]
        if 1 <= number <= len(steps):
            wanted = steps[number - 1]
            if wanted != "again" or not self._to_agree_anew(self._walk.current):
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

    # -- steps --------------------------------------------------------------------------------------------------------

    def _show(self, step: StepName) -> None:
        walk, talk = self._walk, self._talk
        width = talk.width
        talk.say("", *views.loop_line(walk.chapter, walk.steps(), width), "─" * width)
        self._tell_where()
        if skipped := diagnosis.skipped(walk, step):
            talk.tell(skipped)
        hunting.tell_standing(self._workshop, walk, talk)
        talk.page(walk.page(step), walk.drawn_cpus(step))
        of_program.show(self._workshop, walk, talk, step)
        if step == "look":
            title = "ON THE RECORDING" if walk.host.rehearsed else "ON THIS HOST"
            talk.say(*facts(walk.host.look(), width, title), "")
        elif step == "predict":
            self._show_guess()
        elif step in SLOTS:
            self._show_slot(step)
        elif step == "diagnose":
            diagnosing.show(self._workshop, walk, talk)
        elif step == "apply":
            self._show_mask()
            talk.say(*self._plan(), "")
            if walk.sets and not walk.host.awaits_reboot:
                settings.tell_rights(self._workshop, walk, talk)
        elif step == "compare":
            self._show_comparison()
        elif step == "explain":
            self._show_evidence()

    def _to_agree_anew(self, step: StepName) -> bool:
        """Show the plan, if Enter would apply it and the learner has not seen it in this form. Return True if the plan
        was shown."""
        if step != "apply" or not settings.unseen(self._walk, self._shown):
            return False
        self._talk.say("", *self._plan(), "")
        self._talk.tell(PLAN_IS_ANOTHER)
        return True

    def _plan(self) -> Lines:
        """Return the lines of the plan. If the learner presses Enter after this, the learner agrees to this plan."""
        self._shown = self._walk.plan()
        view, width, planned = self._walk.cpus.view(), self._talk.width, self._shown.changes
        if self._walk.chapter.changes == "tunables":
            drawn = of_settings(view, width, planned, ascii_only=True)
        else:
            drawn = boxes(view, width, ascii_only=True)
        return [*([*drawn, Text()] if drawn else []), *plan_view.line_by_line(self._shown, self._talk.width)]

    def _show_guess(self) -> None:
        walk, talk = self._walk, self._talk
        task = walk.chapter.prediction
        if task is None:
            return
        talk.tell(task.question)
        talk.say("")
        if task.kind == "choice":
            for number, answer in enumerate(task.answers, 1):
                talk.tell(answer.text, f"  {number}  ", "     ")
        kept = walk.progress.prediction
        if kept is not None:
            chosen = next((a.text for a in task.answers if a.id == kept.choice), kept.choice)
            said = nice_ns(kept.value_ns) if kept.value_ns is not None else clean(chosen, LINE)
            talk.tell(f"Your guess so far: {said}.")
        if walk.runs.run_in(task.slot) is not None:
            talk.tell("The answer is measured already, so a guess no longer counts.")
        elif walk.host.rehearsed and task.slot is not None:
            talk.tell(chapter_view.decided_on_recording(task, walk.guess.decided_by_recording))
        elif (last := walk.guess.last_curve() if task.kind == "mark" else None) is not None:
            percentile = task.percentile or "99.9"
            value = nice_ns(value_at(last.curve, float(percentile)))
            talk.tell(f"'{clean(last.label, LABEL)}' had {value} at p{percentile}. c shows the curves.")

    def _show_slot(self, step: StepName) -> None:
        walk, talk = self._walk, self._talk
        if walk.runs.run_in(step) is not None:
            self._after_run(step)
        elif walk.measuring.measures(step):
            request = walk.measuring.request(step)
            talk.tell(views.to_be_measured(request, self._workshop.context.runs.every(), walk.noise.company(request)))
            if warning := walk.measuring.warning(step):
                talk.tell(f"! {warning}", "", "  ")
            talk.say("")
        elif (measurement := walk.chapter.measurement(step)) is not None:
            there = f"'{measurement.label}', {measurement.workload}, {measurement.preset}"
            seen = walk.runs.known(step)
            kept = seen is not None or bool(walk.runs.recorded_curves(step)[0])
            known = "" if kept or not walk.host.rehearsed else " The course has no such run from another machine."
            talk.tell(f"Nothing is measured here. On a host that can do this chapter, the run is: {there}.{known}")
            if seen is not None:
                talk.say("", *effect.measured(seen, talk.width, walk.runs.shows, self._asked))
            self._tell_counted(step)
            self._tell_outcome_of(step)
            talk.say("")

    @property
    def _asked(self) -> str | None:
        """Return the percentile whose value the learner guesses; None if the guess is not about a percentile."""
        task = self._walk.chapter.prediction
        return task.percentile if task is not None else None

    def _show_comparison(self) -> None:
        walk, talk = self._walk, self._talk
        if walk.host.rehearsed:
            self._compare_recordings()
            return
        view, first = walk.comparison.view(), walk.runs.run_in("measure")
        if view is None or first is None or hunting.tell_cured(walk, talk):
            return
        talk.chart(walk.runs.curves())
        second = walk.runs.run_in("again")
        if view.effects is not None and second is not None:
            seen = walk.runs.seen(first), walk.runs.seen(second)
            proof = proving.leading(self._workshop, walk)
            talk.say(*effect.compared(view.effects, seen, view.relation, talk.width, proof).lines, "")
            if view.relation == "alike" and (why := effect.against_each_other(seen)):
                talk.tell(why)
                talk.say("")
            found = counted(*seen, walk.runs.shows)
            causes = effect.rows_of(
                view.effects.causes, named=effect.named_causes(view.effects, walk.diagnosis.named())
            )
            origin = effect.origin_of(seen[0])
            undecided = proving.undecided(self._workshop, walk)
            told = effect.counts(found, talk.width, origin, view.relation, causes, undecided=undecided, runs=seen)
            talk.say(*told, "")
            if view.relation == "changed":
                talk.tell(effect.RULE)
                talk.say("")
            if core := chapter_view.core(walk, talk.width):
                talk.say(*core, "")
        talk.say(*wrap(view.headline, talk.width), "")
        talk.say(*chapter_view.comparison(view, talk.width), "")
        proving.tell_newest(self._workshop, walk, view, talk)
        if walk.guess.outcome() is not None:
            self._tell_outcome(explained=False)
            talk.say("")

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

    def _compare_recordings(self) -> None:
        """Compare the chapter's two recordings of another machine, made before and after the change. Their settings,
        counts and curves are compared. Then print the outcome of the guess, or else an explanation of each answer."""
        walk, talk, chapter = self._walk, self._talk, self._walk.chapter
        if changes := walk.host.compared():
            talk.tell(
                f"The settings before the change (recording '{chapter.recording}') and after it "
                f"('{chapter.recording_after}'):"
            )
            talk.say("", *chapter_view.settings_compared(changes, talk.width), "")
        shown, source = walk.runs.recorded_curves("compare")
        if shown:
            talk.chart(shown)
            talk.table(shown)
            talk.tell(f"Nothing was measured here. {curves.made_elsewhere(shown, source)}")
        else:
            talk.tell("Nothing was measured, so there are no curves to compare.")
        self._tell_counted("compare")
        if (both := walk.runs.before_and_after()) is not None:
            effects, found = walk.comparison.recorded_effects(), counted(*both, walk.runs.shows)
            relation: Relation = "alike" if walk.runs.repeats else "changed"
            talk.say("", *effect.compared(effects, both, relation, talk.width).lines)
            causes = effect.rows_of(effects.causes)
            talk.say("", *effect.counts(found, talk.width, effect.origin_of(both[0]), relation, causes))
        talk.say("")
        task = chapter.prediction
        if walk.guess.outcome() is not None:
            self._tell_outcome(explained=False)
            talk.say("")
        elif task is not None and task.slot is not None:
            talk.say(*chapter_view.answers_explained(task, walk.progress.prediction, talk.width), "")

    def _show_mask(self) -> None:
        """Show the task to write a mask of CPUs, if the lesson has such a task."""
        if (task := self._walk.chapter.mask) is not None:
            self._talk.say(*masks.task(task, 1, 1, self._talk.width))
            self._talk.tell(masks.LINE_BY_LINE)
            self._talk.say("")

    def _heard_mask(self, typed: str) -> bool:
        """Judge a mask that the learner typed, and print the result. If nothing was typed, print the task again. Return
        False if the chapter has no such task. Raise UsageError if the typed text is not a mask."""
        task = self._walk.chapter.mask
        if task is None:
            return False
        if not typed:
            self._show_mask()
            return True
        judged = judge(task.wanted, parse_mask(typed))
        self._talk.say("", *masks.judged(task, judged, self._talk.width), "")
        return True

    def _tell_counted(self, step: StepName) -> None:
        """Print the name of the emulated machine that recorded the counts of a step. Print nothing if the step shows no
        such counts."""
        if source := self._walk.runs.counted_elsewhere(step):
            self._talk.tell(curves.counted_elsewhere(source))

    def _show_evidence(self) -> None:
        walk, talk = self._walk, self._talk
        commands = self._commands = PlainCommands(walk, talk)
        talk.say(*chapter_view.explained(walk, commands.look(), (), talk.width, commands.fold), "")
        if walk.runs.explain() is not None:
            talk.tell(offered(walk.chapter.evidence, walk.hunts or walk.runs.traced_run() is not None))

    def _predict(self, task: GuessTask, answer: str) -> None:
        walk = self._walk
        if task.kind == "mark":
            walk.guess.predict(Guess(value_ns=parse_time_ns(answer)))
        else:
            place = answering.place(answer, len(task.answers))
            walk.guess.predict(Guess(choice=task.answers[place].id if place is not None else answer))
        if task.slot is None:
            self._tell_outcome()
        walk.next()

    def _tell_outcome_of(self, step: StepName) -> None:
        """Print the outcome of the guess, if the run of ``step`` decides it."""
        task = self._walk.chapter.prediction
        if task is not None and task.slot == step:
            self._tell_outcome()

    def _tell_outcome(self, *, explained: bool = True) -> None:
        """Print whether the guess was near; nothing if the outcome is not known. ``explained``: True to print the
        explanation of the answer, too."""
        outcome = self._walk.guess.outcome()
        if outcome is None:
            return
        self._talk.say("")
        self._talk.tell(f"{mark(outcome.near)} {outcome.text}", "", "  ")
        for paragraph in outcome.explanation.split("\n\n") if explained else ():
            self._talk.tell(paragraph, "  ")

    def _measure(self, step: StepName) -> None:
        walk, talk = self._walk, self._talk
        if walk.host.rehearsed:
            talk.tell(f"Nothing can be measured in this chapter: {clean(walk.host.reason, SENTENCE)}.")
            return
        if not walk.measuring.measures(step):
            talk.tell("You can measure in the steps 'measure' and 'again'.")
            return
        if not of_class.have_turn(self._workshop, talk):
            return
        if hunting.to_hide(self._workshop, walk, step) and not hunting.start(self._workshop, walk, talk):
            return
        if self._workshop.context.host.on_battery:
            talk.tell(ON_BATTERY)
        try:
            run = run_plainly(self._workshop, walk.measuring.request(step), talk)
        except WaitStopped:
            talk.tell(STOPPED_WAITING)
            return
        walk.record(step, run)
        if walk.runs.unread:
            # Before the result is shown: from its trace a run has the same disturbers everywhere.
            talk.tell(READING)
            walk.runs.read_figures()
        if not run.complete:
            talk.tell(stopped(run))
            return
        self._after_run(step)

    def _after_run(self, step: StepName) -> None:
        walk, talk = self._walk, self._talk
        curves = walk.runs.curves()
        talk.chart(curves)
        talk.table(curves)
        if (run := walk.runs.run_in(step)) is not None:
            talk.say("", *effect.measured(walk.runs.seen(run), talk.width, walk.runs.shows, self._asked))
            if walk.runs.unshown:
                talk.tell(walk.runs.unshown)
        self._tell_outcome_of(step)
        if step == "measure" and (offer := walk.noise.offer()):
            talk.say("")
            talk.tell(f"{offer} Type w for that.")
        talk.say("")

    def _with_imported(self) -> None:
        known = self._workshop.context.runs.imported()
        if known:
            self._talk.chart((*curves.newest_imported(known), *self._walk.runs.curves()))
        self._talk.tell(curves.imported_said(known, drawn=True))
