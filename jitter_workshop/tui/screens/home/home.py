"""Show home: the host, the next useful step, and the path for this host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical

from jitter_workshop.flow.chapters.course_summary import all_done_here
from jitter_workshop.model.run import apart_from_proofs
from jitter_workshop.model.text import clean
from jitter_workshop.model.walk import PathEntry, RunCurve
from jitter_workshop.presenter.chapter_lines import host_column
from jitter_workshop.presenter.curves import label_of, value_at
from jitter_workshop.presenter.lines import log_bar, two_ends, wrap
from jitter_workshop.stats.scale import nice_ns
from jitter_workshop.tui.core.actions import Scope, bindings
from jitter_workshop.tui.screens.home.home_settings import HomeSettings
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.path_list import PathList
from jitter_workshop.tui.widgets.sheet import Pane, Sheet


class NextCard(Sheet):
    """Show the card of the next step; a click on it goes there."""

    async def on_click(self, event: events.Click) -> None:
        event.stop()
        await self.run_action("screen.next")


class HomeScreen(HomeSettings):
    """Show the first screen."""

    scope: ClassVar[Scope] = "home"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("home"))

    def body(self) -> ComposeResult:
        yield Sheet(self._host_line, id="host-line")
        yield NextCard(self._next_card, id="next")
        yield Sheet(self._standing, id="standing")
        with Horizontal(id="home-main"):
            with Vertical(id="home-left"):
                with Pane(id="path-pane"):
                    yield PathList(self.workshop.path(), id="path")
                yield Sheet(self._about, id="about")
                with Pane(id="home-host"):
                    yield Sheet(self._host, id="home-host-sheet")
            yield ChartView(id="home-chart")
        yield Sheet(self._notices, id="notices")

    def keys(self) -> Sequence[Shown]:
        if self.frame.at_work:
            return ()
        entry = self.query_one(PathList).entry
        # A change of the host is more important than the screen's own keys.
        return (
            ("home.go", ""),
            *((("home.measure", ""),) if entry is None or entry.here else ()),
            *self.hands_keys(),
            ("app.status", ""),
            ("app.curves", ""),
            ("app.report", "") if self.workshop.runs() else ("app.settings", ""),
            ("app.help", ""),
            ("home.quit", ""),
        )

    def on_mount(self) -> None:
        self._put_cursor()

    def on_screen_resume(self) -> None:
        """Renew the screen after a chapter: everything may have changed."""
        self._renew()

    def _draw_chart(self) -> None:
        self.query_one(ChartView).show_curves(self._curves(), highlight=-1)

    def on_resize(self) -> None:
        self._renew()

    def going_on(self) -> None:
        self._renew()

    def _renew(self) -> None:
        # The chart's library takes a tenth of a second to import, so it is drawn after the first frame.
        self.frame.when_painted(self, lambda: self.call_later(self._draw_chart))
        self.query_one(PathList).show_entries(self.workshop.path())
        self._put_cursor()
        for selector, build in (
            ("#title", self.title_lines),
            ("#host-line", self._host_line),
            ("#next", self._next_card),
            ("#standing", self._standing),
            ("#about", self._about),
            ("#notices", self._notices),
        ):
            self.sheet(selector).show(build)
        self.sheet("#standing").set_class(not self.said_of_hands(), "-empty")
        self.sheet("#notices").set_class(not self._notice_texts(), "-empty")
        self.refresh_keys()

    def _put_cursor(self) -> None:
        following = self.workshop.next_chapter()
        if following is not None:
            self.query_one(PathList).put_cursor(following.chapter_id)

    # -- layout ----------------------------------------------------------------------------------------------------

    def _host_line(self, width: int) -> Iterable[Text]:
        yield Text(clean(self.workshop.host_line(), 200), "dim")

    def _standing(self, width: int) -> Iterable[Text]:
        """Yield what this tool has applied on this host, or could apply again."""
        for said in self.said_of_hands():
            yield from wrap(Text(said, "text"), width, "▸ ")[:2]

    def _about(self, width: int) -> Iterable[Text]:
        """Return the subject of the chapter under the cursor, or why it can be shown neither here nor on a
        recording."""
        entry = self.query_one(PathList).entry
        if entry is None:
            return ()
        lost = not entry.here and not entry.rehearsed
        return wrap(Text(clean(entry.reason if lost else entry.summary, 400), "dim"), width, "  ")

    def _host(self, width: int) -> Iterable[Text]:
        """Return the host's facts, for which only a wide screen has room."""
        return host_column(self.workshop.host, width)

    def _newest(self) -> RunCurve | None:
        runs = apart_from_proofs(self.workshop.runs())
        newest = next((r for r in reversed(runs) if r.workload == "ring"), None)
        if newest is None:
            return None
        return next(iter(self.workshop.curves((newest.id,))), None)

    def _laptop(self) -> RunCurve | None:
        return next(iter(self.workshop.published()), None)

    def _curves(self) -> list[RunCurve]:
        shown = list(self.workshop.published()[:1]) if self.frame.settings.show_published else []
        newest = self._newest()
        return [*shown, newest] if newest else shown

    def _next_card(self, width: int) -> Iterable[Text]:
        following = self.workshop.next_chapter()
        if following is None:
            every = all(entry.done for entry in self.workshop.path())
            done = "All chapters are done." if every else "All that this host can do now is done."
            yield Text(f"{done} Enter opens one again; c shows all curves.", "text")
            yield from self._offer()
        else:
            left = Text.assemble(
                ("▸ NEXT  ", "bold accent"),
                (clean(following.title, 48), "bold text"),
                (f" · {following.next_step}", "text"),
            )
            about = f"about {following.minutes} min" if following.minutes else ""
            yield two_ends(left, Text.assemble(("Enter", "bold text"), f"   {about}", style="dim"), width)
            if not following.here and all_done_here(self.workshop.path()):
                yield from self._offer()
        yield from self._bars(width)

    def _offer(self) -> Iterable[Text]:
        """Yield the offer of the summary, once the host's chapters are done."""
        line = Text("▸ SUMMARY  ", "bold accent")
        line.append("the course from first to last, and what each step bought", "text")
        line.append("   x", "bold text")
        yield line

    def _bars(self, width: int) -> Iterable[Text]:
        """Yield p99.9 of the newest own run beside the laptop of 2015, as bars on a logarithmic scale."""
        newest, laptop = self._newest(), self._laptop()
        # The label "log" is needed, because readers compare the lengths of bars.
        pairs = [(c, value_at(c, "99.9")) for c in (newest, laptop) if c is not None]
        largest = max((value for _, value in pairs if value), default=0)
        if newest is None:
            yield Text(f"  {self._without_a_ring()}", "dim")
        name_width = max(min(34, width - 44), 12)
        for shown, value in pairs:
            own = shown is newest
            name = label_of(shown) if own else f"{clean(shown.label, 16)} ({clean(shown.curve.origin, 16)})"
            room = min(max(width - name_width - 25, 4), 60)
            drawn = log_bar(value, largest, room) if value else ""
            line = Text("  p99.9  " if shown is pairs[0][0] else "         ", "dim")
            line.append(f"{clean(name, name_width):<{name_width}} ", "text" if own else "dim")
            shape = drawn if own else "░" * len(drawn)
            line.append(f"{shape:<{room}}", "accent" if own else "dim")
            line.append(f" {nice_ns(value):>8}", "bold text" if own else "dim")
            line.append("  log" if shown is pairs[0][0] else "", "dim")
            yield line

    def _without_a_ring(self) -> str:
        """Tell why no run of the learner's is among the bars, which show runs of ``ring`` only."""
        count = len(apart_from_proofs(self.workshop.runs()))
        if count:
            own = "1 run" if count == 1 else f"{count} runs"
            return f"{own} of your own, none with the laptop's workload 'ring': c shows them."
        if self.workshop.recorded:
            return "This is a recorded host: nothing is measured on it."
        return "No run of your own yet: press m, and your curve grows in seconds."

    def _notice_texts(self) -> list[str]:
        texts = [*self.workshop.notices, self.frame.settings_notice]
        return [text for text in texts if text]

    def _notices(self, width: int) -> Iterable[Text]:
        texts = self._notice_texts()
        for text in texts[:3]:
            yield from wrap(Text(clean(text, 240), "text"), width, "! ")[:2]
        if len(texts) > 3:
            yield Text(f"  and {len(texts) - 3} more: press ?", "dim")

    # -- keys ------------------------------------------------------------------------------------------------------

    def _move(self, by: int) -> None:
        self.query_one(PathList).move(by)
        self.sheet("#about").show(self._about)
        self.refresh_keys()

    def action_up(self) -> None:
        self._move(-1)

    def action_down(self) -> None:
        self._move(+1)

    def action_go(self) -> None:
        entry = self.query_one(PathList).entry
        if entry is not None:
            self.frame.open_chapter(entry.chapter_id)

    def action_next(self) -> None:
        following = self.workshop.next_chapter()
        if following is not None:
            self.frame.open_chapter(following.chapter_id)
        else:
            self.frame.show_summary()

    def action_measure(self) -> None:
        entry = self.query_one(PathList).entry
        if entry is not None:
            self.frame.open_chapter(entry.chapter_id, measure=True)

    @on(PathList.Chosen)
    def _chosen(self, message: PathList.Chosen) -> None:
        entry: PathEntry = message.entry
        self.frame.open_chapter(entry.chapter_id)
