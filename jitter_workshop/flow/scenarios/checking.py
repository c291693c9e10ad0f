"""Check a scenario's requirements. This process runs in the practice machine, and makes the checks there."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass

from jitter_workshop.host.cpu.stat import CpuTimes, read_stat
from jitter_workshop.host.irq.interrupts import CounterTable, read_interrupts, read_softirqs
from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.host.tasks.listing import each_thread, read_allowed_cpus
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.irq_rows import is_device, is_timer
from jitter_workshop.model.scenario import FIGURES, Outcome, Requirement, Scenario
from jitter_workshop.model.text import MOST_PHRASES, NAME

INSIDE = "/run/jitter-workshop-scenario"
"""The folder in the machine with the scenario and the commands of its shell."""
PRELUDE = f"PATH={INSIDE}/bin:$PATH; . {INSIDE}/setup.sh\n"
"""The lines before each program of a scenario, with the functions that it may use (``assets/practice/scenario.sh``)."""
COMMAND_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Counts:
    """Hold the kernel's counters at one time. ``at``: the time of the reading, in seconds of the monotonic clock."""

    at: float
    interrupts: CounterTable
    softirqs: CounterTable
    times: Mapping[int, CpuTimes]


def check_requirements(root: HostRoot, scenario: Scenario, values: Mapping[str, str]) -> list[Outcome]:
    """Check all requirements of a scenario, and return one outcome for each. The kernel's events are counted once, for
    ``scenario.seconds`` seconds. All requirements use this one count. ``values``: the values that were drawn for this
    scenario. The scenario's commands get these values as shell variables."""
    figures = _rates(root, scenario) if any(one.kind == "figure" for one in scenario.requirements) else {}
    return [_outcome(root, one, values, figures) for one in scenario.requirements]


def read_counts(root: HostRoot) -> Counts:
    """Read the counters."""
    return Counts(time.monotonic(), read_interrupts(root), read_softirqs(root), read_stat(root).per_cpu)


def figures_between(earlier: Counts, later: Counts, cpu: int) -> dict[str, float]:
    """Return a CPU's figures between two readings: name → value, in the units of ``FIGURES``. A figure is left out if
    the reading ``later`` does not have the figure's counters. All figures are left out if one of the two readings does
    not have the CPU."""
    seconds = later.at - earlier.at
    found: dict[str, float] = {}
    if seconds <= 0 or cpu not in earlier.times or cpu not in later.times:
        return found
    grown = {key: row.per_cpu.get(str(cpu), 0) for key, row in later.interrupts.minus(earlier.interrupts).rows.items()}
    if not later.interrupts.reason:
        names = {key: later.interrupts.rows[key].name for key in grown}
        found["ticks"] = sum(n for key, n in grown.items() if is_timer(key, names[key])) / seconds
        found["interrupts"] = sum(n for key, n in grown.items() if is_device(key, names[key])) / seconds
    if not later.softirqs.reason:
        softirqs = later.softirqs.minus(earlier.softirqs).rows.values()
        found["softirqs"] = sum(row.per_cpu.get(str(cpu), 0) for row in softirqs) / seconds
    before, after = earlier.times[cpu], later.times[cpu]
    total = after.total - before.total
    idle = after.idle + after.iowait - before.idle - before.iowait
    # A CPU whose tick has stopped is credited with its idle time late: no time at all was an idle time.
    found["busy"] = 100.0 * min(1.0, max(0.0, 1.0 - idle / total)) if total > 0 else 0.0
    return found


def _rates(root: HostRoot, scenario: Scenario) -> dict[int, dict[str, float]]:
    """Count events for ``scenario.seconds``, and return CPU → its figures. Only CPUs in the scenario's requirements are
    returned."""
    cpus = {int(one.cpu) for one in scenario.requirements if one.kind == "figure" and one.cpu.isdigit()}
    earlier = read_counts(root)
    time.sleep(scenario.seconds)
    later = read_counts(root)
    return {cpu: figures_between(earlier, later, cpu) for cpu in cpus}


def _outcome(
    root: HostRoot, one: Requirement, values: Mapping[str, str], figures: Mapping[int, Mapping[str, float]]
) -> Outcome:
    if one.kind == "figure":
        value = figures.get(int(one.cpu), {}).get(one.name) if one.cpu.isdigit() else None
        if value is None:
            return Outcome(one.says, False, f"CPU {one.cpu} is not online")
        met = (one.at_least is None or value >= one.at_least) and (one.at_most is None or value <= one.at_most)
        return Outcome(one.says, met, f"{value:.1f} {FIGURES[one.name]}")
    if one.kind == "file":
        reading = root.reading(one.name)
        if reading.text is None:
            return Outcome(one.says, False, f"{one.name}: {reading.reason}")
        return Outcome(one.says, reading.text.strip() in one.wanted.split("|"), printable(reading.text.strip(), NAME))
    if one.kind == "task":
        return _of_tasks(root, one)
    return _of_a_command(one, values)


def _of_tasks(root: HostRoot, one: Requirement) -> Outcome:
    """Return the outcome of a requirement about tasks. The requirement has the name of a thread, and CPUs in ``off``.
    The requirement is met if such threads exist, and none of them may use a CPU in ``off``."""
    off = CpuSet.parse_list(one.off)
    threads = [task for task in each_thread(root) if task.name == one.name]
    if not threads:
        return Outcome(one.says, False, "no task has this name")
    allowed = [(task, read_allowed_cpus(root, task)) for task in threads]
    inside = [(task, cpus) for task, cpus in allowed if cpus is not None and set(cpus) & set(off)]
    if not inside:
        return Outcome(one.says, True, f"{len(threads)} run")
    told = ", ".join(f"{task.tid} may use {cpus}" for task, cpus in inside[:MOST_PHRASES])
    return Outcome(one.says, False, f"{told} …" if len(inside) > MOST_PHRASES else told)


def _of_a_command(one: Requirement, values: Mapping[str, str]) -> Outcome:
    """Run a requirement's command in a shell, and return the outcome. The requirement is met if the exit code is 0. The
    outcome has the first line of the output."""
    try:
        done = subprocess.run(
            ["sh", "-c", PRELUDE + one.name],
            env={**os.environ, **shell_variables(values)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Outcome(one.says, False, printable(str(error), NAME))
    said = (done.stdout + done.stderr).decode("utf-8", "replace").strip().partition("\n")[0]
    return Outcome(one.says, done.returncode == 0, printable(said, NAME) or ("yes" if done.returncode == 0 else "no"))


def shell_variables(values: Mapping[str, str]) -> dict[str, str]:
    """Return the drawn values as variables for a shell, with their names in capitals."""
    return {name.upper(): value for name, value in values.items()}
