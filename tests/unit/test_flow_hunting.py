"""A hunt of the workshop: where it is made, what its runs say of themselves, and that it ends."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import HostError, MeasureError, UsageError
from jitter_workshop.flow.chapters.course_summary import sum_up
from jitter_workshop.flow.chapters.hunt import (
    MOST_KEPT,
    NO_NAMED_NOISE,
    NO_NOISE_HIDDEN,
    NONE_HIDDEN,
    Hiding,
    Hunt,
    with_outcome,
)
from jitter_workshop.flow.measuring.comparing import relation, same_state
from jitter_workshop.flow.measuring.unchanged import UNCHANGED
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.run import HUNTED, Progress, Run, RunStarted
from jitter_workshop.model.session import ChapterProgress, HuntOutcome
from jitter_workshop.model.spec import Placement
from jitter_workshop.presenter.course import summary as summary_view
from jitter_workshop.presenter.runs.run import remark, run_result_lines
from jitter_workshop.presenter.text.lines import written
from tests import fakenoise, fakes
from tests.fakes import FakeWorkshop, open_workshop


class Blind:
    def started(self, event: RunStarted) -> None: ...

    def block_done(self, progress: Progress) -> None: ...


@pytest.fixture
def workshop(tmp_path: Path) -> FakeWorkshop:
    return open_workshop(course=fakes.hunt_course(tmp_path / "course"))


def measured(workshop: FakeWorkshop, slot: str) -> Run:
    walk = workshop.walk("hunt")
    run = workshop.measure(walk.measuring.request("measure" if slot == "measure" else "again"), Blind(), CancelToken())
    walk.record("measure" if slot == "measure" else "again", run)
    return run


def test_it_disturbs_the_cpu_that_the_chapters_runs_are_made_on(workshop: FakeWorkshop) -> None:
    assert workshop.hunts.hunt is None
    assert not workshop.hunts.hiding
    hunt = workshop.hunts.begin(workshop.walk("hunt"))
    assert workshop.hunts.hunt is hunt
    assert workshop.hunts.hiding
    assert hunt.suspects == workshop.hunts.suspects(workshop.walk("hunt"))
    (order,) = workshop.starts.orders
    assert order.hot == workshop.hunts._ground(workshop.walk("hunt"))[0].sampler
    workshop.hunts.end()
    workshop.hunts.end()
    assert workshop.hunts.hunt is None
    assert workshop.starts.made[0].ended == 1


def test_a_restore_by_another_terminal_is_seen_before_a_noise_is_hidden(workshop: FakeWorkshop) -> None:
    # The path was shown while CPU 1 was isolated; it is restored, and the path was not looked at since.
    context = workshop
    one_less = tuple(dataclasses.replace(cpu, allowed=cpu.id != 1) for cpu in fakes.FOUR_CPUS.cpus)
    straight_on, reached = workshop.hunts.suspects(workshop.walk("hunt")), workshop.hunts._ground(workshop.walk("hunt"))
    context.context.topology = dataclasses.replace(fakes.FOUR_CPUS, cpus=one_less)
    workshop.hunts.begin(workshop.walk("hunt"))
    (order,) = workshop.starts.orders
    assert order.hot == reached[0].sampler == 1
    context.context.topology = dataclasses.replace(fakes.FOUR_CPUS, cpus=one_less)
    assert workshop.hunts.suspects(workshop.walk("hunt")) == straight_on
    context.context.topology = dataclasses.replace(fakes.FOUR_CPUS, cpus=one_less)
    assert workshop.hunts.other_cpus(None) == (0, 1, 2, 3)


def test_runs_beside_it_say_so_and_count_as_no_equal_runs(workshop: FakeWorkshop) -> None:
    before = measured(workshop, "measure")
    assert HUNTED not in before.notes
    assert "hidden noise" not in remark(before) + written(run_result_lines(before, 80))
    workshop.hunts.begin(workshop.walk("hunt"))
    beside, again = measured(workshop, "again"), measured(workshop, "again")
    assert remark(beside) == "Measured while a hidden noise was running."
    assert "measured while a hidden noise" in written(run_result_lines(beside, 80))
    assert not same_state(before, beside)
    assert relation(before, beside) == "hunted"
    assert not same_state(beside, again)
    compared = workshop.walk("hunt").comparison.view()
    assert compared is not None
    assert UNCHANGED not in compared.headline
    workshop.hunts.end()
    after = measured(workshop, "again")
    assert HUNTED not in after.notes
    assert same_state(before, after)


def test_every_run_of_a_hunt_is_traced(workshop: FakeWorkshop) -> None:
    measured(workshop, "measure")
    assert workshop.asked is not None
    assert workshop.asked.evidence
    assert not workshop.asked.hunted


def test_a_noise_that_was_killed_marks_no_run_any_more(workshop: FakeWorkshop) -> None:
    hunt = workshop.hunts.begin(workshop.walk("hunt"))
    workshop.starts.made[0].death = MeasureError("killed")
    assert not workshop.hunts.hiding
    assert hunt.state == "stopped"
    assert HUNTED not in measured(workshop, "again").notes
    workshop.hunts.end()


def test_a_second_hunt_takes_the_place_of_the_first(workshop: FakeWorkshop) -> None:
    workshop.hidden = ("timer", "softirq")
    workshop.hunts.begin(workshop.walk("hunt"))
    first = workshop.starts.made[0]
    second = workshop.hunts.begin(workshop.walk("hunt"))
    assert first.ended == 1
    workshop.hunts.give_up()
    assert second.state == "answered"
    assert not workshop.hunts.hiding


@pytest.mark.parametrize("named", [False, True])
def test_closing_the_workshop_ends_it(workshop: FakeWorkshop, named: bool) -> None:
    workshop.hunts.begin(workshop.walk("hunt"))
    if named:
        workshop.hunts.answer("greedy")
        assert workshop.starts.made[0].ended == 0
    workshop.close()
    assert workshop.starts.made[0].ended == 1


def test_a_noise_that_was_named_goes_on_and_its_runs_say_so_until_it_is_enough(workshop: FakeWorkshop) -> None:
    workshop.hunts.begin(workshop.walk("hunt"))
    with pytest.raises(UsageError, match=NO_NAMED_NOISE):
        workshop.hunts.enough()
    assert not workshop.noise_is_named
    workshop.hunts.answer("greedy")
    assert (workshop.hides_a_noise, workshop.noise_is_named) == (True, True)
    assert HUNTED in measured(workshop, "again").notes
    for late in (lambda: workshop.hunts.answer("greedy"), workshop.hunts.give_up):
        with pytest.raises(UsageError, match=NO_NOISE_HIDDEN):
            late()
    workshop.hunts.enough()
    assert workshop.starts.made[0].ended == 1
    assert (workshop.hides_a_noise, workshop.noise_is_named) == (False, False)
    assert len(workshop.walk("hunt").progress.hunts) == 1


def test_another_noise_ends_the_one_that_was_named(workshop: FakeWorkshop) -> None:
    workshop.hunts.begin(workshop.walk("hunt"))
    workshop.hunts.answer("greedy")
    (first,) = workshop.starts.made
    assert first.ended == 0
    workshop.hunts.begin(workshop.walk("hunt"))
    assert first.ended == 1
    workshop.hunts.end()


def test_a_hunt_without_a_noise_to_hide_is_refused(workshop: FakeWorkshop, host_tree: object, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no chapter"):
        workshop.hunts.begin(workshop.walk("nothing"))
    other = open_workshop(session="other")
    with pytest.raises(UsageError, match="has no hidden noise"):
        other.hunts.begin(other.walk("baseline"))
    workshop.refused = tuple(s.id for s in workshop.hunts.suspects(workshop.walk("hunt")))
    with pytest.raises(HostError, match=NONE_HIDDEN):
        workshop.hunts.begin(workshop.walk("hunt"))
    assert workshop.hunts.hunt is None


@pytest.mark.parametrize(
    ("allowed", "kinds", "few"),
    [
        ((0,), (), "only 1 kind of noise can be hidden now, because the others cannot reach the isolated CPU 1"),
        ((0, 2), (), "only 2 kinds of noise"),
        ((0, 2), ("spinners", "bandwidth", "timer"), "only 2 kinds of noise .* because the others cannot"),
        ((0,), ("greedy", "timer", "softirq"), "no noise can be hidden now, because no noise can reach"),
    ],
)
def test_fewer_than_three_suspects_are_no_hunt(
    workshop: FakeWorkshop,
    monkeypatch: pytest.MonkeyPatch,
    allowed: tuple[int, ...],
    kinds: tuple[str, ...],
    few: str,
) -> None:
    # Another workshop isolates CPU 1, so no noise can be begun on it.
    ground = Placement("auto", sampler=1, hot=(1,), housekeeping=(0,)), CpuSet(allowed)
    monkeypatch.setattr(workshop.hunts, "_ground", lambda walk: ground)
    walk = workshop.walk("hunt")
    walk.chapter = dataclasses.replace(walk.chapter, suspects=kinds)
    for ask in (workshop.hunts.suspects, workshop.hunts.begin):
        with pytest.raises(HostError, match=few) as caught:
            ask(walk)
        assert "wait until the one who applied it restores it" in caught.value.sentence()
    assert workshop.hunts.hunt is None


def test_a_chapter_that_names_two_noises_needs_both(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("hunt")
    walk.chapter = dataclasses.replace(walk.chapter, suspects=("greedy", "timer"))
    assert len(workshop.hunts.suspects(walk)) == 2


def test_nothing_is_hidden_on_a_recorded_host(tmp_path: Path, host_tree: object) -> None:
    assert callable(host_tree)
    recorded = open_workshop(host_tree("guest"), course=fakes.hunt_course(tmp_path / "course"))
    for ask in (recorded.hunts.suspects, recorded.hunts.begin):
        with pytest.raises(HostError, match="recorded host"):
            ask(recorded.walk("hunt"))


def test_it_begins_and_ends_on_one_thread_which_lives_as_long() -> None:
    threads: list[threading.Thread] = []
    starts = fakenoise.Starts()

    def begin() -> Hunt:
        threads.append(threading.current_thread())
        return Hunt(Placement("none"), CpuSet((0, 1)), start=starts, picker=fakenoise.Picks("greedy"))

    hiding = Hiding(begin)
    assert threads[0] is not threading.current_thread()
    assert threads[0].is_alive()
    assert hiding.state == "running"
    # Giving up ends the noise, and the thread stays until the hunt is left.
    hiding.hunt.reveal()
    assert (starts.made[0].ended, hiding.runs) == (1, False)
    assert threads[0].is_alive()
    hiding.close()
    assert not threads[0].is_alive()
    assert starts.made[0].ended == 1


def guess(workshop: FakeWorkshop) -> bool | None:
    (entry,) = workshop.path()
    return entry.guess


def test_how_a_hunt_ended_is_kept_and_another_can_begin(workshop: FakeWorkshop) -> None:
    workshop.hidden = ("greedy", "softirq", "timer", "faults")
    with pytest.raises(UsageError):
        workshop.hunts.answer("greedy")
    workshop.hunts.begin(workshop.walk("hunt"))
    workshop.hunts.answer("timer")
    assert workshop.walk("hunt").progress.hunts == ()
    assert guess(workshop) is None
    workshop.hunts.give_up()
    with pytest.raises(UsageError):
        workshop.hunts.give_up()
    assert guess(workshop) is False
    workshop.hunts.begin(workshop.walk("hunt"))
    workshop.starts.made[0].death = MeasureError("killed")
    workshop.hunts.answer("softirq")
    assert guess(workshop) is True
    # Left while it runs: it was no hunt. Ended by its learner, and left without a name: that is kept.
    workshop.hunts.begin(workshop.walk("hunt"))
    workshop.hunts.end()
    workshop.hunts.begin(workshop.walk("hunt"))
    workshop.starts.made[0].death = MeasureError("killed")
    workshop.hunts.end()
    hunts = (
        HuntOutcome("greedy", named=False, wrong_answers=1),
        HuntOutcome("softirq", named=True, stopped=True),
        HuntOutcome("faults", named=False, stopped=True),
    )
    reopened = open_workshop(session=workshop.context.session.name, course=Path(workshop.course.source))
    assert reopened.walk("hunt").progress.hunts == hunts
    assert guess(reopened) is True
    summary = sum_up(reopened)
    assert (summary.hunts, summary.near, summary.far) == (hunts, (), ())
    told = (
        "The hunt: 1 of 3 hidden noises found: Page faults (stopped, and not named); Network softirqs (stopped, and "
        "named at the first try); A greedy thread (not named)."
    )
    assert told in summary_view.guesses(summary)


def test_progress_remembers_the_newest_hunts() -> None:
    progress = ChapterProgress()
    for number in range(MOST_KEPT + 2):
        progress = with_outcome(progress, HuntOutcome("timer", named=number == 0, wrong_answers=number))
    assert [outcome.wrong_answers for outcome in progress.hunts] == list(range(2, MOST_KEPT + 2))


def test_progress_of_before_has_no_hunts() -> None:
    old = to_plain(ChapterProgress(step="explain", done=True))
    del old["hunts"]
    assert from_plain(ChapterProgress, old) == ChapterProgress(step="explain", done=True)
