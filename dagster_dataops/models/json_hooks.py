"""`LLMDataJson`: LazyLLM's base class of operators that get JSON from a model."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import orjson

from dagster_dataops.errors import EmptyReplyError, InvalidOutputError, ModelError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.models.json_values import json_texts, json_value
from dagster_dataops.models.llm_operator import LLMOperator
from dagster_dataops.records import Record, encode_anything

_MODEL: Final = "gpt-5-mini"
_FIELD: Final = re.compile(r"\{(\w+)\}")
_MAX_TEXT: Final = 2000
_OTHER_NAMES: Final = {"max_new_tokens": "max_tokens"}


class LLMDataJson(LLMOperator):
    """An operator that gets JSON from a model, written as for LazyLLM.

    ``preprocess(record)`` returns the values for the prompt, and fields of the request:
    ``max_new_tokens``, ``temperature`` and others. ``verify_output(output, record)`` says whether
    the JSON of a reply is usable; if it is not, the model is asked again, ``max_retries`` times in
    all. ``postprocess(output, record)`` returns the result for the record.

    ``model`` is a name, or as in LazyLLM an object that is called with the prompt and returns the
    text; it is then the ``client``.

    The prompt has the names of values in braces, such as ``{content}``. A prompt without such names
    is followed by all values as JSON.
    """

    _publishes_text = True
    _default_prompt: str | None = None
    _default_inference_kwargs: ClassVar[Mapping[str, Any]] = {
        "max_new_tokens": 512,
        "temperature": 0.2,
    }

    def __init__(
        self,
        model: Any = None,
        prompt: str | None = None,
        max_retries: int = 3,
        **kwargs: Any,
    ) -> None:
        if model is not None and not isinstance(model, str):
            kwargs = {"client": model, **kwargs}
            model = getattr(model, "__name__", type(model).__name__)
        super().__init__(model or _MODEL, prompt=prompt or self._default_prompt, **kwargs)
        self.max_retries = max_retries
        self.require("prompt", fits=bool(self.prompt), reason="is missing")
        self.require("max_retries", fits=max_retries >= 1, reason="must be 1 or more")

    def preprocess(self, data: Record) -> Any:
        """Return the values for the prompt, or these and the fields of the request."""
        return data, {}

    def verify_output(self, output: Any, data: Record) -> bool:  # noqa: ARG002
        """Return whether the JSON of a reply is usable for a record."""
        return True

    def postprocess(self, output: Any, data: Record) -> Any:
        """Return the result for a record."""
        return data | {self.output_key: output}

    @override
    def messages(self, record: Record) -> str:
        """Return the prompt for a record."""
        return _filled(self.prompt, self._prepared(record)[0])

    def _prepared(self, record: Record) -> tuple[Any, Mapping[str, Any]]:
        """Return the values for the prompt, and the fields of the request."""
        prepared = self.preprocess(record)
        return prepared if isinstance(prepared, tuple) else (prepared, {})

    @override
    async def forward(self, record: Record) -> Any:
        values, params = self._prepared(record)
        fields = {**self._default_inference_kwargs, **params, **self.params}
        fields = {_OTHER_NAMES.get(name, name): value for name, value in fields.items()}
        text = _filled(self.prompt, values)
        faults = []
        for number in range(self.max_retries):
            try:
                reply = await self.ask(text, sample=number, **fields)
                output = self._usable_output(reply.text, record)
                return self.postprocess(output, record)
            except EmptyReplyError as error:
                faults.append(str(error))
            except ModelError:
                raise
            except Exception as error:  # noqa: BLE001 - the hooks are user code
                named = (
                    "" if isinstance(error, _RefusedOutputError) else f"{type(error).__name__}: "
                )
                faults.append(f"{named}{error}")
        reason = f"none of {counted(self.max_retries, 'replies')} is usable: {'; '.join(faults)}"
        raise InvalidOutputError(reason[:_MAX_TEXT])

    def _usable_output(self, text: str, record: Record) -> Any:
        """Return the first JSON value in a text that `verify_output` takes; else raise why not."""
        first: Exception | None = None
        for piece in json_texts(text, scalars=True):
            try:
                output = json_value(piece)
            except ValueError as error:
                first = first or error
                continue
            try:
                if self.verify_output(output, record):
                    return output
                fault: Exception = _RefusedOutputError("verify_output refused it")
            except Exception as error:  # noqa: BLE001 - the hook is user code
                fault = error
            if first is None or isinstance(first, orjson.JSONDecodeError):
                first = fault
        raise first or ValueError("the text has no JSON")


class _RefusedOutputError(Exception):
    """The hook does not take the JSON of a reply."""


def _filled(prompt: str, values: Any) -> str:
    """Return the prompt with values for names in braces; otherwise followed by all values."""
    known = values if isinstance(values, Mapping) else {}

    def value_of(name: re.Match[str]) -> str:
        return str(known[name[1]]) if name[1] in known else name[0]

    if any(name in known for name in _FIELD.findall(prompt)):
        return _FIELD.sub(value_of, prompt)
    shown = values if isinstance(values, str) else encode_anything(values).decode().rstrip()
    return f"{prompt}\n\n{shown}"
