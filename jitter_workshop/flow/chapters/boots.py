"""Plan a chapter's boot parameters: for the next boot alone where that is possible, or for every boot."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from jitter_workshop.flow.host_ops.settings import Seen, boot_way
from jitter_workshop.model.change import Plan
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.walk import BootWay
from jitter_workshop.tuning.tunables.registry import for_one_boot, parse_wanted


class Boots:
    """Plan the boot parameters of one chapter. ``seen``: the host as it was read, None where nothing is booted (on a
    recording, or in a chapter without boot parameters). ``ask_root``: returns a function that gives the plan for ``ID``
    words as root sees it, or None without root's rights."""

    def __init__(
        self,
        chapter: Chapter,
        seen: Callable[[], Seen | None],
        ask_root: Callable[[], Callable[[tuple[str, ...]], Plan] | None],
    ) -> None:
        self._chapter = chapter
        self._seen = seen
        self._ask_root = ask_root
        self._always = False
        self._root_says: Plan | None = None

    def way(self) -> BootWay | None:
        """Return the way to set the boot parameters on this host; None where there are none."""
        seen = self._seen()
        if seen is None:
            return None
        way = boot_way(seen, self._chapter.tunables, always=self._always)
        if not way.root_first:
            return way
        if self._root_says is None:
            return dataclasses.replace(way, root_first=self._ask_root() is not None)
        left_out = [one.reason for one in self._root_says.skipped]
        why_not = "" if self._root_says.changes or not left_out else left_out[0]
        return dataclasses.replace(way, once=not why_not and not self._always, why_not=why_not, root_first=False)

    def choose(self, *, once: bool) -> None:
        """Plan them for the next boot alone, or for every boot. Raises HostError where only root can tell if one boot
        alone is possible, and root's rights are not to be had."""
        way = self.way()
        ask = self._ask_root()
        if once and way is not None and way.root_first and ask is not None:
            self._root_says = ask(self._words_once())
        self._always = not once

    def drawn(self) -> Plan | None:
        """Return root's plan for one boot, where it was asked for; None elsewhere."""
        way = self.way()
        return self._root_says if way is not None and way.once else None

    def forget(self) -> None:
        """Drop root's plan after a write or a restore: it is out of date."""
        self._root_says = None

    def words(self) -> tuple[str, ...]:
        """Return the chapter's tunables as they are planned."""
        way = self.way()
        return self._words_once() if way is not None and way.once else self._chapter.tunables

    def _words_once(self) -> tuple[str, ...]:
        return tuple(map(str, for_one_boot(parse_wanted(self._chapter.tunables))))

    def told(self, settled: dict[str, bool]) -> tuple[bool, str]:
        """Return True if all of them are in effect after a reboot, and a sentence on it. ``settled``: the host's state
        now."""
        # A parameter that this host does not take (a kernel drops nohz_full= silently) is not in effect either.
        good = all(settled.get(word.partition("=")[0], False) for word in self._chapter.tunables)
        words = "they are in effect" if good else "not all of them are in effect: 'status' says which"
        way = self.way()
        if good and way is not None and way.this_boot:
            words += ", in this boot alone. To keep them, plan them for every boot in the step 'apply'"
        return good, f"This host was rebooted since its boot parameters were written: {words}."
