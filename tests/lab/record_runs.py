"""Record what chapters show on the lab machine whose levers most hosts lack: ``python -m tests.lab.record_runs``.

The machine is emulated, so its times mean nothing. ``tests.bench.course_runs`` runs in it and keeps counts, and causes
by counts, which come into ``assets/recorded-runs.json``. The tick's settings take effect at a boot, between its two
runs. The governor's first run begins at the lowest frequency: one that follows the load would choose a high one
where a busy host makes the emulated CPUs slow. Before the first run of the chapter on interrupts, the workshop
sends that of a shared folder to a hot CPU. As ``tests/lab`` says, this needs QEMU and a kernel in the cache.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from jitter_workshop.practice.qemu import MachineOptions
from tests.bench.course_runs import ASSET
from tests.lab import machine
from tests.lab.conftest import CACHE
from tests.lab.machine import Machine
from tests.lab.shapes import TRUSTED
from tests.lab.test_lab_boot import settings
from tests.lab.test_lab_trials import lowest_frequency

KEPT = "/home/recorded-runs.json"
"""In the guest, in a folder that a reboot of the lab machine keeps."""
GOVERNOR, INTERRUPTS, IDLE_STATES, TICK = CHAPTERS = ("governor", "interrupts", "idle-states", "tick")
HOT = "2-3"
PATIENCE_S = 1_800


def measured(lab: Machine, *words: str) -> None:
    """Have the guest measure chapters."""
    program = [lab.python, "-m", "tests.bench.course_runs", "--emulated", "--into", KEPT]
    done = lab.run([*program, *words], timeout_s=PATIENCE_S, check=True)
    print(done.stderr, file=sys.stderr)


def recorded(folder: Path, idents: tuple[str, ...]) -> dict[str, Any]:
    """The chapters' entries, by ids."""
    lab = machine.boot(MachineOptions(disk=folder / "disk.img", append=TRUSTED), CACHE)
    try:
        if GOVERNOR in idents:
            with lowest_frequency(lab):
                measured(lab, GOVERNOR)
        if INTERRUPTS in idents:
            measured(lab, INTERRUPTS)
        if IDLE_STATES in idents:
            measured(lab, IDLE_STATES)
        if TICK in idents:
            lab.call(settings)
            measured(lab, TICK, "--half", "measure")
            # GRUB has no disk to boot from here, so the emulator gives the kernel its line.
            lab.workshop("apply", "nohz-full", "rcu-nocbs", "--cpus", HOT, "--yes")
            lab.reboot(append=f"nohz_full={HOT} rcu_nocbs={HOT} {TRUSTED}")
            measured(lab, TICK, "--half", "again")
        entries: dict[str, Any] = json.loads(lab.read(KEPT))["chapters"]
        if GOVERNOR in entries:
            entries[GOVERNOR]["source"] += ", first with the governor powersave"
            entries[GOVERNOR]["first"] = {"governor": "powersave"}
        if INTERRUPTS in entries:
            entries[INTERRUPTS]["source"] += ", first with interrupts on a hot CPU"
        return entries
    finally:
        lab.close()


def main(*idents: str) -> None:
    with tempfile.TemporaryDirectory(prefix="jitter-record-") as folder:
        entries = recorded(Path(folder), idents or CHAPTERS)
    known = json.loads(ASSET.read_text())
    known["chapters"].update(entries)
    ASSET.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
