/** Calls that tritonserver restricts together. */
export const API_GROUPS = [
  'health',
  'metadata',
  'inference',
  'shared-memory',
  'model-config',
  'model-repository',
  'statistics',
  'trace',
  'logging',
] as const
export type ApiGroup = (typeof API_GROUPS)[number]

/** The first row that matches counts: methods of gRPC, and paths of REST as the routes write them. */
const RULES: readonly (readonly [RegExp, ApiGroup])[] = [
  [/^\/grpc\.health\.v1\.Health\//, 'health'],
  [/\/(ServerLive|ServerReady|ModelReady)$/, 'health'],
  [/\/(ServerMetadata|ModelMetadata)$/, 'metadata'],
  [/^\/grpc\.reflection\./, 'metadata'],
  [/\/Model(Stream)?Infer$/, 'inference'],
  [/SharedMemory(Status|Register|Unregister)$/, 'shared-memory'],
  [/\/ModelConfig$/, 'model-config'],
  [/\/Repository(Index|ModelLoad|ModelUnload)$/, 'model-repository'],
  [/\/ModelStatistics$/, 'statistics'],
  [/\/TraceSetting$/, 'trace'],
  [/\/LogSettings$/, 'logging'],
  [/^\/v2\/health\/|\/ready$/, 'health'],
  [/\/(infer|generate|generate_stream)$/, 'inference'],
  [/^\/v2\/(system|cuda)sharedmemory\//, 'shared-memory'],
  [/^\/v2\/repository\//, 'model-repository'],
  [/\/config$/, 'model-config'],
  [/\/stats$/, 'statistics'],
  [/\/trace\/setting$/, 'trace'],
  [/^\/v2\/logging$/, 'logging'],
  [/^\/v2\/openapi\.json$/, 'metadata'],
  [/^\/v2(\/models\/[^/]+(\/versions\/[^/]+)?)?$/, 'metadata'],
]

/** @param path - of a gRPC method, or of a route, not what a client wrote: that may be percent-encoded. Undefined if it has no group. */
export function groupOf(path: string): ApiGroup | undefined {
  return RULES.find(([pattern]) => pattern.test(path))?.[1]
}
