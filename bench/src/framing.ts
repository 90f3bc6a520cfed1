import { randomBytes } from 'node:crypto'
import { http1Load, toHttp1Request } from './http1-load.ts'
import { http2Load, toGrpcFrame } from './http2-load.ts'
import { startFramingServer } from './servers.ts'
import { compareSmall, GRPC_LEVELS, ROUNDS, type SmallRounds } from './small-rounds.ts'

const BODY_BYTES = 100

/**
 * Measures what our HTTP/2 and HTTP/1.1 save: processor time of a small request through them and through node:http2 and node:http,
 * with the same handler, which answers with the request's bytes. This process sends the load, so it is not measured. The columns
 * called `tutti` are of services/http.
 */
export async function benchFraming(nodeFlags: readonly string[]): Promise<void> {
  const body = randomBytes(BODY_BYTES)
  const frame = toGrpcFrame(body)
  await compareFraming('http2', nodeFlags, async ({ grpcPort: port }, level) => {
    return (await http2Load({ port, path: '/echo', body: frame, ...level })).perSecond
  })
  const request = toHttp1Request('/echo', body)
  await compareFraming('http1', nodeFlags, async ({ httpPort: port }, { inFlight, requests }) => {
    return (await http1Load({ port, request, connections: inFlight, requests })).perSecond
  })
}

async function compareFraming(
  name: 'http1' | 'http2',
  nodeFlags: readonly string[],
  load: SmallRounds['load'],
): Promise<void> {
  const tutti = await startFramingServer(name, 'own', nodeFlags)
  const empty = await startFramingServer(name, 'node', nodeFlags)
  try {
    console.log(
      `\n${name}: ${BODY_BYTES} bytes there and back, medians of ${ROUNDS}; "empty" is Node's`,
    )
    await compareSmall({ name, tutti, empty, levels: GRPC_LEVELS, load })
  } finally {
    await Promise.all([tutti.stop(), empty.stop()])
  }
}
