"""A report for others: whose names are gone, what stays, and that nothing else of it changes."""

from __future__ import annotations

import dataclasses
import functools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.flow.reporting.anonymizer import LEFT_OUT, anonymize_report, names_in, runs_for_others
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.evidence import Cause, InterferingTask, Part, QuietCpus, RemoteAction, Residence, load_called
from jitter_workshop.model.evidence import QuietCpus as Clean
from jitter_workshop.model.report import Command, OpenPoint, Overlay, ReportDocument, RunCauses
from jitter_workshop.model.run import ForeignLoad
from jitter_workshop.model.status import CheckState, HostEvent
from jitter_workshop.model.text import ID
from jitter_workshop.report.cause_words import cause_words
from tests.madereports import HOST, bare, made_evidence, made_snapshot, rich
from tests.madeup import make_run

made = functools.cache(rich)
SECRETS = ("lab03", "dora", "mirror-daily", "billing-sync")


def told(document: ReportDocument) -> str:
    return json.dumps(to_plain(document), ensure_ascii=False)


def named() -> ReportDocument:
    """A report that names a host, a user and two tasks wherever one can be named."""
    document = made()
    proof = Clean((1,), 5, False, 1, 0, 5, "mirror-daily ran on CPU 1.")
    deeds = (
        RemoteAction("wake", "billing-sync", "accumulator", 1, 5),
        RemoteAction("wake", "kworker/1:0", "accumulator", 1, 2),
    )
    stall = made_evidence("x").worst[0]
    evidence = dataclasses.replace(
        made_evidence("20260101-000000-0000"),
        causes=(
            Cause("task", "mirror-daily", 3, 900, 500, 180.0, 9, None),
            Cause("task", "kworker/1:0", 3, 900, 500, 180.0, 9, None),
            Cause("task", "irqbalance", 3, 900, 500, 180.0, 9, None),
            Cause("irq", "mirror-daily", 1, 2, 2, 1.0, 1, None),
        ),
        worst=(
            dataclasses.replace(
                stall,
                parts=(Part("task", "mirror-daily", 4),),
                timeline=(),
                notes=("mirror-daily was woken by irqbalance",),
            ),
        ),
        residence=Residence((), (), (), deeds, (), proof),
    )
    run = dataclasses.replace(
        document.runs[0],
        label="lab03 before",
        disturbed=(ForeignLoad(7, "billing-sync", 1, 5.0),),
        notes=("other tasks used the measured CPUs: billing-sync (5 %)",),
    )
    return dataclasses.replace(
        document,
        title="Latency jitter on lab03: lab03 2026-01-01",
        session_name="lab03 2026-01-01",
        host_name="lab03",
        hosts=(HOST,),
        runs=(run,),
        summary=("Stalls on lab03.",),
        host_line="lab03 · KVM guest",
        culprits=(RunCauses(run.id, "trace", evidence, ("mirror-daily, and lab03.",)),),
        events=(
            HostEvent("t", "left_alone", "ksm", "/sys/kernel/mm/ksm/run", "1", None, reason="billing-sync did it"),
        ),
        still_open=(OpenPoint("check", "thp", "Pages", "mirror-daily asks for them, MAC 52:54:00:12:34:56"),),
        commands=(Command("jitter-workshop --course /home/dora/course status --session 'lab03 2026'", "on lab03"),),
        notes={"steal": "read from /home/dora/x"},
    )


def test_names_of_hosts_users_and_tasks_are_gone_and_the_same_one_everywhere() -> None:
    document = named()
    found = names_in(document)
    assert found.hosts == ("lab03",)
    assert set(found.tasks) == {"mirror-daily", "billing-sync"}
    kept = anonymize_report(document)
    text = told(kept)
    # The interrupt's name is the kernel's, even where a task has the same one.
    assert '"irq", "name": "mirror-daily"' in text
    text = text.replace('"irq", "name": "mirror-daily"', "").replace("interrupt mirror-daily", "")
    for secret in SECRETS:
        assert secret not in text, text[max(0, text.find(secret) - 200) : text.find(secret) + 100]
    assert kept.runs[0].label == "run 1"
    assert kept.title == "Latency jitter on host 1: session"
    assert kept.commands[0].command == "jitter-workshop --course DIR status --session session"
    report = kept.culprits[0].report
    assert report is not None
    assert kept.summary == ("Stalls on host 1.",)
    # Nothing says in a field who woke whom.
    assert report.worst[0].notes == (LEFT_OUT,)
    assert [c.name for c in report.causes[1:]] == ["kworker/1:0", "irqbalance", "mirror-daily"]
    assert kept.runs[0].disturbed[0].name in kept.runs[0].notes[0]
    assert "52:54:00:12:34:56" not in text
    assert HOST.boot_id is not None
    assert HOST.boot_id not in text
    assert kept.private
    assert "replaced" in kept.notes["private"]


def test_figures_ids_and_verdicts_stay() -> None:
    document = made()
    kept = anonymize_report(document)
    assert [r.id for r in kept.runs] == [r.id for r in document.runs]
    assert [r.histogram for r in kept.runs] == [r.histogram for r in document.runs]
    assert [p.judgement for p in kept.proofs] == [p.judgement for p in document.proofs]
    assert [[c.points for c in o.curves] for o in kept.overlays] == [
        [c.points for c in o.curves] for o in document.overlays
    ]
    assert [c.id for c in kept.chapters] == [c.id for c in document.chapters]
    assert from_plain(ReportDocument, json.loads(told(kept))) == kept


def test_anonymizing_a_document_twice_changes_nothing_more() -> None:
    once = anonymize_report(named())
    assert anonymize_report(once) is once


def test_a_report_with_next_to_nothing_is_one() -> None:
    assert anonymize_report(bare()).private


@pytest.mark.parametrize("users", ["pr-acmeproj", "kvm-acmevm", "irq-X", "watchdog-X", "vhost-X", "rcu_X", "kworker"])
def test_tasks_that_only_sound_like_the_kernels_lose_theirs(users: str) -> None:
    run = dataclasses.replace(made().runs[0], disturbed=(ForeignLoad(1, users, 1, 2.0),))
    document = dataclasses.replace(made(), runs=(run,), culprits=())
    assert anonymize_report(document).runs[0].disturbed[0].name == "task 1"


KERNELS = """kworker/0:1-events kworker/R-netns ksoftirqd/1 rcu_preempt swapper/1 irq/24-eth0 kdamond.0 md0_raid1
nvme-wq btrfs-cleaner kblockd psimon loop0 stopper/0 jbd2/vda1-8 rcuop/3 pr/ttyS0 kswapd0 vhost-4711"""


@pytest.mark.parametrize("kernels", KERNELS.split())
def test_tasks_of_the_kernel_keep_their_names(kernels: str) -> None:
    run = dataclasses.replace(made().runs[0], disturbed=(ForeignLoad(1, kernels, 1, 2.0),))
    document = dataclasses.replace(made(), runs=(run,), culprits=())
    assert anonymize_report(document).runs[0].disturbed[0].name == kernels


def test_the_name_of_a_host_in_a_path_of_the_kernel_is_the_kernels() -> None:
    host = dataclasses.replace(HOST, name="vm")
    event = HostEvent("t", "applied", "stat-interval", "/proc/sys/vm/stat_interval", "1", "120", reason="on vm.")
    command = Command("sysctl vm.stat_interval=120", "on vm")
    kept = anonymize_report(
        dataclasses.replace(bare(), hosts=(host,), host_name="vm", events=(event,), commands=(command,))
    )
    assert kept.events[0].path == "/proc/sys/vm/stat_interval"
    assert kept.events[0].reason == "on host 1."
    assert kept.commands == (Command("sysctl vm.stat_interval=120", "on host 1"),)


def test_the_host_on_which_the_report_is_made_is_not_named_either() -> None:
    document = dataclasses.replace(bare(), notes={"after": "the session was made on lab03, and this host is desk07"})
    kept = anonymize_report(dataclasses.replace(document, host_name="lab03"), "desk07")
    assert "lab03" not in told(kept)
    assert "desk07" not in told(kept)


def test_a_task_that_is_called_like_a_figure_falsifies_none() -> None:
    run = dataclasses.replace(made().runs[0], disturbed=(ForeignLoad(1, "5", 1, 2.0),))
    said = RunCauses(run.id, "counters", None, ("Also there: 5 (pid 1), 2 % of a CPU.", "There is no trace of it."))
    document = dataclasses.replace(bare(), runs=(run,), culprits=(said,), summary=("Stalls: 5 a second.",))
    kept = anonymize_report(document)
    assert kept.summary == ("Stalls: 5 a second.",)
    assert kept.culprits[0].text == ("Also there: task 1 (pid 1), 2 % of a CPU.", "There is no trace of it.")
    assert kept.runs[0].disturbed[0].name == "task 1"


def test_another_workshop_is_a_task_without_a_name_too() -> None:
    load = ForeignLoad(1, "jitter-workshop", 1, 2.0)
    said = f"Also there: {load_called(load, ID)} (pid 1), {load_called(load, ID)} (2 %)."
    causes = RunCauses("r", "counters", None, (said,))
    document = dataclasses.replace(bare(), runs=(dataclasses.replace(made().runs[0], disturbed=(load,)),))
    kept = anonymize_report(dataclasses.replace(document, culprits=(causes,)))
    assert kept.culprits[0].text == ("Also there: task 1 (pid 1), task 1 (2 %).",)


names = st.text(st.characters(categories=("L", "N", "P", "Zs")), min_size=3, max_size=15).filter(str.strip)


@given(names)
def test_no_field_with_names_of_tasks_keeps_the_name_of_a_task(name: str) -> None:
    run = dataclasses.replace(made().runs[0], disturbed=(ForeignLoad(1, name, 1, 2.0),))
    document = dataclasses.replace(bare(), runs=(run,))
    if name in names_in(document).tasks:
        assert anonymize_report(document).runs[0].disturbed[0].name == "task 1"


@pytest.mark.parametrize("label", ["vm-baseline", "vm_2", "acme before the move"])
def test_no_label_is_searched_for_names_it_is_replaced(label: str) -> None:
    document = named()
    drawn = made().runs[6].curve
    assert drawn is not None
    curve = dataclasses.replace(drawn, label=f"{label} (2)")
    run = dataclasses.replace(document.runs[0], label=label, curve=curve)
    theirs = dataclasses.replace(curve, label="acme-07.hist", origin="by cyclictest 2.40")
    chart = Overlay("Messages through the ring", "Single runs.", (curve, theirs))
    command = Command(f"jitter-workshop measure --label '{label}'", f"a run like {run.id}")
    rooted = Command("jitter-workshop status --root ../srv/customer-acme/alice/rec", "what this host's settings do")
    line = "acme-07.hist (by cyclictest 2.40): wake-up latency, p50 2 µs, p99.9 8 µs, max 20 µs, 1,000 samples"
    document = dataclasses.replace(
        document, runs=(run,), overlays=(chart,), commands=(command, rooted), imports=(line,), host_name="vm"
    )
    kept = anonymize_report(document)
    text = told(kept)
    assert label not in text
    assert "acme" not in text
    assert "alice" not in text
    assert [c.label for c in kept.overlays[0].curves] == ["run 1", "import 2"]
    assert kept.commands[0].command == "jitter-workshop measure --label label"
    assert kept.commands[1].command == "jitter-workshop status --root TREE"
    (imported,) = kept.imports
    assert imported.split(", ") == ["import 1", "p50 2 µs", "p99.9 8 µs", "max 20 µs", "1,000 samples"]
    whole, _ = make_run([[100] * 50], run_id=run.id, label=label, host={"name": "vm", "kernel": "6.1"})
    (shown,) = runs_for_others(document, (whole,))
    assert (shown.label, shown.host) == ("run 1", {"kernel": "6.1"})


def test_processes_that_a_check_lists_are_not_named() -> None:
    listed = "31 of 40 processes may run on CPU 2-3: acmeproj (9), bash and 4 more names; 1 with real-time priority"
    check = CheckState("user-tasks", "Other tasks", "info", "31", None, listed)
    before = dataclasses.replace(made_snapshot(False), checks=(check,))
    point = OpenPoint("check", "user-tasks", "Other tasks", listed)
    kept = anonymize_report(dataclasses.replace(bare(), before=before, still_open=(point,)))
    assert kept.before is not None
    said = "31 of 40 processes may run on CPU 2-3; 1 with real-time priority"
    assert (kept.before.checks[0].reason, kept.still_open[0].text) == (said, said)


def test_a_task_with_the_name_of_an_event_changes_no_evidence() -> None:
    evidence = dataclasses.replace(
        made_evidence("x"),
        causes=tuple(
            Cause(kind, name, 3, 900, 500, 180.0, 9, None)
            for kind, name in (("task", "timer"), ("around", "timer"), ("around", "acmeproj"), ("task", "acmeproj"))
        ),
        candidates=("reading a slow clock (HPET, ACPI timer)",),
    )
    document = dataclasses.replace(bare(), culprits=(RunCauses("x", "trace", evidence, ("Task timer did it.",)),))
    (kept,) = anonymize_report(document).culprits
    assert kept.report is not None
    assert [cause.name for cause in kept.report.causes] == ["task 1", "timer", "task 2", "task 2"]
    assert kept.report.candidates == evidence.candidates
    assert [cause_words(c.kind, c.name) for c in kept.report.causes[:2]] == ["task 1", "gap at timer"]
    assert not any("task task" in sentence or "acmeproj" in sentence for sentence in kept.text)


def test_the_task_that_called_a_work_item_has_the_same_stand_in_as_the_task_itself() -> None:
    task = InterferingTask(1, "task", "acmeproj", 3, 900, 500)
    work = InterferingTask(1, "workqueue", "scan", 3, 90, 50, 1, 3, "task", "acmeproj")
    timer = InterferingTask(1, "timer", "tick", 3, 90, 50, 1, 3, "vector", "local_timer")
    proof = QuietCpus((1,), 10, False, 3, 0, 990, "Other tasks ran.")
    residence = Residence((), (task, work, timer), (), (), (), proof)
    evidence = dataclasses.replace(made_evidence("x"), residence=residence)
    document = dataclasses.replace(bare(), culprits=(RunCauses("x", "trace", evidence, ()),))
    (kept,) = anonymize_report(document).culprits
    assert kept.report is not None
    assert kept.report.residence is not None
    shown = kept.report.residence.visitors
    assert shown[1].outer_name == shown[0].name != "acmeproj"
    assert shown[2] == timer
