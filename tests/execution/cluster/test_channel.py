import socket
from collections.abc import Iterator

import pytest

from dagster_dataops.execution.cluster.channel import Channel

Pair = tuple[Channel, Channel]


@pytest.fixture
def pair() -> Iterator[Pair]:
    one, other = socket.socketpair()
    with one, other:
        yield Channel(one), Channel(other)


def test_messages_arrive_whole_and_in_order(pair: Pair) -> None:
    one, other = pair
    large = b"x" * 3_000_000
    one.send({"n": 1})
    one.send(large)
    assert one.full
    received: list[object] = []
    while len(received) < 2:
        received += other.receive()
        one.flush()
    assert received == [{"n": 1}, large]
    assert not one.full


def test_a_reader_that_does_not_read_holds_nobody_up(pair: Pair) -> None:
    one, other = pair
    for _ in range(100):
        one.send(b"x" * 100_000)
    assert one.full
    other.close()
    one.flush()
    assert not one.full


def test_the_last_messages_arrive_before_the_end(pair: Pair) -> None:
    one, other = pair
    one.send("last")
    one.close()
    assert list(other.receive()) == ["last"]
    assert other.ended
