"""Buckets and their files as values: texts, identity, and what leaves the process."""

import pickle
from pathlib import Path

import pytest

from dagster_dataops.configuration import input_object
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import InputError
from dagster_dataops.foundation.places.bucket import (
    BucketFile,
    StoreBucket,
    facts_of_location,
    location_of,
    published_path,
)

_OPTIONS = {"endpoint": "http://server", "secret_access_key": "hunter2"}


@pytest.fixture
def bucket(tmp_path: Path) -> StoreBucket:
    return StoreBucket("s3://docs", tmp_path, _OPTIONS)


def test_the_text_of_an_object_is_its_url_without_the_version_of_a_published_file(bucket):
    assert str(BucketFile(bucket, "a/b.jsonl")) == "s3://docs/a/b.jsonl"
    published = BucketFile(bucket, "node/.versions/00000001-ab/node_results.jsonl")
    assert str(published) == "s3://docs/node/node_results.jsonl"
    assert published_path(published) == bucket.folder / "node" / "node_results.jsonl"
    assert published_path(BucketFile(bucket, "a/b.jsonl")) is None
    assert published_path(bucket.folder / "x") == bucket.folder / "x"


def test_neither_text_nor_pickle_of_an_object_holds_a_secret(bucket):
    file = BucketFile(bucket, "a.jsonl")
    dataset = JsonlDataset(file, 3, fingerprint="etag:x:3")

    assert "hunter2" not in f"{file!r} {dataset!r} {dataset}"
    assert b"hunter2" not in pickle.dumps(dataset)
    again = pickle.loads(pickle.dumps(dataset)).location
    assert (again.key, again.bucket.url) == ("a.jsonl", "s3://docs")
    assert again.bucket.options == {"endpoint": "http://server"}


def test_a_process_of_the_same_run_gets_all_options(bucket):
    file = BucketFile(bucket, "a.jsonl")

    again = location_of(*facts_of_location(file))

    assert again == file
    assert again.bucket.options == _OPTIONS
    assert location_of(*facts_of_location(bucket.folder)) == bucket.folder


def test_an_object_has_no_path_and_the_error_says_what_to_do(bucket):
    dataset = JsonlDataset(BucketFile(bucket, "a.jsonl"), 3)

    with pytest.raises(InputError, match=r"s3://docs/a.jsonl: is an object .* its download\(\)"):
        _ = dataset.path


def test_objects_of_two_servers_differ(tmp_path):
    one, other = (
        input_object("s3://docs/a.jsonl", {"endpoint": f"http://{name}"}) for name in ("x", "y")
    )

    assert one != other
    assert str(one) == str(other)
    assert len({one, other, input_object("s3://docs/a.jsonl", {"endpoint": "http://x"})}) == 2
