"""Show the status: every check of this host in a line, the one under the cursor in full, and a jump to its chapter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.geometry import Region
from textual.message import Message

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.host_ops.findings import Finding, Findings
from jitter_workshop.model.text import clean
from jitter_workshop.presenter import status_lines as views
from jitter_workshop.presenter.lines import wrap
from jitter_workshop.tui.core.actions import Scope, bindings
from jitter_workshop.tui.screens.common.base import WorkshopScreen
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.sheet import Pane, Sheet

_PAGE_OF_ROWS = 10


class CheckList(Sheet):
    """Show the list. A click on a line chooses its check; a click on the chosen line goes on."""

    class Clicked(Message):
        """Report that a line was clicked."""

        def __init__(self, line: int) -> None:
            super().__init__()
            self.line = line

    def on_click(self, event: events.Click) -> None:
        position = event.get_content_offset(self)
        if position is not None:
            event.stop()
            self.post_message(self.Clicked(position.y))


class StatusScreen(WorkshopScreen):
    """Show the checks of ``status``. They are read on a thread, so that the screen stays responsive."""

    scope: ClassVar[Scope] = "status"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("status"))

    @dataclass
    class Looked(Message):
        """Report the findings of the thread, or its error."""

        found: Findings | None
        error: WorkshopError | None = None

    def __init__(self) -> None:
        super().__init__()
        self._found: Findings | None = None
        self._looking = False
        self._only_improve = False
        self._under = ""
        self._reading = False
        self._said = ""

    def body(self) -> ComposeResult:
        yield Sheet(self._head, id="status-head")
        with Horizontal(id="status-main"):
            with Pane(id="status-list"):
                yield CheckList(self._list, id="status-checks")
            with Pane(id="status-page"):
                yield Sheet(self._page, id="status-explained")
        yield Sheet(self._about, id="status-about")
        yield Sheet(self._say, id="say")

    def heading(self) -> str:
        return "Status of a recorded host" if self.workshop.recorded else "Status of this host"

    def keys(self) -> Sequence[Shown]:
        reads = not self.wide and not self._reading
        back: Shown = ("status.close", "the list" if self._reading and not self.wide else "")
        return (
            ("status.go", "explain" if reads else "go to chapter"),
            *((("status.chapter", ""),) if reads else ()),
            ("status.all", "") if self._only_improve else ("status.improve", ""),
            ("status.again", ""),
            ("app.help", ""),
            back,
        )

    def on_mount(self) -> None:
        self._look()

    def on_resize(self) -> None:
        self._redraw()

    # -- looking ---------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        self._looking = True
        self._said = ""
        self._redraw()
        self.run_worker(self._read, thread=True, exclusive=True, group="look")

    def _read(self) -> None:
        """Read the status on the worker's thread."""
        try:
            self.post_message(self.Looked(self.workshop.findings()))
        except WorkshopError as error:
            self.post_message(self.Looked(None, error))

    @on(Looked)
    def _looked(self, message: Looked) -> None:
        self._looking = False
        self._found = message.found
        self._said = message.error.sentence() if message.error is not None else ""
        self._redraw()

    # -- layout ----------------------------------------------------------------------------------------------------

    def shown(self) -> tuple[Finding, ...]:
        """Return the checks that are listed now."""
        if self._found is None:
            return ()
        return self._found.improvable if self._only_improve else self._found.checks

    @property
    def finding(self) -> Finding | None:
        """Return the check under the cursor."""
        shown = self.shown()
        return next((f for f in shown if f.check.id == self._under), shown[0] if shown else None)

    def _redraw(self) -> None:
        self.set_class(self._reading, "-page")
        for selector, build in (
            ("#status-head", self._head),
            ("#status-checks", self._list),
            ("#status-explained", self._page),
            ("#status-about", self._about),
            ("#say", self._say),
        ):
            self.sheet(selector).show(build)
        self.sheet("#say").set_class(not self._said, "-empty")
        self.refresh_keys()

    def _head(self, width: int) -> Iterable[Text]:
        if self._found is None:
            return [Text("Looking at this host…" if self._looking else "Nothing could be read.", "dim")]
        shows = "▲ only" if self._only_improve else "all checks"
        return views.head(self._found, "looking…" if self._looking else shows, width)

    def _rows(self) -> list[Finding | str]:
        """Return the lines of the list, each a family's heading or a check."""
        rows: list[Finding | str] = []
        group = ""
        for finding in self.shown():
            if finding.group != group:
                group = finding.group
                rows.append(group)
            rows.append(finding)
        return rows

    def _list(self, width: int) -> Iterable[Text]:
        if self._found is not None and not self.shown():
            yield Text("This tool finds nothing to improve on this host. Press a to show all checks.", style="dim")
        under = self.finding
        for row in self._rows():
            if isinstance(row, str):
                yield Text(clean(row, 60).upper(), "bold dim")
            else:
                yield views.line(row, row is under, width)

    def _about(self, width: int) -> Iterable[Text]:
        """Return a short text on the check under the cursor, if its page is not beside the list."""
        finding = self.finding
        return () if finding is None or self.wide or self._reading else views.about(finding, width)

    def _page(self, width: int) -> Iterable[Text]:
        """Return the page of the check under the cursor."""
        finding = self.finding
        if finding is None or self._found is None:
            return ()
        return views.page(finding, self._found.recorded, width)

    def _say(self, width: int) -> Iterable[Text]:
        if self._said:
            yield from wrap(Text(clean(self._said, 400), "text"), width, "▸ ")

    # -- keys ------------------------------------------------------------------------------------------------------

    def _move(self, by: int) -> None:
        shown = self.shown()
        under = self.finding
        if under is None:
            return
        now = shown.index(under)
        self._put(shown[max(0, min(now + by, len(shown) - 1))])

    def _put(self, finding: Finding) -> None:
        """Put the cursor on a check and keep it in sight, together with a heading right above it."""
        self._under = finding.check.id
        self._said = ""
        self._redraw()
        self.query_one("#status-page", Pane).scroll_home(animate=False)
        line = self._rows().index(finding)
        self.query_one("#status-list", Pane).scroll_to_region(Region(0, max(line - 1, 0), 1, 3), animate=False)

    def _scrolls(self) -> Pane | None:
        """Return the page if it is shown alone, for the arrows to scroll; else None, and the arrows move the cursor."""
        return self.query_one("#status-page", Pane) if self._reading and not self.wide else None

    def action_up(self) -> None:
        page = self._scrolls()
        page.scroll_relative(y=-1, animate=False) if page is not None else self._move(-1)

    def action_down(self) -> None:
        page = self._scrolls()
        page.scroll_relative(y=1, animate=False) if page is not None else self._move(+1)

    def action_page_up(self) -> None:
        if self.wide or self._reading:
            self.query_one("#status-page", Pane).scroll_page_up(animate=False)
        else:
            self._move(-_PAGE_OF_ROWS)

    def action_page_down(self) -> None:
        if self.wide or self._reading:
            self.query_one("#status-page", Pane).scroll_page_down(animate=False)
        else:
            self._move(+_PAGE_OF_ROWS)

    def action_go(self) -> None:
        if not self.wide and not self._reading and self.finding is not None:
            self._reading = True
            self._redraw()
            return
        self.action_chapter()

    def action_chapter(self) -> None:
        finding = self.finding
        if finding is None:
            return
        if finding.chapter_id:
            self.frame.go_to_chapter(finding.chapter_id)
        else:
            self._said = f"No chapter of this course treats '{clean(finding.check.id, 40)}'."
            self._redraw()

    def action_copy(self) -> None:
        finding = self.finding
        if finding is not None and finding.explained.by_hand:
            self.app.copy_to_clipboard("\n".join(finding.explained.by_hand))
            self._said = "The commands that show it by hand are in the clipboard, where this terminal allows it."
            self._redraw()

    def action_improve(self) -> None:
        self._only_improve = True
        self._refilter()

    def action_all(self) -> None:
        self._only_improve = False
        self._refilter()

    def _refilter(self) -> None:
        finding = self.finding
        if finding is not None:
            self._put(finding)
        else:
            self._redraw()

    def action_again(self) -> None:
        self._look()

    def action_close(self) -> None:
        if self._reading and not self.wide:
            self._reading = False
            self._said = ""
            self._redraw()
        else:
            self.app.pop_screen()

    @on(CheckList.Clicked)
    def _clicked(self, message: CheckList.Clicked) -> None:
        rows = self._rows()
        row = rows[message.line] if 0 <= message.line < len(rows) else ""
        if not isinstance(row, Finding):
            return
        if row is self.finding:
            self.action_go()
        else:
            self._put(row)
