"""`navarch install` more than once: another installation beside the first, and what it does not do to it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.envtest.server import KubeApiServer
from tests.worlds.deploy.installing import run_install
from tests.worlds.kube.small_api import SmallApi, status_body

from navarch.cli.install import install, until_served
from navarch.cli.main import main
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint, connect
from navarch.kube.errors import Forbidden, NotFound
from navarch.kube.resources import LEASES, PODS
from navarch.manifests.installation import CUSTOM_METRICS

BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@pytest.mark.live
async def test_two_installations_have_rights_and_leases_of_their_own(kube_apiserver: KubeApiServer) -> None:
    server = kube_apiserver
    run_install(server.kubeconfig)
    lines = run_install(server.kubeconfig, "--name", "second", "--namespace", "second-system", "--dialect", "kai")
    assert "clusterrolebindings/second created" in lines
    for namespace, name, other in (("navarch-system", "navarch", "second"), ("second-system", "second", "navarch")):
        async with Client(connect(server.service_account(namespace, name))) as scheduler:
            await scheduler.list(PODS)
            with suppress(NotFound):
                await scheduler.get(LEASES, name, namespace=namespace)
            with pytest.raises(Forbidden):
                await scheduler.get(LEASES, other, namespace=namespace)


@pytest.mark.live
def test_rights_are_not_taken_from_the_first(kube_apiserver: KubeApiServer) -> None:
    server = kube_apiserver
    run_install(server.kubeconfig)
    before = server.request("GET", f"{BINDINGS}/navarch")
    given = ["--kubeconfig", str(server.kubeconfig), "--namespace", "third-system"]
    with ThreadPoolExecutor(1) as thread:
        refused = thread.submit(CliRunner().invoke, install, given).result()
    assert refused.exit_code == 1
    assert "ClusterRoleBinding navarch: it belongs to the installation in navarch-system. Expected another --name" in refused.output
    assert server.request("GET", f"{BINDINGS}/navarch") == before


async def test_a_crd_is_waited_for_until_the_server_answers_for_it_and_names_it() -> None:
    """Between taking it and its first word of it, a kube-apiserver shows `conditions: null`."""
    api = await SmallApi().start()
    versions = [{"name": "v1", "served": True}, {"name": "v1alpha1", "served": False}]
    spec = {"group": "example.com", "names": {"plural": "things"}, "versions": versions}

    def crd(conditions: list[dict[str, str]] | None) -> tuple[int, dict[str, str], Any]:
        return 200, {}, {"metadata": {"name": "x"}, "spec": spec, "status": {"conditions": conditions}}

    established = crd([{"type": "Established", "status": "True"}])
    unknown: tuple[int, dict[str, str], Any] = (404, {}, status_body(404, "NotFound"))
    api.script += [crd(None), established, unknown]
    api.script += [established, (200, {}, {"items": []}), unknown]  # answered for, and not named yet
    api.script += [established, (403, {}, status_body(403, "Forbidden")), (200, {}, {"resources": [{"name": "things"}]})]
    async with Client(Endpoint(api.url)) as client:
        await until_served(client, "x")
    await api.stop()
    api.close()
    assert not api.script
    assert {request.path for request in api.requests} == {
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/x", "/apis/example.com/v1/things", "/apis/example.com/v1",
    }  # fmt: skip


def test_the_name_is_everywhere_that_one_object_points_at_another() -> None:
    result = CliRunner().invoke(install, ["--print", "--name", "pool-b", "--dialect", "coscheduling"])
    objects = [item for item in yaml.safe_load_all(result.output) if item["kind"] not in ("CustomResourceDefinition", "Namespace")]
    assert {item["metadata"]["name"] for item in objects} == {
        "pool-b",
        "pool-b-leader-election",
        "pool-b-state",
        "pool-b-state-reader",
        "pool-b-pages-reader",
    }
    role = next(item for item in objects if item["kind"] == "Role")
    assert role["rules"][1]["resourceNames"] == ["pool-b"]
    named = [item["rules"][0]["resourceNames"] for item in objects if item["kind"] == "Role" and item is not role]
    assert named == [["pool-b-state"], ["pool-b-state"], ["pool-b-pages"]]
    for item in objects:
        if "roleRef" in item:
            assert item["roleRef"]["name"] == item["metadata"]["name"]
            reader = item["metadata"]["name"] == "pool-b-state-reader"
            assert [subject["name"] for subject in item["subjects"]] == ["system:authenticated" if reader else "pool-b"]
    deployment = next(item for item in objects if item["kind"] == "Deployment")["spec"]["template"]
    assert deployment["spec"]["serviceAccountName"] == deployment["metadata"]["labels"]["app.kubernetes.io/instance"] == "pool-b"
    assert deployment["spec"]["containers"][0]["args"] == ["run", "--crash-dir=/var/lib/navarch", "--lock-name=pool-b"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--name", "Not_A_Name"], "--name: expected at most 40 letters"),
        (["--", "--node-pool-label"], "after --: No such option '--node-pool-label'. Did you mean '--node-pool-label-key'?"),
        (["--", "--period=0"], "after --: Invalid value for '--period'"),
        (["--", "--help"], "after --: expected options of `navarch run`"),
        (["extra"], "after --: Got unexpected extra argument (extra)"),
    ],
)
def test_an_installation_that_would_not_start_is_refused(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(install, ["--print", *arguments])
    assert result.exit_code == 2
    assert said in result.output


def test_what_is_needed_is_said_before_anything_is_applied(kube_apiserver: KubeApiServer) -> None:
    given = ["--kubeconfig", str(kube_apiserver.kubeconfig), "--dry-run"]
    done = CliRunner().invoke(install, given)
    assert "no registry has the image" in done.stderr
    assert done.output.index("Without --image the pods of the scheduler wait") < done.output.index("namespaces/navarch-system")
    assert CliRunner().invoke(install, [*given, "--image", "r.example.com/navarch:1"]).stderr == ""


def test_a_kubeconfig_that_is_not_there_is_a_mistake_of_the_command_line() -> None:
    result = CliRunner().invoke(install, ["--kubeconfig", "/nowhere"])
    assert (result.exit_code, result.output.splitlines()[-1]) == (2, "Error: kubeconfig /nowhere: no such file")


@pytest.mark.parametrize(("source", "granted"), [("prometheus_adaptor", True), ("prometheus", False)])
def test_rights_on_custom_metrics_come_with_a_policy_that_reads_them(source: str, granted: bool, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        f"actions: allocate\ntiers: [{{plugins: [{{name: gang}}, {{name: usage}}]}}]\nmetrics: {{type: {source}, address: 'http://p'}}\n"
    )
    printed = CliRunner().invoke(install, ["--print", "--policy", str(file)])
    roles = [item for item in yaml.safe_load_all(printed.output) if item["kind"] == "ClusterRole"]
    assert [role["metadata"]["name"] for role in roles if CUSTOM_METRICS in role["rules"]] == (["navarch"] if granted else [])


def test_options_of_run_are_handed_on() -> None:
    options = ["--log-format=json", "--plugin-dir=/a/folder/of/the/image", "--dry-run"]
    printed = CliRunner().invoke(install, ["--print", "--scheduler-name", "a", "--", *options])
    deployment = next(item for item in yaml.safe_load_all(printed.output) if item["kind"] == "Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["args"] == [
        "run",
        "--crash-dir=/var/lib/navarch",
        "--scheduler-name=a",
        *options,
    ]


@pytest.mark.live
def test_without_an_image_the_commands_that_make_one_are_printed(kube_apiserver: KubeApiServer) -> None:
    def run(*arguments: str) -> Result:
        where = ["--kubeconfig", str(kube_apiserver.kubeconfig), "--namespace", "passing", "--name", "passing"]
        return CliRunner().invoke(main, [*arguments, *where])

    made = run("install", "--dialect", "coscheduling")
    assert made.exit_code == 0, made.output
    assert "docker build -f deploy/Dockerfile -t REGISTRY/navarch:" in made.stderr
    shown = run("uninstall", "--dry-run")
    assert "deployments/passing deleted (dry run)" in shown.stdout
    gone = run("uninstall", "--delete-namespace")
    assert gone.exit_code == 0, gone.output
    lines = gone.stdout.splitlines()
    assert {"deployments/passing deleted", "clusterroles/passing deleted", "rolebindings/passing-state deleted"} <= set(lines)
    assert lines[-1] == "namespaces/passing deleted" and "customresourcedefinitions" not in gone.stdout
    again = run("uninstall")
    assert again.exit_code == 1 and "nothing of passing in the namespace passing was found" in again.stderr
