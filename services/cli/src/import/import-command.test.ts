import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { applyModelOverrides, modelNameOf, toModelOverrides } from '@tutti/api'
import { readValidManifest } from '@tutti/graph'
import {
  emptyModelConfig,
  type ModelConfig,
  parseModelConfig,
  selectBackend,
} from '@tutti/model-config'
import { listVersionFiles, type RepositoryModel, scanRepositories } from '@tutti/repository'
import t, { type Test } from 'tap'
import { parseManifests } from '../manifests/parse-manifests.ts'
import { run } from '../run.ts'

const REPOSITORIES = join(import.meta.dirname, '../../../../model_repository')

async function importing(...argv: readonly string[]) {
  const printed = { out: '', err: '' }
  const code = await run(['import', ...argv], {
    env: {},
    out: (text) => (printed.out += text),
    err: (text) => (printed.err += text),
    signals: { listen: () => () => {} },
    exit: () => {},
  })
  return { code, ...printed }
}

/** As written, with the name and the backend that serving would fill in. */
async function configOf(model: RepositoryModel): Promise<ModelConfig> {
  const { configText, configPath, name } = model
  const config =
    configText === undefined ? emptyModelConfig() : parseModelConfig(configText, configPath)
  if (config.ensemble_scheduling !== undefined) return { ...config, name }
  return { ...config, ...(await choice(model, config)), name }
}

async function choice(model: RepositoryModel, config: ModelConfig) {
  const files = await listVersionFiles(model, model.versions[0] ?? 1)
  const { backend, platform } = selectBackend(config, model.name, [
    ...new Set(files.map((file) => file.name.replace(/\/.*/, ''))),
  ])
  return { backend, platform }
}

for (const repository of [
  '.',
  '.variants/torchscript',
  '.variants/fixtures/basic',
  '.variants/fixtures/python',
]) {
  await t.test(
    `served, the manifests of ${repository} give the configurations of the repository`,
    async (t) => {
      const directory = join(REPOSITORIES, repository)
      const folder = t.testdir()
      const done = await importing(
        'triton',
        directory,
        `--output-dir=${folder}`,
        '--storage-uri-prefix=pvc://models/',
      )
      t.match(done, { code: 0, err: '' })
      const files = (await readdir(folder)).map(async (name) => ({
        name,
        text: await readFile(join(folder, name), 'utf8'),
      }))
      const { manifests, problems } = parseManifests(await Promise.all(files))
      t.same(problems, [])
      const models = await scanRepositories([directory])
      t.equal(manifests.length, models.length)
      for (const model of models) {
        const found = manifests.find(({ manifest }) => modelNameOf(manifest) === model.name)
        const wanted = await configOf(model)
        if (found?.manifest.kind === 'Ensemble') {
          t.same(readValidManifest(found.manifest).config, wanted, model.name)
        } else if (found !== undefined) {
          const { spec } = found.manifest
          t.equal(spec.storageUri, `pvc://models/${model.name}`)
          const { configText = '', configPath, name } = model
          for (const base of [parseModelConfig(configText, configPath)]) {
            const served = applyModelOverrides(base, toModelOverrides(spec))
            t.same({ ...served, ...(await choice(model, served)), name }, wanted, model.name)
          }
        } else t.fail(`no manifest of ${model.name}`)
      }
    },
  )
}

await t.test(
  'without a folder all goes to standard output, without a prefix models are where they are',
  async (t) => {
    const directory = join(REPOSITORIES, '.variants/torchscript')
    const { code, out } = await importing('triton', directory)
    t.equal(code, 0)
    const { manifests } = parseManifests([{ name: '-', text: out }])
    t.equal(manifests.length, 7)
    t.match(out, `storageUri: hostPath://${join(directory, 'gfpgan')}`)
  },
)

await t.test(
  'what no manifest can say is told, the rest is written, and it ends with 1',
  async (t) => {
    const io =
      'input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 4 }'
    const step =
      'step { model_name: "m" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } }'
    const directory = t.testdir({
      m: { 'config.pbtxt': `backend: "onnxruntime" ${io}`, 1: {} },
      bounded: {
        'config.pbtxt': `platform: "ensemble" ${io} ensemble_scheduling { ${step} max_inflight_requests: 3 }`,
        1: {},
      },
      custom: { 'config.pbtxt': `backend: "mine" ${io}`, 1: {} },
      torn: { 'config.pbtxt': 'name: ', 1: {} },
    })
    const { code, out, err } = await importing('triton', directory)
    t.equal(code, 1)
    t.match(out, /^kind: Model$/m)
    t.match(
      err,
      "model 'bounded': ensemble_scheduling.max_inflight_requests: a manifest has no words for it",
    )
    t.match(err, "model 'custom': backend: got 'mine', want onnxruntime, pytorch or python")
    t.match(err, /torn/)
  },
)

const IO =
  'input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 4 }'

/** The instance groups of a model, with its imported manifest and in its repository. */
async function importGroups(t: Test, written: string, ...flags: readonly string[]) {
  const text = `platform: "onnxruntime_onnx" ${IO} ${written}`
  const directory = t.testdir({ m: { 'config.pbtxt': text, 1: { 'model.onnx': '' } } })
  const { code, out, err } = await importing('triton', directory, ...flags)
  t.match({ code, err }, { code: 0, err: '' }, written)
  const { manifests } = parseManifests([{ name: '-', text: out }])
  const [spec] = manifests.flatMap(({ manifest }) =>
    manifest.kind === 'Model' ? manifest.spec : [],
  )
  if (spec === undefined) throw new Error('there is no Model')
  const { accelerator, instances } = spec
  const served = applyModelOverrides(parseModelConfig(text, ''), toModelOverrides(spec))
  const groups = served.instance_group.map(({ kind, count, gpus }) => [kind, count, ...gpus])
  return { accelerator, instances, groups }
}

await t.test('a Model gets the devices that its configuration wants', async (t) => {
  const kind = 'KIND_GPU'
  for (const [written, accelerator, groups, instances] of [
    ['', undefined, []],
    ['instance_group { count: 2 }', undefined, [['KIND_AUTO', 2]]],
    ['instance_group { kind: KIND_CPU }', undefined, [['KIND_CPU', 0]]],
    ['instance_group { kind: KIND_MODEL }', undefined, [['KIND_MODEL', 0]]],
    ['instance_group { kind: KIND_GPU count: 2 }', { count: 1 }, [[kind, 2]]],
    ['instance_group { kind: KIND_GPU gpus: [ 0 ] }', { count: 1 }, [[kind, 0, 0]]],
    ['instance_group { count: 2 gpus: [ 1, 0 ] }', { count: 2 }, [['KIND_AUTO', 2, 1, 0]]],
    [
      'instance_group [ { gpus: 0 }, { gpus: [ 1, 0 ] }, { kind: KIND_CPU } ]',
      { count: 2 },
      [
        ['KIND_AUTO', 0, 0],
        ['KIND_AUTO', 0, 1, 0],
        ['KIND_CPU', 0],
      ],
    ],
    // The numbers of a machine: the pod counts its devices from 0.
    ['instance_group { kind: KIND_GPU gpus: 1 }', { count: 1 }, [[kind, 1]], { count: 1, kind }],
    ['instance_group { count: 3 gpus: [ 2, 3 ] }', { count: 2 }, [[kind, 3]], { count: 3, kind }],
    [
      'instance_group [ { kind: KIND_GPU gpus: 1 }, { kind: KIND_GPU gpus: 3 } ]',
      { count: 4 },
      [
        [kind, 0, 1],
        [kind, 0, 3],
      ],
    ],
  ] as const) {
    t.same(await importGroups(t, written), { accelerator, instances, groups }, written)
  }
})

await t.test('with --cpu, what wants GPUs executes on the CPU', async (t) => {
  for (const [written, groups] of [
    ['', []],
    ['instance_group { count: 2 }', [['KIND_AUTO', 2]]],
    ['instance_group { kind: KIND_CPU count: 3 }', [['KIND_CPU', 3]]],
    ['instance_group { kind: KIND_GPU }', [['KIND_CPU', 1]]],
    ['instance_group { count: 2 gpus: [ 0, 1 ] }', [['KIND_CPU', 2]]],
    ['instance_group [ { count: 2 kind: KIND_GPU }, { kind: KIND_CPU } ]', [['KIND_CPU', 3]]],
  ] as const) {
    t.match(await importGroups(t, written, '--cpu'), { accelerator: undefined, groups }, written)
  }
  const limited = 'instance_group { kind: KIND_GPU gpus: 1 name: "g" rate_limiter { priority: 2 } }'
  t.match(await importGroups(t, limited, '--cpu'), { instances: { count: 1, kind: 'KIND_CPU' } })
})

await t.test('the folder of one model is no repository', async (t) => {
  t.match(await importing('triton', join(REPOSITORIES, 'text_detection')), {
    code: 1,
    err: /text_detection' is the folder of one model: .*; want the folder that holds it/,
  })
})

await t.test('what is not understood ends with 2', async (t) => {
  t.match(await importing(), { code: 2, err: /got nothing, want triton DIR/ })
  t.match(await importing('kserve', 'x'), { code: 2, err: /got 'kserve x', want triton DIR/ })
  t.match(await importing('--help'), { code: 0, out: /--storage-uri-prefix/ })
  t.match(await importing('triton', join(REPOSITORIES, 'none')), { code: 1, err: /does not exist/ })
})
