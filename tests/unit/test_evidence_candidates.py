"""Test the candidates for a gap without an event on a host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from jitter_workshop.evidence.summary import candidates
from jitter_workshop.model.run import Run


@pytest.fixture
def run(make_run: Callable[..., tuple[Any, Any]]) -> Run:
    made: Run = make_run([[100, 200], [100, 300]])[0]
    return replace(made, steal_ns=None, steal_resolution_ns=None)


def test_the_first_candidate_in_a_guest_is_the_hypervisor(run: Run) -> None:
    guest = replace(run, host={"hypervisor": "KVM", "smt": None})
    assert candidates(guest)[0].startswith("the hypervisor (KVM) ran something else:")
    assert candidates(guest)[0].endswith("(no steal clock)")
    assert not any("SMI" in said or "SMT" in said for said in candidates(guest))
    stolen = replace(guest, steal_ns=30_000_000, steal_resolution_ns=10_000_000)
    assert "grew by 30 ms" in candidates(stolen)[0]
    quiet = replace(guest, steal_ns=0, steal_resolution_ns=10_000_000)
    assert "did not grow" in candidates(quiet)[0]
    assert "counts only in steps of 10 ms" in candidates(quiet)[0]


def test_on_a_machine_of_its_own_it_may_be_firmware_heat_or_the_sibling(run: Run) -> None:
    hot = tuple(replace(block, throttle_events=2) for block in run.blocks)
    bare = replace(run, host={"hypervisor": None, "smt": True}, blocks=hot)
    said = candidates(bare)
    assert [any(word in one for one in said) for word in ("clock 4 times", "SMI", "SMT", "memory")] == [True] * 4
    assert not any("hypervisor" in one for one in said)


def test_a_host_that_nothing_is_known_of_has_candidates_too(run: Run) -> None:
    assert len(candidates(replace(run, host={}))) == 2
