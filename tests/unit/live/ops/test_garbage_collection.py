"""A command begins with rare collections: it is in the imports of its module that they cost most."""

import gc
from collections.abc import Iterator

import click
import pytest

from navarch.cli.main import main
from navarch.live.ops.garbage_collection import THRESHOLDS


@pytest.fixture
def usual_thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("usual_thresholds")
def test_a_command_is_loaded_with_rare_collections() -> None:
    with click.Context(main) as context:
        assert main.get_command(context, "completion") is not None
    assert gc.get_threshold() == THRESHOLDS
