/** Groups of calls that tritonserver restricts together. */
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
