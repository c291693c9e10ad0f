"""Decide which user has the next turn on a shared machine.

Each function takes a :class:`TurnState`, and returns a new TurnState or a fact about the given one. No function reads a
clock or a file.

Users get the turn in the order of the queue, where each user has one place. After a turn, its holder has to join the
queue again. While the machine is restored after a turn, the turn is ``returning``, and no other turn begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from jitter_workshop.errors import HostError
from jitter_workshop.model.text import LABEL, clean
from jitter_workshop.model.turn import Process, Turn, TurnState, Waiting

Alive = Callable[[Process], bool]

WHO = "'jitter-workshop class turn' shows who has the turn and who waits"
"""Advice to show if the named user neither has the turn nor waits for it."""
MAX_WAITING = 256
GRACE_S = 150.0
"""Seconds that an agent may take to end its turn. The longest write to the host, by update-grub, takes less."""


def join_queue(state: TurnState, waiting: Waiting) -> TurnState:
    """Return the state with ``waiting`` added at the end of the queue. Raise HostError if the user has the turn or
    waits for it, or if the queue is full.
    """
    if state.turn is not None and state.turn.uid == waiting.uid:
        raise HostError(
            "another connection of yours already has the turn", "'jitter-workshop class turn give' ends your turn"
        )
    if any(one.uid == waiting.uid for one in state.queue):
        raise HostError(
            "another connection of yours already waits for the turn",
            "wait in that connection, or leave the queue with 'jitter-workshop class turn give'",
        )
    if len(state.queue) >= MAX_WAITING:
        raise HostError(f"{MAX_WAITING} users wait already, which is the limit", "try again later")
    return replace(state, queue=(*state.queue, waiting))


def join_first(state: TurnState, waiting: Waiting) -> TurnState:
    """Return the state with ``waiting`` in the queue before all students, but after other instructors.

    Raise HostError for the same reasons as :func:`join_queue`.
    """
    joined = join_queue(state, waiting)
    before = tuple(one for one in state.queue if one.limit_s is None)
    after = tuple(one for one in state.queue if one.limit_s is not None)
    return replace(joined, queue=(*before, waiting, *after))


def leave_queue(state: TurnState, agent: Process) -> TurnState:
    """Return the state without the user of ``agent`` in the queue. Nothing changes if this user does not wait."""
    return replace(state, queue=tuple(one for one in state.queue if one.agent != agent))


def grant(state: TurnState, now_s: float) -> TurnState:
    """Return the state with the turn given to the first user in the queue, if the turn is free.

    In a frozen class, or after a restore that failed, only instructors get the turn.
    """
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
    return replace(leave_queue(state, first.agent), number=turn.number, turn=turn)


def prune(state: TurnState, alive: Alive) -> TurnState:
    """Return the state with a queue of only those users whose agents are alive.

    The turn is not changed, even if its agent has ended (:func:`orphaned`).
    """
    return replace(state, queue=tuple(one for one in state.queue if alive(one.agent)))


def orphaned(state: TurnState, alive: Alive) -> bool:
    """Return True if the turn's agent has ended, so that another process has to restore the machine."""
    return state.turn is not None and not alive(state.turn.agent)


def replace_agent(state: TurnState, agent: Process) -> TurnState:
    """Return the state with ``agent`` as the turn's new agent, which restores the machine."""
    assert state.turn is not None
    return replace(state, turn=replace(state.turn, agent=agent, returning=True))


def returning(state: TurnState) -> TurnState:
    """Return the state with the turn marked as ``returning``. The turn is over, but the host is not restored yet."""
    return replace(state, turn=replace(state.turn, returning=True)) if state.turn is not None else state


def returned(state: TurnState, trouble: str = "") -> TurnState:
    """Return the state without a turn, after the machine was restored or the restore has failed.

    ``trouble``: the reason of the failure; "" for none. After a failure, no student's turn begins until an instructor
    allows it (:func:`thaw`).
    """
    return replace(state, turn=None, trouble=trouble or state.trouble)


def end_turn(state: TurnState, uid: int | None, by: str, now_s: float) -> TurnState:
    """Return the state without the user in the queue, or with the user's turn ended.

    ``uid``: the user; None means the holder of the turn. ``by``: the name of the person who asked for this. Raise
    HostError if the user has no turn and does not wait for one.
    """
    turn = state.turn
    if turn is not None and uid in (None, turn.uid):
        return replace(state, turn=replace(turn, ended_by=by, ends_s=min(turn.ends_s or now_s, now_s)))
    rest = tuple(one for one in state.queue if one.uid != uid)
    if len(rest) == len(state.queue):
        raise HostError(
            "this user neither has the turn nor waits for it" if uid is not None else "no one has the turn", WHO
        )
    return replace(state, queue=rest)


def freeze(state: TurnState, by: str) -> TurnState:
    """Return the state in which no new turn begins. A turn that has begun is not cut short."""
    return replace(state, frozen_by=by)


def thaw(state: TurnState) -> TurnState:
    """Return the state in which turns begin again, after a freeze or a restore that failed."""
    return replace(state, frozen_by="", trouble="")


def describe_work(state: TurnState, agent: Process, doing: str) -> TurnState:
    """Return the state with ``doing``, the holder's description of the present work.

    Raise HostError if ``agent`` does not have the turn.
    """
    if state.turn is None or state.turn.agent != agent:
        raise HostError("you do not have the turn now")
    return replace(state, turn=replace(state.turn, doing=clean(doing, LABEL)))


def why_over(turn: Turn, now_s: float) -> str:
    """Return a text on why a turn is over; "" for a running turn."""
    if turn.ended_by:
        return f"{turn.ended_by} ended your turn"
    if turn.ends_s is not None and now_s >= turn.ends_s:
        return f"your turn is over: {(turn.ends_s - turn.began_s) / 60:.3g} minutes are the limit in this class"
    return ""


def stuck_s(state: TurnState) -> float:
    """Return the time (seconds since boot) after which other agents may kill the turn's agent.

    The time is GRACE_S seconds after the turn's time limit. Return infinity if there is no turn or no time limit, or
    while the host is being restored.
    """
    turn = state.turn
    if turn is None or turn.returning or turn.ends_s is None:
        return float("inf")
    return turn.ends_s + GRACE_S
