"""A report for others: whose names are gone, what stays, and that nothing else of it changes."""

from __future__ import annotations

import dataclasses
import functools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.flow.reporting_private import LEFT_OUT, for_others, names_in
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.evidence import Cause, Deed, Part, Residence
from jitter_workshop.model.evidence import Proof as Clean
from jitter_workshop.model.history import HostEvent
from jitter_workshop.model.report import Command, Culprits, OpenPoint, ReportDocument
from jitter_workshop.model.run import ForeignLoad
from tests.madereports import HOST, bare, made_evidence, rich

made = functools.cache(rich)
SECRETS = ("lab03", "dora", "mirror-daily", "billing-sync")


def told(document: ReportDocument) -> str:
    return json.dumps(to_plain(document), ensure_ascii=False)


def named() -> ReportDocument:
    """A report that names a host, a user and two tasks wherever one can be named."""
    document = made()
    proof = Clean((1,), 5, False, 1, 0, 5, "mirror-daily ran on CPU 1.")
    deeds = (Deed("wake", "billing-sync", "accumulator", 1, 5), Deed("wake", "kworker/1:0", "accumulator", 1, 2))
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
        notes=("billing-sync used CPU 1",),
    )
    return dataclasses.replace(
        document,
        title="Latency jitter on lab03: lab03 2026-01-01",
        session_name="lab03 2026-01-01",
        host_name="lab03",
        hosts=(HOST,),
        runs=(run,),
        summary=("mirror-daily took most of the time on lab03.",),
        host_line="lab03 · KVM guest",
        culprits=(Culprits(run.id, "trace", evidence, ("mirror-daily, and lab03.",)),),
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
    assert found.users == ("dora",)
    assert set(found.tasks) == {"mirror-daily", "billing-sync"}
    kept = for_others(document)
    text = told(kept)
    for secret in SECRETS:
        # The interrupt's name is the kernel's, even where a task has the same one.
        assert text.count(secret) == (1 if secret == "mirror-daily" else 0), secret
    assert kept.runs[0].label == "host 1 before"
    assert kept.title == "Latency jitter on host 1: host 1 2026-01-01"
    assert kept.commands[0].command == "jitter-workshop --course /home/user 1/course status --session 'host 1 2026'"
    report = kept.culprits[0].report
    assert report is not None
    token = report.causes[0].name
    assert kept.summary == (f"{token} took most of the time on host 1.",)
    assert report.worst[0].notes == (f"{token} was woken by irqbalance",)
    assert [c.name for c in report.causes[1:]] == ["kworker/1:0", "irqbalance", "mirror-daily"]
    assert kept.runs[0].disturbed[0].name in kept.runs[0].notes[0]
    assert "52:54:00:12:34:56" not in text
    assert HOST.boot_id is not None
    assert HOST.boot_id not in text
    assert kept.private
    assert "replaced" in kept.notes["private"]


def test_figures_ids_and_verdicts_stay() -> None:
    document = made()
    kept = for_others(document)
    assert [r.id for r in kept.runs] == [r.id for r in document.runs]
    assert [r.histogram for r in kept.runs] == [r.histogram for r in document.runs]
    assert [p.judgement for p in kept.proofs] == [p.judgement for p in document.proofs]
    assert [[c.points for c in o.curves] for o in kept.overlays] == [
        [c.points for c in o.curves] for o in document.overlays
    ]
    assert [c.id for c in kept.chapters] == [c.id for c in document.chapters]
    assert from_plain(ReportDocument, json.loads(told(kept))) == kept


def test_a_second_time_changes_nothing() -> None:
    once = for_others(named())
    assert for_others(once) is once


def test_a_report_with_next_to_nothing_is_one() -> None:
    assert for_others(bare()).private


@pytest.mark.parametrize("kernels", ["kworker/0:1-events", "ksoftirqd/1", "rcu_preempt", "swapper/1", "irq/24-eth0"])
def test_tasks_of_the_kernel_keep_their_names(kernels: str) -> None:
    run = dataclasses.replace(made().runs[0], disturbed=(ForeignLoad(1, kernels, 1, 2.0),))
    document = dataclasses.replace(made(), runs=(run,), culprits=())
    assert for_others(document).runs[0].disturbed[0].name == kernels


def test_the_name_of_a_host_in_a_path_of_the_kernel_is_the_kernels() -> None:
    host = dataclasses.replace(HOST, name="vm")
    event = HostEvent("t", "applied", "stat-interval", "/proc/sys/vm/stat_interval", "1", "120", reason="on vm.")
    command = Command("sysctl vm.stat_interval=120", "on vm")
    kept = for_others(dataclasses.replace(bare(), hosts=(host,), host_name="vm", events=(event,), commands=(command,)))
    assert kept.events[0].path == "/proc/sys/vm/stat_interval"
    assert kept.events[0].reason == "on host 1."
    assert kept.commands == (Command("sysctl vm.stat_interval=120", "on host 1"),)


def test_the_host_on_which_the_report_is_made_is_not_named_either() -> None:
    document = dataclasses.replace(bare(), notes={"after": "the session was made on lab03, and this host is desk07"})
    kept = for_others(dataclasses.replace(document, host_name="lab03"), "desk07")
    assert "lab03" not in told(kept)
    assert "desk07" not in told(kept)


def test_a_task_that_is_called_like_a_figure_falsifies_none() -> None:
    run = dataclasses.replace(made().runs[0], disturbed=(ForeignLoad(1, "5", 1, 2.0),))
    said = Culprits(run.id, "counters", None, ("5 used CPU 1.", "There is no trace of it."))
    document = dataclasses.replace(bare(), runs=(run,), culprits=(said,), summary=("Stalls: 5 a second.",))
    kept = for_others(document)
    assert kept.summary == ("Stalls: 5 a second.",)
    assert kept.culprits[0].text == (LEFT_OUT, "There is no trace of it.")
    assert kept.runs[0].disturbed[0].name == "task 1"


names = st.text(st.characters(categories=("L", "N", "P", "Zs")), min_size=3, max_size=15).filter(str.strip)


@given(names)
def test_whatever_a_task_is_called_no_field_that_names_tasks_has_it(name: str) -> None:
    run = dataclasses.replace(made().runs[0], disturbed=(ForeignLoad(1, name, 1, 2.0),))
    document = dataclasses.replace(bare(), runs=(run,))
    if name in names_in(document).tasks:
        assert for_others(document).runs[0].disturbed[0].name == "task 1"
