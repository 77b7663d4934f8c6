# The readers and their modules; `__init__.py` imports each on first use.

from dagster_dataops.readers.agent_traces.session_files import (
    read_agent_traces as read_agent_traces,
)
from dagster_dataops.readers.arrow.arrow_tables import read_arrow as read_arrow
from dagster_dataops.readers.arrow.arrow_tables import read_parquet as read_parquet
from dagster_dataops.readers.delimited.delimited_files import read_delimited as read_delimited
from dagster_dataops.readers.huggingface.huggingface_datasets import (
    read_huggingface as read_huggingface,
)
from dagster_dataops.readers.ofrecord.record_decoders import (
    OFRecordBytesDecoder as OFRecordBytesDecoder,
)
from dagster_dataops.readers.ofrecord.record_decoders import (
    OFRecordImageDecoder as OFRecordImageDecoder,
)
from dagster_dataops.readers.ofrecord.record_decoders import (
    OFRecordRawDecoder as OFRecordRawDecoder,
)
from dagster_dataops.readers.ofrecord.record_files import OFRecordReader as OFRecordReader
from dagster_dataops.readers.ofrecord.record_files import read_ofrecord as read_ofrecord
from dagster_dataops.readers.warc.web_archives import read_warc as read_warc
from dagster_dataops.readers.whole_files import read_files as read_files
from dagster_dataops.readers.zipped_records import read_zipped_records as read_zipped_records
