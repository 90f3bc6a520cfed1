import { createHash } from 'node:crypto'
import type { ApiServer, PlainObject } from '@tutti/kube/testing'
import * as fc from 'fast-check'
import type { Test } from 'tap'
import { type EnsembleNamespace, openEnsembleRig } from './ensemble-rig.ts'
import { isGone, isThere } from './namespaced.ts'
import { ENSEMBLE } from './router-objects.ts'

/** Where it happens. */
interface Place {
  readonly plain: ApiServer['plain']
  readonly ns: EnsembleNamespace
}

/** Breaks something that access does not depend on. @returns mends it. */
type Fault = (place: Place) => Promise<() => Promise<unknown>>

const NATS_KEYS = '/api/v1/namespaces/default/secrets/tutti-nats-keys'
const HOST = 'a.example'
/** Within which access has to end. */
const MOST_MS = 60_000

function exposed(auth: PlainObject): PlainObject {
  return { ingress: { hosts: [HOST] }, auth }
}

/** Another Ensemble that is wrong. */
function badEnsemble(name: string, fields: PlainObject): Fault {
  return async ({ plain, ns }) => {
    await ns.applyEnsemble(name, { ...ENSEMBLE, ...fields })
    return () => plain.delete(ns.path('ensembles', name))
  }
}

/** A setting of the Router that is not taken. */
function badRouter(spec: PlainObject): Fault {
  const before = Object.fromEntries(Object.keys(spec).map((field) => [field, null]))
  return async ({ plain, ns }) => {
    const router = ns.path('routers', 'default')
    await plain.patch(router, { spec })
    // Without an Ensemble it may be gone by then.
    return async () => {
      if ((await plain.list(ns.path('routers'))).length > 0)
        await plain.patch(router, { spec: before })
    }
  }
}

const FAULTS: Readonly<Record<string, Fault>> = {
  'an image that is not allowed': badRouter({ image: 'mine:1' }),
  'no credential for NATS can be made': async ({ plain, ns }) => {
    const { data = {} } = await plain.get(NATS_KEYS)
    const damaged = Object.fromEntries(Object.keys(data).map((key) => [key, 'eA==']))
    await plain.patch(NATS_KEYS, { data: damaged })
    await plain.delete(ns.path('secrets', 'tutti-nats'))
    return () => plain.patch(NATS_KEYS, { data })
  },
  'a Router that a finalizer holds': async ({ plain, ns }) => {
    const router = ns.path('routers', 'default')
    await plain.patch(router, { metadata: { finalizers: ['example.com/stay'] } })
    await plain.delete(router)
    return async () => {
      await plain.patch(router, { metadata: { finalizers: null } })
      await plain.until(router, (object) => object?.['metadata'].deletionTimestamp === undefined)
    }
  },
  'an Ensemble of a model that is not there': badEnsemble('wrong', {
    steps: [{ name: 'a', modelRef: { name: 'absent' }, inputMap: { X: 'X' } }],
  }),
  'an Ensemble whose token is missing': badEnsemble('locked', {
    expose: exposed({ secretRef: { name: 'no-token' } }),
  }),
  'an Ensemble with the name of the other': badEnsemble('rival', {
    modelName: 'one',
    expose: exposed({ secretRef: { name: 'other' } }),
  }),
}

const REVOCATIONS: Readonly<Record<string, (place: Place) => Promise<unknown>>> = {
  'the token is deleted': ({ plain, ns }) => plain.delete(ns.path('secrets', 'token')),
  'the token is another': ({ plain, ns }) =>
    plain.patch(ns.path('secrets', 'token'), { stringData: { token: 'another' } }),
  'the token is empty': ({ plain, ns }) =>
    plain.patch(ns.path('secrets', 'token'), { stringData: { token: '' } }),
  'the Ensemble is deleted': ({ plain, ns }) => plain.delete(ns.path('ensembles', 'one')),
  'it is not exposed any more': ({ ns }) => ns.applyEnsemble('one', ENSEMBLE),
  'it wants another token': ({ ns }) =>
    ns.applyEnsemble('one', { ...ENSEMBLE, expose: exposed({ secretRef: { name: 'other' } }) }),
}

const cases = fc.record({
  how: fc.constantFrom(...Object.entries(REVOCATIONS)),
  faults: fc.uniqueArray(fc.constantFrom(...Object.entries(FAULTS)), {
    minLength: 1,
    maxLength: 3,
    selector: ([name]) => name,
  }),
})

/**
 * Checks that access from outside the cluster ends whatever else is wrong. Each round gives access, breaks one to three other
 * things and revokes the access, which must end within a minute.
 */
export async function revokeAccess(
  t: Test,
  server: ApiServer,
  o: { readonly rounds: number; readonly seed: number },
): Promise<void> {
  const { plain } = server
  const rig = await openEnsembleRig(t, server)
  await rig.start()
  const ns = await rig.createNamespace()
  const place = { plain, ns }
  await plain.create(ns.path('secrets'), {
    metadata: { name: 'other' },
    stringData: { token: 'of-others' },
  })
  const seen = new Set<string>()
  const chosen = fc.sample(cases, { numRuns: o.rounds, seed: o.seed })
  for (const [round, { how, faults }] of chosen.entries()) {
    const [name, revoke] = how
    const token = `token-${round}`
    await giveAccess(place, token)
    const mends: (() => Promise<unknown>)[] = []
    for (const [, fault] of faults) mends.push(await fault(place))
    await revoke(place)
    const end = await plain
      .until(edgeOf(place), (secret) => !letsIn(secret, token), MOST_MS)
      .then(() => 'ended', String)
    const names = [name, ...faults.map(([fault]) => fault)]
    t.equal(end, 'ended', `round ${round}: ${names.join(', with ')}`)
    for (const mend of mends.toReversed()) await mend()
    for (const one of names) seen.add(one)
  }
  t.comment(`${seen.size} of ${Object.keys({ ...FAULTS, ...REVOCATIONS }).length} kinds`)
}

/** Resolves when the token lets in. */
async function giveAccess({ plain, ns }: Place, token: string): Promise<void> {
  const secret = ns.path('secrets', 'token')
  await plain.delete(secret).catch(() => {
    // The first time, and where it was deleted.
  })
  await plain.until(secret, isGone)
  await plain.create(ns.path('secrets'), { metadata: { name: 'token' }, stringData: { token } })
  await ns.applyEnsemble('one', { ...ENSEMBLE, expose: exposed({ secretRef: { name: 'token' } }) })
  await plain.until(edgeOf({ plain, ns }), (found) => letsIn(found, token))
  await plain.until(ns.path('routers', 'default'), isThere)
}

function edgeOf({ ns }: Place): string {
  return ns.path('secrets', 'tutti-router-edge')
}

function letsIn(secret: PlainObject | undefined, token: string): boolean {
  const routes = Buffer.from(secret?.['data']?.['edge.json'] ?? '', 'base64').toString()
  return routes.includes(createHash('sha256').update(token).digest('hex'))
}
