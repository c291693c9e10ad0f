"""Show a chapter about the learner's own program. The texts say what was observed, and what can be proven with the
program. They also say how to make a change permanent for the program."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from jitter_workshop.flow.chapters.own_program import SAMPLES, sample_of
from jitter_workshop.model.program import OBSERVED_S
from jitter_workshop.model.proof import PLACEMENT, Proof
from jitter_workshop.model.session import ObservedProgram, ProgramWork
from jitter_workshop.model.text import LABEL, PATH, REASON, clean, quoted_command
from jitter_workshop.presenter.proofs import proof as proofs
from jitter_workshop.presenter.text.lines import Lines, items, labelled, small_title, table_lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.cause_words import cause_words
from jitter_workshop.stats.scale import nice_ns

OWN = "your own command: it runs on this host, so choose one that ends by itself or that the workshop may end"
RUNS = (
    f"The program runs for at most {OBSERVED_S} s. Then the workshop ends it and all processes that it has started. "
    "Its input is empty, and its output is not shown."
)
TYPED = f"The command is started without a shell: quotes work, pipes and variables do not. {RUNS}"
OBSERVING = "Observing your program…"
NOT_OBSERVED = "The program is not observed yet."
AGAIN_FOR_ALL = (
    "Only these figures of the last observation were kept. Press m to observe the program again and see all figures."
)
WALL = "the time from the program's start to its end"
NOTHING_ELSE = "On this host, no setting can be changed without a reboot, so only the placement can be proven."


def program_name(work: ProgramWork) -> str:
    """Return the program in a few words: the name of a small program of the course, or the command."""
    sample = sample_of(work.words)
    return sample.name if sample is not None else quoted_command(work.words, LABEL)


def program_line(work: ProgramWork, width: int) -> Lines:
    """Return the program in a line. For a small program of the course, the line also says what the program does."""
    sample = sample_of(work.words)
    said = program_name(work) if sample is None else f"{sample.name}, {sample.what}"
    return labelled("program", said, width, 10)


def program_choice_lines(work: ProgramWork, width: int, own: str) -> Lines:
    """Return the list of programs from which the learner chooses; the chosen program is marked. ``own``: the key or
    word that selects a command of the learner's own."""
    chosen = sample_of(work.words)
    lines = [small_title("YOUR PROGRAM")]
    for number, one in enumerate(SAMPLES, 1):
        lead = f"{'▸' if one is chosen else ' '} {number}  "
        lines += wrap(Text(f"{one.name}: {one.what}", "bold text" if one is chosen else "text"), width, lead)
    said = OWN if chosen is not None else quoted_command(work.words)
    lead = f"{'▸' if chosen is None else ' '} {own}  "
    lines += wrap(Text(said, "bold text" if chosen is None else "text"), width, lead, "     ")
    return [*lines, *wrap(RUNS, width, style="dim")]


def seen(work: ProgramWork, width: int) -> Lines:
    """Return the figures of the last observation, as a table and sentences. Without an observation, return a sentence
    that says so."""
    found = work.observed
    if found is None:
        return wrap(NOT_OBSERVED, width, style="dim")
    lines = [small_title("WHAT WAS SEEN"), *spoken(work, width)]
    rows = [[part, nice_ns(value)] for part, value in _parts(found) if value is not None]
    lines += [Text(), *table_lines(rows, width, right=(1,), head=False)] if rows else []
    if found.held_by:
        kind, cause = found.held_by
        lines += wrap(f"Most of 'waited' went to: {cause_words(kind, cause, LABEL, measured=False)}.", width)
    if found.evidence != "trace":
        lines += wrap("Only counters are available: a trace needs root's rights.", width, style="dim")
    return lines


def spoken(work: ProgramWork, width: int) -> Lines:
    """Return the program, and the last line that it printed while it was observed."""
    said = clean(work.observed.said, REASON) if work.observed is not None else ""
    return [*program_line(work, width), *(labelled("it said", said, width, 10) if said else [])]


def _parts(found: ObservedProgram) -> tuple[tuple[str, int | None], ...]:
    return (
        ("ran", found.ran_ns),
        ("waited for a CPU", found.waited_ns),
        ("slept", found.slept_ns),
        ("blocked", found.blocked_ns),
    )


def compared_figure(work: ProgramWork) -> str:
    """Return the name of the figure that a proof with this program compares."""
    sample = sample_of(work.words)
    return f"p99 of {sample.figure}" if sample is not None else WALL


def change_choice_lines(work: ProgramWork, offered: Sequence[str], width: int) -> Lines:
    """Return the changes to choose from, the chosen one marked."""
    lines = [small_title("WHICH CHANGE")]
    for number, one in enumerate(offered, 1):
        chosen = one == work.change
        what = (
            "its threads on the hot CPUs, instead of all CPUs"
            if one == PLACEMENT
            else "the good value instead of the present one"
        )
        line = Text(f"{clean(one, LABEL)}: {what}", "bold text" if chosen else "text")
        lines += wrap(line, width, f"{'▸' if chosen else ' '} {number}  ")
    lines += wrap(NOTHING_ELSE, width, style="dim") if len(offered) == 1 else []
    return [*lines, *wrap(f"Compared is {compared_figure(work)}.", width, style="dim")]


def proven(proof: Proof | None, width: int) -> Lines:
    """Return the full text of the newest proof of the chosen change. Without a proof, return a sentence that
    says so.
    """
    return (
        proofs.proof_verdict_lines(proof, width) if proof is not None else wrap("This change is not proven yet.", width)
    )


def lasting(work: ProgramWork, proof: Proof | None, cpus: str, width: int) -> Lines:
    """Return the advice that follows from a proof, and the steps that make the change permanent for this program. If
    the proof found that the change does not help, the steps are left out. ``cpus``: the hot CPUs, as a list."""
    lines = [small_title("MAKE IT LAST"), *program_line(work, width)]
    lines += labelled("change", clean(work.change, LABEL), width, 10)
    verdict = proof.judgement.headline.verdict if proof is not None and proof.judgement is not None else None
    if proof is not None:
        lines += labelled("proof", proofs.earlier_proof_text(proof), width, 10)
    lines += [Text(), *wrap(_ADVICE[verdict], width, style="bold text")]
    if verdict in ("higher", "no_change"):
        return lines
    return [*lines, *items(_steps(work, cpus or "LIST"), width)]


_ADVICE = {
    None: "Nothing is proven yet. Use these lines only if a proof says 'lower':",
    "lower": "The proof says 'lower': keep the change with the lines below. Check it after the next boot.",
    "higher": "The proof says 'higher': do not use the change. So there is no change to keep after a reboot.",
    "no_change": "The proof says 'no change': do not use the change, because each changed setting is work to maintain.",
    "cannot_tell": (
        "The proof has no verdict yet. Make more rounds. Use these lines only if the proof then says 'lower':"
    ),
}


def _steps(work: ProgramWork, cpus: str) -> list[str]:
    """Return sentences that tell how to make a change permanent. They contain the commands to run, and what to write in
    a systemd unit."""
    command = clean(shlex.join(work.words), PATH)
    if work.change == PLACEMENT:
        return [
            f"By hand: taskset -c {cpus} {command}",
            f"As a service: the line CPUAffinity={cpus} below [Service] in its unit ('systemctl edit NAME.service').",
            "Check: 'systemctl show -p CPUAffinity NAME.service', and 'taskset -cp PID' once it runs.",
            "Restore: remove the line, and restart the service.",
        ]
    change = shlex.quote(clean(work.change, LABEL))
    return [
        f"Now, until you restore it: sudo jitter-workshop apply {change}",
        "At each boot: write a systemd unit that runs this command before the program's own unit (Before= in the "
        "unit). The chapter 'Make it last' shows such a unit for you to copy. It also names files that make the same "
        "change without this tool.",
        f"Check after the boot: jitter-workshop status {change}; echo $? (0: the setting is as it should be)",
        f"Restore: disable the unit, then sudo jitter-workshop restore {change}",
    ]
