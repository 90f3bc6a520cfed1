// needs: nats, python
import t from 'tap'
import { ROOT } from '../serving.ts'
import { PYTHON, PYTHON_FLAGS, runTritonChecks } from '../triton-client.ts'
import { SKIP, startHarness } from './harness.ts'
import { untilReady } from './seen.ts'

t.setTimeout(300_000)

const REPOSITORY = `${ROOT}model_repository/.variants/fixtures/sequences`

const MODELS = [
  'seq_sum',
  'seq_oldest',
  'seq_onnx',
  'seq_state',
  'seq_call',
  'seq_iter',
  'seq_again',
]

const skip = PYTHON === undefined ? 'TUTTI_TEST_PYTHON is not set' : SKIP

await t.test('sequences against a router over two replicas of each model', { skip }, async (t) => {
  const harness = await startHarness(t)
  const repositories = [REPOSITORY]
  const [router, one, other] = await Promise.all([
    harness.router({ repositories }),
    harness.step({ repositories, flags: PYTHON_FLAGS }),
    harness.step({ repositories, flags: PYTHON_FLAGS }),
  ])
  await untilReady([router], [...MODELS, 'ens_seq'])
  const pids = [one, other].map((member) => member.process.pid).join(',')
  await runTritonChecks(t, 'sequences.py', router, [`--pids=${pids}`])
})
