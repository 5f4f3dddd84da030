"""Placement on the openb lists: GPUs allocated when 100 and 130 percent of the cluster's were asked for, beside three baselines.

    python -m bench.packing                                  every list, every policy, seeds 42 to 51: about an hour of one core
    python -m bench.packing --lists default --seeds 42,43    a part of it
    python -m bench.packing --policies packing --processes 2

Published figures are means over ten seeds of the authors' own results ("Beware of fragmentation", ATC 2023); their random numbers are
not ours. Targets are those of issue 16. Reads ../shared/traces/openb, or that of the folder that NAVARCH_SHARED names.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import mean
from time import process_time

from rich.console import Console
from rich.table import Table

from navarch.simulator.simulate import simulate

HERE = Path(__file__).parent
POLICIES = {
    "packing": "packing",
    "fgd": str(HERE / "policies" / "fgd.yaml"),
    "best-fit": str(HERE / "policies" / "best-fit.yaml"),
    "packing-consolidation": str(HERE / "policies" / "packing-consolidation.yaml"),
    "random": str(HERE / "policies" / "random.yaml"),
}
LISTS = ("default", "multigpu20", "gpushare100", "cpu250", "gpuspec33")
PUBLISHED = {
    "fgd": {"default": 95.39, "multigpu20": 95.65, "gpushare100": 86.90, "cpu250": 93.41, "gpuspec33": 94.55},
    "best-fit": {"default": 93.08, "multigpu20": 93.93, "gpushare100": 85.01, "cpu250": 91.45, "gpuspec33": 93.09},
    "random": {"default": 87.47, "multigpu20": 88.69, "gpushare100": 79.44, "cpu250": 80.42, "gpuspec33": 86.46},
}
"""At 130 percent."""
TARGETS = {
    "default": (None, 95.6),
    "multigpu20": (None, 95.8),
    "gpushare100": (None, 87.2),
    "cpu250": (None, 94.5),
    "gpuspec33": (94.0, 94.9),
}
"""For `packing`, at 100 and 130 percent."""
Result = tuple[float, float, float]
"""At 100 percent, at 130 percent, seconds of one core."""


def folder() -> Path | None:
    shared = Path(os.environ.get("NAVARCH_SHARED", HERE.parent.parent / "shared"))
    found = shared / "traces" / "openb"
    return found if found.is_dir() else None


def one(data: Path, name: str, policy: str, seed: int) -> Result:
    started = process_time()
    pods, nodes = data / f"openb_pod_list_{name}.csv", data / "openb_node_list_gpu_node.csv"
    run = simulate(f"openb:{pods}", f"openb:{nodes}", POLICIES[policy], arrivals=1.3, seeds=(seed,)).runs[0]
    at = run.measures.at
    return at["100"] or 0.0, at["130"] or 0.0, process_time() - started


def rows(lists: list[str], policies: list[str], found: dict[tuple[str, str], list[Result]]) -> Iterator[tuple[str, ...]]:
    for name in lists:
        for policy in policies:
            results = found[name, policy]
            hundred, more, seconds = (mean(result[i] for result in results) for i in range(3))
            targets = TARGETS.get(name, (None, None)) if policy == "packing" else (None, None)
            met = ["yes" if value >= target else "no" for value, target in zip((hundred, more), targets) if target is not None]
            published = PUBLISHED.get(policy, {}).get(name)
            difference = "" if published is None else f"{published:.2f} ({more - published:+.2f})"
            wanted = " / ".join(f"{target:g}" for target in targets if target is not None)
            yield name, policy, f"{hundred:.2f}", f"{more:.2f}", difference, wanted, ", ".join(met), f"{seconds:.0f}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", default=",".join(LISTS))
    parser.add_argument("--policies", default="packing,fgd,best-fit,random")
    parser.add_argument("--seeds", default=",".join(map(str, range(42, 52))))
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args(arguments)
    data = folder()
    if data is None:
        print("packing: the openb lists are not there (../shared/traces/openb, or NAVARCH_SHARED)")
        return
    lists, policies, seeds = given.lists.split(","), given.policies.split(","), [int(seed) for seed in given.seeds.split(",")]
    keys = [(name, policy, seed) for name in lists for policy in policies for seed in seeds]
    with ProcessPoolExecutor(given.processes) as pool:
        results = pool.map(one, [data] * len(keys), *zip(*keys))
        found: dict[tuple[str, str], list[Result]] = {}
        for (name, policy, _), result in zip(keys, results):
            found.setdefault((name, policy), []).append(result)
    table = Table(title=f"GPUs allocated, percent, mean of {len(seeds)} seeds", title_justify="left")
    for column in ("list", "policy", "at 100 %", "at 130 %", "published", "target", "met", "s a run"):
        table.add_column(column)
    for row in rows(lists, policies, found):
        table.add_row(*row)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
