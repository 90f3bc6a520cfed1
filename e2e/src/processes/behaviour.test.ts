import t from 'tap'
import { ROOT } from '../serving.ts'
import { runTritonChecks } from '../triton-client.ts'
import { BASIC, SKIP, startHarness } from './harness.ts'
import { untilReady } from './seen.ts'

t.setTimeout(300_000)

await t.test(
  'NVIDIA’s clients against a router over steps, as against tutti serve',
  { skip: SKIP },
  async (t) => {
    const harness = await startHarness(t)
    const repositories = [`${ROOT}model_repository`, BASIC]
    const face = ['pre_gfpgan', 'infer_face_restoration_v2.1', 'post_gfpgan', 'gfpgan']
    const [router] = await Promise.all([
      harness.router({ repositories }),
      harness.step({ repositories: [`${ROOT}model_repository`], models: face }),
      harness.step({ repositories: [BASIC] }),
    ])
    await untilReady([router], ['ens_face_restoration_v2.1', 'ens_nested', 'gfpgan', 'labels'])
    await runTritonChecks(t, 'behaviour.py', router)
  },
)
