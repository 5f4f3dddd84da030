"""Where runs are carried out: in this process, in processes of this machine, or on a Dask cluster (extra `navarch[dask]`).

Results come as runs end, in any order. A run that fails ends the sweep with its error; what was done before is in the results file.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from navarch.simulator.simulate import PolicyRun
from navarch.simulator.sweep.parameters import SweepError
from navarch.simulator.sweep.runs import RunSpec, run

DASK = "dask://"


def execute(specs: Sequence[RunSpec], executor: str = "", processes: int = 1) -> Iterator[tuple[RunSpec, PolicyRun]]:
    """`executor`: empty for this machine, or `dask://HOST:PORT`."""
    if executor:
        return _on_dask(specs, executor)
    if processes > 1 and len(specs) > 1:
        return _in_processes(specs, min(processes, len(specs)))
    return ((spec, run(spec)) for spec in specs)


def _in_processes(specs: Sequence[RunSpec], processes: int) -> Iterator[tuple[RunSpec, PolicyRun]]:
    # Not by fork: a child would share what libraries of this process hold, and a sweep lasts longer than a start.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(run, spec): spec for spec in specs}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _on_dask(specs: Sequence[RunSpec], executor: str) -> Iterator[tuple[RunSpec, PolicyRun]]:
    address = executor.removeprefix(DASK)
    if not executor.startswith(DASK) or not address:
        raise SweepError(f"executor: found {executor!r}, expected dask://HOST:PORT")
    try:
        distributed = importlib.import_module("distributed")
    except ImportError:
        raise SweepError("executor: dask is not installed; pip install 'navarch[dask]'") from None
    try:
        client = distributed.Client(f"tcp://{address}", timeout="10s")
    except OSError as error:
        raise SweepError(f"executor: found no Dask scheduler at {address}: {error}") from None
    with client:
        futures = {client.submit(run, spec, key=f"navarch-{spec.key}", pure=True): spec for spec in specs}
        for future, result in distributed.as_completed(list(futures), with_results=True):
            yield futures[future], result
