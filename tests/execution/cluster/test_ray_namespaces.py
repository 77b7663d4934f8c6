"""Test agents on Ray nodes that have a network namespace each, when the network is cut."""

import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from dagster_dataops import RayCluster
from tests.execution.cluster.fixtures import Meanwhile, both, input_of, silent_after, works
from tests.faults.crashing import wait_until

_KINDS = ["keep", "fail", "twice", "drop", "keep", "keep"] * 300
_NET = "10.213.77"
_HEAD = f"{_NET}.1"
_PORT = 6399
_STORE_BYTES = str(80 << 20)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning"),
]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class _Network:
    """A bridge, and namespaces that are connected to it by a cable each.

    Args:
        size: The number of namespaces.

    Attributes:
        names: Their names.
    """

    def __init__(self, size: int) -> None:
        self._mark = uuid.uuid4().hex[:6]
        self._bridge = f"br{self._mark}"
        self.names = [f"dataops-{self._mark}-{number}" for number in range(size)]

    @contextmanager
    def up(self) -> Iterator[None]:
        """Make it; remove it after the block."""
        with ExitStack() as stack:
            _ip("link", "add", self._bridge, "type", "bridge")
            stack.callback(_ip, "link", "del", self._bridge)
            _ip("addr", "add", f"{_HEAD}/24", "dev", self._bridge)
            _ip("link", "set", self._bridge, "up")
            for number, name in enumerate(self.names):
                _ip("netns", "add", name)
                stack.callback(_ip, "netns", "del", name)
                cable, inner = self._cable(number), f"in{self._mark}{number}"
                _ip("link", "add", cable, "type", "veth", "peer", "name", inner)
                _ip("link", "set", cable, "master", self._bridge, "up")
                _ip("link", "set", inner, "netns", name)
                _ip("-n", name, "addr", "add", f"{self.address(number)}/24", "dev", inner)
                _ip("-n", name, "link", "set", inner, "up")
                _ip("-n", name, "link", "set", "lo", "up")
            yield

    def _cable(self, number: int) -> str:
        return f"ve{self._mark}{number}"

    def address(self, number: int) -> str:
        """Return the address of a namespace."""
        return f"{_NET}.{number + 2}"

    def cut(self, number: int) -> None:
        """Cut the cable of a namespace: packets are lost, and no side hears of it."""
        _ip("link", "set", self._cable(number), "down")

    def mend(self, number: int) -> None:
        """Connect the namespace again."""
        _ip("link", "set", self._cable(number), "up")


@contextmanager
def _ray(*words: str, inside: str = "") -> Iterator[None]:
    """Run a Ray node, in a namespace or in that of the test."""
    script = "from ray.scripts.scripts import main; main()"
    command = [sys.executable, "-c", script, "start", "--block", *words]
    if inside:
        command = ["ip", "netns", "exec", inside, *command]
    environment = {
        **os.environ,
        "RAY_AUTH_MODE": "disabled",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    process = subprocess.Popen(
        [*command, f"--object-store-memory={_STORE_BYTES}", "--disable-usage-stats"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Network]:
    """Yield a network with a Ray node of two cores in each of two namespaces."""
    ray = pytest.importorskip("ray", reason="needs pip install 'dagster-dataops[ray]'")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    if shutil.which("ip") is None:
        pytest.skip("needs ip of iproute2")
    made = _Network(2)
    with ExitStack() as stack:
        try:
            stack.enter_context(made.up())
        except subprocess.CalledProcessError as error:
            pytest.skip(f"needs the right to make network namespaces: {error.stderr!r}")
        where = f"--node-ip-address={_HEAD}"
        stack.enter_context(
            _ray("--head", where, f"--port={_PORT}", "--num-cpus=0", "--include-dashboard=false")
        )
        stack.callback(ray.shutdown)
        wait_until(lambda: _living(ray) == 1, 60, "the head has started")
        for number, name in enumerate(made.names):
            where = f"--node-ip-address={made.address(number)}"
            to = f"--address={_HEAD}:{_PORT}"
            stack.enter_context(_ray(to, where, "--num-cpus=2", inside=name))
            # One after the other: nodes that start at once may choose the same ports.
            wait_until(lambda count=number + 2: _living(ray) == count, 60, "the node has joined")
        yield made


def _living(ray: object) -> int:
    if not ray.is_initialized():  # type: ignore[attr-defined]
        try:
            ray.init(address=f"{_HEAD}:{_PORT}", log_to_driver=False)  # type: ignore[attr-defined]
        except (OSError, RuntimeError, ValueError):
            return 0
    return sum(node["Alive"] for node in ray.nodes())  # type: ignore[attr-defined]


def test_a_cut_network_costs_no_record_and_what_is_said_later_counts_once(
    tmp_path: Path, network: _Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent_after(monkeypatch, 4.0)
    dataset = input_of(tmp_path, _KINDS)
    listener = Meanwhile(50, lambda: network.cut(0))
    late = Meanwhile(len(_KINDS) * 9 // 10, lambda: network.mend(0))
    listener.on_update = late.update
    cluster = RayCluster(f"{_HEAD}:{_PORT}", start_seconds=60)

    both(tmp_path, dataset, works(seconds=0.01), cluster, progress=listener)

    assert late.acted.is_set()
    assert any("has been silent for 4 s" in note for note in listener.notes)
