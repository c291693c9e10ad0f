"""A kernel that booted with 64 CPUs: what ``status``, ``plan`` and the matrix say of a machine that is no made tree.

On two CPUs such a guest boots in 40 s and more, and answers slowly: it is soak.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab.machine import PROJECT, Machine
from tests.lab.shapes import TRUSTED, Hardware, Tuned

pytestmark = [pytest.mark.lab, pytest.mark.soak]

WIDE = Tuned(
    "wide",
    "Two sockets of sixteen cores with two siblings each, four NUMA nodes: 64 CPUs.",
    hot="62-63",
    hardware=Hardware(sockets=2, cores=16, nodes=4, memory_mib=3072),
    append=TRUSTED,
)
CPUS = WIDE.hardware.cpus
SECONDS = 5.0
BOUNDED = """
import functools, sys
from jitter_workshop.bench import matrix
from jitter_workshop.cli import main
matrix.measure_pairs = functools.partial(matrix.measure_pairs, limit_s=float(sys.argv[1]))
sys.exit(main(["measure", "--matrix", "--json"]))
"""
"""A matrix that is given fewer seconds: emulated CPUs answer each other slowly."""


def test_status_and_plan_of_a_host_with_64_cpus(lab_shape: Callable[[Tuned], Machine]) -> None:
    lab = lab_shape(WIDE)
    status = lab.workshop("status", "--cpus", WIDE.hot, "--json").json()
    told = {check["id"]: check for check in status["checks"]}
    assert (status["hot_cpus"], told["isolation"]["wanted"]) == ([62, 63], f"CPUs {WIDE.hot}")
    assert told["memory-nodes"]["state"] == "ok"
    planned = lab.workshop("plan", "--cpus", WIDE.hot, env={"COLUMNS": "80"}, check=True).stdout.split("\n")
    assert max(map(len, planned)) <= 80
    assert any("policy62/scaling_governor" in line for line in planned)
    done = lab.run([lab.python, "-c", BOUNDED, str(SECONDS)], cwd=PROJECT)
    assert done.code == 0, done
    assert f"CPUs 0-{CPUS - 1}: 2,016 pairs" in done.stderr
    matrix = done.json()
    assert matrix["cpus"] == list(range(CPUS))
    measured = sum(one["pairs"] for one in matrix["clusters"])
    assert 0 < measured <= CPUS * (CPUS - 1) // 2
    assert matrix["complete"] == (measured == CPUS * (CPUS - 1) // 2)
    assert {one["name"] for one in matrix["clusters"]} <= {"same core", "same L3", "other node", "other package"}
    assert len(matrix["groups"]) == WIDE.hardware.nodes
