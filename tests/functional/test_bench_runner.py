"""The runner against a scripted child: the handshake, what blocks add up to, and every way to end too early."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from jitter_workshop.bench import launch, protocol, runner
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.noiseorder import NoiseOrder
from jitter_workshop.bench.protocol import NoiseLog
from jitter_workshop.bench.stall import STALL_NS
from jitter_workshop.errors import HostError, MeasureError, UsageError
from jitter_workshop.model.noise import Burst, pack_bursts
from jitter_workshop.model.run import Progress, RunStarted, SilentObserver
from jitter_workshop.model.spec import Placement, RunSpec

pytestmark = pytest.mark.host

SPEC = RunSpec("ring", Placement("none"), blocks=3, block_ns=1_000_000)
BURST = Burst(start=10, end=20, start_ns=100, length_ns=5, taken_ns=4, cpu=1, what=0)
LOG = NoiseLog(base64.b64encode(zlib.compress(pack_bursts([BURST]))).decode(), 0)


def run(
    mode: str,
    spec: RunSpec = SPEC,
    observer: SilentObserver | None = None,
    cancel: CancelToken | None = None,
    sensor: runner.HeatReader = lambda: (None, None),
) -> runner.RunResult:
    command = launch.command("scripted_worker", mode)
    return runner.measure_spec(
        spec, observer or SilentObserver(), cancel or CancelToken(), command=command, sensor=sensor, pause_s=0.0
    )


class Watching(SilentObserver):
    """Keeps what it was told, and does something after a block."""

    def __init__(self, after: Callable[[int], None] = lambda done: None) -> None:
        self.tids: dict[str, int] = {}
        self.progress: list[Progress] = []
        self._after = after

    def started(self, event: RunStarted) -> None:
        self.tids = event.tids

    def block_done(self, progress: Progress) -> None:
        self.progress.append(progress)
        self._after(progress.done)


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_blocks_add_up_exactly() -> None:
    watching = Watching()
    degrees = iter([(None, 7), (40.0, 7), (41.0, 9), (None, 9)])
    result = run("ok", observer=watching, sensor=lambda: next(degrees))
    assert result.complete
    assert (result.ready.mlocked, result.ready.sched, result.ready.clock.source) == (True, "other", "tsc")
    gathered = result.gathered
    summary = gathered.merged["accumulator_transit"].summary()
    assert (summary.count, summary.min, summary.max, summary.overflow) == (12, 80, 5_002, 0)
    assert summary.mean == (3 * 5_270 + 0 + 1 + 2) / 12
    assert (gathered.duration_s, gathered.counted_s) == (0.003, 0.0036)
    assert [b.start_ns for b in gathered.blocks] == [0, 2_000_000, 4_000_000]
    assert [b.temperature_celsius for b in gathered.blocks] == [40.0, 41.0, None]
    assert [b.throttle_events for b in gathered.blocks] == [0, 2, 0]
    assert [b.stalls for b in gathered.blocks] == [1, 1, 1]
    stalls = gathered.stalls()
    assert (stalls.count, stalls.per_second) == (3, 1000.0)
    assert [(s.block, s.start_ns, s.duration_ns) for s in stalls.worst] == [
        (2, 4_000_010, 5_002),
        (1, 2_000_010, 5_001),
        (0, 10, 5_000),
    ]
    (thread,) = gathered.threads(result.ready.tids)
    assert (thread.tid, thread.cpus, thread.messages_by_cpu) == (watching.tids["accumulator"], (0, 1), {"0": 3, "1": 9})
    assert (thread.voluntary_switches, thread.involuntary_switches, thread.migrations) == (3, 6, None)
    assert gathered.interrupts is not None
    assert gathered.interrupts["LOC"].per_cpu == {"1": 6}
    assert gathered.softirqs is None
    assert result.notes == {"softirqs": "not shown here"}
    assert gathered.sum_of("throttled_periods") is None
    assert gathered.core_hz() == 3_000_000_001
    assert [p.done for p in watching.progress] == [1, 2, 3]
    assert watching.progress[-1].curve.count == 12
    assert watching.progress[-1].seconds_left == 0
    assert [block.index for block in gathered.raw] == [0, 1, 2]
    assert gone(thread.tid)


def test_a_killed_child_leaves_the_finished_blocks() -> None:
    watching = Watching()
    result = run("die:2", observer=watching)
    assert not result.complete
    assert result.failure is not None
    assert "was killed by SIGKILL" in result.failure.message
    assert len(result.gathered.blocks) == 2
    assert gone(watching.tids["accumulator"])


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("die:0", "the measuring process was killed by SIGKILL"),
        ("exit", "the measuring process ended with exit code 1: something broke"),
        ("garbage", "the measuring process sent a wrong message: a line of the protocol is not valid: b'hello'"),
        ("failed", "the interval is too short; take a longer one"),
    ],
)
def test_nothing_measured_is_one_sentence(mode: str, sentence: str) -> None:
    with pytest.raises(MeasureError) as caught:
        run(mode)
    assert caught.value.sentence() == sentence


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(MeasureError, match="could not be started: No such file"):
        runner.measure_spec(SPEC, SilentObserver(), CancelToken(), command=["/no/such/python"])


def test_a_cancel_between_blocks_keeps_the_finished_blocks() -> None:
    token = CancelToken()
    watching = Watching(lambda done: token.cancel("enough") if done == 2 else None)
    result = run("ok", observer=watching, cancel=token)
    assert (result.complete, result.cancelled, len(result.gathered.blocks)) == (False, "enough", 2)
    assert gone(watching.tids["accumulator"])


def test_a_cancel_after_the_last_block_changes_nothing() -> None:
    token = CancelToken()
    result = run("ok", observer=Watching(lambda done: token.cancel() if done == 3 else None), cancel=token)
    assert result.complete


def test_a_cancel_before_the_run_starts_no_child() -> None:
    token = CancelToken()
    token.cancel("too late")
    with pytest.raises(runner.Cancelled) as caught:
        run("ok", cancel=token)
    assert caught.value.reason == "too late"


def test_a_cancel_while_the_child_calibrates() -> None:
    token = CancelToken()
    threading.Timer(0.05, token.cancel, ["impatient"]).start()
    with pytest.raises(runner.Cancelled):
        run("mute", cancel=token)


def test_a_cancel_within_a_block_from_another_thread() -> None:
    token = CancelToken()
    watching = Watching(lambda done: threading.Timer(0.05, token.cancel, ["stop"]).start() if done == 1 else None)
    result = run("hang:1", observer=watching, cancel=token)
    assert (result.cancelled, len(result.gathered.blocks)) == ("stop", 1)
    assert gone(watching.tids["accumulator"])


def test_an_observer_that_fails_takes_the_child_along() -> None:
    def fail(done: int) -> None:
        raise RuntimeError("no more screen")

    watching = Watching(fail)
    with pytest.raises(RuntimeError, match="no more screen"):
        run("ok", observer=watching)
    assert gone(watching.tids["accumulator"])


def test_an_unknown_noise_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="there is no noise 'thunder'") as caught:
        run("ok", spec=RunSpec("ring", Placement("none"), blocks=1, block_ns=1, noise="thunder"))
    assert "spinners" in caught.value.advice


def test_a_noise_that_dies_ends_the_run_with_the_blocks_that_had_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = launch.command
    noise = (
        f"import os; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        f"input(); print({protocol.message_line('aimed').decode()!r}, end='', flush=True)\n"
        f"input(); print({protocol.message_line('noise', LOG).decode()!r}, end='', flush=True)"
    )
    monkeypatch.setattr(
        launch,
        "command",
        lambda module, *arguments: (
            [sys.executable, "-c", noise] if module == launch.NOISE else real(module, *arguments)
        ),
    )

    def kill(done: int) -> None:
        if done == 2:
            pid = int((tmp_path / "pid").read_text())
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    spec = dataclasses.replace(SPEC, noise="spinners")
    whole = run("ok", spec)
    assert (whole.complete, len(whole.gathered.blocks)) == (True, 3)
    assert whole.bursts is not None
    assert (whole.bursts.list(), whole.bursts.does[0].causes) == ((BURST,), (("task", "spinners"),))
    cut = run("ok", spec, Watching(kill))
    assert (cut.complete, len(cut.gathered.blocks)) == (False, 2)
    assert str(cut.failure) == "the noise process was killed by SIGKILL"
    assert (cut.bursts, cut.notes["noise_bursts"]) == (None, "the noise process was killed by SIGKILL")


def test_stalls_count_from_the_threshold_that_a_slow_clock_allows() -> None:
    observer = Watching()
    slow = run("slow-clock", dataclasses.replace(SPEC, threshold_gives_way=True), observer)
    assert slow.spec.threshold_ns == 10_000
    assert slow.gathered.stalls().threshold_ns == 10_000
    assert run("ok").gathered.stalls().threshold_ns == SPEC.threshold_ns


def test_a_noise_outlasts_a_run_that_takes_much_longer_than_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[NoiseOrder] = []

    def begin(order: NoiseOrder) -> contextlib.nullcontext[None]:
        asked.append(order)
        return contextlib.nullcontext()

    monkeypatch.setattr(runner, "NoiseChild", begin)
    spec = dataclasses.replace(SPEC, noise="spinners")
    with runner._noise(spec):
        pass
    assert asked[0].kind == "spinners"
    # A quick run is 20 blocks of 0.25 s, and an emulated machine takes about 20 times as long for one.
    assert asked[0].seconds >= 20 * 20 * 0.25
    assert asked[0].seconds >= 20 * runner.expected_seconds(spec)


def test_a_child_is_placed_once_it_runs_and_before_it_gets_its_spec() -> None:
    seen: list[int] = []
    watching = Watching()

    def placed(pid: int, tids: Sequence[int]) -> None:
        assert not watching.tids
        assert not tids
        os.kill(pid, 0)
        seen.append(pid)

    command = launch.command("scripted_worker", "ok")
    result = runner.measure_spec(
        SPEC, watching, CancelToken(), command=command, sensor=lambda: (None, None), placed=placed
    )
    assert result.complete
    assert seen == [result.ready.tids["accumulator"]]


def test_an_error_of_the_placement_ends_the_child() -> None:
    seen: list[int] = []

    def refuse(pid: int, tids: Sequence[int]) -> None:
        seen.append(pid)
        raise HostError("not there")

    with pytest.raises(HostError, match="not there"):
        runner.measure_spec(
            SPEC, Watching(), CancelToken(), command=launch.command("scripted_worker", "ok"), placed=refuse
        )
    assert gone(seen[0])


SPLIT = dataclasses.replace(SPEC, placement=dataclasses.replace(SPEC.placement, inside=("accumulator",)))


def test_threads_that_go_inside_are_placed_by_their_numbers_once_they_run() -> None:
    seen: list[tuple[int, ...]] = []
    watching = Watching()

    def placed(pid: int, tids: Sequence[int]) -> None:
        assert not watching.tids
        seen.append((pid, *tids))

    command = launch.command("scripted_worker", "ok")
    result = runner.measure_spec(
        SPLIT, watching, CancelToken(), command=command, sensor=lambda: (None, None), placed=placed
    )
    assert result.complete
    assert seen == [(result.ready.tids["accumulator"],) * 2]


def test_a_thread_that_cannot_be_placed_ends_the_child() -> None:
    seen: list[int] = []

    def refuse(pid: int, tids: Sequence[int]) -> None:
        seen.append(pid)
        raise HostError("not there")

    command = launch.command("scripted_worker", "ok")
    with pytest.raises(HostError, match="not there"):
        runner.measure_spec(SPLIT, Watching(), CancelToken(), command=command, placed=refuse)
    assert gone(seen[0])
    with pytest.raises(MeasureError, match="no agent is connected that can move a measured thread"):
        runner.measure_spec(SPLIT, Watching(), CancelToken(), command=command)


STALL = dataclasses.replace(SPEC, block_ns=250_000_000, noise="stall")


def test_a_stall_stops_the_child_once_in_the_middle_and_is_told() -> None:
    result = run("stall:1", STALL)
    assert (result.complete, len(result.gathered.blocks)) == (True, 3), result.notes
    before, middle, after = (block.end_ns - block.start_ns for block in result.gathered.raw)
    assert middle >= STALL_NS
    assert max(before, after) < STALL_NS
    told = re.fullmatch(
        r"the whole measuring process was stopped on purpose, once, for (\d+\.\d) ms, (\d+\.\d{3}) s after the start "
        r"of the run \(block 2 of 3\)",
        result.notes["noise"],
    )
    assert told
    assert float(told[1]) >= 100
    assert result.bursts is not None
    (burst,) = result.bursts.list()
    assert result.gathered.raw[1].start_ns <= burst.start_ns <= result.gathered.raw[1].end_ns - STALL_NS
    assert burst.taken_ns >= STALL_NS
    start_s, first_s = (result.gathered.raw[i].start_ns / 1e9 for i in (1, 0))
    assert start_s - first_s <= float(told[2]) + 0.001
    assert "suspended" not in result.notes


def test_a_stall_that_finds_no_block_to_stop_is_an_error_after_some_tries() -> None:
    result = run("brief", STALL)
    assert len(result.gathered.blocks) == 1
    assert "in the middle of a block" in str(result.failure)
    assert "in 10 tries" in str(result.failure)
    assert result.notes["noise"].startswith("the run ended before its middle")


def test_a_cancel_before_the_middle_says_that_nothing_was_stopped() -> None:
    token = CancelToken()
    result = run("stall:1", STALL, Watching(lambda done: token.cancel("enough")), token)
    assert (result.cancelled, len(result.gathered.blocks)) == ("enough", 1)
    assert result.notes["noise"].startswith("the run ended before its middle")


def test_a_suspended_run_measures_the_cut_block_again() -> None:
    """A process of its own suspends itself within its first block; this test wakes it once it has stopped."""
    code = (
        "import json, os, sys; sys.path[:] = json.loads(sys.argv[1])\n"
        "from jitter_workshop.bench import launch, runner\n"
        "from jitter_workshop.bench.cancel import CancelToken\n"
        "from test_bench_runner import SPEC, Watching, run\n"
        "token = CancelToken()\n"
        "watching = Watching(lambda done: token.suspend() if done == 1 else None)\n"
        "result = run('ok', observer=watching, cancel=token)\n"
        "print(len(result.gathered.blocks), result.complete, result.notes['suspended'])\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, launch.command("x")[4]], stdout=subprocess.PIPE, text=True)
    _, status = os.waitpid(child.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    os.kill(child.pid, signal.SIGCONT)
    out, _ = child.communicate(timeout=30)
    assert out.startswith("3 True the run was suspended once")


def test_the_child_gets_few_variables_and_a_session_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("SECRET", "x")
    code = "import os, sys; print(sorted(os.environ), os.getsid(0) == os.getpid(), flush=True)"
    with launch.Child([sys.executable, "-I", "-c", code]) as child:
        said = child.wait(timeout_s=20).line.decode()
    assert "PYTHONPATH" not in said
    assert "SECRET" not in said
    assert said.endswith("True")


def test_a_child_that_ignores_everything_is_killed() -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('x', flush=True); time.sleep(60)"
    with launch.Child([sys.executable, "-I", "-c", code]) as child:
        assert child.wait(timeout_s=20).kind == "line"
        assert child.end(patience_s=0.0) == -signal.SIGKILL


@pytest.mark.parametrize("noise", [None, "spinners"])
def test_a_core_that_is_not_built_is_an_error_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noise: str | None
) -> None:
    package = Path(launch.__file__).parents[1]
    shutil.copytree(package, tmp_path / package.name, ignore=shutil.ignore_patterns("_native*", "__pycache__", "*.so"))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(MeasureError) as caught:
        runner.measure_spec(dataclasses.replace(SPEC, noise=noise), SilentObserver(), CancelToken())
    assert caught.value.message.startswith("the native core cannot be loaded (")
    assert "make workshop" in caught.value.advice
    assert "pip install" in caught.value.advice
    assert "Traceback" not in caught.value.sentence()


@pytest.mark.parametrize("noise", [None, "spinners"])
def test_a_core_that_is_older_than_the_program_is_an_error_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noise: str | None
) -> None:
    package = Path(launch.__file__).parents[1]
    shutil.copytree(package, tmp_path / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "native").mkdir()
    header = (package.parent / "native" / "api.h").read_text(encoding="utf-8")
    (tmp_path / "native" / "api.h").write_text(f"{header}int jw_of_tomorrow(int source);\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(MeasureError) as caught:
        runner.measure_spec(dataclasses.replace(SPEC, noise=noise), SilentObserver(), CancelToken())
    assert caught.value.message == f"{protocol.OLD_CORE} (it has no jw_of_tomorrow)"
    assert "make workshop" in caught.value.advice
    assert "exit code" not in caught.value.sentence()


def test_a_preset_on_a_host_that_is_too_slow_has_fewer_blocks_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_LEAST_LIMIT_S", 0.3)
    monkeypatch.setattr(runner, "expected_seconds", lambda spec: 0.01)

    def slow() -> tuple[None, None]:
        time.sleep(0.03)
        return None, None

    watching = Watching()
    spec = dataclasses.replace(SPEC, blocks=200, preset="quick")
    result = run("ok", spec, watching, sensor=slow)
    count = len(result.gathered.blocks)
    assert result.complete
    assert 5 <= count <= 10, "each takes 30 ms, of 300"
    assert result.notes["blocks"].startswith(f"the run has only {count} of 200 blocks: ")
    assert (watching.progress[-1].done, watching.progress[-1].total) == (count, count)
    asked = run("ok", dataclasses.replace(SPEC, blocks=20), sensor=slow)
    assert len(asked.gathered.blocks) == 20, "who asks for a duration gets it"
    assert "blocks" not in asked.notes


@pytest.mark.parametrize(
    ("done", "elapsed_s", "noise", "wanted"),
    [
        (1, 8.0, None, 20),  # too early to tell
        (10, 22.0, None, 20),  # it fits
        (4, 24.0, None, 7),  # 6 s a block, of 45 s
        (1, 40.0, None, 5),  # never fewer than five
        (4, 24.0, "stall", 11),  # the stall comes in the eleventh
        (12, 80.0, None, 12),  # and never fewer than are there
    ],
)
def test_how_many_blocks_there_is_time_for(done: int, elapsed_s: float, noise: str | None, wanted: int) -> None:
    quick = RunSpec("ring", Placement("none"), blocks=20, block_ns=250_000_000, preset="quick", noise=noise)
    assert runner.fitting_blocks(quick, done, elapsed_s) == wanted
    assert runner.fitting_blocks(dataclasses.replace(quick, preset=None), done, elapsed_s) == 20
