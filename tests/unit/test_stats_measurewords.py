"""The measures' names and values in words, also where somebody edited the file they are from."""

from __future__ import annotations

import pytest

from jitter_workshop.stats.comparison import amount, measure_name


@pytest.mark.parametrize(
    ("measure", "value", "name", "shown"),
    [
        ("stalls_per_second_over_100000_ns", 4.2, "stalls over 100 µs", "4.2/s"),
        ("stolen_ns_per_second", 3_100.0, "time in stalls", "3.1 µs/s"),
        ("p99.9", 71_000, "p99.9", "71 µs"),
        ("max", None, "worst seen", "–"),
        ("stalls_per_second_over_many_ns", 1.0, "stalls_per_second_over_many_ns", "1/s"),
        (f"stalls_per_second_over_{'9' * 5_000}_ns", 0.0, f"stalls_per_second_over_{'9' * 5_000}_ns", "0/s"),
        ("stalls_per_second_over_²_ns", 0.0, "stalls_per_second_over_²_ns", "0/s"),
    ],
)
def test_names_and_values(measure: str, value: float | None, name: str, shown: str) -> None:
    assert measure_name(measure) == name
    assert amount(measure, value) == shown
