"""Tell public task names from private ones: public are the kernel's threads in the forms in which it prints them, known
services, and the measured threads."""

from __future__ import annotations

import re

from jitter_workshop.host.services import SERVICE_TASKS
from jitter_workshop.model.evidence import IDLE, THROTTLED

_OWN = frozenset({"producer", "accumulator", "journaller", "sampler", "sleeper", "sender", "receiver"})
"""The measured threads: another program's task with such a name reveals nothing by it."""

_DEVICE = r"(?:(?:[shv]|xv)d[a-z]{1,2}\d*|nvme\d+n\d+(?:p\d+)?|dm-\d+|md\d+|mmcblk\d+(?:p\d+)?|loop\d+|sr\d+)"
_FORMS = (
    r"kworker/(?:u?\d+:\d+H?|R)(?:[-+].*)?",
    r"(?:ksoftirqd|migration|cpuhp|idle_inject|stopper|swapper|watchdog|irq_work|ktimers|posixcputmr|backlog_napi"
    r"|rcuc|rcub|rcuos|rcuop|rcuog|kvm-pit)/\d+",
    r"irq/\d+-.+",
    r"(?:kswapd|kcompactd|scsi_eh_|scsi_tmf_|loop|vhost-|kdamond\.)\d+",
    r"md\d+_(?:raid\d+|resync|recovery|reshape|check|cluster)",
    rf"jbd2/{_DEVICE}-\d*",
    rf"(?:xfsaild|f2fs_gc|f2fs_flush|f2fs_ckpt|xfs-[a-z]+|napi)/{_DEVICE}",
    r"rcu_(?:gp|par_gp|bh|sched|preempt|tasks_kthre(?:ad)?|tasks_rude_(?:kthread)?|tasks_trace(?:_kthread)?"
    r"|exp_gp_kthr(?:ead_worker)?|exp_par_gp_(?:kthread_worker)?(?:/\d+)?)",
    r"nvme-(?:wq|reset-wq|delete-wq|auth-wq)|kvm-nx-lpage-re(?:covery)?|ext4-rsv-conver(?:sion)?",
    r"pr/(?:tty[A-Z]*\d+|legacy|netcon\d+)|card\d+-crtc\d+|pool_workqueue_(?:release)?",
    r"btrfs-(?:cleaner|transacti(?:on)?)",
)
_WORDS = """
swapper kthreadd kauditd kdevtmpfs khungtaskd khugepaged ksmd oom_reaper writeback watchdogd kblockd psimon kintegrityd
kthrotld hwrng edac-poller devfreq_wq ata_sff mm_percpu_wq netns inet_frag_wq slub_flushwq blkcg_punt_bio ipv6_addrconf
zswap-shrink tpm_dev_wq kstrp md cryptd mld acpi_thermal_pm charger_manager
"""
_KERNEL = re.compile("|".join(f"(?:{form})" for form in _FORMS))
_KERNEL_WORDS = frozenset(_WORDS.split())


def is_private(task: str) -> bool:
    """Return True if a task's name may reveal a user's work: it is neither the kernel's, nor a service's, nor ours."""
    known = task in SERVICE_TASKS or task in _OWN or task in _KERNEL_WORDS or task in (IDLE, THROTTLED)
    return bool(task.strip()) and not known and _KERNEL.fullmatch(task) is None
