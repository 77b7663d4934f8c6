"""Compare the reader of tar archives with Python's tarfile, on random and damaged archives.

    python tests/faults/tar_campaign.py --count 10000

Each archive gives the samples that tarfile gives, or an error behind the
first of them.
"""

import argparse
import contextlib
import io
import random
import sys
import tarfile
import tempfile
from pathlib import Path

from dagster_dataops import read_tar
from dagster_dataops.errors import DuplicateKeyError, StreamSourceError
from dagster_dataops.streams.files.locations import Location
from dagster_dataops.training.filestores.sample_names import split_name
from dagster_dataops.training.filestores.tars.shard_scan import BY_TARFILE, TarShard, scan

SIZES = (b"-0000000001\0", b"\x80" + bytes(10) + b"\x05", b"\xff" * 12, b"\x80" + b"\x7f" * 11)
FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)


def name_of(random_: random.Random, number: int) -> str:
    """Return a name: short, long, in folders, with other letters, or of no sample."""
    kind = random_.randrange(12)
    stem = f"k{number:04d}"
    folder = {0: "d/", 1: "a.b/c/", 2: "x" * 90 + "/", 3: "ü/"}.get(kind, "")
    if kind == 4:
        stem = "n" * random_.choice([96, 99, 100, 101, 140, 300])
        stem += str(number)
    if kind == 5:
        return random_.choice([".hidden", "noext", "__meta__/x", "d/.h.txt"])
    return f"{folder}{stem}"


def members(random_: random.Random, format_: int) -> "list[tuple[tarfile.TarInfo, bytes]]":
    """Return the members of an archive."""
    found = []
    for number in range(random_.randrange(7)):
        stem = name_of(random_, number)
        for part in random_.sample(["txt", "json", "seg.png", "TXT"], random_.randrange(1, 4)):
            data = random_.randbytes(random_.choice([0, 1, 511, 512, 513, 2000]))
            info = tarfile.TarInfo(f"{stem}.{part}")
            info.size = len(data)
            kind = random_.randrange(40)
            if kind == 0:
                info.type, info.size, data = tarfile.DIRTYPE, 0, b""
            elif kind == 1 and found:
                info.type, info.size, data = (
                    random_.choice([tarfile.LNKTYPE, tarfile.SYMTYPE]),
                    0,
                    b"",
                )
                info.linkname = found[0][0].name
            elif kind == 2:
                info.type = tarfile.CONTTYPE
            elif kind == 3:
                info.type = tarfile.AREGTYPE
            elif kind == 4 and format_ == tarfile.PAX_FORMAT:
                info.pax_headers = {"comment": "x" * random_.randrange(2000), "mtime": "1.5"}
            info.uname = random_.choice(["", "someone"])
            found.append((info, data))
    return found


def archive(random_: random.Random) -> bytes:
    """Return a random archive; some are damaged."""
    format_ = random_.choice(FORMATS)
    buffer = io.BytesIO()
    pax = {"pax_headers": {"comment": "all"}} if random_.randrange(10) == 0 else {}
    with tarfile.open(fileobj=buffer, mode="w", format=format_, **pax) as file:
        for info, data in members(random_, format_):
            try:
                file.addfile(info, io.BytesIO(data))
            except ValueError:  # the name is too long for USTAR
                continue
    data = bytearray(buffer.getvalue())
    for _ in range(random_.choice([0, 0, 0, 1, 1, 2])):
        damage(random_, data)
    return bytes(data)


def damage(random_: random.Random, data: bytearray) -> None:
    """Change some bytes, cut off the end, or drop or repeat a block."""
    blocks = max(1, len(data) // 512)
    place = random_.randrange(blocks) * 512
    match random_.randrange(6):
        case 0:
            del data[random_.randrange(len(data) + 1) :]
        case 1:
            del data[place : place + 512]
        case 2:
            data[place:place] = data[place : place + 512]
        case 3:
            data[place + 124 : place + 136] = random_.choice(
                [
                    b"-0000000001\0",
                    b"\x80" + b"\0" * 10 + b"\x05",
                    b"\xff" * 12,
                    b"\x80" + b"\x7f" * 11,
                ]
            )
        case _:
            for _ in range(random_.randrange(1, 4)):
                if data:
                    data[random_.randrange(len(data))] = random_.randrange(256)


def expected(data: bytes) -> "list[dict[str, bytes]]":
    """Return the samples that tarfile gives, up to its first error."""
    found: list[dict[str, bytes]] = []
    key = None
    with (
        contextlib.suppress(Exception),  # tarfile raises exceptions of many types
        tarfile.open(fileobj=io.BytesIO(data), mode="r:", encoding="utf-8") as file,
    ):
        for member in file:
            divided = split_name(member.name)
            wanted = member.isreg() or member.islnk() or member.issym()
            if divided is None or not wanted:
                continue
            content = file.extractfile(member)
            if content is None:
                break
            if divided[0] != key:
                key = divided[0]
                found.append({"__key__": key})
            found[-1][divided[1]] = content.read()
    return found


def found_in(path: Path) -> "tuple[list[dict[str, bytes]], Exception | None]":
    """Return the samples that ``read_tar`` gives, and its error."""
    found, error = [], None
    try:
        for sample in read_tar(path):
            kept = {key: one for key, one in sample.items() if not key.startswith("__")}
            found.append({"__key__": sample["__key__"], **kept})
    except StreamSourceError as raised:
        error = raised
    return found, error


def compare(data: bytes, path: Path) -> "str | None":
    """Return what is wrong with the samples of an archive; ``None`` if nothing is."""
    path.write_bytes(data)
    wanted = expected(data)
    found, error = found_in(path)
    if error is None and found != wanted:
        return f"gave {[*map(dict.keys, found)]}, and tarfile {[*map(dict.keys, wanted)]}"
    if found != wanted[: len(found)]:
        return f"gave other samples in front of {error}"
    try:
        rows = scan(TarShard("a.tar", Location(str(path))), "d", "error").rows()
    except DuplicateKeyError:
        return None if isinstance(error, DuplicateKeyError) else "the scan found a duplicate"
    for (key, _, parts), sample in zip(rows, found, strict=False):
        contents = {
            part: sample[part] if size == BY_TARFILE else data[offset : offset + size]
            for part, (offset, size) in parts.items()
        }
        if {"__key__": key, **contents} != sample:
            return f"the scan differs at {key}"
    if len(rows) != len(found) and not isinstance(error, DuplicateKeyError):
        return f"the scan has {len(rows)} samples, and reading gave {len(found)}: {error}"
    return None


def main() -> int:
    """Run the campaign; return 1 if an archive was read wrongly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    wrong = errors = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tar"
        for seed in range(given.first, given.first + given.count):
            fault = compare(archive(random.Random(seed)), path)
            if fault is not None:
                wrong += 1
                sys.stdout.write(f"seed {seed}: {fault}\n")
            errors += found_in(path)[1] is not None
    sys.stdout.write(f"{given.count:,} archives, {errors:,} with an error, {wrong} read wrongly\n")
    return min(1, wrong)


if __name__ == "__main__":
    sys.exit(main())
