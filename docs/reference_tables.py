"""A Sphinx directive that inserts operators, YAML fields and launchpad fields from the package.

Usage in a page::

    ```{dataops} yaml-fields
    ```
    ```{dataops} group text
    ```

In the catalogue, an operator in backticks becomes a link to its section.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import operator_catalogue
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from dagster_dataops import OperatorPipelineComponent
from dagster_dataops.assets.launchpad.config_schema import COMMON_FIELDS
from dagster_dataops.operators.options.settings import execution_settings

# Dagster's resolver of this field takes no description.
TRANSLATION = "Changes the asset specs: the group, tags, owners and others, with templates."


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
    settings = execution_settings()
    for name, field in COMMON_FIELDS.items():
        text = settings[name].description if name in settings else field.description or ""
        yield f"| `{name}` | {' '.join(text.split())} |"


TABLES: dict[str, Callable[..., Iterator[str]]] = {
    "group": operator_catalogue.group_page,
    "groups": operator_catalogue.groups_table,
    "launchpad": launchpad,
    "yaml-fields": yaml_fields,
}


class DataOpsDirective(SphinxDirective):
    """Inserts one of the tables."""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the parsed Markdown of the table."""
        table, *rest = self.arguments
        lines = StringList(list(TABLES[table](*rest)), source=__file__)
        container = nodes.Element()
        self.state.nested_parse(lines, self.content_offset, container, match_titles=True)
        return container.children


def link_operators(_app: Sphinx, page: str, source: list[str]) -> None:
    """Turn the names of operators in a page of the catalogue into links."""
    if page.startswith("catalogue/"):
        source[0] = operator_catalogue.linked(source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("dataops", DataOpsDirective)
    app.connect("source-read", link_operators)
    return {"parallel_read_safe": True}
