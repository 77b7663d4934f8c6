"""torchdata.nodes: lines mapped and filtered, and shuffled records of two sources by weight.

It has no nodes to filter or to shuffle: these are written here as its users write them.
"""

import random
from pathlib import Path

from torchdata.nodes import BaseNode, IterableWrapper, Loader, Mapper, MultiNodeWeightedSampler

from benchmarks.flows import WEIGHTS, report, shortened, shuffled, wanted
from benchmarks.reporting import Stopwatch


class Filter(BaseNode):
    """Yields the items for which a function is true."""

    def __init__(self, source, function):
        super().__init__()
        self.source, self.function = source, function

    def reset(self, initial_state=None):
        super().reset(initial_state)
        self.source.reset(initial_state)

    def next(self):
        while True:
            item = next(self.source)
            if self.function(item):
                return item

    def get_state(self):
        return self.source.state_dict()


class Shuffled:
    """Yields records shuffled in windows; each pass has another order."""

    def __init__(self, path, seed):
        self.path, self.generator = path, random.Random(seed)

    def __iter__(self):
        return shuffled(self.path, self.generator)


class Lines:
    """Yields the lines of a file."""

    def __init__(self, path):
        self.path = path

    def __iter__(self):
        with self.path.open(encoding="utf-8") as file:
            for line in file:
                yield line.rstrip("\n")


def lines(source):
    return Filter(Mapper(IterableWrapper(Lines(source)), shortened), wanted)


def mix(source):
    nodes = {str(at): IterableWrapper(Shuffled(source, at)) for at in range(len(WEIGHTS))}
    return MultiNodeWeightedSampler(nodes, {str(at): one for at, one in enumerate(WEIGHTS)})


if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    made = {"lines": lines, "mix": mix}[given["task"]](Path(given["source"]))
    report(watch, Loader(made))
