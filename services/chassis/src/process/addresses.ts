import type { ListenOptions } from 'node:net'

/** All addresses of the machine: the default of listeners. */
export const ALL_ADDRESSES = '::'

/**
 * Builds the options with which a server listens at an address.
 *
 * @param address - a name or an IP address; of IPv6 with or without brackets. ALL_ADDRESSES stands for those of IPv4 too, and where
 * the machine has no IPv6, for those of IPv4 alone; so does Node without a host.
 */
export function listenAt(address: string, port: number): ListenOptions {
  return address === ALL_ADDRESSES ? { port } : { host: withoutBrackets(address), port }
}

/** Takes the brackets off an address of IPv6. */
function withoutBrackets(address: string): string {
  return address.replace(/^\[(.*)\]$/, '$1')
}

/** Writes a host and a port as one text, an address of IPv6 in brackets. */
export function hostPort(host: string, port: number | string): string {
  return `${host.includes(':') ? `[${withoutBrackets(host)}]` : host}:${port}`
}
