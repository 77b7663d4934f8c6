"""Plan packs: choose the sequences of each pack, or cut sequences into packs."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator, Sequence


def best_fit(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Return packs of sequences: best fit, the longest first.

    A sequence goes into the pack with the least room that still holds it; of packs with equal room,
    into the one that has had it longest. Takes O(n log n) steps.

    Args:
        lengths: Length of each sequence, from 1 to ``most``.
        most: Length of a pack.

    Returns:
        The places of the sequences of each pack. Packs are in the order in which they began.
    """
    packs: list[list[int]] = []
    rooms: list[int] = []  # of the packs that are not full, without duplicates, ascending
    with_room: dict[int, deque[list[int]]] = {}
    for place in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):  # stable
        length = lengths[place]
        at = bisect_left(rooms, length)
        if at == len(rooms):
            pack, room = [place], most - length
            packs.append(pack)
        else:
            waiting = with_room[rooms[at]]
            pack, room = waiting.popleft(), rooms[at] - length
            pack.append(place)
            if not waiting:
                del rooms[at]
        if not room:
            continue
        waiting = with_room.setdefault(room, deque())
        if not waiting:
            insort(rooms, room)
        waiting.append(pack)
    return packs


def wrapped_lengths(lengths: Iterable[int], most: int) -> Iterator[list[int]]:
    """Yield for each pack the lengths of its pieces, if sequences are joined and cut into packs.

    Args:
        lengths: Length of each sequence; empty ones have no piece.
        most: Length of a pack.
    """
    pieces: list[int] = []
    room = most
    for length in lengths:
        rest = length
        while rest:
            piece = min(rest, room)
            pieces.append(piece)
            rest -= piece
            room -= piece
            if not room:
                yield pieces
                pieces, room = [], most
    if pieces:
        yield pieces


def pieces_of(length: int, most: int) -> list[slice]:
    """Return the slices that split a sequence into pieces of at most ``most``."""
    return [slice(start, start + most) for start in range(0, length, most)]
