"""`navarch up` serves the dashboard, prints its address, and takes it down again."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.worlds.up_process import running_up


def test_up_prints_an_address_that_answers_and_sets_the_cookie(tmp_path: Path) -> None:
    with running_up(tmp_path, "--web-port", "0") as up:
        assert up.process.stdout is not None
        line = next(line for line in up.process.stdout if "dashboard: " in line)
        found = re.search(r"dashboard: (http://127\.0\.0\.1:\d+/)\?token=\S+", line)
        assert found is not None
        with urllib.request.urlopen(found[0].removeprefix("dashboard: "), timeout=60) as answer:
            assert answer.status == 200
            assert "HttpOnly" in answer.headers["Set-Cookie"]
        address = found[1]
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=60)
