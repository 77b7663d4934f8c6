"""Tests of secrets given to operators: in no file of the product, no log, nowhere in Dagster."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dagster_dataops import config
from dagster_dataops.data import data_register
from dagster_dataops.errors import RecordError, RunStoppedError
from dagster_dataops.operators.secrets.secret_names import is_secret
from tests.execution.helpers import MODES, TINY, cut_by, node, run, second_thread, write_input
from tests.nodes import existing

_SECRET = "sk-hunter2-do-not-write-this-down"  # noqa: S105 - a test's
_RECORDS = [{"n": n} for n in range(20)]


def _ask(record, api_key, password):
    assert api_key == os.environ["SERVICE_TOKEN"] == password
    if record["n"] % 3 == 1:
        raise ConnectionError(f"record {record['n']} was refused")
    return record


@data_register("data.secrets", _max_workers=2)
def ask(record, api_key="", password="", input_key="n"):
    return _ask(record, api_key, password)


@data_register("data.secrets", _max_workers=2)
async def ask_async(record, api_key="", password="", input_key="n"):
    return _ask(record, api_key, password)


def _holding_it(folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [path for path in files if _SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize("mode", [*MODES, pytest.param("spawned", marks=pytest.mark.slow)])
def test_no_file_and_no_log_line_holds_an_operators_secret(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    mode: str,
) -> None:
    """Checked during a run and after it."""
    monkeypatch.setenv("SERVICE_TOKEN", _SECRET)
    caplog.set_level(logging.DEBUG)
    dataset = write_input(tmp_path / "input.jsonl", _RECORDS)
    folder = node(tmp_path / "root")
    options = {"api_key": _SECRET, "password": _SECRET}
    how = {"_concurrency_mode": "process" if mode == "spawned" else mode}
    operator = ask_async(**options) if mode == "async" else ask(**options, **how)

    def stop() -> str | None:
        found = existing(folder.checkpoints)
        return "told to" if found and found[0].table.records else None

    with second_thread(mode == "spawned"), monkeypatch.context() as patch:
        cut_by(patch, TINY)
        with pytest.raises(RunStoppedError) as caught:
            run(operator, dataset, folder, should_stop=stop)
        assert folder.checkpoints.exists()
        assert _holding_it(tmp_path) == []
        report = run(operator, dataset, folder)
    assert report.manifest.failed == 7
    assert _holding_it(tmp_path) == []
    said = [str(caught.value), caplog.text, *capfd.readouterr(), str(report)]
    assert all(_SECRET not in text for text in said)


def test_the_error_of_a_refused_record_holds_no_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", _SECRET)
    operator = ask(
        api_key=_SECRET, password=_SECRET, _concurrency_mode="single", _ignore_errors=False
    )
    with config.temporary(data_process_path=tmp_path), pytest.raises(RecordError) as caught:
        operator(_RECORDS)
    assert _SECRET not in str(caught.value)


def test_the_text_of_an_operator_hides_its_secrets() -> None:
    assert _SECRET not in repr(ask(api_key=_SECRET))


_KNOWN = ["api_key", "hf_token", "client_secret", "db_password", "private_key", "credentials"]
_UNKNOWN = ["secrets", "passphrase", "auth_key", "ssh_key", "encryption_key", "openai_key"]
_UNKNOWN += ["accessToken", "clientSecret", "dbPassword"]
_UNKNOWN += ["authorization", "Authorization", "auth", "cookie", "database_url", "dsn", "jwt"]
_UNKNOWN += ["api_keys", "tokens", "account_key", "subscription_key", "db_pass", "x-api-key"]
_ORDINARY = ["input_key", "output_key", "key", "max_tokens", "num_tokens", "tokenizer", "keys"]
_ORDINARY += ["tokens_per_chunk", "token_count", "author", "authors", "license_key", "eos_token"]
_ORDINARY += ["first_pass", "url", "base_url", "text"]


_NESTED = """
import logging, os, sys
from pathlib import Path
import dagster as dg
from dagster_dataops import DataOpsResource, build_definitions, data_register, pipeline

secret = os.environ["SERVICE_TOKEN"]

@data_register("data.vault", _concurrency_mode="single")
def ask(record, api_key="", headers=None, authorization="", database_url="", api_keys=(),
        model=None, auth=None, pairs=(), url="", login=None, tokens=3):
    if record["n"] % 2:
        raise ValueError(f"refused {record['n']}")
    return record

class Model:
    def __init__(self, key):
        self.api_key = key
    def __repr__(self):
        return f"Model({self.api_key!r})"

class Picky(data_register.new_group("vault")):
    def __init__(self, model, **kwargs):
        super().__init__(**kwargs)
        raise KeyError(f"no such model: {model}")
    def forward(self, record):
        return record

given = {
    "api_key": secret,
    "headers": {"Authorization": f"Bearer {secret}", "x-api-key": secret},
    "authorization": secret,
    "database_url": f"postgres://u:{secret}@host/db",
    "api_keys": [secret],
    "model": {"client": {"api_key": secret}, "made": Model(secret)},
    "auth": ("user", secret),
    "pairs": [("x-api-key", secret)],
    "url": f"https://u:{secret}@host/path?api_key={secret}",
    "login": {"db_pass": secret},
}
with pipeline("docs") as ppl:
    ppl.asked = ask(**given)
    ppl.again = ask(headers=dict(given["headers"]), model=Model(secret))
said = [repr(node.operator) for node in ppl.graph.ordered()]
for refused in (lambda: Picky(model=given["model"]), lambda: ask(api_keys=secret, haeders=1),
                lambda: Picky(given["headers"])):
    try:
        refused()
    except Exception as error:
        said += [repr(error), repr(error.__cause__)]
        if not error.__suppress_context__:
            said.append(repr(error.__context__))
defs = build_definitions(
    ppl, source="input.jsonl", resource=DataOpsResource(root=str(Path("root").absolute())),
    schedule="0 2 * * *",
)
storage = Path("storage")
storage.mkdir()
with dg.DagsterInstance.local_temp(str(storage.absolute())) as instance:
    job = defs.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=instance)
    assert result.success
    said += [repr(entry) for entry in instance.all_logs(result.run_id)]
    said += [repr(job.get_job_snapshot()), repr(defs.resolve_all_asset_specs())]
for text in said:
    if secret in text:
        print("found in", text[:500].replace(secret, "..."))
print("searched", len(said) > 10)
"""


@pytest.mark.slow
def test_dagster_keeps_no_secret_that_is_an_option_or_inside_of_one(
    run_python: Callable[..., str], tmp_path: Path
) -> None:
    write_input(tmp_path / "input.jsonl", _RECORDS)
    assert run_python(_NESTED, SERVICE_TOKEN=_SECRET) == "searched True\n"
    assert _holding_it(tmp_path / "root") == []
    assert _holding_it(tmp_path / "storage") == []


def test_names_of_secrets_are_known_and_ordinary_options_are_shown() -> None:
    assert [name for name in [*_KNOWN, *_UNKNOWN] if not is_secret(name)] == []
    assert [name for name in _ORDINARY if is_secret(name)] == []
