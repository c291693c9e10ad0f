"""Define sessions and progress, as stored in ``session.json``."""

from __future__ import annotations

from jitter_workshop.model.change import Change
from jitter_workshop.model.record import dataclass, field

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Prediction:
    """Hold a learner's guess. A mark is ``value_ns`` at ``percentile``; a choice is the id of the chosen answer."""

    choice: str | None = None
    percentile: str | None = None
    value_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Hold a learner's answer to "who took it?". ``run``: the id of the run that was asked about. ``choice``: the
    cause, as ``KIND:NAME``. ``right``: None if the evidence could not decide."""

    run: str
    choice: str
    right: bool | None = None


@dataclass(frozen=True, slots=True)
class HuntOutcome:
    """Hold the end of a hunt.

    - ``kind``: the hidden noise.
    - ``named``: True if the learner named this noise, after ``wrong_answers`` wrong answers.
    - ``stopped``: True if the learner ended the noise before naming it.
    - ``cured``: True if the learner kept the noise away from the measured thread.
    - ``seed``: the seed of the random choice of the noise, None if the system chose.
    """

    kind: str
    named: bool
    stopped: bool = False
    wrong_answers: int = 0
    cured: bool = False
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Weighed:
    """Hold the time that a hidden noise took in two runs, in ns a second, by their traces. ``beside_ns``: the time
    without a cure. ``now_ns``: the time with a cure."""

    beside_ns: float
    now_ns: float


ALONE = "none"
"""The value of ``noise`` if the chapter is measured on this host as it is, without the lesson's own noise."""


@dataclass(frozen=True, slots=True)
class HandWork:
    """Hold writes that the learner makes by hand, for which no journal has the old values. ``boot_id``: the boot in
    which the writes were begun. In another boot the writes are no longer in place."""

    changes: tuple[Change, ...]
    boot_id: str | None = None


@dataclass(frozen=True, slots=True)
class ObservedProgram:
    """Hold what an observation of the learner's program has shown, summed over its threads, in ns.

    - ``evidence``: as in ``model.program.ProgramReport``. Without a trace, times that only a trace shows are None.
    - ``held_by``: the cause that took most of ``waited_ns``, as kind and name, () if there is none.
    - ``said``: the last line of the program's output.
    """

    at: str
    evidence: str
    observed_ns: int
    ran_ns: int | None = None
    waited_ns: int | None = None
    slept_ns: int | None = None
    blocked_ns: int | None = None
    held_by: tuple[str, ...] = ()
    said: str = ""


@dataclass(frozen=True, slots=True)
class ProgramWork:
    """Hold the program that a chapter is about. ``words``: its command line. ``change``: the change whose effect on
    this program is proven, as an argument of ``prove``. ``observed``: None until it was observed."""

    words: tuple[str, ...]
    change: str = "placement"
    observed: ObservedProgram | None = None


@dataclass(frozen=True, slots=True)
class ChapterProgress:
    """Hold the progress of a chapter.

    - ``step``: the step to go on with.
    - ``runs``: measurement slot (``measure``, …) → run id.
    - ``marks``: ``curve`` and ``setting`` → True if the learner has earned this mark.
    - ``hints``: number of hints shown so far.
    - ``chosen_cpus``: thread → CPU, if the learner chose the CPUs.
    - ``seen``: steps from which the learner went on.
    - ``noise``: the kind of noise that the learner started for this chapter, or ALONE if the host is measured as it is.
    - ``other_runs``: the runs of the other choice of ``noise``, by slot: without the noise, or beside it.
    - ``reboot_from``: the boot in which the chapter's boot parameters were written.
    - ``hunts``: finished hunts, newest last. Abandoned hunts are left out.
    - ``weighed``: id of the run with a cure → the time that the hidden noise took without and with the cure.
    - ``diagnosis``: the answer of the step ``diagnose``.
    - ``recalled``: True if the chapter's recall questions were asked, answered or not.
    - ``by_hand``: the writes that the learner made by hand and has to undo.
    - ``program``: the learner's program, if the chapter is about one.
    """

    step: str = "look"
    prediction: Prediction | None = None
    hints: int = 0
    runs: dict[str, str] = field(default_factory=dict)
    marks: dict[str, bool] = field(default_factory=dict)
    done: bool = False
    chosen_cpus: dict[str, int] = field(default_factory=dict)
    seen: tuple[str, ...] = ()
    noise: str | None = None
    reboot_from: str | None = None
    hunts: tuple[HuntOutcome, ...] = ()
    weighed: dict[str, Weighed] = field(default_factory=dict)
    diagnosis: Diagnosis | None = None
    recalled: bool = False
    by_hand: HandWork | None = None
    program: ProgramWork | None = None
    other_runs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecallCard:
    """Hold the place of a recall question: its box, from 1 (missed) to 5, and the visit from which on the question is
    asked again."""

    box: int
    due: int


@dataclass(frozen=True, slots=True)
class RecallBoxes:
    """Hold a learner's recall questions. ``visits``: how many chapters began with questions. ``cards``: the key of each
    question that was answered → its place. A key consists of the chapter's key and the question's id."""

    visits: int = 0
    cards: dict[str, RecallCard] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """Hold a learner's work on one host.

    - ``stack``: the applied settings as id=value, in order.
    - ``runs``: run ids, oldest first.
    - ``chapters``: chapter id → progress; outside the built-in course the key is COURSE/ID.
    - ``course``: the course of ``current_chapter``, "" = the built-in one.
    - ``recorded``: True if the session is about a recorded host. Such a session is never selected automatically.
    - ``recall``: the learner's recall questions.
    """

    format_version: int
    id: str
    name: str
    host: str
    created_at: str
    updated_at: str
    stack: tuple[dict[str, str], ...] = ()
    chapters: dict[str, ChapterProgress] = field(default_factory=dict)
    runs: tuple[str, ...] = ()
    course: str = ""
    current_chapter: str | None = None
    recorded: bool = False
    recall: RecallBoxes = field(default_factory=RecallBoxes)
