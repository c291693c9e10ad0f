"""Define tunables that set one boot parameter each. Boot parameters take effect at the next boot."""

from __future__ import annotations

from jitter_workshop.host.boot.cmdline import CommandLine, parse_isolcpus
from jitter_workshop.host.cpu.topology import CPU_DIR, NOHZ_FULL, last_cpu
from jitter_workshop.host.irq.irq_affinity import read_default_affinity
from jitter_workshop.host.kernel.release import preemption, version_of
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.base import Unavailable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables.boot_parameters import BootParameter
from jitter_workshop.tuning.tunables.single import one_of, whole_number

BY_TICKLESS = "nohz_full also moves the RCU callbacks to other CPUs"
_MANY_CPUS = 8


class IsolCpus(BootParameter):
    id = "isolcpus"
    names = ("isolcpus",)
    title = "CPUs isolated at boot"
    why = (
        "The isolation begins when the kernel starts. The load balancer then puts no task on isolated CPUs. The "
        "kernel puts new managed interrupts on other CPUs."
    )
    danger = "only a reboot undoes the isolation; each thread that should run on these CPUs must be pinned"
    risk = "medium"

    def parameters(self, host: Host, value: str | None) -> str:
        return f"isolcpus=managed_irq,domain,{self.clear_list(host)}"

    def in_effect(self, host: Host) -> tuple[bool, str]:
        left = host.kept_clear - host.isolation.isolated
        value = host.command_line.value("isolcpus")
        asked = None if value is None else parse_isolcpus(value, last_cpu(host.root))
        if host.hot and not left:
            if asked is not None and "managed_irq" not in asked.flags:
                said = "; without the flag managed_irq, managed interrupts may still arrive on these CPUs"
                return True, f"the load balancer leaves the hot CPUs alone{said}"
            return True, "the load balancer leaves the hot CPUs alone"
        if asked is not None and asked.cpus is None:
            return False, "the kernel ignored isolcpus=, because its value is not flags and a list of CPUs"
        are = "is" if len(left) == 1 else "are"
        return False, (
            f"CPU {left} {are} not isolated; the tunable isolation (a cgroup partition) isolates CPUs without a reboot"
        )


class NohzFull(BootParameter):
    id = "nohz-full"
    names = ("nohz_full",)
    title = "Tickless CPUs"
    why = (
        "A timer tick interrupts each busy CPU 100 to 1,000 times a second. In the tick, the kernel counts the "
        "running time of tasks. On a tickless CPU, the tick stops while only one task is ready to run."
    )
    danger = "each system call and interrupt takes longer; the parameter is of little use without isolation"
    risk = "medium"
    document = "Documentation/timers/no_hz.rst"

    def parameters(self, host: Host, value: str | None) -> str:
        if host.root.text(NOHZ_FULL) is None:
            raise Unavailable("this kernel was built without CONFIG_NO_HZ_FULL and ignores nohz_full=")
        return f"nohz_full={self.hot_list(host)}"

    def in_effect(self, host: Host) -> tuple[bool, str]:
        now = host.isolation.nohz_full or CpuSet()
        asked = host.command_line.cpus("nohz_full", last_cpu(host.root))
        if host.hot and not host.hot - now:
            return True, "the tick stops on each hot CPU while that CPU runs only one task"
        if asked is not None and not host.hot - asked:
            return False, "the kernel ignored nohz_full=, at least for these CPUs; the kernel's log gives the reason"
        return False, f"the tick does not stop on CPU {host.hot - now}"


class RcuNocbs(BootParameter):
    id = "rcu-nocbs"
    names = ("rcu_nocbs",)
    title = "RCU callbacks elsewhere"
    why = (
        "When a CPU releases memory, RCU frees this memory in a softirq on the same CPU. With rcu_nocbs, kernel "
        "threads free the memory. These threads may run on other CPUs."
    )
    danger = "slightly more work in total"
    document = "Documentation/admin-guide/kernel-per-CPU-kthreads.rst"

    def parameters(self, host: Host, value: str | None) -> str:
        if host.kernel_config.lacks("RCU_NOCB_CPU"):
            raise Unavailable("this kernel was built without CONFIG_RCU_NOCB_CPU and ignores rcu_nocbs=")
        return f"rcu_nocbs={self.hot_list(host)}"

    def in_effect(self, host: Host) -> tuple[bool, str]:
        tickless = host.isolation.nohz_full or CpuSet()
        away = CpuSet() if host.kernel_config.lacks("RCU_NOCB_CPU") else self._listed(host) | tickless
        if host.hot and not host.hot - away:
            by_tickless = not host.hot - tickless
            return (
                True,
                BY_TICKLESS if by_tickless else "callbacks of the hot CPUs run on other CPUs",
            )
        return False, f"callbacks of CPU {host.hot - away} run on the same CPU, as softirqs"

    def _listed(self, host: Host) -> CpuSet:
        """Return the CPUs that the boot parameter ``rcu_nocbs`` names. If the parameter has no value, return all
        possible CPUs."""
        line, last = host.command_line, last_cpu(host.root)
        if line.has("rcu_nocbs") and line.value("rcu_nocbs") is None and last is not None:
            return CpuSet.of(range(last + 1))
        return line.cpus("rcu_nocbs", last) or CpuSet()


class IrqAffinityAtBoot(BootParameter):
    id = "irqaffinity"
    names = ("irqaffinity",)
    title = "CPUs that take interrupts from boot on"
    why = (
        "With irqaffinity= every interrupt starts on the housekeeping CPUs. This includes interrupts that a driver "
        "requests later."
    )
    danger = "the housekeeping CPUs carry all interrupts"
    document = "Documentation/core-api/irq/irq-affinity.rst"

    def parameters(self, host: Host, value: str | None) -> str:
        return f"irqaffinity={self.housekeeping_list(host)}"

    def in_effect(self, host: Host) -> tuple[bool, str]:
        asked = host.command_line.cpus("irqaffinity", last_cpu(host.root))
        if asked is not None and not asked & host.kept_clear:
            return True, "new interrupts start on housekeeping CPUs"
        allowed = read_default_affinity(host.root)
        if allowed is not None and not allowed & host.kept_clear:
            return True, "new interrupts start on housekeeping CPUs (set after the boot)"
        return False, (
            f"new interrupts may start on {host.clear_words}; the tunable irq-affinity moves interrupts at run time"
        )


class SkewTick(BootParameter):
    id = "skew-tick"
    names = ("skew_tick",)
    title = "Ticks at different instants"
    why = (
        "All CPUs have their timer tick at the same instant and then wait for the same locks. With skew_tick=1 the "
        "ticks come at different instants."
    )
    danger = "idle CPUs of one package wake up at different instants, which takes slightly more power"

    def parameters(self, host: Host, value: str | None) -> str:
        if value is None and len(host.online) < _MANY_CPUS:
            raise Unavailable(f"with {len(host.online)} CPUs, ticks seldom come at the same instant", info=True)
        return "skew_tick=1"

    def in_effect(self, host: Host) -> tuple[bool, str]:
        if host.command_line.value("skew_tick") == "1":
            return True, "the CPUs tick at different instants"
        return False, f"all {len(host.online)} CPUs tick at the same instant"


class MaxCstate(BootParameter):
    id = "max-cstate"
    names = ("processor.max_cstate", "intel_idle.max_cstate")
    title = "Deepest idle state from boot on"
    why = (
        "With this limit the idle driver offers no deeper state on any CPU. So no CPU needs the long time to wake up "
        "from a deep state."
    )
    danger = "more power and heat on all CPUs, and so less turbo"
    risk = "medium"
    contested = True
    x86_only = True
    values = "0 to 9"
    document = "Documentation/admin-guide/pm/intel_idle.rst"

    def parameters(self, host: Host, value: str | None) -> str:
        if value is None:
            raise Unavailable(
                "this tool sets this limit only if the command contains max-cstate=1; the tunable idle-states sets a "
                "limit at run time",
                info=True,
            )
        if host.guest:
            raise Unavailable("a guest does not choose the idle states of its CPUs", only_host=True)
        state = whole_number(self, value, 0, 9)
        return f"processor.max_cstate={state} intel_idle.max_cstate={state}"

    def in_effect(self, host: Host) -> tuple[bool, str]:
        if self.given(host.command_line) is not None:
            return True, "the deepest state is limited at boot"
        return False, "not limited at boot; the tunable idle-states limits only the hot CPUs, at run time"


class NoSmt(BootParameter):
    id = "nosmt"
    word = "nosmt"
    effect = "each core runs one thread"
    no_effect = "cores run two threads; at run time, the tunable smt takes only the siblings of hot CPUs offline"
    title = "One thread a core from boot on"
    why = "Two threads of one core share its execution units and caches. So work on the sibling slows a hot CPU down."
    danger = "half of the CPUs are gone"
    risk = "medium"
    contested = True
    document = "Documentation/admin-guide/hw-vuln/l1tf.rst"

    def in_effect(self, host: Host) -> tuple[bool, str]:
        good, said = super().in_effect(host)
        if not good and not host.root.integer(f"{CPU_DIR}/smt/active"):
            return True, "no core runs two threads"
        return good, said


class IdlePoll(BootParameter):
    id = "idle-poll"
    word = "idle=poll"
    effect = "no CPU ever halts"
    no_effect = "idle CPUs halt; the tunables idle-states and pm-qos-fd can make them poll, too"
    title = "Idle CPUs that poll"
    why = "With idle=poll no CPU ever halts, so no CPU needs time to wake up."
    danger = "always full power, less turbo; a polling CPU leaves only half of the core to its sibling"
    risk = "high"
    contested = True
    x86_only = True
    document = "Documentation/admin-guide/pm/cpuidle.rst"


class TscReliable(BootParameter):
    id = "tsc-reliable"
    names = ("tsc",)
    title = "No watchdog on the time stamp counter"
    why = (
        "Until the kernel trusts the TSC, it checks the TSC with a slower clock every half a second. These checks "
        "interrupt one CPU after the other, also hot CPUs."
    )
    danger = "the kernel does not notice if the CPUs' counters drift apart and the time jumps"
    risk = "medium"
    contested = True
    x86_only = True
    default = "reliable"
    values = "reliable or nowatchdog"

    def parameters(self, host: Host, value: str | None) -> str:
        if not host.identity.flags:
            raise Unavailable("this processor has no TSC")
        return f"tsc={one_of(self, value, ('reliable', 'nowatchdog'))}"

    def in_effect(self, host: Host) -> tuple[bool, str]:
        if host.command_line.value("tsc") in ("reliable", "nowatchdog"):
            return True, "the kernel does not compare the TSC with another clock"
        return False, (
            "on machines with few sockets, newer kernels trust the TSC without this parameter; dmesg shows if this "
            "kernel trusts the TSC"
        )


class NoWatchdog(BootParameter):
    id = "nowatchdog"
    word = "nowatchdog"
    effect = "the detectors never started"
    no_effect = "the detectors start at boot; the tunable watchdogs stops them on the hot CPUs"
    title = "No lockup detectors from boot on"
    why = (
        "With nowatchdog the lockup detectors start on no CPU. The tunable watchdogs stops the detectors only on the "
        "hot CPUs."
    )
    danger = "a hang is no longer noticed anywhere"
    risk = "medium"
    contested = True
    document = "Documentation/admin-guide/lockup-watchdogs.rst"


class PreemptAtBoot(BootParameter):
    id = "preempt"
    names = ("preempt",)
    title = "Preemption of the kernel from boot on"
    why = "preempt= chooses how soon a woken thread can run if its CPU is executing kernel code for another task."
    danger = "more task switches, and a little less throughput"
    contested = True
    values = "none, voluntary, full or lazy"
    default = "full"

    def parameters(self, host: Host, value: str | None) -> str:
        if host.kernel.realtime:
            raise Unavailable("a real-time kernel can be preempted nearly everywhere already")
        if preemption(host.kernel.version) not in ("PREEMPT_DYNAMIC", None):
            raise Unavailable(
                "the preemption mode of this kernel was fixed when the kernel was built (no CONFIG_PREEMPT_DYNAMIC)"
            )
        mode = one_of(self, value, ("none", "voluntary", "full", "lazy"))
        # kernel/sched/core.c, sched_dynamic_mode: where lazy preemption exists, 7.0 takes full and lazy alone.
        lazy = host.kernel_config.value("ARCH_HAS_PREEMPT_LAZY") == "y"
        if mode in ("none", "voluntary") and lazy and version_of(host.kernel.release) >= (7, 0):
            raise Unavailable(f"this kernel no longer has preempt={mode}: since Linux 7.0 it has only full and lazy")
        return f"preempt={mode}"

    def in_effect(self, host: Host) -> tuple[bool, str]:
        chosen = host.command_line.value("preempt")
        if host.kernel.realtime:
            return True, "a real-time kernel can be preempted nearly everywhere"
        if chosen == "full":
            return True, "the kernel can be preempted outside its critical sections"
        return False, (
            "with preempt=full, a woken thread gets its CPU sooner; a thread that spins never sleeps, so it gains "
            "nothing"
        )


class RcuNocbPoll(BootParameter):
    id = "rcu-nocb-poll"
    word = "rcu_nocb_poll"
    effect = "a hot CPU need not wake the thread that runs its RCU callbacks"
    no_effect = "useful only with rcu_nocbs or nohz_full, and even then it saves only a few microseconds"
    title = "RCU callback threads that poll"
    why = (
        "With rcu_nocbs, a thread on another CPU runs the callbacks of a hot CPU. To wake this thread, the hot CPU "
        "interrupts the other CPU. With polling, these threads look for work by themselves, and the hot CPU sends no "
        "interrupt."
    )
    danger = "the threads wake up periodically on housekeeping CPUs"
    contested = True
    document = "Documentation/admin-guide/kernel-per-CPU-kthreads.rst"


class MceIgnoreCe(BootParameter):
    id = "mce-ignore-ce"
    word = "mce=ignore_ce"
    effect = "corrected errors are ignored"
    no_effect = "with the tunable mce-interval the kernel polls for errors less often and still reports them"
    title = "Corrected hardware errors ignored"
    untaught = (
        "The chapter Workqueues names the tunable mce-interval instead. With this tunable the kernel polls less often "
        "and hides no error."
    )
    why = "With mce=ignore_ce the kernel neither polls for corrected errors nor takes interrupts for them."
    danger = "the errors of a failing memory module stay hidden until the module stops working"
    risk = "high"
    contested = True
    x86_only = True
    document = "Documentation/arch/x86/x86_64/boot-options.rst"

    def has_word(self, line: CommandLine) -> bool:
        return "ignore_ce" in line.values("mce")  # each mce= adds to those before it


class IommuPassThrough(BootParameter):
    id = "iommu-pt"
    word = "iommu=pt"
    effect = "the host's own devices use memory without translation"
    no_effect = "the gain is small: measure before and after"
    title = "IOMMU passes the host's devices through"
    why = (
        "With iommu=pt the host's own devices need no mapping for a transfer. A device that is assigned to a guest "
        "can still reach only that guest's memory."
    )
    danger = "a faulty device of the host can reach all memory"
    risk = "medium"
    contested = True
    x86_only = True
