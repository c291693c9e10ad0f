"""Made-up reports, for tests of what writes them: one with everything in it and hostile names everywhere, one with
next to nothing."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from jitter_workshop.model.change import Change, LeftAlone
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.evidence import Cause, EvidenceReport, ExplainedStall, Part, Slice
from jitter_workshop.model.host import HostSummary
from jitter_workshop.model.matrix import Cluster, Matrix
from jitter_workshop.model.proof import Proof, ProofRound
from jitter_workshop.model.report import (
    FORMAT_VERSION,
    Command,
    OpenPoint,
    Overlay,
    ReportDocument,
    ReportedChange,
    ReportedChapter,
    ReportedDiagnosis,
    ReportedRun,
    RunCauses,
)
from jitter_workshop.model.run import ForeignLoad, Run
from jitter_workshop.model.status import CheckState, HostEvent, Snapshot
from jitter_workshop.model.verdict import Round
from jitter_workshop.model.walk import GuessOutcome
from jitter_workshop.report.proof_words import proof_headline
from jitter_workshop.stats.comparison import compare
from jitter_workshop.stats.curve import curve_from_percentiles, percentile_curve
from jitter_workshop.stats.sample_size import standings
from jitter_workshop.stats.verdicts import judge_change
from tests.madematrix import by_nearness, machine
from tests.madematrix import made as made_matrix
from tests.maderounds import NOISY, make_rounds
from tests.madeup import histogram_of, make_run

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "' onmouseover='alert(3)",
    "</style></svg></template></pre>]]><!--",
    "a\x00b\x1b[31mred\x1b]0;title\x07",
    "\u202egnp.exe\u2066",
    "&lt;b&gt; &amp;#60; %3Cscript%3E {{7*7}} ${x}",
    "javascript:alert(4) https://example.net/ @everyone #1",
    "| a | `code` **bold** [link](http://example.net) <https://example.net>",
    "line one\nline two\r\n\t\u2028\u2029third",
    "long " + "Ω" * 10_000,
)
"""Names as somebody could choose them."""

RUNS = 20
HOST = HostSummary(
    name="lab03",
    kernel="6.1.0-test",
    architecture="x86_64",
    cpu_model="A CPU of four cores",
    hypervisor="kvm",
    cpus_online=(0, 1, 2, 3),
    cpus_allowed=(0, 1, 2, 3),
    isolated=(),
    nohz_full=(),
    governors=(),
    cpuidle_driver=None,
    clocksource="tsc",
    thermal_zones=0,
    realtime_kernel=False,
    steal_percent=0.4,
    cpu_max_quota_us=None,
    cpu_max_period_us=None,
    on_battery=None,
    memlock_limit_bytes=8 << 20,
    is_root=False,
    boot_id="b0b0b0b0-0000-4000-8000-000000000000",
    notes={"governors": "this guest has no cpufreq", "on_battery": "no power supply is shown"},
    packages=1,
    smt=False,
)


def values(seed: int, count: int = 4_000, slow: float = 1.0) -> list[int]:
    """Transit times that look like a host's: most near 120 ns, a few late ones up to milliseconds."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        kind = chance.random()
        if kind < 0.985:
            found.append(round(chance.gauss(120, 12)))
        elif kind < 0.998:
            found.append(round(chance.lognormvariate(8.5, 0.7)))
        else:
            found.append(round(slow * chance.lognormvariate(12.5, 1.0)))
    return [max(v, 60) for v in found]


def reported(run: Run, seen: Sequence[int], **changed: object) -> ReportedRun:
    """A run as a report has it. ``seen``: the values that it measured."""
    whole = histogram_of(seen)
    name = run.main_histogram
    fields: dict[str, object] = {
        "id": run.id,
        "label": run.label,
        "role": "",
        "workload": run.workload,
        "pacing": run.pacing,
        "preset": run.preset,
        "started_at": run.started_at,
        "duration_s": run.duration_s,
        "placement": run.placement.mode,
        "main_histogram": name,
        "histogram": run.histograms[name],
        "standings": standings(run),
        "stalls": run.stalls,
        "steal_ns": run.steal_ns,
        "applied": tuple(f"{one['id']}={one['value']}" for one in run.applied),
        "disturbed": run.disturbed,
        "complete": run.complete,
        "curve": percentile_curve(whole, run.label or run.id, min_ns=min(seen), max_ns=max(seen)),
    }
    return ReportedRun(**{**fields, **changed})  # type: ignore[arg-type]


def made_runs(count: int = RUNS) -> tuple[tuple[Run, ReportedRun], ...]:
    """Runs and what a report says of them; the second of a pair is ten times calmer, and the first labels are
    hostile."""
    found = []
    for number in range(count):
        seen = values(number, slow=1.0 if number % 2 == 0 else 0.1)
        label = HOSTILE[number] if number < len(HOSTILE) else f"run {number}"
        more = {"placement": "auto"} if number % 2 else {}
        run, _ = make_run(
            [seen[: len(seen) // 2], seen[len(seen) // 2 :]],
            run_id=f"20260101-0000{number:02d}-{number:04x}",
            label=label,
            started_at=f"2026-01-01T00:00:{number:02d}.000000Z",
            applied=({"id": "irq-affinity", "value": "0"},) if number % 2 else (),
            disturbed=(ForeignLoad(4711, HOSTILE[1], 1, 93.0),) if number == 3 else (),
            complete=number != 5,
        )
        role = "pinning · measure" if number == 0 else "pinning · again" if number == 1 else ""
        notes = ("stopped after the first blocks",) if number == 5 else ()
        found.append((run, reported(run, seen, role=role, notes=notes, **more)))
    return tuple(found)


def made_proof(ident: str = "20260101-010000-beef", ratio: float = 0.05, rounds: int = 10, **changed: object) -> Proof:
    """A proof whose change makes stalls ``ratio`` times as frequent."""
    made: list[Round] = make_rounds(7, rounds=rounds, ratio=ratio, per_second=NOISY)
    fields: dict[str, object] = {
        "format_version": 1,
        "id": ident,
        "subject": "irq-affinity",
        "chapter": "",
        "workload": "ring",
        "preset": "quick",
        "seed": 7,
        "planned": rounds,
        "started_at": "2026-01-01T01:00:00.000000Z",
        "ended_at": "2026-01-01T01:05:00.000000Z",
        "changes": (
            Change(1, "irq-affinity", "/proc/irq/24/smp_affinity", "f", "1", "runtime", "low", "keeps them off"),
            Change(2, "irq-affinity", f"/proc/irq/{HOSTILE[0]}/smp", HOSTILE[3], HOSTILE[5], "runtime", "low", "x"),
        ),
        "rounds": tuple(
            ProofRound(one.order, f"20260101-01{n:02d}00-000a", f"20260101-01{n:02d}30-000b")
            for n, one in enumerate(made)
        ),
        "judgement": judge_change(made) if made else None,
        "restored": True,
    }
    return Proof(**{**fields, **changed})  # type: ignore[arg-type]


def made_evidence(run: str) -> EvidenceReport:
    """Return what a trace says of a run; the names of tasks are hostile."""
    causes = tuple(
        Cause(kind, name, count, total, total // count, total / 5, count, below)
        for kind, name, count, total, below in (
            ("task", HOSTILE[0], 12, 48_000_000, 0.9999),
            ("softirq", "NET_RX", 30, 3_000_000, 0.9991),
            ("irq", HOSTILE[4], 9, 400_000, 0.999),
            ("around", "LOC", 120, 360_000, 0.999),
            ("no_event", "", 40, 80_000, 0.999),
        )
    )
    stall = ExplainedStall(
        at_ns=1_234_567_890,
        duration_ns=4_100_000,
        cpu=1,
        thread="accumulator",
        messages=410,
        block=3,
        parts=(Part("task", HOSTILE[0], 4_000_000), Part("softirq", "NET_RX", 90_000), Part("no_event", "", 10_000)),
        timeline=(
            Slice("softirq", "NET_RX", 0, 90_000),
            Slice("task", HOSTILE[0], 90_000, 4_000_000),
            Slice("no_event", "", 4_090_000, 10_000),
        ),
        notes=(f"{HOSTILE[0]} was woken by sshd",),
    )
    return EvidenceReport(
        format_version=1,
        run=run,
        evidence="trace",
        threshold_ns=1_000,
        clock="x86-tsc",
        stalls=211,
        lost_events=3,
        causes=causes,
        worst=(stall,),
        measured_ns=5_000_000_000,
        events=12_345,
        main_thread="accumulator",
        messages=400_000,
        below_now=0.999,
        missing={"nmi_handler": "this kernel has it not"},
        candidates=("a system management interrupt: this machine counts none", "another guest on the same core"),
    )


def made_checks(after: bool) -> tuple[CheckState, ...]:
    """Checks of ``status``: two of them differ between before and after."""
    return (
        CheckState("irq-affinity", "Interrupts off the hot CPUs", "improve", "f", "1", "24 may run there")
        if not after
        else CheckState("irq-affinity", "Interrupts off the hot CPUs", "ok", "1", "1", "none may run there"),
        CheckState("thp", "Transparent huge pages", "improve", "always", "never", "khugepaged merges pages"),
        CheckState("governor", "CPU governor", "unavailable", None, None, "this guest has no cpufreq"),
        CheckState("workqueue-mask", HOSTILE[1], "ok", HOSTILE[2], None, HOSTILE[3]),
        CheckState("clocksource", "Clock", "info", "tsc", None, "the kernel trusts it"),
        *(
            (CheckState("ksm", "Merging of same pages", "ok", "0", "0", "off"),)
            if after
            else (CheckState("ksm", "Merging of same pages", "improve", "1", "0", "on"),)
        ),
    )


def made_snapshot(after: bool) -> Snapshot:
    """The status of the made host, before the changes or after them."""
    return Snapshot(
        format_version=1,
        at=f"2026-01-01T0{2 if after else 0}:00:00.000000Z",
        host="lab03",
        boot_id=HOST.boot_id,
        hot_cpus=(1,),
        checks=made_checks(after),
        applied=({"id": "irq-affinity", "value": "0"},) if after else (),
    )


def made_changes() -> tuple[ReportedChange, ...]:
    """A write of each fate, and more of one tunable than a page shows at once."""
    path = "/proc/irq/{}/smp_affinity"
    return (
        *(
            ReportedChange(
                f"2026-01-01T00:10:{n:02d}.000000Z",
                "irq-affinity",
                path.format(24 + n),
                "f",
                "1",
                "1",
                "restored",
                "2026-01-01T00:20:00.000000Z",
                "restored: f",
                chapter="irqs",
            )
            for n in range(20)
        ),
        ReportedChange(
            "2026-01-01T00:11:00.000000Z",
            "thp",
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "always",
            "never",
            "madvise",
            "kept",
            None,
            "applied until 'jitter-workshop restore'",
        ),
        ReportedChange(
            "2026-01-01T00:12:00.000000Z",
            "rt-throttling",
            HOSTILE[0],
            None,
            HOSTILE[1],
            None,
            "refused",
            None,
            "operation not permitted",
        ),
        *(
            ReportedChange(
                "2026-01-01T00:13:00.000000Z", "ksm", "/sys/kernel/mm/ksm/run", "1", "0", "0", fate, None, HOSTILE[2]
            )
            for fate in ("standing", "left_alone", "gone", "rebooted", "unknown")
        ),
    )


def published() -> PercentileCurve:
    """A curve that was not measured here."""
    return curve_from_percentiles(
        "laptop", {"50": 168, "90": 256, "99": 2_887, "99.9": 8_126_463}, 1_000_000, "published 2015"
    )


def hostile_matrix() -> Matrix:
    """A matrix of a host of four CPUs whose file somebody has edited."""
    small = machine(1, 1, 1, 2, 2)
    matrix = made_matrix(small, by_nearness(small))
    clusters = (*matrix.clusters, Cluster(HOSTILE[0], 1, 400.0, 400.0, 400.0))
    return dataclasses.replace(
        matrix, label=HOSTILE[0], started_at=HOSTILE[1], clusters=clusters, notes={"one_way_ns": HOSTILE[8]}
    )


def rich() -> ReportDocument:
    """A report of twenty runs with all that one can hold, and hostile names wherever somebody else chooses them."""
    pairs = made_runs()
    runs = tuple(shown for _, shown in pairs)
    curves = tuple(shown.curve for shown in runs if shown.curve is not None)
    first, second = pairs[0][0], pairs[1][0]
    shown_proof = made_proof(left_alone=(LeftAlone("irq-affinity", HOSTILE[0], "f", HOSTILE[1], "changed since"),))
    unsure = made_proof("20260101-020000-cafe", ratio=1.0, subject="thp=never", chapter="memory", restored=False)
    short = made_proof(
        "20260101-030000-f00d",
        rounds=3,
        planned=10,
        subject="placement",
        complete=False,
        stopped=f"interrupted after 3 of 10 rounds ({HOSTILE[0]})",
        changes=(),
        notes=("round 2 was disturbed by another task",),
    )
    none = dataclasses.replace(short, id="20260101-040000-0000", rounds=(), judgement=None, stopped="interrupted")
    chapter = ReportedChapter(
        id="pinning",
        title="Pinning",
        question="What will p99.9 be once the threads are pinned?",
        guess="200 µs at p99.9",
        outcome=GuessOutcome("You said 200 µs, it was 71 µs.", True, "Pinned threads do not move.", 200_000, 71_000),
        runs={"measure": first.id, "again": second.id},
        comparison=compare(first, second),
        comparison_text="These two runs differ: stalls over 100 µs 10× rarer. One pair proves nothing.",
        setting=None,
        curve=True,
        done=True,
        rehearsed=False,
        learnt=("The scheduler moved the producer 12 times.", HOSTILE[0]),
        diagnosis=ReportedDiagnosis(
            first.id, "trace", Part("timer", "", 9_000), False, Part("task", "kworker/1:2", 80_000), 0.8, 100_000, 3_000
        ),
    )
    return ReportDocument(
        format_version=FORMAT_VERSION,
        title="Jitter Workshop: " + HOSTILE[0],
        made_at="2026-01-02T03:04:05.000000Z",
        tool_version="0.1.0",
        session_id="20260101-000000-5e55",
        session_name=HOSTILE[1],
        recorded="",
        summary=(
            *(
                f"{verdict} of {proof.subject}: {text}."
                for proof in (shown_proof, unsure, short, none)
                for verdict, _, text in [proof_headline(proof).partition(": ")]
            ),
            HOSTILE[0],
        ),
        host_line="lab03 · KVM guest · 4 CPUs, hot (to keep free): 1 · no cpufreq",
        hosts=(HOST, dataclasses.replace(HOST, name=HOSTILE[6], recorded=True)),
        chapters=(
            chapter,
            dataclasses.replace(
                chapter,
                id="governor",
                title=HOSTILE[0],
                outcome=None,
                comparison=None,
                comparison_text="",
                runs={},
                guess="",
                setting=True,
                done=False,
                rehearsed=True,
                learnt=(),
            ),
        ),
        overlays=(
            Overlay("The whole course", "Each curve is one run.", (published(), curves[0], curves[1])),
            Overlay(HOSTILE[0], HOSTILE[3], curves[2:]),
        ),
        proofs=(shown_proof, unsure, short, none),
        runs=runs,
        imports=("cyclictest (by cyclictest 2.40): wake-up latency, p50 12 µs", HOSTILE[1]),
        culprits=(
            RunCauses(first.id, "trace", made_evidence(first.id), ("Task bash took most of the time.",)),
            RunCauses(second.id, "counters", None, ("There is no trace of it.", HOSTILE[4])),
        ),
        events=(
            HostEvent(
                "2026-01-01T00:10:00.000000Z",
                "applied",
                "irq-affinity",
                "/proc/irq/24/smp_affinity",
                "f",
                "1",
                "1",
                chapter="irqs",
            ),
            HostEvent(
                "2026-01-01T00:11:00.000000Z",
                "applied",
                "thp",
                "/sys/kernel/mm/transparent_hugepage/enabled",
                "always",
                "never",
                "madvise",
                kept=True,
            ),
            HostEvent(
                "2026-01-01T00:12:00.000000Z",
                "refused",
                "rt-throttling",
                HOSTILE[0],
                None,
                HOSTILE[1],
                reason="operation not permitted",
            ),
            HostEvent(
                "2026-01-01T00:20:00.000000Z",
                "restored",
                "irq-affinity",
                "/proc/irq/24/smp_affinity",
                "1",
                "f",
                "f",
                chapter="irqs",
            ),
            HostEvent(
                "2026-01-01T00:21:00.000000Z",
                "left_alone",
                "ksm",
                "/sys/kernel/mm/ksm/run",
                "1",
                None,
                reason="somebody else changed it since",
            ),
            *(
                HostEvent(
                    f"2026-01-01T01:{n:02d}:00.000000Z",
                    did,
                    "irq-affinity",
                    "/proc/irq/24/smp_affinity",
                    before,
                    after,
                    after,
                    proof=shown_proof.id,
                )
                for n in range(10)
                for did, before, after in (("applied", "f", "1"), ("restored", "1", "f"))
            ),
        ),
        before=made_snapshot(False),
        after=made_snapshot(True),
        still_open=(
            OpenPoint("check", "thp", "Transparent huge pages", "always; never would be better"),
            OpenPoint("chapter", "isolation", "Isolation", "not begun"),
            OpenPoint("standing", "thp", HOSTILE[0], "thp=never still stands; 'restore' gives it back"),
            OpenPoint("reboot", "isolcpus", "Boot parameters", "they wait for a boot"),
        ),
        commands=(
            Command("jitter-workshop status", "what this host's settings do to latency"),
            Command("jitter-workshop measure --label '<script>alert(1)</script>' --preset quick", HOSTILE[2]),
        ),
        notes={"imports": "one import cannot be read", "steal": HOSTILE[0]},
        changes=made_changes(),
        host_name="lab03",
        matrix=hostile_matrix(),
    )


def bare() -> ReportDocument:
    """A report of a session in which nothing was measured yet; what is not known has its reason."""
    return ReportDocument(
        format_version=FORMAT_VERSION,
        title="first session",
        made_at="2026-01-02T03:04:05.000000Z",
        tool_version="0.1.0",
        session_id="20260101-000000-0b0e",
        session_name="first session",
        recorded="a recorded laptop",
        summary=(),
        host_line="",
        hosts=(),
        chapters=(),
        overlays=(),
        proofs=(),
        runs=(),
        imports=(),
        culprits=(),
        events=(),
        before=None,
        after=None,
        still_open=(),
        commands=(),
        notes={"before": "this session is older than status at its start", "after": "the host cannot be read"},
    )
