"""`-o json` and `-o yaml`: one document on standard output."""

from __future__ import annotations

import json
from collections.abc import Mapping

import click


def print_document(value: Mapping[str, object], output: str, *, sort_keys: bool = False) -> bool:
    """Print it in one of these forms. False: `output` is another form, and nothing was printed."""
    if output == "json":
        click.echo(json.dumps(value, indent=2, sort_keys=sort_keys))
    elif output == "yaml":
        import yaml  # takes as long to import as a small plan

        click.echo(yaml.safe_dump(value, sort_keys=sort_keys, width=120), nl=False)
    return output in ("json", "yaml")
