"""Tests of every sample of LazyLLM's data processing document, in its intended form, as scripts.

Only the import lines differ: ``lazyllm`` becomes ``dagster_dataops``.
"""

import json
import textwrap
from pathlib import Path

import pytest


@pytest.fixture
def run(run_python):
    """Run samples one after another as one script; return its output, as JSON."""

    def run_samples(*samples: str, **environment: str) -> object:
        code = "\n".join(map(textwrap.dedent, ["import json", *samples]))
        return json.loads(run_python(code, **environment))

    return run_samples


def lines(path: str | Path) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


# ---------------------------------------------------------------- 1. simplest usage

FUNCTION = """
from dagster_dataops import data_register  # Import registrar

demo = data_register.new_group('demo')  # Create a category for operator grouping

@data_register('data.demo')
def process_lower(data: dict):
    data['content'] = data.get('content', '').lower()
    return data
"""
CLASS = """
class ProcessLower(demo):
    def forward(self, data: dict):  # Implement processing logic by overriding the forward method
        data['content'] = data.get('content', '').lower()
        return data
"""
USAGE = """
import dagster_dataops

inputs = {'content': 'Hello World'}
m1 = dagster_dataops.data.demo.process_lower()
m2 = dagster_dataops.data.demo.ProcessLower()
res1 = m1(inputs)
res2 = m2(inputs)
print(json.dumps([res1, res2, inputs]))
"""


def test_the_simplest_function_and_class_give_the_results_of_the_document(run):
    first, second, inputs = run(FUNCTION, CLASS, USAGE)

    assert first == [{"content": "hello world"}]
    assert second == [{"content": "hello world"}]
    assert inputs == {"content": "Hello World"}


# ---------------------------------------------------------------- 2. designing operators

REGISTRAR = """
from typing import List
from dagster_dataops import data, data_register
demo = data_register.new_group('demo')
"""
OPERATORS = """
# Convert to uppercase, single data processing
@data_register('data.demo')
def process_uppercase(data: dict, input_key='content'):
    data[input_key] = data.get(input_key, '').upper()
    return data

# Explicitly specify output key
@data_register('data.demo')
def process_add_suffix(data: dict, input_key='content', output_key='output'):
    data[output_key] = data.get(input_key, '') + '_suffix'
    return data

# Specify multiple keys as input
@data_register('data.demo')
def process_merge(data: dict, input_key=['key1', 'key2'], output_key='output'):
    data[output_key] = data[input_key[0]] + data[input_key[1]]
    return data

# Full data processing
@data_register('data.demo', rewrite_func='forward_batch_input')
def process_deduplicate(data: List[dict], input_key='content'):
    seen = set()
    deduplicated_data = []
    for item in data:
        value = item.get(input_key, '')
        if value not in seen:
            seen.add(value)
            deduplicated_data.append(item)
    return deduplicated_data
"""
TABLE = """
class WordTableFilter(demo):
    def __init__(self, word_table, input_key='content', **kwargs):
        super().__init__(**kwargs)
        self.word_table = word_table
        self.input_key = input_key

    def forward(self, data: dict):
        content = data.get(self.input_key, '')
        for word in self.word_table:
            if word in content:
                data['filtered'] = True
                return data
        data['filtered'] = False
        return data
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("process_uppercase()([{'content': 'a'}])", [{"content": "A"}]),
        ("process_uppercase(input_key='text')([{'text': 'a'}])", [{"text": "A"}]),
        ("process_add_suffix()([{'content': 'a'}])", [{"content": "a", "output": "a_suffix"}]),
        (
            "process_add_suffix(input_key='text', output_key='text')([{'text': 'a'}])",
            [{"text": "a_suffix"}],
        ),
        (
            "process_merge()([{'key1': 'a', 'key2': 'b'}])",
            [{"key1": "a", "key2": "b", "output": "ab"}],
        ),
        (
            "process_merge(input_key=['x', 'y'], output_key='z')([{'x': 'a', 'y': 'b'}])",
            [{"x": "a", "y": "b", "z": "ab"}],
        ),
        (
            "process_deduplicate()([{'content': 'a'}, {'content': 'b'}, {'content': 'a'}])",
            [{"content": "a"}, {"content": "b"}],
        ),
        (
            "WordTableFilter(word_table=['bad'])([{'content': 'a bad word'}, {'content': 'good'}])",
            [{"content": "a bad word", "filtered": True}, {"content": "good", "filtered": False}],
        ),
    ],
)
def test_the_operators_of_the_document_work_as_commented(run, call, expected):
    assert run(REGISTRAR, OPERATORS, TABLE, f"print(json.dumps(data.demo.{call}))") == expected


DECORATED_CLASS = """
@data_register('data.demo')
class WordTableFilter:
    def __init__(self, word_table, input_key='content', **kwargs):
        super().__init__(**kwargs)
        self.word_table = word_table
        self.input_key = input_key

    def forward(self, data: dict):
        data['filtered'] = any(word in data.get(self.input_key, '') for word in self.word_table)
        return data

table = data.demo.WordTableFilter(word_table=['bad'], _concurrency_mode='thread')
print(json.dumps(table([{'content': 'bad'}, {'content': 'good'}])))
"""


def test_the_class_without_a_base_is_registered_by_the_decorator(run):
    assert run(REGISTRAR, DECORATED_CLASS) == [
        {"content": "bad", "filtered": True},
        {"content": "good", "filtered": False},
    ]


# ---------------------------------------------------------------- 3. registering

WITH_MODE = """
@data_register('data.demo', _concurrency_mode='MODE')
def process_uppercase(data: dict, input_key='content'):
    data[input_key] = data.get(input_key, '').upper()
    return data

operator = data.demo.process_uppercase(input_key='text')
mode = operator.__dataops__.resolved.concurrency_mode
print(json.dumps([mode, operator([{'text': 'a'}, {'text': 'b'}])]))
"""


@pytest.mark.parametrize("mode", ["thread", "process", "single"])
def test_the_registrar_sets_the_mode(run, mode):
    result = run(REGISTRAR, WITH_MODE.replace("MODE", mode))

    assert result == [mode, [{"text": "A"}, {"text": "B"}]]


# ---------------------------------------------------------------- pipeline

PIPELINE = """
from dagster_dataops import pipeline
from dagster_dataops.data import demo

# Prepare data
data = [
    {'text': 'hello world'},
    {'text': 'hello lazyllm'},
    {'text': 'hello world'},  # Duplicate data
]

# Build data processing pipeline
with pipeline() as ppl:
    ppl.upper = demo.process_uppercase(input_key='text')
    ppl.dedup = demo.process_deduplicate(input_key='text')
    ppl.add_suffix = demo.process_add_suffix(
        input_key='text',
        output_key='text_with_suffix',
    ).set_output('path/to/output')

# Execute data processing pipeline
result = ppl(data)
print(json.dumps([result, data]))
"""
EXPECTED = [
    {"text": "HELLO WORLD", "text_with_suffix": "HELLO WORLD_suffix"},
    {"text": "HELLO LAZYLLM", "text_with_suffix": "HELLO LAZYLLM_suffix"},
]


def test_the_pipeline_exports_a_jsonl_file_and_returns_its_absolute_path(run, tmp_path):
    result, data = run(REGISTRAR, OPERATORS, PIPELINE)

    assert Path(result).parent == tmp_path / "path" / "to" / "output"
    assert Path(result).is_absolute()
    assert result.endswith(".jsonl")
    assert lines(result) == EXPECTED
    assert [record["text"] for record in data] == ["hello world", "hello lazyllm", "hello world"]


def test_every_operator_of_the_pipeline_keeps_its_own_result(run, tmp_path):
    run(REGISTRAR, OPERATORS, PIPELINE)

    stored = tmp_path / "data_pipeline_res"
    assert sorted(path.name for path in stored.iterdir()) == ["add_suffix", "dedup", "upper"]
    assert len(lines(stored / "upper" / "upper_results.jsonl")) == 3
    assert len(lines(stored / "dedup" / "dedup_results.jsonl")) == 2
    assert lines(stored / "add_suffix" / "add_suffix_results.jsonl") == EXPECTED


# ---------------------------------------------------------------- common hyperparameters

CONCURRENCY = """
# Provide finer-grained concurrency control
operator = process_add_suffix(
    input_key='text',
    output_key='text_with_suffix',
    _concurrency_mode='thread',  # Concurrency mode: 'thread', 'process', 'single'
    _max_workers=48,  # Max concurrency number
)
resolved = operator.__dataops__.resolved
result = operator([{'text': 'a'}])
print(json.dumps([resolved.concurrency_mode, resolved.max_workers, result]))
"""
STORAGE = """
# Control storage behavior
operator = process_uppercase(
    input_key='text',
    _save_data=True,  # Whether to enable intermediate result storage (default is True)
    _ignore_errors=True,  # Whether to ignore errors during processing (default is True)
)
print(json.dumps(operator([{'text': 'a'}, {'text': 3}])))
"""


def test_the_bare_name_constructs_the_operator_with_its_concurrency(run):
    result = run(REGISTRAR, OPERATORS, CONCURRENCY)

    assert result == ["thread", 48, [{"text": "a", "text_with_suffix": "a_suffix"}]]


def test_the_bare_name_constructs_the_operator_with_its_storage(run, tmp_path):
    assert run(REGISTRAR, OPERATORS, STORAGE) == [{"text": "A"}]

    folder = tmp_path / "data_pipeline_res" / "process_uppercase"
    assert lines(folder / "process_uppercase_results.jsonl") == [{"text": "A"}]
    progress = json.loads((folder / "process_uppercase_results.jsonl.json").read_text())
    assert (progress["done"], progress["rows_in"], progress["failed"]) == (True, 2, 1)
    [error] = lines(folder / "process_uppercase_error.jsonl")
    assert (error["index"], error["input"]) == (1, {"text": 3})
    assert error["exception"] == "AttributeError"


def test_the_root_can_be_set_by_the_environment(run, tmp_path):
    run(REGISTRAR, OPERATORS, STORAGE, DATAOPS_DATA_PROCESS_PATH=str(tmp_path / "elsewhere"))

    folder = tmp_path / "elsewhere" / "process_uppercase"
    assert (folder / "process_uppercase_results.jsonl").is_file()
    assert not (tmp_path / "data_pipeline_res").exists()


PRECEDENCE = """
@data_register('data.demo')
def default(data: dict):
    return data

@data_register('data.demo', _concurrency_mode='thread')
def registered(data: dict):
    return data

operators = [default(), registered(), registered(_concurrency_mode='single')]
print(json.dumps([operator.__dataops__.resolved.concurrency_mode for operator in operators]))
"""


def test_constructor_settings_override_registered_ones_which_override_defaults(run):
    assert run(REGISTRAR, PRECEDENCE) == ["process", "thread", "single"]
