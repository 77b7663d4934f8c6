"""``read_agent_traces``: the session files of coding agents as chat records."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

from dagster_dataops.errors import StreamDefinitionError, StreamSourceError, UnfitRecordError
from dagster_dataops.foundation.override import override
from dagster_dataops.readers.agent_traces import claude_code, codex, gemini_cli
from dagster_dataops.readers.agent_traces.claude_code import claude_code_sessions
from dagster_dataops.readers.agent_traces.codex import codex_sessions
from dagster_dataops.readers.agent_traces.gemini_cli import gemini_cli_sessions
from dagster_dataops.readers.agent_traces.message_sessions import (
    DROID,
    HERMES,
    PI,
    droid_sessions,
    hermes_sessions,
    pi_sessions,
)
from dagster_dataops.readers.agent_traces.sessions import Line, Session
from dagster_dataops.records import Record, decode
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.files.file_sets import INFER, FileSet, GivenPaths
from dagster_dataops.streams.files.file_stages import FileCursor, FileStage

HARNESSES: Final[Mapping[str, Callable[..., Iterator[Session]]]] = {
    claude_code.HARNESS: claude_code_sessions,
    codex.HARNESS: codex_sessions,
    PI: pi_sessions,
    DROID: droid_sessions,
    HERMES: hermes_sessions,
    gemini_cli.HARNESS: gemini_cli_sessions,
}


def harness_of(lines: list[Line]) -> str | None:
    """Return the name of the agent that wrote lines; ``None`` if no line is of a known form."""
    return next((name for name in map(_harness_of_line, lines) if name is not None), None)


def _harness_of_line(line: Mapping[str, Any]) -> str | None:
    kind, message = str(line.get("type")), line.get("message")
    has_message = isinstance(message, dict) and "role" in message
    signs = {
        gemini_cli.HARNESS: {"sessionId", "projectHash"} <= line.keys(),
        HERMES: isinstance(line.get("messages"), list) and {"id", "source"} <= line.keys(),
        codex.HARNESS: (isinstance(line.get("payload"), dict) and "type" in line)
        or (kind == "message" and "role" in line and isinstance(line.get("content"), list)),
        DROID: kind == "session_start" and {"cwd", "version"} <= line.keys(),
        claude_code.HARNESS: (kind in {"user", "assistant"} and has_message)
        or (kind == "summary" and "leafUuid" in line),
        PI: (kind == "session" and "id" in line) or (kind == "message" and has_message),
    }
    return next((name for name, matches in signs.items() if matches), None)


def is_trace_line(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a line of a session file."""
    return _harness_of_line(record) is not None


_FAILED: Final = -1
_SIDECHAINS: Final = ("drop", "records")


class SessionCursor(FileCursor):
    """Read one file. The state is the number of its records that were read; -1 if it failed."""

    saved: ClassVar[tuple[str, ...]] = ("_read", "failed")

    @override
    def reset(self) -> None:
        self._read = 0

    @override
    def blocks(self) -> Iterator[Iterator[Any]]:
        try:
            records = self._records()
        except StreamSourceError as error:
            if self._read != _FAILED:
                self._read = _FAILED
                self.counter.handle(self.location.path, error)
            return
        for number, record in enumerate(records):
            if number >= self._read:
                self._read = number + 1
                yield iter((record,))

    def _records(self) -> list[Record]:
        path, stage = self.location.path, self.stage
        lines, torn = self._lines()
        harness = stage.harness or harness_of(lines)
        if harness is None:
            if not lines:
                return []
            known = ", ".join(HARNESSES)
            reason = f"is no session of a known agent; use one of {known}, or set harness"
            raise StreamSourceError(path, reason)
        try:
            sessions = list(HARNESSES[harness](lines, sidechains=stage.sidechains == "records"))
            for session in sessions:
                session.tell(torn=torn or None)
            return [
                record for each in sessions for record in each.records(reasoning=stage.reasoning)
            ]
        except UnfitRecordError as error:
            raise StreamSourceError(path, f"is no sound session of {harness}: {error}") from None

    def _lines(self) -> tuple[list[Line], bool]:
        """Return the lines, and whether the last one is not complete: a session may be running."""
        with self.location.opened() as opened:
            content = opened.read_all()
        if (whole := _whole_object(content)) is not None:
            return [whole], False
        numbered = list(enumerate(content.split(b"\n"), 1))
        lines: list[Line] = []
        for number, line in numbered:
            if not line or line.isspace():
                continue
            try:
                lines.append(decode(line))
            except ValueError as error:
                if number == len(numbered):
                    return lines, True
                place = f"{self.location.path}, line {number}"
                raise StreamSourceError(place, _without_content(error)) from None
        return lines, False


def _whole_object(content: bytes) -> Line | None:
    """Return the object of a file that holds one on several lines; ``None`` for another file."""
    first, _, rest = content.strip().partition(b"\n")
    if first.strip() != b"{" or not rest:
        return None
    try:
        return decode(content)
    except ValueError:
        return None


def _without_content(error: ValueError) -> str:
    """Return why a line cannot be read; the line may hold secrets."""
    reason = str(error)
    return reason if reason.startswith(("not JSON", "a JSON")) else "holds a number beyond 64 bits"


@dataclass(eq=False)
class SessionFiles(FileStage):
    """Yield one record for each session."""

    name: ClassVar[str] = "read_agent_traces"
    file_cursor: ClassVar[type[FileCursor]] = SessionCursor
    harness: str | None
    sidechains: str
    reasoning: bool


def read_agent_traces(  # noqa: PLR0913 - the options of files
    path: GivenPaths,
    harness: str | None = None,
    *,
    sidechains: Literal["drop", "records"] = "drop",
    reasoning: bool = True,
    pattern: str | None = "*.jsonl*",
    compression: str | None = INFER,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    """Read the session files of coding agents: one chat record for each session.

    A record is ``{"messages", "tools"?, "metadata"}``; ``metadata`` holds ``harness``,
    ``session_id``, ``cwd``, ``model``, ``started_at`` and ``cli_version`` as far as the file has
    them, ``left_out`` (how many things are not in the messages, by reason) and ``torn`` (the last
    line is not complete, because the session is running). ``tools`` is there only if the file has
    schemas. Results of tools stand behind their calls and have their names. Several texts of one
    message are one text: of the assistant with an empty line between them, else on lines.

    The files are those of Claude Code (``~/.claude/projects``), Codex (``~/.codex/sessions``), Pi
    (``~/.pi/agent/sessions``), Droid (``~/.factory/sessions``), Gemini CLI (``~/.gemini/tmp``, also
    its older ``*.json`` with ``pattern="*.json*"``) and exports of Hermes, one session in each
    line. Of a session with several branches, that of the last line is read. A session that
    grows gives another record when it is read again; the others stay the same, so that
    ``_reuse_outcomes`` keeps their results. Files without messages give no record.

    Sessions hold what the agent read: use ``chat.Secrets`` and the group ``pii`` behind this
    reader. A line that is no JSON, or a file of another form, is a failed item, which the stream's
    ``on_error`` can skip; errors show no content.

    Args:
        path: A folder, a list of files or a pattern, also as URLs; see `read_jsonl`.
        harness: ``claude_code``, ``codex``, ``pi``, ``droid``, ``hermes`` or ``gemini_cli``; by
            default it is recognized by the first lines.
        sidechains: Whether the messages of other agents of Claude Code, in a file of the session or
            in one of its own, are left out (``drop``), or become ``records``, with
            ``metadata.sidechain``.
        reasoning: Whether messages keep their ``reasoning_content``.
        pattern: The files to keep. It is matched against the whole path.
        compression: See `read_jsonl`.
        storage_options: See `read_jsonl`.

    Raises:
        StreamDefinitionError: An argument is invalid.
    """
    for name, value, known in (
        ("harness", harness, [None, *HARNESSES]),
        ("sidechains", sidechains, _SIDECHAINS),
    ):
        if value not in known:
            shown = ", ".join(map(repr, known))
            raise StreamDefinitionError(
                "read_agent_traces", f"{name} is {value!r}; use one of {shown}"
            )
    files = FileSet.of("read_agent_traces", path, compression, storage_options)
    stage = SessionFiles(replace(files, pattern=pattern), harness, sidechains, reasoning)
    return DataPipelineBuilder(stage)
