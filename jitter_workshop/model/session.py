"""Define sessions and progress, as stored in ``session.json``."""

from __future__ import annotations

from jitter_workshop.model.change import Change
from jitter_workshop.model.record import dataclass, field

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Guess:
    """Hold a learner's guess: either a chosen answer or a value.

    - ``choice``: the id of the chosen answer, None for a value.
    - ``value_ns``: the guessed value in ns at ``percentile``, None for a choice.
    """

    choice: str | None = None
    percentile: str | None = None
    value_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Hold a learner's answer to "who took it?". ``run``: the id of the run in question. ``choice``: the chosen cause,
    as ``KIND:NAME``. ``right``: None if the evidence could not decide."""

    run: str
    choice: str
    right: bool | None = None


@dataclass(frozen=True, slots=True)
class HuntOutcome:
    """Hold the outcome of a hunt. In a hunt, the learner has to find a hidden noise.

    - ``kind``: the hidden noise.
    - ``named``: True if the learner named this noise.
    - ``wrong_answers``: the number of wrong answers of the learner.
    - ``stopped``: True if the learner ended the noise before naming it.
    - ``cured``: True if the learner kept the noise away from the measured thread.
    - ``seed``: the random seed that chose the noise. None if the noise was chosen without a seed.
    """

    kind: str
    named: bool
    stopped: bool = False
    wrong_answers: int = 0
    cured: bool = False
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Weighed:
    """Hold the time that a hidden noise took in two runs, in ns a second. The times come from the runs' traces. A cure
    is a change with which the learner keeps the noise away. ``beside_ns``: the time in the run without a cure.
    ``now_ns``: the time in the run with a cure."""

    beside_ns: float
    now_ns: float


ALONE = "none"
"""The value of ``noise`` if the chapter is measured on this host as it is, without the lesson's own noise."""


@dataclass(frozen=True, slots=True)
class HandWork:
    """Hold writes that the learner makes by hand. They are kept here only if no journal has the old values.
    ``boot_id``: the boot in which the learner began. After a reboot, only writes of boot parameters are still in
    effect."""

    changes: tuple[Change, ...]
    boot_id: str | None = None


@dataclass(frozen=True, slots=True)
class ObservedProgram:
    """Hold the times of the learner's program during an observation, in ns, summed over its threads.

    - ``evidence``: ``trace`` or ``counters``. Without a trace, times that only a trace shows are None.
    - ``held_by``: the kind and the name of the cause that took most of ``waited_ns``, () if there is none.
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
    """Hold the learner's program in a chapter.

    - ``words``: the words of the program's command line.
    - ``change``: the change whose effect on the program is proven. The change is written as an argument of the command
      ``prove``.
    - ``observed``: the result of the observation; None if the program was not observed yet.
    """

    words: tuple[str, ...]
    change: str = "placement"
    observed: ObservedProgram | None = None


@dataclass(frozen=True, slots=True)
class ChapterProgress:
    """Hold the progress of a chapter.

    - ``step``: the step at which the learner continues.
    - ``runs``: measurement slot (``measure``, …) → run id.
    - ``marks``: ``curve`` and ``setting`` → True if the learner has earned this mark.
    - ``hints``: number of hints shown so far.
    - ``chosen_cpus``: thread → CPU, if the learner chose the CPUs.
    - ``seen``: the steps that the learner has left for the next step.
    - ``noise``: the kind of noise that the learner started for this chapter. ALONE if the host is measured as it is.
    - ``other_runs``: slot → run id. If ``runs`` were measured with the noise, ``other_runs`` were measured without it,
      and vice versa.
    - ``reboot_from``: the boot in which the chapter's boot parameters were written.
    - ``hunts``: finished hunts, newest last. Abandoned hunts are left out.
    - ``weighed``: id of a run with a cure → the time that the hidden noise took without and with the cure.
    - ``diagnosis``: the answer of the step ``diagnose``.
    - ``skipped``: id of the run about which the learner skipped the question of the step ``diagnose``.
    - ``recalled``: True if the chapter has asked its recall questions, even if the learner did not answer them.
    - ``by_hand``: the writes that the learner made by hand and has to restore.
    - ``program``: the learner's program, if the chapter is about one.
    """

    step: str = "look"
    prediction: Guess | None = None
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
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class RecallCard:
    """Hold when a recall question is asked again. ``box``: a number from 0 to 5. It is 0 if the question was never
    answered, 1 if the last answer was wrong. With a higher number, the question is asked again later. ``due``: the
    question is asked again once ``RecallBoxes.visits`` has reached this number."""

    box: int
    due: int


@dataclass(frozen=True, slots=True)
class RecallBoxes:
    """Hold a learner's recall questions.

    - ``visits``: the number of chapters that began with recall questions.
    - ``cards``: key of a question that was asked → its card. A key consists of the chapter's key and the question's
      id.
    """

    visits: int = 0
    cards: dict[str, RecallCard] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """Hold a learner's work on one host.

    - ``stack``: the applied settings as id=value, in order.
    - ``runs``: run ids, oldest first.
    - ``chapters``: chapter id → progress. For a chapter of another course than the built-in one, the key is COURSE/ID.
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
