import { modelNameOf } from '@tutti/api'
import { nearestName, ServeError } from '@tutti/errors'
import { modelsOfStep } from '@tutti/graph'
import type { Stored } from '@tutti/kube'
import type { Reader } from './cluster.ts'
import { ENSEMBLE, type EnsembleObject, MODEL, type ModelObject } from './resources.ts'

/** The target of a command: the Model, the Ensemble or the router that the user names. */
export interface Target {
  /** Kind and name for texts, e.g. `Ensemble faces`. */
  readonly title: string
  readonly models: readonly Stored<ModelObject>[]
  /** Names, as clients use them, of missing Models that steps of the Ensemble run. */
  readonly missing: readonly string[]
  /** Absent for a Model, and for the router. */
  readonly ensemble?: Stored<EnsembleObject>
  readonly isRouter: boolean
  /** True for an Ensemble with steps that run in the namespace's pods with built-ins. */
  readonly hasBuiltins: boolean
}

/** The objects that a name may stand for; a kind that the user may not list is undefined. */
export interface Named {
  readonly ensembles: readonly Stored<EnsembleObject>[] | undefined
  readonly models: readonly Stored<ModelObject>[] | undefined
}

type Kind = 'ensemble' | 'model' | 'router'

const ROUTER_TARGET: Target = {
  title: 'the router',
  models: [],
  missing: [],
  isRouter: true,
  hasBuiltins: false,
}
const OF_KIND = /^(model|ensemble|router)s?(?:\.tutti\.dev)?\/(.+)$/

/**
 * Finds the target of a name in a namespace.
 *
 * @param text - `NAME`, `model/NAME`, `ensemble/NAME` or `router`, with the name in the cluster or the one that clients use.
 * @throws ServeError NOT_FOUND; FLAG_INVALID if the name fits several kinds; ACCESS_DENIED if the user may not list a kind that
 * the search needs.
 */
export async function findTarget(
  reader: Reader,
  { namespace, text }: { readonly namespace: string; readonly text: string },
): Promise<Target> {
  const [ensembles, models] = await Promise.all([
    reader.list(ENSEMBLE, { namespace }),
    reader.list(MODEL, { namespace }),
  ])
  const target = chooseTarget({ ensembles, models }, text)
  const isWhole = target?.ensemble === undefined || reader.refused.size === 0
  if (target !== undefined && isWhole) return target
  for (const message of reader.refused.values()) throw new ServeError('ACCESS_DENIED', message)
  const names = [...(ensembles ?? []), ...(models ?? [])].map(({ metadata }) => metadata.name)
  const near = nearestName(text, names)
  const hint = near === undefined ? '' : `; did you mean ${near}?`
  throw new ServeError(
    'NOT_FOUND',
    `no Ensemble or Model '${text}' in namespace ${namespace}${hint}`,
  )
}

/**
 * Chooses the target of a name, as `findTarget`, without I/O.
 *
 * @returns undefined if there is none.
 * @throws ServeError FLAG_INVALID
 */
export function chooseTarget(named: Named, text: string): Target | undefined {
  const [, kind, name = text] = OF_KIND.exec(text) ?? []
  const finders: Readonly<Record<Kind, () => Target | undefined>> = {
    ensemble: () => toEnsembleTarget(find(named.ensembles, name), named),
    model: () => toModelTarget(find(named.models, name)),
    router: () => (name === 'router' ? ROUTER_TARGET : undefined),
  }
  const found = (['ensemble', 'model', 'router'] as const)
    .filter((one) => kind === undefined || kind === one)
    .flatMap((one) => {
      const target = finders[one]()
      return target === undefined ? [] : [{ form: `${one}/${name}`, target }]
    })
  if (found.length > 1) {
    const forms = found.map(({ form }) => form).join(' or ')
    throw new ServeError('FLAG_INVALID', `'${name}' is of more than one kind, want ${forms}`)
  }
  return found[0]?.target
}

function toModelTarget(model: Stored<ModelObject> | undefined): Target | undefined {
  const title = `Model ${model?.metadata.name}`
  return model && { title, models: [model], missing: [], isRouter: false, hasBuiltins: false }
}

function toEnsembleTarget(
  ensemble: Stored<EnsembleObject> | undefined,
  named: Named,
): Target | undefined {
  if (ensemble === undefined) return undefined
  const title = `Ensemble ${ensemble.metadata.name}`
  return { title, ensemble, ...modelsOf(ensemble, named), isRouter: false }
}

/** Finds an object by name. The name in the cluster goes before the one that clients use. */
function find<T extends Stored<ModelObject | EnsembleObject>>(
  objects: readonly T[] | undefined,
  name: string,
): T | undefined {
  return (
    objects?.find(({ metadata }) => metadata.name === name) ??
    objects?.find((object) => modelNameOf(object) === name)
  )
}

/**
 * Lists the Models that an Ensemble runs, those of Ensembles below it too, each once and in the order of the steps, and tells
 * whether one of these has built-ins that run without a Model.
 */
function modelsOf(
  ensemble: Stored<EnsembleObject>,
  { ensembles = [], models = [] }: Named,
): Pick<Target, 'models' | 'missing' | 'hasBuiltins'> {
  const found = new Set<Stored<ModelObject>>()
  const missing = new Set<string>()
  const seen = new Set([ensemble])
  // An Ensemble that is found on the way is appended, and visited too.
  for (const one of seen) {
    for (const served of (one.spec?.steps ?? []).flatMap(modelsOfStep)) {
      const model = models.find((object) => modelNameOf(object) === served)
      const nested = ensembles.find((object) => modelNameOf(object) === served)
      if (model !== undefined) found.add(model)
      else if (nested !== undefined) seen.add(nested)
      else missing.add(served)
    }
  }
  const steps = [...seen].flatMap(({ spec }) => spec?.steps ?? [])
  const hasBuiltins = steps.some(
    ({ builtin }) => builtin !== undefined && builtin.model === undefined,
  )
  return { models: [...found], missing: [...missing], hasBuiltins }
}
