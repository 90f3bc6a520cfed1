/** The address of an API server, and the credentials for it. */
export interface ClusterAccess {
  /** URL of the server, e.g. `https://10.96.0.1:443`; its path is a prefix of all request paths. */
  readonly server: URL
  /** The name that the server's certificate must have, if it is not the host of `server`. */
  readonly serverName?: string | undefined
  /** True to take any certificate, for kubeconfigs that say so. */
  readonly isServerUnverified?: boolean | undefined
  /** Gives the present credentials. It is called before every request, so it must be quick; tokens and authorities rotate. */
  credentials(): Promise<Credentials>
  /** Drops cached credentials. It is called when the server has refused them (401). */
  refresh(): void
}

export interface Credentials {
  /** Value of the header `authorization`, e.g. `Bearer ...`. */
  readonly authorization?: string | undefined
  /** PEM of the authorities that may sign the server's certificate; the system's if absent. */
  readonly ca?: string | undefined
  /** PEM of the client's certificate; `key` is the PEM of its key. */
  readonly cert?: string | undefined
  readonly key?: string | undefined
}
