import { EventEmitter, once } from 'node:events'
import { ServeError } from '@tutti/errors'
import t from 'tap'
import { createLogger } from '../log/log.ts'
import { createManualClock } from '../testing/manual-clock.ts'
import { createSignalSource } from '../testing/manual-signals.ts'
import { createHealth } from './health.ts'
import { type GiveUp, processSignals, type Running, runUntilSignal } from './lifecycle.ts'

/** Runs a lifecycle whose stages tell what they do, and lets a test wait for what the log says. */
function run(
  o: {
    readonly start?: (o: { signal: AbortSignal; giveUp: GiveUp }) => Promise<void>
    readonly running?: Partial<Running>
  } = {},
) {
  const clock = createManualClock()
  const health = createHealth()
  const signals = createSignalSource()
  const steps: string[] = []
  const lines = new EventEmitter()
  const logger = createLogger({
    level: 'debug',
    name: 'test',
    destination: {
      write: (line) => {
        const { message }: { message: string } = JSON.parse(line)
        steps.push(message)
        lines.emit(message)
      },
    },
  })
  const stage = (name: string, act: () => Promise<void> | void) => async () => {
    steps.push(`${name}: ${health.isReady ? 'ready' : 'not ready'}`)
    await act()
  }
  const code = runUntilSignal({
    start: async (given) => {
      await o.start?.(given)
      return {
        stopAccepting: stage('stopAccepting', () => o.running?.stopAccepting?.()),
        drain: (given) => stage('drain', () => o.running?.drain?.(given))(),
        close: stage('close', () => o.running?.close?.()),
      }
    },
    health,
    logger,
    signals,
    exit: (exitCode) => void steps.push(`exit ${exitCode}`),
    graceMs: 1000,
    closeMs: 100,
    clock,
  })
  return { clock, health, signals, steps, code, logged: (message: string) => once(lines, message) }
}

const never = () => new Promise<void>(() => {})

await t.test('the stages run in order, from start to exit', async (t) => {
  const { signals, health, steps, code, logged, clock } = run()
  await logged('started')
  t.equal(health.isReady, true)
  signals.send('SIGTERM')
  t.equal(await code, 0)
  t.same(steps, [
    'starting',
    'started',
    'stopping',
    'stopAccepting: not ready',
    'draining',
    'drain: not ready',
    'drained',
    'close: not ready',
    'closed',
    'exiting',
    'exit 0',
  ])
  t.equal(health.isLive, false)
  t.equal(signals.listeners, 0)
  t.equal(clock.pending, 0)
})

await t.test('a start that fails is logged and gives 1', async (t) => {
  const { steps, code, health } = run({
    start: () => Promise.reject(new ServeError('REPOSITORY_UNREADABLE', 'no folder')),
  })
  t.equal(await code, 1)
  t.same(steps, ['starting', 'start failed', 'exiting', 'exit 1'])
  t.equal(health.isReady, false)
})

await t.test('a start that throws at once is logged and gives 1', async (t) => {
  const { steps, code } = run({
    start: () => {
      throw new Error('bug')
    },
  })
  t.equal(await code, 1)
  t.match(steps, ['starting', 'start failed'])
})

await t.test('a signal during the start gives it up', async (t) => {
  const { signals, steps, code } = run({
    start: async ({ signal }) => {
      await once(signal, 'abort')
      throw signal.reason
    },
  })
  signals.send('SIGINT')
  t.equal(await code, 0)
  t.same(steps, ['starting', 'stopping', 'start given up', 'exiting', 'exit 0'])
})

await t.test('a start that ends in spite of a signal is drained and closed', async (t) => {
  const started = Promise.withResolvers<void>()
  const { signals, steps, code } = run({ start: () => started.promise })
  signals.send('SIGTERM')
  started.resolve()
  t.equal(await code, 0)
  t.notOk(steps.includes('started'))
  t.ok(steps.includes('closed'))
})

await t.test('a process that gives up drains, and ends with a code of its own', async (t) => {
  for (const drain of [undefined, () => Promise.reject(new Error('stuck'))]) {
    let giveUp: GiveUp | undefined
    const { signals, steps, code, health, logged } = run({
      start: async (given) => {
        giveUp = given.giveUp
      },
      ...(drain && { running: { drain } }),
    })
    await logged('started')
    giveUp?.('the device fails')
    giveUp?.('and again')
    t.same(health.reasons, ['the device fails'])
    signals.send('SIGTERM')
    t.equal(await code, 70)
    t.equal(steps.filter((step) => step === 'the process must be replaced, stopping').length, 1)
    t.ok(steps.includes('drain: not ready'))
  }
})

await t.test('a start that ignores the signal is left after the grace period', async (t) => {
  const { signals, code, clock, logged } = run({ start: never })
  const stopping = logged('stopping')
  signals.send('SIGTERM')
  await stopping
  clock.advance(1000)
  t.equal(await code, 0)
})

await t.test('a drain that takes too long is cut off and gives 1', async (t) => {
  let cutOff: unknown
  const { signals, steps, code, clock, logged } = run({
    running: {
      drain: async ({ signal }) => {
        signal.addEventListener('abort', () => {
          cutOff = signal.reason
        })
        await never()
      },
    },
  })
  await logged('started')
  const draining = logged('draining')
  signals.send('SIGTERM')
  await draining
  clock.advance(1000)
  t.equal(await code, 1)
  t.match(cutOff, { reason: 'SERVER_STOPPING', message: 'grace period of 1000 ms is over' })
  t.ok(steps.includes('drain failed'))
  t.ok(steps.includes('closed'))
})

await t.test('a drain that fails still closes, and gives 1', async (t) => {
  const { signals, steps, code, logged } = run({
    running: { stopAccepting: () => Promise.reject(new Error('port is gone')) },
  })
  await logged('started')
  signals.send('SIGTERM')
  t.equal(await code, 1)
  t.ok(steps.includes('drain failed'))
  t.ok(steps.includes('closed'))
})

await t.test('a close that fails gives 1', async (t) => {
  const { signals, steps, code, logged } = run({
    running: { close: () => Promise.reject(new Error('stuck')) },
  })
  await logged('started')
  signals.send('SIGTERM')
  t.equal(await code, 1)
  t.ok(steps.includes('close failed'))
})

await t.test('a close that hangs does not hold the process', async (t) => {
  const { signals, code, clock, logged } = run({ running: { close: never } })
  await logged('started')
  const drained = logged('drained')
  signals.send('SIGTERM')
  await drained
  await new Promise(setImmediate)
  clock.advance(100)
  t.equal(await code, 1)
})

await t.test('a second signal exits at once with its number', async (t) => {
  for (const [signal, want] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    const { signals, steps, code, logged, clock } = run({ running: { drain: never } })
    await logged('started')
    const draining = logged('draining')
    signals.send('SIGTERM')
    await draining
    clock.advance(250)
    signals.send(signal)
    t.equal(await code, want)
    t.equal(steps.filter((step) => step.startsWith('exit ')).length, 1)
  }
})

await t.test('a signal that comes twice at once is one', async (t) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    const drained = Promise.withResolvers<void>()
    const { signals, code, logged, clock } = run({ running: { drain: () => drained.promise } })
    await logged('started')
    const draining = logged('draining')
    signals.send(signal)
    signals.send(signal)
    await draining
    clock.advance(249)
    signals.send('SIGTERM')
    drained.resolve()
    t.equal(await code, 0)
  }
})

await t.test('signals of a process are heard until taken back', async (t) => {
  const source = new EventEmitter()
  const heard: string[] = []
  const stop = processSignals(source).listen((signal) => heard.push(signal))
  source.emit('SIGTERM')
  source.emit('SIGINT')
  stop()
  source.emit('SIGTERM')
  t.same(heard, ['SIGTERM', 'SIGINT'])
  t.same(source.eventNames(), [])
})
