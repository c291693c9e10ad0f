"""The pairs of a matrix: those that are measured, their names, and the drawing in few cells."""

from __future__ import annotations

import dataclasses
import statistics
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.bench import pairs
from jitter_workshop.bench.pairs import (
    MOST_CPUS,
    Nearness,
    clusters,
    fingerprint,
    matrix_cpu_groups,
    matrix_cpus,
    pairs_of,
)
from jitter_workshop.bench.placement import Wish, choose_cpus
from jitter_workshop.chart import matrix as chart
from jitter_workshop.chart.canvas import PLAIN
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.host import Topology
from jitter_workshop.model.matrix import PairTimes
from jitter_workshop.report.pictures.svg import render_matrix_svg
from jitter_workshop.session import files, matrices
from jitter_workshop.stats.matrix import matrix_grid, shade_of_time, shortest_times
from tests import hosttrees
from tests.madematrix import by_nearness, machine, made

MACHINES = st.builds(
    machine,
    st.integers(1, 2),
    st.integers(1, 4),
    st.integers(1, 8),
    st.integers(1, 8),
    st.integers(1, 2),
    st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(MACHINES)
def test_the_chosen_cpus_stand_for_all_ways_in_which_cpus_are_near(topology: Topology) -> None:
    cpus = matrix_cpus(topology)
    allowed = topology.allowed.cpus
    assert set(cpus) <= set(allowed)
    assert len(cpus) == min(len(allowed), MOST_CPUS)
    assert list(cpus) == sorted(set(cpus))
    assert len(pairs_of(cpus)) == len(cpus) * (len(cpus) - 1) // 2
    nearness = Nearness(topology)
    if len(matrix_cpu_groups(topology)) >= 3 or len(allowed) <= MOST_CPUS:
        assert {nearness.of(*pair) for pair in pairs_of(cpus)} == {nearness.of(*pair) for pair in pairs_of(allowed)}
    if len(matrix_cpu_groups(topology)) <= MOST_CPUS // 2:
        assert all(set(group.cpus) & set(cpus) for group in matrix_cpu_groups(topology))


@settings(max_examples=60, deadline=None)
@given(MACHINES)
def test_groups_hold_each_allowed_cpu_once_and_cores_stay_together(topology: Topology) -> None:
    found = [cpu for group in matrix_cpu_groups(topology) for cpu in group.cpus]
    assert sorted(found) == list(topology.allowed.cpus)
    place = {cpu: number for number, cpu in enumerate(found)}
    for cpu in topology.cpus:
        places = [place[one] for one in cpu.smt_siblings]
        assert max(places) - min(places) == len(places) - 1


@settings(max_examples=60, deadline=None)
@given(MACHINES)
def test_each_measured_pair_is_in_one_cluster(topology: Topology) -> None:
    nearness = Nearness(topology)
    ns = {pair: float(10 + number % 7) for number, pair in enumerate(pairs_of(matrix_cpus(topology, 16)))}
    found = clusters(topology, ns)
    assert sum(one.pairs for one in found) == len(ns)
    for one in found:
        values = [value for pair, value in ns.items() if nearness.of(*pair) == one.name]
        assert one.median_ns == pytest.approx(statistics.median(values), abs=0.06)
        assert (one.min_ns, one.max_ns) == (min(values), max(values))
    assert [one.median_ns for one in found] == sorted(one.median_ns for one in found)


def test_nearness_is_named_by_the_part_that_two_cpus_share_or_that_separates_them() -> None:
    two = Nearness(machine(2, 2, 2, 4, 2, clustered=True))
    assert two.of(0, 32) == "same core"
    assert two.of(0, 1) == "same L2"
    assert two.of(0, 2) == "same L3"
    assert two.of(0, 4) == "same node"
    assert two.of(0, 8) == "other node"
    assert two.of(0, 16) == "other package"
    assert Nearness(machine(2, 1, 1, 4, 1)).of(0, 4) == "other node"


def test_offline_and_forbidden_cpus_are_not_chosen(tmp_path: Path) -> None:
    offline = read_topology(HostRoot(hosttrees.EVERY["offline"](tmp_path)))
    assert set(matrix_cpus(offline)) == set(offline.allowed)
    assert set(offline.allowed) < {cpu.id for cpu in offline.cpus}


def test_a_host_is_known_again_by_its_name_and_its_cpus() -> None:
    one = machine(1, 1, 1, 4, 1)
    assert fingerprint("a", one) == fingerprint("a", machine(1, 1, 1, 4, 1))
    assert len({fingerprint("a", one), fingerprint("b", one), fingerprint("a", machine(1, 1, 2, 2, 1))}) == 3


@settings(max_examples=60, deadline=None)
@given(MACHINES, st.integers(1, 80))
def test_few_cells_hold_each_pair_once_and_every_cpu(topology: Topology, most: int) -> None:
    matrix = made(topology, by_nearness(topology))
    cells = matrix_grid(matrix, most)
    assert len(cells.bins) <= max(most, 1)
    assert sorted(cpu for one in cells.bins for cpu in one.measured) == list(matrix.cpus)
    assert all(set(one.measured) <= set(one.stands_for) for one in cells.bins)
    assert all(row[n] == cells.cells[n][r] for r, row in enumerate(cells.cells) for n in range(len(row)))
    low, high = cells.ends
    for ns in (value for row in cells.cells for value in row if value is not None):
        assert low <= ns <= high
        shade = shade_of_time(ns, (low, high), 6)
        assert 1 <= shade <= 6
        assert shortest_times((low, high), 6)[shade - 1] <= ns * 1.0001


def test_a_host_of_512_cpus_is_measured_by_64_and_each_group_is_among_them(tmp_path: Path) -> None:
    topology = read_topology(HostRoot(hosttrees.big(tmp_path, irqs=0)))
    cpus = matrix_cpus(topology)
    assert len(cpus) == 64
    assert len(pairs.matrix_cpu_groups(topology)) == 32
    nearness = Nearness(topology)
    found = {nearness.of(*pair) for pair in pairs_of(cpus)}
    assert found == {"same core", "same L3", "same node", "other node", "other package"}


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 48), (80, 12)])
@pytest.mark.parametrize("theme", ["dark", PLAIN])
def test_a_made_matrix_of_512_cpus_is_drawn_with_its_clusters(
    width: int, height: int, theme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = read_topology(HostRoot(hosttrees.big(tmp_path, irqs=0)))
    matrix = made(topology, by_nearness(topology))
    lines = chart.draw_matrix(matrix, width, height, theme).plain.split("\n")
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert "64 CPUs that stand for 512" in lines[0]
    assert matrix.clusters[0].name == "same core"
    assert "same core" in "\n".join(lines)
    if height > 20:
        assert all(any(one.name in line for line in lines) for one in matrix.clusters)
    monkeypatch.setenv("JITTER_WORKSHOP_MARKS", "ascii")
    assert chart.draw_matrix(matrix, width, height, theme).plain.isascii()


def test_the_picture_of_a_matrix_is_whole(tmp_path: Path) -> None:
    topology = read_topology(HostRoot(hosttrees.big(tmp_path, irqs=0)))
    drawn = ElementTree.fromstring(render_matrix_svg(made(topology, by_nearness(topology))))
    words = ["".join(one.itertext()) for one in drawn.iter() if one.tag.endswith("text")]
    assert any("same core" in one for one in words)


def test_the_shortest_line_decides_between_pairs_alike() -> None:
    topology = machine(1, 1, 1, 6, 1)
    plain = choose_cpus(topology, Wish())
    assert plain.line == ""
    ns = dict.fromkeys(pairs_of(range(6)), 100.0)
    ns[3, 5] = 60.0
    told = choose_cpus(topology, Wish(), lines=PairTimes("2026-11-28", ns))
    assert (told.producer, told.accumulator) == (3, 5)
    assert "a cache line takes 60 ns, measured 2026-11-28" in told.why
    # A line that is hardly shorter does not move the choice, nor one of CPU 0, which ranks lower.
    ns[3, 5], ns[0, 1] = 99.0, 20.0
    same = choose_cpus(topology, Wish(), lines=PairTimes("2026-11-28", ns))
    assert (same.producer, same.accumulator) == (plain.producer, plain.accumulator)
    ns[2, 4] = 50.0
    given = choose_cpus(topology, Wish(producer=4), lines=PairTimes("2026-11-28", ns))
    assert (given.producer, given.accumulator) == (4, 2)


def test_kept_lines_count_only_on_the_same_cpus(tmp_path: Path) -> None:
    here, other = machine(1, 1, 1, 4, 1), machine(1, 1, 2, 2, 1)
    matrix = made(here, by_nearness(here))
    folder = tmp_path / "20261128-120000-0000"
    folder.mkdir()
    matrices.store_matrix(folder, matrix)
    assert matrices.read_matrices(folder) == ((matrix,), ())
    assert matrices.newest_lines(tmp_path, fingerprint("made", here)) == matrix.lines
    assert matrices.newest_lines(tmp_path, fingerprint("made", other)) is None
    cut = dataclasses.replace(matrix, complete=False, id="20261128-130000-0000")
    matrices.store_matrix(folder, cut)
    assert matrices.newest_lines(tmp_path, fingerprint("made", here)) == matrix.lines
    for wrong in ({"cpus": (1, 0, 2, 3)}, {"one_way_ns": ((None, 1.0),)}, {"id": "20261128-140000-0000"}):
        bad = dataclasses.replace(matrix, **wrong)
        (folder / "matrices" / f"{matrix.id}.json").write_bytes(files.json_line(to_plain(bad)))
        assert matrices.newest_lines(tmp_path, fingerprint("made", here)) is None
    assert "damaged" in matrices.read_matrices(folder)[1][0]
