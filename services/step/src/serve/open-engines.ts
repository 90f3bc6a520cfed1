import { createEngines, type Engines, type EnginesOptions, ModelMetrics } from '@tutti/backends'
import type { ServerMetrics } from '@tutti/server'

/** Makes the engines of a server; what models measure is printed with the server's own metrics. */
export function openEngines(
  o: Omit<EnginesOptions, 'metrics'> & { readonly metrics: ServerMetrics },
): Engines {
  const models = new ModelMetrics()
  o.metrics.addFamilies(() => models.read())
  return createEngines({ ...o, metrics: models })
}
