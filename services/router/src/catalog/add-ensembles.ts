import {
  BUILTIN_HOST,
  BUILTIN_HOST_CONFIG,
  BUILTIN_HOST_VERSION,
  BUILTIN_REVISION,
} from '@tutti/builtins'
import { calledNamesOf, orderEnsembles } from '@tutti/graph'
import {
  type CatalogEnsemble,
  type CatalogEntries,
  type CatalogModel,
  lostVersion,
} from './catalog.ts'
import {
  type Before,
  invalidEnsemble,
  planned,
  refusedEnsemble,
  unloaded,
} from './ensemble-entry.ts'
import type { EnsembleDefinition, EnsembleSource } from './ensemble-source.ts'
import { remembered } from './remembered.ts'

/** The model of built-ins while no replica describes it: it may come at any time, and what it is is known. */
const LOST_BUILTINS: CatalogModel = {
  kind: 'model',
  name: BUILTIN_HOST,
  config: BUILTIN_HOST_CONFIG,
  labels: {},
  versions: [
    lostVersion(BUILTIN_HOST, { version: BUILTIN_HOST_VERSION, revision: BUILTIN_REVISION }),
  ],
  reason: '',
}

/** Adds the ensembles to entries that already have the models. An ensemble comes after the ensembles that it is composed of. */
export function addEnsembles(
  entries: CatalogEntries,
  sources: readonly EnsembleSource[],
  o: Before,
): void {
  const ordered = orderSources(sources)
  const { order, byName } = ordered
  if (ordered.useBuiltins && !entries.has(BUILTIN_HOST)) entries.set(BUILTIN_HOST, LOST_BUILTINS)
  const open = new Set(byName.keys())
  const add = (name: string): void => {
    const source = byName.get(name)
    if (source === undefined || !open.delete(name)) return
    // A source that cannot be read is not known to be an ensemble.
    if (source.isUnreadable === true && entries.get(name)?.kind === 'model') return
    const before = o.previous.models.get(name)
    const known = before?.kind === 'ensemble' ? before : undefined
    const wanted = wantedOf(source, known, ordered)
    const composing = composingOf(wanted)
    // The source that was served may contain ensembles that its successor does not.
    composing.forEach(add)
    const { served, cycle } = wanted
    const former = served === source ? undefined : served
    const models = composing.map((model) => entries.get(model))
    const from = [source, o.takesDown, former, cycle, ...models]
    entries.set(
      name,
      remembered(known, from, () => toEntry(entries, wanted, o)),
    )
  }
  const last = new Set(order)
  for (const { name } of sources) if (!last.has(name)) add(name)
  for (const name of order) add(name)
}

interface Wanted {
  readonly source: EnsembleSource
  /** The source that was served last, which may be `source`. */
  readonly served: EnsembleSource | undefined
  /** Why it cannot be planned. */
  readonly cycle: string | undefined
  /** Absent if it cannot be planned. */
  readonly definition: EnsembleDefinition | undefined
}

function wantedOf(
  source: EnsembleSource,
  known: CatalogEnsemble | undefined,
  { cycles, usable }: Ordered,
): Wanted {
  const { name, isUnloaded } = source
  const served = isUnloaded === true ? undefined : known?.source
  const cycle = cycles.get(name)?.message
  // One that is served was on no cycle: a new source of another one made it.
  const isUsable = cycle === undefined || served === source
  return { source, served, cycle, definition: isUsable ? usable.get(name) : undefined }
}

function composingOf({ definition, served }: Wanted): readonly string[] {
  const definitions = [definition, served?.definition].flatMap((one) => one ?? [])
  return [...new Set(definitions.flatMap(({ graph }) => calledNamesOf(graph)))]
}

function toEntry(entries: CatalogEntries, wanted: Wanted, o: Before): CatalogEnsemble {
  const { source, served, cycle, definition } = wanted
  if (source.isUnloaded === true) return unloaded(source)
  let next: CatalogEnsemble
  if (definition !== undefined) next = planned(entries, source, definition, o)
  else if (cycle !== undefined) next = invalidEnsemble(source, o, cycle)
  else next = refusedEnsemble(source, source.reason)
  if (next.plan !== undefined || served === undefined) return next
  const kept = served === source ? undefined : keep(entries, served, next, o)
  return kept ?? { ...next, source: served }
}

/** Keeps the source that was served before while its successor cannot be served, as long as it fits its models itself. */
function keep(
  entries: CatalogEntries,
  served: EnsembleSource,
  pending: CatalogEnsemble,
  o: Before,
): CatalogEnsemble | undefined {
  if (served.definition === undefined) return undefined
  const kept = planned(entries, served, served.definition, o)
  return kept.plan === undefined ? undefined : { ...kept, pending }
}

type Ordered = ReturnType<typeof orderEnsembles> & {
  readonly byName: ReadonlyMap<string, EnsembleSource>
  /** The ensembles that may be planned. */
  readonly usable: ReadonlyMap<string, EnsembleDefinition>
  /** True if one of them has a step for which a replica with built-ins is needed. */
  readonly useBuiltins: boolean
}

const ORDERED = new WeakMap<readonly EnsembleSource[], Ordered>()

/** Does not depend on models, which change more often. */
function orderSources(sources: readonly EnsembleSource[]): Ordered {
  const known = ORDERED.get(sources)
  if (known !== undefined) return known
  const byName = new Map(sources.map((source) => [source.name, source]))
  const usable = new Map<string, EnsembleDefinition>()
  for (const { name, definition, reason, isUnloaded } of sources) {
    if (isUnloaded !== true && definition !== undefined && reason === '') {
      usable.set(name, definition)
    }
  }
  const graphs = new Map([...usable].map(([name, { graph }]) => [name, graph]))
  const useBuiltins = [...graphs.values()].some((graph) =>
    calledNamesOf(graph).includes(BUILTIN_HOST),
  )
  const ordered = { ...orderEnsembles(graphs), byName, usable, useBuiltins }
  ORDERED.set(sources, ordered)
  return ordered
}
