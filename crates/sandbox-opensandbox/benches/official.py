"""The official client's half of the benchmark: official.py DOMAIN IMAGE."""

import asyncio
import os
import sys
import time
from datetime import timedelta

from opensandbox import Sandbox
from opensandbox.config import ConnectionConfig

ECHOES, AT_ONCE, MANY = 10, 16, 160


async def echo(sandbox):
    said = await sandbox.commands.run("echo hi")
    assert [message.text for message in said.logs.stdout] == ["hi"], said


async def main():
    domain, image = sys.argv[1:]
    key = os.environ["OPEN_SANDBOX_API_KEY"]
    config = ConnectionConfig(
        domain=domain,
        api_key=key,
        request_timeout=timedelta(minutes=2),
        disable_metrics=True,
    )
    sandbox = await Sandbox.create(
        image, connection_config=config, entrypoint=["tail", "-f", "/dev/null"]
    )
    try:
        await echo(sandbox)
        times = []
        for _ in range(ECHOES):
            start = time.monotonic()
            await echo(sandbox)
            times.append(time.monotonic() - start)
        median = sorted(times)[ECHOES // 2] * 1e3
        left = iter(range(MANY))

        async def worker():
            for _ in left:
                await echo(sandbox)

        start = time.monotonic()
        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
        rate = MANY / (time.monotonic() - start)
        print(f"official   {median:9.1f} ms    {rate:9.1f} commands/s")
    finally:
        await sandbox.destroy()


asyncio.run(main())
