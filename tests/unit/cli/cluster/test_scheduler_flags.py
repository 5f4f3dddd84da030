"""Flags of a Deployment of Volcano, KAI or kube-scheduler: each is an option, or is answered with what stands for it."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from navarch.cli.cluster.scheduler_flags import replacement_for
from navarch.cli.run import run
from navarch.cli.up.command import up
from navarch.engine.policy.scheduler_params import OPTIONS

ELECTION = """leader-elect leader-elect-lease-duration leader-elect-renew-deadline leader-elect-retry-period leader-elect-resource-lock
leader-elect-resource-name leader-elect-resource-namespace"""
FLAGS = {
    "volcano": """master kubeconfig ca-cert-file tls-cert-file tls-private-key-file lock-object-namespace scheduler-name scheduler-conf
    schedule-period resync-period default-queue version listen-address healthz-address priority-class kube-api-qps kube-api-burst
    minimum-feasible-nodes minimum-percentage-nodes-to-find percentage-nodes-to-find plugins-dir csi-storage enable-healthz
    enable-metrics enable-pprof node-selector cache-dumper cache-dump-dir node-worker-threads gate-removal-worker-num
    ignored-provisioners resource-sync-timeout disable-default-scheduler-config scheduler-sharding-mode scheduler-sharding-name
    feature-gates v logtostderr """
    + ELECTION,
    "kai": """scheduler-name namespace metrics-namespace resource-reservation-app-label restrict-node-scheduling nodepool-label-key
    queue-label-key partition-label-value scheduler-conf schedule-period leader-elect version listen-address enable-profiler
    profiler-port pyroscope-address pyroscope-mutex-profiler-rate pyroscope-block-profiler-rate v log-json
    max-consolidation-preemptees qps burst detailed-fit-errors update-pod-eviction-condition schedule-csi-storage
    use-scheduling-signatures full-hierarchy-fairness allow-consolidating-reclaim num-of-status-recording-workers
    default-staleness-grace-period stuck-in-releasing-threshold plugin-server-port cpu-worker-node-label-key
    gpu-worker-node-label-key mig-worker-node-label-key feature-gates""",
    "kube-scheduler": """allow-metric-labels allow-metric-labels-manifest authentication-kubeconfig authentication-skip-lookup
    authentication-token-webhook-cache-ttl authentication-tolerate-lookup-failure authorization-always-allow-paths
    authorization-kubeconfig authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl bind-address
    cert-dir client-ca-file config contention-profiling disable-http2-serving disabled-metrics emulated-version feature-gates help
    http2-max-streams-per-connection kube-api-burst kube-api-content-type kube-api-qps kubeconfig log-flush-frequency
    log-text-info-buffer-size log-text-split-stream logging-format master min-compatibility-version permit-address-sharing
    permit-port-sharing pod-max-in-unschedulable-pods-duration profiling requestheader-allowed-names requestheader-client-ca-file
    requestheader-extra-headers-prefix requestheader-group-headers requestheader-uid-headers requestheader-username-headers
    secure-port show-hidden-metrics-for-version tls-cert-file tls-cipher-suites tls-curve-preferences tls-min-version
    tls-private-key-file tls-sni-cert-key v version vmodule write-config-to """
    + ELECTION,
}
"""All flags of the processes, August 2026."""
KNOWN_TO_ALL = {"--help", "--version"}


def options_of(command: click.Command) -> set[str]:
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts)}


@pytest.mark.parametrize("command", [run, up])
@pytest.mark.parametrize("system", FLAGS)
def test_every_flag_of_another_scheduler_is_an_option_or_answered(system: str, command: click.Command) -> None:
    options = options_of(command) | KNOWN_TO_ALL
    answers = {flag: replacement_for(f"--{flag}", command) for flag in FLAGS[system].split() if f"--{flag}" not in options}
    assert [flag for flag, words in answers.items() if not words] == []
    named = {word.strip(",.:;()") for words in answers.values() for word in words.split() if word.startswith(("--", "(--"))}
    assert named - options == set(), "only options that the command has are named"


def test_the_options_that_are_named_exist() -> None:
    named = {word for words in OPTIONS.values() for word in words.replace(",", " ").split() if word.startswith("--")}
    assert named - options_of(run) == set()


@pytest.mark.parametrize("command", [run, up])
def test_an_option_of_another_scheduler_is_answered_in_the_shell(command: click.Command) -> None:
    told = CliRunner().invoke(command, ["--kube-api-qps", "50"])
    assert told.exit_code == 2
    assert "No such option '--kube-api-qps'. Leave it out: requests are bounded by the number in flight" in told.output


@pytest.mark.parametrize("flag", ["--listen-address=:8080", "--v=5", "--leader-elect=true", "--leader-elect", "--scheduler-name=x"])
def test_up_names_no_option_that_it_does_not_have(flag: str) -> None:
    told = CliRunner().invoke(up, [flag])
    assert told.exit_code == 2
    assert f"No such option '{flag.partition('=')[0]}'. Leave it out: `navarch up` has no such option." in told.output


def test_an_option_that_no_scheduler_has_is_guessed_as_before() -> None:
    assert "Did you mean '--scheduler-name'?" in CliRunner().invoke(run, ["--scheduler-nam", "x"]).output


@pytest.mark.parametrize("value", ["true", "false"])
def test_leader_elect_may_have_the_value_that_manifests_give_it(value: str) -> None:
    told = CliRunner().invoke(run, [f"--leader-elect={value}", "--listen", "", "--lock-name", ""])
    assert "--lock-name: expected a name" in told.output, "all options were read"
