"""Show every write that TUNABLE needs on this host: the file, its value now, and the new value.

TUNABLE is ID or ID=VALUE (governor, boost=0); 'jitter-workshop status' lists the ids. Without TUNABLE, the
plan has all tunables that can be improved while the host runs. Nothing is written, and no rights are needed.

With --next-boot, boot parameters are for the next boot only. If only root can read the boot loader's menu, use sudo.

With --sh the plan is a shell script for an administrator: 'sh plan.sh apply' and 'sh plan.sh restore'. It writes
only to files whose values have not changed since the plan was made.
"""

from __future__ import annotations

import argparse
import sys

from jitter_workshop.commands.common.base import add_json, also_as, print_json, print_notice, show_lines
from jitter_workshop.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "wanted",
        metavar="TUNABLE",
        nargs="*",
        help="the settings to plan, as ID or ID=VALUE (default: all that can be improved)",
    )
    parser.add_argument("--cpus", metavar="LIST", help="the hot CPUs, such as 2-3")
    parser.add_argument("--next-boot", action="store_true", help="plan boot parameters for the next boot only")
    also_as(parser, "--next-boot", "--once")
    parser.add_argument("--sh", action="store_true", help="print a shell script that applies and restores the changes")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the plan and return 0, also if the plan is empty."""
    if args.sh and args.json:
        raise UsageError("--sh and --json are two forms of the same plan", "use only one of these options")
    from jitter_workshop.flow.host_ops.host_status import draw_up
    from jitter_workshop.tuning.tunables.registry import parse_wanted, set_for_one_boot

    wanted = parse_wanted(args.wanted)
    drawn = draw_up(args.root, set_for_one_boot(wanted) if args.next_boot else wanted, args.cpus)
    if args.sh and any(change.kind == "grub-once" for change in drawn.plan.changes):
        advice = "run 'jitter-workshop apply --next-boot' as root"
        from jitter_workshop.report.plan_script import NOT_BY_A_SCRIPT

        raise UsageError(NOT_BY_A_SCRIPT["grub-once"], advice)
    if args.json:
        print_json(drawn.plan)
    elif args.sh:
        import time

        from jitter_workshop.report import plan_script

        made = time.strftime("%Y-%m-%d %H:%M:%S %Z")
        opened = plan_script.opened_by(drawn.plan, drawn.host.root)
        sys.stdout.write(plan_script.script_of_plan(drawn.plan, drawn.host.kernel.hostname, made, opened))
        for sentence in plan_script.nothing_written(drawn.plan):
            print_notice(sentence)
    else:
        from jitter_workshop.presenter.host import plan as plan_view

        recorded, hot = drawn.host.root.recorded, drawn.hot
        show_lines(lambda width: plan_view.of_host(drawn.plan, width, hot.why, recorded, hot.note))
    return 0
