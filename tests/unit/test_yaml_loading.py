from __future__ import annotations

import pytest
import yaml

from navarch.embedded.api.errors import ApiError
from navarch.embedded.api.input.bodies import decode_yaml
from navarch.engine.policy import PolicyError
from navarch.engine.policy.source import read
from navarch.offline.manifests import read_text
from navarch.yaml_loading import Loader

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
"""A billion laughs: about 900 bytes that stand for 10 to the 12th values."""
RING = "a: &a [1, *a]\n"


@pytest.mark.parametrize(
    ("text", "problem"), [(LAUGHS, "aliases stand for"), (RING, "contains the alias"), ("[" * 5000, "nested too deep")]
)
def test_hostile_yaml_is_refused_before_it_is_built(text: str, problem: str) -> None:
    with pytest.raises(yaml.YAMLError, match=problem):
        yaml.load(text, Loader=Loader)


@pytest.mark.parametrize("text", [LAUGHS, RING, "[" * 5000])
def test_every_reader_of_yaml_refuses_it(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        decode_yaml(text.encode())
    assert refused.value.code == 400
    with pytest.raises(PolicyError):
        read(text, "policy")
    (mistake,) = [found for found in read_text(text, "file") if isinstance(found, Exception)]
    assert "file" in str(mistake)


def test_plain_aliases_are_values() -> None:
    assert yaml.load("a: &a {x: 1}\nb: *a\n", Loader=Loader) == {"a": {"x": 1}, "b": {"x": 1}}


@pytest.mark.parametrize(
    ("text", "value"), [("1:59:59", "1:59:59"), ("2024-01-01", "2024-01-01"), ("1e3", "1e3"), ("0x10", 16), ("1.5", 1.5)]
)
def test_plain_values_are_read_as_clients_of_the_api_read_them(text: str, value: object) -> None:
    assert yaml.load(f"a: {text}", Loader=Loader) == {"a": value}
