"""``read_agent_traces``: the session files of coding agents as chat records."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

from typing_extensions import override

from dagster_dataops.errors import StreamDefinitionError, StreamSourceError, UnfitRecordError
from dagster_dataops.readers.agent_traces.harnesses import HARNESSES, harness_of
from dagster_dataops.readers.agent_traces.sessions import Line
from dagster_dataops.records import Record, decode
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.files.file_sets import INFER, FileSet, GivenPaths
from dagster_dataops.streams.files.file_stages import FileCursor, FileStage

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
