"""Read the journals of the changes on a host, and define their format. Reading needs no rights.

Each ``apply`` has one file, ``/var/lib/jitter-workshop/journal/ID.jsonl``. Only root's process writes this file, and it
only adds lines at the end. Each line is one JSON object. The last field of a line is the CRC-32 of everything before it
in the line. The kinds of lines are:

``header``   format, id, boot_id, uid, time, hot_cpus, wanted (``id=value``, in order), isolated (CPUs of other
             programs' partitions at that time; not in journals of earlier versions), pid (the process that asked for
             the apply; not in journals of earlier versions, and not if it is unknown)
``intent``   an announced write, with the value before it; all intents of an apply are synced to the disk before the
             first write
``written``  the write was made, and the host shows the value ``read_back``; if another write or a restore changes
             that value later, a further ``written`` line follows
``refused``  the write did not happen, or was undone at once
``owed``     a restore could not restore the setting yet (``why``); every later restore tries again
``before``   a new value to restore for this write, in place of the value in ``intent``; for example, of two writes to
             the same setting only the earlier one was undone, so the later one gets the value from before both
``undone``   the write needs no restore any more: the setting is restored, a reboot has undone the write, or the
             setting is gone with its task or device
``then``     the command after a group of writes (``update-grub``) was run

An incomplete last line is harmless: this program writes to the host only after the line is complete.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import ONCE, Change
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.text import REASON

STATE_DIR = "/var/lib/jitter-workshop"
JOURNAL_DIR = f"{STATE_DIR}/journal"
SUFFIX = ".jsonl"
FORMAT = 1
MAX_BYTES = 32 << 20
"""Size limit of one journal. 10,000 writes with masks of 512 CPUs take a quarter of this size."""
MAX_LINE = 1 << 18
MAX_ENTRIES = 100_000
MAX_JOURNALS = 100_000

INTENT = ("n", "tunable", "path", "kind", "before", "after", "when", "lease", "then")
"""The fields of a Change that its ``intent`` record has, in this order."""

T = TypeVar("T", str, int)
EntryState = Literal["intent", "written", "refused", "undone"]

_ID = r"[0-9]{6}-[0-9A-Za-z]{1,33}"
_CHECK = ',"crc32":"'
_CHECK_LENGTH = len(_CHECK) + 8 + len('"}')


@dataclass(slots=True)
class Entry:
    """Hold one write as the journal records it.

    ``read_back``: the value that the host showed after the write; None if it is unknown. ``owed``: the reason why the
    last restore could not restore the setting; "" otherwise.
    """

    journal: str
    n: int
    tunable: str
    path: str
    kind: str
    before: str
    after: str
    when: str
    lease: bool
    then: str
    boot_id: str | None
    state: EntryState = "intent"
    read_back: str | None = None
    owed: str = ""

    @property
    def active(self) -> bool:
        """Return True if the write may still be in effect on the host."""
        return self.state in ("intent", "written")


@dataclass(slots=True)
class Journal:
    """Hold one journal.

    ``whole``: the number of bytes in complete lines; an incomplete last line is not counted. ``due``: the names of
    follow-up commands (such as ``update-grub``) that have not been run yet. ``problems``: sentences on what could not
    be read.
    """

    id: str
    boot_id: str | None = None
    uid: int | None = None
    time: str = ""
    hot_cpus: tuple[int, ...] = ()
    wanted: tuple[str, ...] = ()
    isolated: tuple[int, ...] = ()
    pid: int | None = None
    entries: dict[int, Entry] = field(default_factory=dict)
    due: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    whole: int = 0

    @property
    def active(self) -> tuple[Entry, ...]:
        """Return the entries that may still be in effect, in the order of their writes."""
        return tuple(entry for entry in self.entries.values() if entry.active)


class Recorder(Protocol):
    """Append records to a journal: the announced changes, and the outcome of each change.

    When ``intents`` or ``handed`` returns, its records are on the disk. Both raise OSError if that fails; then no
    change is announced. All other methods raise no error. The record of a restored setting may get lost. This does no
    harm: the next restore finds the setting at its old value.
    """

    def intents(self, changes: Sequence[Change]) -> None: ...
    def written(self, n: int, read_back: str | None) -> None: ...
    def refused(self, n: int, reason: str) -> None: ...
    def handed(self, n: int, before: str) -> None: ...
    def undone(self, n: int, how: str) -> None: ...
    def owed(self, n: int, why: str) -> None: ...
    def then(self, name: str) -> None: ...


def encode_record(record: Mapping[str, Any]) -> bytes:
    """Return one line of a journal."""
    import json

    body = json.dumps(record, ensure_ascii=True, separators=(",", ":"))[:-1]
    return f'{body}{_CHECK}{zlib.crc32(body.encode()):08x}"}}\n'.encode()


def decode_record(line: bytes) -> dict[str, Any]:
    """Return the record of one line (with or without its newline). Raise ValueError for a damaged line."""
    from jitter_workshop.model.codec import parse_object

    line = line.rstrip(b"\n")
    body, check = line[:-_CHECK_LENGTH], line[-_CHECK_LENGTH:]
    if len(line) > MAX_LINE or check != f'{_CHECK}{zlib.crc32(body):08x}"}}'.encode():
        raise ValueError("the record's checksum is wrong")
    return parse_object(body + b"}")


def parse_journal(journal_id: str, data: bytes) -> Journal:
    """Return a journal parsed from its bytes. Never raise an error: damage is reported in ``problems``."""
    journal = Journal(journal_id)
    for number, line in enumerate(data.split(b"\n"), start=1):
        if journal.whole + len(line) >= len(data):
            break  # the last piece has no newline: a torn tail, or nothing
        journal.whole += len(line) + 1
        try:
            _take(journal, decode_record(line))
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            journal.problems.append(f"line {number} is damaged: {_words(error)}")
        if len(journal.entries) > MAX_ENTRIES:
            journal.problems.append(f"the journal has more than {MAX_ENTRIES} writes: the rest is not read")
            journal.whole = len(data)
            break
    return journal


def journal_ids(names: Iterable[str]) -> tuple[str, ...]:
    """Return the journal ids among the names in a folder, oldest first. The id of a newer journal begins with a larger
    number.
    """
    found = (name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))
    return tuple(sorted(ident for ident in found if is_journal_id(ident)))[-MAX_JOURNALS:]


def is_journal_id(text: str) -> bool:
    """Return True if ``text`` is a journal's id, such as ``000007-20261121T141842``."""
    return re.fullmatch(_ID, text) is not None


def read_journals(root: HostRoot) -> tuple[Journal, ...]:
    """Return all open journals of a host, oldest first. A journal is open until all its changes are restored. A journal
    that cannot be read has only ``problems``."""
    return _parsed(_raw(root))


def _raw(root: HostRoot) -> tuple[tuple[str, bytes | None], ...]:
    """Return the id and the contents of each journal, oldest first. The contents are None if the file cannot be
    read."""
    idents = journal_ids(root.list_dir(JOURNAL_DIR))
    return tuple((ident, root.raw(f"{JOURNAL_DIR}/{ident}{SUFFIX}", MAX_BYTES)) for ident in idents)


def _parsed(raw: Iterable[tuple[str, bytes | None]]) -> tuple[Journal, ...]:
    return tuple(
        Journal(ident, problems=["the file cannot be read"]) if data is None else parse_journal(ident, data)
        for ident, data in raw
    )


def current_boot(root: HostRoot) -> str | None:
    """Return the running kernel's boot id, or None if it cannot be read (Documentation/admin-guide/sysctl/kernel.rst,
    ``random``)."""
    return root.text("/proc/sys/kernel/random/boot_id")


def void(entry: Entry, boot_id: str | None) -> bool:
    """Return True if a reboot has undone the write of ``entry``.

    This is so if the write was made in another boot, and if its kind does not survive a reboot.
    """
    from jitter_workshop.tuning.setting_types.kinds import kind_of

    if entry.boot_id is None or boot_id is None or entry.boot_id == boot_id:
        return False
    try:
        return not kind_of(entry.kind).survives_boot
    except ValueError:
        return False


def active(root: HostRoot) -> tuple[Entry, ...]:
    """Return the entries of our writes that are in effect, in the order of writing. Entries that a restore could not
    write (``owed``) are left out. Do not change the entries: until a journal changes, later calls return them again."""
    raw = _raw(root)
    return _active_in(raw, current_boot(root)) if raw else ()


@functools.lru_cache(maxsize=1)
def _active_in(raw: tuple[tuple[str, bytes | None], ...], boot: str | None) -> tuple[Entry, ...]:
    # A screen asks several times at each redraw, and journals of a hundred writes take milliseconds to parse.
    return tuple(e for journal in _parsed(raw) for e in journal.active if _stands(e, boot))


def applied_tunables(root: HostRoot, *, in_effect: bool = False) -> tuple[dict[str, str], ...]:
    """Return the applied tunables as ``{"id": …, "value": …}``, ordered by their last apply.

    The value "" means the value that this tool recommends. A boot parameter that was set for one boot only also has
    ``"once": "1"``. ``in_effect``: True to leave out writes that have no effect in this boot.
    """
    raw = _raw(root)
    if not raw:
        return ()
    boot = current_boot(root)
    if in_effect:
        return _applied_in(_parsed(raw), lambda e: _stands(e, boot) and not _waits(root, e, boot))
    return tuple(dict(one) for one in _applied_by(raw, boot))


@functools.lru_cache(maxsize=1)
def _applied_by(raw: tuple[tuple[str, bytes | None], ...], boot: str | None) -> tuple[dict[str, str], ...]:
    # Like _active_in: a screen asks at each redraw.
    return _applied_in(_parsed(raw), lambda e: _stands(e, boot))


def _applied_in(journals: Iterable[Journal], wanted: Callable[[Entry], bool]) -> tuple[dict[str, str], ...]:
    found: dict[str, dict[str, str]] = {}
    for journal in journals:
        standing = {e.tunable for e in journal.active if wanted(e)}
        for word in journal.wanted:
            name, _, value = word.partition("=")
            ident = name.removeprefix(ONCE)
            if ident in standing:
                found.pop(ident, None)
                found[ident] = {"id": ident, "value": value, **({"once": "1"} if name != ident else {})}
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class AppliedBy:
    """Hold the origin of a tunable's last apply.

    ``journal``: the id of the journal. ``time``: the time in UTC. ``pid``: the number of the process that asked for the
    apply; None if unknown. ``running``: True if this process is still alive and runs this program.
    """

    journal: str
    time: str
    pid: int | None
    running: bool


def applied_by(root: HostRoot, journals: Sequence[Journal]) -> dict[str, AppliedBy]:
    """Return the origin of each tunable's last apply, by the tunable's id. ``journals``: the journals of this host,
    oldest first.

    A tunable is left out if none of its settings would be restored.
    """
    found: dict[str, AppliedBy] = {}
    boot = current_boot(root) if journals else None
    for journal in journals:
        owned = {e.tunable for e in journal.active if not void(e, boot)}
        if owned:
            running = journal.boot_id == boot and journal.pid is not None and _is_workshop(root, journal.pid)
            who = AppliedBy(journal.id, journal.time, journal.pid, running)
            found.update(dict.fromkeys(owned, who))
    return found


def _is_workshop(root: HostRoot, pid: int) -> bool:
    """Return True if the process with the number ``pid`` runs this program.

    The check is needed, because the kernel may have given the number of an ended process to another process.
    """
    command = root.text(f"/proc/{pid}/cmdline") or ""
    return "jitter-workshop" in command or "jitter_workshop" in command


def _stands(entry: Entry, boot_id: str | None) -> bool:
    return entry.state == "written" and not entry.owed and not void(entry, boot_id)


def _waits(root: HostRoot, entry: Entry, boot_id: str | None) -> bool:
    """Return True if a write to a boot setting has no effect in this boot.

    There are two cases. The write takes effect only at the next boot, or it was made for a single boot that is over.
    """
    from jitter_workshop.tuning.setting_types.kinds import kind_of

    try:
        kind = kind_of(entry.kind)
    except ValueError:
        return False
    return kind.effect_after_boot and (entry.boot_id == boot_id or not kind.in_effect(root, entry.after))


def word_of(item: Mapping[str, str]) -> str:
    """Return an applied tunable as a word that ``parse_wanted`` reads: ``ID``, ``ID=VALUE`` or ``once:ID``.

    ``item``: a dict with ``id`` and ``value``, and with ``once`` for one boot.
    """
    name = f"{ONCE}{item['id']}" if item.get("once") else item["id"]
    return f"{name}={item['value']}" if item.get("value") else name


def profile(applied: Sequence[Mapping[str, str]]) -> str:
    """Return the applied tunables as the text of a profile, one line each. ``apply --profile`` reads a profile."""
    return "".join(f"{word_of(item)}\n" for item in applied)


def _take(journal: Journal, record: dict[str, Any]) -> None:
    """Apply one record of a journal's file to the Journal in memory. Raise ValueError, TypeError or KeyError if the
    record is invalid.
    """
    what = record["record"]
    if what == "header":
        _header(journal, record)
    elif what == "intent":
        entry = _intent(journal, record)
        if entry.n in journal.entries:
            raise ValueError(f"write {entry.n} is recorded twice")
        journal.entries[entry.n] = entry
        _due(journal, entry)
    elif what in ("written", "refused", "undone"):
        entry = journal.entries.get(_field(record, "n", int)) or _unknown(record)
        entry.state = what
        if what == "written":
            entry.read_back = _text_or_none(record, "read_back")
        elif what == "undone":
            _due(journal, entry)
        elif not any(e.then == entry.then and e.state != "refused" for e in journal.entries.values()):
            journal.due = [due for due in journal.due if due != entry.then]
    elif what in ("owed", "before"):
        entry = journal.entries.get(_field(record, "n", int)) or _unknown(record)
        if what == "owed":
            entry.owed = _field(record, "why", str) or "the setting could not be restored"
        else:
            entry.before = _field(record, "before", str)
    elif what == "then":
        name = _field(record, "name", str)
        journal.due = [due for due in journal.due if due != name]
    else:
        raise ValueError("this version does not know this kind of record")


def _header(journal: Journal, record: dict[str, Any]) -> None:
    if _field(record, "format", int) > FORMAT:
        raise ValueError("a newer version of this program wrote the record")
    journal.boot_id = _text_or_none(record, "boot_id")
    journal.uid = _field(record, "uid", int)
    journal.time = _field(record, "time", str)
    journal.hot_cpus = tuple(int(cpu) for cpu in record["hot_cpus"])
    journal.wanted = tuple(str(word) for word in record["wanted"])
    journal.isolated = tuple(int(cpu) for cpu in record.get("isolated", ()))
    journal.pid = None if record.get("pid") is None else _field(record, "pid", int)


def _intent(journal: Journal, record: dict[str, Any]) -> Entry:
    n, boot_id = _field(record, "n", int), _text_or_none(record, "boot_id")
    texts: dict[str, Any] = {name: _field(record, name, str) for name in INTENT if name not in ("n", "lease")}
    return Entry(journal.id, n, lease=bool(record["lease"]), boot_id=boot_id, **texts)


def _due(journal: Journal, entry: Entry) -> None:
    if entry.then and entry.then not in journal.due:
        journal.due.append(entry.then)


def _unknown(record: dict[str, Any]) -> Entry:
    raise ValueError(f"write {record['n']} was recorded as done, but never as planned")


def _field(record: dict[str, Any], name: str, kind: type[T]) -> T:
    value = record[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name} is not {'text' if kind is str else 'a number'}")
    return value


def _text_or_none(record: dict[str, Any], name: str) -> str | None:
    return None if record.get(name) is None else _field(record, name, str)


def _words(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)[:REASON]
