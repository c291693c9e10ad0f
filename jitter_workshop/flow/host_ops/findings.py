"""Read the status of a host for the workshop's own page: each check with its explanation and its chapter."""

from __future__ import annotations

from pathlib import Path

from jitter_workshop.flow.host_ops.host_status import look
from jitter_workshop.model.assessment import Assessment
from jitter_workshop.model.course import Course
from jitter_workshop.model.record import dataclass
from jitter_workshop.report.text.check import Explained, explained
from jitter_workshop.tuning.base import Tunable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables import registry


@dataclass(frozen=True, slots=True)
class Finding:
    """Hold one check. ``group``: its family's heading. ``chapter_id``, ``chapter``: id and title of the first chapter
    that treats it, "" where none does."""

    check: Assessment
    group: str
    explained: Explained
    chapter_id: str
    chapter: str


@dataclass(frozen=True, slots=True)
class Findings:
    """Hold all checks of a host in the order of ``status``. ``hot``, ``housekeeping``, ``siblings`` (of hot CPUs, kept
    free of work): CPU lists; ``why_hot``: the reason for the choice of the hot ones; ``note``: a problem with them, ""
    for none. ``summary``: the number of checks in each state."""

    checks: tuple[Finding, ...]
    recorded: bool
    hot: str
    housekeeping: str
    why_hot: str
    note: str
    summary: dict[str, int]
    siblings: str = ""

    @property
    def improvable(self) -> tuple[Finding, ...]:
        """Return the checks that can be improved."""
        return tuple(f for f in self.checks if f.check.state == "improve")


def find(root: Path, course: Course) -> Findings:
    """Check a host; takes a tenth of a second. Raises HostError where it shows no CPU."""
    checkup = look(root)
    treated = treating(course)
    found = []
    for tunable, check in zip(checkup.tunables, checkup.checks, strict=True):
        chapter_id, title = treated.get(check.id, ("", ""))
        page = _explained(tunable, check, checkup.host)
        found.append(Finding(check, registry.heading(tunable), page, chapter_id, title))
    # ``status`` puts the families in the order in which the registry first names each; this page does the same.
    order = {name: number for number, (name, _) in enumerate(checkup.groups())}
    found.sort(key=lambda finding: order[finding.group])
    return Findings(
        checks=tuple(found),
        recorded=checkup.host.root.recorded,
        hot=str(checkup.hot.cpus),
        housekeeping=str(checkup.host.housekeeping),
        why_hot=checkup.hot.why,
        note=checkup.hot.note,
        summary=checkup.summary,
        siblings=str(checkup.host.clear_siblings),
    )


def treating(course: Course) -> dict[str, tuple[str, str]]:
    """Return tunable → id and title of the first chapter that sets it, or else of the first whose pages speak of it."""
    found: dict[str, tuple[str, str]] = {}
    for chapter in course.chapters:
        for word in chapter.tunables:
            found.setdefault(word.partition("=")[0], (chapter.id, chapter.title))
    for chapter in course.chapters:
        for ident in chapter.treats:
            found.setdefault(ident, (chapter.id, chapter.title))
    return found


def _explained(tunable: Tunable, check: Assessment, host: Host) -> Explained:
    try:
        return explained(tunable, check, host)
    except Exception as error:
        # As in ``status`` itself: one check that fails must not hide all the others.
        what = f"a mistake in this program: {type(error).__name__}: {error}"
        return Explained((("why", tunable.why), ("it says", check.reason or what)), (), 0, ())
