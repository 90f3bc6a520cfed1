import manifest from '../../package.json' with { type: 'json' }

/** The name, version and extensions of a server, as ServerMetadata tells them. */
export interface ServerIdentity {
  readonly name: string
  readonly version: string
  readonly extensions: readonly string[]
}

/** The protocol extensions that work everywhere, in Triton's order; docs/protocol.md names the others. */
const SERVER_EXTENSIONS: readonly string[] = [
  'classification',
  'sequence',
  'model_repository',
  'schedule_policy',
  'model_configuration',
  'binary_tensor_data',
  'parameters',
  'statistics',
]

/** The identity that this server gives. The name is Triton's, because clients and scripts compare it; `--id` changes it. */
export const SERVER_IDENTITY: ServerIdentity = {
  name: 'triton',
  version: manifest.version,
  extensions: SERVER_EXTENSIONS,
}

/** Lists the protocol extensions of a server. */
export function extensionsOf(o: {
  /** True if clients may load and unload models, and change log settings. */
  readonly isOneProcess: boolean
  readonly hasTraces: boolean
  /** True if clients may share memory. */
  readonly hasRegions: boolean
}): readonly string[] {
  const further: Readonly<Record<string, readonly string[]>> = {
    ...(o.isOneProcess && { model_repository: ['model_repository(unload_dependents)'] }),
    ...(o.hasRegions && { model_configuration: ['system_shared_memory', 'cuda_shared_memory'] }),
  }
  const own = SERVER_EXTENSIONS.flatMap((name) => [name, ...(further[name] ?? [])])
  return [...own, ...(o.hasTraces ? ['trace'] : []), ...(o.isOneProcess ? ['logging'] : [])]
}
