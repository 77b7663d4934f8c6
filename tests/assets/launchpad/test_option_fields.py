"""Options as fields of the launchpad."""

import datetime as dt
from typing import Annotated

from typing_extensions import Doc

from tests.assets.launchpad.options import Model, fields_of, params_of
from tests.registries import OperatorRegistry


def test_descriptions_come_from_docstring_annotation_and_type() -> None:
    def node(
        record: dict,
        size: tuple[int, int] = (1, 2),
        day: dt.date = dt.date(2026, 1, 2),
        tone: Annotated[str, Doc("How it sounds.")] = "warm",
        model: Model = Model(),  # noqa: B008
    ) -> dict:
        return record

    node.__doc__ = "Do.\n\nArgs:\n    size: Width and height."

    fields = fields_of(params_of(OperatorRegistry(lambda *_: None)("data.text")(node)()))
    found = {name: field.description for name, field in fields.items()}
    assert found == {
        "size": "Width and height.\n\nExactly 2 items.",
        "day": "A date such as 2026-01-31.",
        "tone": "How it sounds.",
        "model": None,
    }
    size = fields_of(fields["model"])["size"]
    assert size.description == "Of it, in billions.\n\nAt least 1."
