import { BUILTIN_HOST, BUILTIN_HOST_VERSION, BUILTIN_REVISION } from '@tutti/builtins'
import {
  calleesOf,
  definePart,
  type EnsemblePlan,
  type FoldedPlan,
  findParts,
  foldPlan,
  MAX_PART_TEXT,
  PART_HOST,
  planPart,
  toPartText,
} from '@tutti/graph'
import type { ModelTarget } from '@tutti/tensor'
import { type Replica, type ReplicaPlaces, revisionKey } from '@tutti/transport'
import { lookupStep, type ResolvedEntry, resolveSteps } from '../catalog/catalog.ts'

/** The plan that requests to an ensemble run, and what its steps run. */
interface PlacedPlan {
  readonly plan: EnsemblePlan
  readonly steps: readonly ResolvedEntry[]
}

interface Remembered extends PlacedPlan {
  readonly byRevision: ReplicaPlaces['byRevision']
  /** The groups of steps. */
  readonly key: string
}

const PART_KEY = revisionKey(PART_HOST)
const BUILTIN_KEY = revisionKey({
  model: BUILTIN_HOST,
  version: BUILTIN_HOST_VERSION,
  revision: BUILTIN_REVISION,
})
const PLACED = new WeakMap<ResolvedEntry, Remembered>()
/** Folded plans, which hold the counts of the ensemble's bounds. Replicas come and go, and with them the same few groups. */
const FOLDED = new WeakMap<EnsemblePlan, Map<string, FoldedPlan>>()
const MAX_FOLDED = 16
/** Steps of a graph in which parts are looked for, in 30 ms: each time that a replica comes or goes. */
const MAX_STEPS = 256

/**
 * Puts parts of a graph together that one replica can run as one call each. Where no replica runs parts, this is the plan itself.
 *
 * @param plan - of `target`.
 * @param steps - what its steps run.
 */
export function placeParts(
  { byRevision }: Pick<ReplicaPlaces, 'byRevision'>,
  target: ResolvedEntry,
  { plan, steps }: PlacedPlan,
): PlacedPlan {
  const runners = byRevision.get(PART_KEY)
  const hasParts = steps.length > 1 && steps.length <= MAX_STEPS
  // The steps behind a stream run for each of its responses.
  if (runners === undefined || plan.decoupled || !hasParts) return { plan, steps }
  const known = PLACED.get(target)
  if (known?.byRevision === byRevision) return known
  const models = steps.map((step, index) => modelsOf(target, plan, { step, index }))
  const groups = findParts(plan, (indexes) => {
    const needed = indexes.map((index) => models[index])
    if (needed.includes(undefined)) return false
    const keys = needed.flatMap((of = []) => of.map(({ pinnedKey }) => pinnedKey))
    return areTogether(keys, { byRevision, runners })
  })
  const key = JSON.stringify(groups)
  const same =
    known !== undefined && known.key === key ? known : fold(target, { plan, steps }, groups)
  const placed = { plan: same.plan, steps: same.steps, byRevision, key }
  PLACED.set(target, placed)
  return placed
}

/**
 * Tells whether the replicas of all these revisions are the same: where some have one of them alone, they are to get their share of its
 * requests. Built-ins are everywhere, and cost little.
 */
function areTogether(
  keys: readonly string[],
  o: Pick<ReplicaPlaces, 'byRevision'> & { readonly runners: readonly Replica[] },
): boolean {
  const { byRevision, runners } = o
  // Several steps may run one model.
  const serving = new Map(keys.map((key) => [key, byRevision.get(key) ?? []]))
  const common = runners.filter((replica) =>
    [...serving.values()].every((all) => all.includes(replica)),
  )
  if (common.length === 0) return false
  serving.delete(BUILTIN_KEY)
  return [...serving.values()].every((all) => all.length === common.length)
}

/** Lists the models that a step and its fallback run; undefined for a step that runs by itself. */
function modelsOf(
  target: ResolvedEntry,
  plan: EnsemblePlan,
  { step, index }: { readonly step: ResolvedEntry; readonly index: number },
): readonly ResolvedEntry[] | undefined {
  const [planned, graphStep] = [plan.steps[index], plan.graph.steps[index]]
  if (planned === undefined || graphStep === undefined) return undefined
  const { call, forEach, loop } = planned
  // A second replica is what the hedge is about, and the bound of a step is over all replicas.
  const isBounded = plan.graph.maxInFlightPerStep > 0 && (forEach ?? loop) !== undefined
  if (call.hedge !== undefined || isBounded) return undefined
  try {
    const called = calleesOf({ steps: [graphStep] }).map((callee) =>
      lookupStep(target.catalog, callee),
    )
    const mayJoin = [step, ...called].every(
      ({ plan: nested, config }) => nested === undefined && config.sequence_batching === undefined,
    )
    return mayJoin ? called : undefined
  } catch {
    // Its call says what is missing.
    return undefined
  }
}

/** Resolves the parts and folds the plan. Those whose text is too long stay apart. */
function fold(
  target: ResolvedEntry,
  { plan, steps }: PlacedPlan,
  groups: readonly (readonly number[])[],
): PlacedPlan {
  const resolved = groups.map((group) => [group, resolvePart(target, plan, group)] as const)
  const parts = resolved.flatMap(([group, part]) => (part === undefined ? [] : [group]))
  if (parts.length === 0) return { plan, steps }
  const byFirst = new Map(resolved.map(([[first], part]) => [first, part]))
  const folded = foldedOf(plan, parts)
  return {
    plan: folded.plan,
    steps: folded.steps.flatMap(([first = -1, ...others]) => {
      const part = others.length > 0 ? byFirst.get(first) : undefined
      return part ?? steps[first] ?? []
    }),
  }
}

function foldedOf(plan: EnsemblePlan, groups: readonly (readonly number[])[]): FoldedPlan {
  const of = FOLDED.get(plan) ?? new Map<string, FoldedPlan>()
  FOLDED.set(plan, of)
  const key = JSON.stringify(groups)
  const known = of.get(key)
  if (known !== undefined) return known
  if (of.size >= MAX_FOLDED) of.clear()
  const folded = foldPlan(plan, groups)
  of.set(key, folded)
  return folded
}

/** Resolves a part; undefined for one whose text would be too long for each of its requests. */
function resolvePart(
  target: ResolvedEntry,
  plan: EnsemblePlan,
  group: readonly number[],
): ResolvedEntry | undefined {
  const find = (callee: Pick<ModelTarget, 'model' | 'version'>): ResolvedEntry =>
    lookupStep(target.catalog, callee)
  const definition = definePart(plan, group, (callee) => find(callee).pinned)
  const text = toPartText(definition)
  if (text.length > MAX_PART_TEXT) return undefined
  const own = planPart(definition, (pin) => find(pin).config)
  const models = definition.pins.map(find)
  const keys = [PART_KEY, ...models.map(({ pinnedKey }) => pinnedKey)]
  const entry = { ...target, plan: own, part: { text, models, keys } }
  return { ...entry, steps: resolveSteps(entry, own) }
}
