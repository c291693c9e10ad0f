"""Define lessons as validated data (read from ``course.toml``, ``lesson.toml`` and ``lesson.md``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from jitter_workshop.model.picture import Mask
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.spec import FAULTING, PRESETS, LockUse, MemoryUse

DiagnosisAsks = Literal["most", "ends"]
"""The questions that the step ``diagnose`` can ask. ``most``: which cause took most time. ``ends``: which causes the
chapter's change can end."""

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
CONTROL = "control"
"""The slot of a chapter's control run (``Company.control``). It has no step of its own, and is kept with the runs
without the noise."""

FORMAT_VERSION = 1

LOOK_TOPICS = (
    "system",
    "cpus",
    "allowed",
    "caches",
    "cache-sizes",
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
    "huge-pages",
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
    "l3_id",
    "l3_all",
    "l3_part",
    "l3_rest",
    "resctrl",
)
"""Words in braces that a ``by_hand`` command and its ``why`` may hold. Values of the explained run and of the host
replace them."""

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
    "gaps",
    "residence",
    "work",
    "left",
)
"""Topics that a chapter's ``explain`` may put first.

- ``residence``, ``work``, ``left`` and ``frequency`` come before the causes of a traced run.
- ``omission`` also draws two curves of the first run: one of the times since each message was due, and one that was
  corrected afterwards.
- ``fan-out`` also shows how often a request to many hosts would meet the first run's tail.
- ``gaps`` also shows a table of rates of ``spin``'s gaps at the steps that measure, and at ``compare`` if the duties
  of the two runs differ.
"""

HostState = Literal["available", "good", "not_here"]
"""The states of a chapter's tunables on a host. ``available``: some can be improved. ``good``: all are good already.
``not_here``: the host does not have them."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Hold a run that a step asks for. ``slot``: the step, ``measure`` or ``again``.

    - ``noise``: the kind of noise during this run, None for no noise. A lesson can name one noise for all its runs
      (``company``). For this run alone, the lesson can name another noise, or no noise.
    - ``sched_priority``: the priority under SCHED_FIFO; 0 means SCHED_OTHER.
    - ``duration_s``: the length of the run in s. None means the length that ``preset`` gives.
    - ``duty``: the share of time in which ``spin`` samples, in percent.
    - ``memory``: how a measured thread uses memory in addition to its work (``model.spec.MemoryUse``).
    - ``lock``: the lock that the thread of ``wakeup`` takes after each wake-up (``model.spec.LockUse``).
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
    memory: MemoryUse = "none"
    lock: LockUse = "none"

    @property
    def length_s(self) -> float:
        """Return the length of the run in s, without its start and the pauses between its blocks."""
        preset = PRESETS[self.preset]
        return self.duration_s or preset.blocks * preset.block_ns / 1e9


def touches_before(measurements: Iterable[Measurement]) -> bool:
    """Return True if one of the runs uses new memory, and another one uses memory that the program touched before."""
    used = {one.memory for one in measurements}
    return "ready" in used and not used.isdisjoint(FAULTING)


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold one answer to a question of the step ``predict``. ``explanation``: the text that is shown with the result.

    A question has one of two kinds:

    - ``mark``: the learner guesses a value. Each answer covers a range of values, up to ``up_to_ns`` (None: no upper
      end). The range begins where the previous answer's range ends.
    - ``choice``: the learner chooses an answer. Each answer has an ``id`` and a ``text``.

    If runs decide which choice is right, the answers have one of these fields:

    - ``figure``: a figure (``stats.figures``), or None. One of the answers' figures falls by the largest factor from
      the first run to the second. The answer with this figure is right. The answer with None is right if no figure
      falls to half of its value. :mod:`jitter_workshop.course.guesses` says when two answers are right.
    - ``up_to``: the largest factor, ratio or value that this answer covers. None: no upper end.
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
class GuessTask:
    """Hold a question of the step ``predict``.

    - ``kind``: with ``mark``, the learner guesses the value at ``percentile`` on the curve of the step ``slot``. With
      ``choice``, the learner chooses one of ``answers``.
    - ``slot``: the step whose run decides the question. None: no run decides it.
    - ``by``: the value that decides which answer of a choice is right. None: the lesson itself names the right answer.

    The first run is the run of the step ``measure``. The second run is the run of the step ``again``. The values of
    ``by``:

    - ``falls``: the figure that falls by the largest factor from the first run to the second.
    - ``factor``: the factor by which the chapter's own figure changes.
    - ``ratio``: the value of ``figure`` in the second run divided by its value in the first run.
    - ``value``: the value of ``figure`` in the run of the step ``slot``, in the figure's unit.
    - ``program``: the time in which the threads of the observed program did not run. This time has three PARTS, and the
      largest part is the right answer. Each answer's id is one of PARTS.
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
    """Hold a question about this chapter. Later chapters ask the question when they begin.

    - ``right``: the index of the right answer.
    - ``explanation``: at most two sentences, shown with the right answer.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    right: int
    explanation: str


@dataclass(frozen=True, slots=True)
class MaskTask:
    """Hold a mask of CPUs that the learner writes in digits or bits at the step ``apply``. ``wanted``: the right mask.
    ``explanation``: at most two sentences, shown with the right answer; "" for none."""

    wanted: Mask
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class CommandByHand:
    """Hold a command that a user can type to see what a page describes. The workshop shows the command and never runs
    it.

    - ``check``: how the workshop finds out that the user ran the command. ``check`` is a tunable (``ID`` or
      ``ID=VALUE``), or a form in CHECK_FORMS. It is "" if nothing is checked.
    - ``reads``: True if the command only reads, so that nothing has to be checked.
    - ``unchecked``: the reason why nothing can show that the user ran the command; "" for none.
    """

    command: str
    why: str
    check: str = ""
    reads: bool = False
    unchecked: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """Hold a condition under which a learner earns a mark.

    - ``slot``: the mark needs a finished run of this step. None: it needs no run.
    - ``placement``: the placement that this run must have. None: any placement.
    - ``tunable``: the id of a tunable, for the mark ``setting``. The learner earns this mark only while the tunable's
      value is good. The value is good if the tunable's own check finds nothing to improve.
    - ``figure``, ``at_most``: a figure of the run (``stats.figures``), and its largest allowed value. A value up to
      this limit shows that the change took effect in the run.
    """

    mark: Literal["curve", "setting"]
    slot: StepName | None = None
    placement: str | None = None
    tunable: str | None = None
    figure: str | None = None
    at_most: float | None = None


@dataclass(frozen=True, slots=True)
class Shows:
    """Hold the figure (``stats.figures``) that shows the effect of a chapter's change, on any host.

    - ``at_least``: the least factor by which the figure changes from the first run to the second.
    - ``rises``: True if the figure rises by this factor, False if it falls.
    - ``settle_s``: seconds that the kernel needs after a restore until the old value is in effect everywhere.
    - ``counted``: another figure, which counts events. On an emulated machine, the counted figure replaces a time,
      because times mean nothing there. None if there is no such figure.
    - ``uncounted``: the reason why no counted figure shows this change; "" if there is a counted figure.
    - ``latency``: False if the change shows in this figure alone, because it ends too little time to move the latency.
    """

    figure: str
    at_least: float
    rises: bool = False
    settle_s: float = 0.0
    counted: Shows | None = None
    uncounted: str = ""
    latency: bool = True


@dataclass(frozen=True, slots=True)
class Company:
    """Hold the load that runs at the same time as a chapter's measurements. The chapter's change removes the effect of
    this load.

    - ``shown``: a description of the load for the learner. It is "" in a lesson that names the noise in each
      measurement.
    - ``if_fixed``: the load on a host whose kernel does not move the interrupts of ``noise``; None for no other load.
    - ``control``: the label of the control run; "" for none. It is the chapter's first run once more, without the
      load, right after the second run.
    - ``interrupts``: the names of the interrupts of the device from which the load reads on this host, as traces have
      them; () if the load reads from no device, or if they are not known.
    - ``movable``: the number of the first of these interrupts; None if this interrupt cannot be moved.
    """

    noise: str
    shown: str = ""
    if_fixed: Company | None = None
    control: str = ""
    interrupts: tuple[str, ...] = ()
    movable: int | None = None


@dataclass(frozen=True, slots=True)
class PageWhen:
    """Hold extra text for a step's page. The text is shown on hosts whose tunables are in the state ``when``."""

    step: StepName
    when: HostState
    text: str


@dataclass(frozen=True, slots=True)
class Chapter:
    """Hold one chapter of a course.

    * ``pages``: step → its page in Markdown.
    * ``changes``: what the chapter changes: ``nothing``, ``placement`` or ``tunables``.
    * ``hot_cpus``: the least number of hot CPUs with which the chapter works.
    * ``look``: the topics of ``LOOK_TOPICS`` for which the chapter shows this host's state.
    * ``learnt``: sentences to remember.
    * ``tunables``: the tunables that the chapter sets, as ``ID`` or ``ID=VALUE``.
    * ``recording``: the recorded host that is shown if this host has none of the tunables.
    * ``recording_after``: a recording of the same host, made after the change.
    * ``reboot``: True if the tunables take effect at the next boot.
    * ``treats``: ids of tunables that the chapter explains but does not set.
    * ``shows``: the effect of the chapter's change, None if the chapter changes nothing.
    * ``recall``: questions about this chapter that later chapters ask.
    * ``company``: the load during the chapter's runs, None for no load.
    * ``without_company``: the reason why a chapter with a change has no such load; "" if no reason is stated.
    * ``suspects``: the kinds of noise from which a hunt chooses; () means all kinds. In a hunt, the learner has to find
      a hidden noise.
    * ``mask``: a mask that the learner writes before the plan is applied, None for no mask.
    * ``program``: True if the chapter is about the learner's own program. The step ``measure`` then observes the
      program. The step ``compare`` proves how a change affects the program.
    * ``asks``: what the step ``diagnose`` asks about the causes of the first run.
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
    prediction: GuessTask | None
    hints: tuple[str, ...]
    by_hand: tuple[CommandByHand, ...]
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
    without_company: str = ""
    asks: DiagnosisAsks = "most"

    @property
    def judged_percentile(self) -> str | None:
        """Return the percentile by which the chapter judges its runs, such as ``50``.

        It is the percentile of the guess, else the chapter's figure or the figure of the guess, if that figure is a
        percentile. Return None if the chapter names no percentile. The workload's usual figure then judges the
        runs.
        """
        task = self.prediction
        named = (
            task.percentile if task is not None else None,
            self.shows.figure if self.shows is not None else None,
            task.figure if task is not None else None,
        )
        return next((name for name in named if name is not None and name[0].isdigit()), None)

    @property
    def accompanied(self) -> bool:
        """Return True if the load ``company`` runs during each measurement of the chapter, before and after the
        change."""
        return self.company is not None and all(one.noise == self.company.noise for one in self.measurements)

    def interrupts_of_load(self, noise: str | None) -> tuple[str, ...]:
        """Return the names of the interrupts that the chapter's own load brings to a run; () for none. ``noise``: the
        noise of the run."""
        return self.company.interrupts if self.company is not None and noise == self.company.noise else ()

    @property
    def measures(self) -> bool:
        """Return True if the chapter has the mark ``curve``. A chapter has this mark if it makes measurements or
        observes a program."""
        return self.program or bool(self.measurements)

    @property
    def sets(self) -> bool:
        """Return True if the chapter has the mark ``setting``. A chapter has this mark if it changes something, or if
        it proves a change with the learner's program."""
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
