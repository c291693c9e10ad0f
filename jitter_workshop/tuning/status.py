"""Assess every tunable of a host once, and find settings that somebody changed after we set them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, get_args

from jitter_workshop.errors import WorkshopError
from jitter_workshop.host.root import printable
from jitter_workshop.model.status import Assessment, SettingDrift, State
from jitter_workshop.tuning.base import Tunable, Unavailable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.tunables.registry import find_tunable, tunables

if TYPE_CHECKING:
    from jitter_workshop.tuning.switched import Switched, Wrote

_SHOWN = 60
"""The most characters of a drifted setting's value that the reason quotes."""


def assess_all(host: Host, chosen: Sequence[Tunable] = (), standing: Iterable[Wrote] = ()) -> tuple[Assessment, ...]:
    """Return the Assessments of the tunables ``chosen``. If none is chosen, return those of all tunables, in the order
    of ``status``.

    ``standing``: the writes that we made on this host and that are not restored yet. If the setting of such a write now
    has a value other than the written one, the Assessment reports drift.
    """
    writes = list(standing)
    set_by_us: dict[str, list[Wrote]] = {}
    # Of several writes to a setting, even by different tunables, the last one counts.
    for entry in {entry.path: entry for entry in writes}.values():
        set_by_us.setdefault(entry.tunable, []).append(entry)
    switched = None
    if writes:
        from jitter_workshop.tuning.switched import read_switched  # only a host with writes of ours

        switched = read_switched(host.root, [w for w in writes if _known(w)])
    found: list[Assessment] = []
    smt = find_tunable("smt")
    # A plan without smt leaves the other work to all siblings.
    remaining = _without_spare_siblings(host, smt) if not chosen or smt in chosen else None
    for tunable in chosen or tunables():
        try:
            assessment = tunable.assess(host)
            if remaining is not None and assessment.state == "improve":
                planned = tunable.assess(remaining)
                assessment = planned if planned.state == "improve" else assessment
            drift = find_drift(host, tunable, set_by_us.get(tunable.id, ()), switched)
        except Exception as error:
            # One check that fails must not hide the others; such a failure is a bug to report.
            mistake = f"a mistake in this program: {type(error).__name__}: {error}"
            found.append(tunable.missing(Unavailable(mistake, paths=())))
            continue
        found.append(assessment if drift is None else drifted(assessment, drift))
    return tuple(found)


def _without_spare_siblings(host: Host, smt: Tunable) -> Host | None:
    """Return this reading as if the siblings that the tunable ``smt`` would take offline were offline.

    Return None if no such siblings are housekeeping CPUs, if ``smt`` has nothing to improve, or if its check fails. On
    a crowded host the siblings do the other work. A plan with ``smt`` leaves this work to the siblings that stay, so
    the wanted values must not name the others.
    """
    try:
        if not host.siblings & host.housekeeping:
            return None
        # The judgement comes first, because takes_offline draws up each write: it reads every task and interrupt.
        if smt.assess(host).state != "improve":
            return None
        leaving = smt.takes_offline(host, None) & host.siblings
        return host.without(leaving) if leaving else None
    except Exception:
        # A mistake here must not end the other checks.
        return None


def _known(write: Wrote) -> bool:
    """Return True if this version knows the tunable of a write, and the tunable may write the path."""
    from jitter_workshop.tuning.planning import owned  # only a host with writes of ours needs a plan's order

    try:
        return owned(find_tunable(write.tunable), write.path)
    except WorkshopError:
        return False


def find_drift(
    host: Host, tunable: Tunable, standing: Iterable[Wrote], switched: Switched | None = None
) -> SettingDrift | None:
    """Return the first of our settings that has another value now. Return None if there is no such setting.

    A setting is left out if it cannot be read, or if our write did not change it. It is also left out if the kernel may
    have changed its value (``switched``). Kinds that are ``fleeting`` or ``self_moving`` are left out, too.
    """
    for entry in {entry.path: entry for entry in standing}.values():
        try:
            kind = kind_of(entry.kind)
        except ValueError:
            continue
        if kind.fleeting or kind.self_moving:
            continue
        found = kind.read(host.root, entry.path).text
        if found is None or kind.same(found, entry.after) or kind.same(entry.before, entry.after):
            continue
        known = (entry.before, entry.after)
        if switched and kind.by_kernel(host.root, entry.path, found, known, switched):
            continue
        return SettingDrift(entry.path, entry.after, found, likely_rewriter(host, tunable))
    return None


def likely_rewriter(host: Host, tunable: Tunable) -> str | None:
    """Return the service that probably changed this tunable's settings. Such a service runs, and is known to rewrite
    them. Return None if there is no such service."""
    if not tunable.rewritten_by:
        return None
    running = {service.name for service in host.services.running}
    return next((name for name in tunable.rewritten_by if name in running), None)


def drifted(assessment: Assessment, drift: SettingDrift) -> Assessment:
    """Return ``assessment`` with the state ``improve`` and a new reason. The reason says that a setting no longer has
    the value that this tool wrote.
    """
    from dataclasses import replace

    found = printable(drift.found or "nothing", _SHOWN)
    reason = f"drifted: this tool set {printable(drift.set, _SHOWN)}, the host now has {found}"
    reason += (
        f"; probably because of {drift.culprit}, which runs here"
        if drift.culprit
        else "; no program here is known to change this setting"
    )
    if assessment.state == "improve":
        reason += f" ({assessment.reason})"
    fix = assessment.fix or f"jitter-workshop apply {assessment.id}"
    if assessment.state == "ok":
        # The hot CPUs are as wanted, so a plan would write nothing: the drift is elsewhere.
        fix = f"restore the setting, then apply it again: jitter-workshop restore {assessment.id}"
    if drift.culprit and drift.culprit != assessment.id:
        fix += f"; first keep {drift.culprit} from changing the setting"
    return replace(assessment, state="improve", reason=reason, fix=fix, drifted=drift)


def count_states(assessments: Iterable[Assessment]) -> dict[str, int]:
    """Return the number of assessments in each state: ok, improve, unavailable and info."""
    counts = Counter(assessment.state for assessment in assessments)
    return {state: counts[state] for state in get_args(State)}
