"""What ``status`` says of a host: every tunable assessed once."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.assessment import Assessment
from jitter_workshop.tuning.base import Tunable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.registry import tunables


def assess_all(host: Host, chosen: Sequence[Tunable] = ()) -> tuple[Assessment, ...]:
    """Each tunable's Assessment (``chosen`` or all of them), in the order of the registry."""
    return tuple(tunable.assess(host) for tunable in chosen or tunables())
