// needs: nats
import { createLogger, systemClock } from '@tutti/chassis'
import { startNatsServer } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { EMPTY_CONTEXT, type FindExecutor } from '@tutti/tensor'
import t from 'tap'
import { TransportEvents } from './log-events.ts'
import {
  brokerAt,
  collect,
  echo,
  envelope,
  openTestRouter,
  openTestStep,
  SERVED,
  sendTo,
  tensorBytes,
  until,
  WITH_NATS,
} from './testing/endpoints.ts'
import { executing } from './testing/envelopes.ts'

function linesOf(level: 'info' | 'debug') {
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  return { lines, log: createLogger({ level, name: 'test', destination }) }
}

await t.test('clients cannot fill the log with failures of an engine', (t) => {
  const { lines, log } = linesOf('info')
  const events = TransportEvents.ofMember({ member: 'step', log, clock: systemClock })
  const tellAll = (reason: 'ENGINE_FAILED' | 'INTERNAL') => {
    for (let i = 0; i < 1000; i++) events.callFailed(envelope(0), new ServeError(reason, 'no'))
    return lines.splice(0).length
  }
  for (const reason of ['ENGINE_FAILED', 'INTERNAL'] as const) {
    const told = tellAll(reason)
    t.ok(told >= 100 && told < 500, `${told} lines`)
  }
  t.end()
})

await t.test('the lines of members', WITH_NATS, async (t) => {
  const server = await startNatsServer()
  t.teardown(() => server.stop())
  const broker = brokerAt(server.url)
  const { lines, log } = linesOf('info')
  const router = await openTestRouter(t, broker, 'router', { log })

  await t.test('name this member and the other one, each by a field of its own', async (t) => {
    await openTestStep(t, broker, 'step', echo)
    await until(() => router.directory.isServed(SERVED))
    const appeared = lines.find((line) => line.includes('member appeared')) ?? ''
    t.match(JSON.parse(appeared), { self: 'router', member: 'step', role: 'step' })
    t.equal(appeared.split('"member":').length, 2, 'no name comes twice')
  })

  await t.test('say which request failed here, a failure of the engine too', async (t) => {
    const traceId = '4'.repeat(32)
    const traceparent = `00-${traceId}-${'7'.repeat(16)}-01`
    for (const level of ['info', 'debug'] as const) {
      const own = linesOf(level)
      const failing = executing(({ context }) => {
        if (context.id === 'odd') throw new TypeError('odd')
        throw new ServeError(context.id === 'engine' ? 'ENGINE_FAILED' : 'INVALID_REQUEST', 'no')
      })
      const executor: FindExecutor = (target) => {
        if (target.version === 9) throw new TypeError('no such place')
        return failing(target)
      }
      const step = await openTestStep(t, broker, level, echo, { log: own.log, executor })
      await until(() => step.transport.members.get('router') === 1)
      const ask = async (id: string, version = 1) => {
        const context = { ...EMPTY_CONTEXT, id }
        const asked = envelope(1, { version, step: 'detect', context, traceparent })
        const { signal } = new AbortController()
        const tensors = [{ bytes: tensorBytes(1) }]
        await t.rejects(collect(sendTo(router, { replica: level }, asked, tensors, { signal })))
      }
      await ask('odd')
      await ask('engine')
      await ask('wrong')
      await ask('nowhere', 9)
      const failed = own.lines.map((line) => JSON.parse(line)).filter(({ step }) => step)
      const common = { self: level, model: 'm', step: 'detect', traceId, error: Object }
      const wanted = [
        { level: 'error', message: 'call failed', request: 'odd', version: 1, ...common },
        { level: 'warn', message: 'call failed', request: 'engine', version: 1, ...common },
        { level: 'debug', message: 'call refused', request: 'wrong', version: 1, ...common },
        { level: 'error', message: 'call failed', request: 'nowhere', version: 9, ...common },
      ].filter((line) => level === 'debug' || line.level !== 'debug')
      t.match(failed, wanted)
      t.equal(failed.length, wanted.length)
    }
  })
})
