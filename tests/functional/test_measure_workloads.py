"""The other workloads through the command line: real, short runs, kept, shown and compared like those of the ring."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop import cli
from jitter_workshop.bench.workloads import LOOPBACK_DOWN
from jitter_workshop.model.spec import KINDS

pytestmark = [pytest.mark.host, pytest.mark.native]

TWO = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
QUICK = ("--duration", "0.3", "--wait", "60")


def measured(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert cli.main(["measure", *QUICK, "--json", *arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("workload", ["wakeup", pytest.param("ack", marks=TWO), "spin"])
def test_a_run_says_all_it_knows_and_why_it_does_not_know_the_rest(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, workload: str
) -> None:
    run = measured(capsys, "--workload", workload, "--label", workload)
    main = KINDS[workload].histogram
    assert run["histograms"][main]["count"] > 0
    for field in ("buckets", "sampled_s", "pause", "missed_wakeups", "blocked_publishes"):
        assert (run[field] is None) == (field in run["notes"]), field
    for name in ("producer", "accumulator", "journaller", "sampler"):
        assert (run["placement"][name] is None) == (f"placement.{name}" in run["notes"]), name
    stalls = run["stalls"]
    assert stalls["per_second_low"] <= stalls["per_second"] <= stalls["per_second_high"]
    # Charts, reports and comparisons take it like any other run.
    assert cli.main(["chart", workload]) == 0
    assert workload in capsys.readouterr().out
    for kind in ("percentiles", "ccdf", "histogram", *(["rates"] if workload == "spin" else [])):
        assert cli.main(["chart", workload, "--kind", kind]) == 0
        shown = capsys.readouterr().out
        assert any("\u2801" <= character <= "\u28ff" for character in shown), kind
        assert cli.main(["chart", workload, "--kind", kind, "-o", str(tmp_path / f"{kind}.svg")]) == 0
        assert (tmp_path / f"{kind}.svg").read_text(encoding="utf-8").startswith("<svg")
    if workload != "spin":
        assert cli.main(["chart", workload, "--kind", "rates"]) == 2
        assert "has no gaps by length" in capsys.readouterr().err
    assert cli.main(["compare", workload, workload, "--json"]) == 0
    capsys.readouterr()


@TWO
def test_workloads_are_not_compared_with_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    for workload in ("wakeup", "ack"):
        measured(capsys, "--workload", workload, "--label", workload)
    assert cli.main(["compare", "wakeup", "ack", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert not found["comparable"]
    assert "workload: wakeup against ack" in found["differences"]


def test_spin_sorts_its_gaps(capsys: pytest.CaptureFixture[str]) -> None:
    run = measured(capsys, "--workload", "spin", "--duty", "50", "--pause", "busy")
    assert (run["duty"], run["pause"]) == (50, "busy")
    assert len(run["buckets"]) == 26
    assert 0 < run["sampled_s"] < run["duration_s"]
    for bucket in run["buckets"]:
        assert bucket["per_hour"] == pytest.approx(bucket["count"] * 3_600 / run["sampled_s"])
    assert run["stalls"]["rated_s"] == run["sampled_s"]
    for rate in run["stalls"]["rates"]:
        assert rate["per_second"] == pytest.approx(rate["count"] / run["sampled_s"])


@TWO
def test_a_receivers_report_states_the_rate_over_its_threshold(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["measure", *QUICK, "--workload", "ack", "--interval-us", "200", "--threshold-us", "2000"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "a segment every 200 µs" in said
    assert "intervals over count per second" in said
    assert "over 2 ms" in said
    assert "(95 %)" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workload", "ack", "--threshold-us", "50"], "threshold of 'ack' must be above the interval"),
        (["--workload", "wakeup", "--interval-us", "1"], "the interval of wakeup must be from"),
        (["--workload", "spin", "--pause", "busy"], "duty below 100 %"),
    ],
)
def test_measure_refuses_invalid_options_for_a_workload(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert cli.main(["measure", *arguments]) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert told.out == ""


@TWO
def test_without_a_loopback_device_there_is_one_sentence() -> None:
    # A network namespace of its own begins with the device down.
    alone = ["unshare", "--map-root-user", "--net"]
    try:
        able = subprocess.run([*alone, "true"], capture_output=True, check=False, timeout=60).returncode == 0
    except OSError:
        able = False
    if not able:
        pytest.skip("no network namespaces for this user")
    command = [*alone, sys.executable, "-m", "jitter_workshop", "measure", "--workload", "ack", *QUICK]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert LOOPBACK_DOWN in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@TWO
def test_untouched_memory_costs_the_accumulator_a_fault_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    def faults_a_page(memory: str) -> float:
        run = measured(capsys, "--memory", memory, "--no-journaller")
        assert run["memory"] == memory
        # By what was sent: on a busy host that is far less than the interval allows.
        pages = run["histograms"]["accumulator_transit"]["count"] * 64 / os.sysconf("SC_PAGE_SIZE")
        return float(next(t["minor_faults"] for t in run["threads"] if t["name"] == "accumulator")) / pages

    assert faults_a_page("fresh") > 0.5
    assert faults_a_page("ready") < 0.1


@TWO
def test_a_huge_page_costs_one_fault_for_many_messages(capsys: pytest.CaptureFixture[str]) -> None:
    run = measured(capsys, "--memory", "huge", "--no-journaller")
    assert run["memory"] == "huge"
    # A page begins with the first message, and then with every 32,768th, however short the blocks are.
    sent = run["histograms"]["accumulator_transit"]["count"]
    if not run["huge_pages"] or "huge_pages" in run["notes"]:
        assert "pages were huge" in run["notes"]["huge_pages"]
        pytest.skip("this host gave no huge pages")
    faults = next(t["minor_faults"] for t in run["threads"] if t["name"] == "accumulator")
    ready = measured(capsys, "--memory", "ready", "--no-journaller")
    assert run["huge_pages"] == pytest.approx(sent / 32_768 + 0.5, abs=1)
    assert run["huge_pages"] <= faults < run["huge_pages"] + 10
    assert run["first_write_ns"] > 0
    assert ready["first_write_ns"] > 0
    assert ready["notes"]["huge_pages"].startswith("only a run with --memory huge")


@TWO
def test_the_kernel_counts_a_system_call_for_each_message_that_it_writes(capsys: pytest.CaptureFixture[str]) -> None:
    def calls_a_message(memory: str) -> float | None:
        run = measured(capsys, "--memory", memory, "--no-journaller")
        sent = run["histograms"]["accumulator_transit"]["count"]
        calls = next(t["write_calls"] for t in run["threads"] if t["name"] == "accumulator")
        return None if calls is None else float(calls) / sent

    found = calls_a_message("file")
    if found is None:
        pytest.skip("this kernel does not count the calls of a thread (CONFIG_TASK_IO_ACCOUNTING)")
    # The messages around a block have calls, too.
    assert 1.0 <= found < 1.5
    assert calls_a_message("ready") == 0.0


@contextmanager
def priority_changes(folder: Path) -> Iterator[Callable[[], str]]:
    """Give a reader of the trace of raised and lowered priorities since the last reading, in an instance of its own.

    Source: the tracepoint sched:sched_pi_setprio, which the kernel passes for each change by inheritance.
    """
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no instance of the trace can be made: {error}")
    try:
        switch = folder / "events/sched/sched_pi_setprio/enable"
        switch.write_text("1")

        def read() -> str:
            found = (folder / "trace").read_text()
            (folder / "trace").write_text("")
            return found

        yield read
        switch.write_text("0")
    finally:
        folder.rmdir()


def test_the_holder_of_a_lock_with_priority_inheritance_gets_the_priority_of_the_waiting_thread(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The length of the waits is for docs/effects.md: a busy hypervisor adds as many long ones to either run.
    instances = Path("/sys/kernel/tracing/instances")
    event = instances.parent / "events/sched/sched_pi_setprio"
    if os.geteuid() != 0 or not os.access(instances, os.W_OK) or not event.is_dir():
        pytest.skip("needs the right to use SCHED_FIFO, and tracefs mounted, with the event of a raised priority")
    with priority_changes(instances / f"jitter-test-{os.getpid()}") as changes:

        def raised(lock: str) -> int:
            run = measured(capsys, "--workload", "wakeup", "--sched", "fifo:20", "--lock", lock, "--duration", "2")
            assert run["lock"] == lock
            return len(re.findall(r"comm=lock-holder .*newprio=79\b", changes()))

        assert raised("plain") == 0
        assert raised("inherit") >= 10


def test_loads_from_far_memory_take_longer_than_from_near_memory(capsys: pytest.CaptureFixture[str]) -> None:
    def median(memory: str) -> int:
        run = measured(capsys, "--workload", "spin", "--memory", memory)
        found: int = run["histograms"]["spin_gap"]["percentiles"]["50"]
        return found

    assert median("far") > 1.5 * median("near")
