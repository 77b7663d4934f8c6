"""``export.LitData``: chunks of tokens for LitData."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from dagster_dataops.datasets.exporters.exporter import ExportRecords, Place
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.export.number_arrays import (
    MOST_BYTES,
    end_bytes,
    id_bytes,
    item_bytes,
    with_places,
)
from dagster_dataops.library.export.tables import PathLike, export
from dagster_dataops.operators.options.ranges import PositiveInt

_TYPE_CODES: Final = {"uint8": 11, "int16": 14, "int32": 16, "int64": 18, "uint16": 20}
_LEAF: Final = '[1, {"type": null, "context": null, "children_spec": []}]'


class LitData(export):
    """Write token ids in chunks for ``litdata.StreamingDataset`` with a ``TokensLoader``.

    Reads ``input_key="input_ids"``, a list of integers; missing and ``null`` are empty. The reader
    joins the ids of all records of a chunk and takes blocks of ``max_tokens=2048`` from it:
    ``StreamingDataset(folder, item_loader=TokensLoader(block_size=2048))``. It drops the rest of a
    chunk that fills no block, so each chunk but the last has a multiple of ``max_tokens`` ids; of
    the last chunk less than a block is dropped. ``end_id=None`` is put behind each record.

    The ids of a chunk take at most ``shard_bytes``. ``dtype="int32"`` may also be ``int64``,
    ``uint16`` (which needs a new PyTorch), ``int16`` or ``uint8``. An id that it cannot hold fails
    the export, with file and line. Equal records give equal bytes: the index has no date.

    The folder is replaced whole. A folder with files that no export wrote is refused. Other columns
    are not written: LitData reads Parquet files, so write these by ``export.Parquet``.

    Args:
        folder: Folder that is written, relative to the root of the results unless absolute.
        input_key: Column of the ids.
        max_tokens: Ids in a block of the reader.
        dtype: Type of the ids.
        end_id: Id behind each record; ``None`` for none.
        shard_bytes: Most bytes of the ids of a chunk, less than 4 GiB; at least a block.
    """

    format = "litdata"
    place: Place = "folder"

    def __init__(
        self,
        folder: PathLike,  # noqa: ARG002 - taken by the engine
        input_key: str = "input_ids",
        max_tokens: PositiveInt = 2048,
        dtype: Literal["uint8", "int16", "uint16", "int32", "int64"] = "int32",
        *,
        end_id: int | None = None,
        shard_bytes: PositiveInt = 1 << 26,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column, self._type, self._shard_bytes = input_key, dtype, shard_bytes
        self._item = item_bytes(dtype)
        self._end = end_bytes(end_id, dtype)
        block = max_tokens * self._item
        self._data_bytes = shard_bytes // block * block
        if not self._data_bytes or shard_bytes > MOST_BYTES:
            msg = (
                f"shard_bytes is {shard_bytes:,}; it must hold a block of {block:,} bytes, "
                f"and be at most {MOST_BYTES:,}"
            )
            raise DefinitionError(msg)

    def write(self, records: ExportRecords, place: Path) -> None:
        chunks = [
            self._chunk(place / f"chunk-0-{number}.bin", items)
            for number, items in enumerate(self._divided(records))
        ]
        config = {
            "chunk_bytes": self._shard_bytes,
            "chunk_size": None,
            "compression": None,
            "compression_batch_size": None,
            "compression_level": None,
            "data_format": [f"no_header_tensor:{_TYPE_CODES[self._type]}"],
            "data_spec": _LEAF,
            "encryption": None,
            "ipc_compression": None,
            "item_loader": "TokensLoader",
            "types": "tensor",
        }
        index = {"chunks": chunks, "config": config, "updated_at": "0"}
        (place / "index.json").write_text(json.dumps(index, sort_keys=True))

    def _divided(self, records: ExportRecords) -> Iterator[list[bytes]]:
        """Yield the ids of the records of each chunk. A record may go on in the next chunk."""
        items: list[bytes] = []
        room = self._data_bytes
        for index, record in enumerate(records):
            ids = id_bytes(index, self._column, record.get(self._column), self._type) + self._end
            while ids:
                items.append(ids[:room])
                ids = ids[room:]
                room -= len(items[-1])
                if not room:
                    yield items
                    items, room = [], self._data_bytes
        if items:
            yield items

    def _chunk(self, path: Path, items: list[bytes]) -> dict[str, Any]:
        """Write a chunk and return its description for the index."""
        size = path.write_bytes(with_places(items))
        return {
            "chunk_bytes": size,
            "chunk_size": len(items),
            "dim": sum(map(len, items)) // self._item,
            "filename": path.name,
        }
