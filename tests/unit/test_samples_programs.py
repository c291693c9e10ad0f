"""The three small programs of the last chapter: what they print, what they refuse, and that their work is real."""

from __future__ import annotations

import gc
import math
import re
import subprocess
import weakref

import pytest

from jitter_workshop.flow.chapters.own_program import MATCH, SAMPLES, Sample
from jitter_workshop.samples import audio, collector


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda one: one.name)
def test_a_small_program_ends_in_time_and_prints_its_figures(sample: Sample) -> None:
    done = subprocess.run([*sample.words, "0.3"], capture_output=True, text=True, timeout=30, check=True)
    (line,) = done.stdout.splitlines()
    (p99,) = re.findall(MATCH, line)
    assert 0 <= float(p99) < 30e6
    assert done.stderr == ""


@pytest.mark.parametrize("words", [["0"], ["61"], ["soon"], ["nan"], ["1", "2"]])
def test_other_times_are_refused_with_a_sentence(words: list[str]) -> None:
    done = subprocess.run([*SAMPLES[1].words, *words], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "give the seconds to run, from 0.1 to 60\n"


def test_only_the_collector_frees_a_chain() -> None:
    class Watched(collector.Node):
        __slots__ = ("__weakref__",)

    first = collector.chain(5)
    node, values = first, []
    for _ in range(collector.CHAIN):
        values.append(node.value)
        node = node.following
    assert node is first
    assert values == list(range(5, 5 + collector.CHAIN))
    watched = Watched(1)
    watched.following = first
    for _ in range(collector.CHAIN - 1):
        first = first.following
    first.following = watched
    gone = weakref.ref(watched)
    del watched, first, node
    assert gone() is not None
    gc.collect()
    assert gone() is None


def test_a_block_is_the_mix_of_its_voices() -> None:
    first, second = audio.sound_block(0), audio.sound_block(audio.BLOCK)
    assert len(first) == audio.BLOCK
    assert first[0] == 0.0
    late = audio.BLOCK + 7
    mixed = sum(math.sin(2 * math.pi * voice * late / audio.RATE) for voice in audio.VOICES) / 3
    assert second[7] == pytest.approx(mixed)
    assert max(map(abs, first)) <= 1.0
