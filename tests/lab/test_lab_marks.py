"""Test what an emulated machine knows of itself: the marks of its runs, and which verdicts it refuses."""

from __future__ import annotations

import json

import pytest

from jitter_workshop.model.host import EMULATED, NO_VERDICT
from tests.lab.machine import Machine

pytestmark = [pytest.mark.lab]

SPIN = ("measure", "--workload", "spin", "--threshold-us", "1000", "--duration", "1")


SIGNATURE = "from jitter_workshop.host.cpu.cpuid import hypervisor_signature; print(hypervisor_signature())"


def test_an_emulated_machine_marks_its_measurements_and_gives_no_verdict_on_times(lab: Machine) -> None:
    assert "practice.accelerator=tcg" in lab.read("/proc/cmdline")
    assert lab.run([lab.python, "-c", SIGNATURE], check=True).stdout == "TCGTCGTCGTCG\n"
    with lab.unchanged():
        run = lab.workshop(*SPIN, "--label", "one", "--json", check=True).json()
        assert (run["host"]["emulated"], run["host"]["accelerator"]) == (True, "tcg")
        assert "times mean nothing" in run["notes"]["mark"]
        text = lab.workshop(*SPIN, "--label", "two", check=True)
        assert "emulated · spin" in text.stdout
        assert "These CPUs are emulated" in text.stderr
        compared = lab.workshop("compare", "one", "two", check=True).stdout
        assert "emulated" in compared
        assert "better" not in compared
        marks = json.loads(lab.workshop("compare", "one", "two", "--json", check=True).stdout)["marks"]
        assert set(marks.values()) == {EMULATED}
        assert EMULATED in lab.workshop("chart", check=True).stdout
        for words in (
            ("compare", "one", "two", "--gate", "99.9"),
            ("prove", "placement", "--workload", "spin", "--yes"),
            ("prove", "--screen", "--yes"),
            ("watch", "--accept", "stall < 20us for 2s"),
        ):
            refused = lab.workshop(*words)
            assert refused.code == 2, (words, refused)
            assert NO_VERDICT in refused.stderr, (words, refused)
