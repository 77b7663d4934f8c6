"""ONNX files that tests make: the messages of their protocol buffers, written by hand.

So the tests need the package that runs such files, and not the larger one that makes them.
"""

from collections.abc import Iterable

_FLOAT, _UINT8 = 1, 2


def _number(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value % 128 + 128])
        value //= 128
    return found + bytes([value])


def _field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return _number(number << 3) + _number(value)
    content = value.encode() if isinstance(value, str) else value
    return _number(number << 3 | 2) + _number(len(content)) + content


def _tensor_type(shape: Iterable[int | str], kind: int) -> bytes:
    sides = (_field(1, side) if isinstance(side, int) else _field(2, side) for side in shape)
    dimensions = b"".join(_field(1, side) for side in sides)
    return _field(1, _field(1, kind) + _field(2, dimensions))


def _value(name: str, shape: Iterable[int | str], kind: int = _FLOAT) -> bytes:
    return _field(1, name) + _field(2, _tensor_type(shape, kind))


def _ints(name: str, values: Iterable[int]) -> bytes:
    numbers = b"".join(_field(8, value) for value in values)
    return _field(5, _field(1, name) + numbers + _field(20, 7))


def _int(name: str, value: int) -> bytes:
    return _field(5, _field(1, name) + _field(3, value) + _field(20, 2))


def _node(operator: str, given: list[str], made: str, *attributes: bytes) -> bytes:
    inputs = b"".join(_field(1, one) for one in given)
    return _field(1, inputs + _field(2, made) + _field(4, operator) + b"".join(attributes))


def _model(nodes: list[bytes], given: bytes, made: list[bytes]) -> bytes:
    graph = b"".join(nodes) + _field(2, "graph") + _field(11, given)
    graph += b"".join(_field(12, one) for one in made)
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, 13))


def channel_means(*, first: bool = True, side: int | str = 8, kind: str = "float") -> bytes:
    """Return a model that gives the mean of each channel of an image.

    Args:
        first: Whether channels come first.
        side: Width and height; a text leaves them open.
        kind: ``float`` or ``uint8``.
    """
    shape: list[int | str] = ["n", 3, side, side] if first else ["n", side, side, 3]
    axes = _ints("axes", [2, 3] if first else [1, 2])
    nodes = [
        _node("Cast", ["images"], "numbers", _int("to", _FLOAT)),
        _node("ReduceMean", ["numbers"], "means", axes, _int("keepdims", 0)),
    ]
    given = _value("images", shape, _UINT8 if kind == "uint8" else _FLOAT)
    return _model(nodes, given, [_value("means", ["n", 3])])


def channel_map(side: int = 8) -> bytes:
    """Return a model with two outputs: the mean of the channels at each pixel, and the image."""
    nodes = [
        _node("ReduceMean", ["images"], "map", _ints("axes", [1]), _int("keepdims", 1)),
        _node("Identity", ["images"], "same"),
    ]
    made = [_value("map", ["n", 1, side, side]), _value("same", ["n", 3, side, side])]
    return _model(nodes, _value("images", ["n", 3, side, side]), made)


def sums_of_texts() -> bytes:
    return _model([_node("Identity", ["a"], "b")], _value("a", ["n", 4]), [_value("b", ["n", 4])])
