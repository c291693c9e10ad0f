"""Test the results of the learner's own runs on the path."""

from __future__ import annotations

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.flow.chapters.runs import ChapterRuns
from jitter_workshop.model.course import SLOTS
from jitter_workshop.model.run import SilentObserver
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
