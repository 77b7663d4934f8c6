"""Tests of the table of kinds: it alone knows them, and a module of its own can add one."""

import ast
import os
import pickle
import signal
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

import dagster_dataops
from dagster_dataops import config, data, data_register, pipeline
from dagster_dataops.assets.launchpad.option_fields import option_descriptions
from dagster_dataops.errors import (
    ChainDefinitionError,
    DefinitionError,
    OperatorDefinitionError,
    OperatorOptionError,
    PipelineDefinitionError,
)
from dagster_dataops.execution.runners.runner import Runner
from dagster_dataops.operators.kinds import kind_table
from dagster_dataops.operators.kinds.kind import Inputs, OperatorKind, Tracing
from dagster_dataops.operators.kinds.kind_table import (
    RECORD,
    data_methods,
    kind_named,
    kinds,
    register_kind,
)
from dagster_dataops.pipelines.chaining import chain
from tests.assets.helpers import read_jsonl
from tests.each import each
from tests.execution.helpers import lines, node, write_input
from tests.faults.crashing import Script
from tests.operators.kinds.further_kinds import MODEL, SORTING, Centre, Mean, Sorted, by_length
from tests.subprocesses import killed_at_exit

PACKAGE: Final = Path(dagster_dataops.__file__).parent
TABLE: Final = PACKAGE / "operators" / "kinds"
SHIPPED: Final = {one.name for one in vars(kind_table).values() if isinstance(one, OperatorKind)}
# Texts that are no kinds of operators: the mode of a model client, a key of a loader's state.
OTHERS: Final = {
    ("training/loading/loader.py", "{'seed', 'epoch', 'stream'} <= set(state)"),
    ("training/loading/rank_states.py", "key == 'stream'"),
    ("models/llm_operator.py", "name != 'record'"),
}


class Comparisons(ast.NodeVisitor):
    """Finds the expressions that compare the names of kinds, or look something up by them."""

    def __init__(self, source: str) -> None:
        self.names = SHIPPED
        self.found: set[str] = set()
        self.visit(ast.parse(source))

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        self._note(node, fits=any(map(self._is_name, sides)))
        self.generic_visit(node)

    def visit_MatchValue(self, node: ast.MatchValue) -> None:
        self._note(node, fits=self._is_name(node.value))

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._note(node, fits=ast.unparse(node.slice).endswith(("spec.kind", "spec.kind.name")))
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        self._note_table(node, [one for one in node.keys if one is not None])

    def visit_Set(self, node: ast.Set) -> None:
        self._note_table(node, node.elts)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        self._note_table(node, node.elts)

    def _is_name(self, node: ast.AST) -> bool:
        """Return whether an expression is a kind, its name, or a collection that holds a name."""
        match node:
            case ast.Constant(value=value):
                return value in self.names
            case ast.Name(id=name):
                return name.lower() in self.names and name.isupper()
            case ast.Attribute(value=kind, attr="name"):
                return self._is_name(kind)
            case ast.JoinedStr(values=parts):
                return any(self._is_name(part) for part in parts)
            case ast.FormattedValue(value=part):
                return self._is_name(part)
            case ast.Set() | ast.List() | ast.Tuple():
                return any(map(self._is_name, node.elts))
            case ast.Call(args=[only]):  # such as frozenset({...})
                return self._is_name(only)
        return False

    def _note_table(self, node: ast.AST, keys: list[ast.expr]) -> None:
        values = [one.value for one in keys if isinstance(one, ast.Constant)]
        self._note(node, fits=1 < len(values) == len(keys) and set(values) <= self.names)
        self.generic_visit(node)

    def _note(self, node: ast.AST, *, fits: bool) -> None:
        if fits:
            self.found.add(ast.unparse(node))


@pytest.mark.slow
def test_no_module_but_the_table_compares_names_of_kinds() -> None:
    found = {
        (str(path.relative_to(PACKAGE)), text)
        for path in PACKAGE.rglob("*.py")
        if TABLE not in path.parents
        for text in Comparisons(path.read_text()).found
    }
    assert found == OTHERS


@each(
    "source",
    [
        "spec.kind == 'record'",
        "spec.kind.name not in {'artefact', 'export'}",
        "'stream' != manifest.kind",
        "kind in frozenset(['record', 'selection'])",
        "spec.kind is EXPORT",
        "spec.kind.name == EXPORT.name",
        "spec.kind_text == f'{RECORD.name} operator'",
        "WHOLE = {'artefact': 'all', 'export': 'all'}",
        "WHOLE = ('dataset', 'stream')",
        "TEXTS[spec.kind]",
        "TEXTS[use.spec.kind.name]",
        "match kind:\n    case 'reader':\n        pass",
    ],
)
def test_each_way_to_compare_the_name_of_a_kind_is_found(source: str) -> None:
    assert Comparisons(source).found


def test_the_documents_have_a_row_for_each_kind_of_operator() -> None:
    text = (PACKAGE.parent / "docs" / "concepts" / "operators.md").read_text()
    for name in SHIPPED - {"reader"}:
        assert f"\n| {name} |" in text


@each("kind", kinds())
def test_a_kind_survives_pickling(kind: OperatorKind) -> None:
    assert pickle.loads(pickle.dumps(kind)) == kind


@each("kind", kinds())
def test_every_kind_of_operator_has_a_runner(kind: OperatorKind) -> None:
    module, _, name = kind.runner.partition(":")
    assert Runner in getattr(import_module(module), name).__mro__


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_an_operator_of_a_further_kind_runs_in_each_mode_and_in_pipelines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: str
) -> None:
    monkeypatch.setattr(config, "data_process_path", str(tmp_path))
    records = [{"n": n % 7, "at": n} for n in range(40)]
    records[5] = {"at": 5}  # fails: there is nothing to sort by
    with pipeline("sorted") as ppl:
        ppl.before = Sorted(_concurrency_mode=mode, _max_workers=2)
        ppl.after = by_length(column="at", _ignore_errors=True)
        ppl.mean = Mean()
        ppl.centred = data.further_kinds.Centre(ppl.mean)
    sorted_before = sorted((one for one in records if "n" in one), key=lambda one: -one["n"])
    assert Sorted(_concurrency_mode=mode, _max_workers=2)(records) == sorted_before

    for one in records:
        one["at"] = "x" * one["at"]  # type: ignore[assignment, operator]
    records[5]["n"] = 3
    mean = sum(one["n"] for one in records) / 40
    by_text = sorted(sorted(records, key=lambda one: -one["n"]), key=lambda one: len(one["at"]))  # type: ignore[arg-type]
    assert ppl(records) == [{"n": one["n"] - mean} for one in by_text]
    assert [one["n"] for one in read_jsonl(tmp_path / "sorted/after/after_results.jsonl")] == [
        one["n"] for one in by_text
    ]


@pytest.mark.slow
def test_an_operator_of_a_further_kind_continues_after_a_kill(tmp_path: Path) -> None:
    code = """
from tests.operators.kinds.further_kinds import Sorted
if __name__ == "__main__":
    operator = Sorted(wait=0.02, log=str(HOME / "called"), _concurrency_mode="process")
    print(*run(operator).notes)
"""
    write_input(tmp_path / "input.jsonl", [{"n": n * 7 % 100} for n in range(100)])
    script = Script(tmp_path, code)
    with killed_at_exit(script.start()) as process:
        script.wait_for("called", 60)
        os.killpg(process.pid, signal.SIGKILL)
    assert "resuming" in script.finish()
    assert len(script.log("called")) < 160
    assert node(tmp_path).result.read_bytes() == lines([{"n": n} for n in range(99, -1, -1)])


def test_errors_list_the_methods_of_further_kinds() -> None:
    with pytest.raises(OperatorOptionError, match=r"forward_batch_input, stream, sort_key; got"):
        data_register("data.further_kinds", rewrite_func="sort")
    group: Any = data_register.new_group("further_kinds")
    with pytest.raises(OperatorDefinitionError, match=r"neither of forward, .*, sort_key and fit,"):
        type(group)("Nothing", (group,), {"__qualname__": "Nothing", "__module__": __name__})
    with pytest.raises(OperatorDefinitionError, match="it has both of build and fit"):
        type(group)(
            "Both",
            (group,),
            {
                "__qualname__": "Both",
                "__module__": __name__,
                "build": lambda self, records, folder: None,
                "fit": lambda self, records, folder: None,
            },
        )
    with pytest.raises(OperatorDefinitionError, match=r"fit must take \(self, records, folder\)"):
        type(group)(
            "Odd",
            (group,),
            {"__qualname__": "Odd", "__module__": __name__, "fit": lambda self, records: None},
        )


def test_what_a_further_kind_may_not_do_is_refused_with_its_name() -> None:
    with pytest.raises(ChainDefinitionError, match="is a sorting operator, which takes all"):
        chain(by_length())
    with pytest.raises(OperatorOptionError, match="a sorting operator has no outcome per record"):
        by_length(_reuse_outcomes=True)
    with pytest.raises(OperatorOptionError, match="others take the model"):
        Mean(_save_data=False)
    with pytest.raises(OperatorOptionError, match="copy the model instead"):
        Mean().set_output("model.jsonl")
    refused = pytest.raises(PipelineDefinitionError, match="which is a model: a folder, not rec")
    with refused, pipeline("wrong") as ppl:
        ppl.mean = Mean()
        ppl.add("after", by_length(), "mean")
    refused = pytest.raises(PipelineDefinitionError, match="'ordered'.*which is a sorting operat")
    with refused, pipeline("wrong") as ppl:
        ppl.ordered = Sorted()
        ppl.centred = data.further_kinds.Centre(ppl.ordered)
    assert Centre.__dataops_spec__.kind is RECORD


def test_options_of_the_method_of_a_further_kind_are_described() -> None:
    assert option_descriptions(by_length.function, data_methods())["column"] == "The text."
    assert {"sort_key", "fit", "forward"} <= set(data_methods())


def test_a_kind_whose_records_cannot_be_traced_or_chained_says_why() -> None:
    for kind in kinds():
        assert kind.reads_source or kind.trace is not Tracing.NONE or kind.as_a_whole
        assert kind.chained != bool(kind.refused_in_chains)


def test_the_result_of_an_unknown_kind_holds_records_that_cannot_be_traced() -> None:
    unknown = kind_named("distant")
    assert not unknown.holds_files
    assert unknown.as_a_whole == "nothing is known of a distant operator"


@each(
    "change",
    [
        (
            {"name": "record"},
            "kind 'record' of .*: there is another one of this name, with forward",
        ),
        ({"method": "forward"}, "its method forward makes a record operator"),
        ({"further_methods": ("keep",)}, "its method keep makes a selection operator"),
        ({"batch_methods": ("fit",)}, "its method fit makes a model operator"),
        ({"runner": "some_module.Runner"}, "its runner is 'some_module.Runner'"),
        ({"name": "two words"}, "its name is not a plain identifier"),
    ],
)
def test_a_kind_that_contradicts_another_is_refused(change: tuple[dict, str]) -> None:
    fields, reason = change
    fresh = OperatorKind(
        name="fresh", method="refresh", inputs=Inputs.DATASETS, runner="module:Runner"
    )
    before = {one.name: one for one in kinds()}
    with pytest.raises(DefinitionError, match=reason):
        register_kind(fresh._replace(**fields))
    assert {one.name: one for one in kinds()} == before


def test_registering_a_kind_again_changes_nothing() -> None:
    assert register_kind(SORTING._replace()) is SORTING
    assert kind_named("model") is MODEL
