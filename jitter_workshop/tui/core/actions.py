"""List every key of the workshop once. Bindings, footer, help page and palette are all made from this list."""

from __future__ import annotations

import dataclasses

from textual.binding import Binding

from jitter_workshop.model.record import dataclass
from jitter_workshop.presenter.course import action_meanings as meanings

SCOPE_TITLES = {
    "app": "EVERYWHERE",
    "home": "HOME",
    "chapter": "IN A CHAPTER",
    "runs": "ALL CURVES",
    "causes": "WHO TOOK THE TIME",
    "programs": "EXPLAINING A PROGRAM",
    "recall": "DO YOU REMEMBER?",
    "command": "TYPING A COMMAND",
    "mask": "WRITING A MASK",
    "suspects": "NAMING A NOISE",
    "cures": "TRYING A CURE",
    "cpus": "CHOOSING CPUs",
    "preferences": "PREFERENCES",
    "status": "STATUS",
    "summary": "FROM FIRST TO LAST",
    "proving": "PROVING A CHANGE",
    "report": "THE REPORT",
    "queue": "WAITING FOR THE TURN",
    "dialog": "MESSAGES",
    "question": "QUESTIONS",
}
"""The screens and pages that have keys of their own, with their titles on the help page."""

TYPED_AHEAD_S = 0.5
"""Seconds for which keys do nothing on a newly shown plan. The user may have pressed the key before seeing the plan."""

_WRITTEN = {
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "escape": "Esc",
    "slash": "/",
    "plus": "+",
    "question_mark": "?",
    "pageup": "PgUp",
    "pagedown": "PgDn",
}


@dataclass(frozen=True, slots=True)
class Action:
    """Hold one action and its keys.

    ``keys``: Textual's names of the keys, separated by commas; "" if a screen handles the keys itself. ``written``: the
    text to show for the keys if ``keys`` is "". ``method``: the name of the method to call; "" if the method has the
    same name as the action. ``palette``: True if the command palette shows the action. ``of_class``: True if the action
    exists only on a host that a class shares. ``changes_host``: True if the action can write to settings of the host.
    """

    name: str
    keys: str
    label: str
    tooltip: str
    written: str = ""
    method: str = ""
    palette: bool = True
    of_class: bool = False
    changes_host: bool = False
    scope: str = "app"

    @property
    def id(self) -> str:
        return f"{self.scope}.{self.name}"

    @property
    def run(self) -> str:
        """Return the name of the method that Textual calls for the action."""
        return self.method or self.name

    @property
    def shown(self) -> str:
        """Return the text that the footer shows for the action's first key."""
        key = self.keys.split(",")[0].replace("ctrl+", "^")
        return self.written or _WRITTEN.get(key, key.title() if len(key) > 2 else key)


def _moves(
    up: str = "Scroll up", down: str = "Scroll down", up_keys: str = "up,k", down_keys: str = "down,j"
) -> tuple[Action, Action]:
    """Return the actions for the keys up and down, with their tooltips."""
    return (
        Action("up", up_keys, "up", up, method="vertical(-1)", palette=False),
        Action("down", down_keys, "down", down, method="vertical(1)", palette=False),
    )


def _sides(left: str, right: str, label: str = "curve") -> tuple[Action, Action]:
    """Return the actions for the keys left and right, with their tooltips."""
    return (
        Action("left", "left", label, left, method="sideways(-1)", palette=False),
        Action("right", "right", label, right, method="sideways(1)", palette=False),
    )


def _by_step(name: str, keys: str, label: str, tooltip: str, written: str = "") -> Action:
    """Return an action of a chapter. The present step does it, by its method ``press`` with the action's name."""
    return Action(name, keys, label, tooltip, written, method=f"press('{name}')")


_PAGES = (
    Action("page_up", "pageup", "page up", "Scroll a page up; Home: to the top", method="page(-1)", palette=False),
    Action(
        "page_down",
        "pagedown,space",
        "page down",
        "Scroll a page down; End: to the end",
        method="page(1)",
        palette=False,
    ),
)


def _list_pages(what: str) -> tuple[Action, Action]:
    """Return the actions for the keys page up and page down in a list with a cursor. ``what``: what a row is."""
    return (
        Action("page_up", "pageup", "page up", f"A page up; Home: the first {what}", method="page(-1)", palette=False),
        Action(
            "page_down",
            "pagedown,space",
            "page down",
            f"A page down; End: the last {what}",
            method="page(1)",
            palette=False,
        ),
    )


_BACK = Action("close", "escape,q", "back", "Back to the page before", palette=False)

_OF_SCOPE: dict[str, tuple[Action, ...]] = {
    "app": (
        Action(
            "help", "question_mark,f1", "help", "The keys of this page, then all keys and words", method="show('help')"
        ),
        Action("glossary", "g,f2", "words", meanings.WORDS, method="show('glossary')"),
        Action("palette", "ctrl+p", "commands", "Find a command by typing", method="command_palette", palette=False),
        Action("curves", "c", "curves", "Chart and table of all runs of this session", method="show('curves')"),
        Action(
            "status",
            "s",
            "status",
            f"{meanings.STATUS}, and the chapter about each",
            method="show('status')",
        ),
        Action("report", "r", "report", meanings.REPORT, method="show('report')"),
        Action("summary", "l", "first to last", meanings.SUMMARY, method="show('summary')"),
        Action("practice", "P", "practice", meanings.PRACTICE),
        Action(
            "preferences", "e", "preferences", "Theme, length of a run, curves of 2015", method="show('preferences')"
        ),
        Action("theme", "ctrl+t", "next theme", "Dark, light, high contrast"),
        Action("turn", "T", "turn", "Take your turn on this machine, end it, or see the queue", of_class=True),
        Action("jump", "G", "instructor", meanings.GO_TO_INSTRUCTOR, of_class=True),
        Action("quit", "ctrl+q", "quit", meanings.LEAVE, method="leave"),
        Action("pause", "ctrl+z", "to the shell", "Suspend the workshop; fg brings it back", method="suspend_process"),
        Action("interrupt", "ctrl+c", "stop", "Copy the selection, or stop a run, or leave", palette=False),
    ),
    "home": (
        Action("go", "enter", "go", "Open the chapter under the cursor at its next useful step"),
        Action("measure", "m", "measure", "Measure now: your own curve in one key"),
        Action(
            "explain",
            "x",
            "explain",
            meanings.EXPLAIN,
            method="app.show('programs')",
        ),
        Action("restore", "u", "restore all", meanings.RESTORE_ALL, changes_host=True),
        Action("resume", "a", "apply again", meanings.APPLY_AGAIN, changes_host=True),
        Action("load", "L", "load", meanings.LOAD),
        *_moves("Chapter above", "Chapter below"),
        *_list_pages("chapter"),
        Action("quit", "q", "quit", meanings.LEAVE, method="app.leave", palette=False),
    ),
    "chapter": (
        Action(
            "enter",
            "enter",
            "go on",
            "Show more of the page; then do this step's work; then go to the next step",
            changes_host=True,
        ),
        Action("back", "b,backspace", "back", meanings.BACK),
        Action("lesson", "tab", "lesson", "Switch between the lesson and the chart"),
        Action("table", "t", "table", meanings.TABLE),
        Action("hint", "h", "hint", meanings.HINT),
        _by_step("again", "m", "measure", "Make or repeat this step's run; at other steps, make the next missing run"),
        Action("noise", "w", "noise", meanings.NOISE),
        _by_step("cpus", "p", "pick CPUs", "Before a run: choose the CPUs of the measured threads"),
        _by_step("prove", "", "prove it", meanings.PROVE, written="p"),
        Action("published", "o", "2015", f"Show or hide {meanings.CURVES_OF_2015}"),
        _by_step("causes", "v", "causes", meanings.CAUSES),
        _by_step("hunt", "x", "hide a noise", meanings.HUNT),
        _by_step("name", "i", "name it", f"{meanings.NAME}, or give up"),
        _by_step(
            "without",
            "",
            "go on without a name",
            "At 'compare' and 'explain' of a hunt: go on without naming the noise",
            written="n",
        ),
        _by_step(
            "enough",
            "",
            "end the noise",
            f"At 'compare' of a hunt: {meanings.beside_a_word(meanings.ENOUGH)}",
            written="n",
        ),
        Action("skip", "", "go on", "On a page with more below: skip the rest", written="n"),
        _by_step("imported", "", "imported", f"At 'compare': show or hide {meanings.IMPORTED_CURVES}", written="i"),
        _by_step("cure", "r", "try a cure", meanings.CURE),
        _by_step("copy", "y", "copy", "Copy the commands of this step"),
        Action("boots", "n", "one boot", f"{meanings.NEXT_BOOT}, or for every boot"),
        _by_step("fold", "f", "more commands", meanings.MORE_COMMANDS),
        _by_step("every", "plus", "each write", "At 'apply': show each write of a group of equal writes, or one line"),
        _by_step("mask", "a", "write a mask", "At 'apply': write a mask in digits or bits, and have it checked"),
        Action("program", "slash", "your command", meanings.COMMAND),
        _by_step("by_hand", "d", "do it myself", meanings.BY_HAND),
        Action("restore", "u", "restore", meanings.RESTORE, changes_host=True),
        *_moves("Scroll up; move the mark up; the answer above", "Scroll down; move the mark down; the answer below"),
        *_sides(
            "Highlight the previous curve; lower the mark by a decade",
            "Highlight the next curve; raise the mark by a decade",
        ),
        Action("number", "", "number", "Choose the curve or the answer with this number", written="1–9", palette=False),
        Action("programs", "", "program", meanings.PROGRAMS, written="1–3", palette=False),
        *_PAGES,
        Action("home", "escape,q", "home", "Stop the run, or close the hint, or go to the home screen"),
    ),
    "runs": (
        Action(
            "toggle", "space,enter", "show/hide", "Show or hide the curve of the run under the cursor", method="draw"
        ),
        Action("table", "t", "table", meanings.TABLE),
        Action("heat", "h", "heat", "Heat map: when the values of the run under the cursor came"),
        Action("published", "o", "2015", f"Show or hide {meanings.CURVES_OF_2015}"),
        Action("imported", "i", "imported", f"Show or hide {meanings.IMPORTED_CURVES}"),
        Action("all", "a", "all/none", "Draw all runs (at most the newest six), or none"),
        Action("causes", "v", "causes", "What took the time of the run under the cursor, if it was traced"),
        *_moves("Run above", "Run below"),
        _BACK,
    ),
    "causes": (
        Action("turn", "tab", "stalls", "Switch between the causes, the worst stalls, and who else ran", palette=False),
        Action("tracks", "p", "Perfetto", "Write the trace as tracks, to be opened at ui.perfetto.dev"),
        Action("copy", "y", "copy", "Copy the commands that show the same"),
        *_moves("Scroll up; choose the stall above", "Scroll down; choose the stall below"),
        *_PAGES,
        _BACK,
    ),
    "programs": (
        Action("go", "enter", "explain", "Observe the process under the cursor for 10 s, and explain its time"),
        Action("type", "slash", "find", "Type a process's number, or a part of its name"),
        Action("again", "r", "look again", "Read the list of processes again"),
        *_moves("Process above", "Process below"),
        *_PAGES,
        _BACK,
    ),
    "recall": (
        Action("number", "", "number", "Give the answer with this number", written="1–4"),
        Action("not_known", "0", "I do not know", "Show the answer to a question that you cannot answer"),
        Action("agree", "enter", "go on", "Go on after an answer"),
        *_moves(),
        *_PAGES,
        Action("close", "escape,q", "skip all", "Skip all questions and begin the chapter"),
    ),
    "command": (
        Action("agree", "enter", "take it", "Use the typed command"),
        Action("close", "escape", "back", "Change nothing"),
    ),
    "mask": (
        Action("type", "", "type it", "Type the mask as hexadecimal digits; the bits follow", written="0–9 a–f"),
        Action("delete", "backspace", "delete", "Take the last typed digit back"),
        Action("flip", "space", "0 or 1", "Set the bit under the cursor to 0 or to 1"),
        Action("agree", "enter", "check", "Check the mask; after the check, go on"),
        *_sides("The bit of the next CPU", "The bit of the previous CPU", "bit"),
        *_moves("A row of bits up", "A row of bits down"),
        _BACK,
    ),
    "suspects": (
        Action("agree", "enter", "name it", "Name the noise under the cursor"),
        Action("number", "", "number", "Choose the noise with this number", written="1–9"),
        Action("give_up", "x", "give up", meanings.GIVE_UP),
        *_moves("The noise above", "The noise below"),
        *_PAGES,
        Action("close", "escape,q", "back", "Go back to the search; the noise goes on"),
    ),
    "cures": (
        Action("agree", "enter", "measure", "Measure on the CPU under the cursor"),
        Action("number", "", "number", "Choose the CPU with this number", written="1–9"),
        Action("copy", "y", "copy", "Copy the commands"),
        *_moves("The CPU above", "The CPU below"),
        *_PAGES,
        Action("close", "escape,q", "back", "Measure nothing"),
    ),
    "cpus": (
        Action("producer", "p", "producer", "Put the producer on the CPU under the cursor", method="put('producer')"),
        Action(
            "accumulator",
            "a",
            "accumulator",
            "Put the accumulator on the CPU under the cursor",
            method="put('accumulator')",
        ),
        Action(
            "journaller",
            "j",
            "journaller",
            "Put the journaller on the CPU under the cursor",
            method="put('journaller')",
        ),
        Action("type", "slash", "type", "Type a list: 2,4 or producer=2"),
        Action("auto", "x", "automatic", "Let the workshop choose"),
        Action("accept", "enter", "accept", "Use these CPUs"),
        Action("close", "escape", "cancel", "Change nothing"),
        *_moves("A row up", "A row down", "up", "down"),
        *_sides("The previous CPU", "The next CPU", "CPU"),
    ),
    "preferences": (
        Action("change", "enter,space,right", "change", "Switch this preference to its next value", method="change(1)"),
        Action("change_back", "left", "back", "Switch this preference to its previous value", method="change(-1)"),
        *_moves("Preference above", "Preference below"),
        _BACK,
    ),
    "status": (
        Action("go", "enter", "go on", "Show the check in full; then open its chapter", palette=False),
        Action("chapter", "n", "chapter", "Go to the chapter that treats the check under the cursor"),
        Action("improve", "i", "only ▲", "Show only checks that can be better", method="filter(True)"),
        Action("all", "a", "all", "Show all checks", method="filter(False)"),
        Action("copy", "y", "copy", "Copy the commands that show the check"),
        Action("again", "r", "look again", "Read this host once more"),
        *_moves("Check above; scroll", "Check below; scroll"),
        *_PAGES,
        _BACK,
    ),
    "summary": (
        *_sides("Highlight the previous chapter", "Highlight the next chapter"),
        Action("table", "t", "table", "The same numbers as a table, without the chart"),
        *_moves(),
        *_PAGES,
        _BACK,
    ),
    "proving": (
        Action("enter", "enter", "begin", "Begin the proof; at 'Stop now?': stop, and keep the rounds", palette=False),
        Action("again", "p", "prove again", "Prove the change once more, with as many rounds as you choose"),
        Action("number", "", "rounds", "Choose how many rounds", written="1–9", palette=False),
        Action("copy", "y", "copy", "Copy the verdict to the clipboard"),
        *_moves("More or fewer rounds; scroll", "More or fewer rounds; scroll"),
        *_PAGES,
        Action("close", "escape,q", "back", "Back to the chapter; during a proof, ask whether to stop"),
    ),
    "report": (
        Action("write", "enter,w", "write", "Write the report to a new file; nothing is overwritten"),
        Action("format", "f", "format", "The next format: html, md, json, pyperf, hlog, hgrm, perfetto"),
        Action("names", "n", "hide names", "Leave out names of hosts, users and tasks, and the raw data"),
        Action("copy", "y", "copy", "Copy the commands that open the file"),
        *_sides("The previous chart", "The next chart", "chart"),
        *_moves(),
        *_PAGES,
        Action("close", "escape,q", "back", "Stop the work and go back", palette=False),
    ),
    "queue": (
        Action("leave_queue", "x", "leave", "Leave the queue"),
        Action("close", "escape,enter,q", "read on", "Go on reading; your place in the queue is kept"),
        *_moves("Scroll the queue up", "Scroll the queue down", "up,k,pageup", "down,j,pagedown,space"),
    ),
    "dialog": (
        Action("close", "escape,enter,q", "close", "Close this"),
        Action("copy", "y", "copy", "Copy this text to the clipboard"),
        *_moves("Scroll up", "Scroll down", "up,k,pageup", "down,j,pagedown,space"),
    ),
    "question": (
        Action("agree", "enter", "yes", "Do what the question asks"),
        Action("keep", "k", "keep", "Keep the changes, and leave or measure"),
        Action("close", "escape,q", "no", "Change nothing"),
        *_moves("Scroll up", "Scroll down", "up,pageup", "down,pagedown,space"),
    ),
}

_MODAL = {
    "recall",
    "command",
    "mask",
    "suspects",
    "cures",
    "cpus",
    "preferences",
    "queue",
    "dialog",
    "question",
}
"""The scopes of pages over a screen: from there the command palette cannot be opened."""

ACTIONS: tuple[Action, ...] = tuple(
    dataclasses.replace(
        one,
        scope=scope,
        palette=one.palette and scope not in _MODAL,
        of_class=one.of_class or scope == "queue",
    )
    for scope, actions in _OF_SCOPE.items()
    for one in actions
)
BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}


def of_scope(scope: str, *, in_class: bool = True) -> tuple[Action, ...]:
    """Return the actions of one screen (or of the app). ``in_class``: include the actions for a class host."""
    return tuple(action for action in ACTIONS if action.scope == scope and (in_class or not action.of_class))


def bindings(scope: str) -> list[Binding]:
    """Return the Textual bindings of one screen. They are hidden from Textual's footer, because the workshop draws its
    own footer. A page on top of a screen has only its own keys and the keys for help and for the words of the page.
    """
    own = [Binding(a.keys, a.run, a.label, show=False, id=a.id, tooltip=a.tooltip) for a in of_scope(scope) if a.keys]
    if scope in _MODAL:
        for everywhere in (BY_ID["app.help"], BY_ID["app.glossary"]):
            run, ident = f"app.{everywhere.run}", f"{scope}.{everywhere.name}"
            own.append(Binding(everywhere.keys, run, everywhere.label, show=False, id=ident))
    return own
