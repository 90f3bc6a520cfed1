import type { ModelResources } from '@tutti/api'
import { addQuantities } from './add-quantities.ts'

type Quantities = NonNullable<ModelResources['requests']>

/**
 * Adds the resources of Models that share a container. A limit stands only where each of them has one, as one without a limit may use
 * all that there is. Resources of one Model stay as they are written.
 */
export function sumResources(all: readonly ModelResources[]): ModelResources {
  const [first = {}, ...others] = all
  if (others.length === 0) return first
  return {
    // As Kubernetes does: a limit without a request is the request too.
    requests: sum(all.map(({ requests, limits }) => ({ ...limits, ...requests }))),
    limits: sum(
      all.map(({ limits = {} }) => limits),
      (name) => all.every(({ limits = {} }) => Object.hasOwn(limits, name)),
    ),
  }
}

function sum(
  all: readonly Quantities[],
  isWanted: (name: string) => boolean = () => true,
): Quantities {
  const names = [...new Set(all.flatMap((one) => Object.keys(one)))].filter(isWanted)
  return Object.fromEntries(
    names.map((name) => {
      const said = all.flatMap((one) => one[name] ?? [])
      return [name, addQuantities(said)]
    }),
  )
}
