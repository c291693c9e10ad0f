"""A mask that a learner writes: how it is judged, and what is said of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.files import Problems, SourceText
from jitter_workshop.course.lesson import _mask
from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.course.masks import Slip, judge_mask
from jitter_workshop.course.table import parse_table
from jitter_workshop.errors import UsageError
from jitter_workshop.model.course import MaskTask
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cpu, Topology
from jitter_workshop.model.picture import Mask, mask
from jitter_workshop.model.walk import CpuView
from jitter_workshop.presenter.course import masks as words
from jitter_workshop.presenter.course.typed import mask_so_far, parse_mask

WANTED = mask(64, "16-19,48-51")
MASKS = st.integers(2, 256).flatmap(
    lambda cpus: st.sets(st.integers(0, cpus - 1)).map(lambda out: Mask(cpus, CpuSet.of(out)))
)


@given(MASKS)
def test_the_text_of_any_mask_is_read_back_and_right(wanted: Mask) -> None:
    assert len(wanted.text.split(",")) == -(-wanted.cpus // 32)
    assert parse_mask(wanted.text) == wanted.left
    assert judge_mask(wanted, parse_mask(wanted.text)).right


@given(MASKS, st.sets(st.integers(0, 300)))
def test_a_judged_mask_names_each_cpu_that_differs(wanted: Mask, named: set[int]) -> None:
    answer = CpuSet.of(named)
    seen = judge_mask(wanted, answer)
    assert seen.right == (answer == wanted.left)
    assert (answer - seen.beyond - seen.kept) | seen.freed == wanted.left
    assert not (seen.freed & wanted.out) | (seen.kept & wanted.left) | (answer & seen.freed)
    assert not seen.right or seen.slip == "none"


@pytest.mark.parametrize(
    ("typed", "slip", "places"),
    [
        ("fff0ffff,fff0ffff", "none", 0),
        ("0-15,20-47,52-63", "none", 0),
        ("ffff0fff,ffff0fff", "from the left", 0),
        ("f0000,000f0000", "inverted", 0),
        ("ffffffff,ffffffff", "unchanged", 0),
        ("0", "empty", 0),
        ("fffff0ff,fffff0ff", "shifted", -8),
        ("ffe1ffff,ffe1ffff", "shifted", 1),
        ("fff0ffff,ffffffff", "none", 0),
    ],
)
def test_the_slip_behind_a_mask(typed: str, slip: Slip, places: int) -> None:
    seen = judge_mask(WANTED, parse_mask(typed))
    assert (seen.slip, seen.places) == (slip, places)


@pytest.mark.parametrize(
    ("cpus", "out", "typed"), [(64, "16-19", "ffffffff,ffff0fff"), (64, "4", "f7ffffff,ffffffff"), (6, "0", "1f")]
)
def test_counting_from_the_left_is_seen_by_digits_or_bits_in_a_group_or_over_all(
    cpus: int, out: str, typed: str
) -> None:
    assert judge_mask(mask(cpus, out), parse_mask(typed)).slip == "from the left"


def said(typed: str, wanted: Mask = WANTED) -> str:
    lines = words.judged_mask_lines(MaskTask(wanted, "An example."), judge_mask(wanted, parse_mask(typed)), 200)
    return "\n".join(line.plain for line in lines)


def test_the_answer_names_the_cpus_and_the_slip() -> None:
    wrong = said("ffff0fff,ffff0fff")
    assert "✗ This frees CPUs 12-15,44-47, and 16-19,48-51 stay in." in wrong
    assert "from the right" in wrong
    assert "✗ CPU 51 is still in the mask." in said("fff8ffff,fff0ffff")
    assert "CPU 64" in said("1,fff0ffff,fff0ffff")
    assert "2 digits too far to the right" in said("fffff0ff,fffff0ff")
    assert "1 bit too far to the left" in said("ffe1ffff,ffe1ffff")
    right = said("fff0ffff,fff0ffff")
    assert right.startswith("✓ ")
    assert "An example." in right


@pytest.mark.parametrize("typed", ["xyz", "5-1", "-", "123456789,0", "1,,2"])
def test_other_words_are_refused(typed: str) -> None:
    with pytest.raises(UsageError):
        parse_mask(typed)


@given(MASKS)
def test_each_part_of_a_mask_that_is_being_typed_is_a_mask(wanted: Mask) -> None:
    for end in range(len(wanted.text) + 1):
        begun = wanted.text[:end]
        assert mask_so_far(begun, wanted.cpus) == parse_mask(begun.removesuffix(",") or "0")


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("fg", "'g' is no digit of a mask; the digits are 0 to 9 and a to f"),
        (",", "a comma stands only behind a group of digits"),
        ("ff,,", "a comma stands only behind a group of digits"),
        ("fffffffff", "a group has at most 8 digits; type a comma, and then the next group"),
        ("fff,0", "with this digit the mask would name CPU 43; the last CPU is 39"),
    ],
)
def test_a_wrong_digit_of_a_mask_says_why(typed: str, why: str) -> None:
    with pytest.raises(UsageError) as raised:
        mask_so_far(typed, 40)
    assert raised.value.sentence() == why


@pytest.mark.parametrize("width", [34, 66, 90])
def test_the_editor_has_the_bits_the_text_and_the_cursor(width: int) -> None:
    lines = words.editor(WANTED, 17, width)
    assert max(line.cell_len for line in lines) <= width
    under = [line.plain[span.start] for line in lines for span in line.spans if "reverse" in str(span.style)]
    assert under == ["0"]
    assert "fff0ffff,fff0ffff" in "".join(line.plain.strip() for line in lines)


def view(hot: str, count: int = 8, offline: int = -1) -> CpuView:
    every = range(count)
    cpus = tuple(Cpu(n, 0, n, 0, n != offline, True, CpuSet((n,))) for n in every)
    return CpuView(Topology(cpus, ()), CpuSet.parse_list(hot))


def test_the_host_s_own_mask_follows_where_it_can_be_written() -> None:
    chapter = load_course(builtin_course()).chapter("workqueues")
    assert chapter is not None
    lesson, own = words.tasks(chapter, view("2-3"))
    assert (lesson.wanted, own.wanted) == (WANTED, mask(8, "2-3"))
    assert own.wanted.text == "000000f3"
    assert "this host's mask of 8 CPUs" in words.task(own, 2, 2, 80)[1].plain
    for none in (view(""), view("0-7"), view("2", offline=5), view("2", 300)):
        assert words.tasks(chapter, none) == (lesson,)


@pytest.mark.parametrize(
    ("table", "mistake"),
    [
        ('cpus = 64\nout = "16-19"', ""),
        ('cpus = 1\nout = "0"', "cpus"),
        ('cpus = 8\nout = "8"', "does not have"),
        ('cpus = 8\nout = "0-7"', "leave at least one in it"),
        ('cpus = 8\nout = "x"', "CPU number"),
        ('cpus = 8\nout = "1"\nexplanation = "A. B. C."', "two sentences"),
    ],
)
def test_the_table_of_a_lesson(table: str, mistake: str) -> None:
    problems = Problems()
    source = parse_table(SourceText("lesson.toml", f"[mask]\n{table}\n"), problems)
    assert source is not None
    found = _mask(source, ("apply",))
    told = "\n".join(str(one) for one in problems.found)
    assert (mistake in told) if mistake else (found is not None and not told)


def test_a_mask_needs_the_step_apply() -> None:
    problems = Problems()
    source = parse_table(SourceText("lesson.toml", '[mask]\ncpus = 8\nout = "1"\n'), problems)
    assert source is not None
    _mask(source, ("look",))
    assert "apply" in str(problems.found[0])
