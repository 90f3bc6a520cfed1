import { KubeError, type Pod, type Stored } from '@tutti/kube'
import * as fc from 'fast-check'
import t from 'tap'
import { type ContainerLine, isAboutRequest, parseLogLine } from './log-line.ts'
import { type LogSource, sourcesOf } from './log-sources.ts'
import { followLogs, type LastLines, showLogs } from './show-logs.ts'

await t.test('a line has the time of the kubelet before it', (t) => {
  const time = '2026-11-27T10:00:00.123500000Z'
  t.match(parseLogLine(`${time} {"a":1}`), {
    time,
    timeMs: Date.parse(time) + 0.5,
    text: '{"a":1}',
  })
  const zoned = parseLogLine('2026-11-27T12:00:00.5+02:00 x')
  t.equal(zoned?.timeMs, Date.parse('2026-11-27T10:00:00.500Z'))
  t.match(parseLogLine('2026-11-27T10:00:00Z'), { text: '' })
  for (const text of ['', 'rpc error', '2026-99-27T10:00:00Z x', '2026-11-27 10:00:00 x']) {
    t.equal(parseLogLine(text), undefined, text)
  }
  t.end()
})

await t.test('a request has the lines with its id or its trace, in each format of logs', (t) => {
  const long = 'i'.repeat(300)
  const cases: readonly (readonly [string, string, boolean])[] = [
    ['{"request":"r1","traceId":"t1"}', 'r1', true],
    ['{"request":"r1","traceId":"t1"}', 't1', true],
    ['{"request":"r11"}', 'r1', false],
    ['{"message":"r1"}', 'r1', false],
    ['{"request":"\\u0072\\"1"}', 'r"1', true],
    [`{"request":"${'i'.repeat(256)}"}`, long, true],
    ['E1127 10:00:00 call failed request=r1', 'r1', true],
    ['E1127 10:00:00 call failed request=r1-2 r1', 'r1', true],
    ['E1127 10:00:00 call failed request=r1-2', 'r1', false],
    ['{"request":"r1', 'r1', true],
  ]
  for (const [text, id, is] of cases) t.equal(isAboutRequest(text, id), is, `${text} ${id}`)
  t.end()
})

await t.test('whatever id a client gives, the line that has it is found', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1 }), fc.string(), (id, other) => {
      t.ok(isAboutRequest(JSON.stringify({ message: 'call failed', request: id }), id))
      if (other !== id) t.notOk(isAboutRequest(JSON.stringify({ request: other }), id))
      t.type(isAboutRequest(other, id), 'boolean')
    }),
  )
  t.end()
})

const meta = (name: string, labels: Record<string, string>) => ({
  name,
  namespace: 'shop',
  uid: name,
  resourceVersion: '1',
  creationTimestamp: '',
  labels,
})
const STEP = { 'app.kubernetes.io/component': 'step', 'tutti.dev/model': 'm' }

function pod(name: string, labels: Record<string, string>, status: object): Stored<Pod> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: meta(name, labels),
    spec: { containers: [] },
    status,
  }
}

const container = (name: string, state: object, more: object = {}) => ({
  name,
  ready: true,
  restartCount: 0,
  image: 'x',
  imageID: 'x',
  state,
  ...more,
})
const RUNNING = { running: {} }
const ENDED = { terminated: { exitCode: 0 } }

await t.test('containers of ours have lines once they have started', (t) => {
  const pods = [
    pod('step', STEP, {
      initContainerStatuses: [container('fetch', ENDED), container('istio-init', ENDED)],
      containerStatuses: [container('main', RUNNING), container('istio-proxy', RUNNING)],
    }),
    pod(
      'other',
      { ...STEP, 'tutti.dev/model': 'n' },
      { containerStatuses: [container('main', RUNNING)] },
    ),
    pod('new', STEP, { containerStatuses: [container('main', { waiting: {} })] }),
    pod('crashes', STEP, {
      containerStatuses: [
        container('main', { waiting: {} }, { restartCount: 2, lastState: ENDED }),
      ],
    }),
    pod('bare', STEP, {}),
    pod(
      'router',
      { 'app.kubernetes.io/component': 'router' },
      { containerStatuses: [container('main', RUNNING)] },
    ),
  ]
  const labels = { 'app.kubernetes.io/component': 'step', 'tutti.dev/builtins': 'true' }
  pods.push(pod('builtins', labels, { containerStatuses: [container('main', RUNNING)] }))
  const of = (o: object, target: object = {}) =>
    sourcesOf(
      pods,
      {
        models: [{ apiVersion: 'x', kind: 'Model', metadata: meta('m', {}) }],
        isRouter: false,
        hasBuiltins: false,
        ...target,
      },
      { withRouters: false, isPrevious: false, ...o },
    ).map((one) => `${one.pod}/${one.container}${one.isOver ? ' over' : ''}`)
  t.same(of({}), ['step/fetch over', 'step/main', 'crashes/main over'])
  t.same(of({ withRouters: true }), [
    'step/fetch over',
    'step/main',
    'crashes/main over',
    'router/main',
  ])
  t.same(of({ isPrevious: true }), ['crashes/main over'])
  t.same(of({}, { models: [], isRouter: true }), ['router/main'])
  t.same(of({}, { models: [], hasBuiltins: true }), ['builtins/main'])
  t.end()
})

const source = (pod: string, isOver = false): LogSource => ({
  namespace: 'shop',
  pod,
  container: 'main',
  key: pod,
  isOver,
})
const lineAt = (timeMs: number, text: string): ContainerLine => ({
  time: String(timeMs),
  timeMs,
  text,
})

async function* toAsync(lines: readonly ContainerLine[]): AsyncGenerator<ContainerLine> {
  yield* lines
}

await t.test(
  'lines of all containers come by time, those of one time in their order',
  async (t) => {
    const logs = fc.array(fc.array(fc.nat(20)), { maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(logs, async (times) => {
        const lines = times.map((log, i) =>
          log.toSorted((a, b) => a - b).map((time, n) => lineAt(time, `${i} ${n}`)),
        )
        const out: string[] = []
        const last: LastLines = new Map()
        const count = await showLogs(
          lines.map((_, i) => source(String(i))),
          last,
          {
            read: ({ pod }) => toAsync(lines[Number(pod)] ?? []),
            isShown: () => true,
            out: (text) => out.push(text),
            failed: (_, error) => t.fail(String(error)),
          },
        )
        t.equal(count, lines.flat().length)
        const wanted = lines
          .flat()
          .toSorted(
            (a, b) => a.timeMs - b.timeMs || a.text.localeCompare(b.text, 'en', { numeric: true }),
          )
        const shown = out.map((text) => text.slice(text.indexOf(' ') + 1, -1))
        const timeOf = new Map(lines.flat().map(({ text, timeMs }) => [text, timeMs]))
        t.same(
          shown.map((text) => timeOf.get(text)),
          wanted.map(({ timeMs }) => timeMs),
        )
        for (const [i] of lines.entries()) {
          const own = shown.filter((text) => text.startsWith(`${i} `))
          t.same(
            own,
            (lines[i] ?? []).map(({ text }) => text),
          )
        }
      }),
      { numRuns: 30 },
    )
  },
)

await t.test('what is followed shows each line once, until a container has ended', async (t) => {
  const out: string[] = []
  const read: string[] = []
  const looks = [[source('a'), source('b')], [source('a', true), source('b')], [source('a', true)]]
  const last: LastLines = new Map([['a', lineAt(2, 'two')]])
  await followLogs(last, {
    sources: async () => looks.shift() ?? [],
    read: ({ pod, isOver }, { from }) => {
      read.push(`${pod} ${from}${isOver ? ' over' : ''}`)
      if (pod === 'b') throw new KubeError({ status: 500, reason: 'x', message: 'gone' })
      return toAsync([lineAt(1, 'one'), lineAt(2, 'two'), lineAt(3, 'th\u001bree')])
    },
    isShown: () => true,
    out: (text) => out.push(text),
    failed: ({ pod }, error) => out.push(`${pod} failed: ${Object(error).message}\n`),
    wait: async () => {
      await new Promise((resolve) => setImmediate(resolve))
      return looks.length > 0
    },
  })
  t.same(out, ['b failed: gone\n', '[pod/a/main] th\\u001bree\n', 'b failed: gone\n'])
  t.same(
    read,
    ['a 2', 'b undefined', 'a 3 over', 'b undefined'],
    'one that has ended is read once more',
  )
})

await t.test('an error of more than one container ends it', async (t) => {
  const follow = followLogs(new Map(), {
    sources: async () => [source('a')],
    read: () => {
      throw new KubeError({ status: 403, reason: 'Forbidden', message: 'no' })
    },
    isShown: () => true,
    out: () => {},
    failed: (_, error) => {
      throw error
    },
    wait: () => new Promise(() => {}),
  })
  await t.rejects(follow, { message: 'no' })
})
