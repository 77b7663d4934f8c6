"""Near-duplicates with rensa's own index, 16 bands of 8 rows: the loop as its users write it."""

import json
from pathlib import Path

from rensa import RMinHash, RMinHashLSH

from benchmarks.reporting import Stopwatch

if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    index = RMinHashLSH(threshold=0.8, num_perm=128, num_bands=16)
    result = Path(given["out"]) / "result.jsonl"
    with Path(given["source"]).open() as lines, result.open("w") as kept:
        for number, line in enumerate(lines):
            words = json.loads(line)["text"].lower().split()
            sketch = RMinHash(num_perm=128, seed=0)
            sketch.update([" ".join(words[at : at + 5]) for at in range(len(words) - 4)])
            if not index.query(sketch):
                index.insert(number, sketch)
                kept.write(line)
    watch.finish([result])
