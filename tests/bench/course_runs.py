"""Measure the course's chapters on this machine, for those who rehearse it: ``python -m tests.bench.course_runs``.

Each chapter that can be done here is walked as a learner would: its first run, its settings applied, its second run,
its settings given back. Each run's percentiles, counts and causes are kept in ``assets/recorded-runs.json``, with the
machine on which it was made. They are shown as recorded, never as measured. As root, on a machine on which nothing else
of yours runs. Tasks that are neither the kernel's nor part of the measurement are kept without their names.

Of chapters whose levers this machine lacks, ``python -m tests.lab.record_runs`` takes the counts from the lab machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.attribution import explain_or_load
from jitter_workshop.flow.chapters.suspects import STEAL, of_counters, of_trace
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.reporting.anonymizer import is_private
from jitter_workshop.model.course import SLOTS, Shows, StepName
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.model.run import Run, SilentObserver
from jitter_workshop.report.cause_words import ANOTHER_TASK
from jitter_workshop.stats.figures import FIGURES, KnownRun, counts_alone, figure_with_id

ASSET = Path(__file__).resolve().parents[2] / "assets" / "recorded-runs.json"


def figures(run: Run, report: EvidenceReport | None, shows: Shows | None) -> dict[str, Any]:
    """A run's label, percentiles, settings, counts and causes, as the asset keeps them."""
    summary = run.histograms[run.main_histogram]
    known = KnownRun(run, report)
    names = [name for name, one in FIGURES.items() if one.unit in ("a second", "ns a second", "Hz", "")]
    wanted = dict.fromkeys((*([shows.figure] if shows is not None else []), *names))
    counts = {one.written: value for one in map(figure_with_id, wanted) if (value := one.of(known)) is not None}
    return {
        "label": run.label,
        "workload": run.workload,
        "applied": list(run.applied),
        "count": summary.count,
        "min": summary.min,
        "mean": summary.mean,
        "max": summary.max,
        **{f"p{name}": value for name, value in summary.percentiles.items() if value is not None},
        **({} if run.transit_from is None else {"transit_from": run.transit_from}),
        "noise": run.noise,
        "duration_s": run.duration_s,
        "counts": counts,
        **({} if report is None else seen(report, run, shows)),
    }


def seen(report: EvidenceReport, run: Run, shows: Shows | None) -> dict[str, Any]:
    """The causes of a traced run, as the step *diagnose* lists them."""
    found = of_trace(report, run.noise, shows.figure if shows is not None else "")
    causes = [
        {"kind": c.kind, "name": c.name, "count": c.count, "total_ns": c.total_ns, "own_load": c.own_load}
        for c in found.suspects
    ]
    told = {"causes": without_names(causes, found.stalls), "stalls": found.stalls, "stalled_ns": found.stalled_ns}
    return {"seen": {**told, "unknown_ns": found.unknown_ns, "others": found.others}}


def without_names(causes: list[dict[str, Any]], stalls: int) -> list[dict[str, Any]]:
    """The causes with one cause in the place of all tasks that are neither the kernel's nor part of the measurement. A
    stall with two of them counts twice, but no cause is in more than all stalls."""
    others = [c for c in causes if c["kind"] == "task" and not c["own_load"] and not _is_public(c["name"])]
    if not others:
        return causes
    count, total_ns = (sum(c[key] for c in others) for key in ("count", "total_ns"))
    merged = {"kind": "task", "name": ANOTHER_TASK, "count": min(count, stalls), "total_ns": total_ns}
    return [*(c for c in causes if c not in others), {**merged, "own_load": False}]


def _is_public(name: str) -> bool:
    # All kernel workers of a CPU are one cause: "kworker/1".
    return name == ANOTHER_TASK or name.startswith("kworker/") or not is_private(name)


def emulated_figures(run: Run, shows: Shows | None) -> dict[str, Any]:
    """A run's label, settings, counts and causes by counts: all that is kept of a run on an emulated machine."""
    kept = figures(run, None, shows)
    counts = {name: value for name, value in kept["counts"].items() if counts_alone(figure_with_id(name))}
    found = of_counters(run, figure=shows.figure if shows is not None else "")
    causes = [
        {"kind": c.kind, "name": c.name, "count": c.count, "own_load": c.own_load}
        for c in found.suspects
        if c.count and c.kind != STEAL
    ]
    named = {name: kept[name] for name in ("label", "workload", "applied", "count", "noise", "duration_s")}
    return {**named, "counts": counts, "seen": {"causes": causes, "others": found.others}}


def measure(workshop: Workshop, walk: ChapterWalk, slot: StepName, emulated: bool = False) -> dict[str, Any]:
    request = walk.measuring.request(slot)
    request = dataclasses.replace(request, evidence=request.evidence and not emulated)
    run = workshop.measure(request, SilentObserver(), CancelToken())
    walk.record(slot, run)
    if emulated:
        return emulated_figures(run, walk.chapter.shows)
    report = explain_or_load(workshop.context.handle, run) if workshop.context.handle.has_trace(run.id) else None
    return figures(run, report if isinstance(report, EvidenceReport) else None, walk.chapter.shows)


def chapter(
    workshop: Workshop, ident: str, emulated: bool = False, half: StepName | None = None
) -> dict[str, Any] | None:
    """Both runs of a chapter, the first alone where nothing was applied; None where it measures nothing here.
    ``half``: that run alone, of a chapter whose settings take effect at a boot, and nothing is applied."""
    walk = workshop.walk(ident)
    if not walk.measuring.measures("measure") or walk.chapter.hunt:
        return None
    if half is not None:
        return {half: measure(workshop, walk, half, emulated)}
    runs: dict[str, Any] = {"measure": measure(workshop, walk, "measure", emulated)}
    changed = True
    try:
        if walk.chapter.changes == "tunables":
            view = walk.apply()
            print(f"  {view.text}", file=sys.stderr)
            # If nothing was written, a second run would be a second first one under another name.
            changed = view.applied > 0 and not view.needs_reboot
        if changed and walk.measuring.measures("again"):
            runs["again"] = measure(workshop, walk, "again", emulated)
    finally:
        if walk.chapter.changes == "tunables":
            walk.restore()
    return runs


def main(*words: str) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.course_runs")
    parser.add_argument("idents", nargs="*", metavar="CHAPTER")
    parser.add_argument("--emulated", action="store_true", help="this machine is emulated: keep counts alone")
    parser.add_argument("--into", type=Path, default=ASSET, metavar="FILE")
    parser.add_argument("--half", choices=SLOTS, help="make this run alone; what it needs is applied already")
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        workshop = Workshop.open("course runs")
        host = workshop.context.host
        machine = f"{host.hypervisor or 'bare metal'}{' guest' if host.hypervisor else ''}, {host.cpu_model}"
        if asked.emulated:
            machine = "the project's lab machine (QEMU)"
        kernel = ".".join(host.kernel.split(".")[:2])
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        source = f"measured on {today}: {machine}, {len(host.cpus_online)} CPUs, Linux {kernel}"
        known = json.loads(asked.into.read_text()) if asked.into.is_file() else {"unit": "ns", "chapters": {}}
        kept = known["chapters"]
        for one in workshop.course.chapters:
            if asked.idents and one.id not in asked.idents:
                continue
            try:
                runs = chapter(workshop, one.id, asked.emulated, asked.half)
            except WorkshopError as error:
                print(f"{one.id}: {error.sentence()}", file=sys.stderr)
                continue
            if runs:
                print(f"{one.id}: measured", file=sys.stderr)
                before = kept.get(one.id, {}).get("runs", {}) if asked.half is not None else {}
                emulated = {"emulated": True} if asked.emulated else {}
                kept[one.id] = {"source": source, **emulated, "runs": {**before, **runs}}
                for slot in kept[one.id]["runs"].keys() ^ {m.slot for m in one.measurements}:
                    print(f"{one.id}: no run for '{slot}': nothing of it could be applied here", file=sys.stderr)
                asked.into.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")
        workshop.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
