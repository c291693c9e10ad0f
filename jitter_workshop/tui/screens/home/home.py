"""Show the home screen: the host, the next useful step, and the path of chapters; it offers to restore changes or
apply them again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters.path import all_done_here
from jitter_workshop.model.change import RestoreResult
from jitter_workshop.model.run import HUNTED, UNSTEADY, Run, apart_from_proofs
from jitter_workshop.model.text import ID, REASON, SENTENCE, WORD, clean, many, shortened
from jitter_workshop.model.walk import PathEntry, RunCurve
from jitter_workshop.presenter.course.own_results import OwnResults
from jitter_workshop.presenter.course.path import (
    WHAT_THIS_IS,
    finished_told,
    home_chart_title,
    host_column,
    is_new,
    left_out_told,
    minutes_told,
    one_clock_told,
    reason_told,
    row_told,
    session_told,
    subject_told,
)
from jitter_workshop.presenter.host.changes import (
    NOTHING_APPLIED,
    OTHERS_MAY_MEASURE,
    RESTORED_MEANWHILE,
    applied_now_text,
    applied_said,
    applied_told,
    came_back,
    list_ids,
    of_others_said,
    root_words,
)
from jitter_workshop.presenter.host.plan import NO_RIGHTS
from jitter_workshop.presenter.text.lines import (
    MANY_CPUS,
    bar_of_value,
    cpus_in_short,
    first_lines,
    keyed,
    log_bar,
    two_ends,
    wrap,
)
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.scale import nice_ns
from jitter_workshop.tui.screens.common.base import HostChangeScreen
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.path_list import PathList, PathPane
from jitter_workshop.tui.widgets.sheet import Pane, Sheet

RECORDED_HOST = "This is a recorded host, so nothing can be measured."
T = TypeVar("T")

ABOUT_ROWS = {False: 4, True: 5}
"""The rows for the text on the chapter under the cursor, on a narrow and on a wide screen (#about in workshop.tcss)."""
_ABOUT_HEIGHT = 5
"""The height of that text on a narrow screen, with a blank row above it (#about in workshop.tcss)."""
_LEAST_ABOUT = 3
"""The rows that the text on a chapter has at least, whatever is said on the host's changes and load."""
_BETWEEN_FACTS = " · "
_LINEAR = 20
"""The largest factor between two times whose bars have a linear scale."""
_LEAST_BAR = 6
"""The width of a bar beside a long name."""
_BEFORE_BAR = "  p99.9  "
"""The words before the first bar."""
_LEAST_NAME = 12
"""The least number of characters of the name of a run."""
_BEFORE_LAST = "  LAST  "
"""The words before the newest result, below those before the next step."""
_MOST_LAST = 2
"""The most rows of the newest result: as many as the bars have."""
_BESIDE_BAR = len(_BEFORE_BAR) + 18
"""The width of a row of bars without its name and its bar."""
_LEAST_TITLE = 6
"""The least number of characters of a chapter's title behind the name of a run."""
_LEAST_HOST = 4
"""The least number of lines in which the pane with this host's facts is shown."""
_MOST_STANDING = 3
"""The most rows of a message or of a sentence on the host's changes."""
_MOST_NOTICES = 3
"""The most notices above the path; the help has all of them."""


def _has_load(run: Run) -> bool:
    """Return True if a load of this tool, or a hidden noise, ran beside the threads of a run."""
    return run.noise is not None or HUNTED in run.notes


class NextCard(Sheet):
    """Show the card of the next step. A click on the card opens that step."""

    async def on_click(self, event: events.Click) -> None:
        event.stop()
        await self.run_action("screen.next")


class HomeScreen(HostChangeScreen, scope="home"):
    """Show the home screen, which is the first screen."""

    _stood: tuple[dict[str, str], ...] = ()
    """The tunables that were applied when the newest message, ``said``, was shown."""
    _came_from: str | None = None
    """The chapter that was the newest when the path was last drawn."""
    _done: frozenset[str] | None = None
    """The chapters that were done when the path was last drawn; None before the first drawing."""

    _known: tuple[PathEntry, ...] | None = None
    """The path of this drawing; None if it is not known yet."""

    @cached_property
    def _results(self) -> OwnResults:
        return OwnResults(self.workshop)

    def _path(self) -> tuple[PathEntry, ...]:
        """Return the chapters with the learner's own results. They are asked for once in each drawing."""
        if self._known is None:
            self._known = self._results.path()
        return self._known

    def body(self) -> ComposeResult:
        yield Sheet(self._what_this_is, id="what")
        yield Sheet(self._host_line, id="host-line")
        yield NextCard(self._next_card, id="next")
        with Horizontal(id="home-main"):
            with Vertical(id="home-left"):
                yield PathPane(id="path-pane")
                yield Sheet(self._about, id="about")
                with Pane(id="home-host"):
                    yield Sheet(self._host, id="home-host-sheet")
            yield ChartView(id="home-chart")
        # Below the path: lines that come and go never move its rows.
        yield Sheet(self._standing, id="standing")
        yield Sheet(self._notices, id="notices")

    def keys(self) -> Sequence[Shown]:
        if self.frame.at_work:
            return ()
        entry = self.query_one(PathList).entry
        # A change of the host is more important than the screen's own keys.
        standing = self.workshop.context.standing()
        change = "home.restore" if standing else "home.resume" if self.workshop.resumable() else ""
        measured, recorded = bool(self.workshop.context.runs.every()), self.workshop.context.recorded
        # Only seven have room: the key for the first run gives way once there is one, the preferences to a program.
        measures = not measured and (entry is None or (entry.here and entry.chance != "later"))
        return (
            ("home.go", ""),
            *((("app.practice", ""),) if self._lacks else ()),
            *((("home.measure", ""),) if measures else ()),
            *(((change, ""),) if change else ()),
            ("app.status", ""),
            ("app.curves", ""),
            *((("app.report", ""),) if measured else ()),
            ("app.preferences", "") if recorded else ("home.explain", ""),
            *((("app.glossary", ""),) if self.wide else ()),
            ("app.help", ""),
            ("home.quit", ""),
        )

    @property
    def _lacks(self) -> bool:
        """Return True if this host cannot show the chosen chapter, but a practice machine could."""
        entry = self.query_one(PathList).entry
        live = not self.workshop.context.recorded and self.workshop.context.host.accelerator is None
        return live and entry is not None and not entry.here and entry.chance != "later"

    def on_mount(self) -> None:
        self._show_path()

    def redraw(self) -> None:
        if not self.is_mounted:
            return
        self._known = None
        # The chart's library takes a tenth of a second to import, so it is drawn after the first frame.
        self.frame.when_painted(self, lambda: self.call_later(self._draw_chart))
        self._show_path()
        self.show_title()
        self.sheet("#what").set_class(not is_new(self._path()), "-empty")
        self.sheet("#standing").set_class(not self.changes_said(), "-empty")
        self.sheet("#about").styles.height = None if self.wide else _ABOUT_HEIGHT - self._taken
        self.sheet("#notices").set_class(not self.frame.notices, "-empty")
        super().redraw()
        self.call_after_refresh(self._fit_host)

    def _fit_host(self) -> None:
        """Hide the pane of host facts if it has fewer than _LEAST_HOST lines of room."""
        pane = self.query_one("#home-host", Pane)
        pane.visible = pane.size.height >= _LEAST_HOST

    def _draw_chart(self) -> None:
        from jitter_workshop.flow.measuring.curves import scale_curve

        newest, like_published = self._newest()
        shown = scale_curve() if self.shows_published and (like_published or newest is None) else ()
        drawn = (*shown, *([newest] if newest is not None else []))
        key = "m" if any(action == "home.measure" for action, _ in self.keys()) else ""
        title = home_chart_title(newest, bool(shown), key) if drawn else ""
        self.query_one(ChartView).show_curves(drawn, highlight=-1, title=title)

    def _show_path(self) -> None:
        """Draw the path. The cursor stays on its chapter, or moves to the chapter from which the learner comes; from a
        chapter that was just finished, it moves to the next one. The result of the finished one is then told."""
        path, newest, shown = self._path(), self.workshop.newest_chapter(), self.query_one(PathList)
        under = shown.entry.chapter_id if shown.entry is not None and newest == self._came_from else newest
        entry = next((one for one in path if one.chapter_id == under), None)
        if entry is None or (entry.done and entry.chapter_id not in (self._done or ())):
            if entry is not None and self._done is not None:
                self.said, self._stood = finished_told(entry), self.workshop.context.standing()
            entry = self.workshop.next_chapter() or entry
        shown.show_entries(path, entry)
        self._came_from, self._done = newest, frozenset(one.chapter_id for one in path if one.done)

    @property
    def gives_scale(self) -> bool:
        return True

    # -- layout ----------------------------------------------------------------------------------------------------

    def _what_this_is(self, width: int) -> Iterable[Text]:
        return wrap(Text(WHAT_THIS_IS, "bold text"), width)

    def _host_line(self, width: int) -> Iterable[Text]:
        facts = cpus_in_short(clean(self.workshop.host_line(), MANY_CPUS)).split(_BETWEEN_FACTS)
        # The first facts are the most important ones; the page on the status has all of them.
        while len(facts) > 1 and len(_BETWEEN_FACTS.join(facts)) > width:
            facts.pop()
        yield Text(_BETWEEN_FACTS.join(facts), "dim")
        said, style = session_told(self.workshop.context.session, self.workshop.other_sessions)
        yield from wrap(Text(said, style), width)[:2] if said else ()

    def _standing(self, width: int) -> Iterable[Text]:
        """Yield lines on the changes that this tool has applied here, or can apply again."""
        for said in self.changes_said():
            told, _, keys = said.partition("   ")
            line = Text.assemble((told, "text"), "  " if keys else "", keyed(keys) if keys else "", style="text")
            yield from wrap(line, width, "▸ ")[:_MOST_STANDING]

    @property
    def _taken(self) -> int:
        """Return how many rows of the text on a chapter the lines on the host's changes take on a narrow screen."""
        said = len(list(self._standing(self.size.width - 2)))
        return 0 if self.wide else min(said, ABOUT_ROWS[False] - _LEAST_ABOUT)

    def _about(self, width: int) -> Iterable[Text]:
        """Return lines on the chapter under the cursor: what the learner has made in it, its minutes and its subject.

        If the chapter cannot be done on this host, return the reason instead of minutes and subject.
        """
        entry = self.query_one(PathList).entry
        if entry is None:
            return ()
        told = entry.here or (entry.rehearsed and self.workshop.context.recorded)
        seen = self.query_one(PathList).tells_minutes(width)
        said = subject_told(entry, minutes=not seen) if told else reason_told(entry)
        rows = ABOUT_ROWS[self.wide] - self._taken
        # The row itself shows the minutes: a long subject has their room.
        short = entry.summary if told and not entry.held else said
        forms = [(row_told(entry), said), (said,), (short,)]
        laid = [
            [line for text in form if text for line in wrap(Text(clean(text, SENTENCE), "dim"), width, "  ")]
            for form in forms
        ]
        return first_lines(next((one for one in laid if len(one) <= rows), laid[-1]), rows, width)

    def _host(self, width: int) -> Iterable[Text]:
        """Return the host's facts, for which only a wide screen has room."""
        return host_column(self.workshop.context.host, width)

    def _newest(self) -> tuple[RunCurve | None, bool]:
        """Return the curve of the learner's run of ``ring`` that is shown, and if it may stand beside a published one.

        It may if it is the newest run without a load, without another task that took time, and with steady settings.
        If there is none, the newest run without a load, or else the newest run, stands alone. Return (None, False)
        without a run.

        The label says what was beside the run, and names its chapter, which need not be the next one.
        """
        every = self.workshop.context.runs.every()
        rings = [run for run in apart_from_proofs(every) if run.workload == "ring"]
        alone = [run for run in rings if not _has_load(run)]
        like = (run for run in reversed(alone) if UNSTEADY not in run.notes)
        calm = next((run for run in like if not self._disturbed(run)), None)
        shown = [calm] if calm is not None else (alone or rings)[-1:]
        found = self.workshop.context.runs.curve(shown[0]) if shown else None
        if found is None or found.run is None:
            return found, False
        aside = ", beside a load" if _has_load(found.run) else ", disturbed" if self._disturbed(found.run) else ""
        said, title = f"{found.label}{aside}", self._chapter_of(found)
        # The title has the room that is left: it never takes room from the words on what was beside the run.
        if title and (left := ID - len(f"{said} · ")) >= _LEAST_TITLE:
            said = f"{said} · {clean(title, left)}"
        named = dataclasses.replace(found, label=said, curve=dataclasses.replace(found.curve, label=said))
        return named, calm is not None

    def _disturbed(self, run: Run) -> bool:
        """Return True if the page of a run says that other tasks disturbed it."""
        from jitter_workshop.presenter.runs.disturbances import disturbance_clause
        from jitter_workshop.stats.figures import KnownRun

        return bool(disturbance_clause(KnownRun(run, self.workshop.context.runs.known_causes(run))))

    def _chapter_of(self, shown: RunCurve) -> str:
        """Return the title of the chapter for which a run was made; "" if it was made for none."""
        progress = self.workshop.context.progress
        chapters = self.workshop.course.chapters
        return next((one.title for one in chapters if shown.key in progress(one.id).runs.values()), "")

    def _next_card(self, width: int) -> Iterable[Text]:
        following = self.workshop.next_chapter()
        if following is None:
            every = all(entry.done for entry in self._path())
            done = "All chapters are done." if every else "All chapters possible on this host are done."
            yield Text(f"{done} Enter opens a chapter. c shows all curves.", "text")
            yield from self._offer()
        else:
            left = Text.assemble(
                ("▸ NEXT  ", "bold accent"),
                (clean(following.title, ID), "bold text"),
                (f" · {following.next_step}", "text"),
            )
            about = minutes_told(following)
            # Enter opens the chapter under the cursor, which may be another one.
            entry = self.query_one(PathList).entry
            here = entry is None or entry.chapter_id == following.chapter_id
            yield two_ends(left, Text.assemble(("Enter   " if here else "", "bold cool"), about, style="dim"), width)
            if left_out := left_out_told(self._path(), following):
                yield from wrap(Text(left_out, "dim"), width, " " * len("▸ NEXT  "))
            if not following.here and all_done_here(self._path()):
                yield from self._offer()
        last = list(self._last(width))
        yield from last
        if not last:
            yield from self._bars(width)

    def _last(self, width: int) -> Iterable[Text]:
        """Yield lines on the chapter whose change was measured last, unless the curve that home shows is newer."""
        newest, _ = self._newest()
        since = newest.run.id if newest is not None and newest.run is not None else ""
        last = self._results.last_told(self._path(), since)
        if last is not None:
            told = Text.assemble(
                (clean(last[0], ID), "text"), (_BETWEEN_FACTS, "dim"), (clean(last[1], SENTENCE), "text")
            )
            lines = first_lines(wrap(told, width, _BEFORE_LAST), _MOST_LAST, width)
            lines[0].stylize("bold dim", 0, len(_BEFORE_LAST))
            yield from lines

    def _offer(self) -> Iterable[Text]:
        """Yield a line that offers the summary of the course."""
        line = Text("▸ SUMMARY  ", "bold accent")
        line.append("the course from first to last, and what each step changed", "text")
        line.append("   l", "bold cool")
        yield line

    def _bars(self, width: int) -> Iterable[Text]:
        """Yield bars for p99.9 of the learner's ``ring`` run and of a published run.

        The scale is logarithmic if the two values differ by a factor of more than _LINEAR. If the learner's run is not
        like the published one (:meth:`_newest`), or counts by another clock, only its value is shown.
        """
        newest, like_published = self._newest()
        # The label "log" is needed, because readers compare the lengths of bars.
        if newest is None:
            yield Text(f"  {self._without_a_ring()}", "dim")
            return
        if self.wide or self.tall:
            # The chart stands below, and its legend has the figures.
            return
        from jitter_workshop.flow.measuring.curves import scale_curve
        from jitter_workshop.presenter.runs.curves import label_of, shown_value_at
        from jitter_workshop.stats.sample_size import FEW_STALLS, FEW_TOLD, of_curve

        doubt = of_curve(newest)["99.9"]
        if not like_published or one_clock_told(newest):
            # A bar beside a bar of another clock would be a comparison.
            on_few = doubt == FEW_STALLS
            told = Text(f"{doubt if on_few else ''}{nice_ns(shown_value_at(newest, '99.9'))}", "bold text")
            told.append("" if on_few else f" {doubt}".rstrip(), "dim")
            room = max(width - len(_BEFORE_BAR) - told.cell_len - 2, _LEAST_NAME)
            line = Text.assemble((_BEFORE_BAR, "dim"), (f"{shortened(label_of(newest), room)}  ", "text"), told)
            # A part that does not fit is left out: the whole run stands on the page of all curves.
            for part in (one_clock_told(newest) if like_published else "", FEW_TOLD if on_few else ""):
                if part and line.cell_len + 2 + len(part) <= width:
                    line.append(f"  {part}", "dim")
            line.truncate(max(width, 1), ellipsis=True)
            yield line
            return
        pairs = [(c, shown_value_at(c, "99.9")) for c in (newest, *scale_curve())]
        known = [value for _, value in pairs if value]
        largest = max(known, default=0)
        # A factor of two is seen on a linear scale only; a factor of a hundred only on a logarithmic one.
        logarithmic = bool(known) and largest > _LINEAR * min(known)
        published = (f"{clean(c.label, WORD)} ({clean(c.curve.origin, WORD)})" for c, _ in pairs[1:])
        names = (label_of(newest), *published)
        name_width = max(min(max(map(len, names)), width - _BESIDE_BAR - _LEAST_BAR), _LEAST_NAME)
        for (shown, value), name in zip(pairs, names, strict=True):
            own = shown is newest
            room = min(max(width - name_width - _BESIDE_BAR, 4), 60)
            scale = log_bar if logarithmic else bar_of_value
            drawn = scale(value, largest, room) if value else ""
            line = Text(_BEFORE_BAR if own else " " * len(_BEFORE_BAR), "dim")
            line.append(f"{shortened(name, name_width):<{name_width}} ", "text" if own else "dim")
            shape = drawn if own else "░" * len(drawn)
            line.append(f"{shape:<{room}}", "accent" if own else "dim")
            few, behind = (doubt, "") if doubt == FEW_STALLS else ("", doubt)
            line.append(f" {(few if own else '') + nice_ns(value):>8}", "bold text" if own else "dim")
            line.append(f" {behind or ' '}" if own else "  ", "dim")
            line.append("  log" if logarithmic and shown is pairs[0][0] else "", "dim")
            yield line

    def _without_a_ring(self) -> str:
        """Return a sentence that says why no bar of a learner's run is shown. For example, the learner has made no run
        of ``ring`` yet.
        """
        count = len(apart_from_proofs(self.workshop.context.runs.every()))
        if count:
            return f"Press c to see your {many(count, 'run')}: this page draws only runs of the ring."
        if self.workshop.context.recorded:
            return RECORDED_HOST
        quick = self.workshop.context.class_view is None and self.frame.preferences.preset == "quick"
        seconds = ", in about 20 s" if quick else ""
        new = is_new(self._path())
        return f"Enter reads first; m shows your curve first{seconds}." if new else f"m shows your curve{seconds}."

    def _notices(self, width: int) -> Iterable[Text]:
        texts = self.frame.notices
        for text in texts[:_MOST_NOTICES]:
            yield from wrap(Text(clean(text, REASON), "text"), width, "! ")[:2]
        if len(texts) > _MOST_NOTICES:
            yield Text(f"  and {len(texts) - _MOST_NOTICES} more: press ?", "dim")

    def changes_said(self) -> list[str]:
        """Return the sentences above the keys. They are the message that the last key caused, and the state of the
        host's changes.

        The state is the changes that are applied now, and those that can be applied again.
        """
        said = [self.said] if self.said else []
        if self.frame.at_work:
            return said
        # The message of a key holds only until the host changes again: a lease may run out, a chapter may apply.
        if self.workshop.context.standing() != self._stood:
            self.said, said = "", []
        standing = applied_now_text(self.workshop.written())
        if standing:
            others = of_others_said(self.workshop.of_others())
            key = "u asks before it restores any of this" if others else "u restores all"
            said += [f"{standing}.   {key}", *others]
        again = self.workshop.resumable()
        if again and not standing and self.workshop.context.agent_connection.holding:
            said.append(RESTORED_MEANWHILE)
        if again:
            tunables = list_ids(word.partition("=")[0] for word in again)
            said.append(f"This session applied {tunables} before.   a applies all again")
        return said

    def _change(self, said: str, work: Callable[[], T], result: Callable[[T], str]) -> None:
        """Show ``said``, and call ``work`` on a thread to change the host. ``result``: a function that turns the result
        of ``work`` into a message."""
        self.said = said
        self.on_thread(work, lambda done: self.tell(result(done)))
        self.redraw()

    def tell(self, text: str) -> None:
        self._stood = self.workshop.context.standing()
        super().tell(text)

    def on_screen_suspend(self) -> None:
        """Clear the message that the last key caused when another screen opens."""
        if not self.frame.at_work:
            self.said = ""

    # -- keys ------------------------------------------------------------------------------------------------------

    def action_vertical(self, by: int) -> None:
        self.query_one(PathList).move(by)

    def action_page(self, by: int) -> None:
        self.query_one(PathList).move_page(by)

    def to_end(self, by: int) -> None:
        self.query_one(PathList).move_to_end(by)

    @on(PathList.Moved)
    def _cursor_moved(self) -> None:
        self.sheet("#next").renew()
        self.sheet("#about").renew()
        self.refresh_keys()

    @on(PathList.Chosen)
    def action_go(self) -> None:
        entry = self.query_one(PathList).entry
        if entry is not None:
            self.frame.open_chapter(entry.chapter_id)

    async def action_next(self) -> None:
        following = self.workshop.next_chapter()
        if following is not None:
            self.frame.open_chapter(following.chapter_id)
        else:
            await self.app.run_action("app.show('summary')")

    def action_measure(self) -> None:
        entry = self.query_one(PathList).entry
        if entry is not None:
            self.frame.open_chapter(entry.chapter_id, measure=True)

    def action_load(self) -> None:
        """Look at this host's load once more, and tell it."""
        from jitter_workshop.presenter.host.host_load import LOOKING

        self.tell(LOOKING)
        self.run_worker(self._look_at_load(), exclusive=True, group="load")

    async def _look_at_load(self) -> None:
        from jitter_workshop.presenter.host.host_load import load_told
        from jitter_workshop.tui.background import aside

        self.tell(load_told(await aside(self.workshop.look_at_load)))

    # -- restoring all ---------------------------------------------------------------------------------------------

    def action_restore(self) -> None:
        standing = self.workshop.context.standing()
        if not standing:
            self.tell(NOTHING_APPLIED)
            return
        from jitter_workshop.tui.screens.common.dialogs import Question

        others = self.workshop.of_others()

        def about(width: int) -> Iterable[Text]:
            for one in standing:
                line = Text(f"{clean(one['id'], ID)}", "text")
                line.append(f" = {clean(one['value'], REASON)}" if one.get("value") else "", "dim")
                line.append(f"  {applied_told(others[one['id']])}" if one["id"] in others else "", "accent")
                yield from wrap(line, width, "  • ", "    ")
            if others:
                yield Text()
                yield from wrap(Text(OTHERS_MAY_MEASURE, "text"), width)

        keys = "Enter restores all of this · Esc changes nothing"
        before = len(self.workshop.written())

        def told(result: RestoreResult) -> str:
            return came_back(result, before, len(self.workshop.written()))

        agree = partial(self._change, "Restoring…", self.workshop.restore_all, told)
        self.app.push_screen(Question("Restore everything that is changed on this host?", about, keys, agree))

    # -- applying again --------------------------------------------------------------------------------------------

    def action_resume(self) -> None:
        words = self.workshop.resumable()
        if not words:
            self.tell("There is nothing to apply again.")
            return
        try:
            view = self.workshop.resume_plan()
        except WorkshopError as error:
            self.frame.show_error(error)
            return
        from jitter_workshop.presenter.host import plan as plan_view
        from jitter_workshop.tui.screens.common.dialogs import Question

        no_script = self.workshop.context.recorded or self.workshop.context.agent_connection.rights == "root"

        def about(width: int) -> Iterable[Text]:
            return plan_view.plan_step_lines(view, words, no_script, width)

        barred = self.workshop.context.agent_connection.rights == "none"
        enter = NO_RIGHTS if barred else f"Enter applies this, {root_words(self.workshop)}"
        keys = f"{enter} · ↑ ↓ scroll · Esc changes nothing"

        def apply() -> None:
            self._change("Applying…", partial(self.workshop.resume, view), lambda done: " ".join(applied_said(done)))

        agree = partial(self.frame.class_turn.with_turn, apply)
        self.app.push_screen(Question("Apply this session's settings again?", about, keys, agree))
