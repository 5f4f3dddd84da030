"""Asking extenders: notices before questions, a circuit breaker, TLS settings, and bounds."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from tests.envtest.certificates import Authority
from tests.worlds.kube.json_server import saying, serving

from navarch.engine.points.conversation import Exchange, Manifest, Notice, Question, Request, Server
from navarch.engine.record import CycleRecord
from navarch.extenders import FAILURES, PAUSE, ExtenderClient, converse, tls_context


def nothing(place: Manifest) -> Any:
    return {"kind": place.kind, "apiVersion": "v1", "metadata": {"name": place.name}}


async def test_objects_are_put_in_with_what_the_cycle_changed() -> None:
    pod = Manifest("Pod", "ns", "p", (("spec.nodeName", "n1"),), bare=True)
    async with serving(saying({})) as served:
        extenders = ExtenderClient(nothing)
        server = Server(served.address, 60.0)
        await extenders.answer(Question(server, (Request("verb", {"list": [pod], "n": 1}),), (Notice(server, Request("told", {})),)))
        await extenders.close()
    assert served.requests == [
        ("POST", "/told", {}),
        ("POST", "/verb", {"list": [{"metadata": {"name": "p"}, "spec": {"nodeName": "n1"}}], "n": 1}),
    ]


async def test_a_server_that_fails_is_left_alone_for_a_while_and_then_asked_again() -> None:
    now, broken = [0.0], [True]

    async def answer(request: web.Request, body: Any) -> web.StreamResponse:
        return web.json_response({}, status=500 if broken else 200)

    async with serving(answer) as served:
        extenders = ExtenderClient(nothing, clock=lambda: now[0])
        question = Question(Server(served.address, 60.0), (Request("verb", {}),))
        for _ in range(FAILURES + 3):
            assert (await extenders.answer(question)).answers[0].error
        assert len(served.requests) == FAILURES
        assert "not asked for" in extenders.problems()[0]
        now[0] += PAUSE
        broken.clear()
        assert (await extenders.answer(question)).answers[0].body == "{}"
        assert not extenders.problems()
        await extenders.close()


async def test_one_good_answer_forgives_failures() -> None:
    answers = iter([500] * (FAILURES - 1) + [200] + [500] * (FAILURES - 1) + [200])

    async def answer(request: web.Request, body: Any) -> web.StreamResponse:
        return web.json_response({}, status=next(answers))

    async with serving(answer) as served:
        extenders = ExtenderClient(nothing)
        question = Question(Server(served.address, 60.0), (Request("verb", {}),))
        found = [(await extenders.answer(question)).answers[0] for _ in range(2 * FAILURES)]
        await extenders.close()
    assert found[-1].body == "{}"


async def test_a_cycle_without_end_is_answered_with_errors() -> None:
    """A rule that asks again and again costs a bounded number of requests."""
    async with serving(saying({})) as served:
        question = Question(Server(served.address, 60.0), (Request("verb", {}),))

        def decide(exchanges: list[Exchange]) -> CycleRecord:
            failed = exchanges[-1].answers[0].error
            return CycleRecord(warnings=[failed]) if failed else CycleRecord(question=question)

        extenders = ExtenderClient(nothing)
        record = await converse(CycleRecord(question=question), decide, extenders, most=3)
        await extenders.close()
    assert len(served.requests) == 3 and record.warnings == ["the cycle has more than 3 questions"]


async def test_an_answer_that_is_no_text_is_a_failure() -> None:
    async with serving(saying(b"\xff\xfe")) as served:
        extenders = ExtenderClient(nothing)
        exchange = await extenders.answer(Question(Server(served.address, 60.0), (Request("verb", {}),)))
        await extenders.close()
    assert exchange.answers[0].error


async def test_certificates_that_are_not_there_are_a_failure() -> None:
    extenders = ExtenderClient(nothing)
    server = Server("https://127.0.0.1:1", 60.0, {"caFile": "/nowhere/ca.crt"})
    exchange = await extenders.answer(Question(server, (Request("verb", {}),)))
    await extenders.close()
    assert "No such file" in exchange.answers[0].error


@pytest.mark.parametrize("inline", [False, True])
async def test_an_extender_over_tls_with_a_client_certificate(tmp_path: Path, inline: bool) -> None:
    authority = Authority(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.certificate_file)
    context.load_cert_chain(*authority.server())
    context.verify_mode = ssl.CERT_REQUIRED
    certificate, key = authority.user("scheduler", [])
    files = {"caFile": authority.certificate_file, "certFile": certificate, "keyFile": key}
    settings: dict[str, Any] = {name: str(path) for name, path in files.items()}
    if inline:
        settings = {f"{name.removesuffix('File')}Data": base64.b64encode(path.read_bytes()).decode() for name, path in files.items()}
    async with serving(saying({}), context) as served:
        extenders = ExtenderClient(nothing)

        async def asked(tls: dict[str, Any]) -> str:
            exchange = await extenders.answer(Question(Server(served.address, 60.0, tls), (Request("verb", {}),)))
            return exchange.answers[0].error

        assert await asked(settings) == ""
        assert await asked({**settings, "serverName": "localhost"}) == ""
        assert "certificate" in (await asked({**settings, "serverName": "elsewhere"})).lower()
        assert await asked({}) != "", "the authorities of the system do not know the extender"
        await extenders.close()


def test_tls_is_verified_unless_insecure_is_set() -> None:
    assert tls_context({}) is None
    insecure = tls_context({"insecure": True})
    assert insecure is not None and not insecure.check_hostname


def test_exchanges_are_recorded_as_json() -> None:
    exchange = Exchange(0, "verb", ())
    assert msgspec.json.decode(msgspec.json.encode(exchange), type=Exchange) == exchange
