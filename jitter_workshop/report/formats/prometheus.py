"""Write ``status`` and ``watch`` for node_exporter's textfile collector (Prometheus' text exposition format 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import get_args

from jitter_workshop.model.host import MARK_NOTE
from jitter_workshop.model.status import Assessment, State
from jitter_workshop.model.text import LINE, REASON, clean
from jitter_workshop.model.watch import WatchReport

_MOST_CAUSES = 20
STATES: tuple[State, ...] = get_args(State)


def metrics_text(checks: Sequence[Assessment], hot_cpus: Sequence[int]) -> str:
    """Return the metrics of ``status`` as text, in a stable order, with a line break at the end."""
    ordered = sorted(checks, key=lambda c: c.id)
    lines = _metric(
        "jitter_workshop_check",
        "State of a check of the host's settings: 1 for its present state, 0 for each other state.",
        (({"id": c.id, "when": c.when, "state": state}, int(c.state == state)) for c in ordered for state in STATES),
    )
    lines += _metric(
        "jitter_workshop_check_drifted",
        "1 if something else changed a setting after jitter-workshop set it.",
        (({"id": c.id}, int(c.drifted is not None)) for c in ordered),
    )
    lines += _metric(
        "jitter_workshop_checks",
        "Number of checks in each state.",
        (({"state": state}, sum(1 for c in ordered if c.state == state)) for state in STATES),
    )
    lines += _metric(
        "jitter_workshop_hot_cpu",
        "1 for each hot CPU, which nothing should disturb.",
        (({"cpu": str(cpu)}, 1) for cpu in sorted(hot_cpus)),
    )
    return "\n".join(lines) + "\n"


def render_watch(report: WatchReport) -> str:
    """Return the metrics of a watch as text, with a line break at the end."""
    what = {"watching": report.watching, **({"cpu": str(report.cpu)} if report.cpu is not None else {})}
    lines = _metric(
        "jitter_workshop_watch_stalls_total",
        "Stalls of at least this length, since the watch began.",
        (({**what, "at_least_ns": str(rate.threshold_ns)}, rate.count) for rate in report.rates),
        "counter",
    )
    lines += _metric(
        "jitter_workshop_watch_watched_seconds_total", "Time that was watched.", [(what, report.watched_s)], "counter"
    )
    lines += _metric(
        "jitter_workshop_watch_not_watched_seconds_total",
        "Time that was not watched, by its reason.",
        (({**what, "reason": why}, ns / 1e9) for why, ns in report.not_watched_ns.items()),
        "counter",
    )
    lines += _metric(
        "jitter_workshop_watch_worst_seconds",
        "Length of the longest stall so far.",
        [(what, report.kept[0].duration_ns / 1e9 if report.kept else 0)],
    )
    lines += _metric(
        "jitter_workshop_watch_cause_seconds_total",
        "Time of stalls by cause, for the largest causes.",
        (
            ({**what, "kind": cause.kind, "name": cause.name}, cause.total_ns / 1e9)
            for cause in (report.causes or ())[:_MOST_CAUSES]
        ),
        "counter",
    )
    mark = report.notes.get(MARK_NOTE, "")
    return "\n".join([f"# {clean(mark, REASON)}"] * bool(mark) + lines) + "\n"


def _metric(name: str, text: str, samples: Iterable[tuple[dict[str, str], float]], kind: str = "gauge") -> list[str]:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        shown = ",".join(f'{key}="{escape(label)}"' for key, label in labels.items())
        lines.append(f"{name}{{{shown}}} {value}")
    return lines


def escape(label: str) -> str:
    """Return a label's value as one line, with backslash and quote escaped."""
    return clean(label, LINE).replace("\\", "\\\\").replace('"', '\\"')
