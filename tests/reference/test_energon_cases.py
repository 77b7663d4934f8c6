"""Crude data gives the results that were observed on Energon or decided, case by case.

The cases and their data are no part of the package.
"""

import functools
import json
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import dagster_dataops
from dagster_dataops import (
    Cooker,
    FileStoreCachePool,
    NoCachePool,
    crude,
    errors,
    file_store,
    restore_record,
)

_ERRORS = {
    "duplicate": errors.DuplicateKeyError,
    "no_cooker": errors.CookerError,
    "metadataset": errors.MetadatasetError,
    "missing": errors.AuxFileMissingError,
}


@functools.cache
def golden() -> dict[str, Any]:
    places = [parent / "shared" / "research" for parent in Path(__file__).resolve().parents]
    paths = [place / "energon_torchdata_golden_public.json" for place in places]
    found = [json.loads(path.read_text()) for path in paths if path.exists()]
    return found[0] if found else {"cases": [], "functions": {}, "make_data.py": ""}


@functools.cache
def functions() -> dict[str, Any]:
    exported = ("TextSample", "basic_sample_keys", "cooker")
    names = {"json": json, **{name: getattr(dagster_dataops, name) for name in exported}}
    for text in golden()["functions"].values():
        exec(text, names)  # noqa: S102 - the cases define them so
    return names


class Runner:
    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder, self.cache = folder, cache

    def run(self, case: dict[str, Any]) -> Any:
        return getattr(self, f"run_{case['kind']}")(case["given"])

    def pool(self, given: dict[str, Any]) -> Any:
        if given.get("pool") == "file":
            return FileStoreCachePool(parent_cache_dir=self.cache, num_workers=1)
        return NoCachePool()

    def stream(self, given: dict[str, Any], **options: Any) -> Any:
        wanted = given.get("cookers") or [["cook_plain", None]]
        cookers = [Cooker(functions()[name], has_subflavors=has) for name, has in wanted]
        return crude(self.folder / given["path"], **options).cook(cookers, self.pool(given))

    def run_crude(self, given: dict[str, Any]) -> Any:
        stream = crude(self.folder / given["path"])
        if given.get("show") == "count":
            return len(list(stream))
        if given.get("show") == "keys":
            return [sample["__key__"] for sample in stream]
        sample = next(iter(stream))
        parts = sorted(name for name in sample if not name.startswith("__"))
        return {
            "key": sample["__key__"],
            "shard": sample["__shard__"],
            "keys": sorted(sample),
            "txt": sample["txt"].decode(),
            "types": [type(sample[name]).__name__ for name in parts],
            "subflavors": sample["__subflavors__"],
            "sources": [
                [one.shard_name, one.index, one.file_names] for one in sample["__sources__"]
            ],
        }

    def run_cook(self, given: dict[str, Any]) -> Any:
        if given.get("errors"):
            return self._failed(given)
        texts = [one["text"] for one in islice(self.stream(given), given.get("limit"))]
        if given.get("parse"):
            return json.loads(texts[0])
        match given.get("show"):
            case "first":
                return texts[: given["n"]]
            case "ends":
                return [texts[0], texts[-1], len(texts)]
            case "counts":
                return dict(Counter(texts))
        return texts

    def _failed(self, given: dict[str, Any]) -> dict[str, Any]:
        quarantine = self.cache / "failed.jsonl"
        quarantine.parent.mkdir(exist_ok=True)
        stream = self.stream(given).and_return(on_error="quarantine", quarantine=quarantine)
        records = list(stream)
        failed = [json.loads(line) for line in quarantine.read_text().splitlines()]
        says = all(word in json.dumps(one) for one in failed for word in given.get("says", ()))
        key = given.get("key", '"a000')
        named = all(key in json.dumps(one) for one in failed)
        return {"records": len(records), "errors": len(failed), "says": says, "key": named}

    def run_choice(self, given: dict[str, Any]) -> Any:
        found = []
        for one in given["lists"]:
            stream = self.stream({"path": given["path"], "cookers": one})
            found.append(next(iter(stream))["text"])
        return found

    def run_sources(self, given: dict[str, Any]) -> Any:
        record = list(islice(self.stream(given), given["at"] + 1))[-1]
        rows = []
        for one in record["__sources__"]:
            shard = one.shard_name.removeprefix(f"{self.folder}/")
            dataset = Path(one.dataset_path).relative_to(self.folder)
            rows.append([str(dataset), shard, one.index, one.file_names])
        return rows

    def run_same(self, given: dict[str, Any]) -> Any:
        found = []
        for options in given["pair"]:
            stream = self.stream(given, **({"seed": options["seed"]} if "seed" in options else {}))
            if options.get("workers"):
                stream = stream.workers(options["workers"])
            found.append([one["text"] for one in islice(stream, given.get("limit"))])
        return found[0] == found[1]

    def packs(self, given: dict[str, Any]) -> Any:
        pack = functions()[given["pack"]]
        return self.stream(given).pack_windows(given["size"], functions()[given["select"]], pack)

    def run_pack(self, given: dict[str, Any]) -> Any:
        return [one["text"] for one in self.packs(given)]

    def run_pack_resumed(self, given: dict[str, Any]) -> Any:
        whole = self.run_pack(given)
        begun = self.packs(given).and_return()
        head = [one["text"] for one in islice(begun, given["at"])]
        resumed = self.packs(given).and_return()
        resumed.load_state_dict(json.loads(json.dumps(begun.state_dict())))
        rest = [one["text"] for one in resumed]
        return [head + rest == whole, len(rest), rest[0]]

    def run_restore(self, given: dict[str, Any]) -> Any:
        packs = list(self.packs(given))
        wanted = packs[given["at"]]
        return [
            wanted["text"],
            restore_record(self.packs(given), wanted["__restore_key__"])["text"],
        ]

    def run_lazy(self, given: dict[str, Any]) -> Any:
        aux = {"path": "aux_mds.yaml", "cookers": [["cook_lazy", None]], **given}
        lazy = [one["secondary_text"] for one in self.stream(aux)]
        texts = [one.get().decode() for one in lazy]
        return [[one.get().decode() for one in lazy] == texts, texts]

    def run_store(self, given: dict[str, Any]) -> Any:
        store = file_store(given["store"], self.folder)
        return [store.get(name).decode() for name in given["names"]]


_KINDS = {name.removeprefix("run_") for name in vars(Runner) if name.startswith("run_")}
_CASES = [case for case in golden()["cases"] if case["kind"] in _KINDS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cases")
    script = made.with_suffix(".py")
    script.write_text(golden()["make_data.py"])
    subprocess.run([sys.executable, script, made], check=True)
    return made


@pytest.mark.skipif(not _CASES, reason="the folder with the cases is not there")
@pytest.mark.parametrize("case", [pytest.param(one, id=one["id"]) for one in _CASES])
def test_the_result_is_as_observed(
    case: dict[str, Any], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "indices"))
    functions()["cook_plain"] = cook_plain
    runner, expected = Runner(folder, tmp_path / "cache"), case["expected"]
    if isinstance(expected, dict) and "raises" in expected:
        with pytest.raises(_ERRORS[expected["raises"]]) as caught:
            runner.run(case)
        assert all(word in str(caught.value) for word in expected["says"])
    elif isinstance(expected, dict) and "between" in expected:
        found = runner.run(case)
        for name, (least, most) in expected["between"].items():
            assert least <= found[name] <= most
    else:
        assert runner.run(case) == expected


def cook_plain(sample: dict[str, Any]) -> Any:
    """Return the text alone."""
    made = functions()
    return made["TextSample"](**made["basic_sample_keys"](sample), text=sample["txt"].decode())
