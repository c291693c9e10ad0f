"""Write the commands that repeat a session, as lines of shell. Words that people chose are quoted, so that each line is
safe to paste."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from jitter_workshop.flow.chapters.course_summary import words_of
from jitter_workshop.flow.measuring.measure import LABEL_LIMIT
from jitter_workshop.flow.reporting.subject import ReportSubject
from jitter_workshop.model.proof import PLACEMENT, Proof
from jitter_workshop.model.report import Command
from jitter_workshop.model.run import HUNTED, Run
from jitter_workshop.model.spec import KINDS
from jitter_workshop.model.text import LABEL, clean
from jitter_workshop.paths import APP

_TUNABLE = re.compile(r"[a-z0-9][a-z0-9-]*(=[^\s]*)?")
"""The form of a tunable in a command. Other text in a session's files is not used: the files may come from another
person, and ``apply -- COMMAND`` would run it."""
_NEARLY = 0.02
WORD_LIMIT = 4_096
"""Greatest number of characters of a word, as many as a path may have."""


def commands_that_repeat(subject: ReportSubject) -> tuple[Command, ...]:
    """Return the commands that repeat the contents of a report, each command once. They show the host's status, apply
    settings, and make the runs of the charts. They also compare runs, make the proofs, and write the report."""
    found: dict[str, Command] = {}
    for one in _all(subject):
        found.setdefault(one.command, one)
    return tuple(found.values())


def own_command_line(*words: str) -> str:
    """Return one line of shell that runs this program. Each of ``words`` is quoted, so that it stays one word."""
    return shlex.join([APP, *(clean(word, WORD_LIMIT) for word in words)])


def measure_command(run: Run, evidence: bool = False) -> tuple[str, ...]:
    """Return the words of a ``measure`` command that repeats ``run``. Options with default values are left out.
    ``evidence``: True adds the option that records a trace."""
    kind = KINDS.get(run.workload)
    words = ["measure"]
    words += _option("--workload", run.workload) if run.workload != "ring" else []
    words += _option("--label", clean(run.label, LABEL_LIMIT)) if run.label else []
    if run.preset is None:
        words += ["--duration", _seconds(run.duration_s)]
    elif run.preset != "quick":
        words += _option("--preset", run.preset)
    if kind is not None and kind.paced and run.interval_ns != kind.interval_ns:
        words += ["--interval-us", f"{run.interval_ns / 1000:g}"]
    words += _option("--pacing", run.pacing) if run.workload == "ring" and run.pacing != "spin" else []
    words += ["--duty", str(run.duty)] if run.duty != 100 else []
    words += _option("--pause", run.pause) if run.pause is not None and run.pause != "sleep" else []
    words += _option("--memory", run.memory) if run.memory else []
    words += _option("--lock", run.lock) if run.lock else []
    if kind is None or run.stalls.threshold_ns != kind.threshold_ns:
        words += ["--threshold-us", f"{run.stalls.threshold_ns / 1000:g}"]
    words += _placement(run)
    words += ["--sched", run.sched] if run.sched.startswith("fifo:") else []
    words += _option("--noise", run.noise) if run.noise else []
    words += ["--evidence"] if evidence else []
    return tuple(words)


def _option(name: str, value: str) -> list[str]:
    """Return the words for an option and its value. A value that looks like an option is joined with ``=``."""
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def _seconds(measured_s: float) -> str:
    """Return a guess of the duration in seconds that was requested for a run. The session does not store it. The guess
    is the number with the fewest digits that is near the measured duration. Blocks always take a little longer than
    requested."""
    for digits in (1, 2, 3):
        asked = float(f"{measured_s:.{digits}g}")
        if abs(asked - measured_s) <= _NEARLY * measured_s:
            break
    return f"{asked:.9g}"


def _placement(run: Run) -> list[str]:
    place = run.placement
    if place.mode == "none":
        return ["--placement", "none"]
    if place.mode != "chosen":
        return []
    given = {
        "--producer-cpu": place.producer,
        "--accumulator-cpu": place.accumulator,
        "--journaller-cpu": place.journaller,
        "--cpu": place.sampler,
    }
    words = [word for option, cpu in given.items() if cpu is not None for word in (option, str(cpu))]
    return [*words, "--no-journaller"] if run.workload == "ring" and place.journaller is None else words


def _all(subject: ReportSubject) -> Iterator[Command]:
    root = ["--root", str(subject.root.root)] if subject.root.recorded else []
    course = ["--course", subject.context.course_dir] if subject.context.course_dir else []
    session = ["--session", subject.session.id]
    yield Command(own_command_line("status", *root), "what this host's settings do to latency, and how to improve each")
    for walk in subject.walks:
        title = clean(walk.chapter.title, LABEL)
        yield Command(own_command_line("--chapter", walk.chapter.id, *course, *root), f"the chapter '{title}'")
    yield from _runs(subject)
    for walk in subject.walks:
        for runs in (walk.progress.runs, walk.progress.other_runs):
            pair = [subject.run(runs.get(slot)) for slot in ("measure", "again")]
            ids = [run.id for run in pair if run is not None]
            if len(ids) != 2:
                continue
            title = clean(walk.chapter.title, LABEL)
            yield Command(own_command_line("compare", *ids, *session), f"how the two runs of '{title}' differ")
    for proof in subject.proofs:
        # A user's own command is shown, but not as a line to paste: the session may come from another person.
        if not proof.command and all(map(_TUNABLE.fullmatch, proof.subject.split())):
            yield proving(proof)
    picked = [word for run in subject.runs for word in ("--run", run.id)] if subject.chosen else []
    yield Command(
        own_command_line("report", *session, *picked, *root), "this report again, with the state at that time"
    )


def _runs(subject: ReportSubject) -> Iterator[Command]:
    """Yield commands for each run that a chart shows. Runs with the same applied settings form a group. Commands before
    the group apply these settings, and commands after the group restore them."""
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in subject.runs:
        if run.id in subject.drawn:
            groups.setdefault(tuple(words_of(run.applied)), []).append(run)
    for stands in sorted(groups, key=bool):
        known = bool(stands) and all(_TUNABLE.fullmatch(word) for word in stands)
        if known:
            yield Command(own_command_line("plan", *stands), "every write that was in place during the next runs")
            yield Command(
                own_command_line("apply", *stands), "make these writes; the command shows each write and asks"
            )
        for run in groups[stands]:
            traced = subject.context.runs.traced(run)
            beside = ", which was measured while a hidden noise was running" if HUNTED in run.notes else ""
            yield Command(own_command_line(*measure_command(run, traced)), f"a run like {run.id}{beside}")
            if traced:
                yield Command(
                    own_command_line("explain", run.id, "--session", subject.session.id),
                    "the causes of this run's stalls",
                )
        if known:
            yield Command(
                own_command_line("restore", *(word.partition("=")[0] for word in stands)), "restore that change"
            )


def proving(proof: Proof) -> Command:
    """Return the command that makes a proof like ``proof``."""
    words = proof.subject.split()
    options = ["--rounds", str(proof.planned)]
    if proof.preset:
        options += _option("--preset", proof.preset) if proof.preset != "quick" else []
    elif proof.duration_s is not None:
        options += ["--duration", f"{proof.duration_s:.9g}"]
    if proof.subject != PLACEMENT and proof.workload:
        options += _option("--workload", proof.workload)
    return Command(
        own_command_line("prove", *words, *options), f"a new proof like {proof.id}, with new runs in a new order"
    )
