import { setGlobalProxyFromEnv } from 'node:http'
import { ServeError } from '@tutti/errors'

/** The variables of proxies. Their names may also be in lower case, which then counts. */
const VARIABLES = ['HTTP_PROXY', 'HTTPS_PROXY'] as const

/** Hosts that no proxy reaches: this machine, and the servers from which clouds give credentials to it. */
const OWN = [
  'localhost',
  '127.0.0.1',
  '::1',
  '[::1]',
  '169.254.0.0-169.254.255.255',
  'fd00:ec2::23',
  '[fd00:ec2::23]',
  'fd00:ec2::254',
  '[fd00:ec2::254]',
  'metadata.google.internal',
]

/**
 * Lets the HTTP clients of this process that have no agent of their own obey HTTP_PROXY, HTTPS_PROXY and NO_PROXY. Those of
 * API servers have one, and so do servers that are called in the cluster.
 *
 * @returns a function that ends it.
 * @throws ServeError SETTING_INVALID for a proxy that is no `http://` or `https://` address.
 */
export function obeyProxies(env: Readonly<Record<string, string | undefined>>): () => void {
  const proxies = Object.fromEntries(VARIABLES.map((name) => [name, readProxy(env, name)]))
  const noProxy = env['no_proxy'] || env['NO_PROXY'] || ''
  const hosts = noProxy.split(/[\s,]+/).map(toRange)
  return setGlobalProxyFromEnv({ ...proxies, NO_PROXY: [...hosts, ...OWN].join(',') })
}

function readProxy(
  env: Readonly<Record<string, string | undefined>>,
  name: (typeof VARIABLES)[number],
): string | undefined {
  const text = env[name.toLowerCase()] || env[name]
  if (!text) return undefined
  // As curl has it.
  const url = text.includes('://') ? text : `http://${text}`
  if (/^https?:\/\/[^/]/.test(url) && URL.canParse(url)) return url
  // The text may hold a password.
  const want = 'want http://HOST:PORT or https://HOST:PORT'
  throw new ServeError('SETTING_INVALID', `${name}: it is no address of a proxy, ${want}`)
}

/** Writes a block of addresses of IPv4, `10.0.0.0/8`, as the range that Node knows. */
function toRange(host: string): string {
  const [, address = '', length = ''] = /^(\d+\.\d+\.\d+\.\d+)\/(\d+)$/.exec(host) ?? []
  const bits = Number(length)
  if (address === '' || bits > 32) return host
  const size = 2 ** (32 - bits)
  const value = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
  const first = value - (value % size)
  return `${toAddress(first)}-${toAddress(first + size - 1)}`
}

function toAddress(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.')
}
