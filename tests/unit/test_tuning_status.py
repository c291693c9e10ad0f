"""Test the drift of settings and its probable cause, and that one broken check hides no other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.status import Assessment
from jitter_workshop.tuning.base import Tunable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import plan_changes
from jitter_workshop.tuning.status import assess_all, count_states, find_drift
from jitter_workshop.tuning.tunables.registry import find_tunable, tunables
from tests import hosttrees

GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy1/scaling_governor"


@dataclass(frozen=True)
class Set:
    """A write of ours."""

    tunable: str
    path: str
    after: str
    kind: str = "value"
    before: str = "before"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Two CPUs, the second one hot, with a governor each."""
    root = hosttrees.small(tmp_path, 2)
    for cpu in (0, 1):
        hosttrees.write(
            root,
            hosttrees.policy(
                cpu, cpus=str(cpu), driver="acpi-cpufreq", governor="powersave", low_khz=1_000, high_khz=2_000
            ),
        )
    return Host(HostRoot(root), CpuSet((1,)))


def run_service(host: Host, name: str) -> None:
    hosttrees.write(host.root.root, hosttrees.task(812, name))


def test_an_applied_value_that_still_stands_has_not_drifted(host: Host) -> None:
    assert find_drift(host, find_tunable("governor"), [Set("governor", GOVERNOR, "powersave")]) is None


def test_a_value_that_another_program_changed_reads_drifted_with_the_likely_rewriter(host: Host) -> None:
    run_service(host, "tuned")
    (said,) = assess_all(host, [find_tunable("governor")], [Set("governor", GOVERNOR, "performance")])
    assert said.state == "improve"
    assert said.drifted is not None
    assert (said.drifted.path, said.drifted.set, said.drifted.found) == (GOVERNOR, "performance", "powersave")
    assert said.drifted.culprit == "tuned"
    assert said.reason.startswith("drifted: this tool set performance, the host now has powersave; ")
    assert "; probably because of tuned" in said.reason
    assert "first keep tuned from" in said.fix


def test_no_rewriter_is_made_up(host: Host) -> None:
    run_service(host, "irqbalance")
    drift = find_drift(host, find_tunable("governor"), [Set("governor", GOVERNOR, "performance")])
    assert drift is not None
    assert drift.culprit is None


def test_a_good_value_that_replaced_an_applied_one_has_drifted(host: Host) -> None:
    hosttrees.write(host.root.root, {GOVERNOR.lstrip("/"): "performance\n"})
    (said,) = assess_all(host, [find_tunable("governor")], [Set("governor", GOVERNOR, "schedutil")])
    assert said.state == "improve"
    assert "drifted" in said.reason
    assert "apply it again" in said.fix
    assert said.fix.endswith(": jitter-workshop restore governor")


def test_values_are_compared_by_their_meaning(host: Host) -> None:
    hosttrees.write(host.root.root, {"proc/irq/default_smp_affinity": "00000003\n"})
    asked = [Set("irq-affinity", "/proc/irq/default_smp_affinity", "3", "cpu-mask")]
    assert find_drift(host, find_tunable("irq-affinity"), asked) is None


def test_a_missing_file_or_an_unknown_kind_has_not_drifted(host: Host) -> None:
    asked = [Set("governor", "/sys/gone", "1"), Set("governor", GOVERNOR, "x", "a-kind-from-the-future")]
    assert find_drift(host, find_tunable("governor"), asked) is None


def test_of_two_writes_to_one_file_the_last_counts(host: Host) -> None:
    asked = [Set("governor", GOVERNOR, "performance"), Set("governor", GOVERNOR, "powersave")]
    assert find_drift(host, find_tunable("governor"), asked) is None


def test_a_later_tunables_write_to_the_same_file_is_no_drift_of_the_earlier(host: Host) -> None:
    hosttrees.write(host.root.root, hosttrees.irq(9, "0"))
    path = "/proc/irq/9/smp_affinity_list"
    asked = [Set("smt", path, "0-1", "irq-across"), Set("irq-affinity", path, "0", "cpu-list")]
    said = assess_all(host, [find_tunable("smt"), find_tunable("irq-affinity")], asked)
    assert [one.drifted for one in said] == [None, None]
    hosttrees.write(host.root.root, hosttrees.irq(9, "1"))
    drifted = assess_all(host, [find_tunable("smt"), find_tunable("irq-affinity")], asked)
    assert [one.drifted is not None for one in drifted] == [False, True]


def test_a_mask_that_the_kernel_changed_for_our_set_is_no_drift(host: Host) -> None:
    hosttrees.write(host.root.root, hosttrees.task(60, "x", allowed="0"))
    mask = Set("kernel-threads", "sched_setaffinity(60@100)", "1", "affinity", before="0-1")
    partition = Set("isolation", "/sys/fs/cgroup/jitter-workshop/cpuset.cpus", "1", "cgroup-cpus")
    (alone,) = assess_all(host, [find_tunable("kernel-threads")], [mask])
    assert alone.drifted is not None
    (beside,) = assess_all(host, [find_tunable("kernel-threads")], [partition, mask])
    assert beside.drifted is None


def test_one_broken_check_hides_no_other(host: Host) -> None:
    class Broken(Tunable):
        id = "broken"
        title = "Broken"
        why = "It is."
        document = "none"

        def assess(self, host: Host) -> Assessment:
            raise RuntimeError("an odd\x1b[31m host")

    broken, governor = assess_all(host, [Broken(), find_tunable("governor")])
    assert (broken.state, governor.id) == ("unavailable", "governor")
    assert "a mistake in this program" in broken.reason
    assert count_states((broken, governor)) == {"ok": 0, "improve": 1, "unavailable": 1, "info": 0}


def two_cores(root: Path, *, isolated: str = "") -> Host:
    """Two cores with two threads each, 0-1 and 2-3. CPUs 1 and 2 are hot, so their siblings do the other work; CPU 0
    cannot go offline, and CPU 3 can."""
    work = "sys/devices/virtual/workqueue"
    files = hosttrees.kernel("box") | hosttrees.cpu_lists("0-3", isolated=isolated)
    files |= {"proc/irq/default_smp_affinity": "f\n", f"{work}/cpumask": "f\n", f"{work}/writeback/cpumask": "f\n"}
    files |= {"proc/interrupts": hosttrees.interrupts(range(4), {})}
    for n in range(4):
        pair = (n // 2 * 2, n // 2 * 2 + 1)
        files |= hosttrees.cpu_files(n, core=n // 2, siblings=pair, online=None if n == 0 else True)
    return Host(HostRoot(hosttrees.write(root, files)), CpuSet((1, 2)))


def test_no_wanted_mask_names_a_sibling_that_should_go_offline(tmp_path: Path) -> None:
    host = two_cores(tmp_path)
    said = {one.id: one for one in assess_all(host)}
    assert said["smt"].state == "improve"
    assert said["workqueue-mask"].wanted == "CPU 0"
    assert said["irq-affinity"].wanted == "all on CPU 0"
    assert {one.id: one.state for one in assess_all(host)} == {t.id: t.assess(host).state for t in tunables()}
    drawn = plan_changes(host, [Wanted(one) for one in ("smt", "workqueue-mask", "irq-affinity")])
    masks = {c.path.rpartition("/")[2]: c.after for c in drawn.changes if c.kind in ("cpu-mask", "workqueue-mask")}
    assert masks == {"default_smp_affinity": "1", "cpumask": "1"}


def test_without_smt_in_the_plan_all_siblings_do_the_other_work(tmp_path: Path) -> None:
    """Both ``status workqueue-mask`` and ``apply workqueue-mask`` name the same CPUs."""
    host = two_cores(tmp_path)
    (mask,) = assess_all(host, [find_tunable("workqueue-mask")])
    assert mask.wanted == "CPUs 0,3"
    written = {
        one.after for one in plan_changes(host, [Wanted("workqueue-mask")]).changes if one.kind == "workqueue-mask"
    }
    assert written == {"9"}


@pytest.mark.parametrize("method", ["takes_offline", "assess"])
def test_a_broken_check_of_siblings_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("an odd host")

    monkeypatch.setattr(type(find_tunable("smt")), method, broken)
    said = {
        one.id: one for one in assess_all(two_cores(tmp_path), [find_tunable("smt"), find_tunable("workqueue-mask")])
    }
    assert (said["smt"].state == "unavailable") == (method == "assess")
    assert said["workqueue-mask"].wanted == "CPUs 0,3"


def test_siblings_that_stay_do_the_other_work(tmp_path: Path) -> None:
    """They are isolated already, so smt has nothing to improve, and no CPU would be left without them."""
    host = two_cores(tmp_path, isolated="0-3")
    (smt, mask) = assess_all(host, [find_tunable("smt"), find_tunable("workqueue-mask")])
    assert smt.state == "ok"
    assert mask.wanted == "CPUs 0,3"


@pytest.mark.parametrize(("isolated", "asked"), [("", 1), ("0-3", 0)])
def test_smt_draws_up_its_writes_only_if_it_has_something_to_improve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolated: str, asked: int
) -> None:
    smt = find_tunable("smt")
    calls: list[Host] = []
    drawn_up = smt.takes_offline

    def counted(_: Tunable, host: Host, value: str | None) -> CpuSet:
        calls.append(host)
        return drawn_up(host, value)

    monkeypatch.setattr(type(smt), "takes_offline", counted)
    assess_all(two_cores(tmp_path, isolated=isolated), [smt, find_tunable("workqueue-mask")])
    assert len(calls) == asked


def test_a_host_without_some_cpus_keeps_the_topology_that_was_read(tmp_path: Path) -> None:
    host = two_cores(tmp_path)
    rest = host.without(CpuSet((3,)))
    assert rest.topology is host.topology
    assert (str(rest.online), str(rest.siblings)) == ("0-2", "0")
