"""Made sessions are what they say: stored as real ones, with histograms that the library reads alike."""

from __future__ import annotations

import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.session.store import SessionStore
from jitter_workshop.stats import histogram as hg
from tests.madesessions import SPACE, encoded, make_session, real_shaped

counts = st.dictionaries(st.integers(0, SPACE.counts_len - 1), st.integers(1, 1 << 40), min_size=1, max_size=60)


@given(counts)
def test_counts_are_encoded_as_the_library_encodes_them(found: dict[int, int]) -> None:
    made = hg.new_histogram()
    view = hg.counts_array(made)
    for index, count in found.items():
        view[index] = count
    assert encoded(found) == hg.encode_histogram(made)


def test_a_session_is_read_back_with_curves_that_agree_with_its_runs(tmp_path: Path) -> None:
    make_session(tmp_path, 3, blocks=2).close()
    with SessionStore(tmp_path).open("made") as session:
        runs = session.runs()
        assert [run.label for run in runs] == ["baseline", "pinned", "baseline 1"]
        assert not session.notices
        for run in runs:
            shown = run.histograms[run.main_histogram]
            assert session.curve(run).count == shown.count
            assert (
                hg.summarise_histogram(session.histogram(run.id, run.main_histogram)).percentiles == shown.percentiles
            )
        assert session.session.chapters["baseline"].runs == {"measure": runs[0].id, "again": runs[1].id}


def test_the_same_seed_makes_the_same_run() -> None:
    assert real_shaped(4, random.Random(7), 1)[:2] == real_shaped(4, random.Random(7), 1)[:2]
