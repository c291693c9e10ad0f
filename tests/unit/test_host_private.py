"""Test the filter of a recording: deny by default; no argument, address, serial number or name gets through."""

from __future__ import annotations

import gzip
import ipaddress
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.recording.recording_filter import HIDDEN_NAME, Scrubber, kernel_command_line
from jitter_workshop.host.root import parse_integer
from jitter_workshop.host.shellfile import parse_assignments
from jitter_workshop.host.tasks.listing import PF_KTHREAD, parse_task_stat
from jitter_workshop.model.cpuset import CpuSet
from tests.hosttrees import task

MACHINE_ID = "8f0c2d6f0b1e4a0f9c5b7a3e2d1c0b9a"


def kept(path: str, text: str, scrubber: Scrubber | None = None) -> str | None:
    data = (scrubber or Scrubber()).contents(path, text.encode())
    return None if data is None else data.decode()


@pytest.mark.parametrize(
    "path",
    [
        "/proc/1/cmdline",
        "/proc/77/environ",
        "/proc/77/maps",
        "/proc/77/task/78/cmdline",
        "/proc/77/fd/3",
        "/proc/self/environ",
        "/proc/self/cmdline",
        "/proc/net/arp",
        "/proc/keys",
        "/proc/kmsg",
        "/sys/class/net/eth0/address",
        "/sys/class/net/eth0/broadcast",
        "/sys/class/dmi/id/product_serial",
        "/sys/class/dmi/id/product_uuid",
        "/sys/block/nvme0n1/wwid",
        "/etc/machine-id",
        "/etc/shadow",
        "/root/.ssh/id_rsa",
        "/home/alice/x",
        "/sys/../etc/shadow",
        "/var/log/syslog",
    ],
)
def test_files_with_private_data_are_not_recorded(path: str) -> None:
    assert kept(path, "secret\n") is None


COMMAND_LINE = (
    "BOOT_IMAGE=/vmlinuz root=UUID=0f5c1a52-3d77-4f0e-9a9e-6d2f2f7f1c11 ip=10.1.2.3::10.1.2.1 quiet"
    ' isolcpus="domain,2-3"'
    " nohz-full=2-3 rcutree.kthread_prio=2 ds=nocloud;h=web17 password=hunter2 -- --token abc"
)


def test_boot_parameters() -> None:
    line = kept("/proc/cmdline", COMMAND_LINE)
    assert line == (
        "BOOT_IMAGE=removed root=removed ip=removed quiet isolcpus=domain,2-3 nohz-full=2-3 rcutree.kthread_prio=2"
        " ds=removed password=removed\n"
    )


@given(st.text(st.characters(codec="utf-8", exclude_characters='"')))
def test_no_value_of_an_unknown_parameter_is_kept(value: str) -> None:
    word = "v" + "".join(value.split())
    line = kernel_command_line(Scrubber(), f"quiet secret={word} isolcpus=1")
    assert line.split() == ["quiet", "secret=removed", "isolcpus=1"]


@given(st.text())
def test_any_command_line(text: str) -> None:
    once = kernel_command_line(Scrubber(), text)
    assert kernel_command_line(Scrubber(), once) == once


def test_grub_settings() -> None:
    text = (
        "# comment with root@web17\nGRUB_TIMEOUT=5\nGRUB_DISTRIBUTOR=`lsb_release -i`\n"
        'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX isolcpus=2-3 root=UUID=x"\nPASSWORD=hunter2\n'
    )
    assert parse_assignments(kept("/etc/default/grub.d/50-x.cfg", text) or "") == {
        "GRUB_TIMEOUT": "5",
        "GRUB_DISTRIBUTOR": "removed",
        "GRUB_CMDLINE_LINUX": "$GRUB_CMDLINE_LINUX isolcpus=2-3 root=removed",
    }


def test_a_boot_entry_keeps_its_options_and_loses_the_machine() -> None:
    scrubber = Scrubber()
    path = f"/boot/loader/entries/{MACHINE_ID}-6.12.conf"
    text = f"title Linux 6.12.0.1\nmachine-id {MACHINE_ID}\noptions root=UUID=x nohz_full=1\nlinux /{MACHINE_ID}/l\n"
    renamed = scrubber.path(path)
    assert renamed is not None
    assert MACHINE_ID not in renamed
    clean = kept(path, text, scrubber)
    stand_in = renamed.rpartition("/")[2].removesuffix("-6.12.conf")
    assert clean == f"title Linux 6.12.0.1\noptions root=removed nohz_full=1\nlinux /{stand_in}/l\n"


def test_other_settings_files() -> None:
    text = 'IRQBALANCE_BANNED_CPULIST="2-3"\nIRQBALANCE_ARGS="--policyscript=/home/alice/x"\n'
    assert kept("/etc/default/irqbalance", text) == 'IRQBALANCE_BANNED_CPULIST="2-3"\n'
    assert kept("/etc/os-release", "ID=debian\nIMAGE_ID=web17\nVERSION_ID=10.0.0.1\n") == (
        'ID="debian"\nVERSION_ID="10.0.0.1"\n'
    )
    assert kept("/usr/sbin/update-grub", "#") == ""
    config = 'CONFIG_HZ=250\nCONFIG_CMDLINE="root=/dev/x"\n# CONFIG_NUMA is not set\n# built by alice\n'
    assert kept("/boot/config-6.12", config) == "CONFIG_HZ=250\n# CONFIG_NUMA is not set\n"
    packed = Scrubber().contents("/proc/config.gz", gzip.compress(config.encode()))
    assert packed is not None
    assert gzip.decompress(packed) == b"CONFIG_HZ=250\n# CONFIG_NUMA is not set\n"
    assert Scrubber().contents("/proc/config.gz", b"no gzip") is None


def test_the_hosts_name() -> None:
    assert kept("/proc/sys/kernel/hostname", "web17\n") == f"{HIDDEN_NAME}\n"
    assert kept("/proc/sys/kernel/hostname", "web17\n", Scrubber("web17")) == "web17\n"
    assert kept("/proc/sys/kernel/osrelease", "6.6.87.2-microsoft\n") == "6.6.87.2-microsoft\n"


def test_names_of_tasks() -> None:
    scrubber = Scrubber()
    scrubber.kernel_threads.add("/proc/15")
    files = task(15, "ksoftirqd/1", flags=PF_KTHREAD) | task(700, "irqbalance") | task(900, "a (secret) name")
    files |= task(901, "worker of alice", pid=900)
    clean = {path: kept(f"/{path}", text, scrubber) or "" for path, text in files.items()}
    names = {path: parsed.name for path, text in clean.items() if (parsed := parse_task_stat(text.strip())) is not None}
    assert names == {
        "proc/15/stat": "ksoftirqd/1",
        "proc/700/stat": "irqbalance",
        "proc/900/stat": "task",
        "proc/900/task/901/stat": "task",
    }
    assert kept("/proc/900/comm", "secret\n", scrubber) == "task\n"
    assert kept("/proc/1/comm", "systemd\n", scrubber) == "systemd\n"
    assert kept("/proc/2/comm", "systemd\n", scrubber) == "task\n"
    assert kept("/proc/900/sched", "a (secret) name (900, #threads: 1)\nse.nr_migrations : 5\n", scrubber) == (
        "task (900, #threads: 1)\nse.nr_migrations : 5\n"
    )
    status = "Name:\tsecret\nUmask:\t0022\nUid:\t1000\nCpus_allowed_list:\t0-1\nName:\tx\n"
    assert kept("/proc/900/status", status, scrubber) == "Name:\ttask\nCpus_allowed_list:\t0-1\n"


def test_a_stat_line_loses_its_addresses_and_nothing_else() -> None:
    fields = " ".join(str(n) for n in range(4, 53))
    clean = kept("/proc/900/stat", f"900 (x) S {fields}\n") or ""
    numbers = [parse_integer(word) for word in clean.rpartition(") ")[2].split()[1:]]
    gone = {n for n, value in zip(range(4, 53), numbers, strict=True) if value == 0}
    assert gone == {26, 27, 28, 29, 30, 35, *range(45, 52)}


def test_mounts_of_the_kernel_alone() -> None:
    ours = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    theirs = "40 23 0:50 / /home/alice rw - nfs4 10.0.0.7:/export rw,addr=10.0.0.7\n"
    assert kept("/proc/self/mountinfo", ours + theirs) == ours


@given(st.binary(min_size=6, max_size=6), st.sampled_from([":", "-"]), st.booleans())
def test_mac_addresses(raw: bytes, between: str, upper: bool) -> None:
    address = raw.hex(between)
    shown = address.upper() if upper else address
    scrubber = Scrubber()
    text = scrubber.identifiers(f"power hid-{shown}-battery enx{raw.hex()} {shown}")
    assert shown not in text
    assert raw.hex() not in text or raw.hex().startswith("0200000000")
    words = text.split()
    assert words[1] == f"hid-{words[3]}-battery"
    assert scrubber.path(f"/sys/class/net/enx{raw.hex()}/mtu") == f"/sys/class/net/{words[2]}/mtu"


@given(st.ip_addresses(), st.uuids())
def test_addresses_and_uuids(address: ipaddress.IPv4Address | ipaddress.IPv6Address, ident: uuid.UUID) -> None:
    text = Scrubber().identifiers(f"a={address} b={ident} c=[{address}]")
    told, _, again = text.split()
    if str(address) not in ("::", "0.0.0.0"):
        assert str(address) not in text
    assert told.removeprefix("a=") in ("0.0.0.0", "::", "::ffff:0.0.0.0")
    assert again.startswith("c=[")
    assert str(ident) not in text


@given(st.sets(st.integers(0, 600)), st.integers(1, 20))
def test_masks_and_lists_stay_unchanged(cpus: set[int], groups: int) -> None:
    chosen = CpuSet.of(cpus)
    mask = chosen.to_mask(groups)
    assert kept("/sys/devices/virtual/workqueue/cpumask", mask) == mask
    assert kept("/proc/irq/7/smp_affinity_list", str(chosen)) == str(chosen)


@pytest.mark.parametrize(
    "text",
    [
        " 36:          0     874105 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n",
        "0::/user.slice/user-1000.slice\n12:cpu,cpuacct:/\n",
        "DRIVER=ice\nPCI_SLOT_NAME=0000:3b:00.0\nMODALIAS=pci:v00008086d00001592sv00008086sd00000002bc02sc00i00\n",
        "cpu0 600 0 400 9000 0 0 0 0 0 0\nbtime 1700000000\n",
        "Mitigation: usercopy/swapgs barriers and __user pointer sanitization\n",
        "8-15:2/4\n",
    ],
)
def test_text_without_private_data_stays_as_it_is(text: str) -> None:
    assert kept("/sys/anything", text) == text


def test_serial_numbers() -> None:
    assert kept("/proc/cpuinfo", "Hardware\t: BCM\nSerial\t\t: 10000000abcdef01\n") == (
        "Hardware\t: BCM\nSerial\t\t: removed\n"
    )


@given(st.binary(max_size=300), st.sampled_from(["/proc/9/stat", "/proc/9/status", "/proc/9/sched", "/proc/cmdline"]))
def test_any_bytes(data: bytes, path: str) -> None:
    Scrubber().contents(path, data)


@given(st.binary(max_size=300))
def test_bytes_that_are_no_text_survive(data: bytes) -> None:
    if data.isascii():
        return
    assert Scrubber().contents("/sys/x", b"\xff" + data[:1]) == b"\xff" + data[:1]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("/proc/self/cgroup", "0::/machine/web17.scope\n", f"0::/machine/{HIDDEN_NAME}.scope\n"),
        ("/proc/self/cgroup", "0::/lxc/web17/init\n", f"0::/lxc/{HIDDEN_NAME}/init\n"),
        ("/proc/self/cgroup", "0::/lxc/web170/web1/my-web17\n", "0::/lxc/web170/web1/my-web17\n"),
        ("/proc/self/cgroup", "0::/user.slice/user@alice.service/x\n", "0::/user.slice/user@removed.service/x\n"),
        ("/proc/self/cgroup", "0::/user.slice/user@1000.service/x\n", "0::/user.slice/user@1000.service/x\n"),
    ],
)
def test_the_hosts_name_and_a_users_are_replaced_wherever_they_stand(path: str, text: str, expected: str) -> None:
    assert kept(path, text, Scrubber(secret="web17")) == expected


def test_a_folder_that_is_named_after_the_host_gets_the_stand_in_too() -> None:
    scrubber = Scrubber(secret="web17")
    assert scrubber.path("/sys/fs/cgroup/lxc/web17/cpu.max") == f"/sys/fs/cgroup/lxc/{HIDDEN_NAME}/cpu.max"
    assert Scrubber("web17").path("/sys/fs/cgroup/lxc/web17/cpu.max") == "/sys/fs/cgroup/lxc/web17/cpu.max"
    assert scrubber.path("/sys/fs/cgroup/user@bob.service/cpu.max") == "/sys/fs/cgroup/user@removed.service/cpu.max"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("vm", "/proc/sys/vm/stat_interval"),
        ("kernel", "/proc/sys/kernel/random/boot_id"),
        ("system", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        ("net", "/sys/class/net/eth0/queues/rx-0/rps_cpus"),
        ("queues", "/sys/class/net/eth0/queues/rx-0/rps_cpus"),
        ("cpu", "/sys/fs/cgroup/lxc/cpu.max"),
        ("cpus", "/sys/fs/cgroup/cpuset.cpus.effective"),
        ("cpuset", "/sys/fs/cgroup/cpuset/cpuset.effective_cpus"),
        ("schemata", "/sys/fs/resctrl/schemata"),
        ("boot", "/boot/loader/entries/debian.conf"),
        ("modules", "/lib/modules/6.12.1/config"),
    ],
)
def test_a_host_that_is_called_like_something_of_the_kernels_keeps_the_kernels_names(name: str, path: str) -> None:
    assert Scrubber(secret=name).path(path) == path


@pytest.mark.parametrize(
    ("name", "path", "text"),
    [
        ("cpu", "/proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\n"),
        ("performance", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
        ("never", "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"),
    ],
)
def test_a_host_that_is_called_like_a_word_of_the_kernels_keeps_that_word(name: str, path: str, text: str) -> None:
    assert kept(path, text, Scrubber(secret=name)) == text


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/sys/class/net/web17/mtu", f"/sys/class/net/{HIDDEN_NAME}/mtu"),
        ("/proc/irq/30/web17", f"/proc/irq/30/{HIDDEN_NAME}"),
        ("/boot/loader/entries/web17.conf", f"/boot/loader/entries/{HIDDEN_NAME}.conf"),
        ("/sys/fs/resctrl/web17/schemata", f"/sys/fs/resctrl/{HIDDEN_NAME}/schemata"),
    ],
)
def test_a_name_made_from_the_host_gets_the_stand_in(path: str, expected: str) -> None:
    assert Scrubber(secret="web17").path(path) == expected


@given(st.text(st.characters(categories=("Ll", "Lu", "Nd"), max_codepoint=127), min_size=2, max_size=12))
def test_any_host_name_is_replaced_as_a_whole_word(name: str) -> None:
    assert name not in Scrubber(secret=name).identifiers(f"/{name}/").replace(HIDDEN_NAME, "")
