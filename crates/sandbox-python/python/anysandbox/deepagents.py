"""A sandbox as a backend of LangChain's Deep Agents (`pip install 'anysandbox[deepagents]'`).

`SandboxBackend` serves the whole protocol by this package's own operations, so it is right on
images without python3, which the framework's own file operations need.
"""

from __future__ import annotations

import base64
import logging
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from deepagents.backends import protocol
from deepagents.backends.sandbox import BaseSandbox
from deepagents.backends.utils import EMPTY_CONTENT_WARNING, EMPTY_OLD_STRING_ERROR

from . import errors
from ._native import Sandbox
from ._results import BinaryPage, EmptyPage, ExecuteResponse, Gap

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["SandboxBackend"]

_LOGGER = logging.getLogger(__name__)

_CODES: dict[str, protocol.FileOperationError] = {
    "not_found": protocol.FILE_NOT_FOUND,
    "permission_denied": protocol.PERMISSION_DENIED,
    "is_a_directory": protocol.IS_DIRECTORY,
    "invalid_path": protocol.INVALID_PATH,
}
"""The kinds that the protocol has a word for. Of the others models get the message."""

_GLOB_REASONS: dict[str, protocol.GlobTruncationReason] = {
    "match_limit": "budget",
    "time_limit": "budget",
    "unreadable": "unreadable",
    "not_utf8": "unreadable",
    "changed": "unreadable",
    "output_limit": "transport",
}

# The framework's own number, which its texts name.
_READ_BYTES = 500 * 1024
_LARGEST = 2**63 - 1


class SandboxBackend(BaseSandbox):
    """A backend that runs everything in one sandbox.

    Failures of single operations are results, as the protocol wants it. An error of the sandbox
    itself while a command is started is raised: `SandboxGoneError` and its like are for the
    program, not for the model.
    """

    # `BaseSandbox` has own async methods, which run its python3 scripts. The protocol's defaults
    # run the sync methods below in a thread, so both give the same.
    als = protocol.BackendProtocol.als
    aread = protocol.BackendProtocol.aread
    awrite = protocol.BackendProtocol.awrite
    aedit = protocol.BackendProtocol.aedit
    adelete = protocol.BackendProtocol.adelete
    aglob = protocol.BackendProtocol.aglob
    agrep = protocol.BackendProtocol.agrep

    def __init__(self, sandbox: Sandbox) -> None:
        """Serves `sandbox`, and keeps it alive as long as this object is."""
        self.sandbox = sandbox
        self._workdir: str | None = None

    @classmethod
    def create(cls, url: str, **options: Any) -> Self:
        """Makes a sandbox: `url` and `options` are those of `Sandbox.create`."""
        return cls(Sandbox.create(url, **options))

    @classmethod
    def connect(cls, url: str, id: str, **options: Any) -> Self:
        """Picks up a living sandbox: as `Sandbox.connect`."""
        return cls(Sandbox.connect(url, id, **options))

    @property
    def id(self) -> str:
        """The sandbox's id."""
        return self.sandbox.id

    def kill(self) -> None:
        """Ends the sandbox. Killing one that is gone is a success."""
        self.sandbox.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.sandbox.__exit__(kind, raised, traceback)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sandbox!r})"

    def execute(self, command: str, *, timeout: int | None = None) -> protocol.ExecuteResponse:
        """Runs shell text, its two output streams in the order in which they were written.

        Args:
            command: What to run.
            timeout: Seconds; `None` is the sandbox's default, 0 is no limit.

        Returns:
            The output and the exit code: 124 for a timeout, `None` where the connection was lost
            while the command ran.
        """
        seconds = math.inf if timeout == 0 else timeout
        done = self.sandbox.execute(command, timeout=seconds, merge_stderr=True)
        return protocol.ExecuteResponse(
            output=done.output + _ending(done, timeout),
            exit_code=done.exit_code,
            truncated=done.truncated,
        )

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[protocol.FileUploadResponse]:
        """Writes files; each has a result of its own, in order."""
        results = self.sandbox.upload_files(files)
        return [
            protocol.FileUploadResponse(path=path, error=None if e is None else _code(e))
            for (path, _), e in zip(files, results, strict=True)
        ]

    def download_files(self, paths: list[str]) -> list[protocol.FileDownloadResponse]:
        """Reads files; each has a result of its own, in order."""
        results = self.sandbox.download_files(paths)
        return [
            protocol.FileDownloadResponse(path=path, content=got)
            if isinstance(got, bytes)
            else protocol.FileDownloadResponse(path=path, error=_code(got))
            for path, got in zip(paths, results, strict=True)
        ]

    def ls(self, path: str) -> protocol.LsResult:
        """The direct children of a directory."""
        try:
            found = self.sandbox.ls(path)
        except errors.SandboxError as e:
            return protocol.LsResult(error=f"Path '{path}': {_explain(e)}")
        if found.gaps:
            why = f"Path '{path}': {_missing(found.gaps)}"
            if not found.entries:
                return protocol.LsResult(error=why)
            # The protocol has no place for it beside entries.
            _LOGGER.warning("ls is incomplete: %s", why)
        entries: list[protocol.FileInfo] = [
            {
                "path": e.path,
                "is_dir": e.kind == "dir",
                "size": e.size,
                "modified_at": datetime.fromtimestamp(e.modified, UTC).isoformat(),
            }
            for e in found.entries
        ]
        return protocol.LsResult(entries=entries)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> protocol.ReadResult:
        """Lines of a text file, or a binary one in base64."""
        try:
            page = self.sandbox.read(file_path, _bounded(offset), _bounded(limit))
        except errors.TooLargeError:
            why = f"Binary file exceeds maximum preview size of {_READ_BYTES} bytes"
            return protocol.ReadResult(error=f"File '{file_path}': {why}")
        except errors.SandboxError as e:
            return protocol.ReadResult(error=f"File '{file_path}': {_explain(e)}")
        match page:
            case BinaryPage(content):
                return protocol.ReadResult(
                    file_data={"content": base64.b64encode(content).decode(), "encoding": "base64"}
                )
            case EmptyPage(looked):
                return protocol.ReadResult(
                    file_data=_text(EMPTY_CONTENT_WARNING if looked else ""),
                    no_lines_requested=not looked,
                )
        return protocol.ReadResult(
            file_data=_text(page.text),
            total_lines=page.total_lines,
            start_line=page.start_line,
            end_line=page.end_line,
            next_offset=page.next_offset,
        )

    def write(self, file_path: str, content: str) -> protocol.WriteResult:
        """Creates or overwrites a file."""
        try:
            self.sandbox.write(file_path, content)
        except errors.SandboxError as e:
            return protocol.WriteResult(error=f"Error writing file '{file_path}': {_explain(e)}")
        return protocol.WriteResult(path=file_path)

    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
    ) -> protocol.EditResult:
        """Replaces exact text in a file."""
        try:
            count = self.sandbox.edit(file_path, old_string, new_string, replace_all=replace_all)
        except errors.NotFoundError:
            return protocol.EditResult(error=f"Error: File '{file_path}' not found")
        except errors.NoMatchError:
            return protocol.EditResult(error=f"Error: String not found in file: '{old_string}'")
        except errors.NotUniqueError as e:
            return protocol.EditResult(
                error=f"Error: String '{old_string}' appears multiple times: {e.message}. "
                "Use replace_all=True to replace all occurrences."
            )
        except errors.SandboxError as e:
            if not old_string:
                return protocol.EditResult(error=EMPTY_OLD_STRING_ERROR)
            return protocol.EditResult(error=f"Error editing file '{file_path}': {_explain(e)}")
        return protocol.EditResult(path=file_path, occurrences=count)

    def delete(self, file_path: str) -> protocol.DeleteResult:
        """Removes a file or a whole tree. Of a link the link is removed, never its target."""
        try:
            self.sandbox.delete(file_path)
        except errors.NotFoundError:
            return protocol.DeleteResult(error=f"Error: '{file_path}' not found")
        except errors.SandboxError as e:
            return protocol.DeleteResult(error=f"Error deleting file '{file_path}': {_explain(e)}")
        return protocol.DeleteResult(path=file_path)

    def glob(self, pattern: str, path: str | None = None) -> protocol.GlobResult:
        """Regular files below `path`, or below `/` as in the framework's own backends."""
        root = path or "/"
        try:
            found = self.sandbox.glob(pattern, root)
        except errors.SandboxError as e:
            return protocol.GlobResult(error=f"Path '{root}': {_explain(e)}")
        reasons = {_GLOB_REASONS.get(g.kind) for g in found.gaps}
        return protocol.GlobResult(
            matches=[{"path": p, "is_dir": False} for p in found.paths],
            truncated=bool(found.gaps),
            # Narrowing the search never shows what can't be read, so that outranks the rest.
            truncation_reason="unreadable" if "unreadable" in reasons else next(iter(reasons), None),
        )

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> protocol.GrepResult:
        """The lines that hold `pattern`, literally, below `path` or the working directory."""
        try:
            root = path or self._where()
            found = self.sandbox.grep(pattern, root, glob=glob, max_count=max_count)
        except errors.SandboxError as e:
            return protocol.GrepResult(error=f"Path '{path or '.'}': {_explain(e)}")
        matches: list[protocol.GrepMatch] = [
            {"path": m.path, "line": m.line, "text": m.text} for m in found.matches
        ]
        if found.gaps and not matches:
            # «No match» would be more than is known.
            why = _missing(found.gaps)
            return protocol.GrepResult(error=f"Path '{root}': {why}", matches=[], truncated=True)
        return protocol.GrepResult(matches=matches, truncated=bool(found.gaps))

    def _where(self) -> str:
        """Where commands start."""
        if self._workdir is None:
            self._workdir = self.sandbox.execute("pwd -P").check().output.removesuffix("\n")
        return self._workdir


def _text(content: str) -> protocol.FileData:
    return {"content": content, "encoding": "utf-8"}


def _bounded(number: int) -> int:
    """Models send any number; below 0 means 0."""
    return min(max(int(number), 0), _LARGEST)


def _code(error: errors.SandboxError) -> protocol.FileOperationError | str:
    """The protocol's word for an error, or its text."""
    return _CODES.get(error.kind, str(error))


def _explain(error: errors.SandboxError) -> str:
    """An error for a model: the protocol's word, if there is one, and what to do."""
    code = _CODES.get(error.kind)
    return error.message if code is None else f"{code}: {error.message}"


def _missing(gaps: tuple[Gap, ...]) -> str:
    return "incomplete: " + ", ".join(gap.text for gap in gaps)


def _ending(done: ExecuteResponse, timeout: int | None) -> str:
    """What an exit code does not say, on a line of its own."""
    notes = []
    if done.status.kind == "timed_out":
        after = f" after {timeout} s" if timeout else ""
        notes.append(f"[Command timed out{after} and was killed]")
    if done.status.kind == "lost":
        notes.append(
            f"[The connection was lost while the command ran ({done.status.reason}). Whether it "
            "finished is not known: check before running it again]"
        )
    if done.sandbox_killed:
        notes.append("[The command could not be stopped, so the sandbox was killed]")
    if not notes:
        return ""
    begin = "\n" if done.output and not done.output.endswith("\n") else ""
    return begin + "\n".join(notes)
