import { randomBytes } from 'node:crypto'
import { http2Load, toGrpcFrame } from './http2-load.ts'
import { type BenchServer, startHttp2Server } from './servers.ts'
import { compareSmall, GRPC_LEVELS, type Level, ROUNDS, WARM_UP } from './small-rounds.ts'

const BODY_BYTES = 100

/**
 * Measures what our HTTP/2 saves: processor time of a small unary request through it and through node:http2, with the same handler,
 * which answers with the request's bytes. This process sends the load, so it is not measured. The columns called `tutti` are of
 * services/http.
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
    await compareSmall({ name: 'http2', tutti, empty, levels: GRPC_LEVELS, warmUp: WARM_UP, load })
  } finally {
    await Promise.all([tutti.stop(), empty.stop()])
  }
}
