"""Read idle states, the latency limit of one CPU, and a guest's own polling before it halts.

An idle state tells how deep a CPU sleeps and how long it takes to wake. Sources:
Documentation/admin-guide/pm/cpuidle.rst, Documentation/ABI/testing/sysfs-devices-power,
Documentation/virt/guest-halt-polling.rst.
"""

from __future__ import annotations

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.fields import Fields
from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.model.record import dataclass, field

IDLE_DIR = f"{CPU_DIR}/cpuidle"

HALTPOLL_PATHS = {
    name: f"/sys/module/haltpoll/parameters/{name}"
    for name in (
        "guest_halt_poll_ns",
        "guest_halt_poll_grow",
        "guest_halt_poll_grow_start",
        "guest_halt_poll_shrink",
        "guest_halt_poll_allow_shrink",
    )
}


@dataclass(frozen=True, slots=True)
class IdleState:
    """Hold one state of one CPU. ``exit_latency_us``: worst time to leave it. ``disabled``: by a user."""

    index: int
    name: str
    description: str
    exit_latency_us: int | None
    target_residency_us: int | None
    disabled: bool | None


@dataclass(frozen=True, slots=True)
class IdleUse:
    """Hold the counters of one idle state of a CPU since boot.

    They tell how often the CPU asked for it, how long it was in it, and how often it woke too early (``above``) or
    could have slept deeper (``below``). Each is None where not shown.
    """

    index: int
    usage: int | None
    time_us: int | None
    above: int | None
    below: int | None


@dataclass(frozen=True, slots=True)
class CpuIdle:
    """Hold the idle driver and governor, and the states of one CPU.

    ``driver`` and ``governor`` are None where the kernel has no cpuidle or uses none. ``states``: of ``cpu``, the first
    CPU that has any.
    """

    driver: str | None
    governor: str | None
    cpu: int | None
    states: tuple[IdleState, ...]
    available_governors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResumeLatency:
    """Hold the longest wake-up time that one CPU's users accept.

    ``text``: as in the file. ``limit_us``: 0 where no latency at all is accepted (the file says ``n/a``), None where
    there is no limit (it says 0) or no file.
    """

    text: str | None
    limit_us: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Haltpoll:
    """Hold the parameters of the haltpoll governor in a guest; None where it is missing (``reasons``)."""

    guest_halt_poll_ns: int | None
    guest_halt_poll_grow: int | None
    guest_halt_poll_grow_start: int | None
    guest_halt_poll_shrink: int | None
    guest_halt_poll_allow_shrink: bool | None
    reasons: dict[str, str] = field(default_factory=dict)


def read_cpuidle(root: HostRoot) -> CpuIdle:
    """Read driver, governor and the idle states of one CPU (the others have the same, except on hybrid CPUs)."""
    governor = root.text(f"{IDLE_DIR}/current_governor") or root.text(f"{IDLE_DIR}/current_governor_ro")
    driver = _name(root.text(f"{IDLE_DIR}/current_driver"))
    available = tuple(printable(w, 40) for w in (root.text(f"{IDLE_DIR}/available_governors") or "").split()[:16])
    for number, _ in root.numbered(CPU_DIR, "cpu"):
        states = read_idle_states(root, number)
        if states:
            return CpuIdle(driver, _name(governor), number, states, available)
    return CpuIdle(driver, _name(governor), None, (), available)


def state_folders(root: HostRoot, cpu: int) -> tuple[tuple[int, str], ...]:
    """Return the folders of a CPU's idle states, shallowest first, as (index, path)."""
    return root.numbered(f"{CPU_DIR}/cpu{cpu}/cpuidle", "state")


def read_idle_states(root: HostRoot, cpu: int) -> tuple[IdleState, ...]:
    """Return the idle states of one CPU, shallowest first; () where it has none or is offline."""
    states: list[IdleState] = []
    for index, folder in state_folders(root, cpu):
        states.append(
            IdleState(
                index=index,
                name=printable(root.text(f"{folder}/name") or "", 40) or f"state{index}",
                description=printable(root.text(f"{folder}/desc") or "", 80),
                exit_latency_us=root.integer(f"{folder}/latency"),
                target_residency_us=root.integer(f"{folder}/residency"),
                disabled=parse_disable(root.integer(f"{folder}/disable")),
            )
        )
    return tuple(states)


def read_disabled(root: HostRoot, cpu: int) -> dict[int, bool | None]:
    """Return, by index, which of a CPU's idle states a user disabled; it reads one file a state."""
    return {index: parse_disable(root.integer(f"{folder}/disable")) for index, folder in state_folders(root, cpu)}


def parse_disable(value: int | None) -> bool | None:
    """Return bit 0, which is the user's; bit 1 says that the driver itself left the state off."""
    return None if value is None else value & 1 == 1


def read_idle_use(root: HostRoot, cpu: int) -> tuple[IdleUse, ...]:
    """Return the counters of one CPU's idle states."""
    return tuple(
        IdleUse(index, *(root.integer(f"{folder}/{name}") for name in ("usage", "time", "above", "below")))
        for index, folder in state_folders(root, cpu)
    )


def resume_latency_path(cpu: int) -> str:
    """Return the file that limits how long one CPU may take to wake."""
    return f"{CPU_DIR}/cpu{cpu}/power/pm_qos_resume_latency_us"


def read_resume_latency(root: HostRoot, cpu: int) -> ResumeLatency:
    """Return the limit of one CPU: ``n/a`` accepts no latency (the CPU polls), ``0`` means no limit, a number is in
    µs."""
    reading = root.reading(resume_latency_path(cpu))
    if reading.text is None:
        return ResumeLatency(None, None, reading.reason)
    if reading.text == "n/a":
        return ResumeLatency("n/a", 0)
    if not (reading.text.isascii() and reading.text.isdigit() and len(reading.text) <= 10):
        return ResumeLatency(None, None, "does not hold a latency")
    return ResumeLatency(reading.text, int(reading.text) or None)


def read_haltpoll(root: HostRoot) -> Haltpoll:
    """Return how long this guest polls before it halts."""
    fields = Fields(root, HALTPOLL_PATHS)
    return Haltpoll(
        guest_halt_poll_ns=fields.integer("guest_halt_poll_ns", 0),
        guest_halt_poll_grow=fields.integer("guest_halt_poll_grow", 0),
        guest_halt_poll_grow_start=fields.integer("guest_halt_poll_grow_start", 0),
        guest_halt_poll_shrink=fields.integer("guest_halt_poll_shrink", 0),
        guest_halt_poll_allow_shrink=fields.switch("guest_halt_poll_allow_shrink"),
        reasons=fields.reasons,
    )


def _name(text: str | None) -> str | None:
    name = printable(text or "", 40)
    return name if name and name != "none" else None
