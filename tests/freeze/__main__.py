"""Write the digests of today's decisions.

make freeze                                              # after a change of decisions or words on purpose
python -m tests.freeze --every 1 --cases build/before    # all inputs, a line for each case: in two checkouts, then `diff`
"""

from __future__ import annotations

import logging
from pathlib import Path

import click
from tests.freeze.records import digests, frozen
from tests.freeze.test_freeze import EVERY, FILE, read


@click.command()
@click.option("--every", default=EVERY, help="Each policy is given one of so many inputs.")
@click.option("--cases", type=click.Path(path_type=Path), help="Write a line for each case to this file instead.")
def main(every: int, cases: Path | None) -> None:
    logging.disable()  # the live core's histories are full of faults
    found = digests(frozen(every), each=cases is not None)
    before = {} if cases else read()
    lines = before | found  # inputs that are absent on this machine keep their digests
    (cases or FILE).write_text("".join(f"{name} | {text}\n" for name, text in sorted(lines.items())), encoding="utf-8")
    moved = sum(before.get(name) != text for name, text in found.items())
    click.echo(f"{len(found)} records" + (f", {moved} of them new or changed: say in the commit which and why" if before else ""))


main()
