"""Show how other runs differ from the first run, without a judgement.

The output has only figures, because single runs prove nothing.

Runs that differ in workload, pacing, interval, clock, payload or duty are not compared: only these differences are
printed. Several runs are shown in one table, each compared with the first.

Times of an emulated machine are marked and not judged, and --gate is refused. Counts of events are compared.

With --gate P each later run is compared with the first. If P is higher in a later run, the exit code is 1. The
difference must be larger than --tolerance and larger than the clock's resolution. P is a percentile such as 99.9, or
stolen, or stalls:100us (the rate of stalls over 100 µs). If a run cannot be judged, nothing is printed and the exit
code is 2. docs/compare.md says what a gate cannot show.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jitter_workshop.commands.common.base import add_json, print_json
from jitter_workshop.commands.common.shared import open_session, say_notices
from jitter_workshop.errors import HostError, SessionError, UsageError
from jitter_workshop.model.curve import Comparison
from jitter_workshop.model.host import EMULATED, NO_VERDICT
from jitter_workshop.model.record import picked
from jitter_workshop.model.run import PERCENTILES, Run
from jitter_workshop.model.text import ID, LABEL, WORD, clean
from jitter_workshop.session.opened import OpenSession

if TYPE_CHECKING:
    from jitter_workshop.stats.gate import Gate, GateVerdict

_STALLS = re.compile(r"stalls:([0-9]{1,6})(ns|us|µs|ms|s)")
_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_LARGEST_TOLERANCE = 10_000.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("baseline", metavar="A", help="the run with which the others are compared")
    parser.add_argument("others", metavar="B", nargs="+", help="the run or runs to compare with A")
    parser.add_argument(
        "--metric",
        metavar="M",
        help="the histogram to compare, such as publisher_interval (default: the main histogram)",
    )
    parser.add_argument(
        "--gate",
        metavar="P",
        help=f"exit 1 if B is higher than A at P, one of {', '.join(PERCENTILES)}, stolen, stalls:100us",
    )
    parser.add_argument(
        "--tolerance",
        metavar="PERCENT",
        type=_percent,
        help="with --gate: how many percent higher B may be (default: 0)",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Compare runs with the first run. Return 1 if a later run is higher than the first one in the measure of
    ``--gate``, else 0."""
    from jitter_workshop.stats.comparison import compare, differences

    gate = _gate(args.gate, args.tolerance)
    with open_session(args) as session:
        a, *others = (_measured_here(session, wanted) for wanted in (args.baseline, *args.others))
        notices = tuple(session.notices)
    metric = args.metric or a.main_histogram
    for one in (a, *(b for b in others if not differences(a, b))):
        if metric not in one.histograms:
            known = ", ".join(one.histograms) or "none"
            raise UsageError(f"run {one.id} has no histogram {clean(metric, ID)}", f"it has: {known}")
    if gate is not None and EMULATED in {one.mark for one in (a, *others)}:
        raise HostError(NO_VERDICT, "leave out --gate")
    found = [compare(a, b, metric) for b in others]
    verdicts = [] if gate is None else _verdicts(gate, found, others)
    say_notices(notices)
    if args.json:
        judged: dict[str, Any] | None = None
        if gate is not None:
            higher = [picked(v, "run", "label", "a", "b", "ratio", "stalls_beyond") for v in verdicts if v.higher]
            judged = {
                "measure": gate.measure,
                "tolerance_percent": round(gate.tolerance * 100, 9),
                "passed": not higher,
                "higher": higher,
            }
        print_json(
            {
                "metric": metric,
                "baseline": a.id,
                "marks": {one.id: one.mark for one in (a, *others)},
                "comparisons": [picked(c, "run", "label", "comparable", "differences", "rows", "text") for c in found],
                "gate": judged,
                "notes": _notes(found, gate, verdicts),
            }
        )
    else:
        from jitter_workshop.presenter.runs.comparison import NARROWEST, comparison_lines, gated
        from jitter_workshop.presenter.text.lines import Output

        output = Output(narrowest=NARROWEST)
        output.show(comparison_lines(found, a, others, metric, output.width, None if gate is None else gate.measure))
        if gate is not None:
            sys.stdout.write("\n")
            output.show(gated(gate, verdicts, output.width))
    return 1 if any(v.higher for v in verdicts) else 0


def _measured_here(session: OpenSession, wanted: str) -> Run:
    found = session.find_any(wanted)
    if isinstance(found, Run):
        return found
    raise SessionError(
        f"{clean(found.label, LABEL)} was not measured here ({clean(found.origin, ID)}), so it cannot be compared",
        "draw both curves: 'jitter-workshop chart --imported'",
    )


def _gate(wanted: str | None, tolerance: float | None) -> Gate | None:
    from jitter_workshop.stats.comparison import STOLEN, stall_measure
    from jitter_workshop.stats.gate import Gate

    if wanted is None:
        if tolerance is not None:
            raise UsageError("--tolerance needs a gate", "add a gate, such as --gate 99.9")
        return None
    allowed = (tolerance or 0.0) / 100
    if stalls := _STALLS.fullmatch(wanted):
        return Gate(stall_measure(int(stalls[1]) * _UNITS[stalls[2]]), allowed)
    if wanted == "stolen":
        return Gate(STOLEN, allowed)
    percentile = wanted.removeprefix("p").removesuffix("%").strip()
    if percentile not in PERCENTILES:
        raise UsageError(
            f"unknown gate '{clean(wanted, WORD)}'",
            f"choose one of {', '.join(PERCENTILES)}, or stolen, or stalls:100us",
        )
    return Gate(f"p{percentile}", allowed)


def _verdicts(gate: Gate, found: Sequence[Comparison], others: Sequence[Run]) -> list[GateVerdict]:
    """Return the gate's verdict on each run of ``others``. Raise SessionError if one of these runs cannot be judged."""
    from jitter_workshop.stats.comparison import measure_name
    from jitter_workshop.stats.gate import gate_verdict

    verdicts = []
    for comparison, other in zip(found, others, strict=True):
        one = gate_verdict(gate, comparison, other)
        if one is None:
            name = measure_name(gate.measure)
            if not comparison.comparable:
                why, advice = "; ".join(comparison.differences), "compare runs that were measured in the same way"
            elif gate.measure.startswith("p"):
                why, advice = "too few samples for this percentile", "measure longer, or choose a lower percentile"
            else:
                why, advice = (
                    "only one of the runs has this measure",
                    "choose a measure that both runs have: 'compare' without --gate shows them",
                )
            raise SessionError(f"{name} of run {comparison.run} cannot be compared ({why})", advice)
        verdicts.append(one)
    return verdicts


def _notes(found: Sequence[Comparison], gate: Gate | None, verdicts: Sequence[GateVerdict]) -> dict[str, str]:
    """Return the reasons for null fields in the JSON output: field → reason."""
    notes = {"gate": "no gate was asked for"} if gate is None else {}
    if any(row.ratio is None for one in found for row in one.rows):
        notes["comparisons.rows.ratio"] = "null: the baseline is zero, so there is no ratio"
    if any(v.higher and v.ratio is None for v in verdicts):
        notes["gate.higher.ratio"] = "null: the baseline is zero, so there is no ratio"
    if any(v.higher and v.stalls_beyond is None for v in verdicts):
        notes["gate.higher.stalls_beyond"] = "null: the row has enough stalls, or does not depend on stalls"
    return notes


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a number: {text!r}") from None
    if not math.isfinite(value) or not 0 <= value <= _LARGEST_TOLERANCE:
        raise argparse.ArgumentTypeError(f"not a percentage from 0 to {_LARGEST_TOLERANCE:g}: {text!r}")
    return value
