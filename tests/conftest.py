"""Fixtures that several test files share."""

from __future__ import annotations

import gc
import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from jitter_workshop import paths
from jitter_workshop.agent.client import CHANGING, Purpose
from jitter_workshop.bench.lock import TURN_VARIABLE
from jitter_workshop.classroom import client
from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops import agent_connection
from jitter_workshop.flow.measuring.host_load import VARIABLE
from jitter_workshop.tui.core import actions
from tests import hosttrees, madecourse, madeup, tuned_tree

# The same examples each time, and no verdict by the clock: a busy machine must not fail a test. `make soak` asks for
# many others (EXAMPLES=1000).
examples = os.environ.get("EXAMPLES")
settings.register_profile(
    "workshop", deadline=None, print_blob=True, max_examples=int(examples or 50), derandomize=examples is None
)
settings.load_profile("workshop")

# The default thresholds walk the many objects of a screen again and again: a seventh of a screen test's time.
gc.set_threshold(50_000, 20, 50)

# nohup hands an ignored SIGHUP down to everything that the tests start, and a shell without job control an ignored
# SIGINT; some tests are about these signals.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


_homes = itertools.count()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Group tests for parallel workers, and leave out tests marked ``soak``: they run by ``-m`` or by their own
    names.

    Tests of one file share fixtures, so they stay together; those marked ``host`` use what this machine has
    once (the turn to measure, its trace), so one worker has them all, and the native tests, too. The groups begin in
    this order, so that no long one is left for the end: ``host``, those with a test marked ``slow``, then the largest.

    No test of these rings isolates a CPU of the machine: that would move the tests of other workers off it. Tests that
    do are in ``tests/outside``.
    """
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("host") or "/native/" in item.nodeid:
            group = "host"
        else:
            group = item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
        groups.setdefault(group, []).append(item)
    place = {}
    for name, members in groups.items():
        slow = any(item.get_closest_marker("slow") for item in members)
        place.update(dict.fromkeys(members, (name != "host", not slow, -len(members), name)))
    if len(groups) > 1:
        items.sort(key=lambda item: place.get(item, (True, True, 0, "")))
    if any("::" in argument for argument in config.args):
        return
    asked = config.option.markexpr or ""
    kept, left = [], []
    for item in items:
        out = item.get_closest_marker("soak") and "soak" not in asked
        (left if out else kept).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def pytest_collection_finish() -> None:
    """Take what is imported and collected by now out of the collector's sight: it lives as long as the process."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def host_tree(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A made host tree by its name in ``hosttrees.EVERY``, written once a session: tests read it and change nothing."""
    made: dict[str, Path] = {}

    def tree(name: str) -> Path:
        if name not in made:
            made[name] = hosttrees.EVERY[name](tmp_path_factory.mktemp(name))
        return made[name]

    return tree


def _refuse(ask: bool = True, purpose: Purpose = CHANGING) -> None:
    raise HostError(f"{purpose.noun} needs root's rights", "tests have none")


@pytest.fixture(autouse=True)
def _own_world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep a test away from the user who runs it, from the load of this machine, and from root's rights.

    One fixture does all of it: a fixture of its own for each took longer than most unit tests.
    """
    # The state, settings and cache of the user. A test without a folder of its own gets the name of one that does not
    # exist yet: most never write, and making one takes longer than they do.
    if "tmp_path" in request.fixturenames:
        tmp_path: Path = request.getfixturevalue("tmp_path")
    else:
        tmp_path = tmp_path_factory.getbasetemp() / f"home-{next(_homes)}"
    for name in ("STATE", "CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / f"xdg-{name.lower()}"))
    # The class that this machine may belong to.
    for constant in ("CLASS_FILE", "RUN_DIR", "BOARD_DIR"):
        monkeypatch.setattr(paths, constant, str(tmp_path / f"no-{constant.lower()}"))
    monkeypatch.setattr(client, "SOCKET", str(tmp_path / "no-board.sock"))
    # Each worker has a turn to measure of its own, so that no test finds another one measuring. Tests marked ``host``
    # are about the real turn; one worker has them all.
    if not request.node.get_closest_marker("host"):
        monkeypatch.setenv(TURN_VARIABLE, f"jitter-workshop.tests.{os.getpid()}")
    # No workshop asks about the load of the machine: the tests are this load.
    monkeypatch.setenv(VARIABLE, "off")
    # A test's Enter is meant for the plan that is shown: it agrees at once.
    monkeypatch.setattr(actions, "TYPED_AHEAD_S", 0.0)
    # No walk through a chapter changes the host that the tests run on, not even as root: there is no agent.
    monkeypatch.setattr(agent_connection, "connect_to_agent", _refuse)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A made host on which settings can be planned, applied and restored."""
    return tuned_tree.make(tmp_path / "tree")


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A made course whose chapters change the settings of ``tree``."""
    return madecourse.write(tmp_path / "course")


@pytest.fixture
def make_run() -> Callable[..., tuple[Any, Any]]:
    """Make a run and its blocks from the values (ns) that each block measured (see ``madeup.make_run``)."""
    return madeup.make_run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, and no other place that a report could go to."""
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(place))
    return place
