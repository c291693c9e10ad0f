"""Test a chapter's side of the host: it looks, plans, applies and restores. Its agent session writes into a tree."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.agent.client import AgentClient
from jitter_workshop.course.loader import load_course
from jitter_workshop.errors import HostError, LessonError
from jitter_workshop.flow.chapters import chapter_host
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.host_ops.apply import apply, plan_as_root
from jitter_workshop.flow.host_ops.host_status import draw_up
from jitter_workshop.flow.host_ops.settings import NEEDS_BOOT, look_at_settings
from jitter_workshop.host.recording.packed import unpacked
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Change
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.session import Guess
from jitter_workshop.model.status import Assessment
from jitter_workshop.presenter.host import changes as changes_view
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.tuning.journal import applied_tunables
from jitter_workshop.tuning.tunables.registry import parse_wanted
from tests import hosttrees, livehost, madecourse, tuned_tree
from tests.fake_agent_connection import FakeAgentConnection
from tests.fakes import FakeWorkshop, open_workshop, walk_with

RECORDINGS = Path(__file__).parents[2] / "assets" / "recordings"
THP = "sys/kernel/mm/transparent_hugepage/enabled"
INTERVAL = "proc/sys/vm/stat_interval"
BOOT_ID = "proc/sys/kernel/random/boot_id"


@pytest.fixture
def live(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWorkshop:
    return livehost.open_live(tree, course, monkeypatch)


@pytest.fixture
def bare(tmp_path: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWorkshop:
    """On a host without a governor, and without anything else that the course sets."""
    return livehost.open_live(hosttrees.small(tmp_path / "bare", 4), course, monkeypatch)


def session_of(workshop: FakeWorkshop) -> FakeAgentConnection:
    agent_connection = workshop.context.agent_connection
    assert isinstance(agent_connection, FakeAgentConnection)
    return agent_connection


# -- here -------------------------------------------------------------------------------------------------------------


def test_a_host_as_a_chapter_sees_it(live: FakeWorkshop, tree: Path) -> None:
    walk = live.walk("pages")
    assert (walk.host.rehearsed, walk.host.reason, walk.host.recording) == (False, "", "")
    assert walk.page("look").split("\n\n") == ["The page of pages for look.", "Here something can be better."]
    assert walk.page("apply") == "The page of pages for apply."
    (tree / THP).write_text("always madvise [never]\n")
    (tree / INTERVAL).write_text("60\n")
    again = live.walk("pages")
    assert {f.value.partition(":")[0] for f in again.host.look()[:2]} == {"ok"}
    assert "Here all is good already." in again.page("look")
    assert [m for m in again.chapter.steps if again.measuring.measures(m)] == ["measure", "again"]


def test_look_reads_anew_and_begins_with_the_tunables_own_words(live: FakeWorkshop, tree: Path) -> None:
    walk = live.walk("pages")
    thp, interval = walk.host.look()[:2]
    assert thp.value == "can be better: always, madvise → madvise"
    assert interval.value.startswith("can be better: ")
    (tree / THP).write_text("always madvise [never]\n")
    assert walk.host.look()[0].value == "ok: never, madvise"


def test_the_plan_is_the_planners_and_names_the_hot_cpus(live: FakeWorkshop) -> None:
    plan = live.walk("pages").plan()
    assert {c.path for c in plan.changes} >= {f"/{THP}", f"/{INTERVAL}"}
    assert plan.host_files == len({c.path for c in plan.changes})
    assert plan.text.startswith("Hot CPUs 1-3: ")
    assert "recorded host" not in plan.text


def test_apply_makes_only_the_shown_writes(live: FakeWorkshop, tree: Path) -> None:
    walk = live.walk("pages")
    shown = walk.plan().changes
    before = tuned_tree.contents(tree)
    view = walk.apply()
    agent_connection = session_of(live)
    assert agent_connection.calls == [("apply", "thp", "stat-interval")]
    assert tuple(agent_connection.made) == shown
    assert (view.applied, view.refused, view.settled, view.needs_reboot) == (len(shown), (), True, False)
    assert f"Applied and read back: 2 settings, {len(shown)} writes. The host now has the wanted values." in view.text
    assert "The old values are restored when you leave the workshop, unless you keep the changes." in view.text
    assert walk.progress.marks["setting"] is True
    written = {path for path, data in tuned_tree.contents(tree).items() if before.get(path) != data}
    assert written == {c.path.lstrip("/") for c in shown}


def test_where_nothing_is_to_be_written_the_agent_is_not_asked(live: FakeWorkshop) -> None:
    walk = live.walk("pages")
    walk.apply()
    session_of(live).calls.clear()
    view = walk.apply()
    assert session_of(live).calls == []
    assert view.text == "There was nothing to write. The settings have the wanted values."
    assert (view.applied, view.settled) == (0, True)
    assert walk.plan().text.startswith("There is nothing to write on this host.")


def test_a_refused_write_is_told_and_verifies_nothing(live: FakeWorkshop) -> None:
    walk = live.walk("pages")
    session_of(live).refuse = (f"/{THP}",)
    view = walk.apply()
    assert view.refused == ((f"/{THP}", "the kernel says EIO"),)
    assert not view.settled
    assert "1 refused. Some settings can still be improved: see the step 'look'." in view.text
    assert walk.progress.marks["setting"] is False


def test_writes_that_fell_away_are_told(live: FakeWorkshop) -> None:
    session_of(live).ended = 6
    text = live.walk("pages").apply().text
    assert "2 of 8 writes. 6 writes were not needed: the tasks had ended. The host now has the wanted values." in text


def gone(changes: tuple[Change, ...]) -> Change:
    """A write for a task that there was when the plan was made."""
    return dataclasses.replace(changes[0], n=99, path="cgroup(77@5)", kind="task-cgroup")


def test_a_write_for_a_task_that_has_ended_is_counted_by_the_caller(
    live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    livehost.give_agent(live, tree, monkeypatch)
    plan = live.walk("pages").plan()
    result = live.context.agent_connection.apply(
        plan.words, CpuSet.parse_list("1-3"), (*plan.changes, gone(plan.changes))
    )
    assert (len(result.applied), result.refused, result.ended) == (2, (), 1)
    live.context.agent_connection.close()
    livehost.give_verbs(tree, monkeypatch, lambda **_: AgentClient(livehost.agent_command(tree)))
    with contextlib.closing(AgentConnection()) as used:
        drawn = plan_as_root(used, draw_up(tree, parse_wanted(plan.words), "1-3"))
        shown = dataclasses.replace(drawn.plan, changes=(*drawn.plan.changes, gone(drawn.plan.changes)))
        result = apply(used, dataclasses.replace(drawn, plan=shown), lease=True)
        assert (len(result.applied), result.refused, result.ended) == (2, (), 1)
        assert "\n1 write was not needed: the task had ended.\n" in written(changes_view.applied(result, (), 80))


def test_without_rights_nothing_is_marked_and_the_chapter_goes_on(live: FakeWorkshop) -> None:
    live.context.agent_connection = FakeAgentConnection()
    walk = live.walk("pages")
    with pytest.raises(HostError, match="root's rights"):
        walk.apply()
    assert walk.progress.marks == {}
    assert not session_of(live).holding


def test_restore_writes_this_chapters_old_values_and_takes_its_mark(live: FakeWorkshop, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    walk, other = live.walk("pages"), live.walk("clock")
    other.apply()
    middle = tuned_tree.contents(tree)
    assert middle != before
    walk.apply()
    assert tuned_tree.contents(tree) != middle
    result = walk.restore()
    assert {one.tunable for one in result.restored} == {"thp", "stat-interval"}
    assert session_of(live).calls[-1] == ("restore", "thp", "stat-interval")
    assert tuned_tree.contents(tree) == middle
    assert walk.progress.marks["setting"] is False
    assert other.progress.marks["setting"] is True
    assert walk.plan().changes


def test_a_restore_that_fails_leaves_the_mark(live: FakeWorkshop) -> None:
    walk = live.walk("pages")
    walk.apply()
    session_of(live).fail = HostError("the agent does not answer")
    with pytest.raises(HostError, match="does not answer"):
        walk.restore()
    assert walk.progress.marks["setting"] is True


def test_the_value_of_the_lesson_decides_the_mark(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    course = madecourse.write(tmp_path / "asked", ("thp=madvise",))
    workshop = livehost.open_live(tree, course, monkeypatch)
    walk = workshop.walk("pages")
    assert "Here something can be better." in walk.page("look")
    assert [c.after for c in walk.plan().changes if c.path == f"/{THP}"] == ["madvise"]
    walk.apply()
    assert walk.progress.marks["setting"] is True
    assert "[madvise]" in (tree / THP).read_text()


# -- a reboot ---------------------------------------------------------------------------------------------------------


def test_a_write_for_the_next_boot_is_kept_and_an_earlier_one_is_not(live: FakeWorkshop, tree: Path) -> None:
    agent_connection = live.context.agent_connection = FakeAgentConnection(tree, needs_reboot=True)
    agent_connection._leased = {"governor"}  # of a chapter before, which said that it is given back on leaving
    live.walk("pages").apply()
    assert agent_connection.holding
    assert agent_connection._leased == {"governor"}


def test_a_tunable_without_a_value_is_nothing_so_far() -> None:
    check = Assessment("nohz-full", "Tickless CPUs", "improve", None, "nohz_full=1-2", "it ticks", "boot", (), "")
    assert chapter_host._fact(check).value == "can be better: nothing → nohz_full=1-2"


def test_boot_parameters_are_kept_and_verified_after_the_reboot(live: FakeWorkshop, tree: Path) -> None:
    agent_connection = live.context.agent_connection = FakeAgentConnection(tree, needs_reboot=True)
    walk = live.walk("pages")
    assert (walk.host.awaits_reboot, walk.rebooted()) == (False, "")
    view = walk.apply()
    assert view.needs_reboot
    assert "take effect at the next boot" in view.text
    assert agent_connection.calls[-1] == ("keep", *walk.chapter.tunables)
    assert not agent_connection.holding
    assert walk.host.awaits_reboot
    assert "reboot, then start the workshop again" in walk.rebooted()
    (tree / BOOT_ID).write_text("11111111-2222-3333-4444-555555555555\n")
    later = live.walk("pages")
    waiting = later.progress
    assert not later.host.awaits_reboot
    assert later.rebooted().endswith("was rebooted: the written boot parameters are in effect.")
    assert later.progress.marks["setting"] is True
    assert later.rebooted() == "", "it is told once"
    live.context.save_progress("pages", waiting)
    (tree / THP).write_text("[always] madvise never\n")
    assert "some of the written boot parameters are not in effect" in later.rebooted()
    assert later.progress.marks["setting"] is False
    live.context.save_progress("pages", waiting)
    (tree / THP).unlink()
    assert "some of the written boot parameters are not in effect" in live.walk("pages").rebooted()


# -- on a recording ---------------------------------------------------------------------------------------------------


def test_a_chapter_that_this_host_lacks_is_taught_on_its_recording(bare: FakeWorkshop) -> None:
    walk = bare.walk("clock")
    assert walk.host.rehearsed
    assert walk.host.recording == "lab-stock"
    assert walk.host.reason
    assert walk.page("look").endswith("Here is nothing to set.")
    facts = {f.title: f.value for f in walk.host.look()}
    assert facts["CPU governor"] == "can be better: schedutil → performance"
    plan = walk.plan()
    assert plan.changes
    assert plan.text.startswith("This is a recorded host, so nothing is written.")
    assert not any(walk.measuring.measures(step) for step in walk.chapter.steps)
    with pytest.raises(HostError, match="cannot be measured here"):
        walk.measuring.request("measure")
    with pytest.raises(HostError, match="uses a recorded host, so nothing is written"):
        walk.apply()
    assert session_of(bare).calls == []
    changes = walk.host.compared()
    assert ("CPU governor", "schedutil", "performance", True) in [
        (c.title, c.before, c.after, c.settled) for c in changes
    ]


def test_a_rehearsed_chapter_waits_for_nothing_and_ends(bare: FakeWorkshop) -> None:
    walk = bare.walk("clock")
    seen = [walk.current]
    while (step := walk.next()) is not None:
        seen.append(step)
    assert tuple(seen) == walk.chapter.steps
    assert walk.progress.done
    assert walk.progress.marks == {}
    entry = next(e for e in bare.path() if e.chapter_id == "clock")
    assert (entry.here, entry.rehearsed, entry.done, entry.setting, entry.curve) == (False, True, True, False, False)


def test_without_a_recording_a_chapter_is_only_not_here(bare: FakeWorkshop) -> None:
    walk = walk_with(bare.walk("clock"), recording="", recording_after="")
    assert walk.host.reason
    assert not walk.host.rehearsed
    assert "measure first" in walk.blocked("apply")
    assert walk.host.compared() == ()


def test_a_recording_that_is_not_there_is_a_sentence(bare: FakeWorkshop) -> None:
    walk = walk_with(bare.walk("clock"), recording="nowhere")
    for step in (walk.host.look, walk.plan, walk.host.compared):
        with pytest.raises(LessonError, match="there is no recording 'nowhere'"):
            step()


def test_the_path_goes_on_with_recordings_once_all_is_done_here(bare: FakeWorkshop) -> None:
    assert [(e.chapter_id, e.here) for e in bare.path()] == [("reading", True), ("pages", False), ("clock", False)]
    order = []
    while (following := bare.next_chapter()) is not None:
        order.append(following.chapter_id)
        walk = bare.walk(following.chapter_id)
        while walk.next() is not None:
            pass
    assert order == ["reading", "pages", "clock"]


def test_a_recorded_host_is_looked_at_and_never_touched(tmp_path: Path, course: Path) -> None:
    root = unpacked(RECORDINGS / "lab-stock.tar.xz", tmp_path / "cache")
    workshop = open_workshop(root, course=course)
    walk = workshop.walk("pages")
    assert (walk.host.rehearsed, walk.host.recording) == (True, "")
    assert "Here something can be better." in walk.page("look")
    assert walk.plan().changes
    for refused in (walk.restore, workshop.restore_all):
        with pytest.raises(HostError, match="a recorded host"):
            refused()
    with pytest.raises(HostError, match="nothing is written"):
        walk.apply()
    assert (workshop.context.standing(), session_of(workshop).calls) == ((), [])


def test_a_recorded_host_that_lacks_it_as_well_gives_way_to_the_chapters_recording(
    tmp_path: Path, course: Path
) -> None:
    workshop = open_workshop(hosttrees.small(tmp_path / "bare", 4), course=course)
    walk = workshop.walk("clock")
    assert (walk.host.rehearsed, walk.host.recording) == (True, "lab-stock")
    assert "Here is nothing to set." in walk.page("look")
    assert walk.plan().changes


def test_a_placement_is_planned_on_a_recording_and_binds_nothing(host_tree: Callable[[str], Path]) -> None:
    walk = open_workshop(host_tree("server64")).walk("pinning")
    plan = walk.plan()
    assert plan.changes[0].path == "sched_setaffinity(producer)"
    assert plan.text.startswith("This is a recorded host, so no thread is bound.")
    walk.cpus.choose(3, 1, None)
    assert [c.after for c in walk.plan().changes][:2] == ["3", "1"]


# -- guesses, and chapters without measurements -----------------------------------------------------------------------


@pytest.mark.parametrize(("choice", "near"), [("vmstat", True), ("nobody", False)])
def test_a_choice_without_a_run_is_answered_at_once(live: FakeWorkshop, choice: str, near: bool) -> None:
    walk = live.walk("reading")
    assert walk.runs.run_in(None) is None
    assert walk.guess.outcome() is None
    walk.guess.predict(Guess(choice=choice))
    outcome = walk.guess.outcome()
    assert outcome is not None
    assert outcome.near is near
    assert (
        outcome.explanation
        == {"vmstat": "vmstat_update folds them, on each CPU.", "nobody": "Look at stat_interval."}[choice]
    )
    assert ("The answer is: The counters" in outcome.text) is not near


def test_a_chapter_without_measurements_ends_and_shows_the_commands_by_hand(live: FakeWorkshop) -> None:
    walk = live.walk("reading")
    assert walk.runs.explain() is None
    ((command, shows),) = walk.runs.commands_by_hand()
    assert command == "vmstat 1 5"
    assert "on CPU 1 among others" in shows
    assert [walk.next(), walk.next(), walk.next()] == ["predict", "explain", None]
    assert walk.host.compared() == ()


# -- a session's stack ------------------------------------------------------------------------------------------------


def had_applied(workshop: FakeWorkshop, *stacked: dict[str, str]) -> None:
    workshop.context.save(dataclasses.replace(workshop.context.session, stack=stacked))


def test_settings_of_a_session_are_one_plan(live: FakeWorkshop, tree: Path) -> None:
    had_applied(live, {"id": "stat-interval", "value": ""}, {"id": "thp", "value": "madvise"})
    assert live.resumable() == ("stat-interval", "thp=madvise")
    plan = live.resume_plan()
    assert {c.tunable for c in plan.changes} == {"stat-interval", "thp"}
    result = live.resume(plan)
    assert len(result.applied) == len(plan.changes)
    assert session_of(live).calls == [("apply", "stat-interval", "thp=madvise")]
    assert "[madvise]" in (tree / THP).read_text()
    assert applied_tunables(live.context.root) == (), "this session keeps no journal"
    assert [one["id"] for one in live.context.session.stack] == ["stat-interval", "thp"], (
        "and nothing is forgotten by it"
    )


def test_applying_again_makes_only_the_shown_writes(live: FakeWorkshop) -> None:
    had_applied(live, {"id": "stat-interval", "value": ""}, {"id": "thp", "value": ""})
    plan = live.resume_plan()
    part = dataclasses.replace(plan, changes=plan.changes[:1])
    assert len(live.resume(part).applied) == 1
    assert tuple(session_of(live).made) == plan.changes[:1]


def test_a_live_sessions_stack_is_not_offered_on_a_recording(live: FakeWorkshop, tree: Path, course: Path) -> None:
    had_applied(live, {"id": "thp", "value": ""})
    live.close()
    recorded = open_workshop(tree, session=livehost.SESSION, course=course)
    assert recorded.context.session.stack
    assert HostRoot(tree).recorded
    assert recorded.resumable() == ()


def test_leaving_restores_the_leased_changes(live: FakeWorkshop, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    live.walk("pages").apply()
    assert live.context.agent_connection.holding
    result = live.close()
    assert {one.tunable for one in result.restored} == {"thp", "stat-interval"}
    assert tuned_tree.contents(tree) == before


def test_boot_parameters_are_nothing_for_the_owner_of_a_container(
    host_tree: Callable[[str], Path], tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(host_tree("server64"), tree, symlinks=True)
    (tree / ".dockerenv").write_text("")
    (chapter,) = [one for one in load_course().chapters if one.id == "tick"]
    seen = look_at_settings(HostRoot(tree), chapter)
    assert {check.state for check in seen.checks} <= {"info", "ok", "unavailable"}
    assert seen.state == "not_here"
    assert seen.reason.startswith(f"{NEEDS_BOOT}: this is a container")
