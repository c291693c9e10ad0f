"""CPU lists and masks: round trips, the kernel's own examples, and refusals that raise nothing but ValueError."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.cpuset import MAX_CPU, CpuSet, PartitionState, parse_partition

cpus = st.sets(st.one_of(st.integers(0, 300), st.integers(0, MAX_CPU)), max_size=60)


@given(cpus)
def test_list_round_trip(numbers: set[int]) -> None:
    assert CpuSet.parse_list(str(CpuSet.of(numbers))) == CpuSet.of(numbers)


@given(cpus, st.integers(1, 8))
def test_mask_round_trip(numbers: set[int], groups: int) -> None:
    mask = CpuSet.of(numbers).to_mask(groups)
    assert CpuSet.parse_mask(mask) == CpuSet.of(numbers)
    assert mask.count(",") + 1 >= groups
    assert all(len(group) == 8 for group in mask.split(","))


@given(cpus)
def test_list_is_the_shortest_form(numbers: set[int]) -> None:
    """Ranges never touch: 0-1,2 would be written 0-2."""
    runs = [tuple(map(int, part.split("-"))) for part in str(CpuSet.of(numbers)).split(",") if part]
    assert all(later[0] > earlier[-1] + 1 for earlier, later in pairwise(runs))
    assert all(len(run) == 1 or run[0] < run[1] for run in runs)


@given(cpus, cpus)
def test_algebra_is_that_of_sets(a: set[int], b: set[int]) -> None:
    assert set(CpuSet.of(a) | CpuSet.of(b)) == a | b
    assert set(CpuSet.of(a) & CpuSet.of(b)) == a & b
    assert set(CpuSet.of(a) - CpuSet.of(b)) == a - b
    assert len(CpuSet.of(a)) == len(a)
    assert all(cpu in CpuSet.of(a) for cpu in a)


@given(cpus, st.integers(0, 300), st.integers(1, 80))
def test_algebra_with_a_whole_range(numbers: set[int], first: int, length: int) -> None:
    """Ranges take a shorter way; what comes out is like every other set."""
    some, span = CpuSet.of(numbers), CpuSet.of(range(first, first + length))
    assert some & span == span & some == CpuSet.of(numbers & set(span))
    assert some - span == CpuSet.of(numbers - set(span))
    assert span - some == CpuSet.of(set(span) - numbers)
    assert str(span) == (f"{first}-{first + length - 1}" if length > 1 else str(first))
    assert hash(some & span) == hash(CpuSet.of(numbers & set(span)))


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=8))
def test_lists_in_any_order_and_overlapping(parts: list[tuple[int, int]]) -> None:
    text = ",".join(f"{low}-{low + more}" for low, more in parts)
    found = CpuSet.parse_list(text)
    assert found.cpus == tuple(sorted({cpu for low, more in parts for cpu in range(low, low + more + 1)}))


@given(cpus)
def test_equal_sets_are_equal_and_hash_alike(numbers: set[int]) -> None:
    twice = CpuSet((*numbers, *sorted(numbers, reverse=True)))
    assert twice == CpuSet.of(numbers)
    assert hash(twice) == hash(CpuSet.of(numbers))


@given(st.one_of(st.text(max_size=60), st.text("0123456789-,:/ \n\0xabcf", max_size=60)))
def test_garbage_raises_only_value_error(text: str) -> None:
    for parse in (CpuSet.parse_list, CpuSet.parse_mask):
        try:
            found = parse(text)
        except ValueError:
            continue
        assert all(0 <= cpu <= MAX_CPU for cpu in found)


@given(st.integers(0, 200), st.integers(0, 200), st.integers(1, 12), st.integers(1, 12))
def test_strides_take_the_first_of_each_group(low: int, more: int, used: int, group: int) -> None:
    text = f"{low}-{low + more}:{used}/{group}"
    if used > group:
        with pytest.raises(ValueError, match="stride"):
            CpuSet.parse_list(text)
        return
    wanted: set[int] = set()
    for start in range(low, low + more + 1, group):
        wanted.update(range(start, min(start + used, low + more + 1)))
    assert set(CpuSet.parse_list(text)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0-3,8", [0, 1, 2, 3, 8]),
        ("0-15:2/4", [0, 1, 4, 5, 8, 9, 12, 13]),
        ("3\n", [3]),
        ("", []),
        ("\n", []),
        ("(null)\n", []),
        ("0,1\0", [0, 1]),
        (" 1 , 3 ", [1, 3]),
    ],
)
def test_lists_that_kernels_write(text: str, wanted: list[int]) -> None:
    assert list(CpuSet.parse_list(text)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("3", [0, 1]),
        ("ff,00000001", [0, *range(32, 40)]),
        ("00000000,00000000,00000002\n", [1]),
        ("0xf", [0, 1, 2, 3]),
        ("0", []),
        ("(null)", []),
        ("", []),
    ],
)
def test_masks_that_kernels_write(text: str, wanted: list[int]) -> None:
    assert list(CpuSet.parse_mask(text)) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "3-1",
        "-1",
        "1-",
        "a",
        "0x3",
        "1;2",
        "1,,2",
        "1,",
        "٣",
        "0-70000",
        "99999999999",
        "0:1/2",
        "0-7:0/4",
        "0-7:2",
        "1 2",
    ],
)
def test_lists_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message differs, the kind must not
        CpuSet.parse_list(text)


@pytest.mark.parametrize("text", ["g", "1,,2", "123456789,00000000", "-1", "0x", "f" * 20_000, ",".join(["0"] * 3_000)])
def test_masks_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        CpuSet.parse_mask(text)


def test_the_largest_cpu_survives_both_forms() -> None:
    largest = CpuSet((0, MAX_CPU))
    assert CpuSet.parse_list(str(largest)) == largest
    assert CpuSet.parse_mask(largest.to_mask()) == largest
    with pytest.raises(ValueError, match="0 to"):
        CpuSet((MAX_CPU + 1,))
    with pytest.raises(ValueError, match="0 to"):
        CpuSet((-1,))


def test_a_list_of_repeats_is_refused_before_it_eats_memory() -> None:
    with pytest.raises(ValueError, match="too often"):
        CpuSet.parse_list(",".join([f"0-{MAX_CPU}"] * 100_000))
    assert len(CpuSet.parse_list(f"0-{MAX_CPU},0-{MAX_CPU}")) == MAX_CPU + 1


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("all", range(8)), ("N", [7]), ("4-N", range(4, 8)), ("0,N", [0, 7]), ("all:1/4", [0, 4]), ("0-N:1/N", [0, 7])],
)
def test_boot_parameters_may_name_the_last_cpu(text: str, wanted: Iterable[int]) -> None:
    assert list(CpuSet.parse_list(text, last=7)) == list(wanted)
    with pytest.raises(ValueError):  # noqa: PT011
        CpuSet.parse_list(text)


@given(cpus)
def test_words_round_trip(numbers: set[int]) -> None:
    assert CpuSet.parse_words(" ".join(map(str, numbers)) + "\n") == CpuSet.of(numbers)


@pytest.mark.parametrize("text", ["0,1", "0-3", "x", "-1", "0 99999999"])
def test_words_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        CpuSet.parse_words(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("member\n", PartitionState("member")),
        ("root", PartitionState("root")),
        ("isolated\n\0", PartitionState("isolated")),
        ("isolated invalid", PartitionState("isolated", False)),
        (
            "isolated invalid (Cpu list in cpuset.cpus not exclusive)\n",
            PartitionState("isolated", False, "Cpu list in cpuset.cpus not exclusive"),
        ),
        (
            "root invalid (Parent is not a partition root)",
            PartitionState("root", False, "Parent is not a partition root"),
        ),
    ],
)
def test_states_of_partitions(text: str, wanted: PartitionState) -> None:
    assert parse_partition(text) == wanted


@pytest.mark.parametrize("text", ["", "member invalid", "isolatedinvalid", "0", "isolated x", "invalid (root)"])
def test_a_text_that_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not the state"):
        parse_partition(text)


@given(st.sampled_from(["root", "isolated"]), st.text(max_size=60))
def test_any_reason_is_kept_on_one_line(kind: str, reason: str) -> None:
    state = parse_partition(f"{kind} invalid ({reason})")
    assert (state.kind, state.valid) == (kind, False)
    assert state.reason.split() == reason.strip().split() or "(" in reason or ")" in reason or "\0" in reason
    assert "\n" not in state.reason
