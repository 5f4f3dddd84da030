"""The dashboard of `navarch up`: `navarch web` in a process of its own, so that it never slows the scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Final

from navarch.cli.up.cluster import UpOptions

LINE_WITHIN: Final = 60.0


class DashboardProcess:
    """`await start()` returns the address to open; empty: it did not start. The process ends when our end of its input closes."""

    def __init__(self, scheduler_port: int, kubeconfig: Path, options: UpOptions) -> None:
        self._arguments = [
            f"--kubeconfig={kubeconfig}",
            f"--listen=127.0.0.1:{options.web_port}",
            f"--scheduler=http://127.0.0.1:{scheduler_port}",
            "--stop-with-input",
            *(f"--plugin-dir={each}" for each in options.plugin_dirs),
            *(["--namespace-as-queue"] if options.namespace_as_queue else []),
        ]
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> str:
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "navarch.cli.main",
            "web",
            *self._arguments,
            stdin=pipe,
            stdout=pipe,
            stderr=nothing,
            env=dict(os.environ),
        )
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(LINE_WITHIN):
                return (await self._process.stdout.readline()).decode().strip()
        except TimeoutError:
            return ""

    async def stop(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(5.0):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
