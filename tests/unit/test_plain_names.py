"""Names of test modules and functions are plain: no pronoun for a job or a pod, and no word that the product does not use.

`test_a_new_leader_reads_the_policy_file_again` says what happens. `test_who_takes_over_decides_by_what_is_there_now` does not.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
UNPLAIN = re.compile(
    r"(^|_)(who|whom|whoever|somebody|nobody|anybody|everybody|anyone|everyone|eldest|elders|kin|family|families|mirror|asleep|awake|woken|"
    r"foretold)(_|$)"
)


def defined_names(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]


def test_names_of_test_modules_and_functions_are_plain() -> None:
    found = [
        f"{path.relative_to(TESTS)}: {name}"
        for path in sorted(TESTS.rglob("test_*.py"))
        for name in [path.stem, *defined_names(path)]
        if name.startswith("test_") and UNPLAIN.search(name)
    ]
    assert found == []
