import { readFile } from 'node:fs/promises'
import { InferenceClient } from '@tutti/protocol/client'
import type { Test } from 'tap'
import { ROOT, type Serving } from '../serving.ts'
import { pidsOf } from './container-processes.ts'
import { createNamespace, kubectl } from './kubectl.ts'
import { SYSTEM } from './release.ts'
import { openWorkloads } from './workloads.ts'

const SPACE = 'together'
const SIDE = 512
const BYTES = SIDE * SIDE * 3
/** Headers of messages, heartbeats, and what routers and pods tell one another beside the tensors of a request. */
const BESIDE_BYTES = 200_000
const WARM_UPS = 15
const ONE_BY_ONE = 20
const ROUNDS = 3
const IN_FLIGHT = 8
const REQUESTS_PER_ROUND = 24
const MIB = 1024 * 1024

const REQUEST = {
  modelName: 'ens_face_restoration_v2.1',
  inputs: [
    {
      name: 'raw_image',
      datatype: 'UINT8' as const,
      shape: [SIDE, SIDE, 3],
      data: Uint8Array.from({ length: BYTES }, (_, i) => (i * 2_654_435_761) >>> 24),
    },
  ],
}

/** One way in which the face ensemble is served, with the processes that serve it. */
interface Way {
  readonly name: string
  readonly ask: () => Promise<Uint8Array>
  readonly pods: number
  readonly pids: readonly number[]
}

/**
 * The face ensemble in one process, with a pod for each Model, and with its Models together in a pod: the same bytes, and in the last
 * one no tensor between steps goes over NATS. What the three take is told in comments.
 *
 * @param apart - namespace that has `examples/face/manifest.yaml`.
 */
export async function showPlacements(
  t: Test,
  { serving, apart }: { readonly serving: Serving; readonly apart: string },
): Promise<void> {
  await applyTogether(t)
  const pid = serving.process.pid
  const one = { name: 'tutti serve', ask: askerOf(t, `127.0.0.1:${serving.grpcPort}`) }
  const ways = [
    { ...one, pods: 0, pids: [pid] },
    await openPods(t, 'a pod for each Model', apart),
    await openPods(t, 'together', SPACE),
  ] as const
  const answers = await Promise.all(ways.map(({ ask }) => ask()))
  for (const [i, { name }] of ways.entries()) {
    t.ok(Buffer.from(answers[i] ?? []).equals(Buffer.from(answers[0] ?? [])), name)
  }
  for (let i = 0; i < WARM_UPS; i++) for (const { ask } of ways) await ask()
  const p50s = await oneByOne(ways)
  const rates = await manyAtOnce(ways)
  for (const [i, way] of ways.entries()) {
    const overNats = await bytesOverNats(way)
    const most = { 'tutti serve': 0, together: 2 * BYTES }[way.name]
    if (most !== undefined) t.ok(overNats < most + BESIDE_BYTES, `${way.name}: ${overNats} bytes`)
    const figures = [
      `${way.pods} pods`,
      `${Math.round((await residentBytes(way.pids)) / MIB)} MiB`,
      `p50 ${p50s[i]?.toFixed(1)} ms, ${over(p50s, i)} of one process`,
      `${rates[i]?.toFixed(2)} requests/s with ${IN_FLIGHT} in flight, ${over(rates, i)}`,
      `${(overNats / 1e6).toFixed(2)} MB of a request over NATS`,
    ]
    t.comment(`${way.name}: ${figures.join('; ')}`)
  }
}

async function applyTogether(t: Test): Promise<void> {
  await createNamespace(t, SPACE)
  const inSpace = `--namespace=${SPACE}`
  await kubectl('apply', `--filename=${ROOT}examples/face/manifest.yaml`, inSpace)
  await openWorkloads(SPACE).change('ensemble', 'face', { placement: 'Together' })
  const ready = ['wait', '--for=condition=Ready', '--timeout=300s', '--all', inSpace]
  await kubectl(...ready, 'models,ensembles')
  await openWorkloads(SPACE).settled('tutti.dev/ensemble=face', 1)
  await openWorkloads(SPACE).settled('tutti.dev/model', 0)
}

/** @param namespace - whose pods all serve the ensemble. */
async function openPods(t: Test, name: string, namespace: string): Promise<Way> {
  const pods = await openWorkloads(namespace).pods('app.kubernetes.io/part-of=tutti')
  const isRouter = ({ metadata }: (typeof pods)[number]): boolean =>
    metadata.labels['app.kubernetes.io/component'] === 'router'
  const router = pods.find(isRouter)
  const pids = (await Promise.all(pods.map((pod) => pidsOf(pod, 'main')))).flat()
  return { name, ask: askerOf(t, `${router?.['status'].podIP}:8001`), pods: pods.length, pids }
}

function askerOf(t: Test, address: string): Way['ask'] {
  const client = new InferenceClient({ address })
  t.teardown(() => client.close())
  return async () => {
    const [output] = (await client.infer(REQUEST)).outputs
    if (output?.data.byteLength === BYTES) return output.data
    throw new Error(`${address} gave ${output?.data.byteLength} bytes, want ${BYTES}`)
  }
}

async function millisecondsOf(act: () => Promise<unknown>): Promise<number> {
  const before = performance.now()
  await act()
  return performance.now() - before
}

/** All in turn. @returns the median time of each, in ms. */
function oneByOne(ways: readonly Way[]): Promise<readonly number[]> {
  return inTurn(ways, ONE_BY_ONE, async ({ ask }) => await millisecondsOf(ask))
}

/** All in turn. @returns the median of the requests/s of each. */
function manyAtOnce(ways: readonly Way[]): Promise<readonly number[]> {
  return inTurn(ways, ROUNDS, async ({ ask }) => {
    let left = REQUESTS_PER_ROUND
    const client = async (): Promise<void> => {
      while (left-- > 0) await ask()
    }
    const ms = await millisecondsOf(() => Promise.all(Array.from({ length: IN_FLIGHT }, client)))
    return (REQUESTS_PER_ROUND / ms) * 1000
  })
}

async function inTurn(
  ways: readonly Way[],
  rounds: number,
  measure: (way: Way) => Promise<number>,
): Promise<readonly number[]> {
  const taken: number[][] = ways.map(() => [])
  for (let i = 0; i < rounds; i++) {
    for (const [at, way] of ways.entries()) taken[at]?.push(await measure(way))
  }
  return taken.map((values) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN)
}

const over = (figures: readonly number[], i: number): string =>
  ((figures[i] ?? Number.NaN) / (figures[0] ?? Number.NaN)).toFixed(3)

/** All that a request has the broker take in, with what comes beside it meanwhile. */
async function bytesOverNats({ ask }: Way): Promise<number> {
  const before = await bytesIntoNats()
  for (let i = 0; i < ONE_BY_ONE; i++) await ask()
  return ((await bytesIntoNats()) - before) / ONE_BY_ONE
}

/** All bytes that clients have sent to the broker since it began. */
async function bytesIntoNats(): Promise<number> {
  const read = ['wget', '-q', '-O', '-', 'http://127.0.0.1:8222/varz']
  const said = await kubectl(
    'exec',
    'statefulset/tutti-nats',
    `--namespace=${SYSTEM}`,
    '--',
    ...read,
  )
  return Number(JSON.parse(said).in_bytes)
}

async function residentBytes(pids: readonly number[]): Promise<number> {
  const texts = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/status`, 'utf8')))
  const sizes = texts.map((text) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) * 1024)
  return sizes.reduce((sum, size) => sum + size, 0)
}
