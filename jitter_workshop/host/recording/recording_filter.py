"""Decide which contents a recording may contain, by rules for paths. Contents without a rule are left out.

Process arguments, environments and serial numbers are never recorded. The host's name is recorded only on request.
Names of user tasks become ``task``. MAC and IP addresses and long identifiers are replaced. Each of these gets the same
replacement in file names and in contents. So a name in a recorded file still refers to the right other file.
"""

from __future__ import annotations

import gzip
import ipaddress
import re
from collections.abc import Callable

from jitter_workshop.host.boot.cmdline import split_words
from jitter_workshop.host.kernel.hypervisor import PRACTICE_WORD
from jitter_workshop.host.kernel.release import inflated
from jitter_workshop.host.services import SERVICE_TASKS, SERVICE_UNITS
from jitter_workshop.host.shellfile import parse_assignments
from jitter_workshop.host.tasks.listing import parse_task_stat

HIDDEN_NAME = "recorded-host"
REMOVED = "removed"
OTHER_TASK = "task"

_INITS = frozenset({"systemd", "init", "openrc-init", "runit", "s6-svscan", "dinit", "tini", "dumb-init"})
_TASK_FILES = frozenset({"stat", "status", "comm", "sched", "cgroup"})
_SELF_FILES = frozenset({"cgroup", "mountinfo", "status", "stat"})
_PRIVATE_NAMES = re.compile(
    r"serial|uuid|machine-id|^address$|^broadcast$|wwid|wwn|asset_tag|phys_(?:port|switch)_id|^ifalias$|^keys$"
    r"|^key-users$|^kmsg$|^kallsyms$|^kcore$|^domainname$",
    re.IGNORECASE,
)
_STATUS_WORDS = """
State Tgid Pid PPid Threads Kthread Cpus_allowed Cpus_allowed_list Mems_allowed Mems_allowed_list
voluntary_ctxt_switches nonvoluntary_ctxt_switches
"""
_STATUS_KEPT = frozenset(_STATUS_WORDS.split())
_STAT_ADDRESSES = (*range(26, 31), 35, *range(45, 52))
"""Numbers of the fields of proc_pid_stat(5) that are addresses in the task's memory or in the kernel."""

_MOUNTS_KEPT = frozenset({"cgroup", "cgroup2", "proc", "sysfs", "debugfs", "tracefs", "resctrl"})
_CONFIG_LINE = re.compile(r"(?:CONFIG_\w+=[ymn0-9]\w*|# CONFIG_\w+ is not set)")
_OS_RELEASE_KEPT = ("ID", "ID_LIKE", "NAME", "PRETTY_NAME", "VERSION_ID", "VERSION", "VERSION_CODENAME", "VARIANT_ID")

_PARAMETER_WORDS = """
acpi_irq_nobalance amd_iommu amd_pstate apparmor audit cgroup_disable cgroup_no_v1 clocksource console
cpufreq.default_governor cpufreq.off cpuidle.governor cpuidle.off cpuidle_haltpoll.force default_hugepagesz highres
hpet hugepages hugepagesz idle init_on_alloc init_on_free intel_idle.max_cstate intel_iommu intel_pstate iommu
iommu.passthrough iommu.strict irqaffinity isolcpus kthread_cpus kvm_intel.vmentry_l1d_flush l1tf lapic maxcpus mce
mds mitigations mmio_stale_data nmi_watchdog nohz nohz_full nosmt nr_cpus numa_balancing panic pcie_aspm
pcie_aspm.policy possible_cpus preempt processor.ignore_ppc processor.max_cstate psi pti rcu_nocb_poll rcu_nocbs
reg_file_data_sampling retbleed security selinux skew_tick softlockup_panic spec_rstack_overflow
spec_store_bypass_disable spectre_v1 spectre_v2 split_lock_detect srbds systemd.unified_cgroup_hierarchy threadirqs
transparent_hugepage tsc tsx tsx_async_abort watchdog_thresh workqueue.default_affinity_scope
workqueue.power_efficient workqueue.unbound_cpus
"""
_PARAMETERS_KEPT = frozenset([*_PARAMETER_WORDS.split(), PRACTICE_WORD])
"""Boot parameters that this program reads or explains, written with underscores instead of hyphens. No value of such a
parameter can be a person's name."""

_PARAMETER_FAMILIES = ("rcutree.", "rcupdate.", "haltpoll.")
_BARE_WORD = re.compile(r"[a-z][a-z0-9_.-]{0,60}", re.IGNORECASE)
_SHELL_VARIABLE = re.compile(r"\$\{?GRUB_[A-Z_]+\}?")
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_.+-]{0,40}")

_HEX = "0-9a-fA-F"
_MAC = re.compile(rf"(?<![{_HEX}:])[{_HEX}]{{2}}(?:[:-][{_HEX}]{{2}}){{5}}(?![{_HEX}:])")
_MAC_IN_NAME = re.compile(rf"\b(en|wl|ww)x([{_HEX}]{{12}})(?![{_HEX}])")
_UUID = re.compile(rf"(?<![{_HEX}-])[{_HEX}]{{8}}(?:-[{_HEX}]{{4}}){{3}}-[{_HEX}]{{12}}(?![{_HEX}-])")
_LONG_HEX = re.compile(rf"(?<![{_HEX}])[{_HEX}]{{32,128}}(?![{_HEX}])")
_IPV4 = re.compile(r"(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\d.])")
_IPV6_LIKE = re.compile(rf"(?<![{_HEX}:.])[{_HEX}]{{0,4}}(?::[{_HEX}.]*){{2,8}}(?![{_HEX}:])")
_USER_UNIT = re.compile(r"(?<![\w-])user@[^/\s.]*[^/\s.\d][^/\s.]*")
"""Match the systemd unit of a user's service manager with a user's name in it. The number of a user may be kept, the
name may not."""

_GROUPS = re.compile(r"/sys/fs/(?:cgroup|resctrl)(?:/|$)")
_GROUP_FILE = re.compile(
    r"(?:cgroup|cpuset|cpu)\.(?:controllers|subtree_control|procs|cpus|mems|effective_cpus|sched_load_balance|max|stat"
    r"|cfs_quota_us|cfs_period_us|cpus\.\w+|mems\.\w+)|unified|cpuset|cpu,cpuacct|schemata|cpus_list"
)
_NAMED_BY_PEOPLE = re.compile(r"/(?:sys/class/net|proc/irq/\d+|boot/loader/entries|(?:usr/)?lib/modules)")
"""Match folders, besides control groups, in which people give the names. All other names in a path are the kernel's
own: on a host that is called ``vm`` the folder ``/proc/sys/vm`` is kept."""

_KERNEL_WORDS = re.compile(
    r"/proc/(?:sys/|(?:cpuinfo|loadavg|meminfo|schedstat|softirqs|stat|vmstat|zoneinfo)$)"
    r"|/sys/(?!class/dmi/|devices/virtual/dmi/)"
)
"""Match files whose words are the kernel's own. Such a word is kept even if it equals the host's name, such as ``cpu``
in /proc/stat."""

_SERIAL = re.compile(r"(serial(?:[ _-]?(?:number|no))?[ \t]*[:=][ \t]*)\S+", re.IGNORECASE)

Cleaner = Callable[["Scrubber", str, str], str | None]


class Scrubber:
    """Remove private data from the paths and contents of one host's files.

    - ``hostname``: the text for the one file that contains the host's name; None for a placeholder.
    - ``secret``: the host's name, to replace it in all other files and in file names; "" to keep it.
    """

    def __init__(self, hostname: str | None = None, secret: str = "") -> None:
        self.hostname = hostname
        self._secret = re.compile(rf"(?<![\w-]){re.escape(secret)}(?![\w-])") if len(secret) > 1 else None
        self._stand_ins: dict[str, str] = {}
        self.kernel_threads: set[str] = set()
        """The folders of kernel threads, such as ``/proc/2``. The names of these threads may be kept."""

    def path(self, path: str) -> str | None:
        """Return the path under which a file or folder is kept; None if it is left out."""
        if ".." in path.split("/"):
            return None
        names = [name for name in path.split("/") if name]
        if any(_PRIVATE_NAMES.search(name) for name in names) or names[:2] == ["proc", "net"]:
            return None
        if names[:1] == ["proc"] and len(names) > 2 and not _task_file_kept(names):
            return None
        return "/" + "/".join(self.identifiers(name, host=_is_given(names, n)) for n, name in enumerate(names))

    def contents(self, path: str, data: bytes) -> bytes | None:
        """Return the part of a file's contents that is kept; None if nothing of it may be kept."""
        if self.path(path) is None:
            return None
        if path == "/proc/config.gz":
            config = inflated(data)
            if config is None:
                return None
            return gzip.compress(_config(self, path, config.decode("utf-8", "replace")).encode(), mtime=0)
        text = data.decode("utf-8", errors="surrogateescape")
        for pattern, cleaner in _RULES:
            if pattern.match(path):
                kept = cleaner(self, path, text)
                return None if kept is None else kept.encode("utf-8", errors="surrogateescape")
        return None

    def listed(self, folder: str, name: str) -> bool:
        """Return True if the entry ``name`` of a folder may be kept. The names of systemd's links contain the names of
        all mounts and users of a host. So a link of systemd may be kept only if it belongs to a known service."""
        if folder == "/run/systemd/units":
            return name.removeprefix("invocation:") in SERVICE_UNITS
        return True

    def identifiers(self, text: str, *, addresses: bool = True, host: bool = True) -> str:
        """Return the text without MAC and IP addresses, UUIDs, long hexadecimal identifiers and serial numbers. A
        secret host name is replaced, too.

        - ``addresses``: False keeps IP addresses, for a text where versions look like addresses.
        - ``host``: False keeps the host's name, for a text in which the same word has another meaning.
        """
        if self._secret is not None and host:
            text = self._secret.sub(HIDDEN_NAME, text)
        text = _USER_UNIT.sub(rf"user@{REMOVED}", text)
        text = _MAC_IN_NAME.sub(lambda m: f"{m[1]}x{self._stand_in(m[2], '02{:010x}')}", text)
        text = _MAC.sub(lambda m: self._stand_in(m[0], "02:00:00:00:00:{:02x}"), text)
        text = _UUID.sub(lambda m: self._stand_in(m[0], "00000000-0000-4000-8000-{:012x}"), text)
        text = _LONG_HEX.sub(lambda m: self._stand_in(m[0], "{:0" + str(len(m[0])) + "x}"), text)
        if addresses:
            text = _IPV4.sub("0.0.0.0", text)
            text = _IPV6_LIKE.sub(lambda m: "::" if _is_ipv6(m[0]) else m[0], text)
        return _SERIAL.sub(rf"\g<1>{REMOVED}", text)

    def task_name(self, path: str, name: str) -> str:
        """Return the name of a task if the task is a kernel thread, a known service or init; else ``task``. ``path``:
        the path of one of the task's files."""
        folder = "/".join(path.split("/")[:3])
        known = folder in self.kernel_threads or name in SERVICE_TASKS or (folder == "/proc/1" and name in _INITS)
        return self.identifiers(name) if known else OTHER_TASK

    def _stand_in(self, secret: str, form: str) -> str:
        key = secret.lower()
        if key not in self._stand_ins:
            self._stand_ins[key] = form.format(len(self._stand_ins) + 1)
        return self._stand_ins[key]


def kernel_command_line(scrubber: Scrubber, line: str) -> str:
    """Return a kernel's command line without private values. Known parameters are not changed. Other parameters lose
    their values. Parameters that the kernel passes to init are left out."""
    kept: list[str] = []
    for word in split_words(line):
        if word == "--":
            break
        word = word.replace('"', "")
        name, equals, value = word.partition("=")
        known = name.replace("-", "_") in _PARAMETERS_KEPT or name.startswith(_PARAMETER_FAMILIES)
        if (known and value.isprintable() and " " not in value) or _SHELL_VARIABLE.fullmatch(word):
            kept.append(scrubber.identifiers(word))
        elif _BARE_WORD.fullmatch(name):
            kept.append(f"{scrubber.identifiers(name)}={REMOVED}" if equals else scrubber.identifiers(name))
    return " ".join(kept)


def _is_ipv6(word: str) -> bool:
    # A line of /proc/PID/cgroup begins like this.
    if word == "0::":
        return False
    try:
        ipaddress.IPv6Address(word)
    except ValueError:
        return False
    return True


def _task_file_kept(names: list[str]) -> bool:
    """Return True if a recording may contain this file of /proc. A process's files are allowed only if they show where
    and how a task runs. ``names``: the components of the path."""
    if names[1] in ("self", "thread-self"):
        return len(names) == 3 and names[2] in _SELF_FILES
    if names[1].isdigit():
        if names[2] == "task":
            return len(names) <= 4 or (len(names) == 5 and names[4] in _TASK_FILES)
        return len(names) == 3 and names[2] in _TASK_FILES
    return True


def _is_given(names: list[str], n: int) -> bool:
    """Return True if people may have chosen a component of a path, False if the kernel chose it. ``names``: the
    components. ``n``: the index of the component."""
    folder = "/" + "/".join(names[:n])
    if _GROUPS.match(folder):
        return not _GROUP_FILE.fullmatch(names[n])
    return _NAMED_BY_PEOPLE.fullmatch(folder) is not None


def _stat(scrubber: Scrubber, path: str, text: str) -> str | None:
    task = parse_task_stat(text.strip())
    if task is None:
        return None
    name = text[text.index("(") + 1 : text.rindex(")")]
    fields = text[text.rindex(")") + 1 :].split()
    for number in _STAT_ADDRESSES:
        # The first field after the name is the third of the line.
        if number - 3 < len(fields):
            fields[number - 3] = "0"
    return f"{task.tid} ({scrubber.task_name(path, name)}) {' '.join(fields)}\n"


def _status(scrubber: Scrubber, path: str, text: str) -> str:
    kept: list[str] = []
    for line in text.split("\n"):
        key, colon, value = line.partition(":")
        if key == "Name" and not kept:
            kept.append(f"Name:\t{scrubber.task_name(path, value.strip())}")
        elif colon and key in _STATUS_KEPT:
            kept.append(line)
    return "\n".join(kept) + "\n"


def _sched(scrubber: Scrubber, path: str, text: str) -> str:
    first, _, rest = text.partition("\n")
    name, _, numbers = first.rpartition(" (")
    return f"{scrubber.task_name(path, name.strip())} ({numbers}\n{scrubber.identifiers(rest)}"


def _mountinfo(scrubber: Scrubber, _path: str, text: str) -> str:
    """Return those lines of mountinfo that are about the kernel's own file systems. Other lines are left out, because
    they name servers, users and containers."""
    kept = [line for line in text.split("\n") if line.partition(" - ")[2].split(" ")[0] in _MOUNTS_KEPT]
    return scrubber.identifiers("\n".join([*kept, ""]))


def _grub(scrubber: Scrubber, _path: str, text: str) -> str:
    kept: list[str] = []
    for name, value in parse_assignments(text).items():
        if name.startswith("GRUB_CMDLINE_"):
            kept.append(f'{name}="{kernel_command_line(scrubber, value)}"')
        elif name.startswith("GRUB_"):
            kept.append(f'{name}="{value if _PLAIN_VALUE.fullmatch(value) else REMOVED}"')
    return "".join(f"{line}\n" for line in kept)


def _os_release(scrubber: Scrubber, _path: str, text: str) -> str:
    values = parse_assignments(text)
    kept = {key: scrubber.identifiers(values[key], addresses=False) for key in _OS_RELEASE_KEPT if key in values}
    return "".join(f'{key}="{value}"\n' for key, value in kept.items() if not set(value) & set('"\\$`'))


def _irqbalance(scrubber: Scrubber, _path: str, text: str) -> str:
    values = parse_assignments(text)
    kept = [k for k in ("IRQBALANCE_BANNED_CPULIST", "IRQBALANCE_BANNED_CPUS") if k in values]
    return "".join(f'{key}="{scrubber.identifiers(values[key])}"\n' for key in kept if '"' not in values[key])


def _boot_entry(scrubber: Scrubber, _path: str, text: str) -> str:
    kept: list[str] = []
    for line in text.split("\n"):
        key, _, value = line.strip().partition(" ")
        if key == "options":
            kept.append(f"options {kernel_command_line(scrubber, value)}")
        elif key in ("title", "version", "linux", "initrd", "sort-key", "grub_class"):
            kept.append(scrubber.identifiers(line.strip(), addresses=False))
    return "".join(f"{line}\n" for line in kept)


def _config(_scrubber: Scrubber, _path: str, text: str) -> str:
    """Return those options of a kernel configuration whose value is a switch or a number. Strings are left out, because
    a string may hold a command line or a path."""
    return "".join(f"{line}\n" for line in text.split("\n") if _CONFIG_LINE.fullmatch(line))


_RULES: tuple[tuple[re.Pattern[str], Cleaner], ...] = tuple(
    (re.compile(pattern), cleaner)
    for pattern, cleaner in (
        (
            r"/(?:proc|etc/kernel)/cmdline$|/boot/firmware/cmdline\.txt$",
            lambda own, path, text: kernel_command_line(own, text) + "\n",
        ),
        (r"/proc/self/mountinfo$", _mountinfo),
        (r"/proc/(?:self|\d+|\d+/task/\d+)/stat$", _stat),
        (r"/proc/(?:self|\d+|\d+/task/\d+)/status$", _status),
        (r"/proc/(?:\d+|\d+/task/\d+)/comm$", lambda own, path, text: own.task_name(path, text.strip()) + "\n"),
        (r"/proc/(?:\d+|\d+/task/\d+)/sched$", _sched),
        (r"/proc/sys/kernel/hostname$", lambda own, path, text: f"{own.hostname or HIDDEN_NAME}\n"),
        (r"/proc/sys/kernel/random/boot_id$", lambda own, path, text: text),
        (
            r"/proc/sys/kernel/(?:osrelease|version)$|/proc/version$",
            lambda own, path, text: own.identifiers(text, addresses=False),
        ),
        (r"/(?:proc|sys)/", lambda own, path, text: own.identifiers(text, host=not _KERNEL_WORDS.match(path))),
        (r"/etc/default/grub(?:\.d/[^/]+)?$", _grub),
        (r"/etc/(?:default/irqbalance|sysconfig/irqbalance|irqbalance\.env)$", _irqbalance),
        (r"/(?:etc|usr/lib)/os-release$", _os_release),
        (r"/boot/loader/entries/[^/]+\.conf$", _boot_entry),
        (r"/boot/config-[^/]+$|/(?:usr/)?lib/modules/[^/]+/config$", _config),
        # Only the existence of these files is kept.
        (r"/(?:boot|efi|usr/s?bin|s?bin|run|etc/zipl\.conf$|\.dockerenv$)", lambda own, path, text: ""),
    )
)
"""Pattern of a path → the function that cleans the contents of such a file. The first matching pattern decides. A path
that no pattern matches is left out."""
