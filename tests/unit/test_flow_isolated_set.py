"""Test the CPUs that count as isolated by this tool, and a run's use of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.agent.client import asks_password
from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection, place_once
from jitter_workshop.flow.measuring.isolated_set import (
    CpuBudget,
    NotPlaced,
    in_processes,
    own_cpus,
    placed_by,
    room,
    with_allowed,
)
from jitter_workshop.flow.measuring.placement_plan import placed_on, plan_on
from jitter_workshop.flow.measuring.request import MeasureRequest, resolve
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cache, Cpu, Topology
from jitter_workshop.model.spec import Placement, WorkloadName
from tests import hosttrees
from tests.fake_agent_connection import LiveTree

FOUR = CpuSet((0, 1, 2, 3))
HOT = CpuSet((2, 3))


def host(allowed: CpuSet = FOUR - HOT, cpus: int = 4) -> Topology:
    """Cores without siblings that share a cache; this process may use ``allowed``."""
    return Topology(
        tuple(Cpu(n, 0, n, 0, True, n in allowed, CpuSet.of([n])) for n in range(cpus)),
        (Cache(3, "Unified", 1 << 20, CpuSet.of(range(cpus))),),
    )


def tree(tmp_path: Path, partition: str, folder: str = "jitter-workshop") -> HostRoot:
    files = {
        "cgroup.controllers": "cpuset\n",
        f"{folder}/cpuset.cpus": "2-3\n",
        f"{folder}/cpuset.cpus.effective": "2-3\n",
        f"{folder}/cpuset.cpus.partition": f"{partition}\n",
    }
    return HostRoot(hosttrees.write(tmp_path, hosttrees.cgroup2("/", files)))


@pytest.mark.parametrize(
    ("partition", "folder", "cpus"),
    [
        ("isolated", "jitter-workshop", HOT),
        ("member", "jitter-workshop", CpuSet()),
        ("isolated invalid (Cpu list in cpuset.cpus not exclusive)", "jitter-workshop", CpuSet()),
        ("isolated", "somebody-elses", CpuSet()),
    ],
)
def test_only_our_own_set_counts_and_only_while_it_holds(
    tmp_path: Path, partition: str, folder: str, cpus: CpuSet
) -> None:
    assert own_cpus(tree(tmp_path, partition, folder)) == cpus


def test_a_run_has_the_larger_side_of_the_wall(tmp_path: Path) -> None:
    root = tree(tmp_path, "isolated")
    assert room(root, host()) == CpuBudget(2, HOT, reduced=True)
    assert room(root, host(CpuSet((0,)))) == CpuBudget(2, HOT, reduced=True)
    assert room(root, host(CpuSet())) == CpuBudget(2, HOT, reduced=False)
    assert room(HostRoot(hosttrees.write(tmp_path / "bare", {})), host(CpuSet((0,)))) == CpuBudget(
        1, CpuSet(), reduced=False
    )


@pytest.mark.parametrize(("workload", "threads"), [("spin", 1), ("ring", 2)])
def test_the_plan_of_a_placement_is_where_the_run_will_be(tmp_path: Path, workload: WorkloadName, threads: int) -> None:
    request = MeasureRequest(workload=workload)
    tree(tmp_path, "isolated")
    planned = plan_on(LiveTree(tmp_path), host(), request, CpuSet())
    assert len(planned.changes) == threads
    assert {int(change.after) for change in planned.changes} <= set(HOT)
    assert planned.text.endswith("to move threads to the isolated CPUs.")
    spec = resolve(request, host(), CpuSet(), "/nowhere", within=HOT)
    assert {spec.placement.sampler, spec.placement.producer} - {None} <= {int(one.after) for one in planned.changes}
    # With CPUs of their own choice that lie outside, or on a host without a set, it is made outside.
    outside = plan_on(LiveTree(tmp_path), host(), dataclasses.replace(request, placement="none"), CpuSet())
    assert outside.changes == ()
    bare = plan_on(HostRoot(tmp_path / "none"), host(), request, CpuSet())
    assert {int(change.after) for change in bare.changes} <= set(FOUR - HOT)


def test_a_host_without_control_groups_has_no_set(tmp_path: Path) -> None:
    assert own_cpus(HostRoot(tmp_path)) == CpuSet()


@given(st.sets(st.integers(0, 5)), st.sets(st.integers(0, 5)))
def test_the_sets_cpus_are_allowed_in_addition(allowed: set[int], more: set[int]) -> None:
    wider = with_allowed(host(CpuSet.of(allowed), 6), CpuSet.of(more))
    assert wider.allowed == CpuSet.of(allowed | more)
    assert wider.online == CpuSet.of(range(6))


def test_a_run_inside_has_the_sets_cpus_and_leaves_the_others_to_the_host() -> None:
    ring = resolve(MeasureRequest(), host(), CpuSet(), "/nowhere", within=HOT).placement
    assert (ring.producer, ring.accumulator, ring.journaller) == (2, 3, None)
    assert (ring.hot, ring.housekeeping) == ((2, 3), (0, 1))
    assert "isolated from the scheduler" in ring.why
    assert "each message): CPU 2-3 has no core for it." in ring.why
    spin = resolve(MeasureRequest(workload="spin"), host(), CpuSet(), "/nowhere", within=HOT).placement
    assert spin.sampler in HOT
    assert "isolated from the scheduler" in spin.why


def test_a_journaller_stays_in_the_set_too() -> None:
    placement = resolve(MeasureRequest(), host(CpuSet((0, 1, 2)), 6), CpuSet(), "/", within=CpuSet((3, 4, 5))).placement
    assert {placement.producer, placement.accumulator, placement.journaller} == {3, 4, 5}
    outside = resolve(MeasureRequest(journaller_cpu=5), host(FOUR, 6), CpuSet(), "/", within=CpuSet((3, 4, 5)))
    assert outside.placement.journaller == 5


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (MeasureRequest(placement="none"), "cannot use isolated CPUs"),
        (MeasureRequest(accumulator_cpu=0), "the accumulator cannot run on CPU 0, because only CPU 1 is isolated"),
        (MeasureRequest(producer_cpu=1), "can run on the isolated CPU 1; choose another CPU for the producer"),
        (MeasureRequest(journaller_cpu=1), "can run on the isolated CPU 1; choose another CPU for the journaller"),
        (MeasureRequest(sched_priority=10), "would leave no CPU to the rest of the host"),
    ],
)
def test_a_ring_that_cannot_lie_on_both_sides_is_refused(request_: MeasureRequest, sentence: str) -> None:
    with pytest.raises(HostError) as caught:
        resolve(request_, host(CpuSet((0,)), 2), CpuSet(), "/", within=ONE)
    assert sentence in caught.value.sentence()


def test_without_a_cpu_outside_there_are_no_two_sides() -> None:
    with pytest.raises(HostError, match="needs a CPU in addition to the isolated CPU 1"):
        resolve(MeasureRequest(), host(CpuSet(), 2), CpuSet(), "/", within=ONE)


@pytest.mark.parametrize(
    ("request_", "within", "sentence"),
    [
        (MeasureRequest(placement="none"), HOT, "cannot use isolated CPUs"),
        (
            MeasureRequest(producer_cpu=0, accumulator_cpu=1),
            HOT,
            "the accumulator cannot run on CPU 1, because only CPU 2-3",
        ),
        (
            MeasureRequest(workload="spin", cpu=1),
            HOT,
            "no measured thread can run on CPU 1, because only CPU 2-3 is isolated",
        ),
        (MeasureRequest(journaller_cpu=1), HOT, "can run on CPU 1, because only"),
        (MeasureRequest(sched_priority=10), HOT, "SCHED_FIFO on CPU 2-3 would leave no CPU"),
    ],
)
def test_a_run_that_cannot_lie_inside_is_refused(request_: MeasureRequest, within: CpuSet, sentence: str) -> None:
    with pytest.raises(HostError, match=sentence):
        resolve(request_, host(), CpuSet(), "/nowhere", within=within)


def test_realtime_is_possible_where_the_set_has_a_cpu_to_spare() -> None:
    spec = resolve(MeasureRequest(workload="spin", sched_priority=10), host(), CpuSet(), "/nowhere", within=HOT)
    assert spec.sched_priority == 10


def test_the_child_is_put_there_by_its_number() -> None:
    seen: list[tuple[int, ...]] = []

    def place(pid: int, tids: Sequence[int] = ()) -> CpuSet:
        seen.append((pid, *tids))
        return HOT

    placed_by(place, Placement("auto", sampler=3))(4711, ())
    assert seen == [(4711,)]
    with pytest.raises(NotPlaced, match="CPU 1 is no longer isolated"):
        placed_by(place, Placement("auto", producer=1, accumulator=2))(4711, ())
    placed_by(place, Placement("auto", producer=1, accumulator=2, inside=("accumulator",)))(4711, (4712,))
    assert seen[-1] == (4711, 4712)
    with pytest.raises(NotPlaced, match="CPU 0 is no longer isolated"):
        placed_by(place, Placement("auto", producer=1, accumulator=0, inside=("receiver",)))(4711, (4712,))


def one_of_two(tmp_path: Path) -> HostRoot:
    """A host of two CPUs, with CPU 1 in our set of cgroup version 1."""
    group = "sys/fs/cgroup/cpuset/jitter-workshop-hot"
    return HostRoot(
        hosttrees.write(
            tmp_path,
            {
                "proc/self/mountinfo": "30 20 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cpuset rw,cpuset\n",
                "sys/fs/cgroup/cpuset/cpuset.cpus": "0-1\n",
                f"{group}/cpuset.cpus": "1\n",
                f"{group}/cpuset.effective_cpus": "1\n",
                f"{group}/cpuset.sched_load_balance": "0\n",
            },
        )
    )


ONE = CpuSet((1,))


def test_one_cpu_inside_and_one_outside_leave_a_run_two_cpus(tmp_path: Path) -> None:
    root = one_of_two(tmp_path / "1")
    both = room(root, host(CpuSet((0,)), 2))
    assert both == CpuBudget(2, ONE, reduced=False, split=True)
    assert (both.cpus_for("auto"), both.cpus_for("none"), both.walled) == (2, 1, True)
    assert room(root, host(CpuSet((0,)), 2), may_place=False) == CpuBudget(1, ONE, reduced=True)
    assert room(root, host(CpuSet(), 2)) == CpuBudget(1, ONE, reduced=False)
    assert room(root, host(CpuSet((0, 2, 3)))) == CpuBudget(3, ONE, reduced=True)


def test_in_version_2_a_thread_alone_in_the_set_has_a_process_of_its_own(tmp_path: Path) -> None:
    one, two = one_of_two(tmp_path / "1"), tree(tmp_path / "2", "isolated")
    whole, divided = Placement("auto", 2, 3), Placement("auto", 0, 3, inside=("accumulator",))
    assert [in_processes(root, whole).processes for root in (one, two)] == [1, 1]
    assert [in_processes(root, divided).processes for root in (one, two)] == [1, 2]
    assert in_processes(HostRoot(tmp_path / "bare"), divided) == divided


@pytest.mark.parametrize(("workload", "inside"), [("ring", "accumulator"), ("ack", "receiver")])
def test_of_two_threads_the_receiving_one_is_inside(workload: WorkloadName, inside: str) -> None:
    two = host(CpuSet((0,)), 2)
    placement = resolve(MeasureRequest(workload=workload), two, CpuSet(), "/", within=ONE).placement
    assert (placement.producer, placement.accumulator, placement.journaller) == (0, 1, None)
    assert placement.inside == (inside,)
    assert ("The result includes the stalls of the" in placement.why) == (workload == "ring")
    assert "CPU 0 also runs all other tasks" in placement.why
    assert "only CPU 1 isolated from the scheduler" in placement.why
    assert placement.hot == (1,)


def test_the_plan_of_a_ring_on_both_sides_is_where_it_will_run(tmp_path: Path) -> None:
    one_of_two(tmp_path)
    planned = plan_on(LiveTree(tmp_path), host(CpuSet((0,)), 2), MeasureRequest(), CpuSet())
    assert [int(change.after) for change in planned.changes] == [0, 1]
    assert planned.text.endswith("to move threads to the isolated CPUs.")


def test_the_plan_of_a_run_that_must_stay_outside_names_the_cpu_outside_and_the_reason(tmp_path: Path) -> None:
    """A real-time thread on the only isolated CPU would leave no CPU to the measuring process."""
    one_of_two(tmp_path)
    request = MeasureRequest(workload="wakeup", sched_priority=20, lock="plain")
    topology = host(CpuSet((0,)), 2)
    planned = placed_on(LiveTree(tmp_path), topology, request, CpuSet())
    assert (planned.placement.sampler, planned.inside) == (0, None)
    with pytest.raises(HostError) as refusal:
        resolve(request, topology, CpuSet(), "/nowhere", within=ONE)
    assert planned.why_outside == refusal.value.message
    ordinary = placed_on(LiveTree(tmp_path), topology, MeasureRequest(workload="wakeup"), CpuSet())
    assert (ordinary.placement.sampler, ordinary.inside, ordinary.why_outside) == (1, ONE, "")
    free = placed_on(LiveTree(tmp_path), topology, MeasureRequest(workload="spin", placement="none"), CpuSet())
    assert (free.inside, free.why_outside) == (None, "")


@given(st.integers(2, 8), st.data())
def test_never_is_another_thread_inside_or_the_accumulator_outside(cpus: int, data: st.DataObject) -> None:
    one = data.draw(st.integers(0, cpus - 1))
    within = CpuSet((one,))
    spec = resolve(MeasureRequest(), host(CpuSet.of(range(cpus)) - within, cpus), CpuSet(), "/", within=within)
    assert spec.placement.accumulator == one
    assert one not in (spec.placement.producer, spec.placement.journaller)
    assert spec.placement.inside == ("accumulator",)
    assert one in spec.placement.hot


def test_a_wider_set_has_the_whole_ring_unless_a_producer_outside_was_asked_for() -> None:
    whole = resolve(MeasureRequest(), host(), CpuSet(), "/", within=HOT).placement
    assert (whole.producer, whole.accumulator, whole.inside) == (2, 3, ())
    split = resolve(MeasureRequest(producer_cpu=0), host(), CpuSet(), "/", within=HOT).placement
    assert split.producer == 0
    assert split.accumulator in HOT
    assert split.inside == ("accumulator",)


class Agent:
    """Hold what ``AgentConnection`` needs of a connection."""

    ended = False

    def __init__(self) -> None:
        self.said: list[object] = []

    def place(self, pid: int) -> str:
        self.said.append(pid)
        return "2-3"

    def place_threads(self, pid: int, tids: Sequence[int]) -> str:
        self.said.append((pid, tids))
        return "2-3"

    def close(self) -> None:
        self.said.append("closed")

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def test_placing_once_leaves_no_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent()
    monkeypatch.setattr(connection_module, "connect_to_agent", lambda **_: agent)
    assert place_once(4711) == HOT
    assert agent.said == [4711, "closed"]
    assert place_once(4711, (4712,)) == HOT
    assert agent.said[2:] == [(4711, (4712,)), "closed"]


def test_the_workshops_agent_connection_stays_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = [Agent()]
    monkeypatch.setattr(connection_module, "connect_to_agent", lambda **_: agents.pop())
    agent_connection = AgentConnection()
    assert (agent_connection.place(1), agent_connection.place(2)) == (HOT, HOT)


def test_no_password_is_asked_for_when_a_run_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def connect(ask: bool = True, **_: object) -> Agent:
        if ask:
            asked.append("password")
        raise asks_password()

    monkeypatch.setattr(connection_module, "connect_to_agent", connect)
    agent_connection = AgentConnection(ask=lambda start: asked.append("screen") or start())  # type: ignore[func-returns-value]
    with pytest.raises(HostError, match="asks for a password"):
        agent_connection.place(1)
    assert asked == []
