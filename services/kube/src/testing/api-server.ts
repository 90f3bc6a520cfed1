/** A user that the API server knows by a token. */
export interface ApiUser {
  readonly token: string
  /** `system:serviceaccount:NAMESPACE:NAME` for a service account. */
  readonly user: string
  readonly groups?: readonly string[]
}

export interface ApiServerOptions {
  /** True to start kube-controller-manager and kube-scheduler too: garbage collection, Deployments' pods, rollouts. */
  readonly hasControllers?: boolean
  /** More flags of kube-apiserver. */
  readonly serverFlags?: readonly string[]
  /** More flags of kube-controller-manager. */
  readonly controllerFlags?: readonly string[]
  readonly users?: readonly ApiUser[]
}
