"""Measuring for every use, with a scripted child: what is kept, what is said, and the verb's exit codes."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from jitter_workshop import cli
from jitter_workshop.bench import launch, runner
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import TURN_VARIABLE
from jitter_workshop.errors import MeasureError
from jitter_workshop.flow.measuring.host_warnings import warnings
from jitter_workshop.flow.measuring.measure import Marked, MeasurementStopped, RunNotKept, measure_run
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import summarise_host
from jitter_workshop.model.codec import from_plain
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.host import GUEST
from jitter_workshop.model.noise import Bursts
from jitter_workshop.model.run import PERCENTILES, Block, Progress, Run, SilentObserver
from jitter_workshop.presenter.runs.run import run_result_lines
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.session.store import SessionStore
from tests.ownturn import turn_of

pytestmark = pytest.mark.host


@pytest.fixture(autouse=True)
def own_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TURN_VARIABLE, turn_of(tmp_path))


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Measure with the scripted child in a mode."""
    real = launch.command

    def use(mode: str) -> None:
        monkeypatch.setattr(launch, "command", lambda module, *arguments: real("scripted_worker", mode))

    use("ok")
    return use


SPIN = MeasureRequest(workload="spin", duration_s=0.5, label="  a \x1b[31mlabel\n")


def test_a_run_is_kept_with_all_it_knows(child: Callable[[str], None]) -> None:
    with SessionStore().create("mine", "here") as session:
        run = measure_run(SPIN, session, SilentObserver(), CancelToken())
    assert run.complete
    assert (run.label, run.workload, run.preset, len(run.blocks)) == ("a [31mlabel", "spin", None, 2)
    assert run.histograms["spin_gap"].count == 8
    assert run.host["name"]
    assert run.counted_s == 0.0024
    assert (run.steal_ns, run.steal_resolution_ns) == (0, 10_000_000)
    for field in ("preset", "softirqs", "throttled_periods", "threads.migrations", "histograms"):
        assert run.notes[field], field
    with SessionStore().open("mine") as session:
        (stored,) = session.runs()
        assert stored == run
        assert session.histogram(run.id, "spin_gap").get_total_count() == 8


def test_a_dead_child_keeps_the_finished_blocks_and_says_so(child: Callable[[str], None]) -> None:
    child("die:1")
    with SessionStore().create("mine", "here") as session:
        with pytest.raises(MeasurementStopped) as caught:
            measure_run(SPIN, session, SilentObserver(), CancelToken())
        (stored,) = session.runs()
    said = caught.value.sentence()
    assert "by SIGKILL after 1 of 2 blocks" in said
    assert "blocks are kept as run" in said
    assert stored == caught.value.run
    assert not stored.complete
    assert stored.notes["complete"].startswith("1 of 2 blocks, ")
    assert "killed by SIGKILL" in stored.notes["complete"]


def test_a_session_that_cannot_be_written_does_not_lose_the_run(child: Callable[[str], None]) -> None:
    store = SessionStore()
    with store.create("mine", "here"), store.open("mine") as second:
        with pytest.raises(RunNotKept, match="measured but could not be saved") as caught:
            measure_run(SPIN, second, SilentObserver(), CancelToken())
        assert caught.value.run.histograms["spin_gap"].count == 8


def test_battery_and_cgroup_limits_are_said_before_measuring() -> None:
    host = dataclasses.replace(
        summarise_host(HostRoot()), hypervisor=None, on_battery=True, cpu_max_quota_us=50_000, cpu_max_period_us=100_000
    )
    battery, limit = warnings(host)
    assert "runs on battery" in battery
    assert "cpu.max allows 0.5 CPUs in each" in limit
    assert warnings(dataclasses.replace(host, on_battery=None, cpu_max_quota_us=None)) == ()


@pytest.mark.parametrize(
    ("hypervisor", "architecture", "emulated"),
    [
        ("QEMU", "x86_64", "These CPUs seem to be emulated"),
        ("KVM", "x86_64", ""),
        ("QEMU", "aarch64", "These CPUs may be emulated: this host"),
        ("KVM", "aarch64", ""),
        (None, "x86_64", ""),
    ],
)
def test_figures_of_an_emulated_machine_are_announced_as_such(
    hypervisor: str | None, architecture: str, emulated: str
) -> None:
    host = dataclasses.replace(
        summarise_host(HostRoot()),
        hypervisor=hypervisor,
        architecture=architecture,
        on_battery=None,
        cpu_max_quota_us=None,
        emulated=None,
    )
    told = warnings(host)
    assert len(told) == bool(emulated)
    assert all(
        said.startswith(emulated) and said.endswith("real, but the measured times mean nothing.") for said in told
    )


def test_the_verb_prints_a_report_within_80_columns(
    child: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["measure", "--workload", "spin", "--label", "first"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80
    for row in ("mean", "min", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %", "max", "count"):
        assert f"\n{row} " in out
    assert "stalls over" in out
    assert "in session workshop" in out


def test_the_verb_prints_one_json_object_that_reads_back(
    child: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["measure", "--workload", "spin", "--json", "--session", "class of 9"]) == 0
    value = json.loads(capsys.readouterr().out)
    # The standings of its percentiles are said beside the run, and not stored.
    assert {one["percentile"] for one in value.pop("standings")} == set(PERCENTILES)
    value["notes"].pop("standings.value_ns", None)
    run = from_plain(Run, value)
    assert value["format_version"] == 1
    with SessionStore().open("class of 9") as session:
        assert session.find("@1") == run


def test_an_unwritable_state_folder_still_gives_the_result(
    child: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(os.environ["XDG_STATE_HOME"]).write_text("a file where a folder should be")
    assert cli.main(["measure", "--workload", "spin", "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["histograms"]["spin_gap"]["count"] == 80
    assert err.startswith("the run was measured but could not")
    assert err.count("\n") == 1


def test_a_dead_child_is_exit_2_with_an_empty_stdout(
    child: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    child("die:3")
    assert cli.main(["measure", "--workload", "spin", "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "after 3 of 20 blocks" in err


def test_a_dead_noise_is_exit_2_and_the_run_is_not_complete(
    child: Callable[[str], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    death = MeasureError("the noise process was killed by SIGKILL")
    looks = iter([None, None, None, death])

    def finish() -> Bursts:
        raise death

    noise = SimpleNamespace(gone=lambda: next(looks), aim=lambda tids: None, finish=finish)
    monkeypatch.setattr(runner, "_noise", lambda spec: contextlib.nullcontext(noise))
    assert cli.main(["measure", "--workload", "spin", "--noise", "spinners"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "the noise process was killed by SIGKILL" in err
    assert "after 3 of 20 blocks" in err
    assert "blocks are kept" in err
    with SessionStore().current_or_create("workshop", "here") as session:
        (stored,) = session.runs()
    assert (stored.complete, len(stored.blocks), stored.noise_bursts) == (False, 3, None)
    assert stored.notes["noise_bursts"] == "the noise process was killed by SIGKILL"


def test_progress_is_one_line_on_a_terminal(
    child: Callable[[str], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert cli.main(["measure", "--workload", "spin", "--duration", "0.5"]) == 0
    ahead, _, err = capsys.readouterr().err.partition("\n")
    assert ahead.startswith("500 ms")
    assert "\n" not in err
    assert "block 2/2 · p50 90 ns" in err
    assert err.endswith("\r")


def test_the_report_of_a_ring_with_all_histograms_stays_narrow(child: Callable[[str], None]) -> None:
    run = measure_run(SPIN, None, SilentObserver(), CancelToken())
    gap = run.histograms["spin_gap"]
    names = ("transit", "interval", "intended")
    histograms = {f"{who}_{what}": gap for what in names for who in ("accumulator", "journaller")}
    many = {str(cpu): 10**6 for cpu in range(64)}
    wide = dataclasses.replace(
        run,
        workload="ring",
        histograms={**histograms, "publisher_interval": dataclasses.replace(gap, count=10**10, overflow=3)},
        threads=(dataclasses.replace(run.threads[0], messages_by_cpu=many, minor_faults=None),),
        notes={**run.notes, "complete": "\x1b[2J" + "word " * 60},
    )
    text = written(run_result_lines(wide, 80))
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "10,000,000,000" in text
    assert "beyond range" in text
    assert " more" in text


def test_a_run_lists_the_settings_applied_during_it(
    child: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = ({"id": "governor", "value": "performance"},)
    monkeypatch.setattr(
        "jitter_workshop.flow.measuring.measure.applied_tunables", lambda root, in_effect: applied if in_effect else ()
    )
    assert measure_run(SPIN, None, SilentObserver(), CancelToken()).applied == applied


def test_both_curves_of_an_unfinished_run_have_the_mark_of_the_host() -> None:
    heard: list[Progress] = []
    curve = PercentileCurve("run", (), 9)
    now = Progress(Block(0, 0, 1, 1, 1, 1, 1, 1, 0), 1, 2, curve, 1, 1_000, due=curve)
    observer = SilentObserver()
    observer.block_done = heard.append  # type: ignore[method-assign]
    Marked(observer, GUEST).block_done(now)
    assert [heard[0].curve.origin, heard[0].latency.origin] == [GUEST, GUEST]
