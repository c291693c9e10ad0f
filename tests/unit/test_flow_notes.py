"""The reasons that a run gives for what it does not know."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from jitter_workshop.flow.measuring.notes import _reasons
from jitter_workshop.model.spec import Placement, RunSpec
from tests import madeup


def spec(**changed: Any) -> RunSpec:
    made = RunSpec(workload="ring", placement=Placement("none"), blocks=1, block_ns=1_000_000)
    return dataclasses.replace(made, **changed)


@pytest.mark.parametrize("settle_s", [None, 2.0])
def test_a_noise_at_another_rate_says_so(settle_s: float | None) -> None:
    run = dataclasses.replace(madeup.make_run()[0], noise="spinners", settle_s=settle_s)
    asked = dict(_reasons(run, spec(noise_period_ns=5_000_000)))
    assert asked["noise"].startswith("a burst came about every 5 ms")
    assert "noise" not in dict(_reasons(run, spec()))


def test_without_a_noise_none_was_asked_for() -> None:
    run = dataclasses.replace(madeup.make_run()[0], noise=None)
    assert dict(_reasons(run, spec(noise_period_ns=5_000_000)))["noise"] == "no noise was asked for"
