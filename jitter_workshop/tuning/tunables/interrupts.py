"""Define the tunables of interrupts: their affinities, and the service irqbalance, which moves interrupts."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.errors import UsageError
from jitter_workshop.host.irq.interrupts import read_interrupts
from jitter_workshop.host.irq.irq_affinity import (
    DEFAULT_AFFINITY,
    Irq,
    irq_number,
    read_default_affinity,
    read_effective,
    read_irqbalance_settings,
    read_irqs,
    read_movable,
)
from jitter_workshop.host.root import HostRoot, parse_integer, printable
from jitter_workshop.model.change import IRQ_AFFINITY, IRQ_HERE
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.irq_rows import is_device, is_managed
from jitter_workshop.model.status import Assessment
from jitter_workshop.model.text import MOST_ENTRIES, many
from jitter_workshop.tuning.base import Setting, Settings, Tunable, Unavailable, Write, left_for_the_rest
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables.single import one_of

MANAGED = "the driver has bound each of its queues to fixed CPUs"
FIXED = "the driver or the hardware has bound the interrupt to some CPUs, so the affinity's file is read-only"
_NAME = 24
"""The most characters of an interrupt's name that a sentence quotes."""
_PER_CPU = "every CPU has an interrupt of its own"


class IrqBalance(Tunable):
    id = "irqbalance"
    title = "irqbalance"
    why = (
        "Every ten seconds irqbalance checks where interrupts arrive and moves them, even onto hot CPUs. If you move "
        "an interrupt away from a hot CPU, irqbalance can move the interrupt back."
    )
    danger = "interrupts stay on their CPUs even if the load moves"
    document = "Documentation/core-api/irq/irq-affinity.rst"
    owns = ("systemd(irqbalance.service)",)

    def judge(self, host: Host) -> Assessment:
        service = host.services.find("irqbalance")
        if service is None and host.unseen:
            return self.answer("unavailable", None, host.unseen)
        if service is None:
            return self.answer("ok", "not running", "no service moves interrupts", wanted="not running")
        settings = read_irqbalance_settings(host.root)
        paths = (settings.path,) if settings.path else ()
        banned = self._banned(host)
        wanted = f"not running, or with these CPUs banned: {host.clear_words}"
        clear = host.kept_clear
        if clear and not clear - banned:
            reason = f"irqbalance runs, but leaves CPU {clear} alone"
            return self.answer("ok", f"running, bans {banned}", reason, wanted=wanted, paths=paths)
        reason = settings.reason or f"irqbalance runs and may move interrupts to CPU {clear - banned}"
        value = f"running, bans {banned}" if banned else "running"
        ban = f"IRQBALANCE_BANNED_CPULIST={clear}"
        if service.unit_active:
            place = f"{settings.path or '/etc/default/irqbalance'}{', without its mask' if settings.mask else ''}"
            fix = f"jitter-workshop apply {self.id}; or for good: {ban} in {place}"
            return self.answer("improve", value, reason, wanted=wanted, paths=paths, fix=fix)
        pids = ",".join(map(str, service.pids[:MOST_ENTRIES]))
        return self.answer(
            "info",
            value,
            f"{reason}; systemd did not start irqbalance, so this tool cannot stop it",
            wanted=wanted,
            paths=paths,
            fix=f"stop irqbalance (process {pids}) with the tool that started it, or start it with {ban}",
        )

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        service = host.services.find("irqbalance")
        if service is None or (host.kept_clear and not host.kept_clear - self._banned(host)):
            return ()
        if not service.unit_active:
            raise Unavailable("irqbalance runs, but systemd does not run it: stop irqbalance by hand")
        return (Write(self.owns[0], "active", "inactive", "unit"),)

    def stays(self, host: Host, value: str | None) -> str:
        return "irqbalance does not run" if host.services.find("irqbalance") is None else super().stays(host, value)

    def _banned(self, host: Host) -> CpuSet:
        isolation = host.isolation
        return read_irqbalance_settings(host.root).bans(isolation.isolated | (isolation.nohz_full or CpuSet()))


class IrqAffinity(Settings):
    id = IRQ_AFFINITY
    title = "Interrupts"
    why = (
        "An interrupt takes a few microseconds from the task on its CPU; in a guest often tens, because its handler "
        "may have to wait for the hypervisor. A softirq after the interrupt takes many more. A device works equally "
        "well with any CPU that handles its interrupt."
    )
    danger = "the other CPUs handle all devices; a CPU that comes online later handles no new interrupts"
    document = "Documentation/core-api/irq/irq-affinity.rst"
    owns = ("/proc/irq/*/smp_affinity_list", DEFAULT_AFFINITY)
    values = "all (also tries interrupts that usually cannot be moved)"
    rewritten_by = ("irqbalance", "tuned")
    good = "every interrupt that can be moved stays off the hot CPUs"

    def judge(self, host: Host) -> Assessment:
        settings = self.settings(host, None)
        stay = [s for s in settings if s.refuses]
        movable = [s for s in settings if not s.refuses]
        why = ", or ".join(dict.fromkeys(s.refuses for s in stay))
        there = sum(1 for s in stay if (read_effective(host.root, irq_number(s.path)) or CpuSet()) & host.kept_clear)
        arrive = f", {there} of them {'arrives' if there == 1 else 'arrive'} there" if there else ""
        arrive = " and arrives there" if len(stay) == there == 1 else arrive
        refused = f"{len(stay)} cannot be moved{arrive}: {why}" if stay else ""
        devices = [s for s in movable if s.path != DEFAULT_AFFINITY]
        value = f"{many(len(devices) + len(stay), 'interrupt')} may use {host.clear_words}"
        wanted = f"{many(len(stay), 'interrupt')}, which cannot be moved" if stay else f"all on CPU {host.housekeeping}"
        if not movable:
            return self.answer("ok", value, "; ".join(filter(None, (self.good, refused))), wanted=wanted)
        now = sum(1 for s in devices if (read_effective(host.root, irq_number(s.path)) or CpuSet()) & host.kept_clear)
        arrive = f"{now or 'none'} of these {'arrives' if now == 1 else 'arrive'} there now"
        reason = f"{many(len(devices), 'interrupt')} can be moved off CPU {host.kept_clear}; {arrive}"
        if not devices:
            wanted = f"those of new devices on CPU {host.housekeeping}" if stay else wanted
            reason = f"interrupts of new devices would arrive on CPU {host.kept_clear}"
        return self.answer(
            "improve",
            value,
            "; ".join(filter(None, (reason, refused, self._busy(host, settings)))),
            wanted=wanted,
            paths=[s.path for s in movable[: self.shown_paths]],
        )

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        left_for_the_rest(host)
        irqs = read_irqs(host.root)
        default = read_default_affinity(host.root)
        if not irqs and default is None:
            raise Unavailable("this host shows no interrupts in /proc/irq")
        found = []
        # Newer kernels show fixed interrupts as read-only; then their names need not be read.
        movable = {irq.number: read_movable(host.root, irq.number) for irq in irqs if irq.name}
        marked = False in movable.values()
        if default is not None and default & host.kept_clear:
            mask = mask_like(host.instead_of(default), host.root.text(DEFAULT_AFFINITY) or "")
            found.append(Setting(DEFAULT_AFFINITY, host.root.text(DEFAULT_AFFINITY), mask, "cpu-mask"))
        told: dict[CpuSet, tuple[str, str] | None] = {}
        for irq in irqs:
            # Interrupts that are not in use yet follow the default when a driver requests them.
            if not irq.name or (allowed := irq.affinity) is None:
                continue
            if allowed not in told:
                # Thousands of interrupts have the same few masks.
                told[allowed] = (str(allowed), str(host.instead_of(allowed))) if allowed & host.kept_clear else None
            if (texts := told[allowed]) is not None:
                stays = "" if marked and movable[irq.number] is None else why_fixed(host.root, irq)
                found.append(Setting(irq.path, texts[0], texts[1], "cpu-list", refuses=stays))
        return found

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        if value is not None:
            one_of(self, value, ("all",))
        return [
            Write(s.path, s.current or "", s.wanted, s.kind)
            for s in self.settings(host, value)
            if value == "all" or not s.refuses
        ]

    def stays(self, host: Host, value: str | None) -> str:
        return "" if value == "all" else super().stays(host, value)

    def held(self, host: Host) -> str:
        """Return the reason why the change has little effect on this host. The reason is that most interrupts on the
        hot CPUs since boot cannot be moved. Return "" if this is not so.
        """
        return self._busy(host, self.settings(host, None))

    def _busy(self, host: Host, settings: Sequence[Setting]) -> str:
        """Return a sentence on those interrupts of the hot CPUs that cannot be moved. The sentence names the most
        frequent of them.

        Return "" if such interrupts are at most half of the device interrupts on the hot CPUs since boot. ``settings``:
        the result of :meth:`settings`.
        """
        if not any(setting.refuses for setting in settings):
            return ""
        table = read_interrupts(host.root)
        movable, fixed = 0, {}
        for setting in settings:
            key = "" if setting.path == DEFAULT_AFFINITY else str(irq_number(setting.path))
            row = table.get(key)
            if row is None or not is_device(key, row.name):
                continue
            count = sum(row.per_cpu.get(str(cpu), 0) for cpu in host.kept_clear)
            if not setting.refuses:
                movable += count
            elif count:
                fixed[setting.path] = (count, row.name)
        all_fixed = sum(count for count, _ in fixed.values())
        if all_fixed <= movable:
            return ""
        name = printable(max(fixed.values())[1], _NAME)
        from_where = f"{name}, which cannot be moved"
        if len(fixed) > 1:
            from_where = f"{len(fixed)} that cannot be moved, most from {name}"
        share = 100 * all_fixed // (all_fixed + movable)
        return f"{share} % of the device interrupts on {host.kept_clear.named} came from {from_where}"


class IrqHere(Settings):
    id = IRQ_HERE
    title = "An interrupt to the hot CPU"
    why = (
        "To show the cost of an interrupt, the chapter on interrupts has one device interrupt the hot CPU. The chapter "
        "restores the affinity after one run. After the verb apply, the affinity stays until 'restore'."
    )
    danger = "the interrupt takes time from the task on the hot CPU, on x86 even after the restore"
    document = "Documentation/core-api/irq/irq-affinity.rst"
    owns = ("/proc/irq/*/smp_affinity_list",)
    values = "the number of one device interrupt that can be moved"

    def judge(self, host: Host) -> Assessment:
        reason = "the chapter on interrupts uses this for one run; it is no improvement"
        raise Unavailable(reason, info=True, paths=())

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        """Return the affinity of the interrupt ``value``, with the hot CPUs as the wanted value. Raise UsageError if
        ``value`` is not the number of a device interrupt. Raise Unavailable without a value, if no CPU is hot, or if
        every CPU is hot.
        """
        left_for_the_rest(host)
        if value is None:
            raise Unavailable(f"{self.id} needs the number of an interrupt: {self.id}=NUMBER", info=True)
        number = parse_integer(value)
        found = read_irqs(host.root, () if number is None or str(number) != value else (number,))
        if not found or not found[0].name or found[0].affinity is None:
            said = printable(value, _NAME)
            raise UsageError(f"{self.id} cannot be '{said}': no device of this host has such an interrupt")
        irq = found[0]
        return (Setting(irq.path, str(irq.affinity), str(host.hot), "cpu-list", refuses=why_fixed(host.root, irq)),)


def why_fixed(root: HostRoot, irq: Irq) -> str:
    """Return the reason why the kernel will not move this interrupt, judged by its name and by its affinity's file; ""
    if no reason is known."""
    return refuses(irq) or (FIXED if read_movable(root, irq.number) is False else "")


def refuses(irq: Irq) -> str:
    """Return the reason why the kernel will not move this interrupt, judged by its name; "" if no reason is known.

    The kernel does not name managed interrupts (``IRQD_AFFINITY_MANAGED``) in /proc or /sys. debugfs does, but only to
    root, and only if the kernel was built with ``CONFIG_GENERIC_IRQ_DEBUGFS``. The queues of most block devices are
    known to be managed.
    """
    name = irq.name
    if is_managed(name):
        return MANAGED
    if name in ("timer", "cascade", "rtc-timer") or not is_device(str(irq.number), name) or name.startswith("IPI"):
        return _PER_CPU
    return ""


def in_cpus(mask: str) -> str:
    """Return the CPUs of a hex mask in words, such as ``CPUs 0-1`` for ``3``. If the text is not a mask, return it
    unchanged."""
    try:
        cpus = CpuSet.parse_mask(mask)
    except ValueError:
        return mask
    return cpus.named if cpus else "no CPU"


def mask_like(cpus: CpuSet, like: str) -> str:
    """Return ``cpus`` as a hex mask with as many digits as ``like``, a mask that the kernel wrote."""
    full = cpus.to_mask(groups=like.count(",") + 1)
    short = full[-len(like) :] if like else full
    return short if CpuSet.parse_mask(short) == cpus else full
