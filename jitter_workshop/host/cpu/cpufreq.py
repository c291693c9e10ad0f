"""Read the frequency policies, which decide how fast the CPUs run.

Sources: Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst, amd-pstate.rst, intel_epb.rst.
"""

from __future__ import annotations

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass

POLICY_DIR = f"{CPU_DIR}/cpufreq"


@dataclass(frozen=True, slots=True)
class FrequencyPolicy:
    """Hold one frequency policy of the kernel. Frequencies are in Hz. A value that the driver does not show is None.

    - ``min_hz``, ``max_hz``: the limits set now.
    - ``hardware_*``: the limits of the hardware.
    - ``epp``: the energy-performance preference.
    - ``own_boost``: True if the policy has a file for boost in this policy alone, and the file allows boost.
    - ``folder``: the policy's folder, where settings are written.
    """

    folder: str
    driver: str | None
    governor: str | None
    available_governors: tuple[str, ...]
    min_hz: int | None
    max_hz: int | None
    hardware_min_hz: int | None
    hardware_max_hz: int | None
    epp: str | None
    available_epp: tuple[str, ...]
    own_boost: bool | None


def read_governors(root: HostRoot) -> tuple[str, ...]:
    """Return the governors that the frequency policies use, in alphabetical order, without repetitions. Return () if
    there are no policies. One file is read for each policy."""
    found = (_name(root, f"{folder}/scaling_governor") for _, folder in root.numbered(POLICY_DIR, "policy"))
    return tuple(sorted({governor for governor in found if governor is not None}))


def read_policy(root: HostRoot, folder: str) -> FrequencyPolicy:
    """Read the frequency policy in a folder."""
    own_boost = root.integer(f"{folder}/boost")
    return FrequencyPolicy(
        folder=folder,
        driver=_name(root, f"{folder}/scaling_driver"),
        governor=_name(root, f"{folder}/scaling_governor"),
        available_governors=root.words(f"{folder}/scaling_available_governors"),
        min_hz=_hz(root, f"{folder}/scaling_min_freq"),
        max_hz=_hz(root, f"{folder}/scaling_max_freq"),
        hardware_min_hz=_hz(root, f"{folder}/cpuinfo_min_freq"),
        hardware_max_hz=_hz(root, f"{folder}/cpuinfo_max_freq"),
        epp=_name(root, f"{folder}/energy_performance_preference"),
        available_epp=root.words(f"{folder}/energy_performance_available_preferences"),
        own_boost=None if own_boost is None else own_boost != 0,
    )


def read_current_hz(root: HostRoot, cpu: int) -> int | None:
    """Return the present frequency of one CPU in Hz; None if the kernel does not show it.

    On x86 hardware the kernel computes the frequency from counted cycles. On other hardware it shows the requested
    frequency (cpufreq.rst, scaling_cur_freq).
    """
    return _hz(root, f"{CPU_DIR}/cpu{cpu}/cpufreq/scaling_cur_freq")


def policy_folders(root: HostRoot, cpus: CpuSet) -> dict[str, CpuSet]:
    """Return the frequency policies of ``cpus``: folder of a policy → those of the policy's CPUs that are in ``cpus``.
    The policies are in the order of their numbers."""
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
    """Return all CPUs of the frequency policy in a folder, including offline ones."""
    return _cpus(root, f"{folder}/related_cpus") or _cpus(root, f"{folder}/affected_cpus")


def epb_path(cpu: int) -> str:
    """Return the path of the file with one CPU's energy-performance bias. The bias goes from 0 (performance) to 15
    (saving power) (intel_epb.rst)."""
    return f"{CPU_DIR}/cpu{cpu}/power/energy_perf_bias"


def read_epb(root: HostRoot, cpu: int) -> int | None:
    """Return one CPU's energy-performance bias, 0 to 15; None if this processor has no such bias."""
    value = root.integer(epb_path(cpu))
    return value if value is not None and 0 <= value <= 15 else None


def _name(root: HostRoot, path: str) -> str | None:
    """Return the name in a file. Return None if there is no file, or if the driver shows no value (``<unknown>`` or
    ``<unsupported>``)."""
    text = root.word(path)
    return text if text and not text.startswith("<") else None


def _cpus(root: HostRoot, path: str) -> CpuSet:
    """Return the CPUs in a list of cpufreq. Such a list has blanks between the numbers, unlike the kernel's other CPU
    lists."""
    try:
        return CpuSet.parse_words(root.text(path) or "")
    except ValueError:
        return CpuSet()


def _hz(root: HostRoot, path: str) -> int | None:
    khz = root.integer(path)
    return khz * 1_000 if khz is not None and khz > 0 else None
