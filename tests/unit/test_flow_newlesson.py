"""A chapter's name added to the text of a course.toml."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.flow.chapters.newlesson import with_chapter

LISTS = [
    ("chapters = []\n", 'chapters = ["new"]\n'),
    ('chapters = ["a"]\n', 'chapters = ["a", "new"]\n'),
    ("chapters = ['a', ]  # b\n", "chapters = ['a', \"new\", ]  # b\n"),
    ('chapters = [\n    "a",\n]\n', 'chapters = [\n    "a",\n    "new",\n]\n'),
    ('chapters = [\n  "a"\n]\n', 'chapters = [\n  "a",\n  "new"\n]\n'),
    ('chapters = [\n  "a",  # of "a" ]\n]\n', 'chapters = [\n  "a",  # of "a" ]\n  "new",\n]\n'),
    ('chapters = [\n  "a"  # last\n]\n', 'chapters = [\n  "a",  # last\n  "new"\n]\n'),
    ('chapters = [\r\n  "a",\r\n]\r\n', 'chapters = [\r\n  "a",\r\n  "new",\r\n]\r\n'),
    ('chapters = [ # none yet\n]\nx = "]"\n', 'chapters = ["new", # none yet\n]\nx = "]"\n'),
    ('chapters = ["a]b", "c#d"]\n', 'chapters = ["a]b", "c#d", "new"]\n'),
]


@pytest.mark.parametrize(("text", "changed"), LISTS)
def test_a_name_is_added_to_a_list(text: str, changed: str) -> None:
    assert with_chapter(text, "new") == changed
    assert tomllib.loads(changed)["chapters"][-1] == "new"


@pytest.mark.parametrize(
    "text",
    [
        'chapters = ["new"]\n',
        'title = """\nchapters = ["x"]\n"""\nchapters = ["a"]\n',
        '"chapters" = ["a"]\n',
        "chapters = {}\n",
        "[course]\nchapters = []\n",
        "chapters = [",
        "",
    ],
)
def test_a_chapter_that_cannot_be_added_safely_is_not_added(text: str) -> None:
    assert with_chapter(text, "new") is None


NAMES = st.lists(st.text("ab#]\"'\\, é", max_size=6), max_size=5)


@given(NAMES, st.sampled_from([", ", ",\n  ", " ,  # it's \"]\n\t", "\n,\n"]), st.booleans(), st.booleans())
def test_adding_changes_the_list_and_nothing_else(names: list[str], between: str, broken: bool, comma: bool) -> None:
    quoted = [json.dumps(name, ensure_ascii=False) for name in names]
    edge = "\n" if broken else ""
    text = f'a = 1\nchapters = [{edge}{between.join(quoted)}{"," if comma and names else ""}{edge}] # end\nb = "x"\n'
    changed = with_chapter(text, "new")
    assert changed is not None
    assert tomllib.loads(changed) == {"a": 1, "chapters": [*names, "new"], "b": "x"}
    assert changed.startswith("a = 1\nchapters = [")
    assert changed.endswith('] # end\nb = "x"\n')


@given(st.text(max_size=80))
def test_any_text_is_survived(text: str) -> None:
    for given_text in (text, f"chapters = [{text}"):
        changed = with_chapter(given_text, "new")
        assert changed is None or tomllib.loads(changed)["chapters"][-1] == "new"
