"""ChatRenderer: the texts of the conversations of records, by one chat template."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from dagster_dataops.datasets.chats.chat_record import (
    MESSAGES,
    REASONING,
    REASONING_NAMES,
    ChatRules,
    Message,
)
from dagster_dataops.datasets.chats.json_fields import dict_entry, json_list, list_of_dicts
from dagster_dataops.errors import DefinitionError, UnfitRecordError
from dagster_dataops.library.chat.conversation_formats import format_of, to_messages
from dagster_dataops.library.chat.rendering_builtin import BUILTIN, builtin
from dagster_dataops.library.chat.rendering_calls import shown_form, with_arguments
from dagster_dataops.library.chat.rendering_files import (
    TemplateFiles,
    template_files,
    token_texts,
)
from dagster_dataops.library.chat.rendering_jinja import ChatTemplate, Rendered, clock
from dagster_dataops.library.chat.tagged_templates import with_tags
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.records import Record

_REASONING_KEYS: Final = frozenset(REASONING_NAMES)
_CONTINUED: Final = "CONTINUE_FINAL_MESSAGE_TAG "
_AS_THEY_ARE: Final = frozenset({"messages", "openai"})  # the template has rules of its own
_ANY_ORDER: Final = ChatRules(order="any", unanswered="keep", flatten_text=False)
RUN: Final = "run"
_FORMS: Final = ("auto", "object", "text", "keep")


class ChatRenderer:
    """Renders the conversations of records, by one template with fixed options.

    Args:
        template: The name of a template of this package, a Jinja text, ``"@"`` and a path as in
            `template_files`, or Jinja texts by name.
        template_name: Which of several templates; ``None`` for ``tool_use`` where a record has
            tools, else ``default``.
        template_kwargs: Further names of the template.
        special_tokens: Texts of special tokens by name; they go before those of the files.
        bos_token: As in ``special_tokens``.
        eos_token: As in ``special_tokens``.
        tools: Tools of records that have none.
        documents: Documents of records that have none.
        now: The time of ``strftime_now``, or ``run``.
        strict: Whether an unknown name is an error of the record.
        arguments: The form of the arguments of calls: ``object``, ``text``, ``keep``, or ``auto``
            for the one that the template shows.
        tags: Whether published templates get the tag ``generation``.

    Attributes:
        texts: The Jinja texts by name; none for a template of this package.
        special_tokens: The texts of special tokens by name.
        arguments: The form of arguments by the name of the template.
        defaults: Tools and documents of records that have none; ``None`` for none.
    """

    def __init__(
        self,
        template: str | Mapping[str, str],
        *,
        template_name: str | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
        special_tokens: Mapping[str, Any] | None = None,
        bos_token: str | None = None,
        eos_token: str = "",
        tools: Sequence[Any] | None = None,
        documents: Sequence[Any] | None = None,
        now: str | None = None,
        strict: bool = False,
        arguments: str = "keep",
        tags: bool = False,
    ) -> None:
        check_choice("arguments", arguments, _FORMS)
        self._builtin = template if isinstance(template, str) and template in BUILTIN else None
        files = TemplateFiles({}, {}) if self._builtin else _files(template)
        self.texts = _tagged(files.templates) if tags else files.templates
        self.special_tokens = files.special_tokens | token_texts(special_tokens or {})
        self._marks = {"bos_token": bos_token, "eos_token": eos_token}
        marks = {name: text for name, text in self._marks.items() if text}
        # A bare text has no tokenizer whose tokens could be missing.
        usual = {} if self.special_tokens else {"bos_token": "", "eos_token": ""}
        self._kwargs = dict(template_kwargs or {})
        self._names: dict[str, Any] = {**usual, **self.special_tokens, **marks}
        self.defaults = {"tools": tools, "documents": documents}
        self._of_run = now == RUN
        if now is not None:
            self._names["strftime_now"] = _time_of(now)
        self._templates = _chosen(self.texts, template_name, strict=strict)
        for chat_template in self._templates.values():
            if now is None and chat_template.calls("strftime_now"):
                msg = "the template calls strftime_now: give now='2026-01-02T03:04:05', or another "
                raise DefinitionError(f"{msg}time, so that each run writes the same text, or 'run'")
        self.arguments = {
            name: shown_form(form, self._names | self._kwargs) if arguments == "auto" else arguments
            for name, form in self._templates.items()
        }

    def begin(self, started: str) -> None:
        """Take the start of a run as the time, if ``now`` is ``run``; empty if it is not known."""
        if self._of_run and started:
            self._names["strftime_now"] = clock(started)

    @property
    def endings(self) -> frozenset[str]:
        """The texts of special tokens, which a template may write behind the last turn."""
        return frozenset(text for text in self._names.values() if isinstance(text, str) and text)

    @property
    def marked(self) -> bool:
        """Whether each template says what the assistant writes, by the tag ``generation``."""
        return all(template.marked for template in self._templates.values())

    def with_messages(self, record: Record) -> dict[str, Any]:
        """Return a record with its conversation as ``messages``, as the template takes them."""
        if self._builtin is not None:
            return to_messages(record)
        if not _is_plain(record) and format_of(record) not in _AS_THEY_ARE:
            record = to_messages(record, None, _ANY_ORDER)
        form = self.arguments[self._name_for(record)]
        messages = _dicts(record, MESSAGES)
        if not messages:
            raise UnfitRecordError(f"{MESSAGES} has no turns")
        return record | {MESSAGES: _in_form(messages, form)}

    def content(self, record: Record, key: str) -> Any:
        """Return what a template shows of a record.

        Args:
            record: The record.
            key: A column; ``tools`` and ``documents`` may be those of the options.

        Returns:
            The value of the column; ``None`` if there is none.
        """
        if record.get(key) is None:
            return self.defaults.get(key)
        return _dicts(record, key) if key in self.defaults else record[key]

    def render(
        self,
        record: dict[str, Any],
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
    ) -> Rendered:
        """Return the text of a record.

        Args:
            record: A record with ``messages``, as `with_messages` returns it.
            add_generation_prompt: Whether the text ends with the beginning of an answer.
            continue_final_message: Whether the text ends within the last message: in the key that
                it names, or in ``content``.
        """
        messages: list[Message] = record[MESSAGES]
        if self._builtin is None:
            messages = [_as_template_sees(message) for message in messages]
        if not continue_final_message:
            return self._rendered(record, messages, add_generation_prompt)
        key = "content" if continue_final_message is True else continue_final_message
        source = self._template(record).source if self._builtin is None else "content"
        marked, text = _continued(messages, key, source)
        return Rendered(_ended(self._rendered(record, marked, False).text, text), [])  # noqa: FBT003

    def _rendered(self, record: Record, messages: list[Message], prompt: bool) -> Rendered:  # noqa: FBT001
        if self._builtin is not None:
            marks = {**self._marks, "add_generation_prompt": prompt}
            return builtin(self._builtin, record | {MESSAGES: messages}, marks)
        names: dict[str, Any] = {
            "record": record,
            **self._names,
            **_further(record),
            **self._kwargs,
            "messages": messages,
            "tools": self.content(record, "tools"),
            "documents": self.content(record, "documents"),
            "add_generation_prompt": prompt,
        }
        try:
            return self._template(record).render(names)
        except UnfitRecordError as error:
            raise UnfitRecordError(f"{error}{self._remedy(record, messages)}") from None

    def _remedy(self, record: Record, messages: list[Message]) -> str:
        """Return what helps if a template failed because of the form of arguments."""
        name = self._name_for(record)
        calls = any(message.get("tool_calls") for message in messages)
        if not calls or self.arguments[name] != "keep":
            return ""
        form = shown_form(self._templates[name], self._names | self._kwargs)
        if form == "keep" or messages == _in_form(messages, form):
            return ""
        return f"; it takes the arguments of calls as {form}: set arguments='auto'"

    def _template(self, record: Record) -> ChatTemplate:
        return self._templates[self._name_for(record)]

    def _name_for(self, record: Record) -> str:
        """Return the name of the template for a record."""
        if len(self._templates) == 1:
            return next(iter(self._templates))
        return "tool_use" if self.content(record, "tools") is not None else "default"


def _time_of(now: str) -> Callable[[str], str]:
    return clock(datetime.now().astimezone().isoformat() if now == RUN else now)


def _in_form(messages: list[Message], form: str) -> list[Message]:
    return [with_arguments(message, number, form) for number, message in enumerate(messages)]


def _tagged(texts: Mapping[str, str]) -> dict[str, str]:
    """Return templates with the tag ``generation``."""
    tagged: dict[str, str] = {}
    for name, text in texts.items():
        template = text if ChatTemplate(text).marked else with_tags(text)
        if template is None:
            msg = f"mask='patched' has no tags for the template {name!r}: it knows some published "
            raise DefinitionError(
                f"{msg}templates by their text; use mask='markers', or split_turns=True"
            )
        tagged[name] = template
    return tagged


def _files(template: str | Mapping[str, str]) -> TemplateFiles:
    """Return the templates of an option ``template``, by name."""
    if not isinstance(template, str):
        return TemplateFiles(dict(template), {})
    if template.startswith("@"):
        return template_files(Path(template[1:]))
    if not any(mark in template for mark in ("{{", "{%", "{#")):
        known = ", ".join(BUILTIN)
        msg = f"template {template[:80]!r} is none of {known}, and no Jinja; write '@' and a path"
        raise DefinitionError(msg)
    return TemplateFiles({"default": template}, {})


def _chosen(texts: Mapping[str, str], name: str | None, *, strict: bool) -> dict[str, ChatTemplate]:
    """Return the templates that records can need, by name."""
    if name is not None and name not in texts:
        msg = f"template_name is {name!r}; use one of {', '.join(map(repr, texts))}"
        raise DefinitionError(msg)
    if name is None and texts and "default" not in texts:
        msg = f"no template is the default; give template_name, one of {', '.join(texts)}"
        raise DefinitionError(msg)
    wanted = ("default", "tool_use") if name is None else (name,)
    return {name: ChatTemplate(texts[name], strict=strict) for name in wanted if name in texts}


def _is_plain(record: Record) -> bool:
    """Return whether a record has messages of texts alone, which only one format has."""
    messages: Any = record.get(MESSAGES)
    if type(messages) is not list or record.get("system") or record.get("tools"):
        return False
    return all(
        type(message) is dict and type(message.get("content")) is str for message in messages
    )


def _dicts(record: Record, key: str) -> list[dict[str, Any]]:
    """Return a list of dicts in a record, which may be JSON text."""
    return list_of_dicts(key, json_list(record.get(key), key))


def _further(record: Record) -> dict[str, Any]:
    """Return the names of the template that a record gives."""
    value = record.get("chat_template_kwargs")
    return (
        {}
        if value is None
        else dict_entry({"chat_template_kwargs": value}, "chat_template_kwargs", "")
    )


def _as_template_sees(message: Message) -> Message:
    """Return a message as transformers gives it to templates: without null, reasoning by name."""
    if None not in message.values() and _REASONING_KEYS.isdisjoint(message):
        return message.copy()
    shown = {key: value for key, value in message.items() if value is not None}
    for name in REASONING_NAMES:
        if name in shown:
            return {"thinking": shown[name], **shown, REASONING: shown[name]}
    return shown


def _continued(messages: list[Message], key: str, source: str) -> tuple[list[Message], str]:
    """Return the messages with a mark behind the last text, and that text."""
    place = f"{MESSAGES}[{len(messages) - 1}].{key}"
    value: Any = messages[-1].get(key)
    copies = [name for name in REASONING_NAMES if messages[-1].get(name) == value]
    keys = copies if key in REASONING_NAMES else [key]
    if not any(key in source for key in keys):
        raise UnfitRecordError(f"{place} cannot be continued: the template does not use {key!r}")
    if isinstance(value, str):
        last = {**messages[-1], **dict.fromkeys(keys, value + _CONTINUED)}
        return [*messages[:-1], last], value
    parts: list[Any] = value if isinstance(value, list) else []
    for number in reversed(range(len(parts))):
        part = parts[number]
        if isinstance(part, dict) and isinstance(text := part.get("text"), str):
            marked = [*parts[:number], {**part, "text": text + _CONTINUED}, *parts[number + 1 :]]
            return [*messages[:-1], {**messages[-1], key: marked}], text
    raise UnfitRecordError(f"{place} holds no text that could be continued")


def _ended(rendered: str, text: str) -> str:
    """Return a text up to the mark of `_continued`."""
    mark = _CONTINUED.strip()
    if text.strip() not in rendered or mark not in rendered:
        msg = "the template does not show the last message, or changes it; it cannot be continued"
        raise UnfitRecordError(msg)
    end = rendered.rindex(mark)
    cut = rendered[:end]
    # Without its space, the mark was at the end of a text that the template strips.
    return cut if rendered.startswith(_CONTINUED, end) else cut.rstrip()
