import { renderJsonLine } from '@tutti/chassis'
import { readonlyListOf } from '@tutti/command-line/results'
import type { OutgoingRequest } from '@tutti/protocol'
import { z } from 'zod'
import type { BenchResult } from './bench-result.ts'

const Latencies = z.object({
  mean: z.number(),
  p50: z.number(),
  p90: z.number(),
  p99: z.number(),
  p999: z.number(),
  max: z.number(),
})

const Failures = z.object({
  reason: z.string(),
  count: z.int(),
  message: z.string().meta({ description: 'Of the first.' }),
})

const TargetReport = z.object({
  target: z.string().meta({ description: 'A, B and so on, in the order of the command line.' }),
  url: z.string(),
  concurrency: z.int().nullable().meta({
    description: 'Requests that were always in flight; null with a rate.',
  }),
  rate: z.number().nullable().meta({ description: 'Requests per second; null without --rate.' }),
  seconds: z.number(),
  answered: z.int(),
  failed: z.int().meta({ description: 'Requests that failed; they are in no other figure.' }),
  failures: readonlyListOf(Failures),
  unanswered: z.int().meta({
    description:
      'Without an answer when the user ended the run, or --timeout-secs, and at least 60 s, after it.',
  }),
  unsent: z.int().meta({ description: 'Due at a rate, and not sent.' }),
  answersPerSecond: z.number(),
  latencyMs: Latencies.nullable().meta({ description: 'null if there was no answer.' }),
  notes: readonlyListOf(z.string()).meta({
    description: 'What a reader of the figures has to know.',
  }),
})

/** The result that `tutti bench` prints as JSON. */
export const BenchReport = z
  .object({
    model: z.string(),
    version: z.string().nullable().meta({ description: 'null: the one that the server chose.' }),
    inputs: readonlyListOf(
      z.object({ name: z.string(), datatype: z.string(), shape: readonlyListOf(z.int()) }),
    ),
    wasInterrupted: z.boolean().meta({ description: 'The user ended the run.' }),
    results: readonlyListOf(TargetReport).meta({ description: 'One for each load and server.' }),
  })
  .meta({ title: 'Result of tutti bench' })
type BenchReport = z.infer<typeof BenchReport>

/** Renders the results as one line of JSON. */
export function renderBenchReport(
  { modelName, modelVersion, inputs }: OutgoingRequest,
  {
    results,
    wasInterrupted,
  }: { readonly results: readonly BenchResult[]; readonly wasInterrupted: boolean },
): string {
  const report: BenchReport = {
    model: modelName,
    version: modelVersion || null,
    inputs: inputs.map(({ name, datatype, shape }) => ({ name, datatype, shape })),
    wasInterrupted,
    results: results.map(({ load, latencyMs, ...result }) => ({
      ...result,
      concurrency: load.kind === 'closed' ? load.concurrency : null,
      rate: load.kind === 'open' ? load.rate : null,
      latencyMs: latencyMs ?? null,
    })),
  }
  return renderJsonLine(report)
}
