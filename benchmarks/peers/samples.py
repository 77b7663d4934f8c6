"""The samples of tar shards by other libraries, in the order of the shards.

Grain reads by number what the loop knows, as its users write a data source. MosaicML streaming
reads shards of its own format, which are written before the clock runs. Energon reads a copy that
is prepared for it.
"""

import os
import random
import sys
import tarfile
from pathlib import Path

import orjson

from benchmarks.flows import report
from benchmarks.reporting import Stopwatch


def parsed(sample):
    orjson.loads(sample["json"])
    return str(sample["txt"], "utf-8")


def webdataset(source):
    import webdataset as library

    shards = sorted(str(path) for path in source.glob("*.tar"))
    return library.WebDataset(shards, shardshuffle=False, empty_check=False).map(parsed)


class Samples:
    """Yields the samples of tar files, which `tarfile` reads."""

    def __init__(self, source):
        self.source = source

    def __iter__(self):
        for path in sorted(self.source.glob("*.tar")):
            with tarfile.open(path) as tar:
                sample = {}
                for member in tar:
                    sample[member.name.partition(".")[2]] = tar.extractfile(member).read()
                    if len(sample) == 2:
                        yield sample
                        sample = {}


def torchdata_nodes(source):
    from torchdata.nodes import IterableWrapper, Loader, Mapper

    return Loader(Mapper(IterableWrapper(Samples(source)), parsed))


class Indexed:
    """The samples by number, as the loop reads them."""

    def __init__(self, source):
        self.source, self.opened = source, {}
        self.rows = orjson.loads((source / "rows.json").read_bytes())

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        row = self.rows[number]
        shard, start, parts = row["shard"], row["at"], row["parts"]
        if shard not in self.opened:
            self.opened[shard] = os.open(self.source / shard, os.O_RDONLY)
        end = max(offset + size for offset, size in parts.values())
        data = os.pread(self.opened[shard], end - start, start)
        return {name: data[at - start : at - start + size] for name, (at, size) in parts.items()}


def grain(source):
    import grain as library

    return iter(library.MapDataset.source(Indexed(source)).map(parsed))


def mosaic(source):
    from streaming import MDSWriter, StreamingDataset

    place = source.parent / f"mosaic-{random.randrange(1 << 40)}"
    with MDSWriter(out=str(place), columns={"json": "bytes", "txt": "bytes"}) as out:
        for sample in Samples(source):
            out.write(sample)
    dataset = StreamingDataset(local=str(place), shuffle=False, batch_size=1)

    def read():
        for sample in dataset:
            yield parsed(sample)

    return read()


def energon(source):
    from megatron.energon import (
        Cooker,
        DefaultTaskEncoder,
        TextSample,
        WorkerConfig,
        basic_sample_keys,
        get_loader,
        get_val_dataset,
        stateless,
    )

    @stateless
    def cook(sample):
        return TextSample(**basic_sample_keys(sample), text=parsed(sample))

    class Encoder(DefaultTaskEncoder):
        decoder = None
        cookers = (Cooker(cook),)

    config = WorkerConfig(rank=0, world_size=1, num_workers=0)
    dataset = get_val_dataset(
        f"{source}-prepared",
        split_part="train",
        worker_config=config,
        batch_size=None,
        task_encoder=Encoder(),
    )
    return (sample.text for sample in get_loader(dataset))


TASKS = {one.__name__: one for one in (webdataset, torchdata_nodes, grain, mosaic, energon)}


if __name__ == "__main__":
    given = orjson.loads(sys.argv[1])
    items = TASKS[given["task"]](Path(given["source"]))
    report(Stopwatch(), items)
