"""``measure --noise KIND``, each kind for real: made and logged, or refused in a sentence; no end leaves it behind."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from jitter_workshop.bench import launch
from jitter_workshop.bench.lock import TURN_VARIABLE
from jitter_workshop.model.noise import NOISE_KINDS, noise
from tests import livetrace
from tests.ownturn import turn_of

pytestmark = [
    pytest.mark.host,
    pytest.mark.native,
    pytest.mark.skipif(
        importlib.util.find_spec("jitter_workshop.bench._native") is None, reason="the native core is not built"
    ),
]

PATIENCE_S = 60
LEAST_PACKETS = 20
"""The least number of bursts of packets in a second, of 200: a crowded host lets the sender wait."""


@pytest.fixture(autouse=True)
def own_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TURN_VARIABLE, turn_of(tmp_path))


def command(kind: str, *arguments: str) -> list[str]:
    return launch.command("jitter_workshop", "measure", "--workload", "spin", "--noise", kind, *arguments)


def measure(kind: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(kind, *arguments), capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.mark.parametrize("kind", NOISE_KINDS)
def test_each_kind_is_made_and_told_or_refused_in_a_sentence(kind: str, tmp_path: Path) -> None:
    done = measure(kind, "--duration", "0.25", "--json")
    if done.returncode == 2:
        assert done.stdout == ""
        # The noise refused to begin (isolation, rights, CPUs), or the host did not let it work.
        refused = (f"the noise {kind} ", f"this host cannot make the noise {kind}: ")
        assert any(words in done.stderr for words in refused)
        assert done.stderr.count("\n") == 1
        pytest.skip(done.stderr.strip())
    assert (done.returncode, done.stderr) == (0, "")
    run = json.loads(done.stdout)
    assert run["noise"] == kind
    bursts = run["noise_bursts"]
    assert bursts["count"] >= 1
    if bursts["taken_ns"] is None:
        assert kind in ("migration", "disk", "network", "hwrng")
        assert "noise_bursts.taken_ns" in run["notes"]
    else:
        assert bursts["taken_ns"] > 0
    # Only the count and the sum are kept, however many there were.
    (stored,) = (tmp_path / "xdg-state").rglob("run.json")
    assert json.loads(stored.read_text())["noise_bursts"] == bursts


def test_packets_of_another_cpu_are_received_on_the_hot_one() -> None:
    done = measure("network", "--duration", "1", "--json")
    if done.returncode == 2:
        pytest.skip(done.stderr.strip())
    run = json.loads(done.stdout)
    hot = str(run["placement"]["sampler"])
    least = LEAST_PACKETS * run["counted_s"]
    assert run["softirqs"]["NET_RX"]["per_cpu"][hot] >= least
    if "CAL" in run["interrupts"]:
        assert run["interrupts"]["CAL"]["per_cpu"][hot] >= least


@pytest.mark.skipif(bool(livetrace.why_not()), reason="no trace can be recorded here")
def test_the_trace_of_packets_names_their_softirq_and_the_cpu_that_sent_them() -> None:
    done = measure("network", "--duration", "1", "--evidence", "--json")
    if done.returncode == 2:
        pytest.skip(done.stderr.strip())
    run = json.loads(done.stdout)
    explained = subprocess.run(
        launch.command("jitter_workshop", "explain", run["id"], "--top", "200", "--json"),
        capture_output=True, text=True, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    report = json.loads(explained.stdout)
    counts = {(cause["kind"], cause["name"]): cause["count"] for cause in report["causes"]}
    least = LEAST_PACKETS * report["measured_ns"] / 1e9
    assert counts["softirq", "NET_RX"] >= least
    # Older kernels do not tell who called which function.
    if "csd:csd_function_entry" not in report["missing"]:
        assert counts["vector", "rps_trigger_softirq"] >= least
    if "ipi:ipi_send_cpu" not in report["missing"]:
        said = {note for stall in report["worst"] for note in stall["notes"]}
        hot = run["placement"]["sampler"]
        call = re.compile(rf"thread \d+ on CPU \d+ made CPU {hot} run generic_smp_call_function")
        assert any(call.match(note) for note in said)


def test_without_noise_the_field_is_null_with_its_reason() -> None:
    arguments = launch.command("jitter_workshop", "measure", "--workload", "spin", "--duration", "0.05", "--json")
    run = json.loads(subprocess.run(arguments, capture_output=True, timeout=PATIENCE_S, check=True).stdout)
    assert (run["noise_bursts"], run["notes"]["noise_bursts"]) == (None, "the run had no noise")


def test_a_noise_that_needs_a_second_cpu_is_refused_on_one(tmp_path: Path) -> None:
    (one, *_) = sorted(os.sched_getaffinity(0))
    for kind in (kind for kind in NOISE_KINDS if noise(kind).cpus > 1):
        done = subprocess.run(
            command(kind, "--cpu", str(one), "--json"),
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, {one}),
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert f"the noise {kind} needs two CPUs" in done.stderr
    assert not list((tmp_path / "xdg-state").rglob("run.json"))


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    done = measure("thu\x1b[31mnder")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "there is no noise 'thu" in done.stderr
    assert "\x1b" not in done.stderr
    assert all(kind in done.stderr for kind in NOISE_KINDS)


def test_two_noises_are_refused() -> None:
    done = measure("greedy", "--noise", "stall", "--duration", "0.05")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "--noise: given twice, but a run has only one" in done.stderr


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("kind", ["greedy", "softirq"])
def test_however_a_run_ends_its_noise_ends_with_it(kind: str, signum: signal.Signals) -> None:
    with subprocess.Popen(
        command(kind, "--preset", "long"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as run:
        try:
            family = children(run)
            assert not [word for child in family for word in child.cmdline() if word == kind]
            run.send_signal(signum)
            run.wait(PATIENCE_S)
        finally:
            run.kill()
    _, left = psutil.wait_procs(family, timeout=PATIENCE_S)
    assert not [child for child in left if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


def children(run: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The noise and the measuring process, once both are what they will be: between fork and exec they look like their
    parent."""
    parent = psutil.Process(run.pid)
    while run.poll() is None:
        family = parent.children(recursive=True)
        with contextlib.suppress(psutil.NoSuchProcess):
            if (
                len(family) == 2
                and all("json.loads" in " ".join(child.cmdline()) for child in family)
                and not [child for child in family if child.cmdline() == parent.cmdline()]
            ):
                return family
    if run.wait(PATIENCE_S) == 2:
        pytest.skip("this noise is refused here: see the first test")
    raise AssertionError("the run ended too early")
