"""Show plans: every write with its path, the value before and after, and the reason for it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from jitter_workshop.model.change import ONCE, Change, Plan
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import RECORDED_HOST
from jitter_workshop.model.proof import PLACEMENT
from jitter_workshop.model.text import ID, PARAGRAPH, PATH, REASON, SENTENCE, clean, many
from jitter_workshop.model.walk import PlanView
from jitter_workshop.presenter.text.lines import MANY_CPUS, Lines, cpus_in_short, items, small_title, wrap
from jitter_workshop.presenter.text.prose import styled
from jitter_workshop.presenter.text.styled import Text

EVERY_WRITE = "EVERY WRITE, IN ITS ORDER"
NO_RIGHTS = "You are not root, and sudo is not available, so nothing can be written."
PLAN_OF_THESE_CPUS = "This is the plan with these CPUs. At its end, Enter agrees to it. p lets you choose other CPUs."
_IGNORED = "You pressed Enter while the plan opened, so the workshop ignored the key."
TOO_EARLY = f"{_IGNORED} Press Enter again to agree to the plan."
TOO_EARLY_TO_READ = f"{_IGNORED} Press Enter again to go on."
"""The sentence for a plan that asks for no consent, because Enter would write nothing."""
PLAN_IS_ANOTHER = "The plan has changed. This is the new plan, and Enter agrees to it."

MOST = 6
"""The largest number of writes of one tunable that are all shown. With more writes, the first few are shown, and a
sentence for the others."""
_FIRST = 4
_MOST_ROWS = 12
"""MOST, where a group of equal writes is one line: what then is left has to be seen."""
_AT_ONCE = 200
"""If a plan has more writes than this, it begins with the first few writes of each tunable. All writes follow after
them."""
_ONE_LIST = 40
"""The largest number of rows of a plan that a chapter shows as one list, with every write in it."""
_VALUE = 2_000
"""The most characters of a value that are shown. No real value is longer."""
_LONG_MASK = 36
"""The most characters of a mask that a shortened plan shows: those of 128 CPUs."""

_RISKS = {"low": "dim", "medium": "accent", "high": "bad"}
WHEN = {"boot": "takes effect at the next boot", "run": "lasts as long as the run"}
_AMONG = ", including these"
_GROUP = "task-cgroup"
"""The only kind of a write on a task whose value is a group. The others have the CPUs that the task may use."""
_OF_TASKS = {
    _GROUP: ("leaves the hot CPUs", "leave the hot CPUs"),
    "affinity": ("gets other CPUs", "get other CPUs"),
    "affinity-across": ("keeps its own limit", "keep their own limits"),
    "irq-thread": ("stays with its interrupt", "stay with their interrupts"),
    "governor-thread": ("stays with its governor", "stay with their governors"),
}
"""The effect of a kind of write on one task, and on several."""
_MASKS = ("cpu-mask", "workqueue-mask", "mask-across")
"""The kinds of settings whose value is a mask of CPUs."""
_NUMBER = re.compile(r"\d+")
_LISTS = ("cpu-list", "irq-across")
"""The kinds of settings whose value is a list of CPUs."""
_TASK = "ID@TICKS names a task by its ID and its start time, because a later task could get the same ID."


# -- whole plans -------------------------------------------------------------------------------------------------------


def of_host(drawn: Plan, width: int, why_hot: str = "", recorded: bool = False, note: str = "") -> Lines:
    """Return a plan as the command line shows it. ``why_hot``: how the hot CPUs were chosen. ``recorded``: True if the
    plan is for a recorded host. ``note``: a sentence on a problem with the hot CPUs; "" if there is no problem.
    """
    count = len(drawn.changes)
    lines = [Text(f"{many(count, 'write')}, in this order." if count else "Nothing would be written.", "bold")]
    why = f": {clean(why_hot, SENTENCE)}" if why_hot else ""
    lines += wrap(cpus_in_short(f"Hot {CpuSet(drawn.hot_cpus).named}{why}"), width)
    lines += wrap(cpus_in_short(clean(note, MANY_CPUS)), width, "▲ ", style="accent") if note else []
    lines += [Text(RECORDED_HOST, "accent")] if recorded else []
    left_out = _left_out([f"{one.tunable}: {one.reason}" for one in drawn.skipped], width)
    if count <= _AT_ONCE:
        return [*lines, *every(drawn.changes, width), *_afterwards(drawn.changes, width), *left_out]
    # On a host with hundreds of CPUs the first page has to say what a plan does: each tunable with its first writes.
    lines += [*in_short(drawn.changes, width), *_afterwards(drawn.changes, width), *left_out]
    return lines + every_if_long(drawn.changes, width)


def plan_step_lines(view: PlanView, words: Sequence[str], no_script: bool, width: int, unfold: str = "") -> Lines:
    """Return a chapter's plan for the screen: every write, in one list. If it has more than _ONE_LIST rows, a few
    writes of each tunable come first, and all writes follow. ``words``: the requested tunables. ``no_script``: True to
    leave out how somebody with root's rights makes these changes: for root, and where nothing is written. ``unfold``:
    the key that shows each write of a group of equal writes, which is one line until then; "" if each write has its
    line."""
    rows = sum(len(_rows(group, unfold)) for group in _by_tunable(view.changes))
    count, shortened = len(view.changes), rows > _ONE_LIST and _is_long(view.changes, unfold)
    files = f" in {many(view.host_files, 'file')}" if view.host_files not in (0, count) else ""
    order = ". All of them are listed below." if shortened else ", in this order."
    calls = _only_calls(view.changes)
    what = f"{many(count, 'system call' if calls else 'write')}{files}{order}" if count else "Nothing."
    lines = [
        small_title("WHAT WOULD BE DONE" if calls else "WHAT WOULD BE WRITTEN"),
        *wrap(what, width),
        *(in_short if shortened else every)(view.changes, width, unfold),
        Text(),
    ]
    lines += wrap(styled(view.text), width)
    lines += [*_left_out(view.left_out, width), *_afterwards(view.changes, width)]
    if view.host_files and not no_script:
        lines += [Text(), *wrap(styled(_for_others(words), "dim"), width)]
    return [*lines, *every_if_long(view.changes, width, unfold)] if shortened else lines


def plain_plan_lines(view: PlanView, width: int) -> Lines:
    """Return a chapter's plan for the plain walk: every write, then the totals. The question follows right below the
    totals.
    """
    lines = [*every(view.changes, width)[1:], *_afterwards(view.changes, width)]
    if lines:
        lines += [Text(), *wrap(f"{total(view)}.", width)]
        for group in _by_tunable(view.changes):
            if said := _shortened(group)[1]:
                counted = f"{clean(group[0].tunable, ID)}: {many(len(group), 'write')}"
                lines += wrap("; ".join([counted, *(s.removesuffix(_AMONG) for s in said)]) + ".", width, "  ", "    ")
        lines.append(Text())
    return lines + wrap(view.text, width) + _left_out(view.left_out, width)


def total(view: PlanView) -> str:
    """Return the number of writes and files, such as ``4 writes to 4 files of the host``. For a plan that writes to no
    file, return the number of system calls."""
    if _only_calls(view.changes):
        return many(len(view.changes), "system call")
    return f"{many(len(view.changes), 'write')} to {many(view.host_files, 'file')} of the host"


def enter_on_plan(view: PlanView | None) -> str:
    """Return what Enter does at a plan's end, such as ``apply 3 writes``. If nothing is left to write, Enter only reads
    the settings again. ``view``: None if the plan is not known yet."""
    if view is None:
        return "apply"
    return f"apply {many(len(view.changes), 'write')}" if view.changes else "look again"


def _only_calls(changes: Sequence[Change]) -> bool:
    """Return True if a plan binds threads and writes to no file."""
    return bool(changes) and all(change.tunable == PLACEMENT for change in changes)


def _left_out(reasons: Iterable[str], width: int) -> Lines:
    lines = [line for reason in reasons for line in wrap(clean(reason, PARAGRAPH), width, "  ", "    ")]
    return [Text(), small_title("LEFT OUT"), *lines] if lines else []


def _afterwards(changes: Sequence[Change], width: int) -> Lines:
    """Return the commands to run after the writes, and a note on writes that wait for the next boot. Return [] if there
    are no such commands and no such writes."""
    said = [f"Then, once: {clean(then, REASON)}" for then in dict.fromkeys(c.then for c in changes if c.then)]
    later = [change.when == "boot" for change in changes]
    if any(later):
        said.append(f"{'All' if all(later) else 'A part'} of the plan takes effect only at the next boot.")
    return [Text(), *(line for one in said for line in wrap(one, width))] if said else []


# -- writes ------------------------------------------------------------------------------------------------------------


def every(changes: Sequence[Change], width: int, unfold: str = "") -> Lines:
    """Return every write below its tunable, with an empty line before each tunable. ``unfold``: as in
    :func:`plan_step_lines`."""
    return [line for group in _by_tunable(changes) for line in (Text(), *_tunable(group, group, (), width, unfold))]


def in_short(changes: Sequence[Change], width: int, unfold: str = "") -> Lines:
    """Return the writes as :func:`every` does. If a tunable has many writes, return only the first few, and a count of
    the others."""
    groups = _by_tunable(changes)
    return [line for group in groups for line in (Text(), *_tunable(group, *_shortened(group, unfold), width, unfold))]


def every_if_long(changes: Sequence[Change], width: int, unfold: str = "") -> Lines:
    """Return every write below a title, if :func:`in_short` does not show all of them. Otherwise return []."""
    if not _is_long(changes, unfold):
        return []
    return [Text(), small_title(EVERY_WRITE), *every(changes, width, unfold)]


def has_equal_writes(changes: Sequence[Change]) -> bool:
    """Return True if a plan has a group of so many equal writes that one line stands for them until the user asks for
    each."""
    return any(len(alike) > MOST for group in _by_tunable(changes) for alike in _equal(group))


def _is_long(changes: Sequence[Change], unfold: str = "") -> bool:
    return any(_shortened(group, unfold)[1] for group in _by_tunable(changes))


def _equal(changes: Sequence[Change]) -> list[list[Change]]:
    """Return the writes in groups. A group has consecutive writes with one new value: of one kind to tasks, or to files
    whose paths differ only in numbers."""
    return [list(alike) for _, alike in groupby(changes, key=_likeness)]


def _likeness(change: Change) -> tuple[object, ...]:
    """Return what is equal for the writes of one group."""
    if change.kind in _OF_TASKS:
        return change.kind, change.after
    again = change.before == change.after
    same_file = _NUMBER.sub("0", change.path)
    return change.kind, change.after, same_file, again, change.when, change.risk, change.lease, change.then


def _by_tunable(changes: Sequence[Change]) -> list[list[Change]]:
    return [list(group) for _, group in groupby(changes, key=lambda change: change.tunable)]


def _rows(changes: Sequence[Change], unfold: str) -> list[list[Change]]:
    """Return the writes that stand in one row each: a large group of equal writes, or a single write. ``unfold``: as in
    :func:`plan_step_lines`."""
    groups = _equal(changes)
    return [row for one in groups for row in ([one] if unfold and len(one) > MOST else [[each] for each in one])]


def _shortened(changes: Sequence[Change], unfold: str = "") -> tuple[Sequence[Change], list[str]]:
    """Return the writes to show, and sentences that give the number of the other writes. An example of a sentence is
    "31 tasks leave the hot CPUs". If a tunable has at most MOST writes, return all of them and no sentence. ``unfold``:
    as in :func:`plan_step_lines`; a group of equal writes then counts as one.
    """
    if len(_rows(changes, unfold)) <= (_MOST_ROWS if unfold else MOST):
        return changes, []
    files = [change for change in changes if change.kind not in _OF_TASKS]
    shown = (files or list(changes))[:_FIRST]
    said = []
    for kind, words in _OF_TASKS.items():
        count = len({change.path for change in changes if change.kind == kind})
        if count:
            said.append(f"{many(count, 'task')} {words[count > 1]}{'' if files else _AMONG}")
    if len(files) > len(shown):
        said.append(f"{many(len(files) - len(shown), 'more write')} of this setting")
    return shown, said


def _tunable(
    changes: Sequence[Change], shown: Sequence[Change], others: Sequence[str], width: int, unfold: str = ""
) -> Lines:
    """Return one tunable: its name, risk and reason, then the writes in ``shown``. A write's own reason, if it has one,
    is below the write. ``others``: sentences on the writes that are not shown. ``unfold``: as in
    :func:`plan_step_lines`."""
    first = changes[0]
    title, why, danger = _words(first)
    worst = max((c.risk for c in changes), key=("low", "medium", "high").index)
    head = Text.assemble((clean(first.tunable, ID), "bold cool"), f" · {title}" if title else "")
    head.append(f"   {many(len(changes), 'write')}" if others else "", "dim")
    alone = " alone" if any(change.kind == "grub-once" for change in changes) else ""
    when = f" · {WHEN[first.when]}{alone}" if first.when in WHEN else ""
    risk = Text.assemble((f"risk {worst}" + (f": {danger}" if danger else ""), _RISKS[worst]), (when, "accent"))
    lines = [*wrap(head, width), *wrap(risk, width, "  ")]
    lines += wrap(clean(why, PARAGRAPH), width, "  ", style="dim") if why else []
    rows = _rows(shown, unfold)
    said = why
    for row in rows:
        if len(row) > 1:
            lines += _folded(row, unfold, width)
            continue
        (change,) = row
        # A task has only numbers in its path, so its name is shown even where other reasons are left out.
        wanted = change.why not in (why, said) and (not others or change.kind in _OF_TASKS)
        made = _change(change, width, brief=bool(others))
        if wanted:
            said = change.why
            beside = Text(f"   {clean(said, SENTENCE)}", "dim")
            if change.kind in _OF_TASKS and len(made) == 1 and made[0].cell_len + beside.cell_len <= width:
                made[0].append(beside)
            else:
                made += wrap(clean(said, SENTENCE), width, " " * 8, style="dim")
        lines += made
    lines += items(others, width, "    + ")
    of_tasks = any(len(row) == 1 and row[0].kind in _OF_TASKS for row in rows)
    return lines + (wrap(_TASK, width, "  ", style="dim") if of_tasks else [])


def _folded(alike: Sequence[Change], unfold: str, width: int) -> Lines:
    """Return one line for a group of equal writes: their numbers, their effect or the first and the last file, their
    new value, and the key that shows each of them."""
    first, last = alike[0], alike[-1]
    of_tasks = first.kind in _OF_TASKS
    in_words = _told if of_tasks else _in_list
    before = {in_words(change.before, change.kind, brief=True) for change in alike}
    old = before.pop() if len(before) == 1 else "several"
    new = in_words(first.after, first.kind, brief=True)
    values = f"written again: {new}" if all(one.before == one.after for one in alike) else f"{old} → {new}"
    number = f"{first.n:>4}–{last.n}  "
    files = f"{len(alike)} files, {clean(first.path, PATH)} to {clean(last.path, PATH)}"
    told = f"{len(alike)} tasks {_OF_TASKS[first.kind][1]}" if of_tasks else files
    line = Text(f"{told}: {values}").append(" (", "dim")
    lines = wrap(line.append(unfold, "bold cool").append(" shows each)", "dim"), width, number, " " * 8)
    lines[0].stylize("dim", 0, len(number))
    return lines


def _change(change: Change, width: int, *, brief: bool = False) -> Lines:
    """Return a write as ``3 PATH before → after``. If one line is too short, the values are below the path. ``brief``:
    shorten long masks and lists, because another part of the page shows them in full."""
    number = f"{change.n:>4}  "
    path = Text(clean(change.path, PATH))
    before, after = (_told(value, change.kind, brief) for value in (change.before, change.after))
    if change.tunable == PLACEMENT:
        after = f"CPU {after}"
    if change.kind in _OF_TASKS and change.kind != _GROUP:
        # A bare number in such a write could be a mask.
        before, after = (_of_cpus(value, told) for value, told in ((change.before, before), (change.after, after)))
    # A value that another write of the plan would change is written once more, so that it stays.
    lead = "written again: " if change.before == change.after else f"{before} → "
    values = Text.assemble((lead, "dim"), after)
    values.append("  (restored when the program ends)" if change.lease else "", "dim")
    if len(number) + path.cell_len + 2 + values.cell_len <= width:
        return [Text.assemble((number, "dim"), path, "  ", values)]
    indent = " " * (len(number) + 2)
    first, *rest = wrap(path, width, number, indent)
    first.stylize("dim", 0, len(number))
    return [first, *rest, *wrap(values, width, indent)]


def _of_cpus(value: str | None, told: str) -> str:
    """Return the words ``told`` for a list of CPUs, with ``CPU`` or ``CPUs`` in front if ``value`` is such a list."""
    cpus = CpuSet.if_list(value)
    return f"{cpus.named.partition(' ')[0]} {told}" if cpus else told


def _in_list(value: str | None, kind: str, brief: bool) -> str:
    """Return a value as :func:`_told` does, with ``CPU`` or ``CPUs`` in front if a file holds a list of CPUs."""
    told = _told(value, kind, brief)
    return _of_cpus(value, told) if kind in _LISTS else told


def _told(value: str | None, kind: str, brief: bool) -> str:
    if not brief:
        return value_told(value, kind, _VALUE)
    if value and kind in _MASKS and len(value) > _LONG_MASK:
        with contextlib.suppress(ValueError):
            cpus = CpuSet.parse_mask(value)
            return cpus_in_short(cpus.named if cpus else "no CPU")
    return cpus_in_short(value_told(value, kind, _VALUE))


def shown_value(value: str | None, limit: int = 120) -> str:
    """Return a setting's value, safe for a terminal."""
    return clean(value or "", limit) or "(empty)"


def value_told(value: str | None, kind: str, limit: int = 120) -> str:
    """Return a setting's value as text that is safe for a terminal. A mask is followed by its CPUs, as in ``3 (CPUs
    0-1)``. ``kind``: the form of the value (``Change.kind``)."""
    shown = shown_value(value, limit)
    if not value or kind not in _MASKS:
        return shown
    try:
        cpus = CpuSet.parse_mask(value)
    except ValueError:
        return shown
    return f"{shown} ({cpus.named if cpus else 'no CPU'})"


def _words(change: Change) -> tuple[str, str, str]:
    """Return the title, the reason and the danger of a change's tunable. If the change only places threads on CPUs,
    return three empty strings.
    """
    if change.tunable == PLACEMENT:
        return "", "", ""
    from jitter_workshop.tuning.tunables.registry import find_tunable

    tunable = find_tunable(change.tunable)
    return tunable.title, tunable.why, tunable.danger


# -- for a user with the rights ----------------------------------------------------------------------------------------


def by_others(words: Sequence[str], width: int) -> Lines:
    """Return the commands that make these changes. Only a user with root's rights can run these commands. ``words``:
    the wanted tunables.
    """
    lines = wrap("A user with root's rights can make these changes for you:", width)
    commands = [
        (script_command(words), "writes the plan as a script; read the script first"),
        ("sudo sh plan.sh apply", "makes the changes, and reports which settings have changed since the plan was made"),
        ("sudo sh plan.sh restore", "restores the old values"),
    ]
    if has_next_boot_changes(words):
        commands = [
            (apply_command(words), "shows the plan, asks, and makes the changes"),
            ("sudo jitter-workshop restore", "restores the old values"),
        ]
    for command, why in commands:
        lines += [*wrap(command, width, "  $ ", style="code"), *wrap(why, width, "    ", style="dim")]
    return lines


def _for_others(words: Sequence[str]) -> str:
    if has_next_boot_changes(words):
        return f"If you are not root, a user with root's rights can make the same changes: `{apply_command(words)}`."
    return (
        f"If you are not root, `{script_command(words)}` writes a script that applies and restores these changes. A "
        "user with root's rights can run this script."
    )


def has_next_boot_changes(words: Iterable[str]) -> bool:
    """Return True if some changes of a plan are for the next boot only. Such a plan cannot become a script. Such
    changes need a copy of the GRUB menu at the time of the writes. A script may run later, after this menu has
    changed.
    """
    return any(word.startswith(ONCE) for word in words)


def apply_command(words: Iterable[str]) -> str:
    """Return the command by which root applies a plan with changes that are for the next boot only."""
    asked = list(words)
    if all(word.startswith(ONCE) for word in asked):
        asked = ["--next-boot", *(word.removeprefix(ONCE) for word in asked)]
    return f"sudo jitter-workshop apply {' '.join(asked)}"


def script_command(words: Iterable[str]) -> str:
    """Return the command that writes a plan as a shell script, for a user who has root's rights."""
    return f"jitter-workshop plan --sh {' '.join(words)} > plan.sh"
