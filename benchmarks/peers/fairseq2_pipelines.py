"""fairseq2's native pipelines: lines mapped and filtered, shuffled records sampled by weight."""

from pathlib import Path

import orjson
from fairseq2.data.data_pipeline import DataPipeline
from fairseq2.data.text import read_text

from benchmarks.flows import WEIGHTS, WINDOW, report, shortened, wanted
from benchmarks.reporting import Stopwatch


def lines(source):
    return read_text(source, rtrim=True).map(shortened).filter(wanted).and_return()


def mix(source):
    streams = [
        read_text(source, rtrim=True).map(orjson.loads).shuffle(WINDOW, seed=at).and_return()
        for at in range(len(WEIGHTS))
    ]
    return DataPipeline.sample(streams, weights=WEIGHTS, seed=1).and_return()


def whole(source):
    return read_text(source, rtrim=True).map(orjson.loads).shuffle(0, seed=1).and_return()


if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    made = {"lines": lines, "mix": mix, "all": whole}[given["task"]](Path(given["source"]))
    report(watch, made)
