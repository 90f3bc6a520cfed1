// needs: python
import t from 'tap'
import { serve } from './serving.ts'
import { PYTHON_FLAGS, runTritonChecks } from './triton-client.ts'

await t.test('sequences against tutti serve', async (t) => {
  const serving = await serve(t, {
    repositories: ['model_repository/.variants/fixtures/sequences'],
    flags: PYTHON_FLAGS,
  })
  await runTritonChecks(t, 'sequences.py', serving)
})
