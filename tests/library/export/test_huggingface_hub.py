"""Tests of ``export.HuggingFaceHub`` against a Hub on this machine."""

import io
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import datasets
import pytest

from dagster_dataops import build_definitions, checks, data, pipeline, readers
from dagster_dataops.data import data_register
from dagster_dataops.errors import DataOpsError, DefinitionError, MissingExtraError
from dagster_dataops.foundation.concurrency.retrying import Backoff
from tests.datasets.exporters.folders import names_in
from tests.faults.cases import paired
from tests.faults.crashing import alive, wait_until
from tests.faults.warm_starts import StartedProcess, warm_interpreter
from tests.hub_server import Hub, running, use

pq = pytest.importorskip("pyarrow.parquet")
DatasetCard = pytest.importorskip("huggingface_hub").DatasetCard
dataset_card = pytest.importorskip("dagster_dataops.library.export.dataset_card")
push = pytest.importorskip("dagster_dataops.library.export.hub_push")

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # of its upload
RECORDS = [{"text": f"text {n}", "n": n, "label": ["no", "yes"][n % 2]} for n in range(3000)]


@data_register("data.hub_tests")
def secretive(record, api_key="", url="", words="", names=(), limits=None, pattern=""):
    return record


@pytest.fixture(autouse=True)
def hub(monkeypatch):
    with running() as found:
        use(found, monkeypatch)
        monkeypatch.setattr(push, "_BACKOFF", Backoff(0.0, 0.0))
        yield found


def exported(place: Path, records=RECORDS, **options: Any) -> Path:
    options = {"repo": "org/name", "shard_bytes": 20_000, **options}
    return Path(data.export.HuggingFaceHub(place / "pushed", **options)(records))


def pushed_rows(hub: Hub, split: str = "train") -> list[dict[str, Any]]:
    files = hub.files("org/name")
    shards = [files[name] for name in sorted(files) if name.startswith(f"data/{split}-")]
    return [row for one in shards for row in pq.read_table(io.BytesIO(one)).to_pylist()]


def uploads(hub: Hub) -> list[str]:
    return [path for method, path in hub.calls if method == "PUT"]


def commits(hub: Hub) -> int:
    return len(hub.repos["org/name"]) - 1  # without the one that made the dataset


def test_shards_and_a_card_are_pushed_in_one_commit_and_read_back(hub, tmp_path):
    folder = exported(tmp_path, features={"label": ["no", "yes"]})

    assert commits(hub) == 1
    assert "org/name" in hub.private
    names = [f"train-{n:05d}-of-00003.parquet" for n in range(3)]
    assert names_in(folder / "data") == names
    facts = json.loads((folder / "commit.json").read_bytes())
    assert facts == {"repo": "org/name", "revision": "main", "commit": hub.sha("org/name")}
    assert sorted(hub.files("org/name")) == [
        ".gitattributes",
        "README.md",
        *(f"data/{name}" for name in names),
    ]
    expected = [{**one, "label": n % 2} for n, one in enumerate(RECORDS)]
    assert pushed_rows(hub) == expected
    assert list(readers.read_huggingface("org/name")) == expected
    features = datasets.Dataset.from_parquet(str(folder / "data" / names[0])).features
    assert features["label"] == datasets.ClassLabel(names=["no", "yes"])


@pytest.mark.slow
def test_a_second_push_sends_only_what_differs(hub, tmp_path):
    exported(tmp_path)
    sent = len(uploads(hub))
    exported(tmp_path / "other")
    assert (commits(hub), len(uploads(hub))) == (1, sent)

    exported(tmp_path, RECORDS[:1000])
    assert commits(hub) == 2
    assert pushed_rows(hub) == RECORDS[:1000]
    exported(tmp_path / "test", RECORDS[:5], split="test")
    assert pushed_rows(hub) == RECORDS[:1000]
    assert pushed_rows(hub, "test") == RECORDS[:5]


@pytest.mark.slow
def test_files_of_others_and_their_card_stay(hub, tmp_path):
    card = "---\ntags:\n- mine\nlicense: mit\n---\n# My data\n\nWords.\n"
    hub.commit("org/name", {"README.md": card.encode(), "data/train-notes.txt": b"a", "x.py": b""})
    exported(tmp_path, RECORDS[:3], languages=["en"])
    files = hub.files("org/name")
    text = files["README.md"].decode()

    assert {"data/train-notes.txt", "x.py"} <= files.keys()
    assert "- mine" in text
    assert "license: mit" in text
    assert "# My data\n\nWords.\n" in text
    exported(tmp_path, RECORDS[:2], license="cc0-1.0")
    again = hub.files("org/name")["README.md"].decode()
    assert "license: cc0-1.0" in again
    assert again.count("dataops:begin train") == 1
    assert "2 records, made by" in again
    assert "3 records" not in again
    assert "- en" in again


def test_the_card_says_how_the_records_were_made(hub, tmp_path):
    with pipeline("corpus") as ppl:
        ppl.long = data.filters.TextLength(min_chars=7, input_key="text")
        ppl.named = data.shape.Add(values={"source": "a|b"})
        ppl.hub = data.export.HuggingFaceHub(tmp_path / "pushed", "org/name", license="mit")
    ppl.materialize(RECORDS[:200])

    text = hub.files("org/name")["README.md"].decode()
    assert "| long | filters.TextLength | 200 | 190 | 10 | 0 |" in text
    assert "| named | shape.Add | 190 | 190 | 0 | 0 |" in text
    assert "- long: low_text_len 10" in text or "- long: " in text
    assert "190 records, made by dagster-dataops" in text
    assert "- split: train\n    path: data/train-*.parquet" in text
    assert "size_categories:\n- n<1K" in text
    assert str(tmp_path) not in text
    assert hub.token not in text


@pytest.mark.slow
def test_the_card_has_options_without_secrets_and_private_paths(hub, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("text")
    with pipeline("corpus") as ppl:
        ppl.secretive = data.hub_tests.secretive(
            api_key="s3cr3t-value", url="https://me:s3cr3t-value@a.b/c", words=str(words),
            names=["a|b", "s3cr3t-value"], limits={"most": 3}, pattern="\\d+",
        )  # fmt: skip
        forms = ["/srv/me/words/", "file:///srv/me/a.txt", "~me/b.txt", "D:\\me\\c.txt", "/"]
        ppl.paths = data.hub_tests.secretive(names=forms)
        ppl.plain = data.hub_tests.secretive()
        ppl.hub = data.export.HuggingFaceHub(tmp_path / "pushed", "org/name")
    ppl.materialize(RECORDS[:5])

    text = hub.files("org/name")["README.md"].decode()
    rows = [line for line in text.splitlines() if line.startswith("| secretive | ")]
    assert rows[1:] == [
        "| secretive | url | https://(hidden)@a.b/c |",
        "| secretive | words | words.txt |",
        "| secretive | names | a\\|b, (hidden) |",
        "| secretive | limits | most: 3 |",
        "| secretive | pattern | \\d+ |",
    ]
    assert "s3cr3t" not in text
    assert str(tmp_path) not in text
    assert "| plain | api_key" not in text
    assert "| paths | names | words, a.txt, b.txt, c.txt, / |" in text


def test_the_card_has_the_checks_of_the_results(hub, tmp_path):
    with pipeline("corpus") as ppl:
        ppl.long = data.filters.TextLength(min_chars=7, input_key="text")
        ppl.hub = data.export.HuggingFaceHub(tmp_path / "pushed", "org/name")
    source = tmp_path / "texts.jsonl"
    source.write_text("".join(json.dumps(record) + "\n" for record in RECORDS[:200]))
    definitions = build_definitions(
        ppl,
        source=str(source),
        checks={
            "long": [
                checks.row_count(min=1, blocking=True),
                checks.row_count(min=500, name="many"),
                checks.no_nulls("text"),
            ]
        },
    )
    job = definitions.resolve_implicit_global_asset_job_def()
    instance = dg.DagsterInstance.ephemeral()
    job.execute_in_process(instance=instance, raise_on_error=False)

    lines = hub.files("org/name")["README.md"].decode().splitlines()
    start = lines.index("Checks of the results:") + 4
    assert lines[start : start + 3] == [
        "| long | many | ERROR | failed |",
        "| long | no_nulls_text | ERROR | passed |",
        "| long | row_count | ERROR | passed |",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "config"),
    paired(
        ["data", "sub", "./sub/", "/a"],
        [{}, {"config_name": "default"}, {"config_name": "b", "default": True}],
    ),
)
def test_a_card_that_would_hide_the_push_is_refused(hub, tmp_path, folder, config):
    configs = [{**config, "data_dir": folder}, {"config_name": "c", "data_dir": "x"}]
    card = f"---\nconfigs: {json.dumps(configs)}\n---\n".encode()
    hub.commit("org/name", {"README.md": card})
    with pytest.raises(DataOpsError, match=f"has data_dir {folder!r} .*remove data_dir"):
        exported(tmp_path, RECORDS[:3])
    assert hub.files("org/name") == {"README.md": card}
    assert not uploads(hub)

    configs[0]["data_dir"] = "./"
    hub.commit("org/name", {"README.md": f"---\nconfigs: {json.dumps(configs)}\n---\n".encode()})
    exported(tmp_path, RECORDS[:3])
    read = readers.read_huggingface("org/name", split="train")
    assert list(read) == RECORDS[:3]


@pytest.mark.parametrize("files", ["x.csv", ["x.csv"], [{"split": "train", "path": "x.csv"}]])
def test_files_of_other_splits_stay_in_the_card(hub, tmp_path, files):
    configs = [{"config_name": "default", "data_files": files}, {"config_name": "b"}]
    hub.commit("org/name", {"README.md": f"---\nconfigs: {json.dumps(configs)}\n---\n".encode()})
    exported(tmp_path, RECORDS[:3], split="test")
    card = DatasetCard(hub.files("org/name")["README.md"].decode())
    default, other = card.data.configs
    assert other == {"config_name": "b"}
    assert [one["split"] for one in default["data_files"]] == ["test", "train"]
    assert default["data_files"][1]["path"] in ("x.csv", ["x.csv"])
    assert card.data.size_categories is None


def test_splits_of_a_dataset_without_a_card_stay_in_it(hub, tmp_path):
    hub.commit("org/name", {"data/test-00000-of-00001.parquet": b"", "data/b-notes.txt": b""})
    exported(tmp_path, RECORDS[:3])
    card = DatasetCard(hub.files("org/name")["README.md"].decode())
    assert card.data.configs == [
        {
            "config_name": "default",
            "data_files": [
                {"split": "test", "path": "data/test-*.parquet"},
                {"split": "train", "path": "data/train-*.parquet"},
            ],
        }
    ]
    assert card.data.size_categories is None


def test_the_size_of_a_dataset_with_other_configurations_is_left_out(hub, tmp_path):
    card = '---\nconfigs: [{"config_name": "b", "data_files": "b.parquet"}]\n---\n'
    hub.commit("org/name", {"README.md": card.encode()})
    exported(tmp_path, RECORDS[:3])
    assert "size_categories" not in hub.files("org/name")["README.md"].decode()


@pytest.mark.slow
def test_the_size_is_that_of_all_splits(hub, tmp_path):
    for split, count in (("train", 900), ("test", 1200), ("train", 8100)):
        exported(tmp_path, [{"n": n} for n in range(count)], split=split)
        card = DatasetCard(hub.files("org/name")["README.md"].decode())
        sizes = {900: "n<1K", 1200: "1K<n<10K", 8100: "1K<n<10K"}
        assert card.data.size_categories == [sizes[count]]


@pytest.mark.parametrize(
    ("rows", "size"),
    [
        (0, "n<1K"),
        (999, "n<1K"),
        (1_000, "1K<n<10K"),
        (9_999, "1K<n<10K"),
        (10_000, "10K<n<100K"),
        (999_999_999, "100M<n<1B"),
        (10**9, "1B<n<10B"),
        (10**12 - 1, "100B<n<1T"),
        (10**12, "n>1T"),
        (10**15, "n>1T"),
    ],
)
def test_sizes_are_the_categories_of_the_hub(rows, size):
    assert dataset_card.size_of(rows) == size


@pytest.mark.slow
def test_a_card_says_that_steps_are_left_out(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset_card, "_MOST_STEPS", 2)
    for count in (2, 3):
        with pipeline(f"corpus{count}") as ppl:
            for number in range(count):
                ppl.add(f"step{number}", data.shape.Add(values={f"a{number}": 1}))
            ppl.hub = data.export.HuggingFaceHub(tmp_path / "pushed", "org/name")
        ppl.materialize(RECORDS[:3])
        text = hub.files("org/name")["README.md"].decode()
        assert "The last 2 steps are listed; those before are left out." in text
        assert f"| step{count - 1} |" in text
        assert f"| step{count - 3} |" not in text


def test_signatures_in_addresses_are_not_told():
    error = ValueError("403 for https://store/a?X-Signature=abc: denied")
    told = push.HubDataset("org/name", "main", private=True)._refused(error)
    assert "abc" not in str(told)
    assert "https://store/a?..." in str(told)


@pytest.mark.slow
def test_another_commit_that_comes_first_is_kept(hub, tmp_path):
    hub.commit("org/name", {"README.md": b""})
    others = iter([b"1", b"2"])

    def moved(method: str, path: str) -> None:
        other = next(others, None) if "/commit/" in path else None
        if other:
            hub.commit("org/name", {**hub.files("org/name"), "other": other})

    hub.fault = moved
    exported(tmp_path)
    assert hub.files("org/name")["other"] == b"2"
    assert pushed_rows(hub) == RECORDS


@pytest.mark.slow
@pytest.mark.parametrize("call", ["/preupload/", "/batch", "/lfs/", "/commit/", "/tree/"])
def test_a_passing_outage_is_outlasted_and_a_long_one_keeps_the_earlier_data(hub, tmp_path, call):
    exported(tmp_path, RECORDS[:10])
    hub.fault = lambda _, path: 403 if call in path else None
    with pytest.raises(DataOpsError, match="HF_TOKEN"):
        exported(tmp_path)
    assert pushed_rows(hub) == RECORDS[:10]
    assert pq.read_table(tmp_path / "pushed" / "data").num_rows == 10
    failures = iter([503])
    hub.fault = lambda _, path: next(failures, None) if call in path else None
    exported(tmp_path)
    assert pushed_rows(hub) == RECORDS


def broken(handler: Any) -> None:
    handler.close_connection = True


@pytest.mark.parametrize(
    ("call", "failure"), paired(["/repos/create", "/commit/"], [408, 429, 500, 520, broken])
)
def test_a_call_that_fails_for_a_moment_is_made_again(hub, tmp_path, call, failure):
    failures = iter([failure])
    hub.fault = lambda _, path: next(failures, None) if call in path else None
    exported(tmp_path, RECORDS[:3])
    assert commits(hub) == 1
    assert pushed_rows(hub) == RECORDS[:3]


def test_a_card_that_cannot_be_read_is_kept(hub, tmp_path):
    hub.commit("org/name", {"README.md": b"# My data"})
    hub.fault = lambda _, path: 404 if path.endswith("/README.md") else None
    with pytest.raises(DataOpsError, match="push the dataset to the Hub"):
        exported(tmp_path)
    assert hub.files("org/name") == {"README.md": b"# My data"}


def test_a_wrong_token_is_told_without_the_token(hub, tmp_path, monkeypatch):
    for token in ("hf_wrong", ""):
        monkeypatch.setenv("HF_TOKEN", token)
        with pytest.raises(DataOpsError, match="set HF_TOKEN to a token that may write") as caught:
            exported(tmp_path)
        assert "hf_wrong" not in str(caught.value)
    assert "org/name" not in hub.repos
    assert names_in(tmp_path) == ["results"]


WARM = (
    "dagster_dataops.library.export.hub_push",
    "dagster_dataops.pipelines.local_run",
    "huggingface_hub.hf_api",
    "pytest",
    "tests.hub_server",
)
CODE = """
import os, sys
from pathlib import Path

import pytest
from tests.hub_server import Hub, use
from dagster_dataops import JsonlDataset, config, data, pipeline

hub = Hub()
hub.endpoint = os.environ["HF_ENDPOINT"]
use(hub, pytest.MonkeyPatch())
config.data_process_path = sys.argv[1]
with pipeline("corpus") as ppl:
    ppl.clean = data.text.Normalize()
    ppl.hub = data.export.HuggingFaceHub("pushed", "org/name", shard_bytes=20_000)
ppl.materialize(Path(sys.argv[1]) / "input.jsonl")
"""


def killing(
    call: str, number: int, hub: Hub, process: list[StartedProcess], *, done: bool
) -> Callable[[str, str], Any]:
    """Return a fault that kills the process in a call, before it gets the answer."""
    calls = iter(range(1, 1000))

    def killed(handler: Any) -> None:
        hub.fault = lambda *_: None
        if done:
            handler.reply = handler.raw = lambda *_: None  # nobody hears of it
            handler.again()
        os.kill(process[0].pid, signal.SIGKILL)
        wait_until(lambda: not alive({process[0].pid}), 60, "the end of the process")

    def fault(_: str, path: str) -> Any:
        return killed if call in path and next(calls) == number else None

    return fault


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "number", "done"),
    [
        ("/commit/", 1, True),
        ("/repos/create", 1, True),
        ("/preupload/", 2, True),
        ("/lfs/", 1, False),
        ("/lfs/", 3, True),
        ("/commit/", 1, False),
    ],
)
def test_a_push_that_is_killed_is_finished_by_the_next(hub, tmp_path, call, number, done):
    lines = [json.dumps(one) + "\n" for one in RECORDS]
    (tmp_path / "input.jsonl").write_text("".join(lines))
    script = tmp_path / "script.py"
    script.write_text(CODE)

    def start() -> StartedProcess:
        return warm_interpreter(*WARM).start(
            [str(script), str(tmp_path)],
            2,
            folder=tmp_path,
            environment={**os.environ, "HF_ENDPOINT": hub.endpoint},
        )

    process: list[StartedProcess] = []
    hub.fault = killing(call, number, hub, process, done=done)
    process.append(start())
    assert process[0].wait() == -signal.SIGKILL
    assert start().wait() == 0

    assert pushed_rows(hub) == RECORDS
    assert commits(hub) == 1
    assert len(uploads(hub)) <= 4  # three shards, and the one in progress
    assert pq.read_table(tmp_path / "pushed" / "data").num_rows == len(RECORDS)
    assert not [name for name in names_in(tmp_path) if name.startswith(".dataops-export")]


@pytest.mark.parametrize(
    "options", [{"repo": "name"}, {"repo": "a/b/c"}, {"split": "a b"}, {"features": {"a": []}}]
)
def test_other_options_are_refused(options):
    with pytest.raises(DefinitionError):
        data.export.HuggingFaceHub("x", **{"repo": "org/name", **options})


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"dagster-dataops\[hub\]"):
        data.export.HuggingFaceHub("x", "org/name")
