"""The kernel's own osnoise tracer and our evidence of the same stretch of one CPU name the same causes.

On the real-time kernel alone: Debian's others have no osnoise tracer. The lengths of an emulator mean nothing, but both
tracers measure the same ones.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from tests.lab import osnoise
from tests.lab.machine import Machine

pytestmark = [pytest.mark.lab, pytest.mark.soak]  # minutes under emulation

CPU = 3
SECONDS = 3
SEEN_AS = {"timer": "ktimers/3", "softirq": "softirq", "workqueue": "kworker/3:"}
"""The thread in which a noise is found: a real-time kernel runs most timers and softirqs in threads of its own."""


WATCHED = ("osnoise/cpus", "osnoise/period_us", "osnoise/runtime_us", "current_tracer", "set_event", "tracing_on")
KEPT = Path(__file__).parents[2] / "bench-results" / "lab"


def trace(machine: Machine) -> list[str]:
    """Return what of the kernel's trace must be as before."""
    folder = "/sys/kernel/tracing"
    return [*(machine.read(f"{folder}/{name}") for name in WATCHED), *machine.list_dir(f"{folder}/instances")]


@pytest.mark.parametrize("noise", SEEN_AS)
def test_osnoise_and_we_name_the_same_causes(lab_rt: Machine, noise: str) -> None:
    before = trace(lab_rt)
    done = lab_rt.run(
        [lab_rt.python, "-m", "tests.lab.osnoise_stretch", str(CPU), str(SECONDS), noise], timeout_s=300, check=True
    )
    assert trace(lab_rt) == before
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"osnoise-{noise}.json.xz"
    kept.write_bytes(lzma.compress(done.stdout.encode()))
    raw = done.json()
    told = osnoise.compare(raw)
    print(f"{raw['kernel']}, noise {noise}, CPU {CPU}, {SECONDS} s; raw data: {kept}\n{told.table()}")
    assert raw["lost"] == {}
    assert raw["osnoise_lost"] == 0
    # The causes and their counts agree to the last one.
    for cause, row in told.rows.items():
        assert (row.only_ours, row.only_theirs) == ([], []), cause
    # There was something to see besides the tick.
    noisy = [row for (kind, name), row in told.rows.items() if kind == "thread" and name.startswith(SEEN_AS[noise])]
    assert sum(len(row.pairs) for row in noisy) >= 20
    assert len(told.rows["irq", "local_timer"].pairs) >= 100
    # The lengths agree, as far as an emulator's CPU was run between two readings of a clock.
    assert sum(pair.near for pair in told.pairs) >= 0.9 * len(told.pairs)
    often = {cause: row for cause, row in told.rows.items() if len(row.steady) >= 10}
    assert [cause for cause, row in often.items() if not row.sums_agree] == []
    # Nested time is the innermost's, by both.
    ours, theirs = (sum(pair[of] for pair in told.nested) for of in (0, 1))
    assert osnoise.near(ours, theirs, len(told.nested))
    # Each gap that the tracer's thread felt, split by us as by its own events; an empty answer is one, too.
    assert sum(gap.same for gap in told.gaps) >= 0.99 * len(told.gaps)
    assert sum(gap.near for gap in told.gaps) >= 0.9 * len(told.gaps)
