// needs: python
import t from 'tap'
import { withoutGpu, withoutModule } from './gpu.ts'
import { serve } from './serving.ts'
import { copyModels } from './temp-repository.ts'
import { PYTHON, runTritonChecks } from './triton-client.ts'

const skip = withoutGpu || (await withoutModule(PYTHON, 'cuda.bindings.runtime'))
const MODELS = ['identity_fp32', 'identity_string', 'ens_chain', 'add_one_batch']

await t.test('NVIDIA’s clients share the memory of a GPU', { skip }, async (t) => {
  const serving = await serve(t, { repositories: [await copyModels(t, MODELS)] })
  await runTritonChecks(t, 'cuda_shared_memory.py', serving)
})
