import t from 'tap'
import { createEngines, selectEngine } from './engines.ts'

await t.test('a model gets the engine of its backend', async (t) => {
  const engines = createEngines()
  for (const backend of ['onnxruntime', 'python', 'pytorch']) {
    t.equal(selectEngine(engines, backend, 'm').backend, backend)
  }
})

await t.test('a backend that is not here is BACKEND_UNSUPPORTED, naming what is', async (t) => {
  for (const backend of ['tensorrt', 'mine', '']) {
    t.throws(() => selectEngine(createEngines(), backend, 'm'), {
      reason: 'BACKEND_UNSUPPORTED',
      message: `unable to find backend library for backend '${backend}', try specifying runtime on the model configuration. Backends here: 'onnxruntime', 'python', 'pytorch', and those with a model.py in the backend directory; none that are native libraries`,
    })
  }
})
