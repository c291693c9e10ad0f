"""Check that the host matches the session: the same name, in a boot that the session knows."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.history import HostEvent, Snapshot
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import Session
from jitter_workshop.model.text import clean
from jitter_workshop.tuning import journal


def known_boots(
    runs: Iterable[Run], events: Iterable[HostEvent], snapshots: Iterable[Snapshot | None]
) -> frozenset[str]:
    """Return the ids of the boots in which something of a session happened."""
    boots = {run.host.get("boot_id") for run in runs} | {event.boot_id for event in events}
    boots |= {one.boot_id for one in snapshots if one is not None}
    return frozenset(str(one) for one in boots if one is not None)


def host_mismatch(session: Session, here: str, root: HostRoot, boots: Collection[str]) -> str:
    """Return the reason why a live host is not the session's, "" where it is. ``here``: the host's name; ``boots``:
    those that the session knows."""
    there = clean(session.host, 40)
    if there and there != here:
        return f"the session was made on {there}, and this host is {here}"
    now = journal.current_boot(root)
    if boots and now is not None and now not in boots and not _ours_before_a_reboot(root, boots):
        return f"{here} has been started again since, or another host has its name"
    return ""


def _ours_before_a_reboot(root: HostRoot, known: Collection[str]) -> bool:
    """Return True if a change from a boot that the session knows still stands on this host: boot parameters do."""
    return any(entry.boot_id in known for entry in journal.active(root))
