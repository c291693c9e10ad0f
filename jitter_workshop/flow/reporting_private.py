"""A report for others: without the names of hosts, users and other people's tasks. A pure function of the document.

Names become "host 1", "user 1", "task 1", the same one everywhere. What is the kernel's own stays (its threads,
devices, functions), and so do the services that every distribution has: who took the time is what a report is for. What
people typed is theirs (labels, the session's name): known names are replaced in it, and nothing else is guessed at.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from jitter_workshop.host.private import Scrubber
from jitter_workshop.host.services import SERVICE_TASKS
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.evidence import IDLE, THROTTLED, Cause, Deed, Part, Slice, Visitor
from jitter_workshop.model.history import Snapshot
from jitter_workshop.model.host import HostSummary
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.run import ForeignLoad, HistogramSummary, Run, Stalls
from jitter_workshop.model.verdict import Judgement, Standing

PRIVATE_NOTE = "names of hosts, users and tasks are replaced; the raw data, which have them, are left out"
LEFT_OUT = "(left out: it may name a task)"

T = TypeVar("T")

_NAMELESS = Judgement | HistogramSummary | Standing | Stalls
"""Thousands of figures in a large report, and the tool's own words."""

_NAMING_KINDS = frozenset({"task", "migration"})
"""Kinds of causes whose name is a task's. What is around one has its name, too, and is replaced where it is known."""

AROUND = "around"
_KERNEL_TASK = re.compile(
    r"(?:kworker|ksoftirqd|migration|cpuhp|idle_inject|irq|rcuo?[a-z]*|rcu_\w+|swapper|watchdog|irq_work|jbd2|ktimers"
    r"|backlog_napi|pr|khungtaskd|kthreadd|khugepaged|ksmd|kauditd|kdevtmpfs|kswapd\d*|kcompactd\d*|oom_reaper|writeback"
    r"|vhost|kvm|xfsaild|napi|scsi_eh_\d+|watchdogd)(?:[/:-].*)?"
)
_OWN_TASKS = frozenset({"producer", "accumulator", "journaller", "sampler", "sleeper", "sender", "receiver"})
"""The measured threads: a task of another program that calls itself so says nothing by it."""

_HOME = re.compile(r"/home/([^/\s'\"]+)")

_OWN_WORDS = """
    id run session_id subject tunable workload pacing preset placement main_histogram percentile measure kind did fate
    when risk order verdict origin unit chapter proof tool_version made_at started_at ended_at at fate_at evidence clock
    thread main_thread sched noise pause source mode state
"""
_AS_THEY_ARE = frozenset(_OWN_WORDS.split())
"""Fields of the tool's own words, ids and times."""

_SENTENCES = "text notes summary learnt reason stopped candidates sentence why differences comparison_text value"
_PROSE = frozenset(_SENTENCES.split())
"""Fields in whose sentences tasks are named."""

_TASK_PROSE = frozenset({"text", "notes", "learnt"})
"""Those of them in which a sentence is left out where a task's name is no word that could be replaced in it."""

_VERSIONS = frozenset({"kernel", "cpu_model"})
"""Fields in which what looks like an address is a version."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a report tells of a host that others may not be meant to see, each in the order in which it is met."""

    hosts: tuple[str, ...]
    users: tuple[str, ...]
    tasks: tuple[str, ...]


def names_in(document: ReportDocument, *hosts_beside: str) -> Names:
    """The names of hosts, of users by their home folders, and of tasks that are neither the kernel's nor known
    services. ``hosts_beside``: hosts that sentences may name, too, such as the one on which the report is made."""
    hosts: dict[str, None] = {}
    users: dict[str, None] = {}
    tasks: dict[str, None] = {}
    for name in (document.host_name, document.recorded, *hosts_beside):
        hosts[name] = None
    for value in _each(document):
        if isinstance(value, HostSummary):
            hosts[value.name] = None
        elif isinstance(value, Snapshot):
            hosts[value.host] = None
        elif isinstance(value, str):
            users |= dict.fromkeys(_HOME.findall(value))
        elif (task := _task_of(value)) is not None and _is_foreign(task):
            tasks[task] = None
    return Names(tuple(name for name in hosts if name.strip()), tuple(users), tuple(tasks))


def for_others(document: ReportDocument, *hosts_beside: str) -> ReportDocument:
    """The document without these names, MAC and IP addresses, UUIDs and serial numbers; ``private`` is set, so that no
    raw data go with it. One that is private already comes back equal."""
    if document.private:
        return document
    made = _Hider(names_in(document, *hosts_beside)).hidden(document)
    return dataclasses.replace(made, private=True, notes={**made.notes, "private": PRIVATE_NOTE})


def runs_for_others(document: ReportDocument, runs: Sequence[Run]) -> tuple[Run, ...]:
    """Runs for the formats that are made of them, without the names that ``document`` (with its names) knows."""
    return _Hider(names_in(document)).hidden(tuple(runs))


def _task_of(value: object) -> str | None:
    """The task that a part of a report names, or None."""
    if isinstance(value, ForeignLoad):
        return value.name
    if isinstance(value, Cause | Part | Slice | Visitor):
        return value.name if value.kind in _NAMING_KINDS else None
    return value.who if isinstance(value, Deed) else None


def _is_foreign(name: str) -> bool:
    known = name in SERVICE_TASKS or name in _OWN_TASKS or name in (IDLE, THROTTLED)
    return bool(name.strip()) and not known and _KERNEL_TASK.fullmatch(name) is None


def _each(value: object) -> Iterator[object]:
    """Every part of a document, from the outside in."""
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


class _Hider:
    def __init__(self, names: Names) -> None:
        self._scrubber = Scrubber()
        hosts = {n: f"host {i}" for i, n in enumerate(names.hosts, 1)}
        users = {n: f"user {i}" for i, n in enumerate(names.users, 1)}
        self._tasks = {n: f"task {i}" for i, n in enumerate(names.tasks, 1)}
        self._hosts = hosts
        self._users = users
        words = [n for n in names.tasks if any(c.isalpha() for c in n) and len(n) > 1]
        self._host_words = _words(hosts)
        self._user_words = _words(users)
        self._task_words = _words(words)
        self._wordless = _words(n for n in names.tasks if n not in words)

    def hidden(self, value: T, field: str = "") -> T:
        """The same with its names replaced."""
        made: Any = value
        if isinstance(value, str):
            made = self._text(value, field)
        elif isinstance(value, dict):
            made = {key: self.hidden(one, field) for key, one in value.items()}
        elif isinstance(value, tuple):
            made = tuple([self.hidden(one, field) for one in value])
        elif isinstance(value, PercentileCurve):
            made = dataclasses.replace(value, label=self._text(value.label, "label"))
        elif dataclasses.is_dataclass(value) and not isinstance(value, _NAMELESS | type):
            made = self._record(value)
        return made  # type: ignore[no-any-return]

    def _record(self, value: Any) -> Any:
        own: dict[str, Any] = {}
        if isinstance(value, HostSummary):
            own = {"name": self._hosts.get(value.name, value.name), "boot_id": None}
            own["notes"] = {**self.hidden(value.notes, "notes"), "boot_id": "left out: this report is for others"}
        elif isinstance(value, Snapshot):
            own = {"host": self._hosts.get(value.host, value.host), "boot_id": None}
        elif isinstance(value, Deed):
            own = {"who": self._tasks.get(value.who, value.who)}
        elif _task_of(value) is not None or (
            isinstance(value, Cause | Part | Slice | Visitor) and value.kind == AROUND
        ):
            own = {"name": self._tasks.get(value.name, value.name)}
        for field in dataclasses.fields(value):
            one = getattr(value, field.name)
            if field.name not in own and not (isinstance(one, str) and field.name in _AS_THEY_ARE):
                own[field.name] = self.hidden(one, field.name)
        return dataclasses.replace(value, **own)

    def _text(self, text: str, field: str) -> str:
        text = _HOME.sub(lambda m: f"/home/{self._users.get(m[1], m[1])}", text)
        text = _put(self._host_words, self._hosts, text)
        text = _put(self._user_words, self._users, text)
        if field in _PROSE:
            if field in _TASK_PROSE and self._wordless is not None and self._wordless.search(text):
                return LEFT_OUT
            text = _put(self._task_words, self._tasks, text)
        return self._scrubber.identifiers(text, addresses=field not in _VERSIONS)


def _words(names: Iterable[str]) -> re.Pattern[str] | None:
    """Any of these names where it stands as a word: no part of a path, of a dotted name or of a longer one."""
    longest = sorted(names, key=len, reverse=True)
    either = "|".join(map(re.escape, longest))
    return re.compile(rf"(?<![\w/.-])(?:{either})(?![\w/-])(?!\.\w)") if longest else None


def _put(words: re.Pattern[str] | None, stand_ins: dict[str, str], text: str) -> str:
    return text if words is None else words.sub(lambda m: stand_ins[m[0]], text)
