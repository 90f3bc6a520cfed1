import { parseTraceParent } from '@tutti/chassis'
import { testSeed } from '@tutti/chassis/testing'
import { compressAnswers, parseGrpcTimeout } from '@tutti/grpc'
import { chooseEncoding, parseContentEncoding, parseLoadBody, refuseForeignPage } from '@tutti/rest'
import { AccessCounts, AccessLog } from '@tutti/serving'
import { prefersOpenMetrics } from '@tutti/telemetry'
import * as fc from 'fast-check'
import t from 'tap'

/** Each reads a text that a client has written. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  'accept of metrics': prefersOpenMetrics,
  'accept-encoding': chooseEncoding,
  'content-encoding': parseContentEncoding,
  'grpc-accept-encoding': (text) => {
    const call = { headers: { 'grpc-accept-encoding': text }, answer: undefined, stream: undefined }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what of them is read here
    const given = [call, undefined] as unknown as Parameters<ReturnType<typeof compressAnswers>>
    compressAnswers(() => {}, 'low')(...given)
  },
  'grpc-timeout': parseGrpcTimeout,
  origin: (text) => refuseForeignPage({ origin: text, host: text }),
  'path of a call that is denied': (path) =>
    new AccessLog({ counts: new AccessCounts() }).denied(
      { headers: {}, path, socket: undefined },
      'x',
    ),
  traceparent: parseTraceParent,
  'file of a load': (text) =>
    parseLoadBody(Buffer.from(JSON.stringify({ parameters: { 'file:1/f': text } }))),
}

const LENGTH = 2 ** 15
/** Milliseconds of a reader: one whose time grows with the square of so long a text takes a second; these take 20 ms at most. */
const MOST_MS = 100

// The kind: a pattern, or a loop, that looks at what follows from each place of a long run of the same characters.
await t.test('no text of a client takes longer than its length explains', (t) => {
  const unit = fc.constantFrom(
    '=',
    ' ',
    '\t',
    '/',
    ':',
    ';',
    ',',
    '.',
    '-',
    '0',
    '1',
    'a',
    '%',
    '"',
    '[',
    '\n',
    '\r\n',
    ' ,',
    'q=0',
    'A=',
    'é',
  )
  const end = fc.constantFrom('', '=', 'x', '/', ',', '!', ' ', '0', '\n', '\u0000')
  const text = fc
    .tuple(end, unit, end)
    .map(([before, one, after]) => before + one.repeat(LENGTH) + after)
  for (const [name, read] of Object.entries(READERS)) {
    let slowest = { ms: 0, begin: '' }
    const property = fc.property(text, (given) => {
      const ms = cpuMs(() => read(given))
      if (ms > slowest.ms) slowest = { ms, begin: given.slice(0, 20) }
      return ms < MOST_MS
    })
    fc.check(property, { seed: testSeed(), numRuns: 200, endOnFailure: true })
    t.ok(slowest.ms < MOST_MS, `${name}: ${JSON.stringify(slowest)}`)
  }
  t.end()
})

function cpuMs(read: () => unknown): number {
  const before = process.threadCpuUsage()
  try {
    read()
  } catch {
    // Most of these texts are wrong.
  }
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}
