"""Test every tunable on every made host: its words make sense, and its writes can be restored."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from jitter_workshop.errors import UsageError
from jitter_workshop.flow.host_ops.hotcpus import choose_hot
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Wanted
from jitter_workshop.tuning.base import Tunable, Unavailable, Write
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import owned, plan_changes
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.tunables.registry import HEADINGS, tunable_heading, tunables
from jitter_workshop.tuning.writer import HostWriter
from tests import hosttrees

Tree = Callable[[str], Path]
EVERY = tunables()
HOSTS = sorted(hosttrees.EVERY)
STATES = {"ok", "improve", "unavailable", "info"}

ON_FILES = frozenset({"value", "number", "choice", "cpu-list", "cpu-mask"})
"""Kinds whose write leaves on a made tree what it leaves on a kernel, but for the form of a choice."""


@cache
def read_once(root: Path) -> Host:
    """The host of a tree that no test changes; what is read of it is kept."""
    return host_of(root)


def host_of(root: Path) -> Host:
    place = HostRoot(root)
    return Host(place, choose_hot(place, None).cpus)


def asked_of(tunable: Tunable, host: Host) -> Sequence[Write]:
    """The writes of a tunable without a value; none where it is not to be had, or where a value must be given."""
    try:
        return tunable.writes(host, None)
    except Unavailable:
        return ()
    except UsageError:
        if tunable.default is not None:
            raise
        return ()


def by_id(tunable: Tunable) -> str:
    return tunable.id


def contents(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def test_ids_are_unique_and_plain() -> None:
    ids = [t.id for t in EVERY]
    assert len(ids) == len(set(ids))
    assert all(i and i == i.lower() and i.replace("-", "").isalnum() for i in ids)


@pytest.mark.parametrize("tunable", EVERY, ids=by_id)
def test_each_tunable_has_a_title_and_a_reason_in_their_limits(tunable: Tunable) -> None:
    assert tunable.title
    assert len(tunable.title) <= 52
    assert tunable.title[0].isupper() or tunable.title == tunable.id == "irqbalance"
    assert len(tunable.why) >= 40
    assert tunable.why.endswith(".")
    assert tunable.why.count(". ") <= 2, "one or two sentences, three at most"
    assert not tunable.danger.endswith(".")
    assert tunable.document
    assert tunable.risk in ("low", "medium", "high")
    assert tunable.when in ("runtime", "boot", "host", "report")
    assert tunable_heading(tunable) not in HEADINGS, "its family has a heading"
    if tunable.when in ("host", "report"):
        assert not tunable.changes_host
    if tunable.default is not None:
        assert tunable.values


@pytest.mark.parametrize("tunable", EVERY, ids=by_id)
@pytest.mark.parametrize("name", HOSTS)
def test_each_tunable_gives_a_printable_assessment_of_each_host(tunable: Tunable, name: str, host_tree: Tree) -> None:
    said = tunable.assess(read_once(host_tree(name)))
    assert (said.id, said.title, said.when) == (tunable.id, tunable.title, tunable.when)
    assert said.state in STATES
    assert said.reason
    assert "None" not in said.reason
    assert said.reason.isprintable()
    assert said.value is None or said.value.isprintable()
    assert all(isinstance(path, str) and path for path in said.paths)
    if said.state == "improve":
        assert said.fix, "what to do is said"
        assert said.wanted != said.value or said.wanted is None
    if said.state == "ok":
        assert not said.fix


@pytest.mark.parametrize("tunable", EVERY, ids=by_id)
@pytest.mark.parametrize("name", HOSTS)
def test_each_tunable_writes_only_files_that_it_owns(tunable: Tunable, name: str, host_tree: Tree) -> None:
    host = read_once(host_tree(name))
    for write in asked_of(tunable, host):
        assert owned(tunable, write.path), write.path
        kind = kind_of(write.kind)
        assert kind.same(write.before, write.before)
        assert kind.same(write.after, write.after)
        assert not write.lease or tunable.changes_host


@pytest.mark.parametrize("name", HOSTS)
def test_a_check_that_can_be_better_can_be_planned(name: str, host_tree: Tree) -> None:
    host = read_once(host_tree(name))
    for tunable in EVERY:
        if tunable.changes_host and tunable.when == "runtime" and tunable.assess(host).state == "improve":
            drawn = plan_changes(host, [Wanted(tunable.id)])
            assert drawn.changes, f"{tunable.id} is to be better, but {drawn.skipped}"


@pytest.mark.parametrize("tunable", [t for t in EVERY if t.changes_host], ids=by_id)
@pytest.mark.parametrize("name", HOSTS)
def test_written_and_given_back(tunable: Tunable, name: str, host_tree: Tree, tmp_path: Path) -> None:
    before = host_tree(name)
    try:
        drawn = plan_changes(read_once(before), [Wanted(tunable.id)])
    except UsageError:
        return
    if not drawn.changes or any(change.kind not in ON_FILES for change in drawn.changes):
        return
    root = tmp_path / "host"
    shutil.copytree(before, root, symlinks=True)
    # The kernel closes what it hands out with a line break and marks the chosen word of a choice; so does this one.
    writer = Kernel(root)
    for change in drawn.changes:
        kind_of(change.kind).write(writer, change.path, change.after)
        assert kind_of(change.kind).same(
            kind_of(change.kind).read(HostRoot(root), change.path).text or "", change.after
        )
    assert not plan_changes(host_of(root), [Wanted(tunable.id)]).changes
    for change in reversed(drawn.changes):
        kind_of(change.kind).write(writer, change.path, change.before)
    assert contents(root) == contents(before)


class Kernel(HostWriter):
    """Keeps what is written in the form in which the kernel's files give it back."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._root = root

    def write(self, path: str, text: str) -> None:
        held = (self._root / path.lstrip("/")).read_text()
        if "[" in held and "]" in held:
            words = held.replace("[", "").replace("]", "").split()
            assert text in words
            shown = " ".join(f"[{word}]" if word == text else word for word in words)
            text = shown + ("\n" if held.endswith("\n") else "")
        else:
            text += held[len(held.rstrip("\n")) :]
        super().write(path, text)


def test_a_file_that_is_gone_when_it_is_read_again_is_a_reason(
    host_tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = (host_of(host_tree(name)) for name in HOSTS)
    host, tunable = next((h, one) for h in hosts for one in EVERY if one.changes_host and asked_of(one, h))

    def gone(*_: object) -> str:
        raise Unavailable("it cannot be read: no such file")

    monkeypatch.setattr(type(tunable), "stays", gone)
    found = plan_changes(host, (Wanted(tunable.id),))
    assert found.changes == ()
    assert [(one.tunable, one.reason) for one in found.skipped] == [(tunable.id, "it cannot be read: no such file")]


# Tunables of x86 processors alone ------------------------------------------------------------------------------------

X86_ONLY = {
    "epb",
    "epp",
    "idle-poll",
    "iommu-pt",
    "max-cstate",
    "mce-ignore-ce",
    "mce-interval",
    "smi",
    "split-lock",
    "throttling",
    "tsc-reliable",
    "tsc-watchdog",
    "uncore-frequency",
}
"""Checks that have nothing to say of another processor."""

OF_X86 = re.compile(
    r"\b(x86|intel\w*|amd\w*|tsc|smis?|msr|mce|hwp|machine-check|idle=poll|max_cstate)\b", re.IGNORECASE
)
VALUES = ("0", "1", "on", "off", "poll", "reliable", "pt", "performance", "300")


@pytest.mark.parametrize("name", ["arm_server", "arm_guest"])
@pytest.mark.parametrize("tunable", EVERY, ids=by_id)
def test_a_feature_of_x86_alone_is_named_as_such_on_other_processors(
    tunable: Tunable, name: str, host_tree: Tree
) -> None:
    host = read_once(host_tree(name))
    found = tunable.assess(host)
    told = " ".join(filter(None, (found.value, found.wanted, found.reason, found.fix)))
    if tunable.id not in X86_ONLY:
        assert not OF_X86.search(told), f"{tunable.id} speaks of another processor: {told}"
        return
    assert (found.state, found.reason) == ("unavailable", "only x86 processors have this; this processor is aarch64")
    assert not found.only_host
    assert not found.fix
    for value in (None, *VALUES) if tunable.changes_host else ():
        if value is not None and not tunable.values:
            continue
        for once in (False, True) if tunable.when == "boot" else (False,):
            made = plan_changes(host, [Wanted(tunable.id, value, once)])
            assert not made.changes
            assert [skipped.reason for skipped in made.skipped] == [
                "only x86 processors have this; this processor is aarch64"
            ]


@pytest.mark.parametrize("name", HOSTS)
def test_nothing_that_only_the_hypervisors_owner_can_change_can_be_better(name: str, host_tree: Tree) -> None:
    host = read_once(host_tree(name))
    found = [tunable.assess(host) for tunable in EVERY]
    assert [one.id for one in found if one.state == "improve" and one.only_host] == []


@pytest.mark.parametrize("tunable", [t for t in EVERY if t.id in X86_ONLY], ids=by_id)
def test_on_x86_nothing_is_said_to_be_for_x86_only(tunable: Tunable, host_tree: Tree) -> None:
    for name in HOSTS:
        if not name.startswith("arm"):
            assert "x86 only" not in tunable.assess(read_once(host_tree(name))).reason


def test_no_guest_is_called_kvms_without_proof(host_tree: Tree) -> None:
    host = read_once(host_tree("arm_guest"))
    found = next(t for t in EVERY if t.id == "hypervisor").assess(host)
    assert (found.value, found.only_host) == ("QEMU", True)
    assert found.reason.startswith("either an emulation by QEMU")
    assert "does not show which" in found.reason
