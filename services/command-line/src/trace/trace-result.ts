import { renderJsonLine } from '@tutti/chassis'
import { SpanCounts, waterfallRows } from '@tutti/console'
import { z } from 'zod'
import { known, readonlyListOf } from '../results/result-schema.ts'
import { pathOf, type RequestTrace, timeParts } from './request-trace.ts'

const TimePart = z.object({
  name: z.string(),
  ms: z.number(),
  share: z.number().meta({ description: 'Of clientMs, from 0 to 1.' }),
})

const TracedStep = z.object({
  step: z.string().meta({ description: 'Its name; empty for the request.' }),
  model: z.string(),
  depth: z.int().meta({ description: '0 for the request, 1 for its steps, more within them.' }),
  waitsFor: readonlyListOf(z.string()).meta({ description: 'Steps whose end it waited for.' }),
  startMs: z.number().meta({ description: 'From the beginning of the request.' }),
  endMs: z.number().meta({ description: 'From the beginning of the request.' }),
  queueMs: z.number(),
  computeMs: z.number(),
  transferMs: z.number().nullable().meta({
    description: 'The rest; null where steps that ran at the same time took more together.',
  }),
  isCritical: z.boolean().meta({ description: 'The request waited for it.' }),
  reason: z.string().meta({ description: 'Of the error that it ended with; empty for none.' }),
  passed: z.enum(['skipped', 'defaulted']).exactOptional().meta({
    description: 'The step did not run: it was skipped, or this is the default after its failure.',
  }),
  why: z.string().exactOptional().meta({
    description: 'The condition that did not hold, or what was absent, of a step that was skipped.',
  }),
  isFallback: z.boolean().exactOptional().meta({ description: 'The fallback of the step ran.' }),
  within: z.string().exactOptional().meta({
    description: 'Items or iterations of the steps around it within which it ran, as [12].',
  }),
  itemReason: z.string().exactOptional().meta({
    description: 'Of the first item that failed.',
  }),
  counts: SpanCounts.exactOptional().meta({
    description: 'How often these things were done around this execution.',
  }),
})

/** The result that `tutti trace` prints as JSON. */
export const TraceResult = z
  .object({
    model: z.string(),
    version: z.string(),
    clientMs: z.number().meta({ description: 'The time that the client waited.' }),
    criticalPath: readonlyListOf(z.string()).meta({
      description: 'The steps that the request waited for, the first one first; none of a model.',
    }),
    parts: readonlyListOf(TimePart).meta({
      description: 'Where the time went, the longest first.',
    }),
    spans: readonlyListOf(TracedStep).meta({ description: 'The request, and then its steps.' }),
    leftOut: z.int().meta({ description: 'Further steps, which the server does not tell.' }),
  })
  .meta({ title: 'Result of tutti trace' })
type TraceResult = z.infer<typeof TraceResult>

/** Renders a trace as one line of JSON. */
export function renderTraceResult(trace: RequestTrace): string {
  const { model, version, clientMs, spans, leftOut } = trace
  const rows = waterfallRows(trace)
  const result: TraceResult = {
    model,
    version,
    clientMs,
    criticalPath: pathOf(trace),
    parts: timeParts(trace),
    spans: spans.map((span, i) => ({
      ...span,
      transferMs: known(rows[i]?.times.transferMs),
      isCritical: rows[i]?.isCritical === true,
    })),
    leftOut,
  }
  return renderJsonLine(result)
}
