"""Read the frequency policies, which decide how fast the CPUs run.

Sources: Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst, amd-pstate.rst, intel_epb.rst.
"""

from __future__ import annotations

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.fields import Fields
from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass, field

POLICY_DIR = f"{CPU_DIR}/cpufreq"

DRIVER_PATHS = {
    "intel_status": f"{CPU_DIR}/intel_pstate/status",
    "no_turbo": f"{CPU_DIR}/intel_pstate/no_turbo",
    "min_perf_percent": f"{CPU_DIR}/intel_pstate/min_perf_pct",
    "max_perf_percent": f"{CPU_DIR}/intel_pstate/max_perf_pct",
    "hwp_dynamic_boost": f"{CPU_DIR}/intel_pstate/hwp_dynamic_boost",
    "amd_status": f"{CPU_DIR}/amd_pstate/status",
    "boost": f"{POLICY_DIR}/boost",
}


@dataclass(frozen=True, slots=True)
class FrequencyPolicy:
    """Hold one policy and the CPUs that share it.

    Frequencies are in Hz. ``min_hz``/``max_hz``: the limits set now. ``hardware_*``: the limits of the hardware.
    ``epp``: energy-performance preference. ``boost``: True if turbo is allowed. ``own_boost``: True if this policy has
    its own boost file. Each is None where this driver does not show it. ``cpus``: the online ones; ``related``: with
    the offline ones. ``folder``: the policy's own, whose files are written.
    """

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
    own_boost: bool | None = None
    folder: str = ""


@dataclass(frozen=True, slots=True)
class FrequencyDriver:
    """Hold the settings common to all policies.

    ``intel_status``: active, passive or off. ``amd_status``: active, passive, guided or disable. ``no_turbo`` is
    intel_pstate's own switch, ``boost`` the general one. None where the host has no such driver; ``reasons`` names the
    missing file.
    """

    intel_status: str | None
    no_turbo: bool | None
    min_perf_percent: int | None
    max_perf_percent: int | None
    hwp_dynamic_boost: bool | None
    amd_status: str | None
    boost: bool | None
    reasons: dict[str, str] = field(default_factory=dict)


def read_cpufreq(root: HostRoot, *, current: bool = True) -> tuple[FrequencyPolicy, ...]:
    """Return all policies in number order, () where the host has no cpufreq (most virtual machines).

    ``current=False`` leaves ``current_hz`` unread: on some kernels reading it interrupts the CPU.
    """
    general_boost = _boost(root)
    return tuple(
        _policy(root, number, folder, current, general_boost) for number, folder in root.numbered(POLICY_DIR, "policy")
    )


def read_governors(root: HostRoot) -> tuple[str, ...]:
    """Return the governors of all policies, each once and sorted, reading one file a policy; () where there is none."""
    found = (_word(root, f"{folder}/scaling_governor") for _, folder in root.numbered(POLICY_DIR, "policy"))
    return tuple(sorted({governor for governor in found if governor is not None}))


def read_policy(root: HostRoot, cpu: int, *, current: bool = False) -> FrequencyPolicy | None:
    """Return the policy of one CPU; None if it has none. Other policies' files are read only if its name does not
    match."""
    folder = policy_folder(root, cpu)
    if folder is None:
        return None
    return _policy(root, int(folder.rpartition("policy")[2]), folder, current, _boost(root))


def policy_folder(root: HostRoot, cpu: int) -> str | None:
    """Return the folder of the policy that governs ``cpu``.

    A policy is named after the first of its CPUs to come online; for the others the policies' CPU lists are read.
    """
    own = f"{POLICY_DIR}/policy{cpu}"
    if cpu in read_related(root, own):
        return own
    return next((f for _, f in root.numbered(POLICY_DIR, "policy") if cpu in read_related(root, f)), None)


def policy_folders(root: HostRoot, cpus: CpuSet) -> dict[str, CpuSet]:
    """Return the policies that govern ``cpus``, in number order, each with its part of ``cpus``."""
    found: dict[str, CpuSet] = {}
    left = set(cpus)
    numbers = dict(root.numbered(POLICY_DIR, "policy"))
    # Try a CPU's own number first: usually there is one policy a CPU, and the others are then never read.
    for number in (*(n for n in cpus if n in numbers), *(n for n in numbers if n not in cpus)):
        if number in cpus and number not in left:
            continue
        if not left:
            break
        mine = read_related(root, numbers[number]) & cpus
        if len(mine):
            found[numbers[number]] = mine
            left -= set(mine)
    return dict(sorted(found.items(), key=lambda item: int(item[0].rpartition("policy")[2])))


def read_related(root: HostRoot, folder: str) -> CpuSet:
    """Return all CPUs of a policy, including offline ones."""
    related = root_cpus(root, f"{folder}/related_cpus")
    return related if len(related) else root_cpus(root, f"{folder}/affected_cpus")


def read_frequency_driver(root: HostRoot) -> FrequencyDriver:
    """Return the switches of the driver as a whole."""
    fields = Fields(root, DRIVER_PATHS)
    return FrequencyDriver(
        intel_status=fields.word("intel_status", 40),
        no_turbo=fields.switch("no_turbo"),
        min_perf_percent=fields.integer("min_perf_percent", 0),
        max_perf_percent=fields.integer("max_perf_percent", 0),
        hwp_dynamic_boost=fields.switch("hwp_dynamic_boost"),
        amd_status=fields.word("amd_status", 40),
        boost=fields.switch("boost"),
        reasons=fields.reasons,
    )


def epb_path(cpu: int) -> str:
    """Return the path of one CPU's energy-performance bias: 0 is performance, 15 is saving power (intel_epb.rst)."""
    return f"{CPU_DIR}/cpu{cpu}/power/energy_perf_bias"


def read_epb(root: HostRoot, cpu: int) -> int | None:
    """Return the bias of one CPU, 0 to 15; None where this processor has none."""
    value = root.integer(epb_path(cpu))
    return value if value is not None and 0 <= value <= 15 else None


def _policy(root: HostRoot, number: int, folder: str, current: bool, general_boost: bool | None) -> FrequencyPolicy:
    own = root.integer(f"{folder}/boost")
    own_boost = None if own is None else own != 0
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
        boost=own_boost if own_boost is not None else general_boost,
        own_boost=own_boost,
        folder=folder,
    )


def root_cpus(root: HostRoot, path: str) -> CpuSet:
    """Return CPUs from a list of cpufreq, which puts blanks between the numbers, unlike the rest of the kernel."""
    try:
        return CpuSet.parse_words(root.text(path) or "")
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
    """Return a name, or None; a driver without a value says ``<unknown>`` or ``<unsupported>``."""
    text = printable(root.text(path) or "", 40)
    return text if text and not text.startswith("<") else None


def _words(root: HostRoot, path: str) -> tuple[str, ...]:
    return tuple(printable(word, 40) for word in (root.text(path) or "").split()[:32])
