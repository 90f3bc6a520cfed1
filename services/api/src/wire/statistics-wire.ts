import type { Json, ModelStatistics } from '@tutti/model-config'
import { z } from 'zod'
import { parseWire } from './wire-field.ts'

/** A uint64 in decimal digits: JSON numbers hold no more than 2^53. */
const Uint64Json = z.codec(
  z.string().regex(/^(?:0|[1-9][0-9]{0,19})$/, {
    error: 'want an integer of at least 0 in decimal digits',
    abort: true,
  }),
  z.bigint().max(2n ** 64n - 1n, { error: 'want an integer below 2^64', abort: true }),
  { decode: BigInt, encode: String },
)

const DurationJson = z.object({ count: Uint64Json, ns: Uint64Json })

const COMPUTE = {
  computeInput: DurationJson,
  computeInfer: DurationJson,
  computeOutput: DurationJson,
}

/** Codec between JSON and statistics. */
const StatisticsJson: z.ZodType<readonly ModelStatistics[], Json> = z.array(
  z.object({
    name: z.string(),
    version: z.string(),
    lastInference: Uint64Json,
    inferenceCount: Uint64Json,
    executionCount: Uint64Json,
    success: DurationJson,
    fail: DurationJson,
    queue: DurationJson,
    ...COMPUTE,
    cacheHit: DurationJson,
    cacheMiss: DurationJson,
    batchStats: z.array(z.object({ batchSize: Uint64Json, ...COMPUTE })),
  }),
)

/** Converts statistics to JSON, with integers as decimal digits. Copies. */
export function toStatisticsJson(statistics: readonly ModelStatistics[]): Json {
  return z.encode(StatisticsJson, statistics)
}

/**
 * Parses the statistics in a step's answer.
 *
 * @param json - what JSON.parse made of a step's answer.
 * @throws ServeError MALFORMED_MESSAGE that names the field.
 */
export function parseStatisticsJson(json: unknown): readonly ModelStatistics[] {
  return parseWire('step statistics', StatisticsJson, json)
}
