"""``llm.Transcribe``: the words in a recording."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from dagster_dataops.errors import BadReplyError, FileReferenceError
from dagster_dataops.foundation.hashing.operational import Operational
from dagster_dataops.library.llm.text_prompts import llm
from dagster_dataops.models.attached_files import MAX_BYTES, Attachments, FilePart
from dagster_dataops.models.model_operator import DEFAULT_CLIENT, ModelOperator
from dagster_dataops.models.model_session import Endpoint
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record


class Transcribe(ModelOperator, llm):
    """Write down what is said in a recording, by a speech model.

    Reads ``input_key="file"``, a path, a URL or a reference ``{"file": ...}``, and writes
    ``output_key="text"``; the text of silence is empty. A file that is cut off, as far as its
    format tells, is an error of its record, and not sent. The file is sent to the endpoint
    ``/audio/transcriptions``. For models that take sounds in a chat, use
    ``llm.Generate(prompt, audio=...)``.

    Args:
        input_key: Column with the recording.
        output_key: Column of the text.
        model: Name of the model.
        language: Code of its language, such as ``"en"``; found by the model if ``None``.
        params: Further fields of the request, such as ``{"temperature": 0}``, or a ``prompt`` with
            names and words that the recording may have.
        max_bytes: The largest file; a larger one is an error of the record.
    """

    def __init__(
        self,
        input_key: str = "file",
        output_key: str = "text",
        *,
        model: str = "whisper-1",
        language: str | None = None,
        params: Mapping[str, Any] | None = None,
        max_bytes: PositiveInt = MAX_BYTES,
        client: Annotated[Any, Operational] = DEFAULT_CLIENT,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, client, **{"_max_workers": 16, **kwargs})
        self.output_key, self._input_key = output_key, input_key
        self._attachments = Attachments({"audio": (input_key,)}, max_bytes=max_bytes)
        self._fields = {
            "response_format": "json",
            **({} if language is None else {"language": language}),
            **(params or {}),
        }
        fits = self._fields["response_format"] in _FORMATS and not self._fields.get("stream")
        reason = f"asks for a reply that is not read; leave out 'stream', and use {_FORMATS}"
        self.require("params", fits=fits, reason=reason)

    async def forward(self, record: Record) -> Record:
        part = self._part(record)
        await part.identify()
        request = {"model": self.model, "file": part, **self._fields}
        reply, _ = await self.call(request, endpoint=_TRANSCRIPTIONS)
        return record | {self.output_key: reply["text"]}

    def _part(self, record: Record) -> FilePart:
        """Return the recording of a record.

        Raises:
            FileReferenceError: The column names none, or several.
        """
        part, *others = self._attachments.parts(record)
        if others:
            problem = f"has {len(others) + 1} recordings, and one is transcribed"
            remedy = "make a record for each, such as by shape.Explode"
            raise FileReferenceError(f"column {self._input_key!r}", problem, remedy)
        return part


def _check(_: dict[str, Any], reply: dict[str, Any]) -> None:
    if not isinstance(reply.get("text"), str):
        msg = f"the reply of the speech model has no text: {str(reply)[:200]}"
        raise BadReplyError(msg)


_FORMATS: Final = ("json", "verbose_json")
_TRANSCRIPTIONS: Final = Endpoint("/audio/transcriptions", _check)
