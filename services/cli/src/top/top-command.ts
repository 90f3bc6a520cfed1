import {
  type FlagTable,
  type ProcessEnvironment,
  sleep,
  systemClock,
  type Terminal,
} from '@tutti/chassis'
import { CONNECTION_FLAGS, LOOK_UP_SECS, readAccess } from '@tutti/command-line/client'
import { RESULT_FORMAT_FLAG, withFlags } from '@tutti/command-line/command'
import { ServeError } from '@tutti/errors'
import { modelRows } from './model-rows.ts'
import { parseMetricsUrl, readMetrics, type ScrapedServer } from './read-metrics.ts'
import type { TopReading } from './reading.ts'
import { renderTop, type TopView } from './render-top.ts'
import { renderTopResult, TopResult } from './top-result.ts'

export const TOP_FLAGS = {
  url: {
    type: 'string',
    default: 'http://127.0.0.1:8002',
    description: "Address of the server's metrics: http:// or https://.",
  },
  interval: {
    type: 'int',
    min: 1,
    max: 3600,
    default: 1,
    unit: 's',
    description: 'Time between two readings.',
  },
  once: {
    type: 'bool',
    default: false,
    description:
      'Print one table and exit; this is the default without a terminal and with --format json.',
  },
  ...CONNECTION_FLAGS,
  'timeout-secs': {
    ...CONNECTION_FLAGS['timeout-secs'],
    default: LOOK_UP_SECS,
    description: 'Time for each reading.',
  },
  format: RESULT_FORMAT_FLAG,
} as const satisfies FlagTable

export const topCommand = withFlags(
  { usage: 'tutti top [FLAGS]', flags: TOP_FLAGS, result: TopResult },
  async ({ flags, positionals }, environment) => {
    if (positionals.length > 0) {
      throw new ServeError('FLAG_INVALID', `got '${positionals[0]}', want flags only`)
    }
    const url = parseMetricsUrl(flags.url)
    const timeoutMs = flags['timeout-secs'] * 1000
    const source = { url, timeoutMs, ...(await readAccess(flags, environment)) }
    const intervalMs = flags.interval * 1000
    const isJson = flags.format === 'json'
    const { terminal } = environment
    if (terminal !== undefined && !flags.once && !isJson) {
      await follow(source, { intervalMs, terminal, signals: environment.signals })
      return 0
    }
    const view = await readOnce(source, intervalMs)
    environment.out(isJson ? renderTopResult(view, intervalMs) : `${renderTop(view).join('\n')}\n`)
    return 0
  },
)

async function readOnce(source: ScrapedServer, intervalMs: number): Promise<TopView> {
  const before = await readMetrics(source)
  await sleep(intervalMs, { clock: systemClock })
  const reading = await readMetrics(source)
  return viewOf(source.url, reading, before)
}

function viewOf(url: URL, reading: TopReading, before: TopReading | undefined): TopView {
  return { url: url.href, reading, rows: modelRows(reading, before), problem: undefined }
}

interface FollowOptions {
  readonly intervalMs: number
  readonly terminal: Terminal
  readonly signals: ProcessEnvironment['signals']
}

const CONTROL_C = '\u0003'

/** Shows readings on the whole terminal until the user or a signal ends it. */
async function follow(
  source: ScrapedServer,
  { intervalMs, terminal, signals }: FollowOptions,
): Promise<void> {
  const stop = new AbortController()
  const { signal } = stop
  const end = (): void => stop.abort(new ServeError('CANCELLED', 'the user ended it'))
  let view: TopView = { url: source.url.href, reading: undefined, rows: [], problem: undefined }
  const unlisten = signals.listen(end)
  const screen = terminal.openScreen({
    onKey: (key) => {
      if (key === 'q' || key === 'Q' || key === CONTROL_C) end()
    },
    onResize: () => screen.draw(renderTop(view, screen.size())),
    onEnd: end,
  })
  try {
    while (!signal.aborted) {
      const startedAt = systemClock.now()
      view = await nextView(source, view, signal)
      if (signal.aborted) break
      screen.draw(renderTop(view, screen.size()))
      const restMs = Math.max(0, intervalMs - (systemClock.now() - startedAt))
      // The loop sees the end itself.
      await sleep(restMs, { clock: systemClock, signal }).catch(() => {})
    }
  } finally {
    screen.close()
    unlisten()
  }
}

/** Reads the next view. A server that comes back is read from its beginning. */
async function nextView(
  source: ScrapedServer,
  last: TopView,
  signal: AbortSignal,
): Promise<TopView> {
  try {
    return viewOf(source.url, await readMetrics(source, signal), last.reading)
  } catch (error) {
    const { message } = ServeError.from(error)
    return { url: source.url.href, reading: undefined, rows: [], problem: message }
  }
}
