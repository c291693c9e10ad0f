"""The pictures of lessons: what each shows, what a block must hold, and that any width has room for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.files import Problems
from jitter_workshop.course.lesson import check_text
from jitter_workshop.course.loader import load_course
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cpu, Topology
from jitter_workshop.model.picture import (
    KINDS,
    TOPOLOGY,
    Event,
    Knee,
    Knees,
    LessonPicture,
    Mask,
    RingPicture,
    Second,
    parse_picture,
)
from jitter_workshop.model.walk import CpuView
from jitter_workshop.presenter.text.pictures import knee_of, picture_lines
from jitter_workshop.presenter.text.prose import prose


def shown(picture: LessonPicture, width: int = 76, *, ascii_only: bool = False) -> list[str]:
    return [line.plain for line in picture_lines(picture, width, ascii_only=ascii_only)]


def test_the_mask_of_the_lesson_is_the_one_that_the_kernel_would_print() -> None:
    mask = Mask(64, CpuSet.parse_list("16-19,48-51"))
    above, bits, below, *_ = lines = shown(mask)
    assert (
        above.split()
        == ["CPU", "63", "59", "55", "51", "47", "43", "39", "35", "31", "27", "23", "19"][: len(above.split())]
    )
    digits = "".join("".join(line.split()[1:]) for line in lines[2::3])
    kernel = (CpuSet.of(range(64)) - mask.out).to_mask(2)
    assert digits == kernel.replace(",", "") == "fff0fffffff0ffff"
    assert bits[:24] == "bit  1111 1111 1111 0000"
    assert below.startswith("hex  f    f    f    0")


@given(st.integers(1, 256), st.sets(st.integers(0, 255)), st.integers(20, 160))
def test_any_mask_has_the_digits_of_the_kernel_and_fits(cpus: int, out: set[int], width: int) -> None:
    mask = Mask(cpus, CpuSet.of(cpu for cpu in out if cpu < cpus))
    lines = shown(mask, width)
    assert max(map(len, lines)) <= width
    digits = "".join("".join(line.split()[1:]) for line in lines[2::3])
    assert int(digits, 16) == sum(1 << cpu for cpu in range(cpus) if cpu not in mask.out)


@pytest.mark.parametrize("cpus", [1, 2, 3, 4, 5, 6, 10, 99])
def test_the_number_and_the_digit_begin_at_the_bit_of_the_highest_cpu(cpus: int) -> None:
    above, bits, below, *_ = shown(Mask(cpus, CpuSet.of([0])), 160)
    starts = [line.index(line.split()[1], 5) for line in (above, bits, below)]
    assert len(set(starts)) == 1, (above, bits, below)


def test_a_long_number_keeps_a_blank_before_the_next_group() -> None:
    above, *_ = shown(Mask(130, CpuSet.of([0])), 160)
    assert above.split()[:2] == ["CPU", "129"]


KNEES = Knees((Knee(0.0, 200, "the ring"), Knee(99.5, 8_000, "tick"), Knee(99.99, 3_000_000, "another task")))


def test_each_knee_stands_at_its_percentile_and_time_with_its_words() -> None:
    lines = shown(KNEES)
    tick = next(line for line in lines if "tick" in line)
    task = next(line for line in lines if "another task" in line)
    assert tick.index("╭") > tick.index("tick")
    assert lines.index(task) < lines.index(tick)
    axis = lines[-1]
    assert axis.index("p99 ") < tick.index("╭") < axis.index("p99.9") < task.index("╭")
    # Below the width of a chapter's column the steps are a table.
    assert shown(KNEES, 30)[1].split() == ["p99.5", "8", "µs:", "tick"]


def test_the_curve_of_the_first_chapter_stands_whole_beside_its_chart() -> None:
    page = next(one for one in load_course().chapters if one.id == "baseline").pages["measure"]
    for width in (33, 34, 76):
        lines = [line.plain for line in prose(page, width)]
        curve = lines[next(n for n, line in enumerate(lines) if "│" in line) :]
        axis = next(n for n, line in enumerate(curve) if "p90" in line)
        told = " ".join("".join(c if c.isalpha() or c in " ," else " " for c in line[9:]) for line in curve[:axis])
        for words in ("the ring", "tick", "softirq, kernel thread", "another task", "hypervisor"):
            assert words in " ".join(told.split()), (width, words)
        assert "…" not in "".join(curve[:axis])


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**10)), min_size=2, max_size=8), st.integers(34, 160))
def test_any_curve_fits_and_is_ascii_where_that_is_asked(pairs: list[tuple[int, int]], width: int) -> None:
    far = sorted({one for one, _ in pairs})
    values = sorted({one for _, one in pairs})
    steps = tuple(Knee(n / 10_001 * 0.01, value, f"cause {n}") for n, value in zip(far, values, strict=False))
    lines = shown(Knees(steps), width, ascii_only=True) if len(steps) > 1 else []
    assert all(len(line) <= width for line in lines)
    assert all(line.replace("µ", "u").isascii() for line in lines)


@pytest.mark.parametrize(
    ("count", "length_ns", "knee"),
    [(250, 5_000, 99.875), (20, 40_000, 99.92), (1, 60_000, 99.994), (1, 4_000_000, 99.6), (1, 10, 99.999999)],
)
def test_the_knee_of_a_seconds_events_is_that_of_the_lesson(count: int, length_ns: int, knee: float) -> None:
    assert knee_of(Event("x", count, length_ns)) == pytest.approx(knee)
    (row,) = shown(Second((Event("x", count, length_ns),)))[1:]
    assert row.endswith(f" p{knee}")


def test_the_knees_of_the_first_chapter_follow_from_its_text() -> None:
    page = next(one for one in load_course().chapters if one.id == "baseline").pages["measure"]
    assert "This example shows ten minutes. Each second has 250 ticks and five softirqs." in " ".join(page.split())
    assert "A task runs every ten seconds. The hypervisor runs once." in " ".join(page.split())
    block = page.partition("```draw-knees\n")[2].partition("\n```")[0]
    knees = parse_picture("draw-knees", block.splitlines())
    assert isinstance(knees, Knees)
    minutes = [250 * 600, 5 * 600, 60, 1]
    share = [100 - 100 * count * one.value_ns / 600e9 for count, one in zip(minutes, knees.steps[1:], strict=True)]
    assert [one.percentile for one in knees.steps[1:]] == [round(one, 3) for one in share]


@given(
    st.lists(st.tuples(st.integers(1, 1_000), st.integers(1, 1_000_000)), min_size=1, max_size=8), st.integers(34, 160)
)
def test_any_second_and_the_ring_fit(events: list[tuple[int, int]], width: int) -> None:
    second = Second(tuple(Event(f"cause {n}", count, length) for n, (count, length) in enumerate(events)))
    for lines in (shown(second, width), shown(RingPicture(), width), shown(second, width, ascii_only=True)):
        assert all(len(line) <= width for line in lines)
    if width >= 76:
        assert len(shown(second, width)) == len(events) + 1


def test_threads_that_share_a_lock_are_lines_over_the_same_time() -> None:
    turns = parse_picture("draw-turns", ["high sleeps:1 waits:2 locks:1", "low locks:1 held:1 locks:1 ready:1"])
    assert shown(turns, 24)[:2] == ["high  ▏    ░░░░░░░░▓▓▓▓", "low   ▏▓▓▓▓▒▒▒▒▓▓▓▓····"]
    key = " ".join(" ".join(shown(turns, 60)[2:]).split())
    assert key == "·· could run ▓▓ runs with the lock ▒▒ has the lock, cannot run ░░ waits for the lock"
    assert shown(turns, 24, ascii_only=True)[1] == "low   :====~~~~====...."
    long = parse_picture("draw-turns", ["a runs:48", "b sleeps:48"])
    assert shown(long, 34) == ["a  runs 48", "b  sleeps 48"], "too narrow to draw"


@pytest.mark.parametrize(
    ("kind", "lines", "what"),
    [
        ("draw-cat", [], "'draw-cat' is not a picture"),
        ("draw-ring", ["x"], "takes no lines"),
        ("draw-mask", ["cpus 8"], "needs two lines"),
        ("draw-mask", ["cpus 0", "out 0"], "needs two lines"),
        ("draw-mask", ["cpus 257", "out 0"], "from 1 to 256"),
        ("draw-mask", ["cpus 8", "out 8"], "does not have"),
        ("draw-topology", ["cpus 8"], "takes no lines"),
        ("draw-knees", ["p0 1us a"], "two lines or more"),
        ("draw-knees", ["p0 2us a", "p99 1us b"], "growing"),
        ("draw-knees", ["p0 1us a", "p100 2us b"], "a percentile"),
        ("draw-knees", ["p0 1 a", "p9 2us b"], "a time is"),
        ("draw-second", [], "needs a line"),
        ("draw-second", ["2 1s x"], "longer than a second"),
        ("draw-second", ["x 1us y"], "a count"),
        ("draw-second", ["1 1us x"] * 9, "at most 8 lines"),
        ("draw-turns", ["a runs:1"], "two lines or more"),
        ("draw-turns", ["a runs:1", "b sleeps:2"], "equally long"),
        ("draw-turns", ["a runs:1", "b eats:1"], "a line of draw-turns"),
        ("draw-turns", ["a runs:0", "b runs:1"], "a line of draw-turns"),
    ],
)
def test_a_block_that_cannot_be_drawn_is_a_mistake_with_its_line(kind: str, lines: list[str], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        parse_picture(kind, lines)
    problems = Problems()
    body = "\n".join(["Words.", "", f"```{kind}", *lines, "```"])
    check_text("lesson.md", 10, body, problems)
    assert [(one.line, what in one.message) for one in problems.found] == [(12, True)]
    # A page with such a block is still shown.
    assert prose(body, 60)


CPUS = CpuView(Topology((Cpu(7, 0, 0, 0, True, True, CpuSet((7,))),), ()), CpuSet((7,)))


def test_the_pages_of_the_course_show_each_kind() -> None:
    pages = [page for chapter in load_course().chapters for page in chapter.pages.values()]
    for kind in KINDS:
        page = next(page for page in pages if f"```{kind}" in page)
        text = "\n".join(line.plain for line in prose(page, 76, cpus=CPUS))
        assert kind not in text
        assert kind != TOPOLOGY or "CPU 7  hot" in text
        assert all(line.plain.replace("…", ".").isprintable() for line in prose(page, 76, ascii_only=True))


def test_the_sentence_that_announces_a_picture_is_on_its_page() -> None:
    picture = "```draw-ring\n```\n"
    announced = prose(f"One.\n\nThe buffer looks\nlike this:\n\n{picture}", 20)
    first = next(at for at, line in enumerate(announced) if line.plain.startswith("The buffer"))
    assert not announced[first].joined
    assert all(line.joined for line in announced[first + 1 :])
    apart = prose(f"One.\n\nThe buffer is this.\n\n{picture}", 20)
    assert [line.joined for line in apart[:4]] == [False] * 4
    after = prose(f"It is this:\n\nTwo.\n\n{picture}", 20)
    assert not any(line.joined for line in after[:4])
