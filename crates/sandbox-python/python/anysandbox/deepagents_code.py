"""The provider that the command line `deepagents-code --sandbox anysandbox` finds."""

from __future__ import annotations

import os
from typing import Any

from deepagents_code.integrations.sandbox_provider import (
    SandboxNotFoundError,
    SandboxProvider,
    SandboxProviderMetadata,
)

from .deepagents import SandboxBackend
from .errors import SandboxGoneError

URL = "ANYSANDBOX_URL"
"""The variable that names the backend; containers of the engine's default image if unset."""


class Provider(SandboxProvider):
    """Makes, finds and deletes sandboxes for that command line."""

    def __init__(self) -> None:
        self._made: dict[str, SandboxBackend] = {}

    @property
    def metadata(self) -> SandboxProviderMetadata:
        """What the command line shows and asks."""
        return SandboxProviderMetadata(name="anysandbox", working_dir="/workspace")

    def get_or_create(
        self, *, sandbox_id: str | None = None, url: str | None = None, **options: Any
    ) -> SandboxBackend:
        """The sandbox of that id, or a new one.

        Args:
            sandbox_id: One that lives.
            url: The backend; the variable `ANYSANDBOX_URL` if unset.
            options: Those of `Sandbox.create`.

        Raises:
            SandboxNotFoundError: There is no such sandbox.
        """
        if sandbox_id is None:
            backend = SandboxBackend.create(_url(url), **options)
            self._made[backend.id] = backend
            return backend
        return self._made.get(sandbox_id) or _find(sandbox_id, url)

    def delete(self, *, sandbox_id: str, url: str | None = None, **options: Any) -> None:
        """Ends a sandbox. Deleting one that is gone is a success."""
        try:
            backend = self._made.pop(sandbox_id, None) or _find(sandbox_id, url)
        except SandboxNotFoundError:
            return
        backend.kill()


def _find(sandbox_id: str, url: str | None) -> SandboxBackend:
    try:
        return SandboxBackend.connect(_url(url), sandbox_id)
    except SandboxGoneError as e:
        raise SandboxNotFoundError(str(e)) from e


def _url(given: str | None) -> str:
    return given or os.environ.get(URL) or "docker:"
