"""Check a host for ``status`` and ``plan``: choose its hot CPUs, make the checks, and list the writes of a plan.

For its page, the workshop adds an explanation and a chapter to each check. Proofs and reports use this module to check
that this host is the host of their session.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from jitter_workshop.flow.host_ops.hotcpus import HotCpus, choose_hot
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import host_line, summarise_host
from jitter_workshop.model.change import Plan, Wanted
from jitter_workshop.model.host import HostSummary
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.status import Assessment, HostEvent, Snapshot
from jitter_workshop.model.text import ID, clean
from jitter_workshop.tuning import journal, status
from jitter_workshop.tuning.base import Tunable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables import registry

if TYPE_CHECKING:
    from pathlib import Path

    from jitter_workshop.model.course import Course
    from jitter_workshop.model.run import Run
    from jitter_workshop.model.session import Session
    from jitter_workshop.report.check_words import Explained


@dataclass(frozen=True, slots=True)
class StatusHead:
    """Hold the facts that ``status`` shows above the list of checks.

    - ``hot``, ``housekeeping``: lists of CPUs.
    - ``siblings``: the siblings of the hot CPUs, which are also kept free of other work.
    - ``hot_siblings``: the hot CPUs that stay idle, because the first thread of their core is used.
    - ``why_hot``: the reason for the choice of the hot CPUs.
    - ``note``: a problem with the hot CPUs, or "".
    """

    recorded: bool
    guest: bool
    hot: str
    housekeeping: str
    why_hot: str
    note: str = ""
    siblings: str = ""
    hot_siblings: str = ""


@dataclass(frozen=True, slots=True)
class HostStatus:
    """Hold the checks of one host: ``checks[i]`` is the assessment of ``tunables[i]`` on ``host``."""

    host: Host
    hot: HotCpus
    tunables: tuple[Tunable, ...]
    checks: tuple[Assessment, ...]

    @property
    def summary(self) -> dict[str, int]:
        return status.count_states(self.checks)

    @property
    def head(self) -> StatusHead:
        return StatusHead(
            recorded=self.host.root.recorded,
            guest=self.host.guest,
            hot=str(self.hot.cpus),
            housekeeping=str(self.host.housekeeping),
            why_hot=self.hot.why,
            note=self.hot.note,
            siblings=str(self.host.clear_siblings),
            hot_siblings=str(self.host.hot_siblings),
        )

    def summarise(self) -> HostSummary:
        """Return the summary of the host that is also stored with each run."""
        return summarise_host(self.host.root, self.host.topology)

    @property
    def line(self) -> str:
        """Return one line with the host's name, kernel and summary."""
        summary = self.summarise()
        return f"{summary.name} · Linux {summary.kernel} · {host_line(summary)}"

    def groups(self) -> list[tuple[str, list[Assessment]]]:
        """Return (heading, checks) for each family of checks, in the order of the registry."""
        found: dict[str, list[Assessment]] = {}
        for tunable, check in zip(self.tunables, self.checks, strict=True):
            found.setdefault(registry.tunable_heading(tunable), []).append(check)
        return list(found.items())


def read_checks(root: Path | str, ids: Sequence[str] = (), cpus: str | None = None) -> HostStatus:
    """Return the checks of a host, in the order of the registry. ``ids``: make only these checks, () for all. ``cpus``:
    a list of hot CPUs, None for the usual choice. Raise UsageError for an unknown id or an invalid list. Raise
    HostError if the host has no such CPU, or shows no CPU."""
    chosen = tuple(registry.find_tunable(name) for name in ids)
    place = HostRoot(root)
    topology = read_topology(place)
    hot = choose_hot(place, cpus, topology)
    host = Host(place, hot.cpus, topology)
    asked = tuple(t for t in registry.tunables() if t in chosen) if chosen else registry.tunables()
    return HostStatus(host, hot, asked, status.assess_all(host, asked, journal.active(place)))


@dataclass(frozen=True, slots=True)
class HostPlan:
    """Hold a plan, the wanted tunables, the host and the hot CPUs."""

    plan: Plan
    wanted: tuple[Wanted, ...]
    host: Host
    hot: HotCpus

    @property
    def words(self) -> tuple[str, ...]:
        """Return the wanted tunables as ``ID`` or ``ID=VALUE``."""
        return tuple(map(str, self.wanted))


def draw_up(root: Path, wanted: Sequence[Wanted] = (), cpus: str | None = None) -> HostPlan:
    """Return the plan for the wanted tunables; nothing is written. ``wanted``: () for all tunables that ``status``
    would improve at run time. Raise the errors of :func:`read_checks`, and UsageError for a value that a tunable does
    not accept."""
    from jitter_workshop.tuning.planning import plan_changes, wanted_by_status

    place = HostRoot(root)
    topology = read_topology(place)
    hot = choose_hot(place, cpus, topology)
    host = Host(place, hot.cpus, topology)
    chosen = tuple(wanted) or wanted_by_status(host)
    return HostPlan(plan_changes(host, chosen), chosen, host, hot)


@dataclass(frozen=True, slots=True)
class Finding:
    """Hold one check with its explanation and its chapter.

    - ``group``: the heading of the check's family.
    - ``chapter_id``, ``chapter``: id and title of the first chapter that treats the tunable; "" if there is none.
    - ``why_no_chapter``: a sentence on why no chapter treats it, or "".
    """

    check: Assessment
    group: str
    explained: Explained
    chapter_id: str
    chapter: str
    why_no_chapter: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """Hold all checks of a host in the order of ``status``. ``summary``: the number of checks in each state."""

    checks: tuple[Finding, ...]
    head: StatusHead
    summary: dict[str, int]

    @property
    def improvable(self) -> tuple[Finding, ...]:
        """Return the checks that can be improved."""
        return tuple(f for f in self.checks if f.check.state == "improve")


def find_checks(root: Path, course: Course) -> Findings:
    """Return all checks of a host, each with the chapter of ``course`` that treats it. Reading the host takes a tenth
    of a second. Raise HostError if the host shows no CPU."""
    checkup = read_checks(root)
    treated = treating(course)
    found = []
    for tunable, check in zip(checkup.tunables, checkup.checks, strict=True):
        chapter_id, title = treated.get(check.id, ("", ""))
        page = _explained(tunable, check, checkup.host)
        why_not = "" if chapter_id else tunable.untaught
        found.append(Finding(check, registry.tunable_heading(tunable), page, chapter_id, title, why_not))
    # ``status`` puts the families in the order in which the registry first names each; this page does the same.
    order = {name: number for number, (name, _) in enumerate(checkup.groups())}
    found.sort(key=lambda finding: order[finding.group])
    return Findings(tuple(found), checkup.head, checkup.summary)


def titles() -> tuple[tuple[str, str], ...]:
    """Return the id and the title of each check, in the order of ``status``. The host is not read."""
    return tuple((tunable.id, tunable.title) for tunable in registry.tunables())


def treating(course: Course) -> dict[str, tuple[str, str]]:
    """Return tunable id → (id, title) of the chapter that treats the tunable. This is the first chapter that sets the
    tunable. If no chapter sets it, this is the first chapter that is about the tunable.
    """
    found: dict[str, tuple[str, str]] = {}
    for chapter in course.chapters:
        for word in chapter.tunables:
            found.setdefault(word.partition("=")[0], (chapter.id, chapter.title))
    for chapter in course.chapters:
        for ident in chapter.treats:
            found.setdefault(ident, (chapter.id, chapter.title))
    return found


def _explained(tunable: Tunable, check: Assessment, host: Host) -> Explained:
    from jitter_workshop.report.check_words import Explained, explain_check

    try:
        return explain_check(tunable, check, host)
    except Exception as error:
        # As in ``status``: one check that fails must not hide all the others.
        what = f"a mistake in this program: {type(error).__name__}: {error}"
        return Explained((("why", tunable.why), ("finding", check.reason or what)), (), 0, ())


def known_boots(
    runs: Iterable[Run], events: Iterable[HostEvent], snapshots: Iterable[Snapshot | None]
) -> frozenset[str]:
    """Return the ids of the boots in which a session's runs, events and snapshots were made."""
    boots = {run.host.get("boot_id") for run in runs} | {event.boot_id for event in events}
    boots |= {one.boot_id for one in snapshots if one is not None}
    return frozenset(str(one) for one in boots if one is not None)


def host_mismatch(session: Session, here: str, root: HostRoot, boots: Collection[str]) -> str:
    """Return the reason why a live host may not be the host of the session, or "". ``here``: the host's name.
    ``boots``: the ids of the boots that the session knows."""
    there = clean(session.host, ID)
    if there and there != here:
        return f"the session was made on {there}, and this host is {here}"
    now = journal.current_boot(root)
    if not boots or now is None or now in boots:
        return ""
    # A change from a boot that the session knows may still be in effect, such as a boot parameter.
    if any(entry.boot_id in boots for entry in journal.active(root)):
        return ""
    return f"{here} was rebooted after the session's last run, or this is a different host with the same name"
