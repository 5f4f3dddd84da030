"""What a driver is told with its devices: in the order and the words of the API's allocation."""

from __future__ import annotations

from typing import Any

from navarch.apis.devices.device_settings import config, tolerations


def opaque(text: str) -> dict[str, Any]:
    return {"opaque": {"driver": "d", "parameters": {"say": text}}}


CLASSES: dict[str, dict[str, Any]] = {
    "gpu": {"spec": {"config": [opaque("gpu 1"), opaque("gpu 2")]}},
    "small": {"spec": {"config": [opaque("small")]}},
    "plain": {"spec": {}},
}
TAINT = {"key": "worn", "operator": "Exists"}


def told(requests: list[dict[str, Any]], chosen: set[str], *of_claim: dict[str, Any]) -> list[tuple[str, list[str] | None, str]]:
    claim = {"spec": {"devices": {"requests": requests, "config": list(of_claim)}}}
    found = config(claim, chosen, lambda name: CLASSES.get(name) or {})
    return [(each["source"], each.get("requests"), each["opaque"]["parameters"]["say"]) for each in found]


def test_a_class_is_told_once_with_all_requests_that_name_it_and_before_the_claim() -> None:
    requests = [
        {"name": name, "exactly": {"deviceClassName": of}} for name, of in (("a", "gpu"), ("b", "plain"), ("c", "gpu"), ("d", "gone"))
    ]
    of_claim = ({"requests": ["b"], **opaque("for b")}, {"requests": ["z"], **opaque("for nobody")}, opaque("for all"))
    assert told(requests, {"a", "b", "c", "d"}, *of_claim) == [
        ("FromClass", ["a", "c"], "gpu 1"),
        ("FromClass", ["a", "c"], "gpu 2"),
        ("FromClaim", ["b"], "for b"),
        ("FromClaim", None, "for all"),
    ]


def test_the_settings_of_the_chosen_alternative_count() -> None:
    requests = [
        {"name": "r", "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}, {"name": "few", "deviceClassName": "small"}]}
    ]
    of_claim = (
        {"requests": ["r/big"], **opaque("big")},
        {"requests": ["r/few"], **opaque("few")},
        {"requests": ["r"], **opaque("either")},
    )
    assert told(requests, {"r/few"}, *of_claim) == [
        ("FromClass", ["r/few"], "small"),
        ("FromClaim", ["r/few"], "few"),
        ("FromClaim", ["r"], "either"),
    ]


def test_a_request_of_v1beta1_has_its_body_in_itself() -> None:
    assert told([{"name": "r", "deviceClassName": "small"}], {"r"}) == [("FromClass", ["r"], "small")]


def test_taints_that_the_request_tolerates_are_told() -> None:
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "gpu", "tolerations": [TAINT]}},
        {"name": "b", "firstAvailable": [{"name": "x", "deviceClassName": "gpu"}, {"name": "y", "tolerations": [TAINT]}]},
    ]
    claim = {"spec": {"devices": {"requests": requests}}}
    assert [tolerations(claim, name) for name in ("a", "b/x", "b/y", "gone")] == [[TAINT], [], [TAINT], []]
