"""Test the results of the learner's own runs on the path."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.flow.chapters.runs import ChapterRuns
from jitter_workshop.model.course import SLOTS
from jitter_workshop.model.run import SilentObserver
from jitter_workshop.model.verdict import VerdictWord
from jitter_workshop.model.walk import OwnResult, PathEntry
from jitter_workshop.presenter.course import path as words
from jitter_workshop.presenter.course.own_results import OwnResults
from tests import fakes


def test_a_result_whose_traces_this_version_has_not_read_is_no_judgement(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an update of the program the kept reports are out of date, and the step compare reads the traces again."""
    workshop = fakes.open_workshop()
    walk = workshop.walk("pinning")
    for slot in SLOTS:
        walk.record(slot, workshop.measure(walk.measuring.request(slot), SilentObserver(), CancelToken()))
    results = OwnResults(workshop)

    def entry() -> PathEntry:
        return next(one for one in results.path() if one.chapter_id == "pinning")

    with monkeypatch.context() as patched:
        patched.setattr(ChapterRuns, "unread", property(lambda self: True))
        assert entry().result == OwnResult("not read")
        assert words.kind_or_result(entry())[0] == "not read"
        patched.setattr(ChapterRuns, "unread", property(lambda self: False))
        assert entry().result == OwnResult("not read"), "nothing was read since"
        patched.setattr(type(workshop.context.runs), "known_reports", property(lambda self: 2))
        found = entry().result
    assert found is not None
    assert found.latency != "not read"


def test_the_last_result_is_that_of_the_newest_second_run_and_gives_way_to_a_newer_run() -> None:
    workshop = fakes.open_workshop()
    results = OwnResults(workshop)
    assert results.last_told(results.path(), "") is None, "nothing is measured"
    walk = workshop.walk("pinning")
    for slot in SLOTS:
        walk.record(slot, workshop.measure(walk.measuring.request(slot), SilentObserver(), CancelToken()))
    first, second = (workshop.context.progress("pinning").runs[slot] for slot in SLOTS)
    told = results.last_told(results.path(), first)
    assert told is not None
    title, said = told
    assert title == walk.chapter.title
    assert said
    assert results.last_told(results.path(), second) == told
    assert results.last_told(results.path(), f"{second}0") is None, "the drawn curve is newer"


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (OwnResult("no clear change", True), "latency has no clear change"),
        (OwnResult("not compared", True), "their latency was not compared"),
        (OwnResult("better", True), ""),
        (OwnResult("no clear change", False), ""),
        (OwnResult("no clear change", True, proof="lower"), ""),
    ],
)
def test_a_count_that_moved_is_told_with_the_missing_verdict_on_latency(own: OwnResult, told: str) -> None:
    assert words.unclear_told(own) == told


def test_the_chapters_that_the_next_one_leaves_out_are_counted() -> None:
    path = fakes.open_workshop().path()
    first, second, third = (one for one in path if one.here)
    assert words.left_out_told(path, first) == ""
    assert words.left_out_told(path, second) == "1 chapter before it is not done."
    assert words.left_out_told(path, third) == "2 chapters before it are not done."
    done = tuple(dataclasses.replace(one, done=one is first) for one in path)
    assert words.left_out_told(done, third) == "1 chapter before it is not done."


@pytest.mark.parametrize(
    ("result", "known"),
    [(OwnResult("alike"), False), (OwnResult("not read"), False), (OwnResult("no clear change"), True)],
)
def test_the_last_result_is_of_a_change_and_was_judged(result: OwnResult, known: bool) -> None:
    workshop = fakes.open_workshop()
    walk, results = workshop.walk("pinning"), OwnResults(workshop)
    for slot in SLOTS:
        walk.record(slot, workshop.measure(walk.measuring.request(slot), SilentObserver(), CancelToken()))
    path = [dataclasses.replace(e, result=result) for e in results.path() if e.chapter_id == "pinning"]
    assert (results.last_told(path, "") is not None) == known


@pytest.mark.parametrize("verdict", ["lower", "cannot_tell"])
def test_a_proof_is_told_in_the_place_of_the_two_runs(verdict: VerdictWord) -> None:
    workshop = fakes.open_workshop()
    walk, results = workshop.walk("pinning"), OwnResults(workshop)
    for slot in SLOTS:
        walk.record(slot, workshop.measure(walk.measuring.request(slot), SilentObserver(), CancelToken()))
    own = OwnResult("better", proof=verdict)
    path = [dataclasses.replace(e, result=own) for e in results.path() if e.chapter_id == "pinning"]
    assert results.last_told(path, "") == (walk.chapter.title, words.kind_or_result(path[0])[0])
