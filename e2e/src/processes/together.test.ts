// needs: nats
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { openClient } from '../grpc-client.ts'
import { scrape } from '../metrics.ts'
import { fp32 } from '../tensors.ts'
import { describe } from './asking.ts'
import { type Harness, type Member, SKIP, startHarness } from './harness.ts'
import { startLoad } from './load.ts'
import type { Question } from './questions.ts'
import { successes, untilReady } from './seen.ts'

t.setTimeout(300_000)

const FIRST = 'identity_fp32_nonbatch'
const SECOND = 'versioned'
const PAIR = 'pair'

const rules = '{ mayRunTwice: true, retry: { maxRetries: 3 } }'
const step = (name: string, model: string, from: string) =>
  `{ name: ${name}, modelRef: { name: ${model} }, inputMap: { x: ${from} }, ...RULES }`
const MANIFEST = `
apiVersion: tutti.dev/v1alpha1
kind: Ensemble
metadata: { name: ${PAIR} }
spec:
  inputs: [{ name: x, datatype: FP32, shape: [-1] }]
  outputs: [{ name: sum, from: second.y }]
  steps:
    - ${step('first', FIRST, 'x')}
    - ${step('second', SECOND, 'first.y')}
`.replaceAll('...RULES', rules.slice(2, -2))

/** The second model adds three. */
function question(count: number): Question {
  const x = Float32Array.from({ length: count }, (_, i) => (i * 31) % 977)
  return {
    request: { modelName: PAIR, inputs: [fp32('x', x, [count])] },
    output: 'sum',
    expected: fp32(
      'y',
      x.map((value) => value + 3),
    ).data,
  }
}

async function openPair(t: Test): Promise<{ readonly harness: Harness; readonly router: Member }> {
  const file = join(t.testdir(), 'pair.yaml')
  await writeFile(file, MANIFEST)
  const harness = await startHarness(t)
  return { harness, router: await harness.router({ flags: [`-f=${file}`] }) }
}

const BOTH = [FIRST, SECOND]
const sentBytes = async (member: Member): Promise<number> =>
  (await scrape(member)).sum('tutti_nats_sent_bytes_total')

await t.test('tensors between steps of one process do not leave it', { skip: SKIP }, async (t) => {
  const { harness, router } = await openPair(t)
  if (harness.direct !== undefined) return t.comment('the broker carries no tensors')
  const together = await harness.step({ models: BOTH })
  await untilReady([router], [PAIR])
  const client = openClient(t, router)
  const bytes = 2 ** 20
  const { request, expected } = question(bytes / 4)
  const sent = async (): Promise<number> => {
    const before = await sentBytes(router)
    const { outputs } = await client.infer(request)
    t.equal(Buffer.compare(outputs[0]?.data ?? Buffer.alloc(0), expected), 0)
    return (await sentBytes(router)) - before
  }
  await sent()
  const inside = await sent()
  t.ok(inside > bytes && inside < 1.5 * bytes, `${inside} bytes went to the step`)
  const metrics = await scrape(router)
  for (const [name, model] of [
    ['first', FIRST],
    ['second', SECOND],
  ] as const) {
    const labels = { ensemble: PAIR, step: name, model }
    t.equal(metrics.value('tutti_step_compute_seconds_count', labels), 2, 'counted at the router')
  }
  await harness.step({ models: [FIRST] })
  await harness.step({ models: [SECOND] })
  await until('they are known', async () => (await scrape(router)).sum('tutti_members') >= 3)
  together.process.kill('SIGTERM')
  await together.process.exited
  const outside = await sent()
  t.ok(outside > 2 * bytes, `${outside} bytes went to the steps`)
})

await t.test('models move out and in again under load', { skip: SKIP }, async (t) => {
  const { harness, router } = await openPair(t)
  const open = (models: readonly string[]): Promise<Member> => harness.step({ models })
  const works = async (member: Member, [model = '']: readonly string[]): Promise<void> => {
    const client = openClient(t, member)
    await until(`${member.id} has work`, async () => (await successes(client, model)) > 0)
  }
  const stop = async (member: Member): Promise<void> => {
    member.process.kill('SIGTERM')
    t.same(await member.process.exited, { code: 0, signal: null })
  }
  const together = await open(BOTH)
  await untilReady([router], [PAIR])
  const load = startLoad(t, { targets: [router], clients: 4, question: () => question(1000) })
  await load.more(20)
  const first = await open([FIRST])
  const second = await open([SECOND])
  await Promise.all([works(first, [FIRST]), works(second, [SECOND])])
  await stop(together)
  await load.more(20)
  const again = await open(BOTH)
  await works(again, BOTH)
  await stop(first)
  await stop(second)
  await load.more(20)
  const next = await open(BOTH)
  await works(next, BOTH)
  await stop(again)
  await load.more(20)
  const outcomes = await load.stop()
  t.same(outcomes.filter(({ kind }) => kind !== 'right').map(describe), [])
})

await t.test('a killed process costs no request that may run twice', { skip: SKIP }, async (t) => {
  const { harness, router } = await openPair(t)
  const first = await harness.step({ models: BOTH })
  await harness.step({ models: BOTH })
  await untilReady([router], [PAIR])
  const load = startLoad(t, { targets: [router], clients: 8, question: () => question(100_000) })
  await load.more(40)
  first.process.kill('SIGKILL')
  await load.more(80)
  const outcomes = await load.stop()
  t.same(outcomes.filter(({ kind }) => kind !== 'right').map(describe), [])
})
