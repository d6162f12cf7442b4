"""What can go wrong: one class a kind of `docs/errors.md`, all of them `SandboxError`.

The class is for programs, the text for people; it says what to do.
"""

from __future__ import annotations

from typing import ClassVar, Literal


class SandboxError(Exception):
    """Something went wrong; the class says what."""

    kind: ClassVar[str] = "unexpected"
    """The kind in `snake_case`, stable across releases."""

    message: str
    """The message alone, without operation, facts and causes."""

    operation: str | None
    """The operation that failed, once known: `"read"`."""

    facts: dict[str, str]
    """What else is known, as the path and the sandbox."""

    retry: Literal["never", "safe", "unsure"]
    """Whether the call may be sent again. `"unsure"`: it may have had its effect, so repeat only
    what is idempotent."""

    def __init__(
        self,
        text: str,
        *,
        message: str | None = None,
        operation: str | None = None,
        facts: dict[str, str] | None = None,
        retry: Literal["never", "safe", "unsure"] = "never",
    ) -> None:
        super().__init__(text)
        self.message = text if message is None else message
        self.operation = operation
        self.facts = {} if facts is None else facts
        self.retry = retry


class NotFoundError(SandboxError):
    """No such file or directory in the sandbox."""

    kind = "not_found"


class PermissionDeniedError(SandboxError):
    """The sandbox's user may not do this."""

    kind = "permission_denied"


class IsADirectoryError(SandboxError):  # noqa: A001 - the kind's name; it is no OSError
    """A file was needed, a directory is there."""

    kind = "is_a_directory"


class NotADirectoryError(SandboxError):  # noqa: A001 - the kind's name; it is no OSError
    """A directory was needed, something else is there."""

    kind = "not_a_directory"


class InvalidPathError(SandboxError, ValueError):
    """The path can't be used: relative, empty, with NUL or `..`."""

    kind = "invalid_path"


class AlreadyExistsError(SandboxError):
    """The file exists and the call asked for a new one."""

    kind = "already_exists"


class InvalidArgumentError(SandboxError, ValueError):
    """An argument other than a path can't be used."""

    kind = "invalid_argument"


class InvalidPatternError(SandboxError, ValueError):
    """A glob pattern can't be used."""

    kind = "invalid_pattern"


class UnsupportedError(SandboxError, NotImplementedError):
    """The backend does not have this capability."""

    kind = "unsupported"


class NoMatchError(SandboxError):
    """The text to replace is not in the file."""

    kind = "no_match"


class NotUniqueError(SandboxError):
    """The text to replace is in the file more than once."""

    kind = "not_unique"


class ConflictError(SandboxError):
    """Someone else changed the file meanwhile; nothing was written."""

    kind = "conflict"


class TooLargeError(SandboxError):
    """Larger than the limit the call has."""

    kind = "too_large"


class NotTextError(SandboxError):
    """The file holds no text where text was asked for."""

    kind = "not_text"


class OffsetPastEndError(SandboxError):
    """The read begins after the last line."""

    kind = "offset_past_end"


class LimitExceededError(SandboxError):
    """A resource limit of the sandbox was hit: memory, disk, processes."""

    kind = "limit_exceeded"


class SandboxGoneError(SandboxError):
    """There is no such sandbox (any more)."""

    kind = "sandbox_gone"


class SandboxPausedError(SandboxError):
    """The sandbox is paused."""

    kind = "sandbox_paused"


class TimeoutError(SandboxError):  # noqa: A001 - the kind's name; it is no OSError
    """The backend did not answer in time. A command's own deadline is no error but a status."""

    kind = "timeout"


class UnavailableError(SandboxError):
    """The backend can't be reached."""

    kind = "unavailable"


class UnauthorizedError(SandboxError):
    """Credentials are missing or wrong."""

    kind = "unauthorized"


class RateLimitedError(SandboxError):
    """The backend asks to send less."""

    kind = "rate_limited"


class ImageNotFoundError(SandboxError):
    """The image that the sandbox should be made from is not there."""

    kind = "image_not_found"


class MissingToolError(SandboxError):
    """A program that the operation needs is not in the image."""

    kind = "missing_tool"


class ProtocolError(SandboxError):
    """The backend answered something that its protocol does not allow."""

    kind = "protocol"


class CommandFailedError(SandboxError):
    """A command ended otherwise than with exit code 0 (`ExecuteResponse.check`)."""

    kind = "command_failed"


class ConfigError(SandboxError):
    """The configuration or the backend URL can't be used."""

    kind = "config"


class UnexpectedError(SandboxError):
    """A failure that no other kind names."""

    kind = "unexpected"


_KINDS: dict[str, type[SandboxError]] = {c.kind: c for c in SandboxError.__subclasses__()}


def _class_of(kind: str) -> type[SandboxError]:
    """The class of a kind; of one that this version does not know, the base."""
    return _KINDS.get(kind, SandboxError)
