"""Settings of the kernel's subsystems: what they say, and why they say nothing."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from jitter_workshop.host.cpu import cpufreq, cpuidle
from jitter_workshop.host.kernel.release import preemption, read_kernel_config
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.limits import read_limits
from jitter_workshop.model.cpuset import CpuSet
from tests import hosttrees
from tests.hosttrees import CPU, write


def test_a_kernels_configuration(tmp_path: Path) -> None:
    text = b'CONFIG_HZ=250\n# CONFIG_NO_HZ_FULL is not set\nCONFIG_RCU_NOCB_CPU=y\nCONFIG_NAME="a=b"\nCONFIG_X=m\n'
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/config.gz").write_bytes(gzip.compress(text))
    config = read_kernel_config(HostRoot(tmp_path), "6.1")
    assert config.path == "/proc/config.gz"
    assert [config.lacks(name) for name in ("NO_HZ_FULL", "RCU_NOCB_CPU", "X", "HZ")] == [True, False, False, False]
    assert [config.value(name) for name in ("HZ", "NAME", "X", "NONE")] == ["250", '"a=b"', "m", None]
    (tmp_path / "proc/config.gz").write_bytes(b"\x1f\x8bdamaged")
    damaged = read_kernel_config(HostRoot(tmp_path), "6.1")
    assert (damaged.value("HZ"), damaged.lacks("HZ")) == (None, False)
    write(tmp_path, {"lib/modules/6.1/config": "CONFIG_CPUSETS=y\n"})
    assert read_kernel_config(HostRoot(tmp_path), "6.1").value("CPUSETS") == "y"
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
def test_the_build_line_tells_the_kind_of_preemption(version: str, wanted: str | None) -> None:
    assert preemption(version) == wanted


def test_limits_of_this_process_and_of_nobodys(tmp_path: Path) -> None:
    mine = read_limits(HostRoot())
    status = Path("/proc/self/status").read_text()
    effective = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff")), 16)
    # CAP_IPC_LOCK and CAP_SYS_NICE, linux/capability.h.
    assert (mine.may_lock, mine.may_schedule) == (bool(effective & 1 << 14), bool(effective & 1 << 23))
    assert read_limits(HostRoot(tmp_path)).reason


def test_the_cpus_own_files_damaged(tmp_path: Path) -> None:
    for number, damage in enumerate(hosttrees.DAMAGES):
        for path in (cpufreq.epb_path(number), cpuidle.resume_latency_path(number)):
            hosttrees.damage(tmp_path / path[1:], damage)
        for name in ("related_cpus", "affected_cpus", "scaling_governor", "scaling_min_freq", "boost"):
            hosttrees.damage(tmp_path / f"{CPU}/cpufreq/policy{number}/{name}", damage)
    root = HostRoot(tmp_path)
    for number in range(len(hosttrees.DAMAGES)):
        assert cpufreq.read_epb(root, number) is None
        assert cpuidle.read_resume_latency(root, number).limit_us is None
        policy = cpufreq.read_policy(root, f"/{CPU}/cpufreq/policy{number}")
        assert (policy.min_hz, policy.own_boost) == (None, None)
        assert policy.governor is None or policy.governor.isprintable()
    assert cpufreq.policy_folders(root, CpuSet((0, 1, 2))) == {}
