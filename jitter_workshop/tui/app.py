"""Run the workshop in a terminal. The app opens and closes screens, handles signals, and lets sudo ask for the
password."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from textual.app import App, SystemCommand
from textual.driver import Driver
from textual.screen import Screen

from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.flow.chapters.path import step_named
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.palette import THEMES
from jitter_workshop.model.text import capital, cleaned_sentence
from jitter_workshop.tui.core.actions import Action, of_scope
from jitter_workshop.tui.core.frame import Frame
from jitter_workshop.tui.screens.class_host.turn import TurnController
from jitter_workshop.tui.screens.common.base import WorkshopScreen
from jitter_workshop.tui.screens.home.home import HomeScreen
from jitter_workshop.tui.terminal.driver import QuietDriver
from jitter_workshop.tui.terminal.terminal_restore import guarded_terminal, served

if TYPE_CHECKING:
    from textual.command import Provider

    from jitter_workshop.tui.screens.common.dialogs import LeaveQuestion

T = TypeVar("T")

_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)

_SCREENS = {
    "curves": "runs.runs.RunsScreen",
    "glossary": "common.help.GlossaryPage",
    "help": "common.help.HelpPage",
    "programs": "programs.ProcessesScreen",
    "report": "report.ReportScreen",
    "preferences": "common.preferences.PreferencesPage",
    "status": "host.status.StatusScreen",
    "summary": "home.summary.SummaryScreen",
}
"""Name → the screen that a key opens everywhere. A screen is imported when it is opened, so that the first frame is
fast."""

_NOT_WHILE_MEASURING = frozenset({"command_palette", "jump", "practice", "show", "theme", "turn"})
"""The actions that are refused while a block is measured, because they paint or start a timer."""


def _places() -> type[Provider]:
    """Return the class that finds chapters, checks and steps in the command palette. Its module is imported only when
    the palette is opened.
    """
    from jitter_workshop.tui.screens.places import PlaceFinder

    return PlaceFinder


class WorkshopApp(Frame):
    """Show the workshop. ``chapter``: the id of the chapter to open first; None for the home screen."""

    COMMANDS = App.COMMANDS | {_places}
    CSS_PATH = "workshop.tcss"
    TITLE = "Jitter Workshop"

    def __init__(self, workshop: Workshop, chapter: str | None = None) -> None:
        driver: type[Driver] = QuietDriver
        if served():
            from jitter_workshop.tui.terminal.webdriver import PageDriver

            driver = PageDriver
        super().__init__(workshop, driver)
        self.class_turn: TurnController = TurnController(self)
        self._question: LeaveQuestion | None = None
        self._first_chapter = chapter

    def on_mount(self) -> None:
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for number in _SIGNALS:
                loop.add_signal_handler(number, self.end_by_signal, number)
        # A thread that changes the host lets sudo ask for the password below the screen.
        self.workshop.context.agent_connection.ask = partial(self.call_from_thread, self._in_plain_terminal)
        self.workshop.context.agent_connection.class_only = served()
        self.class_turn.begin()
        home = HomeScreen()
        self.push_screen(home)
        # Not before the first frame: the look lasts longer than the whole start.
        self.when_painted(home, lambda: self.call_later(self._begin_to_look))
        if self._first_chapter is not None:
            self.open_chapter(self._first_chapter)
            # Home would say it; a learner who goes past home must know before the first step that nothing is kept.
            read_only = self.workshop.context.handle.read_only_error()
            if read_only is not None:
                self.show_error(read_only)

    def _begin_to_look(self) -> None:
        # Objects of the start live as long as the process; the verb has turned the collector off.
        gc.freeze()
        gc.enable()
        self.run_worker(self._look_at_load(), group="load")

    async def _look_at_load(self) -> None:
        """Measure this host's load, and tell the user if it will disturb every chapter: at home in a sentence, in a
        chapter before its run. Do nothing if a run has begun meanwhile, because the run's result will name the load.
        """
        from jitter_workshop.presenter.host.host_load import load_told
        from jitter_workshop.tui.background import aside

        load = await aside(self.workshop.look_at_load)
        if load is None or not load.drowns or self.measuring or self.at_work or self.leaving:
            return
        screen = next(one for one in reversed(self.screen_stack) if isinstance(one, WorkshopScreen))
        # Not before the screen has shown its first page.
        if isinstance(screen, HomeScreen):
            screen.call_later(screen.tell, load_told(load))
        else:
            self.load_to_tell = load
            screen.call_later(screen.redraw)

    def on_unmount(self) -> None:
        self.class_turn.leave_queue()

    def end_by_signal(self, number: int) -> None:
        """Stop a run, restore the terminal, and leave with exit code 128 + ``number``."""
        self.exit_code = 128 + number
        self.leave()

    def terminal_gone(self) -> None:
        """End the app after the terminal was closed."""
        self.end_by_signal(signal.SIGHUP)

    def leave(self) -> None:
        """End the app. First stop a run that is being made: it would otherwise wait for the screen. If a thread is
        changing the host, the app ends after this change.
        """
        self.leaving = True
        self.class_turn.leave_queue()
        if self.stop_run is not None:
            self.stop_run()
        if self.at_work:
            self._after_work = self.leave
            return
        self.exit()

    # -- the password ----------------------------------------------------------------------------------------------

    def _in_plain_terminal(self, start: Callable[[], T]) -> T:
        """Run ``start`` while the screen is suspended, so that sudo can ask for a password in the plain terminal.
        Ctrl-C then refuses the password and does not leave the workshop."""
        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGINT)
        error: WorkshopError = HostError("no password was given", "Enter asks for the password again")
        agent: T | None = None
        with self.suspend():
            # An error that left this block would leave the terminal without its screen.
            try:
                print("\nChanging this host needs root's rights; sudo asks for your password.", flush=True)
                agent = start()
            except WorkshopError as refused:
                error = refused
            except KeyboardInterrupt:
                pass
        # The loop hears of that Ctrl-C, too, in its next round: only after it does the signal leave again.
        loop.call_soon(loop.call_soon, self._heed_interrupt)
        if agent is None:
            raise error
        return agent

    def _heed_interrupt(self) -> None:
        if not self.is_headless:
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.end_by_signal, signal.SIGINT)

    def _leave_asking(self, leave: Callable[[], None]) -> None:
        """Call ``leave``. If leaving would restore settings, ask the learner first, who may want to keep the changes.
        A run is stopped before the question; its finished blocks are not lost. If the learner asks to leave a second
        time, call ``leave`` at once.
        """
        if self.stop_run is not None and not self.leaving:
            self._after_run = lambda: self._leave_asking(leave)
            self.stop_run()
            return
        # A lease may have run out: then there is nothing to ask about.
        nothing = not self.workshop.context.agent_connection.holding or not self.workshop.context.standing()
        if self.leaving or nothing or self.screen is self._question:
            leave()
        elif not self.at_work:
            from jitter_workshop.tui.screens.common.dialogs import LeaveQuestion

            self._question = LeaveQuestion(leave)
            self.push_screen(self._question)

    # -- the way between screens -----------------------------------------------------------------------------------

    def open_chapter(self, chapter_id: str, *, measure: bool = False, step: str = "") -> None:
        from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen

        if self.at_work:
            return
        try:
            walk = self.workshop.walk(chapter_id)
        except WorkshopError as error:
            self.show_error(error)
            return
        said = ""
        wanted = step_named(walk.chapter, step)
        if wanted is not None:
            try:
                walk.go(wanted)
            except WorkshopError as error:
                said = f"The instructor is at {wanted}. {cleaned_sentence(error.sentence())}"
        elif not measure:
            walk.resume()
        self.push_screen(ChapterScreen(walk, measure=measure, said=said))

    def go_to_chapter(self, chapter_id: str, step: str = "") -> None:
        self.workshop.hunts.end()
        while not isinstance(self.screen, HomeScreen):
            self.pop_screen()
        self.open_chapter(chapter_id, step=step)

    def show_error(self, error: WorkshopError) -> None:
        from jitter_workshop.tui.screens.common.dialogs import ErrorDialog

        self.push_screen(ErrorDialog(error))

    # -- actions ---------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if (self.measuring or self.at_work) and action in _NOT_WHILE_MEASURING:
            # A newcomer who asks for help during a run is told why none comes.
            return self.measuring and not self.at_work and (action, *parameters) == ("show", "help")
        if action in ("turn", "jump") and self.workshop.context.class_view is None:
            return False
        return super().check_action(action, parameters)

    def action_show(self, name: str) -> None:
        """Open the screen called ``name``. Do nothing if this screen is open already. While a page waits for an answer,
        only the help and the glossary can be opened. During a measurement nothing opens, and the screen says why."""
        if self.measuring:
            if isinstance(self.screen, WorkshopScreen):
                self.screen.tell_busy()
            return
        module, _, kind = f"jitter_workshop.tui.screens.{_SCREENS[name]}".rpartition(".")
        screen: type[Screen[None]] = getattr(import_module(module), kind)
        if not isinstance(self.screen, screen) and (name in ("help", "glossary") or not self.screen.is_modal):
            self.push_screen(screen())

    def action_practice(self) -> None:
        """Explain a practice machine and ask whether to open it. If a chapter's screen is open, the machine opens at
        the same chapter.
        """
        from jitter_workshop.flow.host_ops import practising
        from jitter_workshop.presenter.host import practice
        from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
        from jitter_workshop.tui.screens.common.dialogs import Question

        if self.screen.is_modal:
            return
        try:
            practising.refuse_if_no_practice(self.workshop.context.host, served=served())
        except HostError as error:
            self.show_error(error)
            return
        chapter = self.screen.walk.chapter if isinstance(self.screen, ChapterScreen) else None
        command = practising.practice_command("" if chapter is None else chapter.id)
        about = partial(practice.describe_machine, "" if chapter is None else chapter.title)
        self.push_screen(Question(practice.QUESTION, about, practice.KEYS, partial(self._practise, command)))

    def _practise(self, command: list[str]) -> None:
        """Give the terminal to a practice machine, and take it back when the machine has ended."""
        from jitter_workshop.flow.host_ops.practising import practise
        from jitter_workshop.presenter.host.practice import machine_ended_sentence

        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGINT)
        error: WorkshopError | None = None
        code = 0
        with self.suspend():
            # An error that left this block would leave the terminal without its screen.
            try:
                code = practise(command)
            except WorkshopError as refused:
                error = refused
        # A Ctrl-C from before the machine had the terminal is heard by the loop, too, in its next round.
        loop.call_soon(loop.call_soon, self._heed_interrupt)
        if error is not None:
            self.show_error(error)
        elif isinstance(self.screen, WorkshopScreen):
            self.screen.tell(machine_ended_sentence(code))

    def action_theme(self) -> None:
        self.change_preferences(theme=self.next_palette)

    def action_turn(self) -> None:
        """Ask for this learner's turn on a host that a class shares, or end the turn."""
        self.class_turn.toggle()

    def action_jump(self) -> None:
        """Go to the chapter and step where the instructor is."""
        self.class_turn.jump()

    def action_leave(self) -> None:
        self._leave_asking(self.leave)

    def going_on(self) -> None:
        if self.run_goes_on is not None:
            self.run_goes_on()
        if isinstance(self.screen, WorkshopScreen):
            self.screen.call_next(self.screen.going_on)

    def action_interrupt(self) -> None:
        """Handle Ctrl-C. Stop a run and stay in the workshop; if no run is being made, leave the workshop."""
        if self.stop_run is not None:
            self.stop_run()
        else:
            self._leave_asking(partial(self.end_by_signal, signal.SIGINT))

    def action_command_palette(self) -> None:
        """Open the command palette on the present screen, with no command under its cursor."""
        from textual.command import CommandPalette

        from jitter_workshop.tui.screens.common.finder import CommandFinder

        if not isinstance(self.screen, CommandPalette):
            scope = getattr(self.screen, "scope", None)
            changes = [_title(one) for one in of_scope(scope) if one.changes_host] if scope else []
            self.push_screen(CommandFinder(changes))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield the palette's commands: the actions of the current screen, and those that work on every screen."""
        in_class = self.workshop.context.class_view is not None
        for scope in (getattr(screen, "scope", None), "app"):
            for action in of_scope(scope, in_class=in_class) if scope else ():
                if action.palette:
                    title = _title(action)
                    namespace = self if action.scope == "app" else screen
                    run_it = partial(self.run_action, action.run, default_namespace=namespace)
                    yield SystemCommand(title, action.tooltip, run_it)
        for name in THEMES:
            # The title alone is searched: "light", "theme", "colour" and "color" all find it.
            title, use = f"Colours: {name.replace('-', ' ')} theme", partial(self.change_preferences, theme=name)
            yield SystemCommand(title, "Draw the workshop in these colours", use)


def _title(action: Action) -> str:
    """Return the title of an action in the command palette, such as ``Measure  (m)``."""
    return f"{capital(action.label)}  ({action.shown})"


def show_workshop(workshop: Workshop, chapter: str | None = None) -> int:
    """Show the workshop until its user leaves, and return the exit code. In a terminal, also restore the changes that
    last only as long as the workshop, and print what was restored. The caller closes the workshop."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    app = WorkshopApp(workshop, chapter)
    try:
        with guarded_terminal():
            app.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if served():
        return app.exit_code
    from jitter_workshop.flow.chapters.by_hand import owed_by_hand
    from jitter_workshop.presenter.host.by_hand import still_made
    from jitter_workshop.presenter.host.changes import farewell

    with contextlib.suppress(OSError):  # the terminal may be what has gone
        sys.stdout.write(farewell(workshop))
        if made := still_made(owed_by_hand(workshop.context, workshop.course)):
            sys.stdout.write(f"{made}\n")
        sys.stdout.flush()
    return app.exit_code or app.return_code or 0


class _Rehearsal(WorkshopApp):
    """Draw the first screen and end. The check of the host's load, which needs a thread, does not begin."""

    def _begin_to_look(self) -> None:
        self.exit()


def draw_first_screen(workshop: Workshop, size: tuple[int, int]) -> None:
    """Draw the first screen once, without a terminal. This loads what the drawing needs, so a later fork of this
    process draws the screen faster. ``size``: columns and rows. The caller closes the workshop.
    """
    app = _Rehearsal(workshop)
    app.run(headless=True, size=size)
    app.keep_parsed()
