"""A chapter's boot parameters: for the next boot alone where that can be, or for every boot."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from jitter_workshop.flow.host_ops.settings import Seen, boot_way
from jitter_workshop.model.change import Plan
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.walk import BootWay
from jitter_workshop.tuning.tunables.registry import for_one_boot


class Boots:
    """``seen``: the host as it was read, None where nothing is booted: on a recording, in a chapter without any.
    ``ask_root``: the plan for ``ID`` words as root sees it, None where root's rights are not to be had."""

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
        """How they would be set on this host; None where there are none."""
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
        """Plan them for the next boot alone, or for every boot. Raises HostError where only root can tell whether it
        can be for one, and root's rights are not to be had."""
        way = self.way()
        ask = self._ask_root()
        if once and way is not None and way.root_first and ask is not None:
            self._root_says = ask(for_one_boot(self._chapter.tunables))
        self._always = not once

    def drawn(self) -> Plan | None:
        """The plan for one boot where it is root's to see and was asked for."""
        way = self.way()
        return self._root_says if way is not None and way.once else None

    def forget(self) -> None:
        """Something was written or given back: what root saw is no longer so."""
        self._root_says = None

    def words(self) -> tuple[str, ...]:
        """The chapter's tunables as they are planned."""
        way, words = self.way(), self._chapter.tunables
        return for_one_boot(words) if way is not None and way.once else words

    def told(self, settled: dict[str, bool]) -> tuple[bool, str]:
        """Whether all of them are in effect after a reboot, and a sentence on it. ``settled``: as the host says now."""
        # What this host does not take (a kernel drops nohz_full= silently) is not in effect either.
        good = all(settled.get(word.partition("=")[0], False) for word in self._chapter.tunables)
        words = "they are in effect" if good else "not all of them are in effect: 'status' says which"
        way = self.way()
        if good and way is not None and way.this_boot:
            words += ", in this boot alone. To keep them, plan them for every boot in the step 'apply'"
        return good, f"This host was rebooted since its boot parameters were written: {words}."
