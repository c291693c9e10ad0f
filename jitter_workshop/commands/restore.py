"""Restore the values from before 'apply', beginning with the last change.

Without TUNABLE everything is restored, and the trace that a killed measurement left is removed. A setting that others
have changed since 'apply' is not overwritten. It is listed with the program that probably changed it. You can safely
run 'restore' at any time, also after the machine or this program was killed in the middle of a change.

  restore            restore everything
  restore governor   only the governor
  restore --discard  also discard the old values of settings that others have changed since
  restore --list     show what is applied now; needs no rights, and writes nothing

Exit codes: 0 all restored or nothing to do, 1 something was left alone or a reboot is needed.
"""

from __future__ import annotations

import argparse
import contextlib
from functools import partial
from typing import Any

from jitter_workshop.commands.common.base import add_json, also_as, print_result, require_live_host
from jitter_workshop.commands.common.shared import say_if_any
from jitter_workshop.errors import UsageError
from jitter_workshop.model.change import RestoreResult
from jitter_workshop.model.record import picked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tunables",
        metavar="TUNABLE",
        nargs="*",
        help="restore only the settings with these ids (default: all settings)",
    )
    parser.add_argument("--all", action="store_true", help="restore all settings (the default without TUNABLE)")
    parser.add_argument("--list", action="store_true", help="show which settings are applied now, and change nothing")
    parser.add_argument(
        "--discard",
        action="store_true",
        help="never restore the settings that other programs have changed since 'apply'",
    )
    also_as(parser, "--discard", "--forget")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Restore the values from before ``apply``, or with ``--list`` print what is applied. Return 1 if a setting was
    left alone or a reboot is needed, else 0."""
    if args.list:
        return _list(args)
    if args.all and args.tunables:
        raise UsageError("--all already restores every TUNABLE", "leave out --all or the TUNABLE")
    require_live_host(args)
    from jitter_workshop.flow.host_ops import apply
    from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
    from jitter_workshop.presenter.host import changes

    change_log = apply.change_log_of(args.session)
    with contextlib.closing(AgentConnection(change_log=change_log)) as agent_connection:
        result, notice = apply.restore_tunables(agent_connection, args.tunables, forget=args.discard)
    trouble = apply.note_stack(args.session)
    change_log.end()
    for sentence in (notice, trouble, change_log.trouble):
        say_if_any(sentence)
    print_result(args, restore_fields(result), partial(changes.restore_result, result))
    return 1 if result.left_alone or result.needs_reboot else 0


def restore_fields(result: RestoreResult) -> dict[str, Any]:
    """Return the JSON fields of ``restore --json``: what became of each setting."""
    return {
        "restored": [{**picked(one, "tunable", "path"), "from": one.from_, "to": one.to} for one in result.restored],
        "left_alone": list(result.left_alone),
        "needs_reboot": result.needs_reboot,
        "trace_instances_removed": list(result.trace_instances_removed),
    }


def _list(args: argparse.Namespace) -> int:
    from jitter_workshop.flow.host_ops.agent_connection import left_over_traces, standing_entries
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.presenter.host import changes
    from jitter_workshop.tuning.journal import applied_by, read_journals
    from jitter_workshop.tuning.setting_types.tasks import task_name
    from jitter_workshop.tuning.tunables.registry import find_tunable

    chosen = {find_tunable(word.partition("=")[0]).id for word in args.tunables}
    root = HostRoot(args.root)
    entries = [e for e in standing_entries(root) if not chosen or e.tunable in chosen]
    journals = read_journals(root)
    problems = [f"journal {one.id}: {problem}" for one in journals for problem in one.problems]
    traces = () if chosen else left_over_traces(root)
    names = {e.path: name for e in entries if (name := task_name(root, e.path))}
    by = applied_by(root, journals)
    moments = {one.id: (one.time, one.pid) for one in journals}
    active = [
        {
            "journal_id": e.journal,
            **dict(zip(("applied_at", "pid"), moments.get(e.journal, (None, None)), strict=True)),
            **picked(e, "n", "tunable", "path", "before", "after", "state", "owed"),
            "task": names.get(e.path),
        }
        for e in entries
    ]
    nothing = restore_fields(RestoreResult((), (), False))
    payload = {"active": active, "damaged": problems, "trace_instances_left": list(traces), **nothing}
    print_result(args, payload, partial(changes.standing_lines, entries, problems, traces, names, by))
    return 0
