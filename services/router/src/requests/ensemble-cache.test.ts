import { systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { LocalCache } from '@tutti/response-cache'
import { SharedCache } from '@tutti/response-cache/testing'
import type { InferRequest } from '@tutti/tensor'
import { responsesTo } from '@tutti/tensor/testing'
import t from 'tap'
import type { Router } from '../router.ts'
import {
  chain,
  collect,
  ensembleIo,
  failure,
  floats,
  oneToOne,
  quiet,
  request,
  type ScriptedModel,
  ScriptedReplicas,
  scriptedRouter,
  step,
  toFloats,
} from '../testing/index.ts'

const CACHE = 'response_cache { enable: true }'
const openCache = () => new LocalCache({ maxBytes: 1_000_000, clock: systemClock })

const double: ScriptedModel = {
  config: oneToOne,
  run: (inputs) => {
    const values = [...(inputs.get('X') ?? [])]
    if (values[0] === 99) throw new ServeError('ENGINE_FAILED', 'it broke')
    return new Map([
      [
        'Y',
        floats(
          'Y',
          values.map((x) => 2 * x),
        ),
      ],
    ])
  },
}

async function infer(router: Router, model: string, o: Partial<InferRequest> = {}) {
  const [one] = await collect(
    responsesTo(router.resolve(model, ''), request('IN', [1, 2], o), quiet),
  )
  return [...toFloats(one?.outputs[0]?.data)]
}

async function counts(router: Router, model: string): Promise<readonly number[]> {
  const [one] = await router.statistics(model, '')
  const read = [one?.cacheHit, one?.cacheMiss, one?.success, one?.fail].map((d) => d?.count)
  return [...read, one?.executionCount, one?.inferenceCount].map(Number)
}

await t.test('an ensemble answers from the cache, and a nested one too', async (t) => {
  const { router, envelopes, served, refresh } = await scriptedRouter({
    cache: openCache(),
    models: { double },
    ensembles: {
      E: `${chain('double', 'double')} ${CACHE}`,
      plain: chain('double'),
      outer: `${ensembleIo} ensemble_scheduling { ${step('E', 'IN', 'OUT', { names: ['IN', 'OUT'] })} }`,
    },
  })
  t.same(await infer(router, 'E'), [4, 8])
  t.same(await infer(router, 'E'), [4, 8])
  t.same(await infer(router, 'outer'), [4, 8])
  t.equal(envelopes.length, 2)
  t.same(await counts(router, 'E'), [2, 1, 3, 0, 1, 1])
  t.equal(router.memory.count, 0)
  for (let i = 0; i < 2; i++) {
    const sent = responsesTo(router.resolve('E', ''), request('IN', [99]), quiet)
    t.match(await failure(sent), { message: "in ensemble 'E', it broke" })
  }
  t.same(await counts(router, 'E'), [2, 1, 3, 4, 1, 1], 'errors are not kept')
  for (let i = 0; i < 2; i++) await infer(router, 'plain')
  t.same(await counts(router, 'plain'), [0, 0, 2, 0, 2, 2])
  const sequence = { context: { ...request('IN').context, correlationId: 5n } }
  for (let i = 0; i < 2; i++) await infer(router, 'E', sequence)
  t.same(await counts(router, 'E'), [2, 1, 5, 4, 3, 3], 'sequences are executed')
  served.set('double', { ...double, loadError: 'gone' })
  refresh()
  served.set('double', { config: oneToOne, run: () => new Map([['Y', floats('Y', [7])]]) })
  refresh()
  t.same(await infer(router, 'E'), [7], 'its model was loaded again')
})

await t.test('answers of one revision are not those of another', async (t) => {
  const replicas = new ScriptedReplicas({
    cache: openCache(),
    ensembles: { E: `${chain('m')} ${CACHE}` },
  })
  const serve = (revision: string): void =>
    replicas.serve('a', [{ model: 'm', revision, config: oneToOne }])
  const executed = async (): Promise<number> => {
    await infer(replicas.router, 'E')
    return replicas.deliveries.splice(0).length
  }
  serve('old')
  t.same([await executed(), await executed()], [1, 0])
  serve('new')
  t.same([await executed(), await executed()], [1, 0])
  serve('old')
  t.equal(await executed(), 0, 'the former revision is there again')
  // A request that moves to another revision is not kept under the one that it pinned.
  const moved = replicas.router.resolve('E', '')
  serve('newer')
  const other = { inputs: [floats('IN', [5])] }
  await collect(responsesTo(moved, { ...request('IN'), ...other }, quiet))
  t.equal(replicas.deliveries.splice(0)[0]?.envelope.revision, 'newer')
  serve('old')
  await infer(replicas.router, 'E', other)
  t.equal(replicas.deliveries.length, 1)
})

await t.test('routers share answers of the same ensemble over the same revisions', async (t) => {
  const cache = new SharedCache()
  const routerOf = (graph: string, revision: string) => {
    const replicas = new ScriptedReplicas({ cache, ensembles: { E: `${graph} ${CACHE}` } })
    replicas.serve('a', [{ model: 'm', revision, config: oneToOne }])
    return async (): Promise<number> => {
      await infer(replicas.router, 'E')
      return replicas.deliveries.splice(0).length
    }
  }
  t.equal(await routerOf(chain('m'), 'old')(), 1)
  t.equal(await routerOf(chain('m'), 'old')(), 0, 'another router')
  t.equal(await routerOf(chain('m'), 'new')(), 1, 'another revision')
  t.equal(await routerOf(chain('m', 'm'), 'old')(), 2, 'another graph')
})
