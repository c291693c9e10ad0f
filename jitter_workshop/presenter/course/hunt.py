"""Describe a hunt in words, for the screen and for the line-by-line workshop."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from jitter_workshop.flow.chapters.hunt import LONGEST_S, Hunt, HuntAnswer, tries
from jitter_workshop.flow.chapters.hunt import past_hunts as past_hunts
from jitter_workshop.model.noise import NOISES, Noise
from jitter_workshop.model.session import HuntOutcome
from jitter_workshop.model.text import many
from jitter_workshop.model.walk import CureView
from jitter_workshop.presenter.host.changes import list_ids
from jitter_workshop.presenter.text.lines import Lines, items, small_title
from jitter_workshop.presenter.text.styled import Text

NOT_TOLD = "you are not told which"
R_MEASURES = "r measures whether that helped."
HAS_ENDED = "The hidden noise has ended, so no time is taken any more."
NAME = "jitter-workshop"

GIVING_UP = "The workshop then names the noise and ends it. This hunt counts as not found."

_HEADINGS = ("What it does", "How to find it", "What helps")
"""The headings of the three sentences on a noise."""

FIRST = "Hide a noise first. This run is measured while the noise runs."

RESTORED_FOR_HUNT = "If your quiet run was made with these settings, make it again at the step 'measure'."
"""The sentence after a restore that lets noises in, if the chapter has a quiet run."""

BOUNDS = (
    "The noise takes time on the measured CPU, on one other CPU, or on all CPUs. It uses at most a quarter of each of "
    "these CPUs, and 64 MiB of memory. It changes no setting. The noise ends when you have named it and measured a "
    f"cure, give up or leave this chapter, or after {LONGEST_S // 60} minutes. The threads of every noise are called "
    "'thief'."
)
YOURS = "You may look at everything, measure as often as you like, change settings, and end the noise with kill."


def kept_away(ids: Sequence[str], restores: str) -> str:
    """Return the sentence that says which applied tunables keep noises off the measured CPU; "" for no ``ids``.

    ``restores``: how the learner restores these tunables, such as "press u and restore it" or "type restore".
    """
    return f"{_keeps_away(ids)} Before you measure, {restores}." if ids else ""


def quiet_run_without(ids: Sequence[str]) -> str:
    """Return the sentences that are said before the quiet run of a hunt is made while the tunables ``ids`` are
    applied."""
    return (
        f"{_keeps_away(ids)} The run beside the hidden noise is made without this, so the two runs could not be "
        "compared."
    )


def _keeps_away(ids: Sequence[str]) -> str:
    return f"Applied now: {list_ids(ids)}. This keeps noises off the measured CPU."


MEASURES_WITHOUT = "Enter restores the settings and measures · k measures with them"
"""The answers to :func:`quiet_run_without`, beside the one that changes nothing."""


def can_be_cure(ids: Sequence[str]) -> str:
    """Return the sentence that is said before the tunables ``ids`` are restored during a hunt."""
    return f"Applied now: {list_ids(ids)}. This can be your cure against the hidden noise."


def hunt_question(suspects: Sequence[Noise]) -> str:
    """Return the sentence above the list of suspects, before a noise is hidden."""
    return f"One of these {len(suspects)} noises begins, and {NOT_TOLD}:"


def begun(hunt: Hunt) -> str:
    return f"One of {many(len(hunt.suspects), 'noise')} is running now. Find out which, and name it."


def not_beside(hunt: Hunt | None) -> str:
    """Tell why no noise runs beside a measurement now, and what the learner can do instead."""
    if hunt is not None and hunt.state in ("stopped", "over"):
        return "The noise has ended. r measures again without it; x hides another one."
    return FIRST


ELSEWHERE = "Type one of these commands in another terminal. Stay in this chapter, because leaving it ends the noise:"


def no_cure(hide: str, measure: str) -> str:
    """Tell how a learner comes to try a cure. ``hide``, ``measure``: what the learner presses or types to hide a noise
    and to measure, such as "press x" and "m to measure"."""
    return f"To try a cure, {hide} to hide a noise, then {measure}. Then r lists the ways."


def digit_keys(rows: int) -> str:
    """Return the digit keys that choose among this number of rows, as text such as ``1–4``."""
    return f"1–{min(rows, 9)}" if rows > 1 else "1"


def own_command() -> str:
    """Return the command that starts this program in another terminal. The command is the program's name, or the full
    path if the program is installed in a virtual environment. The other terminal may not have activated this
    environment. The command needs no sudo."""
    found, prefix = shutil.which(NAME), Path(sys.prefix)
    if found is not None and not (sys.prefix != sys.base_prefix and Path(found).is_relative_to(prefix)):
        return NAME
    beside = prefix / "bin" / NAME
    return shlex.quote(str(beside)) if beside.is_file() else NAME


def cures(other: int | None) -> tuple[tuple[str, str], ...]:
    """Return commands with which the learner can act against a noise, as (command, effect). ``other``: a CPU that the
    run does not use, or None."""
    found = [
        ("ps -eLo pid,tid,psr,pcpu,comm | grep thief", "the noise's process and threads, and each thread's last CPU"),
        ("kill PID", "stop the noise"),
    ]
    if other is not None:
        found += [
            (f"taskset -apc {other} PID", f"move all threads of the noise to CPU {other}"),
            (
                f"{own_command()} apply isolation",
                "keep the noise out: only your thread may use the measured CPU, until restore",
            ),
        ]
    return tuple(found)


def cure_told(view: CureView) -> Text:
    """Return the result of a run with the learner's cure. The sentence on whether the cure helped is emphasised."""
    rest = view.text.removeprefix(view.verdict)
    return Text.assemble((view.verdict, f"bold {'good' if view.helped else 'accent'}"), (rest, "text"))


def offer_of_new_run(cpu: int | None) -> str:
    """Return words that offer a new run after the learner's action against the noise. ``cpu``: the CPU for the new run,
    if it differs from the previous run's CPU. None if both runs use the same CPU."""
    return "Measure here: the noise is stopped, moved or kept out" if cpu is None else f"Measure on CPU {cpu}"


def unanswered(hunt: Hunt | None) -> bool:
    """Return True if a hunt was begun and its noise is not named yet."""
    return hunt is not None and hunt.state not in ("named", "answered")


def named(hunt: Hunt | None) -> bool:
    """Return True if the learner has named the noise of a hunt, and can still try a cure against it."""
    return hunt is not None and hunt.state == "named"


def in_hunt(hunt: Hunt | None) -> bool:
    """Return True if a hunt was begun and has not ended. Until its end, the learner can try cures."""
    return unanswered(hunt) or named(hunt)


def _to_cure(hunt: Hunt, measured: bool) -> str:
    """Return what to do next against a noise that is named. ``measured``: True if a run beside the noise exists."""
    if not hunt.runs:
        return f"The noise has ended. {R_MEASURES if measured else ''}".strip()
    if not measured:
        return "The noise goes on: measure beside it, then try a cure."
    return "The noise goes on: r lists cures, and measures once more with yours."


def hunt_state(hunt: Hunt | None, measured: bool = True) -> str:
    """Return the state of a hunt in a sentence. After the noise is named, the sentence says what to do next. Return ""
    if there is no hunt, or if it has ended. ``measured``: True if a run beside the noise exists."""
    if hunt is None or hunt.state == "answered":
        return ""
    if hunt.state == "named":
        return _to_cure(hunt, measured)
    if hunt.state == "stopped":
        return f"{HAS_ENDED} Which noise was it?"
    if hunt.state == "over":
        return "The hidden noise has ended, because its time is over. You can still name it."
    wrong = f" {many(hunt.wrong_answers, 'wrong answer')} so far." if hunt.wrong_answers else ""
    return f"A hidden noise is running.{wrong}"


def noise_ended_message(hunt: Hunt | None, measured: bool) -> str:
    """Return the message for a hunt whose noise has just ended. ``measured``: True if a run with the noise exists. Then
    the message also names a key. This key starts a run that shows whether the learner's action helped."""
    if named(hunt):
        return hunt_state(hunt, measured)
    return f"{hunt_state(hunt)} {R_MEASURES if measured else ''}".strip()


ENOUGH = "The noise has ended."
"""The message after the learner has ended a noise that was named."""


def after_name(hunts: Sequence[HuntOutcome], hunt: Hunt | None, measured: bool) -> str:
    """Return the message after the page of the suspects: the outcome of the newest hunt, and what to do next.
    ``hunts``: the outcomes of the chapter. ``measured``: True if a run beside the noise exists. Return "" if the noise
    is not named."""
    if unanswered(hunt):
        return ""
    return f"{past_hunts(hunts, 1)} {hunt_state(hunt, measured) or 'This is saved; x hides another noise.'}"


LEFT = "The hidden noise ended with this chapter. You did not name it."
FIRST_QUIET = "First measure while the host is quiet: the noise is compared with this run."


def hunt_answer_line(finding: HuntAnswer, hunt: Hunt) -> str:
    """Return one line that tells if an answer is right."""
    if finding.right:
        done = hunt.outcome
        also = "" if done is None else " and stopped" if done.stopped else " and kept away" if done.cured else ""
        return f"✓ Found{also}: {finding.title}, at {tries(hunt.wrong_answers)}."
    if not unanswered(hunt):
        return f"It was: {finding.title}."
    return f"✗ Not: {finding.title}."


def reasons(finding: HuntAnswer, hunt: Hunt) -> tuple[tuple[str, str], ...]:
    """Return the sentences below the verdict, each as (heading, sentence)."""
    if unanswered(hunt):
        return (("", finding.sentences[0]),)
    return tuple(zip(_HEADINGS, finding.sentences, strict=True))


def last_noise(hunts: Sequence[HuntOutcome], width: int) -> Lines:
    """Return lines on the noise of the hunt that ended last: what it does, its sign, and what helps. Return [] if no
    hunt has ended, or if this version has no such noise."""
    last = next((noise for noise in NOISES if hunts and noise.id == hunts[-1].kind), None)
    if last is None:
        return []
    told = zip(_HEADINGS, (last.what, last.found_as, last.treatment), strict=True)
    lines = [f"{heading}: {sentence}" for heading, sentence in told]
    return [small_title(f"THE NOISE OF YOUR LAST HUNT: {last.title.upper()}"), *items(lines, width, " • ")]
