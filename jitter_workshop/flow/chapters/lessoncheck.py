"""Check the files of a course, its measurements, and its tunables.

On recorded hosts, the check of each tunable must fail before the change and pass after it. The workshop uses the same
code for its checks of tunables.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jitter_workshop.course import checks
from jitter_workshop.course.alike import alike, recalled_twice
from jitter_workshop.course.files import MAX_PROBLEMS, Problem, Problems
from jitter_workshop.course.lesson import page_places
from jitter_workshop.course.loader import COURSE_FILE, Reading, read_course
from jitter_workshop.course.pace import (
    ALLOWED_MIN,
    ALLOWED_SHARE,
    LONGEST_STEP_S,
    chapter_minutes,
    names_source,
    step_paces,
)
from jitter_workshop.course.table import KeyLines
from jitter_workshop.errors import UsageError, WorkshopError
from jitter_workshop.flow.chapters.recorded import FILE, read_recorded, runs_without_chapter
from jitter_workshop.flow.host_ops.host_status import treating
from jitter_workshop.flow.host_ops.recordings import recorded_host
from jitter_workshop.flow.host_ops.settings import Seen, ground_of, look_at_settings, planned
from jitter_workshop.flow.measuring.request import MeasureRequest, blocks, check_request
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.record import dataclass, made_of
from jitter_workshop.model.text import SENTENCE, clean
from jitter_workshop.paths import assets
from jitter_workshop.tuning.tunables import registry

BEFORE, AFTER = "recording", "recording_after"


@dataclass(frozen=True, slots=True)
class Checked:
    """Hold the result of ``lessons check``. ``chapters``: the number of checked chapters. ``unlisted``: folders that
    look like chapters and are not named in course.toml."""

    problems: tuple[Problem, ...]
    chapters: int
    unlisted: tuple[str, ...] = ()


def check_course(course_dir: Path | None) -> Checked:
    """Return the mistakes of a course, the number of its chapters, and its unlisted folders. Mistakes in the course's
    files come first. ``course_dir``: None for the built-in course. Raise LessonError if the folder does not exist."""
    reading = read_course(course_dir, [tunable.id for tunable in registry.tunables()])
    found = list(reading.problems.found)
    if len(found) < MAX_PROBLEMS:
        for folder, chapter in reading.chapters:
            found += _Chapter(reading.base, folder, chapter, "" if course_dir is None else str(course_dir)).problems()
        found += _asked_twice(reading)
        found += _recorded_runs(reading, course_dir)
        if course_dir is None:
            found += _in_no_chapter(reading)
    return Checked(tuple(found[:MAX_PROBLEMS]), len(reading.chapters), _unlisted(reading))


def _asked_twice(reading: Reading) -> Iterator[Problem]:
    """Yield a problem for each guess or recall question that an earlier chapter has already."""
    chapters = [chapter for _, chapter in reading.chapters]
    folders = {chapter.id: folder for folder, chapter in reading.chapters}
    for index, first in alike(chapters):
        places = KeyLines(reading.base, reading.chapters[index][0])
        words = (
            f"the chapter {folders[first.id]} already asks this question: ask about another figure, percentile or bound"
        )
        yield Problem(places.file, places.line("prediction", "question"), words)
    for index, number, first in recalled_twice(chapters):
        places = KeyLines(reading.base, reading.chapters[index][0])
        yield Problem(
            places.file,
            places.line("recall", number, "question"),
            f"the chapter {folders[first.id]} already asks this question",
        )


def _recorded_runs(reading: Reading, course_dir: Path | None) -> Iterator[Problem]:
    """Yield a problem for each recorded run that cannot be read or that no chapter shows."""
    problems = Problems()
    recorded = read_recorded(assets() if course_dir is None else course_dir, problems)
    yield from problems.found
    if reading.course is not None:
        for line, message in runs_without_chapter({c.id: c for c in reading.course.chapters}, recorded):
            yield Problem(FILE, line, message)


def _in_no_chapter(reading: Reading) -> Iterator[Problem]:
    """Yield a problem for each tunable that no chapter sets or treats, and that gives no reason for this. Only the
    built-in course has to be about every tunable."""
    if reading.course is None:
        return
    treated = treating(reading.course)
    for tunable in registry.tunables():
        if tunable.id not in treated and not tunable.untaught:
            words = f"no chapter sets or treats the tunable {tunable.id}: name it in the 'treats' of a chapter"
            yield Problem(COURSE_FILE, 1, words)


class _Chapter:
    """Check one chapter of a course. The chapter's files must be well formed."""

    def __init__(self, base: Path, folder: str, chapter: Chapter, course_dir: str) -> None:
        self._chapter = chapter
        self._course_dir = course_dir
        self._places = KeyLines(base, folder)
        self._base = base
        self._folder = folder

    def problems(self) -> Iterator[Problem]:
        for flaw in checks.flaws(self._chapter):
            yield self._problem(flaw.message, *flaw.where)
        yield from self._not_measured()
        yield from self._sources()
        yield from self._pace()
        wrong = list(self._no_values())
        yield from wrong
        yield from self._boot()
        seen: dict[str, Seen] = {}
        for key in (BEFORE, AFTER):
            try:
                yield from self._read(key, seen, look=not wrong)
            except WorkshopError as error:
                yield self._problem(f"{self._name(key)}: {error.sentence()}", key)
        if len(seen) == 2:
            refused = self._refused(seen)
            for word, said in refused.items():
                yield self._problem(said, "tunables", word=word)
            not_asked = {word.partition("=")[0] for word in refused}
            yield from self._before_and_after(seen[BEFORE], seen[AFTER], not_asked)

    def _problem(self, message: str, *where: str | int, word: str = "") -> Problem:
        return Problem(self._places.file, self._places.line(*where, word=word), clean(message, SENTENCE))

    def _name(self, key: str) -> str:
        name: str = getattr(self._chapter, key)
        return name

    def _not_measured(self) -> Iterator[Problem]:
        """Yield a problem for each measurement that every host would refuse. No learner could earn the mark of such a
        measurement."""
        for n, measurement in enumerate(self._chapter.measurements):
            request = made_of(MeasureRequest, measurement)
            try:
                check_request(request)
                blocks(request)
            except UsageError as error:
                words = f"'{measurement.slot}' can never be measured: {error.sentence()}"
                yield self._problem(words, "measurement", n)

    def _sources(self) -> Iterator[Problem]:
        """Yield a problem for each page that names no source of its claims."""
        bare = [step for step, page in self._chapter.pages.items() if not names_source(page)]
        file, lines = page_places(self._base, self._folder) if bare else ("", {})
        for step in bare:  # the page of 'apply' can come from an older lesson's page 'plan'
            words = f"the page for '{step}' names no source: end the page with a line 'Source: …'"
            yield Problem(file, lines.get(step, lines.get("plan", 1)), words)

    def _pace(self) -> Iterator[Problem]:
        """Yield a problem if the chapter's ``minutes`` differ much from the computed time. In the built-in course, also
        yield a problem for each step that takes too long."""
        stated, computed = self._chapter.minutes, chapter_minutes(self._chapter)
        if abs(stated - computed) > max(ALLOWED_MIN, ALLOWED_SHARE * computed):
            words = f"the chapter says {stated} minutes, but its pages, runs and steps take about {computed:.1f}"
            yield self._problem(f"{words}: write minutes = {max(1, round(computed))}", "minutes")
        for one in step_paces(self._chapter) if not self._course_dir else ():
            if one.own_s > LONGEST_STEP_S:
                words = f"the step '{one.step}' takes {one.own_s:.0f} s without its run, more than the limit of"
                yield self._problem(f"{words} {LONGEST_STEP_S:.0f} s: shorten the texts of this step", "steps")

    def _no_values(self) -> Iterator[Problem]:
        """Yield a problem for each value in the chapter (``ID=VALUE``) that the tunable refuses."""
        for word in self._chapter.tunables:
            try:
                registry.parse_wanted([word])
            except UsageError as error:
                yield self._problem(error.sentence(), "tunables", word=word)

    def _boot(self) -> Iterator[Problem]:
        """Yield a problem if the chapter's ``reboot`` does not agree with its tunables. If at least one of the tunables
        is a boot parameter, ``reboot`` must be true. Otherwise ``reboot`` must be false.
        """
        whens = {registry.find_tunable(word.partition("=")[0]).when for word in self._chapter.tunables}
        if self._chapter.reboot and "boot" not in whens:
            yield self._problem("the chapter has reboot = true, but none of its tunables is a boot parameter", "reboot")
        if "boot" in whens and not self._chapter.reboot:
            yield self._problem("boot parameters take effect at the next boot: write reboot = true", "tunables")

    def _read(self, key: str, seen: dict[str, Seen], *, look: bool) -> Iterator[Problem]:
        """Read the recording that the lesson's field ``key`` names, or yield a problem. With ``look``, also store the
        state of the chapter's tunables on this recorded host in ``seen[key]``."""
        name = self._name(key)
        if not name:
            return
        root = recorded_host(name, self._course_dir)
        topology = read_topology(root)
        if not topology.online:
            yield self._problem(f"{name} is not a recorded host: it has no CPU data that this tool can read", key)
        elif self._chapter.tunables and look:
            seen[key] = look_at_settings(root, self._chapter, ground_of(root, topology))

    def _refused(self, seen: dict[str, Seen]) -> dict[str, str]:
        """Return ``ID=VALUE`` → message, for each value that its tunable refuses on a recording."""
        said: dict[str, str] = {}
        for word in self._chapter.tunables:
            for key, there in seen.items():
                try:
                    planned(there, [word])
                except UsageError as error:
                    said.setdefault(word, f"on {self._name(key)}: {error.sentence()}")
        return said

    def _before_and_after(self, before: Seen, after: Seen, leave_out: set[str]) -> Iterator[Problem]:
        first, then = before.settled(), after.settled()
        at_first, at_last = self._chapter.recording, self._chapter.recording_after
        for n, check in enumerate(self._chapter.checks):
            ident = check.tunable
            if ident is None or ident in leave_out:
                continue
            where = ("check", n, "tunable")
            if ident not in first and ident not in then:
                both = f"neither {at_first} nor {at_last} has this tunable: {_reason(before, ident)}"
                yield self._problem(f"{ident} cannot be checked: {both}", *where)
                continue
            if first.get(ident, True):
                what = _words(before, ident) if ident in first else f"it is missing: {_reason(before, ident)}"
                yield self._problem(f"{ident} must be 'improve' before the change; on {at_first} {what}", *where)
            elif registry.find_tunable(ident).when != "boot" and (why := self._nothing_planned(before, ident)):
                yield self._problem(f"applying {ident} changes nothing on {at_first}: {why}", *where)
            if not then.get(ident, False):
                what = _words(after, ident) if ident in then else f"it is missing: {_reason(after, ident)}"
                yield self._problem(f"{ident} must be 'ok' after the change; on {at_last} {what}", *where)

    def _nothing_planned(self, seen: Seen, ident: str) -> str:
        """Return the reason why the chapter's plan writes nothing for a tunable, or "". Do not call this for a boot
        parameter: the recording may lack the boot loader's files."""
        drawn = planned(seen, [word for word in self._chapter.tunables if word.partition("=")[0] == ident])
        return "" if drawn.changes else "; ".join(one.reason for one in drawn.skipped) or "there is nothing to write"


def _words(seen: Seen, ident: str) -> str:
    """Return a tunable's state on a host as words for a sentence."""
    word = next((word for word in seen.asked if word.partition("=")[0] == ident), "")
    if word:
        changes = len(planned(seen, [word]).changes)
        writes = "write" if changes == 1 else "writes"
        return f"{word} would need {changes} {writes}" if changes else f"there is nothing to write for {word}"
    check = next(c for c in seen.checks if c.id == ident)
    state = {"ok": "it is 'ok' already", "improve": "it is still 'improve'"}.get(check.state, "there is nothing to do")
    return f"{state}: {check.value if check.value is not None else check.reason}"


def _reason(seen: Seen, ident: str) -> str:
    return next(c.reason for c in seen.checks if c.id == ident)


def _unlisted(reading: Reading) -> tuple[str, ...]:
    """Return the folders that have a lesson.toml and are not in course.toml; () if course.toml is invalid."""
    if reading.course is None:
        return ()
    listed = {folder for folder, _ in reading.chapters}
    try:
        there = sorted(path.parent.name for path in reading.base.glob("*/lesson.toml"))
    except OSError:
        return ()
    return tuple(name for name in there if name not in listed and not name.startswith("."))
