import { createLogger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { failsWith } from '@tutti/serving/testing'
import t from 'tap'
import { openTestServer } from '../testing/test-server.ts'
import { GrpcLog } from './log-events.ts'

function logged(write: (log: GrpcLog) => void): readonly object[] {
  const lines: object[] = []
  const destination = { write: (line: string) => lines.push(JSON.parse(line)) }
  write(new GrpcLog(createLogger({ level: 'debug', name: 'test', destination })))
  return lines
}

await t.test('what a client did is a detail, what we did is an error', async (t) => {
  const lines = logged((log) => {
    const traceparent = `00-${'4'.repeat(32)}-${'7'.repeat(16)}-01`
    log.callFailed('/m', new ServeError('INVALID_REQUEST', 'no'), { id: '' })
    log.callFailed('/m', ServeError.from(new TypeError('odd')), {
      id: 'i'.repeat(1000),
      trace: { traceparent },
    })
  })
  t.match(lines, [
    { level: 'debug', message: 'call refused', method: '/m', request: undefined },
    {
      level: 'error',
      message: 'call failed',
      method: '/m',
      request: 'i'.repeat(256),
      traceId: '4'.repeat(32),
    },
  ])
})

await t.test('lines carry what they are about', async (t) => {
  const lines = logged((log) => {
    log.listening('::', 8001)
    log.connectionDropped(5)
    log.listenerFailed(new Error('accept EMFILE'))
    log.answerNotTaken(300)
    log.drainTimedOut(2)
  })
  t.match(lines, [
    { level: 'info', message: 'listening', address: '::', port: 8001 },
    { level: 'warn', message: 'connection dropped at the bound', maxConnections: 5 },
    { level: 'error', message: 'listener failed' },
    { level: 'debug', message: 'call cut off, its client takes no answer', timeoutMs: 300 },
    { level: 'warn', message: 'drain timed out', calls: 2 },
  ])
})

const ask = (modelName: string, id: string) => ({ modelName, id, inputs: [] })

const odd = failsWith(new TypeError('odd'))

await t.test('a request that fails is logged with its id and its trace', async (t) => {
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const log = createLogger({ level: 'debug', name: 'test', destination })
  const { client } = await openTestServer(t, { m: { script: odd } }, { log })
  const traceId = '4'.repeat(32)
  const headers = { traceparent: `00-${traceId}-${'7'.repeat(16)}-01` }
  await t.rejects(client.infer(ask('m', 'one'), { headers }))
  await t.rejects(client.infer(ask('absent', 'two')))
  const stream = client.openStream({ headers })
  await stream.send(ask('absent', 'three'))
  stream.end()
  for await (const { errorMessage } of stream.responses()) t.match(errorMessage, /absent/)
  const failed = lines.map((line) => JSON.parse(line)).filter(({ method }) => method !== undefined)
  t.match(failed, [
    { message: 'call failed', request: 'one', traceId },
    { message: 'call refused', request: 'two' },
    { message: 'call refused', request: 'three', traceId },
  ])
  t.notOk(Object.hasOwn(failed[1], 'traceId'))
})
