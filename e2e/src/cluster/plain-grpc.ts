import { Client, credentials, type ServiceError } from '@grpc/grpc-js'
import type { Test } from 'tap'

const DEADLINE_MS = 20_000
/** `list_services: "*"` of grpc.reflection.v1.ServerReflectionRequest. */
const LIST_SERVICES = Buffer.from([0x3a, 1, 0x2a])

/** Calls of gRPC's own services, whose messages are simple enough to be written by hand. */
export interface PlainGrpc {
  /** `grpc.health.v1.Health/Check`; gives back the answer's bytes. */
  check(): Promise<Buffer>
  /** A stream of `rounds` questions, each asked when the one before is answered; gives back the answers. */
  converse(rounds: number): Promise<readonly Buffer[]>
}

const same = (bytes: Buffer): Buffer => bytes
const options = (): { readonly deadline: number } => ({ deadline: Date.now() + DEADLINE_MS })

/** Opens a connection that is closed with the test; with TLS if the authority of the server is given. */
export function openGrpc(
  t: Test,
  address: string,
  { host, ca }: { readonly host: string; readonly ca?: Buffer | undefined },
): Client {
  const trust = ca === undefined ? credentials.createInsecure() : credentials.createSsl(ca)
  const client = new Client(address, trust, {
    'grpc.default_authority': host,
    ...(ca !== undefined && { 'grpc.ssl_target_name_override': host }),
    'grpc.use_local_subchannel_pool': 1,
  })
  t.teardown(() => client.close())
  return client
}

export function plainGrpc(client: Client): PlainGrpc {
  return {
    check: () =>
      new Promise((resolve, reject) => {
        const done = (error: ServiceError | null, answer?: Buffer): void => {
          if (answer === undefined) reject(error ?? new Error('no answer'))
          else resolve(answer)
        }
        const path = '/grpc.health.v1.Health/Check'
        client.makeUnaryRequest(path, same, same, Buffer.alloc(0), options(), done)
      }),
    converse: async (rounds) => {
      const path = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'
      const call = client.makeBidiStreamRequest(path, same, same, options())
      const answers: Buffer[] = []
      call.write(LIST_SERVICES)
      for await (const answer of call) {
        answers.push(answer)
        if (answers.length < rounds) call.write(LIST_SERVICES)
        else call.end()
      }
      return answers
    },
  }
}
