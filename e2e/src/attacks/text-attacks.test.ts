import { readFileSync } from 'node:fs'
import t from 'tap'
import { withoutMemoryLimits } from '../faults/memory.ts'
import { createMemoryGroup } from '../faults/memory-group.ts'
import { servesRightBytes } from '../hostile.ts'
import { restCall } from '../rest-call.ts'
import { type Serving, serve } from '../serving.ts'
import { copyModels } from '../temp-repository.ts'
import { longParameter } from './text-calls.ts'
import { callOnce } from './whole-calls.ts'

t.setTimeout(300_000)

const MEBIBYTE = 2 ** 20
/** Memory limit of a router's pod. */
const LIMIT_BYTES = 2048 * MEBIBYTE
const MODELS = ['ens_chain', 'add_one_batch']
const FLAGS = ['--model-control-mode=explicit', '--load-model=*']
const INFER = 'inference.GRPCInferenceService/ModelInfer'

await t.test(
  'texts of parameters stay within the memory of a router',
  { skip: withoutMemoryLimits() },
  async (t) => {
    const { within } = createMemoryGroup(t, LIMIT_BYTES)
    const repositories = [await copyModels(t, MODELS)]
    const serving = await serve(t, { repositories, flags: FLAGS, within })
    await servesRightBytes(t, serving)
    const frame = longParameter('no_such_model', 250 * MEBIBYTE)
    const calls = Array.from({ length: 4 }, () =>
      callOnce(serving.grpcPort, { path: INFER, encoding: 'gzip', frame }),
    )
    t.same(await Promise.all(calls), ['8', '8', '8', '8'], 'RESOURCE_EXHAUSTED')
    await servesRightBytes(t, serving)
  },
)

await t.test('a file of a load takes the time that its length explains', async (t) => {
  const serving = await serve(t, { repositories: [await copyModels(t, MODELS)], flags: FLAGS })
  const file = `${'='.repeat(60_000)}A`
  const body = JSON.stringify({ parameters: { config: '{}', 'file:1/f': file } })
  const load = () => restCall(serving.httpPort, 'POST', '/v2/repository/models/m/load', { body })
  await load()
  const before = loopMs(serving)
  t.equal((await load()).status, 400)
  const tookMs = loopMs(serving) - before
  // It took 1,300 ms.
  t.ok(tookMs < 300, `${tookMs} ms of the loop's processor time`)
  await servesRightBytes(t, serving)
})

await t.test('many scrapes at once leave the loop to others', async (t) => {
  const serving = await serve(t, { repositories: [await copyModels(t, MODELS)], flags: FLAGS })
  const scrape = async (times: number): Promise<void> => {
    for (let i = 0; i < times; i += 1) await restCall(serving.metricsPort, 'GET', '/metrics')
  }
  await scrape(20)
  const each = async (connections: number, times: number): Promise<number> => {
    const before = loopMs(serving)
    await Promise.all(Array.from({ length: connections }, () => scrape(times)))
    return (loopMs(serving) - before) / (connections * times)
  }
  const [alone, together] = [await each(1, 60), await each(30, 20)]
  t.ok(together < alone, `${together} ms for each of many at once, ${alone} ms for one alone`)
})

/** Milliseconds of processor time of the thread that serves. */
function loopMs({ process: { pid } }: Serving): number {
  const [ranNs = '0'] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')
  return Number(ranNs) / 1e6
}
