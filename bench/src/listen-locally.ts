import type { Server } from 'node:net'

/** Lets a server of a bench listen on a free port, and says the port as our programs do. The process ends at SIGTERM. */
export function listenLocally(server: Server, port: 'grpcPort' | 'httpPort'): void {
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    if (typeof address !== 'object' || address === null) throw new Error('the server has no port')
    const ready = { message: 'server ready', [port]: address.port }
    process.stdout.write(`${JSON.stringify(ready)}\n`)
  })
  process.once('SIGTERM', () => process.exit(0))
}
