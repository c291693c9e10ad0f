"""A value that goes to JSON comes back equal; a value that does not fit is named."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.bench import protocol
from jitter_workshop.model.codec import CodecError, from_plain, to_plain
from jitter_workshop.model.run import Stall, StallRate, Stalls


@dataclass(frozen=True)
class Leaf:
    name: str
    size_ns: int


@dataclass(frozen=True)
class Tree:
    kind: Literal["oak", "elm"]
    leaves: tuple[Leaf, ...]
    pair: tuple[int, str]
    height: float | None = None
    notes: dict[str, str] = field(default_factory=dict)
    extra: Any = None


leaves = st.builds(Leaf, st.text(), st.integers(-(10**29), 10**29))
trees = st.builds(
    Tree,
    st.sampled_from(["oak", "elm"]),
    st.lists(leaves, max_size=4).map(tuple),
    st.tuples(st.integers(-(10**29), 10**29), st.text()),
    st.none() | st.floats(-1e29, 1e29),
    st.dictionaries(st.text(), st.text(), max_size=4),
)


@given(trees)
def test_a_round_trip_through_json_changes_nothing(tree: Tree) -> None:
    assert from_plain(Tree, json.loads(json.dumps(to_plain(tree)))) == tree


@given(trees, st.dictionaries(st.text(min_size=9), st.integers(-(10**29), 10**29), max_size=3))
def test_added_fields_are_ignored(tree: Tree, added: dict[str, int]) -> None:
    assert from_plain(Tree, {**added, **to_plain(tree)}) == tree


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**29), 10**29) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_any_json_gives_a_value_or_a_codec_error(value: Any) -> None:
    with contextlib.suppress(CodecError):
        assert isinstance(from_plain(Tree, value), Tree)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"kind": "ash"}, "Tree.kind"),
        ({"leaves": [{"name": "a"}]}, "Tree.leaves[0].size_ns"),
        ({"leaves": {}}, "Tree.leaves"),
        ({"pair": [1]}, "Tree.pair"),
        ({"height": "tall"}, "Tree.height"),
        ({"leaves": [{"name": "a", "size_ns": True}]}, "Tree.leaves[0].size_ns"),
    ],
)
def test_the_field_that_does_not_fit_is_named(change: dict[str, Any], named: str) -> None:
    good = {"kind": "oak", "leaves": [], "pair": [1, "x"]}
    with pytest.raises(CodecError, match=named.replace("[", r"\[").replace("]", r"\]")):
        from_plain(Tree, {**good, **change})


def test_a_whole_number_fits_where_a_float_is_meant() -> None:
    assert from_plain(Tree, {"kind": "elm", "leaves": [], "pair": [1, ""], "height": 3}).height == 3.0


@given(st.binary(max_size=60))
def test_any_line_is_a_protocol_line_or_a_codec_error(raw: bytes) -> None:
    with contextlib.suppress(CodecError):
        kind, _ = protocol.parse_message(raw)
        assert isinstance(kind, str)


def test_a_protocol_line_is_one_line_for_every_content() -> None:
    stall = Stall(0, "accumulator\nforged", 1, 5, 9, 2)
    raw = protocol.message_line("stall", stall)
    assert raw.count(b"\n") == 1
    kind, data = protocol.parse_message(raw)
    assert (kind, from_plain(Stall, data)) == ("stall", stall)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e308", "1e30", "1" + "0" * 400, "-1" + "0" * 30])
@pytest.mark.parametrize("hint", [int, float, float | None, tuple[float, ...]])
def test_a_number_that_nothing_measures_does_not_fit(hint: Any, text: str) -> None:
    value = json.loads(f"[{text}]") if hint == tuple[float, ...] else json.loads(text)
    with pytest.raises(CodecError):
        from_plain(hint, value, "a number")


def test_large_numbers_that_can_be_measured_fit() -> None:
    assert from_plain(int, 10**29) == 10**29
    assert from_plain(float, 10**29) == 1e29
    assert from_plain(float, -1.5e29) == -1.5e29


@pytest.mark.parametrize(
    "value", [StallRate(1_000, 10, 5.0, 50_000.0), Stalls(1_000, 10, 5.0, 50_000.0)], ids=["rate", "stalls"]
)
def test_the_time_in_stalls_has_its_right_name_and_both_older_ones(value: StallRate | Stalls) -> None:
    plain = to_plain(value)
    assert plain["stall_ns_per_second"] == 50_000.0
    assert plain["stolen_ns_per_second"] == plain["interference_ns_per_second"] == plain["stall_ns_per_second"]
    assert from_plain(type(value), plain) == value


def test_a_file_without_the_newer_names_of_a_field_is_read() -> None:
    older = {"threshold_ns": 1_000, "count": 10, "per_second": 5.0, "stolen_ns_per_second": 50_000.0}
    assert from_plain(StallRate, older) == StallRate(1_000, 10, 5.0, 50_000.0)
