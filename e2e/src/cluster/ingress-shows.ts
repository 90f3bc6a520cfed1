import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '@tutti/chassis/testing'
import type { PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { runPythonChecks } from '../triton-client.ts'
import { chain, INPUT, SPACE, sumOf } from './adders.ts'
import { EDGE_SECRET, type Edge, exposeByIngress } from './edge.ts'
import { askGrpc, askRest, converse, type Question } from './edge-client.ts'
import { apply, getObject, INGRESS, kubectl } from './kubectl.ts'

const HOST = 'sum.test'
const SHARED = 'shared.test'
const GUARDED = 'guarded.test'
/** Hosts of a certificate that all of them have. */
export const HOSTS = [HOST, SHARED, GUARDED]
const TOKEN = 'only-for-those-who-know-it'
const GATEWAY = 'edge'
const ROUNDS = 20
const REST_MS = 65_000

/** A Gateway with TLS, at the port of Traefik's entry point. */
const gateway: PlainObject = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'Gateway',
  metadata: { namespace: SPACE, name: GATEWAY },
  spec: {
    gatewayClassName: 'traefik',
    listeners: [
      {
        name: 'https',
        protocol: 'HTTPS',
        port: 8443,
        tls: { certificateRefs: [{ name: EDGE_SECRET }] },
      },
    ],
  },
}

/** An Ensemble with another way in. */
function exposed(ensemble: PlainObject, expose: object): PlainObject {
  return { ...ensemble, spec: { ...ensemble['spec'], expose } }
}

/** The same way in, for who has the token. */
function guarded(ensemble: PlainObject): PlainObject {
  return exposed(ensemble, { ...ensemble['spec'].expose, auth: { secretRef: { name: 'token' } } })
}

/** Ensembles of the Models `first` and `second`, which add 1 and 3, with all ways in. */
export async function applyExposed(): Promise<void> {
  const secret = ['create', 'secret', 'generic', 'token', `--namespace=${SPACE}`]
  await kubectl(...secret, `--from-literal=token=${TOKEN}`)
  await apply(
    gateway,
    exposed(chain('sum', ['first', 'second']), {
      gateway: { parentRef: { name: GATEWAY }, hosts: [HOST] },
    }),
    exposeByIngress(chain('one', ['first']), SHARED),
    exposeByIngress(chain('two', ['first', 'second']), SHARED),
    guarded(exposeByIngress(chain('guarded', ['first']), GUARDED)),
  )
}

/** Lets NVIDIA's clients ask two Ensembles on one host, and one behind a token. */
export async function showIngress(t: Test, edge: Edge): Promise<void> {
  for (const asker of [askGrpc, askRest]) {
    for (const model of ['one', 'two']) {
      const ask = asker(t, await questionOf(edge, SHARED, model))
      await until(`${model} is reached`, async () => 'bytes' in (await ask()))
    }
    // It is asked without its token: what it says of that comes from the router.
    const ask = asker(t, await questionOf(edge, GUARDED, 'guarded'))
    await until('guarded is reached', async () => {
      const outcome = await ask()
      return 'problem' in outcome && /UNAUTHENTICATED|REST 401/.test(outcome.problem)
    })
  }
  const hosts = [`--shared=${SHARED}`, `--guarded=${GUARDED}`, `--token=${TOKEN}`]
  const where = [`--port=${INGRESS.https}`, `--ca=${edge.caFile}`]
  await runPythonChecks(t, 'ingress.py', [...where, ...hosts], { hosts: edge.hostsFile })
}

/**
 * Begins a stream. The function that comes back goes on with it, when it has rested longer than ingress controllers let it unless
 * they are told otherwise (60 s).
 */
export async function beginRest(t: Test, edge: Edge): Promise<(t: Test) => Promise<void>> {
  const question = await questionOf(edge, SHARED, 'one')
  const reached = askGrpc(t, question)
  await until('one is reached', async () => 'bytes' in (await reached()))
  const conversation = converse(t, question)
  const first = await conversation.ask()
  const began = Date.now()
  return async (t) => {
    await delay(Math.max(0, began + REST_MS - Date.now()))
    for (const found of [first, await conversation.ask()]) {
      t.same(Buffer.from(found), Buffer.from(sumOf(1)))
    }
    await conversation.end()
  }
}

/** An Ensemble behind a Gateway. */
export async function showGateway(t: Test, edge: Edge): Promise<void> {
  const question = await questionOf(edge, HOST, 'sum')
  const answer = sumOf(4)
  await t.test('its HTTPRoute is accepted', async (t) => {
    const route = await until('it is', async () => {
      const { status } = await getObject('httproute', 'sum', `--namespace=${SPACE}`)
      return status?.parents?.[0]?.conditions?.length > 1 && status
    })
    const conditions = route.parents[0].conditions.map(({ type, status }: PlainObject) => {
      return `${type}=${status}`
    })
    t.same(conditions.toSorted(), ['Accepted=True', 'ResolvedRefs=True'])
  })

  for (const [what, asker] of [
    ['gRPC', askGrpc],
    ['REST', askRest],
  ] as const) {
    await t.test(`${what} with TLS`, async (t) => {
      const ask = asker(t, question)
      let last = ''
      const found = await until(
        () => `it answers; it says ${last}`,
        async () => {
          const outcome = await ask()
          if ('bytes' in outcome) return outcome.bytes
          last = outcome.problem
          return undefined
        },
      )
      t.same(Buffer.from(found), Buffer.from(answer))
    })
  }

  await t.test('a stream of gRPC with TLS', async (t) => {
    const conversation = converse(t, question)
    for (let round = 0; round < ROUNDS; round++) {
      t.same(Buffer.from(await conversation.ask()), Buffer.from(answer))
    }
    await conversation.end()
  })

  await t.test('when it is exposed no more it has none', async (t) => {
    const patch = ['--type=merge', `--patch=${JSON.stringify({ spec: { expose: null } })}`]
    await kubectl('patch', 'ensemble', 'sum', `--namespace=${SPACE}`, ...patch)
    const gone = ['--for=delete', 'httproute/sum', '--timeout=120s', `--namespace=${SPACE}`]
    await kubectl('wait', ...gone)
    const left = await getObject('httproutes', `--namespace=${SPACE}`)
    t.same(left['items'], [])
  })
}

async function questionOf({ caFile }: Edge, host: string, model: string): Promise<Question> {
  return { ca: await readFile(caFile), host, model, inputs: [INPUT], outputs: ['y'] }
}
