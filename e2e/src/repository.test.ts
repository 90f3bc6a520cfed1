import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { ask, openClient } from './grpc-client.ts'
import { restCall } from './rest-call.ts'
import { type Serving, serve, serveArguments, TUTTI } from './serving.ts'
import { BASIC, BROKEN, copyModels, tempFolder } from './temp-repository.ts'
import { row, toFloats } from './tensors.ts'

t.setTimeout(600_000)

interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Runs the command line to its end. */
function tutti(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [TUTTI, ...args], (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err })
    })
  })
}

async function index(serving: Serving): Promise<ReadonlyMap<string, Record<string, string>>> {
  const answer = await restCall(serving.httpPort, 'POST', '/v2/repository/index')
  const entries = answer.json() as readonly Record<string, string>[]
  return new Map(entries.map((entry) => [entry['name'] ?? '', entry]))
}

await t.test(
  'a broken model is listed with its own reason and keeps nobody from serving',
  async (t) => {
    const serving = await serve(t, { repositories: [BROKEN] })
    const entries = await index(serving)
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
      [...entries.values()].map((entry) => [entry['name'], entry['reason'] ?? '']),
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
  const ended = await tutti(
    ...serveArguments({ repositories: [BROKEN], flags: ['--exit-on-error'] }).slice(1),
  )
  t.equal(ended.code, 1)
  t.match(ended.out, /failed to load all models: .*ens_cycle.*truncated_onnx/)
})

await t.test('versions, several repositories, and one name in two of them', async (t) => {
  const one = await copyModels(t, ['versioned', 'add_sub'])
  const two = await copyModels(t, ['add_one_batch', 'ens_chain', 'add_sub'])
  const serving = await serve(t, { repositories: [one, two] })
  const client = openClient(t, serving)
  const metadata = await ask(client, 'ModelMetadata', { name: 'versioned' })
  t.same(metadata.versions, ['1', '3'], 'the version policy leaves out 2')
  const [answer] = (
    await client.infer({
      modelName: 'ens_chain',
      modelVersion: '',
      id: '',
      parameters: new Map(),
      inputs: [row('X')],
      outputs: [],
    })
  ).outputs
  t.same(answer === undefined ? [] : [...toFloats(answer)].slice(0, 2), [2, 3])
  t.match((await index(serving)).get('add_sub'), {
    state: 'UNAVAILABLE',
    reason: /appears in two or more repositories/,
  })
})

await t.test(
  'a model without config.pbtxt is completed from its file, and its config parses back',
  async (t) => {
    const repository = `--model-repository=${BASIC}`
    const printed = await tutti('config', 'add_one_matrix', repository)
    t.equal(printed.code, 0)
    const folder = await copyModels(t, ['add_one_matrix'])
    await writeFile(join(folder, 'add_one_matrix', 'config.pbtxt'), printed.out)
    const again = await tutti('config', 'add_one_matrix', `--model-repository=${folder}`)
    t.equal(again.out, printed.out)
    const serving = await serve(t, { repositories: [folder] })
    const { config } = await ask(openClient(t, serving), 'ModelConfig', { name: 'add_one_matrix' })
    t.match(config, { name: 'add_one_matrix', backend: 'onnxruntime', max_batch_size: 0 })
    const rest = await restCall(serving.httpPort, 'GET', '/v2/models/add_one_matrix/config')
    t.match(rest.json(), { name: 'add_one_matrix', input: [{ data_type: 'TYPE_FP32' }] })
  },
)

await t.test('what cannot start says why, with an exit code of its own', async (t) => {
  const unknown = await tutti('serve', '--model-repositry=x')
  t.match(unknown, {
    code: 2,
    err: /unknown flag --model-repositry; did you mean --model-repository\?/,
  })

  const missing = await tutti(...serveArguments({ repositories: ['/no/such/folder'] }).slice(1))
  t.equal(missing.code, 1)
  t.match(missing.out, /\/no\/such\/folder/)

  const empty = await tempFolder(t)
  await mkdir(join(empty, '.hidden'))
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  t.teardown(() => taken.close())
  const address = taken.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  for (const door of ['grpc', 'http', 'metrics']) {
    const flags = [`--${door}-port=${port}`]
    const ended = await tutti(...serveArguments({ repositories: [empty], flags }).slice(1))
    t.equal(ended.code, 1, door)
    t.match(ended.out, new RegExp(`cannot listen on .*${port}`), door)
  }
})
