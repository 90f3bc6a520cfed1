import type { PlainAnswer, PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { acceptModel } from './accept-model.ts'
import type { CasePlace, CaseRig } from './case-rig.ts'
import { CONFIGS, ENSEMBLE_CHANGES, ENSEMBLE_SPEC } from './ensemble-changes.ts'
import { type FieldChange } from './field-changes.ts'
import { MODEL_CHANGES, MODEL_SPEC } from './model-changes.ts'
import { withField } from './schema-leaves.ts'

/** A resource for one change of the field walk. */
export interface Walker {
  readonly plural: 'models' | 'ensembles'
  readonly kind: 'Model' | 'Ensemble'
  readonly name: string
  readonly change: FieldChange
  /** Specs before (`a`) and after (`b`) the change. */
  readonly specs: { readonly a: PlainObject; readonly b: PlainObject }
}

/** The walkers for all changes of Models and Ensembles, one for each. */
export const WALKERS: readonly Walker[] = [
  ...MODEL_CHANGES.map((change, i) => toWalker('models', change, i)),
  ...ENSEMBLE_CHANGES.map((change, i) => toWalker('ensembles', change, i)),
]

function toWalker(plural: Walker['plural'], change: FieldChange, index: number): Walker {
  const { path, from, to, rest } = change
  const [kind, spec] =
    plural === 'models' ? (['Model', MODEL_SPEC] as const) : (['Ensemble', ENSEMBLE_SPEC] as const)
  const all = { ...spec, ...rest }
  const specs = { a: withField(all, path, from), b: withField(all, path, to) }
  return { plural, kind, name: `${kind.toLowerCase()}-${index + 1}`, change, specs }
}

export type FieldWorld = Awaited<ReturnType<typeof openFieldWorld>>

/** Requests that are sent at the same time. */
const AT_ONCE = 8

/** Opens a namespace with an operator and all objects to which walkers refer. */
export async function openFieldWorld(t: Test, rig: CaseRig) {
  const place = await rig.openPlace()
  const { plain, path } = place
  const operator = await place.startOperator(t)
  for (const name of ['secret-a', 'secret-b']) {
    await plain.create(path('secrets'), { metadata: { name }, stringData: { token: name } })
  }
  for (const name of ['claim-a', 'claim-b']) {
    const spec = { devices: { requests: [{ name: 'a', exactly: { deviceClassName: 'gpus' } }] } }
    await plain.create(path('resourceclaims'), { metadata: { name }, spec })
    await plain.create(path('resourceclaimtemplates'), { metadata: { name }, spec: { spec } })
  }
  for (const [name, text] of Object.entries(CONFIGS)) {
    await place.applyModel(name)
    await acceptModel({ plain, path, name, text, versions: [1, 2] })
  }
  for (const name of ['inner-a', 'inner-b']) await place.applyEnsemble(name, '', ENSEMBLE_SPEC)
  return {
    place,
    operator,
    /** Writes walkers with their spec `a` or `b`, and returns the server's answers in the order of the walkers. */
    write: async (walkers: readonly Walker[], which: 'a' | 'b') => {
      const answers: PlainAnswer[] = []
      for (let first = 0; first < walkers.length; first += AT_ONCE) {
        const some = walkers.slice(first, first + AT_ONCE)
        answers.push(
          ...(await Promise.all(
            some.map((walker) => writeWalker(place, walker, { spec: walker.specs[which] })),
          )),
        )
      }
      return answers
    },
    /** Resolves when the operator has looked at the newest generations and is at rest. */
    converged: async (): Promise<void> => {
      do await operator.atRest()
      while (await isBehind(place))
    },
  }
}

/**
 * Creates a walker, or replaces its whole spec, and returns the server's answer, also a refusal. It does not use server-side
 * apply, which turns an object that loses its last field into null and then refuses it.
 *
 * @param o.dryRun - true to store nothing.
 */
export async function writeWalker(
  { plain, path }: CasePlace,
  { plural, kind, name }: Walker,
  o: { readonly spec: PlainObject; readonly dryRun?: boolean },
): Promise<PlainAnswer> {
  const { spec, dryRun = false } = o
  const query = `fieldManager=kubectl&fieldValidation=Strict${dryRun ? '&dryRun=All' : ''}`
  const made = await plain.send('POST', `${path(plural)}?${query}`, {
    body: { apiVersion: 'tutti.dev/v1alpha1', kind, metadata: { name }, spec },
  })
  if (made.status !== 409) return made
  return await plain.send('PATCH', `${path(plural, name)}?${query}`, {
    contentType: 'application/json-patch+json',
    body: [{ op: 'replace', path: '/spec', value: spec }],
  })
}

async function isBehind({ plain, path }: CasePlace): Promise<boolean> {
  const lists = await Promise.all(['models', 'ensembles'].map((plural) => plain.list(path(plural))))
  return lists
    .flat()
    .some(({ status, metadata }) => status?.observedGeneration !== metadata.generation)
}
