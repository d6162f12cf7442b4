"""Which sandboxes the suites run on, and the report of what they found."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import anysandbox
from anysandbox import Sandbox
from anysandbox.deepagents import SandboxBackend

SERVER = "SANDBOX_PYTHON_OPENSANDBOX"
"""The variable with the address of a server, which `cargo xtask python` starts."""

TARGETS = {
    "mock": "mock:",
    "docker-busybox": "docker://sandbox-busybox",
    "docker-python": "docker://sandbox-python",
    "opensandbox": f"opensandbox://{os.environ.get(SERVER, '')}/sandbox-python",
}
"""The name that a target has in `docs/conformance.md`, and its URL."""

CORNERS = ("mock", "docker-busybox")
"""What tests of this package's own code run on: without and with the fewest tools in the image."""

SUITES = {
    "test_standard": "langchain-tests' sandbox suite",
    "test_base_sandbox": "the same on a plain `BaseSandbox`",
}
"""Files with a row of their own; the rest is this package's own tests."""
OWN = "the package's own tests"

REPORT = "SANDBOX_PYTHON_REPORT"
"""The variable that names the file to report to."""

REPOSITORY = Path(__file__).resolve().parents[3]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--target", action="append", choices=TARGETS, help="run on these only")


class Availability:
    """What runs here. A target that is required and missing ends the run."""

    def __init__(self, config: pytest.Config) -> None:
        chosen = config.getoption("--target") or list(TARGETS)
        self.targets = [t for t in TARGETS if t in chosen]
        self.not_run: list[str] = []
        for backend in ("docker", "opensandbox"):
            wanted = [t for t in self.targets if t.startswith(backend)]
            if not wanted:
                continue
            try:
                Sandbox.list(TARGETS[wanted[0]])
            except anysandbox.SandboxError as e:
                if required(backend):
                    pytest.exit(f"{backend} is required and can't be had: {e}", returncode=1)
                self.not_run.append(f"{backend} ({e})")
                self.targets = [t for t in self.targets if t not in wanted]


def required(backend: str) -> bool:
    """Whether the run is a failure without it: as for the tests in Rust."""
    named = os.environ.get("SANDBOX_REQUIRE", "").split(",")
    return "CI" in os.environ or backend in (n.strip() for n in named)


AVAILABLE = pytest.StashKey[Availability]()
FOUND = pytest.StashKey[dict[tuple[str, str], Counter[str]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "on(*targets): runs on these; the corners unless given")
    config.stash[AVAILABLE] = Availability(config)
    config.stash[FOUND] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test a target for what takes `target`."""
    if "target" in metafunc.fixturenames and not hasattr(metafunc.cls, "target"):
        mark = metafunc.definition.get_closest_marker("on")
        wanted = mark.args if mark else CORNERS
        there = [t for t in metafunc.config.stash[AVAILABLE].targets if t in wanted]
        metafunc.parametrize("target", there, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the classes of targets that are not there."""
    there = config.stash[AVAILABLE].targets
    gone = [i for i in items if target_of(i) not in there]
    if gone:
        items[:] = [i for i in items if i not in gone]
        config.hook.pytest_deselected(items=gone)


def target_of(item: pytest.Item) -> str:
    """The target that a test runs on; without one the mock is enough for it."""
    of_class = getattr(getattr(item, "cls", None), "target", None)
    params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return str(of_class or params.get("target", "mock"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    failed_around = report.when != "call" and report.failed
    if report.when == "call" or failed_around:
        assert not report.skipped or hasattr(report, "wasxfail"), f"{item.nodeid} skips itself"
        suite = SUITES.get(Path(item.path).stem, OWN)
        word = "expected" if hasattr(report, "wasxfail") and report.skipped else report.outcome
        counts = item.config.stash[FOUND].setdefault((suite, target_of(item)), Counter())
        counts[word] += 1
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = os.environ.get(REPORT)
    if path:
        rows = [
            {
                "suite": suite,
                "target": target,
                "passed": counts["passed"],
                "expected_failures": counts["expected"],
                "failed": counts["failed"],
            }
            for (suite, target), counts in sorted(session.config.stash[FOUND].items())
        ]
        Path(path).write_text(json.dumps(rows, indent=2) + "\n")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for what in config.stash[AVAILABLE].not_run:
        terminalreporter.write_line(f"NOT RUN: {what}")


@pytest.fixture(scope="module")
def backend(target: str) -> Iterator[SandboxBackend]:
    """A backend of Deep Agents, shared by the tests of a file; each has its own folder."""
    with SandboxBackend.create(TARGETS[target]) as backend:
        yield backend


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A fresh sandbox where any will do."""
    with Sandbox.create("mock:") as sandbox:
        yield sandbox


@pytest.fixture
def folder(backend: SandboxBackend, request: pytest.FixtureRequest) -> str:
    """An empty folder of the shared sandbox."""
    name = request.function.__name__
    path = f"/tmp/{name}"
    made = backend.execute(f"rm -rf {path} && mkdir -p {path}")
    assert made.exit_code == 0, made.output
    return path
