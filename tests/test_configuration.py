"""Tests of dagster_dataops.configuration."""

from pathlib import Path

import pytest

from dagster_dataops import DataOpsResource, JsonlDataset, data, load_result, read_sequence
from dagster_dataops.configuration import Configuration, config
from dagster_dataops.errors import ConfigurationError, InputError
from tests.nodes import Root


@pytest.fixture
def fresh() -> Configuration:
    return Configuration()


def test_results_go_below_the_working_directory_by_default(fresh, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    assert fresh.data_process_path == tmp_path / "data_pipeline_res"


def test_the_environment_is_read_on_access_not_on_import(fresh, monkeypatch, tmp_path):
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_PATH", str(tmp_path / "a"))
    assert fresh.data_process_path == tmp_path / "a"

    monkeypatch.setenv("DATAOPS_DATA_PROCESS_PATH", str(tmp_path / "b"))
    assert fresh.data_process_path == tmp_path / "b"


def test_an_assigned_value_overrides_the_environment(fresh, monkeypatch, tmp_path):
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_PATH", str(tmp_path / "environment"))

    fresh.data_process_path = tmp_path / "assigned"

    assert fresh.data_process_path == tmp_path / "assigned"


def test_assigning_none_restores_the_environment(fresh, monkeypatch, tmp_path):
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_PATH", str(tmp_path / "environment"))
    fresh.data_process_path = tmp_path / "assigned"

    fresh.data_process_path = None

    assert fresh.data_process_path == tmp_path / "environment"


def test_the_path_is_absolute_and_the_home_folder_is_expanded(fresh, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    fresh.data_process_path = "~/results"

    assert fresh.data_process_path == tmp_path / "results"


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", True), ("true", True), ("YES", True), ("on", True), ("0", False), ("off", False)],
)
def test_boolean_variables_are_read_as_words(fresh, monkeypatch, text, value):
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_RESUME", text)

    assert fresh.data_process_resume is value


@pytest.mark.parametrize("text", ["failed_records", " Failed_Records "])
def test_resume_may_be_only_for_failed_records(fresh, monkeypatch, text):
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_RESUME", text)
    assert fresh.data_process_resume == "failed_records"

    fresh.data_process_resume = True
    assert fresh.data_process_resume is True
    fresh.data_process_resume = "failed_records"
    assert fresh.data_process_resume == "failed_records"


def test_progress_of_streams_has_no_failed_records(fresh):
    fresh.data_process_progress = "failed_records"

    with pytest.raises(ConfigurationError, match="must be true or false$"):
        _ = fresh.data_process_progress


def test_an_empty_boolean_variable_is_false(fresh, monkeypatch):
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_RESUME", "")

    assert fresh.data_process_resume is False


def test_an_invalid_boolean_names_setting_value_and_allowed_values(fresh, monkeypatch):
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_RESUME", "maybe")

    with pytest.raises(ConfigurationError, match=r"data_process_resume is 'maybe'.*true or false"):
        _ = fresh.data_process_resume


def test_resume_is_off_and_progress_undecided_by_default(fresh):
    assert fresh.data_process_resume is False
    assert fresh.data_process_progress is None


def test_an_assigned_false_overrides_the_environment(fresh, monkeypatch):
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_RESUME", "1")
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_PROGRESS", "1")

    fresh.data_process_resume = False
    fresh.data_process_progress = False

    assert fresh.data_process_resume is False
    assert fresh.data_process_progress is False


def test_temporary_values_end_with_their_block_even_on_an_error(fresh):
    fresh.data_process_path = "/before"

    with pytest.raises(RuntimeError), fresh.temporary(data_process_path="/inside"):
        assert fresh.data_process_path == Path("/inside")
        raise RuntimeError

    assert fresh.data_process_path == Path("/before")


def test_a_misspelt_setting_is_refused(fresh):
    with pytest.raises(AttributeError):
        fresh.data_proces_path = "/somewhere"
    with pytest.raises(AttributeError), fresh.temporary(data_proces_path="/somewhere"):
        pass


def test_reading_a_setting_makes_no_folder(root):
    assert config.data_process_path == root
    assert not root.exists()


@pytest.mark.parametrize("value", ["a\0b", "~nobody-of-this-name/results", "results-\udcff"])
def test_a_root_that_cannot_be_a_folder_is_refused(fresh, value):
    fresh.data_process_path = value

    with pytest.raises(ConfigurationError, match="data_process_path is .*the path of a folder"):
        _ = fresh.data_process_path


URLS = [
    "hdfs://host/results",
    "ftp://host",
    "file:///data/results",
    "HTTPS://host/x",
    "simplecache::s3://bucket/x",
    "az+dev://x",
]


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_url_is_refused_as_a_root(fresh, monkeypatch, url, kind):
    fresh.data_process_path = kind(url)
    with pytest.raises(ConfigurationError, match=r"data_process_path is .* on this machine"):
        _ = fresh.data_process_path

    fresh.data_process_path = None
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_PATH", url)
    with pytest.raises(
        ConfigurationError, match="only the root of all results can be an object store"
    ):
        _ = fresh.data_process_path


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize("place", ["bucket", "bucket/results/", "bucket//results"])
def test_the_url_of_an_object_store_is_a_root_with_a_working_copy(fresh, tmp_path, kind, place):
    fresh.data_process_scratch = tmp_path
    fresh.data_process_path = kind(f"S3://{place}")

    prefix = place.replace("//", "/").strip("/")
    assert fresh.data_process_path == tmp_path / "s3" / prefix
    assert str(fresh.results_root() / "a") == f"s3://{prefix}/a"
    assert not (tmp_path / "s3").exists()


@pytest.mark.parametrize("place", ["s3://bucket", "memory://bucket/a/b"])
def test_a_root_that_was_read_can_be_set_again(fresh, tmp_path, place):
    fresh.data_process_scratch = tmp_path
    fresh.data_process_path = place
    root = fresh.results_root()

    fresh.data_process_path = fresh.data_process_path

    assert fresh.results_root() == root
    assert root.bucket is not None


def test_a_folder_with_the_name_of_a_kind_of_store_needs_no_scratch_folder(
    fresh, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fresh.data_process_path = "/srv/s3/results"

    assert fresh.results_root() == Root(Path("/srv/s3/results"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("part", ["", "elsewhere/s3", "s3", "s3/bucket/.copies/in", "other/bucket"])
def test_any_other_folder_below_the_working_copies_is_a_folder(fresh, tmp_path, part):
    fresh.data_process_scratch = tmp_path / "scratch"
    fresh.data_process_path = tmp_path / "scratch" / part

    assert fresh.results_root() == Root(tmp_path / "scratch" / part)


def test_a_working_copy_from_another_server_is_not_taken_for_one_of_this_server(fresh, tmp_path):
    fresh.data_process_scratch = tmp_path
    fresh.storage_options["endpoint"] = "http://one"
    fresh.data_process_path = "s3://bucket/results"
    fresh.data_process_path = fresh.data_process_path
    fresh.storage_options["endpoint"] = "http://other"

    with pytest.raises(
        ConfigurationError, match=r"the URL s3://bucket/results: .*another endpoint"
    ):
        _ = fresh.results_root()


@pytest.mark.parametrize("path", ["C:/data", "/srv/s3:/x", "a:b/c", "results", "./s3:/x", "x::y"])
def test_a_path_that_only_resembles_a_url_is_a_folder(fresh, path):
    fresh.data_process_path = path

    assert fresh.data_process_path == Path(path).absolute()


@pytest.mark.parametrize("url", URLS)
def test_nothing_is_written_to_a_folder_that_is_named_like_a_url(monkeypatch, tmp_path, url):
    monkeypatch.chdir(tmp_path)
    refused = [
        lambda: data.dedup.Exact(input_key="n").set_output(url),
        lambda: DataOpsResource(root=url).root_path,
        lambda: DataOpsResource(root=url).folder(["a"]),
        lambda: load_result(url),
        lambda: read_sequence([1]).and_return(on_error="quarantine", quarantine=url),
    ]

    for attempt in refused:
        with pytest.raises(ConfigurationError, match="on this machine"):
            attempt()
    with pytest.raises(InputError, match=r"is a URL.*read_jsonl"):
        JsonlDataset.of_file(url)
    with config.temporary(data_process_path=url), pytest.raises(ConfigurationError):
        data.dedup.Exact(input_key="n")([{"n": 1}])
    assert list(tmp_path.iterdir()) == []
