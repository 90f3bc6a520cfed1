import { readFile } from 'node:fs/promises'
import { InferenceClient } from '@tutti/protocol/client'
import t, { type Test } from 'tap'
import { FACE_MODELS, OCR } from '../seed-systems.ts'
import { ROOT, runProgram, serve } from '../serving.ts'
import { copyModels } from '../temp-repository.ts'
import { pidsOf } from './container-processes.ts'
import { createNamespace, kubectl, withoutTuttiImages } from './kubectl.ts'
import { install, removeAfter, SYSTEM } from './release.ts'
import { openWorkloads } from './workloads.ts'

t.setTimeout(1_200_000)

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

/** Applies `examples/face` in a namespace, and waits until it is served. */
async function applyFace(t: Test, namespace: string, spec: object = {}): Promise<void> {
  await createNamespace(t, namespace)
  const inSpace = `--namespace=${namespace}`
  await kubectl('apply', `--filename=${ROOT}examples/face/manifest.yaml`, inSpace)
  await openWorkloads(namespace).change('ensemble', 'face', spec)
  const ready = ['wait', '--for=condition=Ready', '--timeout=300s', '--all', inSpace]
  await kubectl(...ready, 'models,ensembles')
}

/** @param namespace - whose pods all serve the ensemble. */
async function openPods(t: Test, name: string, namespace: string): Promise<Way> {
  const pods = await openWorkloads(namespace).pods('app.kubernetes.io/managed-by=tutti-operator')
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

/** All bytes that clients have sent to the broker since it began: its own page says it, on the loopback of its pod. */
async function bytesIntoNats(): Promise<number> {
  const [pod] = await openWorkloads(SYSTEM).pods('app.kubernetes.io/component=nats')
  if (pod === undefined) throw new Error('there is no pod of NATS')
  const [pid] = await pidsOf(pod, 'nats')
  const read = `fetch('http://127.0.0.1:8222/varz').then((r) => r.text()).then(console.log)`
  const args = [`--target=${pid}`, '--net', process.execPath, '--eval', read]
  const { code, out, err } = await runProgram('nsenter', args)
  if (code !== 0) throw new Error(err)
  return Number(JSON.parse(out).in_bytes)
}

async function residentBytes(pids: readonly number[]): Promise<number> {
  const texts = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/status`, 'utf8')))
  const sizes = texts.map((text) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) * 1024)
  return sizes.reduce((sum, size) => sum + size, 0)
}

await t.test('the face ensemble in three ways', { skip: withoutTuttiImages() }, async (t) => {
  removeAfter(t)
  await install()
  await applyFace(t, 'apart')
  await applyFace(t, 'together', { placement: 'Together' })
  await openWorkloads('together').settled('tutti.dev/ensemble=face', 1)
  await openWorkloads('together').settled('tutti.dev/model', 0)
  const repository = await copyModels(t, FACE_MODELS, { from: OCR })
  const { process: server, grpcPort } = await serve(t, { repositories: [repository] })
  const ways = [
    { name: 'one process', ask: askerOf(t, `127.0.0.1:${grpcPort}`), pods: 0, pids: [server.pid] },
    await openPods(t, 'a pod for each Model', 'apart'),
    await openPods(t, 'together', 'together'),
  ] as const
  const [one, , together] = ways

  await t.test('the same bytes', async (t) => {
    const wanted = Buffer.from(await one.ask())
    for (const { name, ask } of ways) t.ok(wanted.equals(await ask()), name)
  })

  await t.test('no tensor between steps that are together goes over NATS', async (t) => {
    const bytes = await bytesOverNats(together)
    t.ok(bytes < 2 * BYTES + BESIDE_BYTES, `${bytes} bytes of a request`)
  })

  for (let i = 0; i < WARM_UPS; i++) for (const { ask } of ways) await ask()
  const p50s = await oneByOne(ways)
  const rates = await manyAtOnce(ways)
  for (const [i, way] of ways.entries()) {
    const figures = [
      `${way.pods} pods`,
      `${Math.round((await residentBytes(way.pids)) / MIB)} MiB`,
      `p50 ${p50s[i]?.toFixed(1)} ms, ${over(p50s, i)} of one process`,
      `${rates[i]?.toFixed(2)} requests/s with ${IN_FLIGHT} in flight, ${over(rates, i)}`,
      `${((await bytesOverNats(way)) / 1e6).toFixed(2)} MB of a request over NATS`,
    ]
    t.comment(`${way.name}: ${figures.join('; ')}`)
  }
})
