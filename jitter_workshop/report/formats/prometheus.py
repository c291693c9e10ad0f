"""Write ``status`` for node_exporter's textfile collector (Prometheus' text exposition format 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import get_args

from jitter_workshop.model.status import Assessment, State
from jitter_workshop.model.text import clean

STATES: tuple[State, ...] = get_args(State)


def render(checks: Sequence[Assessment], hot_cpus: Sequence[int]) -> str:
    """Return the text of all metrics, in a stable order, with a line break at the end."""
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


def _metric(name: str, text: str, samples: Iterable[tuple[dict[str, str], int]]) -> list[str]:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} gauge"]
    for labels, value in samples:
        shown = ",".join(f'{key}="{escape(label)}"' for key, label in labels.items())
        lines.append(f"{name}{{{shown}}} {value}")
    return lines


def escape(label: str) -> str:
    """Return a label's value as one line, with backslash and quote escaped."""
    return clean(label, 120).replace("\\", "\\\\").replace('"', '\\"')
