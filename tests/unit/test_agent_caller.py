"""Test the identity and the rights of a caller in a class: the agent believes nothing that a caller can choose."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from jitter_workshop.agent import caller as member
from jitter_workshop.agent.caller import caller, read_class
from jitter_workshop.agent.policy import Member, check_asked, permitted
from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.host.classfile import MAX_BYTES, ClassFile
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Change, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.paths import CLASS_FILE
from jitter_workshop.tuning.context import Host
from tests import tuned_tree

ME = os.geteuid()
CLASS = ClassFile("x", CpuSet.parse_list("2-3"), ("ada",), may_apply={"students": ("*",)})
STUDENT = Member(1001, "grace", False, ("*",), CLASS)
TEACHER = Member(1000, "ada", True, (), CLASS)


@pytest.fixture
def root_peer() -> Iterator[int]:
    """A descriptor that is connected with a process of this test's user."""
    ours, theirs = socket.socketpair()
    descriptor = ours.detach()
    try:
        yield descriptor
    finally:
        os.close(descriptor)
        theirs.close()


@pytest.fixture
def pipe() -> Iterator[int]:
    reader, writer = os.pipe()
    try:
        yield reader
    finally:
        os.close(reader)
        os.close(writer)


def test_on_a_socket_the_kernel_names_the_caller(root_peer: int) -> None:
    assert caller(root_peer, {}) == ME


def test_the_caller_is_the_user_of_sudo_on_any_descriptor(root_peer: int, pipe: int) -> None:
    """A user who has the helper by sudo chooses its descriptors: a socket that is connected to a service of root's is
    one."""
    for descriptor in (root_peer, pipe):
        assert caller(descriptor, {"SUDO_UID": "1001"}) == 1001
        assert caller(descriptor, {"PKEXEC_UID": "1002"}) == 1002
        user = pwd.getpwuid(ME).pw_name
        assert caller(descriptor, {"DOAS_USER": user}) == ME
    assert caller(pipe, {}) == 0


@pytest.mark.parametrize("given", ["", "abc", "-1", "1001x", "٣", "99999999999"])
def test_a_caller_variable_without_a_known_user_is_refused(pipe: int, given: str) -> None:
    with pytest.raises(HostError, match="not a user id"):
        caller(pipe, {"SUDO_UID": given})
    with pytest.raises(HostError, match="there is no user"):
        caller(pipe, {"DOAS_USER": "nobody-of-that-name"})


def test_a_file_is_no_supported_descriptor_for_an_answer(tmp_path: Path, root_peer: int, pipe: int) -> None:
    """It may lie on a file system of the caller's own, where a write takes as long as they like."""
    with (tmp_path / "file").open("wb") as file:
        assert not member.is_supported_fd(file.fileno())
    assert member.is_supported_fd(root_peer)
    assert member.is_supported_fd(pipe)


# -- the class file ----------------------------------------------------------------------------------------------------


@pytest.fixture
def class_file(tmp_path: Path) -> Path:
    file = tmp_path / CLASS_FILE.lstrip("/")
    file.parent.mkdir(parents=True)
    file.write_text('name = "x"\nhot_cpus = "1"\n')
    file.chmod(0o644)
    return file


def test_the_class_is_read(tmp_path: Path, class_file: Path) -> None:
    found = read_class(str(tmp_path), ME)
    assert found is not None
    assert found.name == "x"
    class_file.unlink()
    assert read_class(str(tmp_path), ME) is None


def test_a_class_file_that_others_could_have_written_is_refused(tmp_path: Path, class_file: Path) -> None:
    for mode in (0o664, 0o646, 0o666):
        class_file.chmod(mode)
        with pytest.raises(HostError, match="users other than root can change"):
            read_class(str(tmp_path), ME)
    class_file.chmod(0o644)
    with pytest.raises(HostError, match="users other than root can change"):
        read_class(str(tmp_path), ME + 1)


@pytest.mark.parametrize("what", ["link", "folder", "pipe", "huge", "no class"])
def test_an_unfit_class_file_is_refused(tmp_path: Path, class_file: Path, what: str) -> None:
    text = class_file.read_bytes()
    class_file.unlink()
    if what == "link":
        (tmp_path / "elsewhere").write_bytes(text)
        class_file.symlink_to(tmp_path / "elsewhere")
    elif what == "folder":
        class_file.mkdir()
    elif what == "pipe":
        os.mkfifo(class_file)
    elif what == "huge":
        class_file.write_bytes(text + b"#" * MAX_BYTES)
    else:
        class_file.write_bytes(b"instructors = 1")
    with pytest.raises(WorkshopError):
        read_class(str(tmp_path), ME)


# -- who is in it ------------------------------------------------------------------------------------------------------


@pytest.fixture
def people(monkeypatch: pytest.MonkeyPatch) -> None:
    import grp

    known = {name: pwd.struct_passwd((name, "x", uid, gid, "", "/", "/bin/sh")) for name, uid, gid in PEOPLE}
    group = grp.struct_group(("jitterlab", "x", 900, ["grace", "gone"]))
    monkeypatch.setattr(pwd, "getpwnam", known.__getitem__)
    monkeypatch.setattr(pwd, "getpwuid", {one.pw_uid: one for one in known.values()}.__getitem__)
    monkeypatch.setattr(pwd, "getpwall", lambda: list(known.values()))
    monkeypatch.setattr(grp, "getgrnam", {"jitterlab": group}.__getitem__)


PEOPLE = (("root", 0, 0), ("ada", 1000, 1000), ("grace", 1001, 1001), ("alan", 1002, 900), ("eve", 1003, 1003),
          ("jitterlab", 800, 900))  # fmt: skip


@pytest.mark.usefixtures("people")
def test_members_are_of_the_group_and_instructors_of_the_file() -> None:
    assert member.uids_of("jitterlab") == {1001, 1002}
    assert member.uids_of("none") == frozenset()
    assert member.member(1001, CLASS) == Member(1001, "grace", False, ("*",), CLASS)
    assert member.member(1002, CLASS).user == "alan"
    assert member.member(1000, CLASS) == Member(1000, "ada", True, (), CLASS)
    assert member.member(0, CLASS).instructor


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize("uid", [1003, 800, 4242])
def test_others_are_refused(uid: int) -> None:
    """A stranger, the board's own user, a user without a name."""
    with pytest.raises(HostError):
        member.member(uid, CLASS)


# -- what they may -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cpus", ["1", "2", "0-3", "2-3,1", "", "x"])
def test_a_student_names_the_classs_hot_cpus(cpus: str) -> None:
    with pytest.raises((HostError, UsageError)):
        check_asked(STUDENT, (Wanted("thp"),), cpus)
    check_asked(STUDENT, (Wanted("thp"),), "2-3")
    check_asked(STUDENT, (Wanted("thp"),), "3,2")
    check_asked(TEACHER, (Wanted("thp"),), cpus)


@pytest.mark.parametrize("wanted", [Wanted("isolcpus"), Wanted("isolcpus", once=True), Wanted("nosmt")])
@pytest.mark.parametrize("may", [("*",), ("*", "isolcpus", "nosmt")])
def test_only_an_instructor_may_make_boot_changes_under_any_class_file(wanted: Wanted, may: tuple[str, ...]) -> None:
    with pytest.raises(HostError, match="only an instructor may make boot changes"):
        check_asked(replace(STUDENT, may_apply=may), (Wanted("thp"), wanted), "2-3")
    check_asked(TEACHER, (wanted,), "2-3")


@pytest.mark.parametrize("may", [("*",), ("*", "irq-here")])
def test_only_an_instructor_may_send_an_interrupt_to_the_hot_cpus_of_a_class(may: tuple[str, ...]) -> None:
    with pytest.raises(HostError, match="only an instructor may apply irq-here"):
        check_asked(replace(STUDENT, may_apply=may), (Wanted("irq-here", "24"),), "2-3")
    check_asked(TEACHER, (Wanted("irq-here", "24"),), "2-3")


def change(tunable: str = "thp", when: str = "runtime", risk: str = "low") -> Change:
    return Change(0, tunable, "/sys/kernel/mm/transparent_hugepage/enabled", "0", "1", when, risk, "")  # type: ignore[arg-type]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(HostRoot(tuned_tree.make(tmp_path / "tree")), CpuSet((2, 3)))


def test_high_risk_has_to_be_named(host: Host) -> None:
    one = change(risk="high")
    allowed, refused = permitted(host, [one], STUDENT)
    assert (allowed, [item.tunable for item in refused]) == ([], ["thp"])
    assert permitted(host, [one], replace(STUDENT, may_apply=("*", "thp"))) == ([one], [])
    assert permitted(host, [one], TEACHER) == ([one], [])


@pytest.mark.parametrize("when", ["boot", "host", "report"])
def test_a_change_that_is_not_made_at_run_time_is_refused_again_as_it_is_written(host: Host, when: str) -> None:
    allowed, refused = permitted(host, [change(when=when)], replace(STUDENT, may_apply=("*", "thp")))
    assert allowed == []
    assert "only an instructor may make boot changes" in refused[0].reason
