"""The wheel as it is installed."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import anysandbox
import pytest
from conftest import REPOSITORY

from anysandbox import errors


def test_it_is_the_wheel_and_it_says_that_it_is_typed() -> None:
    package = Path(anysandbox.__file__).parent
    assert REPOSITORY / "crates" not in package.parents
    assert (package / "py.typed").exists() and (package / "_native.pyi").exists()
    about = metadata.metadata("anysandbox")
    assert about["Requires-Python"] == ">=3.11"
    assert any("deepagents" in r and "extra" in r for r in about.get_all("Requires-Dist") or [])
    assert f'version = "{about["Version"]}"' in (REPOSITORY / "Cargo.toml").read_text()


def test_there_is_a_class_for_each_kind_of_error() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", (REPOSITORY / "docs/errors.md").read_text(), re.M)
    assert len(rows) > 20
    for kind, word in rows:
        found = getattr(errors, f"{kind}Error")
        assert found is errors._class_of(word) and found.kind == word
        assert issubclass(found, anysandbox.SandboxError) and found.__doc__
    assert len(rows) == len(errors._KINDS)
    assert errors._class_of("a_new_one") is anysandbox.SandboxError


@pytest.mark.parametrize("page", ["README.md", "crates/sandbox-python/README.md"])
def test_the_lines_of_the_readme_run(page: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", (REPOSITORY / page).read_text(), re.M | re.S)
    assert blocks
    ran = 0
    for block in blocks:
        code = compile(block, page, "exec")
        # A block with a model of the reader's own is only compiled.
        if "create_deep_agent" not in block:
            exec(code, {})
            ran += 1
    assert ran
