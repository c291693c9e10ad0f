"""The short hunts: each seed hides what its own evidence names and its cure keeps away, and no load comes twice."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from jitter_workshop.bench import noiseorder
from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.flow.chapters import cure
from jitter_workshop.flow.chapters.hunt import Hunt, seen_before
from jitter_workshop.model.noise import noise
from jitter_workshop.model.session import ChapterProgress, HuntOutcome
from jitter_workshop.model.spec import Placement
from tests.fakenoise import Starts
from tests.fakes import FakeWorkshop, open_workshop
from tests.shorthunts import made, solved

SPIN = Placement("auto", sampler=1, hot=(1,), housekeeping=(0,))
SEEDS = range(10)
CHAPTERS = {chapter.id: chapter for chapter in load_course().chapters if chapter.suspects}


@pytest.fixture(autouse=True)
def _root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noiseorder.os, "access", lambda path, mode: True)


def begin(ident: str, seed: int, *before: str) -> tuple[Hunt, str]:
    starts = Starts()
    hunt = Hunt(SPIN, (0, 1), start=starts, kinds=CHAPTERS[ident].suspects, before=before, seed=seed)
    return hunt, starts.orders[-1].kind


def test_short_hunts_come_after_the_fourth_and_the_eighth_chapter_and_hide_taught_noises() -> None:
    ids = [chapter.id for chapter in load_course().chapters]
    assert list(CHAPTERS) == ["first-hunt", "second-hunt"]
    assert ids.index("first-hunt") == ids.index("pinning") + 1
    assert ids.index("second-hunt") == ids.index("temperature") + 1
    assert set(CHAPTERS["first-hunt"].suspects) < set(CHAPTERS["second-hunt"].suspects)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ident", CHAPTERS)
def test_each_seed_is_solved_by_its_own_evidence_and_not_before(ident: str, seed: int) -> None:
    hunt, kind = begin(ident, seed)
    beside, quiet = made(noise(kind)), made(noise(kind), quiet=True)
    assert solved(hunt.suspects, quiet) is None, "the quiet run names nothing"
    weighed = cure.weighed([hunt.took(beside), hunt.took(beside)])
    assert weighed is not None
    assert not cure.gone(weighed), "nothing is cured before the cure"
    for wrong in (one.id for one in hunt.suspects if one.id != kind):
        assert not hunt.answer(wrong).right
    assert hunt.outcome is None
    cured = cure.weighed([hunt.took(beside), hunt.took(quiet)])
    assert cured is not None
    assert cure.gone(cured)
    answer = solved(hunt.suspects, beside)
    assert answer is not None
    assert hunt.answer(answer).right
    assert hunt.outcome is not None
    assert (hunt.outcome.named, hunt.outcome.seed) == (True, seed)


@pytest.mark.parametrize("ident", CHAPTERS)
def test_a_seed_hides_the_same_again_and_ten_seeds_hide_every_kind(ident: str) -> None:
    first = [begin(ident, seed)[1] for seed in SEEDS]
    assert first == [begin(ident, seed)[1] for seed in SEEDS]
    assert set(first) == set(CHAPTERS[ident].suspects)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_noise_that_was_hidden_before_comes_only_when_no_other_is_left(seed: int) -> None:
    every = CHAPTERS["second-hunt"].suspects
    assert begin("second-hunt", seed, *every[:4])[1] == every[4]
    assert begin("second-hunt", seed, *every)[1] in every


def test_kinds_that_were_hidden_are_those_of_all_chapters() -> None:
    one, two = (ChapterProgress(hunts=(HuntOutcome(kind, True),)) for kind in ("greedy", "timer"))
    assert seen_before((one, two, one, ChapterProgress())) == ("greedy", "timer")


def test_a_session_meets_no_load_twice_and_the_outcome_keeps_its_seed(tmp_path: Path) -> None:
    folder = tmp_path / "course"
    for name in ("04a-first-hunt", "08a-second-hunt"):
        shutil.copytree(builtin_course() / name, folder / name)
    listed = 'chapters = ["04a-first-hunt", "08a-second-hunt"]'
    (folder / "course.toml").write_text(f'format_version = 1\nid = "short"\ntitle = "Short"\n{listed}\n')
    workshop = open_workshop(course=folder)
    assert isinstance(workshop, FakeWorkshop)
    met = []
    for ident in ("first-hunt", "first-hunt", "first-hunt", "second-hunt", "second-hunt"):
        walk = workshop.walk(ident)
        assert {one.id for one in workshop.hunts.suspects(walk)} == set(CHAPTERS[ident].suspects)
        hunt = workshop.hunts.begin(walk)
        met.append(workshop.starts.orders[-1].kind)
        workshop.hunts.give_up()
        assert hunt.outcome is not None
        assert hunt.outcome.seed is not None
        assert workshop.walk(ident).progress.hunts[-1] == hunt.outcome
    assert sorted(met) == sorted(CHAPTERS["second-hunt"].suspects)
    assert dataclasses.asdict(HuntOutcome("greedy", True))["seed"] is None, "outcomes of before have no seed"
    workshop.close()
