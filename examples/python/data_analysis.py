"""A Deep Agent analyses a CSV; its code runs in a sandbox. Leaves a report with charts.

    python data_analysis.py
    python data_analysis.py --url docker://sandbox-data --csv my.csv --out report
    OPENAI_API_KEY=... python data_analysis.py --model openai:gpt-5.2

Without `--model` a stand-in follows a fixed plan (`stand_in/plan.py`), so that this runs without key and
network. The agent is the same.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path, PurePosixPath

from anysandbox.deepagents import SandboxBackend
from deepagents import create_deep_agent
from langchain_core.language_models import BaseChatModel
from stand_in.plan import Plan
from pydantic import BaseModel, Field

CUSTOMERS = Path(__file__).parent.parent / "data" / "customers-1000.csv"

PROMPT = """\
You are a data analyst. You work in an isolated sandbox without network. Everything you say about the \
data must come from code that ran there; never guess a figure. Look at the file, write your analysis as \
a script, run it, and draw at least four charts into /workspace/out: PNG with python3 and seaborn where \
they are there, else SVG with awk. Return the report in Markdown, with the charts where they belong."""


class Report(BaseModel):
    """What the agent returns. All of it is hostile until it has been looked at."""

    report: str = Field(description="The report in Markdown, with images as ![caption](path).")
    images: list[str] = Field(description="The absolute paths of the images in the sandbox.")


def analyse(backend: SandboxBackend, csv: Path, model: str | BaseChatModel) -> Report:
    """Has the agent analyse a local file in the sandbox."""
    path = "/workspace/data.csv"
    (uploaded,) = backend.upload_files([(path, csv.read_bytes())])
    if uploaded.error:
        raise RuntimeError(f"{csv} was not uploaded: {uploaded.error}")
    agent = create_deep_agent(
        model, backend=backend, system_prompt=PROMPT, response_format=Report
    )
    request = {"messages": [("user", f"Analyse the CSV file `{path}` and return the report.")]}
    answer: Report = agent.invoke(request, {"recursion_limit": 200})["structured_response"]
    return answer


def deliver(backend: SandboxBackend, answer: Report, out: Path) -> list[Path]:
    """Writes the report and its images into `out`, the report's paths rewritten to theirs."""
    out.mkdir(parents=True, exist_ok=True)
    names: dict[str, str] = {}
    for got in backend.download_files(answer.images[:24]):
        if got.content is None or not is_image(got.content):
            print(f"not taken: {got.path!r}: {got.error or 'it is no image'}")
            continue
        # Of the path only the last part is used here, without what a file system could act on.
        name = re.sub(r"[^A-Za-z0-9._-]", "_", PurePosixPath(got.path).name).lstrip(".") or "image"
        names[got.path] = f"{len(names) + 1:02}-{name}"
        (out / names[got.path]).write_bytes(got.content)

    def local(link: re.Match[str]) -> str:
        path = str(PurePosixPath("/workspace/out", link[2]))
        return f"![{link[1]}]({names[path]})" if path in names else f"({link[1]}: no image)"

    report = re.sub(r"!\[([^\]]*)\]\(([^)\s]*)\)", local, answer.report)
    (out / "report.md").write_text(report)
    return [out / name for name in names.values()]


def is_image(content: bytes) -> bool:
    """Whether it is a PNG, or an SVG that runs no code."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return True
    code = re.search(rb"<script|<foreignObject|\son\w+\s*=|javascript:", content, re.IGNORECASE)
    return content.lstrip().startswith(b"<svg") and not code


def main() -> None:
    options = argparse.ArgumentParser(description="Analyses a CSV in a sandbox.")
    options.add_argument("--url", default="mock:", help="where the code runs")
    options.add_argument("--csv", type=Path, default=CUSTOMERS)
    options.add_argument("--out", type=Path, default=Path("report"))
    options.add_argument("--model", help="a model as langchain names it, `openai:gpt-5.2`")
    chosen = options.parse_args()
    with SandboxBackend.create(chosen.url, timeout=300) as backend:
        answer = analyse(backend, chosen.csv, chosen.model or Plan())
        images = deliver(backend, answer, chosen.out)
    print(f"report.md and {len(images)} images are in {chosen.out}")


if __name__ == "__main__":
    main()
