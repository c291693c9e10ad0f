"""Read the answers of many hosts, and compare the hosts: their settings and their figures.

An answer is a file with the output of ``status --json``, ``measure --json`` (or a stored ``run.json``) or
``watch --json``, or a verdict file of ``watch --accept``. Answers are untrusted: names are cleaned, and what does not
fit is left out with a reason. One bad file never stops the comparison.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jitter_workshop.errors import HostError, UsageError, reason
from jitter_workshop.model.codec import parse_object
from jitter_workshop.model.fleet import (
    FDR,
    FleetComparison,
    FleetHost,
    FleetRow,
    FleetSetting,
    OtherValue,
    SkippedFile,
)
from jitter_workshop.model.host import EMULATED, NO_VERDICT, mark_in, mark_of
from jitter_workshop.model.record import FORMAT_VERSION
from jitter_workshop.model.run import PERCENTILES
from jitter_workshop.model.spec import KINDS, PACED
from jitter_workshop.model.text import ID, LINE, MOST_WORDS, NAME, PATH, REASON, WORD, called, clean, many
from jitter_workshop.stats.comparison import STOLEN, stall_measure
from jitter_workshop.stats.fleet import compare_hosts

RECORDED = "recorded"
WATCH_STALLS = "watch_stalls_per_hour_over_"
USUAL = ("p50", "p99", "p99.9", stall_measure(100_000), STOLEN)
"""The figures of runs that are compared if the user names none."""

_LARGEST = 64 << 20
"""The largest size of an answer in bytes."""
_MOST_FILES = 200_000
_MOST_NUMBER = 1e18
_PASSED_OVER = ("board.json",)
"""Files that the playbook for classes gathers beside the answers."""
_MEASURED = frozenset({"steal", "temperature", "throttling", "smi", "user-tasks"})
"""Checks of ``status`` whose value is measured and not set. It differs each time, so it is not compared."""
_FACTS = {
    "kernel": "Kernel",
    "architecture": "Architecture",
    "cpu_model": "Processor",
    "hypervisor": "Hypervisor",
    "cpus_online": "CPUs online",
    "packages": "Sockets",
    "smt": "Two threads on a core",
    "realtime_kernel": "Real-time kernel",
}
"""Facts of a host that are compared beside its settings: field of the host's summary → title."""
_MACHINE = ("cpu_model", "architecture", "cpus_online")
"""Facts that tell two machines with one name apart."""
_NOT_HERE, _NO_VALUE = "not here", "no value"
_WATCH = "watch of "


class _Unfit(ValueError):
    """Report an answer that cannot be compared; the message is the reason."""


@dataclass(slots=True)
class _Answer:
    """Hold what one file says: ``settings`` (id → title and value), or the figures of one run.

    - ``host``: the name in the file, "" if it has none. ``machine``: the facts that tell machines apart, None if the
      file has none.
    - ``way``: how the run was measured, "" for settings alone. ``run``: the run's id.
    """

    file: str
    host: str
    mark: str
    machine: str | None
    settings: dict[str, tuple[str, str]] | None = None
    own_file: bool = False
    way: str = ""
    run: str = ""
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Host:
    """Hold what all files say of one host."""

    machine: str | None = None
    settings: dict[str, tuple[str, str]] | None = None
    settings_file: str = ""
    runs: list[_Answer] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)


def compare_fleet(paths: Sequence[Path], metrics: Sequence[str] = (), fdr: float = FDR) -> FleetComparison:
    """Return the comparison of the hosts whose answers are in ``paths``.

    ``paths``: files, or folders. The files of a folder within such a folder belong to one host, and the inner folder's
    name is the host's name; a file elsewhere names its host itself. ``metrics``: the figures to compare, () for the
    usual ones. ``fdr``: the bound of the false discovery rate. Raise UsageError if a path does not exist or a figure is
    not known. Raise HostError if there are not two hosts to compare.
    """
    left_out: list[SkippedFile] = []
    answers = list(_answers(paths, left_out))
    mark = _commonest_mark(answers)
    answers, other = _parted(answers, lambda one: one.mark == mark)
    left_out += [SkippedFile(one.file, f"it is of {_kind(one.mark)}, the others are of {_kind(mark)}") for one in other]
    hosts = _by_host(answers, left_out)
    ways = _commonest_ways(hosts)
    for host in hosts.values():
        host.runs, strange = _parted(host.runs, lambda one: one.way in ways)
        left_out += [SkippedFile(one.file, f"it was measured in another way: {one.way}") for one in strange]
    if len(hosts) < 2:
        why = f"{left_out[0].file}: {left_out[0].reason}" if left_out else "no file has an answer"
        counted = f"{many(len(hosts), 'host')}; {many(len(left_out), 'file')} left out"
        raise HostError(
            f"there are not two hosts to compare ({counted}; {why})",
            "gather the output of 'status --json' or 'measure --json' of each host into a folder of its own",
        )
    values = _values(hosts, metrics)
    notes = {}
    if mark == EMULATED and values:
        notes["rows"], values = NO_VERDICT, {}
    elif not values:
        notes["rows"] = "no file has a run or a watch"
    rows, figures = compare_hosts(values, fdr)
    settings, alike = _settings(hosts)
    if not any(host.settings is not None for host in hosts.values()):
        notes["settings"] = "no file has settings"
    differ = _differ(rows, settings)
    return FleetComparison(
        FORMAT_VERSION,
        tuple(
            FleetHost(name, len(one.runs), one.settings is not None, name in differ)
            for name, one in sorted(hosts.items())
        ),
        *(rows, figures, settings, alike, fdr, mark, "; ".join(ways)),
        left_out=tuple(left_out),
        notes=notes,
    )


def _parted(answers: Iterable[_Answer], fits: Any) -> tuple[list[_Answer], list[_Answer]]:
    yes: list[_Answer] = []
    no: list[_Answer] = []
    for one in answers:
        (yes if fits(one) else no).append(one)
    return yes, no


def _kind(mark: str) -> str:
    return {"": "a real host", RECORDED: "a recorded host", EMULATED: "an emulated machine"}.get(
        mark, "a practice machine"
    )


def _differ(rows: Iterable[FleetRow], settings: Iterable[FleetSetting]) -> set[str]:
    """Return the hosts that differ. If a setting has no commonest value, no host differs in it."""
    odd = {host for one in settings if one.commonest is not None for other in one.others for host in other.hosts}
    return odd | {row.host for row in rows if row.different}


# -- files -------------------------------------------------------------------------------------------------------------


def _answers(paths: Sequence[Path], left_out: list[SkippedFile]) -> Iterator[_Answer]:
    """Yield the answer of each file that can be compared, and add the other files to ``left_out``."""
    silent: dict[str, bool] = {}
    for number, (path, host) in enumerate(_files(paths)):
        if number >= _MOST_FILES:
            raise UsageError(f"there are more than {_MOST_FILES:,} files", "compare fewer hosts at a time")
        if path.is_dir():
            silent.setdefault(host, True)
            continue
        shown = clean(path, PATH)
        try:
            answer = _read(path, shown)
            if not (host or answer.host):
                raise _Unfit("it names no host; put it into a folder with the name of its host")
        except OSError as error:
            left_out.append(SkippedFile(shown, f"it cannot be read: {reason(error)}"))
        except ValueError as error:
            left_out.append(SkippedFile(shown, clean(error, REASON)))
        else:
            answer.host = called(host or answer.host, NAME)
            silent[host] = False
            yield answer
    left_out += [
        SkippedFile(called(host, NAME), "the folder has no answer of this host") for host, no in silent.items() if no
    ]


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Yield each file with the name of its host, "" if only the file itself can tell. Yield the folder of each host,
    too, before its files."""
    for path in paths:
        if not path.exists():
            raise UsageError(f"there is no {clean(path, PATH)}", "name files or folders with the answers of the hosts")
        if not path.is_dir():
            yield path, ""
            continue
        for inner in sorted(path.iterdir()):
            if inner.is_dir() and not inner.is_symlink():
                yield inner, inner.name
                for folder, folders, names in os.walk(inner):
                    folders.sort()
                    yield from ((Path(folder, name), inner.name) for name in sorted(names) if _wanted(name))
            elif _wanted(inner.name) and inner.is_file():
                yield inner, ""


def _wanted(name: str) -> bool:
    return name.endswith(".json") and name not in _PASSED_OVER


def _read(path: Path, shown: str) -> _Answer:
    """Return what a file says. Raise OSError or ValueError (with the reason) if it cannot be compared."""
    if not path.is_file():
        raise _Unfit("it is no file")
    size = path.stat().st_size
    if size > _LARGEST:
        raise _Unfit(f"it is larger than {_LARGEST >> 20} MiB")
    if not size:
        raise _Unfit("it is empty: the host gave no answer")
    try:
        found = parse_object(path.read_bytes())
    except ValueError as error:
        raise _Unfit(f"it has no whole JSON object: {clean(error, NAME)}") from error
    version = found.get("format_version")
    if not isinstance(version, int):
        raise _Unfit("it is no answer of jitter-workshop in JSON")
    if version != FORMAT_VERSION:
        raise _Unfit(f"it has the format {version} of another version, and this version reads {FORMAT_VERSION}")
    for names, read in (
        (("checks", "host", "summary"), _of_status),
        (("histograms", "workload", "stalls"), _of_run),
        (("accept", "checks", "host"), _of_verdict),
        (("watching", "rates", "watched_s"), _of_watch),
    ):
        if all(name in found for name in names):
            return read(found, shown)
    raise _Unfit("it is not from 'status --json', 'measure --json' or 'watch --json', and is no verdict file")


def _of_status(found: Mapping[str, Any], file: str) -> _Answer:
    host = _object(found, "host")
    mark = RECORDED if host.get("recorded") is True else mark_of(host)
    return _Answer(file, _name(host), mark, _machine(host), _settings_of(found, host), own_file=True)


def _of_run(found: Mapping[str, Any], file: str) -> _Answer:
    host = _object(found, "host")
    kind = KINDS.get(_text(found, "workload"))
    summaries = _object(found, "histograms")
    name = kind.histogram if kind is not None else next(iter(summaries), "")
    percentiles = _object(_object(summaries, name), "percentiles") if name in summaries else {}
    figures = {f"p{p}": _number(percentiles, p) for p in PERCENTILES if percentiles.get(p) is not None}
    stalls = _object(found, "stalls")
    for rate in _list(stalls, "rates"):
        figures[stall_measure(round(_number(rate, "threshold_ns")))] = _number(rate, "per_second")
    figures[STOLEN] = _number(stalls, "stolen_ns_per_second")
    return _Answer(
        *(file, _name(host), mark_of(host), _machine(host)),
        way=_way(found),
        run=_text(found, "id"),
        figures=figures,
    )


def _way(run: Mapping[str, Any]) -> str:
    """Return in words how a run was measured. Only runs with the same words are compared (``comparison.differences``
    has the reasons)."""
    workload = _text(run, "workload")
    words = [workload]
    if workload == "ring":
        words += [_text(run, "pacing"), *(["hand-off"] if run.get("transit_from") is None else [])]
    if workload in PACED:
        words.append(f"every {_number(run, 'interval_ns') / 1000:g} µs")
    words += [f"duty {_number(run, 'duty'):g} %", f"clock {clean(_object(run, 'clock').get('source'), WORD)}"]
    words += [f"{name} {clean(run[name], WORD)}" for name in ("pause", "memory", "lock", "noise") if run.get(name)]
    if (sched := run.get("sched")) not in (None, "other"):
        words.append(clean(sched, WORD))
    return ", ".join(clean(word, ID) for word in words)


def _of_verdict(found: Mapping[str, Any], file: str) -> _Answer:
    host = _object(found, "host")
    limit = round(_number(found, "limit_ns"))
    seconds = _number(found, "watched_ns") / 1e9
    answer = _Answer(file, _name(host), mark_of(host), _machine(host), _settings_of(found, host))
    return _with_watch(answer, found, limit, {limit: _number(found, "stalls")}, seconds)


def _of_watch(found: Mapping[str, Any], file: str) -> _Answer:
    """Return what a report of a watch says. It has no host: its folder names the host."""
    notes = {key: text for key, text in _object(found, "notes").items() if isinstance(text, str)}
    counts = {round(_number(rate, "threshold_ns")): _number(rate, "count") for rate in _list(found, "rates")}
    answer = _Answer(file, "", mark_in(notes), None)
    return _with_watch(answer, found, round(_number(found, "threshold_ns")), counts, _number(found, "watched_s"))


def _with_watch(
    answer: _Answer, found: Mapping[str, Any], shortest: int, counts: Mapping[int, float], seconds: float
) -> _Answer:
    """Return the answer with the figures of a watch. ``shortest``: the shortest stall that counts, in ns."""
    if seconds <= 0:
        raise _Unfit("nothing was watched")
    answer.way = f"{_WATCH}{clean(_text(found, 'watching'), WORD)}, stalls from {shortest} ns"
    answer.run = f"{_text(found, 'started_at')} {clean(found.get('cpu'), WORD)}"
    answer.figures = {f"{WATCH_STALLS}{ns}_ns": count / seconds * 3600 for ns, count in counts.items()}
    return answer


def _settings_of(found: Mapping[str, Any], host: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return id → (title, value) of an answer's checks and of the host's facts."""
    settings = {}
    for check in _list(found, "checks"):
        ident = clean(_text(check, "id"), ID)
        if ident not in _MEASURED:
            value = check.get("value")
            absent = _NOT_HERE if check.get("state") == "unavailable" else _NO_VALUE
            shown = clean(value, LINE) if isinstance(value, str) else absent
            settings[ident] = clean(_text(check, "title"), NAME), shown
    for name, title in _FACTS.items():
        if name in host:
            value = host[name]
            value = (
                len(value) if isinstance(value, list) else {True: "yes", False: "no", None: "none"}.get(value, value)
            )
            settings[f"host.{name}"] = title, clean(value, LINE)
    return settings


def _name(host: Mapping[str, Any]) -> str:
    name = host.get("name", "")
    return name if isinstance(name, str) else ""


def _machine(host: Mapping[str, Any]) -> str:
    return clean([host.get(name) for name in _MACHINE], PATH)


def _object(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = found.get(name)
    if not isinstance(value, dict):
        raise _Unfit(f"its field {clean(name, ID)} is no object")
    return value


def _list(found: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = found.get(name)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise _Unfit(f"its field {clean(name, ID)} is no list of objects")
    return value


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        raise _Unfit(f"its field {clean(name, ID)} is no text")
    return value


def _number(found: Mapping[str, Any], name: str) -> float:
    """Return a number that is zero or more."""
    value = found.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_NUMBER:
        raise _Unfit(f"its field {clean(name, ID)} is no number from 0 on")
    return float(value)


# -- hosts -------------------------------------------------------------------------------------------------------------


def _commonest_mark(answers: Iterable[_Answer]) -> str:
    """Return "" if there is any real host, else the mark of most answers."""
    marks = Counter(one.mark for one in answers)
    return "" if "" in marks or not marks else marks.most_common(1)[0][0]


def _by_host(answers: Iterable[_Answer], left_out: list[SkippedFile]) -> dict[str, _Host]:
    """Return the hosts by name. Leave out what is there twice, and what comes from another machine of the same name."""
    hosts: dict[str, _Host] = defaultdict(_Host)
    for one in answers:
        host = hosts[one.host]
        if host.machine is not None and one.machine is not None and host.machine != one.machine:
            left_out.append(SkippedFile(one.file, f"another machine has the name {one.host}, too"))
            continue
        host.machine = host.machine or one.machine
        if one.way and one.run in host.ids:
            left_out.append(SkippedFile(one.file, f"the same run is in {host.ids[one.run]}"))
            continue
        if one.own_file and host.settings_file:
            left_out.append(SkippedFile(one.file, f"the settings of {one.host} are in {host.settings_file}"))
            continue
        if one.settings is not None and (one.own_file or host.settings is None):
            host.settings = one.settings
            host.settings_file = one.file if one.own_file else host.settings_file
        if one.way:
            host.runs.append(one)
            host.ids[one.run] = one.file
    return dict(hosts)


def _commonest_ways(hosts: Mapping[str, _Host]) -> tuple[str, ...]:
    """Return the way in which most hosts measured runs, and the way in which most hosts watched. Of ways that equally
    many hosts used, the one with most runs counts."""
    users = Counter(way for host in hosts.values() for way in {one.way for one in host.runs})
    runs = Counter(one.way for host in hosts.values() for one in host.runs)
    by_use = sorted(users, key=lambda way: (users[way], runs[way], way), reverse=True)
    firsts = (next((way for way in by_use if way.startswith(_WATCH) is watched), "") for watched in (False, True))
    return tuple(way for way in firsts if way)


def _values(hosts: Mapping[str, _Host], metrics: Sequence[str]) -> dict[str, dict[str, list[float]]]:
    """Return figure → host → the values of its runs. Raise UsageError if a figure of ``metrics`` is not known."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name, host in sorted(hosts.items()):
        for run in host.runs:
            for figure, value in run.figures.items():
                values[figure][name].append(value)
    for figure in metrics:
        if figure not in values:
            known = ", ".join(clean(one, ID) for one in list(values)[:MOST_WORDS]) or "none"
            raise UsageError(f"no run has the figure {clean(figure, ID)}", f"the runs have: {known}")
    wanted = metrics or [one for one in values if one in USUAL or one.startswith(WATCH_STALLS)]
    return {figure: {name: list(seen) for name, seen in values[figure].items()} for figure in dict.fromkeys(wanted)}


def _settings(hosts: Mapping[str, _Host]) -> tuple[tuple[FleetSetting, ...], int]:
    """Return the settings that are not the same on all hosts, and the number of those that are. Those with the fewest
    other hosts come first."""
    by_value: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    titles: dict[str, str] = {}
    for name, host in sorted(hosts.items()):
        for ident, (title, value) in (host.settings or {}).items():
            titles.setdefault(ident, title)
            by_value[ident][value].append(name)
    found = []
    for ident, values in by_value.items():
        if len(values) > 1:
            known = sum(map(len, values.values()))
            ordered = sorted(values, key=lambda value: (-len(values[value]), value))
            first = ordered[0] if len(values[ordered[0]]) * 2 > known else None
            others = tuple(OtherValue(value, tuple(values[value])) for value in ordered if value != first)
            count = len(values[first]) if first is not None else 0
            found.append(FleetSetting(ident, titles[ident], first, count, known, others))
    found.sort(key=lambda one: (one.commonest is None, one.known - one.hosts, one.setting))
    return tuple(found), len(by_value) - len(found)
