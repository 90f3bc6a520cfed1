import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLogger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { ModelRepository } from '@tutti/repository'
import { type LoadParameters, pollFailed } from '@tutti/serving'
import { ServerMetrics } from '@tutti/telemetry'
import t, { type Test } from 'tap'
import { ScriptedReplicas, type ScriptedVersion } from '../testing/scripted-replicas.ts'
import { RepositoryControl } from './model-control.ts'

const IO = `input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] }`
const PLAIN = `backend: "b" ${IO}`

function over(...models: readonly string[]): string {
  const steps = models.map((model, i) => {
    const to = i === models.length - 1 ? 'Y' : `t${i}`
    const from = i === 0 ? 'x' : `t${i - 1}`
    return `step { model_name: "${model}" model_version: -1
      input_map { key: "x" value: "${from}" } output_map { key: "Y" value: "${to}" } }`
  })
  return `platform: "ensemble" ${IO} ensemble_scheduling { ${steps.join(' ')} }`
}

const NO_PARAMETERS = { files: new Map<string, Uint8Array>() }
const ALONE = { unloadDependents: false }

/** A control over a repository on disk, and one replica that loads what it is told to. */
function open(t: Test, configs: Readonly<Record<string, string>>) {
  const directory = t.testdir(
    Object.fromEntries(
      Object.entries(configs).map(([name, config]) => [
        name,
        { 'config.pbtxt': config, 1: { '.keep': '' } },
      ]),
    ),
  )
  const lines: { level: string; message: string; model?: string; reason?: string }[] = []
  const write = (line: string): number => lines.push(JSON.parse(line))
  const log = createLogger({ level: 'warn', name: 'test', destination: { write } })
  const metrics = new ServerMetrics()
  const replicas = new ScriptedReplicas({
    takesDown: true,
    metrics,
    log,
    listNames: () => repository.names(),
  })
  const served = new Map<string, ScriptedVersion>()
  const asked: string[] = []
  const hosts = {
    /** Work of a load before it takes effect. */
    before: async (_name: string): Promise<void> => {},
    config: PLAIN,
    /** By name, of those that differ from the others. */
    configs: new Map<string, string>(),
    load: async (name: string) => {
      asked.push(`load ${name}`)
      await hosts.before(name)
      served.set(name, {
        model: name,
        revision: 'r',
        config: hosts.configs.get(name) ?? hosts.config,
      })
      replicas.serve('a', [...served.values()])
    },
    unload: async (name: string) => {
      asked.push(`unload ${name}`)
      served.delete(name)
      replicas.serve('a', [...served.values()])
    },
  }
  const repository = new ModelRepository({ paths: [directory] })
  const { router } = replicas
  const control = new RepositoryControl({ router, repository, hosts, log })
  const states = async (): Promise<readonly string[]> =>
    (await router.repositoryIndex(false)).map((e) => `${e.name}: ${e.state} ${e.reason}`.trimEnd())
  const writeConfig = (name: string, config: string): Promise<void> =>
    writeFile(join(directory, name, 'config.pbtxt'), config)
  return {
    router,
    control,
    hosts,
    asked,
    states,
    write: writeConfig,
    directory,
    metrics,
    log: lines,
  }
}

await t.test('an ensemble is loaded with what it is composed of', async (t) => {
  const { control, asked, states } = open(t, {
    a: PLAIN,
    b: PLAIN,
    c: PLAIN,
    inner: over('a'),
    outer: over('inner', 'b'),
  })
  t.same(await states(), ['a:', 'b:', 'c:', 'inner:', 'outer:'])
  await control.load('outer', NO_PARAMETERS)
  t.same(asked.toSorted(), ['load a', 'load b'])
  t.same(await states(), ['a: READY', 'b: READY', 'c:', 'inner: READY', 'outer: READY'])
  asked.length = 0
  await control.unload('outer', { unloadDependents: true })
  t.same(asked.toSorted(), ['unload a', 'unload b'])
})

await t.test('what others need or a user asked for stays with unload_dependents', async (t) => {
  const { control, asked } = open(t, {
    a: PLAIN,
    b: PLAIN,
    one: over('a', 'b'),
    two: over('a'),
    both: over('one', 'two'),
  })
  await control.load('b', NO_PARAMETERS)
  await control.load('both', NO_PARAMETERS)
  await control.load('two', NO_PARAMETERS)
  asked.length = 0
  await control.unload('both', { unloadDependents: true })
  t.same(asked, [], 'two was asked for, and needs a; b was asked for')
  await control.unload('two', { unloadDependents: true })
  t.same(asked, ['unload a'])
})

await t.test('an ensemble that is not valid any more is taken down with its cause', async (t) => {
  const { control, router, hosts, states, metrics } = open(t, { a: PLAIN, e: over('a') })
  await control.load('e', NO_PARAMETERS)
  t.match(await metrics.render(), 'nv_inference_request_success{model="e",version="1"}')
  hosts.config = PLAIN.replaceAll('FP32', 'FP64')
  await control.load('a', NO_PARAMETERS)
  const cause =
    /^e: UNAVAILABLE unloaded: in ensemble e, ensemble tensor x: inconsistent data type: .* model a$/
  t.match(await states(), ['a: READY', cause])
  t.match(router.view.find('e'), { cause: /data type/, reason: '' })
  t.equal(router.isReady(), true)
  t.notMatch(await metrics.render(), 'model="e"')
  await t.rejects(control.load('e', NO_PARAMETERS), {
    code: 'INVALID_ARGUMENT',
    message: /^load failed for model 'e': .*data type/,
  })
  hosts.config = PLAIN
  await control.load('a', NO_PARAMETERS)
  t.same(await states(), ['a: READY', 'e: READY'])
  await control.unload('e', ALONE)
  await control.load('a', NO_PARAMETERS)
  t.same(await states(), ['a: READY', 'e: UNAVAILABLE unloaded'], 'what was unloaded stays so')
})

await t.test('a reload that does not fit leaves an ensemble and those over it', async (t) => {
  const { control, hosts, write, states, router, log } = open(t, {
    a: PLAIN,
    b: PLAIN,
    e: over('a'),
    outer: over('e'),
  })
  await control.load('outer', NO_PARAMETERS)
  const all = ['a: READY', 'b:', 'e: READY', 'outer: READY']
  const { plan } = Object(router.view.find('e'))
  hosts.before = async (name) => {
    if (name === 'nosuch') throw new ServeError('MODEL_LOAD_FAILED', 'there is none')
  }
  const faults: readonly (readonly [string, RegExp])[] = [
    [over('a').replaceAll('FP32', 'FP64'), /ensemble tensor x: inconsistent data type/],
    [over('nosuch'), /contains models that are not available or ambiguous: nosuch/],
    [
      over('a').replace('key: "x"', 'key: "wrong"'),
      /mapping to non-existing input wrong in model a/,
    ],
    [over('outer'), /circular dependency/],
    [over('e'), /circular/],
  ]
  for (const [config, message] of faults) {
    await write('e', config)
    for (const name of ['e', 'e']) await t.rejects(control.load(name, NO_PARAMETERS), { message })
    t.same(await states(), all, String(message))
    t.equal(Object(router.view.find('e')).plan, plan)
    t.match(log.at(-1), { level: 'warn', message: 'ensemble stays as it was', model: 'e' })
    t.match(log.at(-1), { reason: message })
  }
  t.equal(log.filter(({ message }) => /stays/.test(message)).length, faults.length, 'once each')
  t.comment('it takes its place as soon as it fits')
  await write('e', over('b').replaceAll('FP32', 'FP64'))
  hosts.configs.set('b', PLAIN.replaceAll('FP32', 'FP64'))
  await t.rejects(control.load('outer', NO_PARAMETERS), { message: /outer/ })
  t.match(await states(), [
    'a: READY',
    'b: READY',
    'e: READY',
    /^outer: UNAVAILABLE unloaded: .* e$/,
  ])
  await write('e', over('a'))
  await control.load('e', NO_PARAMETERS)
  t.same(await states(), all.with(1, 'b: READY'))
})

await t.test('what cannot be read leaves the ensemble that is served', async (t) => {
  const { control, write, states, directory, router } = open(t, {
    a: PLAIN,
    e: over('a'),
    f: PLAIN,
  })
  await control.load('e', NO_PARAMETERS)
  for (const broken of [
    over('a').replace('"x" value', '"x" volume'),
    `${over('a')} max_batch_size: -1`,
  ]) {
    await write('e', broken)
    await t.rejects(control.load('e', NO_PARAMETERS), {
      code: 'INTERNAL',
      message: /^failed to load 'e', failed to poll from model repository: ./,
    })
  }
  t.same(await states(), ['a: READY', 'e: READY', 'f:'])
  await write('f', `${over('a')} max_batch_size: -1`)
  await t.rejects(control.load('f', NO_PARAMETERS), { code: 'INTERNAL' })
  t.match((await states())[2], /^f: UNAVAILABLE 'max_batch_size' must be non-negative/)
  await write('f', over('a'))
  await rm(join(directory, 'f', '1'), { recursive: true })
  for (const reason of [
    /^f: UNAVAILABLE at least one version must be available/,
    'f: UNAVAILABLE unloaded',
  ]) {
    await t.rejects(control.load('f', NO_PARAMETERS), {
      code: 'INVALID_ARGUMENT',
      message: /^load failed for model 'f': at least one version must be available/,
    })
    if (reason === 'f: UNAVAILABLE unloaded') await control.unload('f', ALONE)
    t.match((await states())[2], reason)
    t.throws(() => router.resolve('f', ''), { message: /'f' has no available versions$/ })
  }
})

await t.test(
  'models that cannot be read again are reported, though the ensemble serves',
  async (t) => {
    const { control, hosts, states } = open(t, { a: PLAIN, e: over('a') })
    await control.load('e', NO_PARAMETERS)
    hosts.before = async (name) => {
      throw pollFailed(name, new ServeError('MODEL_NOT_FOUND', 'it is away'))
    }
    await t.rejects(control.load('e', NO_PARAMETERS), {
      code: 'INTERNAL',
      message: "failed to load 'e', failed to poll from model repository: it is away",
    })
    t.same(await states(), ['a: READY', 'e: READY'])
    hosts.before = async () => {
      throw new ServeError('MODEL_LOAD_FAILED', 'broken')
    }
    await control.load('e', NO_PARAMETERS)
    t.pass('a reload that failed is none of the ensemble’s')
  },
)

await t.test('an unload overtakes a load that is under way', async (t) => {
  const { control, hosts, states } = open(t, { a: PLAIN, e: over('a') })
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  hosts.before = () => {
    begun.resolve()
    return gate.promise
  }
  const loaded = control.load('e', NO_PARAMETERS)
  await begun.promise
  await control.unload('e', ALONE)
  gate.resolve()
  await t.rejects(loaded, {
    message: /^load failed for model 'e': Newer operation has been applied/,
  })
  t.same(await states(), ['a: READY', 'e:'])
})

await t.test('a directory may change from a model to an ensemble and back', async (t) => {
  const { control, write, asked, router } = open(t, { a: PLAIN, m: PLAIN })
  await control.load('m', NO_PARAMETERS)
  t.equal(router.view.find('m')?.kind, 'model')
  await write('m', over('a'))
  await control.load('m', NO_PARAMETERS)
  t.equal(router.view.find('m')?.kind, 'ensemble')
  t.ok(asked.includes('unload m'))
  await write('m', PLAIN)
  await control.load('m', NO_PARAMETERS)
  t.equal(router.view.find('m')?.kind, 'model')
})

await t.test(
  'a model that was loaded with parameters is not taken back by an ensemble',
  async (t) => {
    const { control, asked } = open(t, { a: PLAIN, e: over('a') })
    await control.load('a', { config: '{"backend": "b"}', files: new Map() })
    asked.length = 0
    await control.load('e', NO_PARAMETERS)
    t.same(asked, [])
    await control.load('a', NO_PARAMETERS)
    await control.load('e', NO_PARAMETERS)
    t.same(asked, ['load a', 'load a'])
  },
)

await t.test('a graph of a load request stays while the files do', async (t) => {
  const { control, asked, write } = open(t, { a: PLAIN, b: PLAIN, e: over('a') })
  const steps = [
    { model_name: 'b', model_version: -1, input_map: { x: 'x' }, output_map: { Y: 'Y' } },
  ]
  const tensor = { data_type: 'TYPE_FP32', dims: [-1] }
  const config = JSON.stringify({
    platform: 'ensemble',
    input: [{ name: 'x', ...tensor }],
    output: [{ name: 'Y', ...tensor }],
    ensemble_scheduling: { step: steps },
  })
  const loads = async (parameters: LoadParameters = NO_PARAMETERS): Promise<readonly string[]> => {
    asked.length = 0
    await control.load('e', parameters)
    return [...asked]
  }
  t.same(await loads(), ['load a'])
  t.same(await loads({ config, files: new Map() }), ['load b'])
  t.same(await loads(), ['load b'])
  await write('e', `${over('a')} `)
  t.same(await loads(), ['load a'])
  await loads({ config, files: new Map() })
  await control.unload('e', ALONE)
  t.same(await loads(), ['load a'])
})

await t.test('changes on disk are followed, and what went is not listed', async (t) => {
  const { control, states, directory, write, router } = open(t, { a: PLAIN, e: over('a') })
  t.equal((await control.loadAll(['a', 'e'])).size, 0)
  await rm(join(directory, 'e'), { recursive: true })
  await control.follow({ changed: [], removed: ['e'] })
  t.same(await states(), ['a: READY'])
  await write('a', over('unknown'))
  await control.follow({ changed: ['a'], removed: [] })
  t.equal(router.view.find('a')?.kind, 'ensemble')
})
