"""Evidence on the lab machine's kernels: all that is asked of it on the machine that the tests run on."""

from __future__ import annotations

import pytest

from tests.lab.machine import Machine

pytestmark = [pytest.mark.lab, pytest.mark.soak]  # minutes under emulation

LIVE = "tests/functional/test_agent_evidence_live.py"


def pytest_in(machine: Machine) -> str:
    done = machine.run([machine.python, "-m", "pytest", "-p", "no:cacheprovider", "-q", LIVE], timeout_s=900)
    assert done.code == 0, done.stdout[-4000:]
    return done.stdout


def test_everything_on_a_stock_kernel(lab: Machine) -> None:
    assert "skipped" not in pytest_in(lab)


def test_everything_on_a_real_time_kernel(lab_rt: Machine) -> None:
    assert "skipped" not in pytest_in(lab_rt)
