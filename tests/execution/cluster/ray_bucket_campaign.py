"""Kill workers, agents, raylets and heads on Ray, and stop the store, with a bucket alone.

python -m tests.execution.cluster.ray_bucket_campaign --kills 40
"""

import os
import random
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

import psutil
from typing_extensions import override

from tests.execution.cluster.bucket_campaign import (
    Campaign,
    Machines,
    campaign,
    head,
    options_of,
    store,
)
from tests.execution.cluster.ray_nodes import ApartOnRay, RayNodes, ray_cluster


class _OnRay(Machines):
    """The nodes of a Ray cluster.

    Args:
        nodes: The nodes.
    """

    kinds = ("worker", "agent", "agent", "raylet", "head", "store")
    module = __spec__.name

    def __init__(self, nodes: RayNodes) -> None:
        self._nodes = nodes

    @override
    def agents(self, head: int) -> list[psutil.Process]:
        return self._nodes.agents()

    @override
    def kill(self, head: int, kind: str, chance: random.Random) -> bool:
        if kind != "raylet":
            return super().kill(head, kind, chance)
        if not self._nodes.agents():
            return False
        self._nodes.lose(chance.randrange(len(self._nodes.nodes)))
        return True


def on_ray(folder: Path, kills: int, seed: int, *, shown: bool = False) -> dict[str, int]:
    """Run the campaign on a Ray cluster of its own; return the number of faults, and of results."""
    with (
        store() as faults,
        ray_cluster(folder / "nodes") as nodes,
        patch.dict(os.environ, {"RAY_CLUSTER": nodes.address}),
    ):
        rounds = Campaign(folder, seed, faults, _OnRay(nodes))
        return campaign(rounds, kills, shown=shown)


def main() -> None:
    """Run the campaign and print what was killed, or run as a head."""
    options = options_of(__doc__)
    if options.head:
        url, source, whole, name = options.head
        head(url, source, float(whole), name, ApartOnRay(os.environ["RAY_CLUSTER"]))
        return
    with tempfile.TemporaryDirectory() as folder:
        told = on_ray(Path(folder), options.kills, options.seed, shown=True)
        sys.stdout.write(f"{told}\n")


if __name__ == "__main__":
    main()
