"""The lab machine itself: it shows what it promises, and a test can count on it."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.practice.qemu import MachineError, MachineTimeout, PowerLost
from tests.lab.machine import PROJECT, Machine

pytestmark = pytest.mark.lab

CPU = "/sys/devices/system/cpu"
Factory = Callable[..., Machine]


def until(path: str, wanted: list[str], seconds: float) -> str:
    """(In the guest) the file's content once it is one of the wanted, or what it last was."""
    import time

    ends = time.monotonic() + seconds
    while True:
        with open(path) as file:
            text = file.read().strip()
        if text in wanted or time.monotonic() > ends:
            return text
        time.sleep(0.05)


def interrupts(name: str) -> tuple[int, list[int]]:
    """(In the guest) number and counts per CPU of the interrupt whose line ends with this name."""
    with open("/proc/interrupts") as file:
        cpus = len(file.readline().split())
        for line in file:
            fields = line.split()
            if fields[-1] == name:
                return int(fields[0].rstrip(":")), [int(field) for field in fields[1 : cpus + 1]]
    raise LookupError(name)


def ticks_while_busy(cpu: int) -> int:
    """(In the guest) local timer interrupts of a CPU during a second in which a pinned thread keeps it busy."""
    import os
    import time

    def count() -> int:
        with open("/proc/interrupts") as file:
            return next(int(line.split()[cpu + 1]) for line in file if line.split()[0] == "LOC:")

    os.sched_setaffinity(0, {cpu})
    settle = time.monotonic() + 0.5
    while time.monotonic() < settle:
        pass
    before = count()
    ends = time.monotonic() + 1
    while time.monotonic() < ends:
        pass
    return count() - before


def test_governors_reach_the_register(lab: Machine) -> None:
    policy = f"{CPU}/cpu1/cpufreq"
    governors = lab.read(f"{policy}/scaling_available_governors").split()
    assert set(governors) == {"performance", "powersave", "schedutil", "ondemand", "conservative", "userspace"}
    before = lab.read(f"{policy}/scaling_governor")
    with lab.unchanged():
        for governor, register, khz in (("performance", "0x00", "3000000"), ("powersave", "0x03", "1200000")):
            lab.write(f"{policy}/scaling_governor", governor)
            # The emulated chip's register of CPU 1, as seen from outside.
            assert register in lab.monitor("i /b 0xe1")
            assert lab.read(f"{policy}/scaling_cur_freq") == khz
        lab.write(f"{policy}/scaling_governor", before)


def test_unchanged_notices_a_governor(lab: Machine) -> None:
    governor = f"{CPU}/cpu2/cpufreq/scaling_governor"
    before = lab.read(governor)
    with pytest.raises(AssertionError, match=r"policy2/scaling_governor: .* -> 'ondemand'"), lab.unchanged():
        lab.write(governor, "ondemand")
    lab.write(governor, before)


def test_idle_states(lab: Machine) -> None:
    states = [lab.read(f"{CPU}/cpu0/cpuidle/state{n}/name") for n in range(4)]
    assert states == ["POLL", "C1", "C2", "C3"]
    disable = f"{CPU}/cpu3/cpuidle/state3/disable"
    with lab.unchanged():
        lab.write(disable, "1")
        assert lab.read(disable) == "1"
        lab.write(disable, "0")


def test_heat_throttles(lab: Machine) -> None:
    limit = f"{CPU}/cpu0/cpufreq/bios_limit"
    assert lab.read("/sys/class/thermal/thermal_zone0/type") == "acpitz"
    lab.heat(97)
    assert lab.call(until, "/sys/class/thermal/thermal_zone0/temp", ["97000"], 30) == "97000"
    assert lab.call(until, limit, ["1800000"], 30) == "1800000"
    lab.heat(50)
    assert lab.call(until, "/sys/class/thermal/thermal_zone0/temp", ["50000"], 30) == "50000"
    assert lab.call(until, limit, ["3000000"], 30) == "3000000"
    # The kernel's own passive cooling steps back one step a poll.
    for cpu in range(4):
        assert lab.call(until, f"{CPU}/cpu{cpu}/cpufreq/scaling_max_freq", ["3000000"], 60) == "3000000"
    lab.heat(0)


def test_cgroup_partition_isolates(lab: Machine) -> None:
    top, group = "/sys/fs/cgroup", "/sys/fs/cgroup/hot"
    with lab.unchanged():
        lab.write(f"{top}/cgroup.subtree_control", "+cpuset")
        lab.run(["mkdir", group], check=True)
        lab.write(f"{group}/cpuset.cpus", "2-3")
        lab.write(f"{group}/cpuset.cpus.partition", "isolated")
        assert lab.read(f"{group}/cpuset.cpus.partition") == "isolated"
        assert lab.read(f"{top}/cpuset.cpus.effective") == "0-1"
        lab.run(["rmdir", group], check=True)
        lab.write(f"{top}/cgroup.subtree_control", "-cpuset")


def test_interrupts_move_and_refuse(lab: Machine) -> None:
    # Every message of this harness is an interrupt of the virtio port.
    port = next(name for name in lab.read("/proc/interrupts").split() if name.endswith("-virtqueues"))
    with lab.unchanged():
        number, _ = lab.call(interrupts, port)
        mask = f"/proc/irq/{number}/smp_affinity_list"
        before = lab.read(mask)
        for cpu in (1, 0):
            lab.write(mask, str(cpu))
            lab.read("/proc/uptime")
            _, counts = lab.call(interrupts, port)
            for _ in range(10):
                lab.read("/proc/uptime")
            _, later = lab.call(interrupts, port)
            grown = [new - old for new, old in zip(later, counts, strict=True)]
            assert grown[cpu] >= 10
            assert sum(grown) == grown[cpu]
        lab.write(mask, before)
        managed, _ = lab.call(interrupts, "nvme0q1")
        for refused in (0, managed):
            with pytest.raises(OSError, match="smp_affinity_list") as refusal:
                lab.write(f"/proc/irq/{refused}/smp_affinity_list", "1")
            assert refusal.value.errno == errno.EIO


def test_smt_sibling_goes_offline_and_returns(lab: Machine) -> None:
    with lab.unchanged():
        lab.write(f"{CPU}/smt/control", "off")
        assert lab.read(f"{CPU}/online") == "0,2"
        lab.write(f"{CPU}/smt/control", "on")
        assert lab.read(f"{CPU}/online") == "0-3"


def test_programs_users_and_signals(lab: Machine) -> None:
    done = lab.run([lab.python, "-I", "-S", "-c", "import sys; print(sys.stdin.read()); sys.exit(3)"], stdin=b"in")
    assert (done.code, done.stdout, done.stderr) == (3, "in\n", "")
    assert lab.run(["id", "-u"], user="learner", check=True).stdout == "1000\n"
    refused = lab.run(["sh", "-c", f"echo performance > {CPU}/cpu0/cpufreq/scaling_governor"], user="learner")
    assert refused.code != 0
    assert lab.run(["touch", f"{PROJECT}/written"]).code != 0
    with pytest.raises(MachineError, match="ended with 1"):
        lab.run(["false"], check=True)
    with pytest.raises(FileNotFoundError):
        lab.run(["/no/such/program"])
    assert lab.workshop("--version", user="learner", check=True).stdout.startswith("jitter-workshop ")

    cat = lab.start(["cat"])
    cat.send(b"one\n")
    cat.wait_for(b"one\n")
    cat.signal(signal.SIGKILL)
    assert cat.wait().code == -signal.SIGKILL
    with pytest.raises(MachineTimeout, match=r"half said"):
        lab.run(["sh", "-c", "echo half said; exec sleep 1000"], timeout_s=1)


def test_sudo_follows_a_rule(lab: Machine) -> None:
    if lab.run(["sh", "-c", "command -v sudo"]).code:
        pytest.skip("sudo is not installed on this host, whose programs the lab machine shares")
    assert lab.run(["sudo", "-n", "id", "-u"], user="learner").code != 0
    lab.write("/etc/sudoers.d/lab", "learner ALL=(root) NOPASSWD: /usr/bin/id\n")
    lab.run(["chmod", "440", "/etc/sudoers.d/lab"], check=True)
    assert lab.run(["sudo", "-n", "/usr/bin/id", "-u"], user="learner", check=True).stdout == "0\n"
    assert lab.run(["sudo", "-n", "/usr/bin/id", "-u"], user="other").code != 0
    lab.run(["rm", "/etc/sudoers.d/lab"], check=True)


def test_files_come_out(lab: Machine, tmp_path: Path) -> None:
    make = "mkdir -p /tmp/out/sub; echo text > /tmp/out/sub/file; ln -s sub/file /tmp/out/link"
    lab.run(["sh", "-c", make], check=True)
    lab.copy_out("/tmp/out", tmp_path / "got")
    assert (tmp_path / "got/sub/file").read_text() == "text\n"
    assert (tmp_path / "got/link").is_symlink()
    lab.run(["rm", "-r", "/tmp/out"], check=True)


def test_real_time_kernel(lab_rt: Machine) -> None:
    assert lab_rt.read("/sys/kernel/realtime") == "1"
    assert "PREEMPT_RT" in lab_rt.read("/proc/version")
    assert {"osnoise", "timerlat", "hwlat"} <= set(lab_rt.read("/sys/kernel/tracing/available_tracers").split())


@pytest.mark.soak
def test_boot_parameters_reboot_and_power_cut(lab_factory: Factory) -> None:
    isolation = "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1"
    machine = lab_factory(append=isolation, disk=True)
    assert machine.read(f"{CPU}/isolated") == "2-3"
    assert machine.read(f"{CPU}/nohz_full") == "2-3"
    assert machine.read("/proc/irq/default_smp_affinity") == "3"
    # Some 250 against a few: the counters are the kernel's own, even where emulation makes its clock uneven.
    assert machine.call(ticks_while_busy, 3) * 5 < machine.call(ticks_while_busy, 0)
    first_boot = machine.read("/proc/sys/kernel/random/boot_id")
    machine.write("/etc/kept", "by an orderly reboot")
    machine.write("/tmp/lost", "by any")

    machine.reboot(append="")
    assert machine.read(f"{CPU}/isolated") == ""
    assert machine.read("/proc/sys/kernel/random/boot_id") != first_boot
    assert machine.read("/etc/kept") == "by an orderly reboot"
    with pytest.raises(FileNotFoundError):
        machine.read("/tmp/lost")

    machine.run(["mkdir", "-p", "/var/lib/jitter"], check=True)
    machine.write("/var/lib/jitter/synced", "there")
    machine.run(["sync"], check=True)
    machine.write("/var/lib/jitter/unsynced", "gone")
    with pytest.raises(PowerLost):
        machine.run(["/lab/power-cut"])
    assert not machine.running
    machine.boot()
    assert machine.read("/var/lib/jitter/synced") == "there"
    # Its name may have been on the disk already, its content cannot.
    names = machine.list_dir("/var/lib/jitter")
    assert "unsynced" not in names or machine.read("/var/lib/jitter/unsynced") == ""


@pytest.mark.soak
def test_numa_nodes(lab_factory: Factory) -> None:
    machine = lab_factory(numa=True)
    assert machine.read("/sys/devices/system/node/online") == "0-1"
    assert machine.read("/sys/devices/system/node/node1/cpulist") == "2-3"


@pytest.mark.soak
def test_cgroup_v1_cpuset(lab_factory: Factory) -> None:
    machine = lab_factory(cgroup="v1")
    group = "/sys/fs/cgroup/cpuset/hot"
    with machine.unchanged():
        machine.run(["mkdir", group], check=True)
        machine.write(f"{group}/cpuset.cpus", "2-3")
        machine.write(f"{group}/cpuset.mems", "0")
        machine.write(f"{group}/cpuset.cpu_exclusive", "1")
        assert machine.read(f"{group}/cpuset.cpus") == "2-3"
        machine.run(["rmdir", group], check=True)


@pytest.mark.soak
@pytest.mark.parametrize("kernel", ["stock", "rt"])
def test_power_cut_from_outside(lab_factory: Factory, kernel: str) -> None:
    machine = lab_factory(kernel=kernel, disk=True)
    writer = """if True:
        import os
        with open("/var/lib/n", "w", 1) as file:
            for n in range(10**6):
                file.write(f"{n}\\n")
                os.fsync(file)
                print(n, flush=True)
    """
    guest = machine.start([machine.python, "-I", "-S", "-c", writer])
    guest.wait_for(b"20\n")
    machine.power_cut()
    # The last line may have been cut; the one before was synced before it was told.
    told = int(guest.stdout.split()[-2])
    machine.boot()
    assert [int(n) for n in machine.read("/var/lib/n").split()][: told + 1] == list(range(told + 1))
