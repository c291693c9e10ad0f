"""Test the settings that a chapter explains but does not change: its pages name them, and the status leads there."""

from __future__ import annotations

import pytest

from jitter_workshop.course.loader import load_course
from jitter_workshop.flow.host_ops.host_status import treating
from jitter_workshop.model.course import Chapter
from jitter_workshop.tuning.tunables import registry

SPOKEN_OF = {
    "governor": {
        "epp": "**energy preference**",
        "min-frequency": "**lowest frequency**",
        "boost": "**The plan does not change boost**",
        "uncore-frequency": "Intel's *uncore*",
        "competing-tuners": "`tuned`",
        "epb": "energy bias (EPB)",
        "platform-profile": "*platform profile*",
        "mains": "the battery",
    },
    "isolation": {
        "isolcpus": "isolcpus=",
        "user-tasks": "tasks that can run on another CPU",
        "services": "Unneeded services",
        "cpu-max": "`cpu.max`",
        "smt": "**Siblings.**",
        "nosmt": "`nosmt`",
    },
    "interrupts": {
        "rps-xps": "**rps_cpus**",
        "irqaffinity": "`irqaffinity=LIST`",
        "rcu-expedite": "expedited RCU",
        "irq-here": "sends the device's interrupt to your CPU",
    },
    "workqueues": {
        "kernel-threads": "apply kernel-threads",
        "watchdogs": "watchdog_cpumask",
        "nmi-watchdog": "`kernel.nmi_watchdog`",
        "nowatchdog": "`nowatchdog`",
        "mce-interval": "`check_interval`",
    },
    "temperature": {"temperature": "**temperature**", "throttling": "**throttle count**"},
    "idle-states": {
        "pm-qos-fd": "/dev/cpu_dma_latency",
        "pm-qos-resume": "pm_qos_resume_latency_us",
        "haltpoll": "`haltpoll`",
        "max-cstate": "max_cstate=",
        "idle-poll": "`idle=poll`",
    },
    "tick": {
        "timer-migration": "`kernel.timer_migration`",
        "skew-tick": "`skew_tick=1`",
        "rcu-nocb-poll": "`rcu_nocb_poll`",
        "hotplug": "**Offline and back.**",
    },
    "memory": {
        "thp": "(`thp`)",
        "ksm": "(`ksm`)",
        "numa-balancing": "(`numa-balancing`)",
        "compaction": "(`compaction`)",
        "writeback": "(`writeback`)",
        "swap": "(`swap`)",
        "zone-reclaim": "`vm.zone_reclaim_mode`",
        "memory-nodes": "**Use near memory**",
        "locked-memory": "mlockall",
        "stat-interval": "(`stat-interval`)",
    },
    "realtime": {
        "rt-throttling": "sched_rt_runtime_us",
        "deadline-server": "**deadline server**",
        "preempt-mode": "`voluntary`",
        "preempt": "`preempt=full`",
        "kernel-flavour": "**PREEMPT_RT**",
        "sched-autogroup": "sched_autogroup_enabled",
    },
    "hypervisor": {
        "steal": "**steal**",
        "smi": "SMI",
        "hypervisor": "**A hypervisor.**",
        "tsc-watchdog": "*clocksource watchdog*",
        "tsc-reliable": "`tsc=reliable`",
        "tracing": "A tracer that",
        "clock-source": "**clock source**",
    },
    "ack-intervals": {
        "network-card": "(coalescing)",
        "napi": "NAPI",
        "pcie-aspm": "(ASPM)",
        "iommu": "**IOMMU**",
        "iommu-pt": "`iommu=pt`",
    },
    "caches": {"resctrl": "**On the host resctrl can divide caches and bandwidth**"},
    "system-calls": {"mitigations": "Mitigations of processor flaws"},
}


@pytest.mark.parametrize("chapter", [c for c in load_course().chapters if c.treats], ids=lambda c: str(c.id))
def test_the_pages_of_a_chapter_speak_of_the_checks_that_it_treats(chapter: Chapter) -> None:
    words = SPOKEN_OF[chapter.id]
    assert set(chapter.treats) == set(words)
    text = " ".join(" ".join(chapter.pages.values()).split())
    for ident, word in words.items():
        registry.find_tunable(ident)
        assert word in text, ident


def test_findings_lead_to_the_chapter_that_sets_them_and_else_to_the_one_that_treats_them() -> None:
    course = load_course()
    treated = {ident: chapter_id for ident, (chapter_id, _) in treating(course).items()}
    for chapter in course.chapters:
        for word in chapter.tunables:
            assert treated[word.partition("=")[0]] == chapter.id
    for chapter_id, words in SPOKEN_OF.items():
        assert {treated[ident] for ident in words} == {chapter_id}


def test_every_tunable_is_in_a_chapter_or_says_why_not() -> None:
    treated = treating(load_course())
    for tunable in registry.tunables():
        assert (tunable.id in treated) != bool(tunable.untaught), tunable.id
        assert not tunable.untaught or tunable.untaught.endswith("."), tunable.id


def test_texts_shown_on_a_recording_point_at_no_missing_counts() -> None:
    """The answers and the page of compare are shown where nothing was counted, too."""
    tick = load_course().chapter("tick")
    assert tick is not None
    assert tick.prediction is not None
    assert tick.pages["compare"].startswith("If both runs were measured on your host,")
    for answer in tick.prediction.answers:
        assert "below" not in answer.explanation
        assert "count" not in answer.explanation or "If the second run was measured, " in answer.explanation


def test_a_chapter_that_sets_two_tunables_says_why_one_is_not_enough() -> None:
    both = {c.id: c.pages["apply"] for c in load_course().chapters if len(c.tunables) > 1}
    assert set(both) == {"interrupts", "tick"}
    for ident, page in both.items():
        assert "because" in page.split("\n\n")[0], ident
    said = " ".join(both["interrupts"].split())
    assert "Otherwise it could move the interrupts back" in said, "why irqbalance"
    assert "Without this part, interrupts stay where they are" in said, "why irq-affinity"
