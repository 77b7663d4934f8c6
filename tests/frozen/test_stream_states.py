"""States of streams as version 2 has written them are read, and the same items follow."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from dagster_dataops.errors import StreamStateError
from tests.frozen import stream_cases

HERE: Final = Path(__file__).parent
STATES: Final[dict[str, list[Any]]] = json.loads((HERE / "stream_states.json").read_bytes())
LIMIT: Final = 20  # items of streams that never end


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The streams, with their files in the working directory."""
    monkeypatch.chdir(tmp_path)
    stream_cases.write_files()
    return stream_cases


def test_all_frozen_states_have_a_stream(cases: ModuleType) -> None:
    assert STATES.keys() == cases.STREAMS.keys()


@pytest.mark.parametrize("name", STATES)
def test_a_state_without_names_is_read(cases: ModuleType, name: str) -> None:
    expected = list(islice(cases.opened(name), LIMIT))
    for count, state in zip(cases.COUNTS, STATES[name], strict=True):
        stream = cases.opened(name)
        stream.load_state_dict(state | {"stages": stream.state_dict()["stages"]})
        taken = json.loads(json.dumps(stream.state_dict()))  # before an item is read
        assert list(islice(stream, LIMIT - count)) == expected[count:]
        again = cases.opened(name)
        again.load_state_dict(taken)
        assert list(islice(again, LIMIT - count)) == expected[count:]


@pytest.mark.parametrize("name", STATES)
def test_values_are_found_by_name_in_any_order(cases: ModuleType, name: str) -> None:
    expected = list(islice(cases.opened(name), LIMIT))
    for count in cases.COUNTS:
        stream = cases.opened(name)
        list(islice(stream, count))
        state = stream.state_dict()
        stream.close()
        again = cases.opened(name)
        again.load_state_dict(json.loads(json.dumps(turned(state))))
        assert list(islice(again, LIMIT - count)) == expected[count:]


def turned(value: Any) -> Any:
    """Return a state with the names of each object in the reverse order."""
    if isinstance(value, list):
        return [turned(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: turned(one) for name, one in reversed(value.items())}


@pytest.mark.parametrize("name", [one for one in STATES if one != "constant"])
def test_a_position_that_lacks_a_value_or_has_another_is_refused(
    cases: ModuleType, name: str
) -> None:
    state = cases.opened(name).state_dict()
    position = state["position"]
    wrong = [{**position, "other": 0}, {}, [*position.values()], None]
    wrong += [{key: one for key, one in position.items() if key != left} for left in position]
    for one in wrong:
        with pytest.raises(StreamStateError, match="its position is damaged"):
            cases.opened(name).load_state_dict(state | {"position": one})


@pytest.mark.parametrize("name", STATES)
def test_a_damaged_position_of_an_input_or_a_nested_stream_is_refused(
    cases: ModuleType, name: str
) -> None:
    stream = cases.opened(name)
    list(islice(stream, cases.COUNTS[1]))
    state = json.loads(json.dumps(stream.state_dict()))
    stream.close()
    for position in damaged(state["position"]):
        again = cases.opened(name)
        with pytest.raises(StreamStateError):  # while it is loaded, or when the part is reached
            again.load_state_dict(state | {"position": position})
            list(islice(again, LIMIT))
        again.close()


OPAQUE: Final = {"files", "held", "position"}  # values that the user's objects or other code define


def damaged(value: Any) -> Iterator[Any]:
    """Yield copies of a position, each with one name too many, too few, or with another value."""
    if isinstance(value, list):
        for at, one in enumerate(value):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in damaged(one))
    if not isinstance(value, dict):
        return
    yield value | {"other": 0}
    for name, one in value.items():
        yield {key: kept for key, kept in value.items() if key != name}
        if name in OPAQUE:
            continue
        yield value | {name: "text"}
        if type(one) in {int, bool}:
            yield from (value | {name: other} for other in (1.5, None, str(one)))
        yield from (value | {name: other} for other in damaged(one))


def test_a_state_of_a_later_version_is_refused_with_both_versions(cases: ModuleType) -> None:
    state = cases.opened("filter").state_dict() | {"version": 4}
    with pytest.raises(StreamStateError, match="version 4; this package reads versions 2 and 3"):
        cases.opened("filter").load_state_dict(state)
