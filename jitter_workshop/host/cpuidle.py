"""Idle states (Documentation/admin-guide/pm/cpuidle.rst): how deep a CPU sleeps and how long it takes to wake."""

from __future__ import annotations

from dataclasses import dataclass

from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.host.topology import CPU_DIR


@dataclass(frozen=True, slots=True)
class IdleState:
    """One state of the CPU that was looked at. ``exit_latency_us``: worst time to leave it. ``disabled``: by a user."""

    index: int
    name: str
    description: str
    exit_latency_us: int | None
    target_residency_us: int | None
    disabled: bool | None


@dataclass(frozen=True, slots=True)
class CpuIdle:
    """``driver`` and ``governor`` are None where the kernel has no cpuidle or uses none. ``states``: of ``cpu``, the
    first CPU that has any."""

    driver: str | None
    governor: str | None
    cpu: int | None
    states: tuple[IdleState, ...]


def read_cpuidle(root: HostRoot) -> CpuIdle:
    """Read driver, governor and the idle states of one CPU (the others have the same ones, hybrid CPUs excepted)."""
    folder = f"{CPU_DIR}/cpuidle"
    governor = root.text(f"{folder}/current_governor") or root.text(f"{folder}/current_governor_ro")
    for number, cpu in root.numbered(CPU_DIR, "cpu"):
        states = read_idle_states(root, cpu)
        if states:
            return CpuIdle(_name(root.text(f"{folder}/current_driver")), _name(governor), number, states)
    return CpuIdle(_name(root.text(f"{folder}/current_driver")), _name(governor), None, ())


def read_idle_states(root: HostRoot, cpu_folder: str) -> tuple[IdleState, ...]:
    """The idle states below a CPU's folder, shallowest first."""
    states: list[IdleState] = []
    for index, folder in root.numbered(f"{cpu_folder}/cpuidle", "state"):
        disable = root.integer(f"{folder}/disable")
        states.append(
            IdleState(
                index=index,
                name=printable(root.text(f"{folder}/name") or "", 40) or f"state{index}",
                description=printable(root.text(f"{folder}/desc") or "", 80),
                exit_latency_us=root.integer(f"{folder}/latency"),
                target_residency_us=root.integer(f"{folder}/residency"),
                # Bit 0 is the user's; bit 1 says that the driver itself left the state off.
                disabled=None if disable is None else disable & 1 == 1,
            )
        )
    return tuple(states)


def _name(text: str | None) -> str | None:
    name = printable(text or "", 40)
    return name if name and name != "none" else None
