import { startFaultProxy, startNatsServer } from '@tutti/chassis/testing'
import { answer, brokerAt, type Teardown, tensorBytes, until } from './endpoints.ts'
import type { TestHandler } from './envelopes.ts'

/** A broker, and a relay to it whose faults meet one member only. */
export async function openRelayedBroker(t: Teardown) {
  const server = await startNatsServer()
  t.teardown(() => server.stop())
  const proxy = await startFaultProxy({ port: server.port })
  t.teardown(async () => {
    // Resetting a connection that is just ending would leave its socket open for ever.
    proxy.resume()
    await until(() => proxy.connections === 0)
    await proxy.close()
  })
  const relayed = brokerAt(`nats://127.0.0.1:${proxy.port}`)
  return { server, proxy, direct: brokerAt(server.url), relayed }
}

/** Answers when it is told to. */
export function held(): { readonly handle: TestHandler; readonly ends: (() => void)[] } {
  const ends: (() => void)[] = []
  return {
    ends,
    handle: async (_envelope, _tensors, sink) => {
      await new Promise<void>((resolve) => ends.push(resolve))
      sink.send(answer(tensorBytes(1)))
    },
  }
}
