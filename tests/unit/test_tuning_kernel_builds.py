"""Test the tunables that depend on the running kernel's build, mounts and permissions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jitter_workshop.host.root import HostRoot, TextReading
from jitter_workshop.host.tasks.limits import read_limits
from jitter_workshop.model.change import Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.status import Assessment
from jitter_workshop.tuning import planning
from jitter_workshop.tuning.base import Unavailable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables.boot import BY_TICKLESS
from jitter_workshop.tuning.tunables.registry import find_tunable
from jitter_workshop.tuning.tunables.single import not_permitted, read_value
from tests import hosttrees

PROC = "proc/sys/kernel"
DEBIAN = {
    "etc/os-release": "ID=debian\n",
    "etc/default/grub": 'GRUB_CMDLINE_LINUX="console=ttyS0"\n',
    "etc/default/grub.d/README": "x\n",
    "usr/sbin/update-grub": "#!/bin/sh\n",
    f"{hosttrees.CPU}/nohz_full": "(null)\n",
}
IN_PROC = "22 27 0:21 / /proc rw - proc proc rw\n"
IN_DEBUGFS = f"{IN_PROC}30 23 0:7 / /sys/kernel/debug rw - debugfs debugfs rw\n"


def host(root: Path, files: dict[str, str], *, release: str = "6.12.9", line: str = "quiet") -> Host:
    """Four CPUs of which the last is hot."""
    hosttrees.small(root, 4)
    more = hosttrees.kernel("box4", release=release) | {"proc/cmdline": f"BOOT_IMAGE=/vmlinuz {line}\n"}
    return Host(HostRoot(hosttrees.write(root, more | files)), CpuSet((3,)))


def config(*lines: str, release: str = "6.12.9") -> dict[str, str]:
    return {f"boot/config-{release}": "".join(f"{line}\n" for line in ("CONFIG_64BIT=y", *lines))}


# Throttling of real-time tasks ---------------------------------------------------------------------------------------

LIMIT = {f"{PROC}/sched_rt_runtime_us": "950000\n", f"{PROC}/sched_rt_period_us": "1000000\n"}
GROUPS = "CONFIG_RT_GROUP_SCHED=y"
NOT_SET = "# CONFIG_RT_GROUP_SCHED is not set"


@pytest.mark.parametrize(
    ("release", "options", "throttles"),
    [
        ("6.12.9", [NOT_SET], False),
        ("6.12.0-rc1", [], False),
        ("7.0.1", [NOT_SET], False),
        ("6.12.9", [GROUPS], True),
        ("6.11.11", [NOT_SET], True),
        ("6.1.0-56-amd64", [NOT_SET], True),
        ("5.15.0", [], True),
    ],
)
def test_the_deadline_server_has_taken_the_place_of_throttling(
    tmp_path: Path, release: str, options: list[str], throttles: bool
) -> None:
    seen = host(tmp_path, LIMIT | config(*options, release=release), release=release)
    told = find_tunable("rt-throttling").assess(seen)
    assert told.state == ("ok" if throttles else "info")
    assert ("does not use this limit to throttle real-time" in told.reason) is not throttles
    assert told.value == "950000 µs of 1000000 µs"


def test_a_kernel_whose_build_is_not_shown_is_taken_to_throttle(tmp_path: Path) -> None:
    assert find_tunable("rt-throttling").assess(host(tmp_path, LIMIT)).state == "ok"


# Settings of debugfs alone --------------------------------------------------------------------------------------------


def assess(root: Path, name: str, files: dict[str, str], line: str = "quiet") -> Assessment:
    return find_tunable(name).assess(host(root, files, line=line))


@pytest.mark.parametrize("name", ["deadline-server", "preempt-mode"])
def test_without_debugfs_it_is_not_the_kernel_that_lacks_it(tmp_path: Path, name: str) -> None:
    unmounted = assess(tmp_path / "a", name, {"proc/self/mountinfo": IN_PROC})
    assert unmounted.state == "unavailable"
    assert "debugfs is not mounted here" in unmounted.reason
    assert "mount -t debugfs" in unmounted.reason
    mounted = assess(tmp_path / "b", name, {"proc/self/mountinfo": IN_DEBUGFS})
    assert mounted.state == "unavailable"
    assert "not mounted" not in mounted.reason
    untold = assess(tmp_path / "c", name, {})
    assert untold.state == "unavailable"
    assert "not mounted" not in untold.reason


def test_without_debugfs_the_mode_asked_for_at_boot_is_told(tmp_path: Path) -> None:
    told = assess(tmp_path, "preempt-mode", {"proc/self/mountinfo": IN_PROC}, "preempt=vol\x1bun")
    assert "the kernel was started with preempt=vol" in told.reason
    assert told.reason.isprintable()


def test_a_mode_that_was_fixed_by_the_build_is_no_matter_of_debugfs(tmp_path: Path) -> None:
    files = {"proc/self/mountinfo": IN_PROC, f"{PROC}/version": "#1 SMP PREEMPT_RT\n"}
    told = assess(tmp_path, "preempt-mode", files)
    assert told.state == "unavailable"
    assert "not mounted" not in told.reason


def test_with_debugfs_both_are_shown(tmp_path: Path) -> None:
    files = {
        "proc/self/mountinfo": IN_DEBUGFS,
        "sys/kernel/debug/sched/preempt": "none (voluntary) full\n",
        "sys/kernel/debug/sched/fair_server/cpu3/runtime": "50000000\n",
    }
    assert assess(tmp_path, "preempt-mode", files).value == "voluntary"
    assert assess(tmp_path, "deadline-server", files).value == "50 ms"


# Files that only root reads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("user", "expected"), [(0, "not permitted, even to root"), (1000, "only root can read this")])
def test_not_even_root_is_said_to_root_alone(user: int, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(HostRoot, "reading", lambda *_: TextReading(None, "not permitted"))
    with pytest.raises(Unavailable) as told:
        read_value(HostRoot(), "/sys/kernel/x")
    assert expected in told.value.reason
    assert expected in find_tunable("tracing").assess(Host(HostRoot(), CpuSet((0,)))).reason


def test_the_reader_of_a_recording_is_not_taken_for_its_maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert not_permitted(HostRoot(tmp_path)) == "only root can read this file"


# Locked memory -------------------------------------------------------------------------------------------------------

LOCK, NICE = 1 << 14, 1 << 23
"""CAP_IPC_LOCK and CAP_SYS_NICE (linux/capability.h)."""


def live(monkeypatch: pytest.MonkeyPatch, status: str | None, locked: int = 64 << 10, user: int = 0) -> HostRoot:
    """This host, for a process with that status and that limit of locked memory."""
    import resource

    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(HostRoot, "text", lambda self, path, *_: status if path == "/proc/self/status" else None)
    limits = {resource.RLIMIT_MEMLOCK: locked}
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limits.get(which, 0),) * 2)
    return HostRoot()


@pytest.mark.parametrize("may_lock", [False, True])
@pytest.mark.parametrize("may_schedule", [False, True])
def test_capabilities_are_those_in_effect(may_lock: bool, may_schedule: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    effective = LOCK * may_lock | NICE * may_schedule | 1
    everything = f"{(1 << 41) - 1:016x}"
    status = f"Name:\tx\nCapPrm:\t{everything}\nCapEff:\t{effective:016x}\nCapBnd:\t{everything}\n"
    limits = read_limits(live(monkeypatch, status))
    assert (limits.may_lock, limits.may_schedule) == (may_lock, may_schedule)


@pytest.mark.parametrize("status", [None, "", "CapEff:\n", "CapEff:\tall\n", "Name:\tCapEff\n"])
def test_capabilities_that_are_not_shown_are_none(status: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = read_limits(live(monkeypatch, status))
    assert (limits.may_lock, limits.may_schedule) == (False, False)


def locked(monkeypatch: pytest.MonkeyPatch, effective: int, limit: int = 64 << 10, user: int = 0) -> Assessment:
    place = live(monkeypatch, f"CapEff:\t{effective:016x}\n", limit, user)
    return find_tunable("locked-memory").assess(Host(place, CpuSet((0,))))


def test_root_without_the_capability_has_the_limits_of_other_users(monkeypatch: pytest.MonkeyPatch) -> None:
    told = locked(monkeypatch, NICE)
    assert (told.state, told.value) == ("improve", "memory 0.0625 MiB, priority any")
    everything = locked(monkeypatch, LOCK | NICE)
    assert (everything.state, everything.value) == ("ok", "no limit")
    half = locked(monkeypatch, LOCK)
    assert (half.state, half.value) == ("ok", "memory all, priority 0")


def test_a_user_with_the_capability_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert locked(monkeypatch, LOCK | NICE, user=1000).value == "no limit"
    assert locked(monkeypatch, 0, limit=1 << 40, user=1000).state == "ok"


# Boot parameters -----------------------------------------------------------------------------------------------------


def test_callbacks_stay_where_the_kernel_cannot_move_them(tmp_path: Path) -> None:
    without, tree = config("# CONFIG_RCU_NOCB_CPU is not set"), DEBIAN
    for name, more in (("a", {}), ("b", {f"{hosttrees.CPU}/nohz_full": "3\n"})):
        seen = host(tmp_path / name, tree | without | more, line="rcu_nocbs=3 nohz_full=3")
        told = find_tunable("rcu-nocbs").assess(seen)
        assert told.state == "unavailable", told
        assert "CONFIG_RCU_NOCB_CPU" in told.reason
        made = planning.plan_changes(seen, [Wanted("rcu-nocbs")])
        assert made.changes == ()
        assert "CONFIG_RCU_NOCB_CPU" in made.skipped[0].reason


@pytest.mark.parametrize("build", [{}, config("CONFIG_RCU_NOCB_CPU=y")], ids=["not shown", "built in"])
def test_callbacks_are_moved_where_it_can_or_may_be_able_to(tmp_path: Path, build: dict[str, str]) -> None:
    as_booted = host(tmp_path / "a", DEBIAN | build)
    assert find_tunable("rcu-nocbs").assess(as_booted).state == "improve"
    assert [c.after for c in planning.plan_changes(as_booted, [Wanted("rcu-nocbs")]).changes] == ["rcu_nocbs=3"]
    assert find_tunable("rcu-nocbs").assess(host(tmp_path / "b", DEBIAN | build, line="rcu_nocbs=3")).state == "ok"
    tickless = DEBIAN | build | {f"{hosttrees.CPU}/nohz_full": "3\n"}
    told = find_tunable("rcu-nocbs").assess(host(tmp_path / "c", tickless, line="nohz_full=3"))
    assert (told.state, told.reason) == ("ok", BY_TICKLESS)


@pytest.mark.parametrize(
    ("line", "missing"),
    [("isolcpus=3", True), ("isolcpus=domain,3", True), ("isolcpus=managed_irq,domain,3", False), ("quiet", False)],
)
def test_isolation_without_managed_interrupts_says_so(tmp_path: Path, line: str, missing: bool) -> None:
    seen = host(tmp_path, DEBIAN | {f"{hosttrees.CPU}/isolated": "3\n"}, line=line)
    told = find_tunable("isolcpus").assess(seen)
    assert told.state == "ok"
    assert ("without the flag managed_irq" in told.reason) is missing
