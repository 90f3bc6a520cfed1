import { randomBytes } from 'node:crypto'
import { http2Load, toGrpcFrame } from './http2-load.ts'
import { type BenchServer, startHttp2Server } from './servers.ts'
import { compareSmall, type Level, ROUNDS } from './small-rounds.ts'

const BODY_BYTES = 100
const WARM_UP = { inFlight: 64, requests: 20_000 } as const
const LEVELS = [
  { inFlight: 1, requests: 4000 },
  { inFlight: 8, requests: 12_000 },
  { inFlight: 64, requests: 20_000 },
] as const

/**
 * Measures what our HTTP/2 saves: processor time of a small unary request through it and through node:http2, with the same handler,
 * which gives back what came. The load is in this process, outside of what is measured. The columns of `tutti` are ours.
 */
export async function benchHttp2(nodeFlags: readonly string[]): Promise<void> {
  const body = toGrpcFrame(randomBytes(BODY_BYTES))
  const tutti = await startHttp2Server('own', nodeFlags)
  const empty = await startHttp2Server('node', nodeFlags)
  const load = async ({ grpcPort: port }: BenchServer, level: Level): Promise<number> =>
    (await http2Load({ port, path: '/echo', body, ...level })).perSecond
  try {
    console.log(
      `\nhttp2: ${BODY_BYTES} bytes there and back, medians of ${ROUNDS}; "empty" is node:http2`,
    )
    await compareSmall({ name: 'http2', tutti, empty, levels: LEVELS, warmUp: WARM_UP, load })
  } finally {
    await Promise.all([tutti.stop(), empty.stop()])
  }
}
