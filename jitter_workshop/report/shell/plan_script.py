"""Write a plan as a POSIX shell script with its undo, for a user with root's rights: ``plan --sh``.

The script needs nothing of this project. It reads every setting before it writes. A setting that has changed since the
plan was made is left alone and reported. A write that the kernel refuses is reported, and the rest is done.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Change, Plan
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import clean
from jitter_workshop.report.shell.plan_shell import FUNCTIONS, NEEDS, quote, step
from jitter_workshop.tuning.ordering import CPUS, facts, ordered
from jitter_workshop.tuning.switched import read_switched

_COMMANDS = {"update-grub": "update-grub"}
"""The names in a change's ``then``, and the command for each."""


def render(plan: Plan, host: str, made: str, opened: Sequence[str] = ()) -> str:
    """Return the script. ``host``: its name; ``made``: the date; both only appear in a comment. ``opened``: CPU lists
    that the kernel may give a task when the plan's CPUs and sets come and go (``opened_by``)."""
    forward = [step(change, undo=False) for change in plan.changes]
    returning = _way_back(plan)
    back = [step(change, undo=True) for change in returning]
    after = _afterwards(plan)
    nothing = [f"say {quote(line)}" for line in nothing_written(plan)]
    apply = [*_same_boot(plan, undo=False), *_with_reasons(plan, forward), *after, *nothing]
    undo = [*_undo(plan, returning, back, after)]
    called = {line.split(" ", 1)[0] for line in (*forward, *back, *after)}
    return "".join(
        (
            _head(plan, host, made, bool(called - {"true"})),
            *([f"opened={quote(' '.join(opened))}\n"] if "task" in called else ()),
            *_functions(called),
            "\n" if plan.skipped else "",
            *(f"# left out: {clean(s.tunable, 40)}: {clean(s.reason, 200)}\n" for s in plan.skipped),
            _function("apply", apply),
            _function("undo", undo),
            _FOOT,
        )
    )


def opened_by(plan: Plan, root: HostRoot) -> tuple[str, ...]:
    """Return the CPU lists that the kernel may give tasks by itself while this plan is applied and undone."""
    switched = read_switched(root, plan.changes)
    return tuple(sorted(map(str, switched.masks(())))) if switched else ()


def _way_back(plan: Plan) -> list[Change]:
    """Return the changes in the order in which they are undone, the boot changes first: they outlast a boot."""
    back = plan.changes[::-1]
    newest = [*(c for c in back if c.when != "runtime"), *(c for c in back if c.when == "runtime")]
    return [newest[n] for n in ordered([facts(c.path, c.kind, c.before) for c in newest])]


def nothing_written(plan: Plan) -> list[str]:
    """Return a sentence for each tunable of a plan without writes, with the reason; [] for any other plan."""
    if plan.changes:
        return []
    found = [f"nothing is written: {clean(s.tunable, 40)}: {clean(s.reason, 400)}" for s in plan.skipped]
    return found or ["nothing is written: nothing was to be improved"]


_FOOT = """
case ${1:-} in
    apply) apply ;;
    undo) undo ;;
    *)
        say "usage: sh plan.sh apply|undo"
        exit 2
        ;;
esac
exit "$failed"
"""


def _head(plan: Plan, host: str, made: str, works: bool) -> str:
    count = len(plan.changes)
    nothing = [f"# {line}" for line in nothing_written(plan)]
    lines = [
        "#!/bin/sh",
        f"# Less latency jitter: {count} {'write' if count == 1 else 'writes'} for {clean(host, 60) or 'a host'}",
        f"#   made {clean(made, 60)} by 'jitter-workshop plan --sh'",
        f"#   boot {clean(plan.boot_id or 'not known', 60)}, hot CPUs {CpuSet(plan.hot_cpus)}",
        *nothing,
        "#",
        "#   sh plan.sh apply    writes them, each only if its value is still the one before",
        "#   sh plan.sh undo     writes back the values before, in an order that works",
        "#",
        "# It knows nothing of masks that were set after it was printed: ending a set overwrites these.",
        "#",
        "# Exit codes: 0 all done, 1 something was left alone or refused (said on stderr), 2 wrong use.",
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
    """Return the texts of the called functions, and of the functions that these call, in the order of ``FUNCTIONS``."""
    wanted = set(called)
    while more := {need for name in wanted for need in NEEDS.get(name, ())} - wanted:
        wanted |= more
    return [text for name, text in FUNCTIONS.items() if name in wanted]


def _function(name: str, lines: list[str]) -> str:
    body = "\n".join(f"    {line}" for line in lines if line) or "    true"
    return f"\n{name}() {{\n{body}\n}}\n"


def _has_boot(plan: Plan) -> bool:
    return plan.boot_id is not None and any(change.when == "runtime" for change in plan.changes)


def _same_boot(plan: Plan, *, undo: bool) -> list[str]:
    """Return lines that stop after another boot: it has undone all that lasts only until a reboot, and the files may
    now belong to other devices."""
    if not _has_boot(plan):
        return ["true"]
    otherwise = (
        ['say "the host was booted since, which undid the rest"', "return 0"]
        if undo
        else ['say "this is another host, or it was booted since: make a new plan"', "exit 2"]
    )
    return [
        'now=$(cat "$ROOT/proc/sys/kernel/random/boot_id" 2>/dev/null || true)',
        f'if [ "$now" != {quote(clean(plan.boot_id or "", 60))} ]; then',
        *(f"    {line}" for line in otherwise),
        "fi",
    ]


def _undo(plan: Plan, returning: list[Change], back: list[str], after: list[str]) -> list[str]:
    """Return the steps back. Changes that outlast a boot are undone, with their follow-up commands, before the script
    asks if this is still the same boot."""
    asked = False
    lines: list[str] = []
    known = {c: facts(c.path, c.kind, c.before) for c in returning}
    switches = {
        c for c, found in known.items() if found.group == "cpus" and CPUS in found.makes and c.kind != "cpu-cycle"
    }
    # On kernels before 6.2, ending a partition with a CPU offline takes that CPU from every task.
    ending = {c for c, found in known.items() if c.kind in ("partition", "cgroup") and CPUS in found.needs}
    for change, line in zip(returning, back, strict=True):
        if change.when == "runtime" and not asked:
            asked = True
            lines += [*after, *_same_boot(plan, undo=True)]
        if change in ending:
            lines += [line for one in returning if one in switches for line in _is_back(one)]
            switches = set()
        lines.append(line)
    return lines if asked else [*lines, *after]


def _is_back(change: Change) -> list[str]:
    """Stop the undo if a CPU that went offline did not come back."""
    path, wanted = quote(clean(change.path, 120)), quote(clean(change.before, 20))
    words = f"stopped: {clean(change.path, 120)} does not say {clean(change.before, 20)}: the partition stays, because "
    words += "tasks would lose that CPU with it; bring it back and run undo again"
    return [
        f'if [ "$(cat "$ROOT"{path} 2>/dev/null || true)" != {wanted} ]; then',
        f"    say {quote(words)}",
        "    exit 1",
        "fi",
    ]


def _afterwards(plan: Plan) -> list[str]:
    then = dict.fromkeys(change.then for change in plan.changes if change.then)
    return [f"then_do {quote(_COMMANDS.get(name, name))}" for name in then]


def _with_reasons(plan: Plan, steps: list[str]) -> list[str]:
    """Return the steps with each tunable's reason above its first one."""
    lines: list[str] = []
    told = ""
    for change, line in zip(plan.changes, steps, strict=True):
        if change.tunable != told:
            told = change.tunable
            lines.append(_reason(change))
        lines.append(line)
    return lines


def _reason(change: Change) -> str:
    return f"# {clean(change.tunable, 40)} (risk {change.risk}): {clean(change.why, 300)}"
