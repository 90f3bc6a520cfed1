import type { ClusterAccess } from '../transport/cluster-access.ts'
import type { PlainClient } from './plain-client.ts'

/** Somebody whom the API server knows by a token. */
export interface ApiUser {
  readonly token: string
  /** `system:serviceaccount:NAMESPACE:NAME` for a service account. */
  readonly user: string
  readonly groups?: readonly string[]
}

export interface ApiServerOptions {
  /** True to start kube-controller-manager and kube-scheduler too: garbage collection, Deployments' pods, rollouts. */
  readonly hasControllers?: boolean
  /** More flags of kube-controller-manager. */
  readonly controllerFlags?: readonly string[]
  readonly users?: readonly ApiUser[]
}

/**
 * etcd and kube-apiserver of their own on loopback, with RBAC; several can run at once. Addresses of pods, nodes and Services
 * are loopback ones too: what a test sends to one never leaves the machine.
 */
export interface ApiServer {
  readonly url: URL
  /** PEM of the authority that signed the server's certificate. */
  readonly ca: string
  /** The server's own, for a proxy in front of it. */
  readonly certFile: string
  readonly keyFile: string
  /** Of a user in system:masters. */
  readonly token: string
  readonly plain: PlainClient
  /** @param token - default: that of system:masters. */
  access(token?: string): ClusterAccess
  /** Writes a kubeconfig. @returns its path. */
  kubeconfig(token?: string): Promise<string>
  /** A token of a service account, which is made with its namespace if it is not there. By TokenRequest. */
  createToken(namespace: string, serviceAccount: string): Promise<string>
  /** A folder as a pod has it, for TUTTI_SERVICE_ACCOUNT_DIR: `token`, `ca.crt`, `namespace`. */
  createServiceAccountDir(namespace: string, serviceAccount: string): Promise<string>
  /** Kills the API server with SIGKILL; etcd and its data stay. */
  kill(): Promise<void>
  /** Starts the API server again on the same port with the same data, after killing it if it runs; resolves when it is ready. */
  restart(): Promise<void>
  /** Makes etcd forget all that was before now: watches from before get 410 (once the server's own memory is gone too: restart). */
  compact(): Promise<void>
  /** Ends everything and removes the data. Fine to call again. */
  stop(): Promise<void>
}
