"""The documented use of the official client, against a server whose sandboxes have our daemon.

    client.py sync|async direct|proxy DOMAIN IMAGE      the key is in OPEN_SANDBOX_API_KEY

One scenario for both clients: it yields what a client gives back, an answer or something to be
awaited, and gets the answer. Anything that is not as documented ends it with a traceback.
"""

import asyncio
import inspect
import logging
import os
import sys
import time
import uuid
from datetime import datetime, timedelta, timezone

import opensandbox
from opensandbox.config import ConnectionConfig, ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.manager import SandboxManager
from opensandbox.models.execd import ExecutionHandlers, RunCommandOpts
from opensandbox.models.execd_sync import ExecutionHandlersSync
from opensandbox.models.filesystem import (
    ContentReplaceEntry,
    DirectoryListEntry,
    MoveEntry,
    SearchEntry,
    SetPermissionEntry,
    WriteEntry,
)
from opensandbox.models.sandboxes import SandboxFilter
from opensandbox.sync import SandboxManagerSync, SandboxSync

# How long something that happens soon may take on a machine that has much else to do.
SOON = 30
ENTRYPOINT = ["tail", "-f", "/dev/null"]


def texts(messages):
    return [message.text for message in messages]


def equal(seen, wanted):
    assert seen == wanted, f"{seen!r}, not {wanted!r}"


def lifecycle(client, config, image, label, proxy):
    sandbox = yield client.Sandbox.create(
        image,
        connection_config=config,
        entrypoint=ENTRYPOINT,
        timeout=timedelta(minutes=10),
        metadata={"official": label},
        env={"INJECTED": "yes"},
    )
    try:
        yield from look(client, config, sandbox, label, proxy)
        yield from commands(client, sandbox)
        yield from background(sandbox)
        yield from files(sandbox)
        yield from life(client, config, sandbox)
    finally:
        yield sandbox.destroy()
    manager = yield client.Manager.create(connection_config=config)
    try:
        yield from gone(manager, sandbox.id)
    finally:
        yield manager.close()


def look(client, config, sandbox, label, proxy):
    info = yield sandbox.get_info()
    equal(info.status.state, "Running")
    equal(info.entrypoint, ENTRYPOINT)
    equal(info.metadata, {"official": label})
    assert info.created_at < info.expires_at
    equal((yield sandbox.is_healthy()), True)
    metrics = yield sandbox.get_metrics()
    assert metrics.cpu_count > 0, metrics
    assert 0 <= metrics.cpu_used_percentage <= 100 * metrics.cpu_count, metrics
    assert 0 < metrics.memory_used_in_mib <= metrics.memory_total_in_mib, metrics
    endpoint = (yield sandbox.get_endpoint(44772)).endpoint
    assert "://" not in endpoint and ("/sandboxes/" in endpoint) == proxy, endpoint
    port = (yield sandbox.get_endpoint(8000)).endpoint
    assert "://" not in port and port != endpoint, port
    # A second client of the same sandbox.
    other = yield client.Sandbox.connect(sandbox.id, connection_config=config)
    said = yield other.commands.run("echo connected")
    equal(texts(said.logs.stdout), ["connected"])
    yield other.close()


def commands(client, sandbox):
    seen = []
    handlers = client.handlers(seen)
    said = yield sandbox.commands.run("echo Hello Sandbox!", handlers=handlers)
    equal(texts(said.logs.stdout), ["Hello Sandbox!"])
    equal((texts(said.logs.stderr), said.error, said.exit_code), ([], None, 0))
    assert said.id and said.complete.execution_time_in_millis >= 0
    equal([kind for kind, _ in seen], ["init", "stdout", "complete"])

    both = yield sandbox.commands.run("echo out; echo err >&2; exit 7")
    equal((texts(both.logs.stdout), texts(both.logs.stderr)), (["out"], ["err"]))
    equal((both.exit_code, both.error.name, both.error.value), (7, "CommandExecError", "7"))
    assert both.complete is None

    missing = yield sandbox.commands.run("no-such-program-here")
    assert missing.exit_code == 127 and missing.error is not None, missing

    options = RunCommandOpts(working_directory="/tmp", envs={"OWN": "1"})
    where = yield sandbox.commands.run("pwd; echo $OWN $INJECTED", opts=options)
    equal(texts(where.logs.stdout), ["/tmp", "1 yes"])
    again = yield sandbox.commands.run("echo ${OWN:-unset}")
    equal(texts(again.logs.stdout), ["unset"])
    # Whichever user the image has besides root.
    other = yield sandbox.commands.run("id -u", opts=RunCommandOpts(uid=1000, gid=1000))
    equal(texts(other.logs.stdout), ["1000"])
    lines = yield sandbox.commands.run("for i in 1 2 3 4 5; do echo Count $i; done")
    equal(texts(lines.logs.stdout), [f"Count {i}" for i in range(1, 6)])

    begun = time.monotonic()
    late = yield sandbox.commands.run(
        "echo begun; sleep 600", opts=RunCommandOpts(timeout=timedelta(seconds=1))
    )
    assert time.monotonic() - begun < 300 and late.error is not None, late
    equal(texts(late.logs.stdout), ["begun"])


def background(sandbox):
    run = RunCommandOpts(background=True)
    started = yield sandbox.commands.run("echo one; sleep 1; echo two; exit 3", opts=run)
    equal(started.exit_code, None)
    status, deadline = None, time.monotonic() + SOON
    while status is None or status.running:
        assert time.monotonic() < deadline, status
        time.sleep(0.1)
        status = yield sandbox.commands.get_command_status(started.id)
    equal(status.exit_code, 3)
    logs = yield sandbox.commands.get_background_command_logs(started.id, cursor=0)
    equal((logs.content, logs.cursor), ("one\ntwo\n", 8))
    rest = yield sandbox.commands.get_background_command_logs(started.id, cursor=4)
    equal(rest.content, "two\n")

    endless = yield sandbox.commands.run("sleep 600", opts=run)
    assert (yield sandbox.commands.get_command_status(endless.id)).running
    yield sandbox.commands.interrupt(endless.id)
    status, deadline = None, time.monotonic() + SOON
    while status is None or status.running:
        assert time.monotonic() < deadline, status
        time.sleep(0.1)
        status = yield sandbox.commands.get_command_status(endless.id)


def files(sandbox):
    fs, base = sandbox.files, "/tmp/official"
    yield fs.create_directories([WriteEntry(path=f"{base}/sub", mode=755)])
    content = bytes(range(256)) * 4
    yield fs.write_files(
        [
            WriteEntry(path=f"{base}/hello.txt", data="Hello World", mode=644),
            WriteEntry(path=f"{base}/bytes.bin", data=content, mode=600),
        ]
    )
    yield fs.write_file(f"{base}/sub/deep.txt", "a\nb\na\n")
    equal((yield fs.read_file(f"{base}/hello.txt")), "Hello World")
    equal((yield fs.read_bytes(f"{base}/bytes.bin")), content)
    equal((yield fs.read_bytes(f"{base}/bytes.bin", range_header="bytes=0-9")), content[:10])
    info = (yield fs.get_file_info([f"{base}/hello.txt"]))[f"{base}/hello.txt"]
    equal((info.size, info.mode, info.owner), (11, 644, "root"))

    found = yield fs.search(SearchEntry(path=base, pattern="*.txt"))
    equal(sorted(f.path for f in found), [f"{base}/hello.txt", f"{base}/sub/deep.txt"])
    listed = yield fs.list_directory(DirectoryListEntry(path=base))
    equal(sorted(f.path for f in listed), [f"{base}/{n}" for n in ("bytes.bin", "hello.txt", "sub")])

    replace = ContentReplaceEntry(path=f"{base}/sub/deep.txt", old_content="a", new_content="c")
    counts = yield fs.replace_contents_detailed([replace])
    equal([c.replaced_count for c in counts], [2])
    equal((yield fs.read_file(f"{base}/sub/deep.txt")), "c\nb\nc\n")
    yield fs.set_permissions([SetPermissionEntry(path=f"{base}/hello.txt", mode=600)])
    info = (yield fs.get_file_info([f"{base}/hello.txt"]))[f"{base}/hello.txt"]
    equal(info.mode, 600)
    yield fs.move_files([MoveEntry(src=f"{base}/hello.txt", dest=f"{base}/moved.txt")])
    equal((yield fs.read_file(f"{base}/moved.txt")), "Hello World")
    yield fs.delete_files([f"{base}/moved.txt"])
    for path in (f"{base}/hello.txt", f"{base}/moved.txt"):
        try:
            yield fs.read_file(path)
        except SandboxApiException as e:
            equal(e.status_code, 404)
        else:
            raise AssertionError(f"{path} is still there")
    yield fs.delete_directories([base])
    equal((yield sandbox.commands.run(f"ls {base}")).exit_code != 0, True)


def life(client, config, sandbox):
    renewed = yield sandbox.renew(timedelta(minutes=20))
    left = renewed.expires_at - datetime.now(timezone.utc)
    assert timedelta(minutes=15) < left < timedelta(minutes=25), left
    info = yield sandbox.get_info()
    assert abs(info.expires_at - renewed.expires_at) < timedelta(seconds=10), info

    yield sandbox.pause()
    equal((yield sandbox.get_info()).status.state, "Paused")
    resumed = yield client.Sandbox.resume(sandbox.id, connection_config=config)
    said = yield resumed.commands.run("echo resumed")
    equal(texts(said.logs.stdout), ["resumed"])
    yield resumed.close()

    manager = yield client.Manager.create(connection_config=config)
    try:
        label = info.metadata["official"]
        mine = SandboxFilter(metadata={"official": label}, states=["Running"])
        page = yield manager.list_sandbox_infos(mine)
        equal([s.id for s in page.sandbox_infos], [sandbox.id])
        patched = yield manager.patch_sandbox_metadata(sandbox.id, {"more": "x", "official": None})
        equal(patched.metadata, {"more": "x"})
        page = yield manager.list_sandbox_infos(mine)
        equal(page.sandbox_infos, [])
    finally:
        yield manager.close()


def gone(manager, identity):
    try:
        yield manager.get_sandbox_info(identity)
    except SandboxApiException as e:
        equal(e.status_code, 404)
    else:
        raise AssertionError("it lives on")


class Sync:
    Sandbox, Manager, Config = SandboxSync, SandboxManagerSync, ConnectionConfigSync

    @staticmethod
    def handlers(seen):
        def note(kind):
            return lambda event: seen.append((kind, event))

        return ExecutionHandlersSync(
            on_init=note("init"),
            on_stdout=note("stdout"),
            on_stderr=note("stderr"),
            on_execution_complete=note("complete"),
        )


class Async:
    Sandbox, Manager, Config = opensandbox.Sandbox, SandboxManager, ConnectionConfig

    @staticmethod
    def handlers(seen):
        def note(kind):
            async def handler(event):
                seen.append((kind, event))

            return handler

        return ExecutionHandlers(
            on_init=note("init"),
            on_stdout=note("stdout"),
            on_stderr=note("stderr"),
            on_execution_complete=note("complete"),
        )


async def drive(scenario):
    """Gives the scenario the answer, or the error, of each thing that it yields."""
    answer, error = None, None
    while True:
        try:
            call = scenario.send(answer) if error is None else scenario.throw(error)
        except StopIteration:
            return
        answer, error = None, None
        try:
            answer = await call if inspect.isawaitable(call) else call
        except Exception as e:
            error = e


def main():
    kind, route, domain, image = sys.argv[1:]
    client = {"sync": Sync, "async": Async}[kind]
    proxy = {"direct": False, "proxy": True}[route]
    config = client.Config(
        domain=domain,
        api_key=os.environ["OPEN_SANDBOX_API_KEY"],
        request_timeout=timedelta(minutes=2),
        use_server_proxy=proxy,
        disable_metrics=True,
    )
    # It logs the errors that it raises.
    logging.disable(logging.CRITICAL)
    label = uuid.uuid4().hex
    asyncio.run(drive(lifecycle(client, config, image, label, proxy)))


main()
