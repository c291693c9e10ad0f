"""Frequency policies: who decides how fast which CPUs run (Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst,
amd-pstate.rst)."""

from __future__ import annotations

from dataclasses import dataclass

from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.host.topology import CPU_DIR
from jitter_workshop.model.cpuset import CpuSet


@dataclass(frozen=True, slots=True)
class FrequencyPolicy:
    """One policy and the CPUs that share it. Frequencies in Hz; ``min_hz``/``max_hz`` are the limits set now,
    ``hardware_*`` what the hardware can. ``epp``: energy-performance preference. ``boost``: whether turbo is allowed.
    Each is None where this driver does not show it. ``cpus``: online ones; ``related``: with the offline ones."""

    id: int
    cpus: CpuSet
    related: CpuSet
    driver: str | None
    governor: str | None
    available_governors: tuple[str, ...]
    min_hz: int | None
    max_hz: int | None
    hardware_min_hz: int | None
    hardware_max_hz: int | None
    current_hz: int | None
    epp: str | None
    available_epp: tuple[str, ...]
    boost: bool | None


def read_cpufreq(root: HostRoot, *, current: bool = True) -> tuple[FrequencyPolicy, ...]:
    """All policies in number order, () where the host has no cpufreq (most virtual machines).

    ``current=False`` leaves ``current_hz`` unread: on some kernels reading it interrupts the CPU.
    """
    general_boost = _boost(root)
    return tuple(
        _policy(root, number, folder, current, general_boost)
        for number, folder in root.numbered(f"{CPU_DIR}/cpufreq", "policy")
    )


def _policy(root: HostRoot, number: int, folder: str, current: bool, general_boost: bool | None) -> FrequencyPolicy:
    own_boost = root.integer(f"{folder}/boost")
    cpus = root_cpus(root, f"{folder}/affected_cpus")
    return FrequencyPolicy(
        id=number,
        cpus=cpus,
        related=root_cpus(root, f"{folder}/related_cpus") | cpus,
        driver=_word(root, f"{folder}/scaling_driver"),
        governor=_word(root, f"{folder}/scaling_governor"),
        available_governors=_words(root, f"{folder}/scaling_available_governors"),
        min_hz=_hz(root, f"{folder}/scaling_min_freq"),
        max_hz=_hz(root, f"{folder}/scaling_max_freq"),
        hardware_min_hz=_hz(root, f"{folder}/cpuinfo_min_freq"),
        hardware_max_hz=_hz(root, f"{folder}/cpuinfo_max_freq"),
        current_hz=_hz(root, f"{folder}/scaling_cur_freq") if current else None,
        epp=_word(root, f"{folder}/energy_performance_preference"),
        available_epp=_words(root, f"{folder}/energy_performance_available_preferences"),
        boost=own_boost != 0 if own_boost is not None else general_boost,
    )


def root_cpus(root: HostRoot, path: str) -> CpuSet:
    """cpufreq writes CPU numbers with blanks between them, unlike the rest of the kernel."""
    text = root.text(path)
    try:
        return CpuSet.parse_list(",".join((text or "").split()))
    except ValueError:
        return CpuSet()


def _boost(root: HostRoot) -> bool | None:
    no_turbo = root.integer(f"{CPU_DIR}/intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == 0
    boost = root.integer(f"{CPU_DIR}/cpufreq/boost")
    return None if boost is None else boost != 0


def _hz(root: HostRoot, path: str) -> int | None:
    khz = root.integer(path)
    return khz * 1_000 if khz is not None and khz > 0 else None


def _word(root: HostRoot, path: str) -> str | None:
    """A name, or None; a driver without a value says ``<unknown>`` or ``<unsupported>``."""
    text = printable(root.text(path) or "", 40)
    return text if text and not text.startswith("<") else None


def _words(root: HostRoot, path: str) -> tuple[str, ...]:
    return tuple(printable(word, 40) for word in (root.text(path) or "").split()[:32])
