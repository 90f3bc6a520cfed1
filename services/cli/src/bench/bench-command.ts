import { setMaxListeners } from 'node:events'
import { flagRefusal, type ProcessEnvironment, systemClock } from '@tutti/chassis'
import {
  type ModelClient,
  openClient,
  parseServerUrl,
  readModelName,
  readVersion,
} from '@tutti/command-line/client'
import { withFlags } from '@tutti/command-line/command'
import { bug, ServeError } from '@tutti/errors'
import type { OutgoingRequest } from '@tutti/protocol'
import { BENCH_FLAGS, type BenchFlags } from './bench-flags.ts'
import { benchInputs } from './bench-inputs.ts'
import { BenchReport, renderBenchReport } from './bench-report.ts'
import { type BenchResult, toResult } from './bench-result.ts'
import { labelOfTarget, renderHead, renderPlot, renderRows } from './bench-text.ts'
import { type BenchLoad, readLoads } from './load.ts'
import { type BenchTarget, runLoad } from './run-load.ts'

const MOST_TARGETS = 4
/** A server that stopped answering ends no run else; `--timeout-secs` may ask for more. */
const LAST_ANSWERS_SECS = 60

export const benchCommand = withFlags(
  {
    usage:
      'tutti bench MODEL [FLAGS]\n\nThe exit code is 1 if a request failed or a load had no answer.',
    flags: BENCH_FLAGS,
    operands: ['model'],
    result: BenchReport,
  },
  async ({ flags, positionals }, environment) => {
    const model = readModelName(positionals)
    const loads = readLoads(flags)
    if (flags.url.length > MOST_TARGETS) {
      throw flagRefusal('--url', `got ${flags.url.length}, want at most ${MOST_TARGETS}`)
    }
    // All addresses are read before anything is opened.
    flags.url.forEach(parseServerUrl)
    const clients = await Promise.all(
      flags.url.map((url) => openClient({ ...flags, url }, environment)),
    )
    try {
      const { request, targets } = await prepare(clients, { model, flags, environment })
      return await bench(targets, { request, loads, flags, environment })
    } finally {
      for (const client of clients) client.close()
    }
  },
)

/** Prepares the same request for all servers. Each client encodes it once. */
async function prepare(
  clients: readonly ModelClient[],
  o: {
    readonly model: string
    readonly flags: BenchFlags
    readonly environment: ProcessEnvironment
  },
): Promise<{ readonly request: OutgoingRequest; readonly targets: readonly BenchTarget[] }> {
  const version = readVersion(o.flags)
  const described = await Promise.all(clients.map((client) => client.metadata(o.model, version)))
  const [first] = described
  if (first === undefined) throw bug('there is no server')
  const inputs = await benchInputs(first, o.flags, o.environment)
  const request = { modelName: o.model, modelVersion: version, inputs }
  const targets = clients.flatMap((client, i) => {
    const metadata = described[i]
    return metadata === undefined ? [] : [{ send: client.prepare(request, metadata) }]
  })
  return { request, targets }
}

/**
 * Runs all loads until they or the user end. @returns the exit code: 1 if a request failed, or a server answered nothing under a
 * load.
 */
async function bench(
  targets: readonly BenchTarget[],
  o: {
    readonly request: OutgoingRequest
    readonly loads: readonly BenchLoad[]
    readonly flags: BenchFlags
    readonly environment: ProcessEnvironment
  },
): Promise<number> {
  const { flags, environment } = o
  const { modelName: model } = o.request
  const urls = flags.url
  const tell = (text: string): void => {
    if (flags.format === 'text') environment.out(text)
  }
  const stop = new AbortController()
  // Each request in flight listens.
  setMaxListeners(0, stop.signal)
  const end = () => stop.abort(new ServeError('CANCELLED', 'the user ended the run'))
  const unlisten = environment.signals.listen(end)
  const results: BenchResult[] = []
  try {
    tell(renderHead({ model, seconds: flags.duration, urls }))
    for (const load of o.loads) {
      if (stop.signal.aborted) break
      const tallies = await runLoad(targets, load, {
        durationMs: flags.duration * 1000,
        warmUpMs: flags['warm-up'] * 1000,
        maxInFlight: flags['max-in-flight'],
        lastAnswersMs: Math.max(LAST_ANSWERS_SECS, flags['timeout-secs'] ?? 0) * 1000,
        clock: systemClock,
        signal: stop.signal,
      })
      const rows = tallies.map((tally, i) =>
        toResult({ label: labelOfTarget(i), url: urls[i] ?? '' }, load, tally),
      )
      results.push(...rows)
      tell(renderRows(rows))
    }
  } finally {
    unlisten()
  }
  tell(renderPlot(results))
  if (flags.format === 'json') {
    environment.out(renderBenchReport(o.request, { results, wasInterrupted: stop.signal.aborted }))
  }
  return results.every(({ answered, failed }) => answered > 0 && failed === 0) ? 0 : 1
}
