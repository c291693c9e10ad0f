"""Measure the course's chapters on this machine, for those who rehearse it: ``python -m tests.bench.course_runs``.

Each chapter that can be done here is walked as a learner would: its first run, its settings applied, its second run,
its settings given back. What is kept is each run's percentiles, with what machine it was, in
``assets/recorded-runs.json``: they are shown as recorded, never as measured. As root, on a machine on which nothing
else of yours runs.
"""

from __future__ import annotations

import datetime
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters.walk import ChapterSession
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.course import StepName
from jitter_workshop.model.run import Run, SilentObserver

ASSET = Path(__file__).resolve().parents[2] / "assets" / "recorded-runs.json"


def figures(run: Run) -> dict[str, Any]:
    """A run's label, percentiles and settings, as the asset keeps them."""
    summary = run.histograms[run.main_histogram]
    return {
        "label": run.label,
        "workload": run.workload,
        "applied": list(run.applied),
        "count": summary.count,
        "min": summary.min,
        "mean": summary.mean,
        "max": summary.max,
        **{f"p{name}": value for name, value in summary.percentiles.items() if value is not None},
    }


def measure(workshop: Workshop, walk: ChapterSession, slot: StepName) -> Run:
    run = workshop.measure(walk.request(slot), SilentObserver(), CancelToken())
    walk.record(slot, run)
    return run


def chapter(workshop: Workshop, ident: str) -> dict[str, Any] | None:
    """Both runs of a chapter, the first alone where nothing was applied; None where it measures nothing here."""
    walk = workshop.walk(ident)
    if not walk.measures("measure"):
        return None
    runs = {"measure": figures(measure(workshop, walk, "measure"))}
    changed = True
    try:
        if walk.chapter.changes == "tunables":
            view = walk.apply()
            print(f"  {view.text}", file=sys.stderr)
            # Where nothing was written, a second run would be a second first one under another name.
            changed = view.applied > 0 and not view.needs_reboot
        if changed and walk.measures("again"):
            runs["again"] = figures(measure(workshop, walk, "again"))
    finally:
        if walk.chapter.changes == "tunables":
            walk.undo()
    return runs


def main(*idents: str) -> None:
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        workshop = Workshop.open("course runs")
        host = workshop.host
        machine = f"{host.hypervisor or 'bare metal'}{' guest' if host.hypervisor else ''}, {host.cpu_model}"
        kernel = ".".join(host.kernel.split(".")[:2])
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        known = json.loads(ASSET.read_text()) if ASSET.is_file() else {"unit": "ns", "chapters": {}}
        for one in workshop.course.chapters:
            if idents and one.id not in idents:
                continue
            try:
                runs = chapter(workshop, one.id)
            except WorkshopError as error:
                print(f"{one.id}: {error.sentence()}", file=sys.stderr)
                continue
            if runs:
                print(f"{one.id}: measured", file=sys.stderr)
                source = f"measured on {today}: {machine}, {len(host.cpus_online)} CPUs, Linux {kernel}"
                known["chapters"][one.id] = {"source": source, "runs": runs}
                for slot in runs.keys() ^ {m.slot for m in one.measurements}:
                    print(f"{one.id}: no run for '{slot}': nothing of it could be applied here", file=sys.stderr)
                ASSET.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")
        workshop.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
