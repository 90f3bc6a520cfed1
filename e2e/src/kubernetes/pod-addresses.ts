import { randomInt } from 'node:crypto'
import { createServer, type Server } from 'node:net'

/** 254 loopback addresses that no other kubelet of this machine uses. */
export interface AddressBlock {
  /** One after the other, so that an address is not used again at once. */
  next(used: ReadonlySet<string>): string
  release(): void
}

const KUBELET_PORT = 10_250
const ATTEMPTS = 100

/** Whoever listens on the kubelet's port of the last address has the block. */
export async function takeAddresses(): Promise<AddressBlock> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const block = `127.98.${randomInt(256)}`
    const holder = await listen(`${block}.255`)
    if (holder === undefined) continue
    let last = 0
    const next = (used: ReadonlySet<string>): string => {
      for (;;) {
        last = (last % 254) + 1
        const address = `${block}.${last}`
        if (!used.has(address)) return address
      }
    }
    return { next, release: () => void holder.close() }
  }
  throw new Error('every block of addresses is taken')
}

function listen(address: string): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen(KUBELET_PORT, address, () => resolve(server))
    server.unref()
  })
}
