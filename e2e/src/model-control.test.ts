// needs: python
import {
  appendFile,
  cp,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { addedBy, controlModel, repositoryIndex } from './control-churn.ts'
import { parseLine, refusedServe, type Serving, serve } from './serving.ts'
import { addBrokenVersion, BROKEN, copyModels, tempFolder } from './temp-repository.ts'
import { runTritonChecks } from './triton-client.ts'

t.setTimeout(600_000)

/** An ensemble of one step over `truncated_onnx`, which does not load. */
const OVER_TRUNCATED = `name: "ens_over_truncated" platform: "ensemble"
input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }
ensemble_scheduling { step { model_name: "truncated_onnx" model_version: -1
  input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } }`

/** Nothing here is about instances, and the start of each of the default two takes time at every load. */
const ONE_INSTANCE = '\ninstance_group [ { kind: KIND_CPU count: 1 } ]\n'

/** The models that `model_control.py` expects. */
async function controlRepository(t: Test): Promise<string> {
  const good = ['versioned', 'ens_versioned', 'add_one_batch', 'ens_chain', 'ens_nested']
  const folder = await copyModels(t, good)
  for (const name of ['versioned', 'add_one_batch']) {
    await appendFile(join(folder, name, 'config.pbtxt'), ONE_INSTANCE)
  }
  const broken = ['truncated_onnx', 'syntax_error', 'missing_version', 'ens_missing_model']
  for (const name of broken) {
    await cp(join(BROKEN, name), join(folder, name), { recursive: true })
  }
  await cp(join(folder, 'ens_chain'), join(folder, 'ens_over_truncated'), { recursive: true })
  await writeFile(join(folder, 'ens_over_truncated', 'config.pbtxt'), OVER_TRUNCATED)
  await cp(join(folder, 'versioned'), join(folder, 'never_loaded'), { recursive: true })
  return folder
}

await t.test('NVIDIA’s clients load and unload in one process', async (t) => {
  const pristine = await controlRepository(t)
  const repository = await tempFolder(t)
  const serving = await serve(t, {
    repositories: [repository],
    flags: ['--model-control-mode=explicit'],
  })
  const folders = [`--repository=${repository}`, `--pristine=${pristine}`]
  await runTritonChecks(t, 'model_control.py', serving, folders)
})

/** Reads what the REST index says, as `name version: STATE reason`. */
async function indexOf(serving: Serving): Promise<readonly string[]> {
  return (await repositoryIndex(serving)).map(({ name, version = '', state = '', reason = '' }) =>
    `${name} ${version}: ${state} ${reason}`.trimEnd(),
  )
}

/** Puts a file in the place of another at one go. */
async function replace(from: string, to: string): Promise<void> {
  await cp(from, `${to}~`)
  await rename(`${to}~`, to)
}

await t.test('the mode explicit starts with the models that are named', async (t) => {
  const repository = await copyModels(t, ['versioned', 'add_one_batch', 'ens_chain'])
  const explicit = ['--model-control-mode=explicit']
  const some = await serve(t, {
    repositories: [repository],
    flags: [...explicit, '--load-model=ens_chain', '--load-model=nosuch'],
  })
  t.same(await indexOf(some), ['add_one_batch 1: READY', 'ens_chain 1: READY', 'versioned :'])
  const all = await serve(t, { repositories: [repository], flags: [...explicit, '--load-model=*'] })
  t.equal((await indexOf(all)).filter((line) => line.endsWith('READY')).length, 4)

  const refused: readonly (readonly [readonly string[], number, RegExp])[] = [
    [['--model-control-mode=often'], 2, /want one of none, poll, explicit/],
    [
      [...explicit, '--load-model=nosuch', '--exit-on-error'],
      1,
      /failed to load all models: nosuch: /,
    ],
  ]
  for (const [flags, code, text] of refused) {
    const ended = await refusedServe({ repositories: [repository], flags })
    t.equal(ended.code, code, flags.join(' '))
    t.match(ended.out + ended.err, text)
  }
})

await t.test('the mode poll follows the repository by contents', async (t) => {
  const repository = await copyModels(t, ['versioned', 'ens_versioned'])
  const serving = await serve(t, {
    repositories: [repository],
    flags: ['--model-control-mode=poll', '--repository-poll-secs=1'],
  })
  const model = join(repository, 'versioned')
  t.equal(await addedBy(serving, 'versioned'), 3)
  await t.rejects(controlModel(serving, 'versioned', 'unload'), {
    message: /explicit model load \/ unload is not allowed if polling is enabled/,
  })
  const file = join(model, '3', 'model.onnx')

  t.comment(
    'caches, editors and new times change nothing; a change beside them shows that they were looked at',
  )
  await mkdir(join(model, '1', '__pycache__'))
  await writeFile(join(model, '1', '__pycache__', 'x.pyc'), 'x')
  await writeFile(join(model, 'config.pbtxt~'), 'x')
  await utimes(file, new Date(), new Date())
  await cp(model, join(repository, 'copied'), { recursive: true })
  await rename(join(repository, 'copied'), join(repository, 'added'))
  await writeFile(
    join(repository, 'added', 'config.pbtxt'),
    (await readFile(join(model, 'config.pbtxt'), 'utf8')).replace('"versioned"', '"added"'),
  )
  await until('the added model is served', async () =>
    (await indexOf(serving)).includes('added 3: READY'),
  )
  const loads = (): number =>
    serving.process.lines
      .map(parseLine)
      .filter((line) => line['message'] === 'model version ready' && line['model'] === 'versioned')
      .length
  t.equal(loads(), 2, 'versions 1 and 3, once each')

  await replace(join(model, '2', 'model.onnx'), file)
  await until('the change is served', async () => (await addedBy(serving, 'versioned')) === 2)
  t.equal(loads(), 4)
  t.ok((await indexOf(serving)).includes('ens_versioned 1: READY'))

  t.comment('a broken model does not replace the served one')
  await writeFile(file, 'no model')
  await until('the broken file was tried', () =>
    serving.process.lines.some((line) => line.includes('not a valid ONNX model')),
  )
  t.equal(await addedBy(serving, 'versioned'), 2)
  t.comment('a version that fails is listed beside those that are served')
  await addBrokenVersion(repository, 'versioned', 4)
  await until('the broken version is listed', async () =>
    (await indexOf(serving)).some((line) => /^versioned 4: UNAVAILABLE .*valid ONNX/.test(line)),
  )
  t.ok((await indexOf(serving)).includes('versioned 3: READY'))
  t.equal(await addedBy(serving, 'versioned'), 2)

  await rm(model, { recursive: true })
  await until('the model is gone', async () =>
    (await indexOf(serving)).every((line) => !line.startsWith('versioned')),
  )
  const cause =
    /^ens_versioned 1: UNAVAILABLE unloaded: ensemble .* 'versioned' which has no loaded version/m
  t.match((await indexOf(serving)).join('\n'), cause)
  await rm(join(repository, 'ens_versioned'), { recursive: true })
  await until(
    'the ensemble is gone',
    async () => (await indexOf(serving)).join() === 'added 1: READY,added 3: READY',
  )
})

await t.test('files of load requests go with their process, unless it is killed', async (t) => {
  const folder = await tempFolder(t)
  const repository = await copyModels(t, ['versioned'])
  const start = (): Promise<Serving> =>
    serve(t, {
      repositories: [repository],
      flags: ['--model-control-mode=explicit'],
      env: { TMPDIR: folder },
    })
  const left = async (): Promise<readonly string[]> =>
    (await readdir(folder)).filter((name) => name.startsWith('tutti-models-'))
  const load = async (serving: Serving): Promise<void> => {
    const bytes = await readFile(join(repository, 'versioned/2/model.onnx'))
    const config = JSON.stringify({
      platform: 'onnxruntime_onnx',
      input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [-1] }],
      output: [{ name: 'y', data_type: 'TYPE_FP32', dims: [-1] }],
    })
    const files = { 'file:1/model.onnx': bytes.toString('base64') }
    await controlModel(serving, 'versioned', 'load', { config, ...files })
    t.equal(await addedBy(serving, 'versioned'), 2)
  }
  const serving = await start()
  await load(serving)
  t.equal((await left()).length, 1)
  await serving.process.stop('SIGTERM')
  t.same(await left(), [])
  const killed = await start()
  await load(killed)
  await killed.process.stop('SIGKILL')
  t.equal((await left()).length, 1)
})
