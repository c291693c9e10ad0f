"""Define the tunables of the scheduler: real-time throttling, the deadline server, timers, RCU, preemption."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.host.kernel.release import preemption, version_of
from jitter_workshop.host.root import printable
from jitter_workshop.model.status import Assessment
from jitter_workshop.model.text import MOST_ENTRIES, WORD
from jitter_workshop.tuning.base import Setting, Settings, Unavailable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables.single import (
    OneFile,
    TradeOff,
    needs_value,
    number_of,
    one_of,
    read_value,
    whole_number,
    without_debugfs,
)

_RT_PERIOD = "/proc/sys/kernel/sched_rt_period_us"
_FAIR_SERVER = "/sys/kernel/debug/sched/fair_server"


class RtThrottling(OneFile):
    id = "rt-throttling"
    title = "Real-time throttling"
    why = (
        "By default SCHED_FIFO and SCHED_RR tasks together get at most 95 % of each second. So the kernel stops a "
        "real-time thread that never sleeps for up to 50 ms a second."
    )
    danger = (
        "without the limit, a real-time thread that never sleeps can block its CPU forever; the effect is worst in a "
        "guest"
    )
    risk = "high"
    document = "Documentation/scheduler/sched-rt-group.rst"
    file = "/proc/sys/kernel/sched_rt_runtime_us"
    paths = (file,)
    values = "-1 for no limit, or µs of each period"
    absent = "this kernel has no real-time throttling"

    def judge(self, host: Host) -> Assessment:
        current = number_of(self.current(host))
        period = host.root.integer(_RT_PERIOD) or 1_000_000
        if _only_admits(host):
            reason = (
                "this kernel (6.12 or newer, without CONFIG_RT_GROUP_SCHED) does not use this limit to throttle "
                "real-time tasks. Instead, the deadline server reserves time for ordinary tasks. This value limits "
                "only the reservations of SCHED_DEADLINE"
            )
            return self.answer("info", f"{current} µs of {period} µs", reason)
        if current < 0:
            reason = (
                "no limit: a busy real-time thread keeps its CPU, so no task of lower priority on that CPU can end it"
            )
            return self.answer("info", str(current), reason)
        share = 100 * current / period
        reason = (
            f"real-time tasks get at most {share:.3g} % of a CPU's time. In the rest, another task can run and end a "
            "real-time task that never sleeps. The limit slows only a thread that spins under SCHED_FIFO"
        )
        return self.answer("ok", f"{current} µs of {period} µs", reason)

    def best(self, host: Host, current: str) -> str:
        raise Unavailable(
            "the limit is for safety, so this tool does not remove it by default: to remove the limit, give "
            "rt-throttling=-1"
        )

    def asked(self, host: Host, value: str) -> str:
        period = host.root.integer(_RT_PERIOD) or 1_000_000
        if value == "0":
            value = "zero, which would stop every real-time task"
        return "-1" if value == "-1" else whole_number(self, value, 1, period)


def _only_admits(host: Host) -> bool:
    """Return True if in this kernel the real-time limit applies only to SCHED_DEADLINE. The limit is then for the CPU
    time that such tasks can reserve.

    Such a kernel throttles no real-time task by this limit (kernel/sched/rt.c from Linux 6.12 on).
    """
    return version_of(host.kernel.release) >= (6, 12) and host.kernel_config.lacks("RT_GROUP_SCHED")


class DeadlineServer(Settings):
    id = "deadline-server"
    title = "Deadline server for ordinary tasks"
    why = (
        "If a real-time thread keeps a CPU busy, a deadline server gives ordinary tasks 50 ms of each second (from "
        "Linux 6.12). It does so even with real-time throttling off. On a tickless CPU, the server's timer can start "
        "the tick again."
    )
    danger = "with runtime 0, ordinary tasks on a CPU with a busy real-time thread never run again"
    risk = "high"
    document = "Documentation/scheduler/sched-deadline.rst"
    owns = (f"{_FAIR_SERVER}/cpu*/runtime",)
    paths = (_FAIR_SERVER,)
    values = "off, or the runtime in ns"

    def judge(self, host: Host) -> Assessment:
        settings = self._runtimes(host, None)
        values = sorted({number_of(s.current or "0") for s in settings})
        shown = ", ".join("off" if v == 0 else f"{v / 1e6:g} ms" for v in values[:MOST_ENTRIES])
        reason = (
            "off on the hot CPUs: a busy real-time thread on such a CPU leaves no time to ordinary tasks"
            if values == [0]
            else (
                "the server matters only on CPUs where a thread spins under SCHED_FIFO; without the server, ordinary "
                "tasks on such a CPU get no time"
            )
        )
        return self.answer("info", shown, reason, paths=[s.path for s in settings[: self.shown_paths]])

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        if value is None:
            raise needs_value(self)
        return self._runtimes(host, "0" if value == "off" else whole_number(self, value, 0, 10_000_000_000))

    def _runtimes(self, host: Host, wanted: str | None) -> list[Setting]:
        absent = "this kernel shows no deadline server (Linux 6.12 and newer show it, in debugfs only)"
        absent = without_debugfs(host.root) or absent
        found: list[Setting] = []
        for cpu in host.hot:
            path = f"{_FAIR_SERVER}/cpu{cpu}/runtime"
            current = read_value(host.root, path, absent=absent)
            found.append(Setting(path, current, wanted or current, "number"))
        if not found:
            raise Unavailable(absent)
        return found


class TimerMigration(TradeOff):
    id = "timer-migration"
    title = "Timers move between CPUs"
    why = (
        "With the value 1, another CPU may run a timer that an idle or a tickless CPU has set. With the value 0, each "
        "CPU runs only its own timers. So hot CPUs get no timers from other CPUs, but run all timers that they have "
        "set."
    )
    danger = "with the value 0, idle CPUs wake up more often"
    document = "Documentation/admin-guide/sysctl/kernel.rst"
    file = "/proc/sys/kernel/timer_migration"
    allowed = ("0", "1")
    values = "0 or 1"
    rewritten_by = ("tuned",)
    absent = "this kernel does not move timers (CONFIG_SMP and CONFIG_NO_HZ_COMMON)"
    both_sides = (
        "experts disagree: with the value 1, hot tickless CPUs can lose their timers to other CPUs (OpenShift's "
        "profiles); with the value 0, hot CPUs get no timers from other CPUs (tuned's low-latency profiles); measure "
        "with both values"
    )


class RcuExpedite(Settings):
    id = "rcu-expedite"
    title = "Expedited RCU grace periods"
    why = (
        "An expedited grace period sends an interrupt to every CPU that is not idle, also to hot CPUs. A normal grace "
        "period sends no interrupt: it waits until each CPU has passed a quiet state."
    )
    danger = "'never' makes some operations, such as module loading and network set-up, slower"
    document = "Documentation/RCU/Design/Expedited-Grace-Periods/Expedited-Grace-Periods.rst"
    owns = ("/sys/kernel/rcu_expedited", "/sys/kernel/rcu_normal")
    default = "some"
    values = "some (the kernel chooses which) or never"
    good = "the kernel expedites grace periods only when this is necessary"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        wanted = self.choose(value, ("some", "never"))
        normal, expedited = (read_value(host.root, path) for path in ("/sys/kernel/rcu_normal", self.owns[0]))
        found = [Setting("/sys/kernel/rcu_expedited", expedited, "0", "number")]
        if wanted == "never" or value is not None:
            found.append(Setting("/sys/kernel/rcu_normal", normal, "1" if wanted == "never" else "0", "number"))
        return found


class PreemptMode(TradeOff):
    id = "preempt-mode"
    title = "Preemption of the kernel"
    why = (
        "In the modes 'none' and 'voluntary', a task that runs kernel code gives up its CPU only at certain points. "
        "So a woken thread can wait for milliseconds. In the mode 'full', it waits only until a critical section ends."
    )
    danger = "more task switches, and a little less throughput"
    document = "Documentation/admin-guide/kernel-parameters.txt"
    file = "/sys/kernel/debug/sched/preempt"
    kind = "preempt"
    values = "none, voluntary, full or lazy, as the kernel offers"
    absent = "the mode cannot be switched at run time here: this needs a kernel with CONFIG_PREEMPT_DYNAMIC and debugfs"
    both_sides = (
        "in the mode 'full' a woken thread gets its CPU sooner; a thread that spins never sleeps, so it gains nothing"
    )

    def judge(self, host: Host) -> Assessment:
        hidden = host.root.text(self.file) is None and without_debugfs(host.root)
        if hidden and preemption(host.kernel.version) == "PREEMPT_DYNAMIC":
            chosen = host.command_line.value("preempt")
            told = f"; the kernel was started with preempt={printable(chosen, WORD)}" if chosen else ""
            return self.answer("unavailable", None, f"{hidden}{told}")
        return super().judge(host)

    def sides(self, host: Host, current: str) -> str:
        if host.kernel.realtime:
            return "a real-time kernel can be preempted nearly everywhere already"
        if current == "full":
            return "a woken thread gets its CPU as early as this kernel allows"
        return self.both_sides

    def asked(self, host: Host, value: str) -> str:
        words = (host.root.text(self.file) or "").split()
        return one_of(self, value, [w.strip("()") for w in words])
