package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	resource "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// Devices that do not exist, for claims: they are offered in a ResourceSlice, and pods are told nothing of those that they get.
type fakeClaims struct{}

// Offers COUNT devices of DRIVER on NODE, by the API server of KUBECONFIG, and prepares the claims of pods there.
func serveFakeClaims(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("got %d arguments, want DRIVER NODE COUNT KUBECONFIG", len(args))
	}
	driver, node := args[0], args[1]
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("%q: want a number of devices", args[2])
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[3])
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	// The kubelet may not have made them yet.
	for _, folder := range []string{kubeletplugin.KubeletRegistryDir, filepath.Join(kubeletplugin.KubeletPluginsDir, driver)} {
		if err := os.MkdirAll(folder, 0o750); err != nil {
			return err
		}
	}
	ctx := context.Background()
	helper, err := kubeletplugin.Start(ctx, fakeClaims{}, kubeletplugin.DriverName(driver),
		kubeletplugin.NodeName(node), kubeletplugin.KubeClient(client))
	if err != nil {
		return err
	}
	var devices []resource.Device
	for i := range count {
		devices = append(devices, resource.Device{Name: fmt.Sprintf("gpu-%d", i)})
	}
	pools := map[string]resourceslice.Pool{node: {Slices: []resourceslice.Slice{{Devices: devices}}}}
	if err := helper.PublishResources(ctx, resourceslice.DriverResources{Pools: pools}); err != nil {
		return err
	}
	fmt.Println("offers", count, "devices of", driver)
	select {}
}

func (fakeClaims) PrepareResourceClaims(_ context.Context, claims []*resource.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		var devices []kubeletplugin.Device
		for _, allocated := range claim.Status.Allocation.Devices.Results {
			devices = append(devices, kubeletplugin.Device{
				Requests: []string{allocated.Request}, PoolName: allocated.Pool, DeviceName: allocated.Device})
			fmt.Println("prepared", allocated.Device, "for", claim.Namespace+"/"+claim.Name)
		}
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices}
	}
	return results, nil
}

func (fakeClaims) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		fmt.Println("released", claim.Namespace+"/"+claim.Name)
		results[claim.UID] = nil
	}
	return results, nil
}

func (fakeClaims) HandleError(_ context.Context, err error, message string) {
	fmt.Fprintln(os.Stderr, message, err)
}
