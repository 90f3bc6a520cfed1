package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// One resource of devices that do not exist: containers are given their names in NVIDIA_VISIBLE_DEVICES, as by NVIDIA's plugin.
type fakeDevices struct {
	plugin.UnimplementedDevicePluginServer
	resource string
	count    int
}

// Serves resources given as NAME=COUNT until one of them cannot be.
func serveFakeDevices(args []string) error {
	ended := make(chan error)
	for _, arg := range args {
		name, text, _ := strings.Cut(arg, "=")
		count, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q: want NAME=COUNT", arg)
		}
		go func() { ended <- fakeDevices{resource: name, count: count}.serve() }()
	}
	return <-ended
}

func (f fakeDevices) GetDevicePluginOptions(context.Context, *plugin.Empty) (*plugin.DevicePluginOptions, error) {
	return &plugin.DevicePluginOptions{}, nil
}

func (f fakeDevices) ListAndWatch(_ *plugin.Empty, stream plugin.DevicePlugin_ListAndWatchServer) error {
	var devices []*plugin.Device
	for i := range f.count {
		devices = append(devices, &plugin.Device{ID: fmt.Sprintf("GPU-fake-%d", i), Health: plugin.Healthy})
	}
	if err := stream.Send(&plugin.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (f fakeDevices) Allocate(_ context.Context, request *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	response := &plugin.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		names := strings.Join(container.DevicesIds, ",")
		response.ContainerResponses = append(response.ContainerResponses, &plugin.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": names}})
	}
	return response, nil
}

// The kubelet empties the folder of sockets when it starts, so this listens anew whenever its own has gone.
func (f fakeDevices) serve() error {
	socket := filepath.Join(plugin.DevicePluginPath, "fake-"+strings.ReplaceAll(f.resource, "/", "_")+".sock")
	for ; ; time.Sleep(200 * time.Millisecond) {
		os.Remove(socket)
		listener, err := net.Listen("unix", socket)
		if err != nil {
			continue
		}
		server := grpc.NewServer()
		plugin.RegisterDevicePluginServer(server, f)
		go server.Serve(listener)
		if register(filepath.Base(socket), f.resource) == nil {
			fmt.Println("registered", f.resource)
			for exists(socket) {
				time.Sleep(time.Second)
			}
		}
		server.Stop()
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func register(endpoint, resource string) error {
	connection, err := grpc.NewClient("unix://"+plugin.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_, err = plugin.NewRegistrationClient(connection).Register(ctx, &plugin.RegisterRequest{
		Version: plugin.Version, Endpoint: endpoint, ResourceName: resource})
	return err
}
