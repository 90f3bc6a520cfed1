/** How to reach an API server, and as whom. */
export interface ClusterAccess {
  /** `https://10.96.0.1:443` say; a path in it stands before all paths. */
  readonly server: URL
  /** The name that the server's certificate must have, if it is not the host of `server`. */
  readonly serverName?: string | undefined
  /** True to take any certificate, for kubeconfigs that say so. */
  readonly isServerUnverified?: boolean | undefined
  /** Asked before every request: must be quick, and give what counts now (tokens and authorities rotate). */
  credentials(): Promise<Credentials>
  /** Told that the credentials were refused (401): the next ones must be new, not from a cache. */
  refresh(): void
}

export interface Credentials {
  /** The whole header, `Bearer ...` say. */
  readonly authorization?: string | undefined
  /** PEM of the authorities that may sign the server's certificate; the system's if absent. */
  readonly ca?: string | undefined
  /** PEM of the client's certificate and key. */
  readonly cert?: string | undefined
  readonly key?: string | undefined
}
