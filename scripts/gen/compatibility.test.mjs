import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import protobuf from 'protobufjs'
import t from 'tap'
import { TRITONSERVER_FLAGS } from '../../services/cli/src/serve/testing/tritonserver-flags.ts'
import { systemClock } from '../../services/chassis/src/index.ts'
import { AccessCounts } from '../../services/serving/src/access/access-log.ts'
import { cacheFamilies } from '../../services/response-cache/src/cache-families.ts'
import { RequestSeconds } from '../../services/telemetry/src/metrics/request-seconds.ts'
import { LocalCache } from '../../services/response-cache/src/local-cache.ts'
import { ENGINES } from '../../services/backends/src/descriptors.ts'
import { GPU_FAMILY_NAMES } from '../../services/backends/src/devices/gpu-metrics.ts'
import { ServerMetrics } from '../../services/telemetry/src/metrics/metrics.ts'
import { restRoutes } from '../../services/rest/src/routes/routes.ts'
import { StatisticsRecorder } from '../../services/telemetry/src/statistics/statistics.ts'
import { readCompatibility, readRow } from './compatibility.mjs'

const ROOT = resolve(import.meta.dirname, '..', '..')

/** Those that Triton's protocol documents name. */
const PARAMETERS =
  'sequence_id sequence_start sequence_end priority timeout headers schedule_policy binary_data binary_data_size ' +
  'binary_data_output classification shared_memory_region shared_memory_byte_size shared_memory_offset ' +
  'triton_enable_empty_final_response triton_final_response triton_grpc_error config file:PATH unload_dependents'

/** Every name that Triton or this server has, by kind. */
async function findNames() {
  const proto = (file) => join(ROOT, 'services', 'protocol', 'proto', file)
  const files = [proto('grpc_service.proto'), proto('health.proto')]
  const messages = await new protobuf.Root().load(files, { keepCase: true })
  return {
    rpc: rpcs(messages),
    field: fieldsOf(messages.lookup('inference'), new Set(['ModelConfig'])),
    rest: restRoutes({}).map(({ path }) => path.replace(/\(.*?\)/, '')),
    parameter: PARAMETERS.split(' '),
    metric: [...(await metricFamilies()), ...GPU_FAMILY_NAMES],
    flag: TRITONSERVER_FLAGS.map(([name]) => name),
    pb_utils: pbUtils(),
    backend: [...ENGINES.map(({ backend }) => backend), ...stockBackends()],
  }
}

function rpcs(messages) {
  const methods = Object.keys(messages.lookupService('inference.GRPCInferenceService').methods)
  const ofHealth = Object.keys(messages.lookupService('grpc.health.v1.Health').methods)
  return [...methods, ...ofHealth.map((method) => `Health.${method}`)]
}

/** Fields of these messages, and of those that they have as fields. */
function fieldsOf(namespace, found) {
  const names = []
  for (const message of found) {
    for (const field of namespace.lookupType(message).fieldsArray) {
      names.push(`${message}.${field.name}`)
      const type = field.resolve().resolvedType
      if (type?.fields !== undefined) found.add(type.fullName.replace('.inference.', ''))
    }
  }
  return names
}

async function metricFamilies() {
  const latencies = { hasCounters: true, hasHistograms: true, quantiles: [0.5] }
  const metrics = new ServerMetrics({ latencies })
  const version = '1'
  const recorder = new StatisticsRecorder({ name: 'm', version, hasCache: true })
  metrics.addModel(recorder, { name: 'm', version })
  const cache = new LocalCache({ maxBytes: 1, clock: systemClock })
  metrics.addFamilies(() => cacheFamilies(cache))
  metrics.addStep({ ensemble: 'e', step: 's', model: 'm' })
  const counts = new AccessCounts()
  metrics.addFamilies(() => counts.families())
  metrics.addFamilies(() => [new RequestSeconds(() => true).family()])
  const text = await metrics.render()
  return [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name)
}

/** The lists of test_members.py, which has them of a running Triton. */
function pbUtils() {
  const file = join(ROOT, 'services', 'backends', 'python', 'tests', 'test_members.py')
  const text = readFileSync(file, 'utf8')
  const [, module] = /^MODULE = """([^"]*)"""/m.exec(text)
  const classes = text.matchAll(/^ {4}pb_utils\.(\w+): "(?:"")?([^"]*)"/gm)
  const members = [...classes].flatMap(([, owner, names]) =>
    words(names).map((name) => `${owner}.${name}`),
  )
  return [...words(module), ...members]
}

/** Those that are written anew, in Python. */
function stockBackends() {
  return readdirSync(join(ROOT, 'services', 'backends', 'python', 'backends'))
}

function words(text) {
  return text.trim().split(/\s+/)
}

const ROWS = readCompatibility(ROOT).flatMap(({ rows }) => rows)

await t.test(
  'every name is in exactly one row, and no row has a name that there is not',
  async (t) => {
    for (const [kind, wanted] of Object.entries(await findNames())) {
      const named = ROWS.flatMap(({ answer, names }) =>
        (names[kind] ?? []).map((name) => ({ name, answer })),
      )
      const count = (name) => named.filter((one) => one.name === name).length
      t.ok(wanted.length > 5, `${wanted.length} names of ${kind}`)
      t.same(
        new Set(wanted.filter((name) => count(name) !== 1)),
        new Set(),
        `${kind} not in one row`,
      )
      const unknown = named.filter(
        ({ name, answer }) => answer !== 'not here' && !wanted.includes(name),
      )
      t.same(unknown, [], `${kind} that there is not`)
      t.equal(new Set(named.map(({ name }) => name)).size, named.length, `${kind} in two rows`)
    }
  },
)

await t.test('a row that is not complete, or names no test, is refused', async (t) => {
  const row = { what: 'w', answer: 'same', tests: { 'package.json': 'tutti' } }
  t.match(readRow(ROOT, 'x', { ...row, flag: 'a-{b,c} d' }).names, { flag: ['a-b', 'a-c', 'd'] })
  const cases = [
    [{ answer: 'yes' }, 'x: got answer yes, want same, better, different, not here'],
    [{ answer: 'not here' }, 'x: has no notes'],
    [{ answer: 'different', triton: 'a' }, 'x: has no tutti'],
    [{ tests: undefined }, 'x: has no tests'],
    [{ nots: 'a' }, 'x: same with nots'],
    [{ tests: { 'absent.test.ts': 'a' } }, 'x: there is no absent.test.ts'],
    [{ tests: { 'package.json': 'no such title' } }, 'x: package.json has no test "no such title"'],
  ]
  for (const [change, message] of cases) {
    t.throws(() => readRow(ROOT, 'x', { ...row, ...change }), { message })
  }
})
