"""Files on an object store are read with the options of the root or of the input."""

from pathlib import Path

import pytest

from dagster_dataops import FileReference, config, data_register, pipeline
from dagster_dataops.errors import FileError
from tests.execution.helpers import second_thread
from tests.object_stores import SECRETS, s3_server, writing

OPTIONS = {
    "access_key_id": SECRETS["AWS_ACCESS_KEY_ID"],
    "secret_access_key": "a-secret-of-the-store",
    "region": SECRETS["AWS_REGION"],
}


@data_register("data.file_logins", _max_workers=2)
def count_bytes(record):
    return {"file": record["file"], "bytes": len(FileReference.of(record["file"]).read())}


def store_of_root():
    bucket = config.results_root().bucket
    assert bucket is not None
    return writing(bucket)


@pytest.fixture
def options(tmp_path, monkeypatch):
    """Put a file in the bucket ``results``; it can be read with the options alone."""
    for name in SECRETS:
        monkeypatch.delenv(name, raising=False)
    root = "s3://results/root"
    with (
        s3_server() as address,
        config.temporary(data_process_scratch=tmp_path / "scratch", data_process_path=root),
    ):
        config.storage_options.update(OPTIONS, endpoint=address)
        try:
            store = store_of_root()
            for name in ("scans/1.txt", "scans/2.txt"):
                store.put(name, b"page of a scan")
            yield config.storage_options
        finally:
            config.storage_options.clear()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["single", "process"])
def test_references_are_read_with_the_options_of_the_root(options, tmp_path, mode):
    records = [{"file": f"s3://results/scans/{n}.txt"} for n in (1, 2)]
    with pipeline("p") as ppl:
        ppl.count = count_bytes(_concurrency_mode=mode)
    with second_thread(True):  # no forks
        assert [row["bytes"] for row in ppl(records)] == [14, 14]
    reference = FileReference.of(records[0]["file"]).with_facts()
    assert (reference.version is not None, reference.size) == (True, 14)
    with reference.open() as file:
        assert file.read(4) == b"page"
    with pytest.raises(FileError, match="there is no such object"):
        FileReference("s3://results/scans/3.txt").read()
    store, secret = store_of_root(), options["secret_access_key"].encode()
    written = [(store.read(key) or (b"",))[0] for key in store.names("root")]
    written += [path.read_bytes() for path in Path(tmp_path).rglob("*") if path.is_file()]
    assert written
    assert not [data for data in written if secret in data]
