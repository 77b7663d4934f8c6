"""``tokens.EncodeChat``: write the ids of a conversation, and the labels for training on it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from dagster_dataops.datasets.chats.chat_record import MESSAGES, ROLES, ChatRules, chat_record
from dagster_dataops.errors import DefinitionError, UnfitRecordError
from dagster_dataops.library.analysis.tokenizers.tokenization import Encoded, EncodedBytes
from dagster_dataops.library.chat.rendering import check_lost, keep_texts
from dagster_dataops.library.chat.rendering_jinja import Rendered
from dagster_dataops.library.chat.rendering_record import ChatRenderer
from dagster_dataops.library.tokens.special_contents import SpecialContents
from dagster_dataops.library.tokens.special_tokens import chat_tokenizer
from dagster_dataops.library.tokens.token_counts import tokens
from dagster_dataops.library.tokens.trained_places import TrainedPlaces, token_spans
from dagster_dataops.library.tokens.trained_text import marked_text
from dagster_dataops.library.tokens.training_spans import TurnFinder, assistant_turns
from dagster_dataops.operators.options.file_content import FileContent
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.operators.outcomes.record_context import Drop, OperatorContext
from dagster_dataops.records import NOT_TRAINED, Record


class EncodeChat(tokens):
    """Write the ids of the tokens of a conversation, and labels for training on the assistant.

    Reads any format of ``chat.Detect``. Writes ``ids_key="input_ids"``, a list of integers, and
    ``labels_key="labels"``, a list of the same length: the id of a token that is trained, -100 of
    another. Labels are not shifted: the model does that. The conversation stays.

    The text is that of ``chat.Render`` with the same ``template``, such as one of Hugging Face. It
    is encoded whole, without tokens that the template did not write. A token is trained if one of
    its characters is: so a token that crosses a border is trained.

    What the assistant wrote is found by ``mask``:

    - ``"generation"``: the template has the tag ``{% generation %}``, as have those of this package
      and those for training. In a macro, for example, the tag counts, too.
    - ``"patched"``: as ``"generation"``, for published templates of Qwen3, Qwen3.5, GLM-4.5 and
      Nemotron 3 Nano, which get the tag here. They are known by their texts; the text that they
      write is the same. The whole answer is trained, also ``<think>`` and ``</think>``.
    - ``"prefix"``: from the text before a turn with ``add_generation_prompt`` to the text with the
      turn. Both must be how the whole text begins. Many templates drop reasoning of earlier turns,
      so that they are not: then the record is an error that says so.
    - ``"final"``: the last turn alone, from where the text differs from that before the turn.
    - ``"markers"``: between ``start_marker`` and the end of ``end_marker``, which contents must not
      hold.
    - ``"auto"``: the first of the first two that fits the template, else an error.

    ``split_turns=True`` writes a record for each turn of the assistant, with the turns before it as
    the template shows them, and trains that turn alone: exact for every template.

    ``train="assistant"`` trains all turns of the assistant but those with ``weight`` 0, ``"last"``
    the last of them, ``"all"`` every token: then ``mask="auto"`` takes any template.
    ``train_reasoning=False`` leaves out the reasoning: the text of ``reasoning_content``, and of a
    content what is before ``</think>``. ``train_calls=False`` leaves out the calls of tools: all
    that is between the texts of a turn with calls, and the end of the turn. A record without a
    trained token is an error.

    A special token in a content would become one: by ``special_in_content`` this is an error of the
    record, is avoided (``"text"``: its name is encoded as any text), or happens (``"allow"``), as
    in transformers. Longer records than ``max_tokens`` are an
    error, dropped (``"drop"``), cut on the right (``"cut"``), or lose whole turns at the end
    (``"turns"``, not with ``split_turns``), by ``on_overflow``.

    A byte-level ``tokenizer.json`` is used without threads, since workers use all cores: unless it
    is set, ``TOKENIZERS_PARALLELISM`` becomes ``false`` in the process.

    Counts ``tokens`` and ``trained_tokens``, and with ``split_turns`` the ``dropped_turns`` of
    conversations of which shorter ones are written. Needs the extra ``tokenizers`` or ``tokens``.

    Args:
        tokenizer: Path of a ``tokenizer.json``, a vocabulary of ``tokens.Count``, or ``bytes``.
        template: As in ``chat.Render``.
        ids_key: Column of the ids.
        labels_key: Column of the labels.
        text_key: Column of the text; ``None`` to leave it out.
        spans_key: Column of the spans of trained tokens, as pairs; ``None`` to leave them out.
        train: What is trained.
        mask: How the turns of the assistant are found.
        start_marker: Text before each turn of the assistant, for ``markers``.
        end_marker: End of each turn of the assistant, for ``markers``.
        split_turns: Whether each turn of the assistant becomes a record.
        train_reasoning: Whether reasoning is trained.
        train_calls: Whether calls of tools are trained.
        special_in_content: What becomes of special tokens in contents.
        special_ids: Ids of special tokens by name, for a vocabulary without them.
        max_tokens: Most tokens of a record; ``None`` for no limit.
        on_overflow: What is done with a record of more tokens.
        bos_token: As in ``chat.Render``.
        eos_token: As in ``chat.Render``.
        template_name: As in ``chat.Render``.
        template_kwargs: As in ``chat.Render``.
        special_tokens: As in ``chat.Render``.
        tools: As in ``chat.Render``.
        documents: As in ``chat.Render``.
        now: As in ``chat.Render``.
        arguments: As in ``chat.Render``.
        undefined: As in ``chat.Render``.
        on_loss: As in ``chat.Render``; here a content that the template leaves out is an error,
            too.
    """

    def __init__(
        self,
        tokenizer: Annotated[str, FileContent],
        template: str | Mapping[str, str],
        ids_key: str = "input_ids",
        labels_key: str = "labels",
        *,
        text_key: str | None = None,
        spans_key: str | None = None,
        train: Literal["assistant", "last", "all"] = "assistant",
        mask: Literal["auto", "generation", "patched", "prefix", "final", "markers"] = "auto",
        start_marker: str | None = None,
        end_marker: str | None = None,
        split_turns: bool = False,
        train_reasoning: bool = True,
        train_calls: bool = True,
        special_in_content: Literal["error", "text", "allow"] = "error",
        special_ids: Mapping[str, int] | None = None,
        max_tokens: PositiveInt | None = None,
        on_overflow: Literal["error", "drop", "cut", "turns"] = "error",
        bos_token: str | None = None,
        eos_token: str = "",
        template_name: str | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
        special_tokens: Mapping[str, Any] | None = None,
        tools: Sequence[Any] | None = None,
        documents: Sequence[Any] | None = None,
        now: str | None = None,
        arguments: Literal["auto", "object", "text", "keep"] = "keep",
        undefined: Literal["lenient", "strict"] = "lenient",
        on_loss: Literal["error", "drop"] = "error",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._tokenizer = chat_tokenizer(tokenizer, special_ids)
        self._renderer = ChatRenderer(
            template,
            template_name=template_name,
            template_kwargs=template_kwargs,
            special_tokens=special_tokens,
            bos_token=bos_token,
            eos_token=eos_token,
            tools=tools,
            documents=documents,
            now=now,
            strict=undefined == "strict",
            arguments=arguments,
            tags=mask == "patched",
        )
        if train == "all" and not (train_reasoning and train_calls):
            msg = "train='all' trains every token, so also reasoning and calls; leave out "
            raise DefinitionError(f"{msg}train_reasoning and train_calls")
        method = _split_method(mask, on_overflow) if split_turns else mask
        method = "generation" if method == "patched" else method
        if method == "auto" and train == "all":
            method = "whole"
        self._finder = TurnFinder(self._renderer, method, start_marker, end_marker)
        self._trained = TrainedPlaces(
            self._renderer, train, reasoning=train_reasoning, calls=train_calls
        )
        self._keys = ids_key, labels_key, text_key, spans_key
        self._most, self._on_overflow = max_tokens, on_overflow
        self._splits, self._refuses_loss = split_turns, on_loss == "error"
        self._special = special_in_content
        self._special_contents = SpecialContents(self._tokenizer, self._renderer)
        if special_in_content == "error":
            _check_option(self._special_contents, self._renderer)
        self._context: OperatorContext | None = None
        keep_texts(self, self._renderer)

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._renderer.begin(context.started)

    def forward(self, record: Record) -> Any:
        conversation = self._renderer.with_messages(record)
        if not all(map(_is_plain, conversation[MESSAGES])):
            conversation = chat_record(conversation, _RULES)
        if self._special == "error":
            self._special_contents.check(conversation)
        if not self._splits:
            return self._encoded(record, conversation)
        encoded = [self._encoded(record, messages) for messages in _split(conversation)]
        if not encoded:
            raise UnfitRecordError(_NOTHING)
        written = [row for row in encoded if not isinstance(row, Drop)]
        dropped = len(encoded) - len(written)
        if written and dropped and self._context is not None:
            self._context.count(dropped_turns=dropped)
        return written or encoded[0]

    def marked_text(self, record: Record) -> str:
        """Return the text of a written record, with ``[[`` and ``]]`` around its trained parts."""
        ids_key, labels_key, *_ = self._keys
        ids: Any = record[ids_key]
        labels: Any = record[labels_key]
        return marked_text(self._tokenizer, ids, labels)

    def _encoded(self, record: Record, conversation: Record) -> Any:
        turns = self._finder.find(conversation)
        messages: Any = conversation[MESSAGES]
        refused = _NEVER_LOST if self._refuses_loss else frozenset()
        check_lost(messages, turns.text, self._context, refused)
        if self._special == "text":
            encoded = self._special_contents.encode(conversation, turns.text)
        else:
            encoded = self._tokenizer.encode_with_offsets(turns.text)
        if self._most is not None and len(encoded.ids) > self._most:
            return self._shortened(record, conversation, turns, encoded)
        return self._written(record, conversation, turns, encoded)

    def _shortened(
        self, record: Record, conversation: Record, turns: Rendered, encoded: Encoded | EncodedBytes
    ) -> Any:
        """Return the result for a conversation of more than `max_tokens`, by `on_overflow`.

        Raises:
            UnfitRecordError: It is not to be shortened, or no token that is left is trained.
        """
        if self._on_overflow == "drop":
            return Drop("high_num_token")
        if self._on_overflow == "cut":
            return self._written(record, conversation, turns, encoded)
        messages: Any = conversation[MESSAGES]
        ends = [number + 1 for number in assistant_turns(conversation)]
        shorter = [end for end in ends if end < len(messages)]
        if self._on_overflow == "turns" and shorter:
            return self._encoded(record, {**conversation, MESSAGES: messages[: shorter[-1]]})
        msg = f"the conversation has {len(encoded.ids)} tokens, more than max_tokens={self._most}"
        raise UnfitRecordError(f"{msg}; set on_overflow, or split it before")

    def _written(
        self, record: Record, conversation: Record, turns: Rendered, encoded: Encoded | EncodedBytes
    ) -> Record:
        ids = encoded.ids if self._most is None else encoded.ids[: self._most]
        spans = token_spans(self._trained.spans(turns, conversation), encoded, self._most)
        trained = sum(end - start for start, end in spans)
        if not trained:
            raise UnfitRecordError(_NOTHING)
        labels = [NOT_TRAINED] * len(ids)
        for start, end in spans:
            labels[start:end] = ids[start:end]
        if self._context is not None:
            self._context.count(tokens=len(labels), trained_tokens=trained)
        values: tuple[Any, ...] = (ids, labels, turns.text, spans)
        pairs = zip(self._keys, values, strict=True)
        return record | {key: value for key, value in pairs if key is not None}


_NEVER_LOST: Final = frozenset({"tool_calls", "parts", "content"})
_NOTHING: Final = "no token is trained: the assistant wrote nothing, its weight is 0, or it is cut"
# The template has its own rules for the order of turns, and has seen the arguments as they are.
_RULES: Final = ChatRules(arguments="keep", order="any", unanswered="keep", flatten_text=False)
_ALONE: Final = frozenset({"role", "content"})


def _check_option(contents: SpecialContents, renderer: ChatRenderer) -> None:
    """Check that tools and documents that are options hold no special token."""
    try:
        contents.check(renderer.defaults)
    except UnfitRecordError as error:
        raise DefinitionError(str(error)) from None


def _is_plain(message: dict[str, Any]) -> bool:
    """Return whether a message has only a known role and a text: then it keeps all rules."""
    role, content = message.get("role"), message.get("content")
    return type(content) is str and role in ROLES and message.keys() == _ALONE


def _split_method(mask: str, on_overflow: str) -> str:
    """Return how the trained turn is found if each is a record."""
    if mask not in {"auto", "final"}:
        msg = f"split_turns=True trains the last turn of each record; mask is {mask!r}, not 'final'"
        raise DefinitionError(msg)
    if on_overflow == "turns":
        msg = "on_overflow='turns' would write a turn again that split_turns=True has written"
        raise DefinitionError(f"{msg}; choose 'error', 'drop' or 'cut'")
    return "final"


def _split(conversation: Record) -> Iterator[Record]:
    """Yield for each turn of the assistant, but those with weight 0, the messages up to it."""
    messages: Any = conversation[MESSAGES]
    for number in assistant_turns(conversation):
        if messages[number].get("weight") != 0:
            yield {**conversation, MESSAGES: messages[: number + 1]}
