"""The values of a host that by-hand commands name: masks of the L3 cache, and what is said where there are none."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.flow.attribution import with_cpus
from jitter_workshop.flow.chapters.hand_values import (
    NO_RESCTRL,
    NOT_DIVIDED,
    NOT_MOUNTED,
    names_host_values,
    values_by_hand,
)
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.cpuset import CpuSet
from tests import hosttrees

L3 = "sys/devices/system/cpu/cpu3/cache/index3"
GROUPS = "sys/fs/resctrl"
MOUNTED = {f"{GROUPS}/schemata": "L3:0=7ff;1=7ff\n", f"{GROUPS}/info/L3/cbm_mask": "7ff\n"}
CACHE = {f"{L3}/level": "3\n", f"{L3}/id": "1\n"}


def chapter(ident: str = "caches") -> Chapter:
    found = load_course(builtin_course()).chapter(ident)
    assert found is not None
    return found


def read(tree: Path, files: dict[str, str], used: CpuSet | None = None) -> dict[str, str]:
    """The values of a host of four CPUs with these files. Its run was on CPU 3."""
    lists = {f"sys/devices/system/cpu/{name}": "0-3\n" for name in ("online", "present", "possible")}
    root = HostRoot(hosttrees.write(tree, lists | files))
    cpus = CpuSet((3,)) if used is None else used
    return values_by_hand(chapter(), root, read_topology(root), CpuSet((3,)), cpus)


@pytest.mark.parametrize(
    ("more", "masks"),
    [
        ({}, ("7ff", "f", "7f0")),
        ({f"{GROUPS}/info/L3/cbm_mask": "fffff\n"}, ("fffff", "7f", "fff80")),
        ({f"{GROUPS}/info/L3/cbm_mask": "3\n"}, ("3", "1", "2")),
        ({f"{GROUPS}/info/L3/cbm_mask": "ff\n", f"{GROUPS}/info/L3/min_cbm_bits": "4\n"}, ("ff", "f", "f0")),
    ],
)
def test_the_masks_are_those_of_this_host(tmp_path: Path, more: dict[str, str], masks: tuple[str, ...]) -> None:
    found = read(tmp_path, {**MOUNTED, **CACHE, **more})
    assert found["l3_id"] == "1"
    assert (found["l3_all"], found["l3_part"], found["l3_rest"]) == masks
    every, part, rest = (int(one, 16) for one in masks)
    assert (part | rest, part & rest) == (every, 0)
    assert found["resctrl"].endswith(f"has {every.bit_length()} ways, so its mask is {masks[0]}.")
    commands = [command for command, _ in with_cpus(chapter(), CpuSet((3,)), found)]
    (group,) = (one for one in commands if "mkdir hot" in one)
    assert f"echo L3:1={masks[1]} | sudo tee hot/schemata" in group
    assert f"echo L3:1={masks[2]} | sudo tee schemata" in group
    assert "echo 3 | sudo tee hot/cpus_list" in group
    assert any(f"rmdir hot && echo L3:1={masks[0]} |" in one for one in commands)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, NO_RESCTRL),
        ({f"{GROUPS}/.keep": ""}, NOT_MOUNTED),
        ({f"{GROUPS}/schemata": "MB:0=100\n", **CACHE}, NOT_DIVIDED),
        ({**MOUNTED, f"{L3}/level": "3\n"}, NOT_DIVIDED),
        ({**MOUNTED, **CACHE, f"{GROUPS}/info/L3/cbm_mask": "7f0\n"}, NOT_DIVIDED),
        ({**MOUNTED, **CACHE, f"{GROUPS}/info/L3/cbm_mask": "1\n"}, NOT_DIVIDED),
        ({**MOUNTED, **CACHE, f"{GROUPS}/info/L3/cbm_mask": "\x1b[31m\n"}, NOT_DIVIDED),
        ({**MOUNTED, **CACHE, f"{GROUPS}/info/L3/min_cbm_bits": "9\n"}, NOT_DIVIDED),
    ],
)
def test_a_host_without_such_masks_is_told(tmp_path: Path, files: dict[str, str], told: str) -> None:
    found = read(tmp_path, files)
    assert found == {"resctrl": told}
    shown = with_cpus(chapter(), CpuSet((3,)), found)
    assert [why for _, why in shown if why.startswith(told)]
    assert any("L3:L3_ID=L3_PART" in command for command, _ in shown)


def test_without_a_hot_cpu_there_is_no_cache(tmp_path: Path) -> None:
    assert read(tmp_path, {**MOUNTED, **CACHE}, CpuSet()) == {"resctrl": NOT_DIVIDED}


def test_nothing_is_read_that_no_command_names() -> None:
    assert names_host_values(chapter())
    assert names_host_values(chapter("make-it-last"))
    assert not names_host_values(dataclasses.replace(chapter(), by_hand=()))


def test_the_pair_of_runs_differs_in_the_group_alone() -> None:
    commands = [one.command for one in chapter().by_hand]
    words = ("--label shared-ways", "mkdir hot", "--label own-ways", "rmdir hot")
    places = [next(n for n, one in enumerate(commands) if word in one) for word in words]
    assert places == sorted(places)
    shared, _, own, _ = places
    assert commands[own].partition(" && ")[0] == commands[shared].replace("shared-ways", "own-ways")
    assert commands[own].endswith("compare shared-ways own-ways")
