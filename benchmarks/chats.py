"""Render and encode conversations, in turn with transformers and with the tokenizer alone.

    .venv/bin/python -m benchmarks.chats TOKENIZER [--wheel WHEEL] [--peers FOLDER] [--rounds N]

``TOKENIZER`` is a ``tokenizer.json``. ``WHEEL`` is a wheel of trl: its published templates are used
besides one of this module. ``FOLDER`` holds the packages of an environment with transformers. All
contenders run in one process, block by block in turn, and no result is kept. The figures are CPU
microseconds a conversation, the median over the rounds; the ratio is the median of those within a
round.
"""

import argparse
import gc
import statistics
import sys
import time
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from dagster_dataops import data

_OWN: Final = (
    "{% for m in messages %}{{ '<|' + m.role + '|>' }}{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}{% else %}"
    "{{ m.content }}{{ eos_token }}{% endif %}{% endfor %}"
)
_PUBLISHED: Final = ("qwen2_5_training", "llama3_training", "qwen3_training", "gemma_training")
_WITHOUT_SYSTEM: Final = frozenset({"gemma_training"})  # it refuses a system turn
_SUBJECTS: Final = (
    "tide", "harbour", "lamp", "ferry", "engine", "letter", "bridge", "winter", "market", "orchard",
)  # fmt: skip
_TOKENS: Final = {"bos_token": "<s>", "eos_token": "</s>"}
Work = Callable[[], Any]


def conversations(count: int) -> list[list[dict[str, str]]]:
    """Return conversations of nine turns, no two of which are equal."""
    return [list(_turns(number)) for number in range(count)]


def _turns(number: int) -> Iterator[dict[str, str]]:
    yield {"role": "system", "content": f"You answer question {number} in a few sentences."}
    for turn in range(4):
        words = [_SUBJECTS[(number * 7 + turn * 3 + step) % 10] for step in range(40)]
        asked = f"What do you know about {' and '.join(words[:6])} number {number}?"
        yield {"role": "user", "content": asked}
        yield {"role": "assistant", "content": f"I know that {' '.join(words)}, {number * turn}."}


def contenders(
    tokenizer: str, template: str, chats: list[Any], *, peer: bool
) -> dict[str, dict[str, Work]]:
    """Return the functions to measure, by figure and contender.

    Args:
        tokenizer: Path of a ``tokenizer.json``.
        template: A chat template.
        chats: Conversations.
        peer: Whether transformers is measured as well. Its texts must be the same.
    """
    from tokenizers import Tokenizer

    records = [{"messages": chat} for chat in chats]
    render = data.chat.Render(template, **_TOKENS)
    encode = data.tokens.EncodeChat(tokenizer, template, special_in_content="allow", **_TOKENS)
    texts = [render.forward(dict(record))["text"] for record in records]
    raw = Tokenizer.from_file(tokenizer)
    work: dict[str, dict[str, Work]] = {
        "render": {"ours": lambda: _all(render.forward(record) for record in records)},
        "encode": {
            "ours": lambda: _all(encode.forward(record) for record in records),
            "encode_batch alone": lambda: _all(
                one.ids for one in raw.encode_batch(texts, add_special_tokens=False)
            ),
            "encode alone": lambda: _all(
                raw.encode(text, add_special_tokens=False).ids for text in texts
            ),
        },
    }
    if peer:
        loaded = _transformers(tokenizer, template)
        work["render"]["transformers"] = lambda: _all(
            loaded.apply_chat_template(chat, tokenize=False) for chat in chats
        )
        work["encode"]["transformers"] = lambda: _all(
            loaded.apply_chat_template(chat, return_dict=True, return_assistant_tokens_mask=True)
            for chat in chats
        )
        theirs = [loaded.apply_chat_template(chat, tokenize=False) for chat in chats]
        assert theirs == texts, "the texts differ"
    return work


def _all(results: Iterable[Any]) -> None:
    """Compute all results, and keep none."""
    deque(results, maxlen=0)


def _transformers(tokenizer: str, template: str) -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_file=tokenizer, chat_template=template, **_TOKENS)


def measured(work: dict[str, Work], rounds: int) -> dict[str, list[float]]:
    """Return the CPU seconds of each round, by contender. They run in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    gc.collect()
    gc.freeze()  # else each search for garbage looks at the packages of all contenders
    for number in range(rounds):
        for name in list(work) if number % 2 else reversed(work):
            begin = time.process_time()
            work[name]()
            seconds[name].append(time.process_time() - begin)
    return seconds


def rows(name: str, figure: str, seconds: dict[str, list[float]], count: int) -> Iterator[str]:
    """Yield a line for each contender: CPU time, and its ratio to that of this package."""
    for contender, cpu in seconds.items():
        micros = statistics.median(cpu) / count * 1e6
        ratios = [other / ours for other, ours in zip(cpu, seconds["ours"], strict=True)]
        ratio = statistics.median(ratios)
        yield f"{name:22}{figure:8}{contender:20}{micros:10.1f}{ratio:10.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tokenizer")
    parser.add_argument("--wheel")
    parser.add_argument("--peers")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--count", type=int, default=300)
    options = parser.parse_args()
    if options.peers:
        sys.path.append(options.peers)
    templates = {"of this module": _OWN}
    if options.wheel:
        with zipfile.ZipFile(options.wheel) as wheel:
            paths = {name: f"trl/chat_templates/{name}.jinja" for name in _PUBLISHED}
            templates |= {name: wheel.read(path).decode() for name, path in paths.items()}
    chats = conversations(options.count)
    print(f"{'template':22}{'figure':8}{'contender':20}{'us/chat':>10}{'x ours':>10}")
    for name, template in templates.items():
        fitting = [chat[1:] for chat in chats] if name in _WITHOUT_SYSTEM else chats
        work = contenders(options.tokenizer, template, fitting, peer=bool(options.peers))
        for figure, contending in work.items():
            seconds = measured(contending, options.rounds)
            print("\n".join(rows(name, figure, seconds, options.count)), flush=True)


if __name__ == "__main__":
    main()
