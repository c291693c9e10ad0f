"""Define a tunable: a class that gives the value on this host, the better value, and the writes to set it.

A tunable is a class in a module of this package; the registry names the module. No other registration is needed::

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

From the list that ``settings`` returns, :class:`Settings` derives status, plan, apply and restore. A tunable that has
no such list overrides :meth:`Tunable.judge` and :meth:`Tunable.writes`. A tunable that is never changed, only looked
at, is an :class:`Observed`. The rules:

* ``judge`` and ``writes`` only read, below ``host.root``, and need no rights. Where they may not read a file, they give
  this as the reason.
* ``writes`` gives each write with the current value (``before``), which a restore writes back. A tunable never restores
  anything itself.
* Every path that a tunable may write matches one of its ``owns`` patterns (``fnmatch``). The agent refuses all other
  paths, for apply and for restore.
* If only the hot CPUs' files matter, read only these files. A host may have 512 CPUs, and ``status`` must not take
  longer than 0.15 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from jitter_workshop.errors import UsageError
from jitter_workshop.model.change import Risk, When
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.status import Assessment, State
from jitter_workshop.model.text import MOST_ENTRIES
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.setting_types.kinds import kind_of


class Unavailable(Exception):
    """Signal that a tunable is not available on this host. The message is the reason.

    - ``only_host``: True if only the owner of the hypervisor could make the tunable available.
    - ``info``: True if the reason does not count against the host. The reported state is then ``info``, otherwise
      ``unavailable``.
    - ``paths``: the files to show with the reason; None means the tunable's own files.
    """

    def __init__(
        self, reason: str, *, only_host: bool = False, info: bool = False, paths: Sequence[str] | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.only_host = only_host
        self.info = info
        self.paths = paths


@dataclass(frozen=True, slots=True)
class Write:
    """Hold one write that a tunable asks for.

    - ``before``, ``after``: the current value and the wanted value.
    - ``kind``: how the setting is read, compared and written (:mod:`jitter_workshop.tuning.setting_types.kinds`).
    - ``why``: the reason for the write; "" means the tunable's own ``why``.
    - ``then``: the command to run after the last write; "" for none. If several writes have the same command, it is run
      once.
    - ``lease``: True if the setting is restored when the connection that asked for it ends.
    """

    path: str
    before: str
    after: str
    kind: str = "value"
    why: str = ""
    then: str = ""
    lease: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """Hold one setting of a tunable, with its current value and its wanted value.

    - ``path``: the file, or the call of the kernel.
    - ``current``: the value; None if the setting cannot be read. Such a setting is not changed.
    - ``reason``: the reason why the setting cannot be read.
    - ``refuses``: the reason why the setting cannot be written; "" if it can be written. A setting that cannot be
      written is reported, but does not make the check's state worse.
    """

    path: str
    current: str | None
    wanted: str
    kind: str = "value"
    reason: str = ""
    refuses: str = ""


def left_for_the_rest(host: Host) -> CpuSet:
    """Return the housekeeping CPUs, as defined in :class:`context.Host`.

    Raise Unavailable if no CPU is hot, or if every CPU is hot. The reason: at least one CPU must stay online, must not
    be isolated, and must accept interrupts.
    """
    if not host.hot:
        raise Unavailable("no CPU is chosen as hot: choose with --cpus", info=True)
    if not host.housekeeping:
        raise Unavailable("every CPU is hot, so no CPU is left for other work", info=True)
    return host.housekeeping


def only_on_x86(host: Host) -> None:
    """Raise Unavailable if the processor is known not to be x86. This function is for features that only x86 has.

    Call it before checks that refer a guest to the owner of the hypervisor. The owner cannot add an x86 feature to
    another processor.
    """
    if host.other_than_x86:
        raise Unavailable(f"only x86 processors have this; this processor is {host.other_than_x86}", paths=())


class Tunable:
    """Describe one property of a host that matters for jitter.

    Subclasses have no state; one instance serves all hosts.

    - ``why``: one or two sentences on how the property causes jitter.
    - ``danger``: the cost or risk of the change; "" for none.
    - ``values``: the values allowed for VALUE in ``ID=VALUE``, in words; "" if the tunable takes no value.
    """

    id: ClassVar[str] = ""
    title: ClassVar[str]
    why: ClassVar[str]
    danger: ClassVar[str] = ""
    risk: ClassVar[Risk] = "low"
    when: ClassVar[When] = "runtime"
    document: ClassVar[str]
    owns: ClassVar[tuple[str, ...]] = ()
    paths: ClassVar[Sequence[str]] = ()
    """The files that ``status`` names for this tunable, unless the tunable's Assessment names its own."""
    default: ClassVar[str | None] = None
    values: ClassVar[str] = ""
    untaught: ClassVar[str] = ""
    """The reason why no chapter of the course is about this tunable, as a sentence; "" if a chapter should be about
    it."""
    rewritten_by: ClassVar[tuple[str, ...]] = ()
    """The services that are known to rewrite this tunable's settings, most likely first (names as in
    ``host/services``)."""

    def assess(self, host: Host) -> Assessment:
        """Return this tunable's entry in ``status``, from ``judge``. If ``judge`` raises Unavailable, the entry tells
        the reason."""
        try:
            return self.judge(host)
        except Unavailable as refusal:
            return self.missing(refusal)

    def judge(self, host: Host) -> Assessment:
        """Return this tunable's entry in ``status``, an Assessment. Raise Unavailable if there is nothing to judge."""
        raise NotImplementedError

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        """Return the writes that set ``value``. ``value`` None means the good value for this host.

        The planner drops writes that change nothing. Raise Unavailable with the reason if nothing can be set here.
        Raise UsageError for an invalid value.
        """
        owner = "only the owner of the hypervisor can change this"
        raise Unavailable(owner if self.when == "host" else "this tool reports this setting and does not change it")

    def writes_once(self, host: Host, value: str | None) -> Sequence[Write]:
        """Return the writes that set ``value`` for the next boot only.

        Raise Unavailable if nothing can be set. Raise UsageError for an invalid value.
        """
        raise Unavailable("this setting cannot be changed for one boot alone")

    def takes_offline(self, host: Host, value: str | None) -> CpuSet:
        """Return the CPUs that this tunable would take offline to set ``value``. The other tunables of a plan are
        planned for the remaining CPUs.

        Raise Unavailable if nothing can be set. Raise UsageError for an invalid value.
        """
        return CpuSet()

    def stays(self, host: Host, value: str | None) -> str:
        """Return a sentence on the settings that the host would refuse to change. :meth:`writes` returns no writes for
        these settings. Return "" if there are no such settings.
        """
        return ""

    def held(self, host: Host) -> str:
        """Return the reason why changing this tunable has hardly any effect here. Return "" if a change has an effect,
        or if its effect is unknown.
        """
        del host
        return ""

    @property
    def changes_host(self) -> bool:
        """Return True if the tunable can be planned and applied."""
        return bool(self.owns)

    # Helpers for subclasses -------------------------------------------------------------------------------------

    def answer(
        self,
        state: State,
        value: str | None,
        reason: str,
        *,
        wanted: str | None = None,
        paths: Sequence[str] | None = None,
        fix: str = "",
        only_host: bool = False,
    ) -> Assessment:
        """Return an Assessment of this tunable. ``paths``: the files to show; None means the tunable's own files.

        ``fix``: the command to show as the remedy. If ``fix`` is "" and the state is ``improve``, the command that
        applies the tunable is shown.
        """
        if state == "improve" and not fix and self.changes_host:
            fix = f"jitter-workshop apply {self.id}"
        shown = tuple(self.paths if paths is None else paths)
        return Assessment(self.id, self.title, state, value, wanted, reason, self.when, shown, fix, only_host=only_host)

    def missing(self, refusal: Unavailable) -> Assessment:
        """Return the Assessment of a tunable that is not available here."""
        state: State = "info" if refusal.info else "unavailable"
        return self.answer(state, None, refusal.reason, paths=refusal.paths, only_host=refusal.only_host)


class Observed(Tunable):
    """Define a tunable that is reported and never changed."""

    when = "report"


class Settings(Tunable):
    """Define a tunable as a list of settings, each with a wanted value; most tunables are of this form."""

    good: ClassVar[str] = "every setting has its wanted value"
    """The reason shown when every setting has its wanted value."""
    bad: ClassVar[str] = "{current}, but {wanted} is better"
    """The reason shown for a single setting that does not have its wanted value."""
    shown_paths: ClassVar[int] = 4

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        """Return all settings that matter on this host. ``value`` None means the good value for this host.

        Raise Unavailable if this host has no such settings. Raise UsageError for an invalid value.
        """
        raise NotImplementedError

    def judge(self, host: Host) -> Assessment:
        settings = self.settings(host, None)
        if not settings:
            return self.answer("ok", None, self.good)
        readable = [s for s in settings if s.current is not None]
        paths = [s.path for s in settings[: self.shown_paths]]
        if not readable:
            return self.answer("unavailable", None, f"the setting cannot be read: {settings[0].reason}", paths=paths)
        value = _values([self.shown(s.current or "") for s in readable])
        wanted = _values([self.shown(s.wanted) for s in readable])
        off = [s for s in readable if not kind_of(s.kind).same(s.current or "", s.wanted)]
        movable = [s for s in off if not s.refuses]
        if movable:
            reason = f"{len(movable)} of {len(settings)} settings differ"
            if len(settings) == 1:
                reason = self.differs(movable[0], host)
            return self.answer(
                "improve", value, reason, wanted=wanted, paths=[s.path for s in movable[: self.shown_paths]]
            )
        reason = (
            self.good if not off else f"{self.good}; {len(off)} of the settings cannot be changed: {off[0].refuses}"
        )
        return self.answer("ok", value, reason, wanted=wanted, paths=paths)

    def differs(self, setting: Setting, host: Host) -> str:
        """Return the reason to show if a setting differs from its wanted value. It is the template ``self.bad`` with
        the values filled in: ``current``, ``wanted``, and ``clear``, the name for the CPUs that should get no
        background work."""
        current, wanted = self.shown(setting.current or ""), self.shown(setting.wanted)
        return self.bad.format(current=current, wanted=wanted, clear=host.clear_words)

    def shown(self, value: str) -> str:
        """Return a value in the form for the user, such as MHz instead of kHz."""
        return value

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        settings = self.settings(host, value)
        usable = [s for s in settings if s.current is not None and not s.refuses]
        if settings and not usable:
            raise Unavailable(settings[0].refuses or settings[0].reason or "the setting cannot be read")
        return [Write(s.path, s.current or "", s.wanted, s.kind) for s in usable]

    def stays(self, host: Host, value: str | None) -> str:
        settings = self.settings(host, value)
        kept = [s for s in settings if s.refuses]
        reasons = ", or ".join(dict.fromkeys(s.refuses for s in kept))
        return f"{len(kept)} of {len(settings)} settings cannot be changed: {reasons}" if kept else ""

    def choose(self, value: str | None, allowed: Sequence[str]) -> str:
        """Return ``value`` if it is in ``allowed``. If ``value`` is None, return the default.

        Raise UsageError if ``value`` is not allowed, or if it is None and there is no default. Raise Unavailable if the
        default is not in ``allowed``.
        """
        wanted = value if value is not None else self.default
        if wanted is None:
            raise UsageError(f"{self.id} needs a value", f"write {self.id}=VALUE; VALUE is {self.values}")
        if wanted in allowed:
            return wanted
        offered = ", ".join(allowed) or "nothing"
        if value is not None:
            raise UsageError(f"{self.id} cannot be '{value}' here", f"this host offers: {offered}")
        raise Unavailable(f"'{wanted}' is not available on this host; available: {offered}")


def _values(texts: Sequence[str]) -> str:
    """Return the distinct ``texts`` as one text, in the given order. If there are more than MOST_ENTRIES, the
    text has the first ones and the number of all distinct texts.
    """
    distinct = list(dict.fromkeys(texts))
    shown = ", ".join(distinct[:MOST_ENTRIES])
    return shown if len(distinct) <= MOST_ENTRIES else f"{shown}, … ({len(distinct)} different values)"
