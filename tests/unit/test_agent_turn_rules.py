"""Test the queue of turns: it keeps to the rules in every order of asking, leaving, dying and ending."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jitter_workshop.agent.turns import rules as turns
from jitter_workshop.errors import HostError
from jitter_workshop.model.turn import Process, TurnState, Waiting

LIMIT_S = 100.0


def waiting(uid: int, since_s: float = 0.0, limit_s: float | None = LIMIT_S) -> Waiting:
    return Waiting(uid, (f"user{uid}",), Process(uid * 10, 1), Process(uid * 10 + 1, 1), since_s, limit_s)


def everybody(_process: Process) -> bool:
    return True


def test_first_come_first_served() -> None:
    state = TurnState("boot")
    for uid in (3, 1, 2):
        state = turns.join_queue(state, waiting(uid))
    served = []
    while state.queue:
        state = turns.grant(state, 0.0)
        assert state.turn is not None
        served.append(state.turn.uid)
        assert turns.grant(state, 1.0) == state
        state = turns.returned(turns.returning(state))
    assert served == [3, 1, 2]
    assert state.number == 3


def test_a_user_has_one_place_in_the_queue_or_the_turn() -> None:
    state = turns.join_queue(TurnState("boot"), waiting(1))
    with pytest.raises(HostError, match="already waits for the turn") as refused:
        turns.join_queue(state, waiting(1))
    assert "class turn give" in refused.value.advice
    state = turns.grant(state, 0.0)
    with pytest.raises(HostError, match="already has the turn"):
        turns.join_queue(state, waiting(1))


def test_a_full_queue_says_so() -> None:
    state = TurnState("boot")
    for uid in range(turns.MAX_WAITING):
        state = turns.join_queue(state, waiting(uid + 1))
    with pytest.raises(HostError, match="wait already"):
        turns.join_queue(state, waiting(9999))


def test_an_instructor_comes_before_students_and_behind_instructors() -> None:
    state = turns.join_queue(TurnState("boot"), waiting(1))
    state = turns.join_first(state, waiting(2, limit_s=None))
    state = turns.join_first(state, waiting(3, limit_s=None))
    assert [one.uid for one in state.queue] == [2, 3, 1]
    state = turns.grant(state, 5.0)
    assert state.turn is not None
    assert state.turn.ends_s is None
    assert turns.why_over(state.turn, 1e9) == ""


def test_a_turn_is_over_by_time_and_not_before() -> None:
    state = turns.grant(turns.join_queue(TurnState("boot"), waiting(1)), 50.0)
    assert state.turn is not None
    assert turns.why_over(state.turn, 50.0 + LIMIT_S - 0.001) == ""
    assert turns.why_over(state.turn, 50.0 + LIMIT_S) == ("your turn is over: 1.67 minutes are the limit in this class")


def test_no_turn_is_granted_until_the_host_is_restored() -> None:
    state = turns.join_queue(turns.join_queue(TurnState("boot"), waiting(1)), waiting(2))
    state = turns.returning(turns.grant(state, 0.0))
    assert turns.grant(state, 1.0) == state
    state = turns.grant(turns.returned(state, "governor: it says powersave"), 2.0)
    assert state.turn is None
    assert state.trouble == "governor: it says powersave"
    held = turns.grant(turns.join_first(state, waiting(9, limit_s=None)), 3.0)
    assert held.turn is not None
    assert held.turn.uid == 9
    thawed = turns.grant(turns.thaw(state), 3.0)
    assert thawed.turn is not None
    assert thawed.turn.uid == 2


def test_a_frozen_class_waits() -> None:
    state = turns.freeze(turns.join_queue(TurnState("boot"), waiting(1)), "ada")
    assert turns.grant(state, 0.0).turn is None
    assert turns.grant(turns.thaw(state), 0.0).turn is not None


def test_an_instructor_ends_a_turn_or_a_wait() -> None:
    state = turns.grant(turns.join_queue(turns.join_queue(TurnState("boot"), waiting(1)), waiting(2)), 0.0)
    ended = turns.end_turn(state, None, "ada", 0.0)
    assert ended.turn is not None
    assert turns.why_over(ended.turn, 1.0) == "ada ended your turn"
    assert turns.end_turn(state, 2, "ada", 0.0).queue == ()
    with pytest.raises(HostError):
        turns.end_turn(state, 3, "ada", 0.0)
    with pytest.raises(HostError, match="no one has the turn"):
        turns.end_turn(TurnState("boot"), None, "ada", 0.0)


def test_an_agent_has_so_long_to_end_its_turn() -> None:
    """Without an end there is none to miss, until an instructor sets one; giving back takes as long as it takes."""
    state = turns.grant(turns.join_queue(TurnState("boot"), waiting(1)), 0.0)
    assert turns.stuck_s(state) == LIMIT_S + turns.GRACE_S
    assert turns.stuck_s(turns.end_turn(state, None, "ada", 10.0)) == 10.0 + turns.GRACE_S
    assert turns.stuck_s(turns.returning(state)) == float("inf")
    assert turns.stuck_s(TurnState("boot")) == float("inf")
    held = turns.grant(turns.join_queue(TurnState("boot"), waiting(1, limit_s=None)), 0.0)
    assert turns.stuck_s(held) == float("inf")
    assert turns.stuck_s(turns.end_turn(held, None, "ada", 10.0)) == 10.0 + turns.GRACE_S


@pytest.mark.parametrize(("moments", "ends_s"), [((10.0, 90.0), 10.0), ((LIMIT_S, LIMIT_S + 15.0), LIMIT_S)])
def test_a_turn_that_is_ended_again_ends_no_later(moments: tuple[float, ...], ends_s: float) -> None:
    """Otherwise each further try to end a turn would give more time to an agent that hangs."""
    state = turns.grant(turns.join_queue(TurnState("boot"), waiting(1)), 0.0)
    for moment in moments:
        state = turns.end_turn(state, None, "ada", moment)
        assert state.turn is not None
        assert (state.turn.ends_s, turns.stuck_s(state)) == (ends_s, ends_s + turns.GRACE_S)


def test_an_orphaned_turn_is_adopted_and_ends() -> None:
    state = turns.grant(turns.join_queue(TurnState("boot"), waiting(1)), 0.0)
    assert not turns.orphaned(state, everybody)
    assert turns.orphaned(state, lambda _: False)
    state = turns.replace_agent(state, Process(77, 7))
    assert state.turn is not None
    assert state.turn.returning
    assert not turns.orphaned(state, lambda process: process == Process(77, 7))


def test_words_of_the_holder_are_cleaned_and_theirs_alone() -> None:
    state = turns.grant(turns.join_queue(TurnState("boot"), waiting(1)), 0.0)
    said = turns.describe_work(state, Process(10, 1), "pin\x1b[2Jning" + "x" * 400)
    assert said.turn is not None
    assert said.turn.doing.isprintable()
    assert len(said.turn.doing) <= 60
    with pytest.raises(HostError):
        turns.describe_work(state, Process(20, 1), "mine")


class Class(RuleBasedStateMachine):
    """Ten students and two instructors who ask, leave, die, hog and are ended, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.state = TurnState("boot")
        self.now = 0.0
        self.dead: set[Process] = set()
        self.lives = dict.fromkeys(range(1, 13), 1)
        self.order: list[int] = []

    def alive(self, process: Process) -> bool:
        return process not in self.dead

    def ticket(self, uid: int) -> Waiting:
        agent = Process(uid * 1000 + self.lives[uid], 1)
        return replace(waiting(uid, self.now, None if uid > 10 else LIMIT_S), agent=agent)

    def settle(self) -> None:
        """Prune the state, and give an orphaned turn back, as every change does at its end."""
        self.state = turns.prune(self.state, self.alive)
        if turns.orphaned(self.state, self.alive):
            self.state = turns.returned(turns.replace_agent(self.state, Process(1, 1)))
        before = self.state
        self.state = turns.grant(self.state, self.now)
        if self.state.turn is not None and before.turn is None:
            passed = [one.uid for one in before.queue[: [w.uid for w in before.queue].index(self.state.turn.uid)]]
            barred = before.frozen_by or before.trouble
            assert not passed or (barred and self.state.turn.uid > 10)

    @rule(uid=st.integers(1, 12))
    def ask(self, uid: int) -> None:
        join = turns.join_first if uid > 10 else turns.join_queue
        try:
            self.state = join(self.state, self.ticket(uid))
        except HostError:
            assert any(one.uid == uid for one in self.state.queue) or (
                self.state.turn is not None and self.state.turn.uid == uid
            )
        self.settle()

    @rule(uid=st.integers(1, 12))
    def die(self, uid: int) -> None:
        self.dead.add(self.ticket(uid).agent)
        self.lives[uid] += 1
        self.settle()

    @rule(uid=st.integers(1, 12))
    def leave(self, uid: int) -> None:
        self.state = turns.leave_queue(self.state, self.ticket(uid).agent)
        self.settle()

    @rule(seconds=st.floats(0, 200))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        if self.state.turn is not None and turns.why_over(self.state.turn, self.now):
            self.state = turns.returned(turns.returning(self.state))
        self.settle()

    @rule(trouble=st.sampled_from(["", "", "", "it stayed"]))
    def give(self, trouble: str) -> None:
        if self.state.turn is not None:
            self.state = turns.returned(turns.returning(self.state), trouble)
        self.settle()

    @rule()
    def freeze(self) -> None:
        self.state = turns.freeze(self.state, "ada")

    @rule()
    def thaw(self) -> None:
        self.state = turns.thaw(self.state)
        self.settle()

    @precondition(lambda self: self.state.turn is not None)
    @rule()
    def end(self) -> None:
        self.state = turns.end_turn(self.state, None, "ada", 0.0)
        assert self.state.turn is not None
        assert turns.why_over(self.state.turn, self.now)

    @invariant()
    def each_has_one_place(self) -> None:
        uids = [one.uid for one in self.state.queue]
        if self.state.turn is not None:
            uids.append(self.state.turn.uid)
        assert len(uids) == len(set(uids))

    @invariant()
    def students_stand_in_the_order_of_coming(self) -> None:
        since = [one.since_s for one in self.state.queue if one.uid <= 10]
        assert since == sorted(since)

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        free = self.state.turn is None and not self.state.frozen_by and not self.state.trouble
        assert not (free and self.state.queue)


Class.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestClass = Class.TestCase
