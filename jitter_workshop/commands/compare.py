"""Say how runs differ from the first one (describes, claims no cause).

RUN is an id, the unique beginning of one, a label (the newest run that has it), or @1 for the newest run, @2, …
Rows: stall rates and stolen time, then the percentiles that both runs have samples for, then the worst seen.
Two single runs cannot prove anything: the same thing measured twice also differs.
Runs of different things (workload, pacing, …) are not compared; in what they differ is said instead.

With --gate P (such as 99.9) the exit code is 1 where a later run is higher than the first at that percentile by more
than the clock's resolution; where that cannot be said, nothing is printed and the exit code is 2.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from jitter_workshop.commands.base import add_json, print_json
from jitter_workshop.errors import SessionError, UsageError
from jitter_workshop.model.run import PERCENTILES, Run
from jitter_workshop.model.text import clean

if TYPE_CHECKING:
    from jitter_workshop.model.curve import Comparison
    from jitter_workshop.session.opened import OpenSession


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("baseline", metavar="A", help="the run to compare with")
    parser.add_argument("others", metavar="B", nargs="+", help="one or more runs")
    parser.add_argument("--metric", metavar="M", help="a histogram, such as publisher_interval (default: the main one)")
    parser.add_argument("--gate", metavar="P", help=f"exit 1 where B is higher at P: {', '.join(PERCENTILES)}")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """0 done; 1 where ``--gate`` is given and a run is higher there."""
    from jitter_workshop.commands.shared import open_session
    from jitter_workshop.report import comparison_text
    from jitter_workshop.stats.comparison import compare, differences

    gate = _gate(args.gate)
    with open_session(args) as session:
        a, *others = (_measured_here(session, wanted) for wanted in (args.baseline, *args.others))
        notices = tuple(session.notices)
    metric = args.metric or a.main_histogram
    for one in (a, *(b for b in others if not differences(a, b))):
        _require(one, metric)
    found = [compare(a, b, metric) for b in others]
    failed = gate is not None and any(_higher(c, gate) for c in found)
    for notice in notices:
        sys.stderr.write(f"note: {clean(notice, 300)}\n")
    if args.json:
        print_json(
            {
                "metric": metric,
                "baseline": a.id,
                "comparisons": [
                    {
                        "run": c.run,
                        "label": c.label,
                        "comparable": c.comparable,
                        "differences": c.differences,
                        "rows": c.rows,
                        "text": c.text,
                    }
                    for c in found
                ],
            }
        )
    else:
        texts = [comparison_text.render(c, a, b, metric) for c, b in zip(found, others, strict=True)]
        sys.stdout.write("\n".join(texts))
    return 1 if failed else 0


def _measured_here(session: OpenSession, wanted: str) -> Run:
    found = session.find_any(wanted)
    if isinstance(found, Run):
        return found
    raise SessionError(
        f"{clean(found.label, 60)} was not measured here ({clean(found.origin, 40)}) and is not compared",
        "draw them together: 'jitter-workshop chart --imported'",
    )


def _gate(wanted: str | None) -> str | None:
    if wanted is None:
        return None
    percentile = wanted.removeprefix("p").removesuffix("%").strip()
    if percentile not in PERCENTILES:
        raise UsageError(f"--gate takes no {clean(wanted, 20)}", f"choose one of {', '.join(PERCENTILES)}")
    return f"p{percentile}"


def _require(one: Run, metric: str) -> None:
    if metric not in one.histograms:
        known = ", ".join(one.histograms) or "none"
        raise UsageError(f"run {one.id} has no histogram {clean(metric, 40)}", f"it has: {known}")


def _higher(comparison: Comparison, gate: str) -> bool:
    from jitter_workshop.stats.comparison import higher_at

    higher = higher_at(comparison, gate)
    if higher is None:
        why = "too few samples there" if comparison.comparable else "; ".join(comparison.differences)
        raise SessionError(f"{gate} of run {comparison.run} cannot be compared ({why})", "measure longer, or alike")
    return higher
