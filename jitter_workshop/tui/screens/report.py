"""Show a report before it is written: its content, the names in it, and the keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.attribution import Stopped
from jitter_workshop.flow.reporting.draft import FORMATS, RAW, Draft, Format, opened_with, report_folders
from jitter_workshop.flow.reporting.files import write_files
from jitter_workshop.model.report import Overlay, ReportDocument
from jitter_workshop.model.text import LINE, PATH, capital, clean
from jitter_workshop.presenter import report_preview as preview
from jitter_workshop.presenter.text.lines import waiting, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.formats.common import Files
from jitter_workshop.tui.background import aside
from jitter_workshop.tui.screens.common.base import WorkshopScreen
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.sheet import Pane, Sheet, panel


@dataclass(frozen=True, slots=True)
class Written:
    """Hold the result of writing a report.

    ``path``: the written file. ``size``: the size of all files, in words. ``wish``: the user's choice, as a pair. It is
    (name of the format, True if names are left out).
    """

    path: Path
    size: str
    wish: tuple[str, bool]


class ReportScreen(WorkshopScreen, scope="report"):
    """Show the preview of a report. A thread makes the report and its files. Closing the screen stops the thread."""

    def __init__(self) -> None:
        super().__init__()
        self._draft: Draft | None = None
        self._went: tuple[str, int, int] = ("putting the report together", 0, 0)
        self._stopped = False
        self._formats = tuple(FORMATS.values())
        """The formats; the first one is the chosen one, and choosing the next rotates them."""
        self._private = False
        self._places = report_folders()
        self._made: tuple[Path, Files] | None = None
        """The path of the file that would be written, and the contents of this file and of the files beside it."""
        self._making: object = None
        """The number of the request whose file is being made; None while no file is made."""
        self._wanted = False
        """True if the file is to be written as soon as it is made."""
        self._written: Written | None = None
        self._overlay = 0

    def body(self) -> ComposeResult:
        yield Sheet(self._head, id="report-head")
        with Horizontal(id="report-main"):
            with panel(Pane(id="report-page"), "Preview"):
                yield Sheet(self._opening, id="report-opening")
                yield Sheet(self._chart_title, id="report-chart-title")
                yield ChartView(id="report-chart")
                yield Sheet(self._rest, id="report-rest")
            with panel(Pane(id="report-side")):
                yield Sheet(self._side, id="report-side-sheet")
        yield Sheet(self.say_lines, id="report-say")

    def heading(self) -> str:
        return "Report · preview"

    def keys(self) -> Sequence[Shown]:
        if self._draft is None:
            return (("app.help", ""), ("report.close", "" if self.said else "stop"))
        return (
            ("report.write", f"write {self._chosen.name}"),
            ("report.format", f"as {self._formats[1].name}"),
            ("report.names", "with names" if self._private else "hide names"),
            *((("report.copy", ""),) if self._written is not None else ()),
            *((("report.right", ""),) if len(self._overlays) > 1 else ()),
            ("app.glossary", ""),
            ("app.help", ""),
            ("report.close", ""),
        )

    @property
    def _chosen(self) -> Format:
        return self._formats[0]

    @property
    def _document(self) -> ReportDocument | None:
        """Return the shown report. The user's choice decides if it contains names. Return None while the report is
        being made.
        """
        return self._draft.shown(self._private) if self._draft is not None else None

    @property
    def _overlays(self) -> tuple[Overlay, ...]:
        return self._document.overlays if self._document is not None else ()

    def on_mount(self) -> None:
        self.run_worker(self._build(), exclusive=True, group="report")

    def on_unmount(self) -> None:
        self._stopped = True

    # -- building and rendering ------------------------------------------------------------------------------------

    async def _build(self) -> None:
        try:
            self._draft = await aside(partial(Draft.of, self.workshop, self._told))
        except WorkshopError as error:
            self.said = error.sentence()
        finally:
            # This also runs when the screen is closed or the workshop is left: the thread ends at its next step.
            self._stopped = self._draft is None
        self.redraw()
        if self._draft is not None:
            await self._make()

    def _told(self, what: str, done: int, total: int) -> None:
        """Show the progress of the thread that makes the report. Raise Stopped if the screen is closed."""
        if self._stopped:
            raise Stopped("the report was stopped")
        self.call_later(self._goes_on, what, done, total)

    def _goes_on(self, what: str, done: int, total: int) -> None:
        self._went = (what, done, total)
        if self._draft is None:
            self.sheet("#report-head").renew()

    def _again(self) -> None:
        """Make the report's file again with the new format, names or folder."""
        self._made = None
        self._wanted = False
        self.redraw()
        self.run_worker(self._make(), exclusive=True, group="report")

    async def _make(self) -> None:
        """Make the content of the report's file on a thread. So the screen can tell the file's size before, and write
        the file fast.
        """
        draft = self._draft
        if draft is None or not self._places:
            return
        chosen, private, folder = self._chosen, self._private, self._places[0]
        ticket = self._making = object()

        def make() -> tuple[Path, Files]:
            path = draft.path(chosen, private, folder)
            return path, draft.files(chosen, private, path.name)

        try:
            self._made = await aside(make)
        except WorkshopError as error:
            self.said = f"{error.sentence()}."
        finally:
            # A making that was given up may end after the next one has begun.
            if self._making is ticket:
                self._making = None
        wanted, self._wanted = self._wanted, False
        if wanted and self._made is not None:
            await self._write(*self._made, (chosen.name, private))
        self.redraw()

    # -- layout ----------------------------------------------------------------------------------------------------

    def redraw(self) -> None:
        self.set_class(self._draft is None, "-waiting")
        if not self.is_mounted:
            return
        overlays = self._overlays
        chart = self.query_one("#report-chart", ChartView)
        chart.display = bool(overlays)
        if overlays:
            chosen = overlays[self._overlay]
            chart.show_curves(preview.first_curves(chosen), between=chosen.between)
        self.sheet("#report-say").set_class(not self.said and self._written is None, "-empty")
        super().redraw()

    def _head(self, width: int) -> Iterable[Text]:
        if self._document is None:
            if self.said:
                return [Text("There is nothing to write yet.", "dim")]
            what, done, total = self._went
            far = f": {done:,} of {total:,}" if total else ""
            return waiting(f"{capital(what)}{far}. Esc stops it.", done, total, width)
        facts = [self._chosen.name]
        if self._made is not None:
            path, files = self._made
            facts += [preview.size_of_files(files), clean(path.name, LINE)]
        elif self._making is not None:
            facts.append("its file is being made…")
        where = f"into {clean(self._places[0], PATH)}" if self._places else "no folder is writable"
        others = preview.others_in_short(self._document, self._chosen.name == RAW)
        return preview.preview_head(facts, where, others, width)

    def _opening(self, width: int) -> Iterable[Text]:
        return preview.preview_opening(self._document, width) if self._document is not None else ()

    def _chart_title(self, width: int) -> Iterable[Text]:
        return preview.chart_title(self._overlays, self._overlay, width)

    def _rest(self, width: int) -> Iterable[Text]:
        if self._document is not None:
            yield from preview.preview_sections(self._document, width)
            if not self.huge:
                yield from self._side(width)

    def _side(self, width: int) -> Iterable[Text]:
        """Yield lines with the available formats, and with the private facts in the report."""
        if self._document is not None:
            yield from preview.format_choices(tuple(FORMATS.values()), self._chosen, width)
            yield from preview.private_data_lines(self._document, self._chosen.name == RAW, width)

    def say_lines(self, width: int) -> Iterable[Text]:
        if self._written is not None:
            written = self._written
            done = f"Written ({written.size}): {clean(written.path, PATH)}"
            yield from wrap(Text(done, "bold good"), width, "✓ ")
            for line in self._lines(written):
                yield from wrap(Text(line, "code"), width, "  ")
        yield from super().say_lines(width)

    def _lines(self, written: Written) -> tuple[str, str]:
        here, there = opened_with(written.path, self.workshop.context.host.name)
        return clean(here, PATH), clean(there, PATH)

    # -- keys ------------------------------------------------------------------------------------------------------

    def action_write(self) -> None:
        wish = (self._chosen.name, self._private)
        if self._draft is None:
            return
        if self._written is not None and self._written.wish == wish:
            self.tell("This version is already written. f changes the format, n the names.")
        elif self._made is None:
            self._wanted = self._making is not None
            self.tell("The report is written as soon as it is ready." if self._wanted else "There is no file to write.")
        else:
            self.run_worker(self._write(*self._made, wish), exclusive=True, group="report")

    async def _write(self, path: Path, files: Files, wish: tuple[str, bool]) -> None:
        try:
            made = await aside(partial(write_files, files, path.parent))
        except WorkshopError as error:
            self._refused(error, path)
            return
        self._written = Written(made[0], preview.size_of_files(files), wish)
        self.tell("")

    def _refused(self, error: WorkshopError, path: Path) -> None:
        """Tell why the file could not be written, and what Enter does next. If a file of this name exists, Enter
        writes the report under another name. Otherwise Enter tries the next possible folder.
        """
        self.said = f"{error.message}."
        if path.exists():
            self.said += " Enter tries another file name."
        elif len(self._places) > 1:
            self._places = (*self._places[1:], self._places[0])
            self.said += f" Enter tries {clean(self._places[0], PATH)}."
        self._again()

    def action_format(self) -> None:
        if self._draft is not None:
            self._formats = (*self._formats[1:], self._formats[0])
            self.said = ""
            self._again()

    def action_names(self) -> None:
        if self._draft is not None:
            self._private = not self._private
            self.said = ""
            self._again()

    def action_sideways(self, by: int) -> None:
        if self._overlays:
            self._overlay = (self._overlay + by) % len(self._overlays)
            self.redraw()

    def action_copy(self) -> None:
        if self._written is not None:
            self.copy(self._lines(self._written), "The commands that open the report are")
        elif self._draft is not None:
            self.tell("The report is not written yet. Enter writes it.")
