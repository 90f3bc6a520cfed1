import { EMPTY_CONTEXT, type InferRequest } from '@tutti/tensor'
import t from 'tap'
import { cacheKey, cacheKeyByTurns, isKeyedByTurns } from './cache-key.ts'
import { executeCached } from './model-cache.ts'

const MEBIBYTE = 2 ** 20

function request(bytes: number): InferRequest {
  const data = Uint8Array.from({ length: bytes }, (_, i) => (i * 7) % 251)
  const input = { name: 'x', datatype: 'UINT8' as const, shape: [bytes], data }
  return { context: EMPTY_CONTEXT, inputs: [input], requestedOutputs: [] }
}

const keyed = (bytes: number) => ({ identity: 'm', outputs: ['y'], request: request(bytes) })

await t.test(
  'a large request has the key of its bytes, and lets others through meanwhile',
  async (t) => {
    t.notOk(isKeyedByTurns(request(MEBIBYTE)))
    t.ok(isKeyedByTurns(request(MEBIBYTE + 1)))
    const large = keyed(8 * MEBIBYTE + 5)
    const [[key], turns] = await countTurns(async () => [await keyByTurns(large)])
    t.equal(key, cacheKey(large))
    t.ok(turns >= 8, `${turns} turns of the loop`)
  },
)

await t.test('requests that come together take turns, too', async (t) => {
  const large = Array.from({ length: 4 }, () => keyed(8 * MEBIBYTE))
  const [keys, turns] = await countTurns(() => Promise.all(large.map(keyByTurns)))
  t.same(keys, large.map(cacheKey))
  t.ok(turns >= 4 * 8, `${turns} turns of the loop`)
})

type Keyed = ReturnType<typeof keyed>

function keyByTurns(large: Keyed): Promise<string | undefined> {
  return cacheKeyByTurns(large, new AbortController().signal)
}

/** Returns what some work gives, and how many turns of the loop begin meanwhile. */
async function countTurns<T>(work: () => Promise<T>): Promise<readonly [T, number]> {
  let turns = 0
  let next: NodeJS.Immediate
  const count = (): void => {
    turns += 1
    next = setImmediate(count)
  }
  next = setImmediate(count)
  const done = await work()
  clearImmediate(next)
  return [done, turns]
}

await t.test(
  'tensors are held until the request is given on; who has left is no longer digested',
  async (t) => {
    const abort = new AbortController()
    const log: string[] = []
    const { request: plain, ...call } = keyed(2 * MEBIBYTE)
    const retain = () => {
      log.push('held')
      return () => void log.push('given back')
    }
    const cache = {
      counts: { hits: 0, misses: 0, lookupNs: 0, insertionNs: 0 },
      isShared: false,
      lookup: () => void log.push('looked up'),
      insert: () => {},
      close: async () => {},
    }
    const run = () =>
      executeCached({
        ...call,
        request: { ...plain, retain },
        cache,
        sink: { send: () => {}, fail: () => {} },
        observer: undefined,
        clock: { now: () => 0 },
        signal: abort.signal,
        execute: () => void log.push('executed'),
      })
    await run()
    t.same(log.splice(0), ['held', 'looked up', 'executed', 'given back'])
    const left = run()
    abort.abort()
    await left
    t.same(log, ['held', 'executed', 'given back'])
  },
)
