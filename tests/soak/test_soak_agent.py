"""Hundreds of random plans on a made host, killed anywhere, with foreign hands in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tuned_tree
from tests.functional.test_agent_restore import test_random_plans_kills_and_foreign_changes as one_round


@pytest.mark.parametrize("seed", range(1_000, 1_400))
def test_random_rounds(seed: int, tmp_path: Path) -> None:
    one_round(seed, tuned_tree.make(tmp_path))
