"""Apply and restore through the agent on a made host: byte for byte, whatever happens in between."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path

import pytest

from jitter_workshop.host.root import HostRoot
from jitter_workshop.tuning import journal
from tests import tuned_tree
from tests.tuned_tree import Agent, contents, journals, planned

GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy2/scaling_governor"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
INTERVAL = "/proc/sys/vm/stat_interval"
WORDS = ("governor", "thp", "stat-interval", "numa-balancing")

NOTHING = {"restored": [], "left_alone": [], "needs_reboot": False, "trace_instances_removed": []}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tuned_tree.make(tmp_path)


def at(tree: Path, path: str) -> Path:
    return tree / path.lstrip("/")


def test_everything_applied_is_given_back_byte_for_byte(tree: Path) -> None:
    before, drawn = contents(tree), planned(tree)
    assert len(drawn.changes) >= 12
    with Agent(tree) as agent:
        result = agent.apply(drawn)
        assert len(result["applied"]) == len(drawn.changes)
        assert result["refused"] == []
        assert all(one["read_back"] is not None for one in result["applied"])
        assert planned(tree).changes == ()
        assert journal.applied_tunables(HostRoot(tree))[0]["id"] == "governor"
        back = agent.ask("restore")
        assert len(back["restored"]) == len(drawn.changes)
        assert back["left_alone"] == []
        assert agent.ask("restore") == NOTHING
    assert contents(tree) == before
    assert journals(tree) == []
    assert len(journals(tree, "done")) == 1


def test_only_shown_writes_are_made(tree: Path) -> None:
    before, drawn = contents(tree), planned(tree, ("thp",))
    with Agent(tree) as agent:
        result = agent.apply(drawn, WORDS)
        assert [one["tunable"] for one in result["applied"]] == ["thp"]
        assert {one["tunable"] for one in result["refused"]} == {"governor", "stat-interval", "numa-balancing"}
        assert all("was not in the plan" in one["reason"] for one in result["refused"])
        agent.ask("restore")
    assert contents(tree) == before


def test_a_value_that_changed_since_the_plan_is_not_overwritten(tree: Path) -> None:
    drawn = planned(tree, ("stat-interval", "thp"))
    at(tree, INTERVAL).write_text("2\n")
    with Agent(tree) as agent:
        result = agent.apply(drawn, ("stat-interval", "thp"))
        assert [one["tunable"] for one in result["applied"]] == ["thp"]
    assert at(tree, INTERVAL).read_text() == "2\n"


def test_a_refused_write_is_told_and_the_rest_is_done(tree: Path) -> None:
    before, drawn = contents(tree), planned(tree, WORDS)
    with Agent(tree, f"refuse={GOVERNOR}") as agent:
        result = agent.apply(drawn, WORDS)
        (refused,) = result["refused"]
        assert refused["path"] == GOVERNOR
        assert "EIO" in refused["reason"]
        assert len(result["applied"]) == len(drawn.changes) - 1
        agent.ask("restore")
    assert contents(tree) == before


def test_a_value_that_the_host_rounds_is_told_and_given_back(tree: Path) -> None:
    before, drawn = contents(tree), planned(tree, ("stat-interval",))
    with Agent(tree, f"clamp={INTERVAL}:7") as agent:
        (one,) = agent.apply(drawn, ("stat-interval",))["applied"]
        assert (one["after"], one["read_back"]) == ("10", "7")
    with Agent(tree) as agent:
        assert agent.ask("restore")["left_alone"] == []
    assert contents(tree) == before


def test_a_write_that_the_host_ignores_counts_as_refused(tree: Path) -> None:
    drawn = planned(tree, ("stat-interval",))
    with Agent(tree, f"clamp={INTERVAL}:1") as agent:
        result = agent.apply(drawn, ("stat-interval",))
        assert result["applied"] == []
        assert "still has '1'" in result["refused"][0]["reason"]
        assert agent.ask("restore")["restored"] == []


def test_an_effect_of_a_write_on_another_setting_is_told_and_restored(tree: Path) -> None:
    before, drawn = contents(tree), planned(tree, WORDS)
    with Agent(tree, f"neighbour={INTERVAL}:{GOVERNOR}:schedutil") as agent:
        result = agent.apply(drawn, WORDS)
        said = {one["path"]: one["read_back"] for one in result["applied"]}
        assert said[GOVERNOR] == "schedutil"
    with Agent(tree) as agent:
        assert agent.ask("restore")["left_alone"] == []
    assert contents(tree) == before


def test_giving_back_one_setting_may_change_another_that_is_ours(tree: Path) -> None:
    before, drawn = contents(tree), planned(tree, WORDS)
    with Agent(tree) as agent:
        agent.apply(drawn, WORDS)
    with Agent(tree, f"neighbour={INTERVAL}:{GOVERNOR}:ondemand") as agent:
        back = agent.ask("restore")
        assert back["left_alone"] == []
    assert contents(tree) == before


def test_a_foreign_value_is_left_alone_and_told(tree: Path) -> None:
    drawn = planned(tree, WORDS)
    with Agent(tree) as agent:
        agent.apply(drawn, WORDS)
        at(tree, INTERVAL).write_text("5\n")
        back = agent.ask("restore")
        (left,) = back["left_alone"]
        assert (left["path"], left["expected"], left["found"]) == (INTERVAL, "10", "5")
        assert "has changed this setting" in left["reason"]
        assert len(back["restored"]) == len(drawn.changes) - 1
        assert len(agent.ask("restore")["left_alone"]) == 1
        at(tree, INTERVAL).write_text("1\n")
        assert agent.ask("restore")["left_alone"] == []
    assert journals(tree) == []


def test_a_value_that_another_program_changed_can_be_forgotten(tree: Path) -> None:
    with Agent(tree) as agent:
        agent.apply(planned(tree, ["stat-interval"]), ["stat-interval"])
        agent.apply(planned(tree, ["stat-interval=20"]), ["stat-interval=20"])
        at(tree, INTERVAL).write_text("5\n")
        (left,) = agent.ask("restore", forget=True)["left_alone"]
        assert left["reason"].endswith("the new value is kept")
        assert "before our change was '1'" in left["reason"]
        assert agent.ask("restore") == NOTHING
    assert journals(tree) == []
    assert at(tree, INTERVAL).read_text() == "5\n"


def test_one_tunable_is_given_back_and_the_others_stay(tree: Path) -> None:
    before, drawn = contents(tree), planned(tree, WORDS)
    with Agent(tree) as agent:
        agent.apply(drawn, WORDS)
        back = agent.ask("restore", tunables=["thp"])
        assert [one["path"] for one in back["restored"]] == [THP]
        assert at(tree, INTERVAL).read_text() == "10\n"
        agent.ask("restore")
    assert contents(tree) == before


def test_two_applies_to_one_setting_are_restored_in_one_write(tree: Path) -> None:
    before = contents(tree)
    with Agent(tree) as agent:
        agent.apply(planned(tree, ("stat-interval=20",)), ("stat-interval=20",))
        agent.apply(planned(tree, ("stat-interval=30",)), ("stat-interval=30",))
        assert journal.applied_tunables(HostRoot(tree)) == ({"id": "stat-interval", "value": "30"},)
        back = agent.ask("restore")
        assert [(one["from_"], one["to"]) for one in back["restored"]] == [("30", "1")]
    assert contents(tree) == before


def test_a_foreign_value_over_two_applies_names_the_value_before_both(tree: Path) -> None:
    with Agent(tree) as agent:
        agent.apply(planned(tree, ("stat-interval=20",)), ("stat-interval=20",))
        agent.apply(planned(tree, ("stat-interval=30",)), ("stat-interval=30",))
        at(tree, INTERVAL).write_text("5\n")
        told = [one["reason"] for one in agent.ask("restore")["left_alone"] if "another program" in one["reason"]]
    assert told
    assert all("before our change was '1'" in reason for reason in told), told
    assert at(tree, INTERVAL).read_text() == "5\n"


def test_after_a_reboot_run_time_entries_are_void(tree: Path) -> None:
    with Agent(tree) as agent:
        agent.apply(planned(tree, WORDS), WORDS)
    at(tree, "/proc/sys/kernel/random/boot_id").write_text("another-boot\n")
    now = contents(tree)
    assert journal.active(HostRoot(tree)) == ()
    with Agent(tree) as agent:
        assert agent.ask("restore") == NOTHING
    assert contents(tree) == now
    assert journals(tree) == []


def test_a_device_that_left_needs_nothing(tree: Path) -> None:
    with Agent(tree) as agent:
        agent.apply(planned(tree, WORDS), WORDS)
        at(tree, INTERVAL).unlink()
        assert agent.ask("restore")["left_alone"] == []


# Journals that are not as they should be -----------------------------------------------------------------------------


def one_journal(tree: Path) -> Path:
    with Agent(tree) as agent:
        agent.apply(planned(tree, WORDS), WORDS)
    (found,) = journals(tree)
    return found


def test_a_torn_tail_is_cut_off_and_everything_given_back(tree: Path) -> None:
    before = contents(tree)
    file = one_journal(tree)
    file.write_bytes(file.read_bytes() + b'{"record":"intent","n":99,"tunab')
    with Agent(tree) as agent:
        assert agent.ask("restore")["left_alone"] == []
    assert contents(tree) == before


def test_a_damaged_middle_is_told_and_kept_and_the_rest_given_back(tree: Path) -> None:
    before = contents(tree)
    file = one_journal(tree)
    lines = file.read_bytes().splitlines(keepends=True)
    place = next(i for i, line in enumerate(lines) if INTERVAL.encode() in line)
    lines[place] = lines[place].replace(b"stat_interval", b"stat_intervXl")
    file.write_bytes(b"".join(lines))
    with Agent(tree) as agent:
        told = agent.ask("restore")["left_alone"]
        assert any("checksum" in one["reason"] and "damaged/" in one["reason"] for one in told)
        assert agent.ask("restore")["left_alone"] == []
    assert len(journals(tree, "damaged")) == 1
    now = contents(tree)
    assert {path for path in now if now[path] != before[path]} == {INTERVAL.lstrip("/")}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_journal_of_another_user_is_not_used(tree: Path) -> None:
    file = one_journal(tree)
    os.chown(file, 1000, 1000)
    with Agent(tree) as agent:
        back = agent.ask("restore")
    assert back["restored"] == []
    assert "belongs to user 1000" in back["left_alone"][0]["reason"]


def test_a_linked_journal_is_not_followed(tree: Path, tmp_path: Path) -> None:
    file = one_journal(tree)
    elsewhere = tree / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    with Agent(tree) as agent:
        back = agent.ask("restore")
    assert back["restored"] == []
    assert "symbolic link" in back["left_alone"][0]["reason"]


def test_a_state_folder_that_others_may_write_is_refused(tree: Path) -> None:
    one_journal(tree)
    (tree / tuned_tree.STATE).chmod(0o777)
    with Agent(tree) as agent:
        assert "can be written by users" in agent.ask("restore")["error"]["message"]
        refused = agent.apply(planned(tree, ("thp=never",)), ("thp=never",))
        assert "can be written by users" in refused["error"]["message"]


def test_a_state_folder_that_is_a_link_is_refused(tree: Path) -> None:
    (tree / "var/lib").mkdir(parents=True)
    (tree / "elsewhere").mkdir()
    (tree / tuned_tree.STATE).symlink_to(tree / "elsewhere")
    before = contents(tree)
    with Agent(tree) as agent:
        said = agent.apply(planned(tree, WORDS), WORDS)["error"]["message"]
    assert "link" in said
    assert contents(tree) == before


# Kills ---------------------------------------------------------------------------------------------------------------


def steps_of(tree: Path, log: Path, verb: str) -> int:
    """Return how many steps an apply, or a restore after one, takes."""
    if verb == "restore":
        with Agent(tree) as agent:
            agent.apply(planned(tree, WORDS), WORDS)
    with Agent(tree, f"log={log}") as agent:
        if verb == "apply":
            agent.apply(planned(tree, WORDS), WORDS)
        else:
            agent.ask("restore")
    return len(log.read_text().splitlines())


@pytest.mark.parametrize("verb", ["apply", "restore"])
def test_a_kill_between_any_two_steps_loses_nothing(
    verb: str, tree: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = contents(tree)
    count = steps_of(tree, tmp_path_factory.mktemp("log") / "steps", verb)
    with Agent(tree) as agent:
        agent.ask("restore")
    assert contents(tree) == before
    assert count >= 10
    for moment in range(2 * count):
        if verb == "restore":
            with Agent(tree) as agent:
                agent.apply(planned(tree, WORDS), WORDS)
        killed = Agent(tree, f"kill={moment}")
        answer = killed.apply(planned(tree, WORDS), WORDS) if verb == "apply" else killed.ask("restore")
        assert answer is None, moment
        assert killed.end() == -signal.SIGKILL
        with Agent(tree) as agent:
            back = agent.ask("restore")
            assert back["left_alone"] == [], moment
        assert contents(tree) == before, moment
        assert journals(tree) == [], moment


@pytest.mark.parametrize("seed", range(12))
def test_random_plans_kills_and_foreign_changes(seed: int, tree: Path) -> None:
    """Restore never overwrites a foreign value, and gives back all others."""
    chance = random.Random(seed)
    before = contents(tree)
    words = tuple(chance.sample(tuned_tree.MANY, chance.randint(1, 6)))
    drawn = planned(tree, words)
    killed = Agent(tree, *((f"kill={chance.randrange(60)}",) if chance.random() < 0.8 else ()))
    killed.apply(drawn, words)
    killed.end()
    foreign: dict[str, str] = {}
    for change in drawn.changes:
        if change.kind == "number" and chance.random() < 0.3:
            foreign[change.path] = f"{chance.randint(100, 900)}\n"
            at(tree, change.path).write_text(foreign[change.path])
    with Agent(tree) as agent:
        back = agent.ask("restore")
    now = contents(tree)
    for path, data in before.items():
        if f"/{path}" in foreign:
            assert now[path].decode() == foreign[f"/{path}"]
        else:
            assert now[path] == data
    assert {one["path"] for one in back["left_alone"]} <= set(foreign)


# A full or read-only disk --------------------------------------------------------------------------------------------


def test_without_a_journal_nothing_is_written(tree: Path) -> None:
    folder = tree / tuned_tree.STATE
    folder.parent.mkdir(parents=True)
    folder.write_text("in the way")
    before = contents(tree)
    with Agent(tree) as agent:
        said = agent.apply(planned(tree, WORDS), WORDS)
    assert "nothing was changed" in said["error"]["advice"]
    assert contents(tree) == before


def test_journal_lines_are_plain_json(tree: Path) -> None:
    records = [json.loads(line) for line in one_journal(tree).read_text().splitlines()]
    assert records[0]["record"] == "header"
    assert records[0]["wanted"][0] == "governor=performance"
    assert {r["record"] for r in records} == {"header", "intent", "written"}
