"""Whether evictions come to rest: random clusters in which nothing arrives and nothing ends, until nothing moves any more.

  python -m tests.rest [--policy navarch ...] [--clusters 2000] [--seed 0]

For each policy with prompt and with uneven departures: how many clusters evict for ever, and which.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from tests.worlds.random_kai_clusters import kai_world
from tests.worlds.resting_clusters import POLICIES, Life, competing

from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.offline.policies import read_policy

MOST_CYCLES = {False: 40, True: 80}
"""Prompt and uneven departures."""


def cluster_for(policy: str, seed: int) -> Cluster:
    if policy == "kai":
        return kai_world(seed).cluster
    return competing(seed, tree=policy.startswith("tree"), racks=policy == "navarch" and seed % 4 == 3)


def lives(policy: str, seeds: range, *, uneven: bool) -> Iterator[tuple[int, bool, Life]]:
    """Seed, whether it came to rest, and what happened."""
    registry = installed(())
    chosen = read_policy(POLICIES[policy], registry)
    for seed in seeds:
        life = Life(cluster_for(policy, seed), chosen, registry, uneven=uneven, seed=seed)
        yield seed, life.runs(MOST_CYCLES[uneven]), life


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", action="append", choices=[*POLICIES], help="which policies; several are possible; all without it")
    parser.add_argument("--clusters", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the first cluster")
    parser.add_argument("--leaving", choices=["prompt", "uneven"], help="how evicted pods leave; both without it")
    given = parser.parse_args()
    failed = False
    for policy in given.policy or POLICIES:
        for uneven in (False, True) if given.leaving is None else (given.leaving == "uneven",):
            endless, idle, evictions = [], [], 0
            for seed, rests, life in lives(policy, range(given.seed, given.seed + given.clusters), uneven=uneven):
                evictions += len(life.evictions)
                if not rests:
                    endless.append(seed)
                    print(f"  {seed}: {'; '.join(list(life.late())[:4])}")
                elif life.waiting_promises():
                    idle.append(seed)
            failed = failed or bool(endless) or bool(idle)
            leave = "uneven" if uneven else "prompt"
            print(
                f"{policy}, {leave} departures: {len(endless)} of {given.clusters} never rest, {len(idle)} keep a promise for ever "
                f"{idle[:5]}; {evictions} evictions",
                flush=True,
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
