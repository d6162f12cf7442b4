"""Faults that were seen in other backends of Deep Agents, as small inputs with the right answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from anysandbox.deepagents import SandboxBackend

NAMES = [
    "x'; touch pwned; '.txt",
    "$(touch pwned)",
    "`id`",
    'a"b',
    "a\\b",
    "a b+c%41#?x=1",
    "*",
    "~",
    "a;b&c|d",
    "{a,b}",
    "!x",
    "a$HOME.txt",
    "-n",
    "--help",
    "-rf",
    "-",
    " lead",
    "a:12:b.txt",
    "{path}.txt",
    "naïve-漢",
    "new\nline",
]


def content(backend: SandboxBackend, path: str) -> bytes | None:
    return backend.download_files([path])[0].content


def test_a_name_is_only_a_name(backend: SandboxBackend, folder: str) -> None:
    paths = sorted(f"{folder}/{name}" for name in NAMES)
    assert all(r.error is None for r in backend.upload_files([(p, b"needle\n") for p in paths]))
    assert [e["path"] for e in backend.ls(folder).entries or []] == paths
    hits = [(m["path"], m["line"], m["text"]) for m in backend.grep("needle", folder).matches or []]
    assert hits == [(path, 1, "needle") for path in paths]
    assert [m["path"] for m in backend.glob("*", folder).matches or []] == paths
    for path in paths:
        assert backend.edit(path, "needle", "a needle").error is None, path
        assert (backend.read(path).file_data or {})["content"] == "a needle", path
    assert [r.content for r in backend.download_files(paths)] == [b"a needle\n"] * len(paths)
    for path in paths[::3]:
        assert backend.write(path, "new").error is None, path
        assert backend.delete(path).error is None, path
    left = [e["path"] for e in backend.ls(folder).entries or []]
    assert left == [path for n, path in enumerate(paths) if n % 3]


def test_what_is_written_is_what_is_there(backend: SandboxBackend, folder: str) -> None:
    texts = ["", "\n", "x", "x\n", "x\n\n", "\n\n\n", "\r\n", "\ufeffx", "   ", "\t"]
    texts += ["{0} {path} {{x}} %s %d $1 \\1 \\n `id` $(id)\nEOF\n__EOF__\n", "a &amp;&amp; b < c &lt;"]
    for text in texts:
        assert backend.write(f"{folder}/f", text).error is None
        assert content(backend, f"{folder}/f") == text.encode(), repr(text)
    assert backend.write(folder, "").error
    assert backend.execute("echo '&lt;'").output == "&lt;\n"


def test_new_files_are_0644_and_old_ones_keep_their_mode(backend: SandboxBackend, folder: str) -> None:
    backend.upload_files([(f"{folder}/a", b"")])
    backend.write(f"{folder}/b", "")
    backend.execute(f"touch {folder}/c; chmod 755 {folder}/c")
    backend.write(f"{folder}/c", "x")
    backend.edit(f"{folder}/c", "x", "y")
    modes = backend.execute(f"cd {folder}; ls -l a b c | cut -c1-10").output
    assert modes == "-rw-r--r--\n-rw-r--r--\n-rwxr-xr-x\n"


def test_long_arguments(backend: SandboxBackend, folder: str) -> None:
    path = f"{folder}/long"
    for size in (131_071, 131_072, 150_000, 2_100_000):
        assert backend.write(path, "x" * size).error is None
        assert len(content(backend, path) or b"") == size
    old, new = "a" * 120_000, "b" * 150_000
    backend.write(path, old)
    assert backend.edit(path, old, new).occurrences == 1
    assert content(backend, path) == new.encode()
    found = backend.grep("b" * 100_000, folder)
    assert len(found.matches or []) == 1 or "too long" in (found.error or "")
    assert backend.execute(f": {'y' * 140_000}; echo ok").output == "ok\n"


def test_what_a_command_prints_is_not_changed(backend: SandboxBackend) -> None:
    for command, output, code in [
        ("printf abc", "abc", 0),
        ("printf 'a\\n\\nb\\n\\n\\nc\\n'", "a\n\nb\n\n\nc\n", 0),
        ("printf 'a\\rb\\n'", "a\rb\n", 0),
        ("printf 'ok\\377\\376\\n'; echo end", "ok\ufffd\ufffd\nend\n", 0),
        ("cat <<EOF\nhi\nEOF", "hi\n", 0),
        ("echo hi # note", "hi\n", 0),
        ("set -e; false; echo no", "", 1),
        ("exec >/dev/null; echo hidden", "", 0),
        ("trap 'echo bye' EXIT; true", "bye\n", 0),
        ("cat", "", 0),
        ("exit 256", "", 0),
        ("exit 7", "", 7),
    ]:
        done = backend.execute(command, timeout=60)
        assert (done.output, done.exit_code) == (output, code), command
    assert backend.execute("nosuchcmd_zz").exit_code == 127
    assert backend.execute("(sleep 600 &) >/dev/null 2>&1; echo started").output == "started\n"


def test_edits_touch_nothing_else(backend: SandboxBackend, folder: str) -> None:
    path = f"{folder}/f"
    for before, old, new, every, after in [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny", False, b"x\r\ny\r\nc\r\n"),
        (b"a\nb\r\nc\n", "b", "B", False, b"a\nB\r\nc\n"),
        (b"\xef\xbb\xbffirst\nsecond\n", "first", "FIRST", False, b"\xef\xbb\xbfFIRST\nsecond\n"),
        (b"caf\xe9\nx=1\n", "x=1", "x=2", False, b"caf\xe9\nx=2\n"),
        (b"a\nb", "b", "c", False, b"a\nc"),
        (b"X", "X", "$& $1 $$ $` \\1 \\0 \\n & ${x}", False, b"$& $1 $$ $` \\1 \\0 \\n & ${x}"),
        (b"a.*b[c](d)?^$|\\", "a.*b[c](d)?^$|\\", "/", False, b"/"),
        (b"aaaa", "aa", "b", True, b"bb"),
        ("ß👩‍👩‍👧‍👦".encode(), "ß", "ss", False, "ss👩‍👩‍👧‍👦".encode()),
    ]:
        backend.upload_files([(path, before)])
        assert backend.edit(path, old, new, replace_all=every).error is None, before
        assert content(backend, path) == after
    backend.write(path, "a\nb")
    assert backend.edit(path, "b\n", "c\n").error and content(backend, path) == b"a\nb"


def test_of_many_edits_at_once_none_is_lost(backend: SandboxBackend, folder: str) -> None:
    path = f"{folder}/f"
    backend.write(path, "".join(f"<{n}>\n" for n in range(48)))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: backend.edit(path, f"<{n}>", f"[{n}]"), range(48)))
    done = content(backend, path) or b""
    for n, result in enumerate(results):
        assert (f"[{n}]\n".encode() in done) == (result.error is None), result.error
    assert any(result.error is None for result in results)


def test_searches_find_all_and_only_what_is_there(backend: SandboxBackend, folder: str) -> None:
    backend.upload_files(
        [
            (f"{folder}/t.py", b"a.b\naxb\nfoo(bar\n[x]\nc*\n^d$\n\\w\n$100\n--pre=sh\n"),
            (f"{folder}/src/a.py", b"needle"),
            (f"{folder}/src/x/b.py", b"needle"),
            (f"{folder}/src/x/y/c.py", b"needle"),
            (f"{folder}/.env", b"needle"),
            (f"{folder}/.github/w/x.yml", b"needle"),
            (f"{folder}/n.bin", b"needle\0x\nneedle two\n"),
        ]
    )
    for text in ("a.b", "foo(", "[x]", "c*", "^d$", "\\w", "$100", "--pre=sh"):
        assert len(backend.grep(text, folder).matches or []) == 1, text
    assert len(backend.grep("needle", folder).matches or []) == 5
    one = backend.grep("needle", f"{folder}/src/a.py")
    assert [m["path"] for m in one.matches or []] == [f"{folder}/src/a.py"]
    for pattern, count in [
        ("**/*.py", 4),
        ("src/**/*.py", 3),
        ("src/*.py", 1),
        ("*.py", 4),
        ("src/**/a.py", 1),
        ("**/x/**", 2),
        ("*.yml", 1),
        ("**/*.yml", 0),
        (".env", 1),
        ("*env", 0),
        (".github/**", 1),
        ("src?a.py", 0),
        ("[!x]/b.py", 0),
    ]:
        assert len(backend.glob(pattern, folder).matches or []) == count, pattern


def test_deleting_removes_what_is_named_and_nothing_else(backend: SandboxBackend, folder: str) -> None:
    backend.execute(f"cd {folder}; mkdir -p d/sub keep; touch keep/k; ln -s ../keep d/out; ln -s keep l; ln -s none g")
    assert backend.delete(f"{folder}/g").error is None
    backend.delete(f"{folder}/l/")
    assert content(backend, f"{folder}/keep/k") == b""
    assert backend.delete(f"{folder}/d").error is None
    assert content(backend, f"{folder}/keep/k") == b""
    for refused in ("/", ".", "..", "", f"{folder}/..", "relative"):
        assert backend.delete(refused).error, refused


def test_relative_paths_are_refused(backend: SandboxBackend) -> None:
    for result in (
        backend.ls("tmp"),
        backend.read("tmp/a"),
        backend.write("tmp/a", ""),
        backend.edit("tmp/a", "a", "b"),
        backend.delete("tmp/a"),
        backend.grep("a", "tmp"),
        backend.glob("*", "tmp"),
    ):
        assert "invalid_path" in (result.error or "")


def test_a_file_never_replaces_a_folder(backend: SandboxBackend, folder: str) -> None:
    backend.write(f"{folder}/d/a", "1")
    assert backend.upload_files([(f"{folder}/d", b"2")])[0].error == "is_directory"
    assert content(backend, f"{folder}/d/a") == b"1"


def test_text_with_line_numbers_is_text(backend: SandboxBackend, folder: str) -> None:
    backend.write(f"{folder}/f", "     1\tfoo\n")
    assert (backend.read(f"{folder}/f").file_data or {})["content"] == "     1\tfoo"


def test_a_command_that_removes_tmp_keeps_its_output(backend: SandboxBackend) -> None:
    assert backend.execute("rm -rf /tmp/* /tmp/.[!.]*; echo gone").output == "gone\n"
    assert backend.execute("mkdir -p /tmp; echo still here").output == "still here\n"
