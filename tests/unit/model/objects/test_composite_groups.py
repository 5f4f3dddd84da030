"""Groups of groups as a cycle reads them."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.model.objects.composite_groups import CompositeGroup, read_composite_group


def made(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "g", "namespace": "team", "uid": "u"}, "spec": spec}


def test_every_field_is_read() -> None:
    found = read_composite_group(
        made(
            parentCompositePodGroupName="above",
            schedulingPolicy={"gang": {"minGroupCount": 3}},
            schedulingConstraints={"topology": [{"key": "rack"}]},
            disruptionMode={"all": {}},
            priorityClassName="high",
            priority=7,
            preemptionPolicy="Never",
        )
    )
    assert found == CompositeGroup("team", "g", "u", "above", 3, "rack", 7, "high", True, "Never")
    assert read_composite_group(made(schedulingPolicy={"basic": {}})).minimum == 1


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, "expected basic or gang"),
        ({"schedulingPolicy": {"gang": {"minGroupCount": 0}}}, "minGroupCount: found 0, expected 1 or more"),
        (
            {"schedulingPolicy": {"basic": {}}, "schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            "found 2 constraints, expected one at most",
        ),
    ],
)
def test_what_the_api_does_not_allow_is_named(spec: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        read_composite_group(made(**spec))
