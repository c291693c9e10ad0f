"""Test the steps of a chapter as the plain path has them. The lines that each step prints are tested in
``tests/functional``."""

from __future__ import annotations

from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.course import STEPS
from jitter_workshop.plain.page import PlainPage
from jitter_workshop.plain.steps import plain_steps
from jitter_workshop.plain.talk import Talk


def test_every_step_of_a_chapter_has_an_object_of_its_own_class() -> None:
    workshop = Workshop.open()
    try:
        steps = plain_steps(PlainPage(workshop, workshop.walk("baseline"), Talk()))
    finally:
        workshop.close()
    assert list(steps) == list(STEPS)
    assert [step.name for step in steps.values()] == list(STEPS)
    assert len({type(step) for step in steps.values()}) == len(STEPS)
