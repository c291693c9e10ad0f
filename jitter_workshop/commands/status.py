"""Show what this host's settings do to latency jitter, and what to do about each of them. Nothing is changed.

ID is the name of a check, such as governor. Without ID, all checks are shown. No rights are needed; values that only
root can read are marked. The hot CPUs are kept free for the program that must not be late. The hot CPUs are those that
--cpus names. Without --cpus, the hot CPUs are the isolated CPUs. If no CPU is isolated, they are whole cores: those on
which the workshop would place its own threads.

  ok          as good as possible for the hot CPUs
  improve     a better setting is known; the text says what to do
  not here    this host does not have it; the text says why (in a guest often: "only the hypervisor's owner can")
  info        for information: there is nothing to judge, or there are good reasons for either setting

Two lines of the table sum up the checks that need no action. Name a check to read its full text.

Exit codes: 0 all that applies is good, 1 something can be improved, 2 nothing could be read.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from jitter_workshop.commands.common.base import add_json, print_json
from jitter_workshop.errors import UsageError

if TYPE_CHECKING:
    from jitter_workshop.flow.host_ops.host_status import HostStatus


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", metavar="ID", nargs="*", help="the ids of the checks to show (default: all checks)")
    parser.add_argument("--cpus", metavar="LIST", help="the hot CPUs, such as 2-3")
    parser.add_argument(
        "--explain", metavar="ID", help="explain a check: its reason, risk, restore and files, and how to check by hand"
    )
    parser.add_argument(
        "--prometheus", action="store_true", help="print metrics for node_exporter's textfile collector"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the checks of the host's settings. Return 0 if no setting can be improved, 1 if a setting can be
    improved."""
    if args.prometheus and (args.json or args.explain):
        raise UsageError("--prometheus is a format of its own", "leave out --json and --explain")
    if args.explain is not None and args.ids:
        raise UsageError("--explain takes only one check", "leave out the other checks")
    from jitter_workshop.flow.host_ops.host_status import read_checks

    checkup = read_checks(args.tree, [args.explain] if args.explain is not None else args.ids, args.cpus)
    if args.json:
        print_json(_plain(args, checkup))
    else:
        _show(args, checkup)
    return 1 if checkup.summary["improve"] else 0


def _show(args: argparse.Namespace, checkup: HostStatus) -> None:
    if args.prometheus:
        from jitter_workshop.report.formats import prometheus

        sys.stdout.write(prometheus.metrics_text(checkup.checks, checkup.hot.cpus.cpus))
        return
    from jitter_workshop.presenter.host import status
    from jitter_workshop.presenter.text.lines import Output, wrap
    from jitter_workshop.report.check_words import explain_check

    output = Output()
    if args.explain is not None:
        check = checkup.checks[0]
        page_of_one = explain_check(checkup.tunables[0], check, checkup.host)
        output.show(status.check_page(check, page_of_one, checkup.host.root.recorded, output.width))
        if untaught := checkup.tunables[0].untaught:
            output.show(wrap(f"No chapter teaches this: {untaught}", output.width))
        return
    output.show(status.check_table(checkup.line, checkup.head, checkup.groups(), output.width, brief=not args.ids))
    for tunable in checkup.tunables if args.ids else ():
        if tunable.untaught:
            output.show(wrap(f"No chapter teaches {tunable.id}: {tunable.untaught}", output.width))


def _taught(checkup: HostStatus) -> list[dict[str, object]]:
    """Return each check as JSON fields, with the two fields ``chapter`` and ``why_no_chapter``. ``chapter`` is the id
    of the built-in chapter about this check, or None. ``why_no_chapter`` is the reason for None, if a reason is
    known."""
    from jitter_workshop.course.loader import load_course
    from jitter_workshop.flow.host_ops.host_status import treating
    from jitter_workshop.model.codec import to_plain

    treated = treating(load_course(keep=True))
    plain: list[dict[str, object]] = []
    for tunable, check in zip(checkup.tunables, checkup.checks, strict=True):
        chapter, _ = treated.get(check.id, (None, ""))
        why_not = tunable.untaught or None if chapter is None else None
        plain.append({**to_plain(check), "chapter": chapter, "why_no_chapter": why_not})
    return plain


def _plain(args: argparse.Namespace, checkup: HostStatus) -> dict[str, object]:
    plain: dict[str, object] = {
        "host": checkup.summarise(),
        "hot_cpus": checkup.hot.cpus.cpus,
        "housekeeping_cpus": checkup.host.housekeeping.cpus,
        "sibling_cpus": checkup.host.clear_siblings.cpus,
        "hot_sibling_cpus": checkup.host.hot_siblings.cpus,
        "hot_cpus_why": checkup.hot.why,
        "checks": _taught(checkup),
        "summary": checkup.summary,
        "notes": {"hot_cpus": checkup.hot.note} if checkup.hot.note else {},
    }
    if args.explain is not None:
        tunable = checkup.tunables[0]
        plain["explained"] = {
            name: getattr(tunable, name)
            for name in ("id", "title", "why", "danger", "risk", "when", "document", "default", "values", "owns")
        }
    return plain
