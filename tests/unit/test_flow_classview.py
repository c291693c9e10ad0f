"""The class as an open workshop sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.madeclass import MadeClass, view_of, waits
from tests.talking import talk


@pytest.mark.parametrize(("waiting", "more"), [(12, ""), (13, "1 more waits"), (14, "2 more wait")])
def test_a_long_queue_says_how_many_more_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waiting: int, more: str
) -> None:
    made = MadeClass(tmp_path / "class", monkeypatch)
    made.publish(queue=tuple(waits(number, f"user{number}") for number in range(5, 5 + waiting)))
    workshop = made.open()
    view_of(workshop).look()
    assert view_of(workshop).unseen() == more
    told = [line.strip() for line in talk(workshop, "turn|q").splitlines()]
    assert "12. user16" in " ".join(told)
    assert more in told
