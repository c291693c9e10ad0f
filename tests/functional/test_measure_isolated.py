"""Measuring where this tool has isolated CPUs: the child is put there, or the run says why not (a scripted child)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from jitter_workshop import cli
from jitter_workshop.agent.client import no_sudo
from jitter_workshop.bench import launch
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import TURN_VARIABLE
from jitter_workshop.errors import HostError
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring import measure as measuring
from jitter_workshop.flow.measuring.isolated_set import NOTE
from jitter_workshop.flow.measuring.measure import measure_run
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cpu, Topology
from jitter_workshop.model.run import SilentObserver
from jitter_workshop.model.spec import WorkloadName
from jitter_workshop.session.store import SessionStore
from tests.ownturn import turn_of

pytestmark = pytest.mark.host

SPIN = MeasureRequest(workload="spin", duration_s=0.5)
HOT = CpuSet((7,))


@pytest.fixture(autouse=True)
def made_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight CPUs; CPU 7 is isolated by this tool, so this process may not use it. The child measures nothing."""
    cpus = tuple(Cpu(n, 0, n, 0, True, n != 7, CpuSet.of([n])) for n in range(8))
    real = launch.command
    monkeypatch.setenv(TURN_VARIABLE, turn_of(tmp_path))
    monkeypatch.setattr(launch, "command", lambda module, *arguments: real("scripted_worker", "ok"))
    monkeypatch.setattr(measuring, "read_topology", lambda root: Topology(cpus, ()))
    monkeypatch.setattr(measuring, "own_cpus", lambda root: HOT)
    monkeypatch.setattr(measuring, "in_processes", lambda root, placement: placement)


def run(request: MeasureRequest, place: Callable[..., CpuSet] | None) -> measuring.Run:
    return measure_run(request, None, SilentObserver(), CancelToken(), place=place)


def refuse(pid: int, tids: Sequence[int] = ()) -> CpuSet:
    raise no_sudo()


def test_the_child_is_put_on_the_isolated_cpus() -> None:
    placed: list[int] = []

    def place(pid: int) -> CpuSet:
        os.kill(pid, 0)
        placed.append(pid)
        return HOT

    made = run(SPIN, place)
    assert placed == [thread.tid for thread in made.threads]
    assert made.placement.sampler == 7
    assert "isolated from the scheduler" in made.placement.why
    assert NOTE not in made.notes


@pytest.mark.parametrize(
    ("request_", "place", "reason"),
    [
        (SPIN, None, "no agent can put the measuring process on these CPUs"),
        (SPIN, refuse, no_sudo().sentence()),
        (SPIN, lambda pid: CpuSet((6,)), "CPU 7 is no longer isolated"),
        (MeasureRequest(duration_s=0.5), refuse, no_sudo().sentence()),
        (MeasureRequest(duration_s=0.5, accumulator_cpu=2), refuse, "the accumulator cannot run on CPU 2"),
        (
            MeasureRequest(workload="spin", duration_s=0.5, cpu=3),
            refuse,
            "no measured thread can run on CPU 3, because only CPU 7 is isolated",
        ),
    ],
)
def test_a_run_outside_says_why(request_: MeasureRequest, place: Callable[..., CpuSet] | None, reason: str) -> None:
    made = run(request_, place)
    assert made.complete
    assert 7 not in (made.placement.sampler, made.placement.producer, made.placement.accumulator)
    assert made.notes[NOTE].startswith(f"the isolated CPUs were not used: {reason}")


@pytest.mark.parametrize("workload", ["ring", "ack"])
def test_of_two_threads_only_the_second_is_put_on_the_one_isolated_cpu(workload: WorkloadName) -> None:
    placed: list[tuple[int, tuple[int, ...]]] = []

    def place(pid: int, tids: Sequence[int] = ()) -> CpuSet:
        placed.append((pid, tuple(tids)))
        return HOT

    made = run(MeasureRequest(workload=workload, duration_s=0.5), place)
    assert placed == [(made.threads[0].tid, (made.threads[0].tid,))]
    assert made.placement.accumulator == 7
    assert made.placement.producer not in (7, None)
    assert made.placement.inside == ({"ring": "accumulator", "ack": "receiver"}[workload],)
    assert NOTE not in made.notes


def test_in_version_2_the_second_thread_is_put_there_as_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    placed: list[tuple[int, ...]] = []

    def place(pid: int, tids: Sequence[int] = ()) -> CpuSet:
        placed.append((pid, *tids))
        return HOT

    monkeypatch.setattr(measuring, "in_processes", lambda root, placement: dataclasses.replace(placement, processes=2))
    made = run(MeasureRequest(duration_s=0.5), place)
    assert placed == [(made.threads[0].tid,)]
    assert (made.placement.inside, made.placement.processes) == (("accumulator",), 2)
    assert NOTE not in made.notes


def test_where_neither_can_be_both_reasons_are_told() -> None:
    with pytest.raises(HostError) as caught:
        run(MeasureRequest(workload="spin", cpu=7), refuse)
    said = caught.value.sentence()
    assert said.startswith("CPU 7 is outside")
    assert "affinity mask or cgroup" in said
    assert "isolated CPUs were not used: " in said
    assert said.endswith(no_sudo().sentence())


def test_without_a_set_no_agent_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "own_cpus", lambda root: CpuSet())
    made = run(SPIN, lambda pid: pytest.fail("asked"))
    assert NOTE not in made.notes


def test_the_verb_places_by_a_short_connection(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jitter_workshop.flow.host_ops.agent_connection.place_once", lambda pid, tids=(): HOT)
    assert cli.main(["measure", "--workload", "spin", "--duration", "0.5", "--session", "s"]) == 0
    assert "CPU 7, which is isolated" in " ".join(capsys.readouterr().out.split())
    with SessionStore().open("s") as session:
        assert session.runs()[0].placement.sampler == 7


def test_the_workshop_places_by_its_own_agent_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = Workshop.open()
    try:
        monkeypatch.setattr(workshop.context.agent_connection, "place", lambda pid: HOT)
        made = workshop.measure(SPIN, SilentObserver(), CancelToken())
    finally:
        workshop.close()
    assert made.placement.sampler == 7
