"""The kubeconfig of a running `navarch up`: locked, so that a second one does not write over it.

The lock is on the file itself and goes with the process. A file that nobody holds is left from an earlier run and is written over.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO


class KubeconfigInUse(Exception):
    pass


def own_kubeconfig(wanted: Path, port: int, *, may_rename: bool) -> Path:
    """`wanted`, or, where another `navarch up` runs with that, a name with the port. Raises `KubeconfigInUse` where the user chose
    the name: scripts read that file."""
    if not _is_held(wanted):
        return wanted
    if not may_rename:
        raise KubeconfigInUse(f"{wanted} is the kubeconfig of a `navarch up` that runs: stop that one, or name another --kubeconfig")
    return wanted.with_name(f"{wanted.name}-{port}")


def hold(path: Path) -> IO[bytes]:
    """The open file: others see that it is held until it is closed."""
    file = path.open("rb")
    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return file


def _is_held(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass  # there is none, or it cannot be written: that is told when it is written
    return False
