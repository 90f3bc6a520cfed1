import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import process, { env } from 'node:process'
import { createSignalSource, createTestCertificates, freePort, until } from '@tutti/chassis/testing'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { terminalOf } from '../terminal.ts'
import { echo, serveEcho } from '../testing/echo-server.ts'
import { runCommand } from '../testing/run-command.ts'
import { openTerminal } from '../testing/run-shell.ts'
import { bucketQuantile, modelRows } from './model-rows.ts'
import { parseMetrics } from './parse-metrics.ts'
import { parseMetricsUrl, readMetrics } from './read-metrics.ts'
import { parseReading } from './reading.ts'
import { renderTop } from './render-top.ts'
import { renderTopResult, TopResult } from './top-result.ts'

const MAIN = join(import.meta.dirname, '../main.ts')
const ESCAPE = '\u001b'
/** Line breaks, the cursor and the first screen come back, and then what is typed is shown again and read by lines. */
const RESTORED = /\[\?7h.\[\?25h.\[\?1049l[^]*code 0[^]* icanon[^]* echo /

/** The metrics of models by name: requests, and milliseconds that they took together. */
function metricsOf(
  models: Readonly<Record<string, readonly [requests: number, ms: number]>>,
): string {
  return Object.entries(models)
    .flatMap(([name, [requests, ms]]) => {
      const labels = `{model="${escapeLabel(name)}",version="1"}`
      return [
        `nv_inference_request_success${labels} ${requests}`,
        `nv_inference_request_duration_us${labels} ${ms * 1000}`,
        `nv_inference_pending_request_count${labels} 2`,
      ]
    })
    .join('\n')
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}

/** A server whose metrics a test sets, and which it can end and start again. */
async function openMetrics(t: Test, text: string) {
  const port = await freePort()
  const told = { text }
  const open = () => {
    const server = createServer((_, response) => void response.end(told.text))
    server.listen(port, '127.0.0.1')
    return server
  }
  let server = open()
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  t.teardown(close)
  return { told, url: `http://127.0.0.1:${port}`, close, reopen: () => (server = open()) }
}

await t.test('`tutti top` reads labels with any characters', async () => {
  const label = fc.string({ unit: 'binary', maxLength: 20 })
  const value = fc.double({ noNaN: true }).map((one) => (one === 0 ? 0 : one))
  const holds = fc.property(label, label, value, (model, version, value) => {
    const number = Number.isFinite(value) ? String(value) : value > 0 ? '+Inf' : '-Inf'
    const labels = `{model="${escapeLabel(model)}",version="${escapeLabel(version)}"}`
    const text = `# HELP x {} "\nother 1\nx${labels} ${number} # {trace_id="a"} 1 2\nx`
    const [sample, ...more] = parseMetrics(text, (name) => name === 'x')
    return (
      more.length === 0 &&
      sample?.value === value &&
      JSON.stringify([...sample.labels]) ===
        JSON.stringify([
          ['model', model],
          ['version', version],
        ])
    )
  })
  fc.assert(holds)
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      parseReading(`nv_inference_request_success${text}`, 0)
      return true
    }),
  )
})

const pending = (model: string, value: string) =>
  `nv_inference_pending_request_count{model="${model}"} ${value}`

await t.test('figures that are none, or have no end, are not known', async (t) => {
  const text = `process_resident_memory_bytes +Inf\n${pending('m', '+Inf')}\n`
  const reading = parseReading(`${text}${pending('none', 'toString')}`, 1000)
  const view = { url: 'x', reading, rows: modelRows(reading, undefined), problem: undefined }
  const { models, ...rest } = TopResult.parse(JSON.parse(renderTopResult(view, 1000)))
  t.match(models, [{ model: 'm', pending: null }])
  t.equal(models.length, 1)
  t.equal(rest.processMemoryBytes, null)
  const [head, , , row] = renderTop(view)
  t.match(head, /process –, host – of –, CPU –$/)
  t.match(row, /^m +– +– +– +– +–/)
})

await t.test('`tutti top` shows the rates between two readings', async (t) => {
  const before = parseReading(metricsOf({ a: [10, 100], 'b"\\\n': [5, 50], gone: [1, 1] }), 1000)
  const after = metricsOf({ a: [30, 300], 'b"\\\n': [105, 1050], 'new': [1, 1] })
  const summary = ['0.5', '0.99']
    .map((q) => `nv_inference_request_summary_us{model="a",version="1",quantile="${q}"} ${q}e4`)
    .join('\n')
  const now = parseReading(`${after}\n${summary}`, 3000)
  t.match(modelRows(now, before), [
    { model: 'b"\\\n', rates: { requestsPerSecond: 50, requestMs: 10 }, inFlight: 0.5 },
    { model: 'a', rates: { requestsPerSecond: 10 }, pending: 2, p50Ms: 5, p99Ms: 9.9 },
    { model: 'new', rates: undefined, inFlight: undefined },
  ])
  t.match(
    modelRows(parseReading(metricsOf({ a: [3, 30] }), 4000), now),
    [{ model: 'a', rates: undefined }],
    'counters that begin anew are no negative rate',
  )
})

/** How many there were up to 10, to 20, and in all. */
const buckets = (...counts: readonly number[]) =>
  new Map([10, 20, Number.POSITIVE_INFINITY].map((bound, i) => [bound, counts[i] ?? 0]))

await t.test('`tutti top` shows the quantiles of the interval between two readings', async (t) => {
  t.equal(bucketQuantile(buckets(10, 20, 20), buckets(0, 0, 0), 0.75), 15)
  t.equal(bucketQuantile(buckets(10, 30, 30), buckets(10, 10, 10), 0.5), 15)
  t.equal(bucketQuantile(buckets(0, 0, 5), buckets(0, 0, 0), 0.5), 20, 'above all bounds')
  for (const [now, before] of [
    [buckets(1, 1, 1), undefined],
    [buckets(1, 1, 1), buckets(1, 1, 1)],
    [buckets(1, 1, 1), buckets(2, 2, 2)],
    [new Map<number, number>(), new Map<number, number>()],
  ] as const) {
    t.equal(bucketQuantile(now, before, 0.5), undefined)
  }
})

await t.test('the table fits the screen, whatever the models are called', async () => {
  const name = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.constant(`${ESCAPE}[2J${ESCAPE}]0;title\u0007`),
  )
  const models = fc.dictionary(name, fc.tuple(fc.nat(1e6), fc.nat(1e9)), { maxKeys: 40 })
  const size = fc.record({ columns: fc.integer({ min: 1, max: 250 }), rows: fc.nat(60) })
  const holds = fc.property(models, size, name, (models, size, problem) => {
    const reading = parseReading(metricsOf(models), 2000)
    const before = parseReading(metricsOf({}), 1000)
    const rows = modelRows(reading, before)
    const view = { url: 'http://x', reading, rows, problem: undefined }
    return [view, { ...view, reading: undefined, rows: [], problem }].every((shown) => {
      const lines = renderTop(shown, size)
      return (
        lines.length <= size.rows &&
        lines.every((line) => Array.from(line).length <= size.columns) &&
        [...lines, ...renderTop(shown)].every((line) => !/[\p{Cc}\p{Cf}]/u.test(line))
      )
    })
  })
  fc.assert(holds, { numRuns: 200 })
})

/** 1,000 models, of which each got more requests than the one before. */
const thousand = (factor: number) =>
  Object.fromEntries(
    Array.from({ length: 1000 }, (_, i) => [`model-${i}`, [i * factor, i] as const]),
  )

await t.test('the table shows the busiest of 1,000 models', async (t) => {
  const before = parseReading(metricsOf(thousand(1)), 0)
  const reading = parseReading(metricsOf(thousand(2)), 1000)
  const view = { url: 'x', reading, rows: modelRows(reading, before), problem: undefined }
  const lines = renderTop(view, { columns: 80, rows: 24 })
  t.equal(lines.length, 24)
  t.match(lines[3], /^model-999 +999\/s/)
  t.equal(lines.at(-1), 'and 980 more')
  t.equal(renderTop(view).length, 1003)
})

/** Metrics of a model that answered so many times, each within 10 ms. */
function firstResponses(count: number): string {
  const bucket = 'nv_inference_first_response_histogram_ms_bucket{model="s",version="1"'
  const buckets = ['10', '20', '+Inf'].map((le) => `${bucket},le="${le}"} ${count}`)
  return [metricsOf({ s: [count, count] }), ...buckets].join('\n')
}

await t.test('times to first responses are not shown as times of requests', async (t) => {
  const reading = parseReading(firstResponses(3), 1000)
  const rows = modelRows(reading, parseReading(firstResponses(1), 0))
  t.match(rows, [{ p50Ms: undefined, firstResponseP50Ms: 5, firstResponseP99Ms: 9.9 }])
  const [, legend, , row] = renderTop({ url: 'x', reading, rows, problem: undefined })
  t.match(legend, /^\* time to the first response/)
  t.match(row, /5.*ms\* +9.*ms\*$/)
})

await t.test('metrics over mutual TLS', async (t) => {
  const folder = t.testdir()
  const { caFile, certFile, keyFile, ...files } = await createTestCertificates(folder)
  const { metrics } = await serveEcho(
    t,
    { numbers: echo('FP32', [3]) },
    [
      '--metrics-use-ssl',
      '--metrics-use-ssl-mutual',
      `--metrics-server-cert=${certFile}`,
      `--metrics-server-key=${keyFile}`,
      `--metrics-root-cert=${caFile}`,
    ],
    folder,
  )
  const top = ['top', `--url=${metrics.replace('http:', 'https:')}`, `--tls-ca=${caFile}`]
  const client = [`--tls-cert=${files.clientCertFile}`, `--tls-key=${files.clientKeyFile}`]
  t.match(await runCommand([...top, ...client]), { code: 0, out: /: 1 model, /, err: '' })
  t.match(await runCommand(top), { code: 1, out: '' })
})

await t.test('`tutti top` shows a real server as a table and as JSON', async (t) => {
  const models = { numbers: echo('FP32', [3]), idle: echo('FP32', [3]) }
  const { metrics, rest } = await serveEcho(t, models)
  const signals = createSignalSource()
  const load = ['bench', 'numbers', `--url=${rest}`, '--duration=3600', '--warm-up=0']
  const running = runCommand(load, { signals })
  const key = JSON.stringify(['numbers', undefined, '1'])
  await until('there are answers', async () => {
    const { models } = await readMetrics({ url: parseMetricsUrl(metrics), tls: {}, headers: {} })
    return (models.get(key)?.counts.requests ?? 0) > 0
  })
  const [table, json] = await Promise.all([
    runCommand(['top', `--url=${metrics}`]),
    runCommand(['top', `--url=${metrics}`, '--format=json']),
  ])
  signals.send('SIGINT')
  await running
  t.equal(table.code, 0, table.err)
  t.match(table.out, /^http:.*: 2 models, process [0-9.]+ [MG]iB, host /)
  t.match(table.out, /\nmodel +req\/s +fail\/s.*\nnumbers +[0-9.,]+\/s +0\/s .*\nidle +0\/s/)
  const { models: rows, processMemoryBytes } = JSON.parse(json.out)
  t.ok(processMemoryBytes > 1e7)
  t.match(rows, [
    { model: 'numbers', namespace: null, version: '1', failuresPerSecond: 0, p50Ms: null },
    { model: 'idle', requestsPerSecond: 0, meanMs: null },
  ])
  t.ok(rows[0].requestsPerSecond > 0 && rows[0].meanMs > 0)
})

await t.test('`tutti top` refuses an address that it cannot read', async (t) => {
  const { rest } = await serveEcho(t, { idle: echo('FP32', [3]) })
  t.match(await runCommand(['top', `--url=${rest}`]), {
    code: 1,
    err: /\/metrics gives no metrics: HTTP 404/,
  })
  const nowhere = `http://127.0.0.1:${await freePort()}`
  t.match(await runCommand(['top', `--url=${nowhere}`]), {
    code: 1,
    err: /127\.0\.0\.1:\d+: connect ECONNREFUSED/,
    out: '',
  })
  t.match(await runCommand(['top', '--url=grpc://x']), { code: 2, err: /--url: got 'grpc:/ })
  t.match(await runCommand(['top', 'x']), { code: 2, err: /got 'x', want flags only/ })
})

/** `tutti top` at a terminal, and then what the terminal is like. */
async function openTop(t: Test, script: string, url: string) {
  const terminal = openTerminal(`sh '${script}' ${url}`, { env: { ...env, TERM: 'xterm' } })
  t.teardown(() => terminal.close())
  const pid = /\d+/.exec(await terminal.type('', /pid \d+\r/))?.[0]
  return { ...terminal, pid: Number(pid) }
}

/** This process at a terminal of a kind. */
const like = (TERM: string): NodeJS.Process =>
  Object.create(process, {
    stdin: { value: { isTTY: true } },
    stdout: { value: { isTTY: true } },
    env: { value: { TERM } },
  })

await t.test('a terminal without control sequences is none', (t) => {
  t.equal(terminalOf(like('dumb')), undefined)
  t.ok(terminalOf(like('xterm')))
  t.end()
})

await t.test('`tutti top` follows a server at a terminal, and restores the terminal', async (t) => {
  const server = await openMetrics(t, metricsOf({ 'one\u001b[31m': [1, 1] }))
  const top = `'${process.execPath}' '${MAIN}' top --url="$1"`
  const script = join(t.testdir(), 'top.sh')
  await writeFile(
    script,
    `stty cols 100 rows 12; sh -c 'echo pid $$; exec "$@"' sh ${top}; echo "code $?"; stty -a\n`,
  )
  const open = () => openTop(t, script, server.url)
  const [keys, interrupted, killed] = await Promise.all([open(), open(), open()])
  await Promise.all([keys, interrupted, killed].map((one) => one.type('', /one\\u001b\[31m/)))
  server.close()
  await keys.type('', /no reading: .*ECONNREFUSED/)
  server.told.text = metricsOf({ two: [1, 1] })
  server.reopen()
  await keys.type('', /\ntwo +–/)
  server.told.text = metricsOf({ two: [101, 1000] })
  await keys.type('', /\ntwo +[0-9.]+\/s/)
  const ended = Promise.all([
    keys.type('xq', RESTORED),
    interrupted.type('\u0003', RESTORED),
    killed.type('', RESTORED),
  ])
  process.kill(killed.pid, 'SIGTERM')
  t.equal((await ended).length, 3)
})
