"""Test the load that a chapter has on this host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from jitter_workshop.course.loader import load_course
from jitter_workshop.flow.host_ops import company
from jitter_workshop.flow.host_ops.company import (
    barred_company,
    brings_an_interrupt,
    irqs_of_load,
    with_company_of_host,
)
from jitter_workshop.flow.host_ops.hotcpus import HotCpus
from jitter_workshop.flow.host_ops.settings import look_at_settings
from jitter_workshop.host.irq.irq_affinity import Irq
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.course import Chapter, Company
from jitter_workshop.model.cpuset import CpuSet
from tests import hosttrees
from tests.unit.test_tuning_interrupts import board

ETH_RX, ETH_TX, NVME = 24, 25, 26


def interrupts() -> Chapter:
    chapter = load_course().chapter("interrupts")
    assert chapter is not None
    return chapter


def has(monkeypatch: pytest.MonkeyPatch, only_root: str = "", **numbers: tuple[int, ...]) -> None:
    """Let the devices of these noises have these interrupts. ``only_root``: a noise that this process may not make."""

    def found(_: HostRoot, kind: str, *, unreadable: bool = False) -> tuple[int, ...]:
        return numbers.get(kind, ()) if unreadable or kind != only_root else ()

    monkeypatch.setattr(company, "irqs_of_noise", found)


@pytest.mark.parametrize(
    ("disk", "hwrng", "load"),
    [
        ((NVME,), (ETH_RX,), "hwrng"),
        ((NVME, ETH_TX), (ETH_RX,), "disk"),
        ((ETH_RX,), (), "disk"),
        ((NVME,), (NVME,), "disk"),
        ((), (ETH_RX,), "hwrng"),
        ((), (), "disk"),
    ],
)
def test_the_second_load_comes_only_if_it_alone_has_an_interrupt_that_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: tuple[int, ...], hwrng: tuple[int, ...], load: str
) -> None:
    root = HostRoot(board(tmp_path).root.root)
    has(monkeypatch, disk=disk, hwrng=hwrng)
    chapter = with_company_of_host(interrupts(), root)
    assert chapter.company is not None
    assert {chapter.company.noise, *(one.noise for one in chapter.measurements)} == {load}
    assert chapter.accompanied
    assert (chapter.measurements == interrupts().measurements) is (load == "disk")
    # The interrupt that can be moved comes first, and has its number.
    names = {ETH_RX: "eth0-rx-0", ETH_TX: "eth0-tx-0", NVME: "nvme0q1"}
    own = disk if load == "disk" else hwrng
    first = next((one for one in own if one != NVME), None)
    assert chapter.company.movable == first
    assert set(chapter.company.interrupts) == {names[one] for one in own}
    assert chapter.company.interrupts[:1] == (
        (names[first],) if first is not None else tuple(names[one] for one in own)
    )
    assert chapter.interrupts_of_load(load) == chapter.company.interrupts
    assert chapter.interrupts_of_load(None) == chapter.interrupts_of_load("greedy") == ()


@pytest.mark.parametrize(("fixed", "load"), [((), "disk"), (("disk",), "hwrng"), (("disk", "hwrng"), "disk")])
def test_a_load_whose_interrupt_the_kernel_refused_to_move_gives_way_to_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fixed: tuple[str, ...], load: str
) -> None:
    root = HostRoot(board(tmp_path).root.root)
    has(monkeypatch, disk=(ETH_RX,), hwrng=(ETH_TX,))
    company = with_company_of_host(interrupts(), root, fixed).company
    assert company is not None
    assert company.noise == load


def test_a_run_with_a_noise_of_its_own_keeps_it_and_other_chapters_have_one_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = HostRoot(board(tmp_path).root.root)
    has(monkeypatch, hwrng=(ETH_RX,))
    first, second = interrupts().measurements
    mixed = replace(interrupts(), measurements=(replace(first, noise="greedy"), second))
    assert [one.noise for one in with_company_of_host(mixed, root).measurements] == ["greedy", "hwrng"]
    alone = replace(interrupts(), company=Company("disk", "reads"))
    assert with_company_of_host(alone, root) == alone
    tasks = replace(alone, tunables=("isolation",))
    assert with_company_of_host(tasks, root) is tasks


@pytest.mark.parametrize(
    ("disk", "hwrng", "only_root", "said"),
    [
        (NVME, ETH_RX, "hwrng", True),
        (NVME, NVME, "hwrng", False),
        (ETH_TX, ETH_RX, "hwrng", False),
        (NVME, ETH_RX, "", False),
    ],
)
def test_a_load_that_only_root_can_make_is_named_where_it_would_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: int, hwrng: int, only_root: str, said: bool
) -> None:
    root = HostRoot(board(tmp_path).root.root)
    has(monkeypatch, only_root, disk=(disk,), hwrng=(hwrng,))
    assert barred_company(with_company_of_host(interrupts(), root), root) == (company.ONLY_ROOT if said else "")
    assert barred_company(replace(interrupts(), company=None), root) == ""


@pytest.mark.parametrize(("only_root", "said"), [("hwrng", True), ("", False)])
def test_home_adds_it_to_the_reason_why_the_change_has_hardly_any_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only_root: str, said: bool
) -> None:
    host = board(tmp_path)
    rows: dict[str, tuple[Iterable[int], str]] = {
        "24": ((500, 9), "PCI-MSIX-0000:00:03.0   0-edge      eth0-rx-0"),
        "26": ((900, 10), "PCI-MSIX-0000:00:04.0   1-edge      nvme0q1"),
    }
    hosttrees.write(tmp_path, {"proc/interrupts": hosttrees.interrupts([0, 1], rows)})
    has(monkeypatch, only_root, disk=(NVME,), hwrng=(ETH_RX,))
    ground = (HotCpus(CpuSet((1,)), "asked for", "asked"), host)
    held = look_at_settings(host.root, interrupts(), ground, ()).held
    assert held.endswith(f"cannot be moved; {company.ONLY_ROOT}") if said else held == ""


@pytest.mark.parametrize(
    ("numbers", "found"),
    [((ETH_RX, ETH_TX), ETH_TX), ((ETH_RX,), ETH_RX), ((NVME,), None), ((5, 99), None), ((), None)],
)
def test_the_most_frequent_interrupt_that_can_be_moved_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: tuple[int, ...], found: int | None
) -> None:
    has(monkeypatch, disk=numbers)
    irq = irqs_of_load(HostRoot(board(tmp_path).root.root), "disk").movable
    assert (irq.number if irq else None) == found


def test_each_interrupt_of_a_load_is_asked_once_if_it_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    has(monkeypatch, disk=(ETH_RX, NVME), hwrng=(ETH_TX,))
    monkeypatch.setattr(company, "why_fixed", lambda _, irq: (asked.append(irq.number), "managed")[1])
    with_company_of_host(interrupts(), HostRoot(board(tmp_path).root.root))
    assert sorted(asked) == [ETH_RX, ETH_TX, NVME]


def test_an_interrupt_that_only_tells_of_new_settings_is_not_the_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = board(tmp_path).root.root
    table = (root / "proc/interrupts").read_text().replace("eth0-tx-0", "virtio4-config")
    (root / "proc/interrupts").write_text(table)
    has(monkeypatch, disk=(ETH_RX, ETH_TX))
    assert irqs_of_load(HostRoot(root), "disk").movable == Irq(ETH_RX, "eth0-rx-0", CpuSet((0, 1)))


def test_a_chapter_on_interrupts_shows_its_effect_by_the_interrupt_that_its_load_brings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = HostRoot(board(tmp_path).root.root)
    has(monkeypatch, disk=(NVME,), hwrng=(ETH_RX,))
    assert brings_an_interrupt(with_company_of_host(interrupts(), root))
    assert not brings_an_interrupt(with_company_of_host(replace(interrupts(), tunables=("irqbalance",)), root))
    assert not brings_an_interrupt(with_company_of_host(replace(interrupts(), company=None), root))
    has(monkeypatch, disk=(NVME,))
    assert not brings_an_interrupt(with_company_of_host(interrupts(), root))
