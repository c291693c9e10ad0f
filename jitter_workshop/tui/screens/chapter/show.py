"""What a chapter's screen shows at each step: the lesson, the chart, the figures and what is said of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters import mitigation, traced_runs
from jitter_workshop.flow.measuring.run_length import reach
from jitter_workshop.model.course import TREATED
from jitter_workshop.model.palette import Palette
from jitter_workshop.model.text import clean
from jitter_workshop.model.walk import BootWay, CompareView, CureView
from jitter_workshop.presenter import chapter_lines, focus_words, hunt_words, proof_words, settings_lines
from jitter_workshop.presenter.figures import percentile_table
from jitter_workshop.presenter.prose import prose, styled, wrap
from jitter_workshop.presenter.settings_words import NO_RIGHTS, as_root
from jitter_workshop.tui.screens.chapter.state import AFTER, SLOTS, ChapterState
from jitter_workshop.tui.screens.common.base import TALL
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.loop import LoopLine
from jitter_workshop.tui.widgets.sheet import Pane, Sheet


class ChapterShow(ChapterState):
    """How a chapter's screen looks at each step."""

    def body(self) -> ComposeResult:
        yield LoopLine(id="loop")
        yield Sheet(self._banner, id="recorded")
        with Horizontal(id="chapter-main"):
            with Vertical(id="left"), Pane(id="lesson"):
                yield Sheet(id="lesson-sheet")
            with Vertical(id="work"):
                yield Sheet(id="question")
                yield ChartView(id="chart")
                with Pane(id="data"):
                    yield Sheet(id="data-sheet")
                yield Sheet(id="progress")
            with Pane(id="host"):
                yield Sheet(self._host, id="host-sheet")
        yield Sheet(id="say")

    def heading(self) -> str:
        return clean(self.walk.chapter.title, 60)

    def on_resize(self) -> None:
        self._show()

    def on_screen_resume(self) -> None:
        self.look_for_proof()
        self._show()

    def _enter_step(self) -> None:
        self._message = ""
        self._tried = self._planned = None
        self.look_for_proof()
        # Of two recordings the settings are what was compared; where there is room their curves stand above.
        small = self.size.height < TALL
        self._table = self.walk.rehearsed and self.step == "compare" and small and bool(self._recorded()[0])
        self._highlight = None
        kept = self.walk.progress.prediction
        task = self.walk.chapter.prediction
        if kept is not None and kept.value_ns is not None:
            self.mark_ns = kept.value_ns
        if kept is not None and task is not None and kept.choice is not None:
            self._choice = next((i for i, a in enumerate(task.answers) if a.id == kept.choice), 0)
        # On a narrow screen the page of a question or a plan is read first, and what it is about is the next key.
        question = self.step == "predict" and not self._locked and (self._marking or not self.wide)
        plan = self.step == "plan" and self._alone and not self.wide
        self._view = "lesson" if (question or plan) and self.walk.page(self.step) else "work"
        self._show()
        self.query_one("#data", Pane).scroll_home(animate=False)
        self.query_one("#lesson", Pane).scroll_home(animate=False)

    def _tell(self, text: str) -> None:
        self._message = text
        self._show()

    # -- what is shown ---------------------------------------------------------------------------------------------

    def _show(self) -> None:
        if not self.is_mounted:
            return
        chart = self._with_chart
        self.set_class(chart, "-chart")
        self.set_class(self._view == "lesson", "-lesson")
        self.set_class(self.run_under_way is not None, "-measuring")
        self.set_class(self.step == "compare", "-both")
        if self.walk.hunts:
            # It tells that a noise runs, which may have ended by itself.
            self.sheet("#title").show(self.title_lines)
        self.query_one(LoopLine).show_steps(self.walk.steps())
        self.sheet("#recorded").show(self._banner)
        self.sheet("#recorded").set_class(not self.walk.rehearsed, "-empty")
        self._draw_chart()
        self.sheet("#lesson-sheet").show(self._lesson)
        self.sheet("#data-sheet").show(self._data)
        self.sheet("#question").show(self._question)
        self.sheet("#question").set_class(not (self.step == "predict" and self._marking), "-empty")
        self.sheet("#progress").show(self._progress)
        self.sheet("#say").show(self._say)
        self.sheet("#say").set_class(not self._said(), "-empty")
        self.refresh_keys()

    def _draw_chart(self) -> None:
        if self._with_chart:
            curves = self._curves()
            highlight = -1 if self._highlight is None else self._highlight
            self.query_one(ChartView).show_curves(curves, highlight=highlight, marks=self._marks())

    def _banner(self, width: int, palette: Palette) -> Iterable[Text]:
        if not self.walk.rehearsed:
            return ()
        return settings_lines.recording_lines(self.walk.not_here, self.walk.recording, width, palette)

    def _lesson(self, width: int, palette: Palette) -> Iterable[Text]:
        page = self.walk.page(self.step) or "This step has no page of its own."
        yield from prose(page, width, palette)

    def _host(self, width: int, palette: Palette) -> Iterable[Text]:
        return chapter_lines.host_column(self.workshop.host, width, palette)

    def _question(self, width: int, palette: Palette) -> Iterable[Text]:
        task = self.walk.chapter.prediction
        return chapter_lines.mark_question(task, self.mark_ns, self._locked, width, palette) if task is not None else ()

    def _progress(self, width: int, palette: Palette) -> Iterable[Text]:
        running = self.run_under_way
        if running is None:
            return ()
        return chapter_lines.progress(running.progress, running.waiting, running.stopping, width, palette)

    def _data(self, width: int, palette: Palette) -> Iterable[Text]:
        """The step's figures; on a narrow screen below its page."""
        if self._table:
            compared = self._figures(width, palette) if self.step == "compare" else []
            numbers = percentile_table(self._curves(), palette, width)
            return [*compared, Text(), *numbers] if compared else numbers
        figures = self._figures(width, palette)
        if self.wide or self.step == "compare" or self._alone:
            return figures
        page = prose(self.walk.page(self.step), width, palette)
        return [*page, Text(), *figures] if page and figures else [*page, *figures]

    def _figures(self, width: int, palette: Palette) -> list[Text]:
        try:
            return self._figures_of_step(width, palette)
        except WorkshopError as error:
            return wrap(Text(clean(error.sentence(), 400), style=f"bold {palette.bad}"), width, "! ")

    def _figures_of_step(self, width: int, palette: Palette) -> list[Text]:
        step, walk = self.step, self.walk
        if step == "look":
            title = "ON THE RECORDING" if walk.rehearsed else "ON THIS HOST"
            return chapter_lines.facts(walk.look(), width, palette, title)
        if step == "predict":
            return self._question_figures(width, palette)
        if step in SLOTS and walk.rehearsed:
            return settings_lines.nothing_measured(self._curves(), width, palette)
        if step in SLOTS:
            request, battery = self._request(step), bool(self.workshop.host.on_battery)
            return chapter_lines.about_to_measure(
                request, battery, width, palette, reach(request, self.workshop.runs())
            )
        if step in ("plan", "apply"):
            return self._plan_figures(width, palette)
        if step == "compare" and walk.rehearsed:
            lines = settings_lines.settings_compared(walk.settings_compared(), width, palette)
            task = walk.chapter.prediction
            if task is None or task.slot is None:
                return lines
            return lines + settings_lines.answers_explained(task, walk.progress.prediction, width, palette)
        if step == "compare":
            if (cured := self._cured()) is not None:
                return chapter_lines.cured(cured, width, palette)
            compared = walk.compare()
            return chapter_lines.comparison(compared, width, palette) if compared else []
        explained = walk.explain()
        if explained is None:
            return chapter_lines.closing(walk.by_hand(), walk.chapter.learnt, width, palette)
        runs = [e for slot in (*SLOTS, TREATED) if (e := walk.explain(slot)) is not None]
        return chapter_lines.explanation(explained, runs, walk.chapter.learnt, width, palette)

    def _question_figures(self, width: int, palette: Palette) -> list[Text]:
        task = self.walk.chapter.prediction
        if task is None or self._marking:
            return []
        lines = chapter_lines.choices(task, self._choice, self._lock_reason, width, palette)
        outcome = self.walk.outcome() if self.walk.run_in(task.slot) is None else None
        return lines if outcome is None else lines + settings_lines.answered(task, outcome, width, palette)

    def _plan_figures(self, width: int, palette: Palette) -> list[Text]:
        walk, tried = self.walk, self._tried
        words = (self._planned.words if self._planned is not None else ()) or walk.chapter.tunables
        if tried is not None and tried.error is not None:
            return settings_lines.not_applied(tried.error, words, width, palette)
        if tried is not None and tried.view is not None:
            return settings_lines.applied(tried.view, tried.checks, width, palette)
        if self._planned is None:
            # Drawn once a visit: what is applied is what was read then, and what is on the screen.
            self._planned = walk.plan()
        if walk.chapter.changes != "tunables":
            return chapter_lines.plan(self._planned, width, palette)
        return settings_lines.plan(
            self._planned, self._planned.words or walk.chapter.tunables, walk.rehearsed, width, palette
        )

    def _said(self) -> list[str]:
        """What stands above the keys: the newest message, or what this step has to tell."""
        if self._message:
            return [self._message]
        if self.run_under_way is not None:
            return []
        if self.walk.rehearsed:
            return self._said_of_recording()
        told: list[str] = []
        task = self.walk.chapter.prediction
        about = ("compare",) if self.size.height >= TALL else ()
        outcome = self.walk.outcome() if task is not None and self.step in (task.slot, *about) else None
        if self.step == "compare":
            cured = self._cured()
            compared = self.walk.compare() if cured is None else None
            told += [cured.text] if cured else [self._compared(compared)] if compared else []
            told += [proof_words.remembered(self.proof)] if self.proof is not None else []
        if outcome is not None:
            near = {True: "✓ near: ", False: "✗ not near: ", None: ""}[outcome.near]
            told.append(near + outcome.text)
            told += [outcome.explanation] if outcome.explanation and self.size.height >= TALL else []
        if self.step == "measure" and self.walk.run_in("measure") is not None:
            offer = self.walk.offer_noise()
            told += [f"{offer} Press w."] if offer else []
        if self.step == "apply":
            told.append(self._said_of_plan())
        if self.step == "explain" and self.walk.explain() is not None and not self.walk.hunts:
            found = traced_runs.shown(self.workshop, self.walk) is not None
            told.append(focus_words.offered(self.walk.chapter.evidence, found))
        told += [hunt] if (hunt := self._said_of_hunt()) else []
        told += [warning] if (warning := self.walk.warning(self.step)) else []
        return told

    def _compared(self, view: CompareView) -> str:
        """How two runs differ, and the key that proves it, where they were made for a change and it was not tried."""
        offered = not view.same_state and self.offers_proof
        return f"{view.headline} {proof_words.OFFER}" if offered else view.headline

    def _said_of_plan(self) -> str:
        if not self._sets:
            return "Enter agrees to this plan; p lets you pick other CPUs."
        if self._tried is not None:
            return ""
        if self.walk.awaits_reboot:
            return "Written already, and this host was not rebooted since. Enter goes home, u gives it back."
        if self._no_rights:
            return f"{NO_RIGHTS} Enter shows how somebody with root's rights does it for you."
        way = self.walk.boots.way()
        if way is not None:
            return self._said_of_boots(way)
        if self.walk.applied:
            return "This chapter's settings stand. Enter reads them again, u gives them back."
        return f"Enter writes this, {as_root(self.workshop)}. It is given back when you leave, or with u."

    @property
    def _no_rights(self) -> bool:
        """Would Enter at ``apply`` write something, and cannot?"""
        writes = self._planned is None or bool(self._planned.changes)
        return writes and self.workshop.agent_session.rights == "none" and not self.walk.applied

    def _said_of_boots(self, way: BootWay) -> str:
        """For one boot is offered first: there a boot that hangs costs nothing but the next one."""
        other = "" if way.why_not else f" n plans it for {'every boot' if way.once else 'the next boot alone'}."
        if way.this_boot and way.once:
            return f"Only this boot has it; u takes the entry out of the menu.{other}"
        if way.this_boot:
            return f"This boot has it already. Enter writes this, {as_root(self.workshop)}: every boot will have it."
        if way.root_first:
            first = f"For the next boot alone n plans it, {as_root(self.workshop)}: {clean(way.why_not, 200)}."
            return f"{first} Enter writes this, for every boot. It stays until u, or 'restore', takes it back."
        which = "the next boot alone" if way.once else "every boot"
        how = as_root(self.workshop)
        return f"Enter writes this, {how}, for {which}.{other} It stays until u, or 'restore', takes it back."

    def _said_of_recording(self) -> list[str]:
        """A rehearsed chapter measures and writes nothing, and says so where that would happen."""
        curves, source = self._recorded()
        if curves:
            these = "This curve was" if len(curves) == 1 else "These curves were"
            return [f"Nothing is measured on a recording. {these} {clean(source, 200)}."]
        task = self.walk.chapter.prediction
        if self.step == "predict" and task is not None and task.slot is not None:
            return ["No run decides this on a recording; compare says what the answers stand for."]
        return ["Nothing is written on a recording."] if self.step == "apply" else []

    def _said_of_hunt(self) -> str:
        if not self.walk.hunts:
            return ""
        if self.step == "look":
            return hunt_words.remembered(self.walk.progress.hunts, 3)
        if said := hunt_words.standing(self.workshop.hunt):
            return said
        if self.step in ("compare", "explain"):
            return hunt_words.remembered(self.walk.progress.hunts, 1)
        return hunt_words.FIRST if self.step == "again" and self.walk.run_in("again") is None else ""

    def _cured(self) -> CureView | None:
        if not self.walk.hunts:
            return None
        return mitigation.view(self.walk)

    def _hunt_keys(self) -> list[Shown]:
        """The keys of a chapter that hides a noise: worth more than those for looking at curves."""
        if not self.walk.hunts:
            return []
        shown: list[Shown] = []
        if hunt_words.unanswered(self.workshop.hunt):
            shown.append(("chapter.name", ""))
        elif self.step in AFTER and not self._to_hide(self.step):
            shown.append(("chapter.hunt", "hide another" if self.workshop.hunt is not None else ""))
        if self.walk.run_in(self.step if self.step in SLOTS else "again") is not None:
            shown.append(("chapter.causes", ""))
        if hunt_words.unanswered(self.workshop.hunt) and self.walk.run_in("again") is not None:
            shown.append(("chapter.cure", ""))
        return shown

    def _say(self, width: int, palette: Palette) -> Iterable[Text]:
        for text in filter(None, self._said()):
            yield from wrap(styled(text, palette, palette.text), width, "" if text[0] in "✓✗" else "▸ ", "  ")

    def _enter_label(self) -> str:
        """What Enter does now."""
        step = self.step
        if self._to_hide(step):
            return "hide a noise"
        if self.walk.measures(step) and self.walk.run_in(step) is None:
            return "measure"
        if self._reading_first:
            return "to the plan" if step == "plan" else "to the chart" if self._marking else "to the question"
        if step == "predict" and not self._locked:
            return "keep guess"
        if step == "apply" and self._sets:
            if self._reboot_first or self._tried is not None:
                return "home" if self._reboot_first else "go on"
            return "who can" if self._no_rights else "apply"
        if step == "apply" and not self.walk.rehearsed:
            return "agree"
        return "finish" if step == self.walk.chapter.steps[-1] else "go on"

    def keys(self) -> Sequence[Shown]:
        if self.run_under_way is not None:
            return (("chapter.home", "stop waiting" if self.run_under_way.waiting else "stop the run"),)
        if self.frame.at_work:
            return ()
        step = self.step
        shown: list[Shown] = [("chapter.enter", self._enter_label()), *self._hunt_keys()]
        if self.proof is not None or self.offers_proof:
            shown.append(("chapter.prove", "the proof" if self.proof is not None else ""))
        if step == "apply" and self.walk.chapter.changes == "placement" and not self.walk.rehearsed:
            shown.append(("chapter.cpus", ""))
        if step in ("plan", "apply") and self._other_boots:
            way = self.walk.boots.way()
            shown.append(("chapter.boots", "every boot" if way is not None and way.once else "one boot"))
        if step == "compare" and not self.walk.hunts and self._imported():
            shown.append(("chapter.imported", "hide imported" if self._with_imports else ""))
        if self._sets and step in ("apply", *AFTER) and self.walk.applied:
            shown.append(("chapter.undo", ""))
        if self.walk.measures(step) and self.walk.run_in(step) is not None:
            shown.append(("chapter.again", "again"))
        if self._with_chart or self._table:
            if not self.wide and not self._reading_first:
                shown.append(("chapter.lesson", "chart" if self._view == "lesson" else "lesson"))
            if not self._reading_first:
                shown.append(("chapter.table", "chart" if self._table else "table"))
        elif self._alone and not self.wide and not self._reading_first:
            work = "question" if step == "predict" else "plan"
            shown.append(("chapter.lesson", work if self._view == "lesson" else "lesson"))
        elif self.wide:
            shown.append(("chapter.lesson", "scroll figures" if self._view == "lesson" else "scroll lesson"))
        if step == "explain":
            causes = not self.walk.rehearsed and not self.walk.hunts
            shown += [("chapter.causes", ""), ("chapter.copy", "")] if causes else [("chapter.copy", "")]
        if self.walk.chapter.hints:
            shown.append(("chapter.hint", ""))
        return [*shown, ("chapter.back", ""), ("app.help", ""), ("chapter.home", "")]
