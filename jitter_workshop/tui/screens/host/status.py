"""Show the status: every check of this host in one line, the check under the cursor in full, and a way to its
chapter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.geometry import Region

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.host_ops.host_status import Finding, Findings
from jitter_workshop.model.text import ID, LABEL, clean
from jitter_workshop.presenter.host import status as views
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.background import aside
from jitter_workshop.tui.screens.common.base import WorkshopScreen
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.sheet import ListSheet, Pane, Sheet, panel

_PAGE_OF_ROWS = 10
_ORDER = ("drifted", "set by this tool", *views.WORDS.values())
"""The headings of the list, in their order: what has changed, what can be better, then the rest."""


class _ChecksPane(Pane):
    """Scroll the list of checks. The lines below the list have another height for each check; when the pane changes its
    height, the check under the cursor stays visible."""

    def on_resize(self) -> None:
        if isinstance(self.screen, StatusScreen):
            self.screen.into_sight()


class StatusScreen(WorkshopScreen, scope="status"):
    """Show the checks of ``status`` in a list. A thread reads the checks, so that the screen stays responsive.

    A click on a line moves the cursor to the check in this line. A second click opens the page or the chapter of this
    check. ``under``: the id of the check under the cursor when the list opens; "" for the first one.
    """

    def __init__(self, under: str = "") -> None:
        super().__init__()
        self._found: Findings | None = None
        self._looking = False
        self._only_improve = False
        self._under = under
        self._set: frozenset[str] = frozenset()
        """The tunables that this tool had applied when the host was looked at."""
        self._reading = False

    def body(self) -> ComposeResult:
        yield Sheet(self._head, id="status-head")
        with Horizontal(id="status-main"):
            with panel(_ChecksPane(id="status-list")):
                yield ListSheet(self._list, id="status-checks")
            with panel(Pane(id="status-page")):
                yield Sheet(self._page, id="status-explained")
        yield Sheet(self._about, id="status-about")
        yield Sheet(self.say_lines, id="say")

    def heading(self) -> str:
        return "Status of a recorded host" if self.workshop.context.recorded else "Status of this host"

    def keys(self) -> Sequence[Shown]:
        reads = not self.wide and not self._reading
        back: Shown = ("status.close", "the list" if self._reading and not self.wide else "")
        return (
            *((("status.go", "explain"),) if reads else ()),
            ("status.chapter", ""),
            ("status.all", "") if self._only_improve else ("status.improve", ""),
            ("app.glossary", ""),
            ("status.again", ""),
            ("app.help", ""),
            back,
        )

    def on_mount(self) -> None:
        self.action_again()

    def action_again(self) -> None:
        self._looking = True
        self.tell("")
        self.run_worker(self._look(), exclusive=True, group="look")

    async def _look(self) -> None:
        opens = self._found is None
        try:
            self._found = await aside(self.workshop.findings)
        except WorkshopError as error:
            self._found, self.said = None, error.sentence()
        self._set = frozenset(one["id"] for one in self.workshop.context.standing())
        self._looking = False
        self.redraw()
        if opens and (finding := self.finding) is not None and not self.said:
            self.call_after_refresh(self._put, finding)

    # -- layout ----------------------------------------------------------------------------------------------------

    def shown(self) -> tuple[Finding, ...]:
        """Return the listed checks in the order of their headings. Checks of features that this host lacks
        come last.
        """
        if self._found is None:
            return ()
        found = self._found.improvable if self._only_improve else self._found.checks
        return tuple(sorted(found, key=lambda finding: _ORDER.index(self._heading(finding))))

    def _heading(self, finding: Finding) -> str:
        """Return the heading above a check."""
        check = finding.check
        if check.drifted is not None:
            return _ORDER[0]
        return _ORDER[1] if check.id in self._set else views.WORDS[check.state]

    @property
    def finding(self) -> Finding | None:
        """Return the check under the cursor."""
        shown = self.shown()
        return next((f for f in shown if f.check.id == self._under), shown[0] if shown else None)

    def redraw(self) -> None:
        self.set_class(self._reading, "-page")
        super().redraw()

    def _head(self, width: int) -> Iterable[Text]:
        if self._found is None:
            return [Text("Looking at this host…" if self._looking else "This host could not be read.", "dim")]
        shows = "▲ only" if self._only_improve else "all checks"
        return views.status_head(self._found, "looking…" if self._looking else shows, width)

    def _rows(self) -> list[Finding | str]:
        """Return the lines of the list: each is a heading (text) or a check."""
        rows: list[Finding | str] = []
        group = ""
        for finding in self.shown():
            if (heading := self._heading(finding)) != group:
                group = heading
                rows.append(group)
            rows.append(finding)
        return rows

    def _list(self, width: int) -> Iterable[Text]:
        if self._found is not None and not self.shown():
            yield Text("This tool finds nothing to improve on this host. Press a to show all checks.", style="dim")
        under = self.finding
        for row in self._rows():
            if isinstance(row, str):
                yield Text(clean(row, LABEL).upper(), "bold dim")
            else:
                yield views.check_line(row, row is under, width)

    def _about(self, width: int) -> Iterable[Text]:
        """Return a few lines on the check under the cursor. Return () if the screen already shows the check's full
        page, or if there is no check."""
        finding = self.finding
        return () if finding is None or self.wide or self._reading else views.reason_and_chapter(finding, width)

    def _page(self, width: int) -> Iterable[Text]:
        """Return the page of the check under the cursor."""
        finding = self.finding
        if finding is None or self._found is None:
            return ()
        return views.check_page(
            finding.check, finding.explained, self._found.head.recorded, width, views.treating_chapter(finding)
        )

    # -- keys ------------------------------------------------------------------------------------------------------

    def _move(self, by: int) -> None:
        shown = self.shown()
        under = self.finding
        if under is None:
            return
        now = shown.index(under)
        self._put(shown[max(0, min(now + by, len(shown) - 1))])

    def _put(self, finding: Finding) -> None:
        """Move the cursor to a check, and scroll the check into view."""
        self._under = finding.check.id
        self.tell("")
        self.query_one("#status-page", Pane).scroll_home(animate=False)
        self.into_sight()

    def into_sight(self) -> None:
        """Scroll the list until the check under the cursor and the heading right above it are visible."""
        if (finding := self.finding) is not None:
            row = Region(0, max(self._rows().index(finding) - 1, 0), 1, 3)
            self.query_one("#status-list", Pane).scroll_to_region(row, animate=False)

    def pane(self) -> Pane:
        return self.query_one("#status-page", Pane)

    def action_vertical(self, by: int) -> None:
        if self._reading and not self.wide:
            super().action_vertical(by)
        else:
            self._move(by)

    def action_page(self, by: int) -> None:
        if self.wide or self._reading:
            super().action_page(by)
        else:
            self._move(by * _PAGE_OF_ROWS)

    def to_end(self, by: int) -> None:
        if self._reading and not self.wide:
            super().to_end(by)
        else:
            self._move(by * len(self.shown()))

    def action_go(self) -> None:
        if not self.wide and not self._reading and self.finding is not None:
            self._reading = True
            self.redraw()
            return
        self.action_chapter()

    def action_chapter(self) -> None:
        finding = self.finding
        if finding is None:
            return
        if finding.chapter_id:
            self.frame.go_to_chapter(finding.chapter_id)
        else:
            self.tell(views.no_chapter(f"'{clean(finding.check.id, ID)}'", finding))

    def action_copy(self) -> None:
        finding = self.finding
        if finding is not None and finding.explained.by_hand:
            self.copy(finding.explained.by_hand, "The commands for this check are")

    def action_filter(self, only_improve: bool) -> None:
        self._only_improve = only_improve
        finding = self.finding
        if finding is not None:
            self._put(finding)
        else:
            self.redraw()

    def action_close(self) -> None:
        if self._reading and not self.wide:
            self._reading = False
            self.tell("")
        else:
            super().action_close()

    @on(ListSheet.Clicked)
    def _clicked(self, message: ListSheet.Clicked) -> None:
        rows = self._rows()
        row = rows[message.line] if 0 <= message.line < len(rows) else ""
        if not isinstance(row, Finding):
            return
        if row is self.finding:
            self.action_go()
        else:
            self._put(row)
