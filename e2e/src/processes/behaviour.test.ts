// needs: nats, python
import t from 'tap'
import { ROOT } from '../serving.ts'
import { PYTHON_FLAGS, runTritonChecks } from '../triton-client.ts'
import { BASIC, SKIP, startHarness } from './harness.ts'
import { untilReady } from './seen.ts'

t.setTimeout(300_000)

const FACE = ['pre_gfpgan', 'infer_face_restoration_v2.1', 'post_gfpgan', 'gfpgan']
const OCR = [
  'detection_preprocessing',
  'text_detection',
  'detection_postprocessing',
  'text_recognition',
  'recognition_postprocessing',
]

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
