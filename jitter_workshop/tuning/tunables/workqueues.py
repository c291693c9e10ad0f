"""Define the tunable that decides which CPUs run deferred kernel work (workqueues)."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.base import Setting, Settings, Unavailable, left_for_the_rest
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables.interrupts import in_cpus, mask_like

FOLDER = "/sys/devices/virtual/workqueue"


class WorkqueueMask(Settings):
    id = "workqueue-mask"
    title = "Workqueues"
    why = (
        "Kernel workers do the work of drivers and filesystems that may sleep. Unbound workers, such as those that "
        "write files to disk, run on any free CPU. A mask keeps them off the hot CPUs and their siblings."
    )
    danger = "the mask has no effect on per-CPU workqueues"
    document = "Documentation/core-api/workqueue.rst"
    owns = (f"{FOLDER}/cpumask", f"{FOLDER}/*/cpumask")
    rewritten_by = ("tuned",)
    good = "unbound kernel work stays off the hot CPUs"
    bad = "the workers may run on {clear} ({current})"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        left_for_the_rest(host)
        # From 6.8 the mask that was asked for is shown as well, before isolated partitions are subtracted.
        wish = f"{FOLDER}/cpumask_requested"
        everyone = host.root.cpu_mask(wish)
        if everyone is None:
            wish = f"{FOLDER}/cpumask"
            everyone = host.root.cpu_mask(wish)
        if everyone is None:
            raise Unavailable("this kernel shows no masks of workqueues (CONFIG_SYSFS and an unbound workqueue)")
        found = [_setting(host, f"{FOLDER}/cpumask", everyone, host.root.text(wish) or "", "workqueue-mask")]
        for name in host.root.list_dir(FOLDER):
            path = f"{FOLDER}/{name}/cpumask"
            text = host.root.text(path)
            if text is None:
                continue
            try:
                found.append(_setting(host, path, CpuSet.parse_mask(text), text, "cpu-mask"))
            except ValueError:
                found.append(Setting(path, None, "", reason="the file holds no CPU mask"))
        return found

    def shown(self, value: str) -> str:
        return in_cpus(value)


def _setting(host: Host, path: str, cpus: CpuSet, text: str, kind: str) -> Setting:
    """Return the setting of a workqueue mask. The wanted mask is the current mask without the CPUs that should get no
    background work.
    """
    wanted = mask_like(host.instead_of(cpus), text) if cpus & host.kept_clear else text
    return Setting(path, text, wanted, kind)
