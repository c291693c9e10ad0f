"""Define lessons as validated data (read from ``course.toml``, ``lesson.toml`` and ``lesson.md``)."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.picture import Mask
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.spec import Memory

StepName = Literal["look", "predict", "measure", "diagnose", "plan", "apply", "again", "compare", "explain"]
WRITTEN_STEPS: tuple[StepName, ...] = (
    "look",
    "predict",
    "measure",
    "diagnose",
    "plan",
    "apply",
    "again",
    "compare",
    "explain",
)
"""The steps that a lesson's files may name, in order. Older lessons and sessions have a step ``plan`` before ``apply``.
Today ``apply`` shows the plan itself, so ``plan`` is read as a part of ``apply``."""

STEPS: tuple[StepName, ...] = tuple(step for step in WRITTEN_STEPS if step != "plan")
"""The steps of a chapter, in order. A chapter may leave some of them out."""

SLOTS: tuple[StepName, ...] = ("measure", "again")
"""The steps that measure. One run is kept for each of these steps."""
TREATED = "treated"
"""The slot of a hunt's third run, made after the learner's cure. It has no step of its own."""

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
"""Topics that a chapter's ``look`` may name; each is read from the host by ``flow.host_ops.hostview``."""

PLACEHOLDERS = (
    "producer_tid",
    "accumulator_tid",
    "journaller_tid",
    "tids",
    "producer_cpu",
    "accumulator_cpu",
    "cpu",
    "cpus",
    "housekeeping",
)
"""Words in braces that a ``by_hand`` command and its ``why`` may hold. Values of the explained run replace them."""

OPEN = 3
"""The number of a step's by-hand commands that are shown at a time. The others are hidden until the learner opens them.
"""

CHECK_FORMS = ("affinity", "running", "file", "gone", "holds")
"""Forms of a ``by_hand`` check besides a tunable: ``affinity:CPUS``, ``running:WORDS``, ``file:PATH``, ``gone:PATH``
and ``holds:PATH=LINE``."""

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
    "fan-out",
    "residence",
    "work",
    "left",
)
"""Topics that a chapter's ``explain`` may put first.

- ``residence``, ``work``, ``left`` and ``frequency`` come before the causes of a traced run.
- ``omission`` also draws two curves of the first run: one of the times since each message was due, and one that was
  corrected afterwards.
- ``fan-out`` also shows how often a request to many hosts would meet the first run's tail.
"""

HostState = Literal["available", "good", "not_here"]
"""The states of a chapter's tunables on a host. ``available``: some can be improved. ``good``: all are good already.
``not_here``: the host does not have them."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Hold a run that a step asks for. ``slot`` is the step (``measure`` or ``again``).

    - ``noise``: the kind of noise beside the run, None for no noise. It is either the chapter's ``company``, which runs
      beside all of the chapter's runs, or a noise for this run alone.
    - ``sched_priority``: priority under SCHED_FIFO, 0 = SCHED_OTHER.
    - ``duration_s``: the length of the run in s, instead of the preset's.
    - ``duty``: share of time in which ``spin`` samples, in percent.
    - ``memory``: what a measured thread does with memory in addition to its work (``model.spec``).
    """

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
    memory: Memory = "none"


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold one answer to a prediction. ``explanation`` is shown after the measurement.

    If the learner guesses a value (kind ``mark``), each answer stands for a range of values: from the end of the
    previous answer's range up to ``up_to_ns`` (None = no upper end). An answer to a choice has an ``id`` and a
    ``text``. Two more fields are for a choice that runs decide:

    - ``figure``: the answer is right if this figure (``stats.figures``) falls most from the first run to the second;
      None = it is right if no figure falls.
    - ``up_to``: the largest factor, ratio or value that this answer covers, None = all larger ones.
    """

    id: str
    text: str
    explanation: str
    right: bool | None = None
    up_to_ns: int | None = None
    figure: str | None = None
    up_to: float | None = None


By = Literal["falls", "factor", "ratio", "value", "program"]
BOUNDED: tuple[By, ...] = ("factor", "ratio", "value")
"""The kinds of choices whose answers are ranges, each up to the answer's ``up_to``."""
PARTS = ("waited", "slept", "blocked")
"""The parts of the time in which a thread does not run (``model.program``). A guess that is decided by ``program``
names one of these parts."""
OF_A_FIGURE: tuple[By, ...] = ("ratio", "value")
"""The kinds of choices that name a figure of their own, instead of the chapter's figure."""


@dataclass(frozen=True, slots=True)
class PredictionTask:
    """Hold a question of the step ``predict``. ``kind``: with ``mark`` the learner guesses the value at ``percentile``
    on the curve of ``slot``, with ``choice`` the learner chooses an answer. A choice whose ``slot`` is None needs no
    run: the explanation follows the learner's answer at once. ``by`` says what decides a choice:

    - ``falls``: the figure that falls most from ``measure`` to ``again``.
    - ``factor``: the factor by which the chapter's own figure changes.
    - ``ratio``: the value of ``figure`` in ``again`` divided by its value in ``measure``.
    - ``value``: the value of ``figure`` in the slot's run, in the figure's unit.
    - ``program``: the time in which the observed program's threads did not run is divided into the three PARTS, and the
      largest part is the right answer. Each answer's id is one of PARTS. No slot is needed.
    - None: the lesson names the right answer.
    """

    kind: Literal["mark", "choice"]
    question: str
    slot: StepName | None
    answers: tuple[Answer, ...]
    percentile: str | None = None
    by: By | None = None
    figure: str | None = None


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """Hold a question about a chapter, which later chapters ask at their start. ``right``: the index of the right
    answer. ``explanation``: at most two sentences, shown with the right answer."""

    id: str
    question: str
    answers: tuple[str, ...]
    right: int
    explanation: str


@dataclass(frozen=True, slots=True)
class MaskTask:
    """Hold a mask of CPUs that the learner writes bit by bit at the step ``apply``. ``wanted``: the right mask.
    ``explanation``: at most two sentences, shown with the right answer; "" for none."""

    wanted: Mask
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class ByHand:
    """Hold a command by which a user can see the evidence that a page shows. The workshop shows the command and never
    runs it.

    - ``check``: the sign that the user ran the command, "" for no check. It is a tunable as ``ID`` or ``ID=VALUE``, or
      one of CHECK_FORMS.
    - ``reads``: True if the command only reads, so that there is nothing to check.
    - ``unchecked``: the reason why no sign shows that the user ran the command; "" for none.
    """

    command: str
    why: str
    check: str = ""
    reads: bool = False
    unchecked: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """Hold the condition for a mark.

    The mark ``curve`` needs a finished run in ``slot`` with ``placement`` (None = any). The mark ``setting`` needs an
    assessment of ``tunable`` (an id) that finds nothing to improve. ``figure``: a figure of the run (``stats.figures``)
    that must not be above ``at_most``; this shows that the change took effect in this run.
    """

    mark: Literal["curve", "setting"]
    slot: StepName | None = None
    placement: str | None = None
    tunable: str | None = None
    figure: str | None = None
    at_most: float | None = None


@dataclass(frozen=True, slots=True)
class Shows:
    """Hold the figure (``stats.figures``) that the chapter's change moves on any host. From the first run to the second
    it falls by a factor of ``at_least`` or more; with ``rises`` it rises by this factor. ``settle_s``: seconds that the
    kernel needs after a restore before the old value takes effect everywhere.

    If the figure is a time, it means nothing on an emulated machine. There ``counted`` takes its place: a figure that
    is a count of events, with the factor by which it moves. ``uncounted``: the reason why no counted figure shows this
    change; "" if ``counted`` is given, or if the figure itself is counted.
    """

    figure: str
    at_least: float
    rises: bool = False
    settle_s: float = 0.0
    counted: Shows | None = None
    uncounted: str = ""


@dataclass(frozen=True, slots=True)
class Company:
    """Hold the load that runs beside a chapter's measurements; the chapter's change is the cure for it. ``shown``:
    words for the learner on what the load is. It is "" in a lesson that names the noise in each measurement."""

    noise: str
    shown: str = ""


@dataclass(frozen=True, slots=True)
class PageWhen:
    """Hold extra text for a step's page, shown on hosts whose tunables are in the state ``when``."""

    step: StepName
    when: HostState
    text: str


@dataclass(frozen=True, slots=True)
class Chapter:
    """Hold one chapter of a course.

    * ``pages``: step → its page in Markdown.
    * ``changes``: what the chapter changes: ``nothing``, ``placement`` or ``tunables``.
    * ``hot_cpus``: the least number of hot CPUs.
    * ``look``: topics of ``LOOK_TOPICS``.
    * ``learnt``: what to remember, one sentence each.
    * ``tunables``: the tunables that the chapter sets, as ``ID`` or ``ID=VALUE``.
    * ``recording``: the recorded host on which the chapter is taught if this host has none of the tunables.
    * ``recording_after``: that recorded host after the change.
    * ``reboot``: True if the tunables take effect with the next boot.
    * ``treats``: ids of tunables that the chapter explains but does not set.
    * ``shows``: the effect of the chapter's change, None if the chapter changes nothing.
    * ``recall``: questions about this chapter, which later chapters ask.
    * ``company``: the load beside the chapter's runs, None for no load.
    * ``suspects``: in a hunt, the kinds of noise from which the hidden one is drawn; () for all kinds.
    * ``mask``: a mask that the learner writes before the plan is applied, None for no mask.
    * ``program``: True if the chapter observes the learner's own program at ``measure``, and at ``compare`` proves the
      effect of a change on this program.
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
    shows: Shows | None = None
    recall: tuple[RecallQuestion, ...] = ()
    company: Company | None = None
    suspects: tuple[str, ...] = ()
    mask: MaskTask | None = None
    program: bool = False

    @property
    def accompanied(self) -> bool:
        """Return True if the chapter's company runs beside each of its measurements, before the change and after it."""
        return self.company is not None and all(one.noise == self.company.noise for one in self.measurements)

    @property
    def measures(self) -> bool:
        """Return True if the chapter has the mark ``curve``, that is, if it makes measurements or observes a
        program."""
        return self.program or bool(self.measurements)

    @property
    def sets(self) -> bool:
        """Return True if the chapter has the mark ``setting``, because it changes something or proves a change."""
        return self.program or self.changes != "nothing"

    def measurement(self, slot: str) -> Measurement | None:
        return next((m for m in self.measurements if m.slot == slot), None)


@dataclass(frozen=True, slots=True)
class Course:
    """Hold a course: its chapters in teaching order."""

    id: str
    title: str
    chapters: tuple[Chapter, ...]
    source: str = ""
    notes: tuple[str, ...] = field(default=())

    def chapter(self, ident: str) -> Chapter | None:
        return next((c for c in self.chapters if c.id == ident), None)
