"""Chat templates in Jinja, rendered as the package transformers renders those of its models."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from types import BuiltinMethodType, TracebackType
from typing import Any, Final, NamedTuple

from dagster_dataops.errors import DefinitionError, UnfitRecordError
from dagster_dataops.foundation.override import override

_OLDEST: Final = (3, 1, 6)  # earlier versions of jinja2 have known escapes from the sandbox
_MAX_CHARS: Final = 50_000_000
_SHOWN_CHARS: Final = 300
# No identifiers, so that no template has these names.
_OUTPUT: Final = "output of this rendering"
_OPEN, _CLOSE = "open a generation", "close a generation"
# Characters that are in no text: Unicode reserves them for use inside of a program.
_OPENED, _CLOSED = MARKS = ("\ufdd0", "\ufdd1")
_FAULTS: Final = (
    TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RuntimeError,
)  # fmt: skip


class Part(NamedTuple):
    """A part of a rendered text that the assistant wrote.

    Attributes:
        start: Its first character.
        end: The character behind it.
        message: The number of its message; ``None`` if the template does not tell.
    """

    start: int
    end: int
    message: int | None = None


class Rendered(NamedTuple):
    """The text of a conversation.

    Attributes:
        text: The text.
        parts: What is inside ``{% generation %}``, in order.
    """

    text: str
    parts: list[Part]


class ChatTemplate:
    """A chat template. It is pickled by its text, and compiled once in each process.

    Args:
        source: The Jinja text.
        strict: Whether an unknown name is an error. Otherwise it prints nothing.

    Attributes:
        source: The Jinja text.
        marked: Whether it has the tag ``generation``.

    Raises:
        DefinitionError: It is malformed, loads other templates, or draws at random.
    """

    def __init__(self, source: str, *, strict: bool = False) -> None:
        self.source, self._strict = source, strict
        tree = _parsed(source)
        self.marked = any(_is_generation(node) for node, _ in _nodes(tree))
        # Inside of a macro, for example, a text is made before it is known where it will stand.
        self._moved = any(_is_generation(node) and held for node, held in _nodes(tree))
        _compiled(source, strict)

    @override
    def __reduce__(self) -> tuple[Callable[[str, bool], "ChatTemplate"], tuple[str, bool]]:
        return _of_source, (self.source, self._strict)

    def calls(self, function: str) -> bool:
        """Return whether the template calls a function of this name."""
        from jinja2 import nodes

        called = [node.node for node in _parsed(self.source).find_all(nodes.Call)]
        return any(isinstance(node, nodes.Name) and node.name == function for node in called)

    def render(self, names: Mapping[str, Any]) -> Rendered:
        """Return the text of a conversation.

        Args:
            names: What the template can use, by name: plain JSON values. They stay as they are.
        """
        output = self._output(names, moved=False)
        if not self._moved:
            return Rendered(output.text, output.parts)
        return _unmarked(self._output(names, moved=True).text, output.text)

    def _output(self, names: Mapping[str, Any], *, moved: bool) -> "_Output":
        from jinja2 import TemplateError

        output = _Output(names.get("messages") or [], moved=moved)
        try:
            output.take(_compiled(self.source, self._strict).generate({**names, _OUTPUT: output}))
        except UnfitRecordError:
            raise
        except (TemplateError, _RefusedByTemplateError, *_FAULTS) as error:
            raise UnfitRecordError(_failure(error)) from None
        return output


def _of_source(source: str, strict: bool) -> ChatTemplate:  # noqa: FBT001 - for pickle
    return ChatTemplate(source, strict=strict)


class _Output:
    """Collects the text of one rendering, with the parts inside of ``{% generation %}``.

    Args:
        messages: The messages that are rendered.
        moved: Whether these parts are marked in the text, because their place is not known yet.
    """

    def __init__(self, messages: Sequence[Any], *, moved: bool) -> None:
        self.text = ""
        self.parts: list[Part] = []
        self._moved, self._length = moved, 0
        self._opened: list[tuple[int, int | None]] = []
        self._numbers = {id(message): number for number, message in enumerate(messages)}

    def take(self, parts: Iterator[str]) -> None:
        """Take the parts of the text."""
        texts: list[str] = []
        for part in parts:
            texts.append(part)
            self._length += len(part)
            if self._length > _MAX_CHARS:
                msg = f"the template wrote more than {_MAX_CHARS:,} characters"
                raise UnfitRecordError(msg)
        self.text = "".join(texts)

    def open(self, outer: Mapping[str, Any], inner: Mapping[str, Any]) -> str:
        """Return what stands before a part that is inside of ``{% generation %}``.

        Args:
            outer: The variables of the whole template.
            inner: Those of this place, too: one is the message, unless it was copied.
        """
        if self._moved:
            return _OPENED
        numbers = self._numbers
        here = [(name, value) for name, value in inner.items() if id(value) in numbers]
        places = {numbers[id(value)] for name, value in here if outer.get(name) is not value}
        self._opened.append((self._length, places.pop() if len(places) == 1 else None))
        return ""

    def close(self) -> str:
        """Return what stands behind the part."""
        if self._moved:
            return _CLOSED
        start, number = self._opened.pop()
        if not self._opened:
            self.parts.append(Part(start, self._length, number))
        return ""


def _unmarked(marked: str, plain: str) -> Rendered:
    """Return the text ``plain`` with the parts that are between marks in ``marked``."""
    parts: list[Part] = []
    starts: list[int] = []
    length = 0
    for piece in _pieces(marked):
        if piece == _OPENED:
            starts.append(length)
        elif piece == _CLOSED and starts:
            start = starts.pop()
            parts += [] if starts else [Part(start, length)]
        else:
            length += len(piece)
    if starts or marked.replace(_OPENED, "").replace(_CLOSED, "") != plain:
        msg = (
            "the template changes what is inside of {% generation %} afterwards, such as by trim, "
            "so that its place is not known; put the tag around the output itself"
        )
        raise UnfitRecordError(msg)
    return Rendered(plain, parts)


def _pieces(marked: str) -> Iterator[str]:
    start = 0
    for end, character in enumerate(marked):
        if character in MARKS:
            yield marked[start:end]
            yield character
            start = end + 1
    yield marked[start:]


class _RefusedByTemplateError(Exception):
    """The template called ``raise_exception``."""


def _failure(error: Exception) -> str:
    """Return what went wrong in a template, and where."""
    text = str(error)[:_SHOWN_CHARS] or type(error).__name__
    line = _line_of(error.__traceback__)
    where = "" if line is None else f" at line {line}"
    if isinstance(error, _RefusedByTemplateError):
        return f"the template refused the conversation{where}: {text}"
    return f"the template failed{where}: {text}"


def _line_of(traceback: TracebackType | None) -> int | None:
    """Return the line of a template at which an error was raised; jinja2 puts it in there."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == "<template>":
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def clock(now: str) -> Callable[[str], str]:
    """Return the function ``strftime_now`` of templates, with a fixed time."""
    try:
        return datetime.fromisoformat(now).strftime
    except ValueError:
        msg = f"now is {now!r}; give a date and time such as 2026-01-02T03:04:05"
        raise DefinitionError(msg) from None


def _nodes(node: Any, *, held: bool = False) -> Iterator[tuple[Any, bool]]:
    """Yield the nodes of a template, with whether their output is held back first."""
    from jinja2 import nodes

    holding = (nodes.Macro, nodes.CallBlock, nodes.FilterBlock, nodes.AssignBlock, nodes.Block)
    for child in node.iter_child_nodes():
        yield child, held
        recursive = isinstance(child, nodes.For) and child.recursive
        yield from _nodes(child, held=held or recursive or isinstance(child, holding))


def _is_generation(node: Any) -> bool:
    from jinja2 import nodes

    return isinstance(node, nodes.Filter) and node.name == _OPEN


@cache
def _parsed(source: str) -> Any:
    """Return the syntax tree of a template."""
    from jinja2 import TemplateSyntaxError, nodes

    try:
        tree = _environment(strict=False).parse(source)
    except TemplateSyntaxError as error:
        msg = f"line {error.lineno} of the template: {error.message}"
        raise DefinitionError(msg) from None
    loads = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
    if load := next(tree.find_all(loads), None):
        msg = f"line {load.lineno} of the template loads another one; put all into one text"
        raise DefinitionError(msg)
    draws = [node for node in tree.find_all(nodes.Filter) if node.name == "random"]
    called = [node for node in tree.find_all(nodes.Call) if isinstance(node.node, nodes.Name)]
    draws += [node for node in called if node.node.name == "lipsum"]
    if draws:
        msg = f"line {draws[0].lineno} of the template draws at random; no result could be repeated"
        raise DefinitionError(msg)
    return tree


@cache
def _compiled(source: str, strict: bool) -> Any:  # noqa: FBT001 - the key of a cache
    """Return the code of a template."""
    from jinja2 import TemplateSyntaxError

    try:
        return _environment(strict=strict).from_string(source)
    except TemplateSyntaxError as error:
        msg = f"line {error.lineno} of the template: {error.message}"
        raise DefinitionError(msg) from None


@cache
def _environment(*, strict: bool) -> Any:
    """Return what a chat template can use, as transformers 5 gives it."""
    import jinja2

    version = tuple(int(part) for part in jinja2.__version__.split(".")[:3] if part.isdigit())
    if version < _OLDEST:
        wanted = ".".join(map(str, _OLDEST))
        msg = f"templates need jinja2 {wanted} or newer; {jinja2.__version__} is installed"
        raise DefinitionError(msg)
    environment = _sandbox()(
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined if strict else jinja2.Undefined,
        extensions=["jinja2.ext.loopcontrols", _generation_tag()],
        autoescape=False,  # the text is not HTML
    )
    environment.filters |= {"tojson": _to_json, **_generation_filters()}
    environment.globals |= _functions()
    return environment


def _harmless() -> dict[type, frozenset[str]]:
    """Return attributes that cannot do harm, by the type that has them."""
    from jinja2.runtime import LoopContext

    of_loop = frozenset({"index", "index0", "first", "last", "length", "previtem", "nextitem"})
    # A text cannot be changed; format and format_map could reach attributes of their arguments.
    public = frozenset(name for name in dir(str) if not name.startswith("_"))
    return {LoopContext: of_loop, str: public - {"format", "format_map"}}


def _sandbox() -> Any:
    """Return the class of environments that templates cannot reach out of."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import Namespace, missing

    of_dict = frozenset(dir(dict))
    harmless = _harmless()
    of_str = harmless[str]

    class Sandbox(ImmutableSandboxedEnvironment):
        """Takes what cannot do harm without the checks of attributes and of calls.

        It is keys of dicts, facts about loops, names in namespaces, and methods of texts.
        """

        @override
        def getattr(self, obj: Any, attribute: str) -> Any:
            kind = type(obj)
            if kind is dict and attribute not in of_dict:
                value = obj.get(attribute, missing)
            elif attribute in harmless.get(kind, ()) or (
                issubclass(kind, Namespace) and not attribute.startswith("_")
            ):
                value = getattr(obj, attribute, missing)
            else:
                return super().getattr(obj, attribute)
            return self.undefined(obj=obj, name=attribute) if value is missing else value

        @override
        def call(self, context: Any, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
            plain = type(obj) is BuiltinMethodType and type(obj.__self__) is str
            if not plain or obj.__name__ not in of_str:
                return super().call(context, obj, *args, **kwargs)
            kwargs.pop("_loop_vars", None)
            kwargs.pop("_block_vars", None)
            return obj(*args, **kwargs)

    return Sandbox


def _to_json(
    value: Any,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 - templates may give it by position
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


class _Dict:
    """The name ``dict`` of templates: the constructor and ``fromkeys``, nothing else."""

    def __call__(self, *pairs: Any, **values: Any) -> dict[Any, Any]:
        return dict(*pairs, **values)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


def _functions() -> dict[str, Any]:
    """Return the functions of templates besides those of jinja2."""
    from jinja2.exceptions import SecurityError
    from jinja2.utils import Namespace

    def raise_exception(message: Any = "") -> None:
        raise _RefusedByTemplateError(message if message is None else str(message))

    class PlainNamespace(Namespace):
        """A namespace without names that begin with an underscore."""

        def __init__(*args: Any, **values: Any) -> None:
            namespace, *pairs = args
            attributes = dict(*pairs, **values)
            for name in attributes:
                _check_public(name)
            Namespace.__init__(namespace, attributes)

        @override
        def __setitem__(self, name: str, value: Any) -> None:
            _check_public(name)
            super().__setitem__(name, value)

    def _check_public(name: object) -> None:
        if isinstance(name, str) and name.startswith("_"):
            msg = f"a namespace cannot have the attribute {name!r}; rename it"
            raise SecurityError(msg)

    return {"dict": _Dict(), "namespace": PlainNamespace, "raise_exception": raise_exception}


def _leaves_loop(node: Any) -> bool:
    """Return whether a node of a template ends a round of a loop that is around it."""
    from jinja2 import nodes

    if isinstance(node, nodes.For):
        return False
    inside = (nodes.Break, nodes.Continue)
    return isinstance(node, inside) or any(map(_leaves_loop, node.iter_child_nodes()))


def _generation_filters() -> dict[str, Any]:
    """Return the two filters that `_generation_tag` writes before and behind its body."""
    from jinja2 import pass_context

    @pass_context
    def opened(context: Any, inner: Any) -> str:
        output: _Output = context[_OUTPUT]
        return output.open(context.get_all(), inner.parent)

    def closed(context: Any) -> str:
        output: _Output = context[_OUTPUT]
        return output.close()

    return {_OPEN: opened, _CLOSE: closed}


def _generation_tag() -> Any:
    from jinja2 import nodes
    from jinja2.ext import Extension

    class GenerationTag(Extension):
        """The tag ``{% generation %}`` around what the assistant wrote."""

        tags = {"generation"}  # noqa: RUF012 - as jinja2 has it

        @override
        def parse(self, parser: Any) -> list[nodes.Node]:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            if any(map(_leaves_loop, body)):
                parser.fail("break and continue cannot leave {% generation %}", line)
            # Filters are called at their place in the text, without the checks of other calls.
            begin = nodes.Filter(nodes.DerivedContextReference(), _OPEN, [], [], None, None)
            end = nodes.Filter(nodes.ContextReference(), _CLOSE, [], [], None, None)
            opening, closing = (nodes.Output([mark]).set_lineno(line) for mark in (begin, end))
            return [opening, nodes.Scope(body).set_lineno(line), closing]

    return GenerationTag
