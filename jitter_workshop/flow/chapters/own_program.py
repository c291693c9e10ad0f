"""Observe the program of a chapter, and store the results in the chapter's progress.

The program is the learner's own command, or one of the small programs of the course. The observation also decides the
learner's guess.
"""

from __future__ import annotations

import dataclasses
import shlex
import sys
import time
from collections.abc import Callable

from jitter_workshop.course.guesses import by_program
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.flow.chapters.chapter_host import ChapterHost
from jitter_workshop.flow.chapters.session_context import SessionContext, key_of
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.course import PARTS, Chapter, GuessTask
from jitter_workshop.model.program import OBSERVED_S, ProgramReport, Target
from jitter_workshop.model.session import Guess, ObservedProgram, ProgramWork
from jitter_workshop.model.text import PATH, REASON, clean
from jitter_workshop.model.verdict import ENOUGH_ROUNDS
from jitter_workshop.model.walk import GuessOutcome
from jitter_workshop.session import ids

MOST_WORDS, LONGEST = 100, 4_000


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """Hold a small program of the course. ``name``: its module in ``samples``. ``figure``: a description of the
    quantity whose p99 the program prints.
    """

    name: str
    what: str
    figure: str

    @property
    def words(self) -> tuple[str, ...]:
        """Return the command that runs this small program."""
        return (sys.executable, "-m", self._module)

    @property
    def _module(self) -> str:
        return f"jitter_workshop.samples.{self.name}"

    def is_in(self, words: tuple[str, ...]) -> bool:
        """Return True if a command runs this program, in this or another Python environment."""
        return words[1:] == ("-m", self._module)


SAMPLES = (
    Sample("collector", "a server whose garbage collector stops it now and then", "the latency of its requests"),
    Sample("audio", "an audio-like task: every 5 ms a block of sound has to be ready", "how late its blocks begin"),
    Sample("convoy", "four threads that queue for one lock, again and again", "how long its steps wait for the lock"),
)
MATCH, UNIT = r"p99=([0-9.]+) us", "us"
"""The pattern that finds the p99 in a sample's output, for ``prove --match``, and the unit of the p99."""


def sample_of(words: tuple[str, ...]) -> Sample | None:
    """Return the small program of the course that a command runs; None for any other command."""
    return next((one for one in SAMPLES if one.is_in(words)), None)


def parse_command(text: str) -> tuple[str, ...]:
    """Return the words of a command, split as by a shell. Raise UsageError for an invalid command."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"this is no command: {clean(error, REASON)}", "close each quote") from None
    if not words or not words[0]:
        raise UsageError("no command was given", "give a command as in a shell, such as ./server-test 1000")
    if len(words) > MOST_WORDS or len(text) > LONGEST or "\0" in text:
        raise UsageError(
            f"a command has at most {MOST_WORDS} words and {LONGEST:,} characters", "put the command into a script"
        )
    return words


class ChapterProgram:
    """Hold a chapter's program. ``report``: the newest observation of this visit; None before the first one."""

    def __init__(self, chapter: Chapter, context: SessionContext, host: ChapterHost) -> None:
        self._chapter, self._context, self._host = chapter, context, host
        self.report: ProgramReport | None = None

    @property
    def work(self) -> ProgramWork:
        """Return the program that the learner chose; without a choice, the first small program of the course."""
        return self._context.progress(self._chapter.id).program or ProgramWork(SAMPLES[0].words)

    @property
    def why_not(self) -> str:
        """Return the reason why no program can be observed on this host, or ""."""
        return "nothing runs on a recorded host" if self._host.rehearsed or self._context.recorded else ""

    def choose(self, words: tuple[str, ...]) -> None:
        """Choose a program.

        If it differs from the program that was chosen before, forget the observation of the old program. Keep the
        marks.
        """
        if words != self.work.words or self._context.progress(self._chapter.id).program is None:
            self.report = None
            self._save(ProgramWork(words))

    def choose_change(self, change: str) -> None:
        """Choose the change that a proof will test: ``placement``, or a tunable as in the command ``prove``."""
        self._save(dataclasses.replace(self.work, change=change))

    def observe(self, agent: AgentConnection, progress: Callable[[float], None] = lambda rest_s: None) -> None:
        """Run the program for OBSERVED_S seconds, and explain its time. Then end the program and all processes that it
        has started. The program's input is empty, and its output is not shown.

        - ``agent``: gives root's rights, which the trace needs.
        - ``progress``: a function that gets the remaining seconds while the program runs. If this function raises an
          exception, the program is ended.

        Raise HostError if the program cannot be started, MeasureError if it cannot be observed.
        """
        if self.why_not:
            raise HostError(self.why_not)
        # Observing needs many modules, and the path is shown without them.
        from jitter_workshop.flow.programs.kept import KeptCommand
        from jitter_workshop.flow.programs.observing import connected, observe_program
        from jitter_workshop.flow.programs.targets import Found

        words = self.work.words
        with KeptCommand(words, float(OBSERVED_S)) as command:
            target = Target("command", clean(shlex.join(words), PATH), command.pid)
            follower, why_no_trace = connected(agent)
            found = Found(target, (command.pid,))
            ends = time.monotonic() + OBSERVED_S

            def told(rest_s: float) -> None:
                # Observing itself has no limit: the one who keeps the command ends it in time.
                progress(max(ends - time.monotonic(), 0.1) if rest_s else 0.0)

            report = observe_program(HostRoot(), found, follower, why_no_trace, None, command, told)
            ended = command.ended
        if ended is not None and ended.why == "timeout":
            report = dataclasses.replace(
                report, exit_code=None, notes={**report.notes, "exit_code": "the command took too long and was ended"}
            )
        output = ended.output if ended is not None else ""
        said = [line for line in output.splitlines() if line.strip()]
        progress(0.0)  # nothing is kept of one that was stopped meanwhile
        self.report = report
        self.keep(summed(report, clean(said[-1], REASON) if said else ""))

    def keep(self, seen: ObservedProgram) -> None:
        """Keep an observation, and set the mark for it."""
        self._save(dataclasses.replace(self.work, observed=seen), "curve")

    def proven(self) -> None:
        """Set the mark for a proof, if the session has a proof of this chapter with enough rounds."""
        key = key_of(self._context.course_id, self._chapter.id)
        proofs = self._context.handle.proofs()
        if any(one.chapter == key and one.command and len(one.rounds) >= ENOUGH_ROUNDS for one in proofs):
            self._save(self.work, "setting")

    def outcome(self, task: GuessTask, guess: Guess) -> GuessOutcome | None:
        """Judge the learner's guess by the observation; return None without an observation."""
        seen = self.work.observed
        if seen is None:
            return None
        return by_program(task, guess, {part: getattr(seen, f"{part}_ns") for part in PARTS})

    def _save(self, work: ProgramWork, mark: str = "") -> None:
        progress = self._context.progress(self._chapter.id)
        marks = {**progress.marks, mark: True} if mark else progress.marks
        self._context.save_progress(self._chapter.id, dataclasses.replace(progress, program=work, marks=marks))


def summed(report: ProgramReport, said: str) -> ObservedProgram:
    """Return the part of a program's report that the session stores. Its times are sums over all threads or, without a
    trace, over the threads in the report's list. ``said``: the last line of the program's output."""
    every, most = report.all_threads, report.causes[:1] if report.causes else ()
    known = [one for one in report.threads if one.ran_ns is not None and one.waited_ns is not None]
    return ObservedProgram(
        at=ids.timestamp(),
        evidence=report.evidence,
        observed_ns=report.duration_ns,
        ran_ns=every.ran_ns if every else sum(one.ran_ns or 0 for one in known) if known else None,
        waited_ns=every.waited_ns if every else sum(one.waited_ns or 0 for one in known) if known else None,
        slept_ns=every.slept_ns if every else None,
        blocked_ns=every.blocked_ns if every else None,
        held_by=(most[0].kind, most[0].name) if most else (),
        said=said,
    )
