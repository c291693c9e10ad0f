"""Test which settings of earlier chapters a run is made with, and what they do to it."""

from __future__ import annotations

import pytest

from jitter_workshop.course.loader import builtin_course
from jitter_workshop.flow.chapters.kept_settings import KeptSettings, kept_settings
from jitter_workshop.flow.measuring.isolated_set import CpuBudget
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cpu, Topology
from tests.fakes import FakeWorkshop, open_workshop

ISOLATION, THP, IRQ_HERE = (
    {"id": one, "value": value} for one, value in (("isolation", ""), ("thp", "never"), ("irq-here", "34"))
)
SPLIT = (("producer", 0), ("accumulator", 1))


@pytest.fixture
def workshop(monkeypatch: pytest.MonkeyPatch) -> FakeWorkshop:
    """A host of two CPUs, of which this tool has isolated CPU 1."""
    made = open_workshop(course=builtin_course())
    cpus = tuple(Cpu(n, 0, n, 0, True, n == 0, CpuSet.of([n])) for n in range(2))
    made.context.topology = Topology(cpus, ())
    made.context._room = CpuBudget(2, CpuSet((1,)), reduced=False, split=True, without=2)
    return made


def kept(
    workshop: FakeWorkshop,
    monkeypatch: pytest.MonkeyPatch,
    chapter: str,
    *standing: dict[str, str],
    placed: tuple[tuple[str, int], ...] = SPLIT,
) -> KeptSettings | None:
    monkeypatch.setattr(workshop.context, "standing", lambda: standing)
    walk = workshop.walk(chapter)
    monkeypatch.setattr(walk.measuring, "placed", lambda request: placed)
    return kept_settings(workshop, walk)


def test_settings_are_those_of_other_chapters_with_their_titles(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kept(workshop, monkeypatch, "memory") is None
    assert kept(workshop, monkeypatch, "isolation", ISOLATION) is None, "its own setting"
    assert kept(workshop, monkeypatch, "memory", IRQ_HERE) is None, "the write of one run"
    found = kept(workshop, monkeypatch, "memory", ISOLATION, THP)
    assert found is not None
    assert [(one.ident, one.title, one.value, str(one.cpus)) for one in found.settings] == [
        ("isolation", "Isolation", "", "1"),
        ("thp", "", "never", ""),
    ]


def test_isolation_that_divides_a_run_is_given_back_first(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = kept(workshop, monkeypatch, "memory", ISOLATION, THP)
    assert found is not None
    assert (str(found.others_on), found.threads, found.divided) == ("0", ("producer",), True)
    assert found.to_give_back == ("isolation",)
    inside = kept(workshop, monkeypatch, "memory", ISOLATION, THP, placed=(("sampler", 1),))
    assert inside is not None
    assert (inside.threads, inside.divided, inside.to_give_back) == ((), False, ("isolation", "thp"))


@pytest.mark.parametrize(
    ("chapter", "standing", "no_load"),
    [
        ("realtime", ISOLATION, ("isolation",)),
        ("realtime", THP, ()),
        # No setting of a scheduler keeps a neighbour from the memory, and a stop comes from outside.
        ("caches", ISOLATION, ()),
        ("coordinated-omission", {"id": "idle-states", "value": ""}, ()),
    ],
)
def test_a_setting_that_keeps_the_load_away_hinders(
    chapter: str,
    standing: dict[str, str],
    no_load: tuple[str, ...],
    workshop: FakeWorkshop,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = kept(workshop, monkeypatch, chapter, standing, placed=(("sampler", 1),))
    assert found is not None
    assert found.no_load == found.hinders == no_load
