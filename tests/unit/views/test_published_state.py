"""The published state: what is kept out of it, its two texts, and where clients look for it."""

from __future__ import annotations

import msgspec
import pytest

from navarch.engine.policy import PRESETS, PolicyError
from navarch.engine.policy.credentials import without_credentials
from navarch.installed import installed
from navarch.kube.connect import Endpoint
from navarch.kube.errors import ConfigError
from navarch.offline.policies import read_policy
from navarch.views.published_state import (
    Parameters,
    PublishedPolicy,
    PublishedState,
    QueueShare,
    StateAddress,
    WaitingPage,
    document_hash,
    from_config_map,
    published_policy,
    read_page,
    to_config_map,
)
from navarch.views.running_policy import running_policy


def state(policy: PublishedPolicy | None = None) -> PublishedState:
    policy = policy or published_policy(read_policy("kai", installed()))
    shares = [QueueShare("a", 0.5, {"cpu": "2"}, {"cpu": "1"}, {"cpu": "4"}, None)]
    return PublishedState("1", ["navarch"], policy, Parameters(namespace_as_queue=True), shares, "me", "2026-01-01T00:00:00Z")


@pytest.mark.parametrize("preset", PRESETS)
def test_the_state_of_every_preset_is_read_as_it_was_written(preset: str) -> None:
    before = state(published_policy(read_policy(preset, installed())))
    after = from_config_map(to_config_map(before))
    assert after == before
    assert document_hash(after.policy.document) == before.policy.hash


def test_a_policy_loaded_from_the_state_is_the_policy_that_runs() -> None:
    for preset in PRESETS:
        running = read_policy(preset, installed())
        data = to_config_map(state(published_policy(running)))
        found = running_policy(None, from_config_map(data), installed())
        assert (found.policy.tiers, found.policy.actions, found.policy.semantics) == (
            running.tiers,
            running.actions,
            running.semantics,
        )
        assert not found.notes


@pytest.mark.parametrize(
    "data", [{}, {"state.json": "{}"}, {"state.json": "[]"}, {"state.json": "no"}, {"state.json": '{"policy": {}}'}]
)
def test_a_config_map_of_another_kind_is_refused(data: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        from_config_map(data)


def test_credentials_leave_addresses_and_secret_fields() -> None:
    document = {
        "usageDBConfig": {"connectionString": "http://me:hush@prometheus:9090/x"},
        "metrics": {"elasticsearch.password": "hush", "list": [{"bearerToken": "hush", "keep": 1}]},
        "tokens": 3,
    }
    found = without_credentials(document)
    assert "hush" not in msgspec.json.encode(found).decode()
    assert found["usageDBConfig"]["connectionString"] == "http://prometheus:9090/x"
    assert found["metrics"]["list"][0]["keep"] == 1 and found["tokens"] == 3


def test_a_policy_that_differs_is_said_and_an_equal_one_is_not() -> None:
    assert running_policy("kai", state(), installed()).notes == []
    (note,) = running_policy("volcano", state(), installed()).notes
    assert note.startswith("--policy volcano differs from the policy that runs (kai, hash ")


def test_a_running_policy_with_plugins_of_its_own_is_said() -> None:
    document = {"actions": "allocate", "tiers": [{"plugins": [{"name": "only-there"}]}]}
    found = running_policy(None, state(PublishedPolicy("their.yaml", "x", "navarch", "strict", document)), installed())
    (note,) = found.notes
    assert "their.yaml" in note and "only-there" in note and "--plugin-dir" in note
    assert found.settings().namespace_as_queue
    with pytest.raises(PolicyError):
        running_policy("no-such-file.yaml", state(), installed())


def test_an_address_names_an_installation_or_a_url() -> None:
    assert StateAddress.parse("") == StateAddress("", "navarch-state")
    assert StateAddress.parse("pool-b") == StateAddress("", "pool-b-state")
    assert StateAddress.parse("batch/pool-b") == StateAddress("batch", "pool-b-state")
    assert StateAddress.parse("https://navarch.corp.example/").url == "https://navarch.corp.example"


async def test_no_token_is_sent_over_plain_http_to_another_machine() -> None:
    with pytest.raises(ConfigError, match="expected https, or a port forward to localhost"):
        await read_page(Endpoint("http://127.0.0.1:1"), "http://navarch.corp.example:8080", WaitingPage)
