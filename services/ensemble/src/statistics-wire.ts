import type { Json, ModelStatistics, StatisticDuration } from '@tutti/model-config'
import { z } from 'zod'
import { parseWire } from './wire-field.ts'

/** A uint64 in decimal digits: JSON numbers hold no more than 2^53. */
const Uint64Json = z
  .string()
  .regex(/^(?:0|[1-9][0-9]{0,19})$/, 'want an integer of at least 0 in decimal digits')
  .transform(BigInt)
  .refine((value) => value < 2n ** 64n, 'want an integer below 2^64')

const DurationJson = z.object({ count: Uint64Json, ns: Uint64Json })

const BatchJson = z.object({
  batchSize: Uint64Json,
  computeInput: DurationJson,
  computeInfer: DurationJson,
  computeOutput: DurationJson,
})

const StatisticsJson = z.array(
  z.object({
    name: z.string(),
    version: z.string(),
    lastInference: Uint64Json,
    inferenceCount: Uint64Json,
    executionCount: Uint64Json,
    success: DurationJson,
    fail: DurationJson,
    queue: DurationJson,
    computeInput: DurationJson,
    computeInfer: DurationJson,
    computeOutput: DurationJson,
    cacheHit: DurationJson,
    cacheMiss: DurationJson,
    batchStats: z.array(BatchJson),
  }),
)

const QuestionJson = z.object({ model: z.string(), version: z.string() })

/** Asks for the statistics of a model's version; '' for all models, '' for all versions. JSON as it stands. */
export type StatisticsQuestion = z.infer<typeof QuestionJson>

/** Statistics as JSON; integers become decimal digits. Copies. */
export function toStatisticsJson(statistics: readonly ModelStatistics[]): Json {
  return statistics.map((one) => ({
    name: one.name,
    version: one.version,
    lastInference: String(one.lastInference),
    inferenceCount: String(one.inferenceCount),
    executionCount: String(one.executionCount),
    success: toDuration(one.success),
    fail: toDuration(one.fail),
    queue: toDuration(one.queue),
    computeInput: toDuration(one.computeInput),
    computeInfer: toDuration(one.computeInfer),
    computeOutput: toDuration(one.computeOutput),
    cacheHit: toDuration(one.cacheHit),
    cacheMiss: toDuration(one.cacheMiss),
    batchStats: one.batchStats.map((batch) => ({
      batchSize: String(batch.batchSize),
      computeInput: toDuration(batch.computeInput),
      computeInfer: toDuration(batch.computeInfer),
      computeOutput: toDuration(batch.computeOutput),
    })),
  }))
}

function toDuration({ count, ns }: StatisticDuration): Json {
  return { count: String(count), ns: String(ns) }
}

/**
 * @param json - what JSON.parse made of a step's answer.
 * @throws ServeError MALFORMED_MESSAGE that names the field.
 */
export function parseStatisticsJson(json: unknown): readonly ModelStatistics[] {
  return parseWire('step statistics', StatisticsJson, json)
}

/** @throws ServeError MALFORMED_MESSAGE that names the field. */
export function parseStatisticsQuestion(json: unknown): StatisticsQuestion {
  return parseWire('statistics question', QuestionJson, json)
}
