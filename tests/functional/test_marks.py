"""Test the marks of runs on an emulated machine and in a guest of practice, wherever such runs are shown or written.

No verdict is given on times that mean nothing."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop import cli, paths
from jitter_workshop.errors import HostError
from jitter_workshop.flow.measuring import host_warnings
from jitter_workshop.flow.measuring.comparing import compare_runs
from jitter_workshop.flow.proving import proof_plan, screening_plan
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.host import EMULATED, GUEST, NO_VERDICT, HostSummary
from jitter_workshop.model.run import Run
from jitter_workshop.stats.effect import effects_of_change
from jitter_workshop.stats.figures import FIGURES, KnownRun, counts_alone
from tests import hosttrees
from tests.hosttrees import write
from tests.madesessions import HOST, make_session

HOSTS: dict[str, HostSummary] = {
    EMULATED: dataclasses.replace(HOST, hypervisor="QEMU", emulated=True, accelerator="tcg"),
    GUEST: dataclasses.replace(HOST, emulated=False, accelerator="kvm"),
    "": dataclasses.replace(HOST, emulated=False),
}


@pytest.fixture(params=list(HOSTS), ids=["emulated", "guest", "real"])
def mark(request: pytest.FixtureRequest) -> str:
    """The mark of the machine on which the session of this test was measured."""
    session = make_session(paths.sessions_dir(), 2, host=HOSTS[request.param])
    session.close()
    return str(request.param)


def runs() -> tuple[Run, Run]:
    from jitter_workshop.session.store import SessionStore

    with SessionStore().open("made") as session:
        first, second = session.runs()
        return first, second


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert cli.main(list(words)) == code, capsys.readouterr().err
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ("sessions", "show"),
        ("chart",),
        ("chart", "--kind", "ccdf"),
        ("chart", "-o", "-", "--format", "svg"),
        ("compare", "@2", "@1"),
        ("compare", "@2", "@1", "@1"),
        ("compare", "@2", "@1", "--json"),
        ("report", "-o", "-", "--format", "md"),
        ("report", "-o", "-", "--format", "html"),
        ("report", "-o", "-", "--format", "json"),
        ("report", "-o", "-", "--format", "hlog"),
        ("report", "-o", "-", "--format", "hgrm", "--run", "@1"),
        ("report", "-o", "-", "--format", "pyperf"),
    ],
    ids=lambda words: "-".join(words),
)
def test_the_mark_is_wherever_a_time_is(words: tuple[str, ...], mark: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = printed(capsys, *words)
    # The host's summary has a field of this name, and a report's facts may call a host a guest, on every machine.
    shown = told.lower().replace('"emulated":', "").replace("kvm guest", "")
    assert (EMULATED in shown) == (mark == EMULATED), told
    assert (GUEST in shown) == (mark == GUEST) or (words[0] == "report" and mark != GUEST), told


def test_a_report_marks_each_curve_and_each_run(mark: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(printed(capsys, "report", "-o", "-", "--format", "json"))
    assert {host["accelerator"] for host in document["hosts"]} == {HOSTS[mark].accelerator}
    curves = [curve for overlay in document["overlays"] for curve in overlay["curves"]]
    own = [curve["origin"].partition(",")[0] for curve in curves if not curve["origin"].startswith("published")]
    assert own
    assert set(own) == {mark or "hand-off"}
    noted = [any("emulated" in note or "guest" in note for note in run["notes"]) for run in document["runs"]]
    assert noted == [bool(mark)] * 2


def test_a_gate_judges_no_time_of_an_emulated_machine(mark: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["compare", "@2", "@1", "--gate", "99.9"])
    err = capsys.readouterr().err
    assert (code == 2) == (mark == EMULATED), err
    assert (NO_VERDICT in err) == (mark == EMULATED)


def test_only_counts_are_compared_on_an_emulated_machine(mark: str) -> None:
    before, after = (KnownRun(run) for run in runs())
    for one in FIGURES.values():
        known = [seen.run for seen in (before, after) if one.read(seen) is not None]
        assert (one.of(before) is None) == (one.read(before) is None or (mark == EMULATED and not counts_alone(one)))
        assert len(known) <= 2
    found = effects_of_change(before, after)
    assert (found.lead is None and found.nearest is None) == (mark == EMULATED)
    view = compare_runs(before.run, after.run)
    assert ("emulated machine" in view.comparison.text) == (mark == EMULATED)
    same = compare_runs(before.run, dataclasses.replace(before.run, id="another"))
    assert ("because the machine is emulated" in same.headline) == (mark == EMULATED)


@pytest.fixture
def emulated_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recorded emulated machine in the place of this host, where a proof looks at it."""
    tree = hosttrees.emulated(tmp_path / "emulated")
    monkeypatch.setattr(proof_plan, "HERE", tree)
    return tree


@pytest.mark.parametrize("words", [("placement",), ("thp=never",)])
def test_a_proof_and_a_screening_are_refused(emulated_here: Path, words: tuple[str, ...]) -> None:
    from jitter_workshop.flow.proving.proof_run import ProveRequest

    anything: Any = None
    request = ProveRequest(words=words)
    with pytest.raises(HostError, match="times mean nothing"):
        proof_plan.draw_up_proof(request, anything)
    if words != ("placement",):
        with pytest.raises(HostError, match="times mean nothing"):
            screening_plan.draw_up_screening(screening_plan.ScreenRequest(request), anything)


def test_a_real_host_is_not_refused(tmp_path: Path) -> None:
    host_warnings.refuse_if_emulated(HostRoot(hosttrees.server64(tmp_path / "real")))
    write(tmp_path / "tcg", {"proc/cmdline": "practice.accelerator=kvm\n", "proc/cpuinfo": hosttrees.cpuinfo(1, "x")})
    host_warnings.refuse_if_emulated(HostRoot(tmp_path / "tcg"))
