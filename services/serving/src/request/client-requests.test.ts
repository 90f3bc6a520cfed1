import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { EndedRequest } from '@tutti/telemetry'
import t from 'tap'
import { ClientRequests } from './client-requests.ts'

await t.test('a client that leaves at its deadline has met it', (t) => {
  const gone = new ServeError('CANCELLED', 'the client cancelled the request')
  const codeOf = (limitMs: number | undefined, afterMs: number): string | undefined => {
    const clock = createManualClock()
    const seen: EndedRequest[] = []
    const seconds = { observe: (one: EndedRequest) => void seen.push(one) }
    const request = new ClientRequests({ protocol: 'grpc', clock, seconds }).open(undefined, 'm')
    const deadlineAt = limitMs === undefined ? undefined : clock.now() + limitMs
    clock.advance(afterMs)
    request.left(deadlineAt, gone)
    request.ended()
    t.equal(seen.length, 1, 'it counts once')
    return seen[0]?.code
  }
  t.equal(codeOf(undefined, 1000), 'CANCELLED')
  t.equal(codeOf(200, 100), 'CANCELLED')
  t.equal(codeOf(200, 179), 'CANCELLED')
  t.equal(codeOf(200, 180), 'DEADLINE_EXCEEDED')
  t.equal(codeOf(200, 205), 'DEADLINE_EXCEEDED')
  t.end()
})
