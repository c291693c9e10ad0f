"""A chapter's boot parameters: for the next boot alone where that can be, or for every boot."""

from __future__ import annotations

from collections.abc import Callable

from jitter_workshop.flow.settings import Seen, boot_way
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.walk import BootWay
from jitter_workshop.tuning.registry import for_one_boot


class Boots:
    """``seen``: the host as it was read, None where nothing is booted: on a recording, in a chapter without any."""

    def __init__(self, chapter: Chapter, seen: Callable[[], Seen | None]) -> None:
        self._chapter = chapter
        self._seen = seen
        self._always = False

    def way(self) -> BootWay | None:
        """How they would be set on this host; None where there are none."""
        seen = self._seen()
        return boot_way(seen, self._chapter.tunables, always=self._always) if seen is not None else None

    def choose(self, *, once: bool) -> None:
        """Plan them for the next boot alone, or for every boot."""
        self._always = not once

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
