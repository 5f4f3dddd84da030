"""Every scenario decides as it says, and then keeps still."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.scenarios import check, scenarios


@pytest.mark.parametrize("scenario", [pytest.param(s, id=name) for name, s in scenarios()])
def test_scenario(scenario: dict[str, Any]) -> None:
    problems = check(scenario)
    assert not problems, "\n".join(problems)
