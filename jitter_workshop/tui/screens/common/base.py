"""Provide base classes for full screens, and for pages on top of a screen.

A screen has a title line, a body and a line of keys. If the terminal is too small, the screen shows only a sentence
that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar, cast

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen

from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.change import IRQ_HERE
from jitter_workshop.model.text import SENTENCE, SHORT, WORD, clean, many
from jitter_workshop.presenter.classes import class_host
from jitter_workshop.presenter.text.lines import LEAST_HEIGHT, LEAST_WIDTH, keyed, two_ends, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.core.actions import bindings
from jitter_workshop.tui.core.frame import Frame
from jitter_workshop.tui.widgets.keybar import KeyBar, Shown
from jitter_workshop.tui.widgets.sheet import Pane, Sheet

T = TypeVar("T")

WIDE, HUGE, TALL = 100, 140, 36
"""The sizes from which a screen shows more parts at once: WIDE and HUGE in columns, TALL in rows."""

_SAID_PERCENT = 45
"""The largest share of a screen's height for the sentences above the keys."""

IN_CLIPBOARD = "in the clipboard, where this terminal allows it"

_WHILE_HOST_CHANGES = frozenset({"vertical", "page"})
"""The actions that still work while the host is being changed: scrolling."""


class KeyedScreen(Screen[None]):
    """Show a screen that has its own group of keys. The table of actions defines the groups. ``scope``: the name of
    this screen's group. The arrow keys scroll the widget that :meth:`pane` returns.
    """

    AUTO_FOCUS = ""
    scope: ClassVar[str]
    STEP = 1
    """Lines that an arrow scrolls."""

    def __init_subclass__(cls, scope: str | None = None, **options: Any) -> None:
        if scope is not None:
            cls.scope = scope
            cls.BINDINGS = list(bindings(scope))
        super().__init_subclass__(**options)

    @property
    def frame(self) -> Frame:
        return cast(Frame, self.app)

    @property
    def workshop(self) -> Workshop:
        return self.frame.workshop

    def redraw(self) -> None:
        """Draw everything below the title again. Do nothing before the screen is mounted."""
        for sheet in self.query(Sheet).exclude("#title, #class-line, #too-small"):
            sheet.renew()

    def sheet(self, selector: str) -> Sheet:
        """Return a sheet of this screen by its id."""
        return self.query_one(selector, Sheet)

    def on_mount(self) -> None:
        self._sized()

    def on_resize(self) -> None:
        self._sized()
        self.redraw()

    def _sized(self) -> None:
        """Set the CSS classes for the terminal's size. Several classes may apply: a huge screen is also wide."""
        width, height = self.app.size
        self.update_classes(
            {
                "-small": width < LEAST_WIDTH or height < LEAST_HEIGHT,
                "-wide": width >= WIDE,
                "-huge": width >= HUGE,
                "-tall": height >= TALL,
            }
        )

    # -- keys ------------------------------------------------------------------------------------------------------

    def pane(self) -> Pane:
        """Return the pane that the keys scroll."""
        return self.query_one(Pane)

    def action_vertical(self, by: int) -> None:
        """Handle an arrow up (-1) or down (+1)."""
        self.pane().scroll_relative(y=by * self.STEP, animate=False)

    def action_page(self, by: int) -> None:
        """Handle PgUp (-1) or PgDn (+1)."""
        self.pane().turn_page(by)

    def to_end(self, by: int) -> None:
        """Handle Home (-1) or End (+1). A screen with a list moves the list's cursor to the first or the last row."""
        if self.query(Pane):
            scroll = self.pane().scroll_home if by < 0 else self.pane().scroll_end
            scroll(animate=False)

    def digit(self, index: int) -> None:
        """Handle a key 1 to 9, given as an index from 0. The index can be too large, if the screen has fewer items to
        choose from."""

    def unknown(self) -> None:
        """Handle a key that is bound to nothing."""

    def on_key(self, event: events.Key) -> None:
        if event.character is not None and event.character in "123456789":
            self.digit(int(event.character) - 1)
        elif event.key in ("home", "end") and event.key not in self.active_bindings:
            self.to_end(-1 if event.key == "home" else 1)
        elif event.is_printable and event.key not in self.active_bindings:
            self.unknown()

    def action_close(self) -> None:
        self.dismiss(None)


class WorkshopScreen(KeyedScreen):
    """Show a full screen of the workshop. Each screen handles its own keys; the app only opens and closes screens."""

    said = ""
    """The sentence above the keys, where a screen has the sheet ``#say`` for it."""
    _published: bool | None = None
    """True if the published curves (from an article of 2015) are shown at this visit. None if the user has not pressed
    the key for them."""

    @property
    def wide(self) -> bool:
        """Return True if there is room for lesson and chart side by side."""
        return self.size.width >= WIDE

    @property
    def huge(self) -> bool:
        """Return True if there is room for everything side by side."""
        return self.size.width >= HUGE

    @property
    def tall(self) -> bool:
        """Return True if the terminal has enough rows for the longer texts of a screen."""
        return self.size.height >= TALL

    @property
    def shows_published(self) -> bool:
        """Return True if the screen draws published curves now."""
        if self._published is not None:
            return self._published
        return self.gives_scale and self.frame.preferences.show_published

    @property
    def gives_scale(self) -> bool:
        """Return True if a published curve gives the scale on this screen, before the user presses a key for it."""
        return False

    def action_published(self) -> None:
        self._published = not self.shows_published
        self.redraw()

    def compose(self) -> ComposeResult:
        yield Sheet(self.title_lines, id="title")
        yield Sheet(self.class_lines, id="class-line")
        yield from self.body()
        yield KeyBar()
        yield Sheet(too_small, id="too-small")

    def body(self) -> ComposeResult:
        """Compose the part between title and keys."""
        raise NotImplementedError

    def keys(self) -> Sequence[Shown]:
        """Return the keys that the footer shows now."""
        raise NotImplementedError

    def heading(self) -> str:
        """Return the left part of the title."""
        return "Jitter Workshop"

    @property
    def nothing_applied(self) -> str:
        """Return the words of the title while no tunable is applied."""
        return "nothing changed"

    @property
    def write_of_run(self) -> str:
        """Return the write that stands only while a run is made, in short; "" while there is none."""
        return ""

    def title_lines(self, width: int) -> Iterable[Text]:
        """Yield the title line, with the screen's heading, the host's name and the host's state. The state is, for
        example, the number of changed settings."""
        write = self.write_of_run
        standing = sum(not write or one["id"] != IRQ_HERE for one in self.workshop.context.standing())
        others = len(self.workshop.of_others()) if standing else 0
        whose = "" if not others else " by others" if others >= standing else f", {others} by others"
        changed = f"{many(standing, 'setting')} changed{whose}" if standing else self.nothing_applied
        if write:
            changed = f"{write} · {changed}" if standing else write
        if self.workshop.hides_a_noise:
            runs = f"{'the named' if self.workshop.noise_is_named else 'a hidden'} noise is running"
            changed = f"{runs} · {changed}" if standing else runs
        state = "a recorded host: read-only" if self.workshop.context.recorded else changed
        session = f" · session {clean(self.workshop.named, WORD)}" if self.workshop.named else ""
        right = Text(f"{clean(self.workshop.context.host.name, SHORT)} · {state}{session}", "dim")
        yield two_ends(Text(self.heading(), "bold text"), right, width)

    def class_lines(self, width: int) -> Iterable[Text]:
        """Return lines that say who has the turn, and at which step the instructor is. Return () if the host has no
        class.
        """
        view = self.workshop.context.class_view
        return class_host.class_lines(view, self.workshop.course, width) if view is not None else ()

    def say_lines(self, width: int) -> Iterable[Text]:
        """Return the lines with the sentence above the keys."""
        return wrap(Text(clean(self.said, SENTENCE), "text"), width, "▸ ") if self.said else ()

    def in_sight(self, lines: Iterable[Text], width: int) -> Iterator[Text]:
        """Yield as many of ``lines`` as fit in _SAID_PERCENT per cent of the screen's height. If some lines do not
        fit, yield one more line with the number of these.
        """
        told, most = list(lines), max(self.size.height * _SAID_PERCENT // 100, 2)
        yield from told if len(told) <= most else told[: most - 1]
        if len(told) > most:
            left = f"… {many(len(told) - most + 1, 'more line')}: make the terminal higher"
            yield from wrap(Text(left, "dim"), width)

    def tell(self, text: str) -> None:
        """Show a sentence above the keys."""
        self.said = text
        self.redraw()

    def tell_busy(self) -> None:
        """React to a key that has no effect during a measurement. This base class does nothing; some screens override
        the method and tell the reason.
        """

    def copy(self, lines: Iterable[str], what: str) -> None:
        """Copy lines to the clipboard, and tell the user. ``what``: the first words of the message, such as "The
        commands are"."""
        self.app.copy_to_clipboard("\n".join(lines))
        self.tell(f"{what} {IN_CLIPBOARD}.")

    def show_class(self) -> None:
        """Draw the line with the turn and the instructor, from the last reading of the class."""
        if self.query("#class-line"):  # else the line is being mounted or removed
            self.sheet("#class-line").renew()
            self.refresh_keys()

    def show_title(self) -> None:
        """Draw the title again, because the facts in the title may have changed. These facts are the host, the applied
        tunables and a hidden noise.
        """
        self.sheet("#title").renew()

    def going_on(self) -> None:
        """Draw the screen again after the process has been stopped and continued (Ctrl-Z, then ``fg``)."""
        self.show_title()
        self.redraw()

    def redraw(self) -> None:
        if self.is_mounted:
            super().redraw()
            self.refresh_keys()

    def refresh_keys(self) -> None:
        """Show the present keys in the footer. Do nothing if the screen is being closed, and has no footer any more."""
        if not self.query(KeyBar):
            return
        self.call_next(self.query_one(KeyBar).show, self._with_class(tuple(self.keys())))

    def _with_class(self, keys: tuple[Shown, ...]) -> tuple[Shown, ...]:
        """Return ``keys``, with the keys for a class inserted after the first of them. Return ``keys`` unchanged during
        a run or a change, and on a host without a class."""
        view, app = self.workshop.context.class_view, self.frame
        if view is None or not keys or app.measuring or app.at_work:
            return keys
        return (keys[0], *class_host.class_keys(view), *keys[1:])

    def on_mount(self) -> None:
        self.refresh_keys()

    def on_screen_resume(self) -> None:
        """Draw everything again, because another screen may have changed the host or the session."""
        self.show_class()
        self.redraw()

    def action_close(self) -> None:
        self.app.pop_screen()


class HostChangeScreen(WorkshopScreen):
    """Show a screen that can change the host. Each change runs on a thread. Two changes never run at the same time."""

    def on_thread(
        self, work: Callable[[], T], then: Callable[[T], None], failed: Callable[[WorkshopError], None] | None = None
    ) -> None:
        """Call ``work`` on a thread, and afterwards ``then`` or ``failed`` on the screen's thread.

        ``then`` gets the result of ``work``. ``failed`` gets a WorkshopError; if ``failed`` is None, a dialog shows the
        error. If the user is in the queue for a turn, ``work`` is not called. ``failed`` then gets an error that says
        so.
        """
        failed = failed or self._failed_to_change
        if self.frame.class_turn.queued:
            failed(HostError("you are in the queue for this machine", "T shows the queue; x leaves it"))
            return

        def run() -> None:
            try:
                tell = partial(then, work())
            except WorkshopError as error:
                tell = partial(failed, error)
            self.call_later(self._changed, tell)

        self.frame.begin_work()
        self.refresh_keys()
        self.run_worker(run, thread=True, group="change")

    def refused(self, what: str) -> Callable[[WorkshopError], None]:
        """Return a function that tells an error above the keys instead of in a dialog. ``what``: the first words of the
        sentence, such as "Not restored"."""
        return lambda error: self.tell(f"{what}: {error.sentence()}.")

    def _failed_to_change(self, error: WorkshopError) -> None:
        self.tell("")
        self.frame.show_error(error)

    def _changed(self, tell: Callable[[], None]) -> None:
        # The work is ended before its result is told, so that the screen is read again with all its keys.
        leaving = self.frame.leaving
        self.frame.end_work()
        if not leaving:
            tell()
            self.show_title()
            self.redraw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if self.frame.at_work and action not in _WHILE_HOST_CHANGES:
            return False
        return super().check_action(action, parameters)


class Page(ModalScreen[None], KeyedScreen):
    """Show a page over the screen, such as help or a question. The page has a frame with text, and a line that names
    the keys."""

    STEP = 3

    def compose(self) -> ComposeResult:
        with Vertical(classes="around"), Vertical(classes="frame"):
            with Pane():
                yield Sheet(self.lines, id="page-sheet")
            yield Sheet(self.key_lines, id="page-keys")

    def lines(self, width: int) -> Iterable[Text]:
        """Return the lines of the page."""
        raise NotImplementedError

    def key_words(self) -> str:
        """Return the line that names the keys; "" if the page's own lines name them."""
        return ""

    def key_lines(self, width: int) -> Iterable[Text]:
        if words := self.key_words():
            yield Text()
            yield from wrap(keyed(words), width)
            yield Text()


def too_small(width: int) -> Iterable[Text]:
    """Return the lines for a terminal that is too small, wrapped at ``width``."""
    sentence = f"The workshop needs {LEAST_WIDTH}×{LEAST_HEIGHT} characters. Enlarge the terminal; q leaves."
    return wrap(Text(sentence, "text"), width)
