"""Compute how many requests meet a slow answer if each request waits for the answers of many hosts.

Let p be the share of slow answers among all answers of a host. A request to n hosts then meets at least one slow answer
with the probability 1 - (1 - p)^n. This holds if the hosts' slow moments are independent (J. Dean and L. A. Barroso,
"The Tail at Scale", Communications of the ACM 56(2), 2013).
"""

from __future__ import annotations

import math


def share_met(share: float, hosts: int) -> float:
    """Return the share of requests (0..1) that meet at least one slow answer. ``share``: the slow share of each host's
    answers, 0..1. ``hosts``: the hosts that one request asks, at least 0. Small shares keep all their digits."""
    if hosts == 0 or share <= 0:
        return 0.0
    return 1.0 if share >= 1 else -math.expm1(hosts * math.log1p(-share))


def hosts_to_meet(share: float, wanted: float) -> int:
    """Return the least number of hosts at which ``wanted`` of the requests meet slow answers. A request meets slow
    answers if at least one of its answers is slow. ``share``: the share of slow answers among each host's answers,
    above 0. ``wanted``: from 0 to below 1.
    """
    if wanted <= 0:
        return 0
    if share >= 1:
        return 1
    hosts = max(1, math.ceil(math.log1p(-wanted) / math.log1p(-share)))
    # The quotient of two logarithms can lie a rounding error beside the whole number.
    while hosts > 1 and share_met(share, hosts - 1) >= wanted:
        hosts -= 1
    while share_met(share, hosts) < wanted:
        hosts += 1
    return hosts
