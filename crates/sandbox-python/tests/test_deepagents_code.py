"""What `deepagents-code --sandbox anysandbox` does, by that command line's own registry."""

from __future__ import annotations

import pytest
from conftest import TARGETS
from deepagents_code.integrations.sandbox_config import SandboxConfig
from deepagents_code.integrations.sandbox_provider import SandboxNotFoundError, SandboxProvider
from deepagents_code.integrations.sandbox_registry import SandboxRegistry

from anysandbox import errors


@pytest.fixture
def provider() -> SandboxProvider:
    registry = SandboxRegistry(config=SandboxConfig())
    metadata = registry.get_metadata("anysandbox")
    assert metadata is not None and metadata.working_dir == "/workspace"
    return registry.create_provider("anysandbox")


def test_a_sandbox_is_made_found_and_deleted(
    provider: SandboxProvider, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANYSANDBOX_URL", TARGETS[target])
    backend = provider.get_or_create(sandbox_id=None)
    assert backend.execute("pwd").output == "/workspace\n"
    assert provider.get_or_create(sandbox_id=backend.id).id == backend.id
    provider.delete(sandbox_id=backend.id)
    with pytest.raises(errors.SandboxGoneError):
        backend.execute("true")
    provider.delete(sandbox_id=backend.id)
    with pytest.raises(SandboxNotFoundError):
        provider.get_or_create(sandbox_id=backend.id)


@pytest.mark.on("docker-busybox")
async def test_one_of_another_process_is_found_and_deleted(
    provider: SandboxProvider, target: str
) -> None:
    other = SandboxRegistry(config=SandboxConfig()).create_provider("anysandbox")
    backend = await provider.aget_or_create(url=TARGETS[target], labels={"test": "provider"})
    found = await other.aget_or_create(sandbox_id=backend.id, url=TARGETS[target])
    assert found.execute("echo hi").output == "hi\n"
    await other.adelete(sandbox_id=backend.id, url=TARGETS[target])
    with pytest.raises(errors.SandboxGoneError):
        backend.execute("true")
