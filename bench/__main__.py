"""`python -m bench [NAME ...]`: run benchmarks and print figures with the ratio to something run beside them.

python -m bench                 every benchmark that needs no API server
python -m bench decide          one of them
python -m bench live            beside a real kube-apiserver (see `make envtest`)
python -m bench packing         the openb lists, about an hour of one core
"""

from __future__ import annotations

import importlib
import sys

QUICK = ("decide", "predicates", "topology", "solver", "waiting", "apiserver", "startup", "cold")


def main(names: list[str]) -> int:
    if {"-h", "--help"} & set(names):
        print(__doc__, f"Benchmarks: {', '.join(QUICK)}, live, tenants, web, packing, packing_departures", sep="\n")
        return 0
    for name in names or QUICK:
        try:
            module = importlib.import_module(f"bench.{name}")
        except ModuleNotFoundError as missing:
            if missing.name != f"bench.{name}":
                raise
            print(f"there is no benchmark {name!r}", file=sys.stderr)
            return 2
        module.main([])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
