"""The agent's side of evidence on a made host: what is set up, handed over, refused and taken away."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.agent.tracing import capture, instances
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.trace import RECORD_BYTES, TraceEvent
from tests import agent_on_tree, hosttrees, tracedpages, tracedtree
from tests.madetrace import unpack
from tests.tracedtree import HOT, INSTANCES, TRACEFS
from tests.tuned_tree import Agent


@pytest.fixture
def process() -> Iterator[int]:
    """A process that sleeps until it is told to end."""
    sleeper = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    yield sleeper.pid
    sleeper.communicate()


def begin(agent: Agent, pid: int, /, **changed: Any) -> Any:
    asked = {"pid": pid, "tids": [pid], "cpus": HOT, "clock": "x86-tsc", "stacks": True, "buffer_kb": None}
    return agent.ask("evidence", do="begin", **(asked | changed))


def refusal(answer: Any) -> str:
    return str(answer["error"]["message"])


def handed(agent: Agent, told: dict[str, Any], names: list[str]) -> list[TraceEvent]:
    """The events of a reading; ``names`` grows by those that are new."""
    pieces = [agent.ask("evidence", do="piece", number=n)["data"] for n in range(told["pieces"])]
    whole = zlib.decompress(b"".join(base64.b64decode(piece) for piece in pieces))
    length = 4 + int.from_bytes(whole[:4], "little")
    names += json.loads(whole[4:length])
    assert (len(whole) - length) % RECORD_BYTES == 0
    return list(unpack(whole[length:], names))


def instance(root: Path, which: str) -> Path:
    (found,) = (root / INSTANCES).glob(f"*-{which}")
    return found


def says(path: Path) -> str:
    return path.read_text().strip()


def test_a_recorded_trace_is_handed_over(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    with Agent(tmp_path) as agent:
        info = begin(agent, process)
        assert info["clock"] == "x86-tsc"
        assert (info["cpus"], info["stacks"], info["buffer_kb"]) == ([0, 1], True, 8192)
        assert "sched:sched_switch" in info["enabled"]
        assert "irq_vectors:local_timer_exit" in info["enabled"]
        hot = instance(tmp_path, "hot")
        assert hot.name == f"jitter-workshop-{agent.pid}-hot"
        assert says(hot / "tracing_on") == "0"
        assert agent.ask("evidence", do="start") == {}
        assert says(hot / "tracing_on") == "1"
        names: list[str] = []
        told = agent.ask("evidence", do="read")
        assert says(hot / "tracing_on") == "0"
        events = handed(agent, told, names)
        recorded = tracedpages.recorded("linux-6.18")
        decoder = recorded.decoder([0, 1])
        expected = [e for cpu in (0, 1) for page in recorded.pages[cpu] for e in decoder.events(page, cpu)]
        assert events == sorted(expected, key=lambda event: event.ts)
        assert (told["lost"], told["lost_elsewhere"]) == ({}, {})
        # Names are told once in a capture.
        assert agent.ask("evidence", do="start") == {}
        again = agent.ask("evidence", do="read")
        known = len(names)
        assert handed(agent, again, names) == events
        assert len(names) == known
        assert agent.ask("evidence", do="end") == {}
        assert tracedtree.instances(tmp_path) == []


def test_a_trace_records_only_the_events_of_the_callers_cpus_and_threads(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    with Agent(tmp_path) as agent:
        begin(agent, process)
        hot, everywhere = instance(tmp_path, "hot"), instance(tmp_path, "all")

        def only(folder: Path, event: str) -> str:
            assert says(folder / f"events/{event}/enable") == "1"
            return says(folder / f"events/{event}/filter")

        assert says(hot / "tracing_cpumask") == "00000003"
        assert says(everywhere / "tracing_cpumask") == "0000000f"
        assert only(hot, "sched/sched_switch") == ""
        assert only(hot, "exceptions/page_fault_user") == f"common_pid == {process}"
        assert only(everywhere, "sched/sched_migrate_task") == f"pid == {process}"
        assert only(everywhere, "sched/sched_waking") == f"pid == {process}"
        assert only(everywhere, "ipi/ipi_send_cpu") == "cpu == 0 || cpu == 1"
        assert only(everywhere, "ipi/ipi_send_cpumask") == "cpumask & CPUS{0-1}"
        assert only(everywhere, "power/cpu_frequency") == "cpu_id == 0 || cpu_id == 1"
        assert says(hot / "events/sched/sched_switch/trigger") == (
            f"stacktrace if (prev_pid == {process}) && prev_state != 1"
        )
        assert says(hot / "events/sched/sched_waking/enable") == ""
        assert says(everywhere / "events/sched/sched_switch/enable") == ""
        assert says(hot / "per_cpu/cpu1/buffer_size_kb") == "8192"
        assert says(hot / "per_cpu/cpu2/buffer_size_kb") == "1410"
        assert (tmp_path / TRACEFS / "tracing_on").read_text() == "1\n"


def test_lost_events_are_counted_for_each_reading(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    with Agent(tmp_path) as agent:
        begin(agent, process)
        hot, everywhere = instance(tmp_path, "hot"), instance(tmp_path, "all")
        agent.ask("evidence", do="start")
        (hot / "per_cpu/cpu1/stats").write_text(tracedtree.STATS.format(1, 20, 300))
        (everywhere / "per_cpu/cpu3/stats").write_text(tracedtree.STATS.format(0, 0, 5))
        told = agent.ask("evidence", do="read")
        assert (told["lost"], told["lost_elsewhere"]) == ({"1": 321}, {"3": 5})
        agent.ask("evidence", do="start")
        (hot / "per_cpu/cpu1/stats").write_text(tracedtree.STATS.format(1, 20, 307))
        told = agent.ask("evidence", do="read")
        assert (told["lost"], told["lost_elsewhere"]) == ({"1": 7}, {})


def test_a_child_of_the_process_may_be_among_its_threads(tmp_path: Path, process: int) -> None:
    """As the accumulator is, where the host moves only whole processes."""
    tracedtree.make(tmp_path, process)
    child = subprocess.Popen(["sleep", "60"])
    status = "Name:\tx\nPPid:\t{}\nUid:\t{}\n"
    mine, others = "\t".join(["1000"] * 4), "\t".join(["1001"] * 4)
    try:
        with Agent(tmp_path) as agent:
            for parent, uids, why in ((1, mine, "does not belong to process"), (process, others, "is not yours")):
                hosttrees.write(tmp_path, {f"proc/{child.pid}/status": status.format(parent, uids)})
                assert why in refusal(begin(agent, process, tids=[process, child.pid]))
            hosttrees.write(tmp_path, {f"proc/{child.pid}/status": status.format(process, mine)})
            assert "enabled" in begin(agent, process, tids=[process, child.pid])
            assert agent.ask("evidence", do="start") == {}
            child.kill()
            child.wait()
            assert f"process {child.pid} has ended" in refusal(agent.ask("evidence", do="start"))
    finally:
        child.kill()
        child.wait()


def test_an_unread_trace_is_thrown_away_at_the_next_start(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    with Agent(tmp_path) as agent:
        begin(agent, process)
        trace = instance(tmp_path, "hot") / "trace"
        agent.ask("evidence", do="start")
        assert trace.read_text() == ""
        agent.ask("evidence", do="start")
        assert trace.read_text() == "\n"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"tids": [1]}, "thread 1 does not belong to process"),
        ({"tids": []}, "no thread is named"),
        ({"tids": list(range(65))}, "at most 64 numbers"),
        ({"tids": ["1"]}, "'tids' must be a whole number"),
        ({"pid": -1}, "'pid' must be a whole number"),
        ({"cpus": "7"}, "CPU 7 is not online"),
        ({"cpus": ""}, "no CPU is chosen as hot"),
        ({"cpus": "all"}, "must be a list"),
        ({"clock": "global"}, "'clock' must be x86-tsc or mono"),
        ({"clock": None}, "'clock' must be a text"),
        ({"buffer_kb": 10_000}, "'buffer_kb' must be a whole number from 0 to 8192"),
    ],
)
def test_an_invalid_request_for_a_trace_is_refused_and_makes_no_instance(
    tmp_path: Path, process: int, changed: dict[str, Any], why: str
) -> None:
    tracedtree.make(tmp_path, process)
    with Agent(tmp_path) as agent:
        assert why in refusal(begin(agent, process, **changed))
        assert "connection records no trace" in refusal(agent.ask("evidence", do="start"))
        assert "'do' must be begin" in refusal(agent.ask("evidence", do="look"))
        assert tracedtree.instances(tmp_path) == []
        assert begin(agent, process)["clock"] == "x86-tsc"


@pytest.mark.parametrize("uids", ["1001\t1001\t1001\t1001", "1000\t0\t0\t0", "0\t0\t0\t0"])
def test_a_process_of_another_user_is_refused(tmp_path: Path, process: int, uids: str) -> None:
    tracedtree.make(tmp_path, process, uids=uids)
    with Agent(tmp_path) as agent:
        assert refusal(begin(agent, process)) == f"process {process} is not yours"
        assert tracedtree.instances(tmp_path) == []


def test_the_order_of_steps_is_kept(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    with Agent(tmp_path) as agent:
        begin(agent, process)
        assert "already records a trace" in refusal(begin(agent, process))
        assert "is not recording now" in refusal(agent.ask("evidence", do="read"))
        agent.ask("evidence", do="start")
        told = agent.ask("evidence", do="read")
        assert "no piece with this number" in refusal(agent.ask("evidence", do="piece", number=told["pieces"]))
        assert agent.ask("evidence", do="end") == {}
        assert "connection records no trace" in refusal(agent.ask("evidence", do="end"))


def test_without_a_trace_or_its_clock_it_says_so(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    clock = tmp_path / TRACEFS / "trace_clock"
    with Agent(tmp_path) as agent:
        clock.write_text("local [global] mono\n")
        answer = begin(agent, process)["error"]
        assert "no clock 'x86-tsc' here" in answer["message"]
        assert answer["advice"] == "the trace has local, global, mono"
        clock.unlink()
        answer = begin(agent, process)["error"]
        assert "is not mounted" in answer["message"]
        assert answer["advice"] == "mount -t tracefs nodev /sys/kernel/tracing"
        _remove(tmp_path / TRACEFS)
        assert refusal(begin(agent, process)) == "this kernel has no trace (tracefs)"


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()


def test_an_instance_that_is_refused_leaves_nothing(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    (tmp_path / INSTANCES).rmdir()
    with Agent(tmp_path) as agent:
        assert "refuses to make a trace" in refusal(begin(agent, process))
        (tmp_path / INSTANCES).mkdir()
        (tmp_path / tracedtree.TEMPLATE / "trace_clock").unlink()
        assert "refuses 'x86-tsc'" in refusal(begin(agent, process))
        assert tracedtree.instances(tmp_path) == []


def test_an_old_kernel_lacks_events_and_says_which(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    for name in ("csd", "ipi", "irq_vectors", "exceptions"):
        _remove(tmp_path / TRACEFS / "events" / name)
    (tmp_path / tracedtree.TEMPLATE / "events/timer/tick_stop/enable").unlink()
    (tmp_path / "proc/sys/kernel/osrelease").write_text("5.10.0-1\n")
    (tmp_path / "proc/kallsyms").write_text("0000000000000000 T _text\n")
    with Agent(tmp_path) as agent:
        info = begin(agent, process)
        missing = info["missing"]
        assert "does not have the event" in missing["csd:csd_function_entry"]
        assert "which CPU sent an interrupt" in missing["ipi:ipi_send_cpu"]
        assert "only x86" in missing["irq_vectors:*"]
        assert "cannot show page faults" in missing["exceptions:page_fault_user"]
        assert "no longer there" in missing["timer:tick_stop"]
        assert "before Linux 5.18" in missing["stacks"]
        assert "kptr_restrict" in missing["/proc/kallsyms"]
        assert info["stacks"] is False
        assert not set(missing) & set(info["enabled"])
        agent.ask("evidence", do="start")
        events = handed(agent, agent.ask("evidence", do="read"), [])
        assert {e.name for e in events if e.kind == "timer_entry"} == {"?"}


def test_a_kernel_whose_form_is_not_known_is_refused(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    header = tmp_path / TRACEFS / "events/header_event"
    header.write_text(header.read_text().replace("5 bits", "7 bits"))
    with Agent(tmp_path) as agent:
        assert "a form that this tool does not know" in refusal(begin(agent, process))
        assert tracedtree.instances(tmp_path) == []


def test_an_event_of_another_form_is_missing_and_the_others_are_told(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    events = tmp_path / TRACEFS / "events"
    idle, switch = events / "power/cpu_idle/format", events / "sched/sched_switch/format"
    idle.write_text(idle.read_text().replace("u32 state", "u32 states"))
    with Agent(tmp_path) as agent:
        info = begin(agent, process)
        assert "no field 'state'" in info["missing"]["power:cpu_idle"]
        assert "power:cpu_idle" not in info["enabled"]
        agent.ask("evidence", do="start")
        kinds = {event.kind for event in handed(agent, agent.ask("evidence", do="read"), [])}
        assert "switch" in kinds
        assert "idle" not in kinds
        agent.ask("evidence", do="end")
        switch.write_text(switch.read_text().replace("next_pid", "next_tid"))
        assert "cannot show which thread runs" in refusal(begin(agent, process))
        assert tracedtree.instances(tmp_path) == []


def test_damaged_pages_end_a_reading_and_not_the_agent(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    with Agent(tmp_path) as agent:
        begin(agent, process)
        raw = instance(tmp_path, "hot") / "per_cpu/cpu1/trace_pipe_raw"
        whole = raw.read_bytes()
        agent.ask("evidence", do="start")
        raw.write_bytes(whole[:16] + b"\xff" * 100 + whole[116:])
        assert "damaged" in refusal(agent.ask("evidence", do="read"))
        raw.write_bytes(whole)
        assert agent.ask("evidence", do="start") == {}
        assert handed(agent, agent.ask("evidence", do="read"), [])


def test_a_process_that_ended_is_not_recorded_any_more(tmp_path: Path) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    tracedtree.make(tmp_path, sleeper.pid)
    with Agent(tmp_path) as agent:
        begin(agent, sleeper.pid)
        sleeper.communicate()
        assert "has ended" in refusal(agent.ask("evidence", do="start"))
        assert agent.ask("evidence", do="end") == {}


@pytest.mark.parametrize("how", ["disconnect", "bye", "term"])
def test_nothing_is_left_when_the_connection_ends(tmp_path: Path, process: int, how: str) -> None:
    tracedtree.make(tmp_path, process)
    with Agent(tmp_path) as agent:
        begin(agent, process)
        agent.ask("evidence", do="start")
        if how == "bye":
            agent.ask("bye")
        elif how == "term":
            agent.signal(signal.SIGTERM)
            agent.receive()
        assert agent.end() == 0
        assert tracedtree.instances(tmp_path) == []


def test_a_trace_of_another_program_keeps_its_names_of_tasks(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    written = tmp_path / "written"
    theirs = tmp_path / INSTANCES / "theirs"
    for events, reached in (("", True), ("sched:sched_switch\n", False)):
        theirs.mkdir(exist_ok=True)
        (theirs / "set_event").write_text(events)
        written.unlink(missing_ok=True)
        with Agent(tmp_path, f"log={written}") as agent:
            begin(agent, process)
        folder = f"/{INSTANCES}/jitter-workshop-{agent.pid}-hot"
        assert written.read_text().count(f"write {folder}/trace_options\n") == (5 if reached else 3)
        assert theirs.is_dir()


def test_the_buffer_is_bounded_by_memory_and_cpus(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    hosttrees.write(tmp_path, {"proc/meminfo": "MemTotal: 1000000 kB\nMemAvailable: 64000 kB\n"})
    with Agent(tmp_path) as agent:
        assert begin(agent, process)["buffer_kb"] == 2000
        agent.ask("evidence", do="end")
        assert begin(agent, process, buffer_kb=16)["buffer_kb"] == 16
        agent.ask("evidence", do="end")
        assert begin(agent, process, buffer_kb=0)["buffer_kb"] == capture.LEAST_KB


def test_names_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "MAX_NAMES", 4)
    names = capture.TaskNames()
    numbers = [names.number(f"name {n}") for n in range(10)]
    assert names.all == ["", "name 0", "name 1", "name 2", "?"]
    assert numbers == [1, 2, 3, 4, 4, 4, 4, 4, 4, 4]
    assert names.number("name 1") == 2


def test_a_container_with_its_own_numbers_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = agent_on_tree.HostWriter(Path("/"))
    monkeypatch.setattr(os, "readlink", lambda path: "pid:[4026532000]")
    assert instances.own_numbers(writer)
    monkeypatch.setattr(os, "readlink", lambda path: "pid:[4026531836]")
    assert not instances.own_numbers(writer)
    assert not instances.own_numbers(agent_on_tree.HostWriter(tmp_path))
    assert HostRoot(tmp_path).recorded


def follow(agent: Agent, *pids: Any) -> Any:
    return agent.ask("evidence", do="begin", pids=list(pids), cpus="0-3", clock="mono")


def read_away(root: Path) -> None:
    """Empty the buffers that were read, as the kernel does."""
    for raw in (root / INSTANCES).glob("*/per_cpu/*/trace_pipe_raw"):
        raw.write_bytes(b"")


def test_a_followed_program_is_recorded_with_all_that_may_hold_it_up(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    with Agent(tmp_path) as agent:
        info = follow(agent, process)
        assert (info["cpus"], info["stacks"], info["clock"]) == ([0, 1, 2, 3], False, "mono")
        assert {"sched:sched_process_fork", "syscalls:*"} <= info["missing"].keys()
        hot, own = instance(tmp_path, "hot"), instance(tmp_path, "all")
        for title in ("sched/sched_switch", "sched/sched_waking", "sched/sched_migrate_task"):
            assert says(hot / f"events/{title}/enable") == "1"
            assert says(hot / f"events/{title}/filter") == ""
        # Page faults are those of the program's own threads, and of all that they start.
        assert says(own / "events/exceptions/page_fault_user/enable") == "1"
        assert (
            says(own / "events/exceptions/page_fault_user/filter") == f"(common_pid == {process} || common_pid > 777)"
        )
        assert says(own / "set_event_pid") == ""
        assert says(hot / "events/exceptions/page_fault_user/enable") == ""
        assert says(hot / "set_event_pid") == ""
        assert says(hot / "events/sched/sched_switch/trigger") == ""


def test_drained_events_are_handed_over_in_their_order(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    with Agent(tmp_path) as agent:
        follow(agent, process)
        agent.ask("evidence", do="start")
        kept = [agent.ask("evidence", do="drain")]
        read_away(tmp_path)
        kept.append(agent.ask("evidence", do="drain"))
        assert kept[0] == kept[1]
        assert kept[0]["kept_bytes"] > 4_096
        assert kept[0]["ended"] is False
        events = handed(agent, agent.ask("evidence", do="read"), [])
        assert [event.ts for event in events] == sorted(event.ts for event in events)
        assert {event.kind for event in events} >= {"switch", "softirq_entry", "vector_entry"}
        recorded = tracedpages.recorded("linux-6.18")
        decoder = recorded.decoder([0, 1])
        known = {tuple(e[:4]) for cpu in (0, 1) for page in recorded.pages[cpu] for e in decoder.events(page, cpu)}
        assert {tuple(event[:4]) for event in events} <= known
        # The kept bytes belong to one recording.
        agent.ask("evidence", do="start")
        assert agent.ask("evidence", do="drain")["kept_bytes"] == 0


def test_where_thread_numbers_begin_again_the_faults_of_all_threads_are_recorded(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    with Agent(tmp_path) as agent:
        follow(agent, process)
        only = instance(tmp_path, "all") / "events/exceptions/page_fault_user/filter"
        agent.ask("evidence", do="start")
        agent.ask("evidence", do="drain")
        assert says(only).endswith("common_pid > 777)")
        (tmp_path / "proc/loadavg").write_text("0.00 0.00 0.00 1/100 12\n")
        agent.ask("evidence", do="drain")
        assert says(only) == "0"
        read_away(tmp_path)
        assert agent.ask("evidence", do="drain")["ended"] is False
        assert "pieces" in agent.ask("evidence", do="read")


@pytest.mark.parametrize("which", ["hot", "all"])
def test_a_recording_ends_where_events_found_no_room(tmp_path: Path, process: int, which: str) -> None:
    tracedtree.make(tmp_path, process)
    with Agent(tmp_path) as agent:
        follow(agent, process)
        agent.ask("evidence", do="start")
        (instance(tmp_path, which) / "per_cpu/cpu1/stats").write_text(tracedtree.STATS.format(0, 0, 9))
        assert agent.ask("evidence", do="drain")["ended"] is True
        assert says(instance(tmp_path, "hot") / "tracing_on") == says(instance(tmp_path, "all") / "tracing_on") == "0"
        read_away(tmp_path)
        assert agent.ask("evidence", do="drain")["ended"] is True
        told = agent.ask("evidence", do="read")
        assert {"hot": told["lost"], "all": told["lost_elsewhere"]}[which] == {"1": 9}
        assert handed(agent, told, [])


def test_only_ones_own_processes_are_followed(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process, uids="1001\t1001\t1001\t1001")
    with Agent(tmp_path) as agent:
        assert refusal(follow(agent, process)) == f"process {process} is not yours"
        assert refusal(follow(agent, process, 4_000_000)) == f"process {process} is not yours"
        assert "cannot be opened" in refusal(follow(agent, 4_000_000))
        assert "no process is named" in refusal(follow(agent))
        assert "at most 256 numbers" in refusal(follow(agent, *range(257)))
        assert "'pids' must be a whole number" in refusal(follow(agent, "1"))
        assert tracedtree.instances(tmp_path) == []


def test_the_buffers_of_a_run_are_not_read_while_it_goes_on(tmp_path: Path, process: int) -> None:
    tracedtree.make(tmp_path, process)
    with Agent(tmp_path) as agent:
        begin(agent, process)
        agent.ask("evidence", do="start")
        assert "no program is traced" in refusal(agent.ask("evidence", do="drain"))
