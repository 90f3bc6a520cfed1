// needs: python
import t from 'tap'
import { serve } from './serving.ts'
import { PYTHON_FLAGS, runTritonChecks } from './triton-client.ts'

await t.test('NVIDIA’s clients against tutti serve', async (t) => {
  const serving = await serve(t, {
    repositories: ['model_repository', 'model_repository/.variants/fixtures/basic'],
    flags: PYTHON_FLAGS,
  })
  await runTritonChecks(t, 'behaviour.py', serving)
  await runTritonChecks(t, 'ocr.py', serving)
  await runTritonChecks(t, 'shared_memory.py', serving)
})
