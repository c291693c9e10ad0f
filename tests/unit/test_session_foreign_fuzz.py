"""Any file of another program is read into something sound, or refused with a sentence."""

from __future__ import annotations

import base64
import contextlib
import json
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.errors import SessionError
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.curve import ImportedRun
from jitter_workshop.session import foreign, imports
from jitter_workshop.session.foreign_text import MAX_COUNT, MAX_NS, UNITS
from jitter_workshop.stats import encoded, geometry
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats.curve import imported_curve
from jitter_workshop.stats.encoded import CUT_OFF

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
        runs = foreign.parse_foreign_file(data, name, unit=unit)
    except SessionError as error:
        refusal = error
    else:
        return tuple(checked(run) for run in runs)
    assert refusal.sentence().isprintable()
    assert len(refusal.sentence()) < 400
    assert refusal.advice
    return ()


def checked(run: ImportedRun) -> ImportedRun:
    """Return what every run must keep, however its file was made."""
    assert from_plain(ImportedRun, json.loads(json.dumps(to_plain(run), allow_nan=False))) == run
    imports._check(run, run.id)
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
        made.record_value(value)
    space, counts = encoded.decode_counts(hg.encode_histogram(made), encoded.ByteBudget(1 << 20))
    assert [(*space.bounds(i), n) for i, n in sorted(counts.items())] == list(map(tuple, hg.non_zero(made)))


def written(version: int, shape: tuple[int, int, int], counters: list[int], word_bytes: int = 8) -> bytes:
    """A histogram with these counters as each generation of the format has it, in base64."""
    lowest, highest, digits = shape
    if version == 2:
        body, cookies = b"".join(map(varint, counters)), (0x1C849303 | 0x10, 0x1C849304 | 0x10)
    else:
        body = b"".join(n.to_bytes(word_bytes, "big", signed=True) for n in counters)
        cookies = {0: (0x1C849308, 0x1C849309), 1: (0x1C849301, 0x1C849302)}[version]
        cookies = (cookies[0] | word_bytes << 4, cookies[1] | word_bytes << 4)
    if version == 0:
        inner = struct.pack(">IIQQQ", cookies[0], digits, lowest, highest, sum(counters)) + body
    else:
        inner = struct.pack(">IIIIQQd", cookies[0], len(body), 0, digits, lowest, highest, 1.0) + body
    return wrapped(cookies[1], inner)


def wrapped(cookie: int, inner: bytes) -> bytes:
    squeezed = zlib.compress(inner)
    return base64.b64encode(struct.pack(">II", cookie, len(squeezed)) + squeezed)


def varint(value: int) -> bytes:
    """A number as V2 has it: ZigZag LEB128, at most nine bytes, the last of which is whole."""
    left = (value << 1) ^ (value >> 63)
    found = bytearray()
    while left > 0x7F and len(found) < 8:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)


COUNTERS = st.lists(st.integers(0, 32_767), max_size=200)


@given(SHAPES, COUNTERS)
def test_all_three_generations_and_word_sizes_say_the_same(shape: tuple[int, int, int], counters: list[int]) -> None:
    counters = counters[: geometry.layout(*shape).counts_len]
    wanted = {index: n for index, n in enumerate(counters) if n}
    for version, word_bytes in ((0, 2), (0, 4), (0, 8), (1, 2), (1, 4), (1, 8), (2, 8)):
        made = written(version, shape, counters, word_bytes)
        space, found = encoded.decode_counts(made, encoded.ByteBudget(1 << 20))
        assert (space, found) == (geometry.layout(*shape), wanted)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_encoded_histogram_with_no_one_or_too_many_counts(version: int) -> None:
    shape = (1, 1_000_000, 3)
    assert encoded.decode_counts(written(version, shape, []), encoded.ByteBudget(100))[1] == {}
    assert sound(b"0.0,1.0,1.0," + written(version, shape, []), "x.hlog") == ()
    space, found = encoded.decode_counts(written(version, shape, [0] * 77 + [1]), encoded.ByteBudget(1_000))
    assert found == {77: 1}
    assert space.bounds(77) == (77, 77)
    (run,) = sound(b"0.0,1.0,1.0," + written(version, shape, [0] * 77 + [1]), "x.hlog")
    assert (run.count, run.min_ns, run.max_ns) == (1, 77, 77)
    for counters, said in (
        ([0] * space.counts_len + [1], "beyond its limits"),
        ([1 << 62] * 3, "beyond its limits"),
    ):
        with pytest.raises(ValueError, match=said):
            encoded.decode_counts(written(version, shape, counters), encoded.ByteBudget(1 << 20))
    if version < 2:
        with pytest.raises(ValueError, match="negative counts"):
            encoded.decode_counts(written(version, shape, [5, -1]), encoded.ByteBudget(1 << 20))
    else:
        # A negative number is a run of zeros there, and must not lead out of the histogram.
        assert encoded.decode_counts(written(2, shape, [5, -3, 1]), encoded.ByteBudget(1 << 20))[1] == {0: 5, 4: 1}
        with pytest.raises(ValueError, match="beyond its limits"):
            encoded.decode_counts(written(2, shape, [5, -(1 << 61), 1]), encoded.ByteBudget(1 << 20))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_bomb_is_not_unpacked(version: int) -> None:
    tracemalloc.start()
    try:
        inner = base64.b64decode(written(version, (1, 1_000_000, 3), [1]))
        cookie = struct.unpack_from(">I", inner)[0]
        bomb = wrapped(cookie, zlib.decompress(inner[8:]) + bytes(64 << 20))
        tracemalloc.reset_peak()
        with pytest.raises(ValueError, match=CUT_OFF):
            encoded.decode_counts(bomb, encoded.ByteBudget(1 << 20))
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


@settings(max_examples=120)
@given(st.data(), st.sampled_from([(0, 4), (1, 2), (1, 8), (2, 8)]), SHAPES, COUNTERS)
def test_a_histogram_edited_inside_its_compressed_part(
    data: st.DataObject, form: tuple[int, int], shape: tuple[int, int, int], counters: list[int]
) -> None:
    """A checksum of zlib lets a made header and made counters through."""
    made = base64.b64decode(written(form[0], shape, counters[: geometry.layout(*shape).counts_len], form[1]))
    inner = bytearray(zlib.decompress(made[8:]))
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, min(len(inner) - 1, 60)))
        inner[at] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
    inner = inner[: data.draw(st.integers(len(inner) - 3, len(inner)))]
    text = wrapped(struct.unpack_from(">I", made)[0], bytes(inner))
    sound(b"0.0,1.0,1.0," + text, "x.hlog")
    try:
        space, found = encoded.decode_counts(text, encoded.ByteBudget(1 << 20))
    except ValueError:
        return
    assert all(0 <= index < space.counts_len and n > 0 for index, n in found.items())
    assert sum(found.values()) <= encoded.MAX_TOTAL
