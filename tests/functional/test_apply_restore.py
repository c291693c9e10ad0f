"""The verbs apply and restore, whole, on a made host: what they print, ask, write and return."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop import cli
from jitter_workshop.agent.client import AgentClient, no_sudo
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.host_ops import host_status
from jitter_workshop.host.root import HostRoot
from jitter_workshop.session.store import SessionStore
from jitter_workshop.tuning import journal
from tests import hosttrees, livehost, tuned_tree
from tests.functional.test_agent_client import command

Say = Callable[..., tuple[int, str, str]]
GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy2/scaling_governor"


@pytest.fixture
def options() -> list[str]:
    """Return what the host's kernel is told to do, see ``tests.agent_on_tree``."""
    return []


@pytest.fixture
def say(tree: Path, options: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Say:
    """Run a command line on the made host; (exit code, stdout, stderr)."""
    livehost.give_verbs(tree, monkeypatch, lambda **_: AgentClient(command(tree, *options)))
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def run(*words: str) -> tuple[int, str, str]:
        code = cli.main(words)
        out, err = capfd.readouterr()
        return code, out, err

    return run


def test_apply_and_restore_as_json(say: Say, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    code, out, _ = say("apply", "governor", "thp=never", "--cpus", "2-3", "--yes", "--json")
    said = json.loads(out)
    assert code == 0
    assert said["format_version"] == 1
    assert [(one["tunable"], one["after"]) for one in said["applied"]] == [
        ("governor", "performance"),
        ("governor", "performance"),
        ("thp", "never"),
    ]
    assert set(said["applied"][0]) == {"n", "tunable", "path", "before", "after", "read_back"}
    assert (said["refused"], said["needs_reboot"]) == ([], False)
    assert journal.is_journal_id(said["journal_id"])
    code, out, _ = say("restore", "--list", "--json", "--root", str(tree))
    assert len(json.loads(out)["active"]) == 3
    code, out, _ = say("restore", "--json")
    back = json.loads(out)
    assert code == 0
    assert back["restored"][-1] == {"tunable": "governor", "path": GOVERNOR, "from": "performance", "to": "powersave"}
    assert (back["left_alone"], back["needs_reboot"]) == ([], False)
    assert tuned_tree.contents(tree) == before
    code, out, _ = say("restore", "--json")
    assert (code, json.loads(out)["restored"]) == (0, [])


def test_all_restores_everything_and_no_name_stands_beside_it(say: Say, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    assert say("apply", "governor", "--yes")[0] == 0
    code, _, err = say("restore", "--all", "governor")
    assert code != 0
    assert "--all already restores" in err
    code, out, _ = say("restore", "--all", "--json")
    assert (code, [one["tunable"] for one in json.loads(out)["restored"]][-1]) == (0, "governor")
    assert tuned_tree.contents(tree) == before


def test_as_text_plan_result_and_way_back_are_told(say: Say, tree: Path) -> None:
    code, out, err = say("apply", "stat-interval", "--cpus", "2-3", "--yes")
    assert code == 0, err
    assert "/proc/sys/vm/stat_interval  1 → 10" in out
    assert "Applied: 1 setting, 1 write (" in out
    assert "'jitter-workshop restore' restores the old values" in out
    _, out, _ = say("restore", "--list", "--root", str(tree))
    assert "Applied now: 1 setting, 1 write (" in out
    assert re.search(r"^stat-interval  applied \d\d:\d\d", out, re.M)
    _, out, _ = say("restore", "--list", "--json", "--root", str(tree))
    assert json.loads(out)["active"][0]["applied_at"].endswith("Z")
    _, out, _ = say("restore")
    assert "/proc/sys/vm/stat_interval: 10 → 1" in out
    assert say("restore")[1].startswith("Nothing to restore: ")


def test_without_a_terminal_nothing_is_applied_unasked(say: Say, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    code, out, err = say("apply", "governor", "--cpus", "2-3")
    assert (code, out) == (2, "")
    assert "--yes" in err
    assert tuned_tree.contents(tree) == before


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("yes\n", 0), ("n\n", 2), ("\n", 2), ("", 2)])
def test_on_a_terminal_it_asks(answer: str, code: int, say: Say, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    got, out, err = say("apply", "governor", "--cpus", "2-3")
    assert got == code
    assert "Make these 2 writes? [y/N]" in err
    assert ("Applied: 1 setting, 2 writes (" in out) == (code == 0)
    assert (tree / GOVERNOR.lstrip("/")).read_text() == ("performance\n" if code == 0 else "powersave\n")


def test_a_part_refused_is_one_and_all_refused_is_two(say: Say, options: list[str]) -> None:
    options.append(f"refuse={GOVERNOR}")
    code, out, _ = say("apply", "governor", "--cpus", "2-3", "--yes", "--json")
    assert code == 1
    assert json.loads(out)["refused"][0]["path"] == GOVERNOR
    say("restore")
    code, out, err = say("apply", "governor", "--cpus", "2", "--yes", "--json")
    assert (code, out) == (2, "")
    assert err.startswith("jitter-workshop: nothing was applied: governor: ")
    assert err.count("\n") == 1


def test_a_tunable_that_this_host_lacks_is_refused_with_its_reason(say: Say) -> None:
    code, out, err = say("apply", "epp", "--cpus", "2-3", "--yes", "--json")
    assert (code, out) == (2, "")
    assert "nothing was applied: epp: " in err
    code, out, _ = say("apply", "epp", "thp=never", "--cpus", "2-3", "--yes", "--json")
    assert code == 1
    assert [one["tunable"] for one in json.loads(out)["refused"]] == ["epp"]


def test_apply_writes_nothing_that_is_set_already(say: Say) -> None:
    code, out, _ = say("apply", "stat-interval=1", "--cpus", "2-3", "--json")
    said = json.loads(out)
    assert code == 0
    assert (said["journal_id"], said["applied"], said["refused"]) == (None, [], [])


def test_a_command_runs_while_it_is_applied(say: Say, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    file = str(tree / "proc/sys/vm/stat_interval")
    code, out, err = say("apply", "stat-interval", "--cpus", "2-3", "--yes", "--", "cat", file)
    assert (code, out) == (0, "10\n"), err
    assert tuned_tree.contents(tree) == before
    code, out, err = say("apply", "stat-interval", "--cpus", "2-3", "--yes", "--json", "--", "sh", "-c", "exit 3")
    assert code == 1
    assert json.loads(out)["command_exit"] == 3
    assert len(json.loads(out)["restored"]["restored"]) == 1
    assert tuned_tree.contents(tree) == before


def test_a_command_that_cannot_start_gives_all_back(say: Say, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    code, _, err = say("apply", "thp=never", "--cpus", "2-3", "--yes", "--", "/no/such/program")
    assert code == 2
    assert "the command cannot be started" in err
    assert tuned_tree.contents(tree) == before


def test_a_foreign_value_makes_restore_one(say: Say, tree: Path) -> None:
    say("apply", "stat-interval", "--cpus", "2-3", "--yes")
    (tree / "proc/sys/vm/stat_interval").write_text("4\n")
    code, out, _ = say("restore", "--json")
    (left,) = json.loads(out)["left_alone"]
    assert code == 1
    assert (left["expected"], left["found"]) == ("10", "4")
    assert "Left alone: " in say("restore")[1]


def test_status_says_drifted(say: Say, tree: Path) -> None:
    say("apply", "stat-interval", "--cpus", "2-3", "--yes")
    (tree / "proc/sys/vm/stat_interval").write_text("4\n")
    found = host_status.read_checks(tree, ("stat-interval",), "2-3").checks[0]
    assert found.drifted is not None
    assert (found.drifted.set, found.drifted.found) == ("10", "4")
    _, out, _ = say("restore", "--list", "--root", str(tree))
    assert "/proc/sys/vm/stat_interval: 1 → 10" in out


def test_the_session_lists_the_applied_tunables(say: Say, tree: Path) -> None:
    SessionStore().create("lab", "host").close()
    say("apply", "governor", "stat-interval", "--cpus", "2-3", "--yes")
    (session,) = SessionStore().list()[0]
    assert session.stack == ({"id": "governor", "value": "performance"}, {"id": "stat-interval", "value": "10"})
    assert session.stack == journal.applied_tunables(HostRoot(tree))
    _, out, _ = say("sessions", "show", "@1", "--profile")
    assert out == "governor=performance\nstat-interval=10\n"
    say("restore")
    assert SessionStore().list()[0][0].stack == ()


# Profiles and wrong input ---------------------------------------------------------------------------------------------


def test_a_profile_names_tunables_line_by_line(say: Say, tmp_path: Path) -> None:
    profile = tmp_path / "quiet.profile"
    profile.write_text("# for the lab\n\ngovernor=performance\n  thp = never   # not now\n")
    code, out, _ = say("apply", "--profile", str(profile), "stat-interval", "--cpus", "2-3", "--yes", "--json")
    assert code == 0
    assert {one["tunable"] for one in json.loads(out)["applied"]} == {"governor", "thp", "stat-interval"}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("governor\nvernor\n", 2, "there is no tunable 'vernor'"),
        ("thp=never\n\nthp=always\n", 3, "is in line 1 already"),
        ("\n\x1b[31m=1\n", 2, "there is no tunable"),
        ("temperature=4\n", 1, "takes no value"),
    ],
)
def test_a_mistake_in_a_profile_names_file_and_line(text: str, line: int, words: str, say: Say, tmp_path: Path) -> None:
    profile = tmp_path / "bad.profile"
    profile.write_text(text)
    code, out, err = say("apply", "--profile", str(profile), "--yes")
    assert (code, out) == (2, "")
    assert f"bad.profile:{line}: " in err
    assert words in err
    assert "\x1b" not in err


@pytest.mark.parametrize("content", [None, b"", b"# nothing\n", b"x" * 70_000])
def test_a_profile_that_is_none(content: bytes | None, say: Say, tmp_path: Path) -> None:
    profile = tmp_path / "p"
    if content is not None:
        profile.write_bytes(content)
    code, out, err = say("apply", "--profile", str(profile), "--yes")
    assert (code, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    "words",
    [
        ["apply"],
        ["apply", "nothing-like-it"],
        ["apply", "governor=nonsense", "--cpus", "2-3", "--yes"],
        ["apply", "governor", "--cpus", "9", "--yes"],
        ["apply", "governor", "--cpus", "x", "--yes"],
        ["apply", "governor", "--hold", "--", "true"],
        ["apply", "governor", "--"],
        ["apply", "governor", "governor=powersave", "--yes"],
        ["restore", "nothing-like-it"],
        ["restore", "thp=never"],
    ],
)
def test_wrong_input_is_one_sentence_and_changes_nothing(words: list[str], say: Say, tree: Path) -> None:
    before = tuned_tree.contents(tree)
    code, out, err = say(*words)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert tuned_tree.contents(tree) == before


@pytest.mark.parametrize("verb", [["apply", "thp", "--yes"], ["restore"]])
def test_a_recorded_host_is_not_changed(verb: list[str], say: Say, tree: Path) -> None:
    code, out, err = say(*verb, "--root", str(tree))
    assert (code, out) == (2, "")
    assert "recorded host" in err


def test_without_rights_it_is_one_sentence(say: Say, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> Any:
        raise no_sudo()

    monkeypatch.setattr(connection_module, "connect_to_agent", refuse)
    code, out, err = say("apply", "thp=never", "--cpus", "2-3", "--yes", "--json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert say("restore")[0] == 0


LEFT = ["jitter-workshop-4000000@7-all", "jitter-workshop-4000000@7-hot"]


def leave_over(tree: Path) -> Path:
    """Return what a measurement left in the kernel's trace whose agent, watcher and caller were all killed."""
    hosttrees.write(tree, {"sys/kernel/tracing/trace_clock": "[local] global\n", "proc/1/status": "Name:\tinit\n"})
    folder = tree / "sys/kernel/tracing/instances"
    for name in (*LEFT, "theirs", "jitter-workshop-1-hot"):
        (folder / name).mkdir(parents=True)
    return folder


def test_a_trace_that_was_left_over_is_given_back(say: Say, tree: Path) -> None:
    folder = leave_over(tree)
    _, out, _ = say("restore", "--list", "--root", str(tree))
    assert out.startswith("'restore' removes 2 instances of the kernel's trace that a")
    assert all(name in out for name in LEFT)
    _, out, _ = say("restore", "--list", "--json", "--root", str(tree))
    assert json.loads(out)["trace_instances_left"] == LEFT
    code, out, err = say("restore")
    assert code == 0, err
    assert out.startswith("Removed: 2 instances of the")
    assert "that a measurement made before" in out
    assert all(name in out for name in LEFT)
    assert sorted(path.name for path in folder.iterdir()) == ["jitter-workshop-1-hot", "theirs"]
    assert say("restore")[1].startswith("Nothing to restore")


def test_a_left_over_trace_is_told_beside_the_applied_changes(say: Say, tree: Path) -> None:
    say("apply", "stat-interval", "--cpus", "2-3", "--yes")
    leave_over(tree)
    _, out, _ = say("restore", "--list", "--root", str(tree))
    assert "Applied now: 1 setting, 1 write (" in out
    assert "'restore' removes 2 instances" in out
    code, out, _ = say("restore", "--json")
    back = json.loads(out)
    assert (code, len(back["restored"]), back["trace_instances_removed"]) == (0, 1, LEFT)


def test_restore_without_access_to_traces_says_that_one_may_be_left_over(
    say: Say, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_over(tree)
    livehost.shut(monkeypatch, "/sys/kernel/tracing/trace_clock")
    code, out, err = say("restore")
    assert (code, err.count("\n")) == (0, 1)
    assert out.startswith("Nothing to restore")
    assert "'sudo jitter-workshop restore' removes them" in err
