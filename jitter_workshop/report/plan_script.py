"""``plan --sh``: a plan as a POSIX shell script, with its undo, for whoever has the rights.

The script needs nothing of this project. It looks at every file before it writes: what no longer says what it said
when the plan was made is left alone and reported; what the kernel refuses is reported and the rest is done. A kind of
setting that a script cannot do well is named in it, with the command that can.
"""

from __future__ import annotations

import contextlib
import re

from jitter_workshop.model.change import Change, Plan
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import clean

_PLAIN = frozenset({"value", "number", "choice", "cpu-list", "cpu-mask"})
_TASK = re.compile(r"[a-z_]+\((\d{1,10})@(\d{1,20})\)")

_HEAD = """\
#!/bin/sh
# Less latency jitter: {count} for {host}
#   made {made} by 'jitter-workshop plan --sh'
#   boot {boot}, hot CPUs {hot}
#
#   sh plan.sh apply    writes them, each only where a file still says what it said then
#   sh plan.sh undo     writes back what stood there, in reverse order
#
# Exit codes: 0 all done, 1 something was left alone or refused (said on stderr), 2 wrong use.
# JITTER_ROOT=FOLDER puts a folder before every path of a file, to try the script out.
set -eu

ROOT=${{JITTER_ROOT:-}}
BOOT={boot_quoted}
failed=0

say() {{ printf '%s\\n' "$*" >&2; }}
fail() {{ say "$*"; failed=1; }}

# What a file says, and the meaning of a text, so that 3 and 00000003, or "0-1" and "0,1", are the same.
meaning() {{ # KIND TEXT
    case $1 in
        choice) case $2 in *\\[*\\]*) set -- "$1" "${{2#*\\[}}" && set -- "$1" "${{2%%\\]*}}" ;; esac ;;
        cpu-mask) set -- "$1" "$(printf '%s' "$2" | tr -d ',' | tr 'A-F' 'a-f' | sed 's/^0x//;s/^0*//')" ;;
        number) set -- "$1" "$(printf '%s' "$2" | sed 's/^+//;s/^\\(-*\\)0*\\([0-9]\\)/\\1\\2/')" ;;
    esac
    printf '%s' "$2" | tr '\\n\\t' '  ' | sed 's/   */ /g;s/^ //;s/ $//'
}}
same() {{ [ "$(meaning "$1" "$2")" = "$(meaning "$1" "$3")" ]; }} # KIND TEXT TEXT

file() {{ # KIND PATH FROM TO: the file is to say TO where it says FROM
    if ! found=$(cat "$ROOT$2" 2>/dev/null); then
        fail "left alone: $2 cannot be read"
        return 0
    fi
    if same "$1" "$found" "$4"; then return 0; fi
    if ! same "$1" "$found" "$3"; then
        fail "left alone: $2 says '$(meaning "$1" "$found")', not '$(meaning "$1" "$3")'"
        return 0
    fi
    (printf '%s\\n' "$4" >"$ROOT$2") 2>/dev/null || true
    found=$(cat "$ROOT$2" 2>/dev/null || true)
    if ! same "$1" "$found" "$4"; then
        fail "refused: $2 says '$(meaning "$1" "$found")' after '$4' was written"
    fi
}}
"""

_TASKS = """
started() {{ # TID: when the task started, which tells it from a later one of the same number
    line=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    line=${{line##*) }}
    # shellcheck disable=SC2086 # to split the line at its blanks is what is wanted
    set -- $line
    shift 19
    printf '%s' "$1"
}}
task() {{ # TID STARTED FROM TO: a task's CPUs; one that has ended needs nothing
    if [ "$(started "$1" || true)" != "$2" ]; then return 0; fi
    found=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null || true)
    if [ "$found" = "$4" ]; then return 0; fi
    if [ "$found" != "$3" ]; then
        fail "left alone: task $1 may run on $found, not $3"
    elif ! taskset -pc "$4" "$1" >/dev/null 2>&1; then
        fail "refused: task $1 cannot be put on CPUs $4"
    fi
}}
"""

_FOLDERS = """
folder() {{ # present|absent PATH: a control group; tasks in it go to its parent before it is removed
    if [ "$1" = present ]; then
        [ -d "$ROOT$2" ] || mkdir "$ROOT$2" || fail "refused: $2 cannot be made"
        return 0
    fi
    [ -d "$ROOT$2" ] || return 0
    if [ -f "$ROOT$2/cgroup.procs" ]; then
        while read -r pid; do
            (printf '%s\\n' "$pid" >"$ROOT${{2%/*}}/cgroup.procs") 2>/dev/null || true
        done <"$ROOT$2/cgroup.procs"
    fi
    rmdir "$ROOT$2" || fail "left alone: $2 cannot be removed"
}}
"""

_CYCLES = """
cycle() {{ # PATH: the CPU goes offline and comes back, which moves timers and interrupts away from it
    if (printf '0\\n' >"$ROOT$1") 2>/dev/null && (printf '1\\n' >"$ROOT$1") 2>/dev/null; then return 0; fi
    (printf '1\\n' >"$ROOT$1") 2>/dev/null || true
    fail "refused: $1 did not go offline and come back"
}}
"""

_UNITS = """
unit() {{ # UNIT FROM TO: a service of systemd, active or inactive
    if systemctl --quiet is-active "$1"; then found=active; else found=inactive; fi
    if [ "$found" = "$3" ]; then return 0; fi
    case $3 in
        active) systemctl start "$1" || fail "refused: $1 does not start" ;;
        *) systemctl stop "$1" || fail "refused: $1 does not stop" ;;
    esac
}}
"""

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


def render(plan: Plan, host: str, made: str) -> str:
    """The script. ``host``: its name; ``made``: the date, both only said."""
    count = len(plan.changes)
    head = _HEAD.format(
        count=f"{count} {'write' if count == 1 else 'writes'}",
        host=clean(host, 60) or "a host without a name",
        made=clean(made, 60),
        boot=clean(plan.boot_id or "not known", 60),
        boot_quoted=quote(clean(plan.boot_id or "", 60)),
        hot=CpuSet(plan.hot_cpus),
    )
    forward = [_step(change, undo=False) for change in plan.changes]
    back = [_step(change, undo=True) for change in reversed(plan.changes)]
    body = "\n".join((*forward, *back))
    helpers = "".join(
        text.format()
        for word, text in (("task ", _TASKS), ("folder ", _FOLDERS), ("cycle ", _CYCLES), ("unit ", _UNITS))
        if any(line.strip().startswith(word) for line in body.split("\n"))
    )
    skipped = "".join(f"# left out: {clean(s.tunable, 40)}: {clean(s.reason, 200)}\n" for s in plan.skipped)
    return (
        head
        + helpers
        + "\n"
        + skipped
        + _function("apply", [*_same_boot(plan, undo=False), *_with_reasons(plan, forward)])
        + _function("undo", _undo(plan, back))
        + _FOOT
    )


def quote(text: str) -> str:
    """``text`` as one word of the shell, whatever is in it; a NUL, which no word can hold, becomes a blank."""
    return "'" + text.replace("\0", " ").replace("'", "'\\''") + "'"


def _function(name: str, lines: list[str]) -> str:
    body = "\n".join(f"    {line}" for line in lines) or "    :"
    return f"\n{name}() {{\n{body}\n}}\n"


def _same_boot(plan: Plan, *, undo: bool) -> list[str]:
    """Another boot has undone what lasts only as long as a boot, and its files may mean other devices."""
    if plan.boot_id is None or not any(change.when == "runtime" for change in plan.changes):
        return ["true"]
    otherwise = (
        ['say "the host was booted since, which undid the rest"', "return 0"]
        if undo
        else ['say "this is another host, or it was booted since: make a new plan"', "exit 2"]
    )
    return [
        'now=$(cat "$ROOT/proc/sys/kernel/random/boot_id" 2>/dev/null || true)',
        'if [ "$now" != "$BOOT" ]; then',
        *(f"    {line}" for line in otherwise),
        "fi",
    ]


def _undo(plan: Plan, back: list[str]) -> list[str]:
    """The steps back; what outlives a boot is undone before the script asks whether this is still the same boot."""
    asked = False
    lines: list[str] = []
    for change, step in zip(reversed(plan.changes), back, strict=True):
        if change.when == "runtime" and not asked:
            asked = True
            lines += _same_boot(plan, undo=True)
        lines.append(step)
    return lines


def _with_reasons(plan: Plan, steps: list[str]) -> list[str]:
    """The steps with each tunable's reason above its first one."""
    lines: list[str] = []
    told = ""
    for change, step in zip(plan.changes, steps, strict=True):
        if change.tunable != told:
            told = change.tunable
            lines.append(f"# {clean(told, 40)} (risk {change.risk}): {clean(change.why, 300)}")
        lines.append(step)
    return lines


def _step(change: Change, *, undo: bool) -> str:
    """One line that makes the change, or takes it back."""
    first, last = (change.after, change.before) if undo else (change.before, change.after)
    if change.kind in _PLAIN:
        return f"file {change.kind} {quote(change.path)} {_value(change.kind, first)} {_value(change.kind, last)}"
    if change.kind == "partition":
        return f"file value {quote(change.path)} {quote(first)} {quote(last)}"
    if change.kind == "cgroup":
        return f"folder {quote(last)} {quote(change.path)}"
    if change.kind == "cpu-cycle":
        return ": # a CPU that came back needs no undo" if undo else f"cycle {quote(change.path)}"
    if change.kind == "unit":
        return f"unit {quote(change.path)} {quote(first)} {quote(last)}"
    task = _TASK.fullmatch(change.path)
    if change.kind == "affinity" and task is not None:
        return f"task {task[1]} {task[2]} {_value('cpu-list', first)} {_value('cpu-list', last)}"
    return "true" if undo else _by_tool(change)


def _by_tool(change: Change) -> str:
    """What a script cannot do well is said when it runs."""
    what = f"not in this script: {change.tunable} ({clean(change.path, 120)}); jitter-workshop apply {change.tunable}"
    if change.lease:
        what += " --hold"
    return f"fail {quote(what)}"


def _value(kind: str, text: str) -> str:
    """A value, quoted; lists in the form in which the kernel gives them back."""
    if kind == "cpu-list":
        with contextlib.suppress(ValueError):
            text = str(CpuSet.parse_list(text))
    return quote(text)
