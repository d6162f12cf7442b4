"""The native half. Every call blocks, releases the interpreter's lock, and can be interrupted."""

import builtins
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from types import TracebackType
from typing import Literal, Self, TypeAlias, final

from ._results import (
    Ended,
    ExecuteResponse,
    GlobMatches,
    GrepMatches,
    Listing,
    Mount,
    Output,
    ProcessLogs,
    ReadPage,
    SandboxInfo,
    SandboxRef,
    Status,
    TreeReport,
)
from .errors import SandboxError

__all__ = ["Events", "Process", "Sandbox", "close", "flush"]

_Time: TypeAlias = float | timedelta
"""Seconds, or a `timedelta`."""
_Path: TypeAlias = str | PathLike[str]
_Content: TypeAlias = bytes | bytearray | memoryview | str
"""Bytes, or text as UTF-8."""

@final
class Sandbox:
    """A live sandbox.

    One that was created is owned: `kill`, leaving its `with` block, dropping it and the end of the
    interpreter kill it. One that was connected to is only killed by `kill`.

    All methods raise `SandboxError`, by its classes in `anysandbox.errors`. They may be called
    from any thread, also where an event loop runs; from a coroutine, use `asyncio.to_thread`.
    After `os.fork` a child raises, where its parent had used sandboxes already.

    Paths inside a sandbox are absolute and without `..`.
    """

    @classmethod
    def create(
        cls,
        url: str,
        *,
        timeout: _Time | None = None,
        api_key: str | None = None,
        use_server_proxy: bool | None = None,
        image: str | None = None,
        entrypoint: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        workdir: _Path | None = None,
        user: str | None = None,
        memory: int | None = None,
        milli_cpus: int | None = None,
        pids: int | None = None,
        disk: int | None = None,
        network: Literal["none", "full"] | None = None,
        lifetime: _Time | None = None,
        labels: Mapping[str, str] | None = None,
        mounts: Sequence[Mount] | None = None,
        hardening: Literal["strict", "standard"] | None = None,
    ) -> Self:
        """Makes a sandbox where `url` says: `"mock:"`, `"docker://IMAGE"`, `"opensandbox://HOST:PORT/IMAGE"`.

        `timeout` is the deadline of commands that name none; without one they have none. `api_key`
        is that of an OpenSandbox server, the variable `OPEN_SANDBOX_API_KEY` unless given;
        `use_server_proxy` is whether requests to its sandboxes go through it, which is found out
        unless given. What it says of security is an `InsecureSandboxWarning`. The rest
        says what the sandbox should be like; memory and disk are in bytes, `milli_cpus` in
        thousandths of a CPU, `lifetime` in seconds.

        Raises:
            UnsupportedError: The backend can't honour an option; the error names it.
            ConfigError: The URL can't be used.
        """

    @classmethod
    def connect(
        cls,
        url: str,
        id: str,
        *,
        timeout: _Time | None = None,
        api_key: str | None = None,
        use_server_proxy: bool | None = None,
    ) -> Self:
        """Picks up a living sandbox without owning it.

        Raises:
            SandboxGoneError: There is none with this id.
        """

    @classmethod
    def get_or_create(
        cls,
        url: str,
        name: str,
        *,
        timeout: _Time | None = None,
        api_key: str | None = None,
        use_server_proxy: bool | None = None,
        image: str | None = None,
        entrypoint: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        workdir: _Path | None = None,
        user: str | None = None,
        memory: int | None = None,
        milli_cpus: int | None = None,
        pids: int | None = None,
        disk: int | None = None,
        network: Literal["none", "full"] | None = None,
        lifetime: _Time | None = None,
        labels: Mapping[str, str] | None = None,
        mounts: Sequence[Mount] | None = None,
        hardening: Literal["strict", "standard"] | None = None,
    ) -> Self:
        """Picks up the sandbox of that name or makes it, at most once however many ask at a time.

        It is not owned: it lives until it is killed or its lifetime ends.
        """

    @staticmethod
    def list(
        url: str, *, labels: Mapping[str, str] | None = None, api_key: str | None = None
    ) -> builtins.list[SandboxInfo]:
        """The living sandboxes that have all the labels."""

    @staticmethod
    def gc(url: str) -> builtins.list[str]:
        """Removes what is left of ended sandboxes and those whose owner has ended; their ids."""

    @property
    def id(self) -> str:
        """The backend's name of it."""

    @property
    def backend_name(self) -> str:
        """The backend's one word: `"docker"`."""

    @property
    def reference(self) -> SandboxRef:
        """What picks it up again."""

    @property
    def capabilities(self) -> frozenset[str]:
        """What it can do, by the names in `docs/conformance.md`."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What you have to know about it; each was an `InsecureSandboxWarning` too."""

    def kill(self) -> None:
        """Ends it and all that runs in it. Killing one that is gone is a success."""

    def detach(self) -> SandboxRef:
        """Gives up ownership: it lives on until its lifetime ends or someone kills it."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Kills it if it is owned."""

    def execute(
        self,
        command: str | Sequence[str],
        *,
        timeout: _Time | None = None,
        cwd: _Path | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stdin: _Content | None = None,
        output_limit: int | None = None,
        merge_stderr: bool = False,
    ) -> ExecuteResponse:
        """Runs shell text, or a program with arguments, to its end.

        A non-zero exit, a timeout and a lost connection are values of `ExecuteResponse.status`.
        Without `timeout` the sandbox's own holds; `math.inf` is none. `output_limit` is in bytes
        for each stream, 1 MiB unless given. `merge_stderr` gives the exact order of both.

        An exception that a signal's handler raises, as `KeyboardInterrupt`, kills the command.
        """

    def stream(
        self,
        command: str | Sequence[str],
        *,
        timeout: _Time | None = None,
        cwd: _Path | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stdin: _Content | None = None,
        merge_stderr: bool = False,
    ) -> Events:
        """Starts a command and hands out its output as it comes, without a limit."""

    def spawn(
        self,
        command: str | Sequence[str],
        *,
        timeout: _Time | None = None,
        cwd: _Path | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stdin: _Content | None = None,
        merge_stderr: bool = False,
    ) -> Process:
        """Starts a command in the background."""

    def process(self, id: str) -> Process:
        """Picks up a background command."""

    def upload_files(
        self, files: Sequence[tuple[_Path, _Content]]
    ) -> builtins.list[SandboxError | None]:
        """Writes files in one round trip. For each, in order, `None` or why it was not written."""

    def upload(self, path: _Path, content: _Content) -> None:
        """Writes one file. Parents are made; an existing file keeps mode, owner and links."""

    def download_files(self, paths: Sequence[_Path]) -> builtins.list[bytes | SandboxError]:
        """Reads files in one round trip. For each, in order, its bytes or why there are none."""

    def download(self, path: _Path) -> bytes:
        """Reads one file of at most 256 MiB."""

    def upload_dir(self, local: str | PathLike[str], path: _Path) -> TreeReport:
        """Copies what is in a local directory into a directory of the sandbox."""

    def download_dir(self, path: _Path, local: str | PathLike[str]) -> TreeReport:
        """Copies what is in a directory of the sandbox into a local one, and nothing beside it."""

    def upload_from(self, path: _Path, local: str | PathLike[str]) -> int:
        """Writes a file of any size from a local one, with bounded memory; its bytes.

        Raises:
            OSError: The local file can't be read.
        """

    def download_to(self, path: _Path, local: str | PathLike[str]) -> int:
        """Reads a file of any size into a local one, with bounded memory; its bytes.

        Raises:
            OSError: The local file can't be written.
        """

    def ls(self, path: _Path) -> Listing:
        """The direct children of a directory, hidden ones too."""

    def read(self, path: _Path, offset: int = 0, limit: int = 2000) -> ReadPage:
        """Lines of a text file from a 0-based offset, or all of a binary one."""

    def write(self, path: _Path, content: _Content) -> None:
        """Creates or overwrites a file. Parents are made; a reader never sees half a file."""

    def create_new(self, path: _Path, content: _Content) -> None:
        """As `write`, but refuses a file that exists.

        Raises:
            AlreadyExistsError: It exists.
        """

    def edit(self, path: _Path, old: str, new: str, *, replace_all: bool = False) -> int:
        """Replaces exact text, once or everywhere; how often.

        Raises:
            NoMatchError: It is not there.
            NotUniqueError: It is there more than once, and not all should be replaced.
        """

    def glob(self, pattern: str, path: _Path) -> GlobMatches:
        """Regular files below `path`. A pattern without `/` matches base names at any depth."""

    def grep(
        self,
        text: str,
        path: _Path,
        *,
        glob: str | None = None,
        max_count: int | None = None,
    ) -> GrepMatches:
        """The lines that hold `text`, literally, in the file or the files below `path`."""

    def delete(self, path: _Path) -> None:
        """Removes a file or a whole tree. Of a link the link is removed, never its target."""

    def expires_at(self) -> float | None:
        """When it ends unless renewed, in seconds since 1970; `None` for never."""

    def renew(self, lifetime: _Time) -> None:
        """Sets the remaining lifetime, counted from now."""

    def pause(self) -> None:
        """Freezes it."""

    def resume(self) -> None:
        """Ends a pause."""

    def snapshot(self) -> str:
        """Keeps the files as they are now, until the sandbox dies; the snapshot's id."""

    def restore(self, snapshot: str) -> None:
        """Puts the files back as they were."""

@final
class Events(Iterator[Output | Ended]):
    """The events of a running command. Closing it before the end kills the command."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Output | Ended: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

@final
class Process:
    """A background command. It lives on when this object is dropped, as long as its sandbox."""

    @property
    def id(self) -> str:
        """What `Sandbox.process` picks it up by."""

    def status(self) -> Status | None:
        """How it ended; `None` while it runs."""

    def logs(self, since: tuple[int, int] = (0, 0), *, max_bytes: int = 1048576) -> ProcessLogs:
        """What it printed since, at most `max_bytes` of each stream."""

    def wait(self) -> Status:
        """Waits for its end. An interrupted wait leaves it running."""

    def kill(self) -> None:
        """Kills its process tree. One that has ended already is a success."""

def flush(limit: _Time) -> bool:
    """Waits until all sandboxes dropped so far are ended, at most `limit` seconds.

    `False` when the limit came first. The interpreter does it at its end.
    """

def close(limit: _Time) -> None:
    """For the end of the interpreter: kills what is owned, has all waiting threads return."""
