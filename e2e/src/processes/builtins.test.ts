// needs: nats
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import t from 'tap'
import { restInfer, restOutputs } from '../rest-infer.ts'
import { ROOT, serve, type Target } from '../serving.ts'
import { BASIC } from '../temp-repository.ts'
import { SKIP, startHarness } from './harness.ts'
import { isOk, untilReady } from './seen.ts'

t.setTimeout(300_000)

const MANIFESTS = `
apiVersion: tutti.dev/v1alpha1
kind: Model
metadata: { name: labels }
spec: { modelFormat: { name: onnx }, storageUri: pvc://fixtures/labels }
---
apiVersion: tutti.dev/v1alpha1
kind: Ensemble
metadata: { name: tiles }
spec:
  inputs: [{ name: picture, datatype: UINT8, shape: [-1] }, { name: boxes, datatype: FP32, shape: [-1, 4] }]
  outputs:
    - { name: tiles, from: tile.image }
    - { name: sizes, from: tile.lengths }
    - { name: scores, from: score.CLASSES }
    - { name: label, from: label.labels }
    - { name: bright, from: bright.output, optional: true }
  steps:
    - { name: decode, builtin: { name: imageDecode }, inputMap: { data: picture } }
    - name: tile
      builtin: { name: crop }
      inputMap: { image: decode.image }
      forEach: { items: { box: boxes }, maxItems: 16, maxParallel: 16, gather: Concat }
    - { name: float, builtin: { name: cast, datatype: FP32 }, inputMap: { input: decode.image } }
    - { name: mean, builtin: { name: reduce, op: mean, axes: [0, 1] }, inputMap: { input: float.output } }
    - { name: rows, builtin: { name: expandDims, axis: 0 }, inputMap: { input: mean.output } }
    - { name: score, modelRef: { name: labels }, inputMap: { SCORES: rows.output } }
    - { name: best, builtin: { name: argmax, axis: 1 }, inputMap: { input: score.CLASSES } }
    - name: label
      builtin: { name: labelLookup, model: labels, file: labels.txt }
      inputMap: { indexes: best.output }
    - name: bright
      builtin: { name: clip, min: 250 }
      inputMap: { input: mean.output }
      when: 'tensors["mean.output"][0] > 200.0'
`

const PICTURE = await readFile(`${ROOT}docs/images/face-before-after.jpg`)

function tensors() {
  // So many that a killed step has more of them than a budget of retries would allow.
  const boxes = new Float32Array(
    Array.from({ length: 16 }, (_, i) => [5 * i, i, 5 * i + 40, i + 30 + (i % 3)]).flat(),
  )
  return [
    { name: 'picture', datatype: 'UINT8', shape: [PICTURE.length], data: PICTURE },
    { name: 'boxes', datatype: 'FP32', shape: [16, 4], data: Buffer.from(boxes.buffer) },
  ] as const
}

async function answerOf(target: Target): Promise<Readonly<Record<string, string>>> {
  const outputs = restOutputs(await restInfer(target, 'tiles', [...tensors()]))
  return Object.fromEntries([...outputs].map(([name, data]) => [name, data.toString('base64')]))
}

await t.test('built-ins in steps of their own', { skip: SKIP }, async (t) => {
  const file = join(t.testdir(), 'tiles.yaml')
  await writeFile(file, MANIFESTS)
  const map = `--storage-map=pvc://fixtures=${BASIC}`
  const whole = await serve(t, { repositories: [], flags: [`-f=${file}`, map] })
  const wanted = await answerOf(whole)
  t.same(Object.keys(wanted), ['tiles', 'sizes', 'scores', 'label'], 'and one was skipped')
  const harness = await startHarness(t)
  const builtins = () => harness.step({ repositories: [], flags: ['--builtins'] })
  const [router, models] = await Promise.all([
    harness.router({ flags: [`-f=${file}`, '--strict-readiness=false'] }),
    harness.step({ models: ['labels'] }),
  ])
  const ready = `http://127.0.0.1:${router.httpPort}/v2/models/tiles/ready`

  await t.test('without one the ensemble says what it lacks', async (t) => {
    await untilReady([router], ['labels'])
    t.equal(await isOk(ready), false)
    const { status, body } = await restInfer(router, 'tiles', [...tensors()])
    t.equal(status, 503)
    t.match(
      body.toString(),
      /in ensemble 'tiles', no replica runs built-ins \(tutti step --builtins\)/,
    )
  })

  const first = await builtins()
  await untilReady([router], ['tiles'])

  await t.test('answers have the bytes of one process', async (t) => {
    t.same(await answerOf(router), wanted)
  })

  await t.test(
    'a killed one costs no request: what it executed runs again at the other one',
    async (t) => {
      const second = await builtins()
      await until('both are known', () => harness.watch.latest(second.id))
      let right = 0
      const failed: string[] = []
      const isOver = { now: false }
      const client = async (): Promise<void> => {
        while (!isOver.now) {
          try {
            const got = await answerOf(router)
            if (JSON.stringify(got) === JSON.stringify(wanted)) right += 1
            else failed.push('other bytes')
          } catch (error) {
            failed.push(String(error))
          }
        }
      }
      const clients = Array.from({ length: 4 }, client)
      const more = async (count: number): Promise<void> => {
        const before = right
        await until('further answers', () => right >= before + count)
      }
      await more(20)
      first.process.kill('SIGKILL')
      await more(40)
      isOver.now = true
      await Promise.all(clients)
      t.same(failed, [])
    },
  )

  await t.test('files are those of the model: its step runs what reads them', async (t) => {
    models.process.kill('SIGKILL')
    await until('it is gone', async () => !(await isOk(ready)))
    t.match(await restInfer(router, 'tiles', [...tensors()]), { status: 503 })
  })
})
