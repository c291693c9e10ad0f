"""The power of a class's machine goes at random moments: what was finished is there at the next boot, and nothing of
what was changed."""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from jitter_workshop.practice.qemu import MachineTimeout
from tests import classsoak
from tests.lab import watched
from tests.lab.machine import Machine
from tests.lab.test_lab_boot import settings

pytestmark = [pytest.mark.lab, pytest.mark.soak]

CUTS = int(os.environ.get("SOAK_CLASS_CUTS", "10"))
LONGEST_S = 20.0
FIRST_S = 300.0


def test_power_cuts_lose_no_finished_result_and_leave_no_change(lab_factory: Callable[..., Machine]) -> None:
    chance = random.Random(int(os.environ.get("SOAK_SEED", "7")))
    machine = lab_factory(disk=True)
    machine.call(settings)
    before = machine.watched_tree()
    finished: dict[int, list[str]] = {}
    posted: dict[int, list[str]] = {}
    rows: list[dict[str, Any]] = []
    changed = 0
    for number in range(CUTS + 1):
        day = machine.start([machine.python, "-m", "tests.lab.classday"])
        day.wait_for(b"\n", FIRST_S)
        told = json.loads(day.stdout.partition(b"\n")[0])
        assert told["journals"] == []
        assert told["damaged"] == []
        assert missing(finished, told["sessions"]) == []
        assert missing(posted, told["board"]) == []
        if number == CUTS:
            break
        day.wait_for(b'"finished"', FIRST_S)
        with contextlib.suppress(MachineTimeout):
            machine.pump(lambda: False, chance.uniform(0.0, LONGEST_S), "the moment of the cut")
        stood = watched.differences(before, machine.watched_tree())
        machine.power_cut()
        lines = [json.loads(line) for line in day.stdout.rpartition(b"\n")[0].splitlines()]
        assert [line for line in lines if line["what"] == "mistake"] == []
        for line in lines:
            if line["what"] == "finished":
                finished.setdefault(line["who"], []).append(line["run"])
            elif line["what"] == "posted":
                posted[line["who"]] = list(finished.get(line["who"], ()))
        changed += bool(stood)
        rows.append({"cut": number, "lines": len(lines), "stood": stood, **told})
        print(f"\ncut {number + 1}: {sum(map(len, finished.values()))} finished so far, {len(stood)} settings stood")
        machine.boot()
        assert not watched.differences(before, machine.watched_tree())
    classsoak.keep("cuts", rows)
    assert changed > 0, "no cut found anything applied: they say nothing of changes"


def missing(wanted: dict[int, list[str]], there: dict[str, Any]) -> list[str]:
    """Results that are not where they have to be."""
    return [f"s{who:02d} {run}" for who, runs in wanted.items() for run in runs if run not in there.get(str(who), ())]
