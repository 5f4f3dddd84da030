"""The manifests in docs/groups.md are what they say."""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

import navarch
from navarch.testing.builders import node

PAGE = Path(__file__).parents[3] / "docs" / "groups.md"
EXAMPLES = [list(yaml.safe_load_all(text)) for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example[0]["apiVersion"]))
def test_an_example_is_a_gang_of_four(example: list[dict[str, Any]]) -> None:
    group, pod = example
    nodes = [node(f"n{i}").cpu("8") for i in range(2)]
    (cycle,) = navarch.plan([*nodes, group, pod]).to_dict()["cycles"]
    assert cycle["binds"] == [] and "valid: 1, min: 4" in cycle["jobs"][0]["reasons"][0]["message"]
    pods = [deepcopy(pod) for _ in range(4)]
    for i, each in enumerate(pods):
        each["metadata"]["name"] = f"train-{i}"
    (cycle,) = navarch.plan([*nodes, group, *pods]).to_dict()["cycles"]
    assert len(cycle["binds"]) == 4


def test_the_page_has_a_manifest_for_each_api() -> None:
    assert len(EXAMPLES) == 2
