"""Test the words on settings of earlier chapters that are still applied."""

from __future__ import annotations

from jitter_workshop.flow.chapters.kept_settings import KeptSetting, KeptSettings
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.presenter.course.kept_settings import kept_in_brief, kept_in_short, kept_told

ISOLATION = KeptSetting("isolation", "", "Isolation", CpuSet((1,)))
IRQ = (KeptSetting("irqbalance", "", "Interrupts"), KeptSetting("irq-affinity", "", "Interrupts"))
THP = KeptSetting("thp", "never", "")
DIVIDED = KeptSettings((ISOLATION,), CpuSet((0,)), ("producer",), divided=True)


def test_nothing_is_said_without_a_setting() -> None:
    assert (kept_in_short(None), kept_told(None, "u")) == ("", "")


def test_one_setting_is_told_with_its_effect_on_the_run() -> None:
    assert kept_in_short(DIVIDED) == (
        "isolation of CPU 1 (from Isolation): other tasks run on CPU 0, where the producer is"
    )
    told = "isolation of CPU 1 is still applied (from Isolation): other tasks run on CPU 0, where the producer is."
    assert kept_told(DIVIDED) == told
    assert kept_told(DIVIDED, "u") == f"{told} For the lesson's result, restore it first: u."
    assert kept_told(KeptSettings((THP,)), "u") == "thp=never is still applied. u restores it."
    # The page with a list of the settings needs the offer alone, if they hinder the run.
    assert kept_in_brief(DIVIDED, "u") == "For the lesson's result, restore isolation first: u."
    assert kept_in_brief(DIVIDED, "") == told
    assert kept_in_brief(KeptSettings((THP,)), "u") == "thp=never is still applied. u restores it."


def test_several_settings_are_listed_by_their_chapters() -> None:
    both = KeptSettings((ISOLATION, *IRQ, THP), CpuSet((0, 2)), ("producer", "accumulator"))
    assert kept_told(both, "restore") == (
        "Still applied: isolation of CPU 1 (from Isolation), irqbalance and irq-affinity (from Interrupts), thp=never. "
        "Other tasks run on CPUs 0,2, where the producer and accumulator are. Type 'restore' to restore them."
    )
    hindered = KeptSettings((ISOLATION, THP), CpuSet((0,)), no_load=("isolation",))
    assert kept_told(hindered, "u").endswith(
        "This chapter's load cannot run beside the measured thread. "
        "For the lesson's result, restore isolation first: u."
    )
    assert "2 other settings" in kept_in_short(KeptSettings((ISOLATION, *IRQ, THP, THP, THP)))
