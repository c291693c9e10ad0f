"""Who comes next on a shared machine: every change of a :class:`TurnState`, as functions without a clock or a file.

First come, first served, one place in the queue for each user; whoever had a turn stands at the end again. A turn ends
once its machine is as it was: until then it is ``returning``, and nobody's turn begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from jitter_workshop.errors import HostError
from jitter_workshop.model.text import clean
from jitter_workshop.model.turn import Process, Turn, TurnState, Waiting

Alive = Callable[[Process], bool]

WHO = "'jitter-workshop class turn' says who has the turn and who waits"
"""The advice to who named nobody of them."""
MAX_WAITING = 256
GRACE_S = 150.0
"""How long an agent may take to see that its turn is over: longer than any write to the host takes (update-grub)."""


def join(state: TurnState, waiting: Waiting) -> TurnState:
    """Stand at the end of the queue. Raises HostError for who waits or has the turn already, and for a full queue."""
    if state.turn is not None and state.turn.uid == waiting.uid:
        raise HostError("you have the turn already, in another connection", "'jitter-workshop class turn give' ends it")
    if any(one.uid == waiting.uid for one in state.queue):
        raise HostError(
            "you wait for the turn already, in another connection",
            "wait there, or give that place up with 'jitter-workshop class turn give'",
        )
    if len(state.queue) >= MAX_WAITING:
        raise HostError(f"{MAX_WAITING} wait already", "try again later")
    return replace(state, queue=(*state.queue, waiting))


def join_first(state: TurnState, waiting: Waiting) -> TurnState:
    """Stand before all students, behind instructors who wait. Raises what ``join`` raises."""
    joined = join(state, waiting)
    before = tuple(one for one in state.queue if one.limit_s is None)
    after = tuple(one for one in state.queue if one.limit_s is not None)
    return replace(joined, queue=(*before, waiting, *after))


def leave(state: TurnState, agent: Process) -> TurnState:
    """Without the place in the queue that ``agent`` stood for, where it had one."""
    return replace(state, queue=tuple(one for one in state.queue if one.agent != agent))


def grant(state: TurnState, now_s: float) -> TurnState:
    """The first in the queue has the turn, where nobody has it and nothing speaks against it. A frozen class waits, but
    for its instructors; where the machine is not as it was, only they get it, to look into it."""
    if state.turn is not None or not state.queue:
        return state
    barred = bool(state.frozen_by or state.trouble)
    first = next((one for one in state.queue if one.limit_s is None or not barred), None)
    if first is None:
        return state
    turn = Turn(
        number=state.number + 1,
        uid=first.uid,
        people=first.people,
        agent=first.agent,
        client=first.client,
        began_s=now_s,
        ends_s=None if first.limit_s is None else now_s + first.limit_s,
    )
    return replace(leave(state, first.agent), number=turn.number, turn=turn)


def prune(state: TurnState, alive: Alive) -> TurnState:
    """Without those in the queue whose agents have ended. A turn whose agent has ended stays until its machine is given
    back (:func:`orphaned`)."""
    return replace(state, queue=tuple(one for one in state.queue if alive(one.agent)))


def orphaned(state: TurnState, alive: Alive) -> bool:
    """Whether somebody else has to give the machine back, because the agent that would do it has ended."""
    return state.turn is not None and not alive(state.turn.agent)


def adopt(state: TurnState, agent: Process) -> TurnState:
    """``agent`` gives the machine back from now on."""
    assert state.turn is not None
    return replace(state, turn=replace(state.turn, agent=agent, returning=True))


def returning(state: TurnState) -> TurnState:
    """The turn is over, and its machine is being given back."""
    return replace(state, turn=replace(state.turn, returning=True)) if state.turn is not None else state


def returned(state: TurnState, trouble: str = "") -> TurnState:
    """The machine is given back, or with ``trouble`` it is not as it was: then no student's turn begins until an
    instructor says so (:func:`thaw`)."""
    return replace(state, turn=None, trouble=trouble or state.trouble)


def end(state: TurnState, uid: int | None, by: str, now_s: float) -> TurnState:
    """An instructor ends the turn, or takes somebody out of the queue: of user ``uid``, None for whoever has the turn.
    Raises HostError where there is no such thing."""
    turn = state.turn
    if turn is not None and uid in (None, turn.uid):
        return replace(state, turn=replace(turn, ended_by=by, ends_s=min(turn.ends_s or now_s, now_s)))
    rest = tuple(one for one in state.queue if one.uid != uid)
    if len(rest) == len(state.queue):
        raise HostError(
            "nobody of that name has the turn or waits for it" if uid is not None else "nobody has the turn", WHO
        )
    return replace(state, queue=rest)


def freeze(state: TurnState, by: str) -> TurnState:
    """No new turn begins; the one that goes on ends as it would."""
    return replace(state, frozen_by=by)


def thaw(state: TurnState) -> TurnState:
    """Turns begin again, also on a machine that was not as before: an instructor has seen it and says so."""
    return replace(state, frozen_by="", trouble="")


def say(state: TurnState, agent: Process, doing: str) -> TurnState:
    """What the holder does, in their own words. Raises HostError where ``agent`` has not the turn."""
    if state.turn is None or state.turn.agent != agent:
        raise HostError("you do not have the turn")
    return replace(state, turn=replace(state.turn, doing=clean(doing, 60)))


def over(turn: Turn, now_s: float) -> str:
    """Why a turn is over, in words; "" while it goes on."""
    if turn.ended_by:
        return f"{turn.ended_by} ended your turn"
    if turn.ends_s is not None and now_s >= turn.ends_s:
        return f"your turn is over: {(turn.ends_s - turn.began_s) / 60:.3g} minutes are the longest in this class"
    return ""


def stuck_s(state: TurnState) -> float:
    """When the agent of the turn has had time enough to end it: whoever waits may end that agent then. Infinite where
    no end is set, or the machine is being given back, which takes as long as it takes."""
    turn = state.turn
    if turn is None or turn.returning or turn.ends_s is None:
        return float("inf")
    return turn.ends_s + GRACE_S


def place_of(state: TurnState, agent: Process) -> int | None:
    """How many turns begin before that of ``agent``: 0 = it has the turn; None: it neither has it nor waits."""
    if state.turn is not None and state.turn.agent == agent and not state.turn.returning:
        return 0
    ahead = 1 if state.turn is not None else 0
    return next((ahead + i for i, one in enumerate(state.queue) if one.agent == agent), None)
