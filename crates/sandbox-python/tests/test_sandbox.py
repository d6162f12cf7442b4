"""The class `Sandbox`: each operation, what it takes, gives and raises."""

from __future__ import annotations

import math
import pickle
import warnings
from datetime import timedelta
from pathlib import Path, PurePosixPath

import pytest
from conftest import TARGETS

from anysandbox import (
    BinaryPage,
    EmptyPage,
    Ended,
    Entry,
    ExecuteResponse,
    InsecureSandboxWarning,
    Mount,
    Output,
    Sandbox,
    SandboxError,
    SandboxRef,
    Status,
    TextPage,
    _warnings,
    errors,
    flush,
)


def test_a_command_has_its_streams_code_and_order(sandbox: Sandbox) -> None:
    done = sandbox.execute("echo out; echo err >&2; exit 3")
    assert (done.stdout, done.stderr, done.exit_code) == (b"out\n", b"err\n", 3)
    assert not done.success and not done.truncated and done.elapsed >= 0
    merged = sandbox.execute("echo err >&2; echo out", merge_stderr=True)
    assert (merged.output, merged.stderr) == ("err\nout\n", b"")
    with pytest.raises(errors.CommandFailedError, match="out"):
        done.check()


def test_what_a_command_takes(sandbox: Sandbox) -> None:
    words = ["printf", "%s|", "a b", "", "c'd", "$HOME", "*", "\n"]
    assert sandbox.execute(words).output == "a b||c'd|$HOME|*|\n|"
    sandbox.write("/tmp/a/b", "")
    options = {"cwd": PurePosixPath("/tmp/a"), "env": {"NAME": "a b"}, "stdin": b"in"}
    assert sandbox.execute('ls; printf %s "$NAME"; cat', **options).output == "b\na bin"
    cut = sandbox.execute("printf 123456", output_limit=4)
    assert (cut.stdout, cut.dropped, cut.truncated) == (b"1256", 2, True)
    with pytest.raises(TypeError, match="no option `shell`"):
        sandbox.execute("true", shell=True)  # type: ignore[call-arg]
    for bad in ([], ["a\0"], "a\0"):
        with pytest.raises(errors.InvalidArgumentError):
            sandbox.execute(bad)


def test_deadlines_of_a_command_and_of_a_sandbox() -> None:
    with Sandbox.create("mock:", timeout=0.3) as sandbox:
        late = sandbox.execute("echo begun; sleep 60")
        assert (late.status.kind, late.exit_code, late.output) == ("timed_out", 124, "begun\n")
        assert sandbox.execute("sleep 0.6; echo done", timeout=math.inf).output == "done\n"
        assert sandbox.execute("sleep 0.6; echo done", timeout=1e18).output == "done\n"
        assert sandbox.execute("sleep 60", timeout=timedelta(milliseconds=1)).exit_code == 124
        assert sandbox.execute("exit 124").status.kind == "exited"
        for bad in (0, -1, math.nan):
            with pytest.raises(errors.InvalidArgumentError):
                sandbox.execute("true", timeout=bad)


def test_results_are_frozen_and_stay_short(sandbox: Sandbox) -> None:
    done = sandbox.execute("yes | head -c 100000")
    assert len(repr(done)) < 1000 and "kind='exited'" in repr(done)
    with pytest.raises(AttributeError):
        done.output = ""  # type: ignore[misc]
    match done.status:
        case Status("exited", 0):
            pass
        case other:
            pytest.fail(repr(other))
    assert pickle.loads(pickle.dumps(done)) == done


def test_streams_and_background_commands(sandbox: Sandbox) -> None:
    events = list(sandbox.stream("echo out; echo err >&2; exit 3"))
    assert events == [
        Output("stdout", b"out\n"),
        Output("stderr", b"err\n"),
        Ended(Status("exited", 3), sandbox_killed=False),
    ]
    with sandbox.stream("echo begun; sleep 60; touch /tmp/late") as running:
        assert next(running) == Output("stdout", b"begun\n")
    assert list(running) == []
    process = sandbox.spawn("echo a; echo b; sleep 60")
    assert process.status() is None
    assert sandbox.process(process.id).logs((2, 0)).stderr == b""
    while process.logs().stdout != b"a\nb\n":
        assert process.status() is None
    process.kill()
    assert process.wait().kind != "exited" or process.wait().exit_code != 0
    assert process.status() == process.wait()
    logs = process.logs()
    assert (logs.stdout, logs.next) == (b"a\nb\n", (4, 0))
    assert process.logs(logs.next).stdout == b""
    with pytest.raises(errors.NotFoundError):
        sandbox.process("nothing").status()


def test_files(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write("/w/a.txt", "one\r\ntwo\n")
    assert sandbox.read("/w/a.txt", 1) == TextPage("two", 2, 2, 2, None, False, False)
    assert sandbox.read("/w/a.txt", limit=1).next_offset == 1  # type: ignore[union-attr]
    with pytest.raises(errors.OffsetPastEndError):
        sandbox.read("/w/a.txt", 7)
    assert sandbox.edit("/w/a.txt", "o", "0", replace_all=True) == 2
    assert sandbox.download("/w/a.txt") == b"0ne\r\ntw0\n"
    with pytest.raises(errors.NoMatchError):
        sandbox.edit("/w/a.txt", "nothing", "")
    with pytest.raises(errors.AlreadyExistsError):
        sandbox.create_new("/w/a.txt", "")
    sandbox.create_new("/w/b/c.bin", memoryview(b"\0\xff"))
    assert sandbox.read("/w/b/c.bin") == BinaryPage(b"\0\xff")
    sandbox.upload(PurePosixPath("/w/empty"), bytearray())
    assert sandbox.read("/w/empty") == EmptyPage(True)
    assert sandbox.read("/w/empty", limit=0) == EmptyPage(False)

    kinds = {e.path: e.kind for e in sandbox.ls("/w").entries}
    assert kinds == {"/w/a.txt": "file", "/w/b": "dir", "/w/empty": "file"}
    assert sandbox.glob("*.txt", "/w").paths == ("/w/a.txt",)
    found = sandbox.grep("0", "/w", glob="*.txt", max_count=1)
    assert [(m.path, m.line, m.text) for m in found.matches] == [("/w/a.txt", 1, "0ne")]
    assert [g.kind for g in found.gaps] == ["match_limit"]

    report = sandbox.download_dir("/w", tmp_path / "out")
    assert (report.files, report.skipped) == (3, ())
    assert (tmp_path / "out/b/c.bin").read_bytes() == b"\0\xff"
    assert sandbox.upload_dir(tmp_path / "out", "/copy").bytes == report.bytes
    large = tmp_path / "large"
    large.write_bytes(b"0123456789" * 100_000)
    assert sandbox.upload_from("/large", large) == 1_000_000
    assert sandbox.download_to("/large", tmp_path / "back") == 1_000_000
    assert (tmp_path / "back").read_bytes() == large.read_bytes()
    with pytest.raises(FileNotFoundError):
        sandbox.upload_from("/large", tmp_path / "nothing")

    sandbox.delete("/w")
    with pytest.raises(errors.NotFoundError) as gone:
        sandbox.ls("/w")
    assert (gone.value.operation, gone.value.facts["path"]) == ("ls", "/w")


def test_a_batch_has_a_result_for_each_file(sandbox: Sandbox) -> None:
    names = ["/a", "relative", "/etc/passwd/x", "", "/bad\udcff", "/b"]
    done = sandbox.upload_files([(name, name.encode(errors="replace")) for name in names])
    assert done[0] is None and done[5] is None
    assert [type(e) for e in (done[1], done[3], done[4])] == [errors.InvalidPathError] * 3
    assert isinstance(done[2], SandboxError)
    got = sandbox.download_files(["/a", "/nothing", "/etc", "/b"])
    assert (got[0], got[3]) == (b"/a", b"/b")
    assert isinstance(got[1], errors.NotFoundError) and isinstance(got[2], errors.IsADirectoryError)


def test_text_that_is_no_utf8_is_refused_and_nothing_is_written(sandbox: Sandbox) -> None:
    for refused in (
        lambda: sandbox.write("/tmp/f", "\ud800"),
        lambda: sandbox.execute("touch /tmp/f; echo \udcff"),
        lambda: sandbox.execute("touch /tmp/f", env={"A": "\udcff"}),
        lambda: sandbox.grep("\udcff", "/tmp"),
        lambda: sandbox.edit("/tmp/f", "\udcff", ""),
    ):
        with pytest.raises(errors.InvalidArgumentError, match="surrogates"):
            refused()
    with pytest.raises(errors.InvalidPathError, match="surrogates"):
        sandbox.write("/tmp/\udcff", "")
    assert sandbox.ls("/tmp").entries == ()


def test_what_a_backend_lacks_is_not_implemented(sandbox: Sandbox) -> None:
    with pytest.raises(NotImplementedError, match="pausing") as refused:
        sandbox.pause()
    assert isinstance(refused.value, errors.UnsupportedError) and refused.value.retry == "never"


def test_lifetime_and_snapshots(sandbox: Sandbox) -> None:
    sandbox.renew(3600)
    assert isinstance(sandbox.expires_at(), float)
    sandbox.write("/a", "1")
    snapshot = sandbox.snapshot()
    sandbox.write("/a", "2")
    sandbox.restore(snapshot)
    assert sandbox.download("/a") == b"1"
    assert {"streaming", "snapshots"} <= sandbox.capabilities


def test_killing_is_a_success_however_often_and_nothing_works_after(sandbox: Sandbox) -> None:
    for _ in range(3):
        sandbox.kill()
    with pytest.raises(errors.SandboxGoneError):
        sandbox.execute("true")
    assert all(isinstance(e, errors.SandboxGoneError) for e in sandbox.download_files(["/a", "/b"]))


def test_a_failing_body_is_seen_and_its_sandbox_killed() -> None:
    with pytest.raises(ZeroDivisionError), Sandbox.create("mock:") as sandbox:
        raise ZeroDivisionError
    with pytest.raises(errors.SandboxGoneError):
        sandbox.execute("true")


@pytest.mark.on("docker-busybox")
def test_who_created_kills_and_who_connected_does_not(target: str) -> None:
    url = TARGETS[target]
    with Sandbox.create(url, labels={"test": "owner"}) as owner:
        reference = owner.reference
        assert reference == SandboxRef(reference.url, owner.id)
        with Sandbox.connect(reference.url, reference.id) as guest:
            assert guest.execute("echo hi").output == "hi\n"
        assert owner.execute("true").success
        listed = Sandbox.list(url, labels={"test": "owner"})
        assert [(i.id, i.state, i.labels["test"]) for i in listed] == [(owner.id, "running", "owner")]
    with pytest.raises(errors.SandboxGoneError):
        Sandbox.connect(url, reference.id)

    dropped = Sandbox.create(url)
    id = dropped.id
    del dropped
    assert flush(60)
    with pytest.raises(errors.SandboxGoneError):
        Sandbox.connect(url, id)

    with Sandbox.create(url) as detached:
        reference = detached.detach()
    found = Sandbox.connect(reference.url, reference.id)
    assert found.execute("true").success
    found.kill()


def test_options_of_a_sandbox() -> None:
    with Sandbox.create("mock:", env={"A": "1"}, workdir="/home/me", user="1000") as sandbox:
        assert sandbox.execute("pwd; id -u; echo $A").output == "/home/me\n1000\n1\n"
        assert repr(sandbox).startswith("Sandbox(url=") and sandbox.backend_name == "mock"
    with pytest.raises(errors.UnsupportedError) as refused:
        Sandbox.create("mock:", mounts=[Mount("/tmp", "/mnt")])
    assert refused.value.facts["field"] == "mounts"
    with pytest.raises(errors.InvalidArgumentError):
        Sandbox.create("mock:", lifetime=0)
    with pytest.raises(ValueError, match="'none' or 'full'"):
        Sandbox.create("mock:", network="some")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no option `imgae`"):
        Sandbox.create("mock:", imgae="x")  # type: ignore[call-arg]
    for url in ("nothing:", "mock://host", ""):
        with pytest.raises(errors.ConfigError):
            Sandbox.create(url)


@pytest.mark.on("docker-busybox")
def test_one_name_is_one_sandbox(target: str) -> None:
    made = Sandbox.get_or_create(TARGETS[target], "python-test-one-name")
    try:
        assert Sandbox.get_or_create(TARGETS[target], "python-test-one-name").id == made.id
    finally:
        made.kill()


def test_an_entry_has_what_ls_tells(sandbox: Sandbox) -> None:
    sandbox.write("/w/a", "123")
    (entry,) = sandbox.ls("/w").entries
    assert (entry.size, entry.kind) == (3, "file") and entry.modified > 1_500_000_000
    assert entry == Entry("/w/a", "file", 3, entry.modified)


def test_a_warning_is_given_once_for_each_line_and_can_be_silenced() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(3):
            _warnings.warn("no key")
        _warnings.warn("no key")
        warnings.simplefilter("ignore", InsecureSandboxWarning)
        _warnings.warn("no key")
    assert [w.category for w in seen] == [InsecureSandboxWarning] * 2
    assert {w.filename for w in seen} == {__file__}


def test_a_response_without_a_code_is_no_success() -> None:
    lost = ExecuteResponse(Status("lost", None, None, "cut"), b"a", b"", "a", 0, 1.0, False)
    assert lost.exit_code is None and not lost.success
    with pytest.raises(errors.CommandFailedError, match="cut"):
        lost.check()
