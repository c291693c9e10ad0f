"""The hunt: what can be hidden here, that nothing tells which it is, and what answers are worth."""

from __future__ import annotations

import dataclasses
import json

import pytest

from jitter_workshop.bench import noiseorder
from jitter_workshop.errors import HostError, MeasureError, UsageError
from jitter_workshop.flow.chapters.hunt import Hunt, HuntAnswer, suspected_noises
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.noise import NOISE_KINDS, noise
from jitter_workshop.model.spec import Placement
from tests.fakenoise import Picks, Starts

SPIN = Placement("auto", sampler=1, hot=(1,), housekeeping=(0,))
RING = Placement("auto", producer=0, accumulator=1, hot=(0, 1))
TWO = (0, 1)


@pytest.fixture(params=[True, False], ids=["root", "not root"])
def root(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(noiseorder.os, "access", lambda path, mode: bool(request.param))
    return bool(request.param)


def begin(kind: str = "greedy", *refused: str, placement: Placement = SPIN) -> tuple[Hunt, Starts]:
    starts = Starts(*refused)
    return Hunt(placement, TWO, start=starts, picker=Picks(*refused, kind)), starts


def test_the_noises_that_can_be_hidden_follow_from_cpus_and_rights(root: bool) -> None:
    assert [s.id for s in suspected_noises(SPIN, TWO)] == [
        *("spinners", "greedy", "timer", "softirq"),
        *(("workqueue",) if root else ()),
        *("faults", "bandwidth"),
    ]
    assert "bandwidth" not in [s.id for s in suspected_noises(RING, TWO)]
    assert [s.id for s in suspected_noises(Placement("auto", sampler=0), (0,))] == [
        "greedy",
        "timer",
        "softirq",
        "faults",
    ]
    # CPU 1 is isolated: only what disturbs the others can be begun out here.
    assert [s.id for s in suspected_noises(SPIN, (0, 2))] == ["spinners", "bandwidth"]


@pytest.mark.parametrize("kind", ["spinners", "greedy", "timer", "softirq", "faults", "bandwidth"])
def test_nothing_tells_which_it_is_before_the_answer(kind: str) -> None:
    hunt, starts = begin(kind)
    (order,) = starts.orders
    assert (order.kind, order.name, order.seconds) == (kind, "thief", 1_800)
    assert 1 <= order.seed <= 1 << 32
    others = [s.id for s in hunt.suspects if s.id != kind]
    seen = [repr(hunt), str(hunt), json.dumps(to_plain(hunt.suspects)), hunt.state]
    wrong = [hunt.answer(other) for other in others]
    # The suspects name all kinds alike; apart from them, the right one stands nowhere.
    title = noise(kind).title
    told = [w.title for w in wrong] + [sentence for w in wrong for sentence in w.sentences]
    assert not [text for text in (*told, seen[0], seen[1], seen[3]) if title in text or noise(kind).what in text]
    assert hunt.wrong_answers == len(others)
    assert not any(w.right for w in wrong)
    hunt.close()


def test_the_right_answer_explains_the_noise_which_goes_on_for_a_cure() -> None:
    hunt, starts = begin("softirq")
    assert hunt.state == "running"
    found = hunt.answer("softirq")
    softirq = noise("softirq")
    assert found == HuntAnswer(True, softirq.title, (softirq.what, softirq.found_as, softirq.treatment))
    assert (hunt.state, hunt.runs, hunt.wrong_answers, starts.made[0].ended) == ("named", True, 0, 0)
    assert not hunt.answer("greedy").right
    assert hunt.wrong_answers == 0
    hunt.close()
    assert (hunt.state, hunt.runs, starts.made[0].ended) == ("answered", False, 1)


@pytest.mark.parametrize(("helped", "ends"), [(True, True), (None, True), (False, False)])
@pytest.mark.parametrize("first", ["name", "cure"])
def test_a_named_noise_ends_with_its_cure_unless_traces_show_that_the_cure_failed(
    helped: bool | None, ends: bool, first: str
) -> None:
    hunt, starts = begin("greedy")
    if first == "name":
        hunt.answer("greedy")
    hunt.judge_cure(helped)
    assert first == "name" or starts.made[0].ended == 0, "it is not named yet"
    if first == "cure":
        hunt.answer("greedy")
    assert (hunt.state, hunt.runs) == (("answered", False) if ends else ("named", True))
    assert starts.made[0].ended == ends
    assert hunt.outcome is not None
    assert (hunt.outcome.named, hunt.outcome.cured) == (True, helped is True)
    hunt.close()


def test_a_named_noise_that_was_killed_can_be_measured_and_one_whose_time_is_up_is_over() -> None:
    starts, now = Starts(), [100.0]
    hunt = Hunt(SPIN, TWO, 60, start=starts, picker=Picks("greedy"), now_s=lambda: now[0])
    hunt.answer("greedy")
    starts.made[0].death = MeasureError("the noise process was killed by SIGTERM")
    assert (hunt.state, hunt.runs) == ("named", False)
    now[0] = 160.0
    assert hunt.state == "answered"


def test_giving_up_tells_it_and_is_not_right() -> None:
    hunt, starts = begin("timer")
    given = hunt.reveal()
    assert (given.right, given.title, hunt.state, starts.made[0].ended) == (False, noise("timer").title, "answered", 1)
    assert dataclasses.replace(given, right=True) == hunt.answer("timer")


def test_a_noise_that_was_killed_is_stopped_and_one_whose_time_is_up_is_over() -> None:
    starts, now = Starts(), [100.0]
    hunt = Hunt(SPIN, TWO, 60, start=starts, picker=Picks("greedy"), now_s=lambda: now[0])
    starts.made[0].death = MeasureError("the noise process was killed by SIGTERM")
    now[0] = 159.9
    assert hunt.state == "stopped"
    now[0] = 160.0
    assert hunt.state == "over"
    assert hunt.answer("greedy").right


def test_a_refused_noise_is_replaced_and_stays_a_suspect() -> None:
    hunt, starts = begin("faults", "timer", "softirq")
    assert [order.kind for order in starts.orders] == ["timer", "softirq", "faults"]
    assert {"timer", "softirq"} <= {s.id for s in hunt.suspects}
    assert hunt.answer("faults").right


def test_a_host_that_can_make_none_says_so_without_naming_one() -> None:
    with pytest.raises(HostError, match="so no noise can be hidden") as caught:
        begin("greedy", *NOISE_KINDS)
    assert not [kind for kind in NOISE_KINDS if kind in caught.value.sentence()]


def test_leaving_ends_the_noise() -> None:
    starts = Starts()
    with Hunt(SPIN, TWO, start=starts, picker=Picks("greedy")):
        assert starts.made[0].ended == 0
    assert starts.made[0].ended == 1


def test_a_hunt_refuses_an_unknown_answer_and_a_bad_length() -> None:
    hunt, _ = begin()
    with pytest.raises(UsageError, match="one of the suspects"):
        hunt.answer("thunder")
    for seconds in (0, -1, 1_801):
        with pytest.raises(UsageError, match="a hunt lasts from 1 to 1800 s"):
            Hunt(SPIN, TWO, seconds, start=Starts(), picker=Picks())


def test_by_default_the_system_picks_among_all_that_can_be() -> None:
    kinds = set()
    for _ in range(200):
        starts = Starts()
        with Hunt(SPIN, TWO, start=starts) as hunt:
            kinds.add(starts.orders[0].kind)
    assert kinds == {suspect.id for suspect in hunt.suspects}
