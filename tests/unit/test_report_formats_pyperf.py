"""Suites for pyperf, opened by pyperf itself: names, values, metadata, and its own verbs."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.errors import SessionError
from jitter_workshop.model.proof import ProofRound
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.run import Block, Run
from jitter_workshop.report.formats import pyperf as formats_pyperf
from jitter_workshop.session.store import OpenSession, SessionStore
from tests.madereports import HOST, HOSTILE, bare, made_proof
from tests.madesessions import make_session
from tests.madeup import make_run

pyperf = pytest.importorskip("pyperf", reason="pyperf is not installed: it is one of the tools for developers")

MAIN = "accumulator_transit"


@pytest.fixture
def session(tmp_path: Path) -> OpenSession:
    return SessionStore(tmp_path / "sessions").create("a session", "host")


def made(number: int, label: str = "baseline", values: tuple[int, ...] = (100, 110, 120), **changed: Any) -> Run:
    run, _ = make_run(((100, 5_000),), run_id=f"20260101-0000{number:02d}-aaaa", label=label, **changed)
    blocks = tuple(
        Block(n, n * 10**8, 10**8, 1_000, value, 10 * value, 100 * value, 10**6, 3) for n, value in enumerate(values)
    )
    host = {"name": "lab03", "kernel": "6.12", "cpus_online": [0, 1], "cpu_model": "A\nCPU", "hypervisor": None}
    return dataclasses.replace(run, blocks=blocks, host=host)


def written(
    session: OpenSession, runs: list[Run], folder: Path, name: str = "x.json", report: ReportDocument | None = None
) -> dict[str, Any]:
    """The suites by file name, as pyperf reads them."""
    found = formats_pyperf.files(report or bare(), session, runs, name)
    for file, content in found.items():
        (folder / file).write_bytes(content)
    return {file: pyperf.BenchmarkSuite.load(str(folder / file)) for file in found}


def ran(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pyperf", *words], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_is_a_benchmark_a_percentile_with_a_value_a_block(session: OpenSession, tmp_path: Path) -> None:
    (suite,) = written(session, [made(1)], tmp_path).values()
    assert suite.get_benchmark_names() == [f"{MAIN} p50", f"{MAIN} p99", f"{MAIN} p99.9"]
    assert suite.get_benchmark(f"{MAIN} p50").get_values() == pytest.approx((100e-9, 110e-9, 120e-9))
    assert suite.get_benchmark(f"{MAIN} p99.9").get_values() == pytest.approx((10e-6, 11e-6, 12e-6))
    metadata = suite.get_benchmark(f"{MAIN} p99").get_metadata()
    wanted = {
        "unit": "second",
        "hostname": "lab03",
        "kernel": "6.12",
        "cpu_model_name": "A CPU",
        "cpu_count": 2,
        "workload": "ring",
        "pacing": "spin",
        "interval_ns": 10_000,
        "clock": "tsc",
        "tool": "jitter-workshop 0.1.0",
        "date": "2026-01-01 00:00:00.000000",
        "duration": 0.25,
        "run": "20260101-000001-aaaa",
        "placement": "none",
        "percentile": "99",
    }
    assert {key: metadata.get(key) for key in wanted} == wanted
    assert "hypervisor" not in metadata
    assert "no test of significance" in metadata["values_are"]


def test_several_labels_are_in_the_names_and_runs_of_one_label_together(session: OpenSession, tmp_path: Path) -> None:
    runs = [made(1), made(2, "pinned, once"), made(3), made(4, interval_ns=20_000), made(5, "")]
    (suite,) = written(session, runs, tmp_path).values()
    medians = {n: suite.get_benchmark(n) for n in suite.get_benchmark_names() if n.endswith("p50")}
    assert {name: [run.get_metadata()["run"][13:15] for run in one.get_runs()] for name, one in medians.items()} == {
        f"baseline: {MAIN} p50": ["01", "03"],
        f"pinned once: {MAIN} p50": ["02"],
        f"baseline 20260101-000004-aaaa: {MAIN} p50": ["04"],
        f"20260101-000005-aaaa: {MAIN} p50": ["05"],
    }
    assert len(medians[f"baseline: {MAIN} p50"].get_values()) == 6


def test_blocks_without_a_percentile_are_left_out_and_counted(session: OpenSession, tmp_path: Path) -> None:
    run = made(1)
    bare_block = dataclasses.replace(run.blocks[1], p50=0, p999=None)
    run = dataclasses.replace(run, blocks=(run.blocks[0], bare_block))
    (suite,) = written(session, [run], tmp_path).values()
    for percentile, values, left in (("50", 1, 1), ("99", 2, None), ("99.9", 1, 1)):
        one = suite.get_benchmark(f"{MAIN} p{percentile}")
        assert len(one.get_values()) == values
        assert one.get_metadata().get("blocks_left_out") == left


def test_nothing_to_write_is_said(session: OpenSession) -> None:
    with pytest.raises(SessionError, match="no block"):
        formats_pyperf.files(bare(), session, [dataclasses.replace(made(1), blocks=())], "x.json")


def proven(rounds: int = 10, **changed: Any) -> tuple[ReportDocument, list[Run]]:
    proof = dataclasses.replace(
        made_proof(rounds=rounds),
        rounds=tuple(
            ProofRound("AB" if n % 2 else "BA", f"20260101-0000{2 * n:02d}-aaaa", f"20260101-0000{2 * n + 1:02d}-aaaa")
            for n in range(rounds)
        ),
        **changed,
    )
    runs = []
    for number in range(2 * rounds):
        run = made(number, "part of a proof", proof=proof.id)
        level = 1_000 if number % 2 == 0 else 100
        summary = run.histograms[MAIN]
        percentiles = {"50": level + number, "99": 10 * level, "99.9": 100 * level}
        runs.append(
            dataclasses.replace(
                run,
                histograms={MAIN: dataclasses.replace(summary, percentiles=percentiles)},
                stalls=dataclasses.replace(run.stalls, stolen_ns_per_second=float(level)),
            )
        )
    return dataclasses.replace(bare(), proofs=(proof,)), runs


def test_a_proof_has_a_value_a_round_for_each_side(session: OpenSession, tmp_path: Path) -> None:
    report, runs = proven()
    found = written(session, runs, tmp_path, "x.json", report)
    assert list(found) == ["x.json", "x-irq-affinity-without.json", "x-irq-affinity-with.json"]
    names = [f"{MAIN} p50", f"{MAIN} p99", f"{MAIN} p99.9", "stolen a second"]
    assert found["x.json"].get_benchmark_names() == [
        f"irq-affinity {side}: {name}" for side in ("without", "with") for name in names
    ]
    for side, low in (("without", 1_000), ("with", 101)):
        suite = found[f"x-irq-affinity-{side}.json"]
        assert suite.get_benchmark_names() == names
        one = suite.get_benchmark(names[0])
        assert one.get_values() == pytest.approx([(low + 2 * n) / 1e9 for n in range(10)])
        assert one.get_values() == found["x.json"].get_benchmark(f"irq-affinity {side}: {names[0]}").get_values()
        metadata = one.get_metadata()
        assert (metadata["side"], metadata["orders"][:8]) == (side, "BA AB BA")
    text = ran(tmp_path, "compare_to", "x-irq-affinity-without.json", "x-irq-affinity-with.json")
    assert f"{MAIN} p99\n" in text
    assert "10.0 us" in text
    assert "1.00 us" in text
    assert "10.00x faster" in text


def test_a_measure_that_one_round_lacks_is_left_out_on_both_sides(session: OpenSession, tmp_path: Path) -> None:
    report, runs = proven()
    quiet = dataclasses.replace(runs[3], stalls=dataclasses.replace(runs[3].stalls, stolen_ns_per_second=0.0))
    found = written(session, [*runs[:3], quiet, *runs[4:]], tmp_path, "x.json", report)
    assert all("stolen" not in name for suite in found.values() for name in suite.get_benchmark_names())


def test_a_proof_of_which_a_run_was_not_chosen_is_told_by_blocks(session: OpenSession, tmp_path: Path) -> None:
    report, runs = proven()
    found = written(session, runs[:-1], tmp_path, "x.json", report)
    assert list(found) == ["x.json"]
    assert found["x.json"].get_benchmark_names()[0] == f"{MAIN} p50"


def test_standard_output_has_one_file(session: OpenSession) -> None:
    report, runs = proven()
    assert list(formats_pyperf.files(report, session, runs, "")) == [""]


@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_names_neither_break_the_suite_nor_pyperf(label: str, session: OpenSession, tmp_path: Path) -> None:
    host = {"name": label, "kernel": "\n", "cpu_model": 5, "cpus_online": "x"}
    runs = [dataclasses.replace(made(n, label), host=host, started_at=label) for n in (1, 2)]
    runs.append(dataclasses.replace(made(3, "irq-affinity with"), duration_s=float("nan")))
    report, of_proof = proven(subject=label)
    of_proof = [dataclasses.replace(run, id=f"p{run.id}") for run in of_proof]
    rounds = tuple(ProofRound(r.order, f"p{r.without}", f"p{r.with_it}") for r in report.proofs[0].rounds)
    same = dataclasses.replace(report.proofs[0], rounds=rounds)
    report = dataclasses.replace(report, proofs=(same,), session_name=label)
    found = written(session, runs + of_proof, tmp_path, "x.json", report)
    assert len(found) == 3
    shown = ran(tmp_path, "show", "--metadata", "x.json")
    assert "\x1b" not in shown
    assert "NaN" not in (tmp_path / "x.json").read_text()


def test_no_two_benchmarks_have_one_name(session: OpenSession, tmp_path: Path) -> None:
    report, of_proof = proven()
    runs = [dataclasses.replace(made(50, "irq-affinity with")), made(51, "other")]
    (suite, *_) = written(session, runs + of_proof, tmp_path, "x.json", report).values()
    assert f"irq-affinity with: {MAIN} p50 (2)" in suite.get_benchmark_names()


def test_two_sessions_compare(tmp_path: Path) -> None:
    """The verbs that a user would type, on files of two sessions with real-shaped runs."""
    for name, seed in (("a", 1), ("b", 2)):
        with make_session(tmp_path / name, 2, seed=seed, blocks=6) as one:
            content = formats_pyperf.files(bare(), one, one.runs(), f"{name}.json")
        (tmp_path / f"{name}.json").write_bytes(content[f"{name}.json"])
        assert json.loads(content[f"{name}.json"])["version"] == "1.0"
    assert f"pinned: {MAIN} p99.9" in ran(tmp_path, "compare_to", "a.json", "b.json")
    assert f"pinned: {MAIN} p99.9" in ran(tmp_path, "compare_to", "--table", "a.json", "b.json")
    assert "Total number of values: 6" in ran(tmp_path, "stats", "a.json")
    assert "Mean +- std dev" in ran(tmp_path, "show", "a.json")


def test_a_report_for_others_names_no_host(session: OpenSession, tmp_path: Path) -> None:
    report = dataclasses.replace(bare(), hosts=(HOST,), private=True)
    (content,) = formats_pyperf.files(report, session, [made(1)], "x.json").values()
    assert b"lab03" not in content
