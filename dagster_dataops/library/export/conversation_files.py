"""``export.Alpaca``, ``ShareGPT``, ``Messages`` and ``ChatML``: conversations for training."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from dagster_dataops.datasets.chats.chat_record import MESSAGES, ChatRules
from dagster_dataops.datasets.chats.losses import Losses
from dagster_dataops.datasets.exporters.exporter import ExportRecords, Place, UnfitValueError
from dagster_dataops.datasets.exporters.json_lines import (
    checked_compression,
    compression_of,
    opened,
    write_array,
)
from dagster_dataops.errors import DefinitionError, UnfitRecordError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.chat.alpaca import write_alpaca
from dagster_dataops.library.chat.conversation_formats import format_of, to_messages
from dagster_dataops.library.chat.sharegpt import CONVERSATIONS, write_sharegpt
from dagster_dataops.library.chat.turns import check_no_tools, check_texts
from dagster_dataops.library.export.tables import PathLike, export
from dagster_dataops.records import Record, encode

_START, _END = "<|im_start|>", "<|im_end|>"  # the marks of ChatML
_COLUMNS: Final = {
    "messages": MESSAGES,
    "openai": MESSAGES,
    "anthropic": MESSAGES,
    "sharegpt": CONVERSATIONS,
    "alpaca": "instruction",
}
_AS_MESSAGES: Final = "use export.Messages"
_REMEDY: Final = "Repair or drop such records before, as by chat.Validate."


class _Conversations:
    """Writes converted records as JSON lines or as one JSON array, by the ending of the path.

    Args:
        path: File that is written, relative to the root of the results unless absolute.
        **kwargs: See `Operator`.
    """

    format = "json"
    place: Place = "file"

    def __init__(self, path: PathLike, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        name = str(path)
        self._compression = checked_compression(compression_of(name))
        plain = name.removesuffix(f".{self._compression}")
        if not plain.endswith((".json", ".jsonl")):
            msg = f"path is {name!r}; it must end in .json or .jsonl, perhaps with .gz or .zst"
            raise DefinitionError(msg)
        self._array = plain.endswith(".json")

    def write(self, records: ExportRecords, place: Path) -> None:
        """Write the converted records."""
        lines = self._lines(records)
        with opened(place, self._compression) as file:
            if self._array:
                write_array(lines, file)
            else:
                for line in lines:
                    file.write(line)

    def _lines(self, records: ExportRecords) -> Iterator[bytes]:
        for index, record in enumerate(records):
            try:
                yield encode(self.converted(record))
            except UnfitRecordError as error:
                column = _COLUMNS.get(format_of(record) or "", "")
                raise UnfitValueError(index, column, str(error), _REMEDY) from None

    def converted(self, record: Record) -> Record:
        """Return the record to write."""
        raise NotImplementedError


class Alpaca(_Conversations, export):
    """Write conversations in the form of Alpaca: ``instruction``, ``input`` and ``output``.

    A path that ends in ``.json`` gets one JSON array, one that ends in ``.jsonl`` an object per
    line; ``.gz`` and ``.zst`` after it compress. Reads any format of ``chat.Detect``: messages,
    ShareGPT, Alpaca, pairs such as question and answer. Other columns are left out. ``input`` is
    always there; ``system`` and ``history``, the earlier turns, if there are any.

    Turns out of order, turns of tools and a missing answer fail the export, with file and line.
    """

    @override
    def converted(self, record: Record) -> Record:
        turns = write_alpaca(to_messages(record), Losses("Alpaca"))
        if turns.get("output") is None:
            raise UnfitRecordError("the conversation does not end with an answer")
        more = {key: turns[key] for key in ("system", "history") if turns.get(key)}
        output = {"input": turns.get("input") or "", "output": turns["output"]}
        return {"instruction": turns["instruction"], **output, **more}


class ShareGPT(_Conversations, export):
    """Write conversations in the form of ShareGPT: ``conversations`` with ``from`` and ``value``.

    The path, the formats that are read and the errors are as in ``export.Alpaca``. Other columns
    are left out, except ``system`` and ``tools``. What ``chat.ToShareGPT`` cannot hold fails the
    export; ids of calls are left out. The names are ``human``, ``gpt``, ``system`` and
    ``observation``, or those of the input.
    """

    @override
    def converted(self, record: Record) -> Record:
        return _selected(
            write_sharegpt(to_messages(record), Losses("ShareGPT")),
            CONVERSATIONS,
            "system",
            "tools",
        )


class Messages(_Conversations, export):
    """Write conversations as chat records: ``messages``, objects with ``role`` and ``content``.

    The path, the formats that are read and the errors are as in ``export.Alpaca``, but tools, calls
    and parts are written. Other columns are left out, except ``tools``, ``documents`` and
    ``chat_template_kwargs``.

    Args:
        path: File that is written, relative to the root of the results unless absolute.
        arguments: The form of the arguments of calls: an ``object``, as chat templates take them,
            or JSON ``text``, as OpenAI does.
    """

    added_later = frozenset({"arguments"})

    def __init__(
        self, path: PathLike, *, arguments: Literal["object", "text"] = "object", **kwargs: Any
    ) -> None:
        super().__init__(path, **kwargs)
        self._rules = ChatRules(arguments=arguments)

    @override
    def converted(self, record: Record) -> Record:
        converted = to_messages(record, rules=self._rules)
        return _selected(converted, MESSAGES, "tools", "documents", "chat_template_kwargs")


class ChatML(_Conversations, export):
    """Write conversations as ChatML, one text per conversation in the column ``text``.

    The path, the formats that are read and the errors are as in ``export.Alpaca``. Other columns
    are left out. A content with a mark of ChatML is an error: it would end its message.
    """

    @override
    def converted(self, record: Record) -> Record:
        parts: list[str] = []
        converted: dict[str, Any] = to_messages(record)
        messages = converted[MESSAGES]
        check_texts(messages, "ChatML", _AS_MESSAGES)
        check_no_tools(converted, "ChatML", _AS_MESSAGES)
        for position, message in enumerate(messages):
            content = message["content"]
            for mark in (_START, _END):
                if mark in content:
                    raise UnfitRecordError(f"{MESSAGES}[{position}].content contains {mark}")
            parts.append(f"{_START}{message['role']}\n{content}{_END}\n")
        return {"text": "".join(parts)}


def _selected(record: Record, *keys: str) -> Record:
    return {key: record[key] for key in keys if record.get(key) is not None}
