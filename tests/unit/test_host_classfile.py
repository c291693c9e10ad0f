"""The class file: every limit that it names holds, and a word that is not known is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.errors import UsageError
from jitter_workshop.host.classfile import ANY, is_name, parse_class
from jitter_workshop.model.cpuset import CpuSet

WHOLE = b"""
name = "Latency, autumn 2026"
hot_cpus = "2-3"
instructors = ["ada"]
longest_turn_minutes = 3.5
preset = "standard"
chapters = ["baseline", "pinning"]

[may_apply]
students = ["*"]
grace = ["governor", "hotplug"]
"""


def test_a_whole_file() -> None:
    found = parse_class(WHOLE)
    assert found.name == "Latency, autumn 2026"
    assert found.hot_cpus == CpuSet.parse_list("2-3")
    assert found.longest_turn_s == 210
    assert found.preset == "standard"
    assert found.chapters == ("baseline", "pinning")
    assert found.instructs("ada")
    assert found.instructs("root")
    assert not found.instructs("grace")
    assert found.allowed("grace") == ("governor", "hotplug")
    assert found.allowed("alan") == (ANY,)


def test_a_short_class_file_gets_defaults() -> None:
    found = parse_class(b'name = "x"\nhot_cpus = "1"\n')
    assert (found.longest_turn_s, found.preset, found.chapters, found.instructors) == (240, "quick", (), ())
    assert found.allowed("anybody") == ()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"", "name is missing"),
        (b'name = ""', "name must be a text"),
        (b'name = "a\\u001b[2Jb"', "name must be a text"),
        (b'name = "x"', "hot_cpus is missing"),
        (b'name = "x"\nhot_cpu = "2-3"', "unknown key 'hot_cpu'"),
        (b'name = "x"\nhot_cpus = ""', "hot_cpus must be a list"),
        (b'name = "x"\nhot_cpus = "2-"', "hot_cpus must be a list"),
        (b'name = "x"\nhot_cpus = [2]', "hot_cpus must be a list"),
        (b'name = "x"\nhot_cpus = "1"\nlongest_turn_minute = 1', "unknown key 'longest_turn_minute'"),
        (b'name = "x"\nhot_cpus = "1"\nlongest_turn_minutes = 0', "longest_turn_minutes must be a number"),
        (b'name = "x"\nhot_cpus = "1"\nlongest_turn_minutes = 1e9', "longest_turn_minutes must be a number"),
        (b'name = "x"\nhot_cpus = "1"\nlongest_turn_minutes = nan', "longest_turn_minutes must be a number"),
        (b'name = "x"\nhot_cpus = "1"\nlongest_turn_minutes = true', "longest_turn_minutes must be a number"),
        (b'name = "x"\nhot_cpus = "1"\npreset = "fast"', "preset must be one of"),
        (b'name = "x"\nhot_cpus = "1"\ninstructors = "ada"', "instructors must be a list"),
        (b'name = "x"\nhot_cpus = "1"\ninstructors = ["a b"]', "instructors must be a list"),
        (b'name = "x"\nhot_cpus = "1"\ninstructors = ["../x"]', "instructors must be a list"),
        (b'name = "x"\nhot_cpus = "1"\nmay_apply = ["*"]', "may_apply must be a table"),
        (b'name = "x"\nhot_cpus = "1"\n[may_apply]\nstudents = "*"', "may_apply.students must be a list"),
        (b"name = x", "cannot be read"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"#" * 70_000, "larger than"),
    ],
)
def test_an_invalid_line_of_the_class_file_is_refused(line: bytes, says: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_class(line, "class.toml")
    assert says in refusal.value.message
    assert refusal.value.message.startswith("class.toml")
    assert refusal.value.sentence().isprintable()


@given(st.binary(max_size=400))
def test_bytes_are_a_class_or_refused(data: bytes) -> None:
    said = ""
    try:
        parse_class(data)
    except UsageError as refusal:
        said = refusal.sentence()
    assert said.isprintable()


@given(st.text(max_size=80))
def test_a_name_is_one_visible_word(word: str) -> None:
    if is_name(word):
        assert word.isprintable()
        assert 0 < len(word) <= 64
        assert not set(word) & set(" /:")
