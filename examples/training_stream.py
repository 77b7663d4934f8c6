"""Fine-tuning data as a stream: three sources by weight, in buckets of similar length.

Kill it at any moment and start it again: it continues with the next bucket.

>>> python examples/training_stream.py FOLDER [--die-at STEP]
"""

import argparse
import json
import os
import signal
from pathlib import Path

from dagster_dataops import DataPipeline, DataPipelineBuilder, list_files, read_jsonl

SOURCES = {"web": (5, 0.5), "code": (3, 0.3), "dialogues": (2, 0.2)}  # part files, weight
BUCKETS = [(8, 4), (4, 8), (2, 16)]  # (number of records, maximum number of words)


def write_parts(folder: Path) -> None:
    """Write the part files of three sources, six records each."""
    for name, (parts, _) in SOURCES.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for part in range(parts):
            lines = []
            for line in range(6):
                words = [f"{name}{part}"] * (1 + (part + line * 5) % 15)
                record = {"id": f"{name}-{part}-{line}", "prompt": " ".join(words), "reply": "yes"}
                lines.append(json.dumps(record) + "\n")
            (folder / name / f"part-{part}.jsonl").write_text("".join(lines), encoding="utf-8")


def buckets(folder: Path, rank: int = 0, world_size: int = 1) -> DataPipelineBuilder:
    """Return the stream on which one rank trains."""
    sources = [
        list_files(folder / name, "*.jsonl")
        .shuffle(0)  # the files,
        .yield_from(read_jsonl)
        .shuffle(20)  # and their records
        .shard(rank, world_size)
        for name in SOURCES
    ]
    weights = [weight for _, weight in SOURCES.values()]
    return (
        DataPipeline.sample(sources, weights=weights, allow_repeats=False)
        .map(str.split, selector="prompt,reply")
        .bucket_by_length(BUCKETS, selector="prompt")
    )


def train(folder: Path, die_at: int | None = None) -> None:
    """Train: here, write down the records. Save the position after every bucket.

    Args:
        folder: The folder of the part files, of the state and of the written records.
        die_at: A step at which the process kills itself: even steps after the work and before the
            position is saved, odd steps after that.
    """
    stream = buckets(folder).and_return(seed=1)
    saved, notes, step = folder / "state.json", folder / "trained.jsonl", 0
    if saved.exists():
        state = json.loads(saved.read_text(encoding="utf-8"))
        stream.load_state_dict(state["stream"])
        step = state["step"]
        os.truncate(notes, state["noted"])
    with notes.open("a", encoding="utf-8") as file:
        for step, bucket in enumerate(stream, step + 1):  # noqa: B020 - from where it stood
            file.write(json.dumps([record["id"] for record in bucket]) + "\n")
            file.flush()
            if step == die_at and step % 2 == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            state = {"step": step, "noted": file.tell(), "stream": stream.state_dict()}
            draft = folder / "state.draft"
            draft.write_text(json.dumps(state), encoding="utf-8")
            draft.replace(saved)
            if step == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
    print(f"trained on {step} buckets")


def main() -> None:
    """Write the part files if they are missing, and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--die-at", type=int, metavar="STEP")
    given = parser.parse_args()
    if not given.folder.exists():
        write_parts(given.folder)
    train(given.folder, given.die_at)


if __name__ == "__main__":
    main()
