"""Show the path (the list of chapters), and beside it the facts about the host.

The first screen and the plain walk use this module. The first screen imports no other module with texts on chapters, so
that it opens fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from shlex import quote

from jitter_workshop.host.summary import steal_words
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import HostSummary
from jitter_workshop.model.session import Session
from jitter_workshop.model.text import ID, LABEL, SHORT, WORD, clean, many
from jitter_workshop.model.verdict import VerdictWord
from jitter_workshop.model.walk import CHANCE_WORDS, Chance, OwnLatency, OwnResult, PathEntry, RunCurve
from jitter_workshop.presenter.text.lines import Lines, labelled, small_title
from jitter_workshop.presenter.text.styled import Text

PATH_HEADINGS = {
    "here": "PATH FOR THIS HOST",
    "recording": "ON A RECORDING · each can be opened",
    "neither": "NOT ON THIS HOST AS IT IS",
    "left_out": "NOT IN THIS CLASS",
}
"""State of a group of chapters on the path → the heading above the group."""

_AXES = "Latency by percentile"
_KIND, _KIND_OR_RESULT = "on this host", "your result"
_BETWEEN_RUNS: dict[OwnLatency, str] = {
    "better": "good",
    "worse": "bad",
}
"""Result of the learner's two runs → its style, if it is not plain."""
_PROVEN: dict[VerdictWord, tuple[str, str]] = {
    "lower": ("proof: lower", "good"),
    "higher": ("proof: higher", "bad"),
    "no_change": ("proof: no change", "text"),
    "cannot_tell": ("proof: cannot tell", "text"),
}
"""Verdict of a chapter's proof → its words and their style."""
_COUNT_MOVED = "did its work"
_UNCLEAR: dict[OwnLatency, str] = {
    "no clear change": "latency has no clear change",
    "not decided": "their latency is not decided, another cause changed",
    "not compared": "their latency was not compared",
    "not comparable": "their latency is not comparable",
}
"""Result without a verdict on latency → the words that explain it beside a count that moved."""

RESTORED = "↩"
"""The line-by-line sign of a setting that was in effect in the chapter's second run, and was restored or ended
afterwards."""

_CHANCE_MEANS: dict[Chance, str] = {
    "moves": "a forecast, from the lesson's trials and this host's facts",
    "measures": "it changes nothing",
    "counts": "the forecast is a lower count, but no lower latency",
    "good": "nothing is left to change",
    "rights": "its change needs root's rights",
}
"""Words on the path that need an explanation → their meaning. If a chapter cannot show its change or has to wait, its
own text says why."""

_OF_RUN = "set for its run only"
"""The words for a setting that is a placement, which ends with its run."""
_GUESS_OPEN = "guess not judged yet"

_WHY_LATER = "a CPU is isolated", "dim"
"""The words and their style behind those for a chapter that must wait: our own isolation is the only reason for it."""
_LOUD: dict[Chance, str] = {"moves": "text", "counts": "text", "measures": "text", "reads": "text"}

WHAT_THIS_IS = "Measure what makes programs late on Linux, name it, change it, compare."
"""The sentence that tells a newcomer what the workshop is; the first screen shows it until a chapter is begun."""

_NO_RUN = "there was no run to learn from"
ONLY_READ = f"only read (◐): {_NO_RUN}"
"""The words for a chapter that the learner has read on a recording, without any run of it."""
HALF_DOT = f"before a chapter: done, but only read; {_NO_RUN}"
"""The meaning of ◐ in a list of chapters that has no sign for a begun chapter."""

_SESSION = 30
"""The most characters of a session's name that are shown."""
_HOST_COLUMN = 34
"""The least width of a column of facts about a host."""


def path_words(path: Sequence[PathEntry]) -> str:
    """Return the phrases that say what the chapters can show on this host, or have shown, each once. The glossary
    searches this text for its terms.
    """
    return " · ".join(dict.fromkeys(kind_or_result(entry)[0] for entry in path if entry.here))


def home_chart_title(own: RunCurve | None, published: bool, key: str) -> str:
    """Return the sentence above home's chart. It names the axes and the curves, and says if these have one clock.

    ``own``: the learner's curve, if one is drawn. ``published``: True if the published curve is drawn, which counts
    from the sending of a message. ``key``: the key that makes the learner's first run; "" if no key does so.
    """
    if own is None:
        return f"{_AXES}: a laptop of 2015{f'; {key} draws yours' if key else ''}."
    if not published:
        return f"{_AXES}: your run."
    if clock := one_clock_told(own):
        return f"{_AXES}. Not comparable: yours counts {clock}, the laptop's from its sending."
    return f"{_AXES}: your run beside a laptop of 2015. Comparable: both count from a message's sending."


def one_clock_told(own: RunCurve) -> str:
    """Return the words for the moment from which a learner's curve counts, if the published curve counts from another
    one; else ""."""
    if own.run is not None and own.run.by_handoff:
        return "from a message's publication"
    return "from when a message was due" if own.from_due else ""


def kind_heading(path: Sequence[PathEntry]) -> str:
    """Return the title of the column with the words of :func:`kind_or_result`."""
    return _KIND_OR_RESULT if any(entry.result is not None for entry in path) else _KIND


def kind_or_result(entry: PathEntry) -> tuple[str, str]:
    """Return the words for what a chapter can show on this host, and their style. After the chapter's two runs, return
    the learner's own result instead; after a proof, the proof's verdict."""
    own = entry.result
    if own is None:
        return CHANCE_WORDS[entry.chance], _LOUD.get(entry.chance, "dim")
    if own.proof is not None:
        return _PROVEN[own.proof]
    if own.latency == "alike":
        return _apart_told(own.apart, few=own.few), "text"
    if own.figure and own.latency in _UNCLEAR:
        return _COUNT_MOVED, "text"
    return own.latency, _BETWEEN_RUNS.get(own.latency, "text")


def _apart_told(factor: float | None, *, few: bool = False) -> str:
    """Return by how much two runs without a change differ, in a few words: ``runs differ 41 %``. ``factor``: None if
    too few events were counted for a factor. ``few``: True for a figure of few stalls, which gets the usual mark."""
    if factor is None:
        return "two equal runs"
    # Before two runs are judged, home needs none of these modules.
    from jitter_workshop.flow.measuring.unchanged import factor_told
    from jitter_workshop.stats.effect import ALIKE

    return "runs agree" if factor < ALIKE else f"runs differ {'~' if few else ''}{factor_told(factor)}"


def _result_means(own: OwnResult) -> str:
    """Return the words that explain the learner's own result of a chapter."""
    if own.proof is not None:
        return "by your proof, better evidence than two runs"
    if own.latency == "alike":
        few = "; ~ fewer than ten stalls beyond it" if own.few else ""
        few = few if own.apart is not None else "; too few stalls to say how far they differ"
        return f"by {own.judge}{' of ' if own.judge else ''}your two runs; nothing was changed between them{few}"
    if own.latency == "not read":
        return "no kept report is of this version; the step compare reads the traces"
    if own.latency == "difference seen":
        return "by your two runs; they were made in two ways, so neither is better"
    if own.figure is None:
        return "by your two runs"
    if own.figure:
        return f"by your two runs; {_UNCLEAR.get(own.latency, 'the count moved as expected')}"
    return "by your two runs; the count did not move as expected"


def unclear_told(own: OwnResult) -> str:
    """Return the words on latency that belong behind a count that moved, if the two runs have no verdict on latency;
    else ""."""
    return _UNCLEAR.get(own.latency, "") if own.figure and own.proof is None else ""


def left_out_told(path: Sequence[PathEntry], following: PathEntry) -> str:
    """Return the sentence on chapters that stand before the next one on the path and are not done; "" for none."""
    at = next((n for n, one in enumerate(path) if one.chapter_id == following.chapter_id), 0)
    count = sum(one.here and one.in_class and not one.done for one in path[:at])
    return f"{many(count, 'chapter')} before it {'is' if count == 1 else 'are'} not done." if count else ""


def finished_told(entry: PathEntry) -> str:
    """Return the sentences on a chapter that was just finished: the learner's result, and how to see it again."""
    result = f": {kind_or_result(entry)[0]}" if entry.result is not None else ""
    see = "it again; b goes back to its result" if result else "it again"
    return f"'{clean(entry.title, ID)}' is done{result}. Enter on its row opens {see}."


def is_new(path: Sequence[PathEntry]) -> bool:
    """Return True if no chapter of the path was begun."""
    return not any(entry.started or entry.done for entry in path)


def mark(value: bool | None, *, beside: bool = False) -> str:
    """Return ✓ for True, ✗ for False, and · for None (not decided yet). ``beside``: True for a guess beside the right
    answer, which has ≈."""
    return "≈" if beside else {True: "✓", False: "✗", None: "·"}[value]


def guess_sign(near: bool | None, *, beside: bool) -> str:
    """Return the sign of a judged guess before its outcome: ``✓``, ``≈ near:`` or ``✗``, each with a blank. Return ""
    if it is not judged. ``beside``: as in :func:`mark`."""
    return "" if near is None else f"{mark(near, beside=beside)}{' near:' if beside else ''} "


def minutes_told(entry: PathEntry) -> str:
    """Return how long a chapter takes, ``about 7 min``. The minutes are those of a whole chapter, so a chapter that was
    begun takes them "in all". Return "" for a chapter without an estimate."""
    return f"about {entry.minutes} min{' in all' if entry.started else ''}" if entry.minutes else ""


def progress_signs(entry: PathEntry) -> tuple[str, str, str]:
    """Return three signs of a chapter's progress: for its setting, its curve and its guess. ``–`` stands for a setting,
    a curve or a guess that the chapter does not have."""
    guess = mark(entry.guess, beside=entry.beside)
    setting = "–" if entry.setting is None else RESTORED if entry.restored else mark(entry.setting or None)
    return setting, mark(entry.curve or None) if entry.measures else "–", guess if entry.asks else "–"


def state_sign(entry: PathEntry) -> str:
    """Return the sign in front of a chapter: ● done, ◐ begun, ○ not begun, ◌ not to be done on this host."""
    earned = entry.done and not entry.only_read
    return "●" if earned else "◐" if entry.started else "○" if entry.here else "◌"


def guess_told(entry: PathEntry) -> tuple[str, str]:
    """Return in words how the learner's guess ended, and the style of these words; ("", "") before it is judged. A
    wrong guess is no fault, so it is not red."""
    if not entry.asks or entry.guess is None:
        return "", ""
    right, wrong = ("noise named", "noise not named") if entry.hunts else ("guess right", "guess wrong")
    return (right, "good") if entry.guess else ("guess near" if entry.beside else wrong, "dim")


def result_told(entry: PathEntry) -> list[tuple[str, str]]:
    """Return the words of a chapter's row behind its minutes, each with its style: what the chapter can show here and
    why not yet, or the learner's result, and how the guess ended. A judged guess takes the place of a forecast. Behind
    a result only a right guess is told: of another one, :func:`row_told` tells under the cursor."""
    guess = guess_told(entry)
    if entry.result is not None:
        return [kind_or_result(entry), *([guess] if entry.guess and guess[0] else [])]
    if guess[0]:
        return [guess]
    return [kind_or_result(entry), *([_WHY_LATER] if entry.chance == "later" else [])]


def row_told(entry: PathEntry) -> str:
    """Return in words what the learner has made in a chapter. Return "" if it is nothing, or if this host cannot do the
    chapter."""
    if not entry.here:
        return ""
    setting = _OF_RUN if entry.places else "setting restored" if entry.restored else "setting changed"
    waits = entry.guess is None and entry.guessed and entry.asks
    made = (
        setting if entry.setting else "",
        "curve made" if entry.curve and entry.measures else "",
        _GUESS_OPEN if waits else guess_told(entry)[0],
    )
    return ", ".join(filter(None, made))


def subject_told(entry: PathEntry, *, minutes: bool = True) -> str:
    """Return a line about the chapter under the cursor. The line says what the chapter can show on this host, or what
    it has shown, how many minutes it takes, and what it is about. ``minutes``: False to leave out the minutes, which a
    row of the path has."""
    own = entry.result
    means = _result_means(own) if own is not None else entry.held or _CHANCE_MEANS.get(entry.chance)
    word = kind_or_result(entry)[0]
    word = f"{word}: {means}" if means else word
    first = [word] if entry.here else [ONLY_READ] if entry.only_read else []
    return " · ".join([*first, *([f"{entry.minutes} min"] if minutes else []), entry.summary])


def reason_told(entry: PathEntry) -> str:
    """Return the reason why a chapter cannot be done on this host. If the learner has only read the chapter, say so
    first."""
    return " · ".join([*([ONLY_READ] if entry.only_read else []), entry.reason])


def session_told(session: Session, others: Sequence[Session]) -> tuple[str, str]:
    """Return a text on the open session and the other sessions, and the style of this text. Return ("", "") if there
    are no other sessions. If the open session is new and without runs, the text names a session with runs."""
    if not others:
        return "", ""
    name, more = clean(session.name, _SESSION), len(others) - 1
    measured = next((one for one in others if one.runs), None)
    if measured is not None and not session.runs:
        there, count = clean(measured.name, _SESSION), len(measured.runs)
        kept, them = ("is", "it") if count == 1 else ("are", "them")
        return (
            f"Session '{name}' is new; {many(count, 'run')} {kept} kept: --session {quote(there)} opens {them}",
            "accent",
        )
    first = f"{clean(others[0].name, _SESSION)} ({many(len(others[0].runs), 'run')})"
    besides = f", {more} more" if more else ""
    which = "another" if not more else "others"
    return f"Session '{name}' · {which}: {first}{besides} · --session NAME opens it", "dim"


def host_column(host: HostSummary, width: int) -> Lines:
    """Return the facts about a host for a wide terminal, in one column, or in two side by side if these fit."""
    facts = (
        ("host", clean(host.name, ID)),
        ("kernel", clean(host.kernel, LABEL)),
        ("CPU", clean(host.cpu_model, LABEL) if host.cpu_model else "not shown here"),
        ("guest of", clean(host.hypervisor, SHORT) if host.hypervisor else "no hypervisor seen"),
        ("CPUs", f"{len(host.cpus_allowed)} of {len(host.cpus_online)} ours"),
        ("isolated", str(CpuSet(host.isolated)) or "none"),
        ("nohz_full", str(CpuSet(host.nohz_full)) or "none"),
        ("governor", ", ".join(clean(g, WORD) for g in host.governors) or "no cpufreq"),
        ("idle driver", clean(host.cpuidle_driver, SHORT) if host.cpuidle_driver else "none"),
        ("clock", clean(host.clocksource, SHORT) if host.clocksource else "not shown"),
        ("steal", steal_words(host.steal_percent) if host.steal_percent is not None else "no steal clock"),
        ("root", "yes" if host.is_root else "no"),
    )
    if width < 2 * _HOST_COLUMN:
        return [small_title("THIS HOST"), *(line for name, value in facts for line in labelled(name, value, width, 13))]
    lines, half = [small_title("THIS HOST")], len(facts) // 2
    for beside in zip(facts[:half], facts[half:], strict=True):
        left, right = (labelled(name, value, width // 2 - 1, 13) for name, value in beside)
        for first, second in zip_longest(left, right, fillvalue=Text()):
            first = first.copy()
            first.append(" " * (width // 2 - first.cell_len))
            lines.append(first.append(second))
    return lines
