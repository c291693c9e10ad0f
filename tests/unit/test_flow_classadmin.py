"""A class file that makes no sense is refused before a machine is made with it: a limit that was misspelt would be
none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jitter_workshop.errors import UsageError
from jitter_workshop.flow.classes import classadmin
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cpu, Topology

GOOD = 'name = "Latency"\nhot_cpus = "0"\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "name is missing; docs/teaching.md shows a complete class file"),
        ('name = "x"', "hot_cpus is missing; docs/teaching.md shows a complete class file"),
        ('name = ""\nhot_cpus = "0"', "name must be a text of 1 to 80 visible characters; "),
        ("hot_cpus = ]", "cannot be read: Invalid value (at line 1, column 12); "),
        (GOOD + "longest_turn_minuts = 3", "unknown key 'longest_turn_minuts'; "),
        (
            GOOD + 'chapters = ["pining"]',
            "'chapters' has 'pining', but there is no such chapter; use baseline, governor,",
        ),
        (
            GOOD + '[may_apply]\nstudents = ["governer"]',
            "students: there is no tunable 'governer'; did you mean 'governor'?",
        ),
        (
            GOOD + '[may_apply]\ngrace = ["isolcpus"]',
            "grace has isolcpus, but only instructors may make boot changes; remove isolcpus",
        ),
    ],
)
def test_each_mistake_is_named_with_its_cure(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "class.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        classadmin.wish(file)
    assert sentence in refused.value.sentence()
    with pytest.raises(UsageError) as again:
        classadmin.bundle(tmp_path / "class.tar.gz", file)
    assert again.value.sentence() == refused.value.sentence()
    assert not (tmp_path / "class.tar.gz").exists()


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "class.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        classadmin.wish(tmp_path / "class.toml")


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_a_class_file_that_is_a_pipe_a_folder_or_a_device_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "class.toml"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to("/dev/zero")
    with pytest.raises(UsageError, match=f"{place} (is not a file|cannot be read: Is a directory)"):
        classadmin.wish(place)


def test_an_unknown_user_of_may_apply_gives_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classadmin.install, "interpreter", lambda: "/usr/bin/python3")
    file = tmp_path / "class.toml"
    file.write_text(GOOD + '[may_apply]\nstudent = []\nstudents = ["*"]\nroot = []')
    doubts = [one for one in classadmin.doubts(classadmin.wish(file)) if "may apply" in one.what]
    (said,) = doubts
    assert "student may apply" in said.what
    assert said.what.endswith("host has no such user")
    assert said.fix.startswith("add the user with useradd, or edit")
    assert "'students' means all" in said.fix


def test_a_cpu_that_is_not_online_is_named(tmp_path: Path) -> None:
    (tmp_path / "class.toml").write_text('name = "x"\nhot_cpus = "4095"')
    with pytest.raises(UsageError, match="hot_cpus names CPU 4095, which is not online"):
        classadmin.wish(tmp_path / "class.toml")


def test_chapters_and_tunables_that_are_there_are_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classadmin.install, "interpreter", lambda: "/usr/bin/python3")
    (tmp_path / "class.toml").write_text(
        GOOD + 'chapters = ["pinning", "hunt"]\n[may_apply]\nstudents = ["*", "hotplug"]\ngrace = []'
    )
    assert classadmin.wish(tmp_path / "class.toml").class_data.startswith(b"name")


def test_logins_stay_off_the_siblings_of_hot_cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classadmin.install, "interpreter", lambda: "/usr/bin/python3")
    cpus = tuple(
        Cpu(n, 0, n // 2, 0, online=True, allowed=True, smt_siblings=CpuSet((n & ~1, n | 1))) for n in range(4)
    )
    monkeypatch.setattr(classadmin, "read_topology", lambda root: Topology(cpus, ()))
    (tmp_path / "class.toml").write_text('name = "x"\nhot_cpus = "2"')
    assert str(classadmin.wish(tmp_path / "class.toml").housekeeping) == "0-1"
