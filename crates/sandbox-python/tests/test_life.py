"""Signals, forks, threads, event loops and the end of the interpreter, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from conftest import TARGETS

from anysandbox import Sandbox, errors

LIMIT = 120
"""Seconds after which a process counts as hanging. No test waits for it."""


def python(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Runs a script to its end."""
    argv = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(script), *args]
    return subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT, check=False)


def ok(done: subprocess.CompletedProcess[str], output: str) -> None:
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")


def test_an_interrupt_ends_the_wait_and_the_command_and_the_sandbox_lives() -> None:
    ok(
        python(
            """
            import os, signal, threading, time
            from anysandbox import Sandbox

            sandbox = Sandbox.create("mock:")
            ticks = 0

            def interrupt():
                global ticks
                while not sandbox.ls("/tmp").entries:
                    time.sleep(0.01)
                    ticks += 1
                os.kill(os.getpid(), signal.SIGINT)

            other = threading.Thread(target=interrupt)
            other.start()
            try:
                sandbox.execute("touch /tmp/begun; sleep 3; touch /tmp/late; sleep 600")
            except KeyboardInterrupt:
                other.join()
                print("interrupted", ticks > 0)
            time.sleep(4)
            print([e.path for e in sandbox.ls("/tmp").entries], sandbox.execute("echo alive").output)
            """
        ),
        "interrupted True\n['/tmp/begun'] alive\n\n",
    )


def test_a_forked_child_is_told_and_does_not_hang_or_kill() -> None:
    ok(
        python(
            """
            import os, sys
            from anysandbox import Sandbox, SandboxError

            sandbox = Sandbox.create("mock:")
            child = os.fork()
            if child == 0:
                for use in (lambda: sandbox.execute("true"), lambda: Sandbox.create("mock:")):
                    try:
                        use()
                    except SandboxError as e:
                        assert "forked" in str(e), e
                    else:
                        os._exit(1)
                del sandbox
                sys.exit(0)
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status), sandbox.execute("echo alive").output, end="")
            """
        ),
        "0 alive\n",
    )


def test_a_fork_before_the_first_use_is_no_matter() -> None:
    ok(
        python(
            """
            import os
            from anysandbox import Sandbox

            child = os.fork()
            with Sandbox.create("mock:") as sandbox:
                assert sandbox.execute("echo hi").output == "hi\\n"
            if child:
                _, status = os.waitpid(child, 0)
                print(os.waitstatus_to_exitcode(status))
            """
        ),
        "0\n",
    )


def test_a_spawned_process_has_its_own() -> None:
    ok(
        python(
            """
            import multiprocessing
            from anysandbox import Sandbox

            if __name__ == "__main__":
                Sandbox.create("mock:").kill()
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    pool.apply(exec, ("from anysandbox import Sandbox; Sandbox.create('mock:').kill()",))
                print("done")
            """
        ),
        "done\n",
    )


@pytest.mark.on("docker-busybox")
@pytest.mark.parametrize("ending", ["", "sys.exit(3)", "raise RuntimeError", "sandbox = None"])
def test_the_end_of_the_interpreter_leaves_no_sandbox(target: str, ending: str) -> None:
    done = python(
        f"""
        import sys
        from anysandbox import Sandbox

        sandbox = Sandbox.create(sys.argv[1])
        print(sandbox.id)
        {ending}
        """,
        TARGETS[target],
    )
    assert done.returncode == {"sys.exit(3)": 3, "raise RuntimeError": 1}.get(ending, 0), done.stderr
    with pytest.raises(errors.SandboxGoneError):
        Sandbox.connect(TARGETS[target], done.stdout.strip())


def test_the_end_of_the_interpreter_does_not_wait_for_threads_in_calls() -> None:
    done = python(
        """
        import threading, time
        from anysandbox import Sandbox

        sandbox = Sandbox.create("mock:")

        def wait():
            sandbox.execute("touch /tmp/begun; sleep 600")

        for _ in range(8):
            threading.Thread(target=wait, daemon=True).start()
        while not sandbox.ls("/tmp").entries:
            time.sleep(0.01)
        print("end")
        """
    )
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
    assert "Fatal" not in done.stderr, done.stderr


def test_many_loops_one_after_the_other_and_side_by_side() -> None:
    ok(
        python(
            """
            import asyncio, threading
            from anysandbox import Sandbox

            sandbox = Sandbox.create("mock:")

            async def work():
                calls = (asyncio.to_thread(sandbox.execute, f"echo {n}") for n in range(4))
                return [done.output for done in await asyncio.gather(*calls)]

            async def inside():
                # As in a notebook: a running loop, and a call that blocks.
                return sandbox.execute("echo inside").output

            wanted = ["0\\n", "1\\n", "2\\n", "3\\n"]
            assert asyncio.run(work()) == asyncio.run(work()) == wanted
            assert asyncio.run(inside()) == "inside\\n"
            found = []
            threads = [
                threading.Thread(target=lambda: found.append(asyncio.run(work()))) for _ in range(2)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            print(found == [wanted] * 2)
            """
        ),
        "True\n",
    )


def test_from_32_threads_at_once() -> None:
    ok(
        python(
            """
            from concurrent.futures import ThreadPoolExecutor
            from anysandbox import Sandbox

            sandbox = Sandbox.create("mock:")

            def work(n):
                sandbox.write(f"/w/{n}", str(n))
                return sandbox.execute(f"cat /w/{n}").output == str(n)

            with ThreadPoolExecutor(32) as pool:
                print(all(pool.map(work, range(256))))
            """
        ),
        "True\n",
    )


def test_handles_come_and_go_while_another_thread_works() -> None:
    ok(
        python(
            """
            import gc, threading
            from anysandbox import Sandbox, flush

            working = Sandbox.create("mock:")
            stop = threading.Event()

            def work():
                while not stop.is_set():
                    assert working.execute("echo a").output == "a\\n"

            thread = threading.Thread(target=work)
            thread.start()
            for _ in range(200):
                cycle = [Sandbox.create("mock:"), working.stream("echo a"), working.process("p1")]
                cycle.append(cycle)
            del cycle
            gc.collect()
            stop.set()
            thread.join()
            print(flush(60))
            """
        ),
        "True\n",
    )


def test_a_thousand_sandboxes_leave_no_thread_and_no_memory() -> None:
    done = python(
        """
        import gc, os
        from anysandbox import Sandbox, flush

        def cycles(count):
            for _ in range(count):
                with Sandbox.create("mock:") as sandbox:
                    sandbox.write("/a", b"1" * 10_000)
                    assert sandbox.execute("cat /a | wc -c").success
            assert flush(60)
            gc.collect()

        def measure():
            status = dict(
                line.split(":", 1) for line in open("/proc/self/status") if ":" in line
            )
            return int(status["Threads"]), int(status["VmRSS"].split()[0]), len(os.listdir("/proc/self/fd"))

        cycles(200)
        before = measure()
        cycles(1000)
        print(before, measure())
        """
    )
    assert done.returncode == 0, done.stderr
    numbers = [int(n) for n in done.stdout.replace("(", "").replace(")", "").replace(",", " ").split()]
    (threads, memory, files), (threads_after, memory_after, files_after) = numbers[:3], numbers[3:]
    # Threads of the mock's pool may have come to rest in between; one a sandbox would be a thousand.
    assert threads_after <= threads + 2 and files_after <= files, done.stdout
    # Sandboxes that were kept would be some 10 MB of files alone.
    assert memory_after <= memory + 8_000, done.stdout
