import { readFileSync } from 'node:fs'
import t from 'tap'
import { ADMISSION_DEFAULTS } from './admission-bounds.ts'
import { GRPC_SERVER_DEFAULTS } from './grpc/grpc-server.ts'
import { CONTROL_BOUNDS } from './grpc/server-calls.ts'
import { REST_DEFAULTS } from './rest/rest-options.ts'

const GIBIBYTE = 2 ** 30
const ROOT = new URL('../../../', import.meta.url)
/** Code, heap, and the memory of connections that are idle. */
const PROCESS_BYTES = 2 ** 28

await t.test('what the default bounds let in fits the memory of a router', (t) => {
  const source = readFileSync(new URL('operator/src/resources/router-deployment.ts', ROOT), 'utf8')
  const [, limitGi] = /limits: \{ memory: '(\d+)Gi' \}/.exec(source) ?? []
  const counted = ADMISSION_DEFAULTS.maxBytes + CONTROL_BOUNDS.maxBytes
  // While the pieces of one message are joined, which is one step of the loop, it is there twice.
  const joined = Math.max(GRPC_SERVER_DEFAULTS.maxMessageBytes, REST_DEFAULTS.maxInputBytes)
  const most = counted + joined + PROCESS_BYTES
  t.ok(most <= Number(limitGi) * GIBIBYTE, `${most} bytes, limit ${limitGi} GiB`)
  t.end()
})

await t.test('the bounds and the memory are those of the documentation', (t) => {
  const page = readFileSync(new URL('docs/operations.md', ROOT), 'utf8').replace(/\s+/g, ' ')
  t.match(page, `at most ${bound(ADMISSION_DEFAULTS.maxBytes)} of requests and answers`)
  t.match(page, `${bound(CONTROL_BOUNDS.maxBytes)} of small calls`)
  t.match(page, `one message (${bound(GRPC_SERVER_DEFAULTS.maxMessageBytes)})`)
  t.match(page, `up to ${bound(GRPC_SERVER_DEFAULTS.windowBytes)} (\`--grpc-window-size\`)`)
  t.end()
})

function bound(bytes: number): string {
  return bytes < GIBIBYTE ? `${bytes / 2 ** 20} MiB` : `${bytes / GIBIBYTE} GiB`
}
