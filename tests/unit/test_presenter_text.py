"""Text for the screen: lesson prose, tables, bars, typed CPUs."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from jitter_workshop.errors import UsageError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import host_line, summarise_host
from jitter_workshop.model.cpuset import MAX_CPU
from jitter_workshop.model.curve import CurvePoint, PercentileCurve
from jitter_workshop.model.run import Block, Progress, StallRate
from jitter_workshop.model.text import many
from jitter_workshop.presenter.course.path import host_column
from jitter_workshop.presenter.course.typed import ROLES, parse_cpus
from jitter_workshop.presenter.runs.one_run import headline_so_far, unfinished_line
from jitter_workshop.presenter.runs.run import run_progress_lines
from jitter_workshop.presenter.text.lines import bar_of_value, table_lines, thin_bar, wrap
from jitter_workshop.presenter.text.prose import prose
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.scale import difference_told, ratio_text, times_told


@given(st.text(max_size=600), st.integers(4, 100))
def test_prose_never_leaves_its_width_nor_steers_the_terminal(source: str, width: int) -> None:
    for line in prose(source, max(width, 12)):
        if not line.plain.startswith("  "):  # code and tables stand as they are; the sheet cuts them
            assert line.cell_len <= max(width, 12)
        assert all(c.isprintable() for c in line.plain)


@given(st.text(st.characters(categories=["L", "N", "P"]), max_size=80), st.integers(6, 60))
def test_wrapping_loses_no_character(word: str, width: int) -> None:
    text = f"a {word} b"
    lines = wrap(Text(text), width, "- ")
    joined = "".join(line.plain[2:] for line in lines).replace(" ", "")
    assert joined == text.replace(" ", "")
    assert all(line.cell_len <= width for line in lines)


def test_prose_knows_its_markdown() -> None:
    source = "# Title\n\nSome **bold** `code` *soft* [link](http://x).\n\n- one\n  goes on\n2. two\n\n```\n  x = 1\n```"
    lines = [line.plain for line in prose(source, 40)]
    assert lines == ["Title", "", "Some bold code soft link.", "", " • one goes on", " 2. two", "", "    x = 1"]


def test_the_sources_of_a_page_are_quieter_than_its_lesson() -> None:
    lesson, _, *sources = prose("Read `this`.\n\nSource: man 2 x; kernel/`y`.c\n(z)", 20)
    assert "code" in [str(span.style) for span in lesson.spans]
    assert [line.plain for line in sources] == ["Source: man 2 x;", "kernel/y.c (z)"]
    assert {str(style) for line in sources for style in (line.style, *(span.style for span in line.spans))} == {"dim"}


def test_rich_and_textual_markup_is_text() -> None:
    (line,) = prose("[bold red]x[/] [@click=app.quit]y[/]", 60)
    assert line.plain == "[bold red]x[/] [@click=app.quit]y[/]"


@given(st.lists(st.lists(st.text(max_size=30), min_size=3, max_size=3), min_size=1, max_size=5), st.integers(30, 90))
def test_tables_fit_and_align(rows: list[list[str]], width: int) -> None:
    clean_rows = [["".join(c for c in cell if c.isprintable()) for cell in row] for row in rows]
    for line in table_lines(clean_rows, right=(1, 2), width=width):
        assert line.cell_len <= width


@given(st.floats(0, 1e12), st.floats(1e-3, 1e12), st.integers(1, 60))
def test_bars_stay_in_their_room(value: float, largest: float, width: int) -> None:
    for bar in (bar_of_value, thin_bar):
        drawn = bar(value, largest, width)
        assert cell_len(drawn) <= width
        assert bool(drawn) == (value > 0)
        assert cell_len(bar(largest, largest, width)) == width


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (None, "–"),
        (0.0, "0"),
        (1.0, "1×"),
        (0.999, "1×"),
        (57.4, "57×"),
        (249.4, "249×"),
        (999.6, "1,000×"),
        (9_078.0, "9,100×"),
        (55_318.0, "55,000×"),
        (1 / 57, "1/57"),
        (0.5, "1/2"),
        (0.99, "1/1.01"),
    ],
)
def test_ratios_are_said_as_people_do(ratio: float | None, said: str) -> None:
    assert ratio_text(ratio) == said


@given(st.floats(1.005, 1e9))
def test_a_factor_has_one_text_wherever_it_is_told(factor: float) -> None:
    told = times_told(factor)
    assert ratio_text(factor) == f"{told}×"
    assert float(told.replace(",", "")) == pytest.approx(factor, rel=0.05)


@given(st.lists(st.integers(0, MAX_CPU), max_size=3, unique=True), st.sampled_from([",", " ", ", ", " ; "]))
def test_typed_cpus_in_order(cpus: list[int], between: str) -> None:
    assert parse_cpus(between.join(map(str, cpus))) == dict(zip(ROLES, cpus, strict=False))


@given(st.permutations(ROLES), st.lists(st.integers(0, 99), min_size=3, max_size=3, unique=True), st.integers(1, 8))
def test_typed_cpus_by_name_or_its_beginning(roles: list[str], cpus: list[int], letters: int) -> None:
    words = [f"{role[:letters]}={cpu}" for role, cpu in zip(roles, cpus, strict=True)]
    assert parse_cpus(" ".join(words)) == dict(zip(roles, cpus, strict=True))


@given(st.text(max_size=40))
def test_typed_nonsense_is_refused_in_a_sentence(text: str) -> None:
    try:
        chosen = parse_cpus(text)
    except UsageError:
        return
    assert set(chosen) <= set(ROLES)
    assert len(set(chosen.values())) == len(chosen)


@pytest.mark.parametrize("text", ["1,1", "1 2 3 4", "producer=1 2", "x=1", "=1", "producer=1 prod=2", "-1", "٣"])
def test_typed_mistakes(text: str) -> None:
    with pytest.raises(UsageError):
        parse_cpus(text)


TIMES = st.one_of(st.none(), st.integers(0, 10**15))


@given(
    TIMES, TIMES, TIMES, TIMES, st.integers(0, 10**9), st.integers(1, 3_600), st.floats(0, 1e6), st.integers(58, 120)
)
def test_progress_fits_its_width(
    p50: int | None,
    p99: int | None,
    p999: int | None,
    worst: int | None,
    stalls: int,
    total: int,
    left: float,
    width: int,
) -> None:
    block = Block(0, 0, 1, 1, p50, p99, p999, worst, stalls)
    now = Progress(block, total - 1, total, PercentileCurve("", (), 0), left, 10_000)
    lines = run_progress_lines(now, "", False, width)
    assert all(line.cell_len <= width for line in lines)
    assert lines[0].plain.endswith(f"block {total - 1} of {total} · {left:.0f} s left")
    assert lines[1].plain.endswith(f"{many(stalls, 'stall')} over 10 µs")


def test_80_columns_show_the_most_important_figures_of_a_block() -> None:
    block = Block(0, 0, 1, 1, 1_230, 12_300, 123_000, 1_230_000, 12_345)
    _, told = run_progress_lines(Progress(block, 1, 20, PercentileCurve("", (), 0), 5, 10_000), "", False, 78)
    lead, shown = told.plain[:7], told.plain[7:]
    assert lead == "block: ", "the legend's p50 is of all blocks"
    assert shown.split(" · ") == ["p50 1.23 µs", "p99.9 123 µs", "worst 1.23 ms", "12,345 stalls over 10 µs"]
    _, told = run_progress_lines(Progress(block, 1, 20, PercentileCurve("", (), 0), 5, 10_000), "", False, 100)
    assert "p99 12.3 µs" in told.plain
    # The percentiles of a loop are those of usual readings.
    now = Progress(block, 1, 20, PercentileCurve("", (), 0), 5, 1_000)
    _, told = run_progress_lines(now, "", False, 78, workload="spin")
    assert told.plain == "block: worst 1.23 ms · 12,345 stalls over 1 µs"


@pytest.mark.parametrize(
    ("done", "count", "ends", "role"),
    [
        (40, 300, " so far: 30 a second, from 40 of 80 blocks", "accent"),
        (39, 300, " so far: 30 a second, not firm yet, from 39 of 80 blocks", "dim"),
        (40, 9, " so far: 0.9 a second, not firm yet, from 40 of 80 blocks", "dim"),
        (40, 0, " so far: 0 a second, not firm yet, from 40 of 80 blocks", "dim"),
    ],
)
def test_an_unfinished_loop_tells_the_stalls_that_judge_it(done: int, count: int, ends: str, role: str) -> None:
    points = CurvePoint(0.0, 10, True), CurvePoint(100.0, 9_000_000, False)
    rates = StallRate(10_000, 5 * count, count / 2, 1e6), StallRate(100_000, count, count / 10, 1e6)
    block = Block(0, 0, 1, 1, 1, 1, 1, 1, 0)
    now = Progress(block, done, 80, PercentileCurve("", points, 10**8), 5, 1_000, rates=rates)
    (line,) = unfinished_line(now, "spin", None, 100)
    assert line.plain == f"Stalls of 100 µs and more{ends}"
    value, found = headline_so_far(now, "spin", None)
    assert (found, value) == (role, ends.split(",")[0].removeprefix(" so far: ").replace(" a second", "/s"))
    (before,) = unfinished_line(None, "spin", None, 100)
    assert before.plain == "Stalls of 100 µs and more so far: no block is done yet"
    # A chapter that names a percentile is judged by it, and so is a run whose stalls are not known.
    assert unfinished_line(now, "spin", "50", 100)[0].plain.startswith("p50 so far: ")
    unknown = dataclasses.replace(now, rates=())
    assert unfinished_line(unknown, "spin", None, 100)[0].plain.startswith("p99.9999 so far: ")


@pytest.mark.parametrize(("percent", "words"), [(0.002, "under 0.01 %"), (0.02, "0.02 %"), (0.4, "0.4 %")])
def test_steal_reads_the_same_in_the_column_and_in_the_line(percent: float, words: str) -> None:
    host = dataclasses.replace(summarise_host(HostRoot()), steal_percent=percent)
    assert f"steal {words}" in host_line(host)
    assert any(line.plain.split() == ["steal", *words.split()] for line in host_column(host, 40))


def test_the_host_column_says_ranges_of_cpus_as_the_kernel_does() -> None:
    host = dataclasses.replace(summarise_host(HostRoot()), isolated=(1, 2, 3, 5), nohz_full=())
    lines = [line.plain.split() for line in host_column(host, 40)]
    assert ["isolated", "1-3,5"] in lines
    assert ["nohz_full", "none"] in lines


def test_a_figure_so_far_tells_the_blocks_that_it_is_from() -> None:
    block = Block(0, 0, 1, 1, 1, 1, 1, 1, 0)
    now = Progress(block, 14, 80, PercentileCurve("", (), 0), 5, 10_000)
    (line,) = unfinished_line(now, "ring", "99.9", 78)
    assert line.plain.startswith("p99.9 so far: ")
    assert line.plain.endswith(", not firm yet, from 14 of 80 blocks")
    (before,) = unfinished_line(None, "ring", "99.9", 78)
    assert before.plain == "p99.9 so far: no block is done yet"
    (waiting,) = unfinished_line(None, "ring", "99.9", 78, waits=True)
    assert waiting.plain == "p99.9: the run has not begun"


def test_a_figure_so_far_from_the_due_time_is_of_its_own_curve() -> None:
    points = CurvePoint(0.0, 100, True), CurvePoint(99.0, 9_000, True), CurvePoint(100.0, 9_000, False)
    late = tuple(dataclasses.replace(point, value_ns=50_000_000) for point in points)
    transit, due = PercentileCurve("", points, 11_000), PercentileCurve("", late, 11_000)
    block = Block(0, 0, 1, 1, 1, 1, 1, 1, 0)
    now = Progress(block, 40, 80, transit, 5, 10_000, due)
    (line,) = unfinished_line(now, "ring", "99", 78, from_due_time=True)
    assert line.plain == "p99 from the due time so far: 50 ms, from 40 of 80 blocks"
    assert headline_so_far(now, "ring", "99", from_due_time=True) == ("50 ms", "accent")
    (before,) = unfinished_line(None, "ring", "99", 78, from_due_time=True)
    assert before.plain == "p99 from the due time so far: no block is done yet"
    # The figures of the newest block are of transit, so its stalls stand alone beside a curve by another clock.
    assert run_progress_lines(now, "", False, 78)[1].plain == "block: no stalls over 10 µs"


def test_a_latency_so_far_counts_from_when_a_message_was_due() -> None:
    points = CurvePoint(0.0, 100, True), CurvePoint(99.9, 9_000, True), CurvePoint(100.0, 9_000, False)
    late = tuple(dataclasses.replace(point, value_ns=50_000_000) for point in points)
    sent, due = PercentileCurve("", points, 11_000), PercentileCurve("", late, 12_000)
    known = Progress(Block(0, 0, 1, 1, 1, 1, 1, 1, 0), 40, 80, sent, 5, 10_000, due)
    for now, value in ((known, "50 ms"), (dataclasses.replace(known, due=None), "9 µs")):
        (line,) = unfinished_line(now, "ring", "99.9", 78)
        assert line.plain == f"p99.9 so far: {value}, from 40 of 80 blocks"
        assert headline_so_far(now, "ring", "99.9") == (value, "accent")


@pytest.mark.parametrize(("done", "samples", "firm"), [(40, 11_000, True), (39, 11_000, False), (80, 9_900, False)])
def test_a_figure_so_far_is_dim_until_it_has_its_samples_and_half_of_the_run(
    done: int, samples: int, firm: bool
) -> None:
    points = CurvePoint(0.0, 100, True), CurvePoint(99.9, 9_000, True), CurvePoint(100.0, 9_000, False)
    now = Progress(Block(0, 0, 1, 1, 1, 1, 1, 1, 0), done, 80, PercentileCurve("", points, samples), 5, 10_000)
    assert headline_so_far(now, "ring", "99.9") == ("9 µs", "accent" if firm else "dim")
    (line,) = unfinished_line(now, "ring", "99.9", 78)
    assert ("not firm yet" in line.plain) is not firm
    assert headline_so_far(None, "ring", "99.9") == ("", "")


@pytest.mark.parametrize(
    ("factor", "how", "told"),
    [
        (1.28, "more", "28 % more"),
        (1.28, "less", "22 % less"),
        (1.001, "longer", "1 % longer"),
        (1.999, "longer", "99 % longer"),
        (1.999, "shorter", "49 % shorter"),
        (2.0, "fewer", "2× fewer"),
        (3.14, "more often", "3.1× more often"),
        (55_012.0, "rarer", "55,000× rarer"),
    ],
)
def test_a_small_factor_is_told_in_per_cent_of_the_first_value(factor: float, how: str, told: str) -> None:
    assert difference_told(factor, how) == told
    assert difference_told(factor, how, " times") == told.replace("×", " times")
