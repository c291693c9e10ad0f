"""Test the write that has the interrupt of a chapter's load arrive on the measured CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.course.loader import builtin_course
from jitter_workshop.errors import HostError
from jitter_workshop.flow.chapters import measuring
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring.arrival import InterruptStays, arrival, arrival_in_proof, arrival_plan, arriving
from jitter_workshop.flow.measuring.request import STAYS_THERE, MeasureRequest, arrival_words
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import ApplyResult, Change, LeftAlone, RestoreResult
from jitter_workshop.model.cpuset import CpuSet
from tests import hosttrees
from tests.fake_agent_connection import FakeAgentConnection
from tests.fakes import open_workshop
from tests.unit.test_flow_company import ETH_RX, has
from tests.unit.test_tuning_interrupts import board

SPIN = MeasureRequest(workload="spin", noise="hwrng")
PATH = f"/proc/irq/{ETH_RX}/smp_affinity_list"


def at_24(root: Path, affinity: str = "0-1", effective: str | None = "0") -> HostRoot:
    """The board, on which interrupt 24 may arrive at these CPUs and arrives at ``effective``."""
    board(root)
    files = hosttrees.irq(ETH_RX, affinity, effective) if effective else hosttrees.irq(ETH_RX, affinity)
    hosttrees.write(root, files)
    return HostRoot(root)


@pytest.mark.parametrize(
    ("affinity", "effective", "after"),
    [("0-1", "0", "1"), ("0-1", "1", None), ("0", "0", None), ("0-1", None, "1"), ("0-1", "0-1", "1")],
)
def test_an_interrupt_that_may_arrive_on_the_measured_cpu_is_sent_there_if_it_is_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, affinity: str, effective: str | None, after: str | None
) -> None:
    root = at_24(tmp_path, affinity, effective)
    has(monkeypatch, hwrng=(ETH_RX,))
    found = arrival(root, read_topology(root), SPIN, CpuSet())
    assert (found.path, found.before, found.after) == (PATH, affinity, after) if found else after is None


@pytest.mark.parametrize("request_", [replace(SPIN, noise=None), replace(SPIN, cpu=7), replace(SPIN, placement="none")])
def test_without_a_load_or_a_measured_cpu_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_: MeasureRequest
) -> None:
    root = at_24(tmp_path)
    has(monkeypatch, hwrng=(ETH_RX,))
    assert arrival(root, read_topology(root), request_, CpuSet()) is None


CHANGE = Change(1, "irq-here", PATH, "0-1", "1", "runtime", "low", "", kind="cpu-list")


class Restoring(FakeAgentConnection):
    failing = False

    left: tuple[LeftAlone, ...] = ()

    def restore(
        self, tunables: Sequence[str] = (), *, journals: Sequence[str] = (), forget: bool = False
    ) -> RestoreResult:
        self.calls.append(("restore", *tunables, *journals, *(("forget",) if forget else ())))
        if self.failing:
            raise HostError("the agent ended")
        return RestoreResult((), self.left, False)


def test_the_write_stands_during_the_run_alone(tmp_path: Path) -> None:
    connection, told = Restoring(at_24(tmp_path).root), list[str]()
    with arriving(connection, replace(SPIN, arrival=CHANGE), told.append):
        assert connection.calls == [("apply", "irq-here=24")]
        assert connection.made == [CHANGE]
    assert connection.calls[1:] == [("restore", "irq-here", "made-up", "forget")]
    assert told == []


def test_a_run_that_fails_still_gives_the_interrupt_back(tmp_path: Path) -> None:
    connection = Restoring(at_24(tmp_path).root)
    with pytest.raises(KeyError), arriving(connection, replace(SPIN, arrival=CHANGE), [].append):
        raise KeyError
    assert connection.calls[-1] == ("restore", "irq-here", "made-up", "forget")


@pytest.mark.parametrize("refuses", [(), (PATH,)])
def test_a_refused_write_ends_the_run_before_it_begins_and_restores_nothing(
    tmp_path: Path, refuses: tuple[str, ...]
) -> None:
    connection, made = Restoring(at_24(tmp_path).root if refuses else None, refuses), list[bool]()
    run = arriving(connection, replace(SPIN, arrival=CHANGE), [].append)
    with pytest.raises(HostError, match="EIO" if refuses else "sudo") as raised, run:
        made.append(True)
    assert made == []
    assert isinstance(raised.value, InterruptStays) is bool(refuses)
    assert [call[0] for call in connection.calls] == ["apply"]


def test_a_restore_that_fails_is_told_after_the_run(tmp_path: Path) -> None:
    connection, told = Restoring(at_24(tmp_path).root), list[str]()
    connection.failing = True
    with arriving(connection, replace(SPIN, arrival=CHANGE), told.append):
        pass
    assert [one.startswith("The affinity of interrupt 24 is not restored yet: ") for one in told] == [True]


def test_a_value_of_another_program_stays_and_is_told(tmp_path: Path) -> None:
    connection, told = Restoring(at_24(tmp_path).root), list[str]()
    connection.left = (
        LeftAlone("irq-here", PATH, "0-1", "0", "irqbalance has changed it since"),
        LeftAlone("trace", "/sys", "", None, "a trace of an ended run"),
    )
    with arriving(connection, replace(SPIN, arrival=CHANGE), told.append):
        pass
    assert told == ["The affinity of interrupt 24 was not restored: Irqbalance has changed it since."]


def test_a_write_that_the_host_no_longer_offers_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    connection = Restoring(at_24(tmp_path).root)
    connection.apply = lambda *_: ApplyResult(None, (), (), False, changed=1)  # type: ignore[method-assign]
    run = arriving(connection, replace(SPIN, arrival=CHANGE), [].append)
    with pytest.raises(HostError, match="changed since the write was shown"), run:
        raise AssertionError
    assert connection.calls == []


@pytest.mark.parametrize(
    ("affinity", "changes", "before"),
    [
        ("0-1", (), "0-1"),
        ("0", (replace(CHANGE, tunable="irq-affinity", before="0-1", after="0"),), "0-1"),
        ("0", (), None),
        ("0-1", (replace(CHANGE, tunable="irq-affinity", before="0", after="0"),), None),
    ],
)
def test_a_proof_sends_the_interrupt_from_the_value_that_its_runs_without_the_change_have(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    affinity: str,
    changes: tuple[Change, ...],
    before: str | None,
) -> None:
    root = at_24(tmp_path, affinity, "1")
    has(monkeypatch, hwrng=(ETH_RX,))
    found = arrival_in_proof(root, read_topology(root), SPIN, CpuSet(), changes)
    assert (found.path, found.before, found.after) == (PATH, before, "1") if found else before is None


def test_a_run_without_such_a_write_asks_the_agent_nothing() -> None:
    connection = Restoring()
    with arriving(connection, SPIN, [].append):
        pass
    assert connection.calls == []


def test_the_write_is_shown_as_a_plan_that_could_be_typed() -> None:
    plan = arrival_plan(CHANGE)
    assert (plan.changes, plan.words, plan.host_files) == ((CHANGE,), ("irq-here=24",), 1)
    assert plan.text.endswith("On x86 the interrupt then still arrives there until something moves it.")


def test_after_the_kernel_refused_the_write_the_workshop_makes_it_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = open_workshop(course=builtin_course())
    fake.context.agent_connection = Restoring(at_24(tmp_path).root, (PATH,))
    monkeypatch.setattr(measuring, "arrival", lambda *_: CHANGE)
    monkeypatch.setattr(type(fake.walk("interrupts").host), "reason", "")

    def begin(*_: object, around: Callable[[], AbstractContextManager[None]], **__: object) -> None:
        with around():
            pytest.fail("the write was refused")

    monkeypatch.setattr("jitter_workshop.flow.measuring.measure.measure_run", begin)
    walk = fake.walk("interrupts")
    request = walk.measuring.request("measure")
    fake.context.shown_write = request.arrival
    with pytest.raises(InterruptStays, match="EIO"):
        Workshop.measure(fake, request, lambda _: None, CancelToken())
    assert fake.context.fixed_noises == {request.noise}
    assert walk.measuring.request("measure").arrival is None
    has(monkeypatch, disk=(ETH_RX,), hwrng=(ETH_RX,))
    monkeypatch.setattr(fake.context, "root", at_24(tmp_path))
    company = fake.walk("interrupts").chapter.company
    assert company is not None
    assert company.noise != request.noise


@pytest.mark.parametrize("why", ["applied", "alone", "rights", "own"])
def test_no_write_is_offered_where_it_would_spoil_the_run_or_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    workshop = open_workshop(course=builtin_course())
    walk = workshop.walk("interrupts")
    monkeypatch.setattr(measuring, "arrival", lambda *_: CHANGE)
    monkeypatch.setattr(type(walk.host), "reason", "")
    monkeypatch.setattr(type(walk.host), "applied", why == "applied")
    if why == "rights":
        monkeypatch.setattr(FakeAgentConnection, "rights", "none")
    if why == "own":
        monkeypatch.setattr(type(workshop.context), "standing", lambda _: ({"id": "irq-here", "value": "34"},))
    if why == "alone":
        walk.noise.switch()
    assert walk.measuring.request("measure").arrival is None


@pytest.mark.parametrize("why", ["", "alone", "measured", "none"])
def test_the_page_of_the_guess_names_the_write_as_the_page_of_the_run_does(
    monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    walk = open_workshop(course=builtin_course()).walk("interrupts")
    company = walk.chapter.company
    assert company is not None
    known = replace(walk.chapter, company=replace(company, interrupts=("virtio4-input",), movable=34))
    walk = ChapterWalk(known, walk._context)
    monkeypatch.setattr(measuring, "arrival", lambda *_: None if why == "none" else CHANGE)
    monkeypatch.setattr(type(walk.host), "reason", "")
    if why == "alone":
        walk.noise.switch()
    if why == "measured":
        monkeypatch.setattr(type(walk.measuring), "unmeasured", lambda *_: False)
    page = walk.page("predict")
    assert ("The first run begins with a write" in page) is (why == "")
    if not why:
        write = arrival_words(walk.measuring.request("measure"), lasting=False)
        said = f"**The first run begins with a write:** {write}"
        # The question covers the page's end on a small screen, so the write stands behind the first paragraph.
        assert page.split("\n\n")[1].endswith(said)
        assert page.split("\n\n")[2:] == known.pages["predict"].split("\n\n")[1:]
        assert f"writes {CHANGE.after} to {CHANGE.path} (now {CHANGE.before})" in write
        assert arrival_words(walk.measuring.request("measure")) == f"{write} {STAYS_THERE}"


@pytest.mark.parametrize("why", ["", "alone", "measured"])
def test_a_run_whose_better_load_only_root_can_make_says_so(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    walk = open_workshop(course=builtin_course()).walk("interrupts")
    monkeypatch.setattr(type(walk.host), "reason", "")
    monkeypatch.setattr(type(walk.measuring), "unmeasured", lambda *_: why != "measured")
    monkeypatch.setattr(measuring, "barred_company", lambda *_: "only root may read it")
    if why == "alone":
        walk.noise.switch()
    assert ("Only root may read it." in walk.measuring.warning("measure")) is (why == "")


def test_a_run_may_begin_only_with_the_write_that_was_shown_since_the_last_run() -> None:
    workshop = open_workshop(course=builtin_course())
    measuring_ = workshop.walk("interrupts").measuring
    wanted, other = replace(SPIN, arrival=CHANGE), replace(SPIN, arrival=replace(CHANGE, before="0-3"))
    assert measuring_.may_begin(SPIN)
    assert not measuring_.may_begin(wanted)
    assert measuring_.may_begin(wanted), "told before"
    workshop.use_shown_write(wanted)
    assert not measuring_.may_begin(wanted), "one run later"
    measuring_.note_shown(SPIN)
    assert not measuring_.may_begin(wanted), "a page without a write"
    measuring_.note_shown(wanted)
    with pytest.raises(HostError, match="was not shown"):
        workshop.use_shown_write(other)
    measuring_.note_shown(wanted)
    assert not measuring_.may_begin(other), "the host changed"
    assert measuring_.may_begin(other)
    workshop.use_shown_write(other)
