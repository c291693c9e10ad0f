"""Check that an instance of the kernel's trace is still set as it was when it began to record.

Root may switch its events off, filter them or read them away (``trace-cmd reset -B``, ``echo 0 > events/enable``).
Events that are missing then are counted nowhere, and an empty trace would look like a quiet CPU.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.errors import HostError
from jitter_workshop.host.root import HostRoot, printable

_WHOLE = ("trace_clock", "tracing_cpumask", "set_event_pid", "set_event_notrace_pid")
_WORDS = 60


def somebody_else(what: str) -> HostError:
    """Return the error for a trace that another program changed."""
    return HostError(f"another program changed this tool's trace: {what}", "leave it alone while a run lasts")


class TraceIntegrity:
    """Remember how one instance is set, as the kernel prints it right after: it may print a filter or a mask in other
    words.

    ``events``: the enabled ones; ``triggers``: those of them that have a trigger of ours.
    """

    def __init__(self, root: HostRoot, folder: str, events: Sequence[str], triggers: Sequence[str] = ()) -> None:
        self._root, self._folder = root, folder
        events, triggers = ([f"events/{title.replace(':', '/')}" for title in some] for some in (events, triggers))
        self._enabled = tuple(f"{event}/enable" for event in events)
        watched = (*_WHOLE, *(f"{event}/filter" for event in events), *(f"{event}/trigger" for event in triggers))
        self._says = {file: self._text(file) for file in watched}

    def off(self) -> str:
        """Return why it does not record now, "" if it does."""
        on = self._text("tracing_on")
        return "it is gone" if on is None else "" if on == "1" else "it was switched off"

    def check(self) -> None:
        """Raise HostError that names the first thing that is not as it was set."""
        for file in self._enabled:
            # An event with a trigger has a star behind the 1.
            if (now := self._text(file) or "")[:1] != "1":
                raise somebody_else(f"{file} says '{printable(now, _WORDS)}'")
        if "overwrite" in (self._text("trace_options") or "").split():
            raise somebody_else("its oldest events are overwritten")
        for file, before in self._says.items():
            if (now := self._text(file) or "") != (before or ""):
                was = printable(before or "", _WORDS)
                raise somebody_else(f"{file} says '{printable(now, _WORDS)}' and no longer '{was}'")

    def _text(self, file: str) -> str | None:
        return self._root.text(f"{self._folder}/{file}")
