"""Read if the kernel is being traced or sampled.

Sources: Documentation/trace/ftrace.rst, Documentation/admin-guide/sysctl/kernel.rst (perf_event_*).
"""

from __future__ import annotations

from jitter_workshop.host.fields import Fields
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.record import dataclass, field

FOLDERS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")

_PERF = {
    "max_sample_rate_hz": "/proc/sys/kernel/perf_event_max_sample_rate",
    "cpu_time_max_percent": "/proc/sys/kernel/perf_cpu_time_max_percent",
    "paranoid": "/proc/sys/kernel/perf_event_paranoid",
}


@dataclass(frozen=True, slots=True)
class Tracing:
    """Hold the state of tracing.

    ``tracer``: ``nop`` where none is chosen. ``on``: True if the buffer takes events (it does by default). ``events``:
    True if any trace event is enabled. Tracefs is for root alone: otherwise None, with ``reasons``.
    """

    folder: str
    tracer: str | None
    on: bool | None
    events: bool | None
    max_sample_rate_hz: int | None
    cpu_time_max_percent: int | None
    paranoid: int | None
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def active(self) -> bool | None:
        """Return True if tracing costs time now; None where unknown."""
        if self.tracer is None or self.on is None:
            return None
        return self.on and (self.tracer != "nop" or bool(self.events))


def read_tracing(root: HostRoot) -> Tracing:
    """Read the global trace instance and perf's limits."""
    folder = next((f for f in FOLDERS if root.reading(f"{f}/current_tracer").reason != "no such file"), FOLDERS[0])
    paths = {"tracer": f"{folder}/current_tracer", "on": f"{folder}/tracing_on", "events": f"{folder}/events/enable"}
    fields = Fields(root, {**paths, **_PERF})
    return Tracing(
        folder=folder,
        tracer=fields.word("tracer", 40),
        on=fields.switch("on"),
        events=_events(fields),
        max_sample_rate_hz=fields.integer("max_sample_rate_hz", 0),
        cpu_time_max_percent=fields.integer("cpu_time_max_percent", 0),
        paranoid=fields.integer("paranoid"),
        reasons=fields.reasons,
    )


def _events(fields: Fields) -> bool | None:
    """Return True if any event is enabled; the file says 0 for none, 1 for all, X for some, ? if there are none."""
    text = fields.text("events")
    return None if text is None else {"0": False, "?": False, "1": True, "X": True}.get(text)
