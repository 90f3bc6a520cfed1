import { once } from 'node:events'
import { type IncomingMessage, request as requestPlain } from 'node:http'
import { request as requestSecure } from 'node:https'
import { text } from 'node:stream/consumers'

const LIMIT_MS = 20_000

/**
 * Asks the ingress controller for what a host has at a path; with TLS if the authority of the server is given.
 *
 * @param address - and port, of the node.
 * @throws Error if it is not answered with 200.
 */
export async function getPlain(
  address: string,
  path: string,
  { host, ca }: { readonly host: string; readonly ca?: Buffer | undefined },
): Promise<string> {
  const [hostname, port] = address.split(':')
  const signal = AbortSignal.timeout(LIMIT_MS)
  const options = { hostname, port, path, headers: { host }, agent: false, signal }
  const outgoing =
    ca === undefined ? requestPlain(options) : requestSecure({ ...options, ca, servername: host })
  outgoing.end()
  const [incoming]: IncomingMessage[] = await once(outgoing, 'response')
  if (incoming === undefined) throw new Error(`GET ${path}: no answer`)
  const body = await text(incoming)
  if (incoming.statusCode === 200) return body.trim()
  throw new Error(`GET ${path}: got ${incoming.statusCode} ${body}, want 200`)
}
