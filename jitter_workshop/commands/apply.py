"""Show the plan, ask, and make the changes; 'jitter-workshop restore' restores the old values.

TUNABLE is ID or ID=VALUE (governor, boost=0); 'jitter-workshop status' lists the ids. If you are not root, the tool
uses sudo. The tool shows the plan first, and writes only what the plan has shown.

  apply governor epp            ask, then change; the changes stay until 'restore' (or a reboot)
  apply --profile FILE --yes    FILE has one ID or ID=VALUE a line, # begins a comment; do not ask
  apply --next-boot nohz-full   for the next boot only, if the boot loader can do that. If the machine then hangs
                                at boot, switch it off and on; this undoes the change
  apply isolation --hold        restore everything at Ctrl-C, or when this program ends in any way
  apply smt=off -- COMMAND…     restore everything when COMMAND ends, and print COMMAND's exit code;
                                exit 1 if this code is not 0

Exit codes: 0 everything applied, 1 a part was refused (or the command failed), 2 nothing applied.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitter_workshop.commands.common.base import (
    Interrupted,
    Parser,
    add_json,
    also_as,
    print_json,
    print_notice,
    require_live_host,
)
from jitter_workshop.commands.common.shared import agreed, finite_number, say_if_any
from jitter_workshop.commands.restore import restore_fields
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.model.text import PATH, clean, tally

if TYPE_CHECKING:
    from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
    from jitter_workshop.flow.host_ops.host_status import HostPlan
    from jitter_workshop.model.change import ApplyResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("wanted", metavar="TUNABLE", nargs="*", help="the settings to apply, each as ID or ID=VALUE")
    parser.add_argument("--cpus", metavar="LIST", help="the hot CPUs, such as 2-3")
    parser.add_argument(
        "--profile",
        metavar="FILE",
        type=Path,
        help="read the settings from FILE, which has one ID or ID=VALUE on each line",
    )
    parser.add_argument("--yes", action="store_true", help="apply without asking")
    parser.add_argument("--next-boot", action="store_true", help="set boot parameters for the next boot only")
    also_as(parser, "--next-boot", "--once")
    parser.add_argument("--hold", action="store_true", help="keep the changes only until this program ends")
    parser.add_argument(
        "--wait",
        type=finite_number,
        default=0.0,
        metavar="S",
        help="on a class host: wait up to S seconds for the turn (default: do not wait)",
    )
    if isinstance(parser, Parser):
        parser.takes_command = True
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Return 0 if the whole plan was applied, 1 if a part was refused. Raise WorkshopError if nothing was applied."""
    require_live_host(args)
    from jitter_workshop.flow.host_ops import apply
    from jitter_workshop.flow.host_ops.agent_connection import HERE, AgentConnection
    from jitter_workshop.flow.host_ops.host_status import draw_up
    from jitter_workshop.tuning.tunables.registry import parse_wanted, set_for_one_boot

    words = [*(apply.read_profile(args.profile) if args.profile is not None else ()), *args.wanted]
    command = tuple(getattr(args, "command", ()))
    if not words:
        raise UsageError("no tunable was given", "'jitter-workshop status' shows which tunables would help here")
    if command and args.hold:
        raise UsageError(
            "--hold and a command contradict each other: each says how long the changes last",
            "leave out --hold or the command",
        )
    lease = args.hold or bool(command)
    wanted = parse_wanted(words)
    drawn = draw_up(HERE, set_for_one_boot(wanted) if args.next_boot else wanted, args.cpus)
    change_log = apply.change_log_of(args.session)
    with contextlib.closing(AgentConnection(change_log=change_log)) as agent_connection:
        drawn = apply.plan_as_root(agent_connection, drawn)
        say_if_any(agent_connection.notice)
        result = _confirmed(args, agent_connection, drawn, lease)
        left_out = [s for s in drawn.plan.skipped if not s.partly]
        if result.refused and not result.applied and len(apply.not_here(drawn.plan)) == len(left_out):
            raise apply.none_applied(result)
        code = 1 if result.refused else 0
        if not lease:
            say_if_any(apply.note_stack(args.session))
            change_log.end()
            say_if_any(change_log.trouble)
            _tell(args, drawn, result)
            return code
        try:
            return max(code, _held(args, agent_connection, drawn, result, command))
        finally:
            change_log.end()
            say_if_any(change_log.trouble)


def _confirmed(
    args: argparse.Namespace, agent_connection: AgentConnection, drawn: HostPlan, lease: bool
) -> ApplyResult:
    """Show the plan, ask for a yes unless ``--yes`` is given, and apply the plan. Raise UsageError if the answer is no,
    or if there is no terminal to ask on."""
    from jitter_workshop.flow.host_ops.apply import apply
    from jitter_workshop.presenter.host import plan as plan_view
    from jitter_workshop.presenter.text.lines import Output

    if drawn.plan.changes:
        asks = not args.yes
        if asks and not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(
                "there is no terminal to ask for confirmation",
                "confirm with --yes ('jitter-workshop plan' shows the changes)",
            )
        if asks or not args.json:
            output = Output(sys.stderr if args.json or lease else sys.stdout)
            output.show(plan_view.of_host(drawn.plan, output.width, drawn.hot.why, note=drawn.hot.note))
            sys.stdout.flush()
        if asks:
            count = len(drawn.plan.changes)
            if not agreed(f"\nMake {'this write' if count == 1 else f'these {count} writes'}?"):
                raise UsageError("nothing was applied")
    try:
        return apply(agent_connection, drawn, lease, args.wait, say_if_any)
    except (Interrupted, KeyboardInterrupt):
        if not lease:
            print_notice("stopped; 'jitter-workshop restore' restores what was changed so far")
        raise


def _held(
    args: argparse.Namespace,
    agent_connection: AgentConnection,
    drawn: HostPlan,
    result: ApplyResult,
    command: tuple[str, ...],
) -> int:
    """Keep the changes until the command ends. Then restore the old values.

    If there is no command, keep the changes until a signal comes. Return 1 if the command failed, or if an old value
    was not restored; else 0. An old value is not restored in two cases: another program has changed the setting, or the
    host refuses the write.
    """
    told: dict[str, Any] = {}
    ended = None
    try:
        if command:
            if not args.json:
                _tell(args, drawn, result, to_stderr=True)
            ended = _run_command(command, args.json)
            told["command_exit"] = ended
        else:
            _tell(args, drawn, result)
            print_notice("The changes stay until you press Ctrl-C.")
            agent_connection.wait()
    finally:
        back = agent_connection.restore_and_close()
        for left in back.left_alone:
            print_notice(f"left alone: {left.tunable} {left.path}: {left.reason}")
        if back.restored:
            print_notice(f"restored: {tally(one.tunable for one in back.restored)}")
    if command:
        if ended:
            print_notice(f"the command ended with exit code {ended}")
        if args.json:
            _tell(args, drawn, result, more=told | {"restored": restore_fields(back)})
    return 1 if ended or back.left_alone else 0


def _run_command(command: tuple[str, ...], quiet: bool) -> int:
    """Run a command and return its exit code, or 128 + N if signal N ended it. ``quiet``: True sends the command's
    stdout to stderr. Raise HostError if the command cannot be started."""
    try:
        process = subprocess.Popen(command, stdout=sys.stderr if quiet else None)
    except OSError as error:
        raise HostError(f"the command cannot be started: {error.strerror} ({clean(command[0], PATH)})") from error
    try:
        code = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    return 128 - code if code < 0 else code


def _tell(
    args: argparse.Namespace,
    drawn: HostPlan,
    result: ApplyResult,
    to_stderr: bool = False,
    more: dict[str, Any] | None = None,
) -> None:
    if args.json:
        from jitter_workshop.model.codec import to_plain

        print_json({**to_plain(result), **(more or {})})
        sys.stdout.flush()
        return
    from jitter_workshop.flow.host_ops.apply import differently
    from jitter_workshop.presenter.host import changes
    from jitter_workshop.presenter.text.lines import Output, wrap

    stream = sys.stderr if to_stderr else sys.stdout
    output = Output(stream)
    lines = wrap("Nothing to do: the settings have these values already.", output.width)
    if result.applied or result.refused:
        held = args.hold or bool(args.command)
        lines = changes.applied(result, differently(drawn.plan, result.applied), output.width, held)
    output.show(lines)
    stream.flush()
