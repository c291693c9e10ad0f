"""Define the tunables for two groups of services: some undo settings of this tool, others use CPU time unexpectedly."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.host.services import KNOWN, RunningService
from jitter_workshop.model.status import Assessment
from jitter_workshop.model.text import MOST_ENTRIES, MOST_NAMES, MOST_PHRASES, MOST_WORDS
from jitter_workshop.tuning.base import Observed, Tunable, Unavailable, Write
from jitter_workshop.tuning.context import Host

_APART = ("irqbalance",)
"""The services that rewrite settings and have a tunable of their own."""

_ONCE = ("cpupower", "rtirq", "laptop-mode", "tlp")
"""Services that set their values once and exit. No process keeps running, but a stop of the service undoes them."""


_ANEW = "After a restore the service runs again and sets its profile again."


class CompetingTuners(Tunable):
    id = "competing-tuners"
    title = "Services that change the same settings"
    why = (
        "A tuning daemon writes governors, energy preferences and sysctls again whenever its profile or the power "
        "supply changes. In this way it overwrites the settings of this tool."
    )
    danger = (
        "the service no longer adapts the settings to battery and heat; some services restore old settings when they "
        "stop"
    )
    risk = "medium"
    document = "Documentation/admin-guide/pm/working-state.rst"
    owns = tuple(f"systemd({s.unit})" for s in KNOWN if s.kind == "tuner" and s.name not in (*_APART, *_ONCE))

    def judge(self, host: Host) -> Assessment:
        running = _others(host)
        if not running and host.unseen:
            return self.answer("unavailable", None, host.unseen)
        if not running:
            return self.answer("ok", "none", "no running service changes these settings")
        does = "; ".join(f"{s.name} {s.service.does}" for s in running[:MOST_PHRASES])
        stoppable = host.services.systemd and any(f"systemd({s.service.unit})" in self.owns for s in running)
        return self.answer(
            "improve",
            ", ".join(s.name for s in running[:MOST_NAMES]),
            does,
            wanted="none",
            fix="" if stoppable else "; ".join(stop_command(host, s) for s in running[:MOST_PHRASES]),
        )

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        running = _others(host)
        if running and not host.services.systemd:
            raise Unavailable(
                f"systemd does not run on this host: stop the services by hand ({stop_command(host, running[0])})",
                info=True,
            )
        return [
            Write(path, "active", "inactive", "unit", f"{s.name} {s.service.does}. {_ANEW}")
            for s in running
            if s.unit_active and (path := f"systemd({s.service.unit})") in self.owns
        ]


class UnneededServices(Observed):
    id = "services"
    title = "Services that use CPU time"
    why = (
        "Each of these services wakes up periodically or works in the background, on any CPU that it may use. On a "
        "host that measures or trades, stop the services that are not needed."
    )
    document = "Documentation/admin-guide/kernel-per-CPU-kthreads.rst"

    def judge(self, host: Host) -> Assessment:
        running = host.services.loads
        if not running and host.unseen:
            return self.answer("unavailable", None, host.unseen)
        if not running:
            return self.answer("ok", "none known", "no service that is known to work in the background runs here")
        stops = "; ".join(stop_command(host, s) for s in running[:MOST_PHRASES])
        return self.answer(
            "info",
            ", ".join(s.name for s in running[:MOST_WORDS]) + (" …" if len(running) > MOST_WORDS else ""),
            f"stop the services that you do not need: {stops}",
        )


def stop_command(host: Host, service: RunningService) -> str:
    """Return the command that stops a service on this host."""
    unit = service.service.unit
    if host.services.systemd:
        return f"systemctl stop {unit}"
    name = unit.removesuffix(".service")
    if host.services.init == "runit":
        return f"sv stop {name}"
    if host.services.init in ("init", "openrc-init") and host.root.is_dir("/run/openrc"):
        return f"rc-service {name} stop"
    if f"{name}" in host.root.list_dir("/etc/init.d"):
        return f"/etc/init.d/{name} stop"
    return f"kill {' '.join(map(str, service.pids[:MOST_ENTRIES]))}" if service.pids else f"stop {name}"


def _others(host: Host) -> list[RunningService]:
    return [s for s in host.services.tuners if s.name not in _APART]
