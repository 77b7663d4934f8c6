"""Tests of every sample of fairseq2's data pipeline document, in its intended form, as scripts.

Only the import lines differ: ``fairseq2.data`` becomes ``dagster_dataops``.
"""

import textwrap

BUILDING = """
from dagster_dataops import text

data = (
    text.read_text("file.tsv")
    .map(lambda x: str(x.split("\\t")[1]).lower())
    .filter(lambda x: len(x) < 10)
)
print(list(data))
"""
COLUMNS = """
from dagster_dataops import Selector, read_sequence

item = {"foo": [{"x": 1, "y": 2}, {"x": 3, "y": 4, "z": 5}], "bar": 6}
print(Selector("foo[1].y").get(item), Selector("[3]").get(("a", "b", "c", "d")))
stream = read_sequence([item]).map(lambda x: x * 10, selector="foo[1].y,bar").and_return()
print(list(stream), item["bar"])
"""
PSEUDO_INFINITE = """
from dagster_dataops import DataPipeline, read_sequence

pipeline1 = DataPipeline.constant(0).and_return()
pipeline2 = read_sequence([1, 2, 3]).and_return()

for example in DataPipeline.round_robin(pipeline1, pipeline2).and_return():
    print(example)
"""
INFINITE = """
from dagster_dataops import DataPipeline, read_sequence

pipeline1 = read_sequence([0]).repeat().and_return()
pipeline2 = read_sequence([1, 2, 3]).and_return()

for count, example in enumerate(DataPipeline.round_robin(pipeline1, pipeline2).and_return()):
    print(example)
    if count == 11:
        break
"""


def test_a_pipeline_over_the_lines_of_a_file_is_built(run_python, tmp_path):
    (tmp_path / "file.tsv").write_text("1\tABC\t2\n2\tMuch too long a text\t3\n3\tNine chrs")

    assert run_python(BUILDING) == "['abc', 'nine chrs']\n"


def test_columns_are_selected(run_python):
    first, second = run_python(COLUMNS).splitlines()

    assert first == "4 d"
    assert second == "[{'foo': [{'x': 1, 'y': 2}, {'x': 3, 'y': 40, 'z': 5}], 'bar': 60}] 6"


def test_a_pseudo_infinite_pipeline_yields_as_long_as_the_others(run_python):
    assert run_python(PSEUDO_INFINITE).split() == ["0", "1", "0", "2", "0", "3"]


def test_an_infinite_pipeline_keeps_the_others_going(run_python):
    assert run_python(INFINITE).split() == [
        "0",
        "1",
        "0",
        "2",
        "0",
        "3",
        "0",
        "1",
        "0",
        "2",
        "0",
        "3",
    ]


def test_streams_import_neither_dagster_nor_other_large_modules(run_python):
    code = """
    import sys
    from dagster_dataops import read_sequence
    assert list(read_sequence([1]).map(str)) == ["1"]
    loaded = {name.split(".")[0] for name in sys.modules}
    print(sorted(loaded & {"dagster", "dagster_shared", "pandas", "numpy", "torch"}))
    """
    assert run_python(textwrap.dedent(code)) == "[]\n"
