"""The README's examples run, its commands are there, and the files that it names exist."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_the_five_minute_example_does_what_it_says(run_python: Callable[..., str]) -> None:
    expected = re.search(r"# (\[\{.*\}\])$", EXAMPLES[0], re.MULTILINE)

    assert expected is not None
    assert run_python(EXAMPLES[0]).strip() == expected.group(1)


def test_the_example_of_a_pipeline_inside_another_has_the_nodes_it_says(
    run_python: Callable[..., str],
) -> None:
    (example,) = [text for text in EXAMPLES if "reviews.clean" in text]

    printed = run_python(f"{EXAMPLES[0]}\n{example}\nprint(*reviews.graph.nodes)").splitlines()

    assert printed[-1] == "clean_upper clean_unique clean_suffix first"


def test_the_dagster_example_gives_a_source_and_an_asset_a_node(
    run_python: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "docs.jsonl").write_text('{"text": "hello"}\n')
    names = "print(*sorted(s.key.to_user_string() for s in defs.resolve_all_asset_specs()))"

    printed = run_python(f"{EXAMPLES[0]}\n{EXAMPLES[1]}\n{names}")

    assert printed.splitlines()[-1] == "docs/docs docs/suffix docs/unique docs/upper"


def test_the_checks_of_the_example_pass_and_stand_on_their_assets(
    run_python: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "docs.jsonl").write_text('{"text": "hello"}\n{"text": "hello"}\n')
    run = (
        "result = defs.resolve_implicit_global_asset_job_def().execute_in_process()\n"
        "for check in result.get_asset_check_evaluations():\n"
        "    print(check.asset_key.path[-1], check.check_name, check.passed)\n"
    )

    (example,) = [text for text in EXAMPLES if "ErrorRateCheck" in text]
    printed = run_python(f"{EXAMPLES[0]}\n{example}\n{run}").splitlines()

    assert sorted(line for line in printed if line.endswith(("True", "False"))) == [
        "docs required_columns True",
        "suffix failed_records True",
        "suffix no_nulls_text True",
        "suffix unique_text True",
        "unique failed_records True",
        "unique max_dropped True",
        "unique row_count True",
        "upper failed_records True",
    ]


def test_the_example_of_partitions_joins_what_each_file_gave(
    run_python: Callable[..., str], tmp_path: Path
) -> None:
    (example,) = [text for text in EXAMPLES if "NewFiles" in text]
    (tmp_path / "inbox").mkdir()
    for name, text in [("a", "hello"), ("b", "hello"), ("c", "world")]:
        (tmp_path / "inbox" / f"{name}.jsonl").write_text(f'{{"text": "{text}"}}\n')

    printed = run_python(f"{EXAMPLES[0]}\n{example}\n{_MATERIALIZE}")

    assert printed.splitlines()[-1] == "[{'text': 'HELLO'}, {'text': 'WORLD'}]"


def test_the_example_of_streams_mixes_what_two_pipelines_made(
    run_python: Callable[..., str], tmp_path: Path
) -> None:
    (example,) = [text for text in EXAMPLES if "stream_name" in text]
    for name, count in [("docs", 40), ("extra", 3)]:
        rows = [f'{{"text": "{name} {n}"}}\n' for n in range(count)]
        (tmp_path / f"{name}.jsonl").write_text("".join(rows))
    run = (
        "result = defs.resolve_implicit_global_asset_job_def().execute_in_process()\n"
        "rows = result.output_for_node('training__unique')\n"
        "print(sorted({row['text'][0] for row in rows}), 'DOCS' in str(rows.read()))\n"
    )

    printed = run_python(f"{EXAMPLES[0]}\nimport dagster as dg\n{example}\n{run}")

    assert printed.splitlines()[-1] == "['D', 'd', 'e'] True"


def test_the_example_of_training_reads_a_rank_s_share_of_the_result(
    run_python: Callable[..., str],
) -> None:
    (example,) = [text for text in EXAMPLES if "bucket_by_length" in text]
    made = EXAMPLES[0]
    many = 'ppl([{"text": f"{number} {number}"} for number in range(9)])'

    printed = run_python(f"{made}\n{many}\n{example}\nprint([len(batch) for batch in batches])")

    assert printed.splitlines()[-1] == "[15]"  # five of nine, three times


def test_the_example_of_pytorch_makes_streams_of_shards(run_python: Callable[..., str]) -> None:
    (example,) = [text for text in EXAMPLES if "torch_dataset" in text]
    made = EXAMPLES[0]
    shards = "[[record['text'] for record in shard_of_docs(at, 2)] for at in range(2)]"
    plain = example.replace("dataset = ", "# dataset = ")

    printed = run_python(f"{made}\n{plain}\nprint(sorted({shards}))")

    assert printed.splitlines()[-1] == "[[], ['HELLO!']]"


def test_the_example_of_a_reader_reads_its_part_files(
    run_python: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part-000").write_text("1,2\n3,4")
    (tmp_path / "parts" / "part-001").write_text("5,6\n")
    (example,) = [text for text in EXAMPLES if "PartFiles" in text]

    printed = run_python(f"{example}\nprint(sorted(point['x'] + point['y'] for point in points))")

    assert printed.splitlines()[-1] == "[3.0, 7.0, 11.0]"


_MATERIALIZE = """
from pathlib import Path

import pytest

from dagster_dataops import JsonlDataset

assert defs.resolve_sensor_def("inbox_files_new_files").job_name == "inbox_pipeline"
with dg.DagsterInstance.ephemeral() as instance:
    instance.add_dynamic_partitions("inbox_files", ["a", "b", "c"])
    for key in "abc":
        job = defs.resolve_job_def("inbox_pipeline")
        job.execute_in_process(instance=instance, partition_key=key)
    defs.resolve_job_def("inbox_pipeline_unpartitioned").execute_in_process(instance=instance)
(result,) = Path().rglob("inbox/unique/unique_results.jsonl")
print(JsonlDataset.of_file(result).read())
"""


def test_every_file_that_the_readme_names_exists() -> None:
    named = set(re.findall(r"`((?:dagster_dataops|tests|benchmarks|docs|examples)/[\w/.]+)`", TEXT))
    named |= set(re.findall(r"!\[[^\]]+\]\(([\w/.]+)\)", TEXT))

    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_readme_has_two_commands_of_one_line_each() -> None:
    (block,) = re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)
    lines = block.splitlines()

    assert [lines[0], lines[2]] == ["# install and materialize", "# test"]
    assert len(lines) == 4


def test_its_pictures_are_small() -> None:
    pictures = [ROOT / path for path in re.findall(r"!\[[^\]]+\]\(([\w/.]+)\)", TEXT)]

    assert len(pictures) == 3
    assert [str(path) for path in pictures if path.stat().st_size > 150_000] == []


_SHIPPED = """
from dagster_dataops import data_register

for group in data_register.groups():
    for name in data_register.operators(group):
        operator = data_register.operator(group, name)
        shown = repr(operator).removeprefix("<operator ").removesuffix(">")
        first = " ".join(operator.__dataops_spec__.description.split()).replace("``", "`")
        print(f"| `{shown}` | {first}")
"""


def test_the_operators_that_ship_are_listed_with_their_options_and_first_sentences(
    run_python: Callable[..., str],
) -> None:
    _, _, after = TEXT.partition("#### Operators that ship\n\n")
    listed = after.partition("\n\n")[0].splitlines()[2:]

    shipped = run_python(_SHIPPED).splitlines()

    assert len(listed) == len(shipped)
    for row, operator in zip(listed, shipped, strict=True):
        assert operator.startswith(f"{row.removesuffix(' |')}.")


COMMANDS = [
    line.removeprefix("$ ").partition("  #")[0].strip()
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines()
]


def test_the_ui_is_started_by_the_command_that_dagster_recommends() -> None:
    cli = pytest.importorskip("dagster_dg_cli.cli.dev")
    started = [shlex.split(line)[2:] for line in COMMANDS if line.startswith("dg dev")]

    assert started == [["-f", "definitions.py"], []]
    for arguments in started:
        cli.dev_command.make_context("dg dev", arguments)  # refuses unknown options
    assert not any("dagster dev" in line for line in COMMANDS)


def test_the_history_of_runs_is_kept_before_anything_is_run() -> None:
    home = [at for at, line in enumerate(COMMANDS) if "export DAGSTER_HOME=" in line]
    run = [at for at, line in enumerate(COMMANDS) if re.search(r"dg (dev|launch)", line)]
    installed = [at for at, line in enumerate(COMMANDS) if "dagster-dg-cli" in line]

    assert len(home) == len(installed) == 2
    assert installed[0] < home[0] < run[0] < installed[1] < home[1] < run[1]
