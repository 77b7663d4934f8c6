"""``read_ofrecord`` and `OFRecordReader`: the records of files in OneFlow's format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dagster_dataops.errors import OperatorOptionError, StreamSourceError
from dagster_dataops.foundation.override import override
from dagster_dataops.readers.ofrecord.record_frames import Frame, FrameCursor
from dagster_dataops.readers.ofrecord.record_messages import features_of, record_class
from dagster_dataops.readers.part_files.part_lines import PartLines
from dagster_dataops.readers.part_files.part_reader import PartFiles
from dagster_dataops.readers.record_parsing import ItemParser, LineParser, parse_stage
from dagster_dataops.streams.core.arguments import check_callable
from dagster_dataops.streams.core.stage import Cursor, ReadContext
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.files.file_sets import INFER, FileSet, GivenPaths
from dagster_dataops.streams.files.file_stages import FileCursor, FileStage
from dagster_dataops.streams.files.locations import Location


@dataclass(eq=False)
class RecordFrames(FileStage):
    """Yield the frames of files."""

    name: ClassVar[str] = "read_ofrecord"
    file_cursor: ClassVar[type[FileCursor]] = FrameCursor


@dataclass(frozen=True, eq=False)
class FrameParser(ItemParser):
    """Makes a record of a frame; ``parse`` gets its features."""

    @override
    def __call__(self, item: Frame) -> Any:
        try:
            return self.parse(features_of(item.payload))
        except Exception as error:
            kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
            place = f"{item.path}, record at byte {item.offset:,}"
            raise StreamSourceError(place, f"{kind}{error}") from error


class _Decoded:
    """Makes a dict of the results of decoders."""

    def __init__(self, decoders: Mapping[str, Callable[[Any], Any]]) -> None:
        self.decoders = dict(decoders)

    def __call__(self, features: Any) -> dict[str, Any]:
        return {name: decode(features) for name, decode in self.decoders.items()}


def _all_features(features: Any) -> Any:
    return features


def read_ofrecord(
    path: GivenPaths,
    decoders: Mapping[str, Callable[[Any], Any]] | None = None,
    *,
    compression: str | None = INFER,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    """Read the records of OFRecord files, the binary format of OneFlow.

    A record is a dict. Without decoders it has the list of values of each feature by name: bytes,
    floats or integers. Resuming is immediate for uncompressed local files.

    A damaged record is a failed item, which the stream's ``on_error`` can skip. Behind a wrong
    length, and at the end of a truncated file, the rest of the file is one failed item.

    Args:
        path: A file, a list of files, a pattern or a folder; see `read_jsonl`. `OFRecordReader`
            reads numbered parts, with shuffling, epochs and batches.
        decoders: A function of the features for each key of the records, such as
            ``{"label": OFRecordRawDecoder("class/label", (), "int32")}``; ``None`` for the
            features.
        compression: See `read_jsonl`.
        storage_options: See `read_jsonl`.

    Raises:
        MissingExtraError: protobuf is not installed: extra ``ofrecord``.
        StreamDefinitionError: An argument is invalid.

    Example:
        >>> stream = read_ofrecord(
        ...     "train/part-*",
        ...     {
        ...         "image": OFRecordImageDecoder("encoded"),
        ...         "label": OFRecordRawDecoder("class/label", (), "int32"),
        ...     },
        ... )
    """
    record_class()
    for decoder in (decoders or {}).values():
        check_callable("read_ofrecord", "a decoder", decoder)
    frames = RecordFrames(FileSet.of("read_ofrecord", path, compression, storage_options))
    parse = _all_features if decoders is None else _Decoded(decoders)
    return DataPipelineBuilder(parse_stage(frames, FrameParser(parse)))


@dataclass(eq=False)
class PartRecords(PartLines):
    """Yield tuples of file name, record number from 1, and frame."""

    name: ClassVar[str] = "ofrecord_parts"

    @override
    def begin(self, context: ReadContext) -> None:
        super().begin(context)
        record_class()

    @override
    def opened_part(self, path: str) -> Cursor:
        return FrameCursor(self, Location(path), self.counter)

    @override
    def first(self, line: Any) -> Any:
        return line


@dataclass(frozen=True, eq=False, kw_only=True)
class PartRecordParser(LineParser):
    """Makes a record of a frame of a part."""

    @override
    def __call__(self, item: tuple[str, int, Any]) -> Any:
        name, number, frame = item
        place = f"record {number:,} at byte {frame.offset:,}"
        try:
            record = self.parse(features_of(frame.payload))
        except Exception as error:
            raise self.refused(f"{name}, {place}", error) from error
        return self.placed(record, name, number, place)


class OFRecordReader(PartFiles):
    """Reads part files of OFRecords, as OneFlow's reader of this name; the options of `PartFiles`.

    ``parse`` gets the features of a record: a dict with the list of values of each by name.
    Override it to decode them; the default returns the features. ``with_place`` adds the file, and
    the number of the record as ``line``.

    Raises:
        OperatorOptionError: An option is invalid.

    Example:
        >>> @data_register("data.images", columns={"label": int})
        ... class Labels(OFRecordReader):
        ...     label = OFRecordRawDecoder("class/label", (), "int32")
        ...
        ...     def parse(self, features):
        ...         return {"label": int(self.label(features))}
        >>> reader = Labels("train", data_part_num=4, batch_size=32, random_shuffle=True, seed=1)
    """

    items_of_parts: ClassVar[type[PartLines]] = PartRecords
    item_parser: ClassVar[type[LineParser]] = PartRecordParser

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.skip_blank_lines:
            reason = "has no effect: records are no lines"
            raise OperatorOptionError(type(self).__name__, "skip_blank_lines", reason)

    @override
    def parse(self, line: Any) -> dict[str, Any]:
        """Return the record of the features of an OFRecord."""
        return dict(line)
