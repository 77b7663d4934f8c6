"""A Sphinx directive that lists operators, YAML fields and launchpad fields from the package.

Usage in a page::

    ```{dataops} operators
    ```
"""

from collections.abc import Iterable, Iterator
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from dagster_dataops import OperatorPipelineComponent, data_register
from dagster_dataops.assets.launchpad.operator_config import SettingsConfig

# Dagster's resolver of this field takes no description.
TRANSLATION = "Changes the asset specs: the group, tags, owners and others, with templates."


def operators() -> Iterator[str]:
    """Yield a heading, the options and the description of each operator of the library."""
    for group in data_register.groups():
        for name in data_register.operators(group):
            operator: Any = data_register.operator(group, name)
            spec = operator.__dataops_spec__
            shown = repr(operator).removeprefix("<operator ").removesuffix(">")
            yield from (f"## {group}.{name}", "", "```python", shown, "```", "")
            yield from (*spec.description.replace("``", "`").splitlines(), "")
            yield from (f"Kind: {spec.kind} operator.", "")


def yaml_fields() -> Iterator[str]:
    """Yield a table for the component and one for each model that its fields hold."""
    schema = OperatorPipelineComponent.model().model_json_schema()
    yield from fields_of("Pipeline", schema["properties"], schema.get("required", []))
    for name, model in schema["$defs"].items():
        if name.startswith("AssetSpec") or name.endswith("PartitionsDefinitionModel"):
            continue  # of Dagster
        title = name.removesuffix("Model")
        yield from fields_of(title, model.get("properties", {}), model.get("required", []))


def fields_of(title: str, fields: dict[str, Any], required: Iterable[str]) -> Iterator[str]:
    """Yield a heading and a table of fields."""
    yield from (f"## {title}", "", "| field | meaning |", "|---|---|")
    for name, field in fields.items():
        needed = " Required." if name in required else ""
        text = field.get("description", TRANSLATION if name == "translation" else "")
        text = " ".join(text.split()).replace("|", "\\|")
        if choices := field.get("enum"):
            text = f"{text} One of {', '.join(map(str, choices))}.".strip()
        yield f"| `{name}` | {text}{needed} |"
    yield ""


def launchpad() -> Iterator[str]:
    """Yield a table of the launchpad fields that every operator has."""
    yield from ("| field | meaning |", "|---|---|")
    for name, field in SettingsConfig.model_fields.items():
        yield f"| `{name}` | {' '.join((field.description or '').split())} |"


TABLES = {"launchpad": launchpad, "operators": operators, "yaml-fields": yaml_fields}


class DataOpsDirective(SphinxDirective):
    """Inserts one of the tables."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the parsed Markdown of the table."""
        lines = StringList(list(TABLES[self.arguments[0]]()), source=__file__)
        container = nodes.Element()
        self.state.nested_parse(lines, self.content_offset, container, match_titles=True)
        return container.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("dataops", DataOpsDirective)
    return {"parallel_read_safe": True}
