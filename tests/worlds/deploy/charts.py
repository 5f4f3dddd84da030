"""The Helm chart, and helm if there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.envtest import build

CHART = Path(__file__).resolve().parents[3] / "deploy" / "helm" / "navarch"
BUILT = build.cache_folder() / "helm"
HELM = shutil.which("helm") or (str(BUILT) if BUILT.is_file() else None)
needs_helm = pytest.mark.skipif(HELM is None, reason="no helm in PATH: `make envtest` builds one (needs Go)")


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    assert HELM is not None
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, check=False)
