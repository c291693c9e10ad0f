"""Explain one check of a host's settings for ``status --explain ID``: the value, why the check matters, the risk of a
change, the way to restore it, and shell commands that show the value."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from jitter_workshop.model.record import dataclass
from jitter_workshop.model.status import Assessment, State
from jitter_workshop.model.text import LABEL, MOST_ENTRIES, PARAGRAPH, PATH, SENTENCE, clean
from jitter_workshop.tuning.base import Setting, Settings, Tunable, Unavailable
from jitter_workshop.tuning.context import Host

MARKS: dict[State, tuple[str, str, str]] = {
    "ok": ("✓", "ok", "good"),
    "improve": ("▲", "can be better", "attention"),
    "unavailable": ("–", "not here", "dim"),
    "info": ("·", "to know", "known"),
}
"""State of a check → mark, word, colour. Either the mark or the word is enough alone."""

SENTENCES = 1_000
"""The largest number of characters of a reason or an advice."""
_UNITS = {"stat-interval": "s", "compaction": "of 100"}
"""The id of a check whose value is a bare number → the unit of this number."""
_LISTS_OF_CPUS = ("watchdogs",)
"""The ids of the checks whose value is a list of CPUs."""
_FILES = 24
"""The largest number of files that are listed for a check; a pattern stands for the others."""

_RISKS = {"low": "low", "medium": "medium", "high": "high: understand the change before you apply it"}
_WHEN = {
    "runtime": "at once, until you restore the setting or reboot the host",
    "run": "for as long as a run lasts",
    "boot": "from the next boot on, until you restore the setting; with 'apply --next-boot' only for the next boot",
    "host": "when the owner of the hypervisor changes it",
    "report": "this tool reports the setting and does not change it",
}


@dataclass(frozen=True, slots=True)
class Explained:
    """Hold the full explanation of one check.

    ``facts``: (name, sentence that is not empty). ``files``: (path, its value now), with "" for a value that is not
    read. ``more_files``: the number of files that are not listed. ``by_hand``: commands that show the check's value.
    They name the host's own paths, also if the host is a recorded one.
    """

    facts: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str], ...]
    more_files: int
    by_hand: tuple[str, ...]


def explain_check(tunable: Tunable, check: Assessment, host: Host) -> Explained:
    """Return the full explanation of a check, with the present values of its files. ``check``: the assessment that
    ``tunable`` made of ``host``."""
    facts = [
        ("why", tunable.why),
        ("value now", clean(check.value, SENTENCE) if check.value is not None else "not known"),
    ]
    if check.wanted is not None:
        facts.append(("wanted", clean(check.wanted, SENTENCE)))
    facts += [("finding", clean(check.reason, PARAGRAPH)), ("to do", clean(check.fix, PARAGRAPH))]
    if tunable.values:
        facts.append(("values", tunable.values + (f" (without a value: {tunable.default})" if tunable.default else "")))
    facts += [("in effect", _WHEN[tunable.when])]
    if tunable.changes_host:
        facts += [("risk", _RISKS[tunable.risk]), ("danger", tunable.danger), ("restore", _restore(tunable))]
    if tunable.rewritten_by:
        facts.append(("rewritten by", ", ".join(tunable.rewritten_by)))
    facts.append(("document", tunable.document))
    settings: Sequence[Setting] = ()
    if isinstance(tunable, Settings):
        with contextlib.suppress(Unavailable):
            settings = tunable.settings(host, None)
    is_dir = host.root.is_dir
    # The files of a boot loader that this host does not have are left out.
    owns = [one for one in tunable.owns if not one.startswith("/boot/") or is_dir(one.rpartition("/")[0])]
    files = [(clean(s.path, PATH), _says(s)) for s in settings[:_FILES]] or [(pattern, "") for pattern in owns]
    paths = [s.path for s in settings[:MOST_ENTRIES]] or list(check.paths[:MOST_ENTRIES])
    shown = [clean(path, PATH) for path in paths if path.startswith("/")]
    by_hand = tuple(f"{'ls' if is_dir(path) else 'cat'} {path}" for path in shown)
    return Explained(
        tuple((name, text) for name, text in facts if text), tuple(files), max(len(settings) - _FILES, 0), by_hand
    )


def _restore(tunable: Tunable) -> str:
    if tunable.when == "boot":
        return (
            f"jitter-workshop restore {tunable.id} removes the parameters that apply added; the next boot then has "
            "the old parameters"
        )
    return (
        f"jitter-workshop restore {tunable.id} restores the earlier value, unless another program or user has changed "
        "the setting since"
    )


def _says(setting: Setting) -> str:
    """Return the value that a setting's file has now, or the reason why the value is not known."""
    return clean(setting.current if setting.current is not None else setting.reason, LABEL) or "(empty)"


def _with_unit(check: Assessment, value: str) -> str:
    """Return a check's value, safe for a terminal. A bare number has its unit, and a list of CPUs the word before
    it."""
    told = clean(value, SENTENCES)
    if not told[:1].isdigit():
        return told
    if check.id in _LISTS_OF_CPUS:
        return f"CPU{'' if told.isdigit() else 's'} {told}"
    return f"{told} {_UNITS[check.id]}" if check.id in _UNITS else told


def value_in_words(check: Assessment, before: str = "") -> str:
    """Return a check's value in words, with an arrow to the better value, if there is one.

    If the value is not known, return the better value alone. If there is no better value either, return the check's
    reason. For a check that only informs, the reason follows the value. ``before``: the reason that was shown last. If
    the check has the same reason, the words ``as above`` are shown instead.
    """
    reason = clean(check.reason, SENTENCES) if not before or check.reason != before else "as above"
    if check.value is None:
        return reason if check.state != "improve" else f"→ {clean(check.wanted, SENTENCES)}" if check.wanted else ""
    value = _with_unit(check, check.value)
    if check.state == "improve" and check.wanted is not None and check.wanted != check.value:
        return f"{value or 'not known'} → {_with_unit(check, check.wanted)}"
    if check.state == "info" and reason:
        return f"{value}; {reason}" if value else reason
    return value or reason
