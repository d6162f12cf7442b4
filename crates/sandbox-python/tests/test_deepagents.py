"""The backend of Deep Agents: its results, and that agents and tools get them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, NoReturn

import pytest
from conftest import REPOSITORY, TARGETS
from deepagents.backends import protocol
from deepagents.middleware.filesystem import FilesystemMiddleware
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from anysandbox import ExecuteResponse, Gap, Listing, Status, errors
from anysandbox.deepagents import SandboxBackend


def test_endings_of_commands(backend: SandboxBackend) -> None:
    assert backend.execute("echo err >&2; echo out; exit 7") == protocol.ExecuteResponse(
        output="err\nout\n", exit_code=7, truncated=False
    )
    late = backend.execute("printf begun; sleep 60", timeout=1)
    assert late.exit_code == 124 and late.output == "begun\n[Command timed out after 1 s and was killed]"
    assert backend.execute("exit 124", timeout=30) == protocol.ExecuteResponse("", 124, False)
    assert backend.execute("sleep 1.5; echo ok", timeout=0).output == "ok\n"
    cut = backend.execute("head -c 3000000 /dev/zero | tr '\\0' x")
    assert cut.truncated and "bytes dropped" in cut.output and len(cut.output) < 1_100_000
    with pytest.raises(ValueError, match="0 or more"):
        backend.execute("true", timeout=-1)
    with pytest.raises(ValueError, match="NUL"):
        backend.execute("a\0b")


class Lost:
    """A sandbox whose answers are those that can't be had on purpose."""

    def execute(self, *_: Any, **__: Any) -> ExecuteResponse:
        status = Status("lost", None, None, "connection reset")
        return ExecuteResponse(status, b"half", b"", "half", 0, 1.0, True)

    def ls(self, path: str) -> Listing:
        return Listing((), (Gap("unreadable", 2, "2 could not be read"),))

    def read(self, *_: Any) -> NoReturn:
        raise errors.UnavailableError("can't be reached", retry="unsure")


def test_a_lost_command_has_no_exit_code_and_says_so() -> None:
    lost = SandboxBackend(Lost()).execute("true")  # type: ignore[arg-type]
    assert lost.exit_code is None
    assert lost.output.startswith("half\n[The connection was lost")
    assert "connection reset" in lost.output and "sandbox was killed" in lost.output


def test_what_could_not_be_looked_at_is_not_nothing() -> None:
    backend = SandboxBackend(Lost())  # type: ignore[arg-type]
    listed = backend.ls("/a")
    assert listed.entries is None and "2 could not be read" in (listed.error or "")
    assert backend.read("/a").error == "File '/a': can't be reached"


def test_codes_of_files(backend: SandboxBackend, folder: str) -> None:
    locked = f"{folder}/locked"
    backend.execute(f"echo secret > {locked}; chmod 000 {locked}; mkdir {folder}/dir")
    paths = [f"{folder}/none", locked, f"{folder}/dir", "relative", "/a/../b", ""]
    codes = ["file_not_found", "permission_denied", "is_directory"] + ["invalid_path"] * 3
    assert [(r.path, r.content, r.error) for r in backend.download_files(paths)] == [
        (path, None, code) for path, code in zip(paths, codes, strict=True)
    ]
    batch = [(f"{folder}/a", b"1"), ("relative", b"2"), (f"{folder}/dir", b"3"), (f"{folder}/b", b"4")]
    assert [(r.path, r.error) for r in backend.upload_files(batch)] == [
        (f"{folder}/a", None),
        ("relative", "invalid_path"),
        (f"{folder}/dir", "is_directory"),
        (f"{folder}/b", None),
    ]
    assert [r.content for r in backend.download_files([f"{folder}/a", f"{folder}/b"])] == [b"1", b"4"]


def test_pages(backend: SandboxBackend, folder: str) -> None:
    path = f"{folder}/a.txt"
    backend.write(path, "1\r\n2\n3")
    page = backend.read(path, offset=1, limit=1)
    assert page.file_data == {"content": "2", "encoding": "utf-8"}
    assert (page.start_line, page.end_line, page.total_lines, page.next_offset) == (2, 2, 3, 2)
    whole = backend.read(path, offset=-5, limit=2**70)
    assert (whole.file_data or {})["content"] == "1\n2\n3" and whole.next_offset is None
    for limit in (0, -1):
        nothing = backend.read(path, limit=limit)
        assert nothing.no_lines_requested and (nothing.file_data or {})["content"] == ""
    assert "3" in (backend.read(path, offset=2**70).error or "")
    backend.write(f"{folder}/empty", "")
    assert "empty contents" in (backend.read(f"{folder}/empty").file_data or {})["content"]
    backend.upload_files([(f"{folder}/b", b"\xff\xfe\0")])
    assert (backend.read(f"{folder}/b").file_data or {}) == {
        "content": base64.b64encode(b"\xff\xfe\0").decode(),
        "encoding": "base64",
    }


def test_a_capped_page_goes_on_where_it_stopped(backend: SandboxBackend, folder: str) -> None:
    lines = [f"{n:04}" + "x" * 496 for n in range(3000)]
    backend.write(f"{folder}/long", "\n".join(lines))
    offset: int | None = 0
    seen: list[str] = []
    while offset is not None:
        page = backend.read(f"{folder}/long", offset=offset)
        seen += (page.file_data or {})["content"].split("\n")
        offset = page.next_offset
    assert seen == lines


def test_searches(backend: SandboxBackend, folder: str) -> None:
    files = [(f"{folder}/{name}", b"needle\nhay\nneedle\n") for name in ("a.py", "d/b.py", "d/c.txt")]
    backend.upload_files(files)
    found = backend.glob("*.py", folder)
    assert [m["path"] for m in found.matches or []] == [f"{folder}/a.py", f"{folder}/d/b.py"]
    assert not found.truncated
    assert backend.glob("/d/*.py", folder).matches == [{"path": f"{folder}/d/b.py", "is_dir": False}]
    for bad in ("../*", "[", "{a,b" * 20):
        refused = backend.glob(bad, folder)
        assert refused.error or refused.matches == [], bad
    exact = backend.grep("needle", folder, glob="*.py", max_count=4)
    assert len(exact.matches or []) == 4 and not exact.truncated
    cut = backend.grep("needle", folder, max_count=4)
    assert len(cut.matches or []) == 4 and cut.truncated
    for missing in (backend.grep("a", "/none"), backend.glob("*", "/none"), backend.ls("/none")):
        assert missing.error and "not_found" in missing.error
    assert backend.ls(f"{folder}/a.py").error


def test_searches_without_a_path_begin_where_the_framework_says(backend: SandboxBackend) -> None:
    backend.write("/workspace/here.txt", "unlikely words")
    found = backend.grep("unlikely words")
    assert found.matches == [{"path": "/workspace/here.txt", "line": 1, "text": "unlikely words"}]
    assert "/workspace/here.txt" in [m["path"] for m in backend.glob("here.txt").matches or []]


def test_a_listing_has_kinds_sizes_and_times(backend: SandboxBackend, folder: str) -> None:
    backend.execute(f"cd {folder}; printf 123 > .hidden; mkdir d; ln -s d link; ln -s none dangling")
    listed = {Path(e["path"]).name: e for e in backend.ls(folder).entries or []}
    assert sorted(listed) == [".hidden", "d", "dangling", "link"]
    assert [n for n, e in listed.items() if e["is_dir"]] == ["d"]
    assert listed[".hidden"]["size"] == 3 and listed[".hidden"]["modified_at"].endswith("+00:00")


def test_errors_of_edits_are_those_that_models_know(backend: SandboxBackend, folder: str) -> None:
    path = f"{folder}/a"
    backend.write(path, "foo foo foo")
    many = backend.edit(path, "foo", "bar")
    assert "multiple times" in (many.error or "") and "3" in (many.error or "")
    assert backend.edit(path, "bar", "").error == "Error: String not found in file: 'bar'"
    assert backend.edit(path, "", "x").error.startswith("Error: old_string cannot be empty")  # type: ignore[union-attr]
    assert backend.edit(f"{folder}/none", "a", "b").error == f"Error: File '{folder}/none' not found"
    assert backend.edit(path, "foo", "foofoo", replace_all=True).occurrences == 3
    assert backend.delete(path).path == path
    assert "not found" in (backend.delete(path).error or "")


def test_text_that_is_no_utf8_is_an_answer_and_no_exception(backend: SandboxBackend) -> None:
    assert backend.write("/tmp/f", "\ud800").error
    assert backend.edit("/tmp/f", "\ud800", "").error
    assert backend.read("/tmp/\ud800").error and backend.ls("/\ud800").error
    assert backend.grep("\ud800", "/tmp").error and backend.glob("\ud800").error
    assert [r.error for r in backend.upload_files([("/tmp/\ud800", b"")])] == ["invalid_path"]


def test_a_gone_sandbox_is_an_error_of_the_program() -> None:
    backend = SandboxBackend.create("mock:")
    backend.kill()
    with pytest.raises(errors.SandboxGoneError):
        backend.execute("true")
    assert "killed" in (backend.ls("/").error or "")


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"file_path": "/t/a.py", "content": "one\ntwo\n"}),
    ("read_file", {"file_path": "/t/a.py"}),
    ("edit_file", {"file_path": "/t/a.py", "old_string": "one", "new_string": "1"}),
    ("ls", {"path": "/t"}),
    ("glob", {"pattern": "*.py", "path": "/t"}),
    ("grep", {"pattern": "two", "path": "/t", "output_mode": "content"}),
    ("execute", {"command": "cat /t/a.py; echo err >&2; exit 3"}),
    ("execute", {"command": "sleep 60", "timeout": 1}),
    ("read_file", {"file_path": "/t/none"}),
    ("delete", {"file_path": "/t"}),
]


async def test_tools_give_the_same_with_and_without_async(target: str) -> None:
    """A backend's own async methods once gave empty output here, with no error."""
    answers = []
    for use_async in (False, True):
        with SandboxBackend.create(TARGETS[target]) as backend:
            tools = ToolNode(FilesystemMiddleware(backend=backend).tools)
            graph = StateGraph(MessagesState).add_node("tools", tools).add_edge(START, "tools")
            program = graph.compile()
            said = []
            for n, (name, args) in enumerate(CALLS):
                call = {"name": name, "args": args, "id": f"{n}", "type": "tool_call"}
                state = {"messages": [AIMessage(content="", tool_calls=[call])]}
                done = await program.ainvoke(state) if use_async else program.invoke(state)
                said.append((name, done["messages"][-1].text))
            answers.append(said)
    assert answers[0] == answers[1]
    outputs = [text for _, text in answers[0]]
    assert all(outputs)
    assert "1\ntwo\nerr\n" in outputs[6] and "exit code 3" in outputs[6]
    assert "exit code 124" in outputs[7] and "file_not_found" in outputs[8]


def test_every_async_method_is_the_frameworks_own() -> None:
    for name in dir(protocol.SandboxBackendProtocol):
        if name.startswith("a") and hasattr(protocol.SandboxBackendProtocol, name[1:]):
            ours = getattr(SandboxBackend, name)
            assert ours is getattr(protocol.SandboxBackendProtocol, name), name


def test_an_agent_analyses_a_csv(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(REPOSITORY / "examples" / "python")
    import data_analysis
    from stand_in.plan import Plan

    with SandboxBackend.create(TARGETS[target]) as backend:
        answer = data_analysis.analyse(backend, data_analysis.CUSTOMERS, Plan())
        answer.images += ["/etc/passwd", "/none", "../../tmp/x"]
        images = data_analysis.deliver(backend, answer, tmp_path)
    assert len(images) >= 4 and all(i.read_bytes().lstrip().startswith(b"<svg") for i in images)
    report = (tmp_path / "report.md").read_text()
    assert "1000 rows and 12 columns" in report and "/workspace/out" not in report
    assert all(f"]({image.name})" in report for image in images)
    assert {p.name for p in tmp_path.iterdir()} == {"report.md", *(i.name for i in images)}
