from __future__ import annotations

from typing import Any

import pytest

from navarch.embedded.api.errors import ApiError
from navarch.embedded.api.kinds.types import shape_of
from navarch.embedded.api.patches.json_patch import apply_json_patch
from navarch.embedded.api.patches.strategic_merge import strategic_merge


def test_copies_of_copies_are_bounded() -> None:
    doubling = [{"op": "copy", "from": "/data", "path": f"/data/k{n}"} for n in range(64)]
    with pytest.raises(ApiError) as refused:
        apply_json_patch({"data": {"a": "x" * 1000}}, doubling)
    assert refused.value.code == 413


@pytest.mark.parametrize("index", ["²", "9" * 5000, "-1", "+0", "x", ""])
def test_an_index_that_is_none_is_refused(index: str) -> None:
    with pytest.raises(ApiError) as refused:
        apply_json_patch({"a": [1]}, [{"op": "replace", "path": f"/a/{index}", "value": 2}])
    assert refused.value.code == 422


def test_ten_thousand_containers_are_merged_by_name() -> None:
    """Items are found by an index: a search for each would compare a hundred million pairs."""
    count = 10_000
    compared = 0

    class Name(str):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    def containers(image: str) -> dict[str, Any]:
        return {"spec": {"containers": [{"name": Name(f"c{n}"), "image": image} for n in range(count)]}}

    merged = strategic_merge(containers("old"), containers("new"), shape_of("core.v1.Pod"))
    assert [each["image"] for each in merged["spec"]["containers"]] == ["new"] * count
    assert compared < 20 * count
