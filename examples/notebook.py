"""Plan, explain and simulate from Python, in the order in which one would do it in a notebook.

python examples/notebook.py
"""

from __future__ import annotations

from pathlib import Path

import navarch

EXAMPLES = Path(__file__).parent


def main() -> None:
    cluster = EXAMPLES / "two-queues.yaml"

    # What would the scheduler decide for these manifests?
    planned = navarch.plan(cluster)
    print(planned)
    for bind in planned.binds:
        print(f"  {bind.pod} on {bind.node}")
    for job in planned.pending:
        print(f"  {job.job} waits: {job.reasons[0].message}")

    # Why does the first of them wait, and what would start it? Each answer is proved by running the scheduler.
    if planned.pending:
        explained = navarch.explain(cluster, planned.pending[0].job)
        print(explained.cause.message)
        for change in explained.changes[:3]:
            print(f"  {change.by}: {change.text}")

    # Which policy is better for a trace of jobs?
    simulated = navarch.simulate(f"jsonl:{EXAMPLES / 'traces' / 'two-teams.jsonl'}", "h100=4x8gpu", ["fifo", "sjf"])
    for name, figures in simulated.to_dict()["policies"].items():
        print(f"{name}: mean time in the system {figures['jct']['mean']:.0f} s")


if __name__ == "__main__":
    main()
