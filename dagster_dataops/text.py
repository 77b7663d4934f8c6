"""Streams of text lines, and functions that split and convert texts.

>>> from dagster_dataops.text import StrSplitter, read_text
>>> stream = read_text("file.tsv", rtrim=True).map(StrSplitter(names=["en", "fr"]))
"""

from dagster_dataops.streams.text_converters import (
    StrSplitter,
    StrToIntConverter,
    StrToTensorConverter,
)
from dagster_dataops.streams.text_streams import LineEnding, read_text

__all__ = [
    "LineEnding",
    "StrSplitter",
    "StrToIntConverter",
    "StrToTensorConverter",
    "read_text",
]


def __dir__() -> list[str]:
    return __all__
