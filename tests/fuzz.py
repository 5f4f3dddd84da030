"""Fuzz what strangers write: requests to the embedded API server, and objects to the readers of `plan` and of the live scheduler.

    make fuzz                                    # 100,000 of each, a new seed
    python -m tests.fuzz --requests 1000 --objects 0 --seed 7

A request may be refused but never answered with 500. An object may be refused but never raises. The seed of a failure is printed; a
test that repeats it belongs beside the code it found wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import rich.progress
from tests.worlds.embedded.server import ServerThread, http_of
from tests.worlds.hostile import OBJECTS, REQUESTS, check_answer, mutated, prepare

import navarch


def fuzz_requests(count: int, seed: int) -> None:
    thread = ServerThread()
    with thread, tempfile.TemporaryDirectory() as folder:
        assert thread.server is not None
        api = http_of(thread.server, Path(folder))
        prepare(api)
        for number in rich.progress.track(range(count), description="requests"):
            chance = random.Random(f"{seed}/{number}")
            method, path, body, kind = chance.choice(REQUESTS)
            sent = mutated(body, chance)
            answer = api(method, path, sent, content_type=f"application/{kind}")
            check_answer(answer.code, answer.body, f"request {number} of seed {seed}: {method} {path} {json.dumps(sent)}")
        api.close()


def fuzz_objects(count: int, seed: int) -> None:
    for number in rich.progress.track(range(count), description="objects"):
        chance = random.Random(f"{seed}/{number}")
        objects: list[Any] = OBJECTS[:4] + [mutated(chance.choice(OBJECTS), chance) for _ in range(chance.randint(1, 6))]
        policy = chance.choice(["navarch", "volcano", "kai", "kube-batch", "kube-scheduler"])
        try:
            navarch.plan(objects, policy=policy, now=0.0, keep_going=True, cycles=2)
        except Exception:
            print(f"object {number} of seed {seed} under {policy}: {json.dumps(objects)}", file=sys.stderr)
            raise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    print(f"seed {given.seed}")
    fuzz_requests(given.requests, given.seed)
    fuzz_objects(given.objects, given.seed)


if __name__ == "__main__":
    main()
