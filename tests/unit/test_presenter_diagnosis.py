"""Test the words of the step ``diagnose``."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.flow.chapters.suspects import judge_diagnosis, suspect
from jitter_workshop.model.diagnosis import Diagnosed, SeenCauses
from jitter_workshop.model.evidence import ExplainedStall, Slice
from jitter_workshop.presenter.course.diagnosis import one_stall, suspect_lines
from jitter_workshop.presenter.text.lines import written


@pytest.mark.parametrize(
    ("thread", "named"), [("sampler", "our thread"), ("sleeper", "our thread"), ("accumulator", "accumulator")]
)
def test_the_only_measured_thread_has_the_word_of_the_lesson(thread: str, named: str) -> None:
    stall = ExplainedStall(0, 12_500_000, 1, thread, 1, 0, ())
    assert f"at 12.5 ms  {named} goes on" in written(one_stall(stall, 80))


def test_the_times_of_a_stall_stand_in_a_column_from_its_start_to_its_end() -> None:
    pieces = tuple(Slice("task", name, at, 10_000) for name, at in (("bash", 42_900), ("python", 164_000)))
    stall = ExplainedStall(0, 1_250_000, 1, "sampler", 1, 0, (), pieces)
    shown = [line.plain for line in one_stall(stall, 80)[1:5]]
    assert [line[:12].strip() for line in shown] == ["at    0 ns", "at 42.9 µs", "at  164 µs", "at 1.25 ms"]
    assert {line.index("at ") for line in shown} == {0}
    assert shown[0].endswith("the stall begins")
    whole = dataclasses.replace(stall, timeline=(dataclasses.replace(pieces[0], offset_ns=0), pieces[1]))
    assert "the stall begins" not in written(one_stall(whole, 80)[:-1])


def test_after_the_answer_the_largest_cause_comes_first() -> None:
    causes = tuple(suspect("task", name, 9, ns) for name, ns in (("bash", 20), ("python", 900), ("sh", 400)))
    seen = SeenCauses("r", "trace", causes, 9, 1_320, 0)

    def names(answered: Diagnosed | None) -> list[str]:
        return [line.plain.split("task ")[1].split()[0] for line in suspect_lines(seen, -1, answered, 80)[1:4]]

    assert names(None) == ["bash", "python", "sh"], "the order must not show the answer"
    assert names(judge_diagnosis(seen, "task:sh")) == ["python", "sh", "bash"]
