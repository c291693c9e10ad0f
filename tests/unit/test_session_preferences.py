"""The file of the user's preferences: what is written is read, and a wrong file is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.session.preferences import CHOICES, Preferences, load, save


@given(st.builds(Preferences, *(st.sampled_from(choices) for choices in CHOICES.values())))
def test_preferences_survive_the_file(preferences: Preferences) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "deep" / "config.toml"
        save(preferences, file)
        assert load(file) == (preferences, "")
        assert [path.name for path in file.parent.iterdir()] == ["config.toml"]


@given(st.binary(max_size=300))
def test_any_preferences_file_gives_preferences(raw: bytes) -> None:
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        file.write(raw)
        file.flush()
        preferences, _ = load(Path(file.name))
        assert all(getattr(preferences, key) in choices for key, choices in CHOICES.items())


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('theme = "sunny"', "theme"),
        ("show_published = 1", "show_published"),
        ("preset = [1]", "preset"),
        ("theme = ", "is not TOML"),
        ("x = '" + "a" * 70_000 + "'", "too large"),
    ],
)
def test_bad_preferences_are_named(text: str, part: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    preferences, notice = load(file)
    assert preferences == Preferences()
    assert part in notice


def test_a_folder_in_place_of_preferences_is_named(tmp_path: Path) -> None:
    assert "cannot be read" in load(tmp_path)[1]
