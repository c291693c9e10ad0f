"""Whatever a file holds, it is read into something sound, or refused with a sentence."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.errors import SessionError
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.imported import ImportedRun
from jitter_workshop.session import foreign, imports
from jitter_workshop.session.foreign_text import MAX_COUNT, MAX_NS, UNITS
from jitter_workshop.stats import encoded, geometry
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats.curve import imported_curve

SAMPLES = {
    path.name: path.read_bytes()
    for path in sorted((Path(__file__).parents[1] / "imports").iterdir())
    if path.suffix != ".md"
}
TOKENS = [
    *(b"0", b"-1", b"nan", b"NaN", b"inf", b"1e308", b"9223372036854775808", b"99999999999999999999999", b"\x00"),
    *(b"\n", b",", b" ", b"\t", b'"', b"{", b"}", b"[", b":", b"#", b"HIST", b"Tag=", b"\xff\xfe", b"\x1b[2J"),
    *(
        b"# Total:",
        b"# Histogram",
        b"# Max Latencies: 1",
        b"(us):",
        b"(including overflows)",
        b"#[Max = 1, Total count = 9]",
    ),
]


def sound(data: bytes, name: str, unit: str | None = None) -> tuple[ImportedRun, ...]:
    """The runs of these bytes, each fit to be kept and drawn; () where they are refused, in one line."""
    try:
        runs = foreign.parse(data, name, unit=unit)
    except SessionError as error:
        refusal = error
    else:
        return tuple(checked(run) for run in runs)
    assert refusal.sentence().isprintable()
    assert len(refusal.sentence()) < 400
    assert refusal.advice
    return ()


def checked(run: ImportedRun) -> ImportedRun:
    """What every run must keep, however its file was made."""
    assert from_plain(ImportedRun, json.loads(json.dumps(to_plain(run), allow_nan=False))) == run
    imports._check(run)
    assert run.origin
    assert run.label
    assert 0 < run.count <= MAX_COUNT
    assert 0 <= (run.min_ns or 0) <= run.max_ns <= MAX_NS
    points = imported_curve(run).points
    assert list(points) == sorted(points, key=lambda p: (p.percentile, p.value_ns))
    assert [p.value_ns for p in points] == sorted(p.value_ns for p in points)
    for text in (run.label, run.origin, run.tool, run.measures, run.host, run.source, *run.notes):
        assert text.isprintable()
    return run


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A real file with pieces cut out, doubled or replaced."""
    data = draw(st.sampled_from(sorted(SAMPLES.values())))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 60)))
        piece = draw(st.sampled_from([b"", data[start:end] * 2, *TOKENS]) | st.binary(max_size=8))
        data = data[:start] + piece + data[end:]
    return data


def test_every_sample_is_sound() -> None:
    refused = [name for name, data in SAMPLES.items() if not sound(data, name)]
    assert refused == ["cyclictest-no-histogram.json"]


@settings(max_examples=200)
@given(mutated(), st.sampled_from([None, *UNITS]))
def test_damaged_files(data: bytes, unit: str | None) -> None:
    sound(data, "x.txt", unit)


@given(st.lists(st.sampled_from(TOKENS) | st.binary(max_size=12), max_size=30), st.sampled_from(foreign.FORMATS))
def test_anything_at_all(pieces: list[bytes], form: Any) -> None:
    data = b"".join(pieces)
    sound(data, "x")
    with contextlib.suppress(SessionError):
        form.parse(data, "x", None)


NUMBERS = st.integers(-1, 2**65) | st.integers(0, 300) | st.floats() | st.booleans() | st.none() | st.text(max_size=3)
THREAD = st.fixed_dictionaries(
    {"histogram": st.dictionaries(st.integers(0, 400).map(str) | st.text(max_size=4), NUMBERS, max_size=6) | NUMBERS},
    optional=dict.fromkeys(("cycles", "min", "max", "cpu", "duration", "freq"), NUMBERS),
)


@given(
    st.sampled_from(["cyclictest -h 100", "oslat -D 1", "./cyclictest -N"]),
    st.dictionaries(st.sampled_from("012"), THREAD, max_size=3) | NUMBERS,
    NUMBERS,
)
def test_json_of_any_shape(cmdline: str, threads: object, other: object) -> None:
    made = {
        "cmdline": cmdline,
        "thread": threads,
        "rt_test_version": other,
        "sysinfo": {"nodename": other},
        "start_time": other,
        "resolution_in_ns": other,
    }
    sound(json.dumps(made).encode(), "x.json")


@given(
    st.lists(
        st.tuples(st.integers(0, 5_000), st.integers(1, 10**12)), min_size=1, max_size=20, unique_by=lambda p: p[0]
    ),
    st.integers(0, 50),
)
def test_a_made_table_of_cyclictest_comes_back(rows: list[tuple[int, int]], beyond: int) -> None:
    counts = dict(rows)
    top = max(counts)
    text = "# Histogram\n" + "".join(f"{at:06d} {counts.get(at, 0):06d}\n" for at in range(top + 1))
    text += f"# Total: {sum(counts.values()):09d}\n# Min Latencies: {min(counts):05d}\n# Avg Latencies: 00001\n"
    text += f"# Max Latencies: {top + beyond:05d}\n# Histogram Overflows: {beyond:05d}\n"
    (run,) = sound(text.encode(), "x.hist")
    assert run.bins == tuple((at * 1_000, at * 1_000 + 999, n) for at, n in sorted(rows))
    assert (run.beyond, run.min_ns, run.max_ns // 1_000) == (beyond, min(counts) * 1_000, top + beyond)


SHAPES = st.tuples(st.integers(1, 5_000), st.integers(2, 10**13), st.integers(1, 5)).filter(
    lambda s: 2 * s[0] <= s[1] and geometry.counters_needed(*s) <= geometry.MAX_COUNTERS
)


@settings(max_examples=40)
@given(SHAPES)
def test_the_geometry_is_the_librarys(shape: tuple[int, int, int]) -> None:
    assert geometry.layout(*shape) == hg.geometry(hg.new_histogram(*shape))


@given(st.lists(st.integers(0, 10**10), max_size=30))
def test_counters_are_those_that_were_encoded(values: list[int]) -> None:
    made = hg.new_histogram()
    for value in values:
        hg.record(made, value)
    space, counts = encoded.counts(hg.encode(made), encoded.Budget(1 << 20))
    assert [(*space.bounds(i), n) for i, n in sorted(counts.items())] == list(map(tuple, hg.non_zero(made)))
