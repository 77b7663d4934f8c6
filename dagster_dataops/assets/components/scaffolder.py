"""Write the files of a pipeline that runs as it is, for ``dg scaffold defs``."""

import re
import textwrap
from pathlib import Path
from typing import Final

import dagster as dg
import orjson
from pydantic import BaseModel, Field, field_validator

from dagster_dataops.assets.components.declared_form import declared_nodes, python_of, yaml_of
from dagster_dataops.foundation.override import override

_OPERATORS: Final = '''\
"""Operators of the pipeline {name}. Importing this file registers them."""

from dagster_dataops import data_register


@data_register("data.{name}", _concurrency_mode="process")
def count_words(record: dict, input_key: str = "text", output_key: str = "words") -> dict:
    """Count the words of a text."""
    record[output_key] = len(record[input_key].split())
    return record


@data_register("data.{name}", _concurrency_mode="process")
def keep_long(record: dict, input_key: str = "words", at_least: int = 3) -> dict | list:
    """Keep the records with enough words; an empty list drops the record."""
    return record if record[input_key] >= at_least else []
'''

_RECORDS: Final = """\
{"id": 1, "text": "Every operator is an asset."}
{"id": 2, "text": "Every operator is an asset."}
{"id": 3, "text": "Too short."}
{"id": 4, "text": "Its result is one file of JSON lines."}
"""

_YAML: Final = """\
type: {type_name}

attributes:
  # The path of a jsonl file, relative to this folder. It may also be `asset: <key>` of an upstream
  # asset, or `function: <name>` of a function in `modules` that yields dicts.
  source: records.jsonl

  # Python files in this folder, or modules, that register your operators.
  modules:
    - operators.py

  # Each operator is an asset. It takes the result of the one before it, or `inputs: [name, ...]`.
  operators:
    - name: unique
      operator: dedup.Exact
      options:
        input_key: text
    - name: counted
      operator: {name}.count_words
      options:
        input_key: text
      max_workers: 2
    - name: long
      operator: {name}.keep_long
      options:
        at_least: 3

  # schedule: "0 2 * * *"
"""

_READY_YAML: Final = """\
# {description}
type: {type_name}

attributes:
  # The path of a jsonl file, relative to this folder. It may also be `asset: <key>` of an upstream
  # asset, or `function: <name>` of a function in `modules` that yields dicts.
  source: records.jsonl

  # Operators that ask a model use OPENAI_BASE_URL and OPENAI_API_KEY, or a client:
  # clients: {{default: {{base_url: "http://localhost:8000/v1", requests_per_minute: 500}}}}

  # Each operator is an asset. It takes the result of the one before it, or `inputs: [name, ...]`.
{operators}
  # schedule: "0 2 * * *"
"""

_PYTHON: Final = """\
from pathlib import Path

import dagster as dg
{imports}


@dg.component_instance
def load(context: dg.ComponentLoadContext) -> {class_name}:
    return {class_name}(
        name="{name}",
        source=Path(__file__).parent / "records.jsonl",
{operators}    )
"""


_PYTHON_EXAMPLE: Final = """\
        modules=["operators.py"],
        operators=[
            OperatorDeclaration(
                name="unique", operator="dedup.Exact", options={"input_key": "text"}
            ),
            OperatorDeclaration(name="counted", operator="{name}.count_words"),
            OperatorDeclaration(
                name="long", operator="{name}.keep_long", options={"at_least": 3}
            ),
        ],
"""

_EXAMPLE: Final = "example"


class ScaffoldParams(BaseModel):
    """Options of ``dg scaffold defs``."""

    form: str = Field(
        default=_EXAMPLE,
        description=f"`{_EXAMPLE}`, with operators of your own, or the name of a ready pipeline: "
        "sft, retrieval, preferences, mathematics, chats, classifier, code, translations, "
        "image_text.",
    )

    @field_validator("form")
    @classmethod
    def _is_known(cls, form: str) -> str:
        from dagster_dataops.library.ready import FORMS

        if form not in {_EXAMPLE, *FORMS}:
            msg = f"{form!r} is no form; use one of {', '.join([_EXAMPLE, *FORMS])}"
            raise ValueError(msg)
        return form


class OperatorPipelineScaffolder(dg.Scaffolder[ScaffoldParams]):
    """Writes a defs.yaml or component.py, with operators and records for it."""

    @override
    @classmethod
    def get_scaffold_params(cls) -> type[ScaffoldParams]:
        """Return the model of the options."""
        return ScaffoldParams

    @override
    def scaffold(self, request: dg.ScaffoldRequest[ScaffoldParams]) -> None:
        """Write the files into the folder of the request; existing files are kept."""
        folder = request.target_path
        name = name_of(folder)
        if request.params.form != _EXAMPLE:
            _write_ready(request, name)
            return
        if request.scaffold_format == "python":
            _write_python(request, name, _PYTHON_EXAMPLE.replace("{name}", name))
        else:
            text = _YAML.format(type_name=request.type_name, name=name)
            _write_yaml(folder / "defs.yaml", text, append=request.append)
        _write_new(folder / "operators.py", _OPERATORS.format(name=name))
        _write_new(folder / "records.jsonl", _RECORDS)


class ListedPipelineScaffolder(OperatorPipelineScaffolder):
    """Writes the files of a pipeline with a partition for each file of a folder."""

    @override
    def scaffold(self, request: dg.ScaffoldRequest[ScaffoldParams]) -> None:
        """Write the files into the folder of the request; existing files are kept."""
        super().scaffold(request)
        folder = request.target_path
        inbox = folder / "inbox"
        inbox.mkdir(exist_ok=True)
        (folder / "records.jsonl").rename(inbox / "first.jsonl")
        file = folder / ("component.py" if request.scaffold_format == "python" else "defs.yaml")
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("records.jsonl", "inbox/{partition}.jsonl"), encoding="utf-8")


def name_of(folder: Path) -> str:
    """Return the pipeline name for the folder of a component, an identifier."""
    name = re.sub(r"\W", "_", folder.name, flags=re.ASCII)
    return name if name[:1].isalpha() else f"pipeline_{name.lstrip('_')}"


def _write_ready(request: dg.ScaffoldRequest[ScaffoldParams], name: str) -> None:
    """Write a ready pipeline with all of its operators, so that each can be changed."""
    from dagster_dataops.library.ready import FORMS

    ready = FORMS[request.params.form]
    nodes = declared_nodes(ready.build(name, **ready.options).graph)
    folder = request.target_path
    if request.scaffold_format == "python":
        operators = textwrap.indent(f"operators={python_of(nodes)},\n", " " * 8)
        _write_python(request, name, operators)
    else:
        description = (ready.build.__doc__ or "").partition("\n")[0]
        text = _READY_YAML.format(
            type_name=request.type_name,
            description=description.replace("Return a", "A", 1),
            operators=yaml_of(nodes),
        )
        _write_yaml(folder / "defs.yaml", text, append=request.append)
    records = b"".join(orjson.dumps(record) + b"\n" for record in ready.records)
    _write_new(folder / "records.jsonl", records.decode())


def _write_python(request: dg.ScaffoldRequest[ScaffoldParams], name: str, operators: str) -> None:
    module, _, class_name = request.type_name.rpartition(".")
    names = [class_name] if module == "dagster_dataops" else []
    imports = f"from dagster_dataops import {', '.join(['OperatorDeclaration', *names])}"
    if not names:
        imports += f"\nfrom {module} import {class_name}"
    text = _PYTHON.format(imports=imports, class_name=class_name, name=name, operators=operators)
    (request.target_path / "component.py").write_text(text, encoding="utf-8")


def _write_yaml(path: Path, text: str, *, append: bool) -> None:
    if append:
        text = f"{path.read_text(encoding='utf-8').rstrip()}\n---\n{text}"
    path.write_text(text, encoding="utf-8")


def _write_new(path: Path, text: str) -> None:
    if not path.exists():
        path.write_text(text, encoding="utf-8")
