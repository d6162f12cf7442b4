"""The framework's own derived operations over our `execute`, `upload_files`, `download_files`.

They run python3 in the sandbox, so they need an image that has it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import TARGETS
from deepagents.backends.protocol import (
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
)
from deepagents.backends.sandbox import BaseSandbox
from langchain_tests.integration_tests import SandboxIntegrationTests
from test_standard import CONTRADICTIONS, give_python

from anysandbox.deepagents import SandboxBackend


class Plain(BaseSandbox):
    """A backend as the framework's documentation says to write one."""

    def __init__(self, inner: SandboxBackend) -> None:
        self._inner = inner

    @property
    def id(self) -> str:
        return self._inner.id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return self._inner.execute(command, timeout=timeout)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return self._inner.upload_files(files)

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return self._inner.download_files(paths)


class TestPlain(SandboxIntegrationTests):
    """The suite on such a backend."""

    target = "docker-python"

    @pytest.fixture(scope="class")
    def sandbox(self) -> Iterator[Plain]:
        with SandboxBackend.create(TARGETS[self.target]) as backend:
            give_python(backend)
            yield Plain(backend)


for _test, _why in CONTRADICTIONS.items():
    _original = getattr(SandboxIntegrationTests, _test)
    setattr(TestPlain, _test, pytest.mark.xfail(strict=True, reason=_why)(_original))
