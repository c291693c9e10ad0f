"""Lessons as data (what ``course.toml``, ``lesson.toml`` and ``lesson.md`` say), already validated."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.spec import NOISE_KINDS as NOISE_KINDS

StepName = Literal["look", "predict", "measure", "plan", "apply", "again", "compare", "explain"]
STEPS: tuple[StepName, ...] = ("look", "predict", "measure", "plan", "apply", "again", "compare", "explain")
"""The loop of every chapter (DESIGN §1), in order. A chapter may leave steps out."""

TREATED = "treated"
"""The slot of a hunt's third run: with what its learner did against the noise. It has no step of its own."""

FORMAT_VERSION = 1

LOOK_TOPICS = (
    "system",
    "cpus",
    "allowed",
    "caches",
    "clock",
    "frequency",
    "idle",
    "steal",
    "load",
    "tick",
    "limit",
    "isolation",
    "neighbours",
    "memlock",
    "realtime",
)
"""What a chapter's ``look`` may name; each is read from the host by ``flow.host_ops.hostview``."""

PLACEHOLDERS = ("producer_tid", "accumulator_tid", "journaller_tid", "tids", "producer_cpu", "accumulator_cpu", "cpus")
"""Words in braces that a ``by_hand`` command and its ``why`` may hold; filled in from the run that is explained."""

EVIDENCE = (
    "interrupts",
    "softirqs",
    "tick",
    "switches",
    "faults",
    "temperature",
    "frequency",
    "steal",
    "stalls",
    "omission",
    "residence",
    "work",
    "left",
)
"""What a chapter's ``explain`` may put first; ``residence``, ``work``, ``left`` and ``frequency`` are what the causes
of a traced run begin with there. ``omission`` draws the first run's curve from the due time, too, and the correction
after the fact."""

HostState = Literal["available", "good", "not_here"]
"""What a host is to a chapter's tunables: some can be improved, all are good already, or it has none of them."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A run that a step asks for. ``slot`` is the step (``measure`` or ``again``). ``noise``: a noise kind or None.
    ``sched_priority``: of SCHED_FIFO, 0 for none. ``duration_s``: instead of the preset's length. ``duty``: share of
    time that ``spin`` samples, in percent."""

    slot: StepName
    label: str
    workload: str
    placement: str
    preset: str
    noise: str | None = None
    sched_priority: int = 0
    pacing: str | None = None
    duration_s: float | None = None
    duty: int = 100


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to a prediction. A mark's answer covers values up to ``up_to_ns`` (None = the rest); a choice's answer
    has an ``id`` and ``text``. ``explanation`` is shown after the measurement."""

    id: str
    text: str
    explanation: str
    right: bool | None = None
    up_to_ns: int | None = None


@dataclass(frozen=True, slots=True)
class PredictionTask:
    """What the learner predicts: ``kind`` mark (a value at ``percentile`` on ``slot``'s curve) or choice, whose
    ``slot`` is None where no run decides it: the answers are then explained as soon as one is given."""

    kind: Literal["mark", "choice"]
    question: str
    slot: StepName | None
    answers: tuple[Answer, ...]
    percentile: str | None = None


@dataclass(frozen=True, slots=True)
class ByHand:
    """A command that shows the same evidence by hand. Shown, never run."""

    command: str
    why: str


@dataclass(frozen=True, slots=True)
class Check:
    """A mark's condition: a finished run in ``slot`` with ``placement`` (None = any), or for ``setting`` the id of a
    ``tunable`` whose own assessment says that nothing is to improve."""

    mark: Literal["curve", "setting"]
    slot: StepName | None = None
    placement: str | None = None
    tunable: str | None = None


@dataclass(frozen=True, slots=True)
class PageWhen:
    """What a step's page says besides, on hosts that are ``when`` to the chapter's tunables."""

    step: StepName
    when: HostState
    text: str


@dataclass(frozen=True, slots=True)
class Chapter:
    """One chapter. ``pages``: step → Markdown. ``changes``: nothing | placement | tunables. ``hot_cpus``: how many CPUs
    it needs at least. ``look``: topics of ``LOOK_TOPICS``. ``learnt``: what to take along, a sentence each.
    ``tunables``: ``ID`` or ``ID=VALUE``. ``recording``: the recorded host on which it is taught where this one has none
    of them, and ``recording_after`` the same after the change. ``reboot``: its tunables take effect with the next boot.
    ``treats``: ids of tunables that its pages speak of and that it does not set.
    """

    id: str
    title: str
    summary: str
    minutes: int
    hot_cpus: int
    changes: Literal["nothing", "placement", "tunables"]
    steps: tuple[StepName, ...]
    pages: dict[str, str]
    measurements: tuple[Measurement, ...]
    prediction: PredictionTask | None
    hints: tuple[str, ...]
    by_hand: tuple[ByHand, ...]
    checks: tuple[Check, ...]
    evidence: tuple[str, ...] = ()
    tunables: tuple[str, ...] = ()
    look: tuple[str, ...] = ()
    learnt: tuple[str, ...] = ()
    recording: str = ""
    recording_after: str = ""
    reboot: bool = False
    page_when: tuple[PageWhen, ...] = ()
    treats: tuple[str, ...] = ()
    hunt: bool = False

    def measurement(self, slot: str) -> Measurement | None:
        return next((m for m in self.measurements if m.slot == slot), None)


@dataclass(frozen=True, slots=True)
class Course:
    """Chapters in teaching order."""

    id: str
    title: str
    chapters: tuple[Chapter, ...]
    source: str = ""
    notes: tuple[str, ...] = field(default=())

    def chapter(self, ident: str) -> Chapter | None:
        return next((c for c in self.chapters if c.id == ident), None)
