"""Define the kinds of CPU settings that need more than one file access.

Examples are an offline cycle, one bit of an idle state's file, and a device that stays open.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot, TextReading, parse_integer
from jitter_workshop.host.tasks.listing import each_process, read_allowed_cpus
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.descriptor import closed_after
from jitter_workshop.tuning.setting_types.kinds import CpuList, CpuMask, Kind, Number

if TYPE_CHECKING:
    from jitter_workshop.tuning.switched import Switched
    from jitter_workshop.tuning.writer import HostWriter

CYCLED = "0, then 1"
BOUND, OPENED = "bound", "opened"
SCHEDUTIL = "schedutil"
NOT_HELD = "not held"


class CpuCycle(Kind):
    """Handle a CPU that is taken offline and brought back online (``cpuN/online``).

    The host has no file that shows if a CPU was cycled, so this process remembers its cycles. ``read`` returns CYCLED
    if this process has cycled the CPU and the CPU is online. Otherwise ``read`` returns the file's value. A restore
    writes ``1``, because an interrupted cycle may have left the CPU offline. Source:
    Documentation/core-api/cpu_hotplug.rst.
    """

    name = "cpu-cycle"
    fleeting = True

    def __init__(self) -> None:
        self._cycled: set[tuple[str, str]] = set()

    def read(self, root: HostRoot, path: str) -> TextReading:
        reading = root.reading(path)
        cycled = reading.text == "1" and (str(root.root), path) in self._cycled
        return TextReading(CYCLED) if cycled else reading

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        place = (str(writer.reader.root), path)
        if value == CYCLED:
            writer.write(path, "0")
        writer.write(path, "1")
        (self._cycled.add if value == CYCLED else self._cycled.discard)(place)

    def halfway(self, found: str, after: str) -> bool:
        return found == "0" and after == CYCLED


class IdleDisable(Number):
    """Handle ``cpuidle/stateM/disable``. The value is ``1`` if the user has disabled an idle state, else ``0``.

    Older kernels also show bit 1, which means that the driver has disabled the state. Only bit 0 is the user's
    (Documentation/admin-guide/pm/cpuidle.rst).
    """

    name = "idle-disable"

    def read(self, root: HostRoot, path: str) -> TextReading:
        reading = root.reading(path)
        number = parse_integer(reading.text)
        if reading.text is None:
            return reading
        return TextReading(None, "the file does not hold a number") if number is None else TextReading(str(number & 1))


class FrequencyLimit(Number):
    """Handle the lowest frequency of a policy, ``policyN/scaling_min_freq``. ``write`` waits until the new limit is in
    force, at most 0.1 s.

    A kernel worker applies the limit some time after the write. The file shows the new limit only when the limit is in
    force (``freq_qos_update_request``, ``handle_update`` in drivers/cpufreq/cpufreq.c).
    """

    name = "frequency-limit"
    patience_s = 0.1

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        writer.write(path, value)
        until = time.monotonic() + self.patience_s
        while time.monotonic() < until:
            time.sleep(0.001)
            if self.same(writer.reader.text(path) or "", value):
                return

    def make_sure(self, writer: HostWriter, path: str, value: str) -> None:
        # An earlier request may still be pending: write again, because the last request counts.
        self.write(writer, path, value)


NO_LIMIT_US = 2_000_000_000
"""The limit that the device shows while no process asks for a limit (PM_QOS_CPU_LATENCY_DEFAULT_VALUE), in µs."""


class _ByDriver(Kind):
    """Handle a setting that its driver resets whenever a CPU goes offline or comes online.

    The plan records the setting's value before CPUs are switched, so that a restore can write it again.
    """

    always = True

    def by_kernel(self, root: HostRoot, path: str, found: str, known: Collection[str], switched: Switched) -> bool:
        return switched.cpus


class IrqAcross(_ByDriver, CpuList):
    """Handle the affinity of an interrupt whose driver resets this affinity whenever a CPU goes offline or comes
    online."""

    name = "irq-across"


class MaskAcross(_ByDriver, CpuMask):
    """Handle a mask of CPUs that its driver resets whenever a CPU goes offline or comes online."""

    name = "mask-across"


class GovernorThread(Kind):
    """Handle the kernel thread ``sugov(policyN)`` of the governor schedutil, for one frequency policy.

    The value is ``bound`` or ``opened``. If the policy has another governor than schedutil, the value is that
    governor's name. Kernels before 6.2 let the thread run on every CPU after a partition was made or removed. Only the
    kernel can bind the thread, and only when the thread starts. So ``write`` sets another governor for a moment, and
    then schedutil again, which starts a new thread (kernel/sched/cpufreq_schedutil.c).
    """

    name = "governor-thread"
    always = True
    of_task = True
    _OTHERS = ("powersave", "ondemand", "conservative", "userspace", "performance")

    def read(self, root: HostRoot, path: str) -> TextReading:
        folder = policy_folder(path)
        governor = root.reading(f"{folder}/scaling_governor")
        if governor.text is None:
            return governor
        if governor.text != SCHEDUTIL:
            return TextReading(f"governor {governor.text}")
        name = f"sugov:{folder.rpartition('policy')[2]}"
        thread = next((task for task in each_process(root) if task.kernel and task.name == name), None)
        allowed = None if thread is None else read_allowed_cpus(root, thread)
        if allowed is None:
            return TextReading(None, "no such file")
        return TextReading(OPENED if allowed - CpuSet.parse_words(root.text(f"{folder}/related_cpus") or "") else BOUND)

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        file = f"{policy_folder(path)}/scaling_governor"
        if value != BOUND:
            raise OSError(errno.EINVAL, "a governor's thread can be bound only to CPUs that this governor controls")
        if writer.reader.text(file) == SCHEDUTIL:
            offered = (writer.reader.text(f"{policy_folder(path)}/scaling_available_governors") or "").split()
            other = next((name for name in self._OTHERS if name in offered), None)
            if other is None:
                raise OSError(
                    errno.ENOTSUP,
                    "to bind the governor's thread, this tool switches the governor, but the driver offers no other "
                    "governor",
                )
            writer.write(file, other)
        writer.write(file, SCHEDUTIL)

    def halfway(self, found: str, after: str) -> bool:
        return found in {f"governor {name}" for name in self._OTHERS[:-1]}

    def by_kernel(self, root: HostRoot, path: str, found: str, known: Collection[str], switched: Switched) -> bool:
        return switched.sets and found == OPENED

    def exists(self, root: HostRoot, path: str) -> bool:
        found = self.read(root, path)
        return found.reason != "no such file" and found.text != "governor performance"


def governor_threads(root: HostRoot) -> list[str]:
    """Return the name ``sugov(policyN)`` of the governor's kernel thread for each frequency policy of the host. A plan
    shows this name in the place of a path."""
    return [f"sugov(policy{number})" for number, _ in root.numbered(f"{CPU_DIR}/cpufreq", "policy")]


def policy_folder(path: str) -> str:
    """Return the folder of the policy that ``sugov(policyN)`` names."""
    return f"{CPU_DIR}/cpufreq/{path.removeprefix('sugov(').removesuffix(')')}"


class HeldLatency(Number):
    """Handle the latency limit that a process sets for all CPUs by holding a device open.

    Source: Documentation/power/pm_qos_interface.rst. ``read`` returns the limit that *this* process holds. When a
    process ends, its limit ends, too. So a restore by another process has nothing to write. On a tree of test files or
    on a recorded host, no device can be held open.
    """

    name = "held"
    fleeting = True

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, str]] = {}

    def read(self, root: HostRoot, path: str) -> TextReading:
        held = self._held.get(path)
        return TextReading(NOT_HELD if held is None else held[1])

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        """Hold a latency limit of ``value`` µs. It replaces the limit that this process already holds. If ``value`` is
        NOT_HELD, close the device.
        """
        held = self._held.get(path)
        if value == NOT_HELD:
            if held is not None:
                del self._held[path]
                os.close(held[0])
            return
        limit = parse_integer(value)
        if limit is None or not 0 <= limit < 1 << 31:
            raise OSError(errno.EINVAL, "the value must be a latency in microseconds")
        if not writer.real:
            raise OSError(errno.ENODEV, "a recorded host has no device to open")
        file = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NOCTTY) if held is None else held[0]
        try:
            os.write(file, limit.to_bytes(4, sys.byteorder, signed=True))
        except OSError:
            if held is None:
                os.close(file)
            raise
        self._held[path] = (file, value)

    def exists(self, root: HostRoot, path: str) -> bool:
        return path in self._held


def effective_limit(path: str) -> int | None:
    """Return the latency limit in µs that results from all processes with the device open.

    Return NO_LIMIT_US if there is no such process. Return None if the limit cannot be read (only root may read it).
    This function opens the device, which alone requests no limit.
    """
    try:
        with closed_after(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)) as file:
            data = os.read(file, 4)
    except OSError:
        return None
    limit = int.from_bytes(data, sys.byteorder, signed=True) if len(data) == 4 else -1
    return limit if limit >= 0 else None
