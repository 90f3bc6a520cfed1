// needs: ocr
import { readFile, writeFile } from 'node:fs/promises'
import { testFactor } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { ROOT, serve, type Target } from '../serving.ts'
import {
  executionsOf,
  placeNetworks,
  READ_TEXT_MANIFEST,
  readTexts,
  renderPictures,
  runOcrScript,
  WITHOUT_OCR,
} from './read-text.ts'

t.setTimeout(120_000 + testFactor() * 120_000)

const SAMPLES = `${ROOT}model_repository/.samples`
/** Pictures that are compared. */
const PICTURES = 12 * testFactor()

const withoutSpaces = (texts: readonly string[]): string[] =>
  texts.map((text) => text.replaceAll(' ', '')).toSorted()

await t.test(
  'the example reads what rapidocr-onnxruntime reads',
  { skip: WITHOUT_OCR },
  async (t) => {
    const { flag } = await placeNetworks(t)
    const server = await serve(t, { repositories: [], flags: [`-f=${READ_TEXT_MANIFEST}`, flag] })
    const { folder, files } = await renderPictures(t, PICTURES)
    const wanted: Readonly<Record<string, readonly string[]>> = JSON.parse(
      await runOcrScript('rapidocr_texts.py', folder),
    )
    // The request of examples/read-text/README.md, and the lines that it prints.
    const example = await readFile(READ_TEXT_MANIFEST.replace('manifest.yaml', 'input.png'))
    const said = await readFile(READ_TEXT_MANIFEST.replace('manifest.yaml', 'expected.txt'), 'utf8')
    t.equal(
      `${(await readTexts(server, example)).join('\n')}\n`,
      said,
      'the picture of the example',
    )
    const words = (await readFile(`${SAMPLES}/words.txt`, 'utf8')).trim().split('\n')
    const sample = await readTexts(server, await readFile(`${SAMPLES}/words.jpg`))
    t.same(sample.toSorted(), words.toSorted(), 'the sample of the repository')
    const counts = { lines: 0, same: 0, sameLetters: 0, pictures: 0, samePictures: 0 }
    for (const [name, file] of files) {
      const [ours, theirs] = [await readTexts(server, file), wanted[name] ?? []]
      counts.pictures += 1
      counts.samePictures += ours.join('\n') === theirs.join('\n') ? 1 : 0
      counts.lines += theirs.length
      counts.same += theirs.filter((text) => ours.includes(text)).length
      const letters = withoutSpaces(ours)
      counts.sameLetters += withoutSpaces(theirs).filter((text) => letters.includes(text)).length
    }
    const text = JSON.stringify(counts)
    t.comment(text)
    t.ok(counts.lines >= 3 * PICTURES, `there are texts: ${text}`)
    t.ok(counts.sameLetters >= 0.99 * counts.lines, `letters are the same: ${text}`)
    t.ok(counts.same >= 0.98 * counts.lines, `texts are the same: ${text}`)
    t.ok(counts.samePictures >= 0.9 * counts.pictures, `pictures read the same in order: ${text}`)
  },
)

/** The same with an Ensemble for each line, which gets batches as the network does. */
const CHAIN = `---
apiVersion: tutti.dev/v1alpha1
kind: Ensemble
metadata: { name: read-line }
spec:
  modelName: read_line
  maxBatchSize: 32
  inputs: [{ name: x, datatype: FP32, shape: [3, 48, -1] }]
  outputs: [{ name: softmax_11.tmp_0, from: softmax_11.tmp_0 }]
  steps:
    - { name: same, builtin: { name: clip, min: -1, max: 1 }, inputMap: { input: x } }
    - name: recognise
      modelRef: { name: line_reader }
      inputMap: { x: same.output }
      outputMap: { softmax_11.tmp_0: softmax_11.tmp_0 }
`

const VARIANTS: Readonly<Record<string, (manifest: string) => string>> = {
  'a network': (manifest) => manifest,
  'a chain': (manifest) => {
    const model = 'modelRef: { name: line_reader }\n      forEach:'
    const chain = 'ensembleRef: { name: read_line }\n      forEach:'
    return `${manifest.replace(model, chain)}${CHAIN}`
  },
}

for (const [variant, change] of Object.entries(VARIANTS)) {
  const text = `none, one, 64 and too many lines for ${variant}`
  await t.test(text, { skip: WITHOUT_OCR }, async (t) => {
    const manifest = await readFile(READ_TEXT_MANIFEST, 'utf8')
    const server = await serveChanged(
      t,
      change(manifest.replaceAll('maxItems: 1000', 'maxItems: 64')),
    )
    for (const lines of [0, 1, 32, 33, 64]) {
      const [file = Buffer.alloc(0)] = (await renderPictures(t, 1, lines)).files.values()
      const before = await countExecutions(server)
      t.equal((await readTexts(server, file)).length, lines, `${lines} lines are read`)
      const after = await countExecutions(server)
      const grown = after.map((count, i) => count - (before[i] ?? 0))
      const calls = Math.ceil(lines / 32)
      t.same(grown, [calls, lines, calls, lines], `${lines} lines are ${calls} executions`)
    }
    const [file = Buffer.alloc(0)] = (await renderPictures(t, 1, 65)).files.values()
    await t.rejects(readTexts(server, file), {
      message: /step 'direct': got 65 items, want at most 64 \(maxItems\)/,
    })
  })
}

async function serveChanged(t: Test, manifest: string): Promise<Target> {
  const { folder, flag } = await placeNetworks(t)
  await writeFile(`${folder}/manifest.yaml`, manifest)
  return serve(t, { repositories: [], flags: [`-f=${folder}/manifest.yaml`, flag] })
}

/** Executions and items of both networks that run for each line. */
async function countExecutions(server: Target): Promise<number[]> {
  const names = ['line_direction', 'line_reader']
  const all = await Promise.all(names.map((name) => executionsOf(server, name)))
  return all.flatMap(({ executions, rows }) => [executions, rows])
}
