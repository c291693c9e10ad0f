"""Read the uncore clock of Intel's mesh and memory controller.

Source: Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst.
"""

from __future__ import annotations

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.model.record import dataclass

FOLDER = f"{CPU_DIR}/intel_uncore_frequency"


@dataclass(frozen=True, slots=True)
class Uncore:
    """Hold one domain (``package_00_die_00`` or ``uncore00``) and its limits in Hz.

    ``initial_*`` are the limits at boot. Each is None where not shown.
    """

    name: str
    folder: str
    min_hz: int | None
    max_hz: int | None
    initial_min_hz: int | None
    initial_max_hz: int | None
    current_hz: int | None


def read_uncore(root: HostRoot) -> tuple[Uncore, ...]:
    """Return every domain by name, () where the driver is missing (guests, other makers, old kernels)."""
    return tuple(
        Uncore(
            printable(name, 64),
            folder := f"{FOLDER}/{name}",
            _hz(root, f"{folder}/min_freq_khz"),
            _hz(root, f"{folder}/max_freq_khz"),
            _hz(root, f"{folder}/initial_min_freq_khz"),
            _hz(root, f"{folder}/initial_max_freq_khz"),
            _hz(root, f"{folder}/current_freq_khz"),
        )
        for name in root.list_dir(FOLDER)
        if name.startswith(("package_", "uncore"))
    )


def _hz(root: HostRoot, path: str) -> int | None:
    khz = root.integer(path)
    return khz * 1_000 if khz is not None and khz > 0 else None
