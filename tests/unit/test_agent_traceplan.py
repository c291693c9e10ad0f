"""Of which switches the kernel's stack is taken: by the letters that the kernel itself gives to its threads' states."""

from __future__ import annotations

import pytest

from jitter_workshop.agent.traceplan import stack_trigger
from jitter_workshop.host.traceformat import EventFormat, parse_event
from tests import tracedpages


@pytest.mark.parametrize("name", tracedpages.NAMES)
def test_a_stack_is_taken_where_a_thread_is_held_up_and_not_where_it_sleeps(name: str) -> None:
    switch = parse_event(tracedpages.recorded(name).formats["sched:sched_switch"])
    letters = {letter: state for state, letter in switch.symbols.items()}
    trigger = stack_trigger([101, 102], switch)
    begin, _, states = trigger.rpartition(" & ")
    assert begin == "stacktrace if (prev_pid == 101 || prev_pid == 102) && prev_state"
    assert all(int(states) & letters[letter] for letter in "DTtXZ")
    assert not int(states) & letters["S"]
    # Who is preempted has a state of its own above these, who gives way has none.
    assert not int(states) & (max(letters.values()) << 1)


@pytest.mark.parametrize("symbols", [{}, {1: "S"}, {2: "D"}, {1: "s", 2: "D"}])
def test_where_the_kernel_names_no_states_no_stack_is_taken(symbols: dict[int, str]) -> None:
    with pytest.raises(ValueError, match="does not say which threads sleep"):
        stack_trigger([1], EventFormat("sched_switch", 300, {}, symbols))
