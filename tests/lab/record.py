"""Record the lab machine, for tests and for teaching: ``python -m tests.lab.record FOLDER [NAME…]``.

Each recording is one ``NAME.tar.xz`` with nothing in it that a second recording of the same state would not have
(sorted, no times, no owners). ``assets/recordings/README.md`` says what they are.
"""

from __future__ import annotations

import io
import lzma
import shutil
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from jitter_workshop.practice.qemu import MachineOptions
from tests.lab import machine
from tests.lab.conftest import CACHE

HOT = "1-2"
BOOT = f"isolcpus=managed_irq,domain,{HOT} nohz_full={HOT} rcu_nocbs={HOT} irqaffinity=0,3 nowatchdog"


@dataclass(frozen=True)
class State:
    """Hold what is recorded: a machine, and what was applied on it before (``all``: what status would improve)."""

    options: MachineOptions
    note: str
    applied: bool = False


STATES = {
    "lab-stock": State(MachineOptions(), "the project's lab machine (QEMU, stock kernel) as it boots"),
    "lab-tuned": State(
        MachineOptions(), "the project's lab machine after all that status would improve was applied", True
    ),
    "lab-boot": State(MachineOptions(append=BOOT), "the project's lab machine, booted with isolated and tickless CPUs"),
    "lab-rt": State(MachineOptions(kernel="rt"), "the project's lab machine with the real-time kernel"),
}


def pack(folder: Path, archive: Path) -> None:
    """Write ``folder`` as a tar.xz that depends on names and contents alone."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path in sorted(folder.rglob("*")):
            member = tarfile.TarInfo(str(path.relative_to(folder)))
            if path.is_dir():
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(member)
            else:
                data = path.read_bytes()
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    archive.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def record(state: State, archive: Path) -> None:
    lab = machine.boot(state.options, CACHE)
    scratch = Path(tempfile.mkdtemp(prefix="jitter-record-"))
    try:
        if state.applied:
            plan = lab.workshop("plan", "--cpus", HOT, "--json", check=True).json()
            words = list(dict.fromkeys(change["tunable"] for change in plan["changes"]))
            done = lab.workshop("apply", *words, "--cpus", HOT, "--yes", "--json").json()
            print(f"applied {len(done['applied'])}, refused {[one['path'] for one in done['refused']]}")
            lab.run(["rm", "-rf", "/var/lib/jitter-workshop"], check=True)
        lab.workshop("record-host", "/tmp/recorded", "--note", state.note, check=True)
        lab.copy_out("/tmp/recorded", scratch)
        pack(scratch, archive)
        print(f"{archive}: {archive.stat().st_size} bytes")
    finally:
        lab.close()
        shutil.rmtree(scratch, ignore_errors=True)


def main(folder: str, *names: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in names or STATES:
        record(STATES[name], Path(folder) / f"{name}.tar.xz")


if __name__ == "__main__":
    main(*sys.argv[1:])
