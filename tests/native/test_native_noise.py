"""The noise lab with real children: each kind beside a short run, its log, its refusals, and every way to end."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jitter_workshop.bench import launch, protocol, runner
from jitter_workshop.bench import noise as noise_process
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.noisechild import NoiseChild
from jitter_workshop.bench.noiseorder import NoiseOrder, order_for
from jitter_workshop.bench.parent import NOT_UNDERSTOOD
from jitter_workshop.errors import HostError, MeasureError
from jitter_workshop.flow.host_ops.company import irqs_of_load
from jitter_workshop.host.irq.interrupts import read_interrupts
from jitter_workshop.host.irq.irq_affinity import Irq, read_effective
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.noise import NOISE_KINDS
from jitter_workshop.model.noise import noise as noise_called
from jitter_workshop.model.run import SilentObserver
from jitter_workshop.model.spec import Placement, RunSpec

pytestmark = pytest.mark.native

PATIENCE_S = 60.0
OWN = [kind for kind in NOISE_KINDS if noise_called(kind).by == "child"]


def last_cpu() -> int:
    return max(os.sched_getaffinity(0))


def order(kind: str = "greedy", seconds: int = 60, name: str = "") -> NoiseOrder:
    return order_for(kind, Placement("chosen", sampler=last_cpu()), os.sched_getaffinity(0), seconds, name)


@pytest.mark.parametrize("kind", NOISE_KINDS)
def test_each_kind_beside_a_run_logs_its_bursts(kind: str, tmp_path: Path) -> None:
    allowed = os.sched_getaffinity(0)
    rest = tuple(sorted(allowed - {last_cpu()}))
    placement = Placement("chosen", sampler=last_cpu(), hot=(last_cpu(),), housekeeping=rest)
    spec = RunSpec("spin", placement, blocks=2, block_ns=250_000_000, noise=kind, scratch_dir=str(tmp_path))
    try:
        result = runner.measure_spec(spec, SilentObserver(), CancelToken())
    except (HostError, MeasureError) as refusal:
        if not refusal.message.startswith(f"the noise {kind} "):
            raise
        pytest.skip(refusal.sentence())
    assert result.complete
    assert result.bursts is not None
    bursts = result.bursts.list()
    assert bursts
    assert list(bursts) == sorted(bursts, key=lambda burst: burst.start)
    first, last = result.gathered.raw[0], result.gathered.raw[-1]
    # In ticks and in CLOCK_MONOTONIC alike, and on the CPUs that it was to disturb.
    assert any(first.start_ns <= burst.start_ns <= last.end_ns for burst in bursts)
    assert any(first.start_ticks <= burst.start <= last.end_ticks for burst in bursts)
    if kind not in ("spinners", "bandwidth", "migration", "unbound", "terminal", "disk"):
        assert {burst.cpu for burst in bursts} == {last_cpu()}
    if noise_called(kind).does[0].length == "measured":
        assert {burst.taken_ns > 0 for burst in bursts if burst.what == 0} == {True}
    for burst in bursts:
        assert burst.end >= burst.start
        assert burst.what < len(result.bursts.does)


@contextmanager
def arriving_at(irq: Irq, cpu: int) -> Iterator[None]:
    """Send an interrupt of the random number device to a CPU. At the end, write its old affinity, and have it arrive
    where it arrived. A write may take effect at the next interrupt only, so numbers are read meanwhile."""
    root, place = HostRoot(), Path(irq.path)
    before = read_effective(root, irq.number)

    def send(to: CpuSet) -> None:
        place.write_text(str(to))
        for _ in range(100):
            if read_effective(root, irq.number) == to:
                return
            with Path("/dev/hwrng").open("rb", buffering=0) as device:
                device.read(64)
        pytest.skip(f"interrupt {irq.number} does not arrive at CPU {to} alone")

    try:
        send(CpuSet((cpu,)))
        yield
    finally:
        if before is not None and len(before) == 1:
            send(before)
        place.write_text(str(irq.affinity))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root moves interrupts and reads /dev/hwrng")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
@pytest.mark.parametrize("which", [min, max])
def test_the_interrupts_of_random_numbers_arrive_where_their_affinity_puts_them(
    which: Callable[[set[int]], int], tmp_path: Path
) -> None:
    root, cpu = HostRoot(), which(os.sched_getaffinity(0))
    irq = irqs_of_load(root, "hwrng").movable
    if irq is None or irq.affinity is None or cpu not in irq.affinity:
        pytest.skip("this host has no virtual random number device whose interrupt can be moved to this CPU")
    hot = last_cpu()
    placement = Placement("chosen", sampler=hot, hot=(hot,), housekeeping=(min(os.sched_getaffinity(0)),))
    spec = RunSpec("spin", placement, blocks=2, block_ns=250_000_000, noise="hwrng", scratch_dir=str(tmp_path))
    with arriving_at(irq, cpu):
        before = read_interrupts(root)
        result = runner.measure_spec(spec, SilentObserver(), CancelToken())
        grown = read_interrupts(root).minus(before)[str(irq.number)].per_cpu
        if root.cpu_list(irq.path) != CpuSet((cpu,)):
            pytest.skip("another program moved the interrupt meanwhile")
    assert result.bursts is not None
    assert grown[str(cpu)] >= len(result.bursts.list()) / 2
    assert sum(grown.values()) == grown[str(cpu)]


@pytest.mark.parametrize("period_ns", [100_000_000, 10_000_000])
def test_bursts_come_as_often_as_is_asked(period_ns: int, tmp_path: Path) -> None:
    spec = RunSpec(
        "spin",
        Placement("none"),
        blocks=4,
        block_ns=250_000_000,
        noise="greedy",
        scratch_dir=str(tmp_path),
        noise_period_ns=period_ns,
    )
    result = runner.measure_spec(spec, SilentObserver(), CancelToken())
    assert result.bursts is not None
    starts = [burst.start_ns for burst in result.bursts.list()]
    assert len(starts) >= 5
    # Each begins 3/4 to 5/4 of a period after the last one was due; a burst that is cut in two is no new one.
    gaps = sorted(b - a for a, b in itertools.pairwise(starts) if b - a > period_ns / 10)
    assert 0.7 * period_ns <= gaps[len(gaps) // 2] <= 1.5 * period_ns


def test_bursts_are_in_the_clock_of_the_benchmark_and_the_kernels(tmp_path: Path) -> None:
    spec = RunSpec("spin", Placement("none"), blocks=1, block_ns=250_000_000, noise="greedy", scratch_dir=str(tmp_path))
    result = runner.measure_spec(spec, SilentObserver(), CancelToken())
    assert result.bursts is not None
    block = result.gathered.raw[0]
    per_tick = (block.end_ns - block.start_ns) / (block.end_ticks - block.start_ticks)
    for burst in result.bursts.list():
        # The block's own two clocks were paired within some µs, and drift apart by some ppm over a second.
        expected_ns = block.start_ns + (burst.start - block.start_ticks) * per_tick
        assert abs(burst.start_ns - expected_ns) < 1_000_000


@pytest.mark.parametrize("kind", OWN)
def test_nothing_but_the_pipe_tells_which_noise_it_is(kind: str) -> None:
    try:
        child = NoiseChild(order(kind, name="thief"))
    except HostError as refusal:
        pytest.skip(refusal.sentence())
    with child:
        proc = Path(f"/proc/{child.pid}")
        seen = [(proc / name).read_text() for name in ("cmdline", "environ", "comm")]
        seen += [(task / "comm").read_text() for task in (proc / "task").iterdir()]
        assert not [text for text in seen if kind in text]
        assert [text for text in seen if text == "thief\n"]


def test_spinners_are_one_thread_a_cpu_each_bound_to_its_own() -> None:
    with NoiseChild(order("spinners")) as child:
        tasks = [
            int(t.parent.name) for t in Path(f"/proc/{child.pid}/task").glob("*/comm") if t.read_text() == "spinners\n"
        ]
        assert sorted(cpu for t in tasks for cpu in os.sched_getaffinity(t)) == sorted(os.sched_getaffinity(0))


def test_a_noise_ends_at_its_bound() -> None:
    with NoiseChild(order(seconds=1)) as child:
        end = os.pidfd_open(child.pid)
        try:
            assert launch.select.select([end], [], [], PATIENCE_S)[0] == [end]
        finally:
            os.close(end)
        assert "ended with exit code 0" in str(child.gone())


def test_a_noise_ends_with_its_stdin() -> None:
    with launch.Child(launch.command(launch.NOISE)) as child:
        child.send(protocol.message_line("order", order()))
        assert protocol.parse_message(child.wait(timeout_s=PATIENCE_S).line)[0] == "aimed"
        assert child.end(patience_s=PATIENCE_S) == 0


def test_packets_have_a_network_of_their_own_and_the_hosts_keeps_its_masks() -> None:
    def masks() -> dict[Path, str]:
        return {path: path.read_text() for path in Path("/sys/class/net").glob("*/queues/rx-*/rps_cpus")}

    before = masks()
    try:
        child = NoiseChild(order("network"))
    except HostError as refusal:
        pytest.skip(refusal.sentence())
    with child:
        ours = Path("/proc/self/ns/net").stat().st_ino
        (sender,) = (
            task.parent for task in Path(f"/proc/{child.pid}/task").glob("*/comm") if task.read_text() == "network\n"
        )
        assert (sender / "ns/net").stat().st_ino != ours
        assert Path(f"/proc/{child.pid}/ns/net").stat().st_ino == ours
        assert masks() == before
    assert masks() == before


def test_a_kernel_without_steering_is_told_in_a_sentence() -> None:
    assert "CONFIG_RPS" in noise_process._reason(order("greedy"), errno.ENOSYS)


@pytest.mark.parametrize("kind", ["greedy", "spinners", "timer", "network"])
def test_a_noise_dies_with_its_parent(kind: str) -> None:
    parent = (
        "import sys, time\n"
        f"sys.path[:] = {sys.path!r}\n"
        "from jitter_workshop.bench.noisechild import NoiseChild\n"
        "from jitter_workshop.bench.noiseorder import NoiseOrder\n"
        f"child = NoiseChild({order(kind)!r})\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        if noise_called(kind).root and not said:
            pytest.skip(f"the noise {kind} is refused here: see the first test")
        child = os.pidfd_open(int(said))
        process.send_signal(signal.SIGKILL)
    try:
        assert launch.select.select([child], [], [], PATIENCE_S)[0] == [child]
    finally:
        os.close(child)


@pytest.mark.parametrize(
    "said",
    [
        b"\n",
        b"greedy\n",
        b"[]\n",
        b'{"kind": "go"}\n',
        b'{"kind": "order", "data": {"kind": "greedy"}}\n',
        protocol.message_line("order", order()).replace(b"greedy", b"rain"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused(said: bytes) -> None:
    with launch.Child(launch.command(launch.NOISE)) as child:
        child.send(said)
        kind, failed = protocol.parse_message(child.wait(timeout_s=PATIENCE_S).line)
        assert kind == "failed"
        assert NOT_UNDERSTOOD in failed["message"]
        assert child.wait(timeout_s=PATIENCE_S).kind == "end"
        assert child.end(patience_s=PATIENCE_S) == 2


def test_a_noise_without_an_order_ends() -> None:
    with launch.Child(launch.command(launch.NOISE)) as child:
        assert child.end(patience_s=PATIENCE_S) == 0


def test_a_cpu_that_is_not_there_is_refused_in_a_sentence() -> None:
    wrong = NoiseOrder("greedy", hot=60_000, other=-1, away=-1, cpus=(), seconds=5, name="greedy")
    with pytest.raises(HostError, match="the threads of the noise may not use CPU 60000"):
        NoiseChild(wrong)


def test_a_thread_that_cannot_be_moved_is_refused() -> None:
    aimed = NoiseOrder("migration", hot=last_cpu(), other=-1, away=60_000, cpus=(), seconds=5, name="migration")
    with NoiseChild(aimed) as child, pytest.raises(HostError, match="could not move the measured thread to CPU 60000"):
        child.aim({"sampler": os.getpid()})
