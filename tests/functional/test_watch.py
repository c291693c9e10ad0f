"""watch on this machine: planted stalls are found and named, and what goes wrong is told and leaves nothing behind."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from jitter_workshop.agent.client import AgentClient
from jitter_workshop.agent.client import connect_to_agent as real_connect
from jitter_workshop.cli import main
from jitter_workshop.flow.host_ops import agent_connection
from jitter_workshop.flow.programs import kept as kept_command
from jitter_workshop.flow.programs.launch import NOT_STARTED
from jitter_workshop.flow.watching import log as logs
from jitter_workshop.flow.watching.log import MOST_LINES
from jitter_workshop.model.text import clean
from jitter_workshop.session import watches
from jitter_workshop.session.watches import NO_WATCH
from tests import livetrace, perfettoread, planted, reportschema

PROGRAM = (sys.executable, "-m", "jitter_workshop", "watch")
INSTANCES = Path("/sys/kernel/tracing/instances")
has_perfetto = importlib.util.find_spec("perfetto") is not None
pytestmark = [pytest.mark.host, pytest.mark.native]
traced = pytest.mark.skipif(bool(WHY := livetrace.why_not()), reason=WHY or "it can be had")


@pytest.fixture(autouse=True)
def own_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("JITTER_WORKSHOP_TURN", f"test-watch-{os.getpid()}")


def watch(*words: str, code: int = 0) -> tuple[str, str]:
    done = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def started(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def journal_with(top: Path, kind: str) -> Path:
    """The folder of the one watch, once its journal has an entry of this kind."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        for folder in top.iterdir() if top.is_dir() else ():
            if any(entry["kind"] == kind for entry in watches.read_journal(folder)):
                return folder
        time.sleep(0.05)
    raise AssertionError(f"no journal has the entry {kind}")


def tracks_of(said: dict[str, Any], tmp_path: Path) -> Any:
    """The Perfetto file of a watch that is over, read; None if the package is not installed."""
    if not has_perfetto:
        return None
    file = tmp_path / "x.pftrace"
    assert str(file) in watch("--show", said["folder"], "--perfetto", str(file))[1]
    found = perfettoread.read(file.read_bytes())
    marks = [(one.args["ns"], one.args["thread"]) for one in found.marks("Worst stalls")]
    assert marks == [(one["duration_ns"], clean(one["thread"])) for one in said["kept"][: len(marks)]]
    return found


@traced
def test_planted_stalls_are_found_and_named(tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    with planted.thief(cpu, 15, 0.4, 150) as thief:
        said = json.loads(
            watch("--until", "5s", "--threshold", "12ms", "--cpu", str(cpu), "--keep", "500", "--json")[0]
        )
        thief.kill()
        assert thief.stdout is not None
        times = planted.times(thief.stdout.read())
    whole = json.loads(reportschema.WATCH.read_text(encoding="utf-8"))
    assert reportschema.problems(said, whole, whole) == []
    lost, named = planted.missed(Path(said["folder"]), times)
    assert lost == []
    assert named >= 3
    assert said["cpu"] == cpu
    assert said["evidence"] == "trace"
    assert said["stalls"] == said["rates"][0]["count"] >= named
    whole = said["watched_s"] + sum(said["not_watched_ns"].values()) / 1e9
    assert abs(whole - said["duration_s"]) < 0.01
    for kept in said["kept"]:
        assert kept["parts"] is None or sum(part["ns"] for part in kept["parts"]) == kept["duration_ns"]
        assert kept["file"] is None or (Path(said["folder"]) / kept["file"]).is_file()
    found = tracks_of(said, tmp_path)
    if found is not None:
        causes: Counter[tuple[str, str]] = Counter()
        for kept in said["kept"][:MOST_LINES]:
            for part in kept["parts"] or () if kept["file"] else ():
                causes[part["kind"], clean(part["name"])] += part["ns"]
        assert found.sums("Stalls", "part") == causes
    there = {path.name for path in Path(said["folder"]).glob("*.trace")}
    assert there == {kept["file"] for kept in said["kept"] if kept["file"]}


def test_a_condition_that_holds_and_one_that_does_not(tmp_path: Path) -> None:
    words = ("-o", str(tmp_path / "kept"), "--json")
    said = json.loads(watch("--accept", "stall < 10s for 1s", *words)[0])
    assert (said["verdict"], said["stalls"]) == ("accepted", 0)
    verdict = json.loads(Path(said["file"]).read_text())
    assert verdict["watched_ns"] >= verdict["for_ns"] == 1_000_000_000
    assert verdict["per_hour_high"] > 3
    assert verdict["host"]["kernel"] == os.uname().release
    assert {check["id"] for check in verdict["checks"]} >= {"isolation", "thp"}
    assert "Accepted" in watch("--verify", said["file"])[0]
    said = json.loads(watch("--accept", "stall < 1us for 1s", *words, code=1)[0])
    assert said["verdict"] == "rejected"
    assert "Rejected" in watch("--verify", said["file"], code=1)[0]


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen")
def test_a_signed_verdict(tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    file = json.loads(watch("--accept", "stall < 10s for 1s", "--sign", str(key), "--json")[0])["file"]
    (tmp_path / "signers").write_text(f"lab {key.with_suffix('.pub').read_text()}")
    said = json.loads(watch("--verify", file, "--signers", str(tmp_path / "signers"), "--json")[0])
    assert (said["verdict"], said["signature"], said["signed_by"]) == ("accepted", "good", "lab")


def test_a_watch_that_ends_too_early_gives_no_verdict() -> None:
    out, err = watch("--accept", "stall < 10s for 1h", "--until", "1s", code=2)
    assert out == ""
    assert "there is no verdict" in err
    assert err.count("\n") == 1


def test_two_watches_at_once(tmp_path: Path) -> None:
    with started("--until", "60s", "-o", str(tmp_path / "first")) as first:
        journal_with(tmp_path / "first", "begin")
        out, err = watch("--until", "1s", code=2)
        assert out == ""
        assert f"pid {first.pid}" in err
        assert not list(watches.watches_dir().iterdir())
        first.send_signal(signal.SIGINT)
        page, _ = first.communicate(timeout=60)
    assert first.returncode == 130
    assert "SIGINT" in page


def test_a_killed_sampler_is_started_again(tmp_path: Path) -> None:
    with started("--until", "5s", "-o", str(tmp_path / "kept"), "--json") as running:
        journal_with(tmp_path / "kept", "begin")
        for child in psutil.Process(running.pid).children(recursive=True):
            if "jitter_workshop.bench.worker" in child.cmdline():
                child.kill()
        out, _ = running.communicate(timeout=60)
    assert running.returncode == 0
    said = json.loads(out)
    assert "started again" in said["notes"]["measuring"]
    assert said["not_watched_ns"]["suspended"] > 0
    whole = said["watched_s"] + sum(said["not_watched_ns"].values()) / 1e9
    assert abs(whole - said["duration_s"]) < 0.01


@traced
def test_a_killed_watch_leaves_its_journal_and_nothing_in_the_kernel(tmp_path: Path) -> None:
    with started("--until", "600s", "--threshold", "100us", "-o", str(tmp_path / "kept")) as running:
        folder = journal_with(tmp_path / "kept", "begin")
        instances = {path.name for path in INSTANCES.glob("jitter-workshop-*")}
        running.kill()
        running.communicate()
    said = json.loads(watch("--show", str(folder), "--json")[0])
    assert "kill" in said["ended_by"]
    ends = time.monotonic() + 60
    while instances & {path.name for path in INSTANCES.glob("jitter-workshop-*")} and time.monotonic() < ends:
        time.sleep(0.1)
    assert not instances & {path.name for path in INSTANCES.glob("jitter-workshop-*")}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1.5 MiB, of which the journal reserves 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1536k", "watch", str(folder)], check=False)
    if mounted.returncode:
        pytest.skip("this host mounts no small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_takes_nothing_from_the_journal(small_disk: Path) -> None:
    with started("--until", "3s", "--threshold", "20us", "-o", str(small_disk / "kept"), "--json") as running:
        folder = journal_with(small_disk / "kept", "begin")
        with (small_disk / "filler").open("wb", buffering=0) as filler:
            while _fills(filler):
                pass
        out, _ = running.communicate(timeout=60)
    assert running.returncode == 0
    assert json.loads(out)["watched_s"] > 0.5
    assert [entry["kind"] for entry in watches.read_journal(folder)][-1] == "end"


def _fills(filler: Any) -> bool:
    try:
        return bool(filler.write(b"x" * 4096))
    except OSError:
        return False


def test_no_watch_without_room_for_its_journal(small_disk: Path) -> None:
    with (small_disk / "filler").open("wb", buffering=0) as filler:
        while _fills(filler):
            pass
    out, err = watch("--until", "1s", "-o", str(small_disk), code=2)
    assert out == ""
    assert "disk is full" in err


def test_a_command_and_a_textfile_for_each_freeze(tmp_path: Path) -> None:
    told, prom = tmp_path / "told", tmp_path / "watch.prom"
    line = shlex.join(["sh", "-c", f"cat >> {told}"])
    said = json.loads(
        watch("--until", "2s", "--threshold", "1us", "--exec", line, "--textfile", str(prom), "--json")[0]
    )
    events = [json.loads(event) for event in told.read_text().splitlines()]
    assert events
    assert {event["watch"] for event in events} == {said["id"]}
    assert all(event["worst"]["duration_ns"] >= 1_000 for event in events)
    text = prom.read_text()
    assert f'at_least_ns="1000"}} {said["stalls"]}\n' in text
    assert "# TYPE jitter_workshop_watch_stalls_total counter" in text


PROGRAM_THAT_RUNS = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


@traced
def test_a_program_whose_stalls_are_named(tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    words = (
        *("--until", "4s", "--threshold", "12ms", "--keep", "500", "--json"),
        "--",
        sys.executable,
        "-c",
        PROGRAM_THAT_RUNS,
        str(cpu),
    )
    with planted.thief(cpu, 15, 0.4, 150) as thief:
        said = json.loads(watch(*words)[0])
        thief.kill()
        assert thief.stdout is not None
        times = planted.times(thief.stdout.read())
    assert said["evidence"] == "trace"
    assert said["pid"] is not None
    assert said["named"] > 0
    lost, named = planted.missed(Path(said["folder"]), times)
    # The program binds itself to the CPU within its first second.
    assert [one for one in lost if one[0] > 1_000_000_000] == []
    # A watch keeps the longest stalls, and on a busy host others may be longer.
    assert named >= 1
    tracks = tracks_of(said, tmp_path)
    if tracks is not None:
        spans = [one for one in tracks.slices("Threads") if one.args["state"] == "held up"]
        for one in said["kept"][:MOST_LINES]:
            assert one["duration_ns"] in [span.ns for span in spans]
    whole = said["watched_s"] + sum(said["not_watched_ns"].values()) / 1e9
    # The end waits for a CPU on a busy host.
    assert abs(whole - said["duration_s"]) < 0.1 * said["duration_s"]


TREE = "sleep 1001 & setsid sleep 1002 & trap '' TERM HUP; echo $$ $!; sleep 1003; sleep 1004"


def test_a_kill_of_the_watch_ends_its_command_and_all_below_it(tmp_path: Path) -> None:
    with started("--until", "600s", "-o", str(tmp_path / "kept"), "--", "sh", "-c", TREE) as running:
        journal_with(tmp_path / "kept", "begin")
        assert running.stderr is not None
        while not (found := running.stderr.readline().split())[0].isdigit():
            pass
        below = [psutil.Process(int(found[0])), *psutil.Process(int(found[0])).children(recursive=True)]
        running.kill()
        assert len(below) >= 3
        assert psutil.wait_procs(below, timeout=30)[1] == []
        running.communicate(timeout=30)


def test_the_end_of_a_command_is_told_and_no_process_of_it_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kept_command, "MOST_PROCESSES", 20)
    before = {one.pid for one in psutil.Process().children(recursive=True)}
    for script, why in (
        ("kill -SEGV $$", "was killed by SIGSEGV"),
        ("exec <&- >&- 2>&-; setsid sleep 100 & exit 4", "exit code 4"),
        ("i=0; while [ $i -lt 60 ]; do i=$((i+1)); setsid sleep 100 & done; wait", "more than 20 processes"),
    ):
        assert main(["watch", "--until", "60s", "--json", "-o", str(tmp_path), "--", "sh", "-c", script]) == 0
        assert why in json.loads(capfd.readouterr().out)["ended_by"]
    assert {one.pid for one in psutil.Process().children(recursive=True)} <= before


def test_a_command_that_is_missing_leaves_nothing(tmp_path: Path) -> None:
    out, err = watch("-o", str(tmp_path / "kept"), "--", "/no/such", code=2)
    assert out == ""
    assert NOT_STARTED in err
    assert err.count("\n") == 1
    assert not list((tmp_path / "kept").iterdir())


def test_a_million_lines_of_a_command_stay_aside() -> None:
    out, err = watch("--until", "60s", "--json", "--", "sh", "-c", "yes | head -n 1000000; cat", code=0)
    assert "the end of the program" in json.loads(out)["ended_by"]
    assert err.count("y\n") == 1_000_000


def test_a_program_that_ends(tmp_path: Path) -> None:
    out, _ = watch("--until", "60s", "--json", "--", "sleep", "0.7")
    said = json.loads(out)
    assert "end of the program" in said["ended_by"]
    assert 0.5 < said["duration_s"] < 30
    out, err = watch("--accept", "stall < 10s for 60s", "--", "sleep", "0.5", code=2)
    assert out == ""
    assert "no verdict" in err


def test_a_process_that_ends_ends_its_watch(tmp_path: Path) -> None:
    words = ("--until", "60s", "-o", str(tmp_path / "kept"), "--json")
    with subprocess.Popen(["sleep", "60"]) as child, started("--pid", str(child.pid), *words) as running:
        journal_with(tmp_path / "kept", "begin")
        child.kill()
        said = json.loads(running.communicate(timeout=60)[0])
    assert said["ended_by"] == "the end of the program"
    assert said["duration_s"] < 30


def test_a_step_of_the_wall_clock_changes_no_length(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ahead, real, clock = [0], logs._offsets, time.time

    def offsets() -> tuple[int, int]:
        ahead[0] += 3_600_000_000_000
        wall, slept = real()
        return wall - ahead[0], slept

    monkeypatch.setattr(logs, "_offsets", offsets)
    monkeypatch.setattr(time, "time", lambda: clock() - ahead[0] / 1e9)
    assert main(["watch", "--json", "--accept", "stall < 10s for 1s", "--", "sleep", "30"]) == 0
    said = json.loads(capfd.readouterr().out)
    assert "wall clock stepped" in said["notes"]["clock_step"]
    assert 0.9 < said["duration_s"] < 30
    assert 0.9 < said["watched_s"] < 30


@traced
def test_a_trace_that_overflows_names_no_stall_that_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(agent_connection, "connect_to_agent", real_connect)
    begin = AgentClient.evidence_begin
    monkeypatch.setattr(AgentClient, "evidence_begin", lambda *given, **more: begin(*given, **more, buffer_kb=8))
    cpu = max(os.sched_getaffinity(0))
    busy = f"import os, time; os.sched_setaffinity(0, {{{cpu}}})\nwhile True: time.sleep(1e-4)"
    with planted.thief(cpu, 15, 0.1, 150) as thief, subprocess.Popen([sys.executable, "-c", busy]) as waking:
        assert main(["watch", "--until", "3s", "--threshold", "12ms", "--cpu", str(cpu), "--json"]) == 0
        thief.kill()
        waking.kill()
    said = json.loads(capfd.readouterr().out)
    assert any("overwritten" in one["why_no_parts"] for one in said["kept"])
    assert said["named"] < said["stalls"]
    assert "no named cause" in said["notes"]["named"]
    for one in said["kept"]:
        assert not any(part["name"] == "event missing" for part in one["parts"] or ())
        assert one["parts"] is None or sum(part["ns"] for part in one["parts"]) == one["duration_ns"]


@traced
def test_a_program_is_explained_while_another_is_watched(tmp_path: Path) -> None:
    with started("--until", "60s", "-o", str(tmp_path / "kept"), "--json", "--", "sleep", "60") as running:
        journal_with(tmp_path / "kept", "begin")
        words = [sys.executable, "-m", "jitter_workshop", "explain", "--json", "--", "sh", "-c", "exit 6"]
        done = subprocess.run(words, stdout=subprocess.PIPE, timeout=60, check=False)
        assert (done.returncode, json.loads(done.stdout)["evidence"]) == (6, "trace")
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert json.loads(out)["evidence"] == "trace"


@pytest.mark.parametrize(("pid", "why"), [("999999999", "no process"), ("2", "thread of the kernel")])
def test_processes_that_cannot_be_watched(pid: str, why: str) -> None:
    out, err = watch("--pid", pid, "--until", "1s", code=2)
    assert out == ""
    assert why in err


def test_a_process_that_can_be_watched() -> None:
    assert json.loads(watch("--pid", str(os.getpid()), "--until", "1s", "--json")[0])["pid"] == os.getpid()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--threshold", "5"), "not a length of time"),
        (("--accept", "stall > 1s"), "not a condition"),
        (("--accept", "stall < 20us for 1h", "--threshold", "1ms"), "contradict"),
        (("--sign", "key"), "needs --accept"),
        (("--signers", "x"), "needs --verify"),
        (("--keep", "0"), "--keep"),
        (("--pid", "1", "--cpu", "1"), "contradict"),
        (("--thread", "x"), "needs --pid"),
        (("--exec", "/no/such/program"), "no program"),
        (("--exec", "'"), "--exec"),
        (("--textfile", "/none/x.prom"), "--textfile"),
        (("--cpu", "4095", "--until", "1s"), "CPU"),
        (("--verify", "/none"), "cannot be read"),
        (("--show", "/none"), NO_WATCH),
        (("--perfetto", "x"), "need --show"),
        (("--show", "/none", "--perfetto", "-"), "name of a file"),
        (("--root", "/proc", "--until", "1s"), "recorded host"),
    ],
)
def test_bad_input_is_one_clear_line(words: tuple[str, ...], why: str) -> None:
    out, err = watch(*words, code=2)
    assert out == ""
    assert why in err
    assert err.count("\n") == 1
