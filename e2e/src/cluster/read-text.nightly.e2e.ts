// needs: ocr
import { readFile } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { scrape } from '../metrics.ts'
import {
  EXAMPLE,
  fileTensor,
  placeNetworks,
  READ_TEXT_MANIFEST,
  readTexts,
  WITHOUT_OCR,
} from '../ocr/read-text.ts'
import { restInfer, restOutputs } from '../rest-infer.ts'
import { serve } from '../serving.ts'
import { killAndRestart } from './container-processes.ts'
import { createEdge, exposedBy } from './edge.ts'
import { askGrpc, askRest } from './edge-client.ts'
import { createNamespace, kubectl, withoutTuttiImages } from './kubectl.ts'
import { Load, showUnderLoad } from './load.ts'
import { install, removeAfter } from './release.ts'
import { openWorkloads } from './workloads.ts'

t.setTimeout(1_200_000)

const SPACE = 'read-text'
const IN_SPACE = `--namespace=${SPACE}`
const HOST = 'read-text.test'
const OUTPUTS = ['text', 'score', 'box']
const TWO = { scaling: { minReplicas: 2, maxReplicas: 2 } }
const ROUTERS = 'app.kubernetes.io/component=router'
const METRICS_PORT = 8002
/** Whose pods are killed: those of two networks, and those of built-in steps. */
const KILLED = {
  'line-finder': 'tutti.dev/model=line-finder',
  'line-reader': 'tutti.dev/model=line-reader',
  'built-in steps': 'tutti.dev/builtins=true',
} as const

/** Asks the example in one process, with the networks of the tests. @returns its lines, and the bytes of its outputs. */
async function answerInOneProcess(t: Test, picture: Buffer) {
  const { flag } = await placeNetworks(t)
  const server = await serve(t, { repositories: [], flags: [`-f=${READ_TEXT_MANIFEST}`, flag] })
  const answer = await restInfer(server, 'read_text', [fileTensor(picture)])
  const found = restOutputs(answer)
  const lines = await readTexts(server, picture)
  await server.process.stop()
  return { lines, bytes: Buffer.concat(OUTPUTS.map((name) => found.get(name) ?? Buffer.alloc(0))) }
}

await t.test('read-text', { skip: withoutTuttiImages() || WITHOUT_OCR }, async (t) => {
  const picture = await readFile(`${EXAMPLE}/input.png`)
  const { lines, bytes } = await answerInOneProcess(t, picture)
  t.equal(`${lines.join('\n')}\n`, await readFile(`${EXAMPLE}/expected.txt`, 'utf8'))

  const pods = openWorkloads(SPACE)
  const edge = await createEdge(t, [HOST])
  removeAfter(t)
  await createNamespace(t, SPACE)
  await edge.createSecret(SPACE)
  await install()
  await kubectl('apply', `--filename=${READ_TEXT_MANIFEST}`, IN_SPACE)
  await pods.change('ensemble', 'read-text', exposedBy(HOST))
  await kubectl(
    'wait',
    'models,ensembles',
    '--all',
    '--for=condition=Ready',
    '--timeout=300s',
    IN_SPACE,
  )
  const question = {
    ca: await readFile(edge.caFile),
    host: HOST,
    model: 'read_text',
    inputs: [fileTensor(picture)],
    outputs: OUTPUTS,
  }
  const load = new Load(t, question, { grpc: 2, rest: 1, answer: bytes, moreAnswers: 2 })
  await load.begin()

  await t.test('the manifest as it stands gives the bytes of one process', async (t) => {
    for (const ask of [askGrpc(t, question), askRest(t, question)]) {
      const outcome = await ask()
      t.ok('bytes' in outcome && bytes.equals(outcome.bytes), JSON.stringify(outcome))
    }
  })

  const show = showUnderLoad(t, load)

  await show('two pods of each that is killed', async () => {
    await pods.change('model', 'line-finder', TWO)
    await pods.change('model', 'line-reader', TWO)
    await pods.change('routers.tutti.dev', 'default', { builtins: TWO })
    for (const selector of Object.values(KILLED)) await pods.settled(selector, 2)
  })

  /** Counts the attempts that were made again. */
  const countRetries = async (): Promise<number> => {
    let count = 0
    for (const { status } of await pods.pods(ROUTERS)) {
      const metrics = await scrape({ address: status.podIP, metricsPort: METRICS_PORT })
      count += metrics.sum('tutti_step_retries_total')
    }
    return count
  }

  for (const [name, selector] of Object.entries(KILLED)) {
    await show(`each pod of ${name} is killed, until that met a request`, async (t) => {
      const before = await countRetries()
      do {
        for (const pod of await pods.pods(selector)) {
          await killAndRestart(pod)
          await pods.settled(selector, 2)
        }
      } while (!load.hasProblems && (await countRetries()) === before)
      t.comment(`${(await countRetries()) - before} attempts again`)
    })
  }

  await load.stop()
})
