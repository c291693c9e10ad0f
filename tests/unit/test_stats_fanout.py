"""Test the share of requests that meet a slow answer, against plain products and against published figures."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.stats.fanout import hosts_to_meet, share_met

SHARES = st.floats(1e-9, 0.999)
HOSTS = st.integers(0, 3_000)


@given(SHARES, st.integers(0, 200))
def test_the_share_is_one_minus_a_product(share: float, hosts: int) -> None:
    exact = 1 - (1 - Fraction(share)) ** hosts
    assert share_met(share, hosts) == pytest.approx(float(exact), rel=1e-12)


@given(SHARES, HOSTS)
def test_more_hosts_never_lower_the_share_of_requests_that_meet_a_stall(share: float, hosts: int) -> None:
    assert 0 <= share_met(share, hosts) <= share_met(share, hosts + 1) <= 1


@given(SHARES, HOSTS)
def test_hosts_never_add_more_than_their_own_share(share: float, hosts: int) -> None:
    assert share_met(share, hosts) <= hosts * share * (1 + 1e-12)


@given(SHARES, st.floats(0, 0.999))
def test_the_least_number_of_hosts_is_the_least(share: float, wanted: float) -> None:
    hosts = hosts_to_meet(share, wanted)
    assert share_met(share, hosts) >= wanted
    assert hosts == 0 or share_met(share, hosts - 1) < wanted


@pytest.mark.parametrize(("share", "hosts", "met"), [(0.01, 100, 0.63), (0.001, 100, 0.095), (0.0001, 2_000, 0.18)])
def test_the_figures_of_the_paper(share: float, hosts: int, met: float) -> None:
    assert share_met(share, hosts) == pytest.approx(met, abs=0.005)


@pytest.mark.parametrize(
    ("share", "hosts", "met"), [(0, 5, 0), (-0.1, 5, 0), (0.5, 0, 0), (1, 0, 0), (1, 1, 1), (2, 3, 1)]
)
def test_the_ends(share: float, hosts: int, met: float) -> None:
    assert share_met(share, hosts) == met


def test_with_every_answer_slow_one_host_is_enough() -> None:
    assert hosts_to_meet(1.0, 0.5) == 1
    assert hosts_to_meet(0.001, 0.5) == 693
