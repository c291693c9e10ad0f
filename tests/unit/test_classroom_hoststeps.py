"""The steps of a class host: what each finds wrong, does and undoes; on a folder instead of this machine."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from jitter_workshop.agent.ownership import BY_OTHERS
from jitter_workshop.classroom import hoststeps, install
from jitter_workshop.classroom.hoststeps import HostChoices, HostStep, RootFile, do, fill, open_steps
from jitter_workshop.errors import HostError
from jitter_workshop.model.cpuset import CpuSet

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="files of root's are made by root")
CLASS = b'name = "C"\nhot_cpus = "1"\n'


class Fakes:
    """Steps that keep what happened to them."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def step(self, name: str, wrong: str = "missing", again: bool = False, mends: bool = True) -> HostStep:
        state = {"wrong": wrong}

        def act() -> None:
            self.done.append(name)
            if mends:
                state["wrong"] = ""

        return HostStep(name, lambda: state["wrong"], act, lambda: self.done.append(f"not {name}"), again=again)


def test_only_steps_that_are_not_done_are_open() -> None:
    fakes = Fakes()
    todo = open_steps((fakes.step("a", ""), fakes.step("b"), fakes.step("c", "", again=True)))
    assert [(step.what, why) for step, why in todo] == [("b", "missing"), ("c", "to use the new files")]
    assert [step.what for step in do(tuple(step for step, _ in todo))] == ["b", "c"]
    assert fakes.done == ["b", "c"]


def test_a_step_to_repeat_is_left_out_if_no_other_step_is_open() -> None:
    fakes = Fakes()
    assert open_steps((fakes.step("a", ""), fakes.step("c", "", again=True))) == ()


def test_a_step_that_did_not_help_ends_it_in_its_own_words() -> None:
    fakes = Fakes()
    todo = (fakes.step("a"), fakes.step("b", mends=False), fakes.step("c"))
    with pytest.raises(HostError, match="b: this step was done, but its check fails: missing"):
        list(do(todo))
    assert fakes.done == ["a", "b"]


def test_a_step_whose_state_cannot_be_read_says_why() -> None:
    def unreadable() -> str:
        raise PermissionError(13, "Permission denied", "/x")

    step = HostStep("x", unreadable, lambda: None, lambda: None)
    assert "Permission denied" in step.why()


def test_an_error_of_the_system_names_the_step() -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(HostError, match="a file: No space left on device"):
        list(do((HostStep("a file", lambda: "missing", full, lambda: None),)))


@pytest.mark.parametrize("systemd", [True, False])
def test_every_step_of_either_kind_is_there(systemd: bool) -> None:
    found = hoststeps.class_host_steps(HostChoices(CLASS, CpuSet.of([0]), systemd, "/usr/bin/python3"))
    words = "\n".join(step.what for step in found)
    shown = ["group", "user", "/opt/jitter-workshop", "/usr/local/bin", "class.toml", "jitter-workshop-board"]
    shown += (
        ["agent.socket", "agent.service", "board.socket", "board.service", "user.slice"] if systemd else ["sudoers"]
    )
    assert all(one in words for one in shown)
    assert ("sudoers" in words) is not systemd
    assert len({step.what for step in found}) == len(found)
    assert not any("@" in step.text for step in found if "systemd unit" in step.what)


def test_without_housekeeping_logins_stay_where_they_are() -> None:
    found = hoststeps.class_host_steps(HostChoices(CLASS, CpuSet(), True, "/usr/bin/python3"))
    assert not any("user.slice" in step.what for step in found)


def test_a_template_is_filled_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "ExecStart=/p -I -S -B /opt/jitter-workshop/lib/" in fill(
        "jitter-workshop-agent.service", PYTHON="/p", HOMES="yes"
    )
    assert "AllowedCPUs=0-1 4\n" in fill("logins.conf", HOUSEKEEPING="0-1 4")
    with pytest.raises(HostError, match="unknown placeholder: 'PYTHON'"):
        fill("sudoers")
    with pytest.raises(HostError, match="cannot be read"):
        fill("nothing")


@pytest.mark.parametrize(("python", "homes"), [("/usr/bin/python3", "yes"), ("/root/py/bin/python3", "read-only")])
def test_the_service_sees_its_own_interpreter(python: str, homes: str) -> None:
    found = hoststeps.class_host_steps(HostChoices(CLASS, CpuSet.of([0]), True, python))
    texts = [step.text for step in found if step.what.endswith("agent.service: a systemd unit")]
    assert f"ProtectHome={homes}\n" in texts[0]


def test_a_program_that_is_not_there_fails_or_hangs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HostError, match="no-such-program is not installed on this host"):
        hoststeps.run_system_program("no-such-program")
    with pytest.raises(HostError, match=r"ls: .*No such file"):
        hoststeps.run_system_program("ls", "/no/such/folder")
    monkeypatch.setattr(hoststeps, "_PROGRAM_LIMIT_S", 0.05)
    with pytest.raises(HostError, match="sleep cannot be run"):
        hoststeps.run_system_program("sleep", "20")


# Files of root's ------------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> RootFile:
    return RootFile(str(tmp_path / "own" / "a.conf"), b"text\n", 0o644, own_folder=True)


@as_root
def test_a_file_is_written_looked_at_and_taken_away(file: RootFile) -> None:
    assert file.problem() == f"{file.path} is missing"
    old = os.umask(0o077)
    try:
        file.do()
    finally:
        os.umask(old)
    assert file.problem() == ""
    assert Path(file.path).parent.stat().st_mode & 0o777 == 0o755
    file.do()
    assert file.problem() == ""
    Path(f"{file.path}.new").write_text("cut off")
    file.undo()
    file.undo()
    assert not Path(file.path).parent.exists()


@as_root
def test_a_folder_that_others_use_stays(file: RootFile) -> None:
    file.do()
    other = Path(file.path).with_name("theirs")
    other.write_text("x")
    file.undo()
    assert other.read_text() == "x"


@as_root
@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda path: path.write_text("other"), "has different content"),
        (lambda path: path.chmod(0o600), "has mode 600, not 644"),
        (lambda path: os.chown(path, 1000, 0), "belongs to user 1000"),
        (lambda path: (path.unlink(), path.symlink_to("/etc/passwd")), "is not a file"),
        (lambda path: path.parent.chmod(0o777), BY_OTHERS),
        (lambda path: os.chown(path.parent, 1000, 0), "belongs to user 1000"),
        (lambda path: path.unlink(), "is missing"),
    ],
)
def test_each_thing_that_is_wrong_with_a_file_is_named_and_mended(file: RootFile, how, said) -> None:  # type: ignore[no-untyped-def]
    file.do()
    how(Path(file.path))
    assert said in file.problem()
    file.do()
    assert file.problem() == ""


@as_root
def test_a_refused_file_does_not_replace_the_old_file(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def refuse(new: str) -> None:
        seen.append(Path(new).read_bytes())
        raise HostError("no such rule")

    old = tmp_path / "sudoers"
    old.write_text("old\n")
    with pytest.raises(HostError, match="no such rule"):
        RootFile(str(old), b"new\n", 0o440, refuse=refuse).do()
    assert (seen, old.read_text(), [one.name for one in tmp_path.iterdir()]) == ([b"new\n"], "old\n", ["sudoers"])


# User, group, folder --------------------------------------------------------------------------------------------------


class Database:
    """The user database as these steps see it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.users: dict[str, tuple[int, int]] = {}
        self.groups: dict[str, int] = {}
        self.asked: list[tuple[str, ...]] = []
        monkeypatch.setattr(pwd, "getpwnam", self._user)
        monkeypatch.setattr(grp, "getgrnam", lambda name: SimpleNamespace(gr_gid=self.groups[name], gr_mem=[]))
        monkeypatch.setattr(hoststeps, "run_system_program", lambda *words: self.asked.append(words) or "")

    def _user(self, name: str) -> SimpleNamespace:
        uid, gid = self.users[name]
        return SimpleNamespace(pw_uid=uid, pw_gid=gid)


def step(what: str) -> HostStep:
    found = hoststeps.class_host_steps(HostChoices(CLASS, CpuSet.of([0]), False, "/usr/bin/python3"))
    return next(one for one in found if what in one.what)


def test_group_and_user_are_made_and_removed_by_the_systems_own_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(monkeypatch)
    assert "no group" in step("the group").why()
    step("the group").do()
    step("the user").undo()
    database.groups["jitterlab"] = 900
    assert "no user" in step("the user").why()
    step("the user").do()
    assert [words[0] for words in database.asked] == ["groupadd", "useradd"]
    assert "/usr/sbin/nologin" in database.asked[1]
    database.users["jitterlab"] = (1_900_000_000, 900)
    assert step("the user").why() == "" == step("the group").why()
    step("the user").undo()
    step("the group").undo()
    assert database.asked[2:] == [("userdel", "jitterlab"), ("groupdel", "jitterlab")]


@pytest.mark.parametrize("who", [(0, 900), (1234, 1234)])
def test_a_foreign_user_of_that_name_is_left_alone(who: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(monkeypatch)
    database.groups["jitterlab"] = 900
    database.users["jitterlab"] = who
    assert "another program or person" in step("the user").why()
    with pytest.raises(HostError, match="another program or person"):
        step("the user").do()
    step("the user").undo()
    assert database.asked == []


@as_root
def test_the_boards_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    database = Database(monkeypatch)
    folder = tmp_path / "board"
    monkeypatch.setattr(hoststeps, "BOARD_DIR", str(folder))
    database.users["jitterlab"] = (1234, 1234)
    one = step("the results; it belongs to the user")
    assert "is missing" in one.why()
    one.do()
    assert one.why() == ""
    (folder / "board.sqlite").write_text("kept")
    folder.chmod(0o700)
    assert "has mode 700" in one.why()
    one.do()
    os.chown(folder, 0, 0)
    assert "does not belong" in one.why()
    one.do()
    assert (one.why(), (folder / "board.sqlite").read_text()) == ("", "kept")
    database.users.clear()
    assert "is not a folder that belongs to" in one.why()
    one.undo()
    one.undo()
    assert not folder.exists()
    database.users["jitterlab"] = (1234, 1234)
    folder.symlink_to("/etc")
    assert "is not a folder that belongs to" in one.why()
    with pytest.raises(OSError):  # noqa: PT011 (which one, is the kernel's choice)
        one.do()
    assert Path("/etc").stat().st_uid == 0


# Services -------------------------------------------------------------------------------------------------------------


class Systemctl:
    """``wrong``: the question whose answer is not as it should be."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wrong = ""
        self.asked: list[tuple[str, ...]] = []
        monkeypatch.setattr(hoststeps, "run_system_program", self._run)
        monkeypatch.setattr(hoststeps, "answers", lambda link, who: "the board is deaf" if self.wrong == who else "")

    def _run(self, *words: str) -> str:
        self.asked.append(words)
        if self.wrong == words[1]:
            raise HostError("inactive")
        if words[:3] == ("systemctl", "show", "-p"):
            if words[3] == "AllowedCPUs":
                return "0-3\n" if self.wrong == words[3] else "0 4\n"
            return "yes\n" if self.wrong == words[-1] else "no\n"
        return ""


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("", ""),
        ("is-enabled", "will not start at boot"),
        ("is-active", "is not active"),
        ("jitter-workshop-board.service", "has not reloaded jitter-workshop-board.service"),
        ("user.slice", "has not reloaded user.slice"),
        ("AllowedCPUs", "may use CPU 0-3, but should use only CPU 0,4"),
        ("the board", "the board is deaf"),
    ],
)
def test_faults_of_the_services_are_named(wrong: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Systemctl(monkeypatch).wrong = wrong
    found = hoststeps.Started(CpuSet.of([0, 4])).problem()
    assert said in found
    assert bool(found) is bool(wrong)


def test_services_start_with_the_new_files(monkeypatch: pytest.MonkeyPatch) -> None:
    systemctl = Systemctl(monkeypatch)
    hoststeps.Started(None).do()
    verbs = [words[1] for words in systemctl.asked]
    assert verbs == ["daemon-reload", "stop", "reset-failed", "enable"]
    systemctl.wrong = "disable"
    hoststeps.Started(None).undo()


def test_a_service_that_does_not_answer_is_named() -> None:
    silent = hoststeps.answers(hoststeps.by_command(("/bin/sh", "-c", "echo broken >&2")), "the agent")
    assert silent == "the agent does not answer (broken)"
    absent = hoststeps.answers(hoststeps.by_command(("/no/such/program",)), "the agent")
    assert absent.startswith("the agent cannot be reached")
    cross = """read line; echo '{"id": 1, "error": {"kind": "HostError", "message": "not today"}}'"""
    assert hoststeps.answers(hoststeps.by_command(("/bin/sh", "-c", cross)), "it") == "it answers: not today"
    well = """read line; echo '{"id": 1, "ok": {}}'"""
    assert hoststeps.answers(hoststeps.by_command(("/bin/sh", "-c", well)), "it") == ""


def test_leftovers_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    database = Database(monkeypatch)
    names = ("INSTALL_DIR", "BOARD_DIR", "RUN_DIR", "CLASS_FILE", "SUDOERS", "LOGINS", "UNITS")
    for name in names:
        monkeypatch.setattr(hoststeps, name, str(tmp_path / name))
    monkeypatch.setattr(install, "LAUNCHER", str(tmp_path / "LAUNCHER"))
    assert hoststeps.leftovers() == ()
    (tmp_path / "INSTALL_DIR.old").mkdir()
    (tmp_path / "SUDOERS.new").write_text("")
    (tmp_path / "LAUNCHER").symlink_to("nowhere")
    database.groups["jitterlab"] = 1
    assert sorted(hoststeps.leftovers()) == sorted(
        [*(str(tmp_path / name) for name in ("INSTALL_DIR.old", "SUDOERS.new", "LAUNCHER")), "the group jitterlab"]
    )
