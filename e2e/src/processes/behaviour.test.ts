// needs: nats, python
import t from 'tap'
import { FACE_MODELS, OCR_MODELS } from '../seed-systems.ts'
import { ROOT } from '../serving.ts'
import { PYTHON_FLAGS, runTritonChecks } from '../triton-client.ts'
import { BASIC, SKIP, startHarness } from './harness.ts'
import { untilReady } from './seen.ts'

t.setTimeout(300_000)

const isModel = (name: string) => !name.startsWith('ens')
const FACE = [...FACE_MODELS.filter(isModel), 'gfpgan']
const OCR = OCR_MODELS.filter(isModel)

await t.test(
  'NVIDIA’s clients against a router over steps, as against tutti serve',
  { skip: SKIP },
  async (t) => {
    const harness = await startHarness(t)
    const published = [`${ROOT}model_repository`]
    const [router] = await Promise.all([
      harness.router({ repositories: [...published, BASIC] }),
      harness.step({ repositories: published, models: FACE }),
      harness.step({ repositories: published, models: OCR, flags: PYTHON_FLAGS }),
      harness.step({ repositories: [BASIC] }),
    ])
    const last = ['ens_face_restoration_v2.1', 'ensemble_model', 'ens_nested', 'gfpgan', 'labels']
    await untilReady([router], last)
    await runTritonChecks(t, 'behaviour.py', router)
    await runTritonChecks(t, 'ocr.py', router)
  },
)
