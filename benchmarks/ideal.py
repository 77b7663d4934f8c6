"""The hand-written limit: forked workers over byte ranges, orjson, concatenation, nothing else.

No checkpoint, no sync, no error handling, no copies, no checks. Run in a separate process as
``python -m benchmarks.ideal SPECIFICATION``, with the keys source, out (a folder), workers and
passes: names of `PASSES`, each over the result of the one before. With promised, the passes are
those of `PROMISED`: they also compute a digest and sync, as every result of the package needs.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import xxhash

from benchmarks import operators
from benchmarks.reporting import Stopwatch

RANGE_BYTES = 4 << 20  # the best of 64 KB to 64 MB
_DIGEST_BYTES = 16
_BLOCK_BYTES = 256 << 10


class Range(NamedTuple):
    """The lines that start inside [start, end) of a file."""

    path: Path
    start: int
    end: int

    def lines(self) -> Iterator[bytes]:
        """Yield the lines, newlines included."""
        with self.path.open("rb", buffering=1 << 20) as file:
            position = self.start
            if position:
                file.seek(position - 1)
                position += len(file.readline()) - 1
            for line in file:
                if position >= self.end:
                    return
                yield line
                position += len(line)


Work = Callable[[Range], Iterable[bytes]]
Pass = Callable[[Path, Path, int], None]


def mapped(function: Callable[[Any], Any], part: Range) -> Iterator[bytes]:
    """Yield the lines of a function from record to record."""
    loads, dumps, option = orjson.loads, orjson.dumps, orjson.OPT_APPEND_NEWLINE
    for line in part.lines():
        yield dumps(function(loads(line)), option=option)


def checked(function: Callable[[Any], list[Any]], part: Range) -> Iterator[bytes]:
    """Do the same as `multiplied`, and refuse NaN, which orjson would write as null."""
    loads, dumps, option = orjson.loads, orjson.dumps, orjson.OPT_APPEND_NEWLINE
    for line in part.lines():
        for record in function(loads(line)):
            for value in record.values():
                kind = type(value)
                if kind is not str and kind is not int and kind is not bool:
                    raise TypeError(kind)
            yield dumps(record, option=option)


def filtered(function: Callable[[Any], bool], part: Range) -> Iterator[bytes]:
    """Yield the lines whose records pass."""
    loads = orjson.loads
    return (line for line in part.lines() if function(loads(line)))


def multiplied(function: Callable[[Any], list[Any]], part: Range) -> Iterator[bytes]:
    """Yield the lines of a function from record to records."""
    loads, dumps, option = orjson.loads, orjson.dumps, orjson.OPT_APPEND_NEWLINE
    for line in part.lines():
        for record in function(loads(line)):
            yield dumps(record, option=option)


def digests(part: Range) -> Iterator[bytes]:
    """Yield the digest of each line's record."""
    loads, digest = orjson.loads, operators.digest
    return (digest(loads(line)) for line in part.lines())


def ranges_of(path: Path, workers: int) -> list[Range]:
    """Cut a file; all of it for one worker, at least eight pieces each for several."""
    size = path.stat().st_size
    step = size if workers == 1 else min(RANGE_BYTES, -(-size // (8 * workers)))
    return [Range(path, at, min(at + step, size)) for at in range(0, size, step)]


def write_lines(work: Work, part: Range, out: Path) -> None:
    """Write the lines that ``work`` yields."""
    with out.open("wb", buffering=1 << 20) as file:
        file.writelines(work(part))


def in_processes(tasks: list[Callable[[], None]], workers: int) -> None:
    """Run ``tasks`` in forked processes; each takes the next task when it is free."""
    context = multiprocessing.get_context("fork")
    counter = context.Value("i", 0)

    def serve() -> None:
        while True:
            with counter.get_lock():
                number = counter.value
                counter.value += 1
            if number >= len(tasks):
                return
            tasks[number]()

    processes = [context.Process(target=serve) for _ in range(workers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


def run_pass(works: list[Work], parts: list[Range], out: Path, workers: int) -> None:
    """Write the lines that ``works`` yield from ``parts``, in order, into ``out``."""
    if len(parts) == 1:
        write_lines(works[0], parts[0], out)
        return
    segments = [out.with_name(f"{out.name}.{number}") for number in range(len(parts))]
    jobs = zip(works, parts, segments, strict=True)
    in_processes([partial(write_lines, *job) for job in jobs], workers)
    concatenate(segments, out)


def concatenate(segments: list[Path], out: Path) -> None:
    """Copy ``segments`` into ``out`` and delete them."""
    with out.open("wb") as target:
        for segment in segments:
            with segment.open("rb") as source:
                while os.copy_file_range(source.fileno(), target.fileno(), 1 << 30):
                    pass
            segment.unlink()


def run_record_pass(work: Work, source: Path, out: Path, workers: int) -> None:
    """One pass that processes each record separately."""
    parts = ranges_of(source, workers)
    run_pass([work] * len(parts), parts, out, workers)


def run_promised(run: Pass, source: Path, out: Path, workers: int) -> None:
    """Do the same as ``run``, and also compute a digest of the result and sync it."""
    run(source, out, workers)
    digest = xxhash.xxh3_128()
    with out.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
        os.fsync(file.fileno())


def run_unique(source: Path, out: Path, workers: int) -> None:
    """Keep the first of all records with the same text.

    Digests are computed in parallel, records are chosen here, and chosen records are copied in
    parallel.
    """
    seen: set[bytes] = set()
    if workers == 1:
        with source.open("rb") as file, out.open("wb", buffering=1 << 20) as target:
            target.writelines(line for line in file if _is_new(_digest_of(line), seen))
        return
    parts = ranges_of(source, workers)
    files = [out.with_name(f"{out.name}.digests.{number}") for number in range(len(parts))]
    jobs = zip(parts, files, strict=True)
    in_processes([partial(write_lines, digests, *job) for job in jobs], workers)
    works: list[Work] = []
    for file in files:
        found = file.read_bytes()
        steps = range(0, len(found), _DIGEST_BYTES)
        flags = bytes(_is_new(found[at : at + _DIGEST_BYTES], seen) for at in steps)
        works.append(partial(_selected, flags))
        file.unlink()
    run_pass(works, parts, out, workers)


def _digest_of(line: bytes) -> bytes:
    return operators.digest(orjson.loads(line))


def _is_new(digest: bytes, seen: set[bytes]) -> bool:
    before = len(seen)
    seen.add(digest)
    return len(seen) > before


def _selected(flags: bytes, part: Range) -> Iterator[bytes]:
    return compress(part.lines(), flags)


def _eight(record: Any) -> Any:
    operators.lower(record)
    operators.strip(record)
    record = operators.measured(record)
    operators.tagged(record)
    record = operators.numbered(record)
    operators.headed(record)
    record = operators.flagged(record)
    return operators.upper(record)


PASSES: dict[str, Pass] = {
    "eight": partial(run_record_pass, partial(mapped, _eight)),
    "upper": partial(run_record_pass, partial(mapped, operators.upper)),
    "clean": partial(run_record_pass, partial(mapped, operators.clean)),
    "reply": partial(run_record_pass, partial(mapped, operators.reply)),
    "keep": partial(run_record_pass, partial(filtered, operators.kept)),
    "triple": partial(run_record_pass, partial(multiplied, operators.triple)),
    "unique": run_unique,
}


def _eight_listed(record: Any) -> list[Any]:
    return [_eight(record)]


def _upper(record: Any) -> list[Any]:
    return [operators.upper(record)]


def _keep(record: Any) -> list[Any]:
    return [record] if operators.kept(record) else []  # written again: it may have been changed


PROMISED: dict[str, Pass] = {
    "eight": partial(run_promised, partial(run_record_pass, partial(checked, _eight_listed))),
    "upper": partial(run_promised, partial(run_record_pass, partial(checked, _upper))),
    "keep": partial(run_promised, partial(run_record_pass, partial(checked, _keep))),
    "triple": partial(run_promised, partial(run_record_pass, partial(checked, operators.triple))),
    "unique": partial(run_promised, run_unique),
}


def main() -> None:
    """Run the passes and report."""
    watch = Stopwatch()
    given = watch.specification
    source, seconds = Path(given["source"]), []
    outputs: list[Path] = []
    passes = PROMISED if given.get("promised") else PASSES
    for number, name in enumerate(given["passes"]):
        out = Path(given["out"]) / f"{number}_{name}.jsonl"
        passes[name](source, out, given["workers"])
        outputs.append(out)
        seconds.append(watch.lap())
        source = out
    watch.finish(outputs, each=seconds)


if __name__ == "__main__":
    main()
