"""Test the orders for a noise: chosen CPUs, refusals in a sentence, and the way through a pipe."""

from __future__ import annotations

import base64
import dataclasses
import zlib

import pytest

from jitter_workshop.bench import noiseorder
from jitter_workshop.bench.noisechild import read_log
from jitter_workshop.bench.noiseorder import NoiseOrder, check_order, order_for
from jitter_workshop.bench.protocol import NoiseLog, message_line, parse_message
from jitter_workshop.errors import HostError, MeasureError, UsageError
from jitter_workshop.model.codec import CodecError, from_plain
from jitter_workshop.model.noise import NOISE_KINDS
from jitter_workshop.model.spec import Placement, busy_threads

SPIN = Placement("auto", sampler=1, hot=(1,), housekeeping=(0,))
RING = Placement("auto", producer=0, accumulator=1, hot=(0, 1))
RING_OF_FOUR = Placement("auto", producer=1, accumulator=2, journaller=3, journaller_on=True, hot=(1, 2, 3))
FREE = Placement("none")


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noiseorder.os, "access", lambda path, mode: True)


@pytest.mark.parametrize(
    ("kind", "placement", "allowed", "cpus"),
    [
        ("greedy", SPIN, {0, 1}, (1, 0, -1)),
        ("greedy", RING, {0, 1}, (1, 0, -1)),
        ("greedy", FREE, {0, 1, 2}, (2, 0, -1)),
        ("greedy", FREE, {3}, (3, -1, -1)),
        ("bandwidth", SPIN, {0, 1}, (1, 0, -1)),
        ("bandwidth", RING_OF_FOUR, {0, 1, 2, 3}, (2, 0, -1)),
        # The thread that moves another one does not run where that one is sent, if there is a third CPU.
        ("migration", RING, {0, 1, 2}, (1, 2, 0)),
        ("migration", RING, {0, 1}, (1, 0, 0)),
        ("migration", SPIN, {0, 1, 2, 3}, (1, 0, 2)),
        # An isolated CPU is no obstacle for what does not have to run on it.
        ("bandwidth", SPIN, {0, 2}, (1, 0, -1)),
        ("network", SPIN, {0, 2}, (1, 0, -1)),
        ("network", RING_OF_FOUR, {0, 1, 2, 3}, (2, 0, -1)),
    ],
)
def test_cpus_follow_from_the_placement(
    kind: str, placement: Placement, allowed: set[int], cpus: tuple[int, int, int]
) -> None:
    order = order_for(kind, placement, allowed, 10)
    assert (order.hot, order.other, order.away) == cpus
    assert (order.name, order.seconds, order.cpus) == (kind, 10, ())


def test_spinners_run_on_every_cpu_that_is_allowed() -> None:
    assert order_for("spinners", SPIN, {0, 2, 3}, 10).cpus == (0, 2, 3)


@pytest.mark.parametrize("kind", ["unbound", "terminal"])
def test_ordinary_tasks_and_measured_threads_never_load_all_cpus_equally(kind: str) -> None:
    """Equally loaded CPUs give the load balancer nothing to move."""
    for cpus in range(2, 65):
        for workload in ("ring", "spin"):
            busy = busy_threads(workload)
            tasks = len(order_for(kind, SPIN, set(range(cpus)), 10, busy=busy).cpus)
            assert tasks in (cpus + 1, cpus + 2)
            assert (tasks + busy) % cpus
        # Threads that sleep are not busy.
        assert busy_threads("wakeup") == busy_threads("ack") == 0
        assert len(order_for(kind, SPIN, set(range(cpus)), 10).cpus) == cpus + 2


@pytest.mark.parametrize(
    ("kind", "placement", "allowed", "sentence"),
    [
        ("shootdown", SPIN, {1}, "the noise shootdown needs two CPUs"),
        ("workqueue", FREE, {1}, "the noise workqueue needs two CPUs"),
        ("migration", SPIN, {1}, "the noise migration needs two CPUs"),
        ("network", SPIN, {1}, "the noise network needs two CPUs"),
        (
            "bandwidth",
            RING,
            {0, 1},
            "the noise bandwidth needs a CPU without a measured thread, but each of the 2 CPUs",
        ),
        ("greedy", SPIN, {0, 2}, "the noise greedy cannot reach CPU"),
        ("timer", SPIN, {0, 2}, "cannot reach CPU 1, because"),
    ],
)
def test_a_noise_that_this_placement_cannot_have_is_refused_in_a_sentence(
    kind: str, placement: Placement, allowed: set[int], sentence: str
) -> None:
    with pytest.raises(HostError) as caught:
        order_for(kind, placement, allowed, 10)
    assert sentence in caught.value.sentence()
    assert "\n" not in caught.value.sentence()


@pytest.mark.parametrize(
    ("kind", "why"),
    [("workqueue", "it writes /proc/sys/vm/stat_refresh"), ("network", "it makes a network namespace")],
)
def test_a_noise_that_needs_rights_is_refused_without_them(
    kind: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(noiseorder.os, "access", lambda path, mode: asked.append((path, mode)))
    with pytest.raises(HostError, match=f"the noise {kind} needs root's rights, because {why}"):
        order_for(kind, SPIN, {0, 1}, 10)
    assert asked == [("/proc/sys/vm/stat_refresh", noiseorder.os.W_OK)]


def test_an_unknown_kind_is_refused_with_the_known_ones_and_its_escapes_are_not_shown() -> None:
    with pytest.raises(UsageError, match="there is no noise 'th und'") as caught:
        order_for("th\x1bund", SPIN, {0, 1}, 10)
    assert all(kind in caught.value.sentence() for kind in NOISE_KINDS)


def test_bounds() -> None:
    assert order_for("greedy", SPIN, {0, 1}, 10**9).seconds == noiseorder.LONGEST_S
    assert order_for("greedy", SPIN, {0, 1}, 0).seconds == 1
    assert order_for("greedy", SPIN, {0, 1}, 1, "a label that is too long").name == "a label that is"


def test_a_noise_comes_as_often_as_is_asked() -> None:
    assert order_for("greedy", SPIN, {0, 1}, 10, period_ns=200_000_000).period_ns == 200_000_000
    assert order_for("greedy", SPIN, {0, 1}, 10).period_ns == 0


@pytest.mark.parametrize(
    ("kind", "period_ns", "said"),
    [
        ("greedy", 900_000, "from 1 to 200 ms"),
        ("greedy", 200_000_001, "from 1 to 200 ms"),
        ("spinners", 5_000_000, "from 6 to 200 ms"),
        ("greedy", -5, "from 1 to 200 ms"),
        ("stall", 10_000_000, "happens only once"),
    ],
)
def test_no_noise_comes_so_often_or_so_seldom(kind: str, period_ns: int, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        order_for(kind, SPIN, {0, 1}, 10, period_ns=period_ns)


def test_an_order_goes_through_a_pipe_whole() -> None:
    order = order_for("migration", RING, {0, 1, 2}, 10, "thief", 7, 30_000_000)
    said = message_line("order", order)
    assert said.endswith(b"\n")
    assert said.count(b"\n") == 1
    kind, data = parse_message(said)
    assert (kind, from_plain(NoiseOrder, data)) == ("order", order)
    check_order(order)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "thunder"},
        {"kind": "stall"},
        {"kind": "shootdown"},
        {"seconds": 0},
        {"seconds": 604_801},
        {"period_ns": -1},
        {"period_ns": 10**12},
    ],
)
def test_an_order_that_no_child_can_follow_is_refused(wrong: dict[str, object]) -> None:
    order = NoiseOrder("greedy", 1, 0, -1, (), 10, "greedy")
    with pytest.raises(
        CodecError, match=r"is not a noise that runs in a process|a noise lasts from 1 to|the period of the noise"
    ):
        check_order(dataclasses.replace(order, **wrong))


@pytest.mark.parametrize(
    "records",
    [
        "not base64!",
        base64.b64encode(b"not zlib").decode(),
        base64.b64encode(zlib.compress(b"short")).decode(),
        base64.b64encode(zlib.compress(bytes(40 << 20))).decode(),
    ],
)
def test_a_log_that_is_none_is_a_measure_error(records: str) -> None:
    with pytest.raises(MeasureError, match="the noise's log cannot be read"):
        read_log("greedy", "greedy", NoiseLog(records, 0))
