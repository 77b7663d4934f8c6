"""Render prompts: Jinja templates over the columns of a record, in a sandbox."""

import functools
from collections import ChainMap
from collections.abc import Mapping
from typing import Any

import orjson

from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.operators.options.signature import nearest


@functools.cache
def compiled(text: str) -> Any:
    """Return the template of a text.

    Raises:
        ValueError: The text is no valid template.
    """
    from jinja2 import TemplateSyntaxError

    try:
        template = _environment().from_string(text)
    except TemplateSyntaxError as error:
        msg = f"line {error.lineno}: {error.message}"
        raise ValueError(msg) from None
    template.globals = dict(template.globals)  # each rendering copies them: a chain takes long
    return template


@functools.cache
def _environment() -> Any:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.filters["tojson"] = _as_json  # Jinja's own writes < and > as escapes
    return environment


def _as_json(value: object) -> str:
    """Return a value as JSON; of a record that notes its use, all columns count as read."""
    options = orjson.OPT_PASSTHROUGH_SUBCLASS
    return orjson.dumps(value, default=_of_usual_class, option=options).decode()


def _of_usual_class(value: Any) -> object:
    kind = next((kind for kind in (dict, str, list, int) if isinstance(value, kind)), None)
    if kind is None:
        msg = f"a {type(value).__name__} is no value of JSON"
        raise TypeError(msg)
    return kind(value)


@functools.cache
def _free_names(text: str) -> tuple[str, ...]:
    """Return the names that a template takes from outside, also those that it may do without."""
    from jinja2 import meta

    return tuple(sorted(meta.find_undeclared_variables(_environment().parse(text))))


def rendered(text: str, values: Mapping[str, Any]) -> str:
    """Render a Jinja template. It sees the values by name, and the filter ``tojson``.

    Raises:
        UnfitRecordError: The template needs a value that is not there.
    """
    from jinja2 import TemplateError

    if "{" not in text:
        return text
    try:
        seen = {name: values[name] for name in _free_names(text) if name in values}
        return str(compiled(text).render(seen))
    except TemplateError as error:
        known = ", ".join(values) or "none"
        absent = (name for name in needed_names(text) if name not in values)
        near = next(filter(None, (nearest(name, values) for name in absent)), None)
        hint = f"; did you mean {near!r}?" if near else ""
        reason = f"the prompt cannot be made: {error.message}; known: {known}{hint}"
        raise UnfitRecordError(reason) from None


def rendered_prompt(text: str, values: Mapping[str, Any]) -> str:
    """Render the template of what a model is asked.

    Raises:
        UnfitRecordError: The template needs a value that is not there, or its values are empty and
            it has no other text: the model would be paid for an answer to nothing.
    """
    prompt = rendered(text, values)
    if text.strip() and not prompt.strip():
        names = ", ".join(_free_names(text)) or "no values"
        raise UnfitRecordError(f"the prompt is empty: it is made of {names}")
    return prompt


def with_values(values: Mapping[str, Any], more: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return values for templates with more, which replace those of the same name; none is read."""
    return ChainMap(dict(more), values)  # type: ignore[arg-type]  # templates change none


def needed_names(text: str) -> list[str]:
    """Return the names without which a Jinja template cannot be rendered, in order.

    Names in parts that may not be rendered, such as the body of an ``if``, are left out; so are
    those with a test such as ``is defined``, or a default.
    """
    if "{" not in text:
        return []
    from jinja2 import TemplateSyntaxError, meta

    try:
        tree = _environment().parse(text)
    except TemplateSyntaxError:  # the operator refuses it
        return []
    free = meta.find_undeclared_variables(tree)
    names: dict[str, None] = {}
    _add_needed(tree, names)
    return [name for name in names if name in free]


def _add_needed(node: Any, names: dict[str, None]) -> None:
    """Add the names of a node of a template that are always evaluated."""
    from jinja2 import nodes

    match node:
        case nodes.Name(ctx="load"):
            names[node.name] = None
        case nodes.Test(name="defined" | "undefined") | nodes.Filter(name="default" | "d"):
            pass
        case nodes.If() | nodes.CondExpr():
            _add_needed(node.test, names)
        case nodes.For():
            _add_needed(node.iter, names)
        case nodes.And() | nodes.Or():
            _add_needed(node.left, names)
        case nodes.Macro() | nodes.CallBlock():
            pass
        case _:
            for inner in node.iter_child_nodes():
                _add_needed(inner, names)
