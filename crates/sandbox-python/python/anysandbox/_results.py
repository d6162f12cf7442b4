"""What operations give and take. The native half makes them by position: a field's place counts."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

from .errors import CommandFailedError

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 120
_SHORT.maxtuple = 10


class _Result:
    """A repr that stays on a screen, however much a command printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = (f"{f.name}={_SHORT.repr(getattr(self, f.name))}" for f in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, slots=True, repr=False)
class Status(_Result):
    """How a command that had started ended."""

    kind: Literal["exited", "signaled", "timed_out", "lost", "other"]
    exit_code: int | None
    """The shell's convention: the code, 128 + signal, 124 for a timeout, `None` when lost."""
    signal: int | None = None
    reason: str | None = None
    """Why nobody knows how it ended, where it was lost."""


@dataclass(frozen=True, slots=True, repr=False)
class ExecuteResponse(_Result):
    """What a command printed and how it ended."""

    status: Status
    stdout: bytes
    """What was kept of standard output, byte for byte: the first and the last half of the limit."""
    stderr: bytes
    output: str
    """Both as text, in order of arrival where the backend knows it; says where bytes are missing."""
    dropped: int
    """Bytes of both that were not kept."""
    elapsed: float
    """Seconds from start to end, as seen from here."""
    sandbox_killed: bool
    """The command could not be stopped in time, so the whole sandbox was killed."""

    @property
    def exit_code(self) -> int | None:
        """The shell's convention: the code, 128 + signal, 124 for a timeout, `None` when lost."""
        return self.status.exit_code

    @property
    def success(self) -> bool:
        """Whether it exited with 0."""
        return self.status.kind == "exited" and self.status.exit_code == 0

    @property
    def truncated(self) -> bool:
        """Whether output is missing."""
        return self.dropped > 0

    def check(self) -> ExecuteResponse:
        """This, if it exited with 0.

        Raises:
            CommandFailedError: It ended otherwise. The text has the end of the output.
        """
        if self.success:
            return self
        text = f"the command failed: {self.status}: {self.output[-400:]}"
        raise CommandFailedError(text, operation="execute")


@dataclass(frozen=True, slots=True, repr=False)
class Output(_Result):
    """Bytes that a running command wrote, cut anywhere."""

    stream: Literal["stdout", "stderr"]
    data: bytes


@dataclass(frozen=True, slots=True, repr=False)
class Ended(_Result):
    """The end of a running command, always the last event."""

    status: Status
    sandbox_killed: bool


@dataclass(frozen=True, slots=True, repr=False)
class ProcessLogs(_Result):
    """The next part of what a background command printed."""

    stdout: bytes
    stderr: bytes
    next: tuple[int, int]
    """What to ask next: bytes seen of standard output and of standard error."""


@dataclass(frozen=True, slots=True, repr=False)
class SandboxRef(_Result):
    """All that is needed to pick a sandbox up again, in another process too. Holds no secret."""

    url: str
    id: str


@dataclass(frozen=True, slots=True, repr=False)
class SandboxInfo(_Result):
    """What `Sandbox.list` reports of a sandbox."""

    id: str
    labels: dict[str, str]
    state: Literal["running", "paused", "not_running"]


@dataclass(frozen=True, slots=True, repr=False)
class Gap(_Result):
    """Why a result does not hold everything that is there."""

    kind: Literal[
        "match_limit", "time_limit", "unreadable", "not_utf8", "changed", "output_limit", "other"
    ]
    count: int | None
    text: str
    """The same for people."""


@dataclass(frozen=True, slots=True, repr=False)
class Entry(_Result):
    """One entry of a directory. Links are not followed."""

    path: str
    kind: Literal["file", "dir", "symlink", "other"]
    size: int
    modified: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True, repr=False)
class Listing(_Result):
    """The children of a directory, sorted by the bytes of their paths."""

    entries: tuple[Entry, ...]
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True, repr=False)
class TextPage(_Result):
    """Lines of a text file, joined with LF."""

    text: str
    start_line: int
    """1-based number of the first line."""
    end_line: int
    total_lines: int
    next_offset: int | None
    """The offset that continues; `None` at the end."""
    capped: bool
    """The page was cut at its largest size. No line is lost: `next_offset` continues."""
    line_cut: bool
    """A single line is larger than that and was cut."""


@dataclass(frozen=True, slots=True, repr=False)
class BinaryPage(_Result):
    """All of a file that is not text."""

    content: bytes


@dataclass(frozen=True, slots=True, repr=False)
class EmptyPage(_Result):
    """No lines: the file is empty, or none were asked for."""

    looked: bool
    """Whether the file was looked at, so that it is known to be empty."""


ReadPage: TypeAlias = TextPage | BinaryPage | EmptyPage
"""What `Sandbox.read` gives."""


@dataclass(frozen=True, slots=True, repr=False)
class GlobMatches(_Result):
    """Regular files, absolute, sorted by bytes."""

    paths: tuple[str, ...]
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True, repr=False)
class GrepMatch(_Result):
    """A line that holds the text."""

    path: str
    line: int
    """1-based."""
    text: str
    cut: bool
    """The line is very long and was cut."""


@dataclass(frozen=True, slots=True, repr=False)
class GrepMatches(_Result):
    """Hits, sorted by path and line."""

    matches: tuple[GrepMatch, ...]
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True, repr=False)
class TreeReport(_Result):
    """What moving a whole tree moved."""

    files: int
    bytes: int
    skipped: tuple[str, ...]
    """What was left out and why, one line each."""


@dataclass(frozen=True, slots=True, repr=False)
class Mount(_Result):
    """A part of the host's file system, or a volume, inside the sandbox."""

    source: str
    """An absolute path of the host, or the name of a volume."""
    target: str
    """Where it appears."""
    read_only: bool = True
