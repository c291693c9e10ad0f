"""Test the sums, the journal's page and the flight recorder of a watch, without a sampler."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.protocol import BlockDone
from jitter_workshop.errors import HostError, SessionError
from jitter_workshop.flow.reporting.perfetto import of_watch
from jitter_workshop.flow.watching import log as logs
from jitter_workshop.flow.watching.log import KILLED, Log, from_journal
from jitter_workshop.flow.watching.spinning import FlightRecorder, WatchLimits
from jitter_workshop.flow.watching.tally import MOST_CAUSES, OTHERS, Tally, WatchSubject, report_of_watch
from jitter_workshop.model.evidence import Part
from jitter_workshop.model.program import TimeTaken
from jitter_workshop.model.run import Clock, Stall, StallTotal
from jitter_workshop.model.spec import Placement, RunSpec
from jitter_workshop.model.text import clean
from jitter_workshop.model.trace import Strings, TraceEvent, TraceInfo, TraceRead, pack_events
from jitter_workshop.model.watch import BETWEEN, READING, SUSPENDED, KeptStall
from jitter_workshop.presenter.runs.watch import watch_page, watch_progress_line
from jitter_workshop.session.watches import read_journal
from tests import reportschema
from tests.perfettoread import read

AT = "2026-01-01T00:00:00.000Z"
EVIL = "evil\x1b[2J\nname"
SAMPLER, THIEF = 100, 200


def stall(ns: int, at_ns: int = 0, file: str | None = None) -> KeptStall:
    return KeptStall(at_ns, AT, ns, 1, "sampler", (Part("task", EVIL, ns),), file=file)


# -- sums --------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(20_000, 10**8), max_size=40), st.integers(1, 10))
def test_the_worst_stay_and_their_files_with_them(lengths: list[int], keep: int) -> None:
    tally = Tally(20_000, keep)
    files: set[str] = set()
    for number, ns in enumerate(lengths):
        files.add(f"{number}")
        files -= tally.add_kept([stall(ns, number, f"{number}")])
    assert [one.duration_ns for one in tally.kept] == sorted(lengths, reverse=True)[:keep]
    assert files == {one.file for one in tally.kept}


def test_rates_have_their_limits() -> None:
    tally = Tally(20_000, 3, watched_ns=12 * 3_600_000_000_000)
    tally.count_lengths([20_000, 99_999, 100_000, 5_000_000])
    rates = {rate.threshold_ns: rate for rate in tally.rates()}
    assert {ns: rate.count for ns, rate in rates.items()} == {20_000: 4, 100_000: 2, 1_000_000: 1}
    assert rates[20_000].per_hour == pytest.approx(4 / 12)
    empty = Tally(20_000, 3, watched_ns=3_600_000_000_000).rates()[0]
    # The rule of three: none was seen in an hour.
    assert (empty.per_hour, empty.per_hour_high) == (0.0, pytest.approx(2.996, abs=0.001))
    assert Tally(20_000, 3).rates()[0].per_hour_high is None


def test_after_a_storm_a_single_stall_is_read_again() -> None:
    tally = Tally(20_000, 1)
    tally.add_kept([stall(10**9)])
    for _ in range(1_000):
        tally.allowance.watched(500_000_000)
        tally.froze(200_000_000)
    assert not tally.may_read(50_000)
    assert tally.may_read(2 * 10**9)
    tally.allowance.watched(11_000_000_000)
    assert tally.may_read(50_000)


def test_causes_are_added_up_and_bounded() -> None:
    tally = Tally(20_000, 3)
    for _ in range(2):
        tally.add_causes([TimeTaken("task", "a", 1, 5, 5), TimeTaken("irq", "b", 2, 8, 7)])
    assert [(c.name, c.count, c.total_ns, c.worst_ns) for c in tally.causes()] == [("b", 4, 16, 7), ("a", 2, 10, 5)]
    tally.add_causes(TimeTaken("task", f"t{number}", 1, 1, 1) for number in range(2 * MOST_CAUSES))
    assert len(tally.causes()) == MOST_CAUSES + 1
    assert OTHERS in {(one.kind, one.name) for one in tally.causes()}


def test_the_schemas_that_are_handed_out_are_those_of_the_types() -> None:
    said = "the types changed: run 'python -m tests.reportschema'"
    assert reportschema.WATCH.read_text(encoding="utf-8") == reportschema.watch_text(), said
    assert reportschema.VERDICT.read_text(encoding="utf-8") == reportschema.verdict_text(), said


# -- the flight recorder -----------------------------------------------------------------------------------------------


class FakeTracer:
    """Give a thief's time from 10 to 60 µs of each block. ``overwritten``: until which tick events are gone."""

    def __init__(self, overwritten: int = 0, fails: str = "") -> None:
        self.said: list[str] = []
        self.overwritten, self.fails = overwritten, fails

    def evidence_begin(
        self,
        pid: int,
        tids: Sequence[int],
        cpus: str,
        clock: str,
        stacks: bool,
        buffer_kb: int | None = None,
        *,
        overwrite: bool = False,
    ) -> TraceInfo:
        assert overwrite
        self._say("begin")
        return TraceInfo(clock, (1,), (), {}, 64)

    def evidence_start(self) -> None:
        self._say("start")

    def evidence_read(self, since: int = 0) -> TraceRead:
        self._say("read")
        strings = Strings()
        events = [
            TraceEvent(10_000, 1, "switch", SAMPLER, THIEF, 1, name=EVIL, other="sampler"),
            TraceEvent(60_000, 1, "switch", THIEF, SAMPLER, 0, ord("S"), name="sampler", other=EVIL),
        ]
        return TraceRead(
            pack_events(events, strings), tuple(strings.all), {1: 5} if self.overwritten else {}, {}, self.overwritten
        )

    def evidence_end(self) -> None:
        self._say("end")

    def _say(self, word: str) -> None:
        self.said.append(word)
        if word == self.fails:
            raise HostError(f"the kernel refused {word}")


def block(start_ns: int, *stalls: tuple[int, int], length_ns: int = 1_000_000) -> BlockDone:
    """A block in which a tick is a ns, from tick 0 on."""
    return BlockDone(
        index=0,
        histograms={},
        threads=(),
        stalls=tuple(Stall(0, "sampler", 1, begin, end, 1) for begin, end in stalls),
        stall_totals=(StallTotal(20_000, len(stalls), sum(end - begin for begin, end in stalls)),),
        negative_deltas=0,
        start_ns=start_ns,
        end_ns=start_ns + length_ns,
        start_ticks=0,
        end_ticks=length_ns,
    )


def recorder(folder: Path, tracer: FakeTracer | None, limits: WatchLimits | None = None) -> tuple[FlightRecorder, Log]:
    log = Log(WatchSubject("id", "spin"), Tally(20_000, 2), folder)
    made = FlightRecorder(log, tracer, "it needs root's rights", limits or WatchLimits(), CancelToken())
    made.of(RunSpec("spin", Placement("chosen", sampler=1), 1, 1))
    made.begin(1, {"sampler": SAMPLER}, Clock("tsc", 1.0, 1, None, None, None))
    return made, log


def test_only_a_block_with_a_stall_is_read(tmp_path: Path) -> None:
    tracer = FakeTracer()
    made, log = recorder(tmp_path, tracer)
    now = time.monotonic_ns()
    for number in range(4):
        made.before_block()
        made.after_block(block(now + number * 2_000_000, *([(9_000, 61_000)] if number == 2 else [])))
    assert tracer.said == ["begin", "start", "read", "start"]
    report = log.report()
    assert (report.stalls, report.named, report.freezes) == (1, 1, 1)
    assert report.watched_s == 0.004
    assert sum(report.not_watched_ns.values()) == 3_000_000
    (kept,) = report.kept
    assert kept.parts is not None
    assert kept.parts[0] == Part("task", EVIL, 50_000)
    assert sum(part.ns for part in kept.parts) == kept.duration_ns == 52_000
    assert kept.at_ns == 4_009_000
    assert kept.file is not None
    assert (tmp_path / kept.file).is_file()
    made.leg_ends()
    assert tracer.said[-1] == "end"


def test_the_tracks_of_the_kept_stalls_have_the_sums_of_the_page(tmp_path: Path) -> None:
    pytest.importorskip("perfetto", reason="the extra 'perfetto' is not installed")
    made, log = recorder(tmp_path, FakeTracer())
    now = time.monotonic_ns()
    for number in range(3):
        made.before_block()
        # Of three stalls the two longest are kept; the third block's one is the shortest.
        made.after_block(block(now + number * 2_000_000, (9_000, 62_000 - 1_000 * number)))
    log.end("the end of its time", now + 6_000_000)
    log.close()
    report = from_journal(tmp_path)
    found = read(of_watch(tmp_path, report))
    causes: Counter[tuple[str, str]] = Counter()
    for one in report.kept:
        for part in one.parts or ():
            causes[part.kind, clean(part.name)] += part.ns
    assert found.sums("Stalls", "part") == causes
    marks = [(one.start - now, one.args["ns"]) for one in found.marks("Worst stalls")]
    assert marks == [(one.at_ns, one.duration_ns) for one in report.kept] == [(9_000, 53_000), (2_009_000, 52_000)]
    assert any("evil" in text for text in found.texts())
    assert all(text.isprintable() for text in found.texts())
    (tmp_path / str(report.kept[0].file)).write_bytes(b"no trace")
    with pytest.raises(SessionError, match="not a trace"):
        of_watch(tmp_path, report)
    for one in report.kept:
        (tmp_path / str(one.file)).unlink(missing_ok=True)
    with pytest.raises(SessionError, match="no frozen trace"):
        of_watch(tmp_path, report)
    outside = dataclasses.replace(report.kept[0], file="../journal.jsonl")
    with pytest.raises(SessionError, match="not the name of a frozen trace"):
        of_watch(tmp_path, dataclasses.replace(report, kept=(outside,)))


def test_a_stall_whose_events_were_overwritten_gets_no_cause(tmp_path: Path) -> None:
    made, log = recorder(tmp_path, FakeTracer(overwritten=50_000))
    made.before_block()
    made.after_block(block(time.monotonic_ns(), (9_000, 61_000)))
    report = log.report()
    assert (report.stalls, report.named) == (1, 0)
    assert report.kept[0].parts is None
    assert "overwritten" in report.kept[0].why_no_parts
    assert "named" in report.notes


@pytest.mark.parametrize(("tracer", "why"), [(None, "root's rights"), (FakeTracer(fails="begin"), "refused begin")])
def test_without_a_trace_stalls_are_counted(tmp_path: Path, tracer: FakeTracer | None, why: str) -> None:
    made, log = recorder(tmp_path, tracer)
    made.before_block()
    made.after_block(block(time.monotonic_ns(), (9_000, 61_000)))
    report = log.report()
    assert (report.stalls, report.evidence, report.causes) == (1, "counters", None)
    assert why in report.notes["trace"]
    assert why in report.kept[0].why_no_parts
    assert report.kept[0].parts is None


def test_a_trace_that_fails_meanwhile_is_told(tmp_path: Path) -> None:
    made, log = recorder(tmp_path, FakeTracer(fails="read"))
    now = time.monotonic_ns()
    for number in range(2):
        made.before_block()
        made.after_block(block(now + number * 2_000_000, (9_000, 61_000)))
    report = log.report()
    assert (report.stalls, report.named) == (2, 0)
    assert "refused read" in report.notes["trace"]


def test_time_that_was_not_watched_has_its_reason(tmp_path: Path) -> None:
    made, log = recorder(tmp_path, FakeTracer())
    now = time.monotonic_ns()
    made.before_block()
    made.after_block(block(now, (9_000, 61_000)))
    made.after_block(None)
    made.after_block(block(now + 10_000_000_000))
    lost = log.tally.not_watched
    assert lost[READING] > 0
    assert lost[SUSPENDED] + lost[READING] == 9_999_000_000
    assert lost[BETWEEN] == 0
    gaps = [entry for entry in read_journal(tmp_path) if entry["kind"] == "not_watched"]
    assert [(gap["at_ns"], gap["ns"]) for gap in gaps] == [(1_000_000, 9_999_000_000)]


def test_a_condition_ends_the_watch_when_enough_was_watched(tmp_path: Path) -> None:
    made, _ = recorder(tmp_path, FakeTracer(), WatchLimits(None, 2_000_000))
    now = time.monotonic_ns()
    made.after_block(block(now))
    assert not made.done
    made.after_block(block(now + 5_000_000))
    assert made.done


def test_a_short_watch_has_several_blocks() -> None:
    assert WatchLimits(8_000_000_000).block_ns() == 1_000_000_000
    assert WatchLimits(None, 1_000).block_ns() == 250_000_000
    assert WatchLimits().block_ns() == WatchLimits(10**15).block_ns() == 30_000_000_000


# -- the journal and the page ------------------------------------------------------------------------------------------


def test_a_journal_without_an_end_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    made, log = recorder(tmp_path, FakeTracer())
    now = time.monotonic_ns()
    for number in range(3):
        made.before_block()
        made.after_block(block(now + number * 2_000_000, (9_000, 61_000)))
    shown = from_journal(tmp_path)
    assert shown.ended_by == KILLED
    assert len(shown.kept) == 3
    assert "stalls" in shown.notes
    log.end("the end of its time", now + 6_000_000)
    log.close()
    shown = from_journal(tmp_path)
    assert (shown.ended_by, shown.stalls, shown.notes.get("stalls")) == ("the end of its time", 3, None)


def test_a_step_of_the_wall_clock_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, log = recorder(tmp_path, FakeTracer())
    made.after_block(block(time.monotonic_ns()))
    wall, slept = logs._offsets()
    monkeypatch.setattr(logs, "_offsets", lambda: (wall + 5_000_000_000, slept))
    log.tick()
    assert "5 s" in log.report().notes["clock_step"]
    monkeypatch.setattr(logs, "_offsets", lambda: (wall + 7_000_000_000, slept + 2_000_000_000))
    log.tick()
    assert "2 s" in log.report().notes["suspend"]


@pytest.mark.parametrize("width", [60, 100, 160])
def test_the_page(width: int) -> None:
    tally = Tally(20_000, 12, watched_ns=3_600_000_000_000)
    tally.not_watched[BETWEEN] = 20_000_000_000
    tally.count_lengths([50_000] * 12)
    tally.named = 12
    tally.add_causes([TimeTaken("task", EVIL, 12, 600_000, 50_000)])
    tally.add_kept([stall(50_000, number) for number in range(11)])
    unknown = KeptStall(1, AT, 40_000, 1, "sampler", None, why_no_parts="its events were overwritten")
    tally.add_kept([unknown])
    subject = WatchSubject(
        "id", "spin", cpu=1, started_s=1e9, duration_ns=3_620_000_000_000, ended_by="a signal (SIGINT)"
    )
    report = dataclasses.replace(report_of_watch(subject, tally), verdict="rejected", reason="12 stalls")
    lines = [line.plain for line in watch_page(report, width)]
    whole = "\n".join(lines)
    assert "\x1b" not in whole
    assert max(len(line) for line in lines) <= min(width, 100)
    for words in ("Watched 1 h", "20 s between blocks", "Rejected: 12 stalls", "SIGINT", "HOW OFTEN", "50 µs"):
        assert words in " ".join(whole.split())
    assert "worst 50 µs" in watch_progress_line(report)
