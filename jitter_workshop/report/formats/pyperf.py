"""Write pyperf's JSON (format 1.0), for ``pyperf show``, ``stats`` and ``compare_to``. pyperf itself is not needed.

There are two kinds of benchmarks, all in seconds:

- made from runs: p50, p99 and p99.9 of the main histogram, one value per *block*. Runs with the same label that were
  measured in the same way make one benchmark. The blocks of a run depend on each other. So a difference that
  ``compare_to`` calls significant does not prove the effect of a change.
- made from proofs: p50, p99, p99.9 and the time in stalls per second, without and with the change, one value per
  *round*. Each proof also gets two more files, one without and one with the change. The benchmarks of these two
  files have the same names, so that ``compare_to`` can compare them. But ``compare_to`` does not know which two runs
  are a round, and judges each measure separately. So only the proof's own verdict is valid.

``compare_to`` finds benchmarks of two files by name. So a name contains a label only if a file has runs of several
labels.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jitter_workshop.errors import SessionError
from jitter_workshop.model.proof import Proof
from jitter_workshop.model.record import picked
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.run import Run, of_transit
from jitter_workshop.model.spec import PACED
from jitter_workshop.model.text import LABEL, REASON, clean
from jitter_workshop.report.formats.common import Files, as_shown, name_beside, plain_name
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.stats.comparison import differences

VERSION = "1.0"
ENDING = ".pyperf.json"
BLOCKS = "blocks of one run depend on each other: no test of significance is valid here"
ROUNDS = "rounds of a proof, each a fresh run; the proof's verdict pairs them and corrects for all its lines"


def files(document: ReportDocument, session: OpenSession, runs: Sequence[Run], name: str) -> Files:
    """Return a file with all benchmarks. If ``name`` is not "", also return two files per proof: one without and one
    with the change.

    Raise SessionError if there is no benchmark, because pyperf cannot read an empty file.
    """
    runs = as_shown(document, runs)
    by_id = {run.id: run for run in runs}
    runs_of = {p.id: {ident for one in p.rounds for ident in (one.without, one.with_it)} for p in document.proofs}
    whole = [proof for proof in document.proofs if proof.rounds and runs_of[proof.id] <= by_id.keys()]
    told = {ident for proof in whole for ident in runs_of[proof.id]}
    benchmarks = _of_runs(document, [run for run in runs if run.id not in told])
    sides: list[tuple[str, list[dict[str, Any]]]] = []
    for proof, (subject, file) in zip(whole, _subjects(whole), strict=True):
        for side in ("without", "with"):
            own = list(_of_side(document, proof, side, by_id))
            benchmarks += [_named(one, f"{subject} {side}: {one['metadata']['name']}") for one in own]
            if own:
                sides.append((f"{file}-{side}", own))
    if not benchmarks:
        raise SessionError("no block of these runs has a percentile above 0 ns", "measure for longer")
    found = {name: _suite(document, benchmarks)}
    if name:
        ending = ENDING if name.endswith(ENDING) else ".json"
        found |= {name_beside(name, side, ending): _suite(document, own) for side, own in sides}
    return found


def _suite(document: ReportDocument, benchmarks: Sequence[dict[str, Any]]) -> bytes:
    common = _metadata(
        {
            "unit": "second",
            "tool": f"jitter-workshop {document.tool_version}",
            "session": document.session_name or document.session_id,
            "exported": document.made_at,
            "recorded_host": document.recorded,
        }
    )
    value = {"version": VERSION, "metadata": common, "benchmarks": _apart(benchmarks)}
    return (json.dumps(value, ensure_ascii=True, indent=1) + "\n").encode("ascii")


def _apart(benchmarks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all benchmarks with unique names. A name that occurs again gets a number, because pyperf refuses a file
    with two equal names."""
    found: dict[str, dict[str, Any]] = {}
    for one in benchmarks:
        name, number = one["metadata"]["name"], 1
        while name in found:
            number += 1
            name = f"{one['metadata']['name']} ({number})"
        found[name] = _named(one, name)
    return list(found.values())


def _of_runs(document: ReportDocument, runs: Sequence[Run]) -> list[dict[str, Any]]:
    groups = _groups(runs)
    found: list[dict[str, Any]] = []
    for label, members in groups.items():
        of = members[0].main_histogram
        for percentile, field in (("50", "p50"), ("99", "p99"), ("99.9", "p999")):
            parts = []
            for run in members:
                # A block with too few samples has no percentile, and pyperf does not accept 0.
                values = [value / 1e9 for block in run.blocks if (value := getattr(block, field) or 0) > 0]
                if values:
                    left = len(run.blocks) - len(values)
                    more = {"blocks_left_out": left} if left else {}
                    parts.append({"metadata": _of_run(document, run) | more, "values": values})
            if parts:
                alone = len(groups) == 1
                title = f"{of} p{percentile}" if alone else f"{label}: {of} p{percentile}"
                metadata = {"name": title, "histogram": of, "percentile": percentile, "values_are": BLOCKS}
                found.append({"metadata": _metadata(metadata), "runs": parts})
    return found


def _groups(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Group the runs into benchmarks, and return the name of each benchmark → its runs.

    Runs with the same label that were measured in the same way form one benchmark. Its name is the label. A run that
    was measured in another way than the first run with its label is separate. The name of such a benchmark is label and
    id. A run without a label is also a separate benchmark, named by its id.
    """
    found: dict[str, list[Run]] = {}
    for run in runs:
        label = _title(run.label)
        fits = bool(label) and all(
            not differences(one, run) and one.placement.mode == run.placement.mode for one in found.get(label, ())[:1]
        )
        found.setdefault(label if fits else f"{label} {run.id}".strip(), []).append(run)
    return found


def _subjects(proofs: Sequence[Proof]) -> list[tuple[str, str]]:
    """Return a title and a part of a file name for each proof. Both texts name what the proof tests. If the part of a
    file name would be empty or not unique, both texts end with the proof's id.
    """
    titles = [(_title(proof.subject), plain_name(proof.subject)) for proof in proofs]
    files = [file.lower() for _, file in titles]
    return [
        (title, file) if file and files.count(file.lower()) == 1 else (f"{title} {p.id}", f"{file}-{p.id}".lstrip("-"))
        for (title, file), p in zip(titles, proofs, strict=True)
    ]


def _of_side(document: ReportDocument, proof: Proof, side: str, runs: Mapping[str, Run]) -> Iterator[dict[str, Any]]:
    """Yield a benchmark for each measure of a proof's runs on one side. ``side``: ``without`` (the change) or ``with``
    (the change).

    A measure is left out if it is 0 or unknown in any run of the proof. If only this run were left out, the mean of its
    side would be wrong.
    """
    without = [runs[one.without] for one in proof.rounds]
    with_it = [runs[one.with_it] for one in proof.rounds]
    own = without if side == "without" else with_it
    for measure in ("p50", "p99", "p99.9", "stolen"):
        if any(_measured(run, measure) <= 0 for run in (*without, *with_it)):
            continue
        about = {
            "name": "stolen a second" if measure == "stolen" else f"{own[0].main_histogram} {measure}",
            "proof": proof.id,
            "subject": proof.subject,
            "side": side,
            "orders": " ".join(one.order for one in proof.rounds),
            "values_are": ROUNDS,
        }
        parts = [{"metadata": _of_run(document, run), "values": [_measured(run, measure)]} for run in own]
        yield {"metadata": _metadata(about), "runs": parts}


def _measured(run: Run, measure: str) -> float:
    """Return a measure of one run in seconds; 0 if the run does not have it. Time in stalls: in seconds per second."""
    if measure == "stolen":
        return run.stalls.stolen_ns_per_second / 1e9
    return (of_transit(run).percentile(measure.removeprefix("p")) or 0) / 1e9


def _named(benchmark: dict[str, Any], name: str) -> dict[str, Any]:
    return {**benchmark, "metadata": {**benchmark["metadata"], "name": name}}


def _of_run(document: ReportDocument, run: Run) -> dict[str, Any]:
    """Return a run's metadata for pyperf to show; ``date`` and ``duration`` are names that pyperf defines."""
    host = run.host
    cpus = host.get("cpus_online")
    return _metadata(
        {
            "date": _date(run.started_at),
            "duration": run.duration_s if run.duration_s >= 0 else None,
            "hostname": "" if document.private else host.get("name"),
            **{name: host.get(name) for name in ("kernel", "architecture", "hypervisor")},
            "cpu_model_name": host.get("cpu_model"),
            "cpu_count": len(cpus) if isinstance(cpus, list | tuple) else None,
            "mark": run.mark,
            "run": run.id,
            **picked(run, "label", "workload", "preset", "core_hz", "steal_ns", "noise", "proof"),
            "pacing": run.pacing if run.workload == "ring" else "",
            "interval_ns": run.interval_ns if run.workload in PACED else None,
            "duty_percent": run.duty,
            "scheduler": run.sched,
            "placement": run.placement.mode,
            "clock": run.clock.source,
            "clock_resolution_ns": run.clock.resolution_ns,
            "applied": " ".join(f"{one.get('id')}={one.get('value')}" for one in run.applied),
            "disturbed": "yes" if run.disturbed else "",
            "incomplete": "" if run.complete else "yes",
        }
    )


def _metadata(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of ``given`` that pyperf accepts as metadata: finite numbers, and lines of text that are not
    empty."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, str):
            value = clean(value, REASON)
        if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
            continue
        if isinstance(value, str) or math.isfinite(value):
            found[key] = value
    return found


def _date(text: str) -> str:
    """Return a date in pyperf's form, in UTC; "" if the text is not a date."""
    try:
        return f"{datetime.datetime.fromisoformat(text).astimezone(datetime.UTC):%Y-%m-%d %H:%M:%S.%f}"
    except (ValueError, OverflowError):
        return ""


def _title(text: str) -> str:
    """Return a text without commas, for a benchmark's name. Commas would split the name, because pyperf's option ``-b``
    takes several names with commas between them."""
    return clean(text.replace(",", " "), LABEL)
