import { createLogger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import t from 'tap'
import { GrpcLog } from './log-events.ts'

function logged(write: (log: GrpcLog) => void): readonly object[] {
  const lines: object[] = []
  const destination = { write: (line: string) => lines.push(JSON.parse(line)) }
  write(new GrpcLog(createLogger({ level: 'debug', name: 'test', destination })))
  return lines
}

await t.test('what a client did is a detail, what we did is an error', async (t) => {
  const lines = logged((log) => {
    log.callFailed('/m', new ServeError('INVALID_REQUEST', 'no'))
    log.callFailed('/m', ServeError.from(new TypeError('odd')))
  })
  t.match(lines, [
    { level: 'debug', message: 'call refused', method: '/m' },
    { level: 'error', message: 'call failed', method: '/m' },
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
