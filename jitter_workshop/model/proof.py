"""A proof: what paired rounds with and without a change said, as stored in a session's ``proofs/ID.json``.

The runs are ordinary runs of the session (``Run.proof`` names the proof they were made for); the arithmetic is
``stats.verdicts``.
"""

from __future__ import annotations

from jitter_workshop.model.change import Change, LeftAlone
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.verdict import Judgement, Order

FORMAT_VERSION = 1
PLACEMENT = "placement"
"""The subject that is no tunable: threads placed (``auto``) against the scheduler left free (``none``)."""
ROUNDS = 10
MOST_ROUNDS = 1_000
SETTLE_S = 1.0
"""So much at the start of each run is not recorded: what a change sets off needs time to die away (DESIGN §6)."""


@dataclass(frozen=True, slots=True)
class ProofRound:
    """Ids of a round's two runs. ``order`` AB: the run without the change was made first."""

    order: Order
    without: str
    with_it: str


@dataclass(frozen=True, slots=True)
class ProofPlan:
    """What a proof would do, said before it begins. ``subject``: ``placement``, or ``ID`` and ``ID=VALUE`` with a space
    between. ``changes``: every write of one round's "with" side, made and given back once a round. ``workload``,
    ``preset`` and ``hot_cpus``: what is measured, and where. Times in s: ``run_s`` a run's blocks, ``total_s`` all of
    it by estimate. ``notices``: what a person should know before, a sentence each."""

    subject: str
    rounds: int
    workload: str
    preset: str
    hot_cpus: tuple[int, ...]
    changes: tuple[Change, ...]
    run_s: float
    total_s: float
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """``subject``, ``workload``, ``preset``, ``changes``: as in :class:`ProofPlan`. ``chapter``: where it was asked for
    from, "" for the command line. ``seed``: of the orders (``stats.rounds.draw_orders``). ``planned``: rounds that were
    wanted; ``rounds``: those that were finished, in order of time; ``complete``: both are the same.

    ``judgement``: None where no round was finished. ``restored``: nothing of the change stands any more;
    ``left_alone``: what could not be given back. ``stopped``: why it ended early, "" where it did not. ``notes``: one
    sentence each (rounds left out, runs disturbed). ``disturbed``: how many of its rounds' runs somebody else's tasks
    disturbed; they count. ``duration_s``: of each run, where a length was asked for instead of a preset, else None, as
    in proofs of older versions.
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
