"""Test the judgement of a cure against a hidden noise, with traces and without."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.errors import SessionError
from jitter_workshop.flow.chapters import cure
from jitter_workshop.flow.chapters.hunt import Hunt, past_hunts
from jitter_workshop.model.course import TREATED
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.evidence import Cause, EvidenceReport
from jitter_workshop.model.run import Counters, Run
from jitter_workshop.model.session import Weighed
from jitter_workshop.model.spec import Placement
from jitter_workshop.stats.comparison import STOLEN
from tests import fakes, madeup
from tests.fakenoise import Picks, Starts
from tests.fakes import FakeWorkshop, open_workshop

MS = 1_000_000


@pytest.fixture
def workshop(tmp_path: Path) -> FakeWorkshop:
    return open_workshop(course=fakes.hunt_course(tmp_path / "course"))


def run(ident: str, stolen_ns: float, cpu: int = 1) -> Run:
    made, _ = madeup.make_run(run_id=ident, label=ident, name="spin_gap", workload="spin")
    stalls = dataclasses.replace(made.stalls, stolen_ns_per_second=stolen_ns)
    return dataclasses.replace(made, stalls=stalls, placement=dataclasses.replace(made.placement, sampler=cpu))


def said(
    workshop: FakeWorkshop, quiet: float, beside: float, now: float, seen: Weighed | None = None, cpu: int = 1
) -> str:
    walk = workshop.walk("hunt")
    for slot, made in (
        ("measure", run("20260101-000000-aaaa", quiet)),
        ("again", run("20260101-000000-bbbb", beside)),
        (TREATED, run("20260101-000000-cccc", now, cpu)),
    ):
        walk.record(slot, made)
    weighed = {"20260101-000000-cccc": seen} if seen is not None else {}
    workshop.context.save_progress("hunt", dataclasses.replace(walk.progress, weighed=weighed))
    found = cure.view(walk)
    assert found is not None
    assert (STOLEN, quiet, beside, now) in found.rows
    return found.text


@pytest.mark.parametrize(
    ("quiet", "beside", "now", "verdict"),
    [
        (1 * MS, 21 * MS, 1 * MS, "of the noise's time is gone. There is only one run of each kind"),
        (1 * MS, 21 * MS, 0, "of the noise's time is gone. There is only one run of each kind"),
        (1 * MS, 21 * MS, 11 * MS, "of the noise's time is gone. There is only one run of each kind"),
        (1 * MS, 21 * MS, 20 * MS, "not help, or other tasks began. There is only one run of each kind"),
        (1 * MS, 21 * MS, 90 * MS, "not help, or other tasks began. There is only one run of each kind"),
        (10 * MS, 11 * MS, 1 * MS, "do not show whether the cure helped"),
        (10 * MS, 2 * MS, 1 * MS, "do not show whether the cure helped"),
        (0, 0, 0, "do not show whether the cure helped"),
    ],
)
def test_without_a_trace_by_the_time_stolen(
    workshop: FakeWorkshop, quiet: float, beside: float, now: float, verdict: str
) -> None:
    assert verdict in said(workshop, quiet, beside, now)


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (Weighed(25 * MS, 0), "The cure helped: in the traces the noise took 25 ms a second before"),
        (Weighed(25 * MS, 12 * MS), "The cure helped in part:"),
        (Weighed(25 * MS, 25 * MS), "The cure did not help:"),
    ],
)
def test_the_verdict_on_a_cure_follows_the_traces_and_not_the_time_of_others(
    workshop: FakeWorkshop, seen: Weighed, verdict: str
) -> None:
    # A host that became busier meanwhile does not hide a cure, nor a quieter one make one.
    for now in (1 * MS, 500 * MS):
        assert said(workshop, 1 * MS, 26 * MS, now, seen).startswith(verdict)


def test_a_cure_that_no_trace_shows_is_judged_by_the_stolen_time(workshop: FakeWorkshop) -> None:
    assert "100 % of the noise's time is gone" in said(workshop, 1 * MS, 26 * MS, 1 * MS, Weighed(0, 0))


UNTRACED = Counters("the agent ended with signal 9", 1, (), None)


def test_runs_with_and_without_a_trace_tell_nothing_of_a_cure(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("hunt")
    made = {"measure": run("20260101-000000-aaaa", 1), "again": run("20260101-000000-bbbb", 26 * MS)}
    made[TREATED] = dataclasses.replace(run("20260101-000000-cccc", 1), counters=UNTRACED)
    for slot, one in made.items():
        walk.record(slot, one)
    found = cure.view(walk)
    assert found is not None
    assert "No trace was made of '20260101-000000-cccc'" in found.text
    assert "(the agent ended with signal 9)" in found.text
    assert "do not show whether the cure helped" in found.text
    assert "is gone" not in found.text
    # If none has a trace, they are alike.
    for slot, one in made.items():
        walk.record(slot, dataclasses.replace(one, counters=UNTRACED))
    alike = cure.view(walk)
    assert alike is not None
    assert "100 % of the noise's time is gone" in alike.text


def test_another_cpu_is_another_cpu(workshop: FakeWorkshop) -> None:
    assert "CPU 3 may be quieter" in said(workshop, 1 * MS, 26 * MS, 1 * MS, cpu=3)


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_gone_means_that_there_was_something_and_hardly_is(beside: float, now: float) -> None:
    weighed = Weighed(beside, now)
    assert cure.gone(weighed) == (beside > 0 and now <= 0.1 * beside)
    assert cure.weighed([beside, now]) == weighed
    assert cure.weighed([beside, None]) is None
    assert cure.weighed([now]) is None


def test_there_is_no_view_before_all_three_runs(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("hunt")
    assert cure.view(walk) is None
    walk.record("measure", run("20260101-000000-aaaa", 1))
    walk.record("again", run("20260101-000000-bbbb", 1))
    assert cure.view(walk) is None


def test_the_run_with_a_cure_is_the_one_beside_the_noise_once_more(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("hunt")
    wanted = dataclasses.replace(walk.measuring.request("again"), label=cure.WITH_CURE)
    assert cure.request(walk) == wanted
    assert cure.request(walk, 2) == dataclasses.replace(wanted, cpu=2)
    assert cure.other_cpus(CpuSet((0, 1, 2)), run("20260101-000000-aaaa", 1, cpu=1)) == (0, 2)


def report(*causes: tuple[str, str, float]) -> EvidenceReport:
    made = tuple(Cause(kind, name, 1, 1, 1, per_second, 0) for kind, name, per_second in causes)
    return EvidenceReport(1, "r", "trace", 1_000, "mono", 1, 0, made, (), 1)


@pytest.mark.parametrize(
    ("kind", "took"),
    [("greedy", 25.0), ("faults", 25.0), ("timer", 29.0), ("softirq", 8.0), ("workqueue", 0.0), ("bandwidth", None)],
)
def test_the_time_of_a_noise_is_the_time_of_its_own_causes(kind: str, took: float | None) -> None:
    placement = Placement("auto", sampler=1, hot=(1,), housekeeping=(0,))
    with Hunt(placement, (0, 1), start=Starts(), picker=Picks(kind)) as hunt:
        found = report(
            ("task", "thief", 25.0),
            ("task", "somebody", 70.0),
            ("timer", "timerfd_tmrproc", 4.0),
            ("softirq", "NET_RX", 8.0),
            ("no_event", "", 99.0),
        )
        assert hunt.took(found) == took


def test_a_noise_that_is_kept_away_is_remembered_so(workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = run("20260101-000000-aaaa", 1), run("20260101-000000-bbbb", 1)
    reports = {first.id: report(("task", "thief", 25.0)), second.id: report(("task", "thief", 0.2))}
    monkeypatch.setattr(workshop.context.runs, "traced", lambda run: True)
    monkeypatch.setattr(workshop.context.runs, "causes", lambda run: reports[run.id])
    workshop.hunts.begin(workshop.walk("hunt"))
    workshop.hunts.weigh(first, second)
    assert workshop.walk("hunt").progress.weighed == {second.id: Weighed(25.0, 0.2)}
    workshop.hunts.answer("greedy")
    (outcome,) = workshop.walk("hunt").progress.hunts
    assert (outcome.named, outcome.stopped, outcome.cured) == (True, False, True)
    assert "(kept away, and named at" in past_hunts([outcome])


@pytest.mark.parametrize(("left", "cured"), [(0.2, True), (20.0, False)])
def test_a_cure_after_the_name_is_kept_with_the_outcome_and_ends_the_noise(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch, left: float, cured: bool
) -> None:
    first, second = run("20260101-000000-aaaa", 1), run("20260101-000000-bbbb", 1)
    reports = {first.id: report(("task", "thief", 25.0)), second.id: report(("task", "thief", left))}
    monkeypatch.setattr(workshop.context.runs, "traced", lambda run: True)
    monkeypatch.setattr(workshop.context.runs, "causes", lambda run: reports[run.id])
    workshop.hunts.begin(workshop.walk("hunt"))
    workshop.hunts.answer("greedy")
    workshop.hunts.weigh(first, second)
    (outcome,) = workshop.walk("hunt").progress.hunts
    assert (outcome.named, outcome.cured) == (True, cured)
    assert workshop.hunts.hiding is not cured
    assert workshop.starts.made[0].ended == cured


def test_the_verdict_of_the_traces_stays_when_the_session_is_opened_again(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.hunts.begin(workshop.walk("hunt"))
    _, beside, treated = made = (
        run("20260101-000000-aaaa", 40 * MS),
        run("20260101-000000-bbbb", 41 * MS),
        run("20260101-000000-cccc", 42 * MS),
    )
    for slot, one in zip(("measure", "again", TREATED), made, strict=True):
        workshop.context.handle.add_run(one, madeup.make_run()[1])
        workshop.walk("hunt").record(slot, one)
    reports = {beside.id: report(("task", "thief", 28.0 * MS)), treated.id: report()}
    monkeypatch.setattr(workshop.context.runs, "traced", lambda run: True)
    monkeypatch.setattr(workshop.context.runs, "causes", lambda run: reports[run.id])
    workshop.hunts.weigh(beside, treated)
    workshop.hunts.answer("greedy")
    reopened = open_workshop(session=workshop.context.session.name, course=Path(workshop.course.source))
    found = cure.view(reopened.walk("hunt"))
    assert found is not None
    assert found.text.startswith("The cure helped:")
    assert "28 ms a second before the cure and 0 ns now." in found.text
    # Another noise: what was weighed of the one before is not said of it.
    reopened.hunts.begin(reopened.walk("hunt"))
    assert reopened.walk("hunt").progress.weighed == {}


def test_a_damaged_trace_weighs_nothing(workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(run: Run) -> EvidenceReport:
        raise SessionError("the trace is damaged")

    monkeypatch.setattr(workshop.context.runs, "traced", lambda run: True)
    monkeypatch.setattr(workshop.context.runs, "causes", damaged)
    made = run("20260101-000000-aaaa", 1)
    workshop.hunts.begin(workshop.walk("hunt"))
    workshop.hunts.weigh(made, made)
    assert workshop.walk("hunt").progress.weighed == {}
    assert workshop.hunts.hunt is not None
    assert not workshop.hunts.hunt.cured


def traced(*causes: tuple[str, str, float]) -> EvidenceReport:
    """A report of one second with these times."""
    made = tuple(Cause(kind, name, 1, round(ns), 1, ns, 0) for kind, name, ns in causes)
    return EvidenceReport(1, "r", "trace", 1_000, "mono", 1, 0, made, (), 10**9)


def test_another_cause_that_came_in_is_named_with_both_times() -> None:
    beside = traced(("task", "thief", 25.0 * MS), ("no_event", "", 2.66 * MS), ("task", "cron", 1.0 * MS))
    treated = traced(("no_event", "", 12.9 * MS), ("task", "cron", 3.5 * MS))
    found = cure.came_in(beside, treated)
    assert found is not None
    assert (found.label.startswith("no event"), found.ns) == (True, (2.66 * MS, 12.9 * MS))
    # A cause that took less than twice as much, hardly more, or a small share did not come in.
    for ns in (5.0, 3.2):
        assert cure.came_in(beside, traced(("no_event", "", ns * MS), ("task", "cron", 1.1 * MS))) is None
    assert cure.came_in(beside, traced(("task", "cron", 1.9 * MS))) is None
    assert cure.came_in(beside, traced(("task", "thief", 26 * MS), ("task", "cron", 2.2 * MS))) is None
    # With the noise, which the cure did not touch, the new cause is named all the same.
    both = cure.came_in(beside, traced(("task", "thief", 26 * MS), ("task", "make", 9 * MS)))
    assert both is not None
    assert (both.label, both.ns) == ("task make", (0.0, 9.0 * MS))


def test_the_sentences_tell_the_time_now_and_the_other_cause(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = {
        "20260101-000000-bbbb": traced(("task", "thief", 25.7 * MS)),
        "20260101-000000-cccc": traced(("task", "make", 12.9 * MS)),
    }
    monkeypatch.setattr(workshop.context.runs, "known_causes", lambda run: reports.get(run.id))
    told = said(workshop, 6.93 * MS, 33.4 * MS, 17.7 * MS, Weighed(25.7 * MS, 0))
    assert told == (
        "The cure helped: in the traces the noise took 25.7 ms a second before the cure and 0 ns now. The time in "
        "stalls per second is 17.7 ms now. It was 6.93 ms without the noise and 33.4 ms with the noise. Another cause "
        "came in: task make, 0 ns → 12.9 ms a second."
    )
