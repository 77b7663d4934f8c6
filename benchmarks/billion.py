"""A run over a billion short records, by simulation: spans of a sparse input, with tiny outputs.

``python -m benchmarks.billion [--records 1000000000] [--bytes 40] [--folder FOLDER]``

The workplace of the run settles spans of varying size at once, and reads no record; the output of a
span is one to three empty records. All else is a real run: the journal, its syncs, a stop in the
middle, the resume, the checks, the publication. So the table shows what the engine itself needs for
so many records, by the number of records of a span: in process mode a span has about 4 MB or a
second of work; in thread and async mode it is one record.
"""

import argparse
import multiprocessing
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dagster_dataops import config, data, data_register, register_workplace
from dagster_dataops.checkpoints.journal.finished_span import FinishedSpan
from dagster_dataops.workplaces import Attempt, Sink, WorkList

_LEAST_SPANS = 100  # that the run is stopped before its end
_BATCH = 1000  # spans that a worker hands over at once, at most


@data_register("data.billion")
def nothing(record: dict) -> dict:
    """Return the record; never called."""
    return record


class Simulated:
    """Settles spans without a record.

    Args:
        facts: Receives the times.
        size: Bytes of a span.
        records: Records of a span.
        stop_at: The position in the input at which the run is stopped; ``None`` for never.
    """

    def __init__(self, facts: dict[str, float], size: int, records: int, stop_at: int | None):
        self._facts, self._size, self._records, self._stop_at = facts, size, records, stop_at

    def run(self, attempt: Attempt, work: WorkList, sink: Sink) -> None:
        """Settle the open records."""
        self._facts["begun"] = time.perf_counter()
        segment = sink.new_segment()
        for spans in self._batches(work):
            offset = segment.append(b"".join(span.output for span in spans), b"")
            sink.journal(segment.number, offset, [span.span for span in spans])
            sink.tick()
            if self._stop_at is not None and spans[-1].span.start >= self._stop_at:
                raise KeyboardInterrupt
        segment.close()
        self._facts["settled"] = time.perf_counter()

    def _batches(self, work: WorkList) -> Iterator[list[FinishedSpan]]:
        total = work.content.end // self._size
        chance = random.Random(5)
        spans: list[FinishedSpan] = []
        most = min(_BATCH, 1 + total // 20)
        for start, last in work.open:
            first = start
            while first < last:
                size = min(chance.randint(self._size // 2, self._size * 3 // 2), last - first)
                number, kept = max(3, self._records * size // self._size), chance.randint(1, 3)
                counts = {"records": number, "emitted": kept, "dropped": number - kept, "failed": 0}
                output = b"{}\n" * kept
                source = b"%d" % first  # only for its checksum
                span = FinishedSpan.of(
                    first, size, **counts, output=output, errors=b"", source=source
                )
                spans.append(span)
                first += size
                if len(spans) == most:
                    yield spans
                    spans = []
        if spans:
            yield spans


def _input(path: Path, size: int) -> None:
    """Write a sparse file with one record at the start, and a line end at the end."""
    with path.open("wb") as file:
        file.write(b'{"text":"a"}\n')
        file.truncate(size - 1)
        file.seek(size - 1)
        file.write(b"\n")


def _attempt(folder: Path, size: int, records: int, stop_at: int | None, pipe: Any) -> None:
    """Run once, in this process; send the facts."""
    facts: dict[str, float] = {}
    register_workplace("simulated", Simulated(facts, size, records, stop_at), default_workers=1)
    config.data_process_path, config.data_process_resume = str(folder / "results"), True
    began = time.perf_counter()
    try:
        data.billion.nothing(_concurrency_mode="simulated")(folder / "input.jsonl")
    except KeyboardInterrupt:
        facts["settled"] = time.perf_counter()
    ended = time.perf_counter()
    journals = list(folder.glob("results/**/journal"))
    pipe.send(
        {
            "start": facts["begun"] - began,
            "journal": facts["settled"] - facts["begun"],
            "publish": ended - facts["settled"],
            "bytes": sum(path.stat().st_size for path in journals),
            "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
    )


def measured(home: Path, records: int, size: int, in_span: int) -> dict[str, float]:
    """Run, stop at nine tenths, resume and publish; return the facts.

    Args:
        home: An empty folder.
        records: Number of records.
        size: Bytes of a record.
        in_span: Records of a span.
    """
    _input(home / "input.jsonl", records * size)
    runs = []
    for stop_at in (records * size * 9 // 10, None):
        mine, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=_attempt, args=(home, size * in_span, in_span, stop_at, theirs)
        )
        process.start()
        while not mine.poll(1.0):
            if not process.is_alive():
                raise SystemExit(f"the run ended with status {process.exitcode}")
        runs.append(mine.recv())
        process.join()
    stopped, resumed = runs
    return {
        "spans": -(-records // in_span),
        "journal_mb": stopped["bytes"] / 0.9 / 1e6,
        "journal_s": stopped["journal"] / 0.9,
        "resume_s": resumed["start"],
        "publish_s": resumed["publish"],
        "rss_mb": resumed["rss"],
    }


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000_000)
    parser.add_argument("--bytes", type=int, default=40, help="of a record")
    parser.add_argument("--in-span", type=int, nargs="+", default=[100_000, 1000, 100])
    parser.add_argument("--folder", type=Path, help="where the files are written")
    arguments = parser.parse_args()
    least = _LEAST_SPANS * max(arguments.in_span)
    if arguments.records < least:  # the stop after nine tenths would be behind the last span
        parser.error(f"--records must be at least {least:,}, {_LEAST_SPANS} times --in-span")
    print("| records of a span | spans | journal MB | journal s | resume s | publish s | RSS MB |")
    print("|---|---|---|---|---|---|---|")
    for in_span in arguments.in_span:
        home = Path(tempfile.mkdtemp(dir=arguments.folder))
        try:
            facts = measured(home, arguments.records, arguments.bytes, in_span)
        finally:
            shutil.rmtree(home)
        cells = [f"{in_span:,}", f"{facts.pop('spans'):,}"]
        cells += [f"{fact:,.1f}" for fact in facts.values()]
        print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
