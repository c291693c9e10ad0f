"""A plan as a list of writes: whose they are, and by what the agent recognises them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.errors import UsageError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Change, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.base import Write
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import digest, plan_changes
from jitter_workshop.tuning.tunables.registry import find_tunable

SHOWN = Change(1, "swappiness", "/proc/sys/vm/swappiness", "60", "10", "runtime", "low", "Because.", kind="number")


@pytest.mark.parametrize("field", ["tunable", "kind", "path", "before", "after"])
def test_a_change_is_another_one_if_anything_that_was_shown_differs(field: str) -> None:
    assert digest(dataclasses.replace(SHOWN, **{field: f"{getattr(SHOWN, field)}0"})) != digest(SHOWN)


def test_the_digest_of_a_write_leaves_out_its_number_and_reason() -> None:
    assert digest(dataclasses.replace(SHOWN, n=7, why="For another reason.")) == digest(SHOWN)


def test_a_write_to_a_file_that_the_tunable_does_not_own_ends_the_plan(
    host_tree: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tunable = find_tunable("stat-interval")
    stray = Write("/etc/passwd", "1", "2")
    monkeypatch.setattr(type(tunable), "writes", lambda self, host, value: (stray,))
    monkeypatch.setattr(type(tunable), "stays", lambda self, host, value: "")
    host = Host(HostRoot(host_tree("guest")), CpuSet((1,)))
    with pytest.raises(UsageError, match="/etc/passwd"):
        plan_changes(host, [Wanted("stat-interval", None)])
