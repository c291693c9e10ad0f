"""Interrupts, irqbalance, workqueues and packet steering on made hosts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.errors import UsageError
from jitter_workshop.host.irq.irq_affinity import Irq, read_irqs
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.base import Unavailable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import plan_changes
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.tunables.interrupts import FIXED, in_cpus, mask_like, refuses, why_fixed
from jitter_workshop.tuning.tunables.registry import find_tunable
from tests import hosttrees
from tests.madekernel import MadeKernel
from tests.unit.test_tuning_tasks_and_groups import round_trip, wanted

WQ = "sys/devices/virtual/workqueue"


def board(root: Path, hot: str = "1") -> Host:
    """Two CPUs: interrupts that move, one that will not, one that is not used; workqueues; a card with two queues."""
    files = hosttrees.kernel("pair") | hosttrees.cpu_lists("0-1")
    for n in (0, 1):
        files |= hosttrees.cpu_files(n, package_cpus=(0, 1))
    rows: dict[str, tuple[Iterable[int], str]] = {
        "0": ((9, 0), "IO-APIC   2-edge      timer"),
        "24": ((5, 0), "PCI-MSIX-0000:00:03.0   0-edge      eth0-rx-0"),
        "25": ((0, 7), "PCI-MSIX-0000:00:03.0   1-edge      eth0-tx-0"),
        "26": ((0, 7), "PCI-MSIX-0000:00:04.0   1-edge      nvme0q1"),
        "27": ((0, 0), "PCI-MSIX-0000:00:04.0   0-edge      nvme0q0"),
        "LOC": ((1, 1), "Local timer interrupts"),
    }
    files["proc/interrupts"] = hosttrees.interrupts([0, 1], rows)
    files["proc/irq/default_smp_affinity"] = "3\n"
    files |= hosttrees.irq(0, "0-1") | hosttrees.irq(5, "0-1") | hosttrees.irq(24, "0-1", "0")
    files |= hosttrees.irq(25, "1", "1") | hosttrees.irq(26, "1", "1") | hosttrees.irq(27, "0", "0")
    files |= {
        f"{WQ}/cpumask": "3\n",
        f"{WQ}/cpumask_requested": "3\n",
        f"{WQ}/cpumask_isolated": "0\n",
        f"{WQ}/writeback/cpumask": "2\n",
        f"{WQ}/scsi/nice": "0\n",
    }
    files |= hosttrees.network_card("eth0", rps=("00", "2"), xps=("1", "3"))
    hosttrees.write(root, files)
    return Host(HostRoot(root), CpuSet.parse_list(hot))


@pytest.mark.parametrize(("moved", "stay", "held"), [(9, 10, True), (10, 10, False), (11, 10, False), (0, 0, False)])
def test_interrupts_are_held_where_most_that_arrived_on_hot_cpus_cannot_move(
    moved: int, stay: int, held: bool, tmp_path: Path
) -> None:
    rows: dict[str, tuple[Iterable[int], str]] = {
        "24": ((500, moved), "PCI-MSIX-0000:00:03.0   0-edge      eth0-rx-0"),
        "26": ((900, stay), "PCI-MSIX-0000:00:04.0   1-edge      nvme0q1"),
    }
    host = board(tmp_path)
    hosttrees.write(tmp_path, {"proc/interrupts": hosttrees.interrupts([0, 1], rows)})
    said = find_tunable("irq-affinity").held(host)
    share = "52 % of the device interrupts on CPU 1 came from nvme0q1, which cannot be moved"
    assert said == (share if held else "")
    # Status and the chapter's first step say the same as home, too, beside the interrupts that can be moved.
    reason = find_tunable("irq-affinity").assess(host).reason
    assert reason.startswith(
        "1 interrupt can be moved off CPU 1; none of these arrive there now; 1 cannot be moved and "
    )
    assert reason.endswith(f"; {share}") is held
    assert find_tunable("irqbalance").held(host) == ""


def test_several_busy_interrupts_that_stay_are_counted_and_the_busiest_is_named(tmp_path: Path) -> None:
    rows: dict[str, tuple[Iterable[int], str]] = {
        "0": ((900, 7), "IO-APIC   2-edge      timer"),
        "26": ((900, 99), "PCI-MSIX-0000:00:04.0   1-edge      nvme0q1"),
    }
    host = board(tmp_path)
    hosttrees.write(tmp_path, {"proc/interrupts": hosttrees.interrupts([0, 1], rows)})
    assert find_tunable("irq-affinity").held(host).endswith("came from 2 that cannot be moved, most from nvme0q1")


@pytest.mark.parametrize("timer", ["arch_timer", "riscv-timer"])
def test_the_timer_of_a_cpu_is_no_device_that_holds_interrupts(timer: str, tmp_path: Path) -> None:
    host = board(tmp_path)
    rows: dict[str, tuple[Iterable[int], str]] = {
        "0": ((90_000, 90_000), f"GICv3  27 Level     {timer}"),
        "5": ((9, 9), "GICv3  23 Level     arm-pmu"),
        "24": ((500, 30), "ITS-MSI 524288 Edge      eth0-rx-0"),
    }
    hosttrees.write(tmp_path, {"proc/interrupts": hosttrees.interrupts([0, 1], rows)})
    assert find_tunable("irq-affinity").held(host) == ""
    assert {c.path for c in wanted(tmp_path, "1", "irq-affinity") if c.path.startswith("/proc/irq/")} == {
        "/proc/irq/default_smp_affinity",
        "/proc/irq/24/smp_affinity_list",
    }
    assert find_tunable("irq-affinity").assess(host).reason.startswith("1 interrupt can be moved off CPU 1;")


def test_interrupts_leave_the_hot_cpus(tmp_path: Path) -> None:
    host = board(tmp_path)
    assessed = find_tunable("irq-affinity").assess(host)
    assert assessed.state == "improve"
    assert (assessed.value, assessed.wanted) == ("4 interrupts may use hot CPUs", "2 interrupts, which cannot be moved")
    assert assessed.reason.startswith(
        "2 interrupts can be moved off CPU 1; 1 of these arrives there now; 2 cannot be moved, 1 of them arrives there:"
    )
    changes = {c.path: (c.before, c.after) for c in wanted(tmp_path, "1", "irq-affinity")}
    assert changes == {
        "/proc/irq/default_smp_affinity": ("3", "1"),
        "/proc/irq/24/smp_affinity_list": ("0-1", "0"),
        "/proc/irq/25/smp_affinity_list": ("1", "0"),
    }
    # An interrupt that is known to refuse is told, and tried only when asked for.
    (told,) = plan_changes(host, [Wanted("irq-affinity")]).skipped
    assert told.partly
    assert told.reason.startswith("2 of 5 settings cannot be changed: every CPU has an")
    every = plan_changes(host, [Wanted("irq-affinity", "all")])
    assert {c.path for c in every.changes} - set(changes) == {f"/proc/irq/{n}/smp_affinity_list" for n in (0, 26)}
    assert every.skipped == ()
    with pytest.raises(UsageError, match="irq-affinity cannot be 'few'"):
        plan_changes(host, [Wanted("irq-affinity", "few")])


def test_an_interrupt_that_cannot_be_moved_is_no_fault_of_the_host(tmp_path: Path) -> None:
    board(tmp_path)
    kernel = MadeKernel(tmp_path)
    for change in wanted(tmp_path, "1", "irq-affinity"):
        kind_of(change.kind).write(kernel, change.path, change.after)
    assessed = find_tunable("irq-affinity").assess(Host(HostRoot(tmp_path), CpuSet((1,))))
    assert assessed.state == "ok"
    assert (assessed.value, assessed.wanted) == ("2 interrupts may use hot CPUs", "2 interrupts, which cannot be moved")
    assert "2 cannot be moved" in assessed.reason
    (told,) = plan_changes(Host(HostRoot(tmp_path), CpuSet((1,))), [Wanted("irq-affinity")]).skipped
    assert not told.partly
    assert told.reason.startswith("nothing to do: 2 of 2")


def test_a_file_that_the_kernel_shows_read_only_is_not_tried(tmp_path: Path) -> None:
    """As 6.18 does for managed interrupts; a recording tells of it in its own list."""
    board(tmp_path)
    told = {"format_version": 1, "read_only": ["/proc/irq/24/smp_affinity_list"]}
    (tmp_path / "RECORDING.json").write_text(json.dumps(told))
    assert "/proc/irq/24/smp_affinity_list" not in {c.path for c in wanted(tmp_path, "1", "irq-affinity")}
    assessed = find_tunable("irq-affinity").assess(Host(HostRoot(tmp_path), CpuSet((1,))))
    # If the kernel marks its own interrupts, names mean nothing any more.
    assert "1 cannot be moved" in assessed.reason
    assert FIXED in assessed.reason


def test_a_managed_interrupt_has_one_reason_whether_its_file_is_read_only_or_not(tmp_path: Path) -> None:
    board(tmp_path)
    queue = next(irq for irq in read_irqs(HostRoot(tmp_path)) if irq.name == "nvme0q1")
    told = {"format_version": 1, "read_only": [queue.path]}
    (tmp_path / "RECORDING.json").write_text(json.dumps(told))
    reason = find_tunable("irq-affinity").assess(Host(HostRoot(tmp_path), CpuSet((1,)))).reason
    assert refuses(queue) == why_fixed(HostRoot(tmp_path), queue)
    assert refuses(queue) in reason
    assert FIXED not in reason


def test_interrupts_come_back(tmp_path: Path) -> None:
    board(tmp_path)
    round_trip(MadeKernel(tmp_path), "1", "irq-affinity")


@given(st.frozensets(st.integers(0, 3), min_size=1, max_size=3), st.frozensets(st.integers(0, 3), min_size=1))
def test_no_interrupt_is_left_without_a_cpu(
    tmp_path_factory: pytest.TempPathFactory, hot: set[int], now: set[int]
) -> None:
    root = tmp_path_factory.mktemp("irqs")
    hosttrees.small(root, 4)
    files = hosttrees.irq(24, str(CpuSet.of(now)))
    files["proc/interrupts"] = hosttrees.interrupts(range(4), {"24": ((1, 1, 1, 1), "PCI-MSIX-1:0   0-edge      eth0")})
    files["proc/irq/default_smp_affinity"] = CpuSet.of(now).to_mask() + "\n"
    hosttrees.write(root, files)
    for change in wanted(root, str(CpuSet.of(hot)), "irq-affinity"):
        after = CpuSet.parse_list(change.after) if change.kind == "cpu-list" else CpuSet.parse_mask(change.after)
        assert after
        assert not after & CpuSet.of(hot)


@given(st.frozensets(st.integers(0, 200)), st.frozensets(st.integers(0, 200)))
def test_a_mask_like_another_is_still_the_same_set(cpus: set[int], other: set[int]) -> None:
    assert CpuSet.parse_mask(mask_like(CpuSet.of(cpus), CpuSet.of(other).to_mask())) == CpuSet.of(cpus)
    assert mask_like(CpuSet((0,)), "ff,ffffffff") == "00,00000001"


@pytest.mark.parametrize(
    ("name", "stays"),
    [
        ("nvme0q0", False),
        ("nvme0q12", True),
        ("nvme1q1", True),
        ("nvmeq1", False),
        ("virtio1-req.0", True),
        ("virtio1-config", False),
        ("virtio2-input.0", False),
        ("virtio1-req_poll.0", False),
        ("virtio3-request", True),
        ("virtio3-requests", False),
        ("virtio3-control", False),
        ("smartpqi", True),
        ("hpsa0-msix0", True),
        ("mpi3mr0-msix0", False),
        ("mpi3mr0-msix1", True),
        ("megasas0-msix7", False),
        ("megasas0-msix8", True),
        ("mpt3sas1-msix31", True),
        ("mpt2sas1-msix31", False),
        ("qla2xxx7_rsp_q", False),
        ("qla2xxx7_qpair2", True),
        ("beiscsi_05_1f", True),
        ("beiscsi_mcc_05", False),
        ("nvme0q0, nvme0q1", False),
        ("timer", True),
        ("eth0-TxRx-3", False),
    ],
)
def test_names_tell_the_interrupts_that_cannot_be_moved(name: str, stays: bool) -> None:
    assert bool(refuses(Irq(7, name, CpuSet((0,))))) is stays


def test_workqueues_leave_the_hot_cpus_and_come_back(tmp_path: Path) -> None:
    board(tmp_path)
    changes = round_trip(MadeKernel(tmp_path), "1", "workqueue-mask")
    assert [(c.path, c.before, c.after) for c in changes] == [
        (f"/{WQ}/cpumask", "3", "1"),
        (f"/{WQ}/writeback/cpumask", "2", "1"),
    ]


def test_masks_are_told_as_cpus(tmp_path: Path) -> None:
    host = board(tmp_path)
    for ident, value in (("workqueue-mask", "CPUs 0-1, CPU 1"), ("rps-xps", "CPU 1, CPUs 0-1")):
        check = find_tunable(ident).judge(host)
        assert (check.state, check.value, check.wanted) == ("improve", value, "CPU 0")
    assert in_cpus("no mask") == "no mask"
    assert in_cpus("0") == "no CPU"


def test_the_wish_counts_where_an_isolated_partition_narrows_the_mask(tmp_path: Path) -> None:
    host = board(tmp_path)
    (tmp_path / WQ / "cpumask").write_text("1\n")
    assert kind_of("workqueue-mask").read(host.root, f"/{WQ}/cpumask").text == "3"
    (tmp_path / WQ / "cpumask_requested").unlink()
    assert kind_of("workqueue-mask").read(host.root, f"/{WQ}/cpumask").text == "1"


def test_packets_are_not_steered_to_hot_cpus(tmp_path: Path) -> None:
    board(tmp_path)
    changes = round_trip(MadeKernel(tmp_path), "1", "rps-xps")
    queues = "/sys/class/net/eth0/queues"
    assert [(c.path, c.before, c.after) for c in changes] == [
        (f"{queues}/rx-1/rps_cpus", "2", "1"),
        (f"{queues}/tx-1/xps_cpus", "3", "1"),
    ]


def test_a_card_behind_the_kernels_link_is_reached_and_no_other_link_is(tmp_path: Path) -> None:
    board(tmp_path)
    card = tmp_path / "sys/class/net/eth0"
    real = tmp_path / "sys/devices/pci0000:00/0000:00:03.0/net/eth0"
    real.parent.mkdir(parents=True)
    card.rename(real)
    card.symlink_to("../../devices/pci0000:00/0000:00:03.0/net/eth0")
    kernel = MadeKernel(tmp_path)
    kernel.write("/sys/class/net/eth0/queues/rx-1/rps_cpus", "1")
    assert (real / "queues/rx-1/rps_cpus").read_text() == "1\n"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "rps_cpus").write_text("0\n")
    (tmp_path / "sys/class/net/bad").symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic link"):
        kernel.write("/sys/class/net/bad/rps_cpus", "1")


def test_cards_and_polling_are_told(tmp_path: Path) -> None:
    host = board(tmp_path)
    card = find_tunable("network-card").assess(host)
    assert card.state == "info"
    assert "ethtool -c eth0" in card.reason
    (tmp_path / "sys/class/net/eth0/napi_defer_hard_irqs").write_text("2\n")
    assert "eth0 interrupts again after 2" in find_tunable("napi").assess(host).reason
    assert (
        find_tunable("rps-xps").assess(Host(HostRoot(tmp_path / "proc"), CpuSet((1,)), host.topology)).state
        == "unavailable"
    )


def irqbalance(root: Path, *, systemd: bool, settings: str = "") -> Host:
    board(root)
    files = {"proc/1/comm": "systemd\n" if systemd else "init\n"} | hosttrees.task(400, "irqbalance", allowed="0-1")
    if systemd:
        files |= {"run/systemd/system/x": "", "run/systemd/units/invocation:irqbalance.service": ""}
    if settings:
        files["etc/default/irqbalance"] = settings
    hosttrees.write(root, files)
    return Host(HostRoot(root), CpuSet((1,)))


def test_irqbalance_is_stopped_only_by_systemd(tmp_path: Path) -> None:
    with_systemd = irqbalance(tmp_path / "a", systemd=True)
    assert find_tunable("irqbalance").assess(with_systemd).state == "improve"
    (change,) = wanted(tmp_path / "a", "1", "irqbalance")
    assert (change.path, change.before, change.after) == ("systemd(irqbalance.service)", "active", "inactive")
    without = irqbalance(tmp_path / "b", systemd=False)
    assessed = find_tunable("irqbalance").assess(without)
    assert assessed.state == "info"
    assert "process 400" in assessed.fix
    with pytest.raises(Unavailable, match="systemd does not run"):
        find_tunable("irqbalance").writes(without, None)


@pytest.mark.parametrize(
    ("settings", "state"),
    [
        ('IRQBALANCE_BANNED_CPULIST="1"\n', "ok"),
        ("IRQBALANCE_BANNED_CPUS=2\n", "ok"),
        ("IRQBALANCE_BANNED_CPULIST=0\n", "improve"),
        ("IRQBALANCE_BANNED_CPULIST=nonsense\n", "improve"),
    ],
)
def test_irqbalance_may_run_where_it_leaves_the_hot_cpus_alone(tmp_path: Path, settings: str, state: str) -> None:
    assert find_tunable("irqbalance").assess(irqbalance(tmp_path, systemd=True, settings=settings)).state == state


def test_a_mask_that_irqbalance_cannot_read_leaves_no_isolated_cpu_alone(tmp_path: Path) -> None:
    host = irqbalance(tmp_path, systemd=True, settings="IRQBALANCE_BANNED_CPUS=1-1\n")
    hosttrees.write(tmp_path, {"sys/devices/system/cpu/isolated": "1\n"})
    assert find_tunable("irqbalance").assess(host).state == "improve"
    assert find_tunable("irqbalance").writes(host, None)


@pytest.mark.parametrize("mask", ["", "IRQBALANCE_BANNED_CPUS=1\n"])
def test_the_advice_for_irqbalance_removes_a_mask_that_hides_the_list(tmp_path: Path, mask: str) -> None:
    settings = f"IRQBALANCE_BANNED_CPULIST=1\n{mask}" if mask else "IRQBALANCE_BANNED_CPULIST=0\n"
    assessed = find_tunable("irqbalance").assess(irqbalance(tmp_path, systemd=True, settings=settings))
    assert assessed.state == "improve"
    assert assessed.fix.endswith("/etc/default/irqbalance, without its mask" if mask else "/etc/default/irqbalance")


def test_without_irqbalance_nothing_is_to_be_done(tmp_path: Path) -> None:
    host = board(tmp_path)
    assert find_tunable("irqbalance").assess(host).state == "unavailable"
    hosttrees.write(tmp_path, hosttrees.task(1, "init"))
    host = Host(HostRoot(tmp_path), CpuSet((1,)))
    assert find_tunable("irqbalance").assess(host).state == "ok"
    assert find_tunable("irqbalance").writes(host, None) == ()


@pytest.mark.parametrize(("value", "planned"), [("24", [("24", "0-1", "1")]), ("26", []), ("25", [])])
def test_one_interrupt_is_sent_to_the_hot_cpu_if_it_can_be_moved(
    tmp_path: Path, value: str, planned: list[tuple[str, str, str]]
) -> None:
    made = plan_changes(board(tmp_path), (Wanted("irq-here", value),))
    assert [(c.path.split("/")[3], c.before, c.after) for c in made.changes] == planned
    assert bool(made.skipped) is not bool(planned)


@pytest.mark.parametrize("value", ["5", "LOC", "024", "", "24;25", "../24"])
def test_only_a_device_interrupt_of_this_host_is_sent(tmp_path: Path, value: str) -> None:
    with pytest.raises(UsageError, match="no device of this host has such an interrupt"):
        plan_changes(board(tmp_path), (Wanted("irq-here", value),))


def test_without_a_number_nothing_is_planned_and_the_check_counts_for_nothing(tmp_path: Path) -> None:
    host = board(tmp_path)
    assert plan_changes(host, (Wanted("irq-here"),)).changes == ()
    assert find_tunable("irq-here").assess(host).state == "info"
