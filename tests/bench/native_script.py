"""pyperf script: one clock reading of each kind, one turn of the spin loop, recording one value."""

from __future__ import annotations

import random
from typing import Any

import pyperf

from jitter_workshop.bench.block_analysis import NativeHistogram
from jitter_workshop.bench.native import calibrate, ffi, lib
from jitter_workshop.host.root import HostRoot

VALUES = 65_536


def transits() -> list[int]:
    """Values shaped like transits: mostly around 150 ns, one in a hundred up to some ms."""
    source = random.Random(1)
    return [
        source.randrange(1_000, 5_000_000) if source.random() < 0.01 else int(source.gauss(150, 15))
        for _ in range(VALUES)
    ]


def main() -> None:
    runner = pyperf.Runner()
    clock = calibrate(HostRoot())
    recorder = NativeHistogram()
    values: Any = ffi.new("int64_t[]", transits())

    def turns(function: Any, *arguments: Any) -> Any:
        """pyperf wants the seconds that ``loops`` turns took; the native loop gives ns a turn."""
        return lambda loops: function(clock.native, *arguments, loops) * loops * 1e-9

    def recordings(loops: int) -> float:
        return (
            float(lib.jw_bench_record_ns(clock.native, recorder.native, values, VALUES, loops)) * VALUES * loops * 1e-9
        )

    runner.bench_time_func("clock reading, plain", turns(lib.jw_bench_clock_ns, 0))
    runner.bench_time_func("clock reading, ordered", turns(lib.jw_bench_clock_ns, 1))
    runner.bench_time_func("spin loop", turns(lib.jw_bench_spin_loop_ns))
    runner.bench_time_func("record a value", recordings, inner_loops=VALUES)


if __name__ == "__main__":
    main()
