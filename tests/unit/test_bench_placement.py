"""Test the CPUs that ``auto`` picks on made-up hosts of many shapes, and the refusals."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.bench.placement import Wish, check_realtime, choose_cpus
from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cache, Cpu, Topology
from jitter_workshop.model.spec import Placement, WorkloadName


def host(
    packages: int = 1,
    caches: int = 1,
    cores: int = 2,
    threads: int = 1,
    offline: Iterable[int] = (),
    forbidden: Iterable[int] = (),
    efficiency: Iterable[int] = (),
) -> Topology:
    """``caches`` last-level caches a package with ``cores`` cores each; sibling threads are numbered far apart."""
    offline, forbidden, efficiency = set(offline), set(forbidden), set(efficiency)
    total_cores = packages * caches * cores
    cpus, groups = [], {}
    for number in range(total_cores * threads):
        core = number % total_cores
        cache = core // cores
        groups.setdefault(cache, []).append(number)
        core_type = ("efficiency" if core in efficiency else "performance") if efficiency else None
        cpus.append(
            Cpu(
                id=number,
                package=cache // caches,
                core=core,
                node=cache // caches,
                online=number not in offline,
                allowed=number not in forbidden,
                smt_siblings=CpuSet.of(core + t * total_cores for t in range(threads)) - CpuSet.of(offline),
                core_type=core_type,
            )
        )
    shared = tuple(Cache(3, "Unified", 1 << 20, CpuSet.of(group) - CpuSet.of(offline)) for group in groups.values())
    return Topology(tuple(cpus), shared)


WORKLOADS = st.sampled_from(typing.get_args(WorkloadName))


@st.composite
def hosts(draw: st.DrawFn) -> Topology:
    shape = {
        "packages": draw(st.integers(1, 2)),
        "caches": draw(st.integers(1, 3)),
        "cores": draw(st.integers(1, 6)),
        "threads": draw(st.integers(1, 2)),
    }
    numbers = st.integers(0, shape["packages"] * shape["caches"] * shape["cores"] * shape["threads"] - 1)
    return host(
        **shape,
        offline=draw(st.sets(numbers, max_size=4)),
        forbidden=draw(st.sets(numbers, max_size=8)),
        efficiency=draw(st.sets(numbers, max_size=6)),
    )


def llc(topology: Topology, cpu: int) -> object:
    return topology.last_level_cache(cpu)


def core(topology: Topology, cpu: int) -> int:
    found = topology.cpu(cpu)
    assert found is not None
    return found.core


def node_of(topology: Topology, cpu: int) -> int:
    found = topology.cpu(cpu)
    assert found is not None
    return found.node


def on_node(topology: Topology, node: int) -> CpuSet:
    return CpuSet.of(c.id for c in topology.cpus if c.node == node)


@given(hosts(), st.sets(st.integers(0, 20), max_size=5))
def test_auto_keeps_every_promise_that_the_host_allows(topology: Topology, isolated_numbers: set[int]) -> None:
    allowed, isolated = topology.allowed, CpuSet.of(isolated_numbers)
    if len(allowed) < 2:
        with pytest.raises(HostError):
            choose_cpus(topology, Wish(), isolated)
        return
    placement = choose_cpus(topology, Wish(), isolated)
    used = [c for c in (placement.producer, placement.accumulator, placement.journaller) if c is not None]
    assert len(set(used)) == len(used) >= 2
    assert set(used) <= set(allowed)
    assert placement.journaller_on == (placement.journaller is not None)
    assert placement.why

    cores = {core(topology, c) for c in allowed}
    nodes = {node: {core(topology, c) for c in allowed if node_of(topology, c) == node} for node in (0, 1)}
    one_core_each = len(nodes[0]) < 2 and len(nodes[1]) == 1 < len(allowed & on_node(topology, 1))
    if len(cores) >= 2 and not one_core_each:
        assert len({core(topology, c) for c in used}) == len(used), "SMT siblings of one core"
    if len(allowed) >= 3:
        assert placement.housekeeping, "one CPU is left for housekeeping"
        assert not set(placement.housekeeping) & set(placement.hot)
        assert set(placement.hot) == set(used)
    else:
        assert placement.housekeeping == ()
        assert placement.hot == (placement.accumulator,)
        assert not placement.journaller_on

    quiet = [c for c in allowed if c in isolated]
    if len({core(topology, c) for c in quiet}) >= 2:
        assert {placement.producer, placement.accumulator} <= isolated_numbers


@given(hosts())
def test_auto_shares_a_cache_and_avoids_cpu_0_where_that_is_possible(topology: Topology) -> None:
    whole = {core(topology, c): c for c in reversed(topology.allowed.cpus)}
    groups: dict[object, list[int]] = {}
    for cpu in whole.values():
        groups.setdefault((llc(topology, cpu), topology.cpu(cpu).core_type), []).append(cpu)  # type: ignore[union-attr]
    away = [[c for c in g if core(topology, c) != 0] for g in groups.values()]
    if len(whole) < 3 or not any(len(g) >= 2 for g in away):
        return
    placement = choose_cpus(topology, Wish())
    assert placement.producer is not None
    assert placement.accumulator is not None
    assert llc(topology, placement.producer) == llc(topology, placement.accumulator)
    first, second = topology.cpu(placement.producer), topology.cpu(placement.accumulator)
    assert first is not None
    assert second is not None
    assert first.core_type == second.core_type
    assert 0 not in (first.id, second.id)


@given(hosts(), WORKLOADS, st.lists(st.none() | st.integers(0, 40), min_size=4, max_size=4))
def test_a_given_placement_is_taken_or_refused_in_one_sentence(
    topology: Topology, workload: str, given_cpus: list[int | None]
) -> None:
    producer, accumulator, journaller, cpu = given_cpus
    wish = Wish(workload=workload, producer=producer, accumulator=accumulator, journaller=journaller, cpu=cpu)
    try:
        placement = choose_cpus(topology, wish)
    except WorkshopError as error:
        refusal = error.sentence()
    else:
        refusal = ""
    if refusal:
        assert "\n" not in refusal
        return
    asked = [c for c in given_cpus if c is not None]
    got = (placement.producer, placement.accumulator, placement.journaller, placement.sampler)
    assert all(c in topology.allowed for c in got if c is not None)
    assert [g for g, c in zip(got, given_cpus, strict=True) if c is not None] == asked
    assert placement.mode == ("chosen" if asked else "auto")


@given(hosts(), st.sampled_from(["auto", "none"]))
def test_a_receiver_runs_where_a_ring_without_journaller_would(topology: Topology, mode: str) -> None:
    made = []
    for wish in (Wish(workload="ack", mode=mode), Wish(workload="ring", mode=mode, no_journaller=True)):
        try:
            made.append(dataclasses.replace(choose_cpus(topology, wish), why=""))
        except WorkshopError as error:
            made.append(type(error))
    assert made[0] == made[1]


@given(hosts())
def test_a_sleeper_runs_where_a_sampler_would(topology: Topology) -> None:
    if topology.allowed:
        sleeper, sampler = (choose_cpus(topology, Wish(workload=name)) for name in ("wakeup", "spin"))
        assert sleeper == dataclasses.replace(sampler, why=sampler.why.replace("sampler", "sleeper"))


@given(hosts())
def test_spin_runs_wherever_one_cpu_is_allowed(topology: Topology) -> None:
    if not topology.allowed:
        with pytest.raises(HostError):
            choose_cpus(topology, Wish(workload="spin"))
        return
    placement = choose_cpus(topology, Wish(workload="spin"))
    assert placement.hot == (placement.sampler,)
    assert placement.sampler in topology.allowed
    assert placement.sampler != 0 or topology.allowed.cpus == (0,)


def test_a_guest_with_two_cpus() -> None:
    placement = choose_cpus(host(cores=2), Wish())
    assert (placement.producer, placement.accumulator, placement.journaller) == (0, 1, None)
    assert (placement.hot, placement.housekeeping) == ((1,), ())
    assert "No journaller runs" in placement.why
    assert "CPU 0 is left to other tasks, too. Until CPU 1 is isolated, they may run there" in placement.why
    assert "also runs all other tasks" not in placement.why
    isolated = choose_cpus(host(cores=2), Wish(), CpuSet((1,)))
    assert "CPU 0 also runs all other tasks." in isolated.why


def test_of_cpus_that_the_user_chose_none_is_called_the_one_for_all_other_tasks() -> None:
    """The boxes of the CPUs show the housekeeping where it is, which need not be the producer's CPU."""
    placement = choose_cpus(host(cores=2), Wish(producer=1, accumulator=0))
    assert "left to other tasks" not in placement.why
    assert "No CPU is left for other tasks. Each task on CPU 0 delays the accumulator." in placement.why


def test_three_cpus_leave_cpu_0_alone_and_the_journaller_off() -> None:
    placement = choose_cpus(host(cores=3), Wish())
    assert (placement.hot, placement.housekeeping, placement.journaller_on) == ((1, 2), (0,), False)


def test_four_cpus_run_all_three_threads() -> None:
    placement = choose_cpus(host(cores=4), Wish())
    assert (placement.producer, placement.accumulator, placement.journaller) == (1, 2, 3)
    assert placement.housekeeping == (0,)


def test_of_two_cores_with_two_threads_each_one_is_left_for_other_tasks() -> None:
    machine = host(cores=2, threads=2)
    placement = choose_cpus(machine, Wish())
    assert placement.journaller is None
    assert {core(machine, c) for c in placement.hot} == {1}
    assert {core(machine, c) for c in placement.housekeeping} == {0}


def test_a_server_with_two_packages_stays_in_one_cache() -> None:
    placement = choose_cpus(host(packages=2, cores=16, threads=2), Wish())
    assert (placement.producer, placement.accumulator, placement.journaller) == (1, 2, 3)
    assert 33 not in placement.housekeeping, "a sibling of a hot CPU does no housekeeping"


@pytest.mark.parametrize(
    ("cores", "given", "producer", "accumulator", "inside"),
    [
        (4, {}, 1, 2, ("accumulator",)),
        (4, {"accumulator": 6}, 1, 6, ("accumulator",)),
        (4, {"producer": 6}, 6, 2, ()),
        (2, {}, 1, 3, ()),
    ],
)
def test_one_isolated_core_runs_the_accumulator_alone_if_other_cores_are_left(
    cores: int, given: dict[str, int], producer: int, accumulator: int, inside: tuple[str, ...]
) -> None:
    within = CpuSet((cores // 2, cores // 2 + cores))
    placed = choose_cpus(host(cores=cores, threads=2), Wish(within=within, **given), within)
    assert (placed.producer, placed.accumulator, placed.inside) == (producer, accumulator, inside)
    alone = choose_cpus(host(cores=cores, threads=2), Wish(workload="spin", cpu=within.cpus[1], within=within))
    assert alone.sampler == within.cpus[1]


def test_isolated_cpus_come_first() -> None:
    placement = choose_cpus(host(packages=2, cores=8), Wish(), CpuSet.parse_list("12-15"))
    assert (placement.producer, placement.accumulator, placement.journaller) == (12, 13, 14)
    assert "isolated from the scheduler" in placement.why


def test_one_isolated_cpu_is_enough_for_spin_only() -> None:
    isolated = CpuSet.of([5])
    assert choose_cpus(host(cores=8), Wish(workload="spin"), isolated).sampler == 5
    assert choose_cpus(host(cores=8), Wish(), isolated).producer == 1


def test_none_leaves_the_scheduler_free_with_the_threads_of_auto() -> None:
    for cpus in (2, 3, 4, 8):
        free = choose_cpus(host(cores=cpus), Wish(mode="none"))
        assert free.journaller_on == choose_cpus(host(cores=cpus), Wish()).journaller_on
        assert (free.producer, free.accumulator, free.hot, free.housekeeping) == (None, None, (), ())


@pytest.mark.parametrize(
    ("wish", "error", "sentence"),
    [
        (Wish(producer=9), HostError, "this host has no CPU 9; CPUs online: 0-2,4-5"),
        (Wish(accumulator=3), HostError, "CPU 3 is offline; CPUs online: 0-2,4-5"),
        (
            Wish(producer=5),
            HostError,
            "CPU 5 is outside this process's affinity mask or cgroup; CPUs allowed: 0-2,4",
        ),
        (Wish(producer=1, accumulator=1), UsageError, "CPU 1 is given twice (--producer-cpu and --accumulator-cpu)"),
        (Wish(accumulator=2, journaller=2), UsageError, "CPU 2 is given twice"),
        (Wish(cpu=1), UsageError, "--cpu is only for the workloads spin"),
        (Wish(workload="spin", producer=1), UsageError, "--producer-cpu is only for the workload ring"),
        (Wish(journaller=1, no_journaller=True), UsageError, "contradict"),
        (Wish(workload="spin", cpu=-1), HostError, "this host has no CPU -1"),
    ],
)
def test_refusals(wish: Wish, error: type[WorkshopError], sentence: str) -> None:
    topology = host(cores=6, offline=[3], forbidden=[5])
    with pytest.raises(error) as caught:
        choose_cpus(topology, wish)
    assert sentence in caught.value.sentence()


def test_a_single_cpu_is_sent_to_spin() -> None:
    with pytest.raises(HostError) as caught:
        choose_cpus(host(cores=4, forbidden=[0, 1, 3]), Wish())
    assert "use '--workload spin'" in caught.value.sentence()
    assert "all other work" not in choose_cpus(host(cores=2), Wish(workload="spin")).why
    assert "only CPU" in choose_cpus(host(cores=1), Wish(workload="spin")).why


@pytest.mark.parametrize(
    ("topology", "wish", "threads", "free"),
    [
        (host(cores=2), Wish(), 2, False),
        (host(cores=2), Wish(workload="spin"), 1, True),
        (host(cores=1), Wish(workload="spin"), 1, False),
        (host(cores=3), Wish(), 2, True),
        (host(cores=4), Wish(mode="none"), 3, True),
        (host(cores=3), Wish(mode="none"), 3, False),
    ],
)
def test_realtime_needs_a_cpu_outside_the_run(topology: Topology, wish: Wish, threads: int, free: bool) -> None:
    placement: Placement = choose_cpus(topology, wish)
    if free:
        check_realtime(topology, placement, threads)
    else:
        with pytest.raises(HostError, match="would leave no CPU to"):
            check_realtime(topology, placement, threads)


@pytest.mark.parametrize(
    ("wish", "used"),
    [
        (Wish(workload="spin", cpu=3), [3]),
        (Wish(producer=2, accumulator=3, no_journaller=True), [2, 3]),
    ],
)
def test_realtime_needs_a_cpu_of_the_isolated_set_outside_the_run(wish: Wish, used: list[int]) -> None:
    topology = host(cores=4)
    placement, full = choose_cpus(topology, wish), CpuSet.of(used)
    assert CpuSet.of(placement.cpus) == full
    check_realtime(topology, placement, len(used), full | CpuSet.of([1]))
    with pytest.raises(HostError, match="would leave no CPU to the other threads of the measuring process"):
        check_realtime(topology, placement, len(used), full)
