"""Test the readers of a host's identity: processor, kernel, hypervisor, clock, idle states, isolation, limits."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.cpu import cpuid
from jitter_workshop.host.cpu.cpuidle import read_idle_driver
from jitter_workshop.host.cpu.cpuinfo import (
    Clocksource,
    CpuIdentity,
    parse_cpuinfo,
    read_clocksource,
    read_cpu_identity,
)
from jitter_workshop.host.cpu.topology import read_isolation
from jitter_workshop.host.kernel import hypervisor
from jitter_workshop.host.kernel.hypervisor import read_hypervisor
from jitter_workshop.host.kernel.release import read_kernel
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import host_line, summarise_host
from jitter_workshop.host.tasks.limits import read_limits
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import EMULATED, GUEST, mark_of
from tests import hosttrees
from tests.hosttrees import CPU, write

DMI = "sys/class/dmi/id"


def test_processors_by_their_architecture(host_tree: Callable[[str], Path]) -> None:
    x86 = read_cpu_identity(HostRoot(host_tree("server64")))
    assert (x86.model, x86.architecture) == ("Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz", "x86_64")
    assert (x86.has("constant_tsc"), x86.has("hypervisor")) == (True, False)
    arm = read_cpu_identity(HostRoot(host_tree("arm_server")))
    assert arm == CpuIdentity("Cortex-A76", None, "aarch64")
    assert arm.has("constant_tsc") is None


def test_only_the_beginning_of_cpuinfo_is_read(tmp_path: Path) -> None:
    write(tmp_path, {"proc/cpuinfo": hosttrees.cpuinfo(30_000, "Big")})
    assert read_cpu_identity(HostRoot(tmp_path)).model == "Big"


def test_a_device_tree_names_the_machine_where_the_processor_has_no_name(tmp_path: Path) -> None:
    write(tmp_path, {"proc/cpuinfo": "processor : 0\nisa : rv64\n", "proc/device-tree/model": "Some Board\0"})
    assert read_cpu_identity(HostRoot(tmp_path)) == CpuIdentity("Some Board", None, None)


@given(st.text(max_size=300))
def test_garbage_in_cpuinfo_never_raises(text: str) -> None:
    for source in (text, f"model name : {text}\nflags : {text}\n"):
        identity = parse_cpuinfo(source)
        assert identity.model is None or identity.model.isprintable()


@pytest.mark.parametrize(
    ("version", "file", "realtime"),
    [
        ("#1 SMP PREEMPT_RT Debian 6.12", "", True),
        ("#1 SMP PREEMPT RT 4.19", "", True),
        ("#1 SMP PREEMPT_DYNAMIC", "", False),
        ("#1 SMP PREEMPT_DYNAMIC", "1", True),
        ("#1 SMP PREEMPT_RTX", "0", False),
        ("", "", None),
    ],
)
def test_realtime_kernels(tmp_path: Path, version: str, file: str, realtime: bool | None) -> None:
    write(tmp_path, {"proc/sys/kernel/version": version} | ({"sys/kernel/realtime": file} if file else {}))
    assert read_kernel(HostRoot(tmp_path)).realtime is realtime


def test_kernel_names_are_made_fit_to_print(tmp_path: Path) -> None:
    write(tmp_path, hosttrees.kernel("evil\x1b[2J\nhost") | {"proc/sys/kernel/random/boot_id": "not-an-id"})
    kernel = read_kernel(HostRoot(tmp_path))
    assert kernel.hostname == "evil [2J host"
    assert (kernel.release, kernel.architecture, kernel.boot_id) == ("6.12.9", "x86_64", None)


def test_a_kernel_that_shows_nothing(tmp_path: Path) -> None:
    kernel = read_kernel(HostRoot(tmp_path))
    assert (kernel.hostname, kernel.release, kernel.architecture) == ("unnamed host", "unknown kernel", "unknown")
    assert (kernel.realtime, kernel.boot_id) == (None, None)


def test_the_architecture_of_an_older_recorded_kernel(host_tree: Callable[[str], Path], tmp_path: Path) -> None:
    write(tmp_path, {"proc/cpuinfo": hosttrees.cpuinfo(1, "x")})
    assert read_kernel(HostRoot(tmp_path)).architecture == "x86_64"


def test_this_kernel_agrees_with_uname() -> None:
    kernel = read_kernel(HostRoot())
    names = os.uname()
    assert (kernel.hostname, kernel.release, kernel.architecture) == (names.nodename, names.release, names.machine)


def x86(flag: bool = True) -> dict[str, str]:
    return {"proc/cpuinfo": hosttrees.cpuinfo(1, "CPU", "fpu tsc hypervisor" if flag else "fpu tsc")}


def dmi(vendor: str, product: str) -> dict[str, str]:
    return {f"{DMI}/sys_vendor": f"{vendor}\n", f"{DMI}/product_name": f"{product}\n"}


ARM = {"proc/cpuinfo": "processor : 0\nCPU implementer : 0x41\n"}
VIRT = {"proc/device-tree/compatible": "linux,dummy-virt\0"}


@pytest.mark.parametrize(
    ("files", "guest", "name"),
    [
        (x86() | hosttrees.clock("tsc", "tsc kvm-clock"), True, "KVM"),
        (x86() | hosttrees.clock("x", "hyperv_clocksource_tsc_page tsc"), True, "Hyper-V"),
        (x86() | dmi("VMware, Inc.", "VMware20,1"), True, "VMware"),
        (x86() | dmi("Microsoft Corporation", "Virtual Machine"), True, "Hyper-V"),
        (x86() | dmi("innotek GmbH", "VirtualBox"), True, "VirtualBox"),
        (x86() | dmi("QEMU", "Standard PC (Q35 + ICH9, 2009)"), True, "QEMU"),
        (x86() | dmi("Amazon EC2", "m5.large"), True, "KVM"),
        (x86() | {"sys/hypervisor/type": "xen\n"}, True, "Xen"),
        (x86(), True, "unknown hypervisor"),
        (x86() | dmi("Nobody", "Knows"), True, "unknown hypervisor"),
        (x86(False) | {"sys/hypervisor/type": "xen\n"}, True, "Xen"),
        (x86(False) | dmi("Microsoft Corporation", "Surface Laptop 4"), False, None),
        (x86(False), False, None),
        (x86(False) | dmi("Amazon EC2", "m5.metal"), False, None),
        (ARM | dmi("Amazon EC2", "c7g.large"), True, "KVM"),
        (ARM | dmi("Amazon EC2", "c7g.metal"), False, None),
        (ARM | dmi("Ampere", "Altra"), False, None),
        (ARM | {"proc/device-tree/compatible": "linux,dummy-virt\0"}, True, "QEMU"),
        (ARM | dmi("QEMU", "QEMU Virtual Machine"), True, "QEMU"),
        (ARM | dmi("QEMU", "KVM Virtual Machine"), True, "KVM"),
        (ARM | VIRT | {"sys/class/ptp/ptp0/clock_name": "KVM virtual PTP\n"}, True, "KVM"),
        (ARM | VIRT | {"sys/class/ptp/ptp0/clock_name": "e1000e\n"}, True, "QEMU"),
        (ARM | VIRT | {"proc/stat": hosttrees.stat(range(2), steal=3)}, True, "KVM"),
        (ARM | VIRT | {"proc/stat": hosttrees.stat(range(2))}, True, "QEMU"),
        (ARM | VIRT | {"proc/stat": "cpu  1 2\n"}, True, "QEMU"),
        (ARM | {"proc/device-tree/hypervisor/compatible": "xen,xen-4.17\0xen,xen\0"}, True, "Xen"),
        (ARM | {"proc/device-tree/model": "Board\0"}, False, None),
        (ARM, None, None),
        ({}, None, None),
    ],
)
def test_hypervisors(tmp_path: Path, files: dict[str, str], guest: bool | None, name: str | None) -> None:
    found = read_hypervisor(HostRoot(write(tmp_path, files)))
    assert (found.guest, found.name) == (guest, name)
    assert found.source


@pytest.mark.parametrize(
    ("files", "doubt"),
    [
        (ARM | VIRT, "does not show which"),
        (x86() | dmi("QEMU", "Standard PC (Q35 + ICH9, 2009)"), "does not show which"),
        (
            {"proc/cpuinfo": hosttrees.cpuinfo(1, "QEMU TCG CPU version 2.5+", "fpu hypervisor")} | dmi("QEMU", "PC"),
            "emulates",
        ),
        (ARM | VIRT | {"sys/class/ptp/ptp0/clock_name": "KVM virtual PTP\n"}, ""),
        (x86() | hosttrees.clock("tsc", "tsc kvm-clock"), ""),
        (x86() | dmi("VMware, Inc.", "VMware20,1"), ""),
    ],
)
def test_a_doubt_about_qemu_is_told(tmp_path: Path, files: dict[str, str], doubt: str) -> None:
    root = HostRoot(write(tmp_path, files))
    found = read_hypervisor(root)
    assert (doubt in found.doubt) if doubt else not found.doubt
    assert summarise_host(root).notes.get("hypervisor", "") == found.doubt


TCG_CPU = {"proc/cpuinfo": hosttrees.cpuinfo(1, "QEMU TCG CPU version 2.5+", "fpu hypervisor")}


def said(accelerator: str) -> dict[str, str]:
    return {"proc/cmdline": f"quiet practice.accelerator={accelerator} isolcpus=3\n"}


@pytest.mark.parametrize(
    ("files", "name", "emulated", "accelerator"),
    [
        (x86() | dmi("QEMU", "PC") | said("tcg"), "QEMU", True, "tcg"),
        (x86() | dmi("QEMU", "PC") | said("kvm"), "KVM", False, "kvm"),
        (ARM | VIRT | said("tcg"), "QEMU", True, "tcg"),
        (x86() | dmi("QEMU", "PC") | said("hvf"), "QEMU", None, ""),
        (TCG_CPU | dmi("QEMU", "PC"), "QEMU", True, ""),
        (x86() | dmi("QEMU", "PC"), "QEMU", None, ""),
        (x86() | hosttrees.clock("tsc", "tsc kvm-clock"), "KVM", False, ""),
        (x86() | dmi("VMware, Inc.", "VMware20,1"), "VMware", False, ""),
        (x86(), "unknown hypervisor", None, ""),
        (x86(False), None, False, ""),
        (ARM | {"proc/device-tree/model": "Board\0"}, None, False, ""),
        ({}, None, None, ""),
    ],
)
def test_a_host_knows_whether_it_is_emulated(
    tmp_path: Path, files: dict[str, str], name: str | None, emulated: bool | None, accelerator: str
) -> None:
    root = HostRoot(write(tmp_path, files))
    found = read_hypervisor(root)
    assert (found.name, found.emulated, found.accelerator) == (name, emulated, accelerator)
    summary = summarise_host(root)
    assert (summary.emulated, summary.accelerator) == (emulated, accelerator or None)
    assert summary.mark == (EMULATED if emulated else GUEST if accelerator == "kvm" else "")
    assert ("emulated" in summary.notes) == (emulated is None)
    assert ("emulated machine (QEMU)" in host_line(summary)) == bool(emulated)


@given(st.dictionaries(st.text(max_size=12), st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8))))
def test_a_host_without_the_fields_has_no_mark(host: dict[str, object]) -> None:
    known = {key: value for key, value in host.items() if key not in ("emulated", "accelerator")}
    assert mark_of(known) == ""
    assert mark_of({**known, "emulated": True, "accelerator": "kvm"}) == EMULATED
    assert mark_of({**known, "emulated": False, "accelerator": "kvm"}) == GUEST


@pytest.mark.parametrize(
    ("signature", "name", "emulated"),
    [("TCGTCGTCGTCG", "QEMU", True), ("KVMKVMKVM", "KVM", False), ("Microsoft Hv", "QEMU", None), ("", "QEMU", None)],
)
def test_the_processor_itself_is_asked_on_a_live_guest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signature: str, name: str, emulated: bool | None
) -> None:
    root = HostRoot(write(tmp_path, x86() | dmi("QEMU", "PC")))
    monkeypatch.setattr(cpuid, "hypervisor_signature", lambda: signature)
    assert read_hypervisor(root).emulated is None, "a recorded host says nothing of this processor"
    monkeypatch.setattr(hypervisor, "_signature", lambda root: cpuid.hypervisor_signature())
    found = read_hypervisor(root)
    assert (found.name, found.emulated) == (name, emulated)


def test_the_signature_of_this_processor_is_one_that_is_known() -> None:
    if read_cpu_identity(HostRoot()).has("hypervisor"):
        signature = cpuid.hypervisor_signature()
        assert 0 < len(signature) <= 12
        assert signature.isprintable()
        if "kvm-clock" in read_clocksource(HostRoot()).available:
            assert signature == cpuid.KVM


@pytest.mark.parametrize(
    ("current", "flags", "trusted"),
    [
        ("tsc", "tsc constant_tsc nonstop_tsc", True),
        ("tsc", "tsc constant_tsc", False),
        ("tsc", "tsc nonstop_tsc", False),
        ("hpet", "tsc constant_tsc nonstop_tsc", False),
        ("kvm-clock", "tsc constant_tsc nonstop_tsc", False),
    ],
)
def test_the_tsc_is_trusted_as_the_kernel_does(tmp_path: Path, current: str, flags: str, trusted: bool) -> None:
    write(tmp_path, hosttrees.clock(current) | {"proc/cpuinfo": hosttrees.cpuinfo(1, "x", flags)})
    clock = read_clocksource(HostRoot(tmp_path))
    assert clock.tsc_trusted is trusted
    assert (clock.current, clock.available) == (current, ("tsc", "hpet", "acpi_pm"))


def test_no_clock_is_shown(tmp_path: Path) -> None:
    assert read_clocksource(HostRoot(tmp_path)) == Clocksource(None, (), None, None)


@pytest.mark.parametrize(("text", "driver"), [("intel_idle\n", "intel_idle"), ("none\n", None), (None, None)])
def test_the_idle_driver(tmp_path: Path, text: str | None, driver: str | None) -> None:
    root = HostRoot(write(tmp_path, {f"{CPU}/cpuidle/current_driver": text} if text else {}))
    assert read_idle_driver(root) == driver


def test_isolation_by_boot_and_by_partition(tmp_path: Path, host_tree: Callable[[str], Path]) -> None:
    server = read_isolation(HostRoot(host_tree("server64")))
    assert (str(server.isolated), server.nohz_full, server.partitions) == ("30-31,62-63", CpuSet(), CpuSet())
    root = HostRoot(tmp_path)
    assert read_isolation(root).nohz_full is None
    assert read_isolation(root).isolated == CpuSet()
    files = {f"{CPU}/isolated": "2\n", f"{CPU}/nohz_full": "2-3\n", "sys/fs/cgroup/cpuset.cpus.isolated": "5\n"}
    both = read_isolation(HostRoot(write(tmp_path, files)))
    assert (both.isolated, both.nohz_full) == (CpuSet((2, 5)), CpuSet((2, 3)))


def test_limits_of_this_process_and_of_an_empty_tree_are_read(tmp_path: Path) -> None:
    here = read_limits(HostRoot())
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    assert here.memlock_bytes == (None if soft == resource.RLIM_INFINITY else soft)
    there = read_limits(HostRoot(tmp_path))
    assert (there.memlock_bytes, there.rtprio, there.may_lock, there.may_schedule) == (None, None, False, False)
    assert there.reason
