"""Test the text on a program's time, with a trace and with counters, for all widths and for hostile names."""

from __future__ import annotations

import dataclasses
import datetime
import json

import pytest

from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.evidence import FrequencySeen, Part
from jitter_workshop.model.program import (
    CpuSteal,
    FaultTimes,
    HoldUp,
    OwnCost,
    ProcessSeen,
    ProgramReport,
    Target,
    ThreadTimes,
    Throttled,
    Times,
    TimeTaken,
    Wait,
    Waker,
)
from jitter_workshop.presenter.runs import program as words
from jitter_workshop.presenter.runs.program import program_report_lines
from jitter_workshop.presenter.text.lines import written
from tests import reportschema

EVIL = "evil\x1b[2J\nforged"
CAUSES = (TimeTaken("task", EVIL, 3, 4_000_000, 2_000_000), TimeTaken("irq", "nic0", 1, 1_000, 1_000))
THREAD = ThreadTimes(
    tid=7,
    name=EVIL,
    began_ns=0,
    observed_ns=10_000_000_000,
    ran_ns=5_995_999_000,
    waited_ns=4_001_000,
    slept_ns=0,
    blocked_ns=4_000_000_000,
    unknown_ns=0,
    interrupted_ns=1_000,
    preempted=3,
    page_faults=2,
    causes=CAUSES,
    blocked_on=(Wait("futex", "futex", (Waker("task", EVIL), Waker("softirq", "NET_RX")), 5, 4_000_000_000, 2),),
    slept_in=(),
    unknown_in=(),
    slept_times=5,
    stolen_ns=(0, 12_000_000),
)
TRACED = ProgramReport(
    format_version=1,
    run=None,
    target=Target("command", EVIL, 7),
    evidence="trace",
    clock="mono",
    duration_ns=10_000_000_000,
    threshold_ns=1_000,
    stalls=3,
    lost_events=0,
    causes=CAUSES,
    worst=(HoldUp(5, 2_000_000, 1, EVIL, 7, (Part("task", EVIL, 2_000_000),)),),
    threads=(THREAD, dataclasses.replace(THREAD, tid=8)),
    all_threads=Times(20_000_000_000, 1, 2, 3, 4, 5, 6, 7),
    left_out=2,
    events=1_234,
    steal_ns=20_000_000,
    steal=(CpuSteal(1, 20_000_000),),
    faults=FaultTimes(1_500, 2, 3_000_000, 900, 600, 898_800),
    cost=OwnCost(40_000, 110, 25_000_000),
    throttled=Throttled(4, 200_000_000),
    frequencies=(FrequencySeen(1, 2, 800_000, 3_000_000),),
    exit_code=3,
    missing={"csd:csd_function_entry": "not here"},
    notes={"trace": "the kernel made more events than the trace has room for"},
)
NULL = dict.fromkeys(
    (
        *("slept_ns", "blocked_ns", "unknown_ns", "interrupted_ns"),
        *("causes", "blocked_on", "slept_in", "unknown_in", "stolen_ns"),
    )
)
COUNTED = dataclasses.replace(
    TRACED,
    evidence="counters",
    threads=(dataclasses.replace(THREAD, **NULL),),  # type: ignore[arg-type]
    notes={"trace": "it needs root's rights"},
    **dict.fromkeys(("threshold_ns", "stalls", "lost_events", "causes", "worst", "all_threads", "faults", "cost")),  # type: ignore[arg-type]
)


def text(report: ProgramReport, width: int = 100) -> str:
    return written(program_report_lines(report, width))


def test_where_the_time_went_is_told_with_names_and_wakers() -> None:
    said = text(TRACED)
    for part in (
        "Command evil [2J forged (pid 7)",
        "10 s observed · kernel trace, clock mono · 1,234 events, 0 lost",
        "The kernel made more events",
        "used up their CPU quota 4 times, stopped for 200 ms",
        "The kernel stopped the program's control groups during the observation.",
        "The hypervisor took 20 ms of CPU 1 (steal clock, in steps of 10 ms).",
        "1,500 page faults, 2 of which waited for a disk or memory, for 3 ms.",
        "The kernel asked CPU 1 for 0.80 to 3.00 GHz",
        "exit code 3",
        "all 4 threads",
        "task evil [2J forged ← softirq NET_RX",
        "1  2 ms at 5 ns",
    ):
        assert part in said, part


def sentence(report: ProgramReport) -> str:
    return " ".join(text(report).split())


def test_the_limits_of_the_time_that_a_hypervisor_took_are_told() -> None:
    said = sentence(dataclasses.replace(TRACED, threads=(THREAD,)))
    assert "That is at most 12 ms of the running time of thread 7." in said
    ours = dataclasses.replace(THREAD, stolen_ns=(8_000_000, 12_000_000))
    assert "That is 8 ms to 12 ms of the running time of thread 7." in sentence(
        dataclasses.replace(TRACED, threads=(ours,))
    )
    many = tuple(CpuSteal(cpu, 10_000_000) for cpu in range(9))
    said = sentence(dataclasses.replace(TRACED, steal_ns=90_000_000, steal=many))
    assert "took 90 ms of 9 CPUs" in said
    spared = dataclasses.replace(TRACED, threads=(dataclasses.replace(THREAD, stolen_ns=(0, 0)),))
    assert "This time is part of the threads' times." in sentence(spared)


def test_page_faults_and_the_traces_own_cost_are_told_as_far_as_they_are_known() -> None:
    said = sentence(TRACED)
    assert "about 899 µs in all, if each fault took 600 ns: the median of 900 faults" in said
    assert "40,000 events in the program's threads, of about 110 ns each (measured just before): 4.4 ms" in said
    assert "used 25 ms of CPU time" in said
    times = Times(20_000_000_000, ran_ns=44_000_000)
    assert "4.4 ms, 10.0 % of what they ran." in sentence(dataclasses.replace(TRACED, all_threads=times))
    few = dataclasses.replace(TRACED, faults=FaultTimes(3, 0, 0, 1, None, None), cost=OwnCost(5, None, 0))
    assert "3 page faults. The trace does not show when a fault ends" in sentence(few)
    assert "the time of an event could not be measured on this busy host" in sentence(few)


def test_without_a_trace_counters_and_the_needs_of_a_trace_are_told() -> None:
    said = text(COUNTED)
    assert "counters only, no kernel trace: it needs root's rights." in said
    assert "run this tool as root, or get sudo" in " ".join(said.split())
    assert "5.9" in said or "6 s" in said
    assert "WHO HAD" not in said


@pytest.mark.parametrize("report", [TRACED, COUNTED], ids=["traced", "counted"])
@pytest.mark.parametrize("width", [60, 80, 160])
def test_no_escape_comes_through_and_every_line_fits(report: ProgramReport, width: int) -> None:
    said = text(report, width)
    assert "\x1b" not in said
    assert max(map(len, said.splitlines())) <= width
    assert not any(line.startswith("forged") for line in said.splitlines())


@pytest.mark.parametrize("report", [TRACED, COUNTED], ids=["traced", "counted"])
def test_the_json_fits_its_schema_and_comes_back(report: ProgramReport) -> None:
    plain = json.loads(json.dumps(to_plain(report)))
    whole = json.loads(reportschema.PROGRAM.read_text(encoding="utf-8"))
    assert reportschema.problems(plain, whole, whole) == []
    assert from_plain(ProgramReport, plain) == report


def test_the_schema_that_is_handed_out_is_that_of_the_types() -> None:
    assert reportschema.PROGRAM.read_text(encoding="utf-8") == reportschema.program_text()


HELD_UP = HoldUp(5_000_000, 4_000_000, 1, EVIL, 7, (Part("task", EVIL, 3_000_000), Part("task", "sampler", 1_000_000)))


@pytest.mark.parametrize("width", [20, 40, 80, 160])
def test_a_hold_up_is_shown_with_its_causes_and_their_shares(width: int) -> None:
    line = words.holdup_line(1, HELD_UP, True, max(width, 60))
    assert line.plain.startswith("▸  1     4 ms at 5 ms     evil [2J forged  75 % task evil")
    page = list(words.holdup_page(HELD_UP, width))
    assert all(one.cell_len <= width for one in page)
    assert "\x1b" not in written(page)
    if width >= 80:
        assert "4 ms at 5 ms · evil [2J forged (7) on CPU 1" in page[0].plain
        # No thread of the program is one of this tool's own measured threads.
        assert "task sampler          1 ms  25 %" in page[-1].plain
        assert page[-2].plain.count("█") == 3 * page[-1].plain.count("█")


def test_a_program_without_long_waits_has_a_sentence_of_its_own() -> None:
    assert words.no_holdups(dataclasses.replace(TRACED, worst=())) == "No thread was held up for 1 µs or longer."
    assert "The kernel's trace shows them" in words.no_holdups(COUNTED)


def test_the_same_by_hand_names_the_process() -> None:
    assert any(line.startswith("perf sched timehist -p 7 ") for line in words.program_commands(TRACED))
    group = dataclasses.replace(TRACED, target=Target("cgroup", "/g", None))
    assert (words.program_commands(group), list(words.program_command_lines(group, 80))) == ((), [])


def test_processes_are_listed_with_name_user_cpu_and_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    now = datetime.datetime(2026, 3, 2, 12, tzinfo=datetime.UTC)
    assert words.begun_text("2026-03-02T09:30:00+00:00", now) == f"{now.astimezone().replace(hour=9, minute=30):%H:%M}"
    assert words.begun_text("2026-03-01T09:30:00+00:00", now) == "2026-03-01"
    assert words.begun_text("no time", now) == "–"
    found = [
        ProcessSeen(7, 1, EVIL, "root", 99.6, "2026-03-01T09:30:00+00:00"),
        ProcessSeen(1234, 2, "", "a\x1b[31mb", 0.2, ""),
    ]
    for numbered in (False, True):
        head, *rows = (line.plain for line in words.process_rows(found, 70, numbered))
        assert head.split() == ["process", "pid", "user", "CPU", "since"]
        for row, part in zip(rows, ("100 %  2026-03-01", "(no visible name)"), strict=True):
            assert part in row
            assert "\x1b" not in row
    written_by = "/opt/server\x1b[2J --port 1 " + "x" * 400
    found.append(ProcessSeen(9, 3, "python", "web", 1.0, "2026-03-01T09:30:00+00:00", written_by))
    for width in (80, 116):
        head, *rows = (line.plain for line in words.process_rows(found, width))
        assert head.split()[-1] == "command"
        assert rows[2][head.index("command") :].startswith("/opt/server [2J -")
        assert rows[2].endswith("x…" if width > 80 else "…")
        assert all(len(row) <= width for row in rows)
        assert "\x1b" not in "".join(rows)
    assert "command" not in words.process_rows(found, 50)[0].plain
    assert [one.pid for one in words.matching(found, "FORGED")] == [7]
    assert words.matching(found, "") == tuple(found)
