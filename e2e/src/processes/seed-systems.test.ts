// needs: nats, python, torch
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { FACE, FACE_MODELS, OCR, OCR_MODELS, SAMPLES } from '../seed-systems.ts'
import { serve, type Target } from '../serving.ts'
import { copyModels, tempFolder } from '../temp-repository.ts'
import { PYTHON, runTritonChecks, TORCH_PYTHON, withoutTorch } from '../triton-client.ts'
import { SKIP, startHarness } from './harness.ts'

t.setTimeout(600_000)

const FLAGS = [
  `--backend-config=python,interpreter=${PYTHON}`,
  `--backend-config=pytorch,interpreter=${TORCH_PYTHON}`,
]
const POLL = ['--model-control-mode=poll', '--repository-poll-secs=1']
/** Models that one of the two steps serves, the second network too; the other has what is before and behind. */
const NETWORKS = [
  'infer_face_restoration_v2.1',
  'infer_face_restoration_v2.2',
  'text_detection',
  'text_recognition',
]
const AROUND = [...FACE_MODELS, ...OCR_MODELS].filter((model) => !NETWORKS.includes(model))

const WITHOUT_BOTH = (PYTHON === undefined && 'TUTTI_TEST_PYTHON is not set') || withoutTorch()

/** The first version of both systems, in a folder that the checks add the second network to. */
async function makeRepository(t: Test): Promise<string> {
  const folder = await copyModels(t, FACE_MODELS, { from: FACE })
  for (const model of OCR_MODELS) {
    await cp(join(OCR, model), join(folder, model), { recursive: true })
  }
  return folder
}

await t.test(
  'both systems as published, with NVIDIA’s four clients',
  { skip: WITHOUT_BOTH },
  async (t) => {
    const results = await tempFolder(t)
    const check = (
      t: Test,
      target: Target,
      repository: string,
      more: readonly string[] = [],
    ): Promise<void> =>
      runTritonChecks(t, 'seed_systems.py', target, [
        `--samples=${SAMPLES}`,
        `--repository=${repository}`,
        `--more=${FACE}`,
        `--results=${results}`,
        ...more,
      ])
    await t.test('in one process', async (t) => {
      const repository = await makeRepository(t)
      const flags = ['--model-control-mode=explicit', ...FLAGS]
      await check(t, await serve(t, { repositories: [repository], flags }), repository)
    })
    await t.test('over steps, and the bytes are the same', { skip: SKIP }, async (t) => {
      const harness = await startHarness(t)
      const repository = await makeRepository(t)
      const repositories = [repository]
      const [router] = await Promise.all([
        harness.router({ repositories, flags: POLL }),
        harness.step({ repositories, models: AROUND, flags: [...POLL, ...FLAGS] }),
        harness.step({ repositories, models: NETWORKS, flags: [...POLL, ...FLAGS] }),
      ])
      await check(t, router, repository, ['--polls=yes'])
    })
  },
)
