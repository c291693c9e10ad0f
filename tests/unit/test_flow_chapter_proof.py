"""Test the proof that a chapter offers (its change and its measurement), and the reason where it offers none."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from jitter_workshop.errors import HostError
from jitter_workshop.flow.proving import chapter_proof as chapter
from jitter_workshop.model.proof import PLACEMENT
from tests import fakeprover, madecourse, tuned_tree
from tests.fakes import FakeWorkshop, hunt_course, open_workshop, walk_with
from tests.livehost import open_live


@pytest.fixture
def workshop() -> FakeWorkshop:
    return open_workshop()


def test_placement_is_proven_as_the_second_run_was_made(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = fakeprover.use(monkeypatch)
    walk = workshop.walk("pinning")
    walk.cpus.choose(2, 3, None)
    assert chapter.why_no_proof(workshop, walk) == ""
    assert chapter.prover(workshop, walk, 20).plan().rounds == 20
    request = fakeprover.asked(made)
    assert request.words == (PLACEMENT,)
    assert request.chapter == "pinning"
    assert request.wait_s == 600
    assert request.shows == "migrations"
    assert request.like is not None
    assert (request.like.workload, request.like.placement, request.like.producer_cpu) == ("ring", "auto", 2)


def test_a_thief_that_was_woken_is_awake_on_both_sides(workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch) -> None:
    made = fakeprover.use(monkeypatch)
    walk = workshop.walk("pinning")
    alone = tuple(dataclasses.replace(one, noise=None) for one in walk.chapter.measurements)
    walk = walk_with(walk, measurements=alone)
    walk.noise.switch()
    chapter.prover(workshop, walk).plan()
    like = fakeprover.asked(made).like
    assert like is not None
    assert like.noise == "spinners"


@pytest.mark.parametrize("ident", ["baseline", "migration"])
def test_a_chapter_that_changes_nothing(workshop: FakeWorkshop, ident: str) -> None:
    walk = workshop.walk(ident)
    assert "changes nothing" in chapter.why_no_proof(workshop, walk)
    with pytest.raises(HostError, match="changes nothing"):
        chapter.prover(workshop, walk)


def test_boot_parameters_and_runs_that_are_placed_alike(workshop: FakeWorkshop) -> None:
    assert "at a boot" in chapter.why_no_proof(workshop, walk_with(workshop.walk("pinning"), reboot=True))
    walk = workshop.walk("pinning")
    first, again = walk.chapter.measurements
    alike = (dataclasses.replace(first, placement="auto"), dataclasses.replace(again, duty=10))
    assert "the same placement" in chapter.why_no_proof(workshop, walk_with(walk, measurements=alike))
    assert "changes nothing" in chapter.why_no_proof(workshop, walk_with(walk, measurements=(first,)))


def test_a_recording_and_a_hidden_noise(
    workshop: FakeWorkshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(workshop.hunts), "hiding", True)
    assert "hidden noise" in chapter.why_no_proof(workshop, workshop.walk("pinning"))
    monkeypatch.undo()
    tree = tuned_tree.make(tmp_path / "tree")
    recorded = open_workshop(tree, session="recorded")
    walk = recorded.walk("pinning")
    assert walk.host.rehearsed
    assert "recording" in chapter.why_no_proof(recorded, walk)
    with pytest.raises(HostError, match="recording"):
        chapter.prover(recorded, walk)


def test_the_hunt_proves_nothing(tmp_path: Path) -> None:
    made = open_workshop(course=hunt_course(tmp_path / "course"))
    assert "changes nothing" in chapter.why_no_proof(made, made.walk("hunt"))


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWorkshop:
    return open_live(tuned_tree.make(tmp_path / "tree"), madecourse.write(tmp_path / "course"), monkeypatch)


def test_settings_are_proven_by_those_that_would_change(live: FakeWorkshop, monkeypatch: pytest.MonkeyPatch) -> None:
    made = fakeprover.use(monkeypatch)
    walk = live.walk("pages")
    planned = {change.tunable for change in walk.plan().changes}
    assert planned
    chapter.prover(live, walk).plan()
    request = fakeprover.asked(made)
    assert {word.partition("=")[0] for word in request.words} == planned
    assert request.chapter == f"{live.course.id}/pages"


def test_where_all_is_good_there_is_nothing_to_prove(live: FakeWorkshop, monkeypatch: pytest.MonkeyPatch) -> None:
    walk = live.walk("pages")
    walk.apply()
    monkeypatch.setattr(live.context, "standing", lambda: ())
    with pytest.raises(HostError, match="already have the wanted values"):
        chapter.prover(live, walk)
    # A setting that this tool has made is restored first, and counts.
    made = fakeprover.use(monkeypatch)
    monkeypatch.setattr(live.context, "standing", lambda: ({"id": "thp", "value": ""},))
    chapter.prover(live, walk).plan()
    assert [word.partition("=")[0] for word in fakeprover.asked(made).words] == ["thp"]


def test_the_newest_proof_is_the_chapters_own(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("pinning")
    assert chapter.newest(workshop, walk) is None
    keep = workshop.context.handle.add_proof
    for number, of in enumerate(("pinning", "pinning", "other/pinning", "")):
        ident = f"20260101-00000{number}-aaaa"
        keep(fakeprover.proof_of([], id=ident, chapter=of, planned=10, started_at=f"2026-01-01T00:0{number}:00Z"))
    found = chapter.newest(workshop, walk)
    assert found is not None
    assert found.id == "20260101-000001-aaaa"
