"""Proofs with made-up runs on a made host: the real prover, agent session and agent; only the measuring is not real."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.agent.client import AgentClient
from jitter_workshop.agent.transport import ProcessLink
from jitter_workshop.bench import lock
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.errors import BusyError, HostError, MeasureError, SessionError, UsageError
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.host_ops.change_log import LAPSED, ChangeLog
from jitter_workshop.flow.measuring import measure as measuring
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.proving import proof_plan
from jitter_workshop.flow.proving.proof_run import ProofStep, Prover, ProveRequest
from jitter_workshop.flow.proving.sides import TunableSides
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import summarise_host
from jitter_workshop.model.change import ApplyResult, Change, Plan, RestoreResult
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.proof import Proof
from jitter_workshop.model.run import UNSTEADY, ForeignLoad, Run, RunObserver, SilentObserver, ThreadRecord
from jitter_workshop.model.spec import Placement
from jitter_workshop.model.verdict import Round
from jitter_workshop.presenter.proofs.proof import proof_verdict_lines
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.session import history
from jitter_workshop.session.proofs import CUT_OFF, FOLDER
from jitter_workshop.session.store import OpenSession, SessionStore
from jitter_workshop.stats.rounds import draw_orders
from jitter_workshop.tuning.journal import applied_tunables
from tests import livehost, tuned_tree
from tests.madeproofs import make_proof
from tests.madeup import make_run
from tests.unit.test_flow_company import has

THP = "sys/kernel/mm/transparent_hugepage/enabled"
STAT = "proc/sys/vm/stat_interval"
IRQ = "proc/irq/24/smp_affinity_list"


class Watcher:
    """Notes what it is told; ``at``: what to do when a run begins."""

    def __init__(self, at: Callable[[ProofStep], None] = lambda step: None) -> None:
        self.steps: list[ProofStep] = []
        self.rounds: list[int] = []
        self.left_s: list[float] = []
        self.restored = 0
        self._at = at

    def side_begins(self, step: ProofStep) -> RunObserver:
        self.steps.append(step)
        self._at(step)
        return SilentObserver()

    def round_done(self, rounds: tuple[Round, ...], planned: int, left_s: float) -> None:
        self.rounds.append(len(rounds))
        self.left_s.append(left_s)

    def restoring(self) -> None:
        self.restored += 1


class Measured:
    """Stand in for ``flow.measuring.measure.measure_run``. ``spoil``: what to make of each run, by number, before it is
    kept."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.requests: list[MeasureRequest] = []
        self.said: list[str] = []
        self.sent: list[str] = []
        self.spoil: dict[int, Callable[[Run], Run]] = {}
        self.fail: dict[int, Exception] = {}

    def __call__(
        self,
        request: MeasureRequest,
        session: OpenSession,
        observer: RunObserver,
        cancel: CancelToken,
        around: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
        **_: Any,
    ) -> Run:
        with around():
            return self._run(request, session, cancel)

    def _run(self, request: MeasureRequest, session: OpenSession, cancel: CancelToken) -> Run:
        number = len(self.requests)
        self.requests.append(request)
        self.said.append((self.tree / THP).read_text().strip())
        self.sent.append((self.tree / IRQ).read_text().strip())
        if number in self.fail:
            raise self.fail[number]
        if cancel.reason is not None:
            raise Cancelled(cancel.reason)
        placed = request.label.startswith("prove placement") and request.placement != "none"
        helped = placed or "[always]" not in self.said[-1]
        values = [100 + number % 7] * 200 + [150_000 + 1_000 * number] * (2 if helped else 40)
        run, blocks = make_run(
            [values, values],
            run_id=f"20260101-000000-{len(session.runs()):04x}",
            label=request.label,
            workload=request.workload,
            proof=request.proof,
            settle_s=request.settle_s or None,
            applied=applied_tunables(HostRoot(self.tree), in_effect=True),
        )
        run = self.spoil.get(number, lambda one: one)(run)
        session.add_run(run, blocks)
        return run


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return livehost.proving_tree(tmp_path, monkeypatch)


@pytest.fixture
def measured(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    made = Measured(tree)
    monkeypatch.setattr(measuring, "measure_run", made)
    return made


@pytest.fixture
def session(tmp_path: Path, tree: Path) -> Iterator[OpenSession]:
    with SessionStore(tmp_path / "sessions").create("proofs", summarise_host(HostRoot(tree)).name) as made:
        yield made


@pytest.fixture
def agent_connection(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentConnection]:
    yield from with_agent(tree, monkeypatch)


def with_agent(tree: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> Iterator[AgentConnection]:
    command = livehost.agent_command(tree, *options)
    monkeypatch.setattr(connection_module, "connect_to_agent", lambda ask=True, purpose=None: AgentClient(command))
    made = AgentConnection()
    yield made
    made.close()


def words(*said: str, **asked: Any) -> ProveRequest:
    return ProveRequest(words=said, **{"cpus": "2-3", "rounds": 10, "seed": 3, **asked})


def prove(
    request: ProveRequest,
    session: OpenSession,
    agent_connection: AgentConnection,
    watcher: Watcher | None = None,
    token: CancelToken | None = None,
) -> Proof:
    prover = Prover(request, session, agent_connection)
    return prover.prove(prover.plan(), watcher or Watcher(), token or CancelToken())


def test_ten_rounds_of_a_setting_prove_its_effect_and_leave_nothing(
    session: OpenSession, agent_connection: AgentConnection, tree: Path, measured: Measured
) -> None:
    before = tuned_tree.contents(tree)
    watcher = Watcher()
    proof = prove(words("thp"), session, agent_connection, watcher)
    assert proof.complete
    assert proof.restored
    assert proof.judgement is not None
    assert proof.judgement.headline.verdict == "lower"
    assert "rarer" in proof.judgement.headline.text
    assert tuned_tree.contents(tree) == before
    assert tuple(one.order for one in proof.rounds) == draw_orders(10, 3)
    assert [step.number for step in watcher.steps] == list(range(20))
    assert watcher.rounds == list(range(1, 11))
    assert watcher.left_s[-1] == 0
    assert watcher.restored == 1
    assert session.proofs() == (proof,)


def test_each_run_is_made_on_its_side_and_kept_with_its_name(
    session: OpenSession, agent_connection: AgentConnection, measured: Measured
) -> None:
    proof = prove(words("thp", rounds=3), session, agent_connection)
    runs = {run.id: run for run in session.runs()}
    assert len(runs) == 6
    for number, one in enumerate(proof.rounds, start=1):
        without, with_it = runs[one.without], runs[one.with_it]
        assert without.label == f"prove thp · {number} without"
        assert with_it.label == f"prove thp · {number} with"
        assert (without.applied, with_it.applied) == ((), ({"id": "thp", "value": "madvise"},))
        assert {without.proof, with_it.proof} == {proof.id}
        assert without.settle_s == 1.0
    said = dict(zip((request.label for request in measured.requests), measured.said, strict=True))
    assert all(("[madvise]" in text) == label.endswith(" with") for label, text in said.items())
    assert proof.judgement is not None
    assert proof.judgement.headline.verdict == "cannot_tell"


def test_placement_writes_nothing_and_needs_no_agent(session: OpenSession, tree: Path, measured: Measured) -> None:
    before = tuned_tree.contents(tree)
    proof = prove(ProveRequest(words=("placement",), rounds=10, seed=1), session, AgentConnection())
    assert [request.placement for request in measured.requests].count("none") == 10
    assert len({request.no_journaller for request in measured.requests}) == 1
    assert proof.subject == "placement"
    assert proof.judgement is not None
    assert proof.judgement.headline.verdict == "lower"
    assert tuned_tree.contents(tree) == before


def test_a_proof_tells_the_chapters_own_figure_on_both_sides(session: OpenSession, measured: Measured) -> None:
    def moved(run: Run) -> Run:
        times = 100 if run.label.endswith("without") else 1
        return dataclasses.replace(run, threads=(ThreadRecord("accumulator", {"1": 9}, migrations=times),))

    measured.spoil = dict.fromkeys(range(4), moved)
    request = ProveRequest(words=("placement",), rounds=2, seed=1, shows="migrations")
    proof = prove(request, session, AgentConnection())
    page = " ".join(written(proof_verdict_lines(proof, 200)).split())
    assert "200 a second without the change, 2 a second with it" in page


def test_the_plan_says_the_writes_the_time_and_where(
    session: OpenSession, agent_connection: AgentConnection, tree: Path
) -> None:
    before = tuned_tree.contents(tree)
    plan = Prover(words("thp", "stat-interval", rounds=4), session, agent_connection).plan()
    assert [change.n for change in plan.changes] == [1, 2]
    assert {change.path for change in plan.changes} == {f"/{THP}", f"/{STAT}"}
    assert plan.subject == "thp stat-interval"
    assert plan.hot_cpus == (2, 3)
    assert (plan.workload, plan.preset, plan.run_s) == ("ring", "quick", 5.0)
    assert plan.total_s == pytest.approx(8 * 11.0 + 2.0)
    assert any("4 rounds give figures but no verdict" in notice for notice in plan.notices)
    assert not any("The noise" in notice for notice in plan.notices)
    like = MeasureRequest(workload="ring", noise="unbound")
    beside = Prover(words("thp", "stat-interval", rounds=4, like=like), session, agent_connection).plan()
    assert any("The noise 'unbound' runs during each run" in notice for notice in beside.notices)
    assert tuned_tree.contents(tree) == before


@pytest.mark.parametrize(
    ("changed", "takes_s"),
    [
        ({}, 18.0),
        ({"workload": "spin"}, None),
        ({"preset": "standard"}, None),
        ({"complete": False}, None),
        ({"ended_at": ""}, None),
    ],
)
def test_the_time_of_a_proof_is_told_by_an_earlier_proof_of_such_runs(
    session: OpenSession, agent_connection: AgentConnection, tree: Path, changed: dict[str, Any], takes_s: float | None
) -> None:
    before = Prover(words("thp", rounds=4), session, agent_connection).plan().total_s
    session.add_proof(make_proof(**changed))
    assert len(session.proofs()) == 1
    plan = Prover(words("thp", rounds=4), session, agent_connection).plan()
    assert plan.total_s == pytest.approx(before if takes_s is None else 4 * takes_s)


def test_on_one_hot_cpu_the_loop_measures(
    session: OpenSession, agent_connection: AgentConnection, measured: Measured
) -> None:
    plan = Prover(words("thp", cpus="3"), session, agent_connection).plan()
    assert plan.workload == "spin"
    assert any("the loop 'spin' is measured instead" in notice for notice in plan.notices)
    prove(words("thp", cpus="3", rounds=1), session, agent_connection)
    assert {request.cpu for request in measured.requests} == {3}


def test_both_sides_are_measured_on_the_same_hot_cpus(
    session: OpenSession, agent_connection: AgentConnection, measured: Measured
) -> None:
    prove(words("thp", rounds=2), session, agent_connection)
    places = {(r.producer_cpu, r.accumulator_cpu, r.journaller_cpu, r.no_journaller) for r in measured.requests}
    assert places == {(2, 3, None, True)}


def test_a_proof_measures_as_its_chapter_does(
    session: OpenSession, agent_connection: AgentConnection, measured: Measured
) -> None:
    like = MeasureRequest(workload="spin", duty=50, pause="busy", label="after", preset="standard")
    prove(words("thp", rounds=1, like=like, chapter="pages"), session, agent_connection)
    (proof,) = session.proofs()
    assert proof.chapter == "pages"
    assert {(r.workload, r.duty, r.pause, r.preset) for r in measured.requests} == {("spin", 50, "busy", "quick")}


@pytest.mark.parametrize("applied", [False, True])
def test_the_interrupt_of_the_noise_arrives_on_the_measured_cpu_in_runs_without_the_change_alone(
    session: OpenSession,
    agent_connection: AgentConnection,
    tree: Path,
    measured: Measured,
    monkeypatch: pytest.MonkeyPatch,
    applied: bool,
) -> None:
    table = "           CPU0 CPU1 CPU2 CPU3\n 24:   0    0    5    0  PCI-MSIX-0000:00:05.0  1-edge  virtio4-input\n"
    (tree / "proc/interrupts").write_text(table)
    before = tuned_tree.contents(tree)
    has(monkeypatch, hwrng=(24,))
    if applied:
        shown = agent_connection.plan(("irq-affinity",), CpuSet((2, 3))).changes
        assert agent_connection.apply(("irq-affinity",), CpuSet((2, 3)), shown).applied
    like = MeasureRequest(workload="spin", noise="hwrng", duty=100, label="after")
    prover = Prover(words("irq-affinity", rounds=3, like=like, arrives=True), session, agent_connection)
    plan = prover.plan()
    (write,) = [one for one in plan.notices if "smp_affinity_list" in one]
    assert f"writes 2 to /{IRQ} (now 0-3)" in write
    proof = prover.prove(plan, Watcher(), CancelToken())
    assert len(proof.rounds) == 3
    sent = dict(zip((request.label.rpartition(" ")[2] for request in measured.requests), measured.sent, strict=True))
    assert sent == {"without": "2", "with": "0-1"}
    assert tuned_tree.contents(tree) == before


# -- what cannot be proven ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        (words("nohz-full"), HostError, "takes effect with a boot"),
        (words("user-tasks"), HostError, "does not change"),
        (
            words("stat-interval=1"),
            HostError,
            "a proof would have nothing to change; prove another value: stat-interval=VALUE",
        ),
        (words("thp", "placement"), UsageError, "either placement or settings"),
        (words("thp", rounds=0), UsageError, "1 to 1,000 rounds"),
        (words("thp", rounds=1001), UsageError, "1 to 1,000 rounds"),
        (words("thp", wait_s=-1.0), UsageError, "time to wait"),
        (words("thp", duration_s=0.0), UsageError, "the duration of a run"),
        (words("nothing"), UsageError, "no tunable 'nothing'"),
        (words("thp=7"), UsageError, "thp cannot be '7'"),
        (ProveRequest(cpus="3"), UsageError, "needs 2 or 3 CPUs"),
        (ProveRequest(cpus="2-3", workload="spin"), UsageError, "needs one CPU"),
        (ProveRequest(cpus="x"), UsageError, "takes a list"),
    ],
)
def test_an_impossible_proof_is_refused_in_the_plan(
    session: OpenSession, agent_connection: AgentConnection, asked: ProveRequest, error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as told:
        Prover(asked, session, agent_connection).plan()
    assert says in told.value.sentence()  # type: ignore[attr-defined]


def test_two_threads_that_the_scheduler_moves_cannot_be_measured_on_one_isolated_cpu(tree: Path) -> None:
    root, ids = HostRoot(tree), frozenset({"isolation"})
    free = MeasureRequest(workload="ring", placement="none")
    asked = words("isolation", workload="ring", like=free)
    with pytest.raises(HostError, match="ring needs two CPUs, but while CPU"):
        proof_plan.measured_on(asked, root, read_topology(root), CpuSet((3,)), ids)
    like = words("isolation", like=free)
    measured, _ = proof_plan.measured_on(like, root, read_topology(root), CpuSet((3,)), ids)
    assert (measured.workload, measured.placement) == ("spin", "none")


def test_if_one_cpu_is_isolated_all_runs_are_of_the_ring(tree: Path) -> None:
    root, ids = HostRoot(tree), frozenset({"isolation"})
    for asked in (words("isolation", workload="ring"), words("isolation", like=MeasureRequest(workload="ring"))):
        measured, why = proof_plan.measured_on(asked, root, read_topology(root), CpuSet((3,)), ids)
        assert (measured.workload, measured.accumulator_cpu, measured.no_journaller) == ("ring", 3, True)
        assert measured.producer_cpu not in (3, None)
        assert "those of the producer" in why


def test_a_host_that_cannot_be_written_is_no_place_to_prove_a_setting(session: OpenSession, tree: Path) -> None:
    with pytest.raises(HostError, match="root's rights"):
        Prover(words("thp"), session, AgentConnection()).plan()


def test_a_setting_that_is_already_applied_is_not_proven_against_itself(
    session: OpenSession, agent_connection: AgentConnection, tree: Path, measured: Measured
) -> None:
    other = AgentConnection()
    plan = other.plan(("thp",), CpuSet((2, 3)))
    other.apply(("thp",), CpuSet((2, 3)), plan.changes)
    other.keep()
    with pytest.raises(HostError) as told:
        Prover(words("thp"), session, agent_connection).plan()
    assert told.value.advice == "restore it first: 'jitter-workshop restore thp'"
    proof = prove(words("stat-interval", rounds=1), session, agent_connection)
    assert all({"id": "thp", "value": "madvise"} in run.applied for run in session.runs())
    assert proof.restored
    assert "[madvise]" in (tree / THP).read_text()
    other.close()


def test_our_own_lease_is_given_back_first_and_does_not_stand_at_the_end(
    session: OpenSession, agent_connection: AgentConnection, tree: Path, measured: Measured
) -> None:
    before = tuned_tree.contents(tree)
    agent_connection.apply(("thp",), CpuSet((2, 3)), agent_connection.plan(("thp",), CpuSet((2, 3))).changes)
    prover = Prover(words("thp", rounds=2), session, agent_connection)
    plan = prover.plan()
    assert [(change.path, change.before, change.after) for change in plan.changes] == [(f"/{THP}", "always", "madvise")]
    assert any("are restored first" in notice for notice in plan.notices)
    proof = prover.prove(plan, Watcher(), CancelToken())
    assert proof.complete
    assert proof.restored
    assert not agent_connection.holding
    assert tuned_tree.contents(tree) == before


def test_our_own_lease_of_another_value_has_to_be_given_back_first(
    session: OpenSession, agent_connection: AgentConnection, tree: Path
) -> None:
    agent_connection.apply(
        ("thp=never",), CpuSet((2, 3)), agent_connection.plan(("thp=never",), CpuSet((2, 3))).changes
    )
    with pytest.raises(HostError, match="thp has the value never already"):
        Prover(words("thp"), session, agent_connection).plan()
    assert [change.after for change in Prover(words("thp=never"), session, agent_connection).plan().changes] == [
        "never"
    ]


def test_a_session_that_is_only_read_cannot_keep_a_proof(
    session: OpenSession, agent_connection: AgentConnection
) -> None:
    with SessionStore(session.folder.parent).open(session.folder.name) as reader, pytest.raises(SessionError):
        Prover(words("thp"), reader, agent_connection).plan()


def test_a_plan_that_was_not_shown_is_not_carried_out(session: OpenSession, agent_connection: AgentConnection) -> None:
    prover = Prover(words("thp"), session, agent_connection)
    plan = prover.plan()
    with pytest.raises(HostError, match="not the one"):
        prover.prove(dataclasses.replace(plan, rounds=99), Watcher(), CancelToken())


def test_the_hosts_turn_is_held_for_all_of_it(
    session: OpenSession, agent_connection: AgentConnection, measured: Measured
) -> None:
    with lock.host_turn(), pytest.raises(BusyError):
        prove(words("thp", rounds=1), session, agent_connection)
    taken: list[bool] = []

    def look(step: ProofStep) -> None:
        with pytest.raises(BusyError), lock.host_turn():
            pass
        taken.append(True)

    prove(words("thp", rounds=1), session, agent_connection, Watcher(look))
    assert taken == [True, True]


# -- what ends it early ------------------------------------------------------------------------------------------------


def test_stopped_after_some_rounds_they_are_judged_and_all_is_given_back(
    session: OpenSession, agent_connection: AgentConnection, tree: Path, measured: Measured
) -> None:
    before, token = tuned_tree.contents(tree), CancelToken()
    watcher = Watcher(lambda step: token.cancel("SIGINT") if step.number == 7 else None)
    proof = prove(words("thp"), session, agent_connection, watcher, token)
    assert (len(proof.rounds), proof.planned, proof.complete) == (3, 10, False)
    assert proof.stopped == "stopped by SIGINT"
    assert proof.restored
    assert proof.judgement is not None
    assert proof.judgement.rounds == 3
    assert watcher.restored == 1
    assert tuned_tree.contents(tree) == before
    assert session.proofs() == (proof,)


@pytest.mark.parametrize(("at_run", "warned"), [(18, False), (20, True), (22, True)])
def test_a_stop_after_verdicts_are_possible_adds_a_warning(
    session: OpenSession, agent_connection: AgentConnection, measured: Measured, at_run: int, warned: bool
) -> None:
    token = CancelToken()
    watcher = Watcher(lambda step: token.cancel("SIGINT") if step.number == at_run else None)
    request = dataclasses.replace(words("thp"), rounds=12)
    proof = prove(request, session, agent_connection, watcher, token)
    assert len(proof.rounds) == at_run // 2
    assert any("luck too often" in note for note in proof.notes) == warned


def test_stopped_before_the_first_round_there_is_nothing_to_tell(
    session: OpenSession, agent_connection: AgentConnection, tree: Path, measured: Measured
) -> None:
    before, token = tuned_tree.contents(tree), CancelToken()
    watcher = Watcher(lambda step: token.cancel("SIGINT") if step.number == 1 else None)
    with pytest.raises(Cancelled):
        prove(words("thp"), session, agent_connection, watcher, token)
    assert tuned_tree.contents(tree) == before
    assert session.proofs() == ()


def test_a_run_that_was_cut_short_makes_no_round(
    session: OpenSession, agent_connection: AgentConnection, measured: Measured
) -> None:
    measured.spoil[3] = lambda run: dataclasses.replace(run, complete=False)
    proof = prove(words("thp"), session, agent_connection)
    assert len(proof.rounds) == 1
    assert len(session.runs()) == 4


def test_a_failed_measurement_ends_a_proof_with_its_finished_rounds(
    session: OpenSession, agent_connection: AgentConnection, tree: Path, measured: Measured
) -> None:
    before = tuned_tree.contents(tree)
    measured.fail[5] = MeasureError("the measuring process ended", "look at dmesg")
    proof = prove(words("thp"), session, agent_connection)
    assert len(proof.rounds) == 2
    assert proof.stopped.startswith("a measurement failed: the measuring process ended")
    assert proof.stopped.endswith("look at dmesg")
    assert tuned_tree.contents(tree) == before


def test_even_a_mistake_gives_the_host_back(
    session: OpenSession, agent_connection: AgentConnection, tree: Path, measured: Measured
) -> None:
    before = tuned_tree.contents(tree)
    for number in range(4):
        measured.fail[number] = KeyError("a mistake")
    with pytest.raises(KeyError):
        prove(words("thp"), session, agent_connection)
    assert tuned_tree.contents(tree) == before


def test_a_watcher_may_fail_and_the_host_is_restored(
    session: OpenSession, agent_connection: AgentConnection, tree: Path, measured: Measured
) -> None:
    before = tuned_tree.contents(tree)
    measured.fail[1] = MeasureError("the measuring process ended")  # with the setting in place, or before it
    measured.fail[0] = MeasureError("the measuring process ended")

    class Gone(Watcher):
        def restoring(self) -> None:
            raise OSError("the terminal has gone")

    for seed in (1, 2, 3, 4):
        with pytest.raises(OSError, match="has gone"):
            prove(words("thp", seed=seed), session, agent_connection, Gone())
        assert tuned_tree.contents(tree) == before
        measured.requests.clear()


@pytest.fixture
def refusing(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentConnection]:
    yield from with_agent(tree, monkeypatch, f"refuse=/{STAT}")


def test_a_change_that_is_partly_refused_ends_it_before_anything_is_measured(
    session: OpenSession, refusing: AgentConnection, tree: Path, measured: Measured
) -> None:
    before = tuned_tree.contents(tree)
    with pytest.raises(HostError, match="stat-interval was applied only in part"):
        prove(words("thp", "stat-interval"), session, refusing)
    assert measured.requests == []
    assert tuned_tree.contents(tree) == before


def test_a_host_that_is_another_by_now_ends_it(
    session: OpenSession, agent_connection: AgentConnection, tree: Path, measured: Measured
) -> None:
    def meddle(step: ProofStep) -> None:
        if step.number == 6:
            (tree / STAT).write_text("7\n")

    proof = prove(words("stat-interval"), session, agent_connection, Watcher(meddle))
    assert len(proof.rounds) == 3
    assert "stat_interval is '7' without" in proof.stopped
    assert "value before was '1'" in proof.stopped
    assert proof.restored
    assert [left.found for left in proof.left_alone] == ["7"]
    assert (tree / STAT).read_text() == "7\n"


def test_a_plan_that_differs_at_the_start_is_not_carried_out(
    session: OpenSession, agent_connection: AgentConnection, tree: Path, measured: Measured
) -> None:
    prover = Prover(words("stat-interval"), session, agent_connection)
    plan = prover.plan()
    (tree / STAT).write_text("7\n")
    with pytest.raises(HostError, match="no longer those that were shown"):
        prover.prove(plan, Watcher(), CancelToken())
    assert measured.requests == []


@pytest.mark.parametrize(
    "seed", [next(s for s in range(99) if draw_orders(2, s)[1] == order) for order in ("AB", "BA")]
)
def test_a_write_of_others_during_a_run_without_the_change_spoils_its_round(
    session: OpenSession, agent_connection: AgentConnection, tree: Path, measured: Measured, seed: int
) -> None:
    def meddling(run: Run) -> Run:
        if run.label.endswith("2 without"):
            (tree / STAT).write_text("7\n")
        return run

    measured.spoil = dict.fromkeys(range(20), meddling)
    proof = prove(words("stat-interval", rounds=2, seed=seed), session, agent_connection)
    assert len(proof.rounds) == 1
    assert "stat-interval was applied only in part" in proof.stopped or "without the change" in proof.stopped
    assert proof.restored
    (left,) = proof.left_alone
    assert (left.tunable, left.expected, left.found) == ("stat-interval", "1", "7")
    text = written(proof_verdict_lines(proof, 100))
    assert "some values have changed since:" in text


# -- rounds that do not count ------------------------------------------------------------------------------------------


def test_a_round_in_which_a_setting_changed_is_measured_again(
    session: OpenSession, agent_connection: AgentConnection, measured: Measured
) -> None:
    measured.spoil[3] = lambda run: dataclasses.replace(run, notes={**run.notes, UNSTEADY: "thp changed while it ran"})
    proof = prove(words("thp"), session, agent_connection)
    assert proof.complete
    assert len(session.runs()) == 22
    assert [note.split(":")[0] for note in proof.notes] == ["round 2 was measured again"]
    assert proof.notes[0].endswith(": thp changed while it ran")


def test_a_host_that_changes_all_the_time_is_given_up(
    session: OpenSession, agent_connection: AgentConnection, measured: Measured
) -> None:
    for number in range(2, 40):
        measured.spoil[number] = lambda run: dataclasses.replace(run, notes={**run.notes, UNSTEADY: "it changed"})
    proof = prove(words("thp"), session, agent_connection)
    assert len(proof.rounds) == 1
    assert "changes during the measurement: it changed" in proof.stopped
    assert [note.split(":")[0] for note in proof.notes] == ["round 2 was measured again"]
    assert proof.notes[0].endswith(": it changed (3 times)")


@pytest.mark.parametrize("spoilt", [(3,), (2, 3)])
def test_a_round_by_another_clock_is_measured_again(
    session: OpenSession, agent_connection: AgentConnection, measured: Measured, spoilt: tuple[int, ...]
) -> None:
    for number in spoilt:
        measured.spoil[number] = lambda run: dataclasses.replace(
            run, clock=dataclasses.replace(run.clock, source="monotonic")
        )
    proof = prove(words("thp"), session, agent_connection)
    assert proof.complete
    (note,) = proof.notes
    assert note.startswith("round 2 was measured again: clock: ")


def test_a_round_whose_setting_does_not_stay_is_not_counted(
    session: OpenSession, agent_connection: AgentConnection, tree: Path, measured: Measured
) -> None:
    def meddling(run: Run) -> Run:
        if "[madvise]" in (tree / THP).read_text():
            (tree / THP).write_text("always madvise [never]\n")
        return run

    for number in range(40):
        measured.spoil[number] = meddling
    proof = prove(words("thp"), session, agent_connection)
    assert proof.rounds == ()
    assert not proof.restored
    assert proof.left_alone[0].tunable == "thp"
    assert proof.judgement is None


def test_other_tasks_are_named_and_their_rounds_count(
    session: OpenSession, agent_connection: AgentConnection, measured: Measured
) -> None:
    company = (ForeignLoad(7, "evil\x1b[31m", 2, 12.5),)
    for number in (0, 4, 5, 6, 7):
        measured.spoil[number] = lambda run: dataclasses.replace(run, disturbed=company)
    proof = prove(words("thp"), session, agent_connection)
    assert proof.complete
    assert proof.disturbed == 5
    (note,) = proof.notes
    assert note.startswith("other tasks used the measured CPUs")
    assert "in 5 runs, and the result includes" in note
    assert "and 2 more" in note
    assert "\x1b" not in note


def test_sides_on_different_cpus_are_told(
    session: OpenSession, agent_connection: AgentConnection, measured: Measured
) -> None:
    place = Placement("chosen", 0, 1, None, None, (1,), (0,), "")
    measured.spoil[0] = lambda run: dataclasses.replace(run, placement=place)
    proof = prove(words("thp", rounds=2), session, agent_connection)
    assert any("used different CPUs" in note for note in proof.notes)


class Threads(AgentConnection):
    """A host whose kernel threads come and go: one of those that were shown has ended, three are new."""

    def __init__(self, shown: Change) -> None:
        super().__init__()
        self.shown = shown

    def plan(self, words: Sequence[str], cpus: CpuSet) -> Plan:
        new = tuple(dataclasses.replace(self.shown, path=f"sched_setaffinity({n}@{n})") for n in (7, 8, 9))
        return Plan(None, cpus.cpus, new)

    def apply(self, words: Sequence[str], cpus: CpuSet, shown: Sequence[Change]) -> ApplyResult:
        return ApplyResult("one", (), (), False, ended=1)

    def restore(self, tunables: Sequence[str] = ()) -> RestoreResult:
        return RestoreResult((), (), False)


def test_tasks_that_come_and_go_stop_nothing_and_are_counted(tree: Path) -> None:
    change = Change(1, "kernel-threads", "sched_setaffinity(5@5)", "0-3", "0-1", "runtime", "low", "", kind="affinity")
    hot = CpuSet((2, 3))
    sides = TunableSides(Threads(change), ("kernel-threads",), hot, (change,), HostRoot(tree))
    sides.begin()
    sides.apply()
    fallen, stayed = sides.notes()
    assert "at most 1 write was not needed" in fallen
    assert fallen.endswith("the task had ended")
    assert stayed.startswith("up to 3 tasks began after")
    assert stayed.endswith("so no write moved these tasks")


# -- after a kill ------------------------------------------------------------------------------------------------------


def test_a_kill_loses_at_most_a_round_and_the_next_start_says_so(
    session: OpenSession, agent_connection: AgentConnection, tree: Path, measured: Measured
) -> None:
    seen: list[dict[str, Any]] = []

    def look(step: ProofStep) -> None:
        for path in (session.folder / FOLDER).glob("*.json"):
            seen.append(json.loads(path.read_text()))

    prove(words("thp", rounds=3), session, agent_connection, Watcher(look))
    assert [len(one["rounds"]) for one in seen] == [1, 1, 2, 2]
    assert {one["ended_at"] for one in seen} == {""}
    cut = dataclasses.replace(session.proofs()[0], ended_at="", restored=False, complete=False)
    session.add_proof(cut)
    folder = session.folder
    session.close()
    with SessionStore(folder.parent).open(folder.name) as later:
        Prover(words("thp"), later, agent_connection).plan()
        assert any("was interrupted" in notice for notice in later.notices)
        (found,) = later.proofs()
        assert (found.stopped, found.restored, found.complete) == (CUT_OFF, True, False)
    stored = json.loads((folder / FOLDER / f"{cut.id}.json").read_text())
    assert stored["stopped"] == CUT_OFF


def test_runs_that_cannot_be_kept_end_it(
    session: OpenSession, agent_connection: AgentConnection, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = make_run()
    measured.fail[4] = measuring.RunNotKept("the run was measured but could not be saved: the disk is full", run)
    proof = prove(words("thp"), session, agent_connection)
    assert len(proof.rounds) == 2
    assert proof.stopped.endswith("not be saved: the disk is full")


def test_a_proof_that_cannot_be_kept_is_told_all_the_same(
    session: OpenSession, agent_connection: AgentConnection, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(proof: Proof) -> None:
        raise SessionError("the disk is full", "free some space")

    monkeypatch.setattr(session, "add_proof", full)
    proof = prove(words("thp"), session, agent_connection)
    assert len(proof.rounds) == 1
    assert any(note.startswith("the proof could not be") and "the disk is full" in note for note in proof.notes)


# -- a lease that ends by itself ---------------------------------------------------------------------------------------


def test_the_restore_of_a_lost_lease_is_in_the_history(
    session: OpenSession, agent_connection: AgentConnection, tree: Path, measured: Measured
) -> None:
    before = tuned_tree.contents(tree)
    agent_connection.change_log = ChangeLog(session, HostRoot(tree))

    def lose(run: Run) -> Run:
        if run.label.endswith("with"):
            measured.spoil.clear()  # once
            agent = agent_connection._agent
            assert agent is not None
            link = agent._link
            assert isinstance(link, ProcessLink)
            assert link._process.stdin is not None
            link._process.stdin.close()  # as an agent sees a program that stands still: no message comes any more
            link._process.wait(30)
        return run

    measured.spoil[0] = measured.spoil[1] = lose
    proof = prove(words("thp", rounds=2), session, agent_connection)
    assert proof.complete
    assert any("was measured again" in note for note in proof.notes)
    assert tuned_tree.contents(tree) == before
    events, _ = history.read_history(session.folder)
    did = [event.did for event in events if event.path.endswith("enabled")]
    assert did.count("applied") == did.count("restored")
    (alone,) = [event for event in events if event.reason == LAPSED]
    assert (alone.did, alone.before, alone.after) == ("restored", "madvise", "always")
