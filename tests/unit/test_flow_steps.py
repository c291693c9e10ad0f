"""The order of the loop, the path for a host, and marks."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.checks import chapter_marks
from jitter_workshop.course.loader import load_course
from jitter_workshop.flow.chapters import path as loop
from jitter_workshop.flow.chapters.path import entry, next_chapter, order_chapters, reason_not_here
from jitter_workshop.flow.host_ops.settings import StateHere
from jitter_workshop.flow.measuring.isolated_set import CpuBudget
from jitter_workshop.model.course import STEPS, Chapter, HostState, StepName
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import ChapterProgress, Guess
from jitter_workshop.model.spec import Placement
from jitter_workshop.plain.views import loop_line
from jitter_workshop.presenter.course.path import progress_signs as signs
from jitter_workshop.tui.widgets.loop import LoopLine
from tests import madeup
from tests.fakes import short_course

COURSE = load_course(short_course())
WHOLE = load_course()
FRESH = ChapterProgress()
PINNING = COURSE.chapters[2]


def machine(count: int) -> CpuBudget:
    return CpuBudget(count, CpuSet(), reduced=False)


def run(mode: str = "none", complete: bool = True) -> Run:
    made, _ = madeup.make_run(complete=complete)
    return replace(made, placement=Placement(mode, None, None, None, None, (), (), ""))


def test_a_fresh_chapter_is_at_its_first_step() -> None:
    states = {v.name: v.state for v in loop.views(PINNING, ChapterProgress())}
    assert states["look"] == "now"
    assert {states[s] for s in STEPS[1:]} == {"open"}
    baseline = {v.name: v.state for v in loop.views(COURSE.chapters[0], ChapterProgress())}
    assert baseline["apply"] == "left_out"
    assert "plan" not in states.keys() | baseline.keys()


def test_the_furthest_step_is_kept_after_paging_back() -> None:
    read = STEPS[: STEPS.index("compare")]
    back = ChapterProgress(step="look", seen=read, runs={"measure": "a", "again": "b"})
    assert loop.current_step(PINNING, back) == "look"
    assert loop.furthest_step(PINNING, back) == "compare"
    assert loop.furthest_step(PINNING, replace(back, step="explain")) == "explain"
    assert loop.furthest_step(PINNING, replace(back, runs={})) == "look", "without its runs it cannot be entered"
    assert loop.furthest_step(PINNING, replace(back, runs={}), rehearsed=True) == "compare"
    assert loop.furthest_step(PINNING, replace(back, done=True)) == "look"
    assert loop.furthest_step(PINNING, FRESH) == "look"


def test_on_a_recording_only_a_guess_is_done_and_all_else_was_seen() -> None:
    progress = ChapterProgress(step="explain", seen=STEPS[:-1], prediction=Guess(choice="x"))
    here = {v.name: v.state for v in loop.views(PINNING, progress)}
    assert (here["apply"], here["measure"]) == ("done", "open")
    there = {v.name: v.state for v in loop.views(PINNING, progress, rehearsed=True)}
    assert there == dict.fromkeys(STEPS, "seen") | {"predict": "done", "explain": "now"}
    over = {v.name: v.state for v in loop.views(PINNING, replace(progress, done=True), rehearsed=True)}
    assert (over["explain"], over["compare"]) == ("now", "seen")
    # A run that was made here, when this host had the CPUs for it, counts as measured.
    earlier = replace(progress, runs={"measure": "x"})
    assert {v.name: v.state for v in loop.views(PINNING, earlier, rehearsed=True)}["measure"] == "done"
    fresh = {v.name: v.state for v in loop.views(PINNING, ChapterProgress(), rehearsed=True)}
    assert fresh == dict.fromkeys(STEPS, "open") | {"look": "now"}


def test_the_screen_and_the_plain_walk_have_the_same_signs() -> None:
    progress = ChapterProgress(step="compare", seen=STEPS[:6], prediction=Guess(choice="x"))
    steps = loop.views(PINNING, progress, rehearsed=True)
    wanted = "look◌   predict✓   measure◌   diagnose◌   apply◌   again◌   ▸COMPARE   explain"
    line = LoopLine()
    line._steps = steps
    assert [part.plain for part in line._line(100)] == [wanted]
    assert [line.plain for line in loop_line(PINNING, steps, 100)] == [f"{PINNING.title}: {' '.join(wanted.split())}"]


def test_each_step_waits_for_the_steps_that_it_needs() -> None:
    fresh = ChapterProgress()
    assert loop.blocked(PINNING, fresh, "measure") == ""
    for step in ("diagnose", "apply", "again", "compare", "explain"):
        assert "measure first" in loop.blocked(PINNING, fresh, step)
    measured = ChapterProgress(runs={"measure": "x"})
    assert loop.blocked(PINNING, measured, "apply") == ""
    assert "agree first" in loop.blocked(PINNING, measured, "again")
    assert loop.blocked(PINNING, replace(measured, step="apply"), "again") == ""
    assert loop.blocked(PINNING, replace(measured, seen=("apply",)), "again") == ""
    assert "a comparison needs two runs" in loop.blocked(PINNING, measured, "compare")
    assert loop.blocked(COURSE.chapters[0], measured, "again") == ""
    assert "no step" in loop.blocked(COURSE.chapters[0], measured, "apply")


def test_an_older_session_at_the_plan_is_at_apply_which_shows_it() -> None:
    older = ChapterProgress(step="plan", runs={"measure": "x"}, seen=("look", "plan"))
    assert loop.current_step(PINNING, older) == "apply"
    assert loop.blocked(PINNING, older, "again") == ""
    states = {v.name: v.state for v in loop.views(PINNING, older)}
    assert (states["apply"], states["again"]) == ("now", "open")
    # One that only saw the plan agrees to it first.
    assert "agree first" in loop.blocked(PINNING, replace(older, step="measure"), "again")
    assert (loop.step_named(PINNING, "plan"), loop.step_named(PINNING, "nonsense")) == ("apply", None)


def test_a_saved_step_that_the_chapter_does_not_have_is_the_first() -> None:
    assert loop.current_step(COURSE.chapters[0], ChapterProgress(step="plan")) == "look"
    assert loop.current_step(COURSE.chapters[0], ChapterProgress(step="\x1b[")) == "look"


@given(st.sets(st.sampled_from(STEPS), min_size=1))
def test_forwards_and_back_are_inverse(chosen: set[StepName]) -> None:
    chapter = replace(PINNING, steps=tuple(s for s in STEPS if s in chosen))
    walked: list[StepName] = []
    step: StepName | None = chapter.steps[0]
    while step is not None:
        walked.append(step)
        step = loop.step_after(chapter, step)
    assert tuple(walked) == chapter.steps
    for earlier, later in itertools.pairwise(walked):
        assert loop.step_before(chapter, later) == earlier


def test_the_path_puts_possible_chapters_first() -> None:
    one_cpu = machine(1)
    path = order_chapters(tuple(entry(c, ChapterProgress(), None, one_cpu, False) for c in COURSE.chapters))
    assert [(e.chapter_id, e.here) for e in path] == [("baseline", True), ("migration", False), ("pinning", False)]
    assert "needs 2 CPUs" in path[1].reason
    assert "restore the isolation first" in reason_not_here(PINNING, CpuBudget(1, CpuSet((1,)), reduced=True), False)
    assert reason_not_here(PINNING, machine(2), False) == ""
    assert "recorded" in reason_not_here(PINNING, machine(64), True)


@pytest.mark.parametrize(
    ("ident", "state", "may_change", "chance"),
    [
        ("baseline", "available", False, "measures"),
        ("migration", "available", False, "moves"),
        ("isolation", "available", True, "moves"),
        ("isolation", "available", False, "rights"),
        ("isolation", "good", True, "good"),
        ("isolation", "good", False, "good"),
        ("make-it-last", "available", False, "reads"),
    ],
)
def test_each_chapter_tells_its_chance_on_this_host(
    ident: str, state: HostState, may_change: bool, chance: str
) -> None:
    chapter = WHOLE.chapter(ident)
    assert chapter is not None
    assert entry(chapter, FRESH, None, machine(4), False, StateHere(state), may_change=may_change).chance == chance
    there = entry(chapter, FRESH, None, machine(4), True, StateHere("not_here", "a reason"))
    assert there.chance == ("recording" if there.rehearsed else "not_here")


def test_our_own_isolation_moves_no_chapter_on_the_path() -> None:
    room = CpuBudget(1, CpuSet((1,)), reduced=True, without=2)
    shown = [order_chapters(tuple(entry(c, FRESH, None, r, False) for c in WHOLE.chapters)) for r in (machine(2), room)]
    assert [e.chapter_id for e in shown[0]] == [e.chapter_id for e in shown[1]]
    found = {e.chapter_id: e for e in shown[1]}
    assert (found["pinning"].here, found["pinning"].chance) == (True, "later")
    assert "restore the isolation first" in found["pinning"].held
    done = tuple(replace(e, done=e.chapter_id not in ("pinning", "realtime")) for e in shown[1])
    following = next_chapter(done, "migration")
    assert following is not None
    assert following.chapter_id == "realtime", "what has to wait comes last"
    assert found["realtime"].chance == "moves"
    # A noise that runs on the measured CPU itself cannot, with an isolated set of any size.
    realtime = WHOLE.chapter("realtime")
    assert realtime is not None
    assert realtime.shows is not None
    runs = tuple(replace(one, noise="faults") for one in realtime.measurements)
    on_hot = replace(realtime, measurements=runs, shows=replace(realtime.shows, latency=False))
    for left in (room, CpuBudget(4, CpuSet((2, 3)), reduced=False, without=8)):
        waits = entry(on_hot, FRESH, None, left, False)
        assert waits.chance == "later"
        assert "restore the isolation first" in waits.held
    assert entry(on_hot, FRESH, None, machine(8), False).chance == "counts"
    last = next_chapter(tuple(replace(e, done=e.chapter_id != "pinning") for e in shown[1]), "migration")
    assert last is not None
    assert last.chapter_id == "pinning"


def test_next_is_the_chapter_after_the_finished_one_and_at_the_end_one_that_was_left_out() -> None:
    """A learner who left out an earlier chapter, begun or not, is not led back to it at once."""
    path = order_chapters(tuple(entry(c, FRESH, None, machine(4), False) for c in WHOLE.chapters))
    names = [e.chapter_id for e in path]
    now = names[5]

    def following(
        *done: str, begun: Sequence[str] = (), in_order_of: Sequence[str] = (), current: str | None = now
    ) -> str:
        shown = (replace(e, done=e.chapter_id in done, started=e.chapter_id in begun) for e in path)
        found = next_chapter(tuple(shown), current, in_order_of)
        assert found is not None
        return found.chapter_id

    assert following() == now, "the chapter in which the learner is comes first"
    assert following(now) == names[6]
    assert following(now, names[6]) == names[7]
    assert following(now, begun=(names[8], names[3])) == names[6]
    assert following(*names[5:]) == names[0]
    assert following(*names[5:], begun=(names[3],)) == names[3]
    assert following(begun=(names[3],), current=None) == names[3]
    assert following(now, begun=(names[8],), in_order_of=names) == names[0], "a class keeps its order"


def test_a_setting_that_was_given_back_keeps_a_sign() -> None:
    chapter = WHOLE.chapter("isolation")
    assert chapter is not None

    def sign(**earned: bool) -> str:
        return signs(entry(chapter, ChapterProgress(marks=earned), None, machine(4), False))[0]

    assert sign(setting=True, curve=True) == "✓"
    assert sign(setting=False, curve=True) == "↩"
    assert sign(setting=False, curve=False) == "·"


def test_a_setting_that_was_restored_on_the_home_page_has_the_sign_of_a_restored_one() -> None:
    """The chapter keeps its mark, but its tick would say that the setting still stands."""
    chapter = WHOLE.chapter("workqueues")
    assert chapter is not None
    earned = ChapterProgress(marks={"setting": True, "curve": True})

    def sign(standing: Collection[str] | None, state: HostState = "available") -> str:
        here = StateHere(state)
        return signs(entry(chapter, earned, None, machine(4), False, here, standing=standing))[0]

    assert sign(()) == "↩"
    assert sign(("workqueue-mask",)) == "✓"
    assert sign((), "good") == "✓", "the host's own value is good"
    assert sign(None) == "✓", "nothing is known of what stands"


def test_a_placement_ends_with_its_run() -> None:
    chapter = WHOLE.chapter("pinning")
    assert chapter is not None
    earned = ChapterProgress(marks={"setting": True, "curve": True})
    assert signs(entry(chapter, earned, None, machine(4), False))[0] == "↩"
    assert signs(entry(chapter, ChapterProgress(), None, machine(4), False))[0] == "·"


def test_a_change_that_moves_hardly_anything_here_is_not_promised() -> None:
    chapter = WHOLE.chapter("interrupts")
    assert chapter is not None
    here = StateHere(held="the busy interrupts here cannot be moved")
    found = entry(chapter, FRESH, None, machine(4), False, here)
    assert (found.chance, found.held) == ("held", here.held)
    assert entry(chapter, FRESH, None, machine(4), False, here, may_change=False).held == ""
    assert entry(chapter, FRESH, None, machine(4), True, here).held == ""


def test_chapters_with_nothing_left_to_change_come_behind_those_whose_curve_can_move() -> None:
    def state(chapter: Chapter) -> StateHere:
        held = "they stay" if chapter.id == "interrupts" else ""
        return StateHere("good" if chapter.id == "isolation" else "available", held=held)

    path = order_chapters(tuple(entry(c, FRESH, None, machine(4), False, state(c)) for c in WHOLE.chapters))
    assert [e.chapter_id for e in path][-2:] == ["isolation", "interrupts"]
    assert [e.number for e in path[:-2]] == sorted(e.number for e in path[:-2])
    of_class = [c.id for c in WHOLE.chapters]
    in_class = order_chapters(
        tuple(entry(c, FRESH, None, machine(4), False, state(c)) for c in WHOLE.chapters), of_class
    )
    assert [e.chapter_id for e in in_class] == of_class, "an instructor's order stays"

    def following(done: set[str], current: str, of_class: Sequence[str] = ()) -> str | None:
        shown = tuple(replace(e, done=e.chapter_id in done) for e in (in_class if of_class else path))
        found = next_chapter(shown, current, of_class)
        return found.chapter_id if found else None

    first = set(of_class[: of_class.index("isolation")])
    assert following(first, "first-hunt") == "workqueues"
    assert following(first, "first-hunt", of_class) == "isolation"
    assert following(set(), "isolation") == "isolation", "a learner who is in it goes on there"
    every = set(of_class) - {"interrupts"}
    assert following(every, "make-it-last") == "interrupts"


def test_next_goes_on_where_one_is_and_then_at_the_first_that_is_left() -> None:
    def following(done: set[str], current: str | None) -> str | None:
        path = tuple(entry(c, ChapterProgress(done=c.id in done), None, machine(2), False) for c in COURSE.chapters)
        found = next_chapter(path, current)
        return found.chapter_id if found else None

    assert following(set(), None) == "baseline"
    assert following(set(), "migration") == "migration"
    assert following({"migration"}, "migration") == "pinning"
    assert following({"migration", "pinning"}, "migration") == "baseline"
    assert following({"baseline", "migration"}, "migration") == "pinning"
    assert following({"baseline", "migration", "pinning"}, "pinning") is None
    assert following(set(), "gone") == "baseline"


def test_marks_need_finished_runs_of_the_right_placement() -> None:
    def earned(chapter: Chapter, **slots: Run) -> dict[str, bool]:
        return chapter_marks(chapter, slots)

    assert earned(PINNING) == {"setting": False, "curve": False}
    assert earned(PINNING, measure=run(), again=run("none")) == {"setting": False, "curve": False}
    assert earned(PINNING, measure=run(), again=run("auto")) == {"setting": True, "curve": True}
    assert earned(PINNING, measure=run(), again=run("chosen")) == {"setting": True, "curve": True}
    assert earned(PINNING, measure=run(), again=run("auto", complete=False)) == {"setting": False, "curve": False}
    without_checks = replace(COURSE.chapters[0], checks=())
    assert earned(without_checks, measure=run()) == {"curve": False}
    assert earned(without_checks, measure=run(), again=run()) == {"curve": True}
