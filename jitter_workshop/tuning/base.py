"""What a tunable is: one class that says what stands on this host, what would be better, and what would be written.

A tunable is a class in a module of this package that the registry names; nothing else has to be told of it::

    class Governor(Settings):
        id = "governor"
        title = "CPU governor"
        why = "A governor that follows the load changes the clock while a message is on its way."
        danger = "more power and heat"
        risk = "low"
        when = "runtime"
        document = "Documentation/admin-guide/pm/cpufreq.rst"
        owns = ("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",)
        default = "performance"

        def settings(self, host, value):
            ...one Setting for each file that matters, or raise Unavailable("this guest has no cpufreq: …")

:class:`Settings` derives status, plan, apply and restore from that list. What does not fit it overrides
:meth:`Tunable.assess` and :meth:`Tunable.writes`. The rules:

* ``assess`` and ``writes`` only read, below ``host.root``, and need no rights. What cannot be read without rights is
  said to be so.
* ``writes`` gives each write with the value that stands there now (``before``); undoing is writing it back. A tunable
  never undoes anything itself.
* Every path that a tunable may write matches one of its ``owns`` patterns (``fnmatch``): the agent refuses all others,
  on the way back too.
* Only the hot CPUs' files are read where only they matter: hosts have 512 CPUs and ``status`` has 0.15 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from jitter_workshop.errors import UsageError
from jitter_workshop.model.assessment import Assessment, State
from jitter_workshop.model.change import Risk, When
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass
from jitter_workshop.tuning.context import Host


class Unavailable(Exception):
    """Not to be had on this host; the message is the reason. ``only_host``: the hypervisor's owner could.
    ``info``: it is not missing, there is only nothing to do or to judge."""

    def __init__(self, reason: str, *, only_host: bool = False, info: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.only_host = only_host
        self.info = info


@dataclass(frozen=True, slots=True)
class Write:
    """One write that a tunable asks for. ``before`` is what stands there now, ``after`` what shall. ``kind`` names how
    it is read, compared and written (:mod:`jitter_workshop.tuning.setting_types.kinds`). ``why`` "" = the tunable's
    own."""

    path: str
    before: str
    after: str
    kind: str = "value"
    why: str = ""
    risk: Risk | None = None
    then: str = ""
    lease: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """One file (or call) that a tunable looks at: what it says and what it should say.

    ``current`` None: it cannot be read, and ``reason`` says why; it is then left alone. ``refuses``: why this one
    cannot be written though it can be read ("" = it can): it is reported and not counted against the host.
    """

    path: str
    current: str | None
    wanted: str
    kind: str = "value"
    reason: str = ""
    refuses: str = ""


def left_for_the_rest(host: Host) -> CpuSet:
    """The CPUs for everything that is not latency-critical, which are those that are neither hot nor siblings of hot
    ones (see ``context.Host``). Raises Unavailable where none would be left: the last one is never taken offline,
    isolated or left without interrupts."""
    if not host.hot:
        raise Unavailable("no CPU is named hot", info=True)
    if not host.housekeeping:
        raise Unavailable("every CPU is hot: none would be left for everything else", info=True)
    return host.housekeeping


def only_on_x86(host: Host) -> None:
    """Raise Unavailable on a processor that is known to be no x86 one, for what only those have. It comes before any
    word on guests: there is nothing that the hypervisor's owner could do about it."""
    if host.other_than_x86:
        raise Unavailable(f"x86 only: this processor is {host.other_than_x86}")


class Tunable:
    """One thing about a host that matters for jitter. Subclasses are stateless; one instance serves all hosts.

    ``why``: one or two sentences. ``danger``: what it costs or risks, "" for nothing. ``values``: what VALUE may be in
    ``ID=VALUE``, in words, "" where there is none.
    """

    id: ClassVar[str] = ""
    title: ClassVar[str]
    why: ClassVar[str]
    danger: ClassVar[str] = ""
    risk: ClassVar[Risk] = "low"
    when: ClassVar[When] = "runtime"
    document: ClassVar[str]
    owns: ClassVar[tuple[str, ...]] = ()
    default: ClassVar[str | None] = None
    values: ClassVar[str] = ""
    culprits: ClassVar[tuple[str, ...]] = ()
    """Services that are known to rewrite it behind one's back, most likely first (names as ``host/services``)."""

    def assess(self, host: Host) -> Assessment:
        """What ``status`` says. Never raises for what a host looks like."""
        raise NotImplementedError

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        """The writes that bring ``value`` (None = the good value for this host) about; those whose ``before`` and
        ``after`` mean the same are dropped by the planner. Raises Unavailable with the reason, UsageError for a value
        that makes no sense."""
        raise Unavailable(self._only_reported())

    def writes_once(self, host: Host, value: str | None) -> Sequence[Write]:
        """The writes that bring it about in the next boot and in no other; raises as ``writes`` does."""
        raise Unavailable("it is not for one boot alone")

    def takes_offline(self, host: Host, value: str | None) -> CpuSet:
        """Name the CPUs that are offline once ``writes`` are made; the rest of a plan is for those that remain."""
        return CpuSet()

    def stays(self, host: Host, value: str | None) -> str:
        """Writes that are left out because the host is known to refuse them, with the reason; "" for none."""
        return ""

    @property
    def changes_host(self) -> bool:
        """Whether it can be planned and applied at all."""
        return bool(self.owns)

    def _only_reported(self) -> str:
        if self.when == "host":
            return "only the owner of the hypervisor can change it"
        return "it is reported, not changed, by this tool"

    # What a subclass answers with ---------------------------------------------------------------------------------

    def answer(
        self,
        state: State,
        value: str | None,
        reason: str,
        *,
        wanted: str | None = None,
        paths: Sequence[str] = (),
        fix: str = "",
        only_host: bool = False,
    ) -> Assessment:
        """An Assessment of this tunable; a thing to improve that this tool can change gets the verb as its fix."""
        if state == "improve" and not fix and self.changes_host:
            fix = f"jitter-workshop apply {self.id}"
        return Assessment(
            self.id, self.title, state, value, wanted, reason, self.when, tuple(paths), fix, only_host=only_host
        )

    def off_x86(self, host: Host) -> Assessment | None:
        """The Assessment of what only x86 processors have, on any other; None on theirs."""
        try:
            only_on_x86(host)
        except Unavailable as refusal:
            return self.missing(refusal)
        return None

    def missing(self, refusal: Unavailable, paths: Sequence[str] = ()) -> Assessment:
        """The Assessment of what is not to be had here."""
        return self.answer(
            "info" if refusal.info else "unavailable", None, refusal.reason, paths=paths, only_host=refusal.only_host
        )


class Settings(Tunable):
    """A tunable that is a list of settings, each with a wanted value: most of them are."""

    good: ClassVar[str] = "as wanted"
    """What is said when everything is as wanted."""
    shown_paths: ClassVar[int] = 4

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        """All settings that matter on this host. ``value`` None: the good value for this host. Raises Unavailable (with
        the reason) where there are none, UsageError for a value that makes no sense."""
        raise NotImplementedError

    def assess(self, host: Host) -> Assessment:
        from jitter_workshop.tuning.setting_types.kinds import kind_of

        try:
            settings = self.settings(host, None)
        except Unavailable as refusal:
            return self.missing(refusal)
        if not settings:
            return self.answer("ok", None, self.good)
        readable = [s for s in settings if s.current is not None]
        paths = [s.path for s in settings[: self.shown_paths]]
        if not readable:
            return self.answer("unavailable", None, f"it cannot be read: {settings[0].reason}", paths=paths)
        value = _values([s.current or "" for s in readable])
        wanted = _values([s.wanted for s in readable])
        off = [s for s in readable if not kind_of(s.kind).same(s.current or "", s.wanted)]
        movable = [s for s in off if not s.refuses]
        if movable:
            reason = f"{len(movable)} of {len(settings)} differ" if len(settings) > 1 else self.differs(movable[0])
            return self.answer(
                "improve", value, reason, wanted=wanted, paths=[s.path for s in movable[: self.shown_paths]]
            )
        reason = self.good if not off else f"{self.good}; {len(off)} cannot be changed: {off[0].refuses}"
        return self.answer("ok", value, reason, wanted=wanted, paths=paths)

    def differs(self, setting: Setting) -> str:
        """What is said of a single setting that is not as wanted."""
        return f"{setting.current} where {setting.wanted} is better"

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        settings = self.settings(host, value)
        usable = [s for s in settings if s.current is not None and not s.refuses]
        if settings and not usable:
            raise Unavailable(settings[0].refuses or settings[0].reason or "it cannot be read")
        return [Write(s.path, s.current or "", s.wanted, s.kind) for s in usable]

    def stays(self, host: Host, value: str | None) -> str:
        settings = self.settings(host, value)
        kept = [s for s in settings if s.refuses]
        reasons = ", or ".join(dict.fromkeys(s.refuses for s in kept))
        return f"{len(kept)} of {len(settings)} stay as they are: {reasons}" if kept else ""

    def choose(self, value: str | None, allowed: Sequence[str]) -> str:
        """``value`` or the default if ``allowed`` has it. Raises UsageError for a given value that is not allowed,
        Unavailable where the default is not offered here."""
        wanted = value if value is not None else self.default
        if wanted is None:
            raise UsageError(f"{self.id} needs a value", f"say {self.id}=VALUE; VALUE is {self.values}")
        if wanted in allowed:
            return wanted
        offered = ", ".join(allowed) or "nothing"
        if value is not None:
            raise UsageError(f"{self.id} cannot be '{value}' here", f"this host offers: {offered}")
        raise Unavailable(f"this host does not offer '{wanted}', only: {offered}")


def _values(texts: Sequence[str]) -> str:
    """Distinct values in order of appearance, at most four."""
    distinct = list(dict.fromkeys(texts))
    shown = ", ".join(distinct[:4])
    return shown if len(distinct) <= 4 else f"{shown}, … ({len(distinct)} different values)"
