import { flagRefusal } from '@tutti/chassis'

/** Listeners that can serve over TLS, by the beginning of their flags. */
export type TlsListener = 'grpc' | 'http' | 'metrics'

type SwitchName<L extends TlsListener> = `${L}-use-ssl` | `${L}-use-ssl-mutual`
type FileName<L extends TlsListener> = `${L}-server-cert` | `${L}-server-key` | `${L}-root-cert`

type TlsFlagTable<L extends TlsListener> = Readonly<
  Record<
    SwitchName<L>,
    { readonly type: 'bool'; readonly default: false; readonly description: string }
  > &
    Record<
      FileName<L>,
      { readonly type: 'string'; readonly path: 'file'; readonly description: string }
    >
>

export type TlsFlagValues = Readonly<
  Record<SwitchName<TlsListener>, boolean> & Record<FileName<TlsListener>, string | undefined>
>

/** PEM files of a listener. */
export interface TlsFiles {
  readonly listener: TlsListener
  /** The server's certificate, and those of its issuers below the root. */
  readonly cert: string
  readonly key: string
  /** Authorities of the clients. Absent: clients need no certificate. */
  readonly root?: string
}

/** Builds the TLS flags of a listener. tritonserver has only those of gRPC. @param name - the listener's name in descriptions. */
export function tlsFlags<const L extends TlsListener>(listener: L, name: string): TlsFlagTable<L> {
  const bool = { type: 'bool', default: false } as const
  const file = { type: 'string', path: 'file' } as const
  const flags = {
    'use-ssl': { ...bool, description: `Serve ${name} over TLS, 1.2 or newer.` },
    'use-ssl-mutual': {
      ...bool,
      description: `Serve ${name} over TLS, to clients with a certificate of --${listener}-root-cert only.`,
    },
    'server-cert': {
      ...file,
      description: `PEM file of the certificate for ${name}. It is read again when it changes, as key and root are.`,
    },
    'server-key': { ...file, description: `PEM file of its key, without a passphrase.` },
    'root-cert': {
      ...file,
      description: `PEM file of the authorities whose clients may use ${name}, with --${listener}-use-ssl-mutual.`,
    },
  }
  const named = Object.entries(flags).map(([flag, spec]) => [`${listener}-${flag}`, spec])
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- fromEntries() forgets the names, which are made one line above
  return Object.fromEntries(named) as TlsFlagTable<L>
}

/**
 * Reads the TLS files of a listener from its flags; undefined without TLS.
 *
 * @throws ServeError FLAG_INVALID for a file that is missing, or that would have no effect: someone may believe that it has.
 */
export function toTlsFiles(flags: TlsFlagValues, listener: TlsListener): TlsFiles | undefined {
  const isMutual = flags[`${listener}-use-ssl-mutual`]
  const isUsed = isMutual || flags[`${listener}-use-ssl`]
  const read = (
    name: 'server-cert' | 'server-key' | 'root-cert',
    isWanted: boolean,
    wantedBy: `--${SwitchName<TlsListener>}`,
  ): string | undefined => {
    const path = flags[`${listener}-${name}`]
    if (isWanted === (path !== undefined)) return path
    const problem = isWanted
      ? `got none with ${wantedBy}, want a PEM file`
      : `got it without ${wantedBy}`
    throw flagRefusal(`--${listener}-${name}`, problem)
  }
  const by = isMutual
    ? (`--${listener}-use-ssl-mutual` as const)
    : (`--${listener}-use-ssl` as const)
  const cert = read('server-cert', isUsed, by)
  const key = read('server-key', isUsed, by)
  const root = read('root-cert', isMutual, `--${listener}-use-ssl-mutual`)
  if (cert === undefined || key === undefined) return undefined
  return { listener, cert, key, ...(root !== undefined && { root }) }
}
