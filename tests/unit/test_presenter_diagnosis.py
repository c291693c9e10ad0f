"""Test the words of the step ``diagnose``."""

from __future__ import annotations

import pytest

from jitter_workshop.model.evidence import ExplainedStall
from jitter_workshop.presenter.course.diagnosis import one_stall
from jitter_workshop.presenter.text.lines import written


@pytest.mark.parametrize(
    ("thread", "named"), [("sampler", "our thread"), ("sleeper", "our thread"), ("accumulator", "accumulator")]
)
def test_the_only_measured_thread_has_the_word_of_the_lesson(thread: str, named: str) -> None:
    stall = ExplainedStall(0, 12_500_000, 1, thread, 1, 0, ())
    assert f"at 12.5 ms  {named} goes on" in written(one_stall(stall, 80))
