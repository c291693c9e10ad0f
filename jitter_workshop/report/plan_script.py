"""Write a plan of changes as a POSIX shell script for root (``plan --sh``).

The script can apply and restore the plan, and it needs no other file of this project. It reads each setting before it
writes the setting. If a setting has changed since the plan was made, the script reports this and does not write the
setting. If the kernel refuses a write, the script reports the error and continues with the next write.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import resources

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Change, Plan
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import ID, LABEL, LINE, REASON, SENTENCE, WORD, clean
from jitter_workshop.tuning.ordering import CPUS, ordered, ordering_facts
from jitter_workshop.tuning.setting_types.system import drop_in
from jitter_workshop.tuning.switched import read_switched

NOT_BY_A_SCRIPT = {
    "held": "the limit lasts only while a process keeps the file open, and the script ends at once",
    **dict.fromkeys(
        ("grub-entry", "grub-once", "grub-next"),
        "the change copies GRUB's default entry, and a script cannot find that entry",
    ),
}
"""Kind of setting that no script can change → the reason. The script has a line for each other kind."""
FORMS = {
    "partition": "value",
    **{kind: kind for kind in ("value", "number", "choice", "preempt", "cpu-list", "cpu-mask", "idle-disable")},
}
"""Kind of setting that is one file → the form in which the script compares the file's contents."""
TASK_PATH = re.compile(r"[a-z_]+\((\d{1,10})@(\d{1,20})\)")
CALL_PATH = re.compile(r"[a-z_]+\(([A-Za-z0-9_.:@+,-]+)\)")
"""Forms of a path that is no file. TASK_PATH: a task, with its number and start time. CALL_PATH: a call with any
argument."""

_FOOT = """
case ${1:-} in
    apply) apply ;;
    # An earlier word for restore.
    restore | undo) restore ;;
    *)
        say "usage: sh plan.sh apply|restore"
        exit 2
        ;;
esac
exit "$failed"
"""


def script_of_plan(plan: Plan, host: str, made: str, opened: Sequence[str] = ()) -> str:
    """Return the shell script that can apply and restore the plan.

    ``host``: the host's name. ``made``: the date of the plan. Host and date appear only in a comment. ``opened``: the
    CPU lists from :func:`opened_by`.
    """
    forward = [step(change, restore=False) for change in plan.changes]
    returning = _way_back(plan)
    back = [step(change, restore=True) for change in returning]
    after = [f"then_do {quote(name)}" for name in dict.fromkeys(change.then for change in plan.changes if change.then)]
    nothing = [f"say {quote(line)}" for line in nothing_written(plan)]
    apply = [*_same_boot(plan, restore=False), *_with_reasons(plan, forward), *after, *nothing]
    restore = _restore(plan, returning, back, after)
    called = {line.split(" ", 1)[0] for line in (*forward, *back, *after)}
    return "".join(
        (
            _head(plan, host, made, bool(called - {"true"})),
            *([f"opened={quote(' '.join(opened))}\n"] if "task" in called else ()),
            *_functions(called),
            "\n" if plan.skipped else "",
            *(f"# left out: {clean(s.tunable, ID)}: {clean(s.reason, REASON)}\n" for s in plan.skipped),
            _function("apply", apply),
            _function("restore", restore),
            _FOOT,
        )
    )


def opened_by(plan: Plan, root: HostRoot) -> tuple[str, ...]:
    """Return CPU lists that the kernel may set as tasks' affinity because of the plan. The kernel does so when CPUs go
    offline or online, or when cpusets change. The script takes such an affinity as set by the kernel, not by a user.
    """
    switched = read_switched(root, plan.changes)
    return tuple(sorted(map(str, switched.masks(())))) if switched else ()


def _way_back(plan: Plan) -> list[Change]:
    """Return the plan's changes in the order in which the script restores them. Changes that outlast a reboot come
    first."""
    back = plan.changes[::-1]
    newest = [*(c for c in back if c.when != "runtime"), *(c for c in back if c.when == "runtime")]
    return [newest[n] for n in ordered([ordering_facts(c.path, c.kind, c.before) for c in newest])]


def nothing_written(plan: Plan) -> list[str]:
    """Return why the plan has no writes: one line with the reason for each skipped tunable. If no tunable was skipped,
    one line says that nothing needs to be improved. Return [] if the plan has writes."""
    if plan.changes:
        return []
    found = [f"nothing is written for {clean(s.tunable, ID)}: {clean(s.reason, SENTENCE)}" for s in plan.skipped]
    return found or ["nothing is written: nothing needs to be improved"]


def _head(plan: Plan, host: str, made: str, works: bool) -> str:
    count = len(plan.changes)
    nothing = [f"# {line}" for line in nothing_written(plan)]
    lines = [
        "#!/bin/sh",
        f"# Less latency jitter: {count} {'write' if count == 1 else 'writes'} for {clean(host, LABEL) or 'a host'}",
        f"#   made {clean(made, LABEL)} by 'jitter-workshop plan --sh'",
        f"#   boot {clean(plan.boot_id or 'not known', LABEL)}, hot CPUs {CpuSet(plan.hot_cpus)}",
        *nothing,
        "#",
        "#   sh plan.sh apply    makes each write, if its value has not changed since the plan",
        "#   sh plan.sh restore  restores the earlier values, in an order that works",
        "#",
        "# Removing a cpuset overwrites masks that were set after this script was printed.",
        "#",
        "# Exit codes: 0 all done, 1 something was left alone or refused (see stderr), 2 wrong use.",
        "# JITTER_ROOT=FOLDER puts a folder before every path of a file, to try the script out.",
        "# shellcheck disable=SC2016 # text in single quotes is meant literally",
        "set -eu",
        "",
    ]
    if works or _has_boot(plan):
        lines.append("ROOT=${JITTER_ROOT:-}")
    lines += ["failed=0", "", """say() { printf '%s\\n' "$*" >&2; }"""]
    if works:
        lines.append("""fail() { say "$*"; failed=1; }""")
    return "\n".join(lines) + "\n"


def _functions(called: set[str]) -> list[str]:
    """Return the text of each shell function that the script needs, in the order of ``assets/plan.sh``. ``called``:
    the names of the functions that the script calls. The result also has the functions that these functions call.
    """
    wanted = set(called)
    while more := {need for name in wanted for need in _NEEDS.get(name, ())} - wanted:
        wanted |= more
    return [text for name, text in functions().items() if name in wanted]


def _function(name: str, lines: list[str]) -> str:
    body = "\n".join(f"    {line}" for line in lines if line) or "    true"
    return f"\n{name}() {{\n{body}\n}}\n"


def _has_boot(plan: Plan) -> bool:
    return plan.boot_id is not None and any(change.when == "runtime" for change in plan.changes)


def _same_boot(plan: Plan, *, restore: bool) -> list[str]:
    """Return shell lines that stop the script if the host was rebooted since the plan.

    After a reboot, the plan's paths may belong to other devices. ``restore``: True for lines of the script's function
    ``restore``. After a reboot, these lines end ``restore`` without an error, because the reboot has undone the
    remaining changes. If the plan does not need this check, return only the line ``true``, which does nothing.
    """
    if not _has_boot(plan):
        return ["true"]
    otherwise = (
        ['say "the host was rebooted after the plan, and the reboot undid the rest"', "return 0"]
        if restore
        else ['say "this is another host, or it was rebooted after the plan: make a new plan"', "exit 2"]
    )
    return [
        'now=$(cat "$ROOT/proc/sys/kernel/random/boot_id" 2>/dev/null || true)',
        f'if [ "$now" != {quote(clean(plan.boot_id or "", LABEL))} ]; then',
        *(f"    {line}" for line in otherwise),
        "fi",
    ]


def _restore(plan: Plan, returning: list[Change], back: list[str], after: list[str]) -> list[str]:
    """Return the shell lines that restore the plan's old values.

    First, the lines restore the changes that outlast a reboot, and run the commands in ``after``. Next, they check that
    the host was not rebooted. Last, they restore all other changes. Before the lines end a cpuset partition, they check
    that the CPUs are online again. ``returning``: the changes, in the order in which they are restored. ``back``: for
    each of these changes, the line that restores it.
    """
    asked = False
    lines: list[str] = []
    known = {c: ordering_facts(c.path, c.kind, c.before) for c in returning}
    switches = {
        c for c, found in known.items() if found.group == "cpus" and CPUS in found.makes and c.kind != "cpu-cycle"
    }
    # On kernels before 6.2, ending a partition with a CPU offline takes that CPU from every task.
    ending = {c for c, found in known.items() if c.kind in ("partition", "cgroup") and CPUS in found.needs}
    for change, line in zip(returning, back, strict=True):
        if change.when == "runtime" and not asked:
            asked = True
            lines += [*after, *_same_boot(plan, restore=True)]
        if change in ending:
            lines += [line for one in returning if one in switches for line in _is_back(one)]
            switches = set()
        lines.append(line)
    return lines if asked else [*lines, *after]


def _is_back(change: Change) -> list[str]:
    """Return shell lines that stop the restore if a CPU is not online again. ``change``: the change that took the CPU
    offline."""
    path, wanted = quote(clean(change.path, LINE)), quote(clean(change.before, WORD))
    words = f"stopped: {clean(change.path, LINE)} is not {clean(change.before, WORD)}, so the partition is kept. "
    words += "Without the partition, all tasks would lose that CPU. Bring the CPU online and run restore again"
    return [
        f'if [ "$(cat "$ROOT"{path} 2>/dev/null || true)" != {wanted} ]; then',
        f"    say {quote(words)}",
        "    exit 1",
        "fi",
    ]


def _with_reasons(plan: Plan, steps: list[str]) -> list[str]:
    """Return the steps of the script, with each tunable's reason as a comment above its first step."""
    lines: list[str] = []
    told = ""
    for change, line in zip(plan.changes, steps, strict=True):
        if change.tunable != told:
            told = change.tunable
            lines.append(f"# {clean(told, ID)} (risk {change.risk}): {clean(change.why, SENTENCE)}")
        lines.append(line)
    return lines


# -- one line for each change ------------------------------------------------------------------------------------------


def quote(text: str) -> str:
    """Return ``text`` in single quotes, as one word for the shell. A NUL character becomes a blank, because a word of
    the shell cannot contain NUL."""
    return "'" + text.replace("\0", " ").replace("'", "'\\''") + "'"


def step(change: Change, *, restore: bool) -> str:
    """Return the line of the script that makes one change. ``restore``: return the line that restores the old value. If
    a script cannot make the change, the line prints the reason. It also prints the command of this tool that makes the
    change. With ``restore``, return the line ``true`` for such a change; it does nothing.
    """
    first, last = (change.after, change.before) if restore else (change.before, change.after)
    line = _line(change, first, last, restore=restore)
    if line is not None:
        return line
    if restore:
        return "true"
    hold = " --hold" if change.lease else ""
    why = NOT_BY_A_SCRIPT.get(change.kind, "a script cannot make this change")
    tunable = clean(change.tunable, ID)
    command = f"'jitter-workshop apply {tunable}{hold}' does it"
    return f"fail {quote(f'left alone: {tunable} ({clean(change.path, LINE)}): {why}; {command}')}"


def _line(change: Change, first: str, last: str, *, restore: bool) -> str | None:
    kind, path = change.kind, quote(change.path)
    task, call = TASK_PATH.fullmatch(change.path), CALL_PATH.fullmatch(change.path)
    if kind in FORMS:
        return f"file {FORMS[kind]} {path} {quote(_listed(kind, first))} {quote(_listed(kind, last))}"
    if kind == "frequency-limit":
        return f"limit {path} {quote(first)} {quote(last)}"
    if kind in ("irq-across", "mask-across"):
        # The driver may have chosen any value since a CPU was added or removed.
        form = "cpu-list" if kind == "irq-across" else "cpu-mask"
        return f"file {form} {path} '*' {quote(_listed(form, last))}"
    if kind == "irq-thread" and task is not None:
        return f"task {task[1]} {task[2]} '*' {quote(_listed('cpu-list', last))}"
    if kind == "governor-thread" and call is not None:
        return f"anew {quote(f'{CPU_DIR}/cpufreq/{call[1]}')}"
    if kind == "workqueue-mask":
        return f"file cpu-mask {path} {quote(first)} {quote(last)} {quote(f'{change.path}_requested')}"
    if kind in ("cgroup", "folder"):
        return f"folder {quote(last)} {path}"
    if kind == "cgroup-cpus":
        # The group that held these CPUs is removed next, and its list with it.
        return "true" if restore and not last else f"file cpu-list {path} {quote(first)} {quote(last)}"
    if kind == "cpuset":
        words = last.split(" ")
        return f"folder absent {path}" if last == "absent" else f"cpuset {path} {quote(words[1])} {quote(words[-1])}"
    if kind == "controllers":
        return f"controller {path} {'+' if last else '-'}cpuset"
    if kind == "cpu-cycle":
        return "true" if restore else f"cycle {path}"
    if kind == "watchdog":
        return f"switches {path} {int('soft=1' in last)} {int('nmi=1' in last)}"
    if kind == "dirty-limit":
        return _dirty_limit(change.path, first, last)
    if kind == "grub":
        before, after = (quote(drop_in(text) if text else "") for text in (first, last))
        return f"dropin {path} {before} {after}"
    if kind in ("affinity", "affinity-across") and task is not None:
        return f"task {task[1]} {task[2]} {quote(_listed('cpu-list', first))} {quote(_listed('cpu-list', last))}"
    if kind == "task-cgroup" and task is not None:
        return f"place {task[1]} {task[2]} {quote(first)} {quote(last)}"
    if kind == "unit" and call is not None:
        return f"unit {quote(call[1])} {quote(last)}"
    if kind == "grubby" and call is not None:
        return f"entries {quote(call[1].replace('+', ' '))} {quote(last)}"
    return None


def _dirty_limit(path: str, first: str, last: str) -> str:
    """Return the line that sets a limit of dirty memory. The kernel has two files for each limit: ``…_ratio`` for
    percent, ``…_bytes`` for bytes. A write to one of these files sets the other file to 0."""
    place = path if last.endswith("%") else f"{path.removesuffix('_ratio')}_bytes"
    before = first.rstrip("%") if first.endswith("%") == last.endswith("%") else "0"
    return f"file number {quote(place)} {quote(before)} {quote(last.rstrip('%'))}"


def _listed(kind: str, text: str) -> str:
    cpus = CpuSet.if_list(text) if kind == "cpu-list" else None
    return text if cpus is None else str(cpus)


# -- the functions that the lines call ---------------------------------------------------------------------------------


@cache
def functions() -> dict[str, str]:
    """Return the groups of shell functions in ``assets/plan.sh``. The key is the name of a group's first function, the
    value is the text of the group."""
    _head, *groups = resources.files("jitter_workshop.assets").joinpath("plan.sh").read_text("utf-8").split("\n\n")
    named = re.compile(r"^([a-z_]+)\(\)", re.MULTILINE)
    return {found[1]: f"\n{text.rstrip()}\n" for text in groups if (found := named.search(text)) is not None}


_NEEDS = {
    **dict.fromkeys(("task", "place", "unit", "entries", "then_do"), ("trial",)),
    **dict.fromkeys(("file", "limit", "folder", "controller", "anew", "cycle", "switches"), ("meaning",)),
    "cpuset": ("meaning", "folder"),
}
"""Name of a group of shell functions → names of the groups that it calls."""
