"""Writes that a user makes by hand: announced before they are made, adopted where right, restored either way."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jitter_workshop.agent.changes import Changes
from jitter_workshop.agent.server import Server, Setup
from jitter_workshop.errors import HeldError, HostError, UsageError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import ApplyResult, Change
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning import journal
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import digest
from jitter_workshop.tuning.tunables.registry import parse_wanted
from tests import tuned_tree
from tests.agent_on_tree import FakeKernel, Steps
from tests.tuned_tree import HOT, contents, journals, planned

WORDS = ("thp", "stat-interval")
INTERVAL = "proc/sys/vm/stat_interval"
LEASE_S = 60.0


class Counting(FakeKernel):
    """Counts what it is asked to write."""

    writes = 0

    def write(self, path: str, value: str) -> None:
        self.writes += 1
        super().write(path, value)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tuned_tree.make(tmp_path)


@pytest.fixture
def kernel(tree: Path) -> Counting:
    return Counting(tree, Steps({}), {})


@pytest.fixture
def setup(tree: Path, kernel: Counting) -> Setup:
    return Setup(HostRoot(tree), kernel, str(tree), os.geteuid(), 1000, "user 1000", "tests", lock_wait_s=0.1)


@pytest.fixture
def changes(setup: Setup) -> Iterator[Changes]:
    made = Changes(setup)
    yield made
    made.close()


def announce(changes: Changes, tree: Path, words: tuple[str, ...] = WORDS) -> tuple[ApplyResult, list[Change]]:
    drawn = list(planned(tree, words).changes)
    asked = Host(HostRoot(tree), CpuSet.parse_list(HOT))
    return changes.announce(parse_wanted(words), asked, [digest(one) for one in drawn], LEASE_S), drawn


def by_hand(tree: Path, change: Change, value: str | None = None) -> None:
    """Write a value as the learner does, past the agent."""
    FakeKernel(tree, Steps({}), {}).write(change.path, change.after if value is None else value)


def states(tree: Path) -> dict[str, str]:
    return {e.path: e.state for one in journal.read_journals(HostRoot(tree)) for e in one.entries.values()}


def test_announcing_writes_nothing_and_keeps_the_old_values_on_the_disk(
    tree: Path, changes: Changes, kernel: Counting
) -> None:
    before = contents(tree)
    result, drawn = announce(changes, tree)
    assert result.journal_id
    assert result.applied == result.refused == ()
    # A caller that falls silent is not waited for.
    assert changes.lease_s == LEASE_S
    assert contents(tree) == before
    assert kernel.writes == 0
    assert states(tree) == {one.path: "intent" for one in drawn}
    (kept,) = journal.read_journals(HostRoot(tree))
    assert {(e.path, e.before) for e in kept.active} == {(one.path, one.before) for one in drawn}
    # An announced setting is not one that was changed.
    assert journal.active(HostRoot(tree)) == ()
    assert journal.applied_tunables(HostRoot(tree)) == ()


def test_a_write_that_was_not_shown_is_not_announced(tree: Path, changes: Changes) -> None:
    first, *rest = planned(tree, WORDS).changes
    asked = Host(HostRoot(tree), CpuSet.parse_list(HOT))
    result = changes.announce(parse_wanted(WORDS), asked, [digest(first)], LEASE_S)
    assert {one.path for one in result.refused} == {one.path for one in rest}
    assert list(states(tree)) == [first.path]


def test_a_value_that_changed_since_it_was_shown_is_not_announced(tree: Path, changes: Changes) -> None:
    shown = [digest(one) for one in planned(tree, ("stat-interval",)).changes]
    (tree / INTERVAL).write_text("7\n")
    asked = Host(HostRoot(tree), CpuSet.parse_list(HOT))
    result = changes.announce(parse_wanted(("stat-interval",)), asked, shown, LEASE_S)
    assert result.journal_id is None
    assert [one.path for one in result.refused] == [f"/{INTERVAL}"]
    assert journals(tree) == []
    assert not changes.leased


@pytest.mark.parametrize("adopted", [True, False])
def test_writes_made_by_hand_are_restored_adopted_or_not(tree: Path, changes: Changes, adopted: bool) -> None:
    before = contents(tree)
    result, drawn = announce(changes, tree)
    for one in drawn:
        by_hand(tree, one)
    if adopted:
        taken = changes.adopt(result.journal_id or "")
        assert {(a.path, a.before, a.after) for a in taken.applied} == {(d.path, d.before, d.after) for d in drawn}
        assert taken.refused == ()
        assert {one["id"] for one in journal.applied_tunables(HostRoot(tree))} == set(WORDS)
    assert {one.path for one in changes.end_lease().restored} == {one.path for one in drawn}
    assert contents(tree) == before
    assert journals(tree) == []


def test_adopting_writes_nothing_and_takes_only_the_planned_value(
    tree: Path, changes: Changes, kernel: Counting
) -> None:
    result, drawn = announce(changes, tree)
    wrong = next(one for one in drawn if one.path == f"/{INTERVAL}")
    right = next(one for one in drawn if one.path != f"/{INTERVAL}")
    by_hand(tree, wrong, "77")
    by_hand(tree, right)
    taken = changes.adopt(result.journal_id or "")
    assert [one.path for one in taken.applied] == [right.path]
    reasons = {one.path: one.reason for one in taken.refused}
    assert "'77'" in reasons[wrong.path]
    assert kernel.writes == 0
    # The wrong value is put right, and then it is adopted; what was adopted stays so.
    by_hand(tree, wrong)
    assert {one.path for one in changes.adopt(result.journal_id or "").applied} >= {right.path, wrong.path}
    assert states(tree)[wrong.path] == "written"


def test_another_value_than_the_plan_s_is_restored_once_the_user_says_that_it_is_theirs(
    tree: Path, changes: Changes, kernel: Counting
) -> None:
    before = contents(tree)
    result, drawn = announce(changes, tree)
    wrong = next(one for one in drawn if one.path == f"/{INTERVAL}")
    by_hand(tree, wrong, "77")
    (taken,) = changes.adopt(result.journal_id or "", end=True, wrong=True).applied
    assert (taken.path, taken.before, taken.after, taken.read_back) == (wrong.path, wrong.before, wrong.after, "77")
    assert states(tree)[wrong.path] == "written"
    assert kernel.writes == 0
    # A further value is not the one that was taken over.
    by_hand(tree, wrong, "78")
    assert [one.found for one in changes.restore((), None).left_alone] == ["78"]
    by_hand(tree, wrong, "77")
    assert [one.path for one in changes.end_lease().restored] == [wrong.path]
    assert contents(tree) == before
    assert journals(tree) == []


def test_another_value_than_the_plan_s_is_left_alone(tree: Path, changes: Changes) -> None:
    _, drawn = announce(changes, tree)
    wrong = next(one for one in drawn if one.path == f"/{INTERVAL}")
    by_hand(tree, wrong, "77")
    left = changes.end_lease().left_alone
    assert [one.path for one in left] == [wrong.path]
    assert left[0].found == "77"
    assert (tree / INTERVAL).read_text().strip() == "77"


def test_nothing_is_written_where_nothing_was_made(tree: Path, changes: Changes, kernel: Counting) -> None:
    before = contents(tree)
    announce(changes, tree, ("thp", "stat-interval", "irq-affinity", "workqueue-mask", "governor=performance"))
    result = changes.end_lease()
    assert result.restored == result.left_alone == ()
    assert kernel.writes == 0
    assert contents(tree) == before
    assert journals(tree) == []


def test_only_the_connection_that_announced_adopts(tree: Path, setup: Setup, changes: Changes) -> None:
    result, drawn = announce(changes, tree)
    other = Changes(setup)
    with pytest.raises(UsageError):
        other.adopt(result.journal_id or "")
    with pytest.raises(HeldError):
        other.restore((), None)
    other.close()
    with pytest.raises(UsageError):
        changes.adopt("../../etc/passwd")
    by_hand(tree, drawn[0])
    changes.end_lease()
    with pytest.raises(UsageError):
        changes.adopt(result.journal_id or "")


def test_a_journal_that_was_given_back_is_not_adopted(tree: Path, changes: Changes) -> None:
    result, _ = announce(changes, tree)
    changes.restore(WORDS, None)
    with pytest.raises(HostError):
        changes.adopt(result.journal_id or "")


def test_a_killed_agent_s_announcement_is_enough_to_give_back(tree: Path, setup: Setup) -> None:
    """Neither the workshop nor its agent lives on: the journal alone knows the old values."""
    before = contents(tree)
    killed = Changes(setup)
    _, drawn = announce(killed, tree)
    by_hand(tree, drawn[0])
    killed.close()  # releases the lock as the kernel does; the lease is not ended
    later = Changes(setup)
    assert {one.path for one in later.restore((), None).restored} == {drawn[0].path}
    later.close()
    assert contents(tree) == before
    assert journals(tree) == []


def test_only_writes_that_were_made_are_kept(tree: Path, changes: Changes, setup: Setup) -> None:
    """A value that somebody sets after the watch is their own, even if the plan has the same value."""
    _, drawn = announce(changes, tree)
    made, later = drawn[0], drawn[-1]
    by_hand(tree, made)
    changes.keep(())
    by_hand(tree, later)
    changes.close()
    other = Changes(setup)
    assert [one.path for one in other.restore((), None).restored] == [made.path]
    other.close()
    assert HostRoot(tree).text(later.path) is not None
    assert journals(tree) == []


def test_changes_that_no_hand_can_make_are_not_watched(tree: Path, changes: Changes) -> None:
    for cpu in (2, 3):
        (tree / f"sys/devices/system/cpu/cpu{cpu}/online").write_text("1\n")
    result, drawn = announce(changes, tree, ("hotplug", "thp"))
    held = [one for one in drawn if one.kind == "cpu-cycle"]
    assert held
    assert {one.path for one in result.refused} >= {one.path for one in held}
    assert {one.path for one in drawn if one.tunable == "thp"} <= set(states(tree))


def test_a_connection_that_announced_restores_when_it_ends(tree: Path, setup: Setup) -> None:
    before = contents(tree)
    drawn = planned(tree, WORDS).changes
    asked = {"wanted": list(WORDS), "cpus": HOT, "shown": [digest(one) for one in drawn]}
    (there, source), (back, sink) = os.pipe(), os.pipe()
    server = threading.Thread(target=Server(setup, there, sink).serve)
    server.start()

    def ask(number: int, verb: str, **fields: object) -> dict[str, dict[str, object]]:
        os.write(source, json.dumps({"id": number, "verb": verb, **fields}).encode() + b"\n")
        answer: dict[str, dict[str, object]] = json.loads(os.read(back, 1 << 16).splitlines()[0])
        return answer

    assert "lease" in str(ask(1, "announce", **asked, lease=None)["error"]["message"])
    begun = ask(2, "announce", **asked, lease=60)["ok"]
    for one in drawn:
        by_hand(tree, one)
    adopted = ask(3, "adopt", journal=begun["journal_id"])["ok"]
    assert len(list(adopted["applied"])) == len(drawn)  # type: ignore[call-overload]
    assert contents(tree) != before
    os.close(source)
    server.join(30)
    assert contents(tree) == before
    assert journals(tree) == []
    os.close(back)
