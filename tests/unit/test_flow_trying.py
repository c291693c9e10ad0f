"""Test trying a chapter: two made-up runs a round, the factor between them, and what is said of all rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.course.loader import builtin_course
from jitter_workshop.errors import MeasureError, UsageError
from jitter_workshop.flow.chapters.chapter_host import ChapterHost
from jitter_workshop.flow.chapters.measuring import ChapterMeasuring
from jitter_workshop.flow.chapters.trying import Trial, TrialRound, try_chapter, try_in
from jitter_workshop.flow.measuring.arrival import InterruptStays
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.change import Change, RestoreResult
from jitter_workshop.model.run import Counter, Run, SilentObserver, ThreadRecord
from jitter_workshop.model.spec import Placement
from jitter_workshop.model.walk import ApplyView, PlanView
from jitter_workshop.presenter.course import trial as trial_view
from jitter_workshop.stats.figures import FIGURES, Figure
from tests import madeup
from tests.fakes import FakeWorkshop


@dataclass
class Scripted:
    """A workshop's measurements, one count of preemptions and migrations after the other, and what was asked for."""

    counts: list[int]
    seconds: tuple[float, float] = (1.0, 1.0)
    asked: list[MeasureRequest] = field(default_factory=list)

    def __call__(self, request: MeasureRequest, *_: Any) -> Run:
        self.asked.append(request)
        count = self.counts[len(self.asked) - 1]
        if count < 0:
            raise MeasureError("the measuring process ended")
        thread = ThreadRecord("accumulator", {"1": 1}, involuntary_switches=count, migrations=count)
        made = madeup.make_run([[100]], run_id=f"20260101-{len(self.asked):06d}-aaaa")[0]
        seconds = self.seconds[(len(self.asked) - 1) % 2]
        return replace(made, workload="ring", duration_s=seconds, threads=(thread,), label=request.label)


@pytest.fixture
def workshop() -> FakeWorkshop:
    made = FakeWorkshop.open(course_dir=builtin_course())
    assert isinstance(made, FakeWorkshop)
    return made


def trial(rounds: list[TrialRound], plans: list[PlanView] | None = None) -> Trial:
    def done(figure: Figure, number: int, one: TrialRound) -> None:
        rounds.append(one)
        assert figure in FIGURES.values()
        assert number == len(rounds)

    def plan(view: PlanView) -> None:
        assert plans is not None
        plans.append(view)

    return Trial(plan, done, SilentObserver(), lambda _: None)


def tried(
    workshop: FakeWorkshop,
    counts: list[int],
    chapter: str = "pinning",
    seconds: tuple[float, float] = (1.0, 1.0),
    **given: Any,
) -> Any:
    script = Scripted(counts, seconds)
    workshop.measure = script  # type: ignore[method-assign]
    rounds: list[TrialRound] = []
    found = try_in(workshop, chapter, len(counts) // 2 or 1, trial(rounds, **given), CancelToken())
    assert found.each == tuple(rounds)
    return found, script


def test_a_round_measures_before_and_after_beside_the_same_noise(workshop: FakeWorkshop) -> None:
    found, script = tried(workshop, [40, 2])
    assert [(one.placement, one.noise) for one in script.asked] == [("none", "unbound"), ("auto", "unbound")]
    assert (found.before, found.after, found.ratio, found.rounds, found.shown) == (40.0, 2.0, 20.0, 1, True)
    assert (found.chapter, found.figure, found.unit) == ("pinning", "migrations", "a second")


def test_a_restored_value_settles_before_each_round_for_an_earlier_trial_may_have_restored_it(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[tuple[float, int]] = []
    monkeypatch.setattr(CancelToken, "wait", lambda _, seconds: waited.append((seconds, len(script.asked))))
    pinning = workshop.course.chapter("pinning")
    assert pinning is not None
    assert pinning.shows is not None
    made = replace(pinning, shows=replace(pinning.shows, settle_s=11.0))
    workshop.course = replace(workshop.course, chapters=(made,))
    workshop.measure = script = Scripted([40, 2] * 3)  # type: ignore[method-assign]
    try_in(workshop, "pinning", 3, trial([]), CancelToken())
    assert waited == [(11.0, 0), (11.0, 2), (11.0, 4)]


def test_the_write_before_a_first_run_is_shown_once_however_many_rounds_follow(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/proc/irq/34/smp_affinity_list"
    sent = Change(1, "irq-here", path, "0-1", "1", "runtime", "low", "", kind="cpu-list")
    plans: list[PlanView] = []
    request = ChapterMeasuring.request
    monkeypatch.setattr(ChapterMeasuring, "request", lambda one, slot: replace(request(one, slot), arrival=sent))
    tried(workshop, [40, 2] * 3, plans=plans)
    assert [one.changes for one in plans if one.host_files] == [(sent,)]


def test_a_trial_says_first_that_only_root_can_make_the_better_load(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(ChapterMeasuring, "barred_load", lambda _: "Only root may read it.")
    workshop.measure = Scripted([40, 2])  # type: ignore[method-assign]
    try_in(workshop, "pinning", 1, replace(trial([]), queued=told.append), CancelToken())
    assert told == ["Only root may read it."]


def test_a_trial_begins_again_after_the_kernel_refused_the_write_before_a_run(workshop: FakeWorkshop) -> None:
    told: list[str] = []
    stays = InterruptStays("interrupt 34 was not sent to CPU 1: EIO", "open the chapter again")
    script, refusals = Scripted([40, 2]), [stays]

    def measure(*args: Any) -> Run:
        if refusals:
            raise refusals.pop()
        return script(*args)

    workshop.measure = measure  # type: ignore[method-assign]
    found = try_in(workshop, "pinning", 1, replace(trial([]), queued=told.append), CancelToken())
    assert found.shown
    assert told == ["Interrupt 34 was not sent to CPU 1: EIO. The trial begins again without this write."]


@pytest.mark.parametrize(("misses", "shown"), [(0, True), (1, True), (2, False)])
def test_nine_rounds_of_ten_have_to_show_it(workshop: FakeWorkshop, misses: int, shown: bool) -> None:
    found, _ = tried(workshop, [9, 3] * (10 - misses) + [8, 3] * misses)
    assert (found.shown, found.rounds) == (shown, 10)
    assert f"{10 - misses} of 10" in found.why
    assert [one.shown for one in found.each].count(False) == misses


@pytest.mark.parametrize(("counts", "shown"), [([3, 0], True), ([29, 10], False)])
def test_a_run_that_is_a_little_longer_does_not_decide(workshop: FakeWorkshop, counts: list[int], shown: bool) -> None:
    found, _ = tried(workshop, counts, seconds=(10.06, 10.0))
    assert found.ratio < 3
    assert found.shown is shown


def test_a_figure_that_rises_is_compared_the_other_way_round(workshop: FakeWorkshop) -> None:
    found, _ = tried(workshop, [2, 40], "migration")
    assert (found.rises, found.ratio, found.shown) == (True, 20.0, True)


def test_the_figures_of_all_rounds_are_medians(workshop: FakeWorkshop) -> None:
    found, _ = tried(workshop, [10, 1, 30, 2, 500, 100])
    assert (found.before, found.after, found.ratio) == (30.0, 2.0, 10.0)


def change(path: str) -> Change:
    return Change(1, "stat-interval", path, "1", "10", "runtime", "low", "rarer")


class Changed:
    """A chapter's host that notes what was applied and restored."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[str] = []
        self.same = 3
        self.views = [PlanView((change("/old"),), 1, "a plan")]
        for name in ("plan", "apply", "restore"):
            monkeypatch.setattr(ChapterHost, name, getattr(self, name))
        monkeypatch.setattr(ChapterHost, "applied", property(lambda _: self.log[-1:] == ["apply"]))

    def plan(self) -> PlanView:
        self.log.append("plan")
        self.views.append(self.views[-1] if len(self.views) < self.same else PlanView((change("/new"),), 1, "a plan"))
        return self.views[-1]

    def apply(self, shown: PlanView | None = None) -> ApplyView:
        assert shown == self.views[-1]
        self.log.append("apply")
        return ApplyView(1, (), True, False, "applied")

    def restore(self) -> RestoreResult:
        self.log.append("restore")
        return RestoreResult((), (), needs_reboot=False)


@pytest.fixture
def setting(workshop: FakeWorkshop) -> Callable[..., str]:
    """Make the chapter of pinning one that sets a tunable."""

    def make(reboot: bool = False) -> str:
        chapter = workshop.course.chapter("pinning")
        assert chapter is not None
        made = replace(chapter, changes="tunables", reboot=reboot)
        others = tuple(c for c in workshop.course.chapters if c.id != "pinning")
        workshop.course = replace(workshop.course, chapters=(*others, made))
        return "pinning"

    return make


def test_settings_of_a_chapter_are_applied_and_restored_in_each_round_and_new_plans_are_shown(
    workshop: FakeWorkshop, setting: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed, plans = Changed(monkeypatch), []
    tried(workshop, [40, 2] * 4, setting(), plans=plans)
    assert changed.log == ["plan", "apply", "restore"] * 4
    # Rounds 1 and 2 plan the same writes, rounds 3 and 4 others.
    assert [one.changes[0].path for one in changed.views[1:]] == ["/old", "/old", "/new", "/new"]
    assert [one.changes[0].path for one in plans] == ["/old", "/new"]


def test_it_is_restored_too_if_the_second_run_fails(
    workshop: FakeWorkshop, setting: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = Changed(monkeypatch)
    with pytest.raises(MeasureError):
        tried(workshop, [40, -1], setting(), plans=[])
    assert changed.log == ["plan", "apply", "restore"]


def test_a_change_that_takes_effect_at_a_boot_is_not_tried(
    workshop: FakeWorkshop, setting: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = Changed(monkeypatch)
    found, script = tried(workshop, [], setting(reboot=True))
    assert (found.shown, found.rounds, found.ratio, script.asked, changed.log) == (False, 0, None, [], [])
    assert "at a boot" in found.why


@pytest.mark.parametrize(
    ("chapter", "rounds", "said"), [("baseline", 1, "does not name a figure"), ("pinning", 0, "1 to 100")]
)
def test_a_chapter_without_a_figure_and_a_number_of_rounds_are_refused(chapter: str, rounds: int, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        try_chapter(chapter, rounds, trial([]), CancelToken())


def test_the_lines_name_both_values_the_factor_and_the_verdict(workshop: FakeWorkshop) -> None:
    found, _ = tried(workshop, [9, 3, 6, 3])
    assert trial_view.of_round(FIGURES[found.figure], found.each[0]) == "9 → 3, a factor of 3: shown"
    said = trial_view.of_trial(FIGURES[found.figure], found)
    assert said.startswith("pinning does not show its effect here. Threads moved to another CPU")
    assert said.endswith(" 7.5 → 3 a second.")


def test_a_run_that_was_stopped_is_followed_by_no_change(
    workshop: FakeWorkshop, setting: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed, token = Changed(monkeypatch), CancelToken()
    script = Scripted([40, 2])

    def measured(request: MeasureRequest, *_: Any) -> Run:
        token.cancel("SIGINT")
        return replace(script(request), complete=False)

    workshop.measure = measured  # type: ignore[method-assign]
    with pytest.raises(Cancelled):
        try_in(workshop, setting(), 1, trial([]), token)
    assert (changed.log, len(script.asked)) == ([], 1)


def test_a_setting_that_is_applied_already_is_not_tried_and_stays(
    workshop: FakeWorkshop, setting: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = Changed(monkeypatch)
    monkeypatch.setattr(ChapterHost, "applied", property(lambda _: True))
    found, script = tried(workshop, [], setting())
    assert (found.shown, script.asked, changed.log) == (False, [], [])
    assert "applied already" in found.why


@pytest.mark.parametrize(("counts", "told"), [([2, 2], True), ([40, 2], False)])
def test_a_host_that_holds_the_cause_is_told_where_nothing_is_shown(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch, counts: list[int], told: bool
) -> None:
    monkeypatch.setattr(ChapterHost, "held", property(lambda _: "the disk's interrupt cannot be moved"))
    found, _ = tried(workshop, counts)
    assert found.why.endswith("; the disk's interrupt cannot be moved") is told
    assert "1 rounds" in found.why


def ticking(count: int, number: int) -> Run:
    made = madeup.make_run([[100]], run_id=f"20260101-{number:06d}-aaaa")[0]
    counters = {"LOC": Counter("LOC", {"0": 0, "1": count})}
    hot = Placement("auto", 0, 1, hot=(0, 1))
    return replace(made, workload="ring", duration_s=1.0, label="before", interrupts=counters, placement=hot)


def halves(workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch, counts: list[int], half: Any, state: str) -> Any:
    """Try the chapter of the tick with these counts of timer interrupts, one a run."""
    left = list(counts)

    def measure(*_: Any) -> Run:
        return ticking(left.pop(0), 100 * (half == "after") + len(left))

    workshop.measure = measure  # type: ignore[method-assign]
    monkeypatch.setattr(ChapterHost, "rehearsed", property(lambda _: False))
    monkeypatch.setattr(ChapterHost, "state", property(lambda _: state))
    monkeypatch.setattr(ChapterHost, "reason", property(lambda _: ""))
    monkeypatch.setattr(ChapterMeasuring, "request", lambda _, slot: MeasureRequest(label="before", workload="ring"))
    return try_in(workshop, "tick", len(counts), trial([]), CancelToken(), half)


def test_a_change_of_the_boot_is_tried_in_two_halves(workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch) -> None:
    first = halves(workshop, monkeypatch, [250, 240], "before", "available")
    assert (first.rounds, first.shown) == (0, False)
    assert "--half after" in first.why
    second = halves(workshop, monkeypatch, [2, 80], "after", "good")
    assert [one.after for one in second.each] == [2.0, 80.0]
    assert (second.rounds, second.shown) == (2, True)


def test_the_second_half_needs_the_first_and_the_settings(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="has 0 runs of the first half"):
        halves(workshop, monkeypatch, [2], "after", "good")
    found = halves(workshop, monkeypatch, [2], "after", "available")
    assert (found.rounds, found.shown) == (0, False)
    assert "not in effect" in found.why


def test_halves_are_for_a_boot_and_for_a_kept_session(workshop: FakeWorkshop) -> None:
    with pytest.raises(UsageError, match="needs no reboot"):
        try_in(workshop, "pinning", 1, trial([]), CancelToken(), "before")
    with pytest.raises(UsageError, match="needs a session"):
        try_chapter("tick", 1, trial([]), CancelToken(), half="before")


@pytest.mark.parametrize(("wanted", "made"), [(None, 10), (1.5, 1.5)])
def test_runs_may_be_shorter_than_the_chapters(workshop: FakeWorkshop, wanted: Any, made: Any) -> None:
    script = Scripted([9, 1])
    workshop.measure = script  # type: ignore[method-assign]
    try_in(workshop, "pinning", 1, replace(trial([]), duration_s=wanted), CancelToken())
    assert [one.duration_s for one in script.asked] == [made, made]
