"""Tell which settings of earlier chapters are still applied while a chapter measures, and what they do to its runs."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.flow.chapters.kept_settings import KeptSetting, KeptSettings
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import ID, MOST_ENTRIES, WORD, capital, clean, many

GIVE_BACK = "Restore what earlier chapters have applied?"
"""The question before these settings are restored."""


def kept_in_short(kept: KeptSettings | None) -> str:
    """Return the settings and what they do to a run, for the list of what a run will be; "" for none."""
    if kept is None:
        return ""
    effects = _effects(kept)
    return f"{_listed(kept.settings)}{': ' if effects else ''}{'; '.join(effects)}"


def kept_told(kept: KeptSettings | None, key: str = "") -> str:
    """Return sentences on the settings and on what they do to a run; "" for none. ``key``: the key or word that gives
    them back; "" to leave this out."""
    if kept is None:
        return ""
    if len(kept.settings) == 1:
        (one,) = kept.settings
        origin, effect = f" (from {clean(one.title, ID)})" if one.title else "", _effects(kept)
        told = f"{_named(one)} is still applied{origin}{': ' if effect else ''}{'; '.join(effect)}."
    else:
        told = " ".join([f"Still applied: {_listed(kept.settings)}.", *(f"{capital(one)}." for one in _effects(kept))])
    what = "it" if len(kept.settings) == 1 else "them" if len(kept.to_give_back) > 1 else _first(kept)
    return f"{told} {_offer(kept, what, key)}" if key else told


def kept_in_brief(kept: KeptSettings | None, key: str) -> str:
    """Return :func:`kept_told` for a page whose list has the settings and what they do: of settings that hinder the
    run, only the offer to restore them first. The chapter's first page has told the reason."""
    if kept is None or not kept.hinders or not key:
        return kept_told(kept, key)
    return _offer(kept, _first(kept) if len(kept.to_give_back) == 1 else "these settings", key)


def _first(kept: KeptSettings) -> str:
    return clean(kept.to_give_back[0], ID)


def _offer(kept: KeptSettings, what: str, key: str) -> str:
    """Return the sentence that offers to restore settings. It proposes to do this first if they hinder the run."""
    if not kept.hinders:
        return f"Type '{key}' to restore {what}." if len(key) > 1 else f"{key} restores {what}."
    return f"For the lesson's result, restore {what} first: {f'type {key!r}' if len(key) > 1 else key}."


def _listed(settings: Sequence[KeptSetting]) -> str:
    """Return ``isolation of CPU 1 (from Isolation), irqbalance and irq-affinity (from Interrupts)``."""
    together: dict[str, list[str]] = {}
    for one in settings[:MOST_ENTRIES]:
        together.setdefault(one.title, []).append(_named(one))
    told = [f"{_and(names)} (from {clean(title, ID)})" if title else _and(names) for title, names in together.items()]
    left = len(settings) - MOST_ENTRIES
    return ", ".join([*told, *([many(left, "other setting")] if left > 0 else [])])


def _named(one: KeptSetting) -> str:
    value = f"={clean(one.value, WORD)}" if one.value else ""
    return f"{clean(one.ident, ID)}{f' of {_cpus(one.cpus)}' if one.cpus else value}"


def _effects(kept: KeptSettings) -> list[str]:
    """Return what the settings do to the run, as clauses."""
    told = []
    if kept.others_on:
        verb = "is" if len(kept.threads) == 1 else "are"
        where = f", where the {_and(kept.threads)} {verb}" if kept.threads else ""
        told.append(f"other tasks run on {_cpus(kept.others_on)}{where}")
    if kept.no_load:
        told.append("this chapter's load cannot run beside the measured thread")
    return told


def _cpus(cpus: CpuSet) -> str:
    return f"CPU{'' if len(cpus) == 1 else 's'} {cpus}"


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
