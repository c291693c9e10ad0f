"""Status: every check of this host in a line, the one under the cursor in full, and a jump to its chapter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from jitter_workshop.flow.findings import Finding, Findings
from jitter_workshop.model.assessment import State
from jitter_workshop.model.text import clean
from jitter_workshop.report.status_text import MARKS, value_in_words
from jitter_workshop.tui.actions import Scope, bindings
from jitter_workshop.tui.screens.base import WorkshopScreen, two_ends
from jitter_workshop.tui.theme import Palette
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.prose import clean_code, wrap
from jitter_workshop.tui.widgets.sheet import Pane, Sheet

WORDS: dict[State, str] = {"ok": "ok", "improve": "can be better", "unavailable": "not here", "info": "to know"}

_ID = 17
_FACT = 13
_PAGE_OF_ROWS = 10


class CheckList(Sheet):
    """The list; a click on a line chooses its check, a click on the chosen one goes on."""

    class Clicked(Message):
        """A line was clicked."""

        def __init__(self, line: int) -> None:
            super().__init__()
            self.line = line

    def on_click(self, event: events.Click) -> None:
        position = event.get_content_offset(self)
        if position is not None:
            event.stop()
            self.post_message(self.Clicked(position.y))


class StatusScreen(WorkshopScreen):
    """What ``status`` says, to walk through. It is read on a thread: the screen stays awake meanwhile."""

    scope: ClassVar[Scope] = "status"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("status"))

    @dataclass
    class Looked(Message):
        """What the thread found, or why there is nothing."""

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
        """On the worker's thread."""
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

    # -- what stands where -----------------------------------------------------------------------------------------

    def shown(self) -> tuple[Finding, ...]:
        """The checks that are listed now."""
        if self._found is None:
            return ()
        return self._found.improvable if self._only_improve else self._found.checks

    @property
    def finding(self) -> Finding | None:
        """The check under the cursor."""
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

    def _head(self, width: int, palette: Palette) -> Iterable[Text]:
        found = self._found
        if found is None:
            yield Text("Looking at this host…" if self._looking else "Nothing could be read.", style=palette.dim)
            return
        if found.recorded:
            yield Text("A recorded host, not this machine.", style=f"bold {palette.accent}")
        rest = f"housekeeping {found.housekeeping}" if found.housekeeping else "no housekeeping CPU"
        hot = f"Hot {'CPU' if found.hot.isdigit() else 'CPUs'} {found.hot}, {rest}: {clean(found.why_hot, 400)}"
        yield from wrap(Text(hot, style=palette.dim), width)
        if found.note:
            yield from wrap(Text(clean(found.note, 300), style=palette.accent), width, "▲ ")
        counts = Text()
        for state, word in WORDS.items():
            number = found.summary[state]
            counts.append("   " if counts else "")
            counts.append(f"{MARKS[state][0]} {number} {word}", _colour(state, palette) if number else palette.dim)
        what = "looking…" if self._looking else "only what can be better" if self._only_improve else "all checks"
        yield two_ends(counts, Text(what, style=palette.dim), width)

    def _rows(self) -> list[Finding | str]:
        """What each line of the list is: a family's heading or a check."""
        rows: list[Finding | str] = []
        group = ""
        for finding in self.shown():
            if finding.group != group:
                group = finding.group
                rows.append(group)
            rows.append(finding)
        return rows

    def _list(self, width: int, palette: Palette) -> Iterable[Text]:
        if self._found is not None and not self.shown():
            yield Text("Nothing of this host can be better, as far as this tool knows. a shows all.", style=palette.dim)
        under = self.finding
        for row in self._rows():
            if isinstance(row, str):
                yield Text(clean(row, 60).upper(), style=f"bold {palette.dim}")
            else:
                yield self._line(row, row is under, width, palette)

    def _line(self, finding: Finding, under: bool, width: int, palette: Palette) -> Text:
        check = finding.check
        quiet = check.state == "unavailable"
        line = Text()
        line.append("▸ " if under else "  ", palette.accent)
        line.append(f"{MARKS[check.state][0]} ", _colour(check.state, palette))
        line.append(f"{clean(check.id, _ID):<{_ID}} ", palette.dim if quiet else f"bold {palette.text}")
        if check.drifted is not None:
            line.append("drifted ", f"bold {palette.bad}")
        line.append(clean(check.title, 60), palette.dim if quiet else palette.text)
        told = value_in_words(check)
        if told:
            between = " " if told.startswith("→") else ": "
            line.append(between + clean(told, 200), palette.text if check.state == "improve" else palette.dim)
        line.truncate(max(width, 1), overflow="ellipsis")
        if under:
            line.append(" " * max(width - line.cell_len, 0))
            line.stylize(f"on {palette.panel}")
        return line

    def _about(self, width: int, palette: Palette) -> Iterable[Text]:
        """Of the check under the cursor, where its page is not beside the list."""
        finding = self.finding
        if finding is None or self.wide or self._reading:
            return
        yield from wrap(Text(clean(finding.check.reason, 300), style=palette.dim), width)[:2]
        yield _treated(finding, palette, "g")

    def _page(self, width: int, palette: Palette) -> Iterable[Text]:
        """All about the check under the cursor."""
        finding = self.finding
        if finding is None or self._found is None:
            return
        check = finding.check
        yield from wrap(Text(f"{clean(check.title, 80)} ({clean(check.id, 40)})", f"bold {palette.text}"), width)
        state = Text(f"{MARKS[check.state][0]} {WORDS[check.state]}", _colour(check.state, palette))
        if check.drifted is not None:
            state.append(" · drifted", f"bold {palette.bad}")
        state.append(" · a recorded host" if self._found.recorded else "", palette.accent)
        yield state
        yield from wrap(_treated(finding, palette, "Enter"), width)
        yield Text()
        if check.drifted is not None:
            drift = check.drifted
            told = f"{clean(drift.path, 200)}: set to {clean(drift.set, 80)}, found {clean(drift.found or '', 80)}"
            yield from _fact("drifted", told, width, palette)
        for name, text in finding.explained.facts:
            yield from _fact(name, text, width, palette)
        if finding.explained.files:
            yield from (Text(), Text("files", style=palette.cool))
            for path, now in finding.explained.files:
                yield from _file(path, now, width, palette)
            if finding.explained.more_files:
                yield Text(f"  … {finding.explained.more_files} more", style=palette.dim)
        if finding.explained.by_hand:
            yield from (Text(), Text("by hand", style=palette.cool))
            for command in finding.explained.by_hand:
                yield from wrap(Text(clean_code(command), style=palette.code), width, "  ", "    ")

    def _say(self, width: int, palette: Palette) -> Iterable[Text]:
        if self._said:
            yield from wrap(Text(clean(self._said, 400), style=palette.text), width, "▸ ")

    # -- keys ------------------------------------------------------------------------------------------------------

    def _move(self, by: int) -> None:
        shown = self.shown()
        under = self.finding
        if under is None:
            return
        now = shown.index(under)
        self._put(shown[max(0, min(now + by, len(shown) - 1))])

    def _put(self, finding: Finding) -> None:
        """Put the cursor on a check and keep it in sight, with its heading where it is the first below it."""
        self._under = finding.check.id
        self._said = ""
        self._redraw()
        self.query_one("#status-page", Pane).scroll_home(animate=False)
        line = self._rows().index(finding)
        self.query_one("#status-list", Pane).scroll_to_region(Region(0, max(line - 1, 0), 1, 3), animate=False)

    def _scrolls(self) -> Pane | None:
        """What the arrows scroll: the page where it stands alone, else nothing (they move the cursor)."""
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
            self.workshop_app.go_to_chapter(finding.chapter_id)
        else:
            self._said = f"No chapter of this course treats '{clean(finding.check.id, 40)}'."
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


def _colour(state: State, palette: Palette) -> str:
    return {"ok": palette.good, "improve": palette.accent, "unavailable": palette.dim, "info": palette.cool}[state]


def _treated(finding: Finding, palette: Palette, key: str) -> Text:
    """Which chapter is about a check, and the key that goes there."""
    if not finding.chapter_id:
        return Text("No chapter of this course treats it.", style=palette.dim)
    return Text.assemble(
        ("Chapter: ", palette.dim), (clean(finding.chapter, 60), palette.text), (f" · {key} goes there", palette.dim)
    )


def _fact(name: str, text: str, width: int, palette: Palette) -> Iterator[Text]:
    for number, part in enumerate(wrap(Text(clean(text, 1_000), style=palette.text), max(width - _FACT, 10))):
        yield Text.assemble((f"{name if number == 0 else '':<{_FACT}}", palette.cool), part)


def _file(path: str, now: str, width: int, palette: Palette) -> Iterator[Text]:
    """A path with what it says, below it where both have no room in a line."""
    first = Text(f"  {path}", style=palette.text)
    if not now:
        yield from wrap(Text(path, style=palette.dim), width, "  ", "    ")
    elif first.cell_len + 2 + len(now) <= width:
        yield Text.assemble(first, "  ", (now, palette.accent))
    else:
        yield from wrap(Text(path, style=palette.text), width, "  ", "    ")
        yield from wrap(Text(now, style=palette.accent), width, "      ")
