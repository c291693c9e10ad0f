"""Settings of the kernel's subsystems: what they say, and why they say nothing."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.boot.cmdline import CommandLine, parse_command_line
from jitter_workshop.host.cpu import clocksource, cpufreq, cpuidle, resctrl, smt
from jitter_workshop.host.kernel import memory, rcu, scheduler, security, watchdogs, workqueues
from jitter_workshop.host.kernel.release import preemption, read_kernel_config
from jitter_workshop.host.power import machinecheck, uncore
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.limits import read_limits
from jitter_workshop.host.trace import tracing
from jitter_workshop.model.cpuset import CpuSet
from tests import hosttrees
from tests.hosttrees import CPU, write


def tree(root: Path, paths: dict[str, str], values: dict[str, str]) -> HostRoot:
    return HostRoot(write(root, {paths[name][1:]: f"{text}\n" for name, text in values.items()}))


def test_the_scheduler(tmp_path: Path) -> None:
    values = {"rt_runtime_us": "-1", "rt_period_us": "1000000", "timer_migration": "1", "autogroup": "0"}
    values |= {"preempt": "none voluntary (full) lazy ", "uclamp_min": "1024"}
    found = scheduler.read_scheduler(tree(tmp_path, scheduler.PATHS, values))
    assert (found.rt_runtime_us, found.rt_period_us, found.timer_migration) == (-1, 1_000_000, True)
    assert (found.autogroup, found.preempt, found.uclamp_min, found.uclamp_max) == (False, "full", 1_024, None)
    assert set(found.reasons) == {"uclamp_max", "uclamp_min_rt"}


def test_debugfs_that_is_not_mounted_is_told_from_a_kernel_without_the_file(tmp_path: Path) -> None:
    root = HostRoot(tmp_path)
    unmounted = ": /sys/kernel/debug shows nothing: debugfs is not mounted"
    assert scheduler.read_scheduler(root).reasons["preempt"] == scheduler.PATHS["preempt"] + unmounted
    assert scheduler.read_fair_server(root, 0).reason == scheduler.fair_server_path(0, "runtime") + unmounted
    write(tmp_path, {"sys/kernel/debug/sched/features": "x"})
    assert scheduler.read_scheduler(root).reasons["preempt"] == scheduler.PATHS["preempt"] + ": no such file"
    assert scheduler.read_fair_server(root, 0).reason == scheduler.fair_server_path(0, "runtime") + ": no such file"


@pytest.mark.parametrize("text", ["none voluntary full", "(none) (full)", "()", "", "(f\x1bull)"])
def test_a_preemption_that_cannot_be_told(tmp_path: Path, text: str) -> None:
    found = scheduler.read_scheduler(tree(tmp_path, scheduler.PATHS, {"preempt": text}))
    assert found.preempt is None
    assert found.reasons["preempt"].endswith("marks no choice")


def test_the_deadline_server(tmp_path: Path) -> None:
    paths = {name: scheduler.fair_server_path(3, name) for name in ("runtime", "period")}
    root = tree(tmp_path, paths, {"runtime": "50000000", "period": "1000000000"})
    assert scheduler.read_fair_server(root, 3) == scheduler.DeadlineServer(3, 50_000_000, 1_000_000_000)
    gone = scheduler.read_fair_server(root, 4)
    assert (gone.runtime_ns, gone.reason) == (None, f"{scheduler.fair_server_path(4, 'runtime')}: no such file")


def test_watchdogs(tmp_path: Path) -> None:
    values = {"enabled": "1", "nmi": "0", "soft": "1", "threshold_s": "10", "cpus": "0-3,8"}
    found = watchdogs.read_watchdogs(tree(tmp_path, watchdogs.PATHS, values))
    assert found.watched == CpuSet((0, 1, 2, 3, 8))
    assert found.timer_period_s == 4.0
    assert list(found.reasons) == ["hung_task_timeout_s"]


@pytest.mark.parametrize(
    ("values", "watched"),
    [
        ({"enabled": "0", "cpus": "0-3"}, CpuSet()),
        ({"enabled": "1", "threshold_s": "0", "cpus": "0-3"}, CpuSet()),
        ({"enabled": "1", "soft": "0", "nmi": "0", "cpus": "0-3"}, CpuSet()),
        ({"enabled": "1", "soft": "0", "nmi": "1", "cpus": "0-3"}, CpuSet((0, 1, 2, 3))),
        ({"cpus": "0-3"}, None),
        ({"enabled": "1"}, None),
    ],
)
def test_which_cpus_are_watched(tmp_path: Path, values: dict[str, str], watched: CpuSet | None) -> None:
    assert watchdogs.read_watchdogs(tree(tmp_path, watchdogs.PATHS, values)).watched == watched


def test_memory(tmp_path: Path) -> None:
    swaps = (
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        "/dev/dm-1                               partition\t8388604\t\t1024\t\t-2\n"
        "/swap\\040file file 4 0 -3\nbroken line\n/x file -1 0 0"
    )
    values = {"thp": "always [madvise] never", "thp_defrag": "always defer [never]", "khugepaged_defrag": "1"}
    values |= {"ksm_run": "2", "numa_balancing": "3", "zone_reclaim_mode": "0", "swappiness": "60", "swaps": swaps}
    values |= {"stat_interval_s": "1", "compaction_proactiveness": "-20"}
    found = memory.read_memory(tree(tmp_path, memory.PATHS, values))
    assert (found.thp, found.thp_defrag, found.khugepaged_defrag) == ("madvise", "never", True)
    assert (found.ksm_run, found.numa_balancing, found.zone_reclaim_mode, found.swappiness) == (2, 3, 0, 60)
    assert found.swaps == (
        memory.Swap("/dev/dm-1", "partition", 8_388_604 << 10, 1 << 20),
        memory.Swap("/swap\\040file", "file", 4_096, 0),
    )
    assert (found.stat_interval_s, found.compaction_proactiveness) == (1, None)
    assert list(found.reasons) == ["compaction_proactiveness"]


def test_writeback(tmp_path: Path) -> None:
    values = {"dirty_ratio": "0", "dirty_bytes": "1048576", "dirty_writeback_centisecs": "500"}
    found = memory.read_writeback(tree(tmp_path, memory.PATHS, values))
    assert (found.dirty_ratio, found.dirty_bytes, found.writeback_centisecs) == (0, 1 << 20, 500)
    assert (found.expire_centisecs, found.dirty_background_ratio) == (None, None)


@given(st.text(max_size=300))
def test_any_swap_table_is_read(text: str) -> None:
    assert all(swap.size_bytes >= 0 and swap.name.isprintable() for swap in memory.parse_swaps(text) or ())
    assert memory.parse_swaps("Filename Type Size Used Priority") == ()
    assert memory.parse_swaps("") is None
    assert memory.parse_swaps(None) is None


def test_machine_checks(tmp_path: Path) -> None:
    assert machinecheck.read_machine_check(HostRoot(tmp_path)).reason.endswith("no CPU shows machine checks here")
    write(
        tmp_path,
        {machinecheck.interval_path(1)[1:]: "300\n", f"{machinecheck.FOLDER[1:]}/machinecheck1/ignore_ce": "0"},
    )
    assert machinecheck.read_machine_check(HostRoot(tmp_path)) == machinecheck.MachineCheck(1, 300, False)
    write(tmp_path, {machinecheck.interval_path(0)[1:]: "-5\n"})
    damaged = machinecheck.read_machine_check(HostRoot(tmp_path))
    assert (damaged.cpu, damaged.interval_s, damaged.ignore_corrected) == (0, None, None)
    assert damaged.reason == f"{machinecheck.interval_path(0)}: does not hold a whole number"


@pytest.mark.parametrize(
    ("tracer", "on", "events", "active"),
    [
        ("nop", "1", "0", False),
        ("nop", "1", "X", True),
        ("function", "1", "0", True),
        ("function", "0", "1", False),
        ("nop", "1", None, False),
        (None, None, None, None),
    ],
)
@pytest.mark.parametrize("folder", tracing.FOLDERS)
def test_tracing(
    tmp_path: Path, folder: str, tracer: str | None, on: str | None, events: str | None, active: bool | None
) -> None:
    files = {"current_tracer": tracer, "tracing_on": on, "events/enable": events}
    write(tmp_path, {f"{folder[1:]}/{name}": f"{text}\n" for name, text in files.items() if text is not None})
    write(
        tmp_path, {"proc/sys/kernel/perf_event_paranoid": "-1\n", "proc/sys/kernel/perf_event_max_sample_rate": "63000"}
    )
    found = tracing.read_tracing(HostRoot(tmp_path))
    assert found.active is active
    assert (found.paranoid, found.max_sample_rate_hz) == (-1, 63_000)
    assert tracer is None or found.folder == folder


def test_rcu(tmp_path: Path) -> None:
    found = rcu.read_rcu(tree(tmp_path, rcu.PATHS, {"expedited": "2", "normal": "0", "kthread_priority": "50"}))
    assert (found.expedited, found.normal, found.kthread_priority, found.nocb_gp_stride) == (True, False, 50, None)


def test_uncore(tmp_path: Path) -> None:
    folder = f"{uncore.FOLDER[1:]}/package_00_die_00"
    write(
        tmp_path,
        {f"{folder}/min_freq_khz": "800000\n", f"{folder}/max_freq_khz": "0\n", f"{uncore.FOLDER[1:]}/x/y": ""},
    )
    (one,) = uncore.read_uncore(HostRoot(tmp_path))
    assert (one.name, one.min_hz, one.max_hz) == ("package_00_die_00", 800_000_000, None)
    assert one.folder == f"/{folder}"


def test_shares_of_the_cache(tmp_path: Path) -> None:
    root = HostRoot(tmp_path)
    assert resctrl.read_resctrl(root).reason == "this kernel or processor has no resctrl"
    (tmp_path / resctrl.FOLDER[1:]).mkdir(parents=True)
    assert resctrl.read_resctrl(root).reason == "not mounted"
    files = {"schemata": "    L3:0=7ff;1=7ff\n    MB:0=100;1=100\n", "cpus_list": "0-7\n", "info/L3/cbm_mask": "7ff"}
    files |= {"hot/schemata": "L3:0=700\n", "hot/mode": "exclusive\n", "hot/cpus_list": "6-7\n", "mon_data/x": ""}
    write(tmp_path, {f"{resctrl.FOLDER[1:]}/{name}": text for name, text in files.items()})
    found = resctrl.read_resctrl(root)
    assert (found.mounted, found.resources) == (True, ("L3",))
    default, hot = found.groups
    assert (default.name, default.schemata) == ("", ("L3:0=7ff;1=7ff", "MB:0=100;1=100"))
    assert hot == resctrl.ResourceGroup("hot", CpuSet((6, 7)), "exclusive", ("L3:0=700",))


def test_what_is_reported_and_never_changed(tmp_path: Path) -> None:
    text = "audit=0 split_lock_detect=off"
    root = tree(tmp_path, security.PATHS, {"aslr": "2", "split_lock_mitigate": "1"})
    found = security.read_security(root, CommandLine(parse_command_line(text), text))
    assert (found.aslr, found.split_lock_mitigate, found.split_lock_detect, found.audit) == (2, True, "off", False)
    nothing = security.read_security(HostRoot(tmp_path / "none"), CommandLine((), None))
    assert (nothing.audit, nothing.split_lock_detect, set(nothing.reasons)) == (None, None, set(security.PATHS))


@pytest.mark.parametrize(
    ("control", "can_change"),
    [("on", True), ("off", True), ("2", True), ("forceoff", False), ("notsupported", False), ("notimplemented", False)],
)
def test_threads_of_a_core(tmp_path: Path, control: str, can_change: bool) -> None:
    write(tmp_path, {smt.CONTROL[1:]: f"{control}\n", smt.ACTIVE[1:]: "1\n"})
    assert smt.read_smt(HostRoot(tmp_path)) == smt.Smt(control, True)
    assert smt.read_smt(HostRoot(tmp_path)).can_change is can_change
    assert not smt.read_smt(HostRoot(tmp_path / "none")).can_change
    assert smt.read_smt(HostRoot(tmp_path / "none")).reason == f"{smt.CONTROL}: no such file"


def test_a_kernels_configuration(tmp_path: Path) -> None:
    text = b'CONFIG_HZ=250\n# CONFIG_NO_HZ_FULL is not set\nCONFIG_RCU_NOCB_CPU=y\nCONFIG_NAME="a=b"\nCONFIG_X=m\n'
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/config.gz").write_bytes(gzip.compress(text))
    config = read_kernel_config(HostRoot(tmp_path), "6.1")
    assert config.path == "/proc/config.gz"
    assert [config.built_in(name) for name in ("NO_HZ_FULL", "RCU_NOCB_CPU", "X", "HZ")] == [False, True, False, False]
    assert [config.value(name) for name in ("HZ", "NAME", "X", "NONE")] == ["250", '"a=b"', "m", None]
    (tmp_path / "proc/config.gz").write_bytes(b"\x1f\x8bdamaged")
    assert read_kernel_config(HostRoot(tmp_path), "6.1").built_in("HZ") is None
    write(tmp_path, {"lib/modules/6.1/config": "CONFIG_CPUSETS=y\n"})
    assert read_kernel_config(HostRoot(tmp_path), "6.1").built_in("CPUSETS") is True
    assert read_kernel_config(HostRoot(tmp_path), "../6.1").text is None


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        ("#1 SMP PREEMPT_DYNAMIC Debian 6.1", "PREEMPT_DYNAMIC"),
        ("#1 SMP PREEMPT_RT Debian", "PREEMPT_RT"),
        ("#1 SMP PREEMPT RT Mon", "PREEMPT_RT"),
        ("#1 SMP PREEMPT Mon", "PREEMPT"),
        ("#1 SMP PREEMPT_LAZY", "PREEMPT_LAZY"),
        ("#9~22.04 SMP Fri", "none"),
        ("", None),
    ],
)
def test_what_the_build_line_says_of_preemption(version: str, wanted: str | None) -> None:
    assert preemption(version) == wanted


def test_limits_of_this_process_and_of_nobodys(tmp_path: Path) -> None:
    mine = read_limits(HostRoot())
    status = Path("/proc/self/status").read_text()
    effective = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff")), 16)
    # CAP_IPC_LOCK and CAP_SYS_NICE, linux/capability.h.
    assert (mine.may_lock, mine.may_schedule) == (bool(effective & 1 << 14), bool(effective & 1 << 23))
    assert mine.memlock_hard_bytes is None or (mine.memlock_bytes or 0) <= mine.memlock_hard_bytes
    assert read_limits(HostRoot(tmp_path)).memlock_hard_bytes is None


def test_the_clock_was_told_how_far_to_trust_the_tsc(tmp_path: Path) -> None:
    write(tmp_path, hosttrees.clock() | {"proc/cmdline": "tsc=unstable tsc=reliable\n"})
    assert clocksource.read_clocksource(HostRoot(tmp_path)).tsc_option == "reliable"


READERS: dict[str, tuple[dict[str, str], Callable[[HostRoot], Any]]] = {
    "scheduler": (scheduler.PATHS, scheduler.read_scheduler),
    "watchdogs": (watchdogs.PATHS, watchdogs.read_watchdogs),
    "memory": (memory.PATHS, lambda r: (memory.read_memory(r), memory.read_writeback(r))[0]),
    "rcu": (rcu.PATHS, rcu.read_rcu),
    "security": (security.PATHS, lambda r: security.read_security(r, CommandLine((), None))),
    "cpufreq": (cpufreq.DRIVER_PATHS, cpufreq.read_frequency_driver),
    "haltpoll": (cpuidle.HALTPOLL_PATHS, cpuidle.read_haltpoll),
    "workqueues": (workqueues.PATHS, workqueues.read_workqueue_masks),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("damage", hosttrees.DAMAGES)
def test_damaged_files_are_none_with_a_reason(tmp_path: Path, name: str, damage: str) -> None:
    paths, read = READERS[name]
    for path in paths.values():
        hosttrees.damage(tmp_path / path[1:], damage)
    found = read(HostRoot(tmp_path))
    for field in set(found.__slots__) & set(paths):
        value = getattr(found, field)
        if (damage == "empty" and value == CpuSet()) or (damage in ("binary", "truncated") and isinstance(value, str)):
            # No CPUs are a list too, and any clean word is a word.
            assert not value or value.isprintable()
            continue
        assert value is None, (field, value)
        assert found.reasons[field].startswith(f"{paths[field]}: ")


def test_the_cpus_own_files_damaged(tmp_path: Path) -> None:
    for number, damage in enumerate(hosttrees.DAMAGES):
        for path in (cpufreq.epb_path(number), cpuidle.resume_latency_path(number)):
            hosttrees.damage(tmp_path / path[1:], damage)
        for name in ("related_cpus", "affected_cpus", "scaling_governor", "scaling_min_freq", "boost"):
            hosttrees.damage(tmp_path / f"{CPU}/cpufreq/policy{number}/{name}", damage)
        for name in ("name", "latency", "disable"):
            hosttrees.damage(tmp_path / f"{CPU}/cpu{number}/cpuidle/state0/{name}", damage)
    root = HostRoot(tmp_path)
    for number in range(len(hosttrees.DAMAGES)):
        assert cpufreq.read_epb(root, number) is None
        assert cpufreq.read_policy(root, number) is None
        assert cpuidle.read_resume_latency(root, number).limit_us is None
        (state,) = cpuidle.read_idle_states(root, number)
        assert (state.exit_latency_us, state.disabled) == (None, None)
        assert state.name.isprintable()
    assert len(cpufreq.read_cpufreq(root)) == len(hosttrees.DAMAGES)
    assert cpufreq.policy_folders(root, CpuSet((0, 1, 2))) == {}
