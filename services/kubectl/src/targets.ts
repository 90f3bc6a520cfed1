import { modelOfStep } from '@tutti/ensemble'
import { nearestName, ServeError } from '@tutti/errors'
import type { Stored } from '@tutti/kube'
import type { Reader } from './cluster.ts'
import {
  ENSEMBLE,
  type EnsembleObject,
  MODEL,
  type ModelObject,
  servedNameOf,
} from './resources.ts'

/** Target that a user names on the command line. */
export interface Target {
  /** `Ensemble faces` say, for texts. */
  readonly title: string
  readonly models: readonly Stored<ModelObject>[]
  /** Models that steps of an Ensemble run and that are not there, by the names that clients use. */
  readonly missing: readonly string[]
  /** Absent for a Model, and for the router. */
  readonly ensemble?: Stored<EnsembleObject>
  readonly isRouter: boolean
}

/** All that a name may stand for; undefined for what the user may not list. */
export interface Named {
  readonly ensembles: readonly Stored<EnsembleObject>[] | undefined
  readonly models: readonly Stored<ModelObject>[] | undefined
}

type Kind = 'ensemble' | 'model' | 'router'

const ROUTER_TARGET: Target = { title: 'the router', models: [], missing: [], isRouter: true }
const OF_KIND = /^(model|ensemble|router)s?(?:\.tutti\.dev)?\/(.+)$/

/**
 * Finds what a name stands for in a namespace.
 *
 * @param text - `NAME`, `model/NAME`, `ensemble/NAME` or `router`; the name is that in the cluster, or that to clients.
 * @throws ServeError NOT_FOUND, FLAG_INVALID for a name of both kinds, ACCESS_DENIED if the user may not list what it could be, or
 * what it runs.
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

/** The same without I/O. @returns undefined if there is none. */
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
  return model && { title, models: [model], missing: [], isRouter: false }
}

function toEnsembleTarget(
  ensemble: Stored<EnsembleObject> | undefined,
  named: Named,
): Target | undefined {
  if (ensemble === undefined) return undefined
  const title = `Ensemble ${ensemble.metadata.name}`
  return { title, ensemble, ...modelsOf(ensemble, named), isRouter: false }
}

/** The name in the cluster goes before the one that clients use. */
function find<T extends Stored<ModelObject | EnsembleObject>>(
  objects: readonly T[] | undefined,
  name: string,
): T | undefined {
  return (
    objects?.find(({ metadata }) => metadata.name === name) ??
    objects?.find((object) => servedNameOf(object) === name)
  )
}

/** The Models that an Ensemble runs, those of Ensembles below it too, each once and in the order of the steps. */
function modelsOf(
  ensemble: Stored<EnsembleObject>,
  { ensembles = [], models = [] }: Named,
): Pick<Target, 'models' | 'missing'> {
  const found = new Set<Stored<ModelObject>>()
  const missing = new Set<string>()
  const seen = new Set([ensemble])
  // An Ensemble that is found on the way is appended, and visited too.
  for (const one of seen) {
    for (const served of (one.spec?.steps ?? []).map(modelOfStep)) {
      const model = models.find((object) => servedNameOf(object) === served)
      const nested = ensembles.find((object) => servedNameOf(object) === served)
      if (model !== undefined) found.add(model)
      else if (nested !== undefined) seen.add(nested)
      else missing.add(served)
    }
  }
  return { models: [...found], missing: [...missing] }
}
