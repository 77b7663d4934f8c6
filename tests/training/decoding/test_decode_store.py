import json

import pytest

from dagster_dataops import (
    Cooker,
    DecodeFileStore,
    FileStoreCachePool,
    NoCachePool,
    SampleDecoder,
    cooker,
    crude,
    file_store,
)
from dagster_dataops.errors import AuxFileMissingError, InputError
from tests.lazy_records import with_lazy_files
from tests.training.declared import captions

PIL = SampleDecoder(image_decode="pil")


class Upper:
    def decode(self, name, data):
        return f"{name}:{data.decode().upper()}"


@pytest.fixture
def store(tmp_path):
    captions(tmp_path / "a")
    return DecodeFileStore(file_store(tmp_path / "a"), decoder=PIL)


def test_a_store_returns_values(store):
    sample = {}
    assert store.get("002.png", sample).getpixel((0, 0)) == (2, 0, 0)
    assert sample["__sources__"][0].file_names == ["002.png"]
    assert store["001.json"][0]["caption"] == "json 1"
    assert store.read("001.txt")[0] == b"caption 1"
    assert "001.txt" in store
    assert len(store) == len(list(store)) == 20
    assert store.version() == store.inner.version()
    with pytest.raises(AuxFileMissingError):
        store.get("nope.txt")


@pytest.mark.parametrize("pooled", [False, True])
def test_lazy_files_are_decoded_when_they_are_read(store, tmp_path, pooled):
    pool = FileStoreCachePool(parent_cache_dir=tmp_path / "c") if pooled else NoCachePool()
    lazy = pool.get_lazy(store, "001.json")
    written = json.loads(json.dumps({"file": lazy}))

    assert lazy.get() == {"caption": "json 1", "boxes": [[1, 2], [1, 4]]}
    assert with_lazy_files(written)["file"].get() == lazy.get()
    assert pool.get(store, "001.txt") == "caption 1"


def test_a_lazy_file_of_another_decoder_cannot_be_read_from_a_result(tmp_path):
    captions(tmp_path / "a")
    store = DecodeFileStore(file_store(tmp_path / "a"), decoder=Upper())
    lazy = NoCachePool().get_lazy(store, "001.txt")

    assert lazy.get() == "001.txt:CAPTION 1"
    with pytest.raises(InputError, match="whose decoder is none of the package"):
        with_lazy_files(json.loads(json.dumps({"file": lazy})))


def test_the_stores_of_a_cooker_are_decoded_as_its_sample(tmp_path):
    folder = captions(tmp_path / "a")
    (folder / ".nv-meta" / "dataset.yaml").write_text("__class__: CrudeWebdataset\n")

    @cooker(need_primary=True)
    def cook(sample, primary, other):
        return {
            "own": primary.get(".cls"),
            "next": primary.get("001.txt"),
            "other": other.get("000.json")["caption"],
        }

    stream = crude(folder, aux={"other": str(folder)}).cook([Cooker(cook)], decoder=PIL)
    assert list(stream)[3] == {"own": 3, "next": "caption 1", "other": "json 0"}
