import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { restCall } from './rest-call.ts'
import { LOOPBACK, ROOT, runProgram, startTutti } from './serving.ts'

t.setTimeout(600_000)

/** A whole engine: `y` is `x` times a factor. */
const DESCRIPTOR = `import type { EngineDescriptor } from '../descriptor.ts'

export const times = {
  backend: 'times',
  files: [{ platform: 'times_table', filename: 'model.times' }],
  cpuInstances: 3,
  format: 'times',
  formatMeaning: 'numbers times a factor',
  title: 'Times',
  settings: { factor: { field: 'factor', least: 1, most: 9 } },
  image: 'python',
  memory: '640Mi',
  errorPrefix: 'times: ',
} as const satisfies EngineDescriptor
`
const CODE = `import type { NamedTensor } from '@tutti/tensor'
import type { Engine } from '../engine.ts'
import type { EngineCheck, EngineOpenOptions } from '../engine-code.ts'

const port = (name: string) => ({ name, datatype: 'FP32' as const, dims: [-1] })

export function open({ settings }: EngineOpenOptions): Engine {
  const { factor = 2 } = settings
  const multiply = ({ shape, data }: NamedTensor): NamedTensor => {
    const values = new Float32Array(new Uint8Array(data).buffer).map((value) => value * factor)
    return { name: 'y', datatype: 'FP32', shape, data: new Uint8Array(values.buffer) }
  }
  return {
    backend: 'times',
    inspect: async () => ({ inputs: [port('x')], outputs: [port('y')], batchable: false }),
    load: async () => ({
      execute: async (batch) => {
        for (const { request, sink } of batch) {
          const outputs = request.inputs.map(multiply)
          sink.send({ index: 0, final: true, outputs, parameters: new Map() })
        }
        return { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }
      },
      close: async () => {},
    }),
  }
}

export async function check(): Promise<EngineCheck> {
  return { status: 'absent', found: 'no multiplication table', mending: 'learn it' }
}
`
/** Prints what the operator makes of the engine. */
const OPERATOR = `
  import { buildGeneratedFiles } from './operator/dist/index.js'
  import { imageOf } from './operator/dist/resources/model-image.js'
  import { toModelFacts } from './operator/dist/resources/model-facts.js'
  import { resourcesOfGroup } from './operator/dist/resources/model-resources.js'
  import { groupOfModel } from './operator/dist/resources/pod-group.js'
  import { OPERATOR_FLAGS } from './operator/dist/operator-flags.js'
  import { ModelManifest } from './services/api/dist/index.js'
  const model = ModelManifest.parse({
    apiVersion: 'tutti.dev/v1alpha1', kind: 'Model', metadata: { name: 'm' },
    spec: { modelFormat: { name: 'times' }, storageUri: 'pvc://models/m' },
  })
  const settings = { image: 'plain', pythonImage: 'with-python' }
  const facts = toModelFacts({ name: 'm', namespace: 'n', spec: model.spec, settings })
  console.log(JSON.stringify({
    crd: new Map(buildGeneratedFiles()).get('crds/tutti.dev_models.yaml'),
    image: imageOf(groupOfModel(facts)),
    requests: resourcesOfGroup(groupOfModel(facts)).requests,
    flag: OPERATOR_FLAGS['step-python-image'].description,
  }))`

/** Leaves out tests, which would be compiled again. */
function isNoTest(path: string): boolean {
  return !/\.(test|soak|nightly)\./.test(path)
}

/** Copies what is built of this checkout; packages of the registry are those of this one. */
async function copyCheckout(t: Test): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'tutti-engine-'))
  t.teardown(() => rm(copy, { recursive: true, force: true }))
  const options = { recursive: true, preserveTimestamps: true, filter: isNoTest }
  for (const entry of ['services', 'operator', 'tsconfig.base.json', 'package.json']) {
    await cp(join(ROOT, entry), join(copy, entry), options)
  }
  const modules = join(copy, 'node_modules')
  await mkdir(join(modules, '@tutti'), { recursive: true })
  for (const name of await readdir(join(ROOT, 'node_modules'))) {
    if (name !== '@tutti') await symlink(join(ROOT, 'node_modules', name), join(modules, name))
  }
  for (const name of await readdir(join(copy, 'services'))) {
    await symlink(join(copy, 'services', name), join(modules, '@tutti', name))
  }
  return copy
}

/** Adds the engine: its folder, and its line of the list with the import that the line needs. */
async function addEngine(copy: string): Promise<void> {
  const sources = join(copy, 'services', 'backends', 'src')
  await mkdir(join(sources, 'times'))
  await writeFile(join(sources, 'times', 'descriptor.ts'), DESCRIPTOR)
  await writeFile(join(sources, 'times', 'open.ts'), CODE)
  const list = join(sources, 'descriptors.ts')
  const text = await readFile(list, 'utf8')
  const changed = `import { times } from './times/descriptor.ts'\n${text.replace(/\n\] as const/, '\n  times,\n] as const')}`
  await writeFile(list, changed)
}

await t.test('an engine is a folder and a line of the list, and is found everywhere', async (t) => {
  const copy = await copyCheckout(t)
  await addEngine(copy)
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  const build = [compiler, '-b', 'services/cli', 'operator']
  const built = await runProgram(process.execPath, build, { cwd: copy })
  t.equal(built.code, 0, `${built.out}${built.err}`)
  const models = join(copy, 'models')
  await mkdir(join(models, 'm', '1'), { recursive: true })
  await writeFile(join(models, 'm', '1', 'model.times'), '')
  const program = join(copy, 'services', 'cli', 'dist', 'main.js')
  const run = (...args: readonly string[]) =>
    runProgram(process.execPath, [program, ...args], { cwd: copy })

  await t.test(
    'the format of Models, the image and requests of their pods, the flags',
    async (t) => {
      const script = ['--input-type=module', '--eval', OPERATOR]
      const { code, out, err } = await runProgram(process.execPath, script, { cwd: copy })
      t.equal(code, 0, err)
      const { crd, image, requests, flag } = JSON.parse(out)
      t.match(crd, /enum:\n( +- )onnx\n\1pytorch\n\1python\n\1times\n/)
      t.match(
        crd,
        /python \(a model\.py for the Python backend\) or times \(numbers times a factor\)/,
      )
      t.equal(image, 'with-python')
      t.same(requests, { cpu: '100m', memory: '640Mi' })
      t.equal(flag, 'Image of steps with Python, Times and TorchScript models.')
    },
  )

  await t.test('configurations', async (t) => {
    const { code, out, err } = await run('config', 'm', `--model-repository=${models}`)
    t.equal(code, 0, err)
    t.match(out, /backend: "times"/)
    t.match(out, /platform: "times_table"/)
    t.match(out, /count: 3/)
    const wrong = join(copy, 'wrong', 'w')
    await mkdir(join(wrong, '1'), { recursive: true })
    await writeFile(
      join(wrong, 'config.pbtxt'),
      'backend: "times" platform: "onnxruntime_onnx" input { name: "x" data_type: TYPE_FP32 dims: 1 } output { name: "y" data_type: TYPE_FP32 dims: 1 }',
    )
    const { out: problems } = await run('validate', `--model-repository=${join(copy, 'wrong')}`)
    t.match(problems, "unexpected 'platform' and 'backend' pair, got:onnxruntime_onnx, times")
  })

  await t.test('a machine is checked for it', async (t) => {
    const flags = [`--model-repository=${models}`, '--format=json', ...LOOPBACK]
    const { code, out, err } = await run('doctor', ...flags)
    t.equal(code, 1, err)
    const { findings } = JSON.parse(out)
    t.same(
      findings.filter(({ check }: { check: string }) => check === 'times'),
      [
        {
          check: 'times',
          status: 'missing',
          found: 'no multiplication table',
          mending: 'learn it',
          neededBy: ['m'],
        },
      ],
    )
  })

  await t.test('settings and requests', async (t) => {
    const args = ['serve', `--model-repository=${models}`, ...LOOPBACK]
    const refused = await run(...args, '--backend-config=times,factor=10')
    t.match(
      refused.err,
      '--backend-config: "times,factor=10": \'10\', want a whole number from 1 to 9',
    )
    const { serving } = await startTutti([...args, '--backend-config=times,factor=3'], { program })
    t.teardown(() => serving.process.stop('SIGKILL'))
    const inputs = [{ name: 'x', datatype: 'FP32', shape: [2], data: [1, 2] }]
    const body = JSON.stringify({ inputs })
    const answer = await restCall(serving.httpPort, 'POST', '/v2/models/m/infer', { body })
    t.match(answer.json(), { outputs: [{ name: 'y', shape: [2], data: [3, 6] }] })
  })
})
