import { parseFlags } from '@tutti/chassis'
import { instanceGroup } from '@tutti/model-config/testing'
import * as fc from 'fast-check'
import t from 'tap'
import { openTestStep } from '../testing/open-test-step.ts'
import { scriptedConfig } from '../testing/scheduler-rig.ts'
import { ScriptedEngine } from '../testing/scripted-engine.ts'
import { LimitedInstances, limitedInstances } from './limited-instances.ts'
import { LIMITER_FLAGS, openLimiter } from './limiter-flags.ts'
import { type LimitedInstance, RateLimiter, type ResourceCount } from './rate-limiter.ts'

function wants(o: Readonly<Record<string, number>>, rest: Partial<LimitedInstance> = {}) {
  const resources = Object.entries(o).map(([name, count]) => ({ name, global: false, count }))
  return { resources, priority: 1, device: 0, ...rest }
}

/** A model whose requests a test counts: what a scheduler does with its instances. */
class Model {
  readonly name: string
  queued = 0
  executed = 0
  readonly running: number[] = []
  readonly wanted: readonly LimitedInstance[]
  readonly #log: string[]
  readonly #limits: ReturnType<RateLimiter['register']>
  readonly #instances: LimitedInstances

  constructor(
    limiter: RateLimiter,
    name: string,
    wanted: readonly LimitedInstance[],
    log: string[] = [],
  ) {
    this.name = name
    this.wanted = wanted
    this.#log = log
    this.#limits = limiter.register(name, wanted)
    this.#limits.onTurn(() => this.#pump())
    const hasWork = (): boolean => this.queued > 0
    const o = { count: wanted.length, limits: this.#limits, hasWork }
    this.#instances = new LimitedInstances(o)
  }

  send(count = 1): void {
    this.queued += count
    this.#pump()
  }

  /** Requests that wait are cancelled. */
  cancel(): void {
    this.queued = 0
    this.#pump()
  }

  /** The execution that began first ends, well or not. */
  finish(): void {
    const instance = this.running.shift()
    if (instance === undefined) return
    this.#instances.end(instance)
    this.#pump()
  }

  /** Unloads the model, whatever it executes. */
  close(): void {
    this.queued = 0
    this.running.splice(0)
    this.#limits.close()
  }

  #pump(): void {
    for (let free = this.#instances.pick(); free >= 0; free = this.#instances.pick()) {
      this.queued -= 1
      this.executed += 1
      this.#log.push(this.name)
      this.#instances.begin(free)
      this.running.push(free)
    }
  }
}

/** Lets the limiter wake those whose turn it is. */
function turns(): Promise<void> {
  return new Promise(setImmediate)
}

await t.test('an instance executes only while its resources are free', async (t) => {
  const limiter = new RateLimiter([{ name: 'R', count: 3 }])
  const [a, b] = [1, 2].map((n) => new Model(limiter, `m${n}`, [wants({ r: 2 })]))
  a?.send(2)
  b?.send()
  t.same([a?.running.length, b?.running.length], [1, 0])
  t.same(limiter.usage, [{ name: 'r', used: 2, count: 3 }])
  a?.finish()
  await turns()
  t.same([a?.running.length, b?.running.length], [0, 1], 'b was first')
  b?.finish()
  await turns()
  t.same([a?.running.length, a?.executed], [1, 2])
})

await t.test('by default there is as much as one instance wants', async (t) => {
  const limiter = new RateLimiter([])
  const small = new Model(limiter, 'small', [wants({ r: 2 }), wants({ r: 2 })])
  small.send(2)
  t.equal(small.running.length, 1)
  const large = new Model(limiter, 'large', [wants({ r: 4 })])
  small.send()
  t.equal(small.running.length, 2, 'the other model made it more')
  large.close()
  t.equal(limiter.usage[0]?.count, 2)
  small.close()
  t.same(limiter.usage, [])
})

await t.test('devices have counts of their own, and a global resource has one', async (t) => {
  const limiter = new RateLimiter([
    { name: 'r', count: 1 },
    { name: 'r', count: 2, device: 1 },
  ])
  const devices = [0, 0, 1, 1, 1]
  const wanted = devices.map((device) => wants({ r: 1 }, { device }))
  const model = new Model(limiter, 'm', wanted)
  model.send(5)
  t.same(model.running, [0, 2, 3])
  const resources = [{ name: 'g', global: true, count: 1 }]
  const global = new Model(limiter, 'g', [
    { resources, priority: 0, device: 0 },
    { resources, priority: 0, device: 1 },
  ])
  global.send(2)
  t.same(global.running, [0])
})

await t.test('an instance of priority 2 gets half the turns of one of priority 1', async (t) => {
  const limiter = new RateLimiter([])
  const log: string[] = []
  const models = [1, 2, 4].map(
    (priority) => new Model(limiter, `p${priority}`, [wants({ r: 1 }, { priority })], log),
  )
  for (const model of models) model.send(1000)
  for (let i = 0; i < 700; i++) {
    for (const model of models) model.finish()
    await turns()
  }
  const [one = 0, two = 0, four = 0] = models.map((model) => model.executed)
  t.ok(Math.abs(one - 2 * two) <= 4, `${one} and ${two}`)
  t.ok(Math.abs(two - 2 * four) <= 4, `${two} and ${four}`)
  // One that was idle meanwhile does not make up for it.
  const late = new Model(limiter, 'late', [wants({ r: 1 })], log)
  late.send(1000)
  log.splice(0)
  for (let i = 0; i < 44; i++) {
    for (const model of [...models, late]) model.finish()
    await turns()
  }
  t.ok(log.filter((name) => name === 'late').length <= log.filter((n) => n === 'p1').length + 2)
})

await t.test('a large want is not starved by small ones', async (t) => {
  const limiter = new RateLimiter([{ name: 'r', count: 4 }])
  const small = new Model(
    limiter,
    'small',
    Array.from({ length: 4 }, () => wants({ r: 1 })),
  )
  const large = new Model(limiter, 'large', [wants({ r: 4 }, { priority: 10 })])
  const apart = new Model(limiter, 'apart', [wants({ other: 1 })])
  small.send(1000)
  large.send()
  let rounds = 0
  for (; large.executed === 0 && rounds < 100; rounds++) {
    small.finish()
    await turns()
  }
  t.ok(rounds < 20, `executed after ${rounds} ends of others`)
  t.equal(small.running.length, 0)
  apart.send()
  t.equal(apart.running.length, 1, 'what wants nothing of it is not held up')
})

await t.test('what there is not enough of is refused', async (t) => {
  const limiter = new RateLimiter([
    { name: 'R1', count: 4 },
    { name: 'R1', count: 6, device: 1 },
  ])
  const cases: readonly (readonly [LimitedInstance, string])[] = [
    [
      wants({ r1: 10 }),
      'Resource count for "r1" is limited to 4 which will prevent scheduling of one or more model instances, the minimum required count is 10',
    ],
    [
      wants({ r1: 7 }, { device: 1 }),
      'Resource count for "r1" is limited to 6 which will prevent scheduling of one or more model instances, the minimum required count is 7',
    ],
    [
      {
        ...wants({}),
        resources: [
          { name: 'x', global: true, count: 1 },
          { name: 'X', global: false, count: 1 },
        ],
      },
      'Resource "x" is present as both global and device-specific resource in the model configuration.',
    ],
  ]
  for (const [instance, message] of cases) {
    t.throws(() => limiter.register('m', [instance]), {
      code: 'INVALID_ARGUMENT',
      reason: 'CONFIG_INVALID',
      message,
    })
    t.same(limiter.usage, [], 'nothing of it stays')
  }
  const twice = [1, 4].flatMap((count) => wants({ r1: count }).resources)
  limiter.register('m', [wants({ r1: 6 }, { device: 1 }), { ...wants({}), resources: twice }])
})

/** The counts of resources that instances in random histories want. */
const COUNTS = fc.record({ a: fc.nat(3), b: fc.nat(3), c: fc.nat(2) })
const INSTANCE = fc
  .record({ counts: COUNTS, priority: fc.nat(4), device: fc.nat(1), isGlobal: fc.boolean() })
  .map(({ counts, priority, device, isGlobal }): LimitedInstance => {
    const { c, ...own } = counts
    const { resources } = wants(own)
    const shared = isGlobal ? [{ name: 'c', global: true, count: c }] : []
    return { resources: [...resources, ...shared], priority, device }
  })
const OPERATION = fc.record({
  what: fc.constantFrom('send', 'send', 'finish', 'finish', 'cancel', 'unload', 'turns'),
  model: fc.nat(3),
  count: fc.integer({ min: 1, max: 4 }),
})

/** Counts, from the models, how much of each resource the running executions use. */
function used(models: readonly Model[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  for (const { running, wanted } of models) {
    for (const index of running) {
      const { resources = [], device = 0 } = wanted[index] ?? {}
      for (const { name, global: isGlobal, count } of resources) {
        const key = isGlobal ? name : `${name} ${device}`
        sums.set(key, (sums.get(key) ?? 0) + count)
      }
    }
  }
  return sums
}

const GIVEN: readonly ResourceCount[] = [
  { name: 'a', count: 4 },
  { name: 'b', count: 3, device: 1 },
  { name: 'c', count: 2 },
]

/** @throws Error if more is used than there is: of what is not given, as much as one instance wants. */
function check(models: readonly Model[]): void {
  const most: Record<string, number> = { 'a 0': 4, 'a 1': 4, 'b 1': 3, c: 2 }
  most['b 0'] = mostOf(models.map(({ wanted }) => wanted))
  for (const [key, count] of used(models)) {
    const limit = most[key] ?? 0
    if (count > limit) throw new Error(`${key}: ${count} are used of ${limit}`)
  }
}

/** Ends what executes until nothing waits. @throws Error if that never happens. */
async function finishAll(models: readonly Model[]): Promise<void> {
  for (let i = 0; models.some(({ queued }) => queued > 0); i++) {
    if (i > 1000) throw new Error('what waits does not end')
    for (const model of models) model.finish()
    await turns()
    check(models)
  }
  for (const model of models) while (model.running.length > 0) model.finish()
}

async function operate(
  model: Model,
  { what, count }: { readonly what: string; readonly count: number },
): Promise<void> {
  if (what === 'send') model.send(count)
  else if (what === 'finish') model.finish()
  else if (what === 'cancel') model.cancel()
  else if (what === 'unload') model.close()
  else await turns()
}

await t.test('in random histories nothing is exceeded, and everything ends', async () => {
  const instances = fc.array(INSTANCE, { minLength: 1, maxLength: 3 })
  const property = fc.asyncProperty(
    fc.array(instances, { minLength: 4, maxLength: 4 }),
    fc.array(OPERATION, { maxLength: 60 }),
    async (wanted, operations) => {
      const limiter = new RateLimiter(GIVEN)
      const models = wanted.map((one, i) => new Model(limiter, `m${i}`, one))
      for (const operation of operations) {
        const i = operation.model
        const model = models[i]
        if (model === undefined) continue
        await operate(model, operation)
        // A model that was unloaded is loaded again.
        if (operation.what === 'unload') models[i] = new Model(limiter, `m${i}`, model.wanted)
        check(models)
      }
      await finishAll(models)
      const left = limiter.usage.filter((resource) => resource.used !== 0)
      if (left.length > 0) throw new Error(`${JSON.stringify(left)} is not given back`)
      for (const model of models) model.close()
      if (limiter.usage.length > 0) throw new Error('a resource is left')
    },
  )
  await fc.assert(property, { numRuns: 200 })
})

/** The most of `b` that an instance on device 0 wants. */
function mostOf(wanted: readonly (readonly LimitedInstance[])[]): number {
  const counts = wanted.flat().map(({ resources, device }) => {
    return device === 0 ? (resources.find(({ name }) => name === 'b')?.count ?? 0) : 0
  })
  return Math.max(...counts)
}

await t.test('instances are those of the groups, on their devices', async (t) => {
  const limiter = { resources: [{ name: 'r', global: false, count: 1 }], priority: 3 }
  const config = scriptedConfig({
    instance_group: [
      instanceGroup({ count: 2, kind: 'KIND_GPU', gpus: [0, 3], rate_limiter: limiter }),
      instanceGroup({ count: 1, kind: 'KIND_CPU' }),
    ],
  })
  const all = limitedInstances(config)
  t.same(
    all.map(({ device, priority }) => [device, priority]),
    [
      [0, 3],
      [3, 3],
      [0, 3],
      [3, 3],
      [0, 0],
    ],
  )
})

function open(...words: string[]): RateLimiter | undefined {
  return openLimiter(parseFlags(LIMITER_FLAGS, words).values)
}

await t.test('flags count resources as in Triton', async (t) => {
  t.equal(open(), undefined)
  t.equal(open('--rate-limit=off', '--rate-limit-resource=R:1'), undefined)
  const limiter = open(
    '--rate-limit=execution_count',
    '--rate-limit-resource=R:1',
    '--rate-limit-resource=R:2:1',
  )
  limiter?.register('m', [wants({ r: 1 }), wants({ r: 1 }, { device: 1 })])
  t.same(
    limiter?.usage.map(({ count }) => count),
    [1, 2],
  )
  for (const text of ['R', 'R:', ':1', 'R:-1', 'R:1:', 'R:1:x', 'R:1:0:0', 'R:1.5']) {
    t.throws(
      () => open(`--rate-limit-resource=${text}`),
      { code: 'INVALID_ARGUMENT', message: /want NAME:COUNT/ },
      text,
    )
  }
})

await t.test('a model that does not load gives its resources back', async (t) => {
  const config = `backend: "scripted" max_batch_size: 4
    input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
    output { name: "y" data_type: TYPE_FP32 dims: [ 1 ] }
    instance_group { rate_limiter { resources { name: "r" count: 2 } } }
    model_warmup { name: "s" batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP32 dims: 1 zero_data: true } } }`
  const directory = t.testdir({ m: { 'config.pbtxt': config, 1: { 'model.bin': 'a' } } })
  const engine = new ScriptedEngine()
  engine.onLoad = (model) => {
    model.execute = () => Promise.reject(new Error('no kernel'))
    model.close = () => Promise.reject(new Error('it does not close'))
  }
  const limiter = new RateLimiter([])
  const step = await openTestStep([directory], { engines: [engine], limiter })
  t.teardown(() => step.close())
  await t.rejects(step.models.load('m'), { message: /no kernel/ })
  t.same(limiter.usage, [])
})
