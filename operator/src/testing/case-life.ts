import type { HttpFaultProxy } from '@tutti/kube/testing'
import type { Test } from 'tap'
import type { CaseOperator } from './case-operator.ts'
import { type CasePlace, type CaseRig, MADE_KINDS, type StartOptions } from './case-rig.ts'
import { isGone } from './namespaced.ts'

export interface Phase {
  readonly name: string
  readonly act: (place: CasePlace) => Promise<unknown>
  readonly converged: (place: CasePlace) => Promise<unknown>
}

/** The phases in the life of a Model and the Ensemble over it, in order. */
export const PHASES: readonly Phase[] = [
  {
    name: 'creation',
    act: async (place) => {
      await place.applyModel('yolo')
      await place.applyEnsemble('ens', 'yolo')
    },
    converged: allReady,
  },
  {
    name: 'update',
    act: async (place) => {
      await place.applyModel('yolo', { maxBatchSize: 2, disruptionBudget: { minAvailable: 1 } })
      await place.applyEnsemble('ens', 'yolo', { maxBatchSize: 2, timeout: '5s' })
    },
    converged: allReady,
  },
  {
    name: 'deletion',
    act: async ({ plain, path }) => {
      await plain.delete(path('ensembles', 'ens'))
      await plain.delete(path('models', 'yolo'))
    },
    converged: nothingLeft,
  },
]

/** Runs all phases with one operator. @returns the look at the namespace after each phase. */
export async function liveIn(
  t: Test,
  place: CasePlace,
  prepare: (proxy: HttpFaultProxy) => void = () => {},
): Promise<readonly (readonly string[])[]> {
  const operator = await place.startOperator(t, { prepare })
  const looks: (readonly string[])[] = []
  for (const { act, converged } of PHASES) {
    await act(place)
    await converged(place)
    await operator.atRest()
    looks.push(await place.look())
  }
  await operator.stop()
  return looks
}

/** Starts an operator in a new namespace, and waits until the Model `yolo` is ready and the operator is at rest. */
export async function begin(
  t: Test,
  rig: CaseRig,
  o: StartOptions = {},
): Promise<{ readonly place: CasePlace; readonly operator: CaseOperator }> {
  const place = await rig.openPlace()
  const operator = await place.startOperator(t, o)
  await place.applyModel('yolo')
  await place.ready('models', 'yolo')
  await operator.atRest()
  return { place, operator }
}

async function allReady(place: CasePlace): Promise<void> {
  await place.ready('models', 'yolo')
  await place.ready('ensembles', 'ens')
}

/** Resolves when all objects that the operator made in the namespace are gone. */
export async function nothingLeft({ plain, path }: CasePlace): Promise<void> {
  const ours = '?labelSelector=app.kubernetes.io%2Fmanaged-by%3Dtutti-operator'
  for (const plural of MADE_KINDS) {
    for (const { metadata } of await plain.list(`${path(plural)}${ours}`)) {
      await plain.until(path(plural, metadata.name), isGone)
    }
  }
}
