"""Test the lab's code without a machine: the ACPI table, the table in the document, moments, packages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.practice import acpi, apt, kernels, qemu
from tests.lab import killing, matrix, watched
from tests.lab.shapes import SHAPES, Hardware

WHOLE: dict[str, Any] = {
    "words": ["smt", "isolation", "kernel-threads"],
    "by_tunable": {"smt": 2, "isolation": 4, "kernel-threads": 9},
    "codes": {"apply": 0, "restore": 0, "again": 0},
    "apply_said": "",
    "applied": 15,
    "refused": [],
    "left_alone": [],
    "differs": [],
    "second": {"restored": [], "left_alone": []},
}


def row(**parts: Any) -> matrix.Row:
    seen = {"name": "smt", "at": "2026-01-02T03:04:05+00:00", "release": "6.1.0-9", "whole": WHOLE}
    return {**seen, **matrix.code_state(), **parts}


def test_every_processor_is_in_the_table_once() -> None:
    text = acpi.source(Hardware(sockets=2, cores=8))
    assert re.findall(r"Scope \(\\_SB\.CPUS\.C(\w+)\)", text) == [f"{cpu:03X}" for cpu in range(32)]
    assert text.count("External (") == text.count("0x80)") == 32
    assert "@" not in text.partition("*/")[2]


def test_shared_domains_have_two_members_and_slow_cores_other_states() -> None:
    shared = acpi.source(Hardware(cores=4, threads=1, pstates="shared"))
    assert re.findall(r"5, 0, (\d+), 0xFC, (\d+)", shared) == [("0", "2"), ("0", "2"), ("1", "2"), ("1", "2")]
    assert re.findall(r"Return \((LPS.)\)", acpi.source(SHAPES["hybrid"].hardware)) == ["LPSS"] * 2 + ["LPSE"] * 2
    assert acpi.source(SHAPES["amd"].hardware).count("Name (_CPC") == 4


def test_hot_cpus_exist_and_leave_a_sibling_to_take_away() -> None:
    for shape in SHAPES.values():
        hot = watched._cpus(shape.hot)
        assert max(hot) < shape.hardware.cpus
        if shape.siblings:
            assert len({cpu // shape.hardware.threads for cpu in hot}) == len(hot)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"differs": ["task 7: 'cpus 0' -> 'cpus 1'"]}, "task 7"),
        ({"left_alone": [{"path": "/x"}]}, "left alone"),
        ({"second": {"restored": ["y"], "left_alone": []}}, "a second restore found y"),
        ({"codes": {"apply": 2, "restore": 0, "again": 0}}, "exit codes"),
        ({"codes": {"apply": 0, "restore": 1, "again": 0}}, "exit codes"),
        ({"applied": 0}, "0 applied"),
        ({"by_tunable": {"isolation": 1, "kernel-threads": 1}}, "smt had nothing to change"),
    ],
)
def test_each_fault_of_a_machine_is_told_in_its_row(wrong: dict[str, Any], told: str) -> None:
    assert matrix.faults(WHOLE) == []
    assert told in "\n".join(matrix.faults(WHOLE | wrong))
    cells, lines = matrix.cells(row(whole=WHOLE | wrong))
    assert cells[3] == "**no**"
    assert any(told in line for line in lines)


def test_a_moment_that_lost_something_is_not_counted_as_good() -> None:
    good = {"verb": "apply", "moment": 3, "killed": True, "wrong": [], "left": []}
    bad = good | {"verb": "restore", "moment": 8, "wrong": ["/sys/x: '1' -> '0'"]}
    cells, lines = matrix.cells(row(kills={"asked": 2, "moments": [good, bad], "unharmed": []}))
    assert cells[4] == "**1 of 2**"
    assert any(line.startswith("kills: restore at 8:") and "/sys/x: '1' -> '0'" in line for line in lines)
    late = {"asked": 20, "moments": [good], "trouble": "not done after 1500 s"}
    cells, lines = matrix.cells(row(kills=late))
    assert (cells[4], lines) == ("**1 of 20**", ["kills: not done after 1500 s"])


def test_a_run_that_did_not_end_is_not_a_number_of_seconds() -> None:
    cells, lines = matrix.cells(row(measure={"seconds": 240.2, "trouble": "not done after 240 s"}))
    assert (cells[6], lines) == ("**not done in 240**", ["measure: not done after 240 s"])
    cells, _ = matrix.cells(row(measure={"seconds": 31.4, "code": 0, "complete": True}))
    assert cells[6] == "31"
    cells, _ = matrix.cells(row(measure={"seconds": 31.4, "code": 0, "complete": True, "workload": "spin"}))
    assert cells[6] == "31 (spin)"


def test_the_table_is_of_this_code_alone(tmp_path: Path) -> None:
    document = tmp_path / "safety.md"
    document.write_text(f"before\n{matrix.BEGIN}\nold\n{matrix.END}\nafter\n")
    rows = {"smt": row(), "rt": row(name="rt") | {"code": "another"}}
    matrix.write(json.loads(json.dumps(rows)), document, tmp_path / "machines.json")
    assert list(json.loads((tmp_path / "machines.json").read_text())) == ["smt"]
    text = document.read_text()
    assert text.startswith(f"before\n{matrix.BEGIN}\nSeen 2026-01-02 with the git trees")
    assert text.endswith(f"{matrix.END}\nafter\n")
    assert "old" not in text
    assert "| `6.1.0-9` | 15 | 0 | yes | not run | not run | not run |" in text
    assert re.search(r"\| rt: [^|]*\| not run with this code \|", text)
    with pytest.raises(SystemExit, match="has no marks"):
        matrix.write(rows, Path(__file__), tmp_path / "machines.json")


def test_the_table_of_the_document_agrees_with_its_record() -> None:
    rows = json.loads(matrix.RECORD.read_text())
    (code,) = {row["code"] for row in rows.values()}
    assert "changed" not in code
    shown = matrix.DOCUMENT.read_text().partition(matrix.BEGIN)[2].partition(matrix.END)[0]
    assert shown.strip() == matrix.table(rows, code).strip()


def test_a_later_run_goes_on_from_the_record(tmp_path: Path) -> None:
    cache, record = tmp_path / "matrix.json", tmp_path / "machines.json"
    assert matrix.known(cache, record) == {}
    early, late = row(at="2026-01-01T00:00:00+00:00"), row(at="2026-01-03T00:00:00+00:00")
    record.write_text(json.dumps({"smt": late, "rt": early}))
    cache.write_text(json.dumps({"smt": early, "rt": late}))
    assert matrix.known(cache, record) == {"smt": late, "rt": late}


def test_moments_are_the_same_in_each_run_and_of_both_verbs() -> None:
    moments = killing.drawn("seed", 20, 50, 30)
    assert moments == killing.drawn("seed", 20, 50, 30)
    assert [verb for verb, _ in moments] == ["apply", "restore"] * 10
    assert all(0 <= moment < 2 * (50 if verb == "apply" else 30) for verb, moment in moments)
    steps = {"apply": ["write a", "replace b", "write c"], "restore": ["run d", "write e"]}
    cuts = list(matrix.drawn_cuts(steps, 8))
    lasting = {("apply", 2), ("apply", 3), ("restore", 0), ("restore", 1)}
    assert {cuts[0], cuts[1], cuts[4], cuts[5]} <= lasting


def test_the_snapshot_has_policies_and_masks_without_cpus_that_are_not_there() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"], stdout=-1)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        present = watched._cpus(Path("/sys/devices/system/cpu/present").read_text())
        before = watched._tasks(str(child.pid), present)
        os.sched_setscheduler(child.pid, os.SCHED_BATCH, os.sched_param(0))
        (line,) = watched.differences(before, watched._tasks(str(child.pid), present))
        assert re.search(r"'cpus \S+ of \S+, other 0 nice \d+, in .*' -> 'cpus \S+ of \S+, batch 0 nice \d+, in", line)
        # A raw mask may name CPUs that this machine never had.
        (told,) = watched._tasks(str(child.pid), {min(os.sched_getaffinity(0))}).values()
        assert f" of {min(os.sched_getaffinity(0))}, batch" in told
    finally:
        child.kill()
        child.wait()


class MadeApt(apt.Apt):
    """An archive in which the newest kernel comes in parts."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def _run(self, program: str, *words: str, cwd: Path = Path("/")) -> str:
        package = words[1].partition("=")[0]
        if words[0] == "madison":
            versions = (
                ("7.2-1", "7.10~rc1-1", "7.3-1~bpo13+1") if package == "linux-image-amd64" else ("7.3-1~bpo13+1",)
            )
            return "".join(f" {package} | {v} | http://here sid/main amd64 Packages\n" for v in versions)
        if package == "linux-image-amd64":
            return f"Package: {package}\nDepends: linux-base-amd64 (= 7.3), linux-image-7.3 (= 7.3) | other\n"
        return f"Package: {package}\nDepends: dracut | tools, linux-base-7.3 (= 7.3), linux-modules-7.3 (= 7.3)\n"


def test_the_newest_kernel_is_found_in_all_its_parts() -> None:
    version = "7.3-1~bpo13+1"
    found = kernels._newest(MadeApt(), "linux-image-amd64")
    assert found == [f"{name}={version}" for name in ("linux-image-7.3", "linux-base-7.3", "linux-modules-7.3")]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("[  275.67] watchdog: BUG: soft lockup - CPU#2 stuck for 44s! [python3.11:855]", qemu.MachineStalled),
        ("[  250.42] rcu: INFO: rcu_preempt self-detected stall on CPU", qemu.MachineStalled),
        ("[    1.00] Run /init as init process", qemu.MachineTimeout),
        (None, qemu.MachineTimeout),
    ],
)
def test_only_the_guests_own_words_make_a_stall(told: str | None, expected: type, tmp_path: Path) -> None:
    if told is not None:
        (tmp_path / "console").write_text(told)
    assert type(qemu.late("waited 5 s", tmp_path)) is expected


@pytest.mark.parametrize(
    ("offer", "clock", "told"),
    [
        ("tsc hpet acpi_pm", "hpet", ["clock of tsc hpet acpi_pm: 'tsc' -> 'hpet'"]),
        # The kernel found the TSC unstable: it took another clock source, and offers the TSC no longer.
        ("hpet acpi_pm", "hpet", []),
    ],
)
def test_a_clock_source_that_the_kernel_itself_gave_up_is_no_difference(
    offer: str, clock: str, told: list[str]
) -> None:
    assert watched.differences({"clock of tsc hpet acpi_pm": "tsc"}, {f"clock of {offer}": clock}) == told
