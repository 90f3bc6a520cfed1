import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { renderTrace } from '@tutti/command-line/trace'
import * as fc from 'fast-check'
import t from 'tap'
import { ECHO_CHAIN, echo, serveEcho } from '../testing/echo-server.ts'
import { runCommand } from '../testing/run-command.ts'

const FAILS = 'parameters { key: "fails" value { string_value: "yes" } }'
const MODELS = {
  numbers: echo('FP32', [3], 'max_batch_size: 8'),
  stream: echo('INT32', [1], 'model_transaction_policy { decoupled: true }'),
  failing: echo('INT32', [1], FAILS),
  frail: echo('FP32', [3], `max_batch_size: 8 ${FAILS}`),
  fails: ECHO_CHAIN.replace(/"numbers"(?![^]*"numbers")/, '"frail"'),
  broken: echo('INT32', [1], `model_transaction_policy { decoupled: true } ${FAILS}`),
  chain: ECHO_CHAIN,
}
const INPUT = '-i=x=[1,2,3]'
const trace = (...argv: readonly string[]) => runCommand(['trace', ...argv])

await t.test('`tutti trace` shows one request, over both protocols', async (t) => {
  const folder = t.testdir()
  const file = join(folder, 'trace.json')
  const argv = [`--trace-config=triton,file=${file}`, '--trace-config=level=TIMESTAMPS']
  argv.push('--trace-config=rate=1', '--trace-config=triton,log-frequency=1')
  const serving = await serveEcho(t, MODELS, argv, folder)
  for (const url of [serving.grpc, serving.rest]) {
    await t.test(`${new URL(url).protocol} it prints the steps of an ensemble`, async (t) => {
      const told = await trace('chain', INPUT, `--url=${url}`, '--format=json')
      t.equal(told.code, 0, told.err)
      const { clientMs, criticalPath, parts, spans, ...rest } = JSON.parse(told.out)
      t.same(rest, { model: 'chain', version: '1', leftOut: 0 })
      t.same(criticalPath, ['numbers#0', 'numbers#1'])
      t.match(spans, [
        { step: '', model: 'chain', depth: 0, waitsFor: [], isCritical: false },
        { step: 'numbers#0', model: 'numbers', depth: 1, waitsFor: [], isCritical: true },
        { step: 'numbers#1', depth: 1, waitsFor: ['numbers#0'], isCritical: true },
      ])
      const [whole, first, second] = spans
      t.ok(whole.startMs <= first.startMs && first.endMs <= second.startMs)
      t.ok(second.endMs <= whole.endMs && whole.endMs <= clientMs)
      const sum = parts.reduce((total: number, { ms }: { ms: number }) => total + ms, 0)
      t.ok(Math.abs(sum - clientMs) < 1e-6 * clientMs + 1e-6, 'the parts are the whole')
    })
    await t.test(`${new URL(url).protocol} it shows them as text`, async (t) => {
      const { code, out } = await trace('chain', INPUT, `--url=${url}`)
      t.equal(code, 0)
      t.match(out, /^chain, version 1: [0-9.]+ (ms|µs)\n/)
      t.match(out, /^\* {3}numbers#0 .*[░█▒]/m)
      t.match(out, /^critical path: numbers#0 -> numbers#1$/m)
    })
    await t.test(`${new URL(url).protocol} it shows a model without steps`, async (t) => {
      const { code, out } = await trace('numbers', '-i=a=b=[1,2,3]', `--url=${url}`)
      t.equal(code, 0)
      t.match(out, / {2}request /)
      t.notMatch(out, /critical/)
    })
  }
  await t.test('the trace file has the steps of such a request too', async (t) => {
    const events: readonly { model_name?: string }[] = JSON.parse(
      `${(await readFile(`${file}.0`, 'utf8')).replace(/,?\s*\]?\s*$/, '')}]`,
    )
    t.same(
      new Set(events.flatMap(({ model_name: name }) => name ?? [])),
      new Set(['chain', 'numbers']),
    )
  })
  await t.test('it shows a stream, whose last response has the times', async (t) => {
    const { code, out } = await trace('stream', '-i=a=b=5', `--url=${serving.grpc}`)
    t.equal(code, 0)
    t.match(out, /^stream, version 1/)
  })
  await t.test('it shows the step that failed, and ends with the error', async (t) => {
    for (const url of [serving.grpc, serving.rest]) {
      const failed = { code: 1, err: /in ensemble 'fails', it does not like that/ }
      const text = await trace('fails', INPUT, `--url=${url}`)
      t.match(text, {
        ...failed,
        out: /^\* {3}numbers .*\n\* {3}frail .*\n {6}failed: INVALID_REQUEST$/m,
      })
      const json = await trace('fails', INPUT, `--url=${url}`, '--format=json')
      t.match(json, failed)
      const reasons = ['INVALID_REQUEST', '', 'INVALID_REQUEST']
      t.match(
        JSON.parse(json.out).spans,
        reasons.map((reason) => ({ reason })),
      )
    }
    const stream = await trace('broken', '-i=a=b=1', `--url=${serving.grpc}`)
    t.match(stream, { code: 1, err: /does not like/, out: /failed: INVALID_REQUEST/ })
  })
  await t.test('another client gets the error as ever', async (t) => {
    const inputs = [{ name: 'a=b', datatype: 'INT32', shape: [1], data: [1] }]
    const asked = {
      method: 'POST',
      headers: { 'tutti-steps': '1' },
      body: JSON.stringify({ inputs }),
    }
    const { status } = await fetch(`${serving.rest}/v2/models/failing/infer`, asked)
    t.equal(status, 400)
  })
  await t.test('it says why a request or its flags fail', async (t) => {
    const at = `--url=${serving.rest}`
    t.match(await trace('failing', '-i=a=b=[1,2]', at), { code: 1, err: /shape/, out: '' })
    t.match(await trace(at), { code: 2, err: /got 0 model names/ })
    t.match(await trace('chain', INPUT, at, '--svg=x'), { code: 2, err: /unknown flag --svg/ })
  })
})

await t.test('`tutti trace` says that a server restricts step times to a header', async (t) => {
  const argv = ['--http-restricted-api=trace:key=1', '--grpc-restricted-protocol=trace:key=1']
  const { grpc, rest } = await serveEcho(t, MODELS, argv)
  for (const url of [grpc, rest]) {
    t.match(await trace('chain', INPUT, `--url=${url}`), { code: 1, err: /is restricted/, out: '' })
  }
})

await t.test('a server that tells steps of another form', async (t) => {
  const span = { step: 'a', model: 'm', waitsFor: [], startMs: 0, endMs: 1, queueMs: 0 }
  const told = [
    '[',
    { spans: [], leftOut: 0 },
    { spans: [{ ...span, computeMs: 0, reason: '', depth: 1e9 }], leftOut: 0 },
    { spans: [{ ...span, computeMs: 0, reason: '', depth: 0 }], leftOut: -1.5 },
  ]
  for (const steps of told) {
    const parameters = { tutti_steps: typeof steps === 'string' ? steps : JSON.stringify(steps) }
    const answer = { name: 'm', model_name: 'm', inputs: [], outputs: [], parameters }
    const server = createServer((_, response) => void response.end(JSON.stringify(answer)))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const found = await trace('m', `--url=http://127.0.0.1:${port}`)
    t.match(found, { code: 1, out: '', err: /in a form of another version/ })
    server.closeAllConnections()
    server.close()
  }
})

await t.test('the text has no control characters', async () => {
  const name = fc.oneof(fc.string({ unit: 'binary', maxLength: 60 }), fc.constant('<a href="&">'))
  const ms = fc.double({ min: 0, max: 1e4, noNaN: true })
  const span = fc.record({
    step: name,
    model: name,
    depth: fc.integer({ min: 0, max: 3 }),
    waitsFor: fc.array(name, { maxLength: 3 }),
    startMs: ms,
    endMs: ms,
    queueMs: ms,
    computeMs: ms,
    reason: fc.constantFrom('', 'ENGINE_FAILED'),
  })
  const spans = fc.array(
    span.map((one) => ({ ...one, endMs: one.startMs + one.endMs })),
    { minLength: 1, maxLength: 12 },
  )
  fc.assert(
    fc.property(spans, name, ms, (spans, model, clientMs) => {
      const traced = { model, version: model, clientMs, spans, leftOut: spans.length % 2 }
      const lines = renderTrace(traced)
      return !/[\p{Cc}\p{Cf}]/u.test(lines.replaceAll('\n', ''))
    }),
    { numRuns: 60 },
  )
})
