import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DirectOptions } from '@tutti/transport'

/** The direct transport of both ends of an edge. @param kind - '' for none. */
export function toDirect(kind: string): DirectOptions | undefined {
  if (kind === 'unix') return { kind, directory: join(tmpdir(), `tutti-bench-${process.ppid}`) }
  if (kind === 'tls' || kind === 'tcp') return { kind, listen: { host: '127.0.0.1', port: 0 } }
  return undefined
}
