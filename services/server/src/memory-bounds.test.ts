import { readFileSync } from 'node:fs'
import { CONTROL_BOUNDS, GRPC_SERVER_DEFAULTS, MAX_HEADER_BYTES, MAX_WAITING } from '@tutti/grpc'
import { JSON_REST_BYTES, REST_DEFAULTS } from '@tutti/rest'
import { ADMISSION_DEFAULTS, compileBounds, outsideShare } from '@tutti/serving'
import t from 'tap'

const GIBIBYTE = 2 ** 30
const ROOT = new URL('../../../', import.meta.url)
/** Beside its headers: a stream of HTTP/2, and what we know of it. */
const CALL_BYTES = 8192
/** Code, heap, and the memory of connections that are idle. */
const PROCESS_BYTES = 2 ** 28

await t.test('what the default bounds let in fits the memory of a router', (t) => {
  const source = readFileSync(new URL('operator/src/resources/router-deployment.ts', ROOT), 'utf8')
  const [, limitGi] = /limits: \{ memory: '(\d+)Gi' \}/.exec(source) ?? []
  // Bytes of small calls count for each of the listeners, inside and outside.
  const counted = ADMISSION_DEFAULTS.maxBytes + 2 * CONTROL_BOUNDS.maxBytes
  // While the pieces of one message are joined, which is one step of the loop, it is there twice.
  const joined = Math.max(GRPC_SERVER_DEFAULTS.maxMessageBytes, REST_DEFAULTS.maxInputBytes)
  // The memory that the parsing of JSON takes beyond that is counted in the admission.
  const most = counted + joined + callBytes() + PROCESS_BYTES + JSON_REST_BYTES
  t.ok(most <= Number(limitGi) * GIBIBYTE, `${most} bytes, limit ${limitGi} GiB`)
  t.end()
})

await t.test(
  'what waits for clients leaves room for work, and a message has room beside others',
  (t) => {
    const bounds = [
      ADMISSION_DEFAULTS,
      outsideShare(ADMISSION_DEFAULTS),
      compileBounds({ maxBytes: 100 }),
    ]
    for (const { maxBytes, maxWaitingBytes, maxWaitingBytesPerClient } of bounds) {
      t.ok(maxWaitingBytes <= maxBytes / 2, 'half of it')
      t.ok(maxWaitingBytesPerClient <= maxBytes / 4, 'a quarter of it')
    }
    t.ok(GRPC_SERVER_DEFAULTS.maxMessageBytes <= ADMISSION_DEFAULTS.maxWaitingBytesPerClient)
    t.end()
  },
)

await t.test('the bounds and the memory are those of the documentation', (t) => {
  const page = readFileSync(new URL('docs/operations.md', ROOT), 'utf8').replace(/\s+/g, ' ')
  t.match(page, `at most ${bound(ADMISSION_DEFAULTS.maxBytes)} of requests and answers`)
  t.match(page, `${bound(2 * CONTROL_BOUNDS.maxBytes)} of small calls`)
  t.match(page, `one message (${bound(GRPC_SERVER_DEFAULTS.maxMessageBytes)})`)
  t.match(page, `${bound(callBytes())} for the gRPC calls`)
  t.match(page, `${bound(JSON_REST_BYTES)} for the thread that parses JSON`)
  t.end()
})

/** Counts the bytes of all calls of the listeners for the namespace and for outside, be they in work or waiting for their clients. */
function callBytes(): number {
  const inWork = ADMISSION_DEFAULTS.maxRequests + outsideShare(ADMISSION_DEFAULTS).maxRequests
  return (2 * MAX_WAITING + inWork) * (CALL_BYTES + MAX_HEADER_BYTES)
}

function bound(bytes: number): string {
  return bytes < GIBIBYTE ? `${bytes / 2 ** 20} MiB` : `${bytes / GIBIBYTE} GiB`
}
