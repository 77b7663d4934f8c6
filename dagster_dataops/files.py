"""Files as values of records: references to files, and files that operators make.

>>> from dagster_dataops.files import File, FileReference
"""

from dagster_dataops.datasets.file_values.file_contents import bytes_and_path, is_reference
from dagster_dataops.datasets.file_values.file_keeper import File
from dagster_dataops.datasets.file_values.media_types import (
    same_type,
    type_of_content,
    type_of_name,
)
from dagster_dataops.datasets.file_values.reference import FileReference
from dagster_dataops.errors import FileChangedError, FileError, FileReferenceError

__all__ = [
    "File",
    "FileChangedError",
    "FileError",
    "FileReference",
    "FileReferenceError",
    "bytes_and_path",
    "is_reference",
    "same_type",
    "type_of_content",
    "type_of_name",
]


def __dir__() -> list[str]:
    return __all__
