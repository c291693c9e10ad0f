"""Turns between real agents on a made host: in order, one at a time, and the host as it was after each, whatever
becomes of who had it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jitter_workshop.agent.policy import NO_BOOT_CHANGES
from jitter_workshop.tuning.planning import digest
from tests import tuned_tree
from tests.classpeople import LIMIT_S, People, contents, state, until, waits
from tests.tuned_tree import HOT, journals, planned

pytestmark = pytest.mark.host

WORDS = ("governor", "thp")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tuned_tree.make(tmp_path)


@pytest.fixture
def people(tree: Path) -> Iterator[People]:
    made = People(tree)
    try:
        yield made
    finally:
        made.close()


def test_the_turn_goes_from_one_to_the_next_in_order(tree: Path, people: People) -> None:
    three = [people.student(name) for name in ("grace", "alan", "edsger")]
    three[0].take()
    until(lambda: state(tree).number == 1)  # else who is asked first may come second
    for number, one in enumerate(three[1:], 1):
        one.take()
        waits(tree, number)
    numbers = []
    for one in three:
        numbers.append(one.granted()["ok"]["number"])
        assert one.give() == {}
    assert numbers == [1, 2, 3]
    until(lambda: state(tree).turn is None)


def test_without_the_turn_nothing_is_changed(tree: Path, people: People) -> None:
    before = contents(tree)
    one = people.student("grace")
    drawn = planned(tree, WORDS)
    for reply in (
        one.apply(drawn, WORDS, lease=20.0),
        one.ask("restore"),
        one.ask("keep"),
        one.ask("place", pid=one.client.pid),
        one.ask("place_threads", pid=one.client.pid, tids=[one.client.pid]),
        one.ask("realtime", pid=one.client.pid, tids=[one.client.pid], priority=1),
        one.ask("evidence", do="end"),
    ):
        assert "error" in reply
    assert one.ask("plan", wanted=list(WORDS), cpus=HOT)["changes"]
    assert contents(tree) == before
    assert journals(tree) == []


def test_applied_changes_are_restored_with_the_turn(tree: Path, people: People) -> None:
    before = contents(tree)
    one = people.student("grace")
    one.take()
    assert one.granted()["ok"]["number"] == 1
    applied = one.apply(planned(tree, WORDS), WORDS, lease=20.0)
    assert applied["applied"]
    assert contents(tree) != before
    assert one.give() == {}
    assert contents(tree) == before
    assert journals(tree) == []
    assert "error" in one.apply(planned(tree, WORDS), WORDS, lease=20.0)


@pytest.mark.parametrize("how", ["left", "agent killed", "agent told to stop"])
def test_the_host_is_restored_before_the_next_turn_however_the_last_turn_ends(
    tree: Path, people: People, how: str
) -> None:
    before = contents(tree)
    first, second = people.student("grace"), people.student("alan")
    first.take()
    assert "ok" in first.granted()
    assert first.apply(planned(tree, WORDS), WORDS, lease=20.0)["applied"]
    second.take()
    waits(tree, 1)
    if how == "left":
        first.end()
    else:
        first.signal(signal.SIGKILL if "killed" in how else signal.SIGTERM)
    assert second.granted()["ok"]["number"] == 2
    assert contents(tree) == before
    assert second.apply(planned(tree, WORDS), WORDS, lease=20.0)["applied"]


def test_a_waiting_agent_ends_an_agent_that_hangs(tree: Path, people: People) -> None:
    """The cause of the hanging does not matter: here the agent is stopped, as no student can."""
    before = contents(tree)
    first, second = people.student("grace", "turn_s=0.3"), people.student("alan", "grace=0.5")
    first.take()
    assert "ok" in first.granted()
    assert first.apply(planned(tree, WORDS), WORDS, lease=20.0)["applied"]
    second.take()
    waits(tree, 1)
    first.hang()
    assert second.granted()["ok"]["number"] == 2
    assert contents(tree) == before
    assert first.end() == -signal.SIGKILL


def test_an_agent_that_hangs_is_ended_where_an_instructor_says_so(tree: Path, people: People) -> None:
    first, second, ada = people.student("grace"), people.student("alan", "grace=0.5"), people.instructor()
    first.take()
    assert "ok" in first.granted()
    second.take()
    waits(tree, 1)
    first.hang()
    assert ada.ask("turn", do="end") == {}
    assert second.granted()["ok"]["number"] == 2


def test_root_on_a_pipe_needs_no_turn_and_instructs(tree: Path, people: People) -> None:
    root = people.student("root", "instructor=1", "free=1")
    assert root.apply(planned(tree, ("thp",)), ("thp",))["applied"]
    assert root.ask("restore")["restored"]
    assert root.ask("turn", do="freeze") == {}
    assert state(tree).frozen_by == "root"


def test_a_holder_that_gives_and_takes_again_is_last_in_the_queue(tree: Path, people: People) -> None:
    first, second = people.student("grace"), people.student("alan")
    first.take()
    assert "ok" in first.granted()
    second.take()
    waits(tree, 1)
    for number in (2, 4):
        assert first.give() == {}
        first.take()
        assert second.granted()["ok"]["number"] == number
        waits(tree, 1)
        assert second.give() == {}
        second.take()
        assert first.granted()["ok"]["number"] == number + 1
        waits(tree, 1)


def test_single_bytes_do_not_keep_a_turn(tree: Path, people: People) -> None:
    """A byte now and then is no sign of life of a program that has the turn."""
    first, second = people.student("grace", "silence=0.5"), people.student("alan")
    first.take()
    assert "ok" in first.granted()
    second.take()
    with contextlib.suppress(BrokenPipeError):
        while not select.select([second._from], [], [], 0.05)[0]:
            first._to.write(b" ")
    assert second.granted()["ok"]["number"] == 2


def test_a_machine_that_is_not_as_it_was_is_the_instructors_until_they_say_so(tree: Path, people: People) -> None:
    governor = "/sys/devices/system/cpu/cpufreq/policy2/scaling_governor"
    first, second, ada = (
        people.student("grace", f"clamp={governor}:performance"),
        people.student("alan"),
        people.instructor(),
    )
    first.take()
    assert "ok" in first.granted()
    assert first.apply(planned(tree, ("governor",)), ("governor",), lease=20.0)["applied"]
    second.take()
    waits(tree, 1)
    assert first.give() == {}
    assert "governor" in state(tree).trouble
    assert state(tree).turn is None
    ada.take()
    assert "ok" in ada.granted()
    ada.ask("restore", forget=True)
    assert ada.give() == {}
    assert [one.people for one in state(tree).queue] == [("alan",)]
    assert ada.ask("turn", do="thaw") == {}
    assert "ok" in second.granted()


def test_an_agent_that_died_in_the_queue_is_not_granted_a_turn(tree: Path, people: People) -> None:
    first, second = people.student("grace"), people.student("alan")
    first.take()
    assert "ok" in first.granted()
    second.take()
    waits(tree, 1)
    second.signal(signal.SIGKILL)
    assert second.end() == -signal.SIGKILL
    assert first.give() == {}
    assert (state(tree).turn, state(tree).queue) == (None, ())


def test_a_killed_agent_without_a_queue_is_cleaned_up_after(tree: Path, people: People) -> None:
    before = contents(tree)
    first = people.student("grace")
    first.take()
    assert "ok" in first.granted()
    assert first.apply(planned(tree, WORDS), WORDS, lease=20.0)["applied"]
    first.signal(signal.SIGKILL)
    until(lambda: state(tree).turn is None)
    assert state(tree).trouble == ""
    assert contents(tree) == before
    assert journals(tree) == []


def test_a_turn_ends_by_time_for_a_client_that_never_stops_talking(tree: Path, people: People) -> None:
    before = contents(tree)
    first, second = people.student("grace", "turn_s=0.6"), people.student("alan")
    first.take()
    assert first.granted()["ok"]["ends_in_s"] <= 0.6
    assert first.apply(planned(tree, WORDS), WORDS, lease=20.0)["applied"]
    second.take()
    ends = time.monotonic() + LIMIT_S
    while state(tree).number < 2:
        assert time.monotonic() < ends
        first.send(b"\n".join([b'{"verb":"heartbeat"}'] * 100))
    assert second.granted()["ok"]["number"] == 2
    assert contents(tree) == before
    refusal = first.apply(planned(tree, WORDS), WORDS, lease=20.0)
    assert "your turn is over" in refusal["error"]["message"]


def test_a_turn_ends_by_time_for_a_client_that_does_not_read_the_answers(tree: Path, people: People) -> None:
    """The pipe is full, and the agent waits to be heard: the turn's time goes on."""
    first, second = people.student("grace", "turn_s=0.6"), people.student("alan")
    first.take()
    assert "ok" in first.granted()
    second.take()
    waits(tree, 1)
    began = time.monotonic()
    with contextlib.suppress(BrokenPipeError):
        while state(tree).number < 2:
            assert time.monotonic() < began + LIMIT_S
            if select.select([], [first._to], [], 0.05)[1]:
                first.send(b'{"id":1,"verb":"hello"}')
    assert second.granted()["ok"]["number"] == 2


def test_a_holder_that_stands_still_loses_the_turn(tree: Path, people: People) -> None:
    first, second = people.student("grace", "silence=0.3"), people.student("alan")
    first.take()
    assert "ok" in first.granted()
    second.take()
    assert second.granted()["ok"]["number"] == 2


def test_a_waiting_agent_that_stands_still_loses_its_place(tree: Path, people: People) -> None:
    first, second, third = people.student("grace"), people.student("alan", "silence=0.3"), people.student("edsger")
    first.take()
    assert "ok" in first.granted()
    second.take()
    third.take()
    until(lambda: [one.people for one in state(tree).queue] == [("edsger",)])
    assert second.granted() is None


def test_an_instructor_ends_freezes_and_thaws(tree: Path, people: People) -> None:
    ada, first, second = people.instructor(), people.student("grace"), people.student("alan")
    first.take()
    assert "ok" in first.granted()
    second.take()
    waits(tree, 1)
    assert ada.ask("turn", do="freeze") == {}
    assert ada.ask("turn", do="end") == {}
    until(lambda: state(tree).turn is None)
    assert state(tree).frozen_by == "ada"
    refusal = first.apply(planned(tree, WORDS), WORDS, lease=20.0)
    assert "ada ended your turn" in refusal["error"]["message"]
    assert ada.ask("turn", do="thaw") == {}
    assert second.granted()["ok"]["number"] == 2


@pytest.mark.parametrize("do", ["end", "freeze", "thaw"])
def test_a_student_cannot_use_the_requests_of_an_instructor(tree: Path, people: People, do: str) -> None:
    before = state(tree)
    assert "instructor" in people.student("grace").ask("turn", do=do)["error"]["message"]
    assert state(tree) == before


def test_changes_that_an_instructor_keeps_are_a_baseline_that_no_student_restores(tree: Path, people: People) -> None:
    ada, student = people.instructor(), people.student("grace")
    ada.take()
    assert "ok" in ada.granted()
    assert ada.apply(planned(tree, ("thp",)), ("thp",))["applied"]
    assert ada.give() == {}
    baseline = contents(tree)
    student.take()
    assert "ok" in student.granted()
    assert student.apply(planned(tree, ("governor",)), ("governor",), lease=20.0)["applied"]
    back = student.ask("restore", forget=True)
    assert {one["tunable"] for one in back["restored"]} == {"governor"}
    assert contents(tree) == baseline
    assert student.apply(planned(tree, ("governor",)), ("governor",), lease=20.0)["applied"]
    assert student.give() == {}
    assert contents(tree) == baseline
    assert len(journals(tree)) == 1


def test_only_an_instructor_makes_changes_by_hand(tree: Path, people: People) -> None:
    """Students of a class have no root shell, so the turn never waits for what a student types."""
    before, (change,) = contents(tree), planned(tree, ("stat-interval",)).changes
    asked = {"wanted": ["stat-interval"], "cpus": HOT, "shown": [digest(change)], "lease": 20.0}
    student, ada = people.student("grace"), people.instructor()
    student.take()
    assert "ok" in student.granted()
    assert "error" in student.ask("announce", **asked)
    assert journals(tree) == []
    student.give()
    assert "error" in ada.ask("announce", **asked)
    ada.take()
    assert "ok" in ada.granted()
    journal = ada.ask("announce", **asked)["journal_id"]
    (tree / change.path[1:]).write_text(f"{change.after}\n")
    assert [one["path"] for one in ada.ask("adopt", journal=journal)["applied"]] == [change.path]
    assert ada.give() == {}
    assert contents(tree) == before
    assert "error" in ada.ask("adopt", journal=journal)


def test_an_instructor_holds_the_machine_and_the_leased_changes_end_with_the_turn(tree: Path, people: People) -> None:
    ada, student = people.instructor(), people.student("grace")
    ada.take()
    assert ada.granted()["ok"]["ends_in_s"] is None
    before = contents(tree)
    assert ada.apply(planned(tree, ("thp",)), ("thp",), lease=20.0)["applied"]
    student.take()
    waits(tree, 1)
    ada.give()
    assert "ok" in student.granted()
    assert contents(tree) == before


@pytest.mark.parametrize(
    ("options", "words", "hot", "lease", "says"),
    [
        ((), ("thp",), HOT, None, "changes that end with your turn"),
        ((), ("thp",), "1", 20.0, "the hot CPUs of this class are 2-3"),
        ((), ("isolcpus",), HOT, 20.0, NO_BOOT_CHANGES),
        (("may=governor",), ("thp",), HOT, 20.0, "you may not apply"),
        (("may=",), ("governor",), HOT, 20.0, "you may not apply"),
    ],
)
def test_policy_holds_within_a_turn(
    tree: Path, people: People, options: tuple[str, ...], words: tuple[str, ...], hot: str, lease: float, says: str
) -> None:
    before = contents(tree)
    one = people.student("grace", *options)
    one.take()
    assert "ok" in one.granted()
    reply = one.apply(planned(tree, words, hot), words, lease=lease, hot=hot)
    assert says in json.dumps(reply, ensure_ascii=False)
    assert contents(tree) == before


def test_a_client_of_another_user_is_refused(tree: Path, people: People) -> None:
    one, other = people.student("grace"), people.student("alan")
    reply = one.ask("turn", do="take", client=other.client.pid)
    assert "not yours" in reply["error"]["message"]
    assert "cannot be opened" in one.ask("turn", do="take", client=4_194_303)["error"]["message"]
    assert state(tree).queue == ()


def test_a_stranger_to_the_class_is_no_team_mate(tree: Path, people: People) -> None:
    one = people.student("grace")
    reply = one.ask("turn", do="take", client=one.client.pid, people=["nobody-of-that-name"])
    assert "is not in this class" in reply["error"]["message"]


def test_the_audit_names_the_user_and_the_change(tree: Path, people: People) -> None:
    one = people.student("grace")
    one.take()
    assert "ok" in one.granted()
    assert one.apply(planned(tree, ("thp",)), ("thp",), lease=20.0)["applied"]
    one.give()
    one.ask("keep")
    folder = tree / tuned_tree.STATE
    for name, what in (("audit", {"applied", "given back"}), ("turns", {"turn began", "turn ended"})):
        log = folder / f"{name}.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert {line["what"] for line in lines} == what
        assert {(line["user"], line["uid"]) for line in lines} == {("grace", 6000)}
        assert log.stat().st_mode & 0o077 == 0
    assert "changes that end with your turn" in (folder / "refusals.jsonl").read_text()


@pytest.mark.parametrize(
    "line",
    [
        b'{"verb":"turn"}',
        b'{"verb":"turn","do":7}',
        b'{"verb":"turn","do":"take"}',
        b'{"verb":"turn","do":"take","client":"1"}',
        b'{"verb":"turn","do":"take","client":-1}',
        b'{"verb":"turn","do":"take","client":0}',
        b'{"verb":"turn","do":"take","client":1,"people":"ada"}',
        b'{"verb":"turn","do":"take","client":1,"people":["../../etc/passwd"]}',
        b'{"verb":"turn","do":"take","client":1,"people":["a","b","c","d","e","f","g","h","i"]}',
        b'{"verb":"turn","do":"doing","doing":"mine"}',
        b'{"verb":"turn","do":"\\u001b[2J"}',
    ],
)
def test_hostile_requests_are_answered_and_change_nothing(tree: Path, people: People, line: bytes) -> None:
    one = people.student("grace")
    one.send(line)
    reply = one.receive()
    assert "error" in reply
    assert reply["error"]["message"].isprintable()
    assert state(tree).turn is None
    assert state(tree).queue == ()
    assert os.waitpid(one.pid, os.WNOHANG) == (0, 0)
