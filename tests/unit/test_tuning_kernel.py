"""Tunables of the kernel's own switches: what they say of made hosts, and what they would write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.errors import UsageError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning import planning
from jitter_workshop.tuning.base import Unavailable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.tunables.memory import Writeback
from jitter_workshop.tuning.tunables.registry import find_tunable
from jitter_workshop.tuning.tunables.scheduler import RtThrottling
from jitter_workshop.tuning.tunables.watchdogs import Watchdogs
from jitter_workshop.tuning.writer import HostWriter
from tests import hosttrees

KERNEL = "proc/sys/kernel"
VM = "proc/sys/vm"
THP = "sys/kernel/mm/transparent_hugepage"
MCE = "sys/devices/system/machinecheck"

AS_BOOTED = {
    f"{KERNEL}/sched_rt_runtime_us": "950000\n",
    f"{KERNEL}/sched_rt_period_us": "1000000\n",
    f"{KERNEL}/timer_migration": "1\n",
    f"{KERNEL}/watchdog": "1\n",
    f"{KERNEL}/soft_watchdog": "1\n",
    f"{KERNEL}/nmi_watchdog": "1\n",
    f"{KERNEL}/watchdog_cpumask": "0-2\n",
    f"{KERNEL}/numa_balancing": "1\n",
    f"{KERNEL}/perf_event_max_sample_rate": "100000\n",
    f"{KERNEL}/perf_event_paranoid": "2\n",
    f"{VM}/stat_interval": "1\n",
    f"{VM}/dirty_writeback_centisecs": "500\n",
    f"{VM}/dirty_expire_centisecs": "3000\n",
    f"{VM}/dirty_ratio": "20\n",
    f"{VM}/dirty_bytes": "0\n",
    f"{VM}/dirty_background_ratio": "10\n",
    f"{VM}/dirty_background_bytes": "0\n",
    f"{VM}/zone_reclaim_mode": "1\n",
    f"{VM}/swappiness": "60\n",
    f"{VM}/compaction_proactiveness": "20\n",
    "proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition 1048572 0 -2\n",
    f"{THP}/enabled": "[always] madvise never\n",
    f"{THP}/defrag": "always defer defer+madvise [madvise] never\n",
    "sys/kernel/mm/ksm/run": "1\n",
    "sys/kernel/rcu_expedited": "1\n",
    "sys/kernel/rcu_normal": "0\n",
    "sys/kernel/debug/sched/preempt": "none (voluntary) full\n",
    f"{MCE}/machinecheck0/check_interval": "300\n",
    f"{MCE}/machinecheck1/check_interval": "300\n",
    "sys/kernel/tracing/current_tracer": "function\n",
    "sys/kernel/tracing/tracing_on": "1\n",
    "sys/kernel/tracing/events/enable": "X\n",
    "sys/devices/virtual/workqueue/writeback/cpumask": "7\n",
    "sys/module/pcie_aspm/parameters/policy": "[default] performance powersave powersupersave\n",
    "sys/firmware/acpi/platform_profile": "balanced\n",
    "sys/firmware/acpi/platform_profile_choices": "low-power balanced performance\n",
    **{f"sys/kernel/debug/sched/fair_server/cpu{n}/runtime": "50000000\n" for n in range(3)},
}
"""A bare-metal box with 3 CPUs as a distribution leaves it."""


def box(root: Path, changed: dict[str, str] | None = None, hot: tuple[int, ...] = (2,)) -> Host:
    """The box with CPU 2 hot; ``changed``: other contents by the file's last name."""
    hosttrees.small(root, 3)
    files = {path: (changed or {}).get(path.rpartition("/")[2], text) for path, text in AS_BOOTED.items()}
    hosttrees.write(root, files)
    return Host(HostRoot(root), CpuSet(hot))


def writes(host: Host, wanted: str) -> dict[str, str]:
    """Path → what would be written for ``ID`` or ``ID=VALUE``."""
    name, equals, value = wanted.partition("=")
    found = planning.plan_changes(host, [Wanted(name, value if equals else None)])
    return {c.path: c.after for c in found.changes}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("rt-throttling", {}),
        ("rt-throttling=-1", {f"/{KERNEL}/sched_rt_runtime_us": "-1"}),
        ("deadline-server=off", {"/sys/kernel/debug/sched/fair_server/cpu2/runtime": "0"}),
        ("deadline-server", {}),
        ("timer-migration", {}),
        ("timer-migration=0", {f"/{KERNEL}/timer_migration": "0"}),
        ("rcu-expedite", {"/sys/kernel/rcu_expedited": "0"}),
        ("rcu-expedite=never", {"/sys/kernel/rcu_expedited": "0", "/sys/kernel/rcu_normal": "1"}),
        ("preempt-mode=full", {"/sys/kernel/debug/sched/preempt": "full"}),
        ("watchdogs", {f"/{KERNEL}/watchdog_cpumask": "0-1"}),
        ("watchdogs=off", {f"/{KERNEL}/watchdog": "soft=0 nmi=0"}),
        ("nmi-watchdog", {f"/{KERNEL}/nmi_watchdog": "0"}),
        ("mce-interval", {f"/{MCE}/machinecheck0/check_interval": "3600"}),
        ("mce-interval=0", {f"/{MCE}/machinecheck0/check_interval": "0"}),
        ("tracing", {"/sys/kernel/tracing/current_tracer": "nop", "/sys/kernel/tracing/tracing_on": "0"}),
        ("perf-sample-rate=1", {f"/{KERNEL}/perf_event_max_sample_rate": "1"}),
        ("stat-interval", {f"/{VM}/stat_interval": "10"}),
        ("stat-interval=120", {f"/{VM}/stat_interval": "120"}),
        ("writeback=interval:1500", {f"/{VM}/dirty_writeback_centisecs": "1500"}),
        (
            "writeback=limit:1073741824,background:5%",
            {f"/{VM}/dirty_ratio": "1073741824", f"/{VM}/dirty_background_ratio": "5%"},
        ),
        ("thp", {f"/{THP}/enabled": "madvise"}),
        ("thp=never", {f"/{THP}/enabled": "never"}),
        ("ksm", {"/sys/kernel/mm/ksm/run": "0"}),
        ("numa-balancing", {f"/{KERNEL}/numa_balancing": "0"}),
        ("zone-reclaim", {f"/{VM}/zone_reclaim_mode": "0"}),
        ("swap", {f"/{VM}/swappiness": "10"}),
        ("swap=1", {f"/{VM}/swappiness": "1"}),
        ("compaction", {f"/{VM}/compaction_proactiveness": "0"}),
        ("platform-profile", {"/sys/firmware/acpi/platform_profile": "performance"}),
        ("pcie-aspm", {"/sys/module/pcie_aspm/parameters/policy": "performance"}),
    ],
)
def test_a_host_as_booted_gets_the_expected_writes(tmp_path: Path, wanted: str, expected: dict[str, str]) -> None:
    assert writes(box(tmp_path), wanted) == expected


GOOD: dict[str, dict[str, str]] = {
    "watchdogs": {"watchdog_cpumask": "0-1\n"},
    "nmi-watchdog": {"watchdog_cpumask": "0,1\n"},
    "mce-interval": {"check_interval": "0\n"},
    "tracing": {"current_tracer": "nop\n", "enable": "0\n"},
    "stat-interval": {"stat_interval": "3600\n"},
    "thp": {"enabled": "always madvise [never]\n"},
    "ksm": {"run": "2\n"},
    "numa-balancing": {"numa_balancing": "0\n"},
    "zone-reclaim": {"zone_reclaim_mode": "0\n"},
    "swap": {"swaps": "Filename\tType\tSize\tUsed\tPriority\n"},
    "compaction": {"compaction_proactiveness": "0\n"},
    "rcu-expedite": {"rcu_expedited": "0\n"},
    "platform-profile": {"platform_profile": "performance\n"},
    "pcie-aspm": {"policy": "default [performance] powersave\n"},
}


@pytest.mark.parametrize("name", GOOD)
def test_improve_as_booted_and_ok_when_good(tmp_path: Path, name: str) -> None:
    before = find_tunable(name).assess(box(tmp_path / "booted"))
    assert (before.state, before.fix) == ("improve", f"jitter-workshop apply {name}"), before
    good = box(tmp_path / "good", GOOD[name])
    after = find_tunable(name).assess(good)
    assert after.state == "ok", after
    assert writes(good, name) == {}


@pytest.mark.parametrize(
    "wanted",
    [
        "rt-throttling=0",
        "rt-throttling=-2",
        "rt-throttling=2000000",
        "deadline-server=fast",
        "timer-migration=2",
        "preempt-mode=soon",
        "watchdogs=maybe",
        "stat-interval=0",
        "stat-interval=\x1b[31m",
        "writeback=interval",
        "writeback=limit:0%",
        "writeback=limit:12",
        "writeback=speed:1",
        "thp=always",
        "ksm=3",
        "swap=201",
        "mce-interval=-1",
        "platform-profile=turbo",
        "perf-sample-rate=0",
    ],
)
def test_values_that_make_no_sense(tmp_path: Path, wanted: str) -> None:
    with pytest.raises(UsageError) as refused:
        writes(box(tmp_path), wanted)
    assert "\x1b" not in str(refused.value)


def test_no_limit_of_real_time_tasks_is_told_and_not_counted_against_the_host(tmp_path: Path) -> None:
    told = RtThrottling().assess(box(tmp_path, {"sched_rt_runtime_us": "-1\n"}))
    assert told.state == "info"
    assert "no task of lower priority" in told.reason


def test_watchdogs_without_a_housekeeping_cpu(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="there is no CPU to watch"):
        Watchdogs().writes(box(tmp_path, hot=(0, 1, 2)), None)


def test_watchdogs_that_are_off_are_left_off(tmp_path: Path) -> None:
    host = box(tmp_path, {"watchdog": "0\n"})
    assert Watchdogs().assess(host).state == "ok"
    assert writes(host, "watchdogs=off") == {}


@pytest.mark.parametrize("name", [*sorted(GOOD), "rt-throttling", "deadline-server", "timer-migration", "preempt-mode"])
@pytest.mark.parametrize("damage", ["", "\x00\x01\x02 nonsense\n\x1b[2J", "[", "99999999999999999999999", "1 2 3"])
def test_damaged_files_are_told_and_not_written(tmp_path: Path, name: str, damage: str) -> None:
    tunable = find_tunable(name)
    root = tmp_path
    hosttrees.small(root, 3)
    hosttrees.write(root, dict.fromkeys(AS_BOOTED, damage))
    host = Host(HostRoot(root), CpuSet((2,)))
    told = tunable.assess(host)
    assert told.reason or told.state == "ok"
    assert "\x1b" not in f"{told.value}{told.reason}"


def test_missing_files_are_unavailable_with_a_reason(host_tree: Callable[[str], Path]) -> None:
    host = Host(HostRoot(host_tree("small3")), CpuSet((2,)))
    for name in [*GOOD, "rt-throttling", "deadline-server", "preempt-mode"]:
        told = find_tunable(name).assess(host)
        assert told.state == "unavailable", name
        assert told.reason


class Kernel(HostWriter):
    """Writes to a made tree as the kernel does where files hang together."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.root = root

    def write(self, path: str, text: str) -> None:
        folder, _, name = path.rpartition("/")
        other = {"dirty_bytes": "dirty_ratio", "dirty_ratio": "dirty_bytes"}.get(name)
        if name == "dirty_bytes" and int(text) < 8192:
            raise OSError(22, "Invalid argument")
        super().write(path, text)
        if other is not None:
            super().write(f"{folder}/{other}", "0")


@given(st.lists(st.one_of(st.integers(1, 100).map("{}%".format), st.integers(8192, 1 << 40).map(str)), max_size=6))
def test_a_dirty_limit_is_share_or_bytes_and_comes_back(
    tmp_path_factory: pytest.TempPathFactory, values: list[str]
) -> None:
    root = tmp_path_factory.mktemp("vm")
    hosttrees.write(root, {path: text for path, text in AS_BOOTED.items() if "/dirty_" in path})
    kind, host, path = kind_of("dirty-limit"), HostRoot(root), Writeback.owns[3]
    before = kind.read(host, path).text
    assert before == "20%"
    for value in values:
        kind.write(Kernel(root), path, value)
        found = kind.read(host, path).text
        assert found is not None
        assert kind.same(found, value)
    kind.write(Kernel(root), path, before)
    assert kind.read(host, path).text == before


@pytest.mark.parametrize("value", ["soft=0 nmi=0", "soft=1 nmi=0", "soft=0 nmi=1", "soft=1 nmi=1"])
def test_watchdog_switches_hold_the_written_value(tmp_path: Path, value: str) -> None:
    box(tmp_path)
    kind, path = kind_of("watchdog"), f"/{KERNEL}/watchdog"
    kind.write(HostWriter(tmp_path), path, value)
    assert kind.read(HostRoot(tmp_path), path).text == value


def test_a_detector_that_the_kernel_lacks_may_stay_off(tmp_path: Path) -> None:
    class NoNmi(HostWriter):
        def write(self, path: str, text: str) -> None:
            if path.endswith("nmi_watchdog"):
                raise OSError(95, "Operation not supported")
            super().write(path, text)

    box(tmp_path, {"nmi_watchdog": "0\n"})
    kind, path = kind_of("watchdog"), f"/{KERNEL}/watchdog"
    kind.write(NoNmi(tmp_path), path, "soft=1 nmi=0")
    with pytest.raises(OSError, match="not supported"):
        kind.write(NoNmi(tmp_path), path, "soft=1 nmi=1")


@pytest.mark.parametrize(
    ("text", "chosen"),
    [("none (voluntary) full", "voluntary"), ("full", "full"), ("none voluntary full", None), ("(none) (full)", None)],
)
def test_the_chosen_preemption(tmp_path: Path, text: str, chosen: str | None) -> None:
    hosttrees.write(tmp_path, {"preempt": text})
    assert kind_of("preempt").read(HostRoot(tmp_path), "/preempt").text == chosen


def test_flushers_are_kept_away_by_their_mask_and_made_rare_only_without_one(tmp_path: Path) -> None:
    hot = find_tunable("writeback").assess(box(tmp_path / "hot"))
    assert (hot.state, "workqueue-mask keeps them off" in hot.reason) == ("info", True)
    assert writes(box(tmp_path / "hot"), "writeback") == {}
    away = find_tunable("writeback").assess(box(tmp_path / "away", {"cpumask": "3\n"}))
    assert (away.state, away.reason) == ("ok", "the flushers stay off the hot CPUs")
    without = box(tmp_path / "without")
    (tmp_path / "without/sys/devices/virtual/workqueue/writeback/cpumask").unlink()
    assert find_tunable("writeback").assess(without).state == "improve"
    assert writes(without, "writeback") == {f"/{VM}/dirty_writeback_centisecs": "1500"}
    rare = box(tmp_path / "rare", {"dirty_writeback_centisecs": "1500\n"})
    assert find_tunable("writeback").assess(rare).state == "ok"


INSTANCES = "sys/kernel/tracing/instances"
IDLE = {"current_tracer": "nop\n", "enable": "0\n", "tracing_on": "1\n"}


def instance(root: Path, name: str, tracer: str = "nop", on: str = "1", events: str = "0") -> None:
    files = {"current_tracer": tracer, "tracing_on": on, "events/enable": events}
    hosttrees.write(root, {f"{INSTANCES}/{name}/{file}": f"{text}\n" for file, text in files.items()})


def test_tracing_of_another_buffer_is_found_and_planned_off(tmp_path: Path) -> None:
    host = box(tmp_path, IDLE)
    instance(tmp_path, "idle")
    instance(tmp_path, "idle-too", tracer="nop", on="0", events="X")
    assert find_tunable("tracing").assess(host).state == "ok"
    instance(tmp_path, "functions", tracer="function_graph")
    instance(tmp_path, "paused", tracer="function", on="0")
    instance(tmp_path, "some", events="X")
    instance(tmp_path, "all", events="1")
    assert find_tunable("tracing").assess(host).state == "improve"
    assert writes(host, "tracing") == {
        f"/{INSTANCES}/functions/current_tracer": "nop",
        f"/{INSTANCES}/functions/tracing_on": "0",
        f"/{INSTANCES}/paused/current_tracer": "nop",
        f"/{INSTANCES}/some/tracing_on": "0",
        f"/{INSTANCES}/all/tracing_on": "0",
    }
