"""Group ``export``: operators that write the records of their input for other programs.

Each may stand as a node of a pipeline; the nodes after it take the records of the node before it.
The first option is the path, relative to the root of all results unless it is absolute. An export
is written whole or not at all, again if its input, options or code have changed or its files are
missing or edited, and else left as it is.
"""

from typing import Final

MODULES: Final = (
    "conversation_files",
    "huggingface_folder",
    "huggingface_hub",
    "litdata_chunks",
    "mds_shards",
    "megatron_pairs",
    "tables",
    "webdataset_shards",
)
