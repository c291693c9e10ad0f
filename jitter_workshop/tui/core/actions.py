"""List every key of the workshop once. Bindings, footer, help page and palette are all made from this list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding

Scope = Literal[
    "app",
    "home",
    "chapter",
    "runs",
    "causes",
    "suspects",
    "cures",
    "cpus",
    "settings",
    "status",
    "summary",
    "proving",
    "report",
    "queue",
    "dialog",
    "question",
]

SCOPE_TITLES: dict[Scope, str] = {
    "app": "EVERYWHERE",
    "home": "HOME",
    "chapter": "IN A CHAPTER",
    "runs": "ALL CURVES",
    "causes": "WHO TOOK THE TIME",
    "suspects": "NAMING A THIEF",
    "cures": "TRYING A CURE",
    "cpus": "CHOOSING CPUs",
    "settings": "SETTINGS",
    "status": "STATUS",
    "summary": "FROM FIRST TO LAST",
    "proving": "PROVING A CHANGE",
    "report": "THE REPORT",
    "queue": "WAITING FOR THE TURN",
    "dialog": "MESSAGES",
    "question": "QUESTIONS",
}


@dataclass(frozen=True, slots=True)
class Action:
    """Hold one action of a key. ``keys``: Textual's names, comma separated ("" = the screen reads these keys itself).
    ``shown``: how the key is written. ``run``: the action's method on the screen or the app. ``palette``: it is in the
    command palette. ``of_class``: it exists on a class host only."""

    id: str
    scope: Scope
    keys: str
    shown: str
    run: str
    label: str
    tooltip: str
    palette: bool = True
    of_class: bool = False


def _a(
    scope: Scope,
    name: str,
    keys: str,
    shown: str,
    label: str,
    tooltip: str,
    *,
    run: str = "",
    palette: bool = True,
    of_class: bool = False,
) -> Action:
    return Action(f"{scope}.{name}", scope, keys, shown, run or name, label, tooltip, palette, of_class)


ACTIONS: tuple[Action, ...] = (
    _a("app", "help", "question_mark,f1", "?", "help", "All keys and words on one page"),
    _a("app", "palette", "ctrl+p", "^p", "commands", "Find a command by typing", run="command_palette", palette=False),
    _a("app", "curves", "c", "c", "curves", "Chart and table of all runs of this session"),
    _a("app", "status", "s", "s", "status", "What this host's settings do to latency, and the chapter about each"),
    _a("app", "report", "r", "r", "report", "Preview a report, then write it to a file"),
    _a("app", "settings", "e", "e", "settings", "Theme, length of a run, curves of 2015"),
    _a("app", "theme", "ctrl+t", "^t", "next theme", "Dark, light, high contrast"),
    _a("app", "turn", "T", "T", "turn", "Take the turn of this machine, see the queue, or give it back", of_class=True),
    _a("app", "jump", "G", "G", "instructor", "Go to the chapter and step where the instructor is", of_class=True),
    _a("app", "quit", "ctrl+q", "^q", "quit", "Leave; what was measured is kept", run="leave"),
    _a("app", "pause", "ctrl+z", "^z", "to the shell", "Leave the workshop asleep; fg comes back", run="pause"),
    _a("app", "interrupt", "ctrl+c", "^c", "stop", "Copy what is selected; else stop a run; else leave", palette=False),
    _a("home", "go", "enter", "Enter", "go", "Go to the chapter under the cursor, at its next useful step"),
    _a("home", "measure", "m", "m", "measure", "Measure now: your own curve in one key"),
    _a("home", "undo", "u", "u", "undo all", "Give back everything that this tool has set on this host"),
    _a("home", "resume", "a", "a", "apply again", "Apply again, as one plan, what this session had applied"),
    _a("home", "summary", "x", "x", "summary", "The course from first to last, step by step", run="app.summary"),
    _a("home", "up", "up,k", "↑", "up", "Chapter above", palette=False),
    _a("home", "down", "down,j", "↓", "down", "Chapter below", palette=False),
    _a("home", "quit", "q", "q", "quit", "Leave; what was measured is kept", run="app.leave", palette=False),
    _a("chapter", "enter", "enter", "Enter", "go on", "Do this step's work; then the next step"),
    _a("chapter", "back", "b,backspace", "b", "back", "The step before"),
    _a("chapter", "lesson", "tab", "Tab", "lesson", "Turn between the lesson and the chart"),
    _a("chapter", "table", "t", "t", "table", "The same numbers as a table"),
    _a("chapter", "hint", "h", "h", "hint", "One more hint"),
    _a("chapter", "again", "m", "m", "measure", "Make this step's measurement (once more); elsewhere the next one"),
    _a("chapter", "noise", "w", "w", "wake a thief", "Measure with tasks that steal time, where the host is too quiet"),
    _a("chapter", "cpus", "p", "p", "pick CPUs", "Choose the CPUs of the measured threads"),
    _a("chapter", "prove", "", "p", "prove it", "At compare: prove the change in rounds, or see the newest proof"),
    _a("chapter", "published", "o", "o", "2015", "Show or hide the curves published in 2015"),
    _a(
        "chapter",
        "causes",
        "v",
        "v",
        "causes",
        "Who took the time, by the kernel's trace (one more run makes one)",
    ),
    _a("chapter", "hunt", "x", "x", "hide a noise", "Begin a hunt: a hidden noise, for you to name"),
    _a("chapter", "name", "i", "i", "name it", "Name the hidden noise, or give up"),
    _a("chapter", "imported", "", "i", "imported", "At compare: show or hide the imported curves"),
    _a("chapter", "cure", "r", "r", "try a cure", "Measure beside a noise once more, with your cure in place"),
    _a("chapter", "copy", "y", "y", "copy", "Copy the commands of this step"),
    _a("chapter", "boots", "n", "n", "one boot", "Plan boot parameters for the next boot alone, or for every boot"),
    _a("chapter", "undo", "u", "u", "undo", "Give back what this chapter has set on this host"),
    _a("chapter", "up", "up,k", "↑", "up", "Scroll, move the mark, or the answer above", palette=False),
    _a("chapter", "down", "down,j", "↓", "down", "Scroll, move the mark, or the answer below", palette=False),
    _a("chapter", "left", "left", "←", "curve", "Highlight the curve before; move the mark by a decade", palette=False),
    _a("chapter", "right", "right", "→", "curve", "Highlight the next curve; move the mark by a decade", palette=False),
    _a("chapter", "number", "", "1–9", "number", "Highlight that curve; choose that answer", palette=False),
    _a("chapter", "page_up", "pageup", "PgUp", "page up", "Scroll a page up", palette=False),
    _a("chapter", "page_down", "pagedown,space", "PgDn", "page down", "Scroll a page down", palette=False),
    _a("chapter", "home", "escape,q", "Esc", "home", "Stop the run; else back to the home screen"),
    _a(
        "runs",
        "toggle",
        "space,enter",
        "Space",
        "show/hide",
        "Show or hide the curve of the run under the cursor",
        run="draw",
    ),
    _a("runs", "table", "t", "t", "table", "The same numbers as a table"),
    _a("runs", "published", "o", "o", "2015", "Show or hide the curves published in 2015"),
    _a("runs", "imported", "i", "i", "imported", "Show or hide the curves that 'sessions import' brought"),
    _a("runs", "all", "a", "a", "all/none", "Draw all runs (the newest six), or none"),
    _a("runs", "causes", "v", "v", "causes", "Who took the time of the run under the cursor, where it was traced"),
    _a("runs", "up", "up,k", "↑", "up", "Run above", palette=False),
    _a("runs", "down", "down,j", "↓", "down", "Run below", palette=False),
    _a("runs", "close", "escape,q", "Esc", "back", "Back to where you were", palette=False),
    _a(
        "causes",
        "turn",
        "tab",
        "Tab",
        "stalls",
        "Turn between causes, the worst stalls, and who else ran",
        palette=False,
    ),
    _a("causes", "copy", "y", "y", "copy", "Copy the commands that show the same by hand"),
    _a("causes", "up", "up,k", "↑", "up", "Scroll; the stall above", palette=False),
    _a("causes", "down", "down,j", "↓", "down", "Scroll; the stall below", palette=False),
    _a("causes", "page_up", "pageup", "PgUp", "page up", "Scroll a page up", palette=False),
    _a("causes", "page_down", "pagedown,space", "PgDn", "page down", "Scroll a page down", palette=False),
    _a("causes", "close", "escape,q", "Esc", "back", "Back to where you were", palette=False),
    _a("suspects", "agree", "enter", "Enter", "name it", "Say that it is the one under the cursor", palette=False),
    _a("suspects", "number", "", "1–9", "number", "Choose that one", palette=False),
    _a("suspects", "give_up", "g", "g", "give up", "Show which noise it was", palette=False),
    _a("suspects", "up", "up,k", "↑", "up", "The one above", palette=False),
    _a("suspects", "down", "down,j", "↓", "down", "The one below", palette=False),
    _a("suspects", "page_up", "pageup", "PgUp", "page up", "Scroll up", palette=False),
    _a("suspects", "page_down", "pagedown,space", "PgDn", "page down", "Scroll down", palette=False),
    _a("suspects", "close", "escape,q", "Esc", "back", "Look further; the noise goes on", palette=False),
    _a("cures", "agree", "enter", "Enter", "measure", "Measure where the cursor is", palette=False),
    _a("cures", "number", "", "1–9", "number", "Choose that one", palette=False),
    _a("cures", "copy", "y", "y", "copy", "Copy the commands", palette=False),
    _a("cures", "up", "up,k", "↑", "up", "The one above", palette=False),
    _a("cures", "down", "down,j", "↓", "down", "The one below", palette=False),
    _a("cures", "page_up", "pageup", "PgUp", "page up", "Scroll up", palette=False),
    _a("cures", "page_down", "pagedown,space", "PgDn", "page down", "Scroll down", palette=False),
    _a("cures", "close", "escape,q", "Esc", "back", "Measure nothing", palette=False),
    _a("cpus", "producer", "p", "p", "producer", "Put the producer on the CPU under the cursor", palette=False),
    _a("cpus", "accumulator", "a", "a", "accumulator", "Put the accumulator there", palette=False),
    _a("cpus", "journaller", "j", "j", "journaller", "Put the journaller there", palette=False),
    _a("cpus", "type", "slash", "/", "type", "Type a list: 2,4 or producer=2", palette=False),
    _a("cpus", "auto", "x", "x", "automatic", "Leave the choice to the workshop", palette=False),
    _a("cpus", "accept", "enter", "Enter", "accept", "Use these CPUs", palette=False),
    _a("cpus", "close", "escape", "Esc", "cancel", "Change nothing", palette=False),
    _a("cpus", "up", "up", "↑", "up", "A row up", palette=False),
    _a("cpus", "down", "down", "↓", "down", "A row down", palette=False),
    _a("cpus", "left", "left", "←", "left", "The CPU before", palette=False),
    _a("cpus", "right", "right", "→", "right", "The next CPU", palette=False),
    _a("settings", "change", "enter,space,right", "Enter", "change", "The next value of this setting", palette=False),
    _a("settings", "change_back", "left", "←", "back", "The value before", palette=False),
    _a("settings", "up", "up,k", "↑", "up", "Setting above", palette=False),
    _a("settings", "down", "down,j", "↓", "down", "Setting below", palette=False),
    _a("settings", "close", "escape,q", "Esc", "back", "Back to where you were", palette=False),
    _a("status", "go", "enter", "Enter", "go on", "The check in full; then the chapter that treats it", palette=False),
    _a("status", "chapter", "g", "g", "chapter", "Go to the chapter that treats the check under the cursor"),
    _a("status", "improve", "i", "i", "can be better", "Show only what can be better"),
    _a("status", "all", "a", "a", "all", "Show all checks"),
    _a("status", "copy", "y", "y", "copy", "Copy the commands that show the check by hand"),
    _a("status", "again", "r", "r", "look again", "Read this host once more"),
    _a("status", "up", "up,k", "↑", "up", "Check above; scroll", palette=False),
    _a("status", "down", "down,j", "↓", "down", "Check below; scroll", palette=False),
    _a("status", "page_up", "pageup", "PgUp", "page up", "Scroll a page up", palette=False),
    _a("status", "page_down", "pagedown,space", "PgDn", "page down", "Scroll a page down", palette=False),
    _a("status", "close", "escape,q", "Esc", "back", "Back to where you were", palette=False),
    _a("summary", "left", "left", "←", "curve", "Highlight the chapter before", palette=False),
    _a("summary", "right", "right", "→", "curve", "Highlight the next chapter", palette=False),
    _a("summary", "table", "t", "t", "table", "The same numbers as a table, without the chart"),
    _a("summary", "up", "up,k", "↑", "up", "Scroll up", palette=False),
    _a("summary", "down", "down,j", "↓", "down", "Scroll down", palette=False),
    _a("summary", "page_up", "pageup", "PgUp", "page up", "Scroll a page up", palette=False),
    _a("summary", "page_down", "pagedown,space", "PgDn", "page down", "Scroll a page down", palette=False),
    _a("summary", "close", "escape,q", "Esc", "back", "Back to where you were", palette=False),
    _a("report", "write", "enter,w", "Enter", "write", "Write it to a new file; nothing is overwritten"),
    _a("report", "format", "f", "f", "format", "The next format: html, md, json, pyperf, hlog, hgrm"),
    _a("report", "names", "n", "n", "hide names", "Leave out names of hosts, users and tasks, and the raw data"),
    _a("report", "copy", "y", "y", "copy", "Copy the lines that open the file"),
    _a("report", "left", "left", "←", "chart", "The chart before", palette=False),
    _a("report", "right", "right", "→", "chart", "The next chart", palette=False),
    _a("report", "up", "up,k", "↑", "up", "Scroll up", palette=False),
    _a("report", "down", "down,j", "↓", "down", "Scroll down", palette=False),
    _a("report", "page_up", "pageup", "PgUp", "page up", "Scroll a page up", palette=False),
    _a("report", "page_down", "pagedown,space", "PgDn", "page down", "Scroll a page down", palette=False),
    _a("report", "close", "escape,q", "Esc", "back", "Stop the work; back to where you were", palette=False),
    _a("proving", "enter", "enter", "Enter", "begin", "Begin; at the question: stop and keep", palette=False),
    _a("proving", "again", "p", "p", "prove again", "Prove it once more, with as many rounds as you choose"),
    _a("proving", "number", "", "1–9", "rounds", "Choose how many rounds", palette=False),
    _a("proving", "copy", "y", "y", "copy", "Copy the verdict to the clipboard"),
    _a("proving", "up", "up,k", "↑", "up", "More or fewer rounds; scroll", palette=False),
    _a("proving", "down", "down,j", "↓", "down", "More or fewer rounds; scroll", palette=False),
    _a("proving", "page_up", "pageup", "PgUp", "page up", "Scroll a page up", palette=False),
    _a("proving", "page_down", "pagedown,space", "PgDn", "page down", "Scroll a page down", palette=False),
    _a("proving", "close", "escape,q", "Esc", "back", "Back to the chapter; while it runs, ask whether to stop"),
    _a("queue", "leave_queue", "x", "x", "leave", "Leave the queue", palette=False, of_class=True),
    _a(
        "queue", "close", "escape,enter,q", "Esc", "read on", "Read on; the place is kept", palette=False, of_class=True
    ),
    _a("queue", "up", "up,k,pageup", "↑", "up", "Scroll the queue up", palette=False, of_class=True),
    _a("queue", "down", "down,j,pagedown,space", "↓", "down", "Scroll the queue down", palette=False, of_class=True),
    _a("dialog", "close", "escape,enter,q", "Esc", "close", "Close this", palette=False),
    _a("dialog", "copy", "y", "y", "copy", "Copy this text to the clipboard", palette=False),
    _a("dialog", "up", "up,k,pageup", "↑", "up", "Scroll up", palette=False),
    _a("dialog", "down", "down,j,pagedown,space", "↓", "down", "Scroll down", palette=False),
    _a("question", "agree", "enter", "Enter", "yes", "Do what is asked", palette=False),
    _a("question", "keep", "k", "k", "keep", "On leaving: keep what is applied", palette=False),
    _a("question", "close", "escape,q", "Esc", "no", "Change nothing", palette=False),
    _a("question", "up", "up,pageup", "↑", "up", "Scroll up", palette=False),
    _a("question", "down", "down,pagedown,space", "↓", "down", "Scroll down", palette=False),
)

BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}


def of_scope(scope: Scope, *, in_class: bool = True) -> tuple[Action, ...]:
    """Return the actions of one screen (or of the app). ``in_class``: with the actions of a class host."""
    return tuple(action for action in ACTIONS if action.scope == scope and (in_class or not action.of_class))


def bindings(scope: Scope) -> list[Binding]:
    """Return the Textual bindings of one screen. The footer is our own (it never clips), so no binding has a place in
    Textual's footer."""
    return [Binding(a.keys, a.run, a.label, show=False, id=a.id, tooltip=a.tooltip) for a in of_scope(scope) if a.keys]
