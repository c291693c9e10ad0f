"""Test the report of a run: it tells how the run was made."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.flow.measuring.notes import NO_NOISE
from jitter_workshop.flow.measuring.request import STAYS_THERE, MeasureRequest
from jitter_workshop.model.change import Change
from jitter_workshop.model.run import BurstTotal, Run, StallTotal
from jitter_workshop.presenter.runs import run as run_view
from jitter_workshop.presenter.runs.run import remark
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.stats.stalls import buckets, stalls_of_run
from tests import madecounted, madeup

OUTSIDE = "the isolated CPUs were not used: sudo asks for a \x1b[1mpassword"


def made(mode: str = "auto", **changed: object) -> Run:
    run, _ = madeup.make_run()
    return dataclasses.replace(run, placement=dataclasses.replace(run.placement, mode=mode), **changed)


RARE = stalls_of_run(500_000, [StallTotal(500_000, 2, 10**6), StallTotal(10**6, 0, 0)], [], 1.0)
NONE = stalls_of_run(500_000, [StallTotal(500_000, 0, 0)], [], 0.5)


def kept(run: Run, session: str, traced: bool, named: bool = False) -> str:
    return written(run_view.where_kept(run, session, traced, 80, named))


def flat(run: Run) -> str:
    return " ".join(written(run_view.run_result_lines(run, 80)).split())


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (made(notes={"isolation": OUTSIDE}), "note the isolated CPUs were not used: sudo asks for a [1mpassword"),
        (made(noise="stall", notes={"noise": "stopped on purpose"}), "note stopped on purpose"),
        (made(workload="spin", duty=50, notes={"duty": "busy for 5 ms"}), "note busy for 5 ms"),
        (made(workload="spin", duty=50), "busy 50 % of the time"),
        (made(noise="stall"), "with stall"),
        (
            made(noise="greedy", noise_bursts=BurstTotal(102, 50_300_000)),
            "noise greedy logged 102 bursts, 50.3 ms in all, from before the first block until after the last",
        ),
        (
            made(noise="migration", noise_bursts=BurstTotal(1, None)),
            "noise migration logged 1 burst, how much time it took",
        ),
        (made(noise="greedy", notes={"noise_bursts": "it gave\x1b[1m no log"}), "noise greedy: it gave [1m no log"),
        (made(memory="fresh"), "keeps messages in fresh memory"),
        (made(memory="huge"), "keeps messages in new huge pages"),
        (made(memory="huge", huge_pages=24), "keeps messages in fresh memory (24 huge pages)"),
        (made(memory="huge", huge_pages=0), "keeps messages in fresh memory (no huge page)"),
        (made(lock="inherit"), "takes a lock with priority inheritance"),
        (made(memory="file"), "writes messages to a file in memory"),
        (made(), "accumulator transit"),
        (made(transit_from=None), "accumulator hand-off"),
        (made(workload="spin", duty=50, pause="busy"), "samples 50 % of the time"),
        (made(workload="wakeup", interval_ns=1_000_000), "wakeup · placement auto · a wake-up every 1 ms"),
        (made(workload="wakeup", notes={"timer_slack": "slack of 1 ns"}), "note slack of 1 ns"),
        (made(workload="wakeup", missed_wakeups=12), "12 periods ended before the thread could sleep"),
        (made(workload="ack", blocked_publishes=3), "no room for a segment 3 times"),
        (made(workload="ack", stalls=RARE), "rate over 500 µs: 2 a second; the true rate is between 0.24 a second"),
        (made(workload="ack", stalls=RARE), "intervals over count per second time in them"),
        (made(workload="ring", stalls=RARE), "stalls over count per second time in stalls"),
        (made(workload="ack", stalls=NONE), "rate no stall over 500 µs in 500 ms: the true rate is below 5.99"),
        (made(workload="spin", buckets=buckets([0] * 26, 10**9), sampled_s=1.0), "(1 s sampled): none of 2 µs or more"),
        (
            made(workload="spin", duty=10, stalls=dataclasses.replace(RARE, rated_s=0.05)),
            "rates are for the 50 ms in which spin sampled, out of 500 ms",
        ),
        (
            made(workload="spin", buckets=buckets([5, *[0] * 24, 1], 36 * 10**11), sampled_s=3_600.0),
            "2 µs to 3 µs 5 100 ms and more 1",
        ),
    ],
)
def test_a_report_tells_facts_that_change_its_reading(run: Run, said: str) -> None:
    assert said in flat(run)


def test_a_report_does_not_tell_unasked_facts() -> None:
    text = flat(made(notes={"noise": NO_NOISE}))
    assert NO_NOISE not in text
    assert "busy" not in text


def test_a_kept_run_names_the_command_for_its_evidence() -> None:
    plain, traced = kept(made(), "monday", traced=False), kept(made(), "monday", traced=True)
    assert plain == "kept          as 20260101-000000-aaaa in session monday\n"
    assert traced.startswith(plain)
    said = " ".join(traced.removeprefix(plain).split())
    assert said.startswith("evidence this run has the kernel's trace")
    assert "'explain @1' shows what took the" in said
    assert "'explain @1 --session monday'" in " ".join(kept(made(), "monday", traced=True, named=True).split())
    assert "--session" not in kept(made(), "a 'b' $(c)", traced=True, named=True)
    counted, _ = madeup.make_run(**madecounted.fields())
    said = " ".join(kept(counted, "m", False).split())
    assert "has no trace; 'explain @1' shows" in said
    assert "shows its counters" in said


def test_deviations_from_the_request_are_told_at_once() -> None:
    assert remark(made()) == ""
    notes = {"suspended": "the run was suspended once", "isolation": OUTSIDE, "noise": NO_NOISE}
    said = "The isolated CPUs were not used: sudo asks for a [1mpassword."
    assert remark(made(notes=notes)) == f"The run was suspended once. {said}"
    # A run that asked for no CPUs did not ask for isolated ones.
    why = "no trace: the agent ended with signal 9"
    assert remark(made(notes={"evidence": why})) == f"{why.capitalize()}."
    assert remark(made("none", notes=notes)) == "The run was suspended once."


@pytest.mark.parametrize(
    ("workload", "tail", "said"),
    [
        (
            "spin",
            "99.9999",
            "stalls of 100 µs and more a second: ticks alone decide percentiles",
        ),
        ("spin", "50", "p50: half of all readings take longer"),
        ("spin", "99", "p99: 1 % of all readings take longer"),
        (
            "ring",
            "99.9",
            "p99.9: only 100 messages a second are slower. One stall of 1 ms delays 100, so one such stall a second "
            "can decide it",
        ),
        # A stall of 1 ms would delay too few of the messages.
        ("ring", "99", "p99: only 1,000 messages a second are slower. One stall of 10 ms delays 1,000, so one such"),
        ("wakeup", "99.9", "p99.9: one of the wake-ups each second takes longer"),
        ("ring", "50", "p50: half of all messages take longer"),
    ],
)
def test_why_a_run_is_judged_by_a_figure_follows_the_figure(workload: str, tail: str, said: str) -> None:
    assert run_view.judging_figure(workload, tail, 0).startswith(said)


def test_the_percentile_that_judges_is_named_with_its_clock_where_it_is_not_transit() -> None:
    said = "p99 from the due time: only 1,000 messages a second are slower"
    assert run_view.judging_figure("ring", "99", 0, from_due_time=True).startswith(said)
    lines = run_view.about_to_measure(MeasureRequest(), False, 120, asked="99", from_due_time=True)
    assert said in " ".join(line.plain for line in lines)


def test_a_run_names_its_cpus_and_a_second_run_refers_to_the_page_of_the_first() -> None:
    placed = (("producer", 2), ("accumulator", 3))
    request = MeasureRequest(evidence=True)
    lines = [line.plain for line in run_view.about_to_measure(request, False, 200, placed=placed)]
    assert "threads  producer on CPU 2, accumulator on CPU 3" in lines
    assert any(line.startswith("judged   by p99.9") for line in lines)
    again = [line.plain for line in run_view.about_to_measure(request, False, 200, placed=placed, repeats=True)]
    assert again[1:3] == lines[1:3]
    assert {"trace    as in the first run", "judged   as in the first run"} <= set(again)
    free = [line.plain for line in run_view.about_to_measure(MeasureRequest(placement="none"), False, 200)]
    assert "threads  wherever the scheduler puts them" in free


def test_a_run_with_a_lock_names_its_three_threads_and_why_an_isolated_cpu_is_not_used() -> None:
    request = MeasureRequest(workload="wakeup", sched_priority=20, lock="plain")
    why = "SCHED_FIFO on CPU 1 would leave no CPU to the rest"
    lines = run_view.about_to_measure(request, False, 200, placed=(("sleeper", 0),), why_outside=why)
    shown = [line.plain for line in lines]
    threads = "threads  sleeper, lock-holder and between on CPU 0"
    assert f"{threads}. The isolated CPUs are not used: {why}." in shown
    assert "noise    none beside the run's own threads" in shown
    assert threads in [line.plain for line in run_view.about_to_measure(request, False, 200, placed=(("sleeper", 0),))]
    free = run_view.about_to_measure(MeasureRequest(placement="none"), False, 200, why_outside=why)
    assert "threads  wherever the scheduler puts them" in [line.plain for line in free]


def test_the_write_before_a_run_is_told_with_both_values_and_its_end() -> None:
    path = "/proc/irq/34/smp_affinity_list"
    sent = Change(1, "irq-here", path, "0-1", "1", "runtime", "low", "", kind="cpu-list")
    lines = run_view.about_to_measure(MeasureRequest(workload="spin", noise="hwrng", arrival=sent), False, 200)
    said = " ".join(line.plain.strip() for line in lines)
    assert f"writes 1 to {path} (now 0-1), so that the noise's interrupt arrives on CPU 1. After the run it" in said
    assert said.count(STAYS_THERE) == 1
    assert "writes" not in " ".join(line.plain for line in run_view.about_to_measure(MeasureRequest(), False, 200))
