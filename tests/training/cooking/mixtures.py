"""Datasets of tar shards and metadatasets for the tests of mixtures."""

import json
from pathlib import Path

from dagster_dataops import TextSample, basic_sample_keys
from tests.training.filestores.shards import write_tar

HEAD = "__module__: dagster_dataops\n__class__: MetadatasetV2\nsplits:\n"


def dataset(folder, count, subflavors=None, shards=2):
    """Write tar shards with ``count`` samples: txt, and json with the name of a file of `store`."""
    for shard in range(shards):
        members = []
        for number in range(count * shard // shards, count * (shard + 1) // shards):
            text = json.dumps({"aux": f"m{number}.txt"})
            members.append((f"{number:04d}.json", text.encode()))
            members.append((f"{number:04d}.txt", f"{folder.name} {number}".encode()))
        write_tar(folder / f"s-{shard}.tar", members)
    if subflavors:
        lines = "".join(f"  {key}: {value}\n" for key, value in subflavors.items())
        text = "__module__: dagster_dataops\n__class__: CrudeWebdataset\nsubflavors:\n"
        (folder / "dataset.yaml").write_text(text + lines)
    return folder


def store(folder, count):
    """Write a folder of files."""
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"m{number}.txt").write_text(f"file {number}")
    return folder


def written(folder, text, name="mix.yaml"):
    """Write a metadataset."""
    path = Path(folder, name)
    path.write_text(HEAD + text)
    return path


def cook_text(sample):
    """Return the text of a sample."""
    return TextSample(**basic_sample_keys(sample), text=sample["txt"].decode())


def cook_with_file(sample, media):
    """Return the text of a sample and that of its file."""
    file = media.get(json.loads(sample["json"])["aux"], sample)
    text = f"{sample['txt'].decode()} + {file.decode()}"
    return TextSample(**basic_sample_keys(sample), text=text)
