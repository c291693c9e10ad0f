"""Boot parameters for one boot on a made host with GRUB's files: by the agent, the verbs, a chapter on the screen and
line by line. GRUB's own tools check what is written; the boots are those of ``tests.madegrub.boots``."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jitter_workshop.agent.client import AgentClient
from jitter_workshop.cli import main
from jitter_workshop.course.loader import builtin_course
from jitter_workshop.flow.chapters.by_hand import EVERY_BOOT
from jitter_workshop.flow.chapters.chapter_host import NOT_IN_EFFECT
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.host_ops.apply import plan_as_root
from jitter_workshop.flow.host_ops.host_status import draw_up
from jitter_workshop.flow.host_ops.settings import ONCE
from jitter_workshop.host.boot.bootloader import ENTRY_ID
from jitter_workshop.host.boot.next_boot import next_boot_entry, own_entry
from jitter_workshop.host.root import HostRoot
from jitter_workshop.plain.settings import REBOOT_NOW
from jitter_workshop.presenter.host.by_hand import BOOT_WATCHED, guarded
from jitter_workshop.presenter.host.plan import WHEN
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter import by_hand
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tuning import journal
from jitter_workshop.tuning.tunables.boot_parameters import WHY_NEXT
from jitter_workshop.tuning.tunables.registry import parse_wanted, set_for_one_boot
from tests import livehost, madegrub
from tests.fakes import FakeWorkshop
from tests.screens import read_on, settled
from tests.settings_screen import SIZES, offered
from tests.talking import talk
from tests.tuned_tree import Agent, contents, journals, planned

WORDS = ("once:nohz-full", "once:rcu-nocbs")
CUSTOM = "boot/grub/custom.cfg"
DROPINS = "etc/default/grub.d"


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not here (install grub-common)")
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return madegrub.box(tmp_path / "tree", cpus=4)


@pytest.fixture
def live(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWorkshop]:
    workshop = open_again(tree, monkeypatch)
    yield workshop
    workshop.close()


def open_again(tree: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWorkshop:
    workshop = livehost.open_live(tree, builtin_course(), monkeypatch)
    livehost.give_agent(workshop, tree, monkeypatch)
    return workshop


def at_apply(workshop: FakeWorkshop) -> None:
    """As a session would have left the chapter at its step."""
    walk = workshop.walk("tick")
    seen = walk.chapter.steps[: walk.chapter.steps.index("apply")]
    walk._save(dataclasses.replace(walk.progress, step="apply", seen=seen))


def parameters(tree: Path) -> str:
    """Return what our entry adds, by the plan that made it."""
    own = own_entry(HostRoot(tree), "/boot/grub")
    return " ".join(own.added) if own is not None else ""


# -- the agent --------------------------------------------------------------------------------------------------------


def test_one_boot_has_it_the_next_has_not_and_restore_takes_the_entry_away(tree: Path) -> None:
    before, drawn = contents(tree), planned(tree, WORDS)
    with Agent(tree) as agent:
        result = agent.apply(drawn, WORDS)
        assert result["refused"] == []
        assert result["needs_reboot"] is True
    assert [one["id"] for one in journal.applied_tunables(HostRoot(tree))] == ["nohz-full", "rcu-nocbs"]
    assert journal.applied_tunables(HostRoot(tree), in_effect=True) == ()
    assert journal.profile(journal.applied_tunables(HostRoot(tree))) == "once:nohz-full\nonce:rcu-nocbs\n"
    assert madegrub.boots(tree).endswith(" nohz_full=2-3 rcu_nocbs=2-3")
    assert len(journal.applied_tunables(HostRoot(tree), in_effect=True)) == 2
    assert madegrub.boots(tree) == "root=UUID=1 ro console=ttyS0,115200 quiet"
    assert journal.applied_tunables(HostRoot(tree), in_effect=True) == ()
    with Agent(tree) as agent:
        back = agent.ask("restore")
        assert (back["left_alone"], back["needs_reboot"]) == ([], False)
    assert not (tree / CUSTOM).exists()
    assert set(contents(tree)) == set(before)
    assert journals(tree) == []


def test_given_back_before_the_boot_nothing_was(tree: Path) -> None:
    before, drawn = contents(tree), planned(tree, WORDS)
    with Agent(tree) as agent:
        agent.apply(drawn, WORDS)
        back = agent.ask("restore")
        assert (len(back["restored"]), back["left_alone"], back["needs_reboot"]) == (4, [], False)
    assert contents(tree) == before


def test_one_of_two_is_given_back_and_the_entry_stays_for_the_other(tree: Path) -> None:
    before, drawn = contents(tree), planned(tree, WORDS)
    with Agent(tree) as agent:
        agent.apply(drawn, WORDS)
        back = agent.ask("restore", tunables=["nohz-full"])
        [alone] = back["left_alone"]
        assert alone["path"] == f"/{CUSTOM}"
        assert "still adds rcu_nocbs=2-3, and" in alone["reason"]
        assert "boot will not use it" in alone["reason"]
        assert "'apply --next-boot'" in alone["reason"]
        assert parameters(tree) == "rcu_nocbs=2-3"
        agent.apply(planned(tree, ("once:rcu-nocbs",)), ("once:rcu-nocbs",))
        assert next_boot_entry(HostRoot(tree), "/boot/grub") == ENTRY_ID
        back = agent.ask("restore", tunables=["nohz-full"])
        assert back["left_alone"] == [
            {
                "tunable": "nohz-full",
                "path": f"/{CUSTOM}",
                "expected": drawn.changes[0].after,
                "found": drawn.changes[0].after,
                "reason": "our boot entry still adds rcu_nocbs=2-3",
            }
        ]
        assert agent.ask("restore")["left_alone"] == []
    assert contents(tree) == before


def test_an_entry_that_another_program_chose_since_is_left_alone(tree: Path) -> None:
    with Agent(tree) as agent:
        agent.apply(planned(tree, WORDS), WORDS)
        block = tree / "boot/grub/grubenv"
        block.write_text(madegrub.block(next_entry="2"))
        back = agent.ask("restore")
        assert [one["path"] for one in back["left_alone"]] == ["/boot/grub/grubenv(next_entry)"]
    assert block.read_text() == madegrub.block(next_entry="2")
    assert not (tree / CUSTOM).exists()


def test_a_kill_anywhere_leaves_nothing_and_never_chooses_an_entry_that_is_not_there(
    tree: Path, tmp_path: Path
) -> None:
    before = contents(tree)
    log = tmp_path / "steps"
    with Agent(tree, f"log={log}") as agent:
        agent.apply(planned(tree, WORDS), WORDS)
    with Agent(tree) as agent:
        agent.ask("restore")
    steps = log.read_text().splitlines()
    assert sum(step.startswith("overwrite ") for step in steps) == 1
    for moment in range(2 * len(steps)):
        killed = Agent(tree, f"kill={moment}")
        assert killed.apply(planned(tree, WORDS), WORDS) is None, moment
        assert killed.end() == -signal.SIGKILL
        if next_boot_entry(HostRoot(tree), "/boot/grub") == ENTRY_ID:
            assert parameters(tree).startswith("nohz_full=2-3"), moment
        with Agent(tree) as agent:
            assert agent.ask("restore")["left_alone"] == [], moment
        assert contents(tree) == before, moment


def test_the_default_entry_changed_between_the_plan_and_the_write(tree: Path) -> None:
    drawn = planned(tree, WORDS)
    (tree / "boot/grub/grub.cfg").write_text(madegrub.menu("1>1"))
    before = contents(tree)
    with Agent(tree) as agent:
        result = agent.apply(drawn, WORDS)
        # A write that was not shown is not made, and without the entry nothing is added to it or chosen.
        assert result["applied"] == []
        assert len(result["refused"]) == 4
    assert contents(tree) == before


# -- GRUB's own tools -------------------------------------------------------------------------------------------------


def test_grub_understands_the_written_files(tree: Path) -> None:
    check, edit = tool("grub-script-check"), tool("grub-editenv")
    block = tree / "boot/grub/grubenv"
    block.unlink()
    for words in (["create"], ["set", "saved_entry=1>1"]):
        subprocess.run([edit, str(block), *words], check=True, timeout=30)
    made = block.read_bytes()
    (tree / "boot/grub/grub.cfg").write_text(madegrub.menu("${saved_entry}"))
    with Agent(tree) as agent:
        assert agent.apply(planned(tree, WORDS), WORDS)["refused"] == []
        for name in ("grub.cfg", "custom.cfg"):
            subprocess.run([check, str(tree / "boot/grub" / name)], check=True, timeout=30)
        assert "/boot/vmlinuz-6.1.0-1 " in (tree / CUSTOM).read_text()
        told = subprocess.run([edit, str(block), "list"], capture_output=True, text=True, check=True, timeout=30)
        assert told.stdout == f"saved_entry=1>1\nnext_entry={ENTRY_ID}\n"
        # As grub-editenv itself would have left it.
        by_grub = tree / "by-grub"
        by_grub.write_bytes(made)
        subprocess.run([edit, str(by_grub), "set", f"next_entry={ENTRY_ID}"], check=True, timeout=30)
        assert block.read_bytes() == by_grub.read_bytes()
        agent.ask("restore")
    assert block.read_bytes() == made


# -- the verbs --------------------------------------------------------------------------------------------------------


def test_plan_once_shows_the_files_and_no_script(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["plan", "--root", str(tree), "--next-boot", "nohz-full", "--cpus", "2-3"]) == 0
    said = capsys.readouterr().out
    assert "/boot/grub/custom.cfg(nohz_full)  (empty) → nohz_full=2-3" in said
    assert f"/boot/grub/grubenv(next_entry)  (empty) → {ENTRY_ID}" in said
    assert WHEN["boot"] in said
    assert WHY_NEXT in " ".join(said.split())
    assert main(["plan", "--root", str(tree), "--next-boot", "--sh", "nohz-full"]) == 2
    assert "apply --next-boot" in capsys.readouterr().err
    livehost.shut(monkeypatch, "/boot/grub/grub.cfg")
    assert main(["plan", "--root", str(tree), "--next-boot", "--sh", "nohz-full", "--cpus", "2-3"]) == 0
    script, warned = capsys.readouterr()
    why = "this parameter cannot be set for one boot alone: only root can read /boot/grub/grub.cfg"
    nothing = f"nothing is written for nohz-full: {why}"
    assert f"# {nothing}\n" in script
    assert f"{nothing}\n" == warned
    assert main(["plan", "--root", str(tree), "--next-boot", "thp"]) == 2
    assert "is a boot parameter" in capsys.readouterr().err


# -- a chapter --------------------------------------------------------------------------------------------------------


def test_a_chapter_offers_one_boot_first_verifies_it_and_keeps_it(
    live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = live.walk("tick")
    way = walk.host.boots.way()
    assert way is not None
    assert (way.once, way.why_not, way.this_boot) == (True, "", False)
    plan = walk.plan()
    assert plan.text.startswith(ONCE)
    assert (plan.host_files, plan.words) == (2, WORDS)
    view = walk.apply()
    assert (view.applied, view.refused, view.needs_reboot) == (4, (), True)
    assert "at the next boot only: reboot" in view.text
    assert walk.host.awaits_reboot
    assert live.close().restored == (), "what waits for a boot is not given back on leaving"

    assert "nohz_full=" in madegrub.boots(tree)
    again = open_again(tree, monkeypatch)
    walk = again.walk("tick")
    assert "in effect, in this boot alone" in walk.rebooted()
    assert walk.progress.marks["setting"] is True
    assert not walk.plan().changes
    walk.host.boots.choose(once=False)
    kept = walk.plan()
    assert [change.kind for change in kept.changes] == ["grub", "grub"]
    assert "for the next boot and every later" in kept.text
    view = walk.apply()
    assert (view.settled, view.needs_reboot) == (True, False)
    assert "in effect now" in view.text
    assert "after every boot" in view.text
    assert not walk.host.awaits_reboot
    assert again.close().restored == ()
    assert len(list((tree / DROPINS).glob("zz-jitter-workshop-*"))) == 2
    with Agent(tree) as agent:
        assert agent.ask("restore")["left_alone"] == []
    assert not (tree / CUSTOM).exists()
    assert not list((tree / DROPINS).glob("zz-*"))


def test_after_a_boot_that_hung_the_chapter_goes_on_and_chooses_it_anew(
    live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.walk("tick").apply()
    live.close()
    madegrub.boots(tree)
    madegrub.boots(tree)  # switched off and on
    again = open_again(tree, monkeypatch)
    walk = again.walk("tick")
    assert NOT_IN_EFFECT in walk.rebooted()
    assert [change.kind for change in walk.plan().changes] == ["grub-next"]
    assert walk.apply().applied == 1
    assert "nohz_full=" in madegrub.boots(tree)
    assert again.restore_all().left_alone == ()
    again.close()


def test_given_back_before_the_boot_it_can_be_planned_for_every_boot(live: FakeWorkshop, tree: Path) -> None:
    walk = live.walk("tick")
    walk.apply()
    assert walk.restore().left_alone == ()
    assert not walk.host.awaits_reboot
    assert live.resumable() == ()
    walk.host.boots.choose(once=False)
    assert walk.apply().needs_reboot
    assert (tree / DROPINS / "zz-jitter-workshop-nohz-full.cfg").is_file()
    assert not (tree / CUSTOM).exists()


def test_where_it_cannot_be_every_boot_is_planned_and_the_reason_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = madegrub.box(tmp_path / "lvm", cpus=4, device="dm-0")
    walk = open_again(tree, monkeypatch).walk("tick")
    plan = walk.plan()
    assert [change.kind for change in plan.changes] == ["grub", "grub"]
    assert any(one.startswith("one boot alone: GRUB") and "not to dm-0." in one for one in plan.left_out)


def test_a_grub_without_drop_ins_takes_one_boot_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = madegrub.box(tmp_path / "arch", cpus=4)
    (tree / "usr/sbin/update-grub").unlink()
    walk = open_again(tree, monkeypatch).walk("tick")
    assert not walk.host.rehearsed
    assert walk.apply().applied == 4
    walk = open_again(madegrub.box(tmp_path / "b", cpus=4, device="dm-0"), monkeypatch).walk("tick")
    assert not walk.host.rehearsed
    (tmp_path / "b/usr/sbin/update-grub").unlink()
    assert open_again(tmp_path / "b", monkeypatch).walk("tick").host.rehearsed


@pytest.fixture
def unprivileged(live: FakeWorkshop, monkeypatch: pytest.MonkeyPatch) -> FakeWorkshop:
    """A learner who may not read GRUB's menu, and whose agent may."""
    livehost.shut(monkeypatch, "/boot/grub/grub.cfg")
    monkeypatch.setattr(connection_module, "rights", lambda: "sudo")
    return live


def test_a_walk_that_cannot_read_the_menu_asks_root_for_one_boot(unprivileged: FakeWorkshop, tree: Path) -> None:
    walk = unprivileged.walk("tick")
    way = walk.host.boots.way()
    assert way is not None
    assert (way.once, way.root_first) == (False, True)
    plan = walk.plan()
    assert [change.kind for change in plan.changes] == ["grub", "grub"]
    assert "one boot only needs" in plan.text
    assert "only root can read /boot/grub/grub.cfg" in plan.text
    walk.host.boots.choose(once=True)
    plan = walk.plan()
    assert plan.words == WORDS
    assert [change.kind for change in plan.changes] == ["grub-entry", "grub-once", "grub-once", "grub-next"]
    assert plan.text.startswith("This plan is for the next boot only")
    walk.host.boots.choose(once=False)
    assert [change.kind for change in walk.plan().changes] == ["grub", "grub"]
    walk.host.boots.choose(once=True)
    view = walk.apply()
    assert (view.applied, view.refused, view.needs_reboot) == (4, (), True)
    assert walk.restore().left_alone == ()
    walk.host.boots.choose(once=True)
    assert len(walk.plan().changes) == 4, "what root saw before is asked for anew"
    assert "nohz_full" not in madegrub.boots(tree)


def test_where_root_sees_that_it_cannot_be_every_boot_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = madegrub.box(tmp_path / "own", cpus=4, block=madegrub.block(next_entry="2"))
    workshop = open_again(tree, monkeypatch)
    livehost.shut(monkeypatch, "/boot/grub/grub.cfg")
    monkeypatch.setattr(connection_module, "rights", lambda: "sudo")
    walk = workshop.walk("tick")
    walk.host.boots.choose(once=True)
    way = walk.host.boots.way()
    assert way is not None
    assert (way.once, way.root_first) == (False, False)
    assert "'2' is already chosen" in way.why_not
    assert [change.kind for change in walk.plan().changes] == ["grub", "grub"]
    workshop.close()


def test_without_root_no_plan_for_one_boot_is_offered(
    unprivileged: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "rights", lambda: "none")
    way = unprivileged.walk("tick").host.boots.way()
    assert way is not None
    assert (way.once, way.root_first, way.why_not) == (False, False, "only root can read /boot/grub/grub.cfg")


async def to_the_end_and_enter(app: WorkshopApp, pilot: Pilot[None]) -> None:
    """Scroll to the end of the plan, where Enter writes, and press Enter."""
    await settled(pilot)
    await pilot.press("end")
    await settled(pilot)
    await pilot.press("enter")
    await settled(pilot)


async def test_on_the_screen_n_asks_root_for_one_boot(unprivileged: FakeWorkshop, tree: Path) -> None:
    at_apply(unprivileged)
    app = WorkshopApp(unprivileged, "tick")
    async with app.run_test(size=SIZES[0]) as pilot:
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, ChapterScreen)
        await read_on(pilot)  # on a narrow screen the lesson comes first, then the plan
        assert "n plans it for the next boot only" in " ".join(screen.sheet("#say").plain().split())
        assert offered(app)["chapter.boots"] == "one boot"
        await pilot.press("n")
        await settled(pilot)
        assert offered(app)["chapter.boots"] == "every boot"
        await to_the_end_and_enter(app, pilot)
        assert "take effect at the next boot only" in " ".join(screen.sheet("#data-sheet").plain().split())
    assert parameters(tree).startswith("nohz_full=")


@pytest.mark.parametrize("word", ["next-boot", "once"])
def test_line_by_line_one_boot_asks_root(word: str, unprivileged: FakeWorkshop, tree: Path) -> None:
    """The second word is an earlier one."""
    at_apply(unprivileged)
    flat = " ".join(talk(unprivileged, f"{word}||q", chapter="tick").split())
    assert " next-boot = for the next boot only" in flat
    assert "once =" not in flat
    assert "take effect at the next boot only" in flat
    assert parameters(tree).startswith("nohz_full=")


def test_apply_once_asks_root_where_only_root_can_tell(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    livehost.shut(monkeypatch, "/boot/grub/grub.cfg")
    livehost.give_verbs(tree, monkeypatch, lambda **_: AgentClient(livehost.agent_command(tree)))
    drawn = draw_up(tree, set_for_one_boot(parse_wanted(("nohz-full",))), "2-3")
    assert not drawn.plan.changes
    with contextlib.closing(AgentConnection()) as used:
        kinds = [change.kind for change in plan_as_root(used, drawn).plan.changes]
    assert kinds == ["grub-entry", "grub-once", "grub-next"]


@pytest.mark.parametrize("size", SIZES)
async def test_on_the_screen_n_turns_the_plan(live: FakeWorkshop, tree: Path, size: tuple[int, int]) -> None:
    at_apply(live)
    app = WorkshopApp(live, "tick")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, ChapterScreen)
        if size == SIZES[0]:
            await read_on(pilot)  # on a narrow screen the lesson comes first, then the plan

        def shown() -> str:
            return " ".join(screen.sheet("#data-sheet").plain().split())

        def said() -> str:
            return " ".join(screen.sheet("#say").plain().split())

        assert WHEN["boot"] in shown()
        assert "boot alone. n plans it for every" in said()
        assert offered(app)["chapter.boots"] == "every boot"
        await pilot.press("n")
        await settled(pilot)
        assert f"/{DROPINS}/zz-jitter-workshop-nohz-full.cfg" in shown().replace(" ", "")
        assert offered(app)["chapter.boots"] == "one boot"
        await pilot.press("n")
        await to_the_end_and_enter(app, pilot)
        assert "take effect at the next boot only" in shown()
        assert "chapter.boots" not in offered(app)
        assert offered(app)["chapter.enter"] == "home"
    assert parameters(tree).startswith("nohz_full=")
    assert not list((tree / DROPINS).glob("zz-*"))


def test_line_by_line_every_boot_and_one_boot_turn_the_plan(live: FakeWorkshop, tree: Path) -> None:
    at_apply(live)
    said = talk(live, "every|next-boot||q", chapter="tick")
    flat = " ".join(said.split())
    assert "every = for every boot" in flat
    assert "for the next boot and every later" in flat
    assert "next-boot = for the next boot only" in flat
    assert "take effect at the next boot only" in flat
    assert REBOOT_NOW in flat
    assert parameters(tree).startswith("nohz_full=")


# -- by hand ----------------------------------------------------------------------------------------------------------


def typed(tree: Path, walk: ChapterWalk) -> None:
    """Type each line that the chapter shows, as root, on a host whose update-grub makes the menu anew."""
    for one in walk.by_hand.look().lines:
        inside = one.command.replace("> /", f"> {tree}/").replace("rm /", f"rm {tree}/")
        inside = inside.removesuffix("; update-grub")
        subprocess.run(["/bin/sh", "-eu", "-c", inside], check=True, timeout=30)


def test_boot_parameters_are_typed_watched_and_restored_by_hand(
    live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = live.walk("tick")
    assert walk.by_hand.why_not(walk.plan()) == EVERY_BOOT
    walk.host.boots.choose(once=False)
    lines = [one.command for one in walk.by_hand.begin(walk.plan()).lines]
    assert "$GRUB_CMDLINE_LINUX nohz_full=1-3" in lines[0]
    assert [line.endswith("; update-grub") for line in lines] == [False, True]
    assert walk.by_hand.look().count("missing") == 2
    typed(tree, walk)
    seen = walk.by_hand.look()
    assert seen.complete
    assert guarded(seen) == BOOT_WATCHED
    view = walk.adopt()
    assert (view.applied, view.needs_reboot) == (2, True)
    assert "at the next boot: reboot" in view.text
    assert walk.host.awaits_reboot
    assert live.close().restored == (), "no journal has what was typed"

    line = " ".join(["quiet", *(text.split("LINUX ")[1].split('"')[0] for text in lines)])
    (tree / "proc/cmdline").write_text(f"{line}\n")
    (tree / "proc/sys/kernel/random/boot_id").write_text("22222222-2222-3333-4444-555555555555\n")
    (tree / "sys/devices/system/cpu/nohz_full").write_text("1-3\n")
    walk = open_again(tree, monkeypatch).walk("tick")
    assert "are in effect" in walk.rebooted()
    assert walk.by_hand.owed, "boot parameters outlast a boot"
    assert [one.command[:3] for one in walk.by_hand.begin_restore().lines] == ["rm ", "rm "]
    typed(tree, walk)
    assert walk.by_hand.look().complete
    walk.by_hand.close()
    assert not walk.by_hand.owed
    assert not list((tree / DROPINS).glob("zz-*"))


def test_a_file_that_another_program_changed_is_not_typed_over(live: FakeWorkshop, tree: Path) -> None:
    walk = live.walk("tick")
    walk.host.boots.choose(once=False)
    (tree / DROPINS).mkdir(parents=True, exist_ok=True)
    (tree / DROPINS / "zz-jitter-workshop-nohz-full.cfg").write_text("GRUB_CMDLINE_LINUX=mine\n")
    view = walk.by_hand.begin(walk.plan())
    assert [one.command.count("rcu_nocbs") for one in view.lines] == [1]
    assert any("zz-jitter-workshop-nohz-full.cfg: " in one for one in view.left_out)


def test_restored_by_hand_before_the_boot_the_chapter_waits_for_none(live: FakeWorkshop, tree: Path) -> None:
    walk = live.walk("tick")
    walk.host.boots.choose(once=False)
    walk.by_hand.begin(walk.plan())
    typed(tree, walk)
    walk.adopt()
    assert walk.host.awaits_reboot
    walk.by_hand.begin_restore()
    typed(tree, walk)
    walk.by_hand.close()
    assert (walk.host.awaits_reboot, walk.by_hand.owed) == (False, False)


async def test_on_the_screen_d_shows_the_lines_of_boot_parameters(
    live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_hand, "LOOK_EVERY_S", 0.1)
    at_apply(live)
    app = WorkshopApp(live, "tick")
    async with app.run_test(size=SIZES[-1]) as pilot:
        await settled(pilot)
        await pilot.press("d")
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, ChapterScreen)
        assert "plan the parameters for every boot" in " ".join(screen.sheet("#say").plain().split())
        await pilot.press("n", "d")
        await settled(pilot)
        assert "nohz_full=1-3" in screen.sheet("#data-sheet").plain()
        assert "0 of 2 writes" in screen.sheet("#say").plain()
        assert "chapter.boots" not in offered(app), "the plan stays as it is while it is typed"
        typed(tree, screen.walk)
        for _ in range(100):
            if "All 2 writes are made" in screen.sheet("#say").plain():
                break
            await pilot.pause(0.02)
        await pilot.press("enter")
        await settled(pilot)
        assert screen.walk.host.awaits_reboot
        assert offered(app)["chapter.enter"] == "home"


def test_line_by_line_hand_shows_the_lines_of_boot_parameters(live: FakeWorkshop, tree: Path) -> None:
    at_apply(live)
    said = " ".join(talk(live, "every|hand|stop|q", chapter="tick").split())
    assert "hand = type the writes" in said
    assert "nohz_full=1-3" in said
    assert "0 of 2 writes are made" in said
