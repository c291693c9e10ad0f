"""Test the Perfetto file as such: what a reader needs comes first, long files are written piece by piece, and what
cannot be written is a sentence. ``test_evidence_scene`` tests what the files say."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("perfetto", reason="the extra 'perfetto' is not installed")

from jitter_workshop.errors import HostError, SessionError
from jitter_workshop.evidence.scene import CPUS, THREADS, Label, Moment, Scene, Track, TrackSlice
from jitter_workshop.report.formats import perfetto
from jitter_workshop.report.formats.perfetto import FileClock, Writer, messages
from tests.perfettoread import ROOT, read

CLOCK = FileClock(True, 500, 1_000_000)
LABEL = Label("running", (("state", "running"), ("cpu", 3)))


def a_scene(number: int = 3) -> Scene:
    scene = Scene()
    track = scene.track(THREADS, "t", name="t")
    for at in range(number):
        inner = Label(f"in {at}")
        track.slices += [TrackSlice(10 * at, 10 * at + 8, LABEL), TrackSlice(10 * at, 10 * at + 8, inner, flow=at + 1)]
        scene.cpu(0).moments.append(Moment(10 * at, LABEL, at + 1))
    return scene


def whole(scene: Scene, clock: FileClock = CLOCK) -> bytes:
    writer = Writer(clock, "what it is about")
    writer.add(scene)
    return writer.whole()


def test_slices_inside_slices_with_the_same_ends_are_kept_apart() -> None:
    found = read(whole(a_scene()))
    assert found.tracks[ROOT].name == "what it is about"
    (track,) = found.group(THREADS)[1:]
    assert [(one.start, one.end, one.name, one.depth) for one in track.slices[:3]] == [
        (0, 8, "running", 0),
        (0, 8, "in 0", 1),
        (10, 18, "running", 0),
    ]
    assert track.slices[0].args == {"state": "running", "cpu": 3}
    assert [one.begins for one in found.marks(CPUS)] == [(1,), (2,), (3,)]
    assert [one.ends for one in track.slices] == [(), (1,), (), (2,), (), (3,)]


def test_a_long_file_is_written_piece_by_piece_and_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    before = whole(a_scene(50))
    monkeypatch.setattr(perfetto, "_AT_ONCE", 7)
    assert whole(a_scene(50)) == before


def test_a_scene_that_is_added_in_parts_is_one_file() -> None:
    writer, scene = Writer(CLOCK, "x"), Scene()
    for at in (0, 10):
        scene.track(THREADS, "t", name="t").slices.append(TrackSlice(at, at + 5, LABEL))
        writer.add(scene)
        assert not any(track.slices or track.moments for track in scene.tracks.values())
    (track,) = read(writer.whole()).group(THREADS)[1:]
    assert [one.start for one in track.slices] == [0, 10]


def test_groups_and_tracks_have_their_order() -> None:
    scene = Scene()
    for cpu in (10, 2):
        scene.cpu(cpu).slices.append(TrackSlice(0, 1, LABEL))
    scene.track(THREADS, "t", name="t").slices.append(TrackSlice(0, 1, LABEL))
    found = read(whole(scene))
    assert [track.name for track in found.tracks.values()][1:] == ["Threads", "t", "CPUs", "CPU 2", "CPU 10"]
    assert [track.order for track in found.group(CPUS)[1:]] == [4, 20]


@pytest.mark.parametrize("at", [-1, 2**64])
def test_a_time_that_no_clock_has_is_one_sentence(at: int) -> None:
    scene = Scene()
    scene.tracks[THREADS, "t", 0] = Track(THREADS, "t", slices=[TrackSlice(at, at, LABEL)])
    with pytest.raises(SessionError, match="no clock can have"):
        whole(scene)


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "perfetto"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "perfetto", None)
    with pytest.raises(HostError) as caught:
        messages()
    assert caught.value.sentence() == "the package perfetto is not installed; pip install 'jitter-workshop[perfetto]'"


def test_the_trace_processor_reads_it(tmp_path: Path) -> None:
    binary = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    if binary is None:
        pytest.skip("Perfetto's trace processor is not installed, and tests do not download it")
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    path = tmp_path / "x.pftrace"
    path.write_bytes(whole(a_scene()))
    with TraceProcessor(trace=str(path), config=TraceProcessorConfig(bin_path=binary)) as processor:
        rows = list(processor.query("select ts, dur, name, depth from slice order by ts, depth"))
        lost = list(processor.query("select sum(value) as n from stats where severity in ('error', 'data_loss')"))
    assert [(row.ts, row.dur, row.name, row.depth) for row in rows if row.dur][:2] == [
        (0, 8, "running", 0),
        (0, 8, "in 0", 1),
    ]
    assert not lost[0].n
