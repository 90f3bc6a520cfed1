import { ENGINES } from '@tutti/engines'
import t from 'tap'
import { checkEngine, createEngines, selectEngine } from './engines.ts'

await t.test('a model gets the engine of its backend', async (t) => {
  const engines = createEngines()
  for (const { backend, sharesInterpreters = false } of ENGINES) {
    const engine = await selectEngine(engines, backend, 'm')
    t.equal(engine.backend, backend)
    t.equal(engine.sharesInterpreters ?? false, sharesInterpreters, backend)
    t.equal(await engines.get(backend), engine, 'one for all its models')
  }
})

await t.test('a backend that is not here is BACKEND_UNSUPPORTED, naming what is', async (t) => {
  for (const backend of ['tensorrt', 'mine', '', '../python']) {
    await t.rejects(selectEngine(createEngines(), backend, 'm'), {
      reason: 'BACKEND_UNSUPPORTED',
      message: `unable to find backend library for backend '${backend}', try specifying runtime on the model configuration. Backends here: 'onnxruntime', 'python', 'pytorch', and those with a model.py in the backend directory; none that are native libraries`,
    })
  }
})

await t.test('every engine looks for what it needs', async (t) => {
  const o = { interpreters: ['/nowhere/python3'], makesEnvironment: false }
  for (const { backend, modules } of ENGINES) {
    const { status, found } = await checkEngine(backend, o)
    t.equal(status, modules === undefined ? 'ok' : 'absent', backend)
    t.match(found, modules === undefined ? /./ : "'/nowhere/python3': it does not run")
  }
})

await t.test('the engine of built-in steps is beside those that a file may name', async (t) => {
  const engines = createEngines()
  t.equal(await engines.get('builtin'), undefined)
  t.notOk([...engines.keys()].includes('builtin'))
  t.equal((await engines.builtin?.())?.backend, 'builtin')
  t.equal(await engines.builtin?.(), await engines.builtin?.(), 'one for all steps')
})
