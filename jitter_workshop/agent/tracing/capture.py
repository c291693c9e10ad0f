"""Record the kernel's trace for one measurement, in two trace instances of our own.

A run is measured in blocks, with pauses between them. During a block, no process reads the trace. In the pauses, this
process reads and decodes the trace's pages as root. The caller gets names and numbers, but no address of the kernel or
of a process. The kernel's global buffer and other programs' instances are not changed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from jitter_workshop.agent.caller_process import HeldProcess
from jitter_workshop.agent.tracing import instances, plan
from jitter_workshop.agent.tracing.own_view import OwnView
from jitter_workshop.errors import HostError, UsageError, reason
from jitter_workshop.host.kernel.release import version_of
from jitter_workshop.host.root import HostRoot, is_count, line_value, printable
from jitter_workshop.host.trace.events import Decoder, read_strings
from jitter_workshop.host.trace.format import PageFormat, after_a_loss, parse_event, parse_page, used_bytes
from jitter_workshop.host.trace.symbols import KALLSYMS, kernel_symbols
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import NAME
from jitter_workshop.model.trace import Strings, TraceEvent, TraceInfo, pack_events
from jitter_workshop.tuning.writer import HostWriter

MEDDLED = "another program changed this tool's trace"
BUFFER_KB = 8192
"""The size of the buffer for each hot CPU in KiB. It has room for about 200,000 events, which is over a second of the
busiest trace."""
SENDERS_KB = 1024
TOTAL_KB = (65_536, 32_768)
"""The largest buffers in KiB over all CPUs, for the hot instance and for the other instance. On a host with 128 CPUs
each CPU gets less."""
LEAST_KB = 8
SWITCH = "sched:sched_switch"
MAX_NAMES = 100_000
NEVER = (1 << 63) - 1
"""A time later than that of any event."""
_STACKS_SINCE = (5, 18)
_COUNTS = ("overrun", "commit overrun", "dropped events")
"""Lines of the kernel's file ``per_cpu/cpuN/stats`` that count lost events (Documentation/trace/ftrace.rst)."""
_HANDED = ("read events",)
"""The line of the kernel's file ``per_cpu/cpuN/stats`` that counts the events that were read."""
_TOO_MANY_NAMES = "?"
_WHOLE = ("trace_clock", "tracing_cpumask", "set_event_pid", "set_event_notrace_pid")
"""Files of a trace instance whose contents must not change during a recording."""
_OWN_KINDS = ("call", "call_end", "fault")
_WORDS = 60
FOLLOWED_KB = (16_384, 8192)
"""The size of the buffers in KiB for each CPU while a program is followed: for all tasks' events, and for the program's
own.

Two threads that hand a token over without a pause fill 8 MiB in a tenth of a second.
"""
WATCHED_KB = (8192, 2048)
"""The size of the buffers in KiB for each CPU while a program is watched: for all tasks' events, and for the program's
own.

The newest events overwrite the oldest, and only the last events are read.
"""
KEPT_BYTES = 64 << 20
"""Size limit in bytes of a followed program's trace that is kept while recording goes on: one to two million events."""


def newest_thread(root: HostRoot) -> int:
    """Return the number of the thread that was started last on this host (proc_loadavg(5)).

    Thread numbers rise to a limit. Then the kernel assigns free low numbers again.
    """
    words = (root.text("/proc/loadavg") or "").split()
    return int(words[4]) if len(words) > 4 and is_count(words[4]) else 0


class TaskNames(Strings):
    """Hold the names of tasks in a capture. Tasks can be renamed without end, so every name after the first MAX_NAMES
    becomes "?"."""

    def number(self, name: str) -> int:
        return super().number(name if len(self.all) < MAX_NAMES or name in self else _TOO_MANY_NAMES)


def of_own_threads(events: Iterable[TraceEvent], tids: Iterable[int]) -> Iterator[TraceEvent]:
    """Yield ``events`` without the system calls and page faults of other programs' threads.

    Own threads are ``tids`` and all threads that they start. The events must be in order of time.
    """
    own = set(tids)
    for event in events:
        kind = event.kind
        if kind in _OWN_KINDS:
            if event.pid in own:
                yield event
            continue
        if kind == "fork" and event.pid in own:
            own.add(event.a)
        elif kind == "exit":
            own.discard(event.pid)
        yield event


class Instance:
    """Hold one tracefs instance, and detect if another program changes its settings.

    ``folder``: the instance's path. ``cpus``: the CPUs whose buffers are read. ``lost``: CPU → number of lost events.
    ``handed``: CPU → number of events read so far.

    Another root program may switch events off or filter them. No counter shows these missing events, so a busy CPU
    would look idle.
    """

    def __init__(
        self, root: HostRoot, writer: HostWriter, folder: str, cpus: CpuSet, *, overwrites: bool = False
    ) -> None:
        self._root, self._writer = root, writer
        self.folder = folder
        self.overwrites = overwrites
        self.cpus = cpus
        self.lost = dict.fromkeys(cpus, 0)
        self.handed = dict.fromkeys(cpus, 0)
        self.enabled: tuple[str, ...] = ()
        self._enabled: tuple[str, ...] = ()
        self._says: dict[str, str] = {}

    def write(self, file: str, text: str) -> None:
        """Write ``text`` to a file of the instance. Raise HostError on failure."""
        try:
            self._writer.write(f"{self.folder}/{file}", text)
        except OSError as error:
            raise HostError(f"the kernel refuses '{text[:NAME]}' in {self.folder}/{file}: {reason(error)}") from error

    def count(self, cpu: int, names: tuple[str, ...]) -> int:
        """Return the sum of the counters ``names`` in a CPU's ``stats``."""
        total = 0
        for line in self._text(f"per_cpu/cpu{cpu}/stats").splitlines():
            name, _, number = line.partition(":")
            if name in names and number.strip().isdigit():
                total += int(number)
        return total

    def newly_lost(self) -> dict[str, int]:
        """Return CPU → number of events that the CPU has lost since the last call.

        CPUs without a loss are left out.
        """
        found = {}
        for cpu in self.cpus:
            total = self.count(cpu, _COUNTS)
            if total > self.lost[cpu]:
                found[str(cpu)] = total - self.lost[cpu]
            self.lost[cpu] = total
        return found

    def remember(self, events: Sequence[str], triggers: Sequence[str] = ()) -> None:
        """Remember the instance's present settings for :meth:`check`.

        ``events``: the enabled events. ``triggers``: the events for which this tool has set a trigger.
        """
        self.enabled = tuple(events)
        self._enabled = tuple(f"{_folder(title)}/enable" for title in events)
        filters = (f"{_folder(title)}/filter" for title in events)
        watched = (*_WHOLE, *filters, *(f"{_folder(title)}/trigger" for title in triggers))
        self._says = {file: self._text(file) for file in watched}

    def off(self) -> str:
        """Return the reason why the instance does not record now; "" if it records."""
        on = self._root.text(f"{self.folder}/tracing_on")
        return "the trace is gone" if on is None else "" if on == "1" else "the trace was switched off"

    def check(self) -> None:
        """Raise HostError if a setting has changed since :meth:`remember`. The message names the setting."""
        for file in self._enabled:
            # An event with a trigger has a star behind the 1.
            if (now := self._text(file))[:1] != "1":
                raise _changed_by_others(f"{file} says '{printable(now, _WORDS)}'")
        if self.overwrites != ("overwrite" in self._text("trace_options").split()):
            now = "off" if self.overwrites else "on"
            raise _changed_by_others(f"the option 'overwrite' is now {now}")
        for file, before in self._says.items():
            if (now := self._text(file)) != before:
                was = printable(before, _WORDS)
                raise _changed_by_others(f"{file} was '{was}' and is now '{printable(now, _WORDS)}'")

    def _text(self, file: str) -> str:
        return self._root.text(f"{self.folder}/{file}") or ""


def _folder(title: str) -> str:
    """Return an event's folder inside a trace instance. ``title``: the event as ``system:name``."""
    return f"events/{title.replace(':', '/')}"


def _changed_by_others(what: str) -> HostError:
    """Return the error for a trace that another program changed."""
    return HostError(f"{MEDDLED}: {what}", "change no settings of this trace during a run")


class Capture:
    """Hold two instances of the kernel's trace: one for the hot CPUs, one for all CPUs.

    - ``newest``: None for a short recording, which has only the threads ``tids``. For a long recording, ``newest`` is
      the highest thread number on the host just before ``tids`` was read. A long recording also has all threads that
      ``tids`` start. It is read while it continues (:meth:`drain`).
    - ``overwrites``: True if the newest events overwrite the oldest. Then the recording may last for hours, and is read
      only at its end.
    """

    def __init__(
        self,
        root: HostRoot,
        writer: HostWriter,
        top: str,
        processes: tuple[HeldProcess, ...],
        tids: tuple[int, ...],
        cpus: CpuSet,
        *,
        newest: int | None = None,
        overwrites: bool = False,
    ) -> None:
        self._overwrites = overwrites
        self._root, self._writer, self._top = root, writer, top
        self._processes, self._tids, self._follows, self._newest = processes, tids, newest is not None, newest
        self._own: set[int] = set()
        self._kept: dict[tuple[int, int], list[bytes]] = {}
        self._kept_bytes = 0
        self._full = False
        self._view = OwnView(root, writer)
        try:
            self._tracefs = instances.trace_folder(root)
        except HostError as error:
            if not self._view.why_not:
                raise
            why = f"{error.message}, and the agent could not mount the trace: {self._view.why_not}"
            raise HostError(why, error.advice) from error
        online = root.cpu_list("/sys/devices/system/cpu/online") or cpus
        self._names = [f"{instances.own_name(root)}{which}" for which in ("hot", "all")]
        self._hot, self._senders = (
            Instance(root, writer, f"{self._tracefs}/instances/{name}", of, overwrites=overwrites)
            for name, of in zip(self._names, (cpus, online | cpus), strict=True)
        )
        self._strings = TaskNames()
        self._told = 0
        self._running = False
        self._empty = True
        self._watcher: instances.Watcher | None = None
        self._affinity: set[int] | None = None
        self._form: PageFormat | None = None
        self._decoder: Decoder | None = None

    # Beginning ----------------------------------------------------------------------------------------------------

    def begin(self, clock: str, kilobytes: int, stacks: bool) -> TraceInfo:
        """Prepare the recording in both trace instances, without starting it. Return a description of the recording."""
        self._check_clock(clock)
        instances.remove_stale(self._root, self._writer)
        self._keep_off_hot_cpus()
        self._watcher = instances.Watcher(lambda: self._remove(instances.LONG_S))
        if self._newest is not None:
            wanted = plan.wanted_of_program(self._root, self._tracefs, self._tids, self._newest)
        else:
            wanted = plan.choose_events(self._root, self._tracefs, self._tids, self._hot.cpus)
        for name in self._names:
            try:
                self._writer.make_folder(f"{self._tracefs}/instances/{name}")
            except OSError as error:
                raise HostError(f"the kernel refuses to make a trace for this run: {reason(error)}") from error
        if instances.pairs(self._root, self._tracefs) > instances.MOST_PAIRS:
            raise HostError(
                f"{instances.MOST_PAIRS} measurements already record the kernel's trace, which is the limit",
                "wait until one of them has ended",
            )
        followed = WATCHED_KB if self._overwrites else FOLLOWED_KB
        share = self._share(followed[0] if self._follows else kilobytes)
        elsewhere = min(followed[1] if self._follows else SENDERS_KB, TOTAL_KB[1] // len(self._senders.cpus))
        for instance, size in ((self._hot, share), (self._senders, elsewhere)):
            self._set_up(instance, clock, max(size, LEAST_KB))
        missing = dict(wanted.missing)
        hot = self._enable(self._hot, wanted.hot, missing)
        senders = self._enable(self._senders, wanted.senders, missing)
        stacks = stacks and self._take_stacks(missing)
        self._hot.remember(hot, (SWITCH,) if stacks else ())
        self._senders.remember(senders)
        self._note_handed()
        enabled = self._read_formats(hot + senders, missing)
        if SWITCH not in enabled:
            raise HostError(f"the kernel's trace cannot show which thread runs: {missing[SWITCH]}")
        own = self._view.mounted
        return TraceInfo(clock, self._hot.cpus.cpus, tuple(enabled), missing, share, stacks, own)

    def _check_clock(self, clock: str) -> None:
        offered = (self._root.text(f"{self._tracefs}/trace_clock") or "").replace("[", "").replace("]", "").split()
        if clock not in offered:
            raise HostError(f"the kernel's trace has no clock '{clock}' here", f"the trace has {', '.join(offered)}")

    def _keep_off_hot_cpus(self) -> None:
        """Move this process off the hot CPUs, so that its work on the trace disturbs no measurement."""
        if not self._writer.real:
            return
        now = os.sched_getaffinity(0)
        other = now - set(self._hot.cpus) or set(self._senders.cpus - self._hot.cpus)
        if other and other != now:
            with contextlib.suppress(OSError):
                self._writer.set_affinity(0, other)
                self._affinity = now

    def _share(self, kilobytes: int) -> int:
        """Return the buffer size for one hot CPU in KiB: ``kilobytes`` if there is room, else less.

        The buffers of all hot CPUs together take at most the total limit, and at most a sixteenth of the free memory.
        The result is never below LEAST_KB.
        """
        words = line_value(self._root.head("/proc/meminfo", 4096), "MemAvailable").split()
        free = int(words[0]) if words and words[0].isdigit() else 0
        most = min(TOTAL_KB[0], free // 16 if free else TOTAL_KB[0])
        return max(min(kilobytes, most // len(self._hot.cpus)), LEAST_KB)

    def _nobody_else_traces(self) -> bool:
        """Return True if no events are enabled in any buffer of the kernel's trace."""
        folders = [
            self._tracefs,
            *(f"{self._tracefs}/instances/{n}" for n in self._root.list_dir(f"{self._tracefs}/instances")),
        ]
        return not any(self._root.text(f"{folder}/set_event") for folder in folders)

    def _set_up(self, instance: Instance, clock: str, kilobytes: int) -> None:
        write = instance.write
        write("tracing_on", "0")
        # Events that find no room are lost at the end, or, where the newest overwrite the oldest, at the beginning. In
        # both cases they are counted.
        for option in ("overwrite" if instance.overwrites else "nooverwrite", "nostacktrace", "nouserstacktrace"):
            write("trace_options", option)
        # Recording task names costs time at each switch. Switching it off affects every instance with enabled events,
        # so it stays on if another program traces. Sizing the buffers takes long. So the check comes right before the
        # write: another program that began in between would lose its names.
        if self._nobody_else_traces():
            with contextlib.suppress(HostError):
                write("trace_options", "norecord-cmd")
                write("trace_options", "norecord-tgid")
        write("trace_clock", clock)
        write("tracing_cpumask", instance.cpus.to_mask())
        write("buffer_size_kb", str(LEAST_KB))
        for cpu in instance.cpus:
            write(f"per_cpu/cpu{cpu}/buffer_size_kb", str(kilobytes))

    def _enable(self, instance: Instance, events: dict[str, str], missing: dict[str, str]) -> list[str]:
        """Enable the events in ``events`` with their filters. Return the enabled events. Add events that the kernel
        does not offer to ``missing``."""
        enabled = []
        for title, only in events.items():
            folder = _folder(title)
            try:
                if only:
                    try:
                        instance.write(f"{folder}/filter", only)
                    except HostError:
                        if title != "ipi:ipi_send_cpumask":  # before Linux 6.6 there is no filter by mask
                            raise
                instance.write(f"{folder}/enable", "1")
                enabled.append(title)
            except HostError as error:
                missing[title] = error.message
        return enabled

    def _take_stacks(self, missing: dict[str, str]) -> bool:
        """Let the kernel record a stack when a measured thread loses its CPU without going to sleep.

        Return False if the kernel cannot do this; ``missing`` then has the reason.
        """
        title = "stacks"
        version = version_of(self._root.text("/proc/sys/kernel/osrelease") or "")
        if version == (0, 0):
            missing[title] = "the kernel's version is not known"
        elif version < _STACKS_SINCE:
            missing[title] = (
                f"before Linux {'.'.join(map(str, _STACKS_SINCE))}, "
                "the kernel may write stacks into another program's trace"
            )
        else:
            switch = _folder(SWITCH)
            try:
                form = parse_event(self._root.text(f"{self._tracefs}/{switch}/format") or "")
                self._hot.write(f"{switch}/trigger", plan.stack_trigger(self._tids, form))
                return True
            except (HostError, ValueError) as error:
                missing[title] = str(error)
        return False

    def _read_formats(self, enabled: list[str], missing: dict[str, str]) -> list[str]:
        """Read the binary formats of the enabled events. Return the events whose format is understood. Raise HostError
        on failure."""
        read, events = self._root.text, f"{self._tracefs}/events"
        header = read(f"{self._hot.folder}/events/header_page") or read(f"{events}/header_page") or ""
        symbols = kernel_symbols(self._root)
        if symbols.reason:
            missing[KALLSYMS] = f"the trace cannot name the kernel's functions: {symbols.reason}"
        try:
            self._form = parse_page(header, read(f"{events}/header_event") or "")
            strings = read_strings(read(f"{self._tracefs}/printk_formats", 16 << 20) or "")
            self._decoder = Decoder(self._form, symbols, self._hot.cpus.cpus, strings)
        except ValueError as error:
            raise HostError(
                f"this kernel's trace has a form that this tool does not know: {error}", "please report this fault"
            ) from error
        for title in (*enabled, "ftrace:kernel_stack"):
            try:
                self._decoder.add(title, read(f"{self._tracefs}/{_folder(title)}/format") or "")
            except ValueError as error:
                missing[title] = f"this event has a form that this tool does not know: {error}"
        return [title for title in enabled if title not in missing]

    # Recording and reading ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Record from now on, into empty buffers."""
        if not self._follows:
            for process in self._processes:
                process.check()
        if not self._empty:
            for instance in (self._hot, self._senders):
                instance.write("tracing_on", "0")
                instance.write("trace", "")  # empties the buffers and their counters
                instance.lost = dict.fromkeys(instance.cpus, 0)
            self._note_handed()
        self._kept.clear()
        self._kept_bytes, self._full = 0, False
        self._empty, self._running = False, True
        self._own = {*self._tids, *self._threads()} if self._follows else set()
        if self._follows:
            self._follow_new_numbers()
        for instance in (self._senders, self._hot):
            instance.write("tracing_on", "1")

    def drain(self) -> tuple[int, bool]:
        """Move the recorded events from the kernel's buffers to this process's memory, for :meth:`read`.

        Return a pair: the number of bytes in memory, and True if the recording has stopped. It stops if a buffer has
        lost events, or if the memory's limit is reached. Raise UsageError if no long recording is running. Raise
        HostError if another program changed the trace.
        """
        if not self._running or not self._follows or self._overwrites:
            raise UsageError("no program is traced for this connection now", "send 'begin' with 'pids', then 'start'")
        if self._full:
            return self._kept_bytes, True
        for instance in (self._hot, self._senders):
            if words := instance.off():
                raise _changed_by_others(words)
        self._check_handed()
        self._follow_new_numbers()
        # Events that are lost now came after all that are read now, except those that are recorded during the reading.
        self._full = self._lost_any()
        if self._full:
            self._pause()
        self._take()
        if not self._full and (self._lost_any() or self._kept_bytes > KEPT_BYTES):
            self._full = True
            self._pause()
        self._note_handed()
        return self._kept_bytes, self._full

    def _threads(self) -> Iterator[int]:
        for process in self._processes:
            for tid, _ in self._root.numbered(f"/proc/{process.pid}/task", "", digits=10):
                yield tid

    def _follow_new_numbers(self) -> None:
        """Record system calls and page faults of all threads if low numbers are used again.

        The kernel assigns low numbers again after the highest one. Before this, each new thread of the program has a
        number above ``newest``. Afterwards, a thread's number does not show to which program the thread belongs.
        """
        if self._newest is None or newest_thread(self._root) >= self._newest:
            return
        self._newest = None
        self._senders.check()
        for title, only in plan.own_filters(self._senders.enabled, (), None).items():
            self._senders.write(f"{_folder(title)}/filter", only or "0")
        self._senders.remember(self._senders.enabled)

    def _take(self) -> None:
        """Read each buffer once. Events that are recorded meanwhile stay in the buffers for the next call."""
        assert self._form is not None
        most = max(FOLLOWED_KB) * 1024 // self._form.size
        for number, instance in enumerate((self._hot, self._senders)):
            for cpu in instance.cpus:
                pages = self._kept.setdefault((number, cpu), [])
                for page in islice(self._pages(instance, cpu), most):
                    used = page[: used_bytes(page, self._form)]
                    pages.append(used)
                    self._kept_bytes += len(used)

    def _lost_any(self) -> bool:
        return any(instance.count(cpu, _COUNTS) for instance in (self._hot, self._senders) for cpu in instance.cpus)

    def _pause(self) -> None:
        for instance in (self._hot, self._senders):
            instance.write("tracing_on", "0")

    def _check_handed(self) -> None:
        if any(self._hot.count(cpu, _HANDED) != before for cpu, before in self._hot.handed.items()):
            raise _changed_by_others("another program read or deleted events of this trace")

    def read(self, since: int = 0) -> tuple[bytes, dict[str, int], dict[str, int], int]:
        """Stop the recording, and return four values: the events, two dicts of lost events, and a time.

        - Events: bytes, compressed by zlib. First comes the length of a JSON list (4 bytes, little-endian), then this
          list of new names. The packed events follow in order of time.
        - Lost events: CPU → number of events. The first dict is for the hot CPUs' instance, the second for the instance
          of all CPUs.
        - Time in ticks: all overwritten events are older than this time. The time is 0 if no event was overwritten.

        ``since``: a time in ticks; pages with only older events are left out. Raise UsageError if no recording is
        running. Raise HostError if another program changed the trace.
        """
        if not self._running:
            raise UsageError("the trace is not recording now", "send 'start' first")
        assert self._decoder is not None
        self._running = False
        off = [words for instance in (self._hot, self._senders) if not self._full and (words := instance.off())]
        for instance in (self._hot, self._senders):
            with contextlib.suppress(*((HostError,) if off else ())):
                instance.write("tracing_on", "0")
        if off:
            raise _changed_by_others(off[0])
        for instance in (self._hot, self._senders):
            instance.check()
        self._check_handed()
        events: list[TraceEvent] = []
        kept, self._kept = self._kept, {}
        whole: dict[tuple[int, str], int] = {}
        try:
            for number, instance in enumerate((self._hot, self._senders)):
                for cpu in instance.cpus:
                    pages = chain(kept.pop((number, cpu), ()), self._pages(instance, cpu))
                    for page in self._since(since, self._noting(pages, (number, str(cpu)), whole)):
                        events.extend(self._decoder.events(page, cpu))
        except ValueError as error:
            raise HostError(f"the kernel's trace is damaged: {error}", "please report this fault") from error
        lost, elsewhere = self._hot.newly_lost(), self._senders.newly_lost()
        gone = [(number, cpu) for number, some in enumerate((lost, elsewhere)) for cpu in some]
        whole_from = max((whole.get(place, NEVER) for place in gone), default=0) if self._overwrites else 0
        self._note_handed()
        self._empty = True
        events.sort(key=lambda event: event.ts)
        if self._follows:
            events = list(of_own_threads(events, self._own))
        return self._packed(events), lost, elsewhere, whole_from

    def _since(self, since: int, pages: Iterator[bytes]) -> Iterator[bytes]:
        """Yield a buffer's pages, but leave out pages that end before the time ``since`` (in ticks).

        A page ends where the next page begins. The last page is always yielded.
        """
        before: bytes | None = None
        for page in pages:
            if before is not None and self._stamp(page) > since:
                yield before
            before = page
        if before is not None:
            yield before

    def _noting(
        self, pages: Iterable[bytes], place: tuple[int, str], whole: dict[tuple[int, str], int]
    ) -> Iterator[bytes]:
        """Yield a buffer's pages, and set ``whole[place]`` to the time after which nothing is lost.

        This time is the beginning of the first page after the last loss, in ticks. ``place``: the instance's number and
        the CPU.
        """
        assert self._form is not None
        for page in pages:
            # The kernel took the page that was read last out of its ring, so it is never overwritten. It may come first
            # although the events right after it are lost.
            if after_a_loss(page, self._form):
                whole[place] = self._stamp(page)
            yield page

    def _stamp(self, page: bytes) -> int:
        """Return the time at which a page begins."""
        assert self._form is not None
        stamp = self._form.stamp
        return int.from_bytes(page[stamp.offset : stamp.offset + stamp.size], "little")

    def _pages(self, instance: Instance, cpu: int) -> Iterator[bytes]:
        assert self._form is not None
        path = f"{self._top}{instance.folder}/per_cpu/cpu{cpu}/trace_pipe_raw"
        try:
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                while page := os.read(file, self._form.size):
                    yield page
            finally:
                os.close(file)
        except (FileNotFoundError, BlockingIOError):
            return  # a CPU that never existed, or all is read
        except OSError as error:
            raise HostError(f"{path} cannot be read: {reason(error)}") from error

    def _note_handed(self) -> None:
        """Remember how many events were read from the hot CPUs' buffers.

        A larger number at the next check shows that another program has read events.
        """
        self._hot.handed = {cpu: self._hot.count(cpu, _HANDED) for cpu in self._hot.cpus}

    def _packed(self, events: list[TraceEvent]) -> bytes:
        import json
        import zlib

        packed = pack_events(events, self._strings)
        new = json.dumps(self._strings.all[self._told :], ensure_ascii=True).encode()
        self._told = len(self._strings.all)
        return zlib.compress(len(new).to_bytes(4, "little") + new + packed, 1)

    # The end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Remove both trace instances, and release everything. Raise HostError if an instance could not be removed."""
        done = False
        try:
            self._remove()
            self._view.close()  # later, where an instance is left over: the watching child still has to reach it
            done = True
        finally:
            if self._watcher is not None:
                self._watcher.close(done)
                self._watcher = None
            if self._affinity is not None:
                with contextlib.suppress(OSError):
                    self._writer.set_affinity(0, self._affinity)
                self._affinity = None
            for process in self._processes:
                process.close()

    def _remove(self, patience_s: float = instances.PATIENCE_S) -> None:
        instances.remove_instances(self._writer, self._tracefs, self._names, patience_s)
