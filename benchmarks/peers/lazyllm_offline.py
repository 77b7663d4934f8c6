"""Prepares the import of LazyLLM's data module in a benchmark: its results go to the run's folder.

The vocabulary that the import would download is replaced.
"""

import json
import os
import sys

import tiktoken

os.environ["LAZYLLM_DATA_PROCESS_PATH"] = json.loads(sys.argv[1])["out"]


class _Offline:
    """Replaces a vocabulary that the import would download."""

    name = "gpt2"

    def encode(self, text, **_):
        return list(text.encode())

    def decode(self, tokens, **_):
        return bytes(tokens).decode(errors="replace")


tiktoken.get_encoding = lambda _name: _Offline()
