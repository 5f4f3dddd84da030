"""Manifests out of files."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from navarch.apis.errors import ObjectError
from navarch.offline.manifests import Document, read_paths, read_text


def names(text: str) -> list[tuple[str, str]]:
    found = []
    for each in read_text(text, "f"):
        assert isinstance(each, Document), each
        found.append((str(each.manifest["metadata"]["name"]), each.source))
    return found


def test_several_documents_and_lists() -> None:
    text = """
apiVersion: v1
kind: Pod
metadata: {name: a}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: b}}
- {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Node, metadata: {name: c}}]}
"""
    assert names(text) == [("a", "f document 1"), ("b", "f document 3 item 1"), ("c", "f document 3 item 2 item 1")]


def test_items_of_a_typed_list_need_not_repeat_their_kind() -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}}]})
    (found,) = read_text(text, "f")
    assert isinstance(found, Document)
    assert (found.manifest["apiVersion"], found.manifest["kind"]) == ("v1", "Pod")


def test_json_alone_one_after_another_and_in_an_array() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    text = json.dumps(pod)
    assert names(text) == [("a", "f document 1")]
    assert [name for name, _ in names(f"{text}\n{text}")] == ["a", "a"]
    assert [name for name, _ in names(json.dumps([pod, pod]))] == ["a", "a"]


def test_flow_yaml_that_looks_like_json() -> None:
    assert names("{apiVersion: v1, kind: Pod, metadata: {name: a}}") == [("a", "f document 1")]


def test_scalars_are_read_as_the_api_reads_them() -> None:
    (found,) = read_text("{kind: Pod, a: 2026-01-01T00:00:00Z, b: 12:30, c: 1e3, d: 0.5, e: 7, f: 2026-01-01}", "f")
    assert isinstance(found, Document)
    assert found.manifest == {
        "kind": "Pod",
        "a": "2026-01-01T00:00:00Z",
        "b": "12:30",
        "c": "1e3",
        "d": 0.5,
        "e": 7,
        "f": "2026-01-01",
    }


def test_a_broken_document_is_told_with_its_line_and_those_before_it_are_kept() -> None:
    found = list(read_text("kind: Pod\n---\na: [1\n", "f"))
    assert isinstance(found[0], Document)
    assert isinstance(found[1], ObjectError)
    assert found[1].source.startswith("f document 2 line ")


def test_documents_that_are_no_objects() -> None:
    (found,) = read_text("just text", "f")
    assert isinstance(found, ObjectError) and found.found == "'just text'" and found.source == "f document 1"


def test_directories_files_and_what_cannot_be_read(tmp_path: Path) -> None:
    for name, pod in (("b.yaml", "b"), ("a.json", "a"), ("deep/c.yml", "c"), ("notes.txt", "no")):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"kind": "Pod", "metadata": {"name": pod}}))
    (tmp_path / "empty").mkdir()
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9")
    documents, mistakes = read_paths([tmp_path, tmp_path / "absent.yaml", tmp_path / "empty"])
    assert [each.manifest["metadata"]["name"] for each in documents] == ["a", "b", "c"]
    assert [mistake.expected for mistake in mistakes] == [
        "a file that can be read, but: it is not UTF-8 text",
        "a file that can be read, but: No such file or directory",
        "files that end in .yaml, .yml or .json",
    ]


def test_a_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"kind": "Pod", "metadata": {"name": "a"}}'))
    documents, mistakes = read_paths(["-"])
    assert [each.source for each in documents] == ["stdin document 1"] and not mistakes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: Pod\nmetadata: {name: a}\nmetadata: {name: b}\n", "the key 'metadata' is given twice"),
        ("kind: Pod\nmetadata:\n\tname: a\n", "found a tab where only spaces may indent"),
        ("[" * 100_000, "it is nested too deep"),
        (f"a: {'9' * 5000}", "Exceeds the limit"),
    ],
)
def test_values_that_yaml_may_not_hold(text: str, said: str) -> None:
    (found,) = read_text(text, "f")
    assert isinstance(found, ObjectError) and said in found.expected


def test_a_merge_is_no_key_given_twice() -> None:
    (found,) = read_text("x: &x {kind: Pod, a: 1}\n<<: *x\nkind: Node\n", "f")
    assert isinstance(found, Document) and found.manifest["kind"] == "Node" and found.manifest["a"] == 1


def test_a_list_that_holds_itself() -> None:
    (found,) = read_text("&a\napiVersion: v1\nkind: List\nitems: [*a]\n", "f")
    assert isinstance(found, ObjectError) and "contains the alias" in str(found)


def test_values_that_aliases_blow_up_are_shown_in_brief() -> None:
    rows = "\n".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefghi", "bcdefghij"))
    (found,) = read_text(f"a: &a [x]\n{rows}\nkind: PodList\nitems: {{n: *j}}\n", "f")
    assert isinstance(found, ObjectError) and len(found.found) <= 60


def test_a_file_that_holds_nothing_is_a_mistake_and_an_empty_list_is_none(tmp_path: Path) -> None:
    blank, none = tmp_path / "blank.yaml", tmp_path / "none.yaml"
    blank.write_text("# nothing\n---\n")
    none.write_text("apiVersion: v1\nkind: List\nitems: []\n")
    documents, mistakes = read_paths([blank, none])
    assert not documents
    assert [str(each) for each in mistakes] == [f"File {blank}: found nothing, expected objects in YAML or JSON"]
    assert read_paths([tmp_path]) == ([], [])


def test_a_volcano_queue_in_a_file_is_open_unless_it_says_otherwise(tmp_path: Path) -> None:
    header = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\n"
    texts = [f"{header}metadata: {{name: a}}\n", f"{header}metadata: {{name: b}}\nstatus: {{state: Closed}}\n"]
    file = tmp_path / "queues.yaml"
    file.write_text("---\n".join(texts))
    documents, mistakes = read_paths([file])
    assert not mistakes
    assert [each.manifest["status"]["state"] for each in documents] == ["Open", "Closed"]
