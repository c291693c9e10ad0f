"""Test the watch of a program by a made /proc and a made trace: what the sums decide, and what only the trace does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from jitter_workshop.errors import HostError
from jitter_workshop.flow.programs.targets import Found
from jitter_workshop.flow.reporting.perfetto import of_watch
from jitter_workshop.flow.watching import program
from jitter_workshop.flow.watching.log import Log, from_journal, start_of
from jitter_workshop.flow.watching.program import UNDECIDED, _Watcher
from jitter_workshop.flow.watching.tally import Tally, WatchSubject
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.evidence import Part
from jitter_workshop.model.program import Target
from jitter_workshop.model.trace import Strings, TraceEvent, TraceInfo, TraceRead, pack_events
from jitter_workshop.model.watch import READING, STEAL
from jitter_workshop.presenter.runs.watch import watch_page
from jitter_workshop.presenter.text.lines import written
from tests import hosttrees
from tests.perfettoread import read

PID, THIEF, MS = 4242, 77, 1_000_000
Events = Callable[[int], list[TraceEvent]]


class FakeFollower:
    """Give what ``events`` makes of the time of the read."""

    pid: int | None = None

    def __init__(self, events: Events = lambda now: [], whole_from: Callable[[int], int] = lambda now: 0) -> None:
        self.events, self.whole_from = events, whole_from
        self.said: list[str] = []

    def evidence_follow(self, pids: Sequence[int], cpus: str, clock: str, *, overwrite: bool = False) -> TraceInfo:
        assert overwrite
        self.said.append("follow")
        return TraceInfo(clock, (0, 1), (), {}, 64)

    def evidence_start(self) -> None:
        self.said.append("start")

    def evidence_read(self, since: int = 0) -> TraceRead:
        self.said.append("read")
        now, strings = time.monotonic_ns(), Strings()
        return TraceRead(pack_events(self.events(now), strings), tuple(strings.all), {}, {}, self.whole_from(now))

    def evidence_end(self) -> None:
        self.said.append("end")


def taken(began_ms: float, ended_ms: float | None, cpu: int = 0) -> Events:
    """The thief takes the CPU from ``began_ms`` before the read to ``ended_ms`` before it; None: it has it still."""

    def events(now: int) -> list[TraceEvent]:
        out = TraceEvent(now - round(began_ms * MS), cpu, "switch", PID, THIEF, 1, name="thief", other="victim")
        if ended_ms is None:
            return [out]
        back = now - round(ended_ms * MS)
        return [out, TraceEvent(back, cpu, "switch", THIEF, PID, 0, ord("S"), name="victim", other="thief")]

    return events


class Made:
    """A watched program of one thread, whose sums are set by hand."""

    def __init__(self, root: Path, folder: Path, follower: FakeFollower | None) -> None:
        self._root = root
        fields = " ".join(["R", "1", *["0"] * 17, "555", *["0"] * 30])
        hosttrees.write(
            root,
            {
                "sys/devices/system/cpu/online": "0-1\n",
                f"proc/{PID}/task/{PID}/stat": f"{PID} (victim) {fields}\n",
                f"proc/{PID}/stat": f"{PID} (victim) {fields}\n",
                f"proc/{PID}/status": "Name:\tvictim\n",
            },
        )
        self.waited(0, 1)
        self.log = Log(WatchSubject("id", "victim", pid=PID), Tally(2 * MS, 5), folder)
        found = Found(Target("process", "victim", PID), (PID,))
        self.watcher = _Watcher(HostRoot(root), found, self.log)

        def tracer() -> FakeFollower:
            if follower is None:
                raise HostError("it needs root's rights")
            return follower

        self.watcher.begin(tracer)

    def waited(self, ms: float, times: int) -> None:
        hosttrees.write(self._root, {f"proc/{PID}/task/{PID}/schedstat": f"1000 {round(ms * MS)} {times}\n"})

    def look(self, ms: float, times: int) -> None:
        time.sleep(0.02)
        self.waited(ms, times)
        self.watcher.look()


@pytest.fixture
def make(tmp_path: Path) -> Callable[[FakeFollower | None], Made]:
    folder = tmp_path / "watch"
    folder.mkdir()
    return lambda follower: Made(tmp_path / "tree", folder, follower)


def test_short_waits_are_not_looked_at(make: Callable[[FakeFollower | None], Made]) -> None:
    follower = FakeFollower()
    made = make(follower)
    made.look(1, 2)
    made.look(2.9, 4)
    assert follower.said == ["follow", "start"]
    assert made.log.report().stalls == 0
    assert made.log.tally.watched_ns > 40 * MS
    made.watcher.close()
    assert follower.said[-1] == "end"


def test_a_long_wait_is_named_by_the_trace(make: Callable[[FakeFollower | None], Made]) -> None:
    follower = FakeFollower(taken(8, 3))
    made = make(follower)
    made.look(5, 2)
    report = made.log.report()
    assert follower.said == ["follow", "start", "read", "start"]
    assert (report.stalls, report.named) == (1, 1)
    (kept,) = report.kept
    assert kept.parts == (Part("task", "thief", 5 * MS),)
    assert kept.duration_ns == 5 * MS
    assert kept.thread == f"victim ({PID})"
    assert report.not_watched_ns[READING] > 0
    assert [(cause.name, cause.total_ns) for cause in report.causes or ()] == [("thief", 5 * MS)]


def test_the_tracks_of_its_kept_stalls_have_their_parts(make: Callable[[FakeFollower | None], Made]) -> None:
    pytest.importorskip("perfetto", reason="the extra 'perfetto' is not installed")
    made = make(FakeFollower(taken(8, 3)))
    made.look(5, 2)
    made.look(10, 3)
    made.log.close()
    report = from_journal(made.log.folder)
    assert len(report.kept) == 2
    found = read(of_watch(made.log.folder, report))
    (track,) = found.group("Threads")[1:] or found.group("Threads")
    start = start_of(made.log.folder)
    for one in report.kept:
        low, high = start + one.at_ns, start + one.at_ns + one.duration_ns
        inside = [s for s in track.slices if s.args["state"] == "waiting" and low <= s.start < high]
        assert [(s.args["cause"], s.ns) for s in inside] == [(part.name, part.ns) for part in one.parts or ()]
    marks = [(one.start - start, one.args["ns"]) for one in found.marks("Worst stalls")]
    assert marks == [(one.at_ns, one.duration_ns) for one in report.kept]


def test_many_short_waits_are_no_stall(make: Callable[[FakeFollower | None], Made]) -> None:
    made = make(FakeFollower(taken(4, 3)))
    made.look(5, 60)
    report = made.log.report()
    assert (report.stalls, report.freezes, report.kept) == (0, 1, ())
    assert UNDECIDED not in report.not_watched_ns


def test_a_wait_that_a_freeze_cuts_is_counted_once(make: Callable[[FakeFollower | None], Made]) -> None:
    follower = FakeFollower(taken(6, None))
    made = make(follower)
    made.look(3, 2)
    (kept,) = made.log.report().kept
    assert any("at least this long" in note for note in kept.notes)

    def back(now: int) -> list[TraceEvent]:
        at = now - MS
        return [TraceEvent(at, 0, "switch", THIEF, PID, 0, ord("S"), name="victim", other="thief")]

    follower.events = back
    made.look(40, 3)
    assert made.log.report().stalls == 1


def test_without_a_trace_only_certain_stalls_are_counted(make: Callable[[FakeFollower | None], Made]) -> None:
    made = make(None)
    made.look(5, 2)
    report = made.log.report()
    assert (report.stalls, report.evidence, report.causes) == (1, "counters", None)
    assert report.kept[0].parts is None
    assert "root's rights" in report.kept[0].why_no_parts
    made.look(15, 60)
    report = made.log.report()
    assert report.stalls == 1
    assert report.not_watched_ns[UNDECIDED] >= 20 * MS


def test_a_wait_whose_events_are_gone_is_not_named(make: Callable[[FakeFollower | None], Made]) -> None:
    made = make(FakeFollower(taken(8, 3), whole_from=lambda now: now))
    made.look(5, 2)
    report = made.log.report()
    assert (report.stalls, report.named) == (1, 0)
    assert report.kept[0].parts is None


def test_steal_is_not_watched(make: Callable[[FakeFollower | None], Made], monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(FakeFollower())
    monkeypatch.setattr(program, "steal_between", lambda before, now: 10 * MS)
    made.look(0, 1)
    report = made.log.report()
    assert report.not_watched_ns[STEAL] == 10 * MS
    assert "10 ms taken by the hypervisor" in written(watch_page(report, 100))
    assert abs(report.watched_s + 0.01 - report.duration_s) < 0.01


def test_of_another_users_program_no_trace_is_asked_for(
    make: Callable[[FakeFollower | None], Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "not_ours", lambda root, found: "process 4242 (victim) belongs to root")
    follower = FakeFollower(taken(8, 3))
    made = make(follower)
    made.look(5, 1)
    report = made.log.report()
    assert follower.said == []
    assert (report.stalls, report.evidence) == (1, "counters")
    assert "belongs to root" in report.notes["trace"]


def test_a_thread_number_that_is_used_again_begins_anew(make: Callable[[FakeFollower | None], Made]) -> None:
    follower = FakeFollower()
    made = make(follower)
    made.look(1.5, 2)
    fields = " ".join(["R", "1", *["0"] * 17, "999", *["0"] * 30])
    hosttrees.write(made._root, {f"proc/{PID}/task/{PID}/stat": f"{PID} (victim) {fields}\n"})
    made.look(1.4, 2)
    assert "read" not in follower.said
    made.look(1.4 + 2.5, 3)
    assert "read" in follower.said


def test_a_kernel_without_the_sums_is_refused(tmp_path: Path, make: Callable[[FakeFollower | None], Made]) -> None:
    made = make(FakeFollower())
    (tmp_path / "tree" / f"proc/{PID}/task/{PID}/schedstat").unlink()
    with pytest.raises(HostError, match="does not count"):
        made.watcher.begin(lambda: FakeFollower())
