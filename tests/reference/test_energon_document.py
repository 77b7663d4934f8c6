"""Tests of every sample of Energon's document about crude data, in its intended form, as scripts.

Only the import lines differ: ``megatron.energon`` becomes ``dagster_dataops``. Names of parts are
bytes in the samples, and file names are texts, so they are decoded.
"""

import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Run = Callable[[str], str]

DATASET = """
__module__: megatron.energon
__class__: CrudeWebdataset
subflavors:
  example_crude_selector: foobar
"""
COOKERS = """
from typing import TypeAlias

from dagster_dataops import Cooker, DefaultTaskEncoder, TextSample, basic_sample_keys, crude

TextRawBatch: TypeAlias = list
TextBatch: TypeAlias = list

def cook_text(sample: dict) -> TextSample:
    return TextSample(
        **basic_sample_keys(sample),
        text=f">{sample['txt'].decode()}<",
    )

class MyTaskEncoder(DefaultTaskEncoder[TextSample, TextSample, TextRawBatch, TextBatch]):
    cookers = [
        Cooker(cook_text, has_subflavors={"example_crude_selector": "foobar"}),
        Cooker(lambda sample: TextSample(**basic_sample_keys(sample), text="another cooker")),
    ]
"""
READ_COOKED = """
for record in crude("my_dataset").cook(MyTaskEncoder.cookers):
    print(record["__key__"], record.text, record["__restore_key__"][1:], record["__subflavors__"])
print(next(iter(crude("aux_ds123").cook(MyTaskEncoder.cookers))).text)
"""
READ_ENCODED = """
from dagster_dataops import get_train_dataset

dataset = get_train_dataset("my_dataset", task_encoder=MyTaskEncoder(), batch_size=2, repeat=False)
print([[sample["text"] for sample in batch] for batch in dataset])
"""
AS_ASSETS = """
from dagster_dataops import build_definitions, cook, data, pipeline

with pipeline("captions") as ppl:
    ppl.cooked = cook(MyTaskEncoder.cookers, _max_workers=2)
    ppl.unique = data.dedup.Exact(input_key="text")

defs = build_definitions(ppl, source=crude("my_dataset"))
run = defs.resolve_implicit_global_asset_job_def().execute_in_process()
print([record["text"] for record in run.output_for_node("captions__unique")])
"""
METADATASET = """
__module__: {module}
__class__: MetadatasetV2
splits:
  train:
    path: ./my_pimary_ds
    aux:
      foo_bar_source: ./aux_ds123
      fs_source: filesystem://./images
      fs_source_abs: filesystem://{folder}/images
      remote_source: file://{folder}/aux_ds123
    subflavors:
      crude_type: my_dual_aux_example
"""
AUXILIARY = """
from dagster_dataops import FileStore, TextSample, basic_sample_keys, metadataset

def cook_text(
    sample: dict,
    foo_bar_source: FileStore,
    fs_source: FileStore,
    fs_source_abs: FileStore,
    remote_source: FileStore,
) -> TextSample:
    name = sample["add_txt_fname"].decode()
    additional_text = foo_bar_source.get(name, sample)
    assert fs_source.get("000.bin") == fs_source_abs.get("000.bin") == bytes(range(256))
    assert remote_source.get(name) == additional_text
    return TextSample(
        **basic_sample_keys(sample),
        text=f"{sample['txt'].decode()} + {additional_text.decode()}",
    )

for record in metadataset("metadataset.yaml", cookers=[cook_text]):
    print(record.text, [source.file_names for source in record["__sources__"]])
"""
WITHOUT_SAMPLE = """
from dagster_dataops import Cooker, FileStore, TextSample, basic_sample_keys, crude

def cook_text(sample: dict, foo_bar_source: FileStore) -> TextSample:
    additional_text = foo_bar_source.get(sample["add_txt_fname"].decode())
    return TextSample(
        **basic_sample_keys(sample),
        text=f"{sample['txt'].decode()} + {additional_text.decode()}",
    )

record = next(iter(crude("my_pimary_ds", aux={"foo_bar_source": "aux_ds123"}).cook(cook_text)))
print(record.text, len(record["__sources__"]))
"""
PRIMARY = """
from dagster_dataops import FileStore, TextSample, basic_sample_keys, cooker, crude

@cooker(need_primary=True)
def cook_text(sample: dict, primary: FileStore, foo_bar_source: FileStore) -> TextSample:
    own, other = primary.get(".txt"), primary.get("002.txt")
    return TextSample(**basic_sample_keys(sample), text=f"{own.decode()}, {other.decode()}")

for record in crude("my_pimary_ds", aux={"foo_bar_source": "aux_ds123"}).cook([cook_text]):
    print(record.text)
"""
CACHED = """
from typing import List

from dagster_dataops import (
    CachePool, DefaultTaskEncoder, FileStore, FileStoreCachePool, Lazy, Sample, TextSample,
    basic_sample_keys, cooker, edataclass, get_savable_loader, get_train_dataset, stateless,
)

@edataclass
class LazyTextSample(Sample):
    text: str
    secondary_text: Lazy[bytes]

@cooker(need_cache=True)
def cook_text(sample: dict, foo_bar_source: FileStore, cache: CachePool) -> LazyTextSample:
    additional_text = cache.get_lazy(foo_bar_source, sample["add_txt_fname"].decode())
    return LazyTextSample(
        **basic_sample_keys(sample),
        text=sample["txt"].decode(),
        secondary_text=additional_text,
    )

class Packing(DefaultTaskEncoder):
    cookers = [cook_text]

    def select_samples_to_pack(self, samples: List[LazyTextSample]) -> List[List[LazyTextSample]]:
        return [samples[at : at + 2] for at in range(0, len(samples), 2)]

    @stateless
    def pack_selected_samples(self, samples: List[LazyTextSample]) -> TextSample:
        secondary_text = samples[0].secondary_text.get(samples[0])
        return TextSample.derive_from(
            samples[0],
            text=samples[0].text + "|" + secondary_text.decode(),
        )

my_ds = get_train_dataset(
    "cached.yaml", task_encoder=Packing(), packing_buffer_size=4, repeat=False
)
"""
LOADED = """
if __name__ == "__main__":
    loader = get_savable_loader(
        my_ds,
        num_workers={workers},
        cache_pool=FileStoreCachePool(parent_cache_dir="cache", num_workers=1),
    )
    for pack in loader:
        print(pack.text, [source.file_names for source in pack["__sources__"]])
"""
PACKED_AS_ASSETS = """
from dagster_dataops import metadataset

ppl = Packing().pipeline("train", packing_buffer_size=4)
print([pack["text"] for pack in ppl(metadataset("cached.yaml"))])
"""
BY_HAND = """
from dagster_dataops import data, data_register

@data_register("data.train", window=4)
class PackBySize:
    def select_samples_to_pack(self, samples: list[dict]) -> list[list[dict]]:
        return [samples[:1], samples[1:]]

    def pack_selected_samples(self, samples: list[dict]) -> dict:
        return {"numbers": [sample["n"] for sample in samples]}

print(PackBySize()([{"n": n} for n in range(6)]))
"""
WHY = """
from dagster_dataops import restore_record, trace

ppl = Packing().pipeline("train", packing_buffer_size=4)
report = ppl.materialize(metadataset("cached.yaml"))["packed"]
pack = report.dataset.read()[1]
for file in trace(report.dataset.path, line=2).files:
    content = (Path(file.dataset) / file.shard).read_bytes()
    print(file.name, content[file.first : file.end].decode())
print(restore_record(my_ds, pack["__restore_key__"])["text"] == pack["text"])
"""


def write_dataset(folder: Path, files: Mapping[str, str]) -> None:
    """Write a dataset with one shard, as Energon's ``prepare`` leaves it, without its index."""
    (folder / ".nv-meta").mkdir(parents=True)
    (folder / ".nv-meta" / "dataset.yaml").write_text(DATASET.split("subflavors", maxsplit=1)[0])
    (folder / ".nv-meta" / ".info.json").write_text(json.dumps({"shard_counts": {"s-0.tar": 5}}))
    split = "split_parts:\n  train:\n    - s-0.tar\n  val: []\n"
    (folder / ".nv-meta" / "split.yaml").write_text(split)
    with tarfile.open(folder / "s-0.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, text in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(text)
            tar.addfile(about, io.BytesIO(text.encode()))


@pytest.fixture
def run_here(run_python: Run, tmp_path: Path) -> Run:
    write_dataset(tmp_path / "my_dataset", {f"{n:03}.txt": f"text {n}" for n in range(3)})
    (tmp_path / "my_dataset" / ".nv-meta" / "dataset.yaml").write_text(DATASET)
    own = {}
    for n in range(4):
        own |= {f"{n:03}.txt": f"text {n}", f"{n:03}.add_txt_fname": f"more{n}.txt"}
    write_dataset(tmp_path / "my_pimary_ds", own)
    write_dataset(tmp_path / "aux_ds123", {f"more{n}.txt": f"more {n}" for n in range(4)})
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "000.bin").write_bytes(bytes(range(256)))
    head = (
        "import os\nfrom pathlib import Path\nfrom dagster_dataops import config, metadataset\n"
        f"os.environ['XDG_CACHE_HOME'] = {str(tmp_path / 'indices')!r}\n"
        f"config.data_process_path = {str(tmp_path / 'results')!r}\n"
        f"os.chdir({str(tmp_path)!r})\n"
    )
    cached = METADATASET.format(module="dagster_dataops", folder=tmp_path)
    lines = [
        line for line in cached.splitlines(keepends=True) if "_source" not in line or "foo" in line
    ]
    (tmp_path / "cached.yaml").write_text("".join(lines))
    return lambda code: run_python(head + code)


def test_a_cooker_makes_texts_of_crude_samples(run_here: Run) -> None:
    *lines, other = run_here(COOKERS + READ_COOKED).splitlines()

    flavors = "{'example_crude_selector': 'foobar'}"
    assert lines == [f"{n:03} >text {n}< ['s-0.tar', '{n:03}'] {flavors}" for n in range(3)]
    assert other == "another cooker"


def test_a_task_encoder_batches_the_texts(run_here: Run) -> None:
    assert run_here(COOKERS + READ_ENCODED) == "[['>text 0<', '>text 1<'], ['>text 2<']]\n"


@pytest.mark.slow
def test_the_cookers_run_as_assets(run_here: Run) -> None:
    printed = run_here(COOKERS + AS_ASSETS).splitlines()

    assert printed[-1] == "['>text 0<', '>text 1<', '>text 2<']"


@pytest.mark.parametrize("module", ["megatron.energon", "dagster_dataops"])
def test_a_cooker_gets_each_auxiliary_store_of_the_metadataset(
    run_here: Run, tmp_path: Path, module: str
) -> None:
    text = METADATASET.format(module=module, folder=tmp_path)
    (tmp_path / "metadataset.yaml").write_text(text)

    printed = run_here(AUXILIARY).splitlines()

    names = "[['{0:03}.txt', '{0:03}.add_txt_fname'], ['more{0}.txt']]"
    assert printed == [f"text {n} + more {n} {names.format(n)}" for n in range(4)]


def test_a_file_that_is_read_without_the_sample_is_no_source_of_it(run_here: Run) -> None:
    assert run_here(WITHOUT_SAMPLE) == "text 0 + more 0 1\n"


@pytest.mark.slow
def test_a_cooker_reads_its_own_dataset_by_name(run_here: Run) -> None:
    assert run_here(PRIMARY).splitlines() == [f"text {n}, text 2" for n in range(4)]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_lazy_files_of_a_cache_pool_are_read_where_samples_are_packed(
    run_here: Run, tmp_path: Path, workers: int
) -> None:
    printed = run_here(CACHED + LOADED.format(workers=workers)).splitlines()

    names = [
        [["000.txt", "000.add_txt_fname"], ["more0.txt"], ["001.txt", "001.add_txt_fname"]],
        [["002.txt", "002.add_txt_fname"], ["more2.txt"], ["003.txt", "003.add_txt_fname"]],
    ]
    assert printed == [f"text {2 * n}|more {2 * n} {names[n]}" for n in range(2)]
    assert (tmp_path / "cache").is_dir()


@pytest.mark.slow
def test_packs_are_assets_too(run_here: Run) -> None:
    assert run_here(CACHED + PACKED_AS_ASSETS) == "['text 0|more 0', 'text 2|more 2']\n"


def test_an_operator_packs_windows_by_hand(run_here: Run) -> None:
    printed = run_here(BY_HAND)

    assert printed == str([{"numbers": one} for one in ([0], [1, 2, 3], [4], [5])]) + "\n"


@pytest.mark.slow
def test_a_pack_is_explained_and_made_again(run_here: Run) -> None:
    *files, same = run_here(CACHED + WHY).splitlines()

    own = [
        line
        for n in (2, 3)
        for line in (f"{n:03}.txt text {n}", f"{n:03}.add_txt_fname more{n}.txt")
    ]
    assert files[:4] == own
    assert same == "True"
