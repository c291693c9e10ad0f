"""Define a screening: pairs of runs that show which of many settings change one figure. A session stores it in
``screenings/ID.json``.

A pair of runs tests a set of settings. Each setting of the set is on in one of the two runs, and off in the other. So
one pair tests the whole set. The first pairs test all settings, and show which few settings to choose. The later pairs,
which are called proofs, test only the chosen settings (``stats.screening`` has the design). The file has the figures
and decisions. The result is not stored, but computed from them.
"""

from __future__ import annotations

from jitter_workshop.model.change import Change, LeftAlone, Skipped
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.verdict import Side, VerdictWord

FORMAT_VERSION = 1
PROOFS = 32
"""The usual number of pairs in which the chosen settings are proven."""


@dataclass(frozen=True, slots=True)
class ScreenedRun:
    """Hold one run. ``on``: the settings that were on, as indices into the screening's ``settings``."""

    on: tuple[int, ...]
    side: Side


@dataclass(frozen=True, slots=True)
class ScreenedPair:
    """Hold two runs that were made right after each other, in order of time. Each setting is on in one of them."""

    first: ScreenedRun
    second: ScreenedRun


@dataclass(frozen=True, slots=True)
class ScreeningPlan:
    """Hold what a screening would do, as the user sees it before the screening begins.

    - ``settings``: each element is one or more tunables as ``ID`` or ``ID=VALUE``, separated by blanks. The tunables of
      one element are switched together.
    - ``pairs``: number of pairs of runs by which settings are chosen. 0 if the settings are so few that all are proven.
    - ``most``: the largest number of settings that are proven.
    - ``proofs``: number of pairs of runs that prove the chosen settings.
    - ``changes``, ``workload``, ``preset``, ``hot_cpus``, ``run_s``, ``total_s``, ``notices``, ``command``, ``metric``:
      as in a proof's plan (``model.proof.ProofPlan``).
    - ``left_out``: settings that are not screened, with the reason.
    - ``done``: number of runs that were made before the screening was resumed.
    """

    settings: tuple[str, ...]
    pairs: int
    most: int
    proofs: int
    workload: str
    preset: str
    hot_cpus: tuple[int, ...]
    changes: tuple[Change, ...]
    run_s: float
    total_s: float
    left_out: tuple[Skipped, ...] = ()
    notices: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    metric: str = ""
    done: int = 0

    @property
    def budget_runs(self) -> int:
        """Return the number of runs that the whole screening would make."""
        return 2 * (self.pairs + self.proofs)


@dataclass(frozen=True, slots=True)
class Screening:
    """Hold a screening.

    - ``settings``, ``workload``, ``preset``, ``hot_cpus``, ``changes``, ``command``, ``metric``: as in
      :class:`ScreeningPlan`.
    - ``left_out``: settings that are in no run, with the reason. They include settings that the host refused in a
      trial.
    - ``planned_pairs``: number of pairs by which settings are chosen.
    - ``planned_proofs``: number of pairs that prove the chosen settings.
    - ``seed``: the random seed for the design, and for the order of the runs.
    - ``pairs``: the measured pairs by which settings are chosen. ``proofs``: the measured pairs that prove the chosen
      settings.
    - ``chosen``: the numbers of the settings to prove; () before the choice.
    - ``measure``: the figure that is judged, "" before it is chosen.
    - ``sittings``: the times at which the screening was begun or resumed.
    - ``ended_at``: "" while the screening is under way, or if it was killed.
    - ``stopped``: the reason why the screening ended early.
    - ``restored``, ``left_alone``, ``notes``, ``disturbed``, ``duration_s``, ``unit``, ``options``: as in a proof.
    - ``asked``: the words of the command line that resumes the screening.
    """

    format_version: int
    id: str
    settings: tuple[str, ...]
    workload: str
    preset: str
    hot_cpus: tuple[int, ...]
    seed: int
    planned_pairs: int
    planned_proofs: int
    most: int
    sittings: tuple[str, ...]
    ended_at: str
    changes: tuple[Change, ...]
    pairs: tuple[ScreenedPair, ...]
    proofs: tuple[ScreenedPair, ...]
    chosen: tuple[int, ...]
    measure: str
    restored: bool
    left_out: tuple[Skipped, ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()
    stopped: str = ""
    notes: tuple[str, ...] = ()
    disturbed: int = 0
    duration_s: float | None = None
    command: tuple[str, ...] = ()
    metric: str = ""
    unit: str = ""
    options: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()

    @property
    def started_at(self) -> str:
        return self.sittings[0] if self.sittings else ""

    @property
    def complete(self) -> bool:
        """Return True if all pairs were made."""
        return len(self.pairs) == self.planned_pairs and len(self.proofs) == self.planned_proofs

    @property
    def runs(self) -> int:
        """Return the number of runs of the screening that count for its result."""
        return 2 * (len(self.pairs) + len(self.proofs))

    @property
    def budget_runs(self) -> int:
        """Return the number of runs that the whole screening would make."""
        return 2 * (self.planned_pairs + self.planned_proofs)

    @property
    def screened(self) -> tuple[int, ...]:
        """Return the settings that took part, as indices into ``settings``."""
        out = {one.tunable for one in self.left_out}
        return tuple(n for n, setting in enumerate(self.settings) if setting not in out)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Hold one setting's result.

    - ``ratio``: the setting's main effect, that is, the figure with the setting divided by the figure without it.
    - ``low``, ``high``: the 95 % interval of the ratio, not adjusted for the number of settings. ``high`` is None if
      there is no upper bound.
    - ``chosen``: True if the setting was chosen for the proofs. Its figures then come from the proofs, otherwise from
      the earlier pairs.
    - ``p_adjusted``: the p value, adjusted for the number of proven settings; 1.0 for a setting that is not proven.
    - ``words``: the result in words.
    """

    setting: str
    ratio: float | None
    low: float
    high: float | None
    chosen: bool
    p_adjusted: float
    verdict: VerdictWord
    words: str


@dataclass(frozen=True, slots=True)
class ScreeningResult:
    """Hold what a screening found. ``ranked``: all settings, those that matter first. ``text``: the result in one or
    two sentences."""

    measure: str
    name: str
    ranked: tuple[Ranked, ...]
    text: str
