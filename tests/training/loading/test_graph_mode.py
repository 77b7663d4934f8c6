"""A service that hands part of the graph to something else: processes, or a server by HTTP.

The stream is developed with a plain function. In production a service finds the stage and lets
others do its work; items, order and positions stay.
"""

import json
from concurrent.futures import ProcessPoolExecutor
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from multiprocessing import get_context

import pytest

from dagster_dataops import (
    CheckpointableReadingServiceInterface,
    DataLoader2,
    DistributedReadingService,
    Operational,
    SequentialReadingService,
    graphs,
    read_sequence,
)
from tests.streams.serving import serving as running

WORDS = ["red", "green", "blue", "black", "white", "grey", "brown"]


def heavy(word):
    """Return what the model makes of a word; slow in earnest."""
    return {"word": word, "length": len(word)}


def stream():
    return read_sequence(WORDS).shuffle(0).sharding_filter().map(heavy).bucket(2)


# ---------------------------------------------------------------- something that does the work


class Pool(Operational):
    """Another process does the work. The process is no part of the identity of the stream."""

    def __init__(self):
        self.executor = ProcessPoolExecutor(1, mp_context=get_context("spawn"))

    def __call__(self, word):
        return self.executor.submit(heavy, word).result()

    def close(self):
        self.executor.shutdown()


class Client(Operational):
    """A server does the work. Its address is no part of the identity of the stream."""

    def __init__(self, address):
        self.address = address

    def __call__(self, word):
        connection = HTTPConnection(*self.address, timeout=60)
        try:
            connection.request("POST", "/", json.dumps(word))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def close(self):
        pass


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        word = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.words.append(word)
        answer = json.dumps(heavy(word)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def serving():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.words = []
    return running(server)


# ---------------------------------------------------------------- the service


class Remote(CheckpointableReadingServiceInterface):
    """Let others do the work of the stages called ``map``, several calls at a time.

    Args:
        make: Returns the object that does the work.
        arguments: Its arguments.
    """

    def __init__(self, make, *arguments):
        self.make, self.arguments = make, arguments
        self.epochs = 0

    def initialize(self, datapipe):
        self.remote = self.make(*self.arguments)
        for stage in graphs.find(datapipe, "map"):
            datapipe = graphs.replace(
                datapipe, stage, lambda upstream: upstream.map(self.remote, num_parallel_calls=4)
            )
        return datapipe

    def initialize_iteration(self, seed_generator, iter_reset_fn=None):
        self.epochs += 1
        return iter_reset_fn

    def finalize(self):
        self.remote.close()

    def checkpoint(self):
        return str(self.epochs).encode()

    def restore(self, datapipe, serialized_state):
        self.epochs = int(serialized_state)
        return self.initialize(datapipe)


def read_with(service):
    with DataLoader2(stream(), reading_service=service) as loader:
        return list(loader), list(loader)


def in_process():
    loader = DataLoader2(stream())
    return list(loader), list(loader)


@pytest.mark.slow
def test_a_process_pool_does_the_work_of_a_stage():
    assert read_with(Remote(Pool)) == in_process()


def test_a_server_does_the_work_of_a_stage():
    with serving() as server:
        assert read_with(Remote(Client, server.server_address)) == in_process()
        assert sorted(server.words) == sorted(WORDS * 2)


def test_reading_goes_on_with_a_server_at_another_address():
    expected = in_process()[0]
    with serving() as server:
        loader = DataLoader2(stream(), reading_service=Remote(Client, server.server_address))
        head = list(islice(loader, 1))
        state = json.loads(json.dumps(loader.state_dict()))
        loader.shutdown()
    with serving() as server:
        other = DataLoader2(stream(), reading_service=Remote(Client, server.server_address))
        other.load_state_dict(state)
        assert head + list(other) == expected
        assert sorted(server.words) == sorted(row["word"] for rows in expected[1:] for row in rows)
        other.shutdown()


def test_the_service_stands_beside_others():
    with serving() as server:
        remote = Remote(Client, server.server_address)
        parts = []
        for rank in range(2):
            services = SequentialReadingService(DistributedReadingService(rank, 2), remote)
            with DataLoader2(stream(), reading_service=services) as loader:
                parts.append([row["word"] for rows in loader for row in rows])
    whole = [row["word"] for rows in in_process()[0] for row in rows]
    assert parts == [whole[0::2], whole[1::2]]
    assert sorted(server.words) == sorted(WORDS)
