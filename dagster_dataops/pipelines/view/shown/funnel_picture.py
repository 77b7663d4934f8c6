"""`Funnel`: the graph of nodes as a picture, with the records that went on, dropped and failed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

WIDTH: Final = 250  # of a box, in pixels
HEIGHT: Final = 84
_GAP: Final = 24  # between boxes of a row
_BETWEEN: Final = 44  # between rows
_BAR: Final = WIDTH - 24
_LEAST: Final = 3.0  # pixels of a part of a bar that is not empty
_THICK: Final = 16.0  # of the line of the most records
MOST: Final = 80  # nodes of a picture
_NAME: Final = 30  # characters


class FunnelNode(NamedTuple):
    """A node in the picture.

    Attributes:
        key: Its key.
        name: Its name.
        link: The address of its page; empty for a source.
        entered: The number of records that went in; ``None`` if it is not known.
        said: The numbers of records in and out, as text.
        out: The number of records that came out.
        dropped: The number of dropped records.
        failed: The number of failed records.
        inputs: Keys of the nodes before it, with the number of records from each.
        state: Why there is no result, or what goes on beside it; may be empty.
    """

    key: str
    name: str
    link: str
    entered: int | None
    said: str
    out: int
    dropped: int
    failed: int
    inputs: Sequence[tuple[str, int]]
    state: str = ""


@dataclass(frozen=True)
class Box:
    """A node at its place.

    Attributes:
        node: The node.
        x: Its left side.
        y: Its upper side.
        name: Its name, cut.
        parts: Start, width and kind of the parts of its bar: ``kept``, ``dropped``, ``failed``.
    """

    node: FunnelNode
    x: float
    y: float
    name: str
    parts: list[tuple[float, float, str]]


class Edge(NamedTuple):
    """A line between two nodes: its SVG path, its width in pixels and its label."""

    path: str
    width: float
    said: str


@dataclass(frozen=True)
class Funnel:
    """The picture."""

    width: float
    height: float
    boxes: list[Box]
    lines: list[Edge]


def funnel(nodes: Sequence[FunnelNode]) -> Funnel | None:
    """Return the picture of nodes, each given after those before it.

    Returns:
        The picture; ``None`` without nodes, and for more than 80.
    """
    if not nodes or len(nodes) > MOST:
        return None
    rows = _rows(nodes)
    broadest = max(map(len, rows))
    width = broadest * (WIDTH + _GAP) - _GAP
    most = max([1, *(max(node.entered or 0, node.out) for node in nodes)])
    places: dict[str, tuple[float, float]] = {}
    boxes = []
    for number, row in enumerate(rows):
        row.sort(key=lambda node: _middle(node, places, width / 2))
        left = (width - (len(row) * (WIDTH + _GAP) - _GAP)) / 2
        for at, node in enumerate(row):
            x, y = left + at * (WIDTH + _GAP), number * (HEIGHT + _BETWEEN)
            places[node.key] = x, y
            name = node.name if len(node.name) <= _NAME else f"{node.name[: _NAME - 1]}…"
            boxes.append(Box(node, x, y, name, _bar(node, most)))
    height = len(rows) * (HEIGHT + _BETWEEN) - _BETWEEN
    lines = [
        _line(places[key], places[node.key], records, most)
        for node in nodes
        for key, records in node.inputs
        if key in places
    ]
    return Funnel(width, height, boxes, lines)


def _rows(nodes: Sequence[FunnelNode]) -> list[list[FunnelNode]]:
    """Return the nodes in rows: a node is one row below the last node that it reads."""
    depths: dict[str, int] = {}
    for node in nodes:
        depths[node.key] = max((depths.get(key, -1) + 1 for key, _ in node.inputs), default=0)
    numbers = sorted(set(depths.values()))
    return [[node for node in nodes if depths[node.key] == depth] for depth in numbers]


def _middle(node: FunnelNode, places: dict[str, tuple[float, float]], otherwise: float) -> float:
    known = [places[key][0] for key, _ in node.inputs if key in places]
    return sum(known) / len(known) if known else otherwise


def _bar(node: FunnelNode, most: int) -> list[tuple[float, float, str]]:
    """Return the parts of a bar; a part that is not empty has at least 3 pixels."""
    whole = max(node.entered or 0, node.dropped + node.failed) if node.entered else node.out
    full = _BAR * whole / most
    numbers = {"dropped": node.dropped, "failed": node.failed}
    widths = {kind: max(_LEAST, _BAR * size / most) for kind, size in numbers.items() if size}
    kept = max(0, whole - node.dropped - node.failed)
    if kept:
        widths = {"kept": max(_LEAST, full - sum(widths.values())), **widths}
    parts, at = [], 0.0
    for kind, size in widths.items():
        parts.append((round(at, 1), round(min(size, _BAR - at), 1), kind))
        at += size
    return parts


def _line(first: tuple[float, float], last: tuple[float, float], records: int, most: int) -> Edge:
    x, y = first[0] + WIDTH / 2, first[1] + HEIGHT
    to_x, to_y = last[0] + WIDTH / 2, last[1]
    bend = (to_y - y) / 2
    points = ((x, y), (x, y + bend), (to_x, to_y - bend), (to_x, to_y))
    start, *others = (f"{across:.0f} {down:.0f}" for across, down in points)
    path = f"M{start} C{' '.join(others)}"
    return Edge(path, round(max(1.5, _THICK * records / most), 1), f"{records:,} records")
