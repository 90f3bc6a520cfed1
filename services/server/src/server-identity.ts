/** What ServerMetadata says about a server. */
export interface ServerIdentity {
  readonly name: string
  readonly version: string
  readonly extensions: readonly string[]
}

/** The protocol extensions that work here, in Triton's order; docs/protocol.md names the others. */
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

/** What this server says of itself. The name is Triton's, because clients and scripts compare it; `--id` changes it. */
export const SERVER_IDENTITY: ServerIdentity = {
  name: 'triton',
  version: '0.1.0',
  extensions: SERVER_EXTENSIONS,
}
