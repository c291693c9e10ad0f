"""The changes of one connection: only what was shown, one agent at a time, a lease that ends with its connection."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jitter_workshop.agent.changes import Changes
from jitter_workshop.agent.lock import HostLock
from jitter_workshop.agent.server import Server, Setup
from jitter_workshop.agent.statedir import StateDir
from jitter_workshop.errors import HeldError, UsageError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import ApplyResult
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import digest
from jitter_workshop.tuning.tunables.registry import parse_wanted
from tests import hosttrees, tuned_tree
from tests.agent_on_tree import FakeKernel, Steps
from tests.tuned_tree import HOT, contents, journals, planned

WORDS = ("thp", "stat-interval")
INTERVAL = "proc/sys/vm/stat_interval"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tuned_tree.make(tmp_path)


@pytest.fixture
def setup(tree: Path) -> Setup:
    return Setup(
        root=HostRoot(tree),
        writer=FakeKernel(tree, Steps({}), {}),
        top=str(tree),
        owner=os.geteuid(),
        uid=1000,
        who="user 1000",
        tree="tests",
        lock_wait_s=0.1,
    )


@pytest.fixture
def changes(setup: Setup) -> Iterator[Changes]:
    made = Changes(setup)
    yield made
    made.close()


def host(tree: Path) -> Host:
    return Host(HostRoot(tree), CpuSet.parse_list(HOT))


def apply(
    changes: Changes, tree: Path, shown: list[str], lease_s: float | None = None, seen: Host | None = None
) -> ApplyResult:
    return changes.apply(parse_wanted(WORDS), seen or host(tree), shown, lease_s, lambda: False)


def test_only_shown_writes_are_made(tree: Path, changes: Changes) -> None:
    before = contents(tree)
    first, *rest = planned(tree, WORDS).changes
    assert rest
    result = apply(changes, tree, [digest(first)])
    assert [one.path for one in result.applied] == [first.path]
    assert {one.path for one in result.refused} == {one.path for one in rest}
    now = contents(tree)
    assert {path for path in now if now[path] != before[path]} == {first.path.lstrip("/")}


def test_a_value_that_changed_since_it_was_shown_is_not_written_over(tree: Path, changes: Changes) -> None:
    """The write from 1 to 120 was shown; the digest has both values."""
    shown = [digest(change) for change in planned(tree, WORDS).changes]
    (tree / INTERVAL).write_text("7\n")
    result = apply(changes, tree, shown)
    assert [one.path for one in result.refused] == [f"/{INTERVAL}"]
    assert (tree / INTERVAL).read_text() == "7\n"


def test_the_plan_is_made_from_the_host_as_it_is_under_the_lock(tree: Path, changes: Changes) -> None:
    seen = host(tree)
    shown = [digest(change) for change in planned(tree, WORDS).changes]
    assert seen.kernel.boot_id
    another = f"ffffffff{hosttrees.BOOT_ID[8:]}"
    (tree / "proc/sys/kernel/random/boot_id").write_text(f"{another}\n")
    result = apply(changes, tree, shown, seen=seen)
    (journal,) = (tree / tuned_tree.STATE / "journal").glob("*.jsonl")
    assert result.journal_id == journal.stem
    assert json.loads(journal.read_text().splitlines()[0])["boot_id"] == another


def test_no_other_agent_changes_the_host_while_a_lease_lives(tree: Path, setup: Setup, changes: Changes) -> None:
    shown = [digest(change) for change in planned(tree, WORDS).changes]
    assert apply(changes, tree, shown, lease_s=10.0).applied
    other = Changes(setup)
    with pytest.raises(HeldError):
        other.restore((), None)
    with pytest.raises(UsageError):
        apply(changes, tree, shown)
    assert changes.end_lease().restored
    assert other.restore((), None).restored == ()
    other.close()


def test_a_restore_of_the_last_leased_journal_ends_the_lease_and_frees_the_host(
    tree: Path, setup: Setup, changes: Changes
) -> None:
    shown = [digest(change) for change in planned(tree, WORDS).changes]
    made = apply(changes, tree, shown, lease_s=10.0)
    other = Changes(setup)
    assert changes.restore((), (str(made.journal_id),)).restored
    assert (changes.leased, changes.lease_s) == ([], None)
    assert other.restore((), None).restored == ()
    other.close()


def test_a_restore_of_one_journal_leaves_the_other_leased(tree: Path, setup: Setup, changes: Changes) -> None:
    one, two = (planned(tree, (word,)).changes for word in WORDS[:2])
    made = [
        changes.apply(parse_wanted((word,)), host(tree), [digest(one) for one in plan], 10.0, lambda: False)
        for word, plan in zip(WORDS, (one, two), strict=False)
    ]
    assert changes.restore((), (str(made[0].journal_id),)).restored
    assert (changes.leased, changes.lease_s) == ([made[1].journal_id], 10.0)
    other = Changes(setup)
    with pytest.raises(HeldError):
        other.restore((), None)
    other.close()
    assert changes.end_lease().restored


def test_a_lock_has_one_holder_and_names_it(tree: Path, setup: Setup) -> None:
    folder = StateDir(str(tree), os.geteuid())
    first, second = HostLock(folder, "the first"), HostLock(folder, "the second")
    first.take(0)
    with pytest.raises(HeldError, match="the first"):
        second.take(0)
    first.release()
    second.take(0)
    for one in (first, second):
        one.close()
    folder.close()
    assert (tree / tuned_tree.STATE / "lock").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("ending", [b"", b'{"verb":"bye","id":3}\n'])
def test_a_lease_ends_with_its_connection(tree: Path, setup: Setup, ending: bytes) -> None:
    before = contents(tree)
    shown = [digest(change) for change in planned(tree, WORDS).changes]
    request = {"id": 1, "verb": "apply", "wanted": list(WORDS), "cpus": HOT, "shown": shown, "lease": 60}
    (there, source), (back, sink) = os.pipe(), os.pipe()
    server = threading.Thread(target=Server(setup, there, sink).serve)
    server.start()
    os.write(source, json.dumps(request).encode() + b"\n")
    answer = json.loads(os.read(back, 1 << 16).splitlines()[0])
    assert len(answer["ok"]["applied"]) == len(shown)
    assert contents(tree) != before
    os.write(source, ending)
    os.close(source)
    server.join(30)
    assert contents(tree) == before
    assert journals(tree) == []
    os.close(back)
