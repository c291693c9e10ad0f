"""The whole workshop line by line, with made-up measurements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import BusyError
from jitter_workshop.flow.chapters.path import NOT_MEASURED
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.measuring.unchanged import UNCHANGED
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cpu, Topology
from jitter_workshop.model.run import SilentObserver
from jitter_workshop.presenter.course import action_meanings as meanings
from jitter_workshop.presenter.course.action_meanings import beside_a_word
from jitter_workshop.presenter.course.path import HALF_DOT
from jitter_workshop.presenter.runs.fanout import MANY_HOSTS
from tests import talking
from tests.fakes import FakeWorkshop, open_workshop, stop_in_run

Trees = Callable[[str], Path]


def talk(answers: str, workshop: Workshop | None = None, chapter: str | None = None, width: int = 80) -> str:
    return talking.talk(workshop or quad(), answers, chapter, width)


def quad() -> FakeWorkshop:
    """The made-up workshop on a machine of four CPUs, with the three chapters that set nothing on a host."""
    made = open_workshop()
    machine = Topology(
        tuple(Cpu(i, 0, i, 0, online=True, allowed=True, smt_siblings=CpuSet((i,))) for i in range(4)), ()
    )
    made.context.topology = machine
    return made


def test_enter_alone_goes_through_everything() -> None:
    workshop = quad()
    said = talk("|" * 60, workshop)
    assert workshop.measured == 6
    for title in ("Why so slow?", "Who moves my threads?", "Pinning"):
        assert f"'{title}' is done" in said
    assert UNCHANGED in said
    assert "sched_setaffinity(accumulator)" in said
    assert "READ THE KNEE" in said
    assert MANY_HOSTS in said
    assert "Every chapter is done." in said
    assert all(e.done for e in workshop.path())


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal_but_for_commands_to_copy(width: int) -> None:
    said = talk("|" * 60, quad(), width=width)
    wide = [line for line in said.split("\n") if len(line) > width]
    assert [line for line in wide if not line.startswith("    ")] == []
    assert "\x1b" not in said


def test_a_guess_by_time_is_judged_after_the_run() -> None:
    said = talk("|300|20 us||q", chapter="baseline")
    assert "needs a number and a unit" in said
    assert "You marked 20 µs at p99.9" in said


def test_m_before_the_guess_keeps_the_question_open() -> None:
    workshop = quad()
    said = talk("m||m|20 us|q", workshop, "baseline")
    assert workshop.measured == 0
    assert said.count("measure in the steps 'measure' and") == 2
    assert workshop.walk("baseline").progress.prediction is not None


def test_leaving_and_coming_back_goes_on_where_one_was() -> None:
    workshop = quad()
    assert "guesses are kept" in talk("||q", workshop)
    workshop.close()
    again = quad()
    assert "NEXT: Why so slow? · predict" in talk("q", again)


def test_the_end_of_input_leaves_cleanly() -> None:
    assert "guesses are kept" in talk("")


def test_the_help_on_the_path_gives_the_meaning_of_the_half_dot() -> None:
    assert f"◐ {HALF_DOT}" in " ".join(talk("?|q").split())


def test_commands_of_a_chapter() -> None:
    said = talk("?|h|t|c|m|9|nonsense\x1b[2J|2|b|p|q", chapter="baseline")
    assert beside_a_word(meanings.BACK) in said
    assert "The y axis is logarithmic" in said
    assert "No curve is shown yet." in said
    assert "There is no curve yet." in said
    assert "measure in the steps 'measure' and" in said
    assert "The steps are 1 to 7." in said
    assert "Unknown command 'nonsense [2J'" in said
    assert "\x1b" not in said
    assert "PATH FOR THIS HOST" in said


def test_a_step_that_has_to_wait_gives_the_reason() -> None:
    said = talk("6|q", chapter="baseline")
    assert "! the step 'compare' cannot be" in said
    assert "yet; measure first." in said


def test_cpus_are_picked_and_refused_in_words() -> None:
    workshop = quad()
    said = talk("||||||cpus 3,1|cpus 2 2|cpus 77|cpus x|q", workshop, "pinning")
    assert "sched_setaffinity(producer)  any (0-3) → CPU 3" in said
    assert "CPU 2 cannot run two measured threads" in said
    assert "no CPU 77" in said
    assert "a CPU must be a whole number" in said
    assert workshop.walk("pinning").progress.chosen_cpus == {"producer": 3, "accumulator": 1}


def test_a_run_that_fails_is_a_sentence_and_the_walk_goes_on() -> None:
    workshop = quad()
    busy = BusyError("root is measuring on this host", "wait, or use --wait")
    workshop.fail = busy  # type: ignore[assignment]
    said = talk("3||q", workshop, "baseline")
    assert f"! {busy.sentence()}." in said
    assert "guesses are kept" in said


def test_a_run_that_was_stopped_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = quad()
    whole = FakeWorkshop.measure

    def stopped(
        self: FakeWorkshop, request: MeasureRequest, observer: object, cancel: object, queued: object
    ) -> object:
        class StopsAfterTwo:
            def started(self, event: object) -> None:
                return None

            def block_done(self, progress: object) -> None:
                if progress.done == 2:  # type: ignore[attr-defined]
                    cancel.cancel("Ctrl-C")  # type: ignore[attr-defined]

        return whole(self, request, StopsAfterTwo(), cancel)  # type: ignore[arg-type]

    monkeypatch.setattr(FakeWorkshop, "measure", stopped)
    said = talk("3||q", workshop, "baseline")
    assert "Stopped after 2 blocks" in said
    assert workshop.walk("baseline").runs.run_in("measure") is None


def test_a_run_that_cannot_be_compared_is_made_again_from_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_in_run(monkeypatch, 2)
    workshop = quad()
    said = " ".join(talk("3||5||6|m|m|6|q", workshop, "baseline").split())
    assert "Not comparable: in the second run, " in said
    assert "the second run again (m). If" in said
    assert workshop.measured == 3
    assert said.index("At this step, m makes the run again.") < said.index(UNCHANGED)
    # Without such a reason, the step has no run to make.
    assert "You can measure in the steps" in talk("6|m|q", workshop, "baseline")


def test_a_thief_is_woken_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fakes.values", lambda seed, *, pinned, count=1_500: [100] * 5_000)
    workshop = quad()
    said = talk("3||w|q", workshop, "baseline")
    assert "Type w for that" in said
    assert workshop.walk("baseline").progress.noise == "spinners"
    assert "with spinners" in said


def test_w_shows_the_runs_with_company_and_those_without_it() -> None:
    workshop = quad()
    walk = workshop.walk("pinning")
    for _ in range(2):
        for slot in ("measure", "again"):
            walk.record(slot, workshop.measure(walk.measuring.request(slot), SilentObserver(), CancelToken()))
        walk.noise.switch()
    assert walk.progress.noise is None
    walk.go("compare")
    told = walk.noise.both_ways()
    assert told
    flat = " ".join(talk("w|w|q", workshop, "pinning").split())
    assert flat.count(told) == 3


def test_the_chart_of_all_runs_has_the_laptop_beside() -> None:
    workshop = quad()
    workshop.measure(MeasureRequest(label="mine", placement="none"), SilentObserver(), CancelToken())
    said = talk("c|heat|q", workshop)
    assert "laptop 2015  published" in said
    assert "8.1" in said
    assert "how many in a block" in said


def test_a_recorded_host_has_nothing_to_do(host_tree: Trees) -> None:
    said = talk("1|4|||q", open_workshop(host_tree("server64")))
    assert "ON A RECORDING" in said
    assert NOT_MEASURED in said
