"""The order of writes follows from what each needs, makes, ends and overwrites, however the writes are given."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.tuning.ordering import OrderingFacts, cannot_without, ordered, ordering_facts

CPU = "/sys/devices/system/cpu"
OWN = "/sys/fs/cgroup/jitter-workshop"
V1 = "/sys/fs/cgroup/cpuset"

APPLY = {
    "stop": ordering_facts("systemd(tuned.service)", "unit", "inactive"),
    "offline": ordering_facts(f"{CPU}/cpu3/online", "number", "0"),
    "controller": ordering_facts("/sys/fs/cgroup/cgroup.subtree_control", "controllers", "cpuset"),
    "group": ordering_facts(OWN, "cgroup", "present"),
    "list": ordering_facts(f"{OWN}/cpuset.cpus", "cgroup-cpus", "2"),
    "partition": ordering_facts(f"{OWN}/cpuset.cpus.partition", "partition", "isolated"),
    "mask": ordering_facts("sched_setaffinity(1@1)", "affinity", "0-1"),
    "irq": ordering_facts("/proc/irq/9/smp_affinity_list", "cpu-list", "0-1"),
    "queue": ordering_facts("/proc/irq/30/smp_affinity_list", "irq-across", "0"),
    "governor": ordering_facts(f"{CPU}/cpufreq/policy2/scaling_governor", "value", "performance"),
    "preference": ordering_facts(f"{CPU}/cpufreq/policy2/energy_performance_preference", "value", "performance"),
    "cycle": ordering_facts(f"{CPU}/cpu2/online", "cpu-cycle", "0, then 1"),
}
BACK = {
    "start": ordering_facts("systemd(tuned.service)", "unit", "active"),
    "online": ordering_facts(f"{CPU}/cpu3/online", "number", "1"),
    "controller": ordering_facts("/sys/fs/cgroup/cgroup.subtree_control", "controllers", ""),
    "group": ordering_facts(OWN, "cgroup", "absent"),
    "list": ordering_facts(f"{OWN}/cpuset.cpus", "cgroup-cpus", ""),
    "partition": ordering_facts(f"{OWN}/cpuset.cpus.partition", "partition", "member"),
    "mask": ordering_facts("sched_setaffinity(1@1)", "affinity", "0-3"),
    "irq": ordering_facts("/proc/irq/9/smp_affinity_list", "cpu-list", "3"),
    "queue": ordering_facts("/proc/irq/30/smp_affinity_list", "irq-across", "3"),
    "governor": ordering_facts(f"{CPU}/cpufreq/policy2/scaling_governor", "value", "powersave"),
    "preference": ordering_facts(f"{CPU}/cpufreq/policy2/energy_performance_preference", "value", "balance_power"),
}
SETS = {
    "hot": ordering_facts(f"{V1}/jitter-workshop-hot", "cpuset", "cpus 2 mems 0"),
    "rest": ordering_facts(f"{V1}/jitter-workshop-rest", "cpuset", "cpus 0-1 mems 0"),
    "place": ordering_facts("cgroup(1@1)", "task-cgroup", "/jitter-workshop-rest"),
    "mask": ordering_facts("sched_setaffinity(1@1)", "affinity-across", "0"),
    "balance": ordering_facts(f"{V1}/cpuset.sched_load_balance", "number", "0"),
}


def names(of: dict[str, OrderingFacts], given: Sequence[str], together: Sequence[str] = ()) -> list[str]:
    return [given[n] for n in ordered([of[name] for name in given], together)]


def precedes(order: Sequence[str], *chain: str) -> bool:
    places = [order.index(name) for name in chain]
    return places == sorted(places)


@given(st.permutations(sorted(APPLY)))
def test_an_apply_has_its_order_however_it_is_given(given_in: list[str]) -> None:
    order = names(APPLY, given_in)
    assert sorted(order) == sorted(APPLY)
    assert order[0] == "stop"
    assert precedes(order, "controller", "list", "partition", "mask", "offline", "queue")
    assert precedes(order, "group", "list")
    assert precedes(order, "cycle", "partition")
    assert precedes(order, "irq", "offline")
    assert precedes(order, "partition", "governor", "preference")


@given(st.permutations(sorted(BACK)))
def test_the_way_back_has_its_own(given_in: list[str]) -> None:
    order = names(BACK, given_in)
    assert order[-1] == "start"
    assert precedes(order, "online", "partition", "list", "controller", "mask")
    assert precedes(order, "partition", "group", "mask")
    assert precedes(order, "online", "irq")
    assert precedes(order, "online", "queue")
    assert precedes(order, "partition", "governor", "preference")


@given(st.permutations(sorted(SETS)))
def test_sets_of_version_1_stand_before_the_top_is_unbalanced(given_in: list[str]) -> None:
    order = names(SETS, given_in)
    assert precedes(order, "rest", "place", "mask")
    assert order.index("balance") > max(order.index("hot"), order.index("rest"), order.index("place"))


def test_without_the_set_for_the_rest_the_top_stays_balanced() -> None:
    balance, missing = (f"{V1}/cpuset.sched_load_balance", "number"), SETS["rest"].makes
    assert cannot_without(*balance, "0") & missing
    assert not cannot_without(*balance, "1") & missing


@given(st.permutations(range(12)))
def test_writes_without_an_order_stay_as_given_in_their_groups(numbers: list[int]) -> None:
    targets = [ordering_facts(f"/proc/sys/vm/x{n}", "number", "1") for n in numbers]
    assert ordered(targets) == list(range(12))
    found = [numbers[n] % 3 for n in ordered(targets, [str(n % 3) for n in numbers])]
    assert len([n for n in range(1, 12) if found[n] != found[n - 1]]) == 2
