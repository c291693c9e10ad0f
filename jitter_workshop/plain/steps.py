"""Define a class for each step of a chapter, line by line: what the step shows, what Enter does at it, and its
commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from jitter_workshop.course.masks import judge_mask
from jitter_workshop.errors import WaitStopped, WorkshopError
from jitter_workshop.flow.chapters.kept_settings import hinders_lesson, kept_settings
from jitter_workshop.model.course import CONTROL, SLOTS, GuessTask, StepName
from jitter_workshop.model.session import Guess
from jitter_workshop.model.text import LABEL, LINE, SENTENCE, clean, cleaned_sentence
from jitter_workshop.plain import answering, diagnosing, proving, settings, views
from jitter_workshop.plain import class_host as of_class
from jitter_workshop.plain import hunt as hunting
from jitter_workshop.plain import own_program as of_program
from jitter_workshop.plain.by_hand import PlainCommands
from jitter_workshop.plain.page import PlainPage
from jitter_workshop.plain.run import run_plainly
from jitter_workshop.plain.settings import NEXT_BOOT
from jitter_workshop.presenter.course import chapter as chapter_view
from jitter_workshop.presenter.course import masks, next_step
from jitter_workshop.presenter.course.kept_settings import kept_told
from jitter_workshop.presenter.course.loads import told_of_loads
from jitter_workshop.presenter.course.proof_of_isolation import said_of_proof
from jitter_workshop.presenter.course.typed import parse_mask, parse_time_ns
from jitter_workshop.presenter.host.plan import PLAN_IS_ANOTHER, enter_on_plan
from jitter_workshop.presenter.host.status import fact_lines
from jitter_workshop.presenter.runs import curves, effect, effect_table, one_run
from jitter_workshop.presenter.runs.causes import READING, causes_offer
from jitter_workshop.presenter.runs.run import (
    ON_BATTERY,
    STOPPED_WAITING,
    control_run_sentence,
    stopped,
    write_to_be_shown,
)
from jitter_workshop.presenter.text.lines import Lines, wrap
from jitter_workshop.stats.curve import curve_value_at
from jitter_workshop.stats.effect import chapter_counts, count_effects
from jitter_workshop.stats.figures import KnownRun
from jitter_workshop.stats.scale import nice_ns

Reply = Literal["not known", "done", "show again"]
"""The outcome of a command that was typed at a step.

- not known: the step has no such command.
- done: the command was carried out.
- show again: the command was carried out, and the step has to be shown again.
"""


class PlainStep:
    """Define the default behaviour of a step: it shows no figures, Enter goes on, and the step has no commands of its
    own. Each step of a chapter is a subclass. ``name``: the step's name."""

    shows_plan = False
    """True if the step shows the plan of a change, and can make the change."""
    remembers_hunts = False
    """True if the step prints how earlier hunts ended."""
    offers_causes = False
    """True if the menu offers the causes even before the first run."""

    def __init__(self, page: PlainPage, name: StepName) -> None:
        self.page = page
        self.workshop = page.workshop
        self.walk = page.walk
        self.talk = page.talk
        self.name = name

    def show(self) -> None:
        """Print the step's figures. The lesson's page stands above them."""

    # -- the prompt --------------------------------------------------------------------------------------------------

    def menu(self) -> str:
        """Return the prompt: what Enter does, then the most important commands."""
        following = [s.name for s in self.walk.steps() if s.state != "left_out"]
        position = following.index(self.name)
        if position + 1 == len(following):
            return f"Enter finish · {self.rest}"
        name = following[position + 1]
        # At the step itself, "apply" is what Enter does to the host.
        return f"Enter {'see the plan' if name == 'apply' else name} · {self.rest}"

    @property
    def rest(self) -> str:
        """Return the prompt without the key Enter."""
        hunt = hunting.hunt_menu(self.workshop, self.walk, self.offers_causes)
        return f"{self.entries()}{hunt}b back · home · ? help · q quit"

    def entries(self) -> str:
        """Return the entries of the prompt that this step alone has, with a separator at the end; "" if there are
        none."""
        return ""

    @property
    def idle(self) -> Callable[[], Lines] | None:
        """Return the function to call each second while the prompt waits: it returns lines about what has changed.
        Return None if there is nothing to watch."""
        by_hand = self.page.by_hand
        return by_hand.changed if by_hand.view is not None else None

    # -- what the learner types --------------------------------------------------------------------------------------

    def pressed_enter(self) -> bool:
        """Do the step's own work for Enter. Return False if Enter now goes on to the next step."""
        return False

    def holds_before(self, step: StepName) -> bool:
        """Return True if the learner has to agree to something new before going from here to ``step``. If so,
        print the text to agree to."""
        return False

    @property
    def offers_proof(self) -> bool:
        """Return True if the command ``p`` starts or shows a proof."""
        return False

    def heard_number(self, answer: str) -> bool:
        """Take the number of an answer, before all commands are tried. Return False if the step asks nothing, or if
        ``answer`` is no such number."""
        return False

    def heard(self, answer: str) -> Reply:
        """Carry out a command that this step alone has. Raise WorkshopError if the command fails."""
        return "not known"

    def heard_guess(self, answer: str) -> bool:
        """Take a text that is no command as the learner's guess. Return False if the step asks for no guess. Raise
        UsageError if the text cannot be a guess."""
        return False

    def measure(self) -> None:
        """Make the step's run, and print its result. At a step without a run, print where one can measure. Raise
        WorkshopError if the measurement gives no run."""
        if self.walk.host.rehearsed:
            reason = clean(self.walk.host.reason, SENTENCE)
            self.talk.tell(f"Nothing can be measured in this chapter: {reason}.")
        else:
            self.talk.tell("You can measure in the steps 'measure' and 'again'.")


class PlainLook(PlainStep):
    """Show the checks of this host that matter to the chapter."""

    remembers_hunts = True

    def show(self) -> None:
        of_program.show_choices(self.walk, self.talk)
        title = "ON THE RECORDING" if self.walk.host.rehearsed else "ON THIS HOST"
        self.talk.say(*fact_lines(self.walk.host.look(), self.talk.width, title), "")
        if (kept := hinders_lesson(self.workshop, self.walk)) is not None:
            self.talk.tell(kept_told(kept, "restore"))

    def entries(self) -> str:
        return of_program.menu_of_choices(self.walk)


class PlainPredict(PlainStep):
    """Ask the chapter's question, and take the learner's guess."""

    def show(self) -> None:
        walk, talk = self.walk, self.talk
        task = walk.chapter.prediction
        if task is None:
            return
        talk.tell(task.question)
        talk.say("")
        known, kept = walk.guess.answers(), walk.progress.prediction
        if task.kind == "choice" and known is not None:
            yours = kept.choice if kept is not None else None
            talk.say(*chapter_view.measured_answer_lines(task, yours, known, talk.width))
        elif task.kind == "choice":
            for number, answer in enumerate(task.answers, 1):
                talk.tell(answer.text, f"  {number}  ", "     ")
        if kept is not None and known is None:
            chosen = next((a.text for a in task.answers if a.id == kept.choice), kept.choice)
            said = nice_ns(kept.value_ns) if kept.value_ns is not None else clean(chosen, LINE)
            talk.tell(f"Your guess so far: {said}.")
        if walk.guess.measured:
            talk.tell("The answer is measured already, so a guess no longer counts.")
        elif walk.host.rehearsed and task.slot is not None:
            talk.tell(chapter_view.decided_on_recording(task, walk.guess.decided_by_recording, walk.host.recorded))
        elif (last := walk.guess.last_curve() if task.kind == "mark" else None) is not None:
            percentile = task.percentile or "99.9"
            value = nice_ns(curve_value_at(last.curve, float(percentile)))
            talk.tell(f"'{clean(last.label, LABEL)}' had {value} at p{percentile}. c shows the curves.")

    @property
    def _question(self) -> GuessTask | None:
        """Return the chapter's question. Return None after the run that decides the question."""
        task = self.walk.chapter.prediction
        return task if task is not None and not self.walk.guess.measured else None

    def menu(self) -> str:
        task = self._question
        if task is None:
            return super().menu()
        if task.kind == "mark":
            return f"p{task.percentile} = a time such as 300 us · Enter no guess · {answering.BESIDES}"
        return answering.answer_prompt(len(task.answers), "no guess")

    def heard_number(self, answer: str) -> bool:
        task = self._question
        if task is None or task.kind != "choice" or answering.index_of_answer(answer, len(task.answers)) is None:
            return False
        self._guess(task, answer)
        return True

    def heard_guess(self, answer: str) -> bool:
        task = self._question
        if task is None:
            return False
        if task.kind == "choice" and answer not in {one.id for one in task.answers}:
            self.talk.tell(answering.no_such(len(task.answers)))
        else:
            # At a mark "300" is a guess, and the learner is asked for the unit.
            self._guess(task, answer)
        return True

    def _guess(self, task: GuessTask, answer: str) -> None:
        walk = self.walk
        if task.kind == "mark":
            walk.guess.predict(Guess(value_ns=parse_time_ns(answer)))
        else:
            place = answering.index_of_answer(answer, len(task.answers))
            walk.guess.predict(Guess(choice=task.answers[place].id if place is not None else answer))
        if task.slot is None:
            self.page.tell_outcome()
        walk.next()


class PlainMeasuredStep(PlainStep):
    """Define the behaviour of both steps that have a run: make the run, and show its result."""

    def show(self) -> None:
        walk, talk, step = self.walk, self.talk, self.name
        if walk.runs.run_in(step) is not None:
            self._after_run()
        elif walk.measuring.measures(step):
            request = walk.measuring.request(step)
            walk.measuring.note_shown(request)
            standing = kept_settings(self.workshop, walk, request)
            talk.tell(views.to_be_measured(request, self.workshop.context.runs.every(), walk.noise.company(request)))
            if told := kept_told(standing, "restore" if step == SLOTS[0] and not walk.host.applied else ""):
                talk.tell(told)
            if (control := walk.measuring.control_request(step)) is not None:
                talk.tell(f"Then {control_run_sentence(control)}.")
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
                talk.say("", *self._result(seen))
            self.page.tell_counted(step)
            self.page.tell_outcome_of(step)
            talk.say("")

    @property
    def _to_hide(self) -> bool:
        """Return True if a noise has to be hidden before the step is measured."""
        return False

    def _tell_noise(self) -> None:
        """Print the offer to run a noise beside the next run, if there is one."""

    def menu(self) -> str:
        if self.walk.measuring.unmeasured(self.name):
            hides = self._to_hide
            writes = not hides and self.walk.measuring.request(self.name).arrival is not None
            return f"Enter {'hide a noise' if hides else 'measure, 1 write' if writes else 'measure'} · {self.rest}"
        return super().menu()

    def pressed_enter(self) -> bool:
        if not self.walk.measuring.unmeasured(self.name):
            return False
        self.measure()
        return True

    def measure(self) -> None:
        walk, talk, step = self.walk, self.talk, self.name
        if not walk.measuring.measures(step):
            super().measure()
            return
        if not of_class.have_turn(self.workshop, talk):
            return
        if self._to_hide and not hunting.offer_hunt(self.workshop, walk, talk):
            return
        if step == "measure" and not hunting.measures_quietly(self.workshop, walk, talk):
            return
        request = walk.measuring.request(step)
        if not walk.measuring.may_begin(request):
            talk.tell(f"{write_to_be_shown(request)} m measures.")
            return
        if self.workshop.context.host.on_battery:
            talk.tell(ON_BATTERY)
        try:
            due = walk.runs.from_due_time
            run = run_plainly(self.workshop, request, talk, from_due_time=due, asked=self._asked)
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
        self._measure_control()
        self._after_run()

    def _measure_control(self) -> None:
        """Make the control run after the step's run, if the chapter has one. An error is told, and the step goes on
        without this run."""
        try:
            request = self.walk.measuring.control_request(self.name)
            if request is None:
                return
            self.talk.tell(f"Now {control_run_sentence(request)}.")
            run = run_plainly(self.workshop, request, self.talk, asked=self._asked)
        except WaitStopped:
            self.talk.tell(STOPPED_WAITING)
            return
        except WorkshopError as error:
            self.talk.tell(cleaned_sentence(error.sentence(), SENTENCE))
            return
        self.walk.record(CONTROL, run)
        if not run.complete:
            self.talk.tell(stopped(run))

    def _after_run(self) -> None:
        walk, talk = self.walk, self.talk
        curves = walk.runs.curves()
        talk.chart(curves)
        talk.table(curves)
        if (run := walk.runs.run_in(self.name)) is not None:
            key = "m" if walk.measuring.can_repeat(self.name) else ""
            talk.say("", *self._result(walk.runs.seen(run), key))
            if rates := chapter_view.gap_rates(walk, self.name, talk.width):
                talk.say("", *rates)
            if walk.runs.unshown:
                talk.tell(walk.runs.unshown)
        self.page.tell_outcome_of(self.name)
        self._tell_noise()
        talk.say("")

    def _result(self, seen: KnownRun, key: str = "") -> Lines:
        """Return the result of a run of this step. ``key``: the key that makes the run again; "" for none."""
        runs, width = self.walk.runs, self.talk.width
        asks = self.walk.diagnosis.still_asks(self.name)
        return one_run.result_of_one_run(seen, width, runs.shows, self._asked, key, asks_causes=asks)

    @property
    def _asked(self) -> str | None:
        """Return the percentile by which the chapter judges its runs; None for the workload's usual figure."""
        return self.walk.chapter.judged_percentile


class PlainMeasure(PlainMeasuredStep):
    """Make the run before the change. In the chapter on the learner's own program, observe the program instead."""

    def show(self) -> None:
        of_program.show_observed(self.walk, self.talk)
        super().show()

    def menu(self) -> str:
        return f"Enter observe · {self.rest}" if of_program.observes(self.walk) else super().menu()

    def entries(self) -> str:
        return of_program.menu_of_observation(self.walk)

    def pressed_enter(self) -> bool:
        if not of_program.observes(self.walk):
            return super().pressed_enter()
        of_program.observe_own_program(self.workshop, self.walk, self.talk)
        return True

    def _tell_noise(self) -> None:
        if offer := self.walk.noise.offer():
            self.talk.say("")
            self.talk.tell(f"{offer} Type w for that.")


class PlainAgain(PlainMeasuredStep):
    """Make the run after the change, or the run beside a hidden noise."""

    @property
    def _to_hide(self) -> bool:
        return hunting.to_hide(self.workshop, self.walk)


class PlainDiagnose(PlainStep):
    """Ask for the cause of the first run's stalls, and judge the learner's answer."""

    def show(self) -> None:
        diagnosing.show_question(self.workshop, self.walk, self.talk)

    def menu(self) -> str:
        return diagnosing.diagnosis_prompt(self.walk) if self.walk.diagnosis.asks else super().menu()

    def heard_number(self, answer: str) -> bool:
        return diagnosing.take_diagnosis(self.workshop, self.walk, self.talk, answer)


class PlainApply(PlainStep):
    """Show the plan of the change, and make the change if the learner agrees."""

    shows_plan = True

    def show(self) -> None:
        walk, talk = self.walk, self.talk
        self._show_mask()
        talk.say(*self.page.plan(), "")
        if walk.sets and not walk.host.awaits_reboot:
            settings.tell_rights(self.workshop, walk, talk)

    def menu(self) -> str:
        walk, by_hand = self.walk, self.page.by_hand
        if by_hand.view is not None:
            return by_hand.menu()
        if walk.sets:
            if walk.host.awaits_reboot:
                return f"Enter go on without a reboot · restore · {self.rest}"
            barred = settings.barred(self.workshop, walk)
            enter = "Enter skip change" if barred else f"Enter {enter_on_plan(self.page.shown)}"
            enter = "Enter go on" if by_hand.taken else enter
            restore = "restore · " if walk.host.applied or walk.by_hand.owed else ""
            return f"{enter} · {by_hand.offer()}{self._boots()}{restore}{self.rest}"
        if walk.places:
            return f"Enter agree · cpus 2,4 = choose CPUs · cpus auto · {self.rest}"
        return super().menu()

    def _boots(self) -> str:
        """Return the menu's entry that changes how boot parameters are set: for every boot, or for the next boot alone.
        Return "" if this host has only one of these ways."""
        way = self.walk.host.boots.way()
        if way is None or (way.why_not and not way.root_first):
            return ""
        return "every = for every boot · " if way.once else f"{NEXT_BOOT} = for the next boot only · "

    def pressed_enter(self) -> bool:
        by_hand = self.page.by_hand
        if by_hand.view is not None:
            by_hand.look()
            return True
        if self._agree_anew():
            return True
        applies = self.walk.sets and not by_hand.taken
        return applies and not settings.apply_chapter(self.workshop, self.walk, self.talk, self.page.shown)

    def holds_before(self, step: StepName) -> bool:
        return step == "again" and self._agree_anew()

    def _agree_anew(self) -> bool:
        """Show the plan, if Enter would apply it and the learner has not seen it in this form. Return True if the plan
        was shown."""
        if not settings.unseen(self.walk, self.page.shown):
            return False
        self.talk.say("", *self.page.plan(), "")
        self.talk.tell(PLAN_IS_ANOTHER)
        return True

    def heard(self, answer: str) -> Reply:
        word, _, rest = answer.partition(" ")
        if answer == "hand":
            self.page.by_hand.begin(self.page.shown)
        elif answer in ("every", NEXT_BOOT):
            return "show again" if settings.choose_boots(self.walk, self.talk, answer) else "done"
        elif word != "mask" or not self._heard_mask(rest):
            return "not known"
        return "done"

    def _show_mask(self) -> None:
        """Show the task to write a mask of CPUs, if the lesson has such a task."""
        if (task := self.walk.chapter.mask) is not None:
            self.talk.say(*masks.task(task, 1, 1, self.talk.width))
            self.talk.tell(masks.LINE_BY_LINE)
            self.talk.say("")

    def _heard_mask(self, typed: str) -> bool:
        """Judge a mask that the learner typed, and print the result. If nothing was typed, print the task again. Return
        False if the chapter has no such task. Raise UsageError if the typed text is not a mask."""
        task = self.walk.chapter.mask
        if task is None:
            return False
        if not typed:
            self._show_mask()
            return True
        judged = judge_mask(task.wanted, parse_mask(typed))
        self.talk.say("", *masks.judged_mask_lines(task, judged, self.talk.width), "")
        return True


class PlainCompare(PlainStep):
    """Compare the runs before and after the change."""

    remembers_hunts = True

    def show(self) -> None:
        walk, talk = self.walk, self.talk
        of_program.show_changes(self.workshop, walk, talk)
        if walk.host.rehearsed:
            self._compare_recordings()
            return
        view, first = walk.comparison.view(), walk.runs.run_in("measure")
        if view is None or first is None or hunting.tell_cured(walk, talk):
            return
        talk.chart(walk.runs.curves())
        second = walk.runs.run_in("again")
        if (judged := view.judgement) is not None and second is not None:
            seen = walk.runs.seen(first), walk.runs.seen(second)
            proof = proving.verdict_above_comparison(self.workshop, walk)
            key = "m" if self._made_anew is not None else ""
            result = effect.result_of_two_runs(judged, seen, talk.width, proof, key=key)
            talk.say(*result.lines, "")
            found = count_effects(*seen, walk.runs.shows, walk.runs.guessed_figures)
            causes = effect_table.causes_with_row(
                judged.found.causes, named=effect.named_causes(judged, walk.diagnosis.named())
            )
            origin = one_run.origin_of(seen[0])
            undecided = proving.newest_proof_is_undecided(self.workshop, walk)
            told = effect_table.two_run_table(
                *(found, talk.width, origin, view.relation, causes),
                undecided=undecided,
                runs=seen,
                judged=judged.sure,
                caused=chapter_counts(first, walk.runs.shows, walk.runs.guessed_figures),
            )
            if core := chapter_view.core(walk, talk.width):
                talk.say(*core, "")
            talk.say(*told, "")
            if view.relation == "changed":
                talk.tell(effect.RULE)
                talk.say("")
            for said in filter(None, (said_of_proof(walk, self.workshop.course), *told_of_loads(walk))):
                talk.tell(said)
                talk.say("")
        elif rates := chapter_view.gap_rates(walk, self.name, talk.width):
            talk.say(*rates, "")
        if view.relation != "alike" or view.effects is None or view.reason is not None:
            # The result of two equal runs says it already.
            talk.say(*wrap(view.headline, talk.width), "")
        talk.say(*chapter_view.comparison(view, talk.width), "")
        proving.tell_newest(self.workshop, walk, view, talk)
        if left := next_step.next_step(walk, self.name, self.workshop.course):
            talk.page(left)
        if walk.guess.outcome() is not None:
            self.page.tell_outcome(explained=False)
            talk.say("")

    @property
    def _made_anew(self) -> StepName | None:
        """Return the step whose run has to be made again, because it cannot be compared; None if there is none."""
        walk, both = self.walk, self.walk.runs.before_and_after()
        return None if both is None else chapter_view.step_to_repeat(walk, walk.comparison.view(), both)

    def measure(self) -> None:
        if (slot := self._made_anew) is None:
            super().measure()
            return
        self.walk.go(slot)
        self.talk.tell("At this step, m makes the run again.")

    def _compare_recordings(self) -> None:
        """Compare the chapter's two recordings of another machine, made before and after the change. Their settings,
        counts and curves are compared. Then print the outcome of the guess, or else an explanation of each answer."""
        walk, talk, chapter = self.walk, self.talk, self.walk.chapter
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
        self.page.tell_counted("compare")
        both, judged = walk.runs.before_and_after(), walk.comparison.of_recordings()
        if both is not None and judged is not None:
            found = count_effects(*both, walk.runs.shows, walk.runs.guessed_figures)
            talk.say("", *effect.result_of_two_runs(judged, both, talk.width).lines)
            causes = effect_table.causes_with_row(judged.found.causes, named=effect.named_causes(judged))
            origin, relation = one_run.origin_of(both[0]), judged.relation
            talk.say("", *effect_table.two_run_table(found, talk.width, origin, relation, causes, judged=judged.sure))
        talk.say("")
        task = chapter.prediction
        if walk.guess.outcome() is not None:
            self.page.tell_outcome(explained=False)
            talk.say("")
        elif task is not None and task.slot is not None:
            talk.say(*chapter_view.answers_explained(task, walk.progress.prediction, talk.width), "")

    def entries(self) -> str:
        view = self.walk.comparison.view()
        # Between runs that were made alike there is no change to prove.
        proven = self.offers_proof and (view is None or view.relation != "alike")
        proof = proving.proof_menu(self.workshop, self.walk) if proven else ""
        return f"{of_program.menu_of_changes(self.walk)}{proof}"

    @property
    def offers_proof(self) -> bool:
        return proving.offers_proof(self.workshop, self.walk)

    def heard(self, answer: str) -> Reply:
        if answer == "p":
            if of_class.have_turn(self.workshop, self.talk):
                proving.prove(self.workshop, self.walk, self.talk)
        elif answer == "i" and not self.walk.hunts:
            self._with_imported()
        elif not of_program.heard_change(self.workshop, self.walk, self.talk, answer):
            return "not known"
        return "done"

    def _with_imported(self) -> None:
        known = self.workshop.context.runs.imported()
        if known:
            self.talk.chart((*curves.newest_imported(known), *self.walk.runs.curves()))
        self.talk.tell(curves.imported_said(known, drawn=True))


class PlainExplain(PlainStep):
    """Explain what was learnt, and show commands for the learner's shell. Tell which of them were run."""

    remembers_hunts = True
    offers_causes = True

    def __init__(self, page: PlainPage, name: StepName) -> None:
        super().__init__(page, name)
        self._commands: PlainCommands | None = None

    def show(self) -> None:
        walk, talk = self.walk, self.talk
        of_program.show_lasting(self.workshop, walk, talk)
        if own := next_step.own_runs(walk, self.name):
            talk.page(own)
        commands = self._commands = PlainCommands(walk, talk)
        talk.say(*chapter_view.explain_page(walk, commands.look(), (), talk.width, commands.fold), "")
        if walk.runs.explain() is not None:
            talk.tell(causes_offer(walk.chapter.evidence, walk.hunts or walk.runs.traced_run() is not None))

    @property
    def idle(self) -> Callable[[], Lines] | None:
        return self._commands.changed if self._commands is not None else super().idle

    def heard(self, answer: str) -> Reply:
        if answer != "more" or self._commands is None:
            return "not known"
        self._commands.more()
        return "done"


_STEPS: dict[StepName, type[PlainStep]] = {
    "look": PlainLook,
    "predict": PlainPredict,
    "measure": PlainMeasure,
    "diagnose": PlainDiagnose,
    "apply": PlainApply,
    "again": PlainAgain,
    "compare": PlainCompare,
    "explain": PlainExplain,
}


def plain_steps(page: PlainPage) -> dict[StepName, PlainStep]:
    """Return the object of each step, by the step's name. The objects keep their state until the chapter ends."""
    return {name: kind(page, name) for name, kind in _STEPS.items()}
