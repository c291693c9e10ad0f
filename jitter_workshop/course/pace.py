"""Compute how long a chapter takes a newcomer: reading, runs, and time to look at each screen.

The reading speed is an assumption, because no learner was timed. Adults read 238 words of English non-fiction a minute
(M. Brysbaert, "How many words do we read per minute?", Journal of Memory and Language 109, 2019). Readers with another
first language are slower, and technical text takes longer. The times for screens, boots and hunts are assumptions, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jitter_workshop.course.recall import AT_ONCE
from jitter_workshop.model.course import OPEN, Chapter, GuessTask, Measurement, StepName
from jitter_workshop.model.program import OBSERVED_S
from jitter_workshop.model.spec import LEAST_BETWEEN_S, PRESETS, clock_seconds
from jitter_workshop.model.text import split_code

WORDS_A_MINUTE = 180
"""The assumed rate of a reader with another first language than English: about three quarters of 238."""
SCREEN_S = 15.0
"""Seconds to look at what a step shows beside its page (facts, a chart, a list, a plan), and to press its keys."""
BOOT_S = 120.0
"""Seconds for a boot, in a chapter with ``reboot``."""
HUNT_S = 120.0
"""Seconds to look for a hidden noise and to cure it."""
LONGEST_STEP_S = 180.0
"""The most seconds that a step of the built-in course may take, without its fixed time such as a run."""
ALLOWED_MIN, ALLOWED_SHARE = 1.0, 0.2
"""The most by which the ``minutes`` of a lesson may differ from the computed minutes: by one minute or by this share,
whichever is more."""

_SOURCES = re.compile(r"^Source:", re.MULTILINE)
_NAMED_SOURCE = re.compile(r"^Source:[ \t]*\S", re.MULTILINE)
_WORD = re.compile(r"\S*\w\S*")


@dataclass(frozen=True, slots=True)
class StepPace:
    """Hold the time of one step. ``words``: the number of words to read. ``fixed_s``: the seconds of a run, a boot or a
    hunt at this step."""

    step: StepName
    words: int
    fixed_s: float

    @property
    def own_s(self) -> float:
        """Return the seconds that a learner needs to read the step and to look at its screen."""
        return self.words * 60 / WORDS_A_MINUTE + SCREEN_S

    @property
    def seconds(self) -> float:
        return self.own_s + self.fixed_s


def step_paces(chapter: Chapter) -> tuple[StepPace, ...]:
    """Return the time of each step, in the order of the steps.

    If a text has several versions, for example for several states of the host, the longest version counts. The first
    step asks two questions of earlier chapters. In their place, the time for two questions of this chapter is counted.
    Folded by-hand commands and hints do not count, because only some readers open them.
    """
    return tuple(StepPace(step, _words(chapter, step), _fixed_s(chapter, step)) for step in chapter.steps)


def chapter_minutes(chapter: Chapter) -> float:
    """Return the time of the whole chapter in minutes."""
    return sum(one.seconds for one in step_paces(chapter)) / 60


def run_s(measurement: Measurement) -> float:
    """Return the seconds of a run, with its start and the time between its blocks on a quiet host."""
    length_s = measurement.length_s
    return clock_seconds(length_s, length_s * 1e9 / PRESETS[measurement.preset].block_ns, LEAST_BETWEEN_S)


def words_of_page(page: str) -> int:
    """Return the number of words that a learner reads on a page. Words in code and in pictures count. The sources at
    the end of the page do not count, because they are for looking up."""
    read = _SOURCES.split(page, maxsplit=1)[0]
    return sum(_count(line) for line, kind in split_code(read.splitlines()) if kind != "fence")


def names_source(page: str) -> bool:
    """Return True if a page has a line that begins with ``Source:`` and names something."""
    return bool(_NAMED_SOURCE.search(page))


def _words(chapter: Chapter, step: StepName) -> int:
    added = [words_of_page(one.text) for one in chapter.page_when if one.step == step]
    read = words_of_page(chapter.pages.get(step, "")) + max(added, default=0)
    if step == chapter.steps[0] and chapter.recall:
        asked = [_count(one.question, *one.answers, one.explanation) for one in chapter.recall]
        read += round(min(AT_ONCE, len(asked)) * sum(asked) / len(asked))
    if chapter.prediction is not None:
        read += _of_the_guess(chapter.prediction, step)
    if step == "explain":
        read += _count(*chapter.learnt, *(text for one in chapter.by_hand[:OPEN] for text in (one.command, one.why)))
    return read


def _of_the_guess(task: GuessTask, step: StepName) -> int:
    read = _count(task.question, *(one.text for one in task.answers)) if step == "predict" else 0
    if step == (task.slot or ("measure" if task.by == "program" else "predict")):
        read += max((_count(one.explanation) for one in task.answers), default=0)
    return read


def _fixed_s(chapter: Chapter, step: StepName) -> float:
    measurement = chapter.measurement(step)
    taken = run_s(measurement) if measurement is not None else 0.0
    if chapter.program and step == "measure":
        taken += OBSERVED_S
    if chapter.reboot and step == "apply":
        taken += BOOT_S
    first = chapter.measurement("measure")
    if step == "again" and first is not None and chapter.company is not None and chapter.company.control:
        taken += run_s(first)
    if chapter.hunt and step == "again":
        # A cure is measured once more, in the same way.
        taken += HUNT_S + taken
    return taken


def _count(*texts: str) -> int:
    return sum(len(_WORD.findall(text)) for text in texts)
