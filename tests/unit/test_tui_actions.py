"""The table of keys: the key g is the words of the page everywhere."""

from __future__ import annotations

import pytest

from jitter_workshop.tui.core.actions import ACTIONS, SCOPE_TITLES, bindings


def keys_of(scope: str) -> dict[str, str]:
    """Return each key of a screen or page with what it does."""
    return {key: binding.action for binding in bindings(scope) for key in binding.key.split(",")}


@pytest.mark.parametrize("scope", SCOPE_TITLES)
def test_g_opens_the_words_of_every_screen_and_page(scope: str) -> None:
    whole = {**keys_of("app"), **keys_of(scope)}
    assert {whole["g"].removeprefix("app."), whole["f2"].removeprefix("app.")} == {"show('glossary')"}
    assert [one.id for one in ACTIONS if one.written == "g"] == []


@pytest.mark.parametrize("scope", SCOPE_TITLES)
def test_no_key_of_a_screen_or_page_has_two_meanings(scope: str) -> None:
    found = [key for binding in bindings(scope) for key in binding.key.split(",")]
    assert sorted(set(found)) == sorted(found)
