"""`DecodeFileStore`: a file store that returns values in place of bytes."""

from collections.abc import MutableMapping
from typing import Any

from dagster_dataops.foundation.override import override
from dagster_dataops.training.decoding.sample_decoder import FileDecoder, SampleDecoder
from dagster_dataops.training.filestores.lazy_files import OTHER_DECODER
from dagster_dataops.training.filestores.source_info import SourceInfo
from dagster_dataops.training.filestores.store import FileStore, WrappingStore


class DecodeFileStore(WrappingStore):
    """A file store whose `get` returns the values of files, as a decoder makes them of the bytes.

    A cache pool keeps the bytes; `Lazy.get` decodes them.

    Args:
        inner: The store of the files.
        decoder: Makes values of bytes, such as a `SampleDecoder`.

    Example:
        >>> images = DecodeFileStore(file_store("images"), decoder=SampleDecoder())
        >>> images.get("000.jpg").shape
        torch.Size([3, 480, 640])
    """

    def __init__(self, inner: FileStore, *, decoder: FileDecoder) -> None:
        super().__init__(inner)
        self.decoder = decoder

    @override
    def get(self, name: str, sample: MutableMapping[str, Any] | None = None) -> Any:
        """Return the value of a file; see `FileStore.get`."""
        return self.value(name, self.inner.get(name, sample))

    @override
    def value(self, name: str, data: bytes) -> Any:
        return self.decoder.decode(self.full_name(name), self.inner.value(name, data))

    @property
    @override
    def undecoded(self) -> FileStore:
        return self.inner.undecoded

    @property
    @override
    def decoding(self) -> str | None:
        decoder = self.decoder if self.inner.decoding is None else None
        return decoder.image_decode if isinstance(decoder, SampleDecoder) else OTHER_DECODER

    @override
    def __getitem__(self, name: str) -> tuple[Any, SourceInfo]:
        data, source = self.read(name)
        return self.value(name, data), source
