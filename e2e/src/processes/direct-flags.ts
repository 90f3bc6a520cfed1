import type { Heartbeat } from '@tutti/protocol'

/** Kinds of connections that requests and tensors of a test travel over: `off` is NATS. */
export const DIRECT_KINDS = ['off', 'unix', 'tls', 'tcp'] as const
export type DirectKind = (typeof DIRECT_KINDS)[number]

/** The one that TUTTI_DIRECT names, or `off`. @throws Error for one that is none. */
export function directKind(): DirectKind {
  const wanted = process.env['TUTTI_DIRECT'] ?? 'off'
  const kind = DIRECT_KINDS.find((one) => one === wanted)
  if (kind === undefined) throw new Error(`TUTTI_DIRECT=${wanted}, want ${DIRECT_KINDS.join(', ')}`)
  return kind
}

export interface DirectPlace {
  readonly kind: DirectKind
  /** Folder of the sockets, with `unix`. Short: a path has at most 107 bytes. */
  readonly directory: string
  /** HOST:PORT of a step, with `tls` and `tcp`. */
  readonly address: string
}

/** Builds the flags that a router or a step gets beside its own. */
export function directFlags(role: Heartbeat['role'], place: DirectPlace): readonly string[] {
  const { kind, directory, address } = place
  if (kind === 'off') return []
  if (kind === 'unix') return ['--direct=unix', `--direct-directory=${directory}`]
  return [`--direct=${kind}`, ...(role === 'step' ? [`--direct-address=${address}`] : [])]
}
