"""Remove the names of hosts, users and tasks from a report for other people.

Text that people chose is always replaced, because no list of private names could be complete. Such text is in labels,
session names, imports, arguments of options, and paths outside the system's folders.

A sentence of this tool may contain a private name. Some sentences are then made again from their data, with another
name. In other sentences the name is replaced in the text, or the whole sentence is left out.

The names of known services, measured threads and kernel threads are not replaced. A report has to say which task took
the time.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from jitter_workshop.flow.measuring.curves import CLOCKS, ORIGIN, RECORDED
from jitter_workshop.host.recording.recording_filter import Scrubber
from jitter_workshop.host.services import SERVICE_TASKS
from jitter_workshop.host.summary import host_line
from jitter_workshop.model.change import Change
from jitter_workshop.model.curve import Comparison, PercentileCurve
from jitter_workshop.model.evidence import (
    IDLE,
    THROTTLED,
    Cause,
    ExplainedStall,
    InterferingTask,
    Part,
    RemoteAction,
    Slice,
    load_called,
)
from jitter_workshop.model.host import HostSummary
from jitter_workshop.model.matrix import Matrix
from jitter_workshop.model.proof import STOPPED_BY, Proof
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.report import (
    Command,
    HeatMap,
    OpenPoint,
    Overlay,
    ReportDocument,
    ReportedRun,
    ReportedScreening,
    RunCauses,
)
from jitter_workshop.model.run import HANDOFF, ForeignLoad, HistogramSummary, Run, Stalls
from jitter_workshop.model.spec import MEASURED_THREADS
from jitter_workshop.model.status import CheckState, Snapshot
from jitter_workshop.model.text import ID, SHORT, called, clean
from jitter_workshop.model.verdict import Judgement, Standing
from jitter_workshop.report.cause_words import cause_sentences
from jitter_workshop.stats.figures import TRANSIT

PRIVATE_NOTE = (
    "all names that people chose are replaced, such as those of hosts, tasks and files; the raw data contain such "
    "names, so they are left out"
)
LEFT_OUT = "(left out, because it may name a task)"
SESSION, PATH = "session", "PATH"
LISTING = "user-tasks"
"""The check that lists processes."""
_UNSAID = frozenset({"reason", "stopped", "sentence"})
"""Fields whose sentences may name a task that no other field names."""

T = TypeVar("T")

_NAMELESS = Judgement | HistogramSummary | HeatMap | Standing | Stalls
"""Records that hold only figures and the tool's own words. They are skipped: a large report has thousands of them."""

AROUND = "around"
_NAMING_KINDS = frozenset({"task", "migration"})
"""Kinds of causes whose name is the name of a task."""

_OWN_WORDS = """
    id run session_id subject tunable workload pacing preset placement main_histogram percentile measure kind did fate
    when risk order verdict origin unit chapter proof tool_version made_at started_at ended_at at fate_at evidence clock
    thread main_thread sched noise pause memory source mode state question guess learnt candidates title
"""
_AS_THEY_ARE = frozenset(_OWN_WORDS.split())
"""Fields that hold only the tool's own words, ids and times."""

_VERSIONS = frozenset({"kernel", "cpu_model"})
"""Fields in which a text that looks like an IP address is a version."""

_TOLD_OF_HOSTS = frozenset({"notes", "summary", "reason", "text", "why"})
"""Fields whose sentences may name a host."""

_DEVICE = r"(?:(?:[shv]|xv)d[a-z]{1,2}\d*|nvme\d+n\d+(?:p\d+)?|dm-\d+|md\d+|mmcblk\d+(?:p\d+)?|loop\d+|sr\d+)"
_KERNEL_FORMS = (
    r"kworker/(?:u?\d+:\d+H?|R)(?:[-+].*)?",
    r"(?:ksoftirqd|migration|cpuhp|idle_inject|stopper|swapper|watchdog|irq_work|ktimers|posixcputmr|backlog_napi"
    r"|rcuc|rcub|rcuos|rcuop|rcuog|kvm-pit)/\d+",
    r"irq/\d+-.+",
    r"(?:kswapd|kcompactd|scsi_eh_|scsi_tmf_|loop|vhost-|kdamond\.)\d+",
    r"md\d+_(?:raid\d+|resync|recovery|reshape|check|cluster)",
    rf"jbd2/{_DEVICE}-\d*",
    rf"(?:xfsaild|f2fs_gc|f2fs_flush|f2fs_ckpt|xfs-[a-z]+|napi)/{_DEVICE}",
    r"rcu_(?:gp|par_gp|bh|sched|preempt|tasks_kthre(?:ad)?|tasks_rude_(?:kthread)?|tasks_trace(?:_kthread)?"
    r"|exp_gp_kthr(?:ead_worker)?|exp_par_gp_(?:kthread_worker)?(?:/\d+)?)",
    r"nvme-(?:wq|reset-wq|delete-wq|auth-wq)|kvm-nx-lpage-re(?:covery)?|ext4-rsv-conver(?:sion)?",
    r"pr/(?:tty[A-Z]*\d+|legacy|netcon\d+)|card\d+-crtc\d+|pool_workqueue_(?:release)?",
    r"btrfs-(?:cleaner|transacti(?:on)?)",
)
_KERNEL_NAMES = """
swapper kthreadd kauditd kdevtmpfs khungtaskd khugepaged ksmd oom_reaper writeback watchdogd kblockd psimon kintegrityd
kthrotld hwrng edac-poller devfreq_wq ata_sff mm_percpu_wq netns inet_frag_wq slub_flushwq blkcg_punt_bio ipv6_addrconf
zswap-shrink tpm_dev_wq kstrp md cryptd mld acpi_thermal_pm charger_manager
"""
_KERNEL = re.compile("|".join(f"(?:{form})" for form in _KERNEL_FORMS))
_KERNEL_WORDS = frozenset(_KERNEL_NAMES.split())

_SYSTEM = "proc|sys|dev|boot|etc|usr|lib|lib64|bin|sbin"
_FOREIGN_PATH = re.compile(rf"(?<![\w./])(?:/(?!(?:{_SYSTEM})(?:/|$))[^\s/'\",;:)]+(?:/[^\s'\",;:)]*)+|/home\b)")
_HOME = re.compile(r"/home/([^/\s'\"]+)")
_OPTIONS = {"--root": "TREE", "--course": "DIR", "--label": "label", "--session": SESSION}
_COMMAND = "COMMAND"
"""The word that replaces a user's own command."""
_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")
_LISTED = re.compile(r"(\d+ of \d+ processes may run on CPU [^:]+): .*?(; \d+ with real-time priority)?", re.DOTALL)
_SIDE = re.compile(r"(?:without|with) · \d+ runs?")
_FIGURES = re.compile(r", p50 [^,]{1,20}, p99\.9 [^,]{1,20}, max [^,]{1,20}, [\d,]+ samples$")
_QUOTED = re.compile(r"'(.+)'", re.DOTALL)
_NUMBERED = re.compile(r" \(\d+\)$")
_BY_CLOCK = re.compile(rf"(.*?)(?: \(settings changed\))?(, (?:{TRANSIT}|{HANDOFF}))")


@dataclass(frozen=True, slots=True)
class PrivateNames:
    """Hold the private names of a report: names of hosts, users and tasks."""

    hosts: tuple[str, ...]
    users: tuple[str, ...]
    tasks: tuple[str, ...]


def is_private(task: str) -> bool:
    """Return True if the name of a task may reveal what a user does. Names of kernel threads, known services and
    measured threads reveal nothing."""
    # Another program's task with the name of a measured thread reveals nothing, either.
    known = task in SERVICE_TASKS or task in MEASURED_THREADS or task in _KERNEL_WORDS or task in (IDLE, THROTTLED)
    return bool(task.strip()) and not known and _KERNEL.fullmatch(task) is None


def names_in(document: ReportDocument, *hosts_beside: str) -> PrivateNames:
    """Return the private names in a report: names of hosts, users and tasks. The users' names come from paths of home
    folders. ``hosts_beside``: further private names of hosts, such as the name of the host that writes the report.
    """
    hosts = dict.fromkeys((document.host_name, document.recorded, *hosts_beside))
    users: dict[str, None] = {}
    tasks: dict[str, None] = {}
    for value in _each(document):
        if isinstance(value, HostSummary):
            hosts[value.name] = None
        elif isinstance(value, Snapshot):
            hosts[value.host] = None
        elif isinstance(value, str):
            users |= dict.fromkeys(_HOME.findall(value))
        elif (task := _task_of(value)) is not None and is_private(task):
            tasks[task] = None
    return PrivateNames(tuple(name for name in hosts if name.strip()), tuple(users), tuple(tasks))


def anonymize_report(document: ReportDocument, *hosts_beside: str) -> ReportDocument:
    """Return the document without private names, and with ``private`` set to True. These are replaced: all text that
    people chose, all MAC and IP addresses, UUIDs and serial numbers. A document that is private already is returned
    unchanged."""
    if document.private:
        return document
    made = _Anonymizer(document, *hosts_beside).document()
    return dataclasses.replace(made, private=True, notes={**made.notes, "private": PRIVATE_NOTE})


def runs_for_others(document: ReportDocument, runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return the runs with their private names replaced. The replacements are the same as in the anonymous form of
    ``document``."""
    return _Anonymizer(document).hidden(tuple(runs))


def _task_of(value: object) -> str | None:
    """Return the task's name that ``value`` contains; None if it contains none."""
    if isinstance(value, ForeignLoad):
        return value.name
    if isinstance(value, Cause | Part | Slice | InterferingTask):
        return value.name if value.kind in _NAMING_KINDS else None
    return value.who if isinstance(value, RemoteAction) else None


def _each(value: object) -> Iterator[object]:
    """Yield a value and all values inside it, outer values before inner ones."""
    yield value
    if isinstance(value, dict):
        for one in value.values():
            yield from _each(one)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _each(one)
    elif dataclasses.is_dataclass(value) and not isinstance(value, _NAMELESS | PercentileCurve | type):
        for field in dataclasses.fields(value):
            yield from _each(getattr(value, field.name))


class _Anonymizer:
    def __init__(self, document: ReportDocument, *hosts_beside: str) -> None:
        names = names_in(document, *hosts_beside)
        self._given = document
        self._scrubber = Scrubber()
        self._hosts = {n: f"host {i}" for i, n in enumerate(names.hosts, 1)}
        self._tasks = {n: f"task {i}" for i, n in enumerate(names.tasks, 1)}
        self._events = {"timer"} | {
            one.name
            for one in _each(document)
            if isinstance(one, Cause | Part | Slice | InterferingTask) and one.kind not in (AROUND, *_NAMING_KINDS)
        }
        """Names of kernel events. If a time is around such a name, the event is meant, even if a task has the same
        name."""
        self._labels = {run.id: f"run {i}" for i, run in enumerate(document.runs, 1) if run.label}
        either = "|".join(re.escape(n) for n in sorted(names.hosts, key=len, reverse=True))
        self._host_words = re.compile(rf"(?<![\w/.-])(?:{either})(?![\w/-])(?!\.\w)") if either else None
        called_so = sorted((n for n in names.tasks if len(n) > 1), key=len, reverse=True)
        self._task_words = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, called_so))})(?!\w)") if called_so else None
        loads = [load for run in document.runs for load in run.disturbed]
        self._loads: dict[str, str] = {}
        """Phrases on other tasks during a run → the same phrases without names."""
        for load in loads:
            if shown := self._tasks.get(load.name):
                pid, share = f"(pid {load.pid})", f"{load.cpu_percent:g} %"
                # Notes of older runs do not say whose task it was.
                for name in (load_called(load, ID), called(load.name, ID)):
                    self._loads[f"{name} {pid}"] = f"{shown} {pid}"
                    self._loads[f"{name} ({share})"] = f"{shown} ({share})"
                for name in (load_called(load, SHORT), clean(load.name, SHORT)):
                    self._loads[f"({name}, {share})"] = f"({shown}, {share})"

    def document(self) -> ReportDocument:
        given = self._given
        made: ReportDocument = self.hidden(given)
        hosts = made.hosts
        host_name = self._hosts.get(given.host_name, given.host_name)
        return dataclasses.replace(
            made,
            title=f"Latency jitter on {host_name or 'an unknown host'}: {SESSION}",
            session_name=SESSION,
            host_name=host_name,
            recorded=self._hosts.get(given.recorded, given.recorded),
            host_line=host_line(hosts[0]) if hosts else "an unknown host",
            overlays=tuple(self._overlay(one) for one in given.overlays),
            imports=tuple(
                f"import {n}{figures[0] if (figures := _FIGURES.search(line)) else ''}"
                for n, line in enumerate(given.imports, 1)
            ),
        )

    def hidden(self, value: T, field: str = "") -> T:
        """Return a copy of a value, with its private names replaced. ``field``: the name of the value's field."""
        made: Any = value
        if isinstance(value, str):
            made = self._text(value, field)
        elif isinstance(value, dict):
            made = {key: self.hidden(one, field) for key, one in value.items()}
        elif isinstance(value, tuple):
            made = tuple([self.hidden(one, field) for one in value])
        elif isinstance(value, PercentileCurve):
            made = dataclasses.replace(value, label="curve")
        elif dataclasses.is_dataclass(value) and not isinstance(value, _NAMELESS | type):
            made = self._record(value)
        return made  # type: ignore[no-any-return]

    def _record(self, value: Any) -> Any:
        own = self._own(value)
        for field in dataclasses.fields(value):
            one = getattr(value, field.name)
            if field.name in _UNSAID and isinstance(one, str):
                own.setdefault(field.name, self._or_left_out(one))
            if field.name not in own and not (isinstance(one, str) and field.name in _AS_THEY_ARE):
                own[field.name] = self.hidden(one, field.name)
        made = dataclasses.replace(value, **own)
        if isinstance(made, RunCauses):
            said = map(self._or_left_out, made.text) if made.report is None else cause_sentences(made.report)
            return dataclasses.replace(made, text=tuple(said))
        return made

    def _own(self, value: Any) -> dict[str, Any]:
        """Return field → new value, for each field of a record that contains a private name."""
        if isinstance(value, HostSummary):
            notes = {
                **self.hidden(value.notes, "notes"),
                "boot_id": "left out, because this report is made with --private",
            }
            return {"name": self._hosts.get(value.name, value.name), "boot_id": None, "notes": notes}
        if isinstance(value, Snapshot):
            return {"host": self._hosts.get(value.host, value.host), "boot_id": None}
        if isinstance(value, ReportedRun | Run):
            label = self._labels.get(value.id, "run" if value.label else "")
            if isinstance(value, ReportedRun):
                return {"label": label}
            host = {k: v for k, v in value.host.items() if k not in ("name", "boot_id")}
            return {"label": label, "host": self.hidden(host, "notes")}
        if isinstance(value, Matrix):
            # The id of the CPUs is made of the host's name, too.
            return {"label": "matrix" if value.label else "", "topology": "", "host": {}}
        if isinstance(value, Comparison):
            return {"label": self._labels.get(value.run, "run")}
        if isinstance(value, RemoteAction):
            return {"who": self._tasks.get(value.who, value.who)}
        if isinstance(value, ForeignLoad | Cause | Part | Slice | InterferingTask):
            around = getattr(value, "kind", "") == AROUND and value.name not in self._events
            known = self._tasks if around or _task_of(value) is not None else {}
            own = {"name": known.get(value.name, value.name)}
            if isinstance(value, InterferingTask):
                outer = value.outer_name
                own["outer_name"] = self._tasks.get(outer, outer) if value.outer_kind in _NAMING_KINDS else outer
            return own
        if isinstance(value, ExplainedStall):
            # The notes name the sender and the waker. No field has these names, so they may be private.
            return {"notes": (LEFT_OUT,) if value.notes else ()}
        if isinstance(value, CheckState):
            return {"reason": self._of_check(value.id, value.reason)}
        if isinstance(value, OpenPoint):
            return {"text": self._of_check(value.id, value.text)}
        if isinstance(value, Proof | ReportedScreening) and value.command:
            # A figure of its own may have a name in the unit or in a benchmark, and its last words are in ``stopped``.
            ours = not value.stopped or value.stopped.startswith(STOPPED_BY)
            stopped = value.stopped if ours else LEFT_OUT
            return {"command": (_COMMAND,), "options": (), "stopped": stopped}
        if isinstance(value, Change):
            return {"why": _QUOTED.sub(lambda m: "'(a name)'" if is_private(m[1]) else m[0], value.why)}
        return {"command": _command(value.command)} if isinstance(value, Command) else {}

    def _of_check(self, ident: str, text: str) -> str:
        # The check lists processes, which no field names.
        listed = _LISTED.fullmatch(text) if ident == LISTING else None
        return self._or_left_out(listed[1] + (listed[2] or "") if listed is not None else text)

    def _or_left_out(self, text: str) -> str:
        """Return a sentence with its private names replaced. Return ``LEFT_OUT`` if the sentence contains a private
        task's name."""
        if self._task_words is not None and self._task_words.search(text):
            return LEFT_OUT
        return self._text(text, "notes")

    def _overlay(self, chart: Overlay) -> Overlay:
        curves = tuple(dataclasses.replace(c, label=self._label(c, n)) for n, c in enumerate(chart.curves, 1))
        return dataclasses.replace(chart, curves=curves)

    def _label(self, curve: PercentileCurve, number: int) -> str:
        if curve.origin == ORIGIN or curve.origin.startswith(RECORDED):
            return curve.label
        if curve.elsewhere:
            return f"import {number}"
        plain = _NUMBERED.sub("", curve.label)
        by_clock = _BY_CLOCK.fullmatch(plain)
        named = plain if by_clock is None else by_clock[1]
        titled = any(named == chapter.title for chapter in self._given.chapters)
        if by_clock is not None and not titled:
            return f"{self._owner(named, number)}{by_clock[2]}"
        clock, _, rest = plain.partition(": ")
        if clock in CLOCKS:
            return f"{clock}: {self._owner(rest, number)}"
        for run in self._given.runs:
            if _is_curve_of(run, curve) and plain in (run.label, run.id):
                return self._labels.get(run.id, run.id)
        return curve.label if titled or _SIDE.fullmatch(plain) else f"curve {number}"

    def _owner(self, name: str, number: int) -> str:
        """Return the name of the only run with this label or id, without private words; ``curve N`` for any other."""
        owners = [run.id for run in self._given.runs if name in (run.label, run.id)]
        return self._labels.get(owners[0], owners[0]) if len(owners) == 1 else f"curve {number}"

    def _text(self, text: str, field: str) -> str:
        for old, new in self._loads.items():
            text = text.replace(old, new)
        if field in _TOLD_OF_HOSTS and self._host_words is not None:
            text = self._host_words.sub(lambda m: self._hosts[m[0]], text)
        text = _FOREIGN_PATH.sub(PATH, text)
        return self._scrubber.identifiers(text, addresses=field not in _VERSIONS)


def _command(line: str) -> str:
    """Return a shell command with replacements for arguments that people chose."""
    words = shlex.split(line)
    for at, word in enumerate(words):
        option, equals, given = word.partition("=")
        if equals and option in _OPTIONS and not _ID.fullmatch(given):
            words[at] = f"{option}={_OPTIONS[option]}"
        elif at and words[at - 1] in _OPTIONS and not _ID.fullmatch(word):
            words[at] = _OPTIONS[words[at - 1]]
    return _FOREIGN_PATH.sub(PATH, shlex.join(words))


def _is_curve_of(run: ReportedRun, curve: PercentileCurve) -> bool:
    """Return True if a chart's curve is that of a run: of its main histogram, or of its latencies."""
    if run.curve is not None and run.curve.points == curve.points:
        return True
    due = run.with_waits.histogram if run.with_waits is not None else None
    return due is not None and bool(curve.points) and (due.count, due.max) == (curve.count, curve.points[-1].value_ns)
