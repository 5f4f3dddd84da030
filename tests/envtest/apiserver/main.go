// Command apiserver is kube-apiserver with the etcd it needs in the same process.
//
//	apiserver ETCD_DATA_DIR ETCD_CLIENT_URL [kube-apiserver flags...]
//
// Two arguments for etcd come first, everything after them is kube-apiserver's own command line. Data is
// thrown away with the test, so etcd does not wait for the disk. The process ends when its standard input
// does: a test run that is killed takes its servers with it.
package main

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func startEtcd(dataDir, clientURL string) (*embed.Etcd, error) {
	client, err := url.Parse(clientURL)
	if err != nil {
		return nil, fmt.Errorf("etcd client URL %q: %w", clientURL, err)
	}
	config := embed.NewConfig()
	config.Dir = dataDir
	config.LogLevel = "error"
	config.UnsafeNoFsync = true
	config.ListenClientUrls = []url.URL{*client}
	config.AdvertiseClientUrls = []url.URL{*client}
	// One member has no peers: a socket file in the working directory keeps its peer port off the network.
	peer := url.URL{Scheme: "unix", Host: "127.0.0.1:0"}
	config.ListenPeerUrls = []url.URL{peer}
	config.AdvertisePeerUrls = []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case err := <-server.Err():
		return nil, err
	case <-time.After(30 * time.Second):
		server.Close()
		return nil, fmt.Errorf("etcd was not ready after 30 s")
	}
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: apiserver ETCD_DATA_DIR ETCD_CLIENT_URL [kube-apiserver flags...]")
		os.Exit(2)
	}
	etcd, err := startEtcd(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
	command := app.NewAPIServerCommand()
	command.SetArgs(append([]string{"--etcd-servers=" + os.Args[2]}, os.Args[3:]...))
	code := cli.Run(command)
	etcd.Close()
	os.Exit(code)
}
