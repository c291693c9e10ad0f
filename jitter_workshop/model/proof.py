"""Define a proof: the result of paired rounds with and without a change, as stored in a session's ``proofs/ID.json``.

The runs are ordinary runs of the session (``Run.proof`` names their proof). The module ``stats.verdicts`` makes the
calculations.
"""

from __future__ import annotations

from jitter_workshop.model.change import Change, LeftAlone
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.verdict import Judgement, Order

FORMAT_VERSION = 1
PLACEMENT = "placement"
"""The subject of a proof that compares placed threads (``auto``) with threads left to the scheduler (``none``). It
takes the place of a tunable's id."""
COMMAND = "command"
"""The workload of a proof whose runs are those of the user's own command."""
STOPPED_BY = "stopped by "
"""The beginning of ``Proof.stopped`` if the user stopped the proof."""
ROUNDS = 10
MOST_ROUNDS = 1_000
SETTLE_S = 1.0
"""Seconds at the start of each run that are not recorded, because making a change has effects that last for a
moment."""


@dataclass(frozen=True, slots=True)
class ProofRound:
    """Hold the ids of the two runs of a round.

    - ``order``: AB if the run without the change was made first, else BA.
    - ``figures``: the figures of a user's command, without and with the change. None for other runs. A command's runs
      are not stored, so they have no ids.
    """

    order: Order
    without: str
    with_it: str
    figures: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class ProofPlan:
    """Hold what a proof would do, as the user sees it before the proof begins.

    - ``subject``: ``placement``, or one or more tunables separated by blanks, each as ``ID`` or ``ID=VALUE``.
    - ``changes``: all writes that make the change. In each round, these writes are made once and restored once.
    - ``workload``, ``preset``, ``hot_cpus``: the measurement and its CPUs.
    - ``run_s``: length in s of one run's blocks. For a command, the time of one trial.
    - ``total_s``: estimated length in s of the proof.
    - ``notices``: sentences to read before the proof begins.
    - ``command``: the words of a user's command; () for runs of this tool's own benchmark.
    - ``metric``: what is compared between the command's runs, such as the wall time; "" without a command.
    """

    subject: str
    rounds: int
    workload: str
    preset: str
    hot_cpus: tuple[int, ...]
    changes: tuple[Change, ...]
    run_s: float
    total_s: float
    notices: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    metric: str = ""


@dataclass(frozen=True, slots=True)
class Proof:
    """Hold a proof, its rounds and its result.

    - ``subject``, ``workload``, ``preset``, ``changes``: as in :class:`ProofPlan`.
    - ``chapter``: the chapter that asked for the proof, "" for the command line.
    - ``seed``: the random seed for the order in each round (``stats.rounds.draw_orders``).
    - ``planned``: number of planned rounds.
    - ``rounds``: the finished rounds, in order of time.
    - ``complete``: True if all planned rounds were finished.
    - ``judgement``: None if no round was finished.
    - ``restored``: True if the whole change was restored.
    - ``left_alone``: settings that could not be restored.
    - ``stopped``: the reason why the proof ended early, "" if it did not.
    - ``notes``: one sentence each, such as on rounds that were left out.
    - ``disturbed``: number of runs that other tasks disturbed. These runs still count.
    - ``duration_s``: the length of each run in s, if the user chose a length. None if the preset gave the length, or if
      an older version of this tool made the proof.
    - ``command``: the words of a user's command; () for runs of this tool's own benchmark.
    - ``metric``, ``unit``: the measure that is compared, and its unit (``CommandFigure``).
    - ``options``: the options of ``prove`` that repeat this measurement.
    """

    format_version: int
    id: str
    subject: str
    chapter: str
    workload: str
    preset: str
    seed: int
    planned: int
    started_at: str
    ended_at: str
    changes: tuple[Change, ...]
    rounds: tuple[ProofRound, ...]
    judgement: Judgement | None
    restored: bool
    left_alone: tuple[LeftAlone, ...] = ()
    complete: bool = True
    stopped: str = ""
    notes: tuple[str, ...] = ()
    disturbed: int = 0
    duration_s: float | None = None
    command: tuple[str, ...] = ()
    metric: str = ""
    unit: str = ""
    options: tuple[str, ...] = ()
