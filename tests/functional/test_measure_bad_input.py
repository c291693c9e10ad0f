"""Measuring for real, badly: CPUs that are not there, full disks, signals and kill -9. One sentence each, nothing lost.

Cases that need no child (limits, contradictions, CPUs that are offline) are tested on made-up hosts in
``tests/unit/test_bench_placement.py`` and ``tests/unit/test_flow_request.py``.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from jitter_workshop.bench import launch
from jitter_workshop.bench.lock import TURN_VARIABLE, host_turn
from jitter_workshop.cli import main
from jitter_workshop.flow.measuring.measure import NOT_SAVED
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.session.store import SessionStore
from tests.ownturn import turn_of

pytestmark = [
    pytest.mark.host,
    pytest.mark.native,
    pytest.mark.skipif(
        importlib.util.find_spec("jitter_workshop.bench._native") is None, reason="the native core is not built"
    ),
]

ALLOWED = read_topology(HostRoot()).allowed
PATIENCE_S = 60


@pytest.fixture(autouse=True)
def own_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TURN_VARIABLE, turn_of(tmp_path))


def measure_command(*arguments: str) -> list[str]:
    return launch.command("jitter_workshop", "measure", *arguments)


def run_measure(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        measure_command(*arguments), capture_output=True, text=True, timeout=PATIENCE_S, check=False, **options
    )


def refused(done: subprocess.CompletedProcess[str], sentence: str) -> None:
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert sentence in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--producer-cpu", "60000"], "this host has no CPU 60000; CPUs online: "),
        (["--workload", "spin", "--cpu", "-1"], "this host has no CPU -1"),
        (["--messages", "0"], "a run can send 1 to 8,640,000,000"),
        (["--messages", "1000000000000"], "not 1,000,000,000,000"),
        (["--interval-us", "0"], "the interval must be 0.1 µs"),
        (["--interval-us", "0.005"], "the interval must be 0.1 µs"),
        (["--interval-us", "nan"], "not a finite number: 'nan'"),
        (["--duration", "-3"], "the duration of a run must be from 0.01 s to 24 h, not -3 s"),
        (["--duration", "1e300"], "run must be from 0.01 s to 24 h"),
        (["--sched", "fifo:99"], "not a scheduling class: 'fifo:99'"),
        (["--noise", "thunder"], "there is no noise 'thunder'; known: spinners, greedy, timer,"),
        (["--root", "/proc"], "a recorded host can be read, but"),
        (["--session", "@7"], "there is no session @7"),
    ],
)
def test_a_wrong_measurement_is_refused(arguments: list[str], sentence: str, capfd: pytest.CaptureFixture[str]) -> None:
    code = main(["measure", *arguments])
    refused(subprocess.CompletedProcess([], code, *capfd.readouterr()), sentence)


def test_the_same_cpu_twice() -> None:
    cpu = str(ALLOWED.cpus[0])
    refused(run_measure("--producer-cpu", cpu, "--accumulator-cpu", cpu), f"CPU {cpu} is given twice")


@pytest.mark.skipif(len(ALLOWED) < 2, reason="needs two CPUs to leave one out")
def test_a_cpu_outside_the_affinity_mask() -> None:
    first, second = ALLOWED.cpus[:2]
    done = run_measure("--workload", "spin", "--cpu", str(second), preexec_fn=lambda: os.sched_setaffinity(0, {first}))
    refused(done, f"CPU {second} is outside this process's affinity mask or cgroup; CPUs allowed: {first}")


@pytest.mark.skipif(len(ALLOWED) < 2, reason="needs two CPUs to leave one out")
def test_a_mask_of_one_cpu_sends_the_ring_to_spin() -> None:
    first = ALLOWED.cpus[0]
    done = run_measure(preexec_fn=lambda: os.sched_setaffinity(0, {first}))
    refused(done, f"the ring needs two CPUs, and this process may use only CPU {first}; use '--workload spin'")


def test_two_runs_on_one_host() -> None:
    with host_turn():
        done = run_measure("--workload", "spin", "--duration", "0.1")
    refused(done, f"is measuring (uid {os.getuid()}, pid {os.getpid()}")
    assert "or queue with '--wait SECONDS'" in done.stderr


def test_a_queued_run_begins_when_the_turn_is_free() -> None:
    with host_turn():
        waiting = subprocess.Popen(
            measure_command("--workload", "spin", "--duration", "0.1", "--wait", "60", "--json"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert waiting.stderr is not None
        assert f"pid {os.getpid()}" in waiting.stderr.readline()
    out, _ = waiting.communicate(timeout=PATIENCE_S)
    assert waiting.returncode == 0
    assert json.loads(out)["complete"] is True


def _small_disk(folder: Path) -> list[str]:
    """A prefix that runs a command with a disk of 24 KiB mounted at ``folder``, in a mount namespace of its own."""
    script = 'mount -t tmpfs -o size=24k tmpfs "$0" && exec "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", script, str(folder)]
    try:
        done = subprocess.run([*prefix, "true"], capture_output=True, timeout=20, check=False)
    except OSError:
        return []
    return prefix if done.returncode == 0 else []


def test_a_full_disk_does_not_lose_the_result(tmp_path: Path) -> None:
    folder = Path(os.environ["XDG_STATE_HOME"])
    folder.mkdir()
    command = measure_command("--workload", "spin", "--duration", "2", "--json")
    limit: Callable[[], None] | None = None
    prefix = _small_disk(folder)
    if not prefix:
        # Without the right to mount: no file may grow beyond 8 KiB, which fails in the same place.
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, 8_192))

    done = subprocess.run(
        [*prefix, *command], capture_output=True, text=True, timeout=PATIENCE_S, check=False, preexec_fn=limit
    )
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["histograms"]["spin_gap"]["count"] > 0
    assert done.stderr.startswith(NOT_SAVED)
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(len(ALLOWED) < 2, reason="the ring needs two CPUs")
def test_a_full_disk_where_the_ring_keeps_its_files_sends_them_elsewhere() -> None:
    folder = Path(os.environ["XDG_CACHE_HOME"])
    folder.mkdir()
    prefix = _small_disk(folder)
    if not prefix:
        pytest.skip("mounting a small disk is not permitted here")
    fill = ["sh", "-c", f'head -c 32768 /dev/zero >"{folder}/full" 2>/dev/null; exec "$@"', "sh"]
    done = subprocess.run(
        [*prefix, *fill, *measure_command("--duration", "0.2")],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert only_run().complete


@pytest.fixture
def quarter_of_a_cpu() -> Iterator[Path]:
    """A new cgroup that may use a quarter of a CPU (less than a busy machine leaves it); its ``cgroup.procs``."""
    name = f"jitter-workshop-test-{os.getpid()}"
    old, new = Path("/sys/fs/cgroup/cpu") / name, Path("/sys/fs/cgroup") / name
    try:
        if Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").exists():
            group, limit, value = old, old / "cpu.cfs_quota_us", "25000"
        elif "cpu" in Path("/sys/fs/cgroup/cgroup.subtree_control").read_text().split():
            group, limit, value = new, new / "cpu.max", "25000 100000"
        else:
            pytest.skip("no cgroup hierarchy hands out CPU limits here")
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error.strerror}")
    try:
        limit.write_text(value)
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


def test_a_container_with_a_cpu_limit_is_told_before_and_noted_after(quarter_of_a_cpu: Path) -> None:
    enter = ["sh", "-c", f'echo $$ >"{quarter_of_a_cpu}" && exec "$@"', "sh"]
    done = subprocess.run(
        [*enter, *measure_command("--workload", "spin", "--duration", "0.5", "--json")],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("The cgroup's cpu.max allows 0.25 CPUs")
    assert "each 100 ms" in done.stderr
    assert "throttled" in done.stderr
    run = json.loads(done.stdout)
    assert "allows 0.25 CPUs" in run["notes"]["cpu_max"]
    assert run["throttled_periods"] > 0


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[str], str]]]:
    """``measure`` with a terminal for its stderr; the second value waits until its progress line says something."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(measure_command(*arguments), stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    said = bytearray()

    def until(wanted: str) -> str:
        while re.search(wanted, said.decode(errors="replace")) is None:
            ready, _, _ = select.select([ours], [], [], PATIENCE_S)
            assert ready, f"waited in vain for {wanted!r}, heard {said!r}"
            try:
                said.extend(os.read(ours, 4096))
            except OSError:  # the other end of the terminal is closed
                break
        return said.decode(errors="replace")

    try:
        yield process, until
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
        os.close(ours)


def measuring_child(process: subprocess.Popen[bytes]) -> int:
    (child,) = psutil.Process(process.pid).children()
    return int(child.pid)


@contextmanager
def watched(pid: int) -> Iterator[Callable[[], bool]]:
    """A function that waits for the end of a process that is not our child."""
    descriptor = os.pidfd_open(pid)
    try:
        yield lambda: bool(select.select([descriptor], [], [], PATIENCE_S)[0])
    finally:
        os.close(descriptor)


def only_run() -> Any:
    with SessionStore().open("@1") as session:
        (run,) = session.runs()
        return run


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_stop_the_run_and_keep_the_finished_blocks(signum: signal.Signals) -> None:
    with running("--workload", "spin", "--preset", "quick", "--json") as (process, until):
        until("block 2/20")
        with watched(measuring_child(process)) as ended:
            process.send_signal(signum)
            out, _ = process.communicate(timeout=PATIENCE_S)
            assert ended()
        said = until("kept as run")
    assert (process.returncode, out) == (128 + signum, b"")
    run = only_run()
    assert not run.complete
    assert 2 <= len(run.blocks) < 20
    assert run.notes["complete"] == f"{len(run.blocks)} of 20 blocks, stopped: {signum.name}"
    assert f"stopped after {len(run.blocks)} finished blocks; they are kept as run {run.id}" in said


def test_a_signal_before_the_first_block_keeps_nothing() -> None:
    with running("--workload", "spin", "--preset", "long") as (process, until):
        until("measuring 3600 blocks")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        said = until("nothing was kept")
    assert process.returncode == 130
    assert "stopped before the first block" in said
    assert "nothing was kept" in said


def test_kill_9_of_the_child_keeps_the_finished_blocks() -> None:
    with running("--workload", "spin", "--json") as (process, until):
        until("block 2/20")
        os.kill(measuring_child(process), signal.SIGKILL)
        out, _ = process.communicate(timeout=PATIENCE_S)
        said = until("kept as run")
    assert (process.returncode, out) == (2, b"")
    run = only_run()
    assert f"killed by SIGKILL after {len(run.blocks)} of 20 blocks; the finished blocks" in said


@pytest.mark.parametrize("arguments", [["--workload", "spin"], ["--workload", "spin", "--noise", "spinners"]])
def test_kill_9_of_the_parent_leaves_no_orphan(arguments: list[str]) -> None:
    with running(*arguments) as (process, until):
        until("block 1/20")
        children = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
        assert len(children) == 1 + ("--noise" in arguments)
        with watched(children[0]) as first, watched(children[-1]) as last:
            process.kill()
            process.communicate(timeout=PATIENCE_S)
            assert first()
            assert last()


def test_ctrl_z_freezes_parent_and_child_and_the_cut_block_is_measured_again() -> None:
    with running("--workload", "spin", "--duration", "1.5", "--json") as (process, until):
        until("block 1/6")
        child = measuring_child(process)
        process.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert psutil.Process(child).status() == psutil.STATUS_STOPPED
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    run = json.loads(out)
    assert (run["complete"], len(run["blocks"])) == (True, 6)
    assert run["notes"]["suspended"].startswith("the run was suspended once")


def test_no_terminal_means_no_progress_and_no_escapes() -> None:
    done = run_measure("--workload", "spin", "--duration", "0.3", env={**os.environ, "TERM": "dumb"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout


def test_a_closed_stdout_still_keeps_the_run() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        measure_command("--workload", "spin", "--duration", "0.3"),
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    assert only_run().complete


@pytest.mark.skipif(len(ALLOWED) < 2, reason="the ring needs two CPUs")
def test_a_number_of_messages_is_met_exactly() -> None:
    done = run_measure("--messages", "20001", "--json")
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    assert run["histograms"]["accumulator_transit"]["count"] == 20_001
    assert sum(block["count"] for block in run["blocks"]) == 20_001


def nulls(value: Any, path: str = "") -> Iterator[str]:
    """The paths of all nulls, without the numbers of list items."""
    if value is None:
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from nulls(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for item in value:
            yield from nulls(item, path)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(
            ["--workload", "ring"], marks=pytest.mark.skipif(len(ALLOWED) < 2, reason="the ring needs two CPUs")
        ),
        ["--workload", "spin"],
        ["--workload", "spin", "--placement", "none"],
    ],
)
def test_every_null_has_its_reason(arguments: list[str]) -> None:
    done = run_measure(*arguments, "--duration", "0.2", "--json")
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    for notes, part, prefix in ((run["notes"], run, ""), (run["host"]["notes"], run["host"], "host.")):
        for path in set(nulls({k: v for k, v in part.items() if k != "host"})):
            words = path.split(".")
            reasons = [notes.get(".".join(words[:length])) for length in range(1, len(words) + 1)]
            assert any(reasons), f"{prefix}{path} is null without a reason"
