// needs: chromium
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { LOOPBACK, runTutti, startTutti } from '../serving.ts'
import { BASIC, tempFolder } from '../temp-repository.ts'
import { axe, NO_BROWSER, openBrowser, openPage } from './browser.ts'
import { openModel, send } from './try-form.ts'

t.setTimeout(180_000)

const model = (name: string) => `apiVersion: tutti.dev/v1alpha1
kind: Model
metadata: { name: ${name.replaceAll('_', '-')} }
spec:
  modelName: ${name}
  modelFormat: { name: onnx }
  storageUri: pvc://models/${name}
`
const GRAPH = `apiVersion: tutti.dev/v1alpha1
kind: Ensemble
metadata: { name: graph }
spec:
  inputs: [{ name: ROWS, datatype: FP32, shape: [-1, 16] }, { name: x, datatype: FP32, shape: [-1] }]
  steps:
    - name: each
      modelRef: { name: add_one_batch }
      forEach: { items: { X: ROWS }, maxItems: 100 }
    - name: large
      modelRef: { name: identity_fp32_nonbatch }
      inputMap: { x: x }
      when: '"large" in parameters'
    - name: frail
      modelRef: { name: fail_at_run }
      inputMap: { x: x }
      onError: { fallback: { modelRef: { name: identity_fp32_nonbatch } } }
    - name: last
      modelRef: { name: identity_fp32_nonbatch }
      firstOf: { x: [large.y, frail.y] }
  outputs:
    - { name: ROWS_OUT, from: each.Y, datatype: FP32, shape: [-1, 16] }
    - { name: LAST, from: last.y, datatype: FP32, shape: [-1] }
`
/** Twenty rows, of which the model takes eight at a time. */
const ROWS = JSON.stringify(Array<number[]>(20).fill(Array<number>(16).fill(1)))
const FILE = [...['add_one_batch', 'identity_fp32_nonbatch', 'fail_at_run'].map(model), GRAPH].join(
  '---\n',
)

await t.test('a trace shows skips, items and fallbacks', { skip: NO_BROWSER }, async (t) => {
  const file = join(await tempFolder(t), 'graph.yaml')
  await writeFile(file, FILE)
  const flags = [`--storage-map=pvc://models=${BASIC}`, '--console-port=0', '--console-infer']
  const { serving, ready } = await startTutti(['serve', `-f=${file}`, ...LOOPBACK, ...flags])
  t.teardown(() => serving.process.stop('SIGKILL'))

  await t.test('on the page', async (t) => {
    const browser = await openBrowser(t)
    const port = Number(ready['consolePort'])
    const { page, complaints } = await openPage(browser, { port })
    await openModel(page, 'graph')
    const [rows, x] = [page.getByLabel('JSON').nth(0), page.getByLabel('JSON').nth(1)]
    await rows.fill(ROWS)
    await x.fill('[1, 2, 3]')
    await send(page)
    const steps = page.getByRole('region', { name: 'Steps of this request' })
    const heads = await steps.locator('tbody th').allInnerTexts()
    t.match(heads.map((head) => head.replaceAll(/\s+/g, ' ').trim()).toSorted(), [
      /^each.* 20 items in 3 calls$/,
      /^frail .*ENGINE_FAILED/,
      /^frail .*fallback identity_fp32_nonbatch$/,
      /^large skipped: "large" in parameters$/,
      /^last/,
      /^request/,
    ])
    const skipped = steps.locator('tbody tr', { hasText: 'skipped' })
    t.equal(await skipped.locator('svg').count(), 0)
    t.same((await skipped.locator('td.number').allInnerTexts()).slice(1), ['–', '–', '–', '–'])
    t.same(await axe(page), [])
    t.same(complaints, [])
  })

  await t.test('on the command line', async (t) => {
    const input = [`-i=ROWS=${ROWS}`, '-i=x=[1,2,3]']
    const told = await runTutti([
      'trace',
      'graph',
      ...input,
      `--url=grpc://127.0.0.1:${serving.grpcPort}`,
    ])
    t.equal(told.code, 0, told.err)
    t.match(told.out, /^ +large +[\d.]+ .s +– +– +– +–\n {6}skipped: "large" in parameters$/m)
    t.match(told.out, /each .*\n {6}20 items in 3 calls$/m)
    t.match(
      told.out,
      /frail .*\n {6}failed: ENGINE_FAILED\n.*frail .*\n {6}fallback identity_fp32_nonbatch$/m,
    )
  })
})
