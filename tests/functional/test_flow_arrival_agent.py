"""The write before a first run, through a real agent and its journal on a made host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jitter_workshop.agent.client import AgentClient
from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.measuring.arrival import InterruptStays, arrival, arriving
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.journal import active, applied_tunables
from tests import hosttrees
from tests.fake_agent_connection import LiveTree
from tests.livehost import agent_command
from tests.unit.test_flow_company import ETH_RX, has
from tests.unit.test_tuning_interrupts import board

SPIN = MeasureRequest(workload="spin", noise="hwrng")
PATH = f"/proc/irq/{ETH_RX}/smp_affinity_list"
PATIENCE_S = 30.0


def a_host(tmp_path: Path) -> Path:
    """Two CPUs, and an interrupt that may arrive at both and arrives at CPU 0."""
    tree = tmp_path / "tree"
    board(tree)
    hosttrees.write(tree, hosttrees.irq(ETH_RX, "0-1", "0"))
    return tree


def affinity(tree: Path) -> str:
    return (tree / PATH.lstrip("/")).read_text().strip()


def connected(tree: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> AgentConnection:
    command = agent_command(tree, *options)
    monkeypatch.setattr(connection_module, "connect_to_agent", lambda **_: AgentClient(command))
    monkeypatch.setattr(connection_module, "HostRoot", lambda *_: LiveTree(tree))
    return AgentConnection()


def asked(tree: Path, monkeypatch: pytest.MonkeyPatch) -> MeasureRequest:
    """A request that begins with the write that a first run needs on this host."""
    has(monkeypatch, hwrng=(ETH_RX,))
    root = HostRoot(tree)
    found = arrival(root, read_topology(root), SPIN, CpuSet())
    assert found is not None
    return replace(SPIN, arrival=found)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_value_of_another_program_stays_when_the_workshop_is_killed_and_the_journal_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = a_host(tmp_path)
    connection, request = connected(tree, monkeypatch), asked(tree, monkeypatch)
    with arriving(connection, request, [].append):
        (tree / PATH.lstrip("/")).write_text("0\n")
        (left,) = [one for one in connection.close().left_alone if one.tunable == "irq-here"]
        assert (left.path, affinity(tree)) == (PATH, "0")
        assert active(HostRoot(tree)) == ()


def test_each_first_run_makes_the_write_and_restores_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, told = a_host(tmp_path), list[str]()
    connection, request = connected(tree, monkeypatch), asked(tree, monkeypatch)
    for _ in range(2):
        with arriving(connection, request, told.append):
            assert affinity(tree) == "1"
            assert applied_tunables(HostRoot(tree)) == ({"id": "irq-here", "value": str(ETH_RX)},)
        assert affinity(tree) == "0-1"
        assert active(HostRoot(tree)) == ()
    assert not connection.holding
    connection.close()
    assert (told, connection.trouble) == ([], "")


def test_a_cancelled_run_restores_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, told = a_host(tmp_path), list[str]()
    connection, request = connected(tree, monkeypatch), asked(tree, monkeypatch)
    arrived = []

    def cancelled() -> None:
        with arriving(connection, request, told.append):
            arrived.append(affinity(tree))
            raise Cancelled("the user stopped it")

    with pytest.raises(Cancelled):
        cancelled()
    assert arrived == ["1"]
    assert (affinity(tree), active(HostRoot(tree)), told) == ("0-1", (), [])
    connection.close()


def die_in_the_run(tree: str) -> None:
    """Begin a run whose interrupt arrives, and kill this process in the middle of it."""
    with pytest.MonkeyPatch.context() as patched:
        request = asked(Path(tree), patched)
        with arriving(connected(Path(tree), patched), request, lambda _: None):
            os.kill(os.getpid(), signal.SIGKILL)


def test_a_workshop_that_is_killed_in_the_run_leaves_nothing(tmp_path: Path) -> None:
    tree = a_host(tmp_path)
    place = str(Path(__file__).parents[2])
    code = f"import sys, runpy; sys.path[:0] = [{place!r}]; runpy.run_path({__file__!r})['die_in_the_run'](sys.argv[1])"
    done = subprocess.run((sys.executable, "-c", code, str(tree)), timeout=PATIENCE_S, check=False)
    assert done.returncode == -signal.SIGKILL
    until(lambda: affinity(tree) == "0-1" and active(HostRoot(tree)) == ())
    journals = [one.read_text() for one in tree.rglob("*.jsonl")]
    assert any("irq-here" in text for text in journals)


def test_an_agent_that_the_kernel_refuses_says_so_and_no_run_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = a_host(tmp_path)
    connection, request = connected(tree, monkeypatch, f"refuse={PATH}"), asked(tree, monkeypatch)
    with pytest.raises(InterruptStays, match="EIO"), arriving(connection, request, lambda _: None):
        pytest.fail("the interrupt did not arrive")
    assert (affinity(tree), active(HostRoot(tree))) == ("0-1", ())
    connection.close()


def test_a_mask_that_changed_since_it_was_shown_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = a_host(tmp_path)
    connection, request = connected(tree, monkeypatch), asked(tree, monkeypatch)
    hosttrees.write(tree, hosttrees.irq(ETH_RX, "0", "0"))
    with pytest.raises(HostError) as raised, arriving(connection, request, lambda _: None):
        pytest.fail("another write than the shown one was made")
    assert not isinstance(raised.value, InterruptStays)
    assert (affinity(tree), active(HostRoot(tree))) == ("0", ())
    connection.close()
