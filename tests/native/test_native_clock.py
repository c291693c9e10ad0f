"""Test the clock of a run: the processor's counter, or for a traced run a clock that the trace has too."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitter_workshop.bench import native
from jitter_workshop.bench.native import lib
from jitter_workshop.flow.measuring.trace_recorder import CLOCKS
from jitter_workshop.host.cpu.cpuinfo import Clocksource, read_clocksource
from jitter_workshop.host.root import HostRoot
from tests import hosttrees


class Everywhere:
    """The native core on a processor that has every counter."""

    def __getattr__(self, name: str) -> object:
        return getattr(lib, name)

    def jw_clock_usable(self, source: int) -> int:
        return 1


@pytest.fixture(autouse=True)
def every_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "lib", Everywhere())


def tsc(constant: bool = True) -> Clocksource:
    return Clocksource("tsc", ("tsc",), constant, True)


def test_the_counter_of_an_arm_machine_is_no_clock_of_the_trace(tmp_path: Path) -> None:
    board = read_clocksource(HostRoot(hosttrees.arm_server(tmp_path)))
    assert native.choose_source(board, traced=False) == lib.JW_CLOCK_CNTVCT
    assert native.choose_source(board, traced=True) == lib.JW_CLOCK_MONOTONIC


def test_the_tsc_is_one_where_it_is_trusted() -> None:
    for traced in (False, True):
        assert native.choose_source(tsc(), traced) == lib.JW_CLOCK_TSC
        assert native.choose_source(tsc(constant=False), traced) == lib.JW_CLOCK_MONOTONIC
        for other in ("hpet", "kvm-clock", None):
            assert native.choose_source(Clocksource(other, (), None, None), traced) == lib.JW_CLOCK_MONOTONIC


@pytest.mark.parametrize("kind", ["server64", "arm_server", "small1"])
def test_a_traced_run_always_has_a_clock_of_the_trace(tmp_path: Path, kind: str) -> None:
    """On every processor: only the name of the clock that is chosen then is asked of the trace."""
    source = native.choose_source(read_clocksource(HostRoot(hosttrees.EVERY[kind](tmp_path))), traced=True)
    names = {lib.JW_CLOCK_TSC: "tsc", lib.JW_CLOCK_MONOTONIC: "clock_monotonic"}
    assert names[source] in CLOCKS
