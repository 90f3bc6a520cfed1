// needs: nats, python
import t from 'tap'
import { ROOT } from '../serving.ts'
import { PYTHON, runTritonChecks } from '../triton-client.ts'
import { type Member, SKIP, startHarness } from './harness.ts'
import { untilReady } from './seen.ts'

t.setTimeout(300_000)

const REPOSITORY = `${ROOT}model_repository/.variants/fixtures/python`
const FLAGS = [
  `--backend-config=python,interpreter=${PYTHON}`,
  '--backend-config=python,abandoned-timeout-seconds=1',
]
/** Models that call others. Those that are called stand in another process, and so do the steps of each ensemble. */
const CALLERS = ['py_call', 'py_sum', 'py_faults', 'py_complete', 'py_absent', 'py_negate']
const CALLED = ['py_add_sub', 'py_ready', 'py_repeat', 'py_wait']

const skip = PYTHON === undefined ? 'TUTTI_TEST_PYTHON is not set' : SKIP

await t.test('Python models in steps, as in one process', { skip }, async (t) => {
  const harness = await startHarness(t)
  const repositories = [REPOSITORY]
  const step = (models: readonly string[]): Promise<Member> =>
    harness.step({ repositories, models, flags: FLAGS })
  const [router, callers, called] = await Promise.all([
    harness.router({ repositories }),
    step(CALLERS),
    step(CALLED),
  ])
  await untilReady([router], ['ens_py_add_sub', 'ens_repeat', 'py_call', 'py_faults', 'py_wait'])
  const metrics = `--metrics=127.0.0.1:${called.metricsPort}`
  const pids = [router, callers, called].map((member) => member.process.pid).join(',')
  await runTritonChecks(t, 'python_models.py', router, [metrics])
  await runTritonChecks(t, 'python_streams.py', router, [metrics, `--pids=${pids}`])
})
