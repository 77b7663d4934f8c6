import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.tokenizers.tokenization import EncodedBytes, tokenizer

NAMES = ("o200k_base", "cl100k_base", "voyage3_base", "bytes", "whitespace")
MIXED = st.text("ab \n好é😀ก", max_size=30)


@pytest.mark.parametrize("name", NAMES)
@given(text=MIXED)
def test_starts_are_one_for_each_token_and_rise(name: str, text: str) -> None:
    tokens = tokenizer(name)
    starts = tokens.starts(text)
    assert len(starts) == tokens.count(text)
    cuts = [start for start in starts if start >= 0]
    assert cuts == sorted(set(cuts))
    assert all(0 <= cut < len(text) for cut in cuts)
    if text and name != "whitespace":
        assert starts[0] == 0


def test_starts_of_bytes_are_those_of_characters() -> None:
    assert tokenizer("bytes").starts("a好é") == [0, 1, -1, -1, 2, -1]
    assert tokenizer("bytes").encode("a好") == [97, 229, 165, 189]
    assert tokenizer("whitespace").starts(" a  bc") == [1, 4]


def test_lone_surrogates_count_as_replacement_characters() -> None:
    for name in ("o200k_base", "bytes"):
        tokens = tokenizer(name)
        assert (
            tokens.count("a\ud800b") == tokens.count("a\ufffdb") == len(tokens.encode("a\ud800b"))
        )
        assert len(tokens.starts("a\ud800b")) == tokens.count("a\ud800b")


@pytest.mark.slow
def test_names_of_special_tokens_are_text() -> None:
    assert tokenizer("o200k_base").count("<|endoftext|>") > 1


def test_long_texts_are_counted() -> None:
    assert tokenizer("o200k_base").count("word " * 300_000) >= 300_000


def test_a_tokenizer_is_pickled_by_name() -> None:
    tokens = tokenizer("o200k_base")
    assert pickle.loads(pickle.dumps(tokens)) is tokens


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(DefinitionError, match="o200k_base"):
        tokenizer("o300k")
    with pytest.raises(DefinitionError, match="no token ids"):
        tokenizer("whitespace").encode("a")


def test_a_tokenizer_file_is_read(tmp_path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE(byte_fallback=True))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()
    )
    made.train_from_iterator(["some words of some prose"], trainer)
    made.save(str(tmp_path / "tokenizer.json"))
    tokens = tokenizer(str(tmp_path / "tokenizer.json"))
    assert tokens.count("some words") == len(tokens.encode("some words")) < 10
    assert tokens.starts("好 some")[:3] == [0, -1, -1]
    with pytest.raises(DefinitionError, match="no file"):
        tokenizer(str(tmp_path / "other.json"))


def written_tokenizer(folder: Path, **steps: Any) -> str:
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra tokenizers")
    built = tokenizers.Tokenizer(tokenizers.models.BPE())
    built.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    for name, step in steps.items():
        module, kind, options = step
        setattr(built, name, getattr(getattr(tokenizers, module), kind)(**options))
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|end|>"],
        show_progress=False,
    )
    built.train_from_iterator(["some words of some prose, 日本語 é"], trainer)
    built.add_special_tokens([tokenizers.AddedToken("<wide>", lstrip=True, special=True)])
    built.save(str(folder / "tokenizer.json"))
    return str(folder / "tokenizer.json")


STEPS: dict[str, dict[str, Any]] = {
    "bytes": {},
    "trimmed": {"post_processor": ("processors", "ByteLevel", {"trim_offsets": True})},
    "composed": {"normalizer": ("normalizers", "NFC", {})},
    "lower case": {"normalizer": ("normalizers", "Lowercase", {})},
    "a space before": {
        "pre_tokenizer": ("pre_tokenizers", "ByteLevel", {"add_prefix_space": True})
    },
}
SPANNED = (
    "some words",
    " so  me ",
    "日本語 é😀",
    "e\u0301\u0323 \u212a A",
    "a <wide>b<|end|>c",
    "x\ud800y",
)


@pytest.mark.parametrize("name", STEPS)
def test_the_tokens_of_a_span_are_those_with_one_of_its_characters(name: str, tmp_path) -> None:
    from tokenizers import Tokenizer, processors

    path = written_tokenizer(tmp_path, **STEPS[name])
    raw = Tokenizer.from_file(path)
    raw.post_processor = processors.ByteLevel(trim_offsets=False)
    for text in SPANNED:
        offsets = raw.encode(text.replace("\ud800", "\ufffd"), add_special_tokens=False).offsets
        encoded = tokenizer(path).encode_with_offsets(text)
        assert encoded.ids == tokenizer(path).encode(text)
        assert [encoded.place(number) for number in range(len(encoded.ids))] == offsets
        for start in range(len(text)):
            for end in range(start + 1, len(text) + 1):
                first = next((i for i, one in enumerate(offsets) if one[1] > start), len(offsets))
                behind = next((i for i, one in enumerate(offsets) if one[0] >= end), len(offsets))
                assert encoded.covering(start, end) == (first, max(first, behind))


@pytest.mark.parametrize("name", STEPS)
def test_the_bytes_of_tokens_are_used_where_they_make_up_the_text(name: str, tmp_path) -> None:
    tokens = tokenizer(written_tokenizer(tmp_path, **STEPS[name]))
    kept = name in {"bytes", "trimmed", "composed"}

    assert isinstance(tokens.encode_with_offsets("some é<|end|>"), EncodedBytes) == kept
    # A space that belongs to a special token has no bytes of its own; NFC may change "e\u0301".
    assert not isinstance(tokens.encode_with_offsets("a <wide>"), EncodedBytes)
    decomposed = tokens.encode_with_offsets("e\u0301")
    assert isinstance(decomposed, EncodedBytes) == (kept and name != "composed")


@pytest.mark.skipif(sys.platform != "linux", reason="counts the threads of Linux")
def test_encoding_starts_no_threads(tmp_path) -> None:
    path = written_tokenizer(tmp_path)
    code = (
        "import os\n"
        "from dagster_dataops.library.analysis.tokenizers.tokenization import tokenizer\n"
        f"tokenizer({path!r}).encode_with_offsets('some words')\n"
        "print(len(os.listdir('/proc/self/task')))"
    )
    environment = {key: one for key, one in os.environ.items() if "TOKENIZERS" not in key}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )

    assert ran.stdout == "1\n"
