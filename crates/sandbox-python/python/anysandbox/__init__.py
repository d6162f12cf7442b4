"""Sandboxes for code that an LLM agent runs: one contract, many backends.

`Sandbox.create` makes one where a URL says: `"mock:"` in this process, `"docker://IMAGE"` in a
container, `"opensandbox://HOST:PORT/IMAGE"` at an OpenSandbox server. `anysandbox.deepagents` makes it a backend of Deep Agents.
"""

import atexit as _atexit

from . import errors
from ._native import Events, Process, Sandbox, close as _close, flush
from ._results import (
    BinaryPage,
    EmptyPage,
    Ended,
    Entry,
    ExecuteResponse,
    Gap,
    GlobMatches,
    GrepMatch,
    GrepMatches,
    Listing,
    Mount,
    Output,
    ProcessLogs,
    ReadPage,
    SandboxInfo,
    SandboxRef,
    Status,
    TextPage,
    TreeReport,
)
from ._warnings import InsecureSandboxWarning
from .errors import SandboxError

__all__ = [
    "BinaryPage",
    "EmptyPage",
    "Ended",
    "Entry",
    "Events",
    "ExecuteResponse",
    "Gap",
    "GlobMatches",
    "GrepMatch",
    "GrepMatches",
    "InsecureSandboxWarning",
    "Listing",
    "Mount",
    "Output",
    "Process",
    "ProcessLogs",
    "ReadPage",
    "Sandbox",
    "SandboxError",
    "SandboxInfo",
    "SandboxRef",
    "Status",
    "TextPage",
    "TreeReport",
    "errors",
    "flush",
]

# Long enough to end many containers on a slow engine; the interpreter's end must not hang.
_atexit.register(_close, 30.0)
