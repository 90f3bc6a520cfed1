import { createServer, type Server } from 'node:net'
import type { FlagValues } from '@tutti/chassis'
import { listenOn } from '@tutti/serving'
import { namePortFlag } from './port-flag.ts'
import type { SERVER_FLAGS } from './server-flags.ts'

/**
 * Checks that the ports on which `openServers` will listen are free, for an executable that takes minutes before it listens.
 * The ports are not kept: if another program takes one meanwhile, `openServers` fails. Ports of the edge, which only routers
 * have, are not checked.
 *
 * @param page - the page's listener; its port is undefined if there is no page.
 * @throws ServeError SETTING_INVALID that names the flag.
 */
export async function checkPorts(
  flags: FlagValues<typeof SERVER_FLAGS>,
  page: { readonly address: string; readonly port: number | undefined },
): Promise<void> {
  const listeners = [
    ['metrics', flags['allow-metrics'], flags['metrics-address'], flags['metrics-port']],
    ['http', flags['allow-http'], flags['http-address'], flags['http-port']],
    ['grpc', flags['allow-grpc'], flags['grpc-address'], flags['grpc-port']],
    ['console', page.port !== undefined, page.address, page.port ?? 0],
  ] as const
  // Held until the last is there: two flags may name one port.
  const held: Server[] = []
  try {
    for (const [listener, isAllowed, address, port] of listeners) {
      if (!isAllowed || port === 0) continue
      const server = createServer((socket) => socket.destroy())
      await namePortFlag(listener, () => listenOn(server, { address, port, onError: () => {} }))
      held.push(server)
    }
  } finally {
    await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))))
  }
}
