"""Test the agent's trace instances that another program changed, that are left over, or that are too many."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jitter_workshop.agent.tracing import instances
from tests import hosttrees, tracedtree, tuned_tree
from tests.functional.test_agent_evidence import begin, instance, refusal
from tests.tracedtree import INSTANCES
from tests.tuned_tree import Agent

pytestmark = pytest.mark.host


@pytest.fixture
def process() -> Iterator[int]:
    """A process that sleeps until it is told to end."""
    sleeper = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    yield sleeper.pid
    sleeper.communicate()


@pytest.mark.parametrize(
    ("which", "file", "says", "why"),
    [
        ("hot", "tracing_on", "0", "the trace was switched off"),
        ("all", "tracing_on", "0", "the trace was switched off"),
        ("hot", "events/sched/sched_switch/enable", "0*", "events/sched/sched_switch/enable says '0*'"),
        ("all", "events/sched/sched_waking/enable", "0", "events/sched/sched_waking/enable says '0'"),
        ("hot", "events/irq/softirq_entry/filter", "vec == 99", "softirq_entry/filter was"),
        ("hot", "events/sched/sched_switch/trigger", "", "sched_switch/trigger was 'stacktrace"),
        ("hot", "set_event_pid", "1", "set_event_pid was '' and is now '1'"),
        ("hot", "trace_clock", "local [global]", "trace_clock was 'x86-tsc' and is now 'local [global]'"),
        ("all", "tracing_cpumask", "00000001", "tracing_cpumask was '0000000f' and is now '00000001'"),
        ("hot", "trace_options", "print-parent overwrite", "the option 'overwrite' is now on"),
        ("hot", "per_cpu/cpu1/stats", "entries: 3\nread events: 7", "read or deleted events"),
    ],
)
def test_a_trace_that_another_program_changed_is_not_handed_over(
    tmp_path: Path, process: int, which: str, file: str, says: str, why: str
) -> None:
    """A missing part would look like a CPU on which nothing ran."""
    tracedtree.make(tmp_path, process)
    with Agent(tmp_path) as agent:
        begin(agent, process)
        agent.ask("evidence", do="start")
        agent.ask("evidence", do="read")
        agent.ask("evidence", do="start")
        (instance(tmp_path, which) / file).write_text(f"{says}\n")
        words = refusal(agent.ask("evidence", do="read"))
        assert words.startswith("another program changed this tool's trace: ")
        assert why in words
        assert (instance(tmp_path, "hot") / "tracing_on").read_text() == "0\n"
        assert (instance(tmp_path, "all") / "tracing_on").read_text() == "0\n"
        assert agent.ask("evidence", do="end") == {}
        assert tracedtree.instances(tmp_path) == []


def test_a_trace_that_another_program_removed_is_not_handed_over(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    with Agent(tmp_path) as agent:
        begin(agent, process)
        agent.ask("evidence", do="start")
        shutil.rmtree(instance(tmp_path, "hot"))
        assert refusal(agent.ask("evidence", do="read")).endswith("changed this tool's trace: the trace is gone")
        assert agent.ask("evidence", do="end") == {}
        assert tracedtree.instances(tmp_path) == []


def test_only_the_instances_of_a_dead_agent_are_removed(tmp_path: Path, process: int) -> None:
    tuned_tree.make(tmp_path)
    tracedtree.make(tmp_path, process)
    ended = subprocess.Popen(["true"])
    ended.wait()
    hosttrees.write(tmp_path, {"proc/1/status": "Name:\tinit\n"})
    kept = ["jitter-workshop-1-hot", "jitter-workshop-x-hot", "jitter-workshop-7", "osnoise", f"mine-{ended.pid}-hot"]
    stale = [f"jitter-workshop-{ended.pid}-{which}" for which in ("hot", "all")]
    for name in (*kept, *stale):
        (tmp_path / INSTANCES / name).mkdir()
    with Agent(tmp_path) as agent:
        begin(agent, process)
        assert set(tracedtree.instances(tmp_path)) - set(kept) == {
            f"jitter-workshop-{agent.pid}-hot",
            f"jitter-workshop-{agent.pid}-all",
        }
        agent.ask("evidence", do="end")
        for name in stale:
            (tmp_path / INSTANCES / name).mkdir()
        given_back = agent.ask("restore")
        assert (given_back["restored"], given_back["left_alone"]) == ([], [])
        assert given_back["trace_instances_removed"] == sorted(stale)
    assert tracedtree.instances(tmp_path) == sorted(kept)


def test_a_number_that_is_used_again_is_told_by_its_start(tmp_path: Path, process: int) -> None:
    """Those of a process that has ended go, though another one has its number now; those of a living one stay."""
    tracedtree.make(tmp_path, process)
    stat = "7 (python) {} 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {} 0 0" + " 0" * 28 + "\n"
    hosttrees.write(tmp_path, {"proc/7/stat": stat.format("S", 500), "proc/8/stat": stat.format("Z", 600)})
    kept = ["7@500-hot", "7@-hot", "7@x-hot", "x@500-hot", "7@500", f"7@{'5' * 30}-hot", "7@500@600-hot"]
    stale = ["7@499-hot", "7@501-all", "8@600-hot", "9@500-hot"]
    for name in (*kept, *stale):
        (tmp_path / INSTANCES / f"jitter-workshop-{name}").mkdir()
    with Agent(tmp_path) as agent:
        own = {f"proc/{agent.pid}/stat": stat.format("S", 700).replace("7 (", f"{agent.pid} (", 1)}
        hosttrees.write(tmp_path, own)
        begin(agent, process)
        left = {name.removeprefix("jitter-workshop-") for name in tracedtree.instances(tmp_path)}
        assert left == {*kept, f"{agent.pid}@700-hot", f"{agent.pid}@700-all"}


def test_a_trace_instance_that_cannot_be_removed_is_told(tmp_path: Path, process: int) -> None:
    tuned_tree.make(tmp_path)
    tracedtree.make(tmp_path, process)
    (tmp_path / INSTANCES / "jitter-workshop-4000000@7-all").mkdir()
    (tmp_path / INSTANCES / "jitter-workshop-4000000@7-hot").write_text("a file cannot be removed as a folder is")
    with Agent(tmp_path) as agent:
        given_back = agent.ask("restore")
    assert given_back["trace_instances_removed"] == ["jitter-workshop-4000000@7-all"]
    (left,) = given_back["left_alone"]
    assert (left["tunable"], left["path"]) == ("trace", f"/{INSTANCES}/jitter-workshop-4000000@7-hot")
    assert "an ended run and cannot be removed: " in left["reason"]


def test_only_a_few_record_at_a_time(tmp_path: Path, process: int) -> None:
    """Each has memory of the kernel's for its buffers."""
    tracedtree.make(tmp_path, process)
    agents = [Agent(tmp_path) for _ in range(instances.MOST_PAIRS + 1)]
    try:
        for agent in agents:
            hosttrees.write(tmp_path, {f"proc/{agent.pid}/status": "Name:\tagent\n"})
        for agent in agents[:-1]:
            assert begin(agent, process)["clock"] == "x86-tsc"
        before = tracedtree.instances(tmp_path)
        words = refusal(begin(agents[-1], process))
        assert words.startswith("4 measurements already record")
        assert tracedtree.instances(tmp_path) == before
        agents[0].ask("evidence", do="end")
        assert begin(agents[-1], process)["clock"] == "x86-tsc"
    finally:
        for agent in agents:
            agent.end()
    assert tracedtree.instances(tmp_path) == []
