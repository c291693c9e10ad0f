"""Restore the settings that the journals record as changed, in a safe order.

All our writes to one setting form one chain. A restore writes the value that the setting had before the oldest write of
its chain. ``ordering`` gives the order of the chains. A setting is restored only if its present value comes from this
tool. It may come from a write, or from a reaction of the host or the kernel to writes (``switched``). Any other value
was set by somebody else. Then the setting is left alone and reported.

If the host refuses the old value, or changes it after the write, the old value is written again. This happens after the
other settings were restored. A setting that still cannot be restored is *owed*: the journal records the reason, and
later restores try again. All settings are recorded as undone at the very end, after the follow-up commands
(``update-grub``). So if a restore is killed, the next restore does everything again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from jitter_workshop.errors import reason
from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.model.change import Change, LeftAlone, Restored, RestoreResult
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.text import LINE
from jitter_workshop.tuning.applying import quoted
from jitter_workshop.tuning.journal import Entry, Journal, Recorder, void
from jitter_workshop.tuning.ordering import CPUS, OrderingFacts, ordered, ordering_facts
from jitter_workshop.tuning.planning import owned
from jitter_workshop.tuning.setting_types.cpu import BOUND, SCHEDUTIL, governor_threads, policy_folder
from jitter_workshop.tuning.setting_types.kinds import Kind, kind_of
from jitter_workshop.tuning.setting_types.tasks import affinity_call, remembers_wishes
from jitter_workshop.tuning.switched import Switched, cpu_of, node_cpus, read_switched, switches
from jitter_workshop.tuning.tunables.registry import tunables
from jitter_workshop.tuning.writer import HostWriter, run_then

_ROUNDS = 4
"""The most passes over all settings. One pass suffices unless a host changes settings as a side effect."""


def restore_journals(
    root: HostRoot,
    writer: HostWriter,
    journals: Sequence[tuple[Journal, Recorder]],
    boot_id: str | None,
    only: Collection[str] = (),
    rewriter: Callable[[str], str | None] = lambda tunable: None,
    *,
    forget: bool = False,
    among: Collection[str] | None = None,
) -> RestoreResult:
    """Restore the settings that ``journals`` record as changed, and return each setting's outcome.

    - ``journals``: all journals with active entries, oldest first. Their entries are updated.
    - ``boot_id``: the boot id of the running kernel.
    - ``only``: the tunables to restore; empty means all. Owed settings are restored in any case.
    - ``rewriter``: a function that returns the service that probably changed the setting of a tunable, or None.
    - ``forget``: True to record settings that somebody else changed as undone. Later restores then ignore these
      settings.
    - ``among``: the ids of the journals to restore; None means all. The writes of the other journals stay in effect.

    The call may be repeated, even after it was killed at any point.
    """
    recorders = {journal.id: recorder for journal, recorder in journals}
    mine = set(recorders) if among is None else set(recorders) & set(among)
    way = _Way(root, writer, [one for one, _ in journals], recorders, boot_id, rewriter, forget, set(only), mine)
    way.choose()
    way.restore()
    return way.finish(partly=bool(only) or among is not None)


@dataclass(slots=True)
class _Chain:
    """Hold our writes to one setting, oldest first, and the value to restore (``target``).

    - ``holds``: True if the setting is not restored, so that our value stays in effect. If another setting's restore
      overwrites our value, our value is written again.
    - ``foreign``: True if somebody else has changed the setting after our last write.
    - ``every``: for an affinity that is widened to all CPUs. The affinity needs no write if it has all CPUs of
      ``every``.
    - ``opens``: the CPUs that such an affinity must have after this restore has written it. If this restore does not
      remove a cpuset of ours, the cpuset's CPUs are not in ``opens``.
    - ``written``: True if this restore has written the target.
    - ``sure``: True if the old value is durable, and no interrupted write has left anything behind.
    - ``readable``: True if the setting could be read without an error.
    - ``first``: the value that the setting had when this restore began.
    - ``done``: the outcome; "" without an outcome. ``why``: the reason why there is no outcome yet.
    """

    kind: Kind
    path: str
    target: str
    entries: list[Entry]
    holds: bool = False
    foreign: bool = False
    every: CpuSet = field(default_factory=CpuSet)
    opens: CpuSet = field(default_factory=CpuSet)
    written: bool = False
    sure: bool = False
    readable: bool = False
    first: str | None = None
    done: str = ""
    why: str = ""

    @property
    def newest(self) -> Entry:
        return self.entries[-1]

    def settled(self, found: str) -> bool:
        """Return True if ``found`` is the value that the setting must have."""
        if self.opens:
            return not (self.opens if self.written else self.every) - _mask(found)
        wanted = (self.target, self.newest.read_back) if self.holds else (self.target,)
        return any(value is not None and self.kind.same(found, value) for value in wanted)

    def known(self) -> set[str]:
        """Return every value that the setting had before or after one of our writes, and the target."""
        return _values(self.entries) | {self.target}


@dataclass(slots=True)
class _Way:
    """Hold the state of one restore.

    - ``recorders``: the recorder of each journal, by its id.
    - ``struck``: the entries to record as undone, each with its outcome.
    - ``by_path``: the active entries of each setting.
    - ``undone``: the entries of each setting that were undone earlier.
    """

    root: HostRoot
    writer: HostWriter
    journals: Sequence[Journal]
    recorders: Mapping[str, Recorder]
    boot_id: str | None
    rewriter: Callable[[str], str | None]
    forget: bool
    only: set[str]
    among: set[str]
    chains: list[_Chain] = field(default_factory=list)
    restored: list[Restored] = field(default_factory=list)
    left: list[LeftAlone] = field(default_factory=list)
    struck: list[tuple[Entry, str]] = field(default_factory=list)
    by_path: dict[str, list[Entry]] = field(default_factory=dict)
    undone: dict[str, list[Entry]] = field(default_factory=dict)
    noted_in: dict[tuple[str, int], str] = field(default_factory=dict)
    ending: bool = False
    wishes: bool = False
    switched: Switched = field(default_factory=lambda: Switched(CpuSet()))

    # Choose the settings to restore ---------------------------------------------------------------------------------

    def _asked(self, entry: Entry) -> bool:
        """Return True if the setting of an entry is to be restored. The caller asked for it, or an earlier restore
        failed."""
        return bool(entry.owed) or (entry.journal in self.among and (not self.only or entry.tunable in self.only))

    def choose(self) -> None:
        """Build the chains of the settings to restore."""
        history: list[Entry] = []
        for journal in self.journals:
            for entry in journal.entries.values():
                asked = self._asked(entry)
                if entry.state == "refused" or (entry.state == "undone" and void(entry, self.boot_id)):
                    continue
                if entry.active and void(entry, self.boot_id):
                    if asked:
                        self.struck.append((entry, "void"))
                    continue
                try:
                    _checked(entry)
                except ValueError as error:
                    if entry.active and asked:
                        self.left.append(LeftAlone(entry.tunable, entry.path, entry.after, None, str(error)))
                    continue
                history.append(entry)
                (self.by_path if entry.active else self.undone).setdefault(entry.path, []).append(entry)
        isolated = CpuSet.of(cpu for journal in self.journals if journal.active for cpu in journal.isolated)
        self.switched = read_switched(self.root, history, isolated)
        self.wishes = remembers_wishes(self.root)
        for entries in self.by_path.values():
            with self._guarded(entries[-1]):
                self._choose_of(entries)
        self.chains.sort(key=lambda chain: (chain.newest.journal, chain.newest.n), reverse=True)
        self._open_masks()
        self._open_what_others_left()
        for chain in self.chains:
            with self._guarded(chain.newest):
                if chain.kind.exists(self.root, chain.path):
                    chain.first = chain.kind.read(self.root, chain.path).text
                self._look_further_back(chain)
                if chain.first is not None:
                    chain.foreign = not self._ours(chain, chain.first)
                chain.readable = True
        self.chains = [chain for chain in self.chains if chain.readable]
        self._note_lost()

    @contextlib.contextmanager
    def _guarded(self, entry: Entry) -> Iterator[None]:
        """Catch any error of the block, and report the setting of ``entry`` as left alone. One damaged entry must not
        stop the restore of the others."""
        try:
            yield
        except Exception as error:
            self.left.append(LeftAlone(entry.tunable, entry.path, entry.after, None, _mistake(error)))

    def _choose_of(self, entries: list[Entry]) -> None:
        """Build the chain of one setting from ``entries``, oldest first.

        The chain has only entries that are newer than the newest entry that stays in effect. An entry stays if the
        caller does not want to restore it. The caller may want to restore an entry that is older than one that stays.
        The older entry's ``before`` then becomes the ``before`` of the next newer entry that stays.
        """
        asked = [self._asked(entry) for entry in entries]
        kinds = [kind_of(entry.kind) for entry in entries]
        kind = next((k for k in kinds if k.always), kinds[-1])
        count = len(entries)
        top = count
        while top and asked[top - 1]:
            top -= 1
        mine = entries[top:]
        for position in range(top - 1, -1, -1):
            if asked[position]:
                above = next(n for n in range(position + 1, top) if not asked[n])
                self._hand_down(entries[position], entries[above])
        if not mine:
            newest = entries[-1]
            if newest.state == "written":
                self.chains.append(_Chain(kind, newest.path, newest.after, entries[-1:], holds=True))
            return
        while len(mine) > 1 and (strangers := self._break_of(kind, mine)):
            for entry in mine[:strangers]:
                self._leave_to_others(entry, None)
            mine = mine[strangers:]
        self.chains.append(_Chain(kind, mine[0].path, mine[0].before, mine))

    def _look_further_back(self, chain: _Chain) -> None:
        """Correct the target of a chain after a restore that was killed.

        The killed restore may have undone several of our writes, but recorded only the oldest as undone. The setting
        may then have a value from before the chain, and this value is the target. To find it, go through the undone
        writes from the newest to the oldest. Stop at a write whose value is not the ``before`` of the next newer write.
        """
        target, oldest = chain.target, chain.entries[0]
        for entry in reversed(self.undone.get(chain.path, ())):
            if (entry.journal, entry.n) > (oldest.journal, oldest.n):
                continue
            if not any(chain.kind.same(target, v) for v in (entry.after, entry.read_back) if v is not None):
                return
            target = entry.before
            if chain.first is not None and chain.kind.same(chain.first, target):
                chain.target = target
                return

    def _break_of(self, kind: Kind, entries: list[Entry]) -> int:
        """Return how many of the oldest entries to leave out of a chain; 0 for none.

        After these entries and before the next one, somebody else (a program or a person) changed the setting. The
        restore then writes the value that this program or person set.
        """
        for position in range(len(entries) - 1, 0, -1):
            newer, ours = entries[position], _values(entries[:position])
            if any(kind.same(newer.before, value) for value in ours) or kind.self_moving:
                continue
            if not kind.by_kernel(self.root, newer.path, newer.before, ours, self.switched):
                return position
        return 0

    def _hand_down(self, entry: Entry, above: Entry) -> None:
        """Copy the ``before`` of ``entry`` to ``above``, a later entry that is not undone now. Record the value in the
        journal for a later restore."""
        try:
            if above.before != entry.before:
                self.recorders[above.journal].handed(above.n, entry.before)
        except OSError as error:
            self.left.append(LeftAlone(entry.tunable, entry.path, entry.after, None, reason(error)))
            return
        above.before = entry.before
        self.noted_in[above.journal, above.n] = self.noted_in.get((entry.journal, entry.n), entry.journal)
        self.struck.append((entry, "handed"))

    def _open_masks(self) -> None:
        """Widen the recorded values of affinities that a cpuset of ours has narrowed.

        Before the cpuset was made, the task could use all CPUs. When the cpuset was made, the kernel took the cpuset's
        CPUs from the task's affinity. The journal recorded the affinity only after that, so the recorded affinity lacks
        these CPUs. When the cpuset is gone, the task may use all CPUs again.
        """
        sets = [entry for entries in self.by_path.values() for entry in entries if _makes_a_set(entry)]
        if not sets:
            return
        began = min(entry.journal for entry in sets)
        ending = self.ending = any(_ends_a_set(chain) for chain in self.chains if not chain.holds)
        present = self.root.cpu_list(f"{CPU_DIR}/present") or CpuSet()
        held, opened = self.switched.isolated, self.switched.opened()
        chosen = {chain.path: chain for chain in self.chains if not chain.holds}
        for path, entries in self.by_path.items():
            if not path.startswith("sched_setaffinity("):
                continue
            chain = chosen.get(path)
            for entry in entries:
                oldest = chain is not None and entry is chain.entries[0]
                mask = _mask(chain.target if chain is not None and oldest else entry.before)
                if self.noted_in.get((entry.journal, entry.n), entry.journal) <= began or mask not in opened:
                    continue
                if ending:
                    with contextlib.suppress(OSError):  # if this cannot be recorded, the noted value stays
                        self.recorders[entry.journal].handed(entry.n, str(present | mask))
                        entry.before = str(present | mask)
                if chain is not None and oldest:
                    chain.target, chain.every = str(self.switched.possible), present
                    chain.opens = present if ending else present - held

    def _open_what_others_left(self) -> None:
        """Widen affinities that another program's partition had narrowed, if this partition no longer exists.

        Such an affinity was recorded while the partition existed. So the recorded affinity lacks the partition's CPUs.
        """
        if not self.switched.gone:
            return
        isolated = {journal.id: CpuSet.of(journal.isolated) for journal in self.journals}
        sets = [entry for entries in self.by_path.values() for entry in entries if _makes_a_set(entry)]
        began = min((entry.journal for entry in sets), default="~")
        whole = [self.switched.possible, *self.switched.online, *node_cpus(self.root)]
        for chain in self.chains:
            entry = chain.entries[0]
            noted = self.noted_in.get((entry.journal, entry.n), entry.journal)
            then = isolated[noted]
            mask = _mask(chain.target)
            if chain.holds or not then or not chain.path.startswith("sched_setaffinity("):
                continue
            # A set of ours took CPUs from this mask only if the set existed before the mask was noted.
            taken = (CpuSet(), *(self.switched.taken if noted > began else ()))
            found = [w for w in whole if any(w - cpus - then == mask for cpus in taken)]
            more = CpuSet.of(cpu for cpus in found for cpu in cpus) & then & self.switched.gone
            chain.target = str(mask | more)

    def _note_lost(self) -> None:
        """Record the affinities that the kernel will overwrite because of this restore. They are written again
        afterwards.

        When a cpuset of ours ends, three kinds of affinities are overwritten (``isolation.lost_at_the_end``):

        * affinities that tasks got after the cpuset was made;
        * affinities with offline CPUs;
        * affinities of bound schedutil threads.

        If CPUs come online again and no cpuset ends, other affinities are overwritten (``isolation.lost_to_others``).
        These are affinities that lack CPUs of another program's partition.
        """
        from jitter_workshop.tuning.tunables.isolation import lost_at_the_end, lost_to_others

        ends = [chain for chain in self.chains if not chain.holds and _ends_a_set(chain)]
        returns = [chain for chain in self.chains if not chain.holds and _brings_cpus(chain)]
        if not ends and not returns:
            return
        lost = lost_at_the_end if ends else lost_to_others
        known = {chain.path for chain in self.chains if not chain.foreign}
        entry = (ends or returns)[0].newest
        journal = next(one for one in self.journals if one.id == entry.journal)
        why = "If a cpuset ends or a CPU returns, the kernel changes the CPUs that this task may use."
        found = [
            (affinity_call(task.tid, task.start_ticks), str(mask), str(rest), why, "affinity-across")
            for task, mask, rest in lost(self.root, self.switched, self._returning())
        ]
        why = (
            "When the cpuset is removed, the kernel unbinds this thread. To bind the thread again, this tool sets the "
            "governor again."
        )
        found += [(path, BOUND, BOUND, why, "governor-thread") for path in (self._governors() if ends else ())]
        new = [one for one in found if one[0] not in known]
        if not new:
            return
        changes = [
            Change(n, entry.tunable, path, before, after, "runtime", "low", why, kind=kind)
            for n, (path, before, after, why, kind) in enumerate(new, start=max(journal.entries) + 1)
        ]
        with contextlib.suppress(OSError):  # if this cannot be recorded, the rest is still restored
            self.recorders[journal.id].intents(changes)
        for c in changes:
            what = (c.n, c.tunable, c.path, c.kind, c.before, c.after, c.when)
            added = Entry(journal.id, *what, lease=False, then="", boot_id=entry.boot_id)
            journal.entries[c.n] = added
            self.chains.append(_Chain(kind_of(c.kind), c.path, c.before, [added], readable=True))

    def _governors(self) -> list[str]:
        """Return the paths of the schedutil threads to bind to their CPUs after the restore.

        Kernels before 6.2 let these threads run on every CPU when a partition ends. On later kernels, return no paths.
        """
        if self.wishes:
            return []
        targets = {chain.path: chain.target for chain in self.chains if not chain.foreign}
        found = []
        for path in governor_threads(self.root):
            file = f"{policy_folder(path)}/scaling_governor"
            found += [path] if targets.get(file, self.root.text(file)) == SCHEDUTIL else []
        return found

    def _returning(self) -> CpuSet:
        """Return the CPUs that this restore brings back online."""
        back = [chain.path for chain in self.chains if not chain.foreign and chain.target in ("1", "on")]
        return CpuSet.of(cpu for path in back for cpu in switches(self.root, path))

    # Restore them -----------------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Write the target of each chain, in order. Repeat this until no setting changes any more, but at most _ROUNDS
        times.
        """
        displacing = {group for c in self.chains if not c.holds for group in self._facts(c).displaces}
        self.chains = [c for c in self.chains if not c.holds or (self._facts(c).group in displacing and not c.foreign)]
        in_order = [self.chains[position] for position in ordered([self._facts(c) for c in self.chains])]
        for _ in range(_ROUNDS):
            if not [chain for chain in in_order if self._moved(chain)]:
                break

    def _moved(self, chain: _Chain) -> bool:
        """Restore the setting of one chain, and return True if anything changed. If an error is raised, store it as the
        chain's reason, and return False."""
        try:
            return self._restore(chain)
        except Exception as error:
            chain.done, chain.why = "", _mistake(error)
            return False

    def _facts(self, chain: _Chain) -> OrderingFacts:
        return ordering_facts(chain.path, chain.kind.name, chain.target)

    def _ours(self, chain: _Chain, found: str) -> bool:
        """Return True if ``found`` comes from this tool. Either this tool wrote it, or the kernel made it from such a
        value.
        """
        kind = chain.kind
        # Older writes that were given up meant the same value.
        given_up = [one for one in self.undone.get(chain.path, ()) if kind.same(one.before, chain.target)]
        known = chain.known() | _values(given_up)
        by_smt = f"{CPU_DIR}/smt/control" in self.by_path and chain.path.endswith("/online")
        return (
            any(kind.same(found, value) for value in known)
            or by_smt
            or any(
                (kind.halfway(found, entry.after) and (entry.state == "intent" or not kind.fleeting))
                or kind.between(found, chain.target, entry.after)
                for entry in chain.entries
            )
            or kind.self_moving
            or kind.by_kernel(self.root, chain.path, found, known, self.switched)
        )

    def _restore(self, chain: _Chain) -> bool:
        """Write the target value to one setting if needed. Return True if the setting or its outcome changed."""
        kind, was = chain.kind, (chain.done, chain.why)
        if chain.foreign or (chain.done and kind.self_moving):
            return False
        found = self._look(chain)
        if found is None:
            return was != (chain.done, chain.why)
        try:
            kind.write(self.writer, chain.path, chain.target)
        except OSError as error:
            if not kind.exists(self.root, chain.path):
                chain.done, chain.why = "gone", ""
                return True
            chain.done, chain.why = "", reason(error)
        else:
            chain.written = True
            says = kind.read(self.root, chain.path).text
            kept = says is not None and (chain.settled(says) or kind.self_moving)
            chain.done = "restored" if kept else ""
            chain.why = "" if kept else f"the restore wrote {quoted(chain.target)}, but the host did not keep it"
        return was != (chain.done, chain.why)

    def _look(self, chain: _Chain) -> str | None:
        """Return the current value of a setting that the restore still has to write. Return None if the setting needs
        no write, or cannot be written."""
        kind = chain.kind
        if not kind.exists(self.root, chain.path):
            away = _cpu_offline(self.root, chain.path)
            chain.done, chain.why = ("", away) if away else ("gone", "")
            return None
        reading = kind.read(self.root, chain.path)
        if reading.text is None:
            chain.done, chain.why = "", f"the setting cannot be read: {reading.reason}"
            return None
        if chain.first is None and not self._ours(chain, reading.text):
            chain.foreign, chain.first, chain.done = True, reading.text, ""
            return None
        chain.first = chain.first if chain.first is not None else reading.text
        if chain.settled(reading.text):
            if not self._made_sure(chain):
                return None
            self._wish_back(chain)
            chain.done = chain.done or ("same" if chain.settled(chain.first) else "restored")
            chain.why = ""
            return None
        return reading.text

    def _wish_back(self, chain: _Chain) -> None:
        """Write an affinity again, although the kernel has already restored it.

        Kernels from 6.2 on remember the affinity that was requested last. This tool made the last request. Without a
        new request, the kernel would set this tool's affinity again when CPUs or cpusets change.
        """
        wrote = any(entry.state == "written" and entry.before != entry.after for entry in chain.entries)
        if chain.written or chain.holds or not wrote or not chain.path.startswith("sched_setaffinity("):
            return
        if not self.wishes:
            return
        chain.written = True
        chain.opens = chain.opens or _mask(chain.target) - (CpuSet() if self.ending else self.switched.isolated)
        with contextlib.suppress(OSError):  # the setting already has the wanted value
            chain.kind.write(self.writer, chain.path, chain.target)

    def _made_sure(self, chain: _Chain) -> bool:
        """Make the old value of a setting durable, and remove leftovers of interrupted writes.

        Return False if this fails for a setting that survives a reboot.
        """
        kind = chain.kind
        if chain.sure or not (kind.survives_boot or any(entry.state == "intent" for entry in chain.entries)):
            return True
        try:
            kind.make_sure(self.writer, chain.path, chain.target)
        except OSError as error:
            if kind.survives_boot:
                chain.done, chain.why = "", f"the old value is back, but cannot be made permanent: {reason(error)}"
                return False
        chain.sure = True
        return True

    # Report and record ------------------------------------------------------------------------------------------------

    def finish(self, *, partly: bool) -> RestoreResult:
        """Run the follow-up commands, record the outcome of every chain, and return all outcomes.

        ``partly``: True if the caller wants to restore only some of the tunables or journals.
        """
        needs_reboot = False
        for chain in self.chains:
            if chain.foreign:
                self._tell_foreign(chain)
            elif not chain.done:
                self._tell_owed(chain)
            elif not chain.holds:
                needs_reboot |= self._tell_done(chain)
        self._follow(partly)
        return RestoreResult(tuple(self.restored), tuple(self.left), needs_reboot)

    def _tell_done(self, chain: _Chain) -> bool:
        """Record that the setting of ``chain`` is restored. Return True if the old value takes effect only after a
        reboot."""
        told: set[str] = set()
        for entry in reversed(chain.entries):
            if chain.done == "restored" and entry.tunable not in told:
                told.add(entry.tunable)
                self.restored.append(Restored(entry.tunable, chain.path, chain.first or "", chain.target))
            self.struck.append((entry, chain.done))
        return any(
            chain.kind.effect_after_boot
            and chain.done in ("restored", "same")
            and entry.boot_id != self.boot_id
            and chain.kind.in_effect(self.root, entry.after)
            for entry in chain.entries
        )

    def _tell_owed(self, chain: _Chain) -> None:
        """Record that the setting of ``chain`` could not be restored yet, with the reason."""
        says = chain.kind.read(self.root, chain.path).text
        entry = chain.newest
        waits = chain.kind.waits_for(self.root, chain.path, chain.target)
        why = f"{waits}, so the host cannot keep {quoted(chain.target)}" if waits else chain.why
        if chain.holds:
            words = (
                "this setting changed when another setting was restored, and a second restore of this setting "
                f"failed: {why}"
            )
            self.left.append(LeftAlone(entry.tunable, chain.path, chain.target, says, words))
            return
        if says is not None and says != entry.read_back:
            entry.state, entry.read_back = "written", says
            self.recorders[entry.journal].written(entry.n, says)
        for one in chain.entries:
            one.owed = why
            self.recorders[one.journal].owed(one.n, why)
        words = f"{why}; run 'restore' again when this obstacle is gone" if waits else why
        self.left.append(LeftAlone(entry.tunable, chain.path, entry.after, says, words))

    def _tell_foreign(self, chain: _Chain) -> None:
        self._leave_to_others(chain.newest, chain.first, chain.target)
        if self.forget:
            self.struck += [(entry, "forgotten") for entry in reversed(chain.entries[:-1])]

    def _leave_to_others(self, entry: Entry, found: str | None, before: str | None = None) -> None:
        """Report a setting as left alone, because another program or user changed it."""
        who = self.rewriter(entry.tunable)
        by = f", probably {who}, which is running" if who else ""
        was = (
            f"another program or user has changed this setting{by}; the value before our change was "
            f"{quoted(entry.before if before is None else before)}"
        )
        words = f"{was}; the new value is kept" if self.forget else was
        self.left.append(LeftAlone(entry.tunable, entry.path, entry.after, found, words))
        if self.forget:
            self.struck.append((entry, "forgotten"))

    def _follow(self, partly: bool) -> None:
        """Run each follow-up command once, and afterwards record the settings as undone.

        If a command fails, the entries that need it stay in the journal, and the next restore tries again. The command
        is also run if the setting already had its old value. After a power cut, the file may have its old content
        again, while the earlier command's effect remains. ``partly``: True to run only the commands of the settings
        that this call restores.
        """
        due: dict[str, list[Journal]] = {}
        for journal in self.journals:
            mine = [entry for entry, how in self.struck if entry.journal == journal.id and how != "forgotten"]
            if partly and not mine:
                continue
            for name in dict.fromkeys((*journal.due, *(entry.then for entry in mine if entry.then))):
                due.setdefault(name, []).append(journal)
        written = {entry.then for c in self.chains if c.done == "restored" for entry in c.entries}
        failed = set()
        for name, owing in due.items():
            whose = next((e.tunable for j in owing for e in j.entries.values() if e.then == name), "journal")
            try:
                run_then(name, self.root, self.writer)
            except OSError as error:
                failed.add(name)
                self.left.append(
                    LeftAlone(
                        whose, name, "done", None, f"the command that must follow the restore failed: {reason(error)}"
                    )
                )
                continue
            if name not in written:
                self.restored.append(Restored(whose, name, "due", "done"))
        for entry, how in self.struck:
            if entry.then not in failed:
                entry.state = "undone"
                self.recorders[entry.journal].undone(entry.n, how)
        for name, owing in due.items():
            for journal in owing:
                journal.due = [one for one in journal.due if one != name] + ([name] if name in failed else [])
                if name not in failed:
                    self.recorders[journal.id].then(name)


def _mistake(error: Exception) -> str:
    """Return the reason shown for an entry that caused an unexpected error."""
    return f"the setting cannot be restored: {type(error).__name__}: {printable(str(error), LINE)}"


def _mask(text: str) -> CpuSet:
    """Return the CPUs of a list such as ``0-3``. Return no CPUs if the text is not a list of CPUs."""
    return CpuSet.if_list(text) or CpuSet()


def _makes_a_set(entry: Entry) -> bool:
    """Return True if this write made an isolated cpuset."""
    if entry.kind == "cpuset":
        return entry.after != "absent"
    return entry.kind == "partition" and entry.after == "isolated"


def _ends_a_set(chain: _Chain) -> bool:
    """Return True if restoring this setting ends an isolated cpuset."""
    if chain.kind.name == "cpuset":
        return chain.target == "absent"
    return chain.kind.name == "partition" and chain.target != "isolated"


def _brings_cpus(chain: _Chain) -> bool:
    """Return True if restoring this setting brings CPUs online."""
    facts_ = ordering_facts(chain.path, chain.kind.name, chain.target)
    return facts_.group == "cpus" and CPUS in facts_.makes


def _values(entries: Iterable[Entry]) -> set[str]:
    """Return every value that these entries record. An entry records the value before the write, the written value,
    and the value read back.
    """
    found = {value for e in entries for value in (e.before, e.after, e.read_back)}
    return {value for value in found if value is not None}


def _checked(entry: Entry) -> Kind:
    """Return the kind of an entry's setting. Raise ValueError with the reason if this version must not write this
    setting."""
    tunable = next((t for t in tunables() if t.id == entry.tunable), None)
    if tunable is None:
        raise ValueError("this version does not know the tunable; restore the setting with the version that applied it")
    if not owned(tunable, entry.path):
        raise ValueError(f"not restored: the tunable {entry.tunable} may not write this path")
    return kind_of(entry.kind)


def _cpu_offline(root: HostRoot, path: str) -> str:
    """Return "CPU N is offline" if ``path`` belongs to an offline CPU; "" otherwise.

    The files of an offline CPU's settings do not exist. They exist again when the CPU is online.
    """
    present, online = root.cpu_list(f"{CPU_DIR}/present"), root.cpu_list(f"{CPU_DIR}/online")
    cpu = cpu_of(path)
    if cpu is None or present is None or online is None:
        return ""
    return f"CPU {cpu} is offline" if cpu in present and cpu not in online else ""
