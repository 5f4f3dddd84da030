"""Where runs are carried out: in this process, in processes of this machine, or on a Dask cluster (extra `navarch[dask]`).

Results come as runs end, in any order. A run that fails is reported, and the others go on. Input that no run can read ends the sweep;
what was done before is in the results file.
"""

from __future__ import annotations

import importlib
import signal
import threading
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from pathlib import Path

from msgspec import Struct

from navarch.engine.policy import PolicyError
from navarch.engine.registry import RegistrationError
from navarch.offline.cycle_limit import CycleTooLong, cycle_limit
from navarch.simulator.clusters import ClusterError
from navarch.simulator.simulate import PolicyRun
from navarch.simulator.sweep.parameters import SweepError
from navarch.simulator.sweep.runs import RunSpec, run
from navarch.simulator.traces import TraceError

DASK = "dask://"


class Failure(Struct):
    """Why a run has no result."""

    message: str


INPUT_ERRORS = (TraceError, ClusterError, PolicyError, RegistrationError)
Outcome = tuple[RunSpec, PolicyRun | Failure]


def execute(specs: Sequence[RunSpec], executor: str = "", processes: int = 1, seconds: float = 0.0) -> Iterator[Outcome]:
    """`executor`: empty for this machine, or `dask://HOST:PORT`. `seconds`: the limit of a cycle (`cycle_limit`)."""
    if executor:
        return _on_dask(specs, executor)
    if processes > 1 and len(specs) > 1:
        return _in_processes(specs, min(processes, len(specs)), seconds)
    return ((spec, run_or_fail(spec, seconds)) for spec in specs)


def run_or_fail(spec: RunSpec, seconds: float = 0.0) -> PolicyRun | Failure:
    """Carry it out. A failure of its own comes back as text: not every exception can be sent to another process."""
    try:
        with cycle_limit(seconds, [Path(each) for each in spec.plugin_dirs]):
            return run(spec)
    except INPUT_ERRORS:
        raise
    except CycleTooLong as error:
        return Failure(str(error))
    except Exception as error:  # a plugin of one policy may fail; the other runs go on
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Failure(f"{type(error).__name__}: {error} ({place.filename}, line {place.lineno})")


def _in_processes(specs: Sequence[RunSpec], processes: int, seconds: float) -> Iterator[Outcome]:
    # Not by fork: a child would share what libraries of this process hold, and a sweep lasts longer than a start.
    others = set(active_children())
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        with _interrupts_left_out():
            futures = {pool.submit(run_or_fail, spec, seconds): spec for spec in specs}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise SweepError("a process ended before its run did; was there enough memory? Fewer --processes need less") from None
        finally:
            for future in futures:
                future.cancel()
            if not all(future.done() for future in futures):  # interrupted: the runs under way are not waited for
                for process in set(active_children()) - others:
                    process.terminate()


@contextmanager
def _interrupts_left_out() -> Iterator[None]:
    """Processes that are started meanwhile ignore Ctrl-C, which a terminal sends to all of them: this process ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield  # another thread cannot change what signals do
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _on_dask(specs: Sequence[RunSpec], executor: str) -> Iterator[Outcome]:
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
        futures = {client.submit(run_or_fail, spec, key=f"navarch-{spec.key}", pure=True): spec for spec in specs}
        for future, result in distributed.as_completed(list(futures), with_results=True):
            if not isinstance(result, PolicyRun | Failure):  # the library hands out its own error in place of a result
                raise SweepError(f"executor: the Dask cluster at {address} ended before its runs did: {result}")
            yield futures[future], result
