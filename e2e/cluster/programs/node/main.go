// The programs of Kubernetes that a node runs, and plugins for devices that do not exist, in one binary: the name by which it is
// called chooses the program.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "kubelet":
		os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background())))
	case "kube-proxy":
		os.Exit(cli.Run(proxy.NewProxyCommand()))
	case "fake-device-plugin":
		fmt.Fprintln(os.Stderr, serveFakeDevices(os.Args[1:]))
		os.Exit(1)
	case "fake-dra-plugin":
		fmt.Fprintln(os.Stderr, serveFakeClaims(os.Args[1:]))
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "call it as kubelet, kube-proxy, fake-device-plugin or fake-dra-plugin")
		os.Exit(2)
	}
}
