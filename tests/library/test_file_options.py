"""Every option of the library that names a file which is read counts by its content."""

import inspect
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from dagster_dataops import chain, data, data_register
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.tokenizers.tokenization import tokenizer
from dagster_dataops.operators.options.file_content import is_marked
from tests.each import each
from tests.execution.helpers import TINY, cut_by, node, run, write_input
from tests.library.all_operators import GROUPS
from tests.nodes import ResumePolicy

NAMES: Final = [
    f"{group}.{name}" for group in sorted(GROUPS) for name in data_register.operators(group)
]
OTHERS: Final = {
    "chat.Render template",  # its text takes the place of the path
    "language.Identify backend",  # names what reads the file
    "score.Embedding backend",
    # They say how files that records name are treated.
    "images.Check allow_animated",
    "images.Classify size",
    "images.Embed size",
    "images.Score size",
    "images.Strip keep_profile",
    "images.TextArea size",
    "review.Ask to",  # the folder of questions, which it writes
    "shape.AddFileFacts digest",
}
_OF_ALL_FILES: Final = {"animated", "on_error", "password"}  # as those above, in many operators
_DESCRIPTION: Final = r"(?m)^    (\w+): ((?:.+\n?(?:        .+\n?)*))"
_NAMED: Final = re.compile(r"tokenizer|sentencepiece|\w*(path|file|lexicon|dictionary|vocabulary)")
_SAYS: Final = re.compile(r"\b(path|file|folder)s?\b", re.IGNORECASE)
_OF_RECORDS: Final = re.compile(r"\w+_key|(min|max)_\w+|images|audio|files")  # columns, limits
_SAYS_ELSE: Final = re.compile(r"before files are used|^Column of")


def described(name: str) -> dict[str, str]:
    spec = data_register.operator(*name.split(".")).__dataops_spec__
    classes = reversed(spec.target.__mro__) if isinstance(spec.target, type) else ()
    texts = [*(inspect.cleandoc(cls.__doc__ or "") for cls in classes), spec.description]
    return {
        option: description
        for text in texts
        for option, description in re.findall(_DESCRIPTION, text)
    }


def names_a_file(option: Any, said: str) -> bool:
    """Return whether an option may be the path of a file, by its name, type or description."""
    if _OF_RECORDS.fullmatch(option.name) or option.name in _OF_ALL_FILES:
        return False
    typed = any(word in str(option.annotation) for word in ("Path", "path"))
    says = _SAYS.search(said) is not None and _SAYS_ELSE.search(said) is None
    return typed or says or _NAMED.fullmatch(option.name) is not None


def of_library() -> dict[str, Any]:
    found = {}
    for name in NAMES:
        spec, texts = data_register.operator(*name.split(".")).__dataops_spec__, described(name)
        if not spec.kind.exports:
            found |= {
                f"{name} {one.name}": one
                for one in spec.options
                if names_a_file(one, texts.get(one.name, ""))
            }
    return found


def test_every_option_that_names_a_file_is_marked() -> None:
    found = of_library()
    assert {name for name, one in found.items() if not is_marked(one.annotation)} == OTHERS
    assert len(found) >= 26


def words(path: Path) -> Any:
    return data.filters.Blocklist(path)


def a_benchmark(path: Path) -> Any:
    return data.decontaminate.Overlap({"task": str(path)}, query_key="q")


CASES: Final[dict[str, Callable[[Path], Any]]] = {
    "words": words,
    "hosts": lambda path: data.filters.Url(domains=str(path)),
    "rows": lambda path: data.join.Lookup(str(path), on="q"),
    "reference": lambda path: data.dedup.Against(path, input_key="q"),
    "benchmark": a_benchmark,
    "in a chain": lambda path: chain(data.filters.Blocklist(path), data.tokens.Count("bytes")),
}


@each("name", CASES)
def test_an_operator_whose_file_was_replaced_is_another_one(name: str, tmp_path: Path) -> None:
    pytest.importorskip("ahocorasick", reason="the extra word-lists is not installed")
    pytest.importorskip("tldextract", reason="the extra urls is not installed")
    path = tmp_path / f"{name}.jsonl"
    digests = []
    for content in ('{"q": "a b c d"}\n', '{"q": "e f g h"}\n', '{"q": "a b c d"}\n'):
        path.write_text(content)
        digests.append(CASES[name](path).__dataops__.options_digest)
    assert digests[0] == digests[2] != digests[1]


def test_words_that_are_names_of_files_are_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ahocorasick", reason="the extra word-lists is not installed")
    monkeypatch.chdir(tmp_path)
    before = data.filters.Blocklist(["data"]).__dataops__.options_digest
    (tmp_path / "data").write_text("x")
    assert data.filters.Blocklist(["data"]).__dataops__.options_digest == before


# ---------------------------------------------------------------- tokenizers


def save_tokenizer(path: Path, *known: str) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
    vocabulary = {word: number for number, word in enumerate(["", *known])}
    model = tokenizers.models.WordLevel(vocabulary)
    splitting = tokenizers.Tokenizer(model)
    splitting.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    splitting.save(str(path))


@pytest.mark.parametrize("replaced", [True, False])
def test_a_killed_run_does_not_go_on_with_another_tokenizer(replaced: bool, tmp_path: Path) -> None:
    path, folder = tmp_path / "tokenizer.json", node(tmp_path / "root")
    dataset = write_input(tmp_path / "input.jsonl", [{"n": n, "text": "a b"} for n in range(20)])
    save_tokenizer(path, "a", "b")
    operator = data.tokens.Encode(str(path), _concurrency_mode="single")
    forward = type(operator).forward

    def stopping(self: Any, record: dict[str, Any]) -> Any:
        if record["n"] == 12:
            raise KeyboardInterrupt
        return forward(self, record)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        cut_by(patch, TINY)
        patch.setattr(operator, "forward", stopping.__get__(operator))
        run(operator, dataset, folder, run="killed", resume=ResumePolicy.AUTO)
    path.unlink()
    save_tokenizer(path, *(("b", "a") if replaced else ("a", "b")))

    report = run(data.tokens.Encode(str(path)), dataset, folder, resume=ResumePolicy.AUTO)

    expected = [2, 1] if replaced else [1, 2]
    assert [record["token_ids"] for record in report.dataset.read()] == [expected] * 20
    if replaced:
        assert "(the content of the file of 'tokenizer')" in report.notes[0]
    else:
        assert report.notes[0].startswith("resuming: 12 ")


def test_another_process_takes_no_other_tokenizer(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    save_tokenizer(path, "a", "b")
    sent = pickle.dumps(tokenizer(str(path)))
    assert pickle.loads(sent).encode("a b") == [1, 2]
    save_tokenizer(path, "b", "a")
    assert tokenizer(str(path)).encode("a b") == [2, 1]
    with pytest.raises(DefinitionError, match="is not the file that the run started with"):
        pickle.loads(sent)


def test_a_missing_file_has_the_error_of_the_operator(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
    with pytest.raises(DefinitionError, match="which is no file; give the path of a tokenizer"):
        data.tokens.Count(tokenizer=str(tmp_path / "none.json"))
