#!/bin/bash
# Process 1 of the node, in namespaces of its own: node.mjs starts it, and ends the node by ending it. What it needs to know comes
# by environment: STATE and CONFIG (folders), KUBE, NODE_PROGRAMS and METRICS (of programs), CGROUPS (folders), NAME, ADDRESS,
# SERVICE_RANGE, DEVICES, FIRST_IMAGES and MORE_IMAGES (archives). Whatever ends is noted in $STATE/ended.
set -euo pipefail

if [ "${1:-}" != inside ]; then
  # A cgroup namespace begins at the group that its maker is in.
  for group in $CGROUPS; do echo 0 > "$group/cgroup.procs"; done
  exec unshare --cgroup "$0" inside
fi

mount --make-rshared /
hostname "$NAME"

# Folders that programs have built in are the node's own.
own() {
  local folder
  for folder; do
    mkdir -p "$folder" "$STATE/root$folder"
    mount --bind "$STATE/root$folder" "$folder"
  done
}
own /var/lib/kubelet /var/lib/containerd /var/lib/cni /var/lib/etcd /var/log/pods /var/log/containers /etc/cni \
  /usr/libexec/kubernetes /tmp/hostpath_pv
mount --make-rshared /var/lib/kubelet
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/containerd /run/netns /run/lock /run/tutti/state /run/tutti/config
mount --bind "$STATE" /run/tutti/state
mount --bind "$CONFIG" /run/tutti/config
echo "127.0.0.1 localhost $NAME" > /run/tutti/hosts
mount --bind /run/tutti/hosts /etc/hosts
: > /run/tutti/resolv.conf
mkdir -p /etc/cni/net.d
cp "$CONFIG/cni.conflist" /etc/cni/net.d/10-tutti.conflist

# The hierarchies again, so that their roots are the node's own group.
if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then
  umount /sys/fs/cgroup
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  # Only a group without processes hands controllers on.
  mkdir /sys/fs/cgroup/init
  echo 0 > /sys/fs/cgroup/init/cgroup.procs
  for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
    echo "+$controller" > /sys/fs/cgroup/cgroup.subtree_control
  done
else
  for folder in /sys/fs/cgroup/*/; do
    folder=${folder%/}
    if [ -L "$folder" ] || ! mountpoint -q "$folder"; then continue; fi
    umount "$folder"
    case ${folder##*/} in
      unified) mount -t cgroup2 cgroup2 "$folder" ;;
      systemd) mount -t cgroup -o none,name=systemd cgroup "$folder" ;;
      *) mount -t cgroup -o "${folder##*/}" cgroup "$folder" ;;
    esac
  done
fi

wait_for() { while [ ! -f "$STATE/$1" ]; do sleep 0.02; done; }
touch "$STATE/mounted"
wait_for connected
ip link set lo up
ip addr add "$ADDRESS/30" dev eth0
ip link set eth0 up
# There is no default route. A connection to a Service needs one for its first look-up, before kube-proxy rewrites its address:
# an empty bridge, since not every kernel has dummy devices.
ip link add services type bridge
ip link set services up
ip route add "$SERVICE_RANGE" dev services src "$ADDRESS"
echo 1 > /proc/sys/net/ipv4/ip_forward
# Where bridges hand packets to nftables at all, they have to.
if [ -e /proc/sys/net/bridge/bridge-nf-call-iptables ]; then echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables; fi

unset KUBECONFIG
run() {
  local name=$1
  shift
  { "$@" > "$STATE/$name.log" 2>&1 < /dev/null || true; echo "$name" >> "$STATE/ended"; } &
}
load() {
  local file
  for file; do ctr -n k8s.io images import "$file" >> "$STATE/images.log" 2>&1 || echo "image $file" >> "$STATE/ended"; done
}
cert=/run/tutti/state/certificates
config=/run/tutti/config

run etcd "$KUBE/etcd" --data-dir=/var/lib/etcd --unsafe-no-fsync --log-level=warn \
  --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 \
  --listen-peer-urls=http://127.0.0.1:2380 --initial-advertise-peer-urls=http://127.0.0.1:2380 \
  --initial-cluster=default=http://127.0.0.1:2380
run kube-apiserver "$KUBE/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --secure-port=6443 --advertise-address="$ADDRESS" \
  --service-cluster-ip-range="$SERVICE_RANGE" --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
  --allow-privileged=true --token-auth-file=$cert/tokens.csv --client-ca-file=$cert/ca.crt \
  --tls-cert-file=$cert/server.crt --tls-private-key-file=$cert/server.key \
  --service-account-issuer=https://kubernetes.default.svc \
  --service-account-key-file=$cert/accounts.key --service-account-signing-key-file=$cert/accounts.key \
  --kubelet-client-certificate=$cert/server.crt --kubelet-client-key=$cert/server.key \
  --kubelet-preferred-address-types=InternalIP
run containerd containerd --config $config/containerd.toml
wait_for api-ready
run kube-controller-manager "$KUBE/kube-controller-manager" --kubeconfig=$cert/controllers.kubeconfig --leader-elect=false --secure-port=0 \
  --use-service-account-credentials=true --service-account-private-key-file=$cert/accounts.key --root-ca-file=$cert/ca.crt \
  --enable-hostpath-provisioner=true
run kube-scheduler "$KUBE/kube-scheduler" --kubeconfig=$cert/scheduler.kubeconfig --leader-elect=false --secure-port=0
until [ -S /run/containerd/containerd.sock ]; do sleep 0.05; done
# shellcheck disable=SC2086 # a list of paths without blanks
load $FIRST_IMAGES
run kubelet "$NODE_PROGRAMS/kubelet" --config=$config/kubelet.yaml --kubeconfig=$cert/kubelet.kubeconfig \
  --hostname-override="$NAME" --node-ip="$ADDRESS"
run kube-proxy "$NODE_PROGRAMS/kube-proxy" --config=$config/kube-proxy.yaml --hostname-override="$NAME"
# shellcheck disable=SC2086 # NAME=COUNT ...
run fake-device-plugin "$NODE_PROGRAMS/fake-device-plugin" $DEVICES
run fake-dra-plugin "$NODE_PROGRAMS/fake-dra-plugin" gpu.example.com "$NAME" 1 $cert/admin.kubeconfig
# shellcheck disable=SC2086
load $MORE_IMAGES
touch "$STATE/images-loaded"

# The provisioner of volumes makes folders that only root may write to, and fsGroup is not for those of a node.
while :; do
  chmod -f 0777 /tmp/hostpath_pv/* || true
  sleep 0.3
done
