"""Training data from tar shards: two datasets mixed by weight, with pictures in a third one.

The script writes small shards: captions, questions, and the pictures that both name. The
metadataset ``mixture.yaml`` blends captions and questions 7 to 3. The index of the mixture is
written first; cookers then make records of it, with the brightness of the pictures; records are
packed into sequences of at most 48 words; and a small model learns from the packs how bright a word
is, with a loader that reads them in two processes.

``python examples/crude_data/definitions.py`` does it in plain Python and prints the darkest and
the brightest words. Kill it at any moment and start it again: it goes on, and the model is the
same, byte for byte. ``dg dev -f examples/crude_data/definitions.py`` shows index, records and packs
as assets; the page of the index shows how much each dataset gave.
"""

import argparse
import io
import json
import os
import random
import shutil
import signal
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dagster_dataops import (
    Cooker,
    DataLoader2,
    DataOpsResource,
    DefaultTaskEncoder,
    FileStore,
    MultiProcessingReadingService,
    Sample,
    basic_sample_keys,
    build_definitions,
    config,
    edataclass,
    metadataset,
    read_jsonl,
)

HOME = Path(os.environ.get("DAGSTER_HOME") or Path(__file__).parent / "dataops_home").absolute()
SHARDS = HOME / "shards"
MIXTURE = SHARDS / "mixture.yaml"
SAMPLES = 1000  # of the mixture
MOST_WORDS = 48  # of a pack
EPOCHS = 3
SIDE = 16  # of a picture, in pixels
LIGHTS = ("black", "dark", "dim", "grey", "pale", "bright", "white")
THINGS = ("bird", "boat", "bridge", "city", "field", "forest", "harbour", "house", "street", "tree")


def seeded(name: str) -> random.Random:
    """Return the random numbers of a name."""
    return random.Random(name)  # noqa: S311 - no secrets


def light(picture: int) -> int:
    """Return the place in `LIGHTS` that a picture has."""
    return picture * 5 % len(LIGHTS)


def pictures() -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each picture, in the format PGM."""
    for number in range(400):
        rng = seeded(f"picture {number}")
        middle = 20 + 35 * light(number)
        pixels = bytes(max(0, min(255, round(rng.gauss(middle, 9)))) for _ in range(SIDE * SIDE))
        yield f"p{number:04d}.pgm", f"P5 {SIDE} {SIDE} 255\n".encode() + pixels


def captions() -> Iterator[tuple[str, bytes]]:
    """Yield the parts of the samples with captions: ``json`` names the picture."""
    for number in range(500):
        rng, picture = seeded(f"caption {number}"), number * 7 % 400
        text = f"a {LIGHTS[light(picture)]} {rng.choice(THINGS)} near a {rng.choice(THINGS)}"
        yield f"c{number:04d}.json", json.dumps({"picture": f"p{picture:04d}.pgm"}).encode()
        yield f"c{number:04d}.txt", text.encode()


def questions() -> Iterator[tuple[str, bytes]]:
    """Yield the parts of the samples with questions: ``json`` has the answer, too."""
    for number in range(300):
        rng, picture = seeded(f"question {number}"), number * 11 % 400
        about = {"picture": f"p{picture:04d}.pgm", "answer": LIGHTS[light(picture)]}
        yield f"q{number:04d}.json", json.dumps(about).encode()
        yield f"q{number:04d}.txt", f"how light is the {rng.choice(THINGS)}".encode()


def write_shards(dataset: str, parts: Iterable[tuple[str, bytes]], size: int) -> None:
    """Write a dataset as tar shards.

    Args:
        dataset: Its name.
        parts: Name and content of each file.
        size: The number of files of a shard.
    """
    folder, files = SHARDS / dataset, list(parts)
    folder.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, len(files), size)):
        with tarfile.open(
            folder / f"{dataset}-{number}.tar", "w", format=tarfile.USTAR_FORMAT
        ) as tar:
            for name, content in files[first : first + size]:
                about = tarfile.TarInfo(name)
                about.size = len(content)
                tar.addfile(about, io.BytesIO(content))


def prepare_shards() -> None:
    """Write all shards, unless they are there. The metadataset is written last."""
    if MIXTURE.exists():
        return
    write_shards("pictures", pictures(), 200)
    write_shards("captions", captions(), 250)
    write_shards("questions", questions(), 200)
    draft = shutil.copy(Path(__file__).with_name("mixture.yaml"), SHARDS / "draft.yaml")
    Path(draft).replace(MIXTURE)


@edataclass
class Described(Sample):
    """A text about a picture, and the mean brightness of the picture, from 0 to 1."""

    text: str
    brightness: float


@edataclass
class Sequence(Sample):
    """Several texts about pictures, and the brightness of each picture."""

    texts: list[str]
    brightness: list[float]


def brightness_of(picture: bytes) -> float:
    """Return the mean brightness of a picture, from 0 to 1."""
    pixels = picture[-SIDE * SIDE :]
    return round(sum(pixels) / len(pixels) / 255, 6)


def cook_caption(sample: dict[str, Any], pictures: FileStore) -> Described:
    """Return a caption with the brightness of its picture."""
    picture = pictures.get(json.loads(sample["json"])["picture"], sample)
    return Described(
        **basic_sample_keys(sample),
        text=sample["txt"].decode(),
        brightness=brightness_of(picture),
    )


def cook_question(sample: dict[str, Any], pictures: FileStore) -> Described:
    """Return a question and its answer with the brightness of the picture."""
    about = json.loads(sample["json"])
    picture = pictures.get(about["picture"], sample)
    return Described(
        **basic_sample_keys(sample),
        text=f"{sample['txt'].decode()} {about['answer']}",
        brightness=brightness_of(picture),
    )


class Sequences(DefaultTaskEncoder[Described, Described, Any, Any]):
    """Cooks texts about pictures, and packs them into sequences of at most `MOST_WORDS` words."""

    cookers = (
        Cooker(cook_caption, has_subflavors={"kind": "captions"}),
        Cooker(cook_question, has_subflavors={"kind": "questions"}),
    )

    def select_samples_to_pack(self, samples: list[Any]) -> list[list[Any]]:
        """Return groups of texts: each text goes into the first group that has room for it."""
        groups: list[list[Any]] = []
        rooms: list[int] = []
        for sample in sorted(samples, key=lambda one: -len(one["text"].split())):
            words = len(sample["text"].split())
            at = next((at for at, room in enumerate(rooms) if room >= words), len(rooms))
            if at == len(rooms):
                groups.append([])
                rooms.append(MOST_WORDS)
            groups[at].append(sample)
            rooms[at] -= words
        return groups

    def pack_selected_samples(self, samples: list[Any]) -> Sequence:
        """Return the sequence of a group."""
        return Sequence.derive_from(
            samples[0],
            texts=[one["text"] for one in samples],
            brightness=[one["brightness"] for one in samples],
        )


prepare_shards()
mixture = metadataset(MIXTURE, split="train", seed=1).take(SAMPLES)
ppl = Sequences().pipeline("crude_data", packing_buffer_size=100, _concurrency_mode="thread")

defs = build_definitions(
    ppl,
    source=mixture,
    resource=DataOpsResource(root=str(HOME / "results")),
)


def loader_of(packs: Path) -> DataLoader2:
    """Return the loader of batches of four packs, read by two processes."""
    stream = read_jsonl(packs).shuffle(0).sharding_filter().map(words_of).bucket(4)
    loader = DataLoader2(stream, reading_service=MultiProcessingReadingService(num_workers=2))
    loader.seed(7)
    return loader


def words_of(pack: dict[str, Any]) -> list[tuple[list[str], float]]:
    """Return the words of each text, and the brightness of its picture."""
    texts = [text.split() for text in pack["texts"]]
    return list(zip(texts, pack["brightness"], strict=True))


def step(weights: dict[str, float], batch: list[Any]) -> float:
    """Move the brightness of words towards that of the pictures; return the mean error."""
    examples = [example for pack in batch for example in pack]
    total = 0.0
    for words, brightness in examples:
        error = brightness - sum(weights.get(word, 0.0) for word in words)
        for word in words:
            weights[word] = weights.get(word, 0.0) + 0.03 * error
        total += abs(error)
    return total / len(examples)


def train(packs: Path, folder: Path, die_at: int | None) -> dict[str, float]:
    """Train; write model and position after each step. Start where a killed run was.

    Args:
        packs: The packs.
        folder: The folder of ``model.json``.
        die_at: A step after which the process kills itself.
    """
    file = folder / "model.json"
    folder.mkdir(parents=True, exist_ok=True)
    state: dict[str, Any] = {"epoch": 0, "step": 0, "weights": {}, "loader": None}
    loader = loader_of(packs)
    if file.exists():
        state = json.loads(file.read_bytes())
        loader.load_state_dict(state["loader"])
    while state["epoch"] < EPOCHS:
        for batch in loader:
            state["error"] = step(state["weights"], batch)
            state["step"] += 1
            save(file, state | {"loader": loader.state_dict()})
            if state["step"] == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
        state["epoch"] += 1
        save(file, state | {"loader": loader.state_dict()})
    loader.shutdown()
    print(f"{state['step']} steps, mean error {state['error']:.3f}")
    weights: dict[str, float] = state["weights"]
    return weights


def save(file: Path, state: dict[str, Any]) -> None:
    """Write a file under another name, then rename it."""
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(state), encoding="utf-8")
    draft.replace(file)


def main() -> None:
    """Make the packs and train on them, in plain Python."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--die-at", type=int, help="a step of the training to be killed after")
    arguments = parser.parse_args()
    config.data_process_path, config.data_process_resume = HOME / "plain", True
    reports = ppl.materialize(mixture)
    weights = train(reports["packed"].dataset.path, HOME / "model", arguments.die_at)
    ordered = sorted((word for word in weights if word in LIGHTS), key=weights.__getitem__)
    print("from dark to light:", *ordered)


if __name__ == "__main__":
    main()
