// What the tests of the cluster itself run in pods: it tells, over HTTP, what a pod sees of the cluster, and speaks gRPC (health
// and reflection, so a unary call and a stream in both directions). Called as wget it asks a URL.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

const (
	httpAddress = ":8080"
	grpcAddress = ":50051"
	limit       = 3 * time.Second
)

func main() {
	if filepath.Base(os.Args[0]) == "wget" {
		wget(os.Args[len(os.Args)-1])
		return
	}
	answer("/hostname", func(string) (string, error) { return os.Hostname() })
	answer("/environment", func(name string) (string, error) { return os.Getenv(name), nil })
	answer("/lookup", lookup)
	answer("/get", get)
	answer("/dial", dial)
	answer("/append", appendLine)
	answer("/burn", burn)
	go serveGrpc()
	log.Fatal(http.ListenAndServe(httpAddress, nil))
}

// What the chart's probes of NATS need of that program: whether a URL gives 200.
func wget(url string) {
	client := http.Client{Timeout: limit}
	response, err := client.Get(url)
	if err != nil || response.StatusCode != http.StatusOK {
		os.Exit(1)
	}
}

// Answers GET PATH?of=ARGUMENT with a text, or with 500 and the error.
func answer(path string, act func(of string) (string, error)) {
	http.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		text, err := act(r.URL.Query().Get("of"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, text)
	})
}

func lookup(name string) (string, error) {
	addresses, err := net.LookupHost(name)
	return strings.Join(addresses, " "), err
}

// On a connection of its own, so that a Service chooses anew.
func get(url string) (string, error) {
	client := http.Client{Timeout: limit, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return strings.TrimSpace(string(body)), err
}

func dial(address string) (string, error) {
	connection, err := net.DialTimeout("tcp", address, limit)
	if err != nil {
		return "", err
	}
	return "connected", connection.Close()
}

// Appends the pod's name to a file and gives back what is in it.
func appendLine(path string) (string, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return "", err
	}
	defer file.Close()
	name, _ := os.Hostname()
	if _, err = fmt.Fprintln(file, name); err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	return strings.TrimSpace(string(text)), err
}

// Keeps a core busy, e.g. for 20s.
func burn(text string) (string, error) {
	duration, err := time.ParseDuration(text)
	until := time.Now().Add(duration)
	for err == nil && time.Now().Before(until) {
	}
	return "burnt", err
}

func serveGrpc() {
	listener, err := net.Listen("tcp", grpcAddress)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	log.Fatal(server.Serve(listener))
}
