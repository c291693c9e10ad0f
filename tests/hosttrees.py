"""Made host trees for tests: each function writes the files that such a machine shows below a folder and returns it.

They stand for machines that a test runner is not: figures are invented, formats are the kernel's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

CPU = "sys/devices/system/cpu"
BOOT_ID = "0f5c1a52-3d77-4f0e-9a9e-6d2f2f7f1c11"
X86_FLAGS = "fpu vme tsc msr cx8 sse2 constant_tsc nonstop_tsc rdtscp"


def write(root: Path, files: dict[str, str]) -> Path:
    """Write ``files`` (path → text) below ``root``."""
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return root


def ranges(cpus: Iterable[int]) -> str:
    """A kernel CPU list of single numbers."""
    return ",".join(map(str, sorted(cpus)))


def kernel(
    name: str, *, release: str = "6.12.9", version: str = "#1 SMP PREEMPT_DYNAMIC", arch: str = "x86_64"
) -> dict[str, str]:
    return {
        "proc/sys/kernel/hostname": f"{name}\n",
        "proc/sys/kernel/osrelease": f"{release}\n",
        "proc/sys/kernel/version": f"{version}\n",
        "proc/sys/kernel/arch": f"{arch}\n",
        "proc/sys/kernel/random/boot_id": f"{BOOT_ID}\n",
        "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet\n",
    }


def cpuinfo(count: int, model: str, flags: str = X86_FLAGS) -> str:
    return "".join(
        f"processor\t: {n}\nvendor_id\t: x\nmodel name\t: {model}\nflags\t\t: {flags}\nbogomips\t: 5000.0\n\n"
        for n in range(count)
    )


def cpu_files(
    number: int,
    *,
    package: int = 0,
    core: int | None = None,
    siblings: Iterable[int] = (),
    package_cpus: Iterable[int] = (),
    caches: Iterable[tuple[int, str, str, str]] = (),
    online: bool | None = None,
) -> dict[str, str]:
    """One CPU. ``caches``: (level, type, size, shared list). An offline CPU keeps only its ``online`` file."""
    folder = f"{CPU}/cpu{number}"
    files: dict[str, str] = {}
    if online is not None:
        files[f"{folder}/online"] = f"{int(online)}\n"
    if online is False:
        return files
    threads = ranges(siblings) or str(number)
    files |= {
        f"{folder}/topology/physical_package_id": f"{package}\n",
        f"{folder}/topology/core_id": f"{number if core is None else core}\n",
        f"{folder}/topology/core_cpus_list": f"{threads}\n",
        f"{folder}/topology/thread_siblings_list": f"{threads}\n",
        f"{folder}/topology/core_siblings_list": f"{ranges(package_cpus) or number}\n",
    }
    for index, (level, kind, size, shared) in enumerate(caches):
        files |= {
            f"{folder}/cache/index{index}/level": f"{level}\n",
            f"{folder}/cache/index{index}/type": f"{kind}\n",
            f"{folder}/cache/index{index}/size": f"{size}\n",
            f"{folder}/cache/index{index}/shared_cpu_list": f"{shared}\n",
        }
    return files


def cpu_lists(online: str, *, possible: str | None = None, offline: str = "", isolated: str = "") -> dict[str, str]:
    return {
        f"{CPU}/online": f"{online}\n",
        f"{CPU}/possible": f"{possible or online}\n",
        f"{CPU}/present": f"{possible or online}\n",
        f"{CPU}/offline": f"{offline}\n",
        f"{CPU}/isolated": f"{isolated}\n",
    }


def stat(cpus: Iterable[int], *, steal: int = 0) -> str:
    """/proc/stat with the same times on each CPU: 1,000 busy of 10,000 ticks."""
    numbers = list(cpus)
    total = " ".join(str(n * len(numbers)) for n in (600, 0, 400, 9_000 - steal, 0, 0, 0, steal, 0, 0))
    rows = "".join(f"cpu{n} 600 0 400 {9_000 - steal} 0 0 0 {steal} 0 0\n" for n in numbers)
    return f"cpu  {total}\n{rows}intr 12345 0 1\nctxt 987654\nbtime 1700000000\nprocesses 4321\n"


def interrupts(cpus: Iterable[int], rows: dict[str, tuple[Iterable[int], str]]) -> str:
    """/proc/interrupts: ``rows`` maps key to (count per CPU, description)."""
    header = " " * 11 + "".join(f"CPU{n}".ljust(11) for n in cpus)
    body = [
        f"{key:>4}:" + "".join(f" {count:10d}" for count in counts) + f"  {text}"
        for key, (counts, text) in rows.items()
    ]
    return "\n".join([header, *body, " ERR:          0", " MIS:          0", ""])


def softirqs(cpus: Iterable[int]) -> str:
    numbers = list(cpus)
    header = " " * 20 + "".join(f"CPU{n}".ljust(11) for n in numbers)
    names = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")
    return "\n".join([header, *(f"{name:>12}:" + "".join(f" {n + 1:10d}" for n in numbers) for name in names), ""])


def cgroup2(path: str = "/", files: dict[str, str] | None = None) -> dict[str, str]:
    """A unified hierarchy at /sys/fs/cgroup with this process in ``path``; ``files`` are relative to the mount."""
    mount = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
    inside = {f"sys/fs/cgroup/{name}": text for name, text in (files or {}).items()}
    return {
        "proc/self/cgroup": f"0::{path}\n",
        "proc/self/mountinfo": f"22 27 0:21 / /proc rw - proc proc rw\n{mount}",
        **inside,
    }


def clock(current: str = "tsc", available: str = "tsc hpet acpi_pm") -> dict[str, str]:
    folder = "sys/devices/system/clocksource/clocksource0"
    return {f"{folder}/current_clocksource": f"{current}\n", f"{folder}/available_clocksource": f"{available} \n"}


def policy(
    number: int, *, cpus: str, driver: str, governor: str, low_khz: int, high_khz: int, **more: str
) -> dict[str, str]:
    folder = f"{CPU}/cpufreq/policy{number}"
    return {
        f"{folder}/affected_cpus": f"{cpus}\n",
        f"{folder}/related_cpus": f"{cpus}\n",
        f"{folder}/scaling_driver": f"{driver}\n",
        f"{folder}/scaling_governor": f"{governor}\n",
        f"{folder}/scaling_available_governors": "performance powersave \n",
        f"{folder}/scaling_min_freq": f"{low_khz}\n",
        f"{folder}/scaling_max_freq": f"{high_khz}\n",
        f"{folder}/cpuinfo_min_freq": f"{low_khz}\n",
        f"{folder}/cpuinfo_max_freq": f"{high_khz}\n",
        f"{folder}/scaling_cur_freq": f"{(low_khz + high_khz) // 2}\n",
        **{f"{folder}/{name}": f"{text}\n" for name, text in more.items()},
    }


def idle_states(number: int, *states: tuple[str, int], disabled: Iterable[int] = ()) -> dict[str, str]:
    """One CPU's idle states as (name, µs to leave it), shallowest first."""
    files = {}
    for index, (name, latency_us) in enumerate(states):
        folder = f"{CPU}/cpu{number}/cpuidle/state{index}"
        files |= {
            f"{folder}/name": f"{name}\n",
            f"{folder}/desc": f"{name}\n",
            f"{folder}/latency": f"{latency_us}\n",
            f"{folder}/residency": f"{3 * latency_us}\n",
            f"{folder}/disable": f"{int(index in disabled)}\n",
        }
    return files


def task(
    tid: int,
    name: str,
    *,
    pid: int | None = None,
    flags: int = 0,
    allowed: str = "0",
    start: int = 100,
    cpu: int = 0,
    policy: int = 0,
    priority: int = 0,
    threads: int = 1,
    state: str = "S",
    uid: int | None = None,
) -> dict[str, str]:
    """One task's ``stat`` and ``status``; a thread of process ``pid`` where that is given. Without ``uid``, ``status``
    has no line of the owner."""
    folder = f"proc/{tid}" if pid is None else f"proc/{pid}/task/{tid}"
    fields: dict[int, int | str] = dict.fromkeys(range(3, 53), 0)
    owner = "" if uid is None else f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n"
    fields |= {3: state, 8: -1, 9: flags, 20: threads, 22: start, 39: cpu, 40: priority, 41: policy}
    return {
        f"{folder}/stat": f"{tid} ({name}) {' '.join(map(str, fields.values()))}\n",
        f"{folder}/status": f"Name:\tx\nState:\tS (sleeping)\n{owner}"
        f"Cpus_allowed:\tff\nCpus_allowed_list:\t{allowed}\n",
    }


def irq(number: int, affinity: str, effective: str | None = None) -> dict[str, str]:
    """One interrupt's folder; without ``effective`` it is a kernel that does not show it."""
    files = {f"proc/irq/{number}/smp_affinity_list": f"{affinity}\n"}
    if effective is not None:
        files[f"proc/irq/{number}/effective_affinity_list"] = f"{effective}\n"
    return files


def network_card(
    name: str, *, driver: str = "ice", node: int = 0, rps: Iterable[str] = ("00",), xps: Iterable[str] = ("00",)
) -> dict[str, str]:
    """A card with one receive queue for each mask in ``rps`` and one transmit queue for each in ``xps``."""
    folder = f"sys/class/net/{name}"
    files = {
        f"{folder}/address": "52:54:00:12:34:56\n",
        f"{folder}/operstate": "up\n",
        f"{folder}/napi_defer_hard_irqs": "0\n",
        f"{folder}/gro_flush_timeout": "0\n",
        f"{folder}/threaded": "0\n",
        f"{folder}/device/uevent": f"DRIVER={driver}\nPCI_SLOT_NAME=0000:3b:00.0\n",
        f"{folder}/device/numa_node": f"{node}\n",
    }
    for n, mask in enumerate(rps):
        files[f"{folder}/queues/rx-{n}/rps_cpus"] = f"{mask}\n"
    for n, mask in enumerate(xps):
        files[f"{folder}/queues/tx-{n}/xps_cpus"] = f"{mask}\n"
    return files


def guest(root: Path) -> Path:
    """A KVM guest with 2 CPUs: no cpufreq, no sensor, steal counted, cgroup version 1 beside version 2."""
    files = (
        kernel("lab-vm")
        | clock("tsc", "tsc kvm-clock")
        | cpu_lists("0-1")
        | {
            "proc/cpuinfo": cpuinfo(2, "AMD EPYC", f"{X86_FLAGS} hypervisor"),
            "proc/stat": stat([0, 1], steal=36),
            "proc/interrupts": interrupts(
                [0, 1],
                {
                    "26": ((0, 14), "IO-APIC   4-edge      ttyS0"),
                    "36": ((0, 63406), "PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0"),
                    "LOC": ((22010, 21615), "Local timer interrupts"),
                    "RES": ((7928, 5918), "Rescheduling interrupts"),
                },
            ),
            "proc/softirqs": softirqs([0, 1]),
            "proc/self/cgroup": "3:cpuset:/\n1:cpu,cpuacct:/jobs\n0::/\n",
            "proc/self/mountinfo": (
                "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
                "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
            ),
            "sys/fs/cgroup/cpu/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
            "sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu/jobs/cpu.stat": "nr_periods 20\nnr_throttled 7\nthrottled_time 9000000\n",
            "sys/fs/cgroup/cpuset/cpuset.cpus": "0-1\n",
            f"{CPU}/cpuidle/current_driver": "haltpoll\n",
            f"{CPU}/cpuidle/current_governor": "haltpoll\n",
            "sys/devices/system/node/node0/cpulist": "0-1\n",
        }
    )
    for n in (0, 1):
        files |= cpu_files(n, package_cpus=(0, 1), caches=[(1, "Data", "32K", str(n)), (3, "Unified", "32768K", "0-1")])
        files[f"{CPU}/cpu{n}/cpuidle/state0/name"] = "POLL\n"
        files[f"{CPU}/cpu{n}/cpuidle/state0/latency"] = "0\n"
        files[f"{CPU}/cpu{n}/cpu_capacity"] = "1024\n"
    return write(root, files)


def server64(root: Path) -> Path:
    """A bare-metal server: 2 packages with 16 cores and 32 threads each (siblings n and n + 32), one node a package,
    intel_pstate, coretemp, counters of throttling, cgroup version 2 with a limit, CPUs 30-31 and 62-63 isolated."""
    files = kernel("server64") | clock() | cpu_lists("0-63", isolated="30-31,62-63")
    files |= {
        "proc/cpuinfo": cpuinfo(64, "Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz"),
        "proc/stat": stat(range(64)),
        "proc/interrupts": interrupts(range(64), {"LOC": (range(64), "Local timer interrupts")}),
        "proc/softirqs": softirqs(range(64)),
        f"{CPU}/nohz_full": "(null)\n",
        f"{CPU}/intel_pstate/no_turbo": "0\n",
        f"{CPU}/cpuidle/current_driver": "intel_idle\n",
        f"{CPU}/cpuidle/current_governor": "menu\n",
        "sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
        "sys/class/dmi/id/product_name": "PowerEdge R640\n",
    }
    files |= cgroup2(
        "/lab/me",
        {
            "cpuset.cpus.isolated": "\n",
            "lab/cpu.max": "max 100000\n",
            "lab/cpu.stat": "usage_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
            "lab/me/cpu.max": "400000 100000\n",
            "lab/me/cpu.stat": "usage_usec 5\nnr_periods 90\nnr_throttled 3\nthrottled_usec 1234\n",
            "lab/cpuset.cpus.effective": "0-15,32-47\n",
        },
    )
    for package in (0, 1):
        mine = [*range(16 * package, 16 * package + 16), *range(32 + 16 * package, 48 + 16 * package)]
        shared = f"{mine[0]}-{mine[15]},{mine[16]}-{mine[31]}"
        files[f"sys/devices/system/node/node{package}/cpulist"] = f"{shared}\n"
        files[f"sys/class/thermal/thermal_zone{package}/type"] = "x86_pkg_temp\n"
        files[f"sys/class/thermal/thermal_zone{package}/temp"] = f"{50_000 + 4_000 * package}\n"
        files[f"sys/class/hwmon/hwmon{package}/name"] = "coretemp\n"
        files[f"sys/class/hwmon/hwmon{package}/temp1_label"] = f"Package id {package}\n"
        files[f"sys/class/hwmon/hwmon{package}/temp1_input"] = f"{51_000 + package}\n"
        for n in mine:
            core = n % 16
            pair = sorted((16 * package + core, 32 + 16 * package + core))
            both = ranges(pair)
            caches = [
                (1, "Data", "32K", both),
                (1, "Instruction", "32K", both),
                (2, "Unified", "1024K", both),
                (3, "Unified", "22528K", shared),
            ]
            files |= cpu_files(
                n, package=package, core=core, siblings=pair, package_cpus=mine, caches=caches, online=n != 0 or None
            )
            files |= policy(
                n,
                cpus=str(n),
                driver="intel_pstate",
                governor="powersave",
                low_khz=1_000_000,
                high_khz=3_700_000,
                energy_performance_preference="balance_performance",
                energy_performance_available_preferences="default performance balance_performance power",
            )
            files[f"{CPU}/cpu{n}/thermal_throttle/core_throttle_count"] = f"{2 if core == 3 else 0}\n"
            files[f"{CPU}/cpu{n}/thermal_throttle/package_throttle_count"] = "5\n"
    files["sys/class/hwmon/hwmon2/name"] = "nvme\n"
    files["sys/class/hwmon/hwmon2/temp1_input"] = "71850\n"
    return write(root, files)


def hybrid_laptop(root: Path) -> Path:
    """A laptop on battery: CPUs 0-7 are 4 performance cores with 2 threads each, 8-15 efficiency cores."""
    files = kernel("laptop", version="#1 SMP PREEMPT_RT") | clock() | cpu_lists("0-15")
    files |= {
        "proc/cpuinfo": cpuinfo(16, "12th Gen Intel(R) Core(TM) i7-1260P"),
        "proc/stat": stat(range(16)),
        "sys/devices/cpu_core/cpus": "0-7\n",
        "sys/devices/cpu_atom/cpus": "8-15\n",
        "sys/kernel/realtime": "1\n",
        "sys/class/power_supply/AC/type": "Mains\n",
        "sys/class/power_supply/AC/online": "0\n",
        "sys/class/power_supply/BAT0/type": "Battery\n",
        "sys/class/power_supply/BAT0/status": "Discharging\n",
        "sys/class/power_supply/mouse/type": "Battery\n",
        "sys/class/power_supply/mouse/scope": "Device\n",
        "sys/class/power_supply/mouse/status": "Charging\n",
    }
    for n in range(16):
        pair = (n & ~1, n | 1) if n < 8 else (n,)
        files |= cpu_files(n, core=4 * (n // 2) if n < 8 else 8 + n, siblings=pair, package_cpus=range(16))
        files |= policy(
            n,
            cpus=str(n),
            driver="intel_pstate",
            governor="performance" if n < 8 else "powersave",
            low_khz=400_000,
            high_khz=4_700_000 if n < 8 else 3_400_000,
        )
    return write(root, files)


def small(root: Path, count: int) -> Path:
    """A bare-metal box with ``count`` cores, one thread each, and little else to see."""
    files = kernel(f"box{count}") | clock() | cpu_lists("0" if count == 1 else f"0-{count - 1}")
    files |= {"proc/cpuinfo": cpuinfo(count, "Intel(R) Celeron(R) J1900"), "proc/stat": stat(range(count))}
    for n in range(count):
        files |= cpu_files(n, package_cpus=range(count))
    return write(root, files)


def offline(root: Path) -> Path:
    """Eight CPUs of which 2, 5 and 7 are offline: they have no column in /proc/interrupts, no line in /proc/stat."""
    online = [0, 1, 3, 4, 6]
    files = kernel("holes") | clock() | cpu_lists("0-1,3-4,6", possible="0-7", offline="2,5,7")
    files |= {
        "proc/cpuinfo": cpuinfo(5, "AMD Ryzen 7 5800X 8-Core Processor"),
        "proc/stat": stat(online),
        "proc/interrupts": interrupts(online, {"LOC": ([100 + n for n in online], "Local timer interrupts")}),
        "proc/softirqs": softirqs(range(8)),
    }
    for n in range(8):
        files |= cpu_files(n, siblings=[c for c in (n & ~1, n | 1) if c in online], online=n in online)
    return write(root, files)


def arm_server(root: Path) -> Path:
    """A bare arm64 board with two clusters of unlike capacity and a device tree."""
    files = kernel("board", arch="aarch64") | cpu_lists("0-7") | clock("arch_sys_counter", "arch_sys_counter")
    files["proc/cpuinfo"] = "".join(
        f"processor\t: {n}\nBogoMIPS\t: 48.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0b\n\n"
        for n in range(8)
    )
    files["proc/device-tree/model"] = "Example Board Rev 2\0"
    files["proc/stat"] = stat(range(8))
    for n in range(8):
        files |= cpu_files(n, package_cpus=range(8))
        files[f"{CPU}/cpu{n}/cpu_capacity"] = "446\n" if n < 4 else ("1024\n" if n == 7 else "871\n")
    return write(root, files)


def arm_guest(root: Path) -> Path:
    """An arm64 guest of QEMU's with 4 CPUs and a device tree, of which nothing tells whether QEMU emulates them."""
    files = kernel("virt", arch="aarch64") | cpu_lists("0-3") | clock("arch_sys_counter", "arch_sys_counter")
    files["proc/cpuinfo"] = "".join(
        f"processor\t: {n}\nBogoMIPS\t: 125.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd07\n\n"
        for n in range(4)
    )
    files |= {
        "proc/device-tree/model": "linux,dummy-virt\0",
        "proc/device-tree/compatible": "linux,dummy-virt\0",
        "proc/device-tree/psci/method": "hvc\0",
        "proc/stat": stat(range(4)),
    }
    for n in range(4):
        files |= cpu_files(n, package_cpus=range(4))
    return write(root, files)


def emulated(root: Path) -> Path:
    """A practice machine of QEMU's without KVM: 4 CPUs in two cores, which says itself that it is emulated."""
    files = kernel("practice") | cpu_lists("0-3") | clock("tsc", "tsc hpet acpi_pm")
    files |= {
        "proc/cpuinfo": cpuinfo(4, "Intel Core Processor (Skylake)", "fpu tsc hypervisor constant_tsc"),
        "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet practice.accelerator=tcg\n",
        "sys/class/dmi/id/sys_vendor": "QEMU\n",
        "sys/class/dmi/id/product_name": "Standard PC (Q35 + ICH9, 2009)\n",
        "proc/stat": stat(range(4)),
    }
    for n in range(4):
        files |= cpu_files(n, siblings=(n & ~1, n | 1))
    return write(root, files)


EVERY: dict[str, Callable[[Path], Path]] = {
    "guest": guest,
    "server64": server64,
    "hybrid_laptop": hybrid_laptop,
    "small1": lambda root: small(root, 1),
    "small3": lambda root: small(root, 3),
    "offline": offline,
    "arm_server": arm_server,
    "arm_guest": arm_guest,
    "emulated": emulated,
}


DAMAGES = ("empty", "truncated", "binary", "gigantic", "fifo", "folder", "loop")
"""The things that may stand in the place of a file (see ``damage``)."""


def damage(path: Path, kind: str) -> None:
    """Put something unreadable at ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "gigantic":
        with path.open("wb") as file:
            file.truncate(1 << 40)
    else:
        path.write_bytes({"empty": b"", "truncated": b"-", "binary": bytes(range(255, -1, -1))}[kind])


def big(root: Path, cpus: int = 512, irqs: int = 2_000, nodes: int = 8) -> Path:
    """A two-package server with SMT (siblings n and n + cpus/2), ``nodes`` nodes, a policy and three idle states a CPU,
    and ``irqs`` interrupts of one network card a node: about 30 files a CPU and 4 an interrupt. CPU 3, 7, … of the last
    two nodes are isolated. Meant for a tmpfs: 512 CPUs and 2,000 interrupts are some 24,000 files."""
    half = cpus // 2
    everyone = f"0-{cpus - 1}"
    isolated = ranges(range(half - 2 * half // nodes + 3, half, 4))
    files = (
        kernel("big") | clock() | cpu_lists(everyone, isolated=isolated) | cgroup2("/", {"cpuset.cpus.isolated": "\n"})
    )
    files |= {
        "proc/cpuinfo": cpuinfo(cpus, "AMD EPYC 9755 128-Core Processor"),
        "proc/stat": stat(range(cpus)),
        "proc/softirqs": softirqs(range(cpus)),
        "proc/interrupts": interrupts(
            range(cpus),
            {
                str(n): ([n % 7] * cpus, f"IR-PCI-MSIX-0000:01:00.0  {n}-edge  nic{n % nodes}-TxRx-{n}")
                for n in range(irqs)
            },
        ),
        f"{CPU}/nohz_full": f"{isolated}\n",
        f"{CPU}/cpuidle/current_driver": "acpi_idle\n",
        f"{CPU}/cpuidle/current_governor": "menu\n",
        f"{CPU}/cpufreq/boost": "1\n",
        f"{CPU}/smt/control": "on\n",
        f"{CPU}/smt/active": "1\n",
        "proc/irq/default_smp_affinity": ",".join(["ffffffff"] * max(1, cpus // 32)) + "\n",
    }
    for package in (0, 1):
        first, last = package * half // 2, (package + 1) * half // 2
        mine = f"{first}-{last - 1},{first + half}-{last + half - 1}"
        for core in range(first, last):
            pair = f"{core},{core + half}"
            group = core // 8 * 8
            caches = [(1, "Data", "48K", pair), (1, "Instruction", "32K", pair), (2, "Unified", "1024K", pair)]
            caches.append((3, "Unified", "32768K", f"{group}-{group + 7},{group + half}-{group + half + 7}"))
            for cpu in (core, core + half):
                files |= cpu_files(
                    cpu, package=package, core=core, siblings=(core, core + half), caches=caches, online=True
                )
                files[f"{CPU}/cpu{cpu}/topology/package_cpus_list"] = f"{mine}\n"
                files |= policy(
                    cpu,
                    cpus=str(cpu),
                    driver="acpi-cpufreq",
                    governor="schedutil",
                    low_khz=1_500_000,
                    high_khz=2_700_000,
                )
                for state, name in enumerate(("POLL", "C1", "C2")):
                    files[f"{CPU}/cpu{cpu}/cpuidle/state{state}/name"] = f"{name}\n"
                    files[f"{CPU}/cpu{cpu}/cpuidle/state{state}/latency"] = f"{state * 50}\n"
                    files[f"{CPU}/cpu{cpu}/cpuidle/state{state}/disable"] = "0\n"
                files[f"{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us"] = "0\n"
    for node in range(nodes):
        low, high = node * half // nodes, (node + 1) * half // nodes
        files[f"sys/devices/system/node/node{node}/cpulist"] = f"{low}-{high - 1},{low + half}-{high + half - 1}\n"
    for irq in range(irqs):
        files |= {
            f"proc/irq/{irq}/smp_affinity_list": f"{everyone}\n",
            f"proc/irq/{irq}/effective_affinity_list": f"{irq % cpus}\n",
            f"proc/irq/{irq}/node": f"{irq % nodes}\n",
            f"sys/kernel/irq/{irq}/actions": f"nic{irq % nodes}-TxRx-{irq}\n",
        }
    return write_quickly(root, files)


def write_quickly(root: Path, files: dict[str, str]) -> Path:
    """``write`` for thousands of files: each folder is made once."""
    made: set[str] = set()
    for path, text in files.items():
        folder = f"{root}/{path.rpartition('/')[0]}"
        if folder not in made:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - this is the quick one
            made.add(folder)
        file = os.open(f"{root}/{path}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)
    return root
