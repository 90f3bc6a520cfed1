import type { ApiServerOptions } from './api-server.ts'
import { filesIn } from './api-server-files.ts'

/** Loopback, as the addresses of pods that tests play. */
const SERVICE_RANGE = '127.96.0.0/16'

/** Builds the flags of kube-apiserver. */
export function apiServerFlags(
  folder: string,
  o: ApiServerOptions & { readonly etcdUrl: string; readonly port: number },
): readonly string[] {
  const files = filesIn(folder)
  const { hasControllers } = o
  return [
    `--etcd-servers=${o.etcdUrl}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${o.port}`,
    // A loopback address may be no endpoint of the Service `kubernetes`.
    '--advertise-address=127.0.0.1',
    '--endpoint-reconciler-type=none',
    `--cert-dir=${folder}`,
    `--tls-cert-file=${files.cert}`,
    `--tls-private-key-file=${files.key}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${files.serviceAccountPublicKey}`,
    `--service-account-signing-key-file=${files.serviceAccountKey}`,
    '--authorization-mode=RBAC',
    `--token-auth-file=${files.tokens}`,
    `--service-cluster-ip-range=${SERVICE_RANGE}`,
    '--allow-privileged=true',
    // Without controllers a namespace gets no service account, and pods without one would be refused.
    ...(hasControllers === true ? [] : ['--disable-admission-plugins=ServiceAccount']),
    ...(o.serverFlags ?? []),
  ]
}

/** Builds the flags of kube-controller-manager and kube-scheduler. @param o.kubeconfig - path of the file. */
export function controllerFlags(
  folder: string,
  o: Pick<ApiServerOptions, 'controllerFlags'> & { readonly kubeconfig: string },
): { readonly manager: readonly string[]; readonly scheduler: readonly string[] } {
  const files = filesIn(folder)
  const common = [
    `--kubeconfig=${o.kubeconfig}`,
    '--leader-elect=false',
    '--secure-port=0',
    // For a cluster that others use too they are slow on purpose: some twenty requests a second.
    '--kube-api-qps=1000',
    '--kube-api-burst=1000',
  ]
  const manager = [
    ...common,
    `--service-account-private-key-file=${files.serviceAccountKey}`,
    `--root-ca-file=${files.ca}`,
    '--horizontal-pod-autoscaler-sync-period=2s',
    ...(o.controllerFlags ?? []),
  ]
  return { manager, scheduler: common }
}
