"""Fixtures of the lab machine (see the package's docstring for how they are used)."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from jitter_workshop.practice import kernels, qemu
from jitter_workshop.practice.qemu import MachineOptions
from tests.lab import fetch, guestroot, machine
from tests.lab.machine import Machine
from tests.lab.shapes import Shape

# Read once, before any test gets a home of its own.
CACHE = fetch.cache_dir()
SWITCH = os.environ.get("JITTER_WORKSHOP_LAB", "")

_shared: dict[str, Machine] = {}
_used: list[Machine] = []
_doubtful: set[str] = set()


def _boot(options: MachineOptions) -> Machine:
    """Boot, or skip in plain sight; where JITTER_WORKSHOP_LAB=required (as in CI) what is missing is a failure."""
    if SWITCH == "off":
        pytest.skip("the lab machine is switched off (JITTER_WORKSHOP_LAB=off)")
    try:
        qemu.refuse_if_no_qemu(options, CACHE)
        if options.foreign:
            guestroot.find("arm64", CACHE)
    except kernels.NotHere as reason:
        if SWITCH == "required":
            pytest.fail(f"the lab machine is required and not here: {reason}", pytrace=False)
        pytest.skip(f"the lab machine is not here: {reason}")
    booted = machine.boot(options, CACHE)
    _used.append(booted)
    return booted


def _session_machine(flavour: str) -> Iterator[Machine]:
    booted = _shared[flavour] = _boot(MachineOptions(kernel=flavour))
    yield booted
    del _shared[flavour]
    _used.remove(booted)
    booted.close()


@pytest.fixture(scope="session")
def lab() -> Iterator[Machine]:
    """The stock kernel's machine, shared by the session: leave it as it was (``lab.unchanged()``)."""
    yield from _session_machine("stock")


@pytest.fixture(scope="session")
def lab_rt() -> Iterator[Machine]:
    """The real-time kernel's machine, shared by the session."""
    yield from _session_machine("rt")


@pytest.fixture
def lab_factory(tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    """``lab_factory(kernel="stock", append="", disk=False, numa=False, cgroup="v2", init="busybox")``: a machine of
    this test's own."""
    own: list[Machine] = []

    def make(
        *,
        kernel: str = "stock",
        append: str = "",
        disk: bool = False,
        numa: bool = False,
        cgroup: str = "v2",
        init: str = "busybox",
    ) -> Machine:
        file = tmp_path / f"lab-disk-{len(own)}.img" if disk else None
        own.append(_boot(MachineOptions(kernel=kernel, append=append, disk=file, numa=numa, cgroup=cgroup, init=init)))
        return own[-1]

    yield make
    for one in own:
        _used.remove(one)
        one.close()


@pytest.fixture
def lab_shape(tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    """``lab_shape(SHAPES["smt"], disk=False)``: a machine of this shape, of this test's own."""
    own: list[Machine] = []

    def make(shape: Shape, disk: bool = False) -> Machine:
        own.append(_boot(MachineOptions.of(shape, tmp_path / f"lab-disk-{len(own)}.img" if disk else None)))
        return own[-1]

    yield make
    for one in own:
        _used.remove(one)
        one.close()


@pytest.fixture(autouse=True)
def _lab_is_well(request: pytest.FixtureRequest) -> None:
    """A shared machine that a failed test used, or that is off, starts afresh, so that one failure stays one."""
    for fixture, flavour in (("lab", "stock"), ("lab_rt", "rt")):
        if fixture in request.fixturenames and flavour in _shared:
            shared = _shared[flavour]
            if flavour in _doubtful or not shared.running:
                shared.boot()
            _doubtful.discard(flavour)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test whose guest stood still in the emulator runs once more; the summary counts it as a rerun.

    It was seen where a running kernel's code is changed (a tracepoint, a static key) while the emulator runs it on
    another CPU. The guest kernel's own words, or a call that outlives the guest's own alarm, make a rerun; a wrong
    result never does.
    """
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=["MachineStalled"]))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.CallInfo[None], None]:
    """A failure shows what the consoles said last."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed:
        for used in _used:
            report.sections.append((f"lab console ({used.options.kernel})", used.console()))
        _doubtful.update(_shared)
