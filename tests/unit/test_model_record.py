"""Records are the standard library's frozen dataclasses in all but the cost of making their class."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.record import _FEW, dataclass, field, made_of, picked


def _body(decorate: Callable[[type], type], make: Callable[..., Any]) -> Any:
    class Point:
        """A point."""

        x: int
        y: float = 2.5
        tags: tuple[str, ...] = ()
        notes: dict[str, str] = make(default_factory=dict)

        @property
        def double(self) -> int:
            return 2 * self.x

    return decorate(Point)


def _record() -> Any:
    return _body(dataclass(frozen=True, slots=True), field)


def _standard() -> Any:
    return _body(dataclasses.dataclass(frozen=True, slots=True), dataclasses.field)


@dataclass(frozen=True, slots=True)
class Checked:
    low: int
    high: int = 9

    def __post_init__(self) -> None:
        if self.low > self.high:
            object.__setattr__(self, "low", self.high)


@dataclass(frozen=True, slots=True)
class Mine:
    """Its own equality: left to the standard library."""

    a: int

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


VALUES = st.tuples(st.integers(), st.floats(allow_nan=False), st.lists(st.text(max_size=3)).map(tuple))


@given(VALUES, VALUES)
def test_a_record_behaves_as_a_dataclass(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    mine, theirs = _record(), _standard()
    a, b, c, d = mine(*one), mine(*other), theirs(*one), theirs(*other)
    assert (a == b) is (c == d)
    assert repr(a).endswith(repr(c).partition("Point")[2])
    assert dataclasses.asdict(a) == dataclasses.asdict(c)
    assert dataclasses.replace(a, x=1) == mine(1, *one[1:])
    assert a != c


def test_fields_defaults_and_flags_are_the_same() -> None:
    mine, theirs = _record(), _standard()
    assert dataclasses.is_dataclass(mine)
    assert [(f.name, f.type, f.default) for f in dataclasses.fields(mine)] == [
        (f.name, f.type, f.default) for f in dataclasses.fields(theirs)
    ]
    assert mine.__match_args__ == theirs.__match_args__
    assert mine.__slots__ == theirs.__slots__
    assert mine.__doc__ == "A point."
    assert not hasattr(mine(1), "__dict__")
    assert (mine(1).y, mine(1).tags, mine(x=4).double) == (2.5, (), 8)
    assert mine(1).notes is not mine(1).notes


@pytest.mark.parametrize("make", [_record, _standard])
def test_a_record_cannot_be_changed(make: Callable[[], Any]) -> None:
    point = make()(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x
    with pytest.raises((AttributeError, TypeError)):
        point.other = 2
    with pytest.raises(TypeError):
        hash(point)


@pytest.mark.parametrize("make", [_record, _standard])
@pytest.mark.parametrize("given_", [((), {}), ((1,), {"x": 2}), ((1, 2, (), {}, 5), {}), ((1,), {"z": 1})])
def test_wrong_arguments_are_refused(make: Callable[[], Any], given_: tuple[Any, Any]) -> None:
    positional, named = given_
    with pytest.raises(TypeError):
        make()(*positional, **named)


def test_a_record_with_a_check_runs_it_when_it_is_made() -> None:
    assert Checked(12).low == 9
    assert hash(Checked(1)) == hash(Checked(1, 9))
    assert Checked(1) == Checked(1, 9)
    assert {Checked(1), Checked(1, 9)} == {Checked(1)}


def test_records_are_copied_and_pickled() -> None:
    assert pickle.loads(pickle.dumps(Checked(3))) == Checked(3)
    assert copy.copy(Checked(3)) == Checked(3)
    assert copy.deepcopy(Checked(3)) == Checked(3)


def test_a_pattern_matches_its_fields() -> None:
    match Checked(3, 4):
        case Checked(low, high):
            assert (low, high) == (3, 4)
        case _:
            pytest.fail("not matched")


def test_a_record_can_be_changed_and_leaves_the_rest_to_the_standard_library() -> None:
    assert Mine(1) == Mine(2)

    @dataclass(slots=True)
    class Open:
        a: int
        b: list[int] = field(default_factory=list)

    opened = Open(1)
    opened.a = 5
    assert opened == Open(5)
    assert dataclasses.replace(opened, a=6).a == 6
    with pytest.raises(TypeError):
        hash(opened)
    with pytest.raises(AttributeError):
        opened.other = 1  # type: ignore[attr-defined]

    with pytest.raises(TypeError, match="default"):

        @dataclass(frozen=True, slots=True)
        class Wrong:
            a: int = 1
            b: int  # type: ignore[misc]


def test_an_abstract_parent_holds_nothing() -> None:
    @dataclass(frozen=True, slots=True)
    class Table(Mapping[str, int]):
        rows: dict[str, int] = field(default_factory=dict)

        def __getitem__(self, key: str) -> int:
            return self.rows[key]

        def __iter__(self) -> Iterator[str]:
            return iter(self.rows)

        def __len__(self) -> int:
            return len(self.rows)

    table = Table({"a": 1})
    assert dict(table) == {"a": 1}
    assert table == Table({"a": 1})
    assert isinstance(table, Mapping)
    assert Table.__init__.__name__ == "_first_init", "made by this module"


def test_making_the_class_and_its_first_instances_compiles_nothing() -> None:
    made, standard = _record(), _standard()
    shown = repr(standard(1, notes={"a": "b"}))
    for _ in range(_FEW):
        assert made.__init__.__name__ == "_first_init"
        assert repr(made(1, notes={"a": "b"})) == shown
    assert repr(made(1, notes={"a": "b"})) == shown
    assert made.__init__.__name__ == "__init__"
    assert made(1).notes is not made(1).notes


def test_fields_are_described_as_by_the_standard_library() -> None:
    ours, standard = (dataclasses.fields(kind) for kind in (_record(), _standard()))
    assert [str(one) for one in ours] == [str(one) for one in standard]


@pytest.mark.parametrize("already", [0, _FEW])
@pytest.mark.parametrize(
    ("given", "named"), [((), {}), ((1, 2, 3, 4, 5), {}), ((1,), {"x": 1}), ((1,), {"z": 1}), ((), {"y": 1})]
)
def test_arguments_that_do_not_fit_are_refused_as_by_the_standard_library(
    given: tuple[int, ...], named: dict[str, int], already: int
) -> None:
    made = _record()
    for _ in range(already):
        made(1)
    with pytest.raises(TypeError) as ours:
        made(*given, **named)
    with pytest.raises(TypeError) as standard:
        _standard()(*given, **named)
    assert str(ours.value) == str(standard.value)
    assert made(7).x == 7


def test_a_record_takes_the_fields_that_another_object_has() -> None:
    kind = _record()
    source = kind(x=1, tags=("a",), notes={"kept": "as it is"})
    assert made_of(kind, source, y=3.0) == kind(1, 3.0, ("a",), {"kept": "as it is"})
    assert made_of(kind, object(), x=7) == kind(7), "what neither has is the record's default"
    with pytest.raises(TypeError):
        made_of(kind, object())
    assert picked(source, "x", "double") == {"x": 1, "double": 2}
