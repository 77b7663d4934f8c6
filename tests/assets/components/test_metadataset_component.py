"""Tests of metadatasets in a defs.yaml."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster.components.testing.utils import DefsFolderSandbox, create_defs_folder_sandbox

from dagster_dataops.errors import DefinitionError
from tests.assets.component_project import WARNED_OF
from tests.training.cooking.mixtures import dataset, written

pytestmark = WARNED_OF

COOKERS = """
from tests.training.cooking.mixtures import cook_text

cookers = [cook_text]
"""
BLEND = "  train:\n    blend: [{path: a}, {path: b}]\n"


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DefsFolderSandbox]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with create_defs_folder_sandbox() as made:
        folder = made.defs_folder_path / "mixed"
        folder.mkdir(parents=True)
        (folder / "cookers.py").write_text(COOKERS)
        dataset(folder / "a", 4)
        dataset(folder / "b", 4)
        written(folder, BLEND)
        yield made


def write(sandbox: DefsFolderSandbox, attributes: str) -> None:
    text = f"type: dagster_dataops.MetadatasetComponent\nattributes: {{{attributes}}}\n"
    (sandbox.defs_folder_path / "mixed" / "defs.yaml").write_text(text)


def test_the_records_are_an_asset_and_the_datasets_external_ones(
    sandbox: DefsFolderSandbox,
) -> None:
    write(sandbox, "path: mix.yaml, modules: [cookers.py], take: 10, seed: 1, name: mixed")

    with sandbox.build_all_defs() as definitions:
        keys = {key.path[-1]: key for key in definitions.resolve_asset_graph().get_all_asset_keys()}

    assert set(keys) == {"mixed", "a", "b"}
    assert keys["mixed"] == dg.AssetKey("mixed")
    assert keys["a"].path[0] == "datasets"


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ("path: mix.yaml, modules: [cookers.py]", "never ends"),
        ("path: mix.yaml, modules: [cookers.py], cookers: others, take: 1", "others"),
        ("path: nowhere.yaml, modules: [cookers.py], take: 1", "nowhere.yaml"),
    ],
)
def test_a_mistake_is_named(sandbox: DefsFolderSandbox, attributes: str, words: str) -> None:
    write(sandbox, attributes)

    folder = sandbox.defs_folder_path / "mixed"
    with sandbox.build_component_tree() as tree:
        component = tree.load_component(folder)
        with pytest.raises(DefinitionError, match=words):
            component.build_defs(tree.load_context.for_path(folder))
