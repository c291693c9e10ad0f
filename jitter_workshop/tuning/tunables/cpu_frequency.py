"""Define the tunables of CPU clocks: governor, energy preference and bias, lowest frequency, boost, uncore clock."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.host.cpu.cpufreq import FrequencyPolicy, epb_path, read_epb
from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import parse_integer
from jitter_workshop.model.status import Assessment
from jitter_workshop.model.text import MOST_ENTRIES
from jitter_workshop.tuning.base import Setting, Settings, Tunable, Unavailable, Write, only_on_x86
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables.single import one_of, whole_number

_POLICY = "/sys/devices/system/cpu/cpufreq/policy*"
_UNCORE = f"{CPU_DIR}/intel_uncore_frequency"
_MIN_PERCENT = f"{CPU_DIR}/intel_pstate/min_perf_pct"
BOOST = f"{CPU_DIR}/cpufreq/boost"
NO_TURBO = f"{CPU_DIR}/intel_pstate/no_turbo"
"""The files that switch boost for all CPUs. BOOST is the general file (1: boost is on). NO_TURBO is the file of the
driver intel_pstate (1: boost is off)."""

_TUNERS = ("tuned", "power-profiles-daemon", "tlp", "thermald")

_FORCING_DRIVERS = ("intel_pstate", "amd-pstate-epp")
"""Drivers whose governor ``performance`` sets the energy preference and refuses any other preference."""


class Governor(Settings):
    """Handle the frequency governor, and the energy preference that may change with it.

    Some drivers change the energy preference when the governor changes. When the old governor returns, the driver
    intel_pstate also restores the old preference. On several kernels, the driver amd-pstate does not restore it. So the
    preference is a change of its own, which is written first and restored last.
    """

    id = "governor"
    title = "CPU governor"
    why = (
        "Some governors set the clock by the load. Such a governor may change the clock while a message is on its "
        "way. Each change costs microseconds, and the first messages after a pause run at the lowest frequency."
    )
    danger = "more power and heat"
    document = "Documentation/admin-guide/pm/cpufreq.rst"
    owns = (f"{_POLICY}/scaling_governor", f"{_POLICY}/energy_performance_preference")
    default = "performance"
    values = "a governor that the driver offers"
    rewritten_by = _TUNERS
    good = "the hot CPUs keep their highest clock"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        return [
            Setting(
                f"{p.folder}/scaling_governor",
                p.governor,
                self.choose(value, p.available_governors),
                reason="the governor cannot be read",
            )
            for p in hot_policies(host)
        ]

    def judge(self, host: Host) -> Assessment:
        found = super().judge(host)
        if found.state != "ok":
            return found
        for p in hot_policies(host):
            if p.max_hz and p.hardware_max_hz and p.max_hz < p.hardware_max_hz:
                limits = f"{p.max_hz / 1e6:,.0f} of {p.hardware_max_hz / 1e6:,.0f} MHz"
                reason = f"the clock is capped at {limits} ({p.folder}/scaling_max_freq)"
                return self.answer("info", found.value, reason, wanted=found.wanted, paths=found.paths)
        return found

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        governors = super().writes(host, value)
        forced = {w.path for w in governors if w.after == "performance" != w.before}
        preferences = [
            Write(_epp(p), p.epp, "performance", why="The governor performance also sets this preference.")
            for p in hot_policies(host)
            if f"{p.folder}/scaling_governor" in forced
            and p.driver in _FORCING_DRIVERS
            and p.epp is not None
            and p.epp != "performance"
        ]
        return [*preferences, *governors]


class EnergyPreference(Settings):
    id = "epp"
    title = "Energy preference"
    why = (
        "Some processors choose their own clock. This hint tells such a processor if speed matters more than saving "
        "power. With any value but 'performance' the processor may lower the clock in short pauses and raise it late."
    )
    danger = "more power and heat"
    document = "Documentation/admin-guide/pm/intel_pstate.rst"
    owns = (f"{_POLICY}/energy_performance_preference",)
    default = "performance"
    values = "a preference that the driver offers"
    rewritten_by = _TUNERS
    good = "the processor favours speed over saving power"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        policies = [p for p in host.hot_policies if p.epp is not None]
        if not policies:
            only_on_x86(host)  # drivers of other processors have their own preference, or none
            raise Unavailable(
                f"the driver {hot_policies(host)[0].driver or 'here'} has no energy preference: intel_pstate has one "
                "on processors with HWP, and amd-pstate has one in its active mode"
            )
        found: list[Setting] = []
        for p in policies:
            wanted = self.choose(value, p.available_epp or ("performance",))
            forced = p.driver in _FORCING_DRIVERS and p.governor == "performance" and wanted != "performance"
            refuses = (
                "while the governor is performance, the driver accepts only the preference performance"
                if forced
                else ""
            )
            found.append(Setting(_epp(p), p.epp, wanted, refuses=refuses))
        return found


class EnergyBias(Settings):
    """Handle the energy bias of the hot CPUs. Only status, plan and apply read it, once for each CPU, because a read
    interrupts the CPU."""

    id = "epb"
    title = "Energy bias"
    why = (
        "This register of Intel processors sets the balance between speed (0) and saving power (15). The register "
        "also affects parts that the governor does not control, such as the mesh and deep idle states."
    )
    danger = "more power and heat"
    document = "Documentation/admin-guide/pm/intel_epb.rst"
    owns = (f"{CPU_DIR}/cpu*/power/energy_perf_bias",)
    default = "0"
    values = "0 (speed) to 15 (saving power)"
    rewritten_by = _TUNERS
    good = "the hot CPUs' bias is for speed"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        only_on_x86(host)
        wanted = whole_number(self, value, 0, 15)
        known = {cpu: read_epb(host.root, cpu) for cpu in host.hot}
        if all(bias is None for bias in known.values()):
            if host.guest:
                raise Unavailable("only the hypervisor's host can see the energy bias, not a guest", only_host=True)
            raise Unavailable("this processor shows no energy bias: only some Intel processors have one")
        return [
            Setting(
                epb_path(cpu), None if bias is None else str(bias), wanted, "number", "the file does not hold a number"
            )
            for cpu, bias in known.items()
        ]


class MinFrequency(Settings):
    """Handle the lowest frequency of the hot CPUs. VALUE ``all`` also raises intel_pstate's limit for all CPUs.

    A CPU has two limits: one from its policy, and one from the driver (``min_perf_pct``). The higher limit is in force.
    So for hot CPUs the policy's limit is enough. A higher limit of the driver would only make the other CPUs faster and
    hotter.
    """

    id = "min-frequency"
    title = "Lowest frequency"
    why = (
        "If the clock may fall, the first messages after a pause run at a low clock. If the lowest allowed frequency "
        "equals the highest one, the clock stays high with every governor."
    )
    danger = "more power and heat"
    document = "Documentation/admin-guide/pm/cpufreq.rst"
    owns = (f"{_POLICY}/scaling_min_freq", _MIN_PERCENT)
    default = "max"
    values = "max, a frequency in kHz, or all (only intel_pstate: max on every CPU)"
    rewritten_by = _TUNERS
    good = "the hot CPUs' clock cannot fall"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        wanted = self.default if value is None else value
        found: list[Setting] = []
        for p in hot_policies(host):
            if p.max_hz is None or p.min_hz is None:
                found.append(
                    Setting(
                        f"{p.folder}/scaling_min_freq", None, "", reason="the CPU's frequency limits cannot be read"
                    )
                )
                continue
            khz = p.max_hz // 1000
            if wanted not in ("max", "all"):
                khz = int(whole_number(self, wanted, (p.hardware_min_hz or 0) // 1000, khz))
            found.append(Setting(f"{p.folder}/scaling_min_freq", str(p.min_hz // 1000), str(khz), "frequency-limit"))
        if wanted == "all":
            percent = host.root.integer(_MIN_PERCENT)
            if percent is None or percent < 0:
                raise Unavailable("only intel_pstate has a lowest frequency for all CPUs at once")
            best = str(host.root.integer(f"{CPU_DIR}/intel_pstate/max_perf_pct") or 100)
            found.append(Setting(_MIN_PERCENT, str(percent), best, "number"))
        return found

    def judge(self, host: Host) -> Assessment:
        found = super().judge(host)
        if found.state == "improve" and all(p.governor == "performance" for p in hot_policies(host)):
            reason = (
                "the governor performance already keeps the highest clock; this limit matters only "
                "with another governor"
            )
            return self.answer("ok", found.value, reason, wanted=found.wanted, paths=found.paths)
        return found

    def shown(self, value: str) -> str:
        return _mhz(value)


class Boost(Tunable):
    id = "boost"
    title = "Boost (turbo)"
    why = (
        "With boost the clock rises above its nominal value if heat, power and the number of busy cores allow it. The "
        "CPU is then faster, but its speed changes from one minute to the next."
    )
    danger = "boost=off: the clock never exceeds its nominal value; boost=on: the clock depends on heat and other cores"
    document = "Documentation/admin-guide/pm/cpufreq.rst"
    owns = (NO_TURBO, BOOST, f"{_POLICY}/boost")
    values = "on or off"
    rewritten_by = _TUNERS

    def judge(self, host: Host) -> Assessment:
        switches = _boost_switches(host)
        states = {"on" if on else "off" for _, on, _ in switches}
        reason = (
            "boost=on is fast, but the clock depends on heat and on the number of busy cores. boost=off is steady, "
            "but every message is slower by the same amount. Measure with both values"
        )
        paths = [path for path, _, _ in switches[:MOST_ENTRIES]]
        return self.answer("info", " and ".join(sorted(states)), reason, paths=paths)

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        wanted = one_of(self, value or "on", ("on", "off"))
        switches = _boost_switches(host)
        if value is None:
            raise Unavailable("neither value is better for every program: give boost=on or boost=off", info=True)
        return [
            Write(path, str(int(on != inverted)), str(int((wanted == "on") != inverted)), "number")
            for path, on, inverted in switches
        ]


class UncoreFrequency(Settings):
    id = "uncore-frequency"
    title = "Uncore frequency"
    why = (
        "On Intel servers one separate clock drives the mesh, the last-level cache and the memory controller. This "
        "clock falls when few cores are busy, and messages between cores then take longer."
    )
    danger = "the mesh uses more power, so the cores have less for boost"
    document = "Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst"
    owns = (f"{_UNCORE}/*/min_freq_khz",)
    good = "the hot CPUs' mesh keeps its highest clock"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        only_on_x86(host)
        domains = [name for name in host.root.list_dir(_UNCORE) if name.startswith(("package_", "uncore"))]
        if not domains and host.guest:
            raise Unavailable("only the hypervisor's host can see the mesh's clock, not a guest", only_host=True)
        if not domains:
            raise Unavailable(
                "no driver on this host shows the mesh's clock: on Intel servers the driver is intel_uncore_frequency"
            )
        packages = {host.root.integer(f"{CPU_DIR}/cpu{cpu}/topology/physical_package_id") for cpu in host.hot}
        found: list[Setting] = []
        for name in domains:
            folder = f"{_UNCORE}/{name}"
            # The names are package_00_die_00; newer kernels use uncore00 and give the package in a file.
            parts = name.split("_")
            package = parse_integer(parts[1]) if parts[0] == "package" and len(parts) > 1 else None
            if package is None:
                package = host.root.integer(f"{folder}/package_id")
            if package is not None and package not in packages:
                continue
            low, high = (host.root.integer(f"{folder}/{end}_freq_khz") or 0 for end in ("min", "max"))
            current = str(low) if low > 0 and high > 0 else None
            found.append(
                Setting(
                    f"{folder}/min_freq_khz",
                    current,
                    str(max(high, 0)),
                    "number",
                    "the mesh's frequency limits cannot be read",
                )
            )
        return found

    def shown(self, value: str) -> str:
        return _mhz(value)


def hot_policies(host: Host) -> Sequence[FrequencyPolicy]:
    """Return the frequency policies that a hot CPU belongs to. Raise Unavailable where there are none."""
    if host.hot_policies:
        return host.hot_policies
    if host.guest:
        raise Unavailable(
            "this guest has no cpufreq, because the hypervisor's host sets the clock: ask the owner of that host",
            only_host=True,
        )
    raise Unavailable("this kernel has no cpufreq driver for this processor")


def _boost_switches(host: Host) -> list[tuple[str, bool, bool]]:
    """Return a triple for each file that switches boost.

    The triple is: the path, True if boost is on, True if the value 1 switches boost off. With intel_pstate, there is
    only the driver's file. With other drivers, the files are usually those of the hot CPUs' policies. But if the file
    for all CPUs switches boost off, this file is returned instead. It is also returned if the policies have no such
    files. Raise Unavailable if there is no file at all.
    """
    policies = hot_policies(host)
    no_turbo, boost = host.root.integer(NO_TURBO), host.root.integer(BOOST)
    if no_turbo is not None:
        return [(NO_TURBO, no_turbo == 0, True)]
    own = [(f"{p.folder}/boost", p.own_boost, False) for p in policies if p.own_boost is not None]
    if own and boost != 0:
        return own
    if boost is not None:
        return [(BOOST, boost != 0, False)]
    raise Unavailable(
        f"the driver {policies[0].driver or 'here'} cannot switch boost; the firmware's set-up may have such a switch"
    )


def _epp(policy: FrequencyPolicy) -> str:
    return f"{policy.folder}/energy_performance_preference"


def _mhz(khz: str | None) -> str:
    number = parse_integer(khz)
    return khz or "unknown" if number is None else f"{number / 1000:,.0f} MHz"
