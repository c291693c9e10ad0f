"""A setting of this very host, proven by the real agent and given back, also after kill -9. As root; left out, with the
reason, where that is not to be had. The setting is how often the kernel folds its memory statistics: harmless."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.bench.lock import TURN_VARIABLE
from jitter_workshop.flow.host_ops.host_status import draw_up
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Wanted
from jitter_workshop.session.proofs import CUT_OFF
from jitter_workshop.session.store import SessionStore
from jitter_workshop.tuning.journal import Journal, read_journals
from tests import livetrace
from tests.ownturn import turn_of

STAT = Path("/proc/sys/vm/stat_interval")
OTHER = "swap=13"
"""Another harmless setting of every host."""
PATIENCE_S = 60.0
PLACE = ("unshare", "--mount", "sh", "-c", 'mount --bind "$1" /var/lib && shift && exec "$@"', "sh")
"""Run a command with the folder that the next word names in the place of ``/var/lib``. Without it, the tests that other
workers run meanwhile would find these changes in this host's journals, and say that they were applied during a run."""


def _why_not() -> str:
    if os.geteuid() != 0:
        return "only root may change a host"
    if subprocess.run([*PLACE, "/var/lib", "true"], capture_output=True, check=False).returncode != 0:
        return "there is no mount namespace to be had"
    if read_journals(HostRoot()):
        return "something is applied here"
    if not os.access(STAT, os.W_OK):
        return "this kernel's settings cannot be written"
    if not draw_up(Path("/"), (Wanted("stat-interval"),)).plan.changes:
        return "it is so here already"
    return ""


pytestmark = [pytest.mark.host, pytest.mark.skipif(bool(WHY := _why_not()), reason=WHY or "it can be had")]


def start(tmp_path: Path, *words: str, what: tuple[str, ...] = ("stat-interval",)) -> subprocess.Popen[bytes]:
    folder = tmp_path / "host/var/lib"
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    command = [sys.executable, "-m", "jitter_workshop", "prove", *what, "--yes", "--json", *words]
    environment = os.environ | {TURN_VARIABLE: turn_of(tmp_path)}
    return subprocess.Popen([*PLACE, folder, *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def journals(tmp_path: Path) -> tuple[Journal, ...]:
    """Return the journals that the commands of one test have written."""
    return tuple(read_journals(HostRoot(tmp_path / "host")))


SHARED = """\
import os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
child = os.fork()
while time.thread_time_ns() < 60_000_000:
    pass
if child:
    os.waitpid(child, 0)
"""
"""Two processes on one CPU that need 60 ms of it each: one of them waits for the other."""


def wait_until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.005)


def test_it_is_set_for_one_run_of_a_round_and_given_back(tmp_path: Path) -> None:
    before = STAT.read_text()
    told, said = start(tmp_path, "--rounds", "1", "--duration", "0.05").communicate(timeout=PATIENCE_S)
    value = json.loads(told)
    assert value["restored"] is True, said
    assert [one["tunable"] for one in value["changes"]] == ["stat-interval"]
    assert STAT.read_text() == before
    assert not journals(tmp_path)
    with SessionStore().open("@1") as session:
        (one,) = value["rounds"]
        assert session.find(one["without"]).applied == ()
        assert [item["id"] for item in session.find(one["with"]).applied] == ["stat-interval"]


HGRM = Path(__file__).parents[1] / "imports" / "percentiles.hgrm"


@pytest.mark.parametrize(
    ("script", "options", "measure"),
    [
        (f"echo p99=$(cat {STAT})", ("--match", "p99=([0-9]+)", "--unit", "us"), "match"),
        (f"cp {HGRM} {{out}}", ("--hlog", "{out}", "--metric", "p90", "--unit", "us"), "p90"),
    ],
)
def test_two_settings_are_screened_by_a_figure_of_a_command_and_given_back(
    tmp_path: Path, script: str, options: tuple[str, ...], measure: str
) -> None:
    before, out = STAT.read_text(), tmp_path / "out.hgrm"
    words = (*(word.format(out=out) for word in options), "--rounds", "1", "--", "sh", "-c", script.format(out=out))
    told, said = start(tmp_path, *words, what=("--screen", "stat-interval", OTHER)).communicate(timeout=PATIENCE_S)
    value = json.loads(told or b"{}")
    assert (value.get("measure"), value.get("complete"), value.get("restored")) == (measure, True, True), said
    assert STAT.read_text() == before
    assert not out.exists()
    assert not journals(tmp_path)
    with SessionStore().open("@1") as session:
        (one,) = session.screenings()
    figures = {run.side.figure for pair in (*one.pairs, *one.proofs) for run in (pair.first, pair.second)}
    assert len(figures) == (2 if measure == "match" else 1)


def killed(tmp_path: Path, process: subprocess.Popen[bytes], kind: str, before: str) -> None:
    """Kill a process that has kept something of this kind, while its setting is applied. Wait until the setting is
    back."""
    try:
        kept = SessionStore().folder
        wait_until(lambda: any(kept.glob(f"*/{kind}/*.json")))
        wait_until(lambda: STAT.read_text() != before and bool(journals(tmp_path)))
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
    wait_until(lambda: STAT.read_text() == before and not journals(tmp_path))


def test_kill_9_in_the_middle_gives_it_back_and_keeps_the_finished_rounds(tmp_path: Path) -> None:
    before = STAT.read_text()
    proving = start(tmp_path, "--rounds", "50", "--duration", "0.05")
    killed(tmp_path, proving, "proofs", before)
    with SessionStore().open("@1") as session:
        (proof,) = session.proofs()
    assert 1 <= len(proof.rounds) < 50
    assert (proof.stopped, proof.complete) == (CUT_OFF, False)


@pytest.mark.skipif(bool(NO_TRACE := livetrace.why_not()), reason=NO_TRACE or "it can be had")
def test_the_time_for_which_a_command_is_held_up_comes_from_the_trace(tmp_path: Path) -> None:
    before = STAT.read_text()
    command = ["--", sys.executable, "-c", SHARED]
    told, said = start(tmp_path, "--rounds", "1", "--metric", "held-up", *command).communicate(timeout=PATIENCE_S)
    value = json.loads(told or b"{}")
    assert value.get("metric") == "held_up_time", said
    (figures,) = (one["figures"] for one in value["rounds"])
    assert all(30e6 < figure < 30e9 for figure in figures)
    assert STAT.read_text() == before


def test_kill_9_while_a_command_runs_with_the_setting_ends_it_and_gives_back(tmp_path: Path) -> None:
    before, pid = STAT.read_text(), tmp_path / "pid"
    script = f"test $(cat {STAT}) = {before.strip()} || {{ echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 1000; }}"
    proving = start(tmp_path, "--rounds", "2", "--", "sh", "-c", script)
    try:
        wait_until(pid.exists)
        assert STAT.read_text() != before
    finally:
        proving.send_signal(signal.SIGKILL)
        proving.communicate(timeout=PATIENCE_S)
    wait_until(lambda: STAT.read_text() == before and not journals(tmp_path))
    wait_until(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists())


def test_kill_9_in_a_screening_gives_it_back_and_it_goes_on_from_there(tmp_path: Path) -> None:
    before = STAT.read_text()
    command = ["--", "sh", "-c", f"sleep 0.1; echo {before.strip()}"]

    def screen(*more: str) -> subprocess.Popen[bytes]:
        words = [*more, "--rounds", "10", "--match", "([0-9]+)", "--unit", "ns", *command]
        return start(tmp_path, *words, what=("--screen", "stat-interval", OTHER))

    killed(tmp_path, screen(), "screenings", before)
    with SessionStore().open("@1") as session:
        (cut,) = session.screenings()
    assert 1 <= len(cut.proofs) < 10
    told, said = screen("--resume").communicate(timeout=PATIENCE_S)
    value = json.loads(told or b"{}")
    assert (value.get("id"), value.get("runs"), value.get("restored")) == (cut.id, 20, True), said
    assert len(value["sittings"]) == 2
    assert STAT.read_text() == before
