// needs: python
import t from 'tap'
import { startServing } from './serving.ts'
import { PYTHON_FLAGS, runTritonChecks } from './triton-client.ts'

await t.test('NVIDIA’s clients against tutti serve', async (t) => {
  const serving = await startServing({
    repositories: ['model_repository', 'model_repository/.variants/fixtures/basic'],
    flags: PYTHON_FLAGS,
  })
  t.teardown(() => serving.process.stop())
  await runTritonChecks(t, 'behaviour.py', serving)
  await runTritonChecks(t, 'ocr.py', serving)
})
