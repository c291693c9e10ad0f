"""A walk through the chapters with made-up measurements: everything else is the real thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jitter_workshop import paths
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import HostError, LessonError, SessionError, UsageError, WorkshopError
from jitter_workshop.flow.chapters import session_context
from jitter_workshop.flow.chapters.chapter_host import ChapterHost
from jitter_workshop.flow.chapters.guess import NOT_COMPARABLE
from jitter_workshop.flow.chapters.measuring import WITH_SETTINGS
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.host_ops import company, hotcpus
from jitter_workshop.flow.measuring import measure as measuring
from jitter_workshop.flow.measuring import placement_plan, run_length
from jitter_workshop.flow.measuring.curves import ORIGIN, published_curves
from jitter_workshop.flow.measuring.isolated_set import CpuBudget, room
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.measuring.unchanged import UNCHANGED
from jitter_workshop.host.cpu.topology import IsolatedCpus
from jitter_workshop.host.irq.irq_affinity import Irq
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Restored, RestoreResult
from jitter_workshop.model.course import Chapter, Company, StepName
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cpu, Topology
from jitter_workshop.model.run import ForeignLoad, Run, SilentObserver, ThreadRecord
from jitter_workshop.model.session import Guess
from jitter_workshop.model.spec import Placement
from jitter_workshop.stats.curve import curve_value_at
from tests import hosttrees, madeup

Trees = Callable[[str], Path]


def cpus(count: int) -> Topology:
    return Topology(
        tuple(Cpu(i, 0, i, 0, online=True, allowed=True, smt_siblings=CpuSet((i,))) for i in range(count)), ()
    )


@pytest.fixture
def workshop() -> Workshop:
    made = Workshop.open()
    made.context.topology = cpus(4)
    return made


def finish(
    workshop: Workshop,
    walk: ChapterWalk,
    slot: StepName,
    values: list[int] | None = None,
    *,
    complete: bool = True,
    moved: int | None = None,
    disturbed: tuple[ForeignLoad, ...] = (),
) -> Run:
    """Return what a measurement leaves behind: a stored run, recorded in its slot. ``moved``: the moves of its thread
    in one second, None if they were not counted. ``disturbed``: the tasks beside it."""
    number = len(workshop.context.runs.every())
    request = walk.measuring.request(slot)
    made, blocks = madeup.make_run(
        [values or [100] * 990 + [50_000] * 20],
        run_id=f"20260101-{number:06d}-aaaa",
        label=request.label,
        started_at=f"2026-01-01T00:00:{number:02d}.000Z",
        noise=request.noise,
        complete=complete,
    )
    mode = "none" if request.placement == "none" else "auto"
    made = replace(made, placement=Placement(mode, None, None, None, None, (), (), ""), disturbed=disturbed)
    if moved is not None:
        counted = ThreadRecord(
            made.main_thread, {"1": 1}, voluntary_switches=0, involuntary_switches=0, migrations=moved
        )
        made = replace(made, threads=(counted,), duration_s=1.0)
    workshop.context.handle.add_run(made, blocks)
    walk.record(slot, made)
    return made


def test_a_first_run_waits_until_a_restored_setting_is_in_effect(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes_s = 11.0
    chapter = workshop.course.chapter("workqueues")
    assert chapter is not None
    assert chapter.shows is not None
    slow = replace(chapter, shows=replace(chapter.shows, settle_s=takes_s))
    workshop.course = replace(workshop.course, chapters=(slow,))
    walk = workshop.walk("workqueues")
    assert walk.measuring.request("measure").settle_s == 0
    now = 100.0
    monkeypatch.setattr("jitter_workshop.flow.host_ops.change_log.time.monotonic", lambda: now)
    restored = Restored(walk.host.ids[0], "sys/one", "2", "1")
    workshop.context.agent_connection.change_log.restored(RestoreResult((restored,), (), False))
    now = 103.0
    asked = walk.measuring.request("measure")
    assert asked.settle_s == pytest.approx(takes_s - 3)
    assert "Its first 8 s are not measured" in run_length.run_length_sentences(run_length.outlook(asked, ()))
    assert walk.measuring.request("again").settle_s == 0
    now = 100.0 + takes_s
    assert walk.measuring.request("measure").settle_s == 0
    assert "not measured" not in run_length.run_length_sentences(
        run_length.outlook(walk.measuring.request("measure"), ())
    )


def test_the_whole_loop_of_pinning_and_resume(workshop: Workshop) -> None:
    walk = workshop.walk("pinning")
    assert walk.current == "look"
    assert walk.next() == "predict"
    walk.guess.predict(Guess(choice="none"))
    assert walk.next() == "measure"
    with pytest.raises(WorkshopError, match="the step 'diagnose' cannot begin yet"):
        walk.next()
    finish(workshop, walk, "measure")
    assert walk.comparison.view() is None
    assert walk.guess.outcome() is None
    assert [walk.next() for _ in range(3)] == ["diagnose", "apply", "again"]
    workshop.close()

    later = Workshop.open()
    later.context.topology = cpus(4)
    walk = later.walk("pinning")
    assert later.context.session.current_chapter == "pinning"
    assert walk.current == "again"
    finish(later, walk, "again")
    outcome = walk.guess.outcome()
    assert outcome is not None
    assert outcome.near is True
    assert [walk.next(), walk.next()] == ["compare", "explain"]
    compared = walk.comparison.view()
    assert compared is not None
    assert compared.relation == "changed"
    explained = walk.runs.explain()
    assert explained is not None
    assert explained.run.label == "pinned"
    first = walk.runs.explain("measure")
    assert first is not None
    assert first.run.label == "free"
    assert walk.next() is None
    entry = next(e for e in later.path() if e.chapter_id == "pinning")
    assert (entry.done, entry.setting, entry.curve, entry.guess) == (True, True, True, True)
    assert [c.label for c in walk.runs.curves()] == ["free", "pinned"]
    assert published_curves()[0].curve.origin == ORIGIN


def test_a_against_a_says_that_nothing_was_changed(workshop: Workshop) -> None:
    walk = workshop.walk("baseline")
    finish(workshop, walk, "measure")
    finish(workshop, walk, "again")
    compared = walk.comparison.view()
    assert compared is not None
    assert compared.relation == "alike"
    assert UNCHANGED in compared.headline


@pytest.mark.parametrize(("moved", "near"), [((0, 0), None), ((900, 0), False)])
def test_a_guess_that_a_latency_decides_is_not_judged_if_another_task_took_the_time(
    workshop: Workshop, moved: tuple[int, int], near: bool | None
) -> None:
    walk = workshop.walk("pinning")
    walk.guess.predict(Guess(choice="preempted"))
    finish(workshop, walk, "measure", [100] * 950 + [50_000] * 50, moved=moved[0])
    backup = (ForeignLoad(7, "backup", 1, 60.0),)
    finish(workshop, walk, "again", [100] * 990 + [10_000] * 10, moved=moved[1], disturbed=backup)
    outcome, answers = walk.guess.outcome(), walk.guess.answers()
    assert outcome is not None
    assert outcome.near is near
    assert (outcome.text == NOT_COMPARABLE) is (near is None)
    assert (answers is None) is (near is None)


def test_a_guess_about_two_runs_is_not_judged_if_they_cannot_be_compared(workshop: Workshop) -> None:
    walk = workshop.walk("ack-intervals")
    walk.guess.predict(Guess(choice="same"))
    finish(workshop, walk, "measure", moved=3)
    finish(workshop, walk, "again", moved=3)
    outcome = walk.guess.outcome()
    assert outcome is not None
    assert outcome.near is not None
    finish(workshop, walk, "again", moved=300)
    outcome = walk.guess.outcome()
    assert outcome is not None
    assert (outcome.near, outcome.text) == (None, NOT_COMPARABLE)
    compared = walk.comparison.view()
    assert compared is not None
    assert compared.reason is not None
    assert compared.reason.run == 1
    assert walk.measuring.can_repeat("again")
    # A guess about one run does not need the other one.
    walk = workshop.walk("baseline")
    walk.guess.predict(Guess(value_ns=60_000))
    finish(workshop, walk, "measure", moved=3)
    finish(workshop, walk, "again", moved=300)
    outcome = walk.guess.outcome()
    assert outcome is not None
    assert outcome.near is True


def test_a_guess_counts_only_before(workshop: Workshop) -> None:
    walk = workshop.walk("baseline")
    with pytest.raises(UsageError, match="between 1 ns and 60 s"):
        walk.guess.predict(Guess(value_ns=0))
    walk.guess.predict(Guess(value_ns=1_000))
    walk.guess.predict(Guess(value_ns=2_000))
    kept = walk.progress.prediction
    assert kept is not None
    assert (kept.value_ns, kept.percentile) == (2_000, "99.9")
    finish(workshop, walk, "measure")
    with pytest.raises(UsageError, match="already measured"):
        walk.guess.predict(Guess(value_ns=50_000))


def test_a_run_that_was_cut_short_fills_no_slot(workshop: Workshop) -> None:
    walk = workshop.walk("baseline")
    finish(workshop, walk, "measure", complete=False)
    assert walk.runs.run_in("measure") is None
    assert not walk.progress.marks
    assert len(workshop.context.runs.every()) == 1


def test_the_plan_names_every_thread_and_no_file(workshop: Workshop) -> None:
    walk = workshop.walk("pinning")
    plan = walk.plan()
    assert plan.host_files == 0
    assert [c.path for c in plan.changes] == [
        "sched_setaffinity(producer)",
        "sched_setaffinity(accumulator)",
        "sched_setaffinity(journaller)",
    ]
    assert {c.before for c in plan.changes} == {"any (0-3)"}
    assert len({c.after for c in plan.changes}) == 3
    assert workshop.walk("baseline").plan().changes == ()


def test_the_learner_may_pick_cpus_and_the_plan_follows(workshop: Workshop) -> None:
    walk = workshop.walk("pinning")
    walk.cpus.choose(3, 1, None)
    assert [c.after for c in walk.plan().changes][:2] == ["3", "1"]
    request = walk.measuring.request("again")
    assert (request.producer_cpu, request.accumulator_cpu) == (3, 1)
    assert walk.measuring.request("measure").producer_cpu is None
    for wrong in ((2, 2, None), (9, None, None), (0, 1, 64)):
        with pytest.raises(HostError):
            walk.cpus.choose(*wrong)
    assert [c.after for c in walk.plan().changes][:2] == ["3", "1"]
    walk.cpus.choose(None, None, None)
    assert walk.measuring.request("again").producer_cpu is None
    with pytest.raises(UsageError):
        workshop.walk("baseline").cpus.choose(1, 2, None)


def test_a_quiet_host_is_offered_a_thief(workshop: Workshop) -> None:
    walk = workshop.walk("baseline")
    assert walk.noise.offer() == ""
    finish(workshop, walk, "measure", [100] * 20_000)
    assert "thread on each CPU" in walk.noise.offer()
    walk.noise.switch()
    assert (walk.current, walk.runs.run_in("measure"), walk.noise.offer()) == ("measure", None, "")
    assert {walk.measuring.request(s).noise for s in ("measure", "again")} == {"spinners"}
    walk.noise.switch()
    assert walk.measuring.request("measure").noise is None
    loud = workshop.walk("baseline")
    finish(workshop, loud, "measure", [100] * 19_990 + [20_000] * 10)
    assert loud.noise.offer() == ""
    migration = workshop.walk("migration")
    finish(workshop, migration, "measure", [100] * 20_000)
    assert migration.noise.offer() == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("virtio4-input", "the noise's interrupt is number 34, virtio4-input. Lists of causes mark it with `*`."),
        ("virtio1-req.0", "the noise's interrupt is virtio1-req.0, and **it cannot be moved**."),
    ],
)
def test_the_page_of_the_guess_names_the_interrupt_of_the_load(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    irq = Irq(34, name, CpuSet((0, 1)))
    found = company.LoadIrqs((irq,), irq if name == "virtio4-input" else None)
    monkeypatch.setattr(company, "irqs_of_load", lambda *_, **_more: found)
    walk = workshop.walk("interrupts")
    monkeypatch.setattr(type(walk.host), "reason", "")
    assert said in walk.page("predict")
    assert "On this host** the load" not in walk.page("measure")
    assert f"{name})" in walk.noise.company(walk.measuring.request("measure"))
    walk.noise.switch()
    assert said not in walk.page("predict"), "the runs are made without the load"
    monkeypatch.setattr(company, "irqs_of_load", lambda *_, **_more: company.LoadIrqs())
    assert "the noise's interrupt is" not in workshop.walk("interrupts").page("predict")


def test_a_chapter_with_a_noise_of_its_own_can_be_measured_without_it(workshop: Workshop) -> None:
    walk = workshop.walk("pinning")
    assert walk.chapter.accompanied
    assert "busy host" in walk.noise.company(walk.measuring.request("measure"))
    assert "4 ms" in walk.noise.offer()
    finish(workshop, walk, "measure")
    walk.noise.switch()
    assert (walk.current, walk.runs.run_in("measure")) == ("measure", None)
    assert {walk.measuring.request(s).noise for s in ("measure", "again")} == {None}
    assert walk.noise.company(walk.measuring.request("again")) == ""
    assert "(unbound)" in walk.noise.offer()
    walk.noise.switch()
    assert {walk.measuring.request(s).noise for s in ("measure", "again")} == {"unbound"}
    # Company beside one of two runs is what that chapter compares: there is no choice to measure without it.
    migration = workshop.walk("migration")
    assert [migration.measuring.request(s).noise for s in ("measure", "again")] == [None, "unbound"]
    assert [bool(migration.noise.company(migration.measuring.request(s))) for s in ("measure", "again")] == [
        False,
        True,
    ]
    assert migration.noise.offer() == ""


PAIR: tuple[tuple[StepName, int], ...] = (("measure", 30), ("again", 4))


def test_the_runs_with_company_and_those_without_it_are_both_kept_and_told(workshop: Workshop) -> None:
    walk = workshop.walk("pinning")
    beside = [finish(workshop, walk, slot, moved=moved).id for slot, moved in PAIR]
    assert walk.noise.both_ways() == ""
    walk.noise.switch()
    assert (walk.current, walk.progress.runs, walk.progress.marks) == ("measure", {}, {})
    alone = [finish(workshop, walk, "measure", moved=2).id]
    assert walk.noise.both_ways() == "", "the second run is missing"
    finish(workshop, walk, "again")
    assert walk.noise.both_ways() == "", "this run does not have the figure"
    alone.append(finish(workshop, walk, "again", moved=1).id)
    told = "Threads moved to another CPU: 30 → 4 a second with the noise (unbound), 2 → 1 a second without the noise."
    assert walk.noise.both_ways() == told
    assert "(unbound)" in walk.noise.offer()
    view = walk.comparison.view()
    assert view is not None
    assert view.headline.endswith(told)
    walk.noise.switch()
    assert walk.current == "compare"
    assert [walk.progress.runs[slot] for slot in ("measure", "again")] == beside
    assert [walk.progress.other_runs[slot] for slot in ("measure", "again")] == alone
    assert walk.progress.marks["curve"]
    assert walk.noise.both_ways() == told, "the order does not depend on what is shown"
    walk._save(replace(walk.progress, other_runs={**walk.progress.other_runs, "again": "20260101-999999-aaaa"}))
    assert walk.noise.both_ways() == "", "a run was removed from the session"


def test_the_first_run_without_company_is_not_made_with_the_settings(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = workshop.walk("isolation")
    for name, value in (("reason", ""), ("rehearsed", False), ("applied", True), ("state", "good")):
        monkeypatch.setattr(ChapterHost, name, property(lambda _, value=value: value))
    assert walk.measuring.too_early("measure")
    assert WITH_SETTINGS in walk.measuring.warning("measure")
    assert not walk.measuring.too_early("again")
    assert WITH_SETTINGS not in walk.measuring.warning("again")
    finish(workshop, walk, "measure")
    assert not walk.measuring.too_early("measure")


def beside_faults(chapter: Chapter) -> Chapter:
    """The chapter beside a load that runs on the measured CPU itself."""
    runs = tuple(replace(one, noise="faults") for one in chapter.measurements)
    return replace(chapter, company=Company("faults", "a program that takes memory"), measurements=runs)


def test_a_load_that_cannot_reach_the_isolated_cpu_is_told_before_the_run(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chapter whose load runs on the measured CPU, while the chapter on isolation has left CPU 1 isolated."""
    chapters = tuple(beside_faults(one) if one.id == "workqueues" else one for one in workshop.course.chapters)
    workshop.course = replace(workshop.course, chapters=chapters)
    walk = workshop.walk("workqueues")
    monkeypatch.setattr(ChapterHost, "reason", property(lambda _: ""))
    monkeypatch.setattr(ChapterHost, "rehearsed", property(lambda _: False))
    monkeypatch.setattr(ChapterHost, "state", property(lambda _: "good"))
    workshop.context.topology = cpus(2)
    assert walk.measuring.warning("measure") == ""
    two = cpus(2)
    workshop.context.topology = replace(two, cpus=tuple(replace(cpu, allowed=cpu.id == 0) for cpu in two.cpus))
    workshop.context._room = CpuBudget(1, CpuSet((1,)), reduced=True)
    monkeypatch.setattr(placement_plan, "own_cpus", lambda _: CpuSet((1,)))
    told = walk.measuring.warning("measure")
    assert "cannot reach CPU 1, because" in told
    assert "(restore, on the home page) or" in told
    assert walk.measuring.warning("look") == ""
    # The tasks of chapter 5 go where the scheduler puts them: isolation is the cure for them, and no obstacle.
    assert "isolated" not in workshop.walk("isolation").measuring.warning("measure")
    walk.noise.switch()
    assert walk.measuring.warning("measure") == ""


@pytest.mark.parametrize("chapter", ["isolation", "interrupts", "workqueues"])
@pytest.mark.parametrize(
    ("before", "now"), [(CpuSet((1,)), CpuSet((1,))), (CpuSet((1,)), CpuSet()), (CpuSet(), CpuSet((1,)))]
)
def test_the_picture_of_the_cpus_is_where_the_run_will_be(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, chapter: str, before: CpuSet, now: CpuSet
) -> None:
    """One CPU of two is isolated: by this workshop, or by another one that began or ended after this one had opened."""

    def two(isolated: CpuSet) -> Topology:
        return Topology(tuple(replace(cpu, allowed=cpu.id not in isolated) for cpu in cpus(2).cpus), ())

    monkeypatch.setattr(ChapterHost, "reason", property(lambda _: ""))
    monkeypatch.setattr(ChapterHost, "rehearsed", property(lambda _: False))
    monkeypatch.setattr(session_context, "usable_cpus", lambda _: (CpuSet((0, 1)) - now, now))
    for module in (hotcpus, measuring):
        monkeypatch.setattr(module, "read_isolation", lambda _: IsolatedCpus(None, now, None))
    for module in (placement_plan, measuring):
        monkeypatch.setattr(module, "own_cpus", lambda _: now)
    host = replace(workshop.context.host, isolated=now.cpus)
    workshop.context.topology, workshop.context.host = two(before), replace(host, isolated=before.cpus)
    workshop.context.look = lambda _: (two(now), host)
    workshop.context._usable = CpuSet((0, 1)) - before, before
    walk = workshop.walk(chapter)
    view = walk.cpus.view()
    assert view.hot == CpuSet((1,))
    assert view.threads == (("sampler", 1),)
    places = measuring.ChosenCpus(
        walk.measuring.request("again"), workshop.context.root, two(now), lambda pid, tids=(): now
    )
    found = places._inside or places._outside
    assert found is not None
    assert (places._inside is not None) == bool(now)
    assert found.placement.sampler == view.threads[0][1]
    assert not workshop.context.look_if_moved()


def test_one_cpu_measures_the_clock_loop_instead(workshop: Workshop) -> None:
    workshop.context.topology = cpus(1)
    assert workshop.walk("baseline").measuring.request("measure").workload == "spin"
    with pytest.raises(HostError, match="cannot be measured here"):
        workshop.walk("pinning").measuring.request("measure")
    with pytest.raises(UsageError, match="measures nothing"):
        workshop.walk("baseline").measuring.request("plan")


def test_hints_come_one_by_one_and_are_remembered(workshop: Workshop) -> None:
    walk = workshop.walk("baseline")
    shown = []
    while (hint := walk.hint()) is not None:
        shown.append(hint)
    assert tuple(shown) == walk.chapter.hints
    assert workshop.walk("baseline").hint() is None


def test_back_and_restart(workshop: Workshop) -> None:
    walk = workshop.walk("baseline")
    assert walk.back() is None
    walk.next()
    assert walk.back() == "look"
    finish(workshop, walk, "measure")
    walk.restart()
    assert walk.runs.run_in("measure") is None
    assert len(workshop.context.runs.every()) == 1
    assert not next(e for e in workshop.path() if e.chapter_id == "baseline").started


def test_a_removed_run_leaves_its_slot(workshop: Workshop) -> None:
    walk = workshop.walk("pinning")
    made = finish(workshop, walk, "measure")
    workshop.close()
    folder = paths.sessions_dir() / workshop.context.session.id / "runs" / made.id
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    again = Workshop.open()
    assert again.walk("pinning").runs.run_in("measure") is None
    assert "measure first" in again.walk("pinning").blocked("apply")


def test_unknown_chapters_name_the_nearest(workshop: Workshop) -> None:
    with pytest.raises(UsageError, match="no chapter 'pining'") as caught:
        workshop.walk("pining")
    assert caught.value.advice == "did you mean 'pinning'?"
    with pytest.raises(UsageError) as other:
        workshop.walk("\x1b[2Jx")
    assert "\x1b" not in other.value.sentence()


def test_a_second_workshop_on_a_session_goes_on_without_storing(workshop: Workshop) -> None:
    second = Workshop.open()
    assert second.context.session.id == workshop.context.session.id
    assert any("open" in notice for notice in second.context.notices)
    walk = second.walk("baseline")
    assert walk.next() == "predict"
    assert second.walk("baseline").current == "predict"
    assert any("Your progress cannot be saved" in notice for notice in second.context.notices)
    walk.next()
    assert sum("Your progress cannot be saved" in notice for notice in second.context.notices) == 1
    second.close()
    assert workshop.walk("baseline").current == "look"


def test_a_run_that_could_not_be_stored_is_still_there(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = madeup.make_run()

    def measured(*_: object, **__: object) -> Run:
        raise measuring.RunNotKept("the disk is full", made)

    monkeypatch.setattr(measuring, "measure_run", measured)
    run = workshop.measure(MeasureRequest(), SilentObserver(), CancelToken())
    walk = workshop.walk("baseline")
    walk.record("measure", run)
    assert walk.runs.run_in("measure") == made
    assert workshop.context.runs.every() == (made,)
    assert [c.key for c in walk.runs.curves()] == [made.id]
    assert any("the disk is full" in notice for notice in workshop.context.notices)


def test_an_unwritable_state_folder_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocker = tmp_path / "a-file"
    blocker.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocker))
    with pytest.raises(SessionError) as caught:
        Workshop.open()
    assert "\n" not in caught.value.sentence()


def test_a_recorded_host_is_looked_at_only(host_tree: Trees) -> None:
    recorded = Workshop.open(root=host_tree("server64"))
    assert not any(e.here for e in recorded.path())
    assert all(e.rehearsed for e in recorded.path())
    following = recorded.next_chapter()
    assert following is not None
    assert following.chapter_id == "baseline"
    assert recorded.walk("baseline").host.look()
    with pytest.raises(HostError, match="nothing can be measured"):
        recorded.measure(MeasureRequest(), SilentObserver(), CancelToken())


def test_on_a_recording_the_curve_on_the_screen_judges_a_mark(host_tree: Trees) -> None:
    walk = Workshop.open(root=host_tree("server64")).walk("baseline")
    (shown,), _ = walk.runs.recorded_curves("measure")
    there = curve_value_at(shown.curve, 99.9)
    assert there is not None
    walk.go("predict")
    walk.guess.predict(Guess(value_ns=round(there * 20)))
    assert walk.guess.outcome() is None
    walk.guess.predict(Guess(value_ns=round(there * 1.1)))
    walk.go("measure")
    outcome = walk.guess.outcome()
    assert outcome is not None
    assert (outcome.near, outcome.measured_ns) == (True, there)
    assert f"'{shown.label}' had" in outcome.text
    with pytest.raises(UsageError, match="answered already"):
        walk.guess.predict(Guess(value_ns=1_000))


def test_a_course_of_ones_own_beats_the_built_in(tmp_path: Path) -> None:
    with pytest.raises(LessonError, match=r"course\.toml:1"):
        Workshop.open(course_dir=tmp_path)


def test_the_session_of_another_host_is_announced(workshop: Workshop) -> None:
    handle = workshop.context.handle
    handle._session = replace(handle.session, host="elsewhere")
    handle.save(handle.session)
    workshop.close()
    assert any("begun on elsewhere" in notice for notice in Workshop.open().context.notices)


def test_a_wall_between_two_cpus_leaves_one_to_a_run(workshop: Workshop) -> None:
    walk = workshop.walk("baseline")
    assert (walk.measuring.request("measure").workload, walk.measuring.warning("measure")) == ("ring", "")
    workshop.context._room = CpuBudget(1, CpuSet((1,)), reduced=True)
    assert walk.measuring.request("measure").workload == "spin"
    assert "While CPU 1 is isolated" in walk.measuring.warning("measure")
    assert "restore the isolation first" in workshop.walk("pinning").host.reason


def test_one_isolated_cpu_of_two_changes_no_workload_where_it_takes_single_threads(
    workshop: Workshop, tmp_path: Path
) -> None:
    group = "sys/fs/cgroup/cpuset/jitter-workshop-hot"
    files = {f"{group}/cpuset.cpus": "1\n", f"{group}/cpuset.sched_load_balance": "0\n"}
    files["proc/self/mountinfo"] = "30 20 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cpuset rw,cpuset\n"
    workshop.context._room = room(HostRoot(hosttrees.write(tmp_path / "host", files)), cpus(1))
    assert workshop.context._room == CpuBudget(2, CpuSet((1,)), reduced=False, split=True)
    walk = workshop.walk("coordinated-omission")
    for slot in ("measure", "again"):
        assert (walk.measuring.request(slot).workload, walk.measuring.request(slot).placement) == ("ring", "auto")
        assert "ring needs two" not in walk.measuring.warning(slot)
    # Threads that the scheduler may move are all outside, where they have one CPU.
    free = workshop.walk("baseline")
    assert (free.measuring.request("measure").workload, free.measuring.request("measure").placement) == ("spin", "none")
    assert "While CPU 1 is isolated" in free.measuring.warning("measure")
    assert "restore the isolation first" in workshop.walk("pinning").host.reason


def test_after_a_run_of_the_clock_loop_its_partner_is_one_too(workshop: Workshop) -> None:
    walk = workshop.walk("baseline")
    walk.guess.predict(Guess(value_ns=1_000))
    workshop.context._room = CpuBudget(1, CpuSet(), reduced=False)
    walk.record("measure", replace(finish(workshop, walk, "measure"), workload="spin"))
    workshop.context._room = CpuBudget(2, CpuSet(), reduced=False)
    assert walk.measuring.request("again").workload == "spin"
    assert walk.measuring.warning("again").startswith("The first run measured 'spin'")
    judged = walk.guess.outcome()
    assert judged is not None
    assert (judged.near, judged.text.endswith("is not judged.")) == (None, True)
