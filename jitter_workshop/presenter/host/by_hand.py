"""Show the writes that a learner makes by hand: for each write, the line to type into root's shell and its state on the
host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jitter_workshop.model.by_hand import ByHandView, HandLine, HandState, HandWrite
from jitter_workshop.model.text import ID, LABEL, LINE, REASON, SENTENCE, clean, many
from jitter_workshop.presenter.host.plan import value_told
from jitter_workshop.presenter.text.lines import Lines, small_title, wrap
from jitter_workshop.presenter.text.prose import command_lines
from jitter_workshop.presenter.text.styled import Text

TAKE_OVER = "The workshop can restore this setting only after you accept the value that you typed."
OFFER = "d lets you type the commands into a root shell, while the workshop watches."
OWED = "Only you can restore the settings that you changed by hand. Restore (u) shows the lines to type."
IN_ORDER = "Type these lines into a root shell of your own, in this order."
ALL_BACK = "All old values are restored."
NOTHING_YET = "No write is made yet. Type the first line into a root shell. The workshop reads the values each second."


BOOT_WATCHED = (
    "The workshop sees these settings of the boot loader, but not which parameters the next boot will use. After a "
    "reboot, /proc/cmdline shows the parameters. The session keeps the old values: restore shows the commands."
)


def not_for_hand(why: str) -> str:
    """Return the sentence that says why a learner cannot make a plan's writes by hand."""
    return f"You cannot make these writes by hand: {why}."


_SIGNS: dict[HandState, tuple[str, str]] = {
    "done": ("✓", "good"),
    "missing": ("·", "dim"),
    "wrong": ("✗", "bad"),
    "gone": ("–", "dim"),
    "hidden": ("?", "accent"),
}
_WORDS: dict[HandState, str] = {
    "done": "done",
    "missing": "missing",
    "wrong": "another value than planned",
    "gone": "its task has ended",
    "hidden": "cannot be read",
}

_OF_TASKS: dict[HandState, str] = {"gone": "ended", "wrong": "in another set", "hidden": "cannot be read"}


def by_hand_step_lines(view: ByHandView, width: int, copied: str = "") -> Lines:
    """Return the shell lines that the learner types, each with a sign of its state. An arrow marks the next line.
    ``copied``: the words that tell which key copies the lines."""
    title = "RESTORE THE OLD VALUES BY HAND" if view.back else "YOUR WRITES, WATCHED"
    lines = [small_title(f"{title}   {copied}".rstrip()), *wrap(IN_ORDER, width), Text()]
    following = next(iter(view.lines_in("missing", "wrong")), None)
    for one in view.lines:
        sign, colour = _SIGNS[one.state]
        if one is following and one.state == "missing":
            sign, colour = "▸", "accent"
        made = list(command_lines(one.command, width, f" {sign}  "))
        made[0].stylize(f"bold {colour}", 0, 3)
        lines += made
        if said := _detail_of(one):
            lines += wrap(Text(said, colour), width, "    ")
    if view.left_out:
        lines += [Text(), small_title("NOT WATCHED")]
        lines += [line for one in view.left_out for line in wrap(clean(one, SENTENCE), width, "  ", "    ")]
    return lines


def by_hand_sentence(view: ByHandView) -> str:
    """Return a sentence on how many writes are done, and what is missing or wrong."""
    # A line whose tasks have all ended is not needed any more.
    total, done = len(view.lines) - len(view.lines_in("gone")), len(view.lines_in("done"))
    what = "restored" if view.back else "made"
    if not total:
        return "All tasks have ended: nothing is left to do."
    if view.complete:
        return f"All {total} writes are {what}." if total != 1 else f"The write is {what}."
    if total == 1:
        return f"The write is not {what} yet: {_WORDS[next(one.state for one in view.lines if one.state != 'gone')]}."
    parts = [f"{done} of {many(total, 'write')} {'is' if done == 1 else 'are'} {what}"]
    if wrong := len(view.lines_in("wrong")):
        parts.append(f"{wrong} {'has' if wrong == 1 else 'have'} another value than planned")
    if hidden := len(view.lines_in("hidden")):
        parts.append(f"{hidden} cannot be read")
    return f"{', '.join(parts)}."


def was_it_you(view: ByHandView, again: str) -> str:
    """Return a question about values that differ from the plan: did the user type them? ``again``: the key or command
    that records these values, so that a restore also covers them."""
    paths = ", ".join(clean(one.change.path, LINE) for one in view.writes if one.state == "wrong")
    return (
        f"Not as planned: {paths}. Did you type these values? If so, {again} once more accepts them, and the workshop "
        "can restore the old values later."
    )


def guarded(view: ByHandView) -> str:
    """Return a sentence that says who restores the old values."""
    if view.back:
        return ""
    if view.count("wrong") and view.journalled:
        return f"A setting does not have the planned value: type its line again. {TAKE_OVER}"
    if view.journalled:
        return "The old values are in root's journal. The workshop restores them when you leave, or with restore (u)."
    if view.boot:
        return BOOT_WATCHED
    why = clean(view.why_not, REASON)
    return (
        f"The workshop cannot restore your writes ({why}). The session keeps the old values: restore shows the "
        "commands."
    )


def still_made(titles: Sequence[str]) -> str:
    """Return a warning for a learner who leaves while writes made by hand are in effect. Only the learner can restore
    them. ``titles``: the chapters with such writes. Return "" if there are none."""
    if not titles:
        return ""
    where = ", ".join(f"'{clean(title, ID)}'" for title in titles)
    return f"Your own changes are still applied, and only you can restore them. In {where}, restore shows the commands."


def changed(before: ByHandView, now: ByHandView, width: int) -> Lines:
    """Return a text for each shell line whose state or value differs from ``before``."""
    known = {one.command: [(write.state, write.found) for write in one.writes] for one in before.lines}
    lines: Lines = []
    for one in now.lines:
        if known.get(one.command) == [(write.state, write.found) for write in one.writes]:
            continue
        first = one.writes[0].change
        what = first.path if len(one.writes) == 1 else f"to {first.after}"
        text = ": ".join(filter(None, (_WORDS[one.state], clean(what, REASON), _detail_of(one))))
        lines += wrap(text, width, f"{_SIGNS[one.state][0]} {first.n:>3}  ", "       ")
    return lines


def _detail_of(line: HandLine) -> str:
    """Return in words how far a shell line has taken effect. For a line that moves many tasks, the text tells how many
    of them have moved."""
    if len(line.writes) == 1:
        return _detail(line.writes[0])
    count = Counter(one.state for one in line.writes)
    told = [f"{count['done']} of {many(len(line.writes), 'task')} moved"]
    told += [f"{count[state]} {words}" for state, words in _OF_TASKS.items() if count[state]]
    return ", ".join(told)


def _detail(one: HandWrite) -> str:
    """Return a text on a write whose value is wrong, or cannot be read. For a wrong value, the text has this value,
    the planned value and the earlier value. If the value cannot be read, the text is the reason. Return "" for all
    other writes.
    """
    if one.state == "wrong":
        seen = (one.found, one.change.after, one.change.before)
        found, planned, before = (value_told(value, one.change.kind, LABEL) for value in seen)
        return f"the value is {found}, but the plan has {planned} (before: {before})"
    return clean(one.reason, REASON) if one.state == "hidden" else ""
