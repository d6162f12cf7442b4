"""What speaks when no model is named: a fixed plan. It is no language model.

It sees what a model sees, the conversation, and says what a model says, tool calls. It knows nothing
of CSV: the analysis is a script that it writes into the sandbox and runs there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool
from pydantic import PrivateAttr

SCRIPTS = Path(__file__).parents[2] / "src" / "data_analysis" / "plan"
OUT = "/workspace/out"
HAS_PANDAS = "python3 -c 'import pandas, seaborn' 2>/dev/null && echo has pandas; true"


class Plan(BaseChatModel):
    """A chat model of langchain that follows the plan."""

    _answer_tool: str = PrivateAttr(default="")

    @property
    def _llm_type(self) -> str:
        return "plan"

    def bind_tools(
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool], **_: Any
    ) -> Self:
        """The tool for the answer is the one that is no tool of a sandbox."""
        names = [t.name for t in tools if isinstance(t, BaseTool)]
        self._answer_tool = names[-1]
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        results = [m for m in messages if isinstance(m, ToolMessage)]
        for result in results:
            if result.status == "error" or "[Command failed" in result.text:
                raise RuntimeError(f"{result.name} failed: {result.text[:1000]}")
        name, arguments = self._step([r.text for r in results])
        call = {"name": name, "args": arguments, "id": f"call-{len(results)}", "type": "tool_call"}
        message = AIMessage(content="", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _step(self, said: list[str]) -> tuple[str, dict[str, Any]]:
        """The tool call that follows what the tools have said so far."""
        has_pandas = len(said) > 2 and "has pandas" in said[2]
        script = f"analyse.{'py' if has_pandas else 'awk'}"
        match len(said):
            case 0:
                return "ls", {"path": "/workspace"}
            case 1:
                return "read_file", {"file_path": "/workspace/data.csv", "limit": 5}
            case 2:
                return "execute", {"command": HAS_PANDAS}
            case 3:
                content = (SCRIPTS / script).read_text()
                return "write_file", {"file_path": f"/workspace/{script}", "content": content}
            case 4:
                run = (
                    f"python3 {script} data.csv --out {OUT} --title customers"
                    if has_pandas
                    else f"mkdir -p {OUT} && awk -f {script} -v OUT={OUT} -v TITLE=customers data.csv"
                )
                return "execute", {"command": run, "timeout": 300}
            case 5:
                return "glob", {"pattern": "*.{svg,png}", "path": OUT}
            case 6:
                return "execute", {"command": f"cat {OUT}/report.md"}
        images = re.findall(rf"{OUT}/[^\s'\",\]]+", said[5])
        report = said[6].rpartition("\n[Command succeeded")[0]
        return self._answer_tool, {"report": report, "images": images}
