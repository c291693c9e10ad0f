"""The noise lab's registry, and the packed form of what a noise logged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.loader import load_course
from jitter_workshop.model.evidence import CAUSE_KINDS
from jitter_workshop.model.noise import (
    MOST_BURSTS,
    NOISE_KINDS,
    NOISES,
    Burst,
    fill_in_name,
    is_cause,
    noise,
    pack_bursts,
    unpack_bursts,
)

WORD = 2**32 - 1
TICKS = st.integers(0, 2**62)
BURSTS = st.lists(
    st.builds(
        lambda start, length, ns, taken, cpu: Burst(start, start + length, ns, min(length, WORD), taken, cpu, 0),
        start=TICKS,
        length=st.integers(0, 2**40),
        ns=TICKS,
        taken=st.integers(0, WORD),
        cpu=st.integers(0, 2**16 - 1),
    ),
    max_size=20,
).map(sorted)


@given(BURSTS, st.integers(0, 10**9))
def test_a_log_comes_back_as_it_was(bursts: list[Burst], unlogged: int) -> None:
    log = unpack_bursts("greedy", "x", pack_bursts(bursts), unlogged)
    assert log.list() == tuple(bursts)
    assert log.count == len(bursts) + unlogged
    assert log.total_ns == sum(burst.taken_ns for burst in bursts)


@given(st.binary(max_size=400), st.sampled_from(NOISE_KINDS))
def test_any_bytes_are_a_log_or_a_value_error(records: bytes, kind: str) -> None:
    try:
        log = unpack_bursts(kind, "x", records, 0)
    except ValueError:
        return
    starts = [burst.start for burst in log.list()]
    assert starts == sorted(starts)
    assert all(burst.end >= burst.start and burst.what < len(log.does) for burst in log.list())


def test_an_impossible_log_of_a_noise_is_refused() -> None:
    one = Burst(5, 9, 0, 4, 4, 0, 0)
    whole = pack_bursts([one])
    for records, unlogged in (
        (whole[:-1], 0),
        (whole, -1),
        (pack_bursts([one._replace(end=4)]), 0),
        (pack_bursts([one._replace(what=1)]), 0),
        (pack_bursts([one, one._replace(start=4)]), 0),
        (whole * (MOST_BURSTS + 1), 0),
    ):
        with pytest.raises(ValueError, match=r"log of a noise|impossible"):
            unpack_bursts("greedy", "x", records, unlogged)
    assert unpack_bursts("greedy", "x", whole * MOST_BURSTS, 0).count == MOST_BURSTS


def test_values_of_a_burst_are_limited_to_the_width_of_their_fields() -> None:
    (burst,) = unpack_bursts("greedy", "x", pack_bursts([Burst(0, 1, 0, 10**10, 2**40, 70_000, 0)]), 0).list()
    assert (burst.length_ns, burst.taken_ns, burst.cpu) == (WORD, WORD, 0xFFFF)


@pytest.mark.parametrize("kind", NOISE_KINDS)
def test_every_kind_is_whole(kind: str) -> None:
    one = noise(kind)
    assert one.title[0].isupper()
    assert all(text.endswith(".") for text in (one.what, one.found_as, one.treatment))
    assert one.does
    assert all(what.causes and {cause for cause, _ in what.causes} <= set(CAUSE_KINDS) for what in one.does)
    if one.by != "parent":
        # The native side refuses a period above 0.2 s, and a noise that never rests.
        assert 0 <= one.busy_ns < one.period_ns <= 200_000_000


def test_kinds_are_known_by_their_ids() -> None:
    assert len(set(NOISE_KINDS)) == len(NOISES)
    # The noise that lessons offer on a quiet host comes first.
    assert NOISE_KINDS[0] == "spinners"
    with pytest.raises(KeyError):
        noise("thunder")


def test_a_cause_is_named_by_its_threads_or_by_how_it_begins() -> None:
    (main, arming) = fill_in_name(noise("timer").does, "thief")
    assert arming.causes == (("task", "thief"),)
    assert main.causes == noise("timer").does[0].causes
    assert is_cause(("task", "kworker/*"), "task", "kworker/1:0")
    assert not is_cause(("task", "kworker/*"), "irq", "kworker/1:0")
    assert not is_cause(("task", "thief"), "task", "thief2")
    assert is_cause(("vector", "*"), "vector", "reschedule")
    assert is_cause(("no_event", ""), "no_event", "")


def test_the_hunt_and_the_chapter_on_isolation_say_the_same_of_bound_threads() -> None:
    """A partition moves a program's bound thread (``tests/lab/test_lab_isolation.py``), but no fixed kernel thread."""
    isolation = load_course().chapter("isolation")
    assert isolation is not None
    page = " ".join(isolation.pages["explain"].split())
    cured, _, rest = page.partition("**Not cured:**")
    assert "that `taskset` bound to this CPU" in cured
    assert ", kernel threads bound to this CPU," in rest
    assert "moves a program's bound thread, but no bound kernel thread" in noise("greedy").treatment
