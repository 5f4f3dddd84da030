"""aiohttp trusts what the system trusts, although it reads the certificates late."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from navarch.embedded.api.server import ApiServer

ASK = """
import asyncio, sys
from navarch.kube.http_library import aiohttp

async def ask():
    async with aiohttp.ClientSession() as session:
        for _ in range(2):
            async with session.get(sys.argv[1] + "/livez", headers={"Connection": "close"}) as answer:
                print(answer.status)

asyncio.run(ask())
"""


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_server_is_trusted_if_the_system_trusts_its_authority(tmp_path: Path, trusted: bool) -> None:
    bundle = tmp_path / "bundle.pem"
    async with ApiServer() as server:
        bundle.write_bytes(server.ca_pem if trusted else b"")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", ASK, server.url),
            env={**os.environ, "SSL_CERT_FILE": str(bundle), "SSL_CERT_DIR": str(tmp_path / "none")},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, complaint = await process.communicate()
    assert said.decode().split() == (["200", "200"] if trusted else []), complaint.decode()[-500:]
    assert ("CERTIFICATE_VERIFY_FAILED" in complaint.decode()) != trusted
