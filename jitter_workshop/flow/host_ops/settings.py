"""Read a chapter's tunables on one host: their values, the host's state, and the writes of a plan."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence

from jitter_workshop.errors import HostError, LessonError, UsageError
from jitter_workshop.flow.host_ops.company import barred_company, brings_an_interrupt, with_company_of_host
from jitter_workshop.flow.host_ops.hotcpus import HotCpus, choose_hot
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Plan
from jitter_workshop.model.course import Chapter, HostState
from jitter_workshop.model.host import Topology
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.status import Assessment
from jitter_workshop.model.text import cleaned_sentence
from jitter_workshop.model.walk import BootWay, PlanView
from jitter_workshop.tuning import status
from jitter_workshop.tuning.base import Tunable, Unavailable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.journal import Entry, active
from jitter_workshop.tuning.planning import plan_changes
from jitter_workshop.tuning.tunables import registry
from jitter_workshop.tuning.tunables.boot_parameters import BootParameter, by_hand_once

NOTHING_WRITTEN = "This is a recorded host, so nothing is written."
ONCE = (
    "This plan is for the next boot only. If this boot hangs, switch the machine off and on: it then boots as before."
)
_ALWAYS = "This plan is for the next boot and every later boot."
NEEDS_BOOT = "it needs a boot parameter"
"""The first words of the reason why a chapter's boot parameters cannot be set from here."""
_CHECK = "'jitter-workshop lessons check' names the line"


@dataclass(frozen=True, slots=True)
class Seen:
    """Hold the state of a chapter's tunables on a host.

    - ``checks``: the assessments of the tunables, in the lesson's order.
    - ``state``: the host's state for the chapter.
    - ``reason``: the reason why the host has none of the tunables, or "".
    - ``asked``: the tunables for which the lesson gives a value, as ``ID=VALUE``.
    - ``held``: the reason why a change has hardly any effect on this host, or "".
    """

    host: Host
    hot: HotCpus
    checks: tuple[Assessment, ...]
    state: HostState
    reason: str = ""
    asked: tuple[str, ...] = ()
    held: str = ""

    def settled(self) -> dict[str, bool]:
        """Return tunable id → True if the tunable needs no change. A tunable for which the lesson gives a value needs
        no change if the tunable has this value on the host. Any other tunable needs no change if its check finds
        nothing to improve. A tunable is left out if this host does not have the tunable. A tunable is also left out if
        it cannot take the lesson's value on this host."""
        # A setting that only the owner of another machine can change is not settled here.
        left = {c.id for c in self.checks if c.state == "improve" or (c.only_host and c.wanted is not None)}
        found = {c.id: c.id not in left for c in self.checks if c.state != "unavailable"}
        for word in self.asked:
            ident = word.partition("=")[0]
            if ident in found:
                stands = _stands(self, word)
                del found[ident]
                if stands is not None:
                    found[ident] = stands
        return found


def look_at_settings(
    root: HostRoot,
    chapter: Chapter,
    ground: tuple[HotCpus, Host] | None = None,
    ours: Sequence[Entry] | None = None,
) -> Seen:
    """Return the state of a chapter's tunables on a host. ``ground``: the result of :func:`ground_of`, None to compute
    it. ``ours``: the writes of this tool that are in effect, None to read them. Raise HostError if the host shows no
    CPU, LessonError for an unknown tunable."""
    hot, host = ground if ground is not None else ground_of(root)
    try:
        tunables = tuple(registry.find_tunable(word.partition("=")[0]) for word in chapter.tunables)
    except UsageError as error:
        raise LessonError(f"the chapter '{chapter.id}': {error.sentence()}", _CHECK) from error
    if ours is None:
        ours = () if root.recorded else active(root)
    checks = status.assess_all(host, tunables, ours)
    missing = [c for c in checks if c.state == "unavailable"]
    asked = tuple(word for word in chapter.tunables if "=" in word)
    if len(missing) == len(checks):
        reason = missing[0].reason if missing else "the chapter names no tunables"
        return Seen(host, hot, checks, "not_here", reason, asked)
    seen = Seen(host, hot, checks, "available", asked=asked)
    settled = seen.settled()
    if not settled:
        return Seen(host, hot, checks, "not_here", f"this host does not accept {', '.join(asked)}", asked)
    if all(settled.values()):
        return Seen(host, hot, checks, "good", asked=asked)
    by_hand = chapter.reboot and host.boot_loader.means not in ("grub-dropin", "grubby")
    if by_hand and boot_way(seen, chapter.tunables, always=False).why_not:
        return Seen(host, hot, checks, "not_here", f"{NEEDS_BOOT}: {host.boot_loader.reason}", asked)
    held = _held(host, tunables, checks)
    # A load whose interrupt can be moved shows the change, even if the interrupts since boot cannot be moved.
    chosen = with_company_of_host(chapter, root) if held else chapter
    if held and brings_an_interrupt(chosen):
        return seen
    barred = barred_company(chosen, root) if held and hot.source != "class" else ""
    return dataclasses.replace(seen, held="; ".join(filter(None, (held, barred))))


def ground_of(root: HostRoot, topology: Topology | None = None) -> tuple[HotCpus, Host]:
    """Return a host's hot CPUs, and the :class:`Host` for the checks with these hot CPUs. Raise HostError if the host
    shows no CPU."""
    hot = choose_hot(root, None, topology)
    return hot, Host(root, hot.cpus, topology)


def _held(host: Host, tunables: Sequence[Tunable], checks: Sequence[Assessment]) -> str:
    """Return the reason why a change of these tunables has hardly any effect here. Only tunables that can be improved
    are considered. Return "" if no tunable can be improved. Also return "" if a change of at least one such tunable
    would have an effect."""
    told = [t.held(host) for t, check in zip(tunables, checks, strict=True) if check.state == "improve"]
    return told[0] if told and all(told) else ""


@dataclass(frozen=True, slots=True)
class StateHere:
    """Hold the state of this host for a chapter's tunables.

    - ``missing``: the reason why the host has none of them, or "".
    - ``held``: as in :class:`Seen`.
    """

    state: HostState = "available"
    missing: str = ""
    held: str = ""


USUAL = StateHere()
"""The state for a chapter that names no tunables."""


class States:
    """Hold the state of one host for the tunables of each chapter. The host and each chapter are read only once."""

    def __init__(self, root: HostRoot, topology: Topology) -> None:
        self._root, self._topology = root, topology
        self._ground: tuple[HotCpus, Host] | None = None
        self._ours: tuple[Entry, ...] | None = None
        self._known: dict[str, StateHere] = {}

    def of(self, chapter: Chapter) -> StateHere:
        """Return the host's state for a chapter's tunables."""
        if not chapter.tunables:
            return USUAL
        if chapter.id not in self._known:
            self._known[chapter.id] = self._look(chapter)
        return self._known[chapter.id]

    def _look(self, chapter: Chapter) -> StateHere:
        try:
            self._ground = self._ground or ground_of(self._root, self._topology)
            if self._ours is None:
                self._ours = () if self._root.recorded else active(self._root)
            seen = look_at_settings(self._root, chapter, self._ground, self._ours)
        except HostError as error:
            return StateHere("not_here", error.message)
        return StateHere(seen.state, seen.reason, seen.held)


def boot_way(seen: Seen, words: Sequence[str], *, always: bool) -> BootWay:
    """Return how a chapter's boot parameters will be set: for the next boot alone, or permanently. They are set
    permanently if ``always`` is True, or if one boot alone is not possible."""
    boots = [
        (t, one.value)
        for one in registry.parse_wanted(words)
        if isinstance(t := registry.find_tunable(one.id), BootParameter)
    ]
    lines = []
    for tunable, value in boots:
        with contextlib.suppress(Unavailable, UsageError):
            lines.append(tunable.parameters(seen.host, value))
    by_hand = by_hand_once(seen.host.boot_loader, " ".join(lines))
    offer = seen.host.one_boot
    why_not = by_hand or offer.reason
    this_boot = any(tunable.this_boot_only(seen.host) for tunable, _ in boots)
    return BootWay(not why_not and not always, why_not, this_boot, offer.shut and not by_hand)


def planned(seen: Seen, words: Sequence[str]) -> Plan:
    """Return the plan for ``words``, each ``ID`` or ``ID=VALUE``. Raise UsageError for an unknown id or an invalid
    value."""
    return plan_changes(seen.host, registry.parse_wanted(words))


def plan_view(
    seen: Seen, words: Sequence[str], recorded: bool, way: BootWay | None = None, drawn: Plan | None = None
) -> PlanView:
    """Return a plan with its text. ``way``: how boot parameters are set. ``drawn``: the plan, if the agent (this tool's
    process with root's rights) has made it already. If ``drawn`` is None, this function makes the plan."""
    drawn = drawn or planned(seen, words)
    files = len({c.path.partition("(")[0] if c.path.startswith("/") else c.path for c in drawn.changes})
    said = [f"Hot {seen.hot.cpus.named}: {seen.hot.why}."]
    said += [cleaned_sentence(seen.hot.note)] if seen.hot.note else []
    left_out = [f"{one.tunable}: {one.reason}." for one in drawn.skipped]
    if recorded:
        by_hand = (
            " The plan has no writes, either: the lines show why, and what you can do by hand." if drawn.skipped else ""
        )
        said.insert(0, f"{NOTHING_WRITTEN}{'' if drawn.changes else by_hand}")
    elif not drawn.changes:
        said.insert(0, "There is nothing to write on this host.")
    if way is not None and drawn.changes:
        said.insert(0, ONCE if way.once else _ALWAYS)
    if way is not None and way.root_first:
        said.append(f"A plan for one boot only needs root's rights: {way.why_not}.")
    elif way is not None and way.why_not:
        left_out.append(f"one boot alone: {way.why_not}.")
    return PlanView(drawn.changes, files, " ".join(said), tuple(words), tuple(left_out))


def _stands(seen: Seen, word: str) -> bool | None:
    """Return True if the tunable ID has the value VALUE here, False if it has another value. ``word``: ``ID=VALUE``.
    Return None if the tunable cannot have VALUE on this host."""
    wanted = registry.parse_wanted([word])
    try:
        registry.find_tunable(wanted[0].id).writes(seen.host, wanted[0].value)
        return not plan_changes(seen.host, wanted).changes
    except (Unavailable, UsageError):
        return None
