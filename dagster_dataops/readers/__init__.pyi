# The readers and their modules; `__init__.py` imports each on first use.

from dagster_dataops.readers.arrow.arrow_tables import read_arrow as read_arrow
from dagster_dataops.readers.arrow.arrow_tables import read_parquet as read_parquet
from dagster_dataops.readers.delimited.delimited_files import read_delimited as read_delimited
from dagster_dataops.readers.huggingface.huggingface_datasets import (
    read_huggingface as read_huggingface,
)
from dagster_dataops.readers.warc.web_archives import read_warc as read_warc
from dagster_dataops.readers.whole_files import read_files as read_files
