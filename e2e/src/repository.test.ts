import { createServer } from 'node:net'
import t from 'tap'
import { repositoryIndex } from './control-churn.ts'
import { ask, openClient } from './grpc-client.ts'
import { restCall } from './rest-call.ts'
import { refusedServe, serve } from './serving.ts'
import { BROKEN } from './temp-repository.ts'

t.setTimeout(600_000)

await t.test(
  'a broken model is listed with its own reason and keeps no other model from serving',
  async (t) => {
    const serving = await serve(t, { repositories: [BROKEN] })
    const index = await repositoryIndex(serving)
    const entries = new Map(index.map((entry) => [entry.name, entry]))
    const reasons: Readonly<Record<string, RegExp>> = {
      ens_cycle: /output 'a' for ensemble 'ens_cycle' is not written/,
      ens_dtype_mismatch: /inconsistent data type: TYPE_INT32 .* TYPE_FP32/,
      ens_missing_model: /contains models that are not available or ambiguous: no_such_model/,
      ens_mutual_a: /circular dependency between ensembles: /,
      missing_model_file: /^Internal: .*model\.onnx' does not exist/,
      missing_version: /at least one version must be available/,
      name_mismatch: /unexpected directory name 'name_mismatch' for model 'another_name'/,
      syntax_error: /failed to read text proto from .*: line 7, column 15: /,
      truncated_onnx: /^Internal: not a valid ONNX model/,
      unknown_platform: /unexpected platform type 'no_such_platform'/,
      wrong_datatype: /expects datatype TYPE_INT32 for input 'x', model provides TYPE_FP32/,
      wrong_dims: /the model expects 1 dimensions/,
    }
    for (const [name, reason] of Object.entries(reasons)) {
      t.match(entries.get(name), { state: 'UNAVAILABLE', reason }, name)
    }
    t.match(entries.get('good'), { state: 'READY', version: '1' })

    const client = openClient(t, serving)
    const listed = await ask(client, 'RepositoryIndex')
    t.same(
      listed.models.map((model) => [model.name, model.reason]),
      index.map(({ name, reason = '' }) => [name, reason]),
      'gRPC lists the same',
    )
    t.equal((await ask(client, 'ServerReady')).ready, false, 'strict readiness')
    t.equal((await ask(client, 'ModelReady', { name: 'good' })).ready, true)
    t.equal((await ask(client, 'ModelReady', { name: 'truncated_onnx' })).ready, false)
  },
)

await t.test('without strict readiness the server is ready whatever failed', async (t) => {
  const serving = await serve(t, { repositories: [BROKEN], flags: ['--strict-readiness=false'] })
  t.equal((await restCall(serving.httpPort, 'GET', '/v2/health/ready')).status, 200)
})

await t.test('--exit-on-error ends at the start and names what failed', async (t) => {
  const ended = await refusedServe({ repositories: [BROKEN], flags: ['--exit-on-error'] })
  t.equal(ended.code, 1)
  t.match(ended.out, /failed to load all models: .*ens_cycle.*truncated_onnx/)
})

await t.test('what cannot start says why, with an exit code of its own', async (t) => {
  const missing = await refusedServe({ repositories: ['/no/such/folder'] })
  t.equal(missing.code, 1)
  t.match(missing.out, /\/no\/such\/folder/)

  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  t.teardown(() => taken.close())
  const address = taken.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  for (const protocol of ['grpc', 'http', 'metrics']) {
    const flags = [`--${protocol}-port=${port}`]
    const ended = await refusedServe({ repositories: ['/no/such/folder'], flags })
    t.equal(ended.code, 1, protocol)
    t.match(
      ended.out,
      new RegExp(`cannot listen on .*${port}`),
      `${protocol}, before models are read`,
    )
  }
})
