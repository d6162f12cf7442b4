"""Warnings, at the line of the user's own code."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

_PACKAGE = __name__.partition(".")[0]


class InsecureSandboxWarning(UserWarning):
    """The sandbox keeps less apart, or promises less, than its user may think.

    Silence it as any other: `warnings.simplefilter("ignore", InsecureSandboxWarning)`.
    """


def warn(message: str) -> None:
    """Warns once for each line of code outside this package that asks for a sandbox."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame = frame.f_back
        level += 1
    warnings.warn(message, InsecureSandboxWarning, stacklevel=level)
