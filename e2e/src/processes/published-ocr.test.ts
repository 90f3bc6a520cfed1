// needs: nats, python
import { copyFile, cp, mkdir, readdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { OCR, OCR_MODELS, SAMPLES } from '../seed-systems.ts'
import { parseLine, serve, type Target } from '../serving.ts'
import { tempFolder } from '../temp-repository.ts'
import { PYTHON, runTritonChecks } from '../triton-client.ts'
import { SKIP, startHarness } from './harness.ts'
import { untilReady } from './seen.ts'

t.setTimeout(600_000)

const COPY = process.env['TUTTI_PUBLISHED_OCR']
/** A Python that has what the published models import. */
const MODELS_PYTHON = process.env['TUTTI_PUBLISHED_OCR_PYTHON'] ?? 'python3'
const FLAGS = [`--backend-config=python,interpreter=${MODELS_PYTHON}`]
const NETWORKS = ['text_detection', 'text_recognition']
const PYTHON_MODELS = OCR_MODELS.filter(
  (model) => !NETWORKS.includes(model) && model !== 'ensemble_model',
)

function whyNot(): string | boolean {
  if (COPY === undefined) return 'TUTTI_PUBLISHED_OCR names no copy of the published OCR repository'
  return PYTHON === undefined && 'TUTTI_TEST_PYTHON is not set'
}

/** The copy as its README makes it: it comes without networks and empty folders. Networks that it lacks are ours. */
async function makeRepository(t: Test, copy: string): Promise<string> {
  const folder = await tempFolder(t)
  await cp(join(copy, 'model_repository'), folder, { recursive: true })
  for (const model of ['ensemble_model', ...NETWORKS]) {
    await mkdir(join(folder, model, '1'), { recursive: true })
  }
  for (const model of NETWORKS) {
    const file = join(model, '1', 'model.onnx')
    const isThere = await stat(join(folder, file)).catch(() => undefined)
    if (isThere === undefined) await copyFile(join(OCR, file), join(folder, file))
  }
  return folder
}

await t.test('the published OCR repository and its client', { skip: whyNot() }, async (t) => {
  const copy = resolve(COPY ?? '')
  const repository = await makeRepository(t, copy)
  const repositories = [repository]
  const files = await readdir(repository, { recursive: true })
  const check = (t: Test, target: Target): Promise<void> =>
    runTritonChecks(t, 'published_client.py', target, [
      `--client=${join(copy, 'client.py')}`,
      `--picture=${SAMPLES}/words.jpg`,
      `--words=${SAMPLES}/words.txt`,
    ])
  await t.test('in one process', async (t) => {
    const serving = await serve(t, { repositories, flags: FLAGS })
    await check(t, serving)
    const printed = serving.process.lines
      .map(parseLine)
      .filter((line) => line['message'] === 'model output')
    t.ok(
      printed.some((line) => line['model'] === 'recognition_postprocessing'),
      'what its models print is in the log',
    )
  })
  await t.test('over steps', { skip: SKIP }, async (t) => {
    const harness = await startHarness(t)
    const [router] = await Promise.all([
      harness.router({ repositories }),
      harness.step({ repositories, models: PYTHON_MODELS, flags: FLAGS }),
      harness.step({ repositories, models: NETWORKS }),
    ])
    await untilReady([router], ['ensemble_model'])
    await check(t, router)
  })
  t.same(await readdir(repository, { recursive: true }), files, 'what they write is not kept there')
})
