"""Tar shards for the tests of file stores and of cooking."""

import io
import json
import tarfile

CRUDE = "__module__: megatron.energon\n__class__: CrudeWebdataset\n"


def write_tar(path, members, kind=tarfile.USTAR_FORMAT):
    """Write an archive of (name, content)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=kind) as file:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), 1_700_000_000
            file.addfile(info, io.BytesIO(data))
    return path


def samples(prefix, first, count):
    """Return the files of some samples: json and txt."""
    found = []
    for number in range(first, first + count):
        meta = json.dumps({"n": number, "aux": f"m{number:04d}.txt"}).encode()
        found += [(f"{prefix}{number:05d}.json", meta)]
        found += [(f"{prefix}{number:05d}.txt", f"caption {number}".encode())]
    return found


def write_prepared(folder, shards, subflavors="", split=None):
    """Write the files of ``energon prepare`` that are texts."""
    meta = folder / ".nv-meta"
    meta.mkdir(parents=True, exist_ok=True)
    info = {"energon_version": "7.4.1", "shard_counts": shards}
    (meta / ".info.json").write_text(json.dumps(info))
    names = "".join(f"    - {name}\n" for name in shards)
    usual = f"exclude: []\nsplit_parts:\n  train:\n{names}  val: []\n"
    (meta / "split.yaml").write_text(usual if split is None else split)
    (meta / "dataset.yaml").write_text(CRUDE + subflavors)
    return folder


def dataset(folder, counts=(7, 7, 6), prefix="a", subflavors="subflavors:\n  number: 42\n"):
    """Write a prepared dataset of shards with ``counts`` samples."""
    first, shards = 0, {}
    for number, count in enumerate(counts):
        name = f"shards/data-{number:03d}.tar"
        write_tar(folder / name, samples(prefix, first, count))
        shards[name] = count
        first += count
    return write_prepared(folder, shards, subflavors)


def stores(folder):
    """Write a tar dataset ``aux`` and a folder ``imgs`` with 20 files each."""
    write_tar(folder / "aux" / "x-0.tar", [(f"m{n:04d}.txt", b"aux %d" % n) for n in range(10)])
    write_tar(folder / "aux" / "x-1.tar", [(f"m{n:04d}.txt", b"aux %d" % n) for n in range(10, 20)])
    (folder / "imgs" / "sub").mkdir(parents=True)
    for n in range(20):
        (folder / "imgs" / f"m{n:04d}.txt").write_text(f"file {n}")
    (folder / "imgs" / "sub" / "x.bin").write_bytes(b"\0\1")
    (folder / "secret.txt").write_text("outside")
    return folder
