"""What each operation takes: our backend beside the framework's own operations, on one container.

    python crates/sandbox-python/bench/operations.py [--url docker://sandbox-python] [--rounds 15]

`BaseSandbox` runs over our `execute`, `upload_files` and `download_files`, so both pay the same for a
command. The two take turns, so that what else the machine does falls on both. Ends with 1 unless ours
is faster on each.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

from anysandbox.deepagents import SandboxBackend
from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

ROOT = "/tmp/bench"


class Plain(BaseSandbox):
    """The framework's own operations."""

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


OPERATIONS: dict[str, Callable[[BaseSandbox], object]] = {
    "ls": lambda b: b.ls(f"{ROOT}/few"),
    "read": lambda b: b.read(f"{ROOT}/lines", limit=200),
    "write": lambda b: b.write(f"{ROOT}/new/file", "content\n" * 100),
    "edit": lambda b: b.edit(f"{ROOT}/lines", "line 1500", "line 1500"),
    "glob": lambda b: b.glob("*.py", ROOT),
    "grep": lambda b: b.grep("needle", ROOT),
}
"""On 20 files, 2,000 lines, and 1,000 files with 10 hits."""


def prepare(backend: SandboxBackend) -> None:
    files = [(f"{ROOT}/many/{n % 50}/{n}.py", b"needle" if n % 100 == 0 else b"hay") for n in range(1000)]
    files += [(f"{ROOT}/few/{n}", b"") for n in range(20)]
    files += [(f"{ROOT}/lines", b"".join(b"line %d\n" % n for n in range(2000)))]
    failed = [r for r in backend.upload_files(files) if r.error]
    if failed:
        raise RuntimeError(failed[0])


def milliseconds(call: Callable[[BaseSandbox], object], backend: BaseSandbox) -> float:
    begin = time.perf_counter()
    result = call(backend)
    took = (time.perf_counter() - begin) * 1000
    if getattr(result, "error", None):
        raise RuntimeError(result)
    return took


def main() -> int:
    options = argparse.ArgumentParser(description="Times the operations of a backend.")
    options.add_argument("--url", default="docker://sandbox-python", help="an image with python3")
    options.add_argument("--rounds", type=int, default=15)
    chosen = options.parse_args()
    slower = []
    with SandboxBackend.create(chosen.url) as ours:
        prepare(ours)
        plain = Plain(ours)
        print(f"{'p50 in ms':<10} {'ours':>8} {'BaseSandbox':>12} {'ratio':>6}")
        for name, call in OPERATIONS.items():
            pairs = [
                (milliseconds(call, ours), milliseconds(call, plain)) for _ in range(chosen.rounds)
            ]
            mine, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
            print(f"{name:<10} {mine:>8.1f} {theirs:>12.1f} {theirs / mine:>6.2f}")
            if mine >= theirs:
                slower.append(name)
    if slower:
        print(f"not faster: {', '.join(slower)}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
