import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DirectOptions } from '../direct/direct-sockets.ts'

/** Makes the options of both ends; a router does not listen. */
export function directOptions(kind: DirectOptions['kind']): DirectOptions {
  if (kind !== 'unix') return { kind, listen: { host: '127.0.0.1', port: 0 } }
  const directory = mkdtempSync(join(tmpdir(), 'tutti-direct-'))
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
  return { kind, directory }
}
