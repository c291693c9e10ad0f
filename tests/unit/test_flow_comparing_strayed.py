"""Runs that were not measured in the state that their chapter means are marked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from jitter_workshop.course.loader import load_course
from jitter_workshop.flow.measuring.comparing import chapter_relation, other_changed_settings, strayed_settings
from jitter_workshop.flow.measuring.notes import held_limit
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.run import HUNTED, UNSTEADY, Run

GOVERNOR = {"id": "governor", "value": "performance"}
IDLE = {"id": "idle-states", "value": "2"}
CHANGED = "Between the runs this tool's own settings changed"


def told(chapter: Chapter, first: Run, second: Run) -> tuple[str, ...]:
    """Return the notes on the chapter's own settings, and after them the sentence on all others."""
    return (*strayed_settings(chapter, first, second), *filter(None, (other_changed_settings(chapter, first, second),)))


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ((), (GOVERNOR,), ()),
        ((IDLE,), (IDLE, GOVERNOR), ()),
        ((), (), ("The second run was made without this chapter's settings.",)),
        ((GOVERNOR,), (GOVERNOR,), ("governor was applied already when the first run was made.",)),
        (
            (),
            (GOVERNOR, IDLE),
            (f"{CHANGED}: idle-states (not applied, then 2).",),
        ),
        (
            (IDLE,),
            (GOVERNOR, {"id": "idle-states", "value": "50"}),
            (f"{CHANGED}: idle-states (2, then 50).",),
        ),
    ],
)
def test_a_setting_that_strays_from_the_chapter_is_told(
    make_run: Callable[..., tuple[Any, Any]], first: Any, second: Any, said: tuple[str, ...]
) -> None:
    chapter = load_course().chapter("governor")
    assert chapter is not None
    run, _ = make_run()
    assert told(chapter, replace(run, applied=first), replace(run, applied=second)) == said


@pytest.mark.parametrize(
    ("chapter_id", "first", "second", "is_told"),
    [
        ("interrupts", True, False, False),
        ("interrupts", False, True, True),
        ("interrupts", True, True, False),
        ("isolation", True, False, True),
    ],
)
def test_an_interrupt_sent_to_the_hot_cpu_strays_unless_the_chapter_sent_it_for_its_first_run(
    make_run: Callable[..., tuple[Any, Any]], chapter_id: str, first: bool, second: bool, is_told: bool
) -> None:
    chapter = load_course().chapter(chapter_id)
    assert chapter is not None
    run, sent = make_run()[0], ({"id": "irq-here", "value": "34"},)
    one, two = (replace(run, applied=sent if here else ()) for here in (first, second))
    assert bool(other_changed_settings(chapter, one, two)) is is_told


def test_a_chapter_that_sets_nothing_tells_only_the_changes(make_run: Callable[..., tuple[Any, Any]]) -> None:
    chapter = load_course().chapter("baseline")
    assert chapter is not None
    run, _ = make_run()
    assert told(chapter, run, run) == ()
    (note,) = told(chapter, run, replace(run, applied=(GOVERNOR,)))
    assert "governor (not applied, then performance)" in note
    (note,) = told(chapter, replace(run, applied=({"id": "compaction", "value": ""},)), run)
    assert "compaction (applied, then not applied)" in note


def test_a_quiet_run_with_isolation_and_a_noisy_run_without_it_are_no_pair_of_a_hunt(
    make_run: Callable[..., tuple[Any, Any]],
) -> None:
    chapter = load_course().chapter("first-hunt")
    assert chapter is not None
    run, _ = make_run()
    isolated = replace(run, applied=({"id": "isolation", "value": ""},))
    noisy = replace(run, notes={HUNTED: "a hidden noise"})
    assert chapter_relation(chapter, run, noisy) == "hunted"
    assert chapter_relation(chapter, isolated, noisy) == "strayed"
    assert chapter_relation(chapter, isolated, replace(noisy, notes=noisy.notes | {UNSTEADY: "changed"})) == "unsteady"


@pytest.mark.parametrize(
    ("applied", "said"),
    [
        ((), ""),
        (({"id": "governor", "value": "performance"},), ""),
        (({"id": "pm-qos-fd", "value": ""},), "this tool holds /dev/cpu_dma_latency at 2 µs, for all CPUs"),
        (({"id": "pm-qos-fd", "value": "20"},), "this tool holds /dev/cpu_dma_latency at 20 µs, for all CPUs"),
    ],
)
def test_a_limit_that_is_held_for_all_cpus_is_said(applied: tuple[dict[str, str], ...], said: str) -> None:
    assert held_limit(applied) == said
