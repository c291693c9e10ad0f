"""Define sessions and progress, as stored in ``session.json``."""

from __future__ import annotations

from jitter_workshop.model.record import dataclass, field

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Prediction:
    """Hold a learner's guess: ``value_ns`` at ``percentile`` for a mark, or the id of a choice."""

    choice: str | None = None
    percentile: str | None = None
    value_ns: int | None = None


@dataclass(frozen=True, slots=True)
class HuntOutcome:
    """Hold the end of a hunt. ``kind``: the hidden noise. ``named``: its learner named it, after ``wrong_answers``
    others. ``stopped``: the learner ended it before it was named. ``cured``: the learner kept it from the measured
    thread."""

    kind: str
    named: bool
    stopped: bool = False
    wrong_answers: int = 0
    cured: bool = False


@dataclass(frozen=True, slots=True)
class Weighed:
    """Hold the time that a hidden noise took, in ns a second, by the traces of two runs: one with the noise alone, one
    with a cure in place.
    """

    beside_ns: float
    now_ns: float


@dataclass(frozen=True, slots=True)
class ChapterProgress:
    """Hold the progress of a chapter. ``step``: the step to go on with. ``runs``: measurement slot (``measure``, …) →
    run id. ``marks``: ``curve`` and ``setting`` → True. ``hints``: hints shown so far. ``chosen_cpus``: thread → CPU,
    where the learner picked them. ``seen``: steps that were left forwards. ``noise``: the kind that the learner started
    for this chapter. ``reboot_from``: the boot in which its boot parameters were written. ``hunts``: finished hunts,
    newest last, without abandoned ones. ``weighed``: by the id of the run with a cure.
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


@dataclass(frozen=True, slots=True)
class Session:
    """Hold a learner's work on one host. ``stack``: ordered id=value that the session has applied. ``runs``: run ids,
    oldest first. ``chapters``: by id; those of a course other than the built-in one have the id COURSE/ID. ``course``:
    of the ``current_chapter``, "" = the built-in one. ``recorded``: it is about a recorded host; such a session is
    never selected automatically.
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
